/* Help for people, from the tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/terminal.h"
#include "util/suggest.h"

#include <string.h>

enum { WIDTH = 96, NARROW = 60 };

static int page_width(void)
{
    int terminal = cli_terminal_width();
    return terminal == 0 || terminal > WIDTH ? WIDTH : terminal < NARROW ? NARROW : terminal;
}

/* Writes words from column `at` on, breaking lines at the page's width; later lines begin at `indent`. Each line of the
 * text is a paragraph of its own. */
static void put_wrapped(FILE *out, const char *text, int at, int indent)
{
    int width = page_width();
    bool fresh = true;
    while (*text) {
        if (*text == '\n') {
            fprintf(out, "\n\n%*s", indent, "");
            at = indent;
            fresh = true;
            text++;
            continue;
        }
        int length = (int)strcspn(text, " \n");
        if (!fresh && at + 1 + length > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            fresh = true;
        }
        fprintf(out, "%s%.*s", fresh ? "" : " ", length, text);
        at += length + (fresh ? 0 : 1);
        fresh = false;
        text += length;
        text += *text == ' ';
    }
    fputc('\n', out);
}

/* A term with its meaning beside it, or below if the term is long. */
static void put_pair(FILE *out, const char *term, const char *meaning, int indent)
{
    int length = (int)strlen(term) + 2;
    fprintf(out, "  %s", term);
    if (length + 2 > indent)
        fprintf(out, "\n%*s", indent, "");
    else
        fprintf(out, "%*s", indent - length, "");
    put_wrapped(out, meaning, indent, indent);
}

void cli_help_option_syntax(const struct cli_option *option, char *out, size_t size)
{
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    if (option->kind == CLI_SWITCH)
        snprintf(out, size, "%s--%s", letter, option->name);
    else if (option->kind == CLI_MAYBE_DURATION)
        snprintf(out, size, "%s--%s[=%s]", letter, option->name, option->argument);
    else
        snprintf(out, size, "%s--%s %s", letter, option->name, option->argument);
}

static void put_options(FILE *out, const struct cli_option *table)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table))) {
        char syntax[80];
        cli_help_option_syntax(option, syntax, sizeof syntax);
        put_pair(out, syntax, option->help, 28);
    }
}

static void put_commands(FILE *out, const char *family)
{
    size_t length = strlen(family);
    for (const struct cli_command *const *command = cli_commands; *command; command++)
        if (strncmp((*command)->name, family, length) == 0)
            put_pair(out, (*command)->name, (*command)->summary, 23);
}

void cli_help_overview(FILE *out)
{
    fputs("Usage: holdfast [OPTION...] COMMAND [ARGUMENT...]\n\n"
          "Durable workflows: work that was accepted is finished, whatever crashes.\n\nCommands:\n",
          out);
    put_commands(out, "");
    fputs("\nOptions of every command:\n", out);
    put_options(out, cli_global_options);
    fputs("\nMore: `holdfast help COMMAND`, and", out);
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        fprintf(out, "%s `holdfast help %s`", topic == cli_topics ? "" : ",", topic->name);
    fputc('\n', out);
}

void cli_help_family(FILE *out, const char *family)
{
    char start[96];
    fprintf(out, "Usage: holdfast %s COMMAND [ARGUMENT...]\n\nCommands:\n", family);
    snprintf(start, sizeof start, "%s ", family);
    put_commands(out, start);
}

static void put_examples(FILE *out, const char *examples)
{
    fputs("\nExamples:\n", out);
    while (*examples) {
        int length = (int)strcspn(examples, "\n");
        fprintf(out, "  %.*s\n", length, examples);
        examples += length;
        examples += *examples == '\n';
    }
}

void cli_help_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, "Usage: holdfast %s%s%s%s\n\n%s.\n", command->name,
            command->options ? " [OPTION...]" : "", *command->operands ? " " : "",
            command->operands, command->summary);
    if (command->details) {
        fputc('\n', out);
        put_wrapped(out, command->details, 0, 0);
    }
    if (command->options) {
        fputs("\nOptions:\n", out);
        put_options(out, command->options);
    }
    if (command->examples)
        put_examples(out, command->examples);
    fputs("\nOptions of every command: see `holdfast help`.\n", out);
}

static void put_topic(FILE *out, const struct cli_topic *topic)
{
    fprintf(out, "%s\n\n", topic->title);
    if (topic->intro) {
        put_wrapped(out, topic->intro, 0, 0);
        fputc('\n', out);
    }
    for (const struct cli_topic_row *row = topic->rows; row->term; row++)
        put_pair(out, row->term, row->meaning, 24);
}

static bool show_topic(const char *name)
{
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        if (strcmp(topic->name, name) == 0) {
            put_topic(stdout, topic);
            return true;
        }
    return false;
}

static struct {
    bool man, markdown;
} args;

static const struct cli_option options[] = {
    CLI_OPT(SWITCH, 0, "man", NULL, "the manual page, for man(1)", .value = &args.man),
    CLI_OPT(SWITCH, 0, "markdown", NULL, "the reference as Markdown", .value = &args.markdown),
    CLI_OPTIONS_END,
};

static int unknown_page(struct cli_session *session, const char *name)
{
    struct hf__suggestion suggestion;
    hf__suggest_start(&suggestion, name);
    for (const struct cli_command *const *command = cli_commands; *command; command++)
        hf__suggest_offer(&suggestion, (*command)->name);
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        hf__suggest_offer(&suggestion, topic->name);
    session->command = NULL; /* the list of all pages helps, the page about help does not */
    return cli_usage(session, "there is no help about \"%.60s\"%s%s%s", name,
                     suggestion.best ? "; did you mean " : "",
                     suggestion.best ? suggestion.best : "", suggestion.best ? "?" : "");
}

static int show_page(struct cli_session *session, const char *name)
{
    const struct cli_command *command = cli_command_find(name);
    if (command)
        cli_help_command(stdout, command);
    else if (cli_command_is_family(name))
        cli_help_family(stdout, name);
    else if (!show_topic(name))
        return unknown_page(session, name);
    return CLI_OK;
}

static int help(struct cli_session *session, int count, char **operands)
{
    char name[80];
    if (args.man)
        cli_write_man(stdout);
    else if (args.markdown)
        cli_write_markdown(stdout);
    else if (count == 0)
        cli_help_overview(stdout);
    else {
        snprintf(name, sizeof name, "%s%s%s", operands[0], count > 1 ? " " : "",
                 count > 1 ? operands[1] : "");
        return show_page(session, name);
    }
    return CLI_OK;
}

const struct cli_command cli_command_help = {
    .name = "help",
    .summary = "Show help about a command or a topic",
    .operands = "[COMMAND|TOPIC]",
    .details = "Topics: exit-codes, environment, times, json.",
    .max_operands = 2,
    .options = options,
    .run = help,
};

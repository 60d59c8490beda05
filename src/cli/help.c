/* Help for people, from the tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/terminal.h"
#include "util/suggest.h"

#include <string.h>

/* Columns. What goes into a pipe is mostly read on a terminal in the end, by a pager. */
enum { WIDE = 96, USUAL = 80, NARROW = 60, COMMAND_INDENT = 23, GROUP_INDENT = 28 };

static int page_width(void)
{
    int terminal = cli_terminal_width();
    if (terminal == 0)
        return USUAL;
    return terminal > WIDE ? WIDE : terminal < NARROW ? NARROW : terminal;
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

static void put_command(FILE *out, const struct cli_command *command)
{
    put_pair(out, command->name, command->summary, COMMAND_INDENT);
}

static void put_group(FILE *out, const struct cli_group *group)
{
    fprintf(out, "\n%s:\n", group->title);
    for (const struct cli_command *const *command = group->commands; *command; command++)
        put_command(out, *command);
}

static void put_usage(FILE *out)
{
    fputs("Usage: holdfast [OPTION...] COMMAND [ARGUMENT...]\n\n"
          "Durable workflows: work that was accepted is finished, whatever crashes.\n",
          out);
}

/* A group as one line: its commands, those of a family by their first word. */
static void put_group_line(FILE *out, const struct cli_group *group)
{
    char names[400] = "";
    size_t used = 0, last_length = 0;
    const char *last = "";
    for (const struct cli_command *const *command = group->commands; *command; command++) {
        const char *name = (*command)->name;
        size_t length = strcspn(name, " ");
        if ((length != last_length || strncmp(name, last, length) != 0) &&
            used + length + 3 < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", used ? ", " : "",
                                     (int)length, name);
        last = name;
        last_length = length;
    }
    put_pair(out, group->title, names, GROUP_INDENT);
}

void cli_help_start(FILE *out)
{
    put_usage(out);
    put_group(out, &cli_groups[0]);
    fputs("\nThere is more:\n", out);
    for (const struct cli_group *group = &cli_groups[1]; group->title; group++)
        put_group_line(out, group);
    fputs("\n`holdfast help` shows all of them, `holdfast help COMMAND` tells all about one.\n",
          out);
}

static void put_topics(FILE *out)
{
    fputs("\nMore about:\n", out);
    put_pair(out, "help COMMAND", "a command, or a family such as `help schedule`", COMMAND_INDENT);
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++) {
        char page[40];
        snprintf(page, sizeof page, "help %s", topic->name);
        put_pair(out, page, topic->title, COMMAND_INDENT);
    }
}

void cli_help_overview(FILE *out)
{
    put_usage(out);
    for (const struct cli_group *group = cli_groups; group->title; group++)
        put_group(out, group);
    fputs("\nOptions of every command:\n", out);
    put_options(out, cli_global_options);
    put_topics(out);
}

void cli_help_family(FILE *out, const char *family)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    size_t length = strlen(family);
    fprintf(out, "Usage: holdfast %s COMMAND [ARGUMENT...]\n\nCommands:\n", family);
    while ((command = cli_command_next(&walk)))
        if (strncmp(command->name, family, length) == 0 && command->name[length] == ' ')
            put_command(out, command);
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
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        hf__suggest_offer(&suggestion, command->name);
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

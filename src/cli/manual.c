/* The manual page (roff) and the reference (Markdown), from the tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include <string.h>

/* A paragraph in roff. A line must not begin with a dot or a quote, and a hyphen is not a dash. */
static void put_roff(FILE *out, const char *text)
{
    bool at_start = true;
    for (; *text; text++) {
        if (at_start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\n')
            fputs("\n.PP\n", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\\')
            fputs("\\e", out);
        else
            fputc(*text, out);
        at_start = *text == '\n';
    }
    fputc('\n', out);
}

static void put_roff_pair(FILE *out, const char *term, const char *meaning)
{
    fputs(".TP\n.B ", out);
    put_roff(out, term);
    put_roff(out, meaning);
}

static void put_roff_options(FILE *out, const struct cli_option *table)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table))) {
        char syntax[80];
        cli_help_option_syntax(option, syntax, sizeof syntax);
        put_roff_pair(out, syntax, option->help);
    }
}

static void put_roff_command(FILE *out, const struct cli_command *command)
{
    char usage[200];
    snprintf(usage, sizeof usage, "holdfast %s%s%s%s", command->name,
             command->options ? " [OPTION...]" : "", *command->operands ? " " : "",
             command->operands);
    fputs(".SS ", out);
    put_roff(out, usage);
    put_roff(out, command->summary);
    if (command->details) {
        fputs(".PP\n", out);
        put_roff(out, command->details);
    }
    put_roff_options(out, command->options);
    if (command->examples) {
        fputs(".PP\n.nf\n.RS\n", out);
        for (const char *line = command->examples; line; line = strchr(line, '\n')) {
            line += *line == '\n';
            char text[300];
            snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
            put_roff(out, text);
        }
        fputs(".RE\n.fi\n", out);
    }
}

static void put_roff_section(FILE *out, const char *title)
{
    fputs(".SH ", out);
    for (const char *c = title; *c; c++)
        fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fputc('\n', out);
}

static void put_roff_topic(FILE *out, const struct cli_topic *topic)
{
    put_roff_section(out, topic->title);
    if (topic->intro)
        put_roff(out, topic->intro);
    for (const struct cli_topic_row *row = topic->rows; row->term; row++)
        put_roff_pair(out, row->term, row->meaning);
}

void cli_write_man(FILE *out)
{
    fprintf(out, ".TH HOLDFAST 1 \"\" \"holdfast %s\" \"User Commands\"\n", hf_library_version());
    fputs(".SH NAME\nholdfast \\- durable workflows on SQLite and PostgreSQL\n"
          ".SH SYNOPSIS\n.B holdfast\n[OPTION...] COMMAND [ARGUMENT...]\n"
          ".SH DESCRIPTION\n"
          "Triggers runs of workflows, works on them, and looks after them. Work that was accepted "
          "is finished, whatever crashes.\n"
          ".SH OPTIONS OF EVERY COMMAND\n",
          out);
    put_roff_options(out, cli_global_options);
    for (const struct cli_group *group = cli_groups; group->title; group++) {
        put_roff_section(out, group->title);
        for (const struct cli_command *const *command = group->commands; *command; command++)
            put_roff_command(out, *command);
    }
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        put_roff_topic(out, topic);
}

/* In a table a bar would begin a new cell. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void put_markdown_row(FILE *out, const char *term, const char *meaning)
{
    fputs("| `", out);
    put_cell(out, term);
    fputs("` | ", out);
    put_cell(out, meaning);
    fputs(" |\n", out);
}

static void put_markdown_options(FILE *out, const struct cli_option *table)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    fputs("\n| option | meaning |\n|---|---|\n", out);
    while ((option = cli_option_next(&walk, table))) {
        char syntax[80];
        cli_help_option_syntax(option, syntax, sizeof syntax);
        put_markdown_row(out, syntax, option->help);
    }
}

static void put_markdown_details(FILE *out, const char *details)
{
    fputc('\n', out);
    for (; *details; details++) {
        fputc(*details, out);
        if (*details == '\n')
            fputc('\n', out);
    }
    fputc('\n', out);
}

static void put_markdown_command(FILE *out, const struct cli_command *command)
{
    fprintf(out, "\n#### holdfast %s\n\n`holdfast %s%s%s%s`\n\n%s.\n", command->name, command->name,
            command->options ? " [OPTION...]" : "", *command->operands ? " " : "",
            command->operands, command->summary);
    if (command->details)
        put_markdown_details(out, command->details);
    if (command->options)
        put_markdown_options(out, command->options);
    if (command->examples)
        fprintf(out, "\n```sh\n%s\n```\n", command->examples);
}

void cli_write_markdown(FILE *out)
{
    fputs("## Options of every command\n", out);
    put_markdown_options(out, cli_global_options);
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++) {
        fprintf(out, "\n## %s\n\n", topic->title);
        if (topic->intro)
            fprintf(out, "%s\n\n", topic->intro);
        fputs("| | |\n|---|---|\n", out);
        for (const struct cli_topic_row *row = topic->rows; row->term; row++)
            put_markdown_row(out, row->term, row->meaning);
    }
    fputs("\n## Commands\n", out);
    for (const struct cli_group *group = cli_groups; group->title; group++) {
        fprintf(out, "\n### %s\n", group->title);
        for (const struct cli_command *const *command = group->commands; *command; command++)
            put_markdown_command(out, *command);
    }
}

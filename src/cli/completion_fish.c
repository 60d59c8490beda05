/* holdfast completion fish: the script, from the tables
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/completion.h"

#include <string.h>

static void put_quoted(FILE *out, const char *text)
{
    cli_put_quoted(out, text, "\\'", "\\\\");
}

/* One rule: `flags` say what is offered, after the words of `command` ("": none yet). */
static void put_rule(FILE *out, const char *command, const char *flags, const char *what,
                     const char *meaning)
{
    fprintf(out, "complete -c holdfast -n \"__holdfast_after '%s'\" %s%s", command, flags, what);
    if (meaning) {
        fputs(" -d ", out);
        put_quoted(out, meaning);
    }
    fputc('\n', out);
}

/* The words of commands: the second ones after the first. */
static void put_words(FILE *out, const struct cli_command *command)
{
    char first[50];
    const char *space = strchr(command->name, ' ');
    snprintf(first, sizeof first, "%.*s", (int)strcspn(command->name, " "), command->name);
    if (cli_command_opens(command))
        put_rule(out, "", "-f -a ", first, space ? NULL : command->summary);
    if (space)
        put_rule(out, first, "-f -a ", space + 1, command->summary);
}

static void put_option(FILE *out, const char *condition, const struct cli_option *option)
{
    fprintf(out, "complete -c holdfast%s -l %s", condition, option->name);
    if (option->letter)
        fprintf(out, " -s %c", option->letter);
    if (cli_option_takes_value(option) && cli_completes(option) == CLI_COMPLETES_FILES)
        fputs(" -r -F", out);
    else if (cli_option_takes_value(option))
        fputs(" -x", out);
    if (cli_completes(option) == CLI_COMPLETES_STATUSES) {
        fputs(" -a '", out);
        cli_put_statuses(out);
        fputc('\'', out);
    }
    fputs(" -d ", out);
    put_quoted(out, option->help);
    fputc('\n', out);
}

static void put_options(FILE *out, const struct cli_option *table, const char *command)
{
    char condition[100] = "";
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    if (command)
        snprintf(condition, sizeof condition, " -n \"__holdfast_after '%s'\"", command);
    while ((option = cli_option_next(&walk, table)))
        put_option(out, condition, option);
}

static void put_help_words(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        if (cli_command_opens(command)) {
            char first[50];
            snprintf(first, sizeof first, "%.*s", (int)strcspn(command->name, " "), command->name);
            put_rule(out, "help", "-f -a ", first, NULL);
        }
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        put_rule(out, "help", "-f -a ", topic->name, topic->title);
}

static void put_families(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        if (cli_command_opens(command) && strchr(command->name, ' '))
            fprintf(out, " %.*s", (int)strcspn(command->name, " "), command->name);
}

/* Prints the command's words that stand on the line: one, or two where the first alone is none. */
static void put_functions(FILE *out)
{
    fputs("# fish completion for holdfast; made by `holdfast completion fish`\n"
          "function __holdfast_after\n"
          "    set -l words\n"
          "    set -l skip no\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        if test $skip = yes\n"
          "            set skip no\n"
          "            continue\n"
          "        end\n"
          "        switch $word\n"
          "            case ",
          out);
    cli_put_global_value_options(out, " ");
    fputs("\n"
          "                set skip yes\n"
          "            case '-*'\n"
          "            case '*'\n"
          "                set -a words $word\n"
          "        end\n"
          "    end\n"
          "    switch \"$words[1]\"\n"
          "        case",
          out);
    put_families(out);
    fputs("\n"
          "            test \"$words[1..2]\" = \"$argv\"\n"
          "        case '*'\n"
          "            test \"$words[1]\" = \"$argv\"\n"
          "    end\n"
          "end\n",
          out);
}

static int write_fish(struct cli_session *session, int count, char **operands)
{
    (void)session, (void)count, (void)operands;
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    put_functions(stdout);
    put_options(stdout, cli_global_options, NULL);
    while ((command = cli_command_next(&walk))) {
        put_words(stdout, command);
        put_options(stdout, command->options, command->name);
    }
    put_help_words(stdout);
    return CLI_OK;
}

const struct cli_command cli_command_completion_fish = {
    .name = "completion fish",
    .summary = "Write the completion for fish",
    .operands = "",
    .examples = "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
    .run = write_fish,
};

/* holdfast completion zsh: the script, from the tables
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/completion.h"

#include <string.h>

/* An element of an array: what is offered, and what it means (NULL: nothing is said). */
static void put_choice(FILE *out, const char *before, const char *what, const char *meaning)
{
    char text[400];
    snprintf(text, sizeof text, "%s%s%s%s", before, what, meaning ? ":" : "",
             meaning ? meaning : "");
    fputc(' ', out);
    cli_put_quoted(out, text, "'\\''", "\\");
}

static void put_options(FILE *out, const struct cli_option *table)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table)))
        put_choice(out, "--", option->name, option->help);
}

static void put_first_words(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        if (cli_command_opens(command)) {
            char first[50];
            bool family = strchr(command->name, ' ') != NULL;
            snprintf(first, sizeof first, "%.*s", (int)strcspn(command->name, " "), command->name);
            put_choice(out, "", first, family ? NULL : command->summary);
        }
}

static void put_families(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk))) {
        const char *space = strchr(command->name, ' ');
        if (!space)
            continue;
        fprintf(out, "        (%.*s) choices+=(", (int)(space - command->name), command->name);
        put_choice(out, "", space + 1, command->summary);
        fputs(") ;|\n", out);
    }
}

/* What follows an option that takes a value. */
static void put_value(FILE *out, const char *command, const struct cli_option *option)
{
    if (!cli_option_takes_value(option))
        return;
    fprintf(out, "        ('%s --%s'", command, option->name);
    if (option->letter)
        fprintf(out, "|'%s -%c'", command, option->letter);
    switch (cli_completes(option)) {
    case CLI_COMPLETES_NOTHING: fputs(") _message value; return 1 ;;\n", out); break;
    case CLI_COMPLETES_FILES: fputs(") _files; return ;;\n", out); break;
    case CLI_COMPLETES_STATUSES:
        fputs(") compadd -- ", out);
        cli_put_statuses(out);
        fputs("; return ;;\n", out);
        break;
    }
}

static void put_values(FILE *out, const struct cli_option *table, const char *command)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table)))
        put_value(out, command, option);
}

static void put_values_by_command(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    fputs("    case \" $previous\" in\n", out);
    put_values(out, cli_global_options, "");
    fputs("    esac\n    case \"$command $previous\" in\n", out);
    while ((command = cli_command_next(&walk)))
        put_values(out, command->options, command->name);
    fputs("    esac\n", out);
}

static void put_options_by_command(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    fputs("    if [[ $words[CURRENT] == -* ]]; then\n        case \"$command\" in\n", out);
    while ((command = cli_command_next(&walk))) {
        fprintf(out, "            ('%s') choices+=(", command->name);
        put_options(out, command->options);
        fputs(") ;;\n", out);
    }
    fputs("        esac\n        choices+=(", out);
    put_options(out, cli_global_options);
    fputs(")\n        _describe -o option choices\n        return\n    fi\n", out);
}

static void put_words(FILE *out)
{
    fputs("    case \"$command\" in\n        ('') choices=(", out);
    put_first_words(out);
    fputs(") ;;\n        (help) choices=(", out);
    put_first_words(out);
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        put_choice(out, "", topic->name, topic->title);
    fputs(") ;;\n", out);
    put_families(out);
    fputs("    esac\n"
          "    if (( $#choices )); then _describe command choices; else _files; fi\n",
          out);
}

/* The words before the one at hand: the command's own, without options and the values of global ones. */
static void put_search(FILE *out)
{
    fputs("    local command= previous=$words[CURRENT-1] i\n"
          "    local -a choices families\n"
          "    families=(",
          out);
    struct cli_command_walk walk = { 0 };
    const struct cli_command *each;
    while ((each = cli_command_next(&walk)))
        if (cli_command_opens(each) && strchr(each->name, ' '))
            fprintf(out, " %.*s", (int)strcspn(each->name, " "), each->name);
    fputs(")\n"
          "    for ((i = 2; i < CURRENT; i++)); do\n"
          "        case $words[i] in\n"
          "            (",
          out);
    cli_put_global_value_options(out, "|");
    fputs(
        ") ((i++)); continue ;;\n"
        "            (-*) continue ;;\n"
        "        esac\n"
        "        if [[ -z $command ]]; then command=$words[i]\n"
        "        elif (( ${families[(Ie)$command]} )); then command=\"$command $words[i]\"; break\n"
        "        else break\n"
        "        fi\n"
        "    done\n",
        out);
}

static int write_zsh(struct cli_session *session, int count, char **operands)
{
    (void)session, (void)count, (void)operands;
    fputs("#compdef holdfast\n"
          "# zsh completion for holdfast; made by `holdfast completion zsh`\n"
          "_holdfast()\n{\n",
          stdout);
    put_search(stdout);
    put_values_by_command(stdout);
    put_options_by_command(stdout);
    put_words(stdout);
    fputs("}\n"
          "if [[ $funcstack[1] == _holdfast ]]; then _holdfast \"$@\"; else compdef _holdfast "
          "holdfast; fi\n",
          stdout);
    return CLI_OK;
}

const struct cli_command cli_command_completion_zsh = {
    .name = "completion zsh",
    .summary = "Write the completion for zsh",
    .operands = "",
    .examples = "holdfast completion zsh > /usr/local/share/zsh/site-functions/_holdfast",
    .run = write_zsh,
};

/* holdfast completion bash: the script, from the tables
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/completion.h"

#include <string.h>

static void put_option_names(FILE *out, const struct cli_option *table)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    while ((option = cli_option_next(&walk, table)))
        fprintf(out, " --%s", option->name);
}

/* Patterns of the options whose value is the next word, for a case of the shell. */
static void put_value_options(FILE *out, const struct cli_option *table, const char *command)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    bool any = false;
    while ((option = cli_option_next(&walk, table))) {
        if (!cli_option_takes_value(option))
            continue;
        fprintf(out, "%s'%s--%s'", any ? "|" : "        ", command, option->name);
        any = true;
    }
    if (any)
        fputs(") return 0 ;;\n", out);
}

static void put_families(FILE *out)
{
    fputs("    case \"$word\" in\n", out);
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk))) {
        const char *space = strchr(command->name, ' ');
        if (space)
            fprintf(out, "        '%.*s') families=\"$families %s\" ;;&\n",
                    (int)(space - command->name), command->name, space + 1);
    }
    fputs("    esac\n", out);
}

static void put_first_words(FILE *out)
{
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk)))
        if (cli_command_opens(command))
            fprintf(out, " %.*s", (int)strcspn(command->name, " "), command->name);
}

static void put_values(FILE *out)
{
    fputs("    case \"$previous\" in\n        --status|-s) COMPREPLY=($(compgen -W '", out);
    cli_put_statuses(out);
    fputs("' -- \"$current\")); return 0 ;;\n", out);
    fputs("        --lines|--definition) COMPREPLY=($(compgen -f -- \"$current\")); return 0 ;;\n",
          out);
    put_value_options(out, cli_global_options, "");
    fputs("    esac\n    case \"$command $previous\" in\n", out);
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk))) {
        char start[50];
        snprintf(start, sizeof start, "%s ", command->name);
        put_value_options(out, command->options, start);
    }
    fputs("    esac\n", out);
}

static void put_options_by_command(FILE *out)
{
    fputs("    case \"$command\" in\n", out);
    struct cli_command_walk walk = { 0 };
    const struct cli_command *command;
    while ((command = cli_command_next(&walk))) {
        fprintf(out, "        '%s') words='", command->name);
        put_option_names(out, command->options);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n    words=\"$words", out);
    put_option_names(out, cli_global_options);
    fputs("\"\n", out);
}

static void put_help_words(FILE *out)
{
    put_first_words(out);
    for (const struct cli_topic *topic = cli_topics; topic->name; topic++)
        fprintf(out, " %s", topic->name);
}

static void put_completion(FILE *out)
{
    fputs("# bash completion for holdfast; made by `holdfast completion bash`\n"
          "_holdfast_subcommands()\n{\n    local word=$1 families=\n",
          out);
    put_families(out);
    fputs("    echo \"$families\"\n}\n\n"
          "_holdfast()\n{\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local command= words= family i word\n"
          "    COMPREPLY=()\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        word=${COMP_WORDS[i]}\n"
          "        case \"$word\" in\n            ",
          out);
    cli_put_global_value_options(out, "|");
    fputs(") ((i++)); continue ;;\n"
          "            -*) continue ;;\n"
          "        esac\n"
          "        family=$(_holdfast_subcommands \"$command\")\n"
          "        if [ -z \"$command\" ]; then command=$word\n"
          "        elif [ -n \"$family\" ]; then command=\"$command $word\"; break\n"
          "        else break\n"
          "        fi\n"
          "    done\n",
          out);
    put_values(out);
    put_options_by_command(out);
    fputs("    if [[ \"$current\" != -* ]]; then\n"
          "        family=$(_holdfast_subcommands \"$command\")\n"
          "        if [ -z \"$command\" ]; then words='",
          out);
    put_first_words(out);
    fputs("'\n"
          "        elif [ -n \"$family\" ]; then words=$family\n"
          "        elif [ \"$command\" = help ]; then words='",
          out);
    put_help_words(out);
    fputs("'\n"
          "        else COMPREPLY=($(compgen -f -- \"$current\")); return 0\n"
          "        fi\n"
          "    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "}\n"
          "complete -F _holdfast holdfast\n",
          out);
}

static int write_bash(struct cli_session *session, int count, char **operands)
{
    (void)session, (void)count, (void)operands;
    put_completion(stdout);
    return CLI_OK;
}

const struct cli_command cli_command_completion_bash = {
    .name = "completion bash",
    .summary = "Write the completion for bash",
    .operands = "",
    .examples = "holdfast completion bash > /etc/bash_completion.d/holdfast",
    .run = write_bash,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

#include <string.h>

enum cli_completes cli_completes(const struct cli_option *option)
{
    if (option->kind == CLI_STATUS_SET)
        return CLI_COMPLETES_STATUSES;
    return option->argument && strstr(option->argument, "FILE") ? CLI_COMPLETES_FILES
                                                                : CLI_COMPLETES_NOTHING;
}

void cli_put_statuses(FILE *out)
{
#define PUT_STATUS(symbol, number, name) fputs(number > 0 ? " " name : name, out);
    HF_STATUSES(PUT_STATUS)
#undef PUT_STATUS
}

void cli_put_global_value_options(FILE *out, const char *between)
{
    struct cli_option_walk walk = { 0 };
    const struct cli_option *option;
    const char *before = "";
    while ((option = cli_option_next(&walk, cli_global_options)))
        if (cli_option_takes_value(option)) {
            fprintf(out, "%s--%s", before, option->name);
            before = between;
        }
}

void cli_put_quoted(FILE *out, const char *text, const char *quote, const char *backslash)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, out);
        else if (*text == '\\')
            fputs(backslash, out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

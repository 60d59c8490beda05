/* What the completions of the shells share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_COMPLETION_H
#define HF_CLI_COMPLETION_H

#include "cli/command.h"

/* What may follow an option as its value, as far as a shell can know. */
enum cli_completes { CLI_COMPLETES_NOTHING, CLI_COMPLETES_FILES, CLI_COMPLETES_STATUSES };
enum cli_completes cli_completes(const struct cli_option *option);

/* The names of all statuses, with blanks between them. */
void cli_put_statuses(FILE *out);
/* The options of every command whose value is the next word, each as `--name`, with `between` between them. */
void cli_put_global_value_options(FILE *out, const char *between);
/* `text` in single quotes; what stands for a quote, and for a backslash, is the shell's matter. */
void cli_put_quoted(FILE *out, const char *text, const char *quote, const char *backslash);

#endif

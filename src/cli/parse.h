/* The command line: which command, its options, its operands.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_PARSE_H
#define HF_CLI_PARSE_H

#include "cli/command.h"

struct cli_parse {
    const char *family; /* "workflow" while its second word is awaited */
    char **operands;    /* room for argc; borrowed strings */
    int count;
};

/* Fills the session and `parse` from argv. Options may stand anywhere before "--". False: the error was shown and
 * *status is the exit code. */
bool cli_parse(struct cli_session *session, struct cli_parse *parse, int argc, char **argv,
               int *status) HF_MUST_CHECK;

#endif

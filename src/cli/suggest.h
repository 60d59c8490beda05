/* What somebody who mistyped a word probably meant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_SUGGEST_H
#define HF_CLI_SUGGEST_H

#include <stddef.h>

/* Collects candidates one by one; `best` is borrowed from the nearest. */
struct cli_suggestion {
    const char *typed;
    const char *best; /* NULL: nothing is near enough */
    size_t distance;
};

void cli_suggest_start(struct cli_suggestion *suggestion, const char *typed);
void cli_suggest_offer(struct cli_suggestion *suggestion, const char *candidate);

#endif

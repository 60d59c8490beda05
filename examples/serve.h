/* The main function of a worker: opens the store that is named on the command line, and works until it is told to stop.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_SERVE_H
#define EXAMPLES_SERVE_H

#include <holdfast/holdfast.h>

struct served {
    const char *workflow; /* NULL: end of the list */
    hf_handler handler;
};

/* Returns the program's exit code. */
int serve(int argc, char **argv, const struct served *list);

#endif

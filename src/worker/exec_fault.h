/* Why a program cannot be run, in words that say what to do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_EXEC_FAULT_H
#define HF_WORKER_EXEC_FAULT_H

#include <stdbool.h>
#include <stddef.h>

#define HF__EXEC_FAULT 400 /* bytes of the text */

/* Looks before it is run. True: it cannot be, and `out` says why. `name` is a path, or a file in one of PATH's folders. */
bool hf__exec_find_fault(const char *name, char *out, size_t size);
/* The same after an attempt to run it that ended with this errno. Returns `out`. */
const char *hf__exec_fault(const char *name, int error, char *out, size_t size);

#endif

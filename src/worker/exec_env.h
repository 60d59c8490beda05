/* The environment of a program that works on a run: what the run is, and of the worker's own only what cannot hold a secret.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_EXEC_ENV_H
#define HF_WORKER_EXEC_ENV_H

#include <holdfast/types.h>

#include "util/arena.h"

#include <stddef.h>

/* HF_OK: "NAME" (the worker's own value) or "NAME=VALUE" may be added. */
hf_code hf__exec_env_check(const char *entry, hf_error *err);
/* A list that ends with NULL. `socket` may be NULL. NULL: no memory. */
char **hf__exec_env(struct hf__arena *arena, char *const *added, size_t added_count,
                    const hf_run *run, const char *socket);

#endif

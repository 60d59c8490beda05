/* Connections for reading and for small writes: at most so many open, so many kept when unused, none too old.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_POOL_H
#define HF_KERNEL_POOL_H

#include "store/driver.h"

struct hf__pool;
struct hf__slot; /* room for one connection */

struct hf__pool_options {
    const struct hf__driver *driver;
    struct hf__database *db;
    int max_open;
    int max_idle;
    int64_t max_lifetime;  /* us; 0: no limit */
    int64_t connect_limit; /* us to wait for a free connection */
};

struct hf__pool_use {
    int open;
    int idle;       /* open and not in use */
    int64_t waited; /* how often somebody found all of them in use, since the start */
};

hf_code hf__pool_new(struct hf__pool **out, const struct hf__pool_options *options, hf_error *err);
void hf__pool_free(struct hf__pool *pool);
/* Waits for a free connection, or opens one. */
hf_code hf__pool_take(struct hf__pool *pool, struct hf__conn **out, hf_error *err);
/* A connection that is lost is closed. */
void hf__pool_give(struct hf__pool *pool, struct hf__conn *conn);
/* A slot for a connection that somebody opens past the pool, so that no more are open than may be: waits for one that is
 * free, and closes an unused connection if there is no other. */
hf_code hf__pool_reserve(struct hf__pool *pool, struct hf__slot **out, hf_error *err);
void hf__pool_release(struct hf__pool *pool, struct hf__slot *slot);
struct hf__pool_use hf__pool_use(struct hf__pool *pool);

#endif

/* The engine: one opened store with its connections, flushers and ears. Shared by all clients of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_ENGINE_H
#define HF_KERNEL_ENGINE_H

#include <stdatomic.h>

#include "kernel/metrics.h"
#include "kernel/op.h"
#include "kernel/pool.h"
#include "store/driver.h"

struct hf__engine;

struct hf__engine_options {
    bool no_migrate;
    int max_schema; /* newest schema to migrate to and to assume; 0: the newest known */
    int max_open;
    int max_idle;
    int64_t max_lifetime;
    int64_t connect_limit;
    size_t max_payload;
    const struct hf__clock *clock;   /* tests: the store's clock, where the backend allows it */
    const struct hf__driver *driver; /* tests: in place of the URL's own */
};

hf_code hf__engine_open(struct hf__engine **out, const char *url,
                        const struct hf__engine_options *options, hf_error *err);
struct hf__engine *hf__engine_ref(struct hf__engine *engine);
void hf__engine_unref(struct hf__engine *engine);

const struct hf__driver *hf__engine_driver(const struct hf__engine *engine);
size_t hf__engine_max_payload(const struct hf__engine *engine);
/* The schema version this program assumes. */
int hf__engine_schema(const struct hf__engine *engine);
/* Store clock: runs whose lease ended before that are in the place that they had before they were claimed. */
atomic_llong *hf__engine_restored_to(struct hf__engine *engine);
/* What was done through it since it was opened, and the use of its connections for reading. */
struct hf__metrics *hf__engine_metrics(const struct hf__engine *engine);
struct hf__pool_use hf__engine_pool_use(const struct hf__engine *engine);

/* Group commit. submit returns at once, op->done is called later; apply blocks until all are decided. While the store cannot be
 * reached, operations are tried again as long as op->patience says, then answered HF_UNAVAILABLE. */
void hf__engine_submit(struct hf__engine *engine, struct hf__op *op);
void hf__engine_apply(struct hf__engine *engine, struct hf__op *ops, size_t count);

/* Reading, and the small writes that need no group: one statement on a pooled connection, in its own transaction. Result
 * rows live in result->arena. Retried once if the connection was found broken before it was sent. */
hf_code hf__engine_query(struct hf__engine *engine, enum hf__stmt stmt,
                         const struct hf__table *params, struct hf__table *result, hf_error *err);
/* Several statements in one transaction: `body` sends and syncs. It is called once more if the connection broke before the
 * commit, and must then forget what it was given the first time. */
typedef hf_code (*hf__work)(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                            hf_error *err);
hf_code hf__engine_transact(struct hf__engine *engine, hf__work body, void *arg,
                            const struct hf__wake *wake, hf_error *err);

/* Ears. `hear` is called from the engine's listening thread, or from the thread that flushes, for what this process committed
 * itself; it must be quick. `heard->lanes` with lane 0: any lane. After a reconnect everything is said to have changed. */
struct hf__ear;
hf_code hf__engine_listen(struct hf__engine *engine, struct hf__ear **out, hf__hear hear, void *arg,
                          hf_error *err);
/* Lets the listener's claim be made by a trigger's flush, or where its lane is heard of. `claim` is called as `hear` is. */
void hf__engine_stand_by(struct hf__ear *ear, hf__stand_by claim);
void hf__engine_unlisten(struct hf__ear *ear);

#endif

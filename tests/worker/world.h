/* A store with a tenant of its own, and a worker that runs in a thread: what the worker's tests
 * share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_WORLD_H
#define HF_TESTS_WORLD_H

#include <holdfast/holdfast.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"

#define SOON HF_MINUTES(3) /* longer than anything should take, even on a busy machine */

struct world {
    char url[2048];
    char directory[FOLDER_MOST]; /* of the SQLite file; "": none */
    hf_client *root;
    hf_client *client; /* of the test's own tenant */
    hf_worker *worker;
    pthread_t thread;
    bool runs; /* the thread is there */
    hf_code ended;
    hf_error error;
};

extern struct world world;

/* Runs the tests on the store that the first argument names: memory, file or postgres. The second one, if there is one, is a
 * pattern of their names. Returns the exit status. */
int world_run_tests(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
                    size_t count);

int world_set_up(void **state);
int world_tear_down(void **state);
bool world_is_in_memory(void);
bool world_is_on_postgres(void);

/* Two threads, a quick heartbeat and no polling: the options most tests want. */
hf_worker_options world_options(void);
void world_hire(const hf_worker_options *options);
void world_handle(const char *pattern, hf_handler handler, void *arg);
/* Returns when the worker is registered. */
void world_start(void);
/* Stops the worker, waits for its end and checks that it was a good one. */
void world_stop(void);
void world_ask_stop(void);
void world_join(void);

void world_define(const char *workflow, int max_attempts, int64_t retry_base, int64_t lease);
hf_id world_trigger(const char *workflow, const char *input);
hf_id world_trigger_spec(const hf_trigger_spec *spec);
/* Claims the one due run as a worker that dies at once would, and waits until its lease has expired. */
void world_claim_and_die(const char *workflow);
/* Waits for the end of the run; the caller frees it. */
hf_run *world_wait(hf_id id);
hf_run *world_get(hf_id id);
/* The run as soon as it has this status; fails if it ends with another. */
hf_run *world_await_status(hf_id id, hf_status status);
/* signal_id NULL: it gets one. */
void world_signal(hf_id id, const char *name, const char *payload, const char *signal_id);
void world_expect(hf_id id, hf_status status);
/* Lines of this kind, of the first thousand of its journal; name NULL: whatever they are called. */
int world_count_events(hf_id run, const char *wanted, const char *name);
/* Succeeded, with this result. */
void world_expect_result(hf_id id, const char *result);
/* Waits until a counter reaches a value. */
void world_await(atomic_int *counter, int value);
void world_sleep(int64_t us);
/* Statements by which workers have looked for work so far: for heads, for when to wake, and claims. */
int world_looks(void);
/* Looks for heads in more lanes than this at once, so far. */
#define WIDE_LOOK 250
int world_wide_looks(void);
/* Whether others than the test have no memory for tenants that they look up. */
void world_forbid_tenants(bool forbidden);

#define assert_ok(code) assert_int_equal((code), HF_OK)

#endif

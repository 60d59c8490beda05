/* What the contract's tests share: a store on the backend that the program was asked for, with a clock that the test
 * owns, and short names for what tests do all the time. Every test has a tenant of its own; after each one the journal
 * is compared with the state.
 *
 * What helpers return lives until the test ends. A helper that is not named `try_...` fails the test when the store
 * refuses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_FIXTURE_H
#define HF_TESTS_FIXTURE_H

#include <holdfast/holdfast.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/engine.h"

#include <cmocka.h>

#define WORK "work"   /* the workflow that every test's tenant has */
#define WORKER "anna" /* the worker that helpers claim for */
#define LEASE HF_SECONDS(30)

enum backend { BACKEND_MEMORY, BACKEND_FILE, BACKEND_POSTGRES };

struct fixture {
    enum backend backend;
    char url[600];
    hf_client *root;   /* of the tenant "default" */
    hf_client *client; /* of the test's own tenant, "test-N" */
    hf_client *other;  /* of another one, "other-N" */
    char tenant[32];
    char other_tenant[32];
    hf_error error; /* of the last helper */
};

extern struct fixture fx;

/* Runs the tests on the backend named by the program's argument. Returns the exit status. */
int fixture_run(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
                size_t count);
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

#define CONTRACT_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
#define CONTRACT(name, tests)                                                                      \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return fixture_run(argc, argv, name, tests, sizeof tests / sizeof *tests);                 \
    }

/* A code, with the error's message when it is another one. */
#define assert_code(call, expected)                                                                \
    fixture_assert_code((call), (expected), #call, __FILE__, __LINE__)
#define assert_ok(call) assert_code(call, HF_OK)
void fixture_assert_code(hf_code code, hf_code expected, const char *call, const char *file,
                         int line);

/* ---- Time ---- */

int64_t now(void);
void advance(int64_t us);

/* ---- Doing ---- */

void define(const char *workflow);
void define_with(hf_workflow workflow, unsigned mask);
hf_trigger_spec spec_of(const char *workflow);
hf_id trigger(const char *workflow);
hf_id trigger_spec(const hf_trigger_spec *spec);
hf_code try_trigger(const hf_trigger_spec *spec, hf_triggered *out);

const hf_claims *claim_as(const char *worker, int limit);
const hf_claims *claim_of(const char *workflow, int limit);
const hf_claims *claim_with(const hf_claim_spec *spec);
/* The one run that is due; fails unless there is exactly one. */
const hf_claimed *claim(void);
void expect_nothing_due(void);
/* Triggers a run of `work` and claims it. */
const hf_claimed *claim_new(void);

/* A turn by the holder, to be filled further. */
hf_transition turn_of(const hf_claimed *held, hf_turn turn);
hf_code try_commit(const hf_transition *transition);
void commit(const hf_transition *transition);
/* The same without a look at the run first, as workers end runs that have no parent. */
hf_code try_commit_short(const hf_transition *transition);
void succeed(const hf_claimed *held);
void fail_for_good(const hf_claimed *held);
void wait_for_signal(const hf_claimed *held);
void retry_after(const hf_claimed *held, int64_t delay);
/* Commits all mail of the claim as done with and goes on as `transition` says. */
void consume_all(const hf_claimed *held, hf_transition *transition);

hf_code try_signal(hf_id run, const hf_signal_spec *spec);
void send_signal(hf_id run, const char *name);
hf_code try_change(hf_id run, hf_action action);
void change(hf_id run, hf_action action);

/* A new run of `work` brought into a status. `deadline` us from now; 0: none. */
hf_id run_that_is(hf_status status, int64_t deadline);

/* ---- Looking ---- */

const hf_run *get(hf_id run);
hf_status status_of(hf_id run);
void expect_status(hf_id run, hf_status status);
/* The names in the run's journal, separated by spaces. */
const char *journal(hf_id run);
void expect_journal(hf_id run, const char *names);
/* The run, and all that belonged to it. */
void expect_gone(hf_id run);
const hf_events *events_of(hf_id run);
const hf_runs *list(const hf_filter *filter);

/* ---- SQL ---- */

/* The tables are called as in SQLite on every backend. */
int64_t sql_number(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *sql_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void sql(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* False when the database refused it. */
bool sql_works(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An id as a literal. */
const char *sql_id(hf_id id);
/* Everything that the engine's tables hold. */
const char *dump(void);

/* ---- Memory ---- */

/* Frees it with the test. */
void *keep(void *memory, void (*free_it)(void *));
const char *text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- The driver's faults ---- */

/* The next `count` commits of flushes happen, but their answer is lost together with the connection. */
void lose_answers(int count);
/* The next `count` commits of flushes do not happen, and nobody can know. */
void lose_commits(int count);
/* The next claim that may be handed out before its commit is answered is, on every backend; then `meanwhile` is called
 * (NULL: nothing), then the commit meets its fate. */
enum fate {
    COMMIT_WORKS,
    COMMIT_IS_REFUSED,   /* does not happen, as everybody knows; trying again might help */
    COMMIT_IS_PREVENTED, /* does not happen, and nobody knows */
    ANSWER_IS_LOST       /* happens, and nobody knows */
};
void foretell_next(enum fate fate, void (*meanwhile)(void));
/* Whether there was one. */
bool fate_was_met(void);
/* Whether claims are handed out only when their commit is answered. */
void foretell_nothing(bool nothing);
/* Called once, when the next one is lost, before anybody can send it again. */
void when_lost(void (*callback)(void));
/* Called once, when the next commit of a flush has happened, before anybody is answered. */
void when_committed(void (*callback)(void));
/* Called each time before a claim asks whether its run is on disk by now; NULL: nothing is. */
void when_disk_is_asked(void (*callback)(void));
/* How often a flush sent this statement so far, for itself or in place of another. */
int times_sent(int stmt);
/* Another engine on the same store, as another process would have; NULL where there can be none (in memory). */
hf_client *open_beside(void);
/* The same, with the driver's faults. */
hf_client *open_beside_with_faults(void);
/* Commits that were lost so far. */
int answers_lost(void);
/* Commits of flushes so far, of whatever came of them. */
int commits_sent(void);

#endif

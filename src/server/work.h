/* Remote workers: they claim runs, record steps and commit over HTTP, and hold them like any other worker, by the version of
 * their claim.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_WORK_H
#define HF_SERVER_WORK_H

#include "server/request.h"

/* Names and families of one worker: every trigger may read what all workers of its tenant serve. */
enum { HF__MOST_SERVED = 1000 };

/* What a worker says of itself. */
struct hf__crew {
    const char *worker;
    const char *const *workflows; /* names and patterns */
    size_t workflow_count;
    const char *host;
    const char *program;
    int threads;
    int stuck;        /* threads that it has given up */
    const char *name; /* in the store; set by hf__crew_check */
};

#define HF__CREW_MEMBER(type, base, field, kind_, about_, ...)                                     \
    {                                                                                              \
        .name = #field, .kind = HF__FIELD_##kind_, .offset = offsetof(type, base.field),           \
        .about = about_, __VA_ARGS__                                                               \
    }
#define HF__CREW_MEMBERS(type, base)                                                               \
    HF__CREW_MEMBER(type, base, worker, TEXT, "the worker's name, unique in its tenant",           \
                    .required = true),                                                             \
        HF__CREW_MEMBER(type, base, workflows, WORDS, "billing.charge.v1, billing.* or *",         \
                        .count_offset = offsetof(type, base.workflow_count), .required = true),    \
        HF__CREW_MEMBER(type, base, host, TEXT, "where the worker runs"),                          \
        HF__CREW_MEMBER(type, base, program, TEXT, "what it is, and its version"),                 \
        HF__CREW_MEMBER(type, base, threads, INT, "how many runs it works on at once")

/* ---- work_crew.c: workers as rows ---- */

/* The worker's name in the store: that of the tenant goes before it, so that no tenant meets another's. NULL: no memory. */
char *hf__work_name(struct hf__request *request, const char *worker);
/* `threads`: how many, if it did not say. */
hf_code hf__crew_check(struct hf__request *request, struct hf__crew *crew, int threads,
                       hf_error *err);
/* Lists the worker, or says anew what it is. */
hf_code hf__crew_put(struct hf__request *request, const struct hf__crew *crew, int64_t wait,
                     hf_error *err);
/* Sees to it that the worker is listed; it will be silent for as long as it waits. */
hf_code hf__crew_list(struct hf__request *request, const struct hf__crew *crew, int64_t wait,
                      hf_error *err);
hf_code hf__crew_idle(struct hf__request *request, const struct hf__crew *crew, bool idle,
                      int64_t wait, hf_error *err);
/* A sign of life by which it holds so many runs, and has lost so many threads. */
hf_code hf__crew_seen(struct hf__request *request, const char *worker, size_t running,
                      const int *stuck, hf_error *err);
/* How many threads may be said to be stuck. */
hf_code hf__crew_check_stuck(int stuck, hf_error *err);
hf_code hf__work_leave(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_leave_members[];

/* work_join.c: what a worker brings when it starts; the leases of a former one of its name end. */
hf_code hf__work_join(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_join_members[];

/* work_claim.c: gives out due runs, or waits for some. Runs that must not reach a handler are failed on the way. */
hf_code hf__work_claim(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_claim_members[];
extern const struct hf__field hf__claimed_fields[]; /* hf_claimed */
extern const struct hf__part hf__claimed_parts[];
/* Claims of this worker (its name in the store) that wait for work are answered: it stops. */
void hf__work_dismiss(struct hf__request *request, char *name);

/* work_children.c */
struct hf__chosen_ids {
    const char *const *texts; /* NULL: none were chosen */
    size_t count;
};
/* As many ids as there are children of a run, in the request's arena: chosen ones, if no run has them, or new ones. */
hf_code hf__work_child_ids(struct hf__request *request, const struct hf__chosen_ids *chosen,
                           hf_id run, size_t children, hf_id **out, hf_error *err);

/* work_watch.c: tells which of a worker's runs were cancelled. */
hf_code hf__work_watch(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_watch_members[];
extern const struct hf__field hf__work_watch_fields[];

/* work_turn.c: how a turn ended. */
hf_code hf__work_commit(struct hf__request *request, hf_error *err);
hf_code hf__work_fail(struct hf__request *request, hf_error *err);
hf_code hf__work_unfit(struct hf__request *request, hf_error *err);
extern const struct hf__member hf__work_commit_members[];
extern const struct hf__member hf__work_fail_members[];
extern const struct hf__member hf__work_unfit_members[];
extern const struct hf__field hf__committed_fields[];
extern const struct hf__field hf__attempt_fields[];
extern const struct hf__field hf__unfit_fields[];

#endif

/* What the journal tells about a run's steps and progress, gathered event by event.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_STEPS_H
#define HF_CLI_STEPS_H

#include "cli/field.h"

/* One remembered call. Strings are owned; NULL where there is nothing. */
struct cli_step {
    char *name;
    char *op;     /* step, sleep, wait, ... */
    char *status; /* succeeded, failed, waiting */
    int64_t seq;  /* of its newest journal line */
    int64_t attempt;
    int64_t at; /* of that line */
    int64_t started;
    int64_t finished;
    int64_t until; /* a wait ends at the latest; 0: no limit */
    int64_t took;  /* us; -1: unknown */
    char *output;  /* JSON */
    char *error;
};

struct cli_steps {
    struct cli_step *items; /* in the order in which they began */
    size_t count;
    size_t capacity;
    int percent;   /* of the last progress event; -1: there was none */
    char *message; /* its text */
    bool failed;   /* memory ran out */
};

#define CLI_STEPS_INIT                                                                             \
    {                                                                                              \
        .percent = -1                                                                              \
    }

extern const struct hf__field cli_step_fields[];

/* Takes in one event, of whatever kind. */
void cli_steps_add(struct cli_steps *steps, const hf_event *event);
/* The last step of this name; NULL: none. */
const struct cli_step *cli_steps_find(const struct cli_steps *steps, const char *name);
void cli_steps_free(struct cli_steps *steps);

/* What came out of it in a few words, clean for a terminal, the caller's to free(): its output, its error, or until when it
 * waits. NULL when there is no memory. */
char *cli_step_outcome(struct cli_session *session, const struct cli_step *step)
    __attribute__((warn_unused_result));

/* Takes in the journal after *seq, to its end. */
hf_code cli_steps_read(struct cli_session *session, struct cli_steps *steps, hf_id run,
                       int64_t *seq, hf_error *err) HF_MUST_CHECK;

#endif

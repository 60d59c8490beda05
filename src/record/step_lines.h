/* What the journal tells about a run's steps and progress, gathered event by event.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_RECORD_STEP_LINES_H
#define HF_RECORD_STEP_LINES_H

#include "record/field.h"

#include <holdfast/client.h>

/* One remembered call. Strings are owned; NULL where there is nothing. */
struct hf__step_line {
    char *name;
    char *op;     /* step, sleep, wait, ... */
    char *status; /* succeeded, failed, waiting */
    int64_t seq;  /* of its newest journal line */
    int64_t attempt;
    int64_t at; /* of that line */
    int64_t started;
    int64_t finished;
    int64_t until; /* a wait ends at the latest, a sleep ends; 0: no limit */
    int64_t took;  /* us; -1: unknown */
    char *output;  /* JSON */
    char *error;
};

struct hf__step_lines {
    struct hf__step_line *items; /* in the order in which they began */
    size_t count;
    size_t capacity;
    size_t first;  /* those before keep neither output nor error, */
    size_t end;    /* nor do those from here on */
    int64_t bytes; /* that the others hold */
    int64_t room;  /* how many these may be: the last of them are left out, down to one */
    size_t asleep; /* 1 + the place of the sleep that has not ended; 0: there is none */
    int percent;   /* of the last progress event; -1: there was none */
    char *message; /* its text */
    bool failed;   /* memory ran out */
};

#define HF__STEP_LINES_INIT                                                                        \
    {                                                                                              \
        .percent = -1, .end = SIZE_MAX, .room = INT64_MAX                                          \
    }

extern const struct hf__field hf__step_fields[];

/* Bytes of a remembered name without the number of its use: "name#2" is the second of "name". */
size_t hf__step_base(const char *name);

/* Takes in one event, of whatever kind. */
void hf__step_lines_add(struct hf__step_lines *steps, const hf_event *event);
/* The last step of this name; NULL: none. */
const struct hf__step_line *hf__step_lines_find(const struct hf__step_lines *steps,
                                                const char *name);
void hf__step_lines_free(struct hf__step_lines *steps);

/* Takes in the journal after *seq, to its end. */
hf_code hf__step_lines_read(hf_client *client, struct hf__step_lines *steps, hf_id run,
                            int64_t *seq, hf_error *err) HF_MUST_CHECK;

#endif

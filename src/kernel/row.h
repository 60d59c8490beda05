/* A run as it was read under its lock, and as it shall be written. The decisions of a flush work on rows alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_ROW_H
#define HF_KERNEL_ROW_H

#include <holdfast/types.h>

#include "store/table.h"

/* Which of the large columns are written (update_runs' mask). */
enum { HF__ROW_STATE = 1, HF__ROW_OUTCOME = 2, HF__ROW_STEP = 4, HF__ROW_LAST_ERROR = 8 };

struct hf__row {
    int tenant;
    hf_id id;
    const char *workflow;
    int lane;
    int priority;
    hf_status status;
    int watched;
    bool pause_requested;
    bool wake_on_failure;
    bool has_mail;
    int attempt;
    int64_t version;
    int64_t revision;
    int64_t event_seq;
    int wait_count;
    int64_t run_at; /* 0: null */
    int64_t due_at;
    int64_t timeout_at;
    int64_t started_at;
    int64_t paused_at;
    int64_t finished_at;
    int64_t deleted_at;
    const char *delete_reason;
    hf_id parent;
    hf_id root;
    const char *key;
    const char *leased_by;
    const char *last_worker;
    const char *waiting_kind;
    const char *waiting_token;
    int64_t waiting_until;
    const char *last_signal;
    hf_id active_task; /* one of the tasks it has made; zero: it has never asked anybody */
    bool limited;      /* its workflow has limits */
    const char *trace; /* those that it starts have it too */
    int64_t
        unfit_since; /* since when no worker's code has fitted its history; 0: the last one's did */
    int64_t unfit_pause; /* us: the last pause before another worker looked at it */
    int64_t fit_within;  /* us, its workflow's */
    bool was_held;       /* leased when it was read */

    /* the mailbox, where it was asked for */
    int child_ends;    /* unconsumed */
    bool failed_child; /* one of them failed */
    bool unseen;       /* something visible that the holder has not seen */
    int64_t next_visible;
    bool has_children; /* unfinished ones, where it was asked for */
    bool end_is_told;  /* its parent knows of an end already, where it was asked for */
    /* What its end brings along, where it was asked for. */
    int64_t children_left;
    const char *children_policy; /* NULL: leave */
    const char *on_cancel;
    const char *dead_letter;

    /* what a debounced trigger changes, where it was asked for */
    const char *input;
    int64_t debounce_until; /* its start is put off no longer; 0: without limit */
    int64_t created_at;
    bool new_input; /* to be written: input and debounce_until */

    /* what to write */
    bool dirty;
    bool told; /* its watchers were put on the list */
    bool has_steps;
    int mask;
    const char *state;
    const char *current_step;
    const char *result;
    const char *error;
    const char *error_code;
    const char *last_error;
};

/* From lock_runs' columns, to update_runs' parameters. Texts are borrowed from the table's arena. */
void hf__row_read(struct hf__row *row, const struct hf__cell *cells);
void hf__row_write(const struct hf__row *row, struct hf__cell *cells);

#endif

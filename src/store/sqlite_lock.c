/* Whose turn it is to write. SQLite's own lock polls and is unfair; a flock sleeps in the kernel's
 * queue.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/clock.h"
#include "util/duration.h"
#include "util/error.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

void hf__sqlite_turn_init(struct hf__sqlite_turn *turn, struct hf__database *db)
{
    *turn = (struct hf__sqlite_turn){ .db = db, .fd = -1 };
}

static hf_code take_memory(struct hf__sqlite_turn *turn, hf_error *err)
{
    if (pthread_mutex_lock(&turn->db->memory_turn) != 0)
        return hf__fail(err, HF_INTERNAL,
                        "this thread holds the memory store in another connection; finish that "
                        "transaction first");
    turn->held = true;
    return HF_OK;
}

static void close_file(struct hf__sqlite_turn *turn)
{
    hf__sqlite_queue_leave(turn->queue);
    turn->queue = NULL;
    if (turn->fd >= 0)
        close(turn->fd);
    turn->fd = -1;
}

/* The threads of this process wait for each other here, and only one of them in the kernel's queue. */
static int pass_gate(struct hf__sqlite_gate *gate, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / 1000000, .tv_nsec = deadline % 1000000 * 1000 };
    int rc = 0;
    pthread_mutex_lock(&gate->mutex);
    while (gate->taken && rc == 0)
        rc = pthread_cond_timedwait(&gate->freed, &gate->mutex, &until);
    bool passed = !gate->taken;
    gate->taken = true;
    pthread_mutex_unlock(&gate->mutex);
    errno = passed ? 0 : ETIMEDOUT;
    return passed ? 0 : -1;
}

static void leave_gate(struct hf__sqlite_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->taken = false;
    pthread_cond_signal(&gate->freed);
    pthread_mutex_unlock(&gate->mutex);
}

static int lock_file(struct hf__sqlite_turn *turn, int64_t deadline)
{
    for (;;) {
        if (turn->fd < 0)
            turn->fd = hf__sqlite_side_file(turn->db, "-lock");
        if (turn->fd < 0 || hf__sqlite_queue_flock(&turn->queue, turn->fd, deadline) != 0)
            return -1;
        /* A lock on a file without a name excludes nobody. */
        if (hf__sqlite_side_file_named(turn->fd))
            return 0;
        close_file(turn);
    }
}

/* In the gate, then in the queue. */
static int wait_in_turn(struct hf__sqlite_turn *turn)
{
    int64_t deadline = hf__monotonic_us() + turn->db->settings.lock_timeout;
    if (pass_gate(&turn->db->gate, deadline) != 0)
        return -1;
    if (lock_file(turn, deadline) == 0)
        return 0;
    int failure = errno;
    leave_gate(&turn->db->gate);
    errno = failure;
    return -1;
}

static hf_code waited_too_long(const struct hf__sqlite_turn *turn, hf_error *err)
{
    char holder[HF__HOLDER_TEXT], waited[HF__DURATION_TEXT];
    hf__sqlite_holder(turn->fd, holder);
    hf__duration_format(turn->db->settings.lock_timeout, waited);
    return hf__fail(err, HF_UNAVAILABLE,
                    "%s-lock has been locked for %s by %s: no writer of the store comes in; wait "
                    "until that is done, or end it",
                    turn->db->path, waited, holder);
}

hf_code hf__sqlite_turn_take(struct hf__sqlite_turn *turn, hf_error *err)
{
    if (turn->held)
        return HF_OK;
    if (turn->db->memory)
        return take_memory(turn, err);
    if (wait_in_turn(turn) != 0)
        return errno == ETIMEDOUT ? waited_too_long(turn, err)
                                  : hf__sqlite_side_file_failed(turn->db, "-lock", errno, err);
    turn->held = true;
    return HF_OK;
}

void hf__sqlite_turn_give(struct hf__sqlite_turn *turn)
{
    if (!turn->held)
        return;
    turn->held = false;
    if (turn->db->memory) {
        pthread_mutex_unlock(&turn->db->memory_turn);
        return;
    }
    if (flock(turn->fd, LOCK_UN) != 0)
        close_file(turn);
    leave_gate(&turn->db->gate);
}

void hf__sqlite_turn_close(struct hf__sqlite_turn *turn)
{
    hf__sqlite_turn_give(turn);
    close_file(turn);
}

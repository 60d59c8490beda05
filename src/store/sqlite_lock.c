/* Whose turn it is to write. SQLite's own lock polls and is unfair; a flock sleeps in the kernel's
 * queue.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/error.h"

#include <errno.h>
#include <sys/file.h>
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

static int flock_patiently(int fd, int operation)
{
    int rc;
    do
        rc = flock(fd, operation);
    while (rc != 0 && errno == EINTR);
    return rc;
}

static int lock_file(struct hf__sqlite_turn *turn)
{
    for (;;) {
        if (turn->fd < 0)
            turn->fd = hf__sqlite_side_file(turn->db, "-lock");
        if (turn->fd < 0 || flock_patiently(turn->fd, LOCK_EX) != 0)
            return -1;
        /* A lock on a file without a name excludes nobody. */
        if (hf__sqlite_side_file_named(turn->fd))
            return 0;
        hf__sqlite_turn_close(turn);
    }
}

hf_code hf__sqlite_turn_take(struct hf__sqlite_turn *turn, hf_error *err)
{
    if (turn->held)
        return HF_OK;
    if (turn->db->memory)
        return take_memory(turn, err);
    if (lock_file(turn) != 0)
        return hf__sqlite_side_file_failed(turn->db, "-lock", errno, err);
    turn->held = true;
    return HF_OK;
}

void hf__sqlite_turn_give(struct hf__sqlite_turn *turn)
{
    if (!turn->held)
        return;
    turn->held = false;
    if (turn->db->memory)
        pthread_mutex_unlock(&turn->db->memory_turn);
    else if (flock_patiently(turn->fd, LOCK_UN) != 0)
        hf__sqlite_turn_close(turn);
}

void hf__sqlite_turn_close(struct hf__sqlite_turn *turn)
{
    hf__sqlite_turn_give(turn);
    if (turn->fd >= 0)
        close(turn->fd);
    turn->fd = -1;
}

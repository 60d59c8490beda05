/* When the SQLite driver waits for the disk, and who is told before that. F9.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sqlite_toy.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int syncs;
static atomic_int failures; /* so many more times, nothing gets there */

static int reach_disk(long call, int fd)
{
    atomic_fetch_add(&syncs, 1);
    if (atomic_load(&failures) <= 0)
        return (int)syscall(call, fd);
    atomic_fetch_sub(&failures, 1);
    errno = EIO;
    return -1;
}

/* In place of the system's, for SQLite too. */
int fdatasync(int fd)
{
    return reach_disk(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return reach_disk(SYS_fsync, fd);
}

static int told_after; /* syncs; -1: nobody was told */

static void note_told(void *arg)
{
    const struct toy *toy = arg;
    struct hf__conn *other = toy_connect(toy->db);
    assert_int_equal(toy_number(other, TOY_COUNT), 1);
    driver->disconnect(other);
    told_after = atomic_load(&syncs);
}

/* An increment whose commit may be told early, and is if `told`. */
static hf_code increment_early(struct toy *toy, bool told, bool *unknown)
{
    told_after = -1;
    driver->may_foretell(toy->conn);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    assert_ok(toy, driver->send(toy->conn, (enum hf__stmt)TOY_INCREMENT, NULL, NULL, &toy->err));
    if (told)
        driver->foretell(toy->conn, note_told, toy);
    atomic_store(&syncs, 0);
    return driver->commit(toy->conn, NULL, unknown, &toy->err);
}

static void expect_commits_to_wait(struct toy *toy)
{
    atomic_store(&syncs, 0);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_int_equal(atomic_load(&syncs), 1);
}

static void a_commit_is_told_before_it_is_on_disk_and_answered_after(void **state)
{
    struct toy *toy = *state;
    bool unknown;
    assert_ok(toy, increment_early(toy, true, &unknown));
    assert_false(unknown);
    assert_int_equal(told_after, 0);
    assert_int_equal(atomic_load(&syncs), 1);
    expect_commits_to_wait(toy);
}

static void a_commit_that_nobody_is_told_of_waits_as_well(void **state)
{
    struct toy *toy = *state;
    bool unknown;
    assert_ok(toy, increment_early(toy, false, &unknown));
    assert_int_equal(told_after, -1);
    assert_int_equal(atomic_load(&syncs), 1);
    expect_commits_to_wait(toy);
}

static void after_a_rollback_commits_wait_for_the_disk(void **state)
{
    struct toy *toy = *state;
    driver->may_foretell(toy->conn);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    driver->foretell(toy->conn, note_told, toy);
    told_after = -1;
    driver->rollback(toy->conn);
    expect_commits_to_wait(toy);
    assert_int_equal(told_after, -1);
}

static long size_of_log(const struct toy *toy)
{
    char path[160];
    struct stat about;
    snprintf(path, sizeof path, "%s-wal", toy->path);
    return stat(path, &about) == 0 ? (long)about.st_size : -1;
}

/* Whoever writes behind it in the log would write in vain. */
static void a_commit_that_was_told_and_did_not_reach_the_disk_is_unknown_and_ends_the_log(
    void **state)
{
    struct toy *toy = *state;
    bool unknown = false;
    atomic_store(&failures, 1);
    hf_code code = increment_early(toy, true, &unknown);
    assert_int_equal(code, HF_UNAVAILABLE);
    assert_true(unknown);
    assert_int_equal(told_after, 0);
    assert_true(driver->lost(toy->conn));
    assert_int_equal(size_of_log(toy), 0);
    struct hf__conn *other = toy_connect(toy->db);
    assert_int_equal(toy_number(other, TOY_COUNT), 1);
    driver->disconnect(other);
}

static void a_commit_of_nothing_does_not_wait(void **state)
{
    struct toy *toy = *state;
    bool unknown = true;
    driver->may_foretell(toy->conn);
    assert_ok(toy, driver->begin(toy->conn, &toy->err));
    atomic_store(&syncs, 0);
    assert_ok(toy, driver->commit(toy->conn, NULL, &unknown, &toy->err));
    assert_false(unknown);
    assert_int_equal(atomic_load(&syncs), 0);
    expect_commits_to_wait(toy);
}

static void a_store_in_memory_has_nothing_to_tell_early(void **state)
{
    struct toy *toy = *state;
    bool unknown;
    assert_ok(toy, increment_early(toy, true, &unknown));
    assert_int_equal(told_after, -1);
    assert_int_equal(atomic_load(&syncs), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILE(a_commit_is_told_before_it_is_on_disk_and_answered_after),
        ON_FILE(a_commit_that_nobody_is_told_of_waits_as_well),
        ON_FILE(after_a_rollback_commits_wait_for_the_disk),
        ON_FILE(a_commit_that_was_told_and_did_not_reach_the_disk_is_unknown_and_ends_the_log),
        ON_FILE(a_commit_of_nothing_does_not_wait),
        IN_MEMORY(a_store_in_memory_has_nothing_to_tell_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Waking sleepers of the SQLite driver, in this process and in others. B6.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sqlite_toy.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void count_calls(const struct hf__heard *heard, void *arg)
{
    assert_true(heard->lanes && heard->lane == 0 && heard->earliest == 0);
    assert_true(heard->run && hf_id_is_zero(heard->run_id));
    assert_true(heard->workflows_changed);
    ++*(int *)arg;
}

static int increment_after_a_while(struct toy *toy)
{
    toy_reopen(toy);
    usleep(50000);
    return toy_increment(toy->conn, &toy->err) != HF_OK;
}

static void a_commit_in_another_process_wakes(void **state)
{
    struct toy *toy = *state;
    struct hf__watch *watch;
    int heard = 0, go;
    pid_t child = toy_start_child(toy, increment_after_a_while, &go);
    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    close(go);
    assert_ok(toy, driver->watch_wait(watch, HF_MINUTES(2), count_calls, &heard, &toy->err));
    assert_int_equal(heard, 1);
    /* It was rung after the commit: who is woken finds it. */
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 1);
    assert_int_equal(toy_child_status(child), 0);
    driver->unwatch(watch);
}

/* Rings by another handle, as another process does. */
static void ring_beside(struct toy *toy, const struct hf__wake *wake)
{
    struct hf__database *db;
    struct hf__conn *conn;
    assert_ok(toy, toy_open(&db, toy->url, NULL, &toy->err));
    assert_ok(toy, driver->connect(&conn, db, &toy->err));
    driver->ring(conn, wake);
    driver->disconnect(conn);
    driver->close(db);
}

/* It is told of its own commits by its owner. */
static void a_watch_that_nobody_shares_is_not_woken_by_its_own(void **state)
{
    struct toy *toy = *state;
    struct hf__watch *watch, *beside;
    int heard = 0;
    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_ok(toy, driver->watch_wait(watch, 1000, count_calls, &heard, &toy->err));
    assert_int_equal(heard, 0);

    struct hf__database *db;
    assert_ok(toy, toy_open(&db, toy->url, NULL, &toy->err));
    assert_ok(toy, driver->watch(&beside, db, &toy->err));
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_ok(toy, driver->watch_wait(beside, HF_MINUTES(2), count_calls, &heard, &toy->err));
    assert_int_equal(heard, 1);
    driver->unwatch(beside);
    driver->close(db);
    driver->unwatch(watch);
}

static void a_commit_in_this_process_wakes_every_watch(void **state)
{
    struct toy *toy = *state;
    struct hf__watch *watches[3];
    for (int i = 0; i < 3; i++)
        assert_ok(toy, driver->watch(&watches[i], toy->db, &toy->err));
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    for (int i = 0; i < 3; i++) {
        int heard = 0;
        assert_ok(toy,
                  driver->watch_wait(watches[i], HF_MINUTES(2), count_calls, &heard, &toy->err));
        assert_int_equal(heard, 1);
        assert_ok(toy, driver->watch_wait(watches[i], 1000, count_calls, &heard, &toy->err));
        assert_int_equal(heard, 1);
        driver->unwatch(watches[i]);
    }
    driver->ring(toy->conn, &toy_wake);
}

static void what_is_not_worth_telling_wakes_nobody(void **state)
{
    struct toy *toy = *state;
    const struct hf__wake nothing = { .earliest = 5 }, workflows = { .workflows_changed = true };
    struct hf__watch *watch;
    int heard = 0;
    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    driver->ring(toy->conn, NULL);
    driver->ring(toy->conn, &nothing);
    int64_t start = hf__monotonic_us();
    assert_ok(toy, driver->watch_wait(watch, 30000, count_calls, &heard, &toy->err));
    assert_int_equal(heard, 0);
    assert_true(hf__monotonic_us() - start >= 30000);
    if (toy->db->memory)
        driver->ring(toy->conn, &workflows);
    else
        ring_beside(toy, &workflows);
    assert_ok(toy, driver->watch_wait(watch, HF_MINUTES(2), count_calls, &heard, &toy->err));
    assert_int_equal(heard, 1);
    driver->unwatch(watch);
}

static void *stop_soon(void *watch)
{
    usleep(30000);
    driver->watch_stop(watch);
    return NULL;
}

static void a_watch_can_be_stopped_from_another_thread(void **state)
{
    struct toy *toy = *state;
    struct hf__watch *watch;
    pthread_t thread;
    int heard = 0;
    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, watch), 0);
    assert_ok(toy, driver->watch_wait(watch, -1, count_calls, &heard, &toy->err));
    assert_ok(toy, driver->watch_wait(watch, -1, count_calls, &heard, &toy->err));
    pthread_join(thread, NULL);
    assert_int_equal(heard, 0);
    driver->unwatch(watch);
}

static void a_deleted_wake_file_asks_for_a_new_watch(void **state)
{
    struct toy *toy = *state;
    struct hf__watch *watch;
    char path[160];
    int heard = 0;
    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    snprintf(path, sizeof path, "%s-wake", toy->path);
    assert_int_equal(unlink(path), 0);
    driver->ring(toy->conn, &toy_wake);
    assert_int_equal(driver->watch_wait(watch, HF_MINUTES(2), count_calls, &heard, &toy->err),
                     HF_UNAVAILABLE);
    driver->unwatch(watch);

    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    ring_beside(toy, &toy_wake);
    assert_ok(toy, driver->watch_wait(watch, HF_MINUTES(2), count_calls, &heard, &toy->err));
    assert_int_equal(heard, 1);
    driver->unwatch(watch);
}

/* It cannot lock its byte; but whoever asks whether anybody has a lock is told so. */
static void somebodys_lock_on_the_wake_file_does_not_make_deaf(void **state)
{
    struct toy *toy = *state;
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct hf__watch *watch;
    char path[160];
    int heard = 0;
    snprintf(path, sizeof path, "%s-wake", toy->path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
    assert_ok(toy, driver->watch(&watch, toy->db, &toy->err));
    ring_beside(toy, &toy_wake);
    assert_ok(toy, driver->watch_wait(watch, HF_MINUTES(2), count_calls, &heard, &toy->err));
    assert_int_equal(heard, 1);
    driver->unwatch(watch);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILE(a_commit_in_another_process_wakes),
        ON_FILE(a_watch_that_nobody_shares_is_not_woken_by_its_own),
        ON_FILE(a_commit_in_this_process_wakes_every_watch),
        IN_MEMORY(a_commit_in_this_process_wakes_every_watch),
        ON_FILE(what_is_not_worth_telling_wakes_nobody),
        IN_MEMORY(what_is_not_worth_telling_wakes_nobody),
        ON_FILE(a_watch_can_be_stopped_from_another_thread),
        IN_MEMORY(a_watch_can_be_stopped_from_another_thread),
        ON_FILE(a_deleted_wake_file_asks_for_a_new_watch),
        ON_FILE(somebodys_lock_on_the_wake_file_does_not_make_deaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The SQLite driver and the world around it: paths, other processes, full and read-only disks,
 * checkpoints. F9.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sqlite_toy.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static off_t size_of(const struct toy *toy, const char *suffix)
{
    char path[160];
    struct stat st;
    snprintf(path, sizeof path, "%s%s", toy->path, suffix);
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static void assert_refused(const char *url, hf_code expected, const char *hint)
{
    struct hf__database *db = NULL;
    hf_error err = { .code = HF_OK };
    assert_int_equal(toy_open(&db, url, NULL, &err), expected);
    assert_int_equal(err.code, expected);
    if (!strstr(err.message, hint))
        fail_msg("'%s' does not say '%s'", err.message, hint);
    assert_null(db);
}

static void a_useless_url_is_refused_with_advice(void **state)
{
    struct toy *toy = *state;
    char url[2000], too_long[2000];

    assert_refused("sqlite:", HF_INVALID, "sqlite:orders.db");
    assert_refused("postgres:x", HF_INVALID, "must start with sqlite:");
    assert_refused("sqlite:/no/such/folder/a.db", HF_UNAVAILABLE, "create it first");
    snprintf(url, sizeof url, "sqlite:%s", toy->folder);
    assert_refused(url, HF_INVALID, "is a folder");
    snprintf(url, sizeof url, "sqlite:%s/", toy->folder);
    assert_refused(url, HF_INVALID, "is a folder");
    assert_refused("sqlite:/dev/null", HF_INVALID, "not a regular file");
    assert_refused("sqlite:orders.db?mode=ro", HF_INVALID, "leave out");
    snprintf(url, sizeof url, "sqlite:%s/x/y.db", toy->path);
    assert_refused(url, HF_UNAVAILABLE, "folder");
    memset(too_long, 'x', sizeof too_long);
    memcpy(too_long, "sqlite:", 7);
    too_long[600] = '\0';
    assert_refused(too_long, HF_INVALID, "too long");
    too_long[7 + 489] = '\0'; /* short enough by itself, but not behind the current folder */
    assert_refused(too_long, HF_INVALID, "too long");
}

static void what_is_not_a_database_is_called_so(void **state)
{
    struct toy *toy = *state;
    char path[160], url[200];
    snprintf(path, sizeof path, "%s/letter.txt", toy->folder);
    snprintf(url, sizeof url, "sqlite:%s", path);
    write_file(path,
               "Dear reader, this is no database at all, although it is long enough to be one. "
               "Dear reader, this is no database at all, although it is long enough to be one.");
    assert_refused(url, HF_STORE, "not a SQLite database");
}

static void a_relative_path_survives_a_change_of_folder(void **state)
{
    struct toy *toy = *state;
    char before[512];
    struct hf__database *db;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(toy->folder), 0);
    assert_ok(toy, toy_open(&db, "sqlite:toy.db", NULL, &toy->err));
    assert_int_equal(chdir(before), 0);

    struct hf__conn *conn = toy_connect(db);
    assert_ok(toy, toy_increment(conn, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 1);
    driver->disconnect(conn);
    driver->close(db);
}

static void a_link_leads_to_the_same_lock(void **state)
{
    struct toy *toy = *state;
    char link[160], url[200];
    struct hf__database *db;
    snprintf(link, sizeof link, "%s/link.db", toy->folder);
    snprintf(url, sizeof url, "sqlite:%s", link);
    assert_int_equal(symlink(toy->path, link), 0);
    assert_ok(toy, toy_open(&db, url, NULL, &toy->err));
    assert_string_equal(db->path, toy->path);
    driver->close(db);
}

static int increment_500_times(struct toy *toy)
{
    hf_error err = { .code = HF_OK };
    struct hf__database *db = toy_open_again(toy);
    struct hf__conn *conn = db ? toy_connect(db) : NULL;
    int failures = conn ? 0 : 1;
    for (int i = 0; i < 500 && conn; i++)
        if (toy_increment(conn, &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.message);
            failures = 1;
        }
    driver->disconnect(conn);
    driver->close(db);
    return failures;
}

static void two_processes_lose_no_update_and_are_never_refused(void **state)
{
    struct toy *toy = *state;
    int go[2];
    pid_t first = toy_start_child(toy, increment_500_times, &go[0]);
    pid_t second = toy_start_child(toy, increment_500_times, &go[1]);
    close(go[0]);
    close(go[1]);
    assert_int_equal(toy_child_status(first), 0);
    assert_int_equal(toy_child_status(second), 0);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 1000);
}

/* Opens, looks and closes again and again: the moments at which the WAL is made and removed. */
static int open_and_close_often(const struct toy *toy)
{
    for (int i = 0; i < 100; i++) {
        hf_error err = { .code = HF_OK };
        struct hf__database *db = toy_open_again(toy);
        struct hf__conn *conn = db ? toy_connect(db) : NULL;
        if (!conn || toy_number(conn, TOY_COUNT) < 0 || toy_increment(conn, &err) != HF_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 1;
        }
        driver->disconnect(conn);
        driver->close(db);
    }
    return 0;
}

static void processes_may_come_and_go_at_once(void **state)
{
    struct toy *toy = *state;
    pid_t children[3];
    toy_close(toy);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(open_and_close_often(toy));
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(toy_child_status(children[i]), 0);
    toy_reopen(toy);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 300);
}

static int hold_the_turn(struct toy *toy)
{
    bool unknown;
    toy_reopen(toy);
    if (driver->begin(toy->conn, &toy->err) != HF_OK || toy_number(toy->conn, TOY_INCREMENT) != 1)
        return 1;
    write_file(toy->note, "begun");
    usleep(1200000);
    return driver->commit(toy->conn, NULL, &unknown, &toy->err) != HF_OK;
}

/* SQLite by itself would give up after its busy timeout. */
static void a_writer_waits_its_turn_however_long_it_takes(void **state)
{
    struct toy *toy = *state;
    int go;
    pid_t child = toy_start_child(toy, hold_the_turn, &go);
    close(go);
    while (access(toy->note, F_OK) != 0)
        usleep(1000);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 0);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_int_equal(toy_child_status(child), 0);
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 2);
}

/* Who may open the file can lock it, and need not give it back. */
static int keep_the_lock(struct toy *toy)
{
    char path[160];
    snprintf(path, sizeof path, "%s-lock", toy->path);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return 1;
    write_file(toy->note, "locked");
    for (;;)
        pause();
}

static void a_lock_that_is_never_given_back_is_reported_with_its_holder(void **state)
{
    struct toy *toy = *state;
    char holder[40];
    int go;
    pid_t child = toy_start_child(toy, keep_the_lock, &go);
    toy->db->settings.lock_timeout = HF_MILLISECONDS(100);
    close(go);
    while (access(toy->note, F_OK) != 0)
        usleep(1000);
    snprintf(holder, sizeof holder, "process %d ", (int)child);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(driver->begin(toy->conn, &toy->err), HF_UNAVAILABLE);
        assert_non_null(strstr(toy->err.message, "-lock has been locked for 100ms"));
        assert_non_null(strstr(toy->err.message, holder));
        driver->rollback(toy->conn);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    toy->db->settings.lock_timeout = HF_SECONDS(60);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    /* Who gave up in the queue has not got it afterwards. */
    struct hf__conn *other = toy_connect(toy->db);
    assert_ok(toy, toy_increment(other, &toy->err));
    driver->disconnect(other);
}

static int die_while_writing(struct toy *toy)
{
    toy_reopen(toy);
    if (driver->begin(toy->conn, &toy->err) != HF_OK || toy_number(toy->conn, TOY_INCREMENT) != 1)
        return 1;
    return TOY_CHILD_FINE;
}

static void a_killed_writer_leaves_no_lock_behind(void **state)
{
    struct toy *toy = *state;
    int go;
    pid_t child = toy_start_child(toy, die_while_writing, &go);
    close(go);
    assert_int_equal(toy_child_status(child), TOY_CHILD_FINE);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 1);
}

static void a_foreign_writer_is_reported_and_our_lock_is_given_back(void **state)
{
    struct toy *toy = *state;
    sqlite3 *foreign;
    struct hf__conn *other = toy_connect(toy->db);
    assert_int_equal(sqlite3_open(toy->path, &foreign), SQLITE_OK);
    assert_int_equal(sqlite3_exec(foreign, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);

    assert_int_equal(driver->begin(toy->conn, &toy->err), HF_UNAVAILABLE);
    assert_non_null(strstr(toy->err.message, "another program"));
    assert_int_equal(toy_number(toy->conn, TOY_COUNT), 0);
    sqlite3_close(foreign);
    assert_ok(toy, toy_increment(other, &toy->err));
    driver->disconnect(other);
}

static void a_deleted_lock_file_is_made_again(void **state)
{
    struct toy *toy = *state;
    char path[160];
    snprintf(path, sizeof path, "%s-lock", toy->path);
    assert_int_equal(unlink(path), 0);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_true(size_of(toy, "-lock") >= 0);
}

static void a_database_that_was_deleted_is_not_written(void **state)
{
    struct toy *toy = *state;
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    assert_int_equal(unlink(toy->path), 0);
    assert_int_equal(toy_increment(toy->conn, &toy->err), HF_UNAVAILABLE);
    assert_true(driver->lost(toy->conn));

    struct hf__conn *other = NULL;
    assert_int_equal(driver->connect(&other, toy->db, &toy->err), HF_UNAVAILABLE);
    assert_int_equal(size_of(toy, ""), -1);
}

/* Answers the code of the first error that a user without rights meets. */
static int open_without_rights(const struct toy *toy)
{
    struct hf__database *db;
    hf_error err = { .code = HF_OK };
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return TOY_CHILD_CANNOT;
    return (int)toy_open(&db, toy->url, NULL, &err);
}

static int status_without_rights(const struct toy *toy)
{
    pid_t child = fork();
    if (child == 0)
        _exit(open_without_rights(toy));
    return toy_child_status(child);
}

static void a_file_without_the_right_to_write_is_read_only(void **state)
{
    struct toy *toy = *state;
    char lock[160];
    snprintf(lock, sizeof lock, "%s-lock", toy->path);
    toy_close(toy);
    assert_int_equal(chmod(toy->folder, 0777), 0);
    assert_int_equal(chmod(toy->path, 0444), 0);
    assert_int_equal(chmod(lock, 0666), 0);
    int status = status_without_rights(toy);
    if (status == TOY_CHILD_CANNOT) {
        print_message("# skipped: this user cannot become another\n");
        skip();
    }
    assert_int_equal(status, HF_READ_ONLY);
}

static void a_folder_without_the_right_to_write_is_read_only(void **state)
{
    struct toy *toy = *state;
    char lock[160];
    snprintf(lock, sizeof lock, "%s-lock", toy->path);
    toy_close(toy);
    unlink(lock);
    assert_int_equal(chmod(toy->path, 0666), 0);
    assert_int_equal(chmod(toy->folder, 0555), 0);
    int status = status_without_rights(toy);
    assert_int_equal(chmod(toy->folder, 0700), 0);
    if (status == TOY_CHILD_CANNOT) {
        print_message("# skipped: this user cannot become another\n");
        skip();
    }
    assert_int_equal(status, HF_READ_ONLY);
}

static void side_files_are_shared_like_the_database(void **state)
{
    struct toy *toy = *state;
    char path[160];
    struct stat st;
    assert_int_equal(chmod(toy->path, 0660), 0);
    mode_t before = umask(077);
    snprintf(path, sizeof path, "%s-lock", toy->path);
    unlink(path);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
}

static mode_t mode_of(const char *path, const char *suffix)
{
    char name[200];
    struct stat st;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    if (lstat(name, &st) != 0)
        fail_msg("%s: %s", name, strerror(errno));
    return st.st_mode & 0777;
}

/* Makes a store in the toy's folder, with all its neighbours. */
static void make_store(const struct toy *toy, char path[160], const char *parameters, mode_t mask)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-lock", "-wake" };
    char url[240];
    hf_error err;
    struct hf__database *db;
    struct hf__watch *watch;
    mode_t before = umask(mask);
    mode_t wanted = strstr(parameters, "group") ? 0660 : 0600;
    snprintf(path, 160, "%s/new.db", toy->folder);
    snprintf(url, sizeof url, "sqlite:%s%s", path, parameters);
    assert_int_equal(toy_open(&db, url, NULL, &err), HF_OK);
    struct hf__conn *conn = toy_connect(db);
    bool unknown;
    assert_int_equal(driver->begin(conn, &err), HF_OK);
    assert_int_equal(
        driver->script(conn, "CREATE TABLE IF NOT EXISTS schema_version (min_writer)", &err),
        HF_OK);
    assert_int_equal(driver->commit(conn, NULL, &unknown, &err), HF_OK);
    assert_int_equal(driver->watch(&watch, db, &err), HF_OK);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        assert_int_equal(mode_of(path, suffixes[i]), wanted);
    driver->unwatch(watch);
    driver->disconnect(conn);
    driver->close(db);
    umask(before);
}

static void a_new_store_is_its_owners_alone(void **state)
{
    char path[160];
    make_store(*state, path, "", 022);
    make_store(*state, path, "?access=owner&lock_timeout=1s", 0);
}

static void a_new_store_may_be_its_groups_too(void **state)
{
    char path[160];
    make_store(*state, path, "?access=group", 077);
}

static void a_store_that_is_there_keeps_its_rights(void **state)
{
    struct toy *toy = *state;
    toy_close(toy);
    assert_int_equal(chmod(toy->path, 0644), 0);
    toy_reopen(toy);
    assert_int_equal(mode_of(toy->path, ""), 0644);
}

static void a_setting_that_is_none_is_refused(void **state)
{
    (void)state;
    assert_refused("sqlite:orders.db?access=all", HF_INVALID, "'owner' or 'group'");
    assert_refused("sqlite:orders.db?lock_timeout=never", HF_INVALID, "a time of at least 100ms");
    assert_refused("sqlite:orders.db?lock_timeout=1ms", HF_INVALID, "a time of at least 100ms");
}

/* ---- Files that others put there ---- */

/* A file of root's beside the database of somebody who owns the folder; -1: this user is not root. */
static int plant(const struct toy *toy, const char *suffix, const char *text, char path[160])
{
    char database[160];
    snprintf(path, 160, "%s%s", toy->path, suffix);
    unlink(path);
    write_file(path, text);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() != 0)
        return -1;
    snprintf(database, sizeof database, "%s", toy->path);
    assert_int_equal(chown(toy->folder, 65534, 65534), 0);
    return chown(database, 65534, 65534);
}

static void assert_roots_alone(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_gid, 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void root_gives_away_nothing_that_it_finds(void **state)
{
    static const char *const suffixes[] = { "-lock", "-wake", "-wal", "-shm", "-journal" };
    static const char *const texts[] = { "root's secret, and longer than what we write there", "" };
    struct toy *toy = *state;
    char path[160];
    toy_close(toy);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        for (size_t j = 0; j < 2; j++) {
            struct hf__database *db = NULL;
            struct hf__watch *watch = NULL;
            if (plant(toy, suffixes[i], texts[j], path) != 0) {
                print_message("# skipped: this user is not root\n");
                skip();
            }
            hf_code code = toy_open(&db, toy->url, NULL, &toy->err);
            if (code == HF_OK) /* nothing was rung yet */
                code = driver->watch(&watch, db, &toy->err);
            assert_int_equal(code, HF_UNAVAILABLE);
            assert_non_null(strstr(toy->err.message, path));
            assert_roots_alone(path);
            if (db)
                driver->close(db);
            assert_roots_alone(path);
            assert_int_equal(unlink(path), 0);
        }
}

static void what_root_makes_is_the_owners(void **state)
{
    static const char *const suffixes[] = { "-lock", "-wal", "-shm" };
    struct toy *toy = *state;
    char path[160];
    struct stat st;
    toy_close(toy);
    if (plant(toy, "-lock", "", path) != 0) {
        print_message("# skipped: this user is not root\n");
        skip();
    }
    assert_int_equal(unlink(path), 0);
    toy_reopen(toy);
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(path, sizeof path, "%s%s", toy->path, suffixes[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_uid, 65534);
        assert_int_equal(st.st_gid, 65534);
    }
}

static void only_a_plain_file_is_locked(void **state)
{
    struct toy *toy = *state;
    char lock[160], other[160];
    toy_close(toy);
    snprintf(lock, sizeof lock, "%s-lock", toy->path);
    snprintf(other, sizeof other, "%s/other", toy->folder);
    write_file(other, "");
    for (int i = 0; i < 4; i++) {
        unlink(lock);
        if (i == 0)
            assert_int_equal(symlink(other, lock), 0);
        else if (i == 1)
            assert_int_equal(link(other, lock), 0);
        else if (i == 2)
            assert_int_equal(mkfifo(lock, 0600), 0);
        else
            write_file(lock, "a letter to somebody");
        assert_refused(toy->url, HF_UNAVAILABLE, "not a file of this store");
    }
}

static void read_whole(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    memset(out, 0, size);
    assert_true(fread(out, 1, size, file) > 0);
    fclose(file);
}

static void another_programs_database_is_refused_as_it_was(void **state)
{
    static const char *const scripts[] = { "CREATE TABLE orders (id)", "PRAGMA application_id = 7",
                                           "PRAGMA user_version = 3",
                                           "CREATE TABLE schema_version (version)" };
    static const char *const suffixes[] = { "-wal", "-shm", "-lock", "-wake" };
    struct toy *toy = *state;
    char path[160], url[200], name[200], before[16384], after[16384];
    snprintf(path, sizeof path, "%s/foreign.db", toy->folder);
    snprintf(url, sizeof url, "sqlite:%s", path);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        sqlite3 *foreign;
        unlink(path);
        assert_int_equal(sqlite3_open(path, &foreign), SQLITE_OK);
        assert_int_equal(sqlite3_exec(foreign, scripts[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(foreign);
        read_whole(path, before, sizeof before);
        assert_refused(url, HF_INVALID, "another program");
        read_whole(path, after, sizeof after);
        assert_memory_equal(before, after, sizeof before);
        for (size_t j = 0; j < sizeof suffixes / sizeof *suffixes; j++) {
            snprintf(name, sizeof name, "%s%s", path, suffixes[j]);
            assert_int_equal(access(name, F_OK), -1);
        }
    }
}

static hf_code add_large(struct hf__conn *conn, int rows, int64_t size, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table params;
    hf__table_init(&params, &arena, 1);
    for (int i = 0; i < rows; i++)
        hf__table_add(&params)[0] = hf__number(size);
    hf_code code = toy_run(conn, TOY_ADD_LARGE, &params, NULL, err);
    hf__arena_free(&arena);
    return code;
}

/* In a child with its own view of the mounts, so that nothing stays behind. */
static int fill_a_small_disk(struct toy *toy)
{
    hf_error err = { .code = HF_OK };
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", toy->folder, "tmpfs", 0, "size=1m") != 0)
        return TOY_CHILD_CANNOT;
    if (toy_fill(toy) != HF_OK)
        return 1;

    hf_code code = HF_OK;
    for (int i = 0; i < 100 && code == HF_OK; i++)
        code = add_large(toy->conn, 1, 20000, &err);
    int64_t count = toy_number(toy->conn, TOY_COUNT);
    fprintf(stderr, "# %s\n", err.message);
    if (code != HF_STORE_FULL || count != 0 || !sqlite3_get_autocommit(toy->conn->session->handle))
        return 2;
    /* The lock is free: another connection gets as far as the full disk. */
    struct hf__conn *other = toy_connect(toy->db);
    if (!other || driver->begin(other, &err) != HF_OK)
        return 3;
    driver->rollback(other);
    return TOY_CHILD_FINE;
}

static void a_full_disk_is_reported_and_nothing_is_half_written(void **state)
{
    struct toy *toy = *state;
    int go;
    pid_t child = toy_start_child(toy, fill_a_small_disk, &go);
    close(go);
    int status = toy_child_status(child);
    if (status == TOY_CHILD_CANNOT) {
        print_message("# skipped: a tmpfs cannot be mounted here\n");
        skip();
    }
    assert_int_equal(status, TOY_CHILD_FINE);
}

static bool comes_true(const struct toy *toy, const char *suffix, off_t low, off_t high)
{
    for (int i = 0; i < 500; i++, usleep(10000)) {
        off_t size = size_of(toy, suffix);
        if (size >= low && size <= high)
            return true;
    }
    return false;
}

static void the_wal_is_copied_back_by_itself(void **state)
{
    struct toy *toy = *state;
    off_t before = size_of(toy, "");
    assert_ok(toy, add_large(toy->conn, 100, 40000, &toy->err)); /* about 2000 pages */
    assert_true(comes_true(toy, "", before + (4 << 20), INT64_MAX));
    assert_true(size_of(toy, "-wal") > 4 << 20);
}

static void a_long_wal_is_cut(void **state)
{
    struct toy *toy = *state;
    assert_ok(toy, add_large(toy->conn, 40, 1000000, &toy->err)); /* 80 MB */
    assert_true(comes_true(toy, "-wal", 0, 0));
    assert_ok(toy, toy_increment(toy->conn, &toy->err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILE(a_useless_url_is_refused_with_advice),
        ON_FILE(what_is_not_a_database_is_called_so),
        ON_FILE(a_relative_path_survives_a_change_of_folder),
        ON_FILE(a_link_leads_to_the_same_lock),
        ON_FILE(two_processes_lose_no_update_and_are_never_refused),
        ON_FILE(processes_may_come_and_go_at_once),
        ON_FILE(a_writer_waits_its_turn_however_long_it_takes),
        ON_FILE(a_lock_that_is_never_given_back_is_reported_with_its_holder),
        ON_FILE(a_killed_writer_leaves_no_lock_behind),
        ON_FILE(a_foreign_writer_is_reported_and_our_lock_is_given_back),
        ON_FILE(a_deleted_lock_file_is_made_again),
        ON_FILE(a_database_that_was_deleted_is_not_written),
        ON_FILE(a_file_without_the_right_to_write_is_read_only),
        ON_FILE(a_folder_without_the_right_to_write_is_read_only),
        ON_FILE(side_files_are_shared_like_the_database),
        ON_FILE(a_new_store_is_its_owners_alone),
        ON_FILE(a_new_store_may_be_its_groups_too),
        ON_FILE(a_store_that_is_there_keeps_its_rights),
        ON_FILE(a_setting_that_is_none_is_refused),
        ON_FILE(root_gives_away_nothing_that_it_finds),
        ON_FILE(what_root_makes_is_the_owners),
        ON_FILE(only_a_plain_file_is_locked),
        ON_FILE(another_programs_database_is_refused_as_it_was),
        ON_FILE(a_full_disk_is_reported_and_nothing_is_half_written),
        ON_FILE(the_wal_is_copied_back_by_itself),
        ON_FILE(a_long_wal_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

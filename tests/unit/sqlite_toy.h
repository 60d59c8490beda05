/* A small schema and its statements, to try the SQLite driver without the engine's own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TEST_SQLITE_TOY_H
#define HF_TEST_SQLITE_TOY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/sqlite.h"
#include "support/folder.h"

#include <sys/types.h>

enum toy_statement {
    TOY_INCREMENT,
    TOY_COUNT,
    TOY_ADD_ITEMS,
    TOY_LIST_ITEMS,
    TOY_FIND_ITEMS,
    TOY_NOW,
    TOY_UUID_TEXT,
    TOY_RESIZE_AND_LOG,
    TOY_LOGGED,
    TOY_CHECK_JSON,
    TOY_NO_TABLE,
    TOY_ADD_LARGE,
    TOY_WRONG_COLUMNS,
    TOY_NOT_HERE,
    TOY_STATEMENTS
};

/* What every test starts with: a store in a folder of its own, with the toy's tables. */
struct toy {
    char folder[FOLDER_MOST];
    char url[192];
    char path[128];
    char note[128]; /* a file that does not exist yet */
    struct hf__database *db;
    struct hf__conn *conn;
    struct hf__arena arena;
    hf_error err;
};

extern const struct hf__driver *const driver;
extern const struct hf__wake toy_wake; /* something worth telling */

/* cmocka fixtures; *state is a struct toy. */
int toy_setup_file(void **state);
int toy_setup_memory(void **state);
int toy_teardown(void **state);

/* Opens toy->url, connects and makes the tables; no cmocka, so that children may call it. */
hf_code toy_fill(struct toy *toy);

hf_code toy_open(struct hf__database **out, const char *url, const struct hf__clock *clock,
                 hf_error *err);
/* Opens the toy's file once more, as another process would. */
struct hf__database *toy_open_again(const struct toy *toy);
struct hf__conn *toy_connect(struct hf__database *db);
/* Sends and syncs. */
hf_code toy_run(struct hf__conn *conn, int statement, const struct hf__table *params,
                struct hf__table *result, hf_error *err);
int64_t toy_number(struct hf__conn *conn, int statement);
/* begin, increment, commit; no cmocka, so that children may call it. */
hf_code toy_increment(struct hf__conn *conn, hf_error *err);

void toy_close(struct toy *toy);
void toy_reopen(struct toy *toy);

enum { TOY_CHILD_FINE = 0, TOY_CHILD_CANNOT = 77 /* the test is not possible here */ };

/* Starts a child that works when `go` is closed. SQLite's handles do not survive a fork, so none
 * is open then. */
pid_t toy_start_child(struct toy *toy, int (*work)(struct toy *), int *go);
int toy_child_status(pid_t child);

#define assert_ok(toy, call)                                                                       \
    do {                                                                                           \
        hf_code code_ = (call);                                                                    \
        if (code_ != HF_OK)                                                                        \
            fail_msg("%s: %s", hf_code_name(code_), (toy)->err.message);                           \
    } while (0)

/* Rows of a list of tests. */
#define ON_FILE(test) cmocka_unit_test_setup_teardown(test, toy_setup_file, toy_teardown)
#define IN_MEMORY(test)                                                                            \
    {                                                                                              \
#test "_in_memory", test, toy_setup_memory, toy_teardown, NULL                             \
    }
#define ON_BOTH(test) ON_FILE(test), IN_MEMORY(test)

#endif

/* The PostgreSQL driver with statements of the tests' own, on a real server. HOLDFAST_TEST_POSTGRES is the URL of a superuser;
 * without it every test that needs it is skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_POSTGRES_TOYS_H
#define HF_TESTS_POSTGRES_TOYS_H

#include "store/postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define SCHEMA "toys"

enum toy {
    ECHO_ROWS,
    ECHO_ONE,
    ECHO_WIDE,
    ADD,
    COUNT,
    EXPLAIN_FIND,
    BACKEND,
    SLEEP,
    SETTING,
    RAISE,
    NO_SCHEMA,
    FORGET_PREPARED,
    ADD_SLOWLY_COMMITTED, /* its COMMIT sleeps */
    TOYS
};

enum { URL_SIZE = 1000 };

extern const unsigned char mixed[5]; /* columns of ECHO_ROWS and ECHO_ONE */
/* In the place of notify_workers, without its condition. */
extern const struct hf__statement notify;
extern const struct hf__driver *const driver;
extern const char *url; /* NULL: skip */
/* A database of this test alone: notifications and locks are per database. */
extern char own_url[URL_SIZE];
extern struct hf__statement statements[HF__STMT_COUNT];
extern struct hf__database *db;
extern struct hf__database *pooled; /* with prepare=off */
extern struct hf__arena arena;      /* emptied before each test */
extern PGconn *admin;
extern hf_error failure; /* of the last call that failed */

int set_up(void **state);
int tear_down(void **state);
int before_each(void **state);

#define TEST(name) cmocka_unit_test_setup(name, before_each)

#define NEED_SERVER()                                                                              \
    do {                                                                                           \
        (void)state;                                                                               \
        if (!url)                                                                                  \
            skip();                                                                                \
    } while (0)

#define ok(call)                                                                                   \
    do {                                                                                           \
        if ((call) != HF_OK)                                                                       \
            fail_msg("%s: %s %s", #call, failure.sqlstate, failure.message);                       \
    } while (0)

struct hf__conn *connected(struct hf__database *to);
hf_code ask(struct hf__conn *conn, enum toy toy, const struct hf__table *params,
            struct hf__table *result, hf_error *out);
struct hf__table table(int columns);
struct hf__table one_number(int64_t number);
struct hf__table one_text(const char *text);
struct hf__table items(int first, int count);
int64_t ask_number(struct hf__conn *conn, enum toy toy);
int64_t stored(void);
void assert_failed(hf_code got, hf_code wanted, const char *sqlstate);
/* The caller closes it. */
struct hf__database *opened_with(const char *parameter);
void admin_do(const char *sql);

#endif

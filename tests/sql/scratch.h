/* A database of its own on the test server, and plain SQL on it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SCRATCH_H
#define HF_TESTS_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libpq-fe.h>
#include <cmocka.h>

#include <holdfast/holdfast.h>

enum { SCRATCH_URL = 2048 };

struct scratch {
    char url[SCRATCH_URL];
    char database[64];
    PGconn *pg; /* for the test's own statements */
};

/* The server that HOLDFAST_TEST_POSTGRES names; NULL: none. */
const char *scratch_server(void);
/* Creates a database, with the tables where there is one to copy: to make them takes longer. Stops the test when it cannot. */
void scratch_create(struct scratch *scratch);
void scratch_create_empty(struct scratch *scratch);
void scratch_drop(struct scratch *scratch);
/* `url` with one more parameter. */
void scratch_url_with(char out[SCRATCH_URL], const char *url, const char *parameter);

PGconn *pg_connect(const char *url);
/* Each stops the test when the statement fails. */
void pg_do(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t pg_number(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first value; "" for null or nothing. Good until the next 16 calls of it. */
const char *pg_text(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The SQLSTATE with which a statement is refused; "" when it works. */
const char *pg_refusal(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A string from `[table]` with all columns of the rows that match, those in `except` left out, rows in the given order. */
const char *pg_rows(PGconn *pg, const char *table, const char *except, const char *where,
                    const char *order);

/* Opens the store with a client, or stops the test. */
hf_client *scratch_open(const char *url);
#ifndef assert_ok /* a test may have its own */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        hf_error ok_error = { 0 };                                                                 \
        hf_error *err = &ok_error;                                                                 \
        if ((call) != HF_OK)                                                                       \
            fail_msg("%s: %s", #call, err->message);                                               \
    } while (0)
#endif

#endif

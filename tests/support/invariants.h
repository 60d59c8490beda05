/* The journal equals the state: what must hold in every store at every moment, whatever was done to it. Reads the tables
 * through a query of the caller's, so that any backend and the simulator can use it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_INVARIANTS_H
#define HF_TESTS_INVARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row of an answer; NULL where it is null. */
typedef void (*invariants_row)(const char *const *cells, void *arg);

struct invariants_source {
    /* Runs a SELECT and gives its rows, as text, to `row`. Returns false when it failed. */
    bool (*query)(void *arg, const char *sql, invariants_row row, void *row_arg);
    void *arg;
    const char *id_format; /* makes a text of an id column: "CAST(%s AS text)", "hex(%s)" */
    const char *tenants;   /* a list of names in SQL, "'a', 'b'"; NULL: all */
    int64_t now;           /* the store's clock, us */
    bool rests;            /* there is a column rest_step */
};

/* Checks every run of these tenants. False: `complaint` says what does not hold. */
bool invariants_hold(const struct invariants_source *source, char *complaint, size_t size);

#endif

/* A table of values: what statements take and what they give. Cells point into an arena or into the caller's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_STORE_TABLE_H
#define HF_STORE_TABLE_H

#include <holdfast/types.h>

#include "util/arena.h"

#define HF__NULL (-1)

struct hf__cell {
    union {
        int64_t number;    /* HF__INT, HF__BIG, HF__BOOL */
        const char *bytes; /* HF__TEXT (NUL-terminated when read), HF__UUID (16 bytes) */
    };
    int32_t length; /* of bytes; 8 for numbers; HF__NULL for null */
};

/* Row-major. Growth comes from `arena`; a failed allocation sets `failed` and drops the row. */
struct hf__table {
    struct hf__arena *arena;
    struct hf__cell *cells;
    int ncolumns;
    int nrows;
    int capacity; /* rows */
    bool failed;
};

void hf__table_init(struct hf__table *table, struct hf__arena *arena, int ncolumns);
/* A new row of nulls; never NULL: after a failed allocation it answers a scratch row and sets `failed`. */
struct hf__cell *hf__table_add(struct hf__table *table);
struct hf__cell *hf__table_row(const struct hf__table *table, int row);

/* Cells to write; texts and ids are borrowed until the statement was sent. */
struct hf__cell hf__null(void);
struct hf__cell hf__number(int64_t number);
struct hf__cell hf__number_or_null(int64_t number); /* 0 is null */
struct hf__cell hf__text(const char *text);         /* NULL is null */
struct hf__cell hf__text_n(const char *text, size_t length);
struct hf__cell hf__uuid(const hf_id *id);         /* borrowed */
struct hf__cell hf__uuid_or_null(const hf_id *id); /* all zero is null */

/* Cells that were read. */
int64_t hf__as_number(struct hf__cell cell);   /* null is 0 */
const char *hf__as_text(struct hf__cell cell); /* null is NULL */
hf_id hf__as_uuid(struct hf__cell cell);       /* null is zero */
bool hf__is_null(struct hf__cell cell);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/table.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { WIDEST_ROW = 256, FIRST_CAPACITY = 8 };

void hf__table_init(struct hf__table *table, struct hf__arena *arena, int ncolumns)
{
    assert(ncolumns >= 0 && ncolumns <= WIDEST_ROW);
    *table = (struct hf__table){ .arena = arena, .ncolumns = ncolumns };
}

static bool grow(struct hf__table *table)
{
    if (table->capacity > INT_MAX / 2)
        return false;
    int capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY;
    size_t row_size = (size_t)table->ncolumns * sizeof(struct hf__cell);
    size_t size;
    if (__builtin_mul_overflow((size_t)capacity, row_size, &size))
        return false;

    struct hf__cell *cells = hf__arena_alloc(table->arena, size);
    if (!cells)
        return false;
    if (table->nrows > 0 && row_size > 0)
        memcpy(cells, table->cells, (size_t)table->nrows * row_size);
    table->cells = cells;
    table->capacity = capacity;
    return true;
}

static struct hf__cell *clear_row(struct hf__cell *row, int ncolumns)
{
    for (int i = 0; i < ncolumns; i++)
        row[i] = hf__null();
    return row;
}

struct hf__cell *hf__table_add(struct hf__table *table)
{
    /* What is written here is lost; it spares every caller a check, since `failed` tells. */
    static _Thread_local struct hf__cell scratch[WIDEST_ROW];

    if (table->nrows == table->capacity && !grow(table)) {
        table->failed = true;
        return clear_row(scratch, table->ncolumns);
    }
    return clear_row(hf__table_row(table, table->nrows++), table->ncolumns);
}

struct hf__cell *hf__table_row(const struct hf__table *table, int row)
{
    return table->cells + (size_t)row * (size_t)table->ncolumns;
}

struct hf__cell hf__null(void)
{
    return (struct hf__cell){ .number = 0, .length = HF__NULL };
}

struct hf__cell hf__number(int64_t number)
{
    return (struct hf__cell){ .number = number, .length = sizeof number };
}

struct hf__cell hf__number_or_null(int64_t number)
{
    return number ? hf__number(number) : hf__null();
}

struct hf__cell hf__text(const char *text)
{
    return text ? hf__text_n(text, strlen(text)) : hf__null();
}

struct hf__cell hf__text_n(const char *text, size_t length)
{
    if (!text)
        return hf__null();
    /* Every store refuses a text of this length, so cutting it here never stores half a text. */
    int32_t bounded = length > INT32_MAX ? INT32_MAX : (int32_t)length;
    return (struct hf__cell){ .bytes = text, .length = bounded };
}

struct hf__cell hf__uuid(const hf_id *id)
{
    return (struct hf__cell){ .bytes = (const char *)id->bytes, .length = sizeof id->bytes };
}

struct hf__cell hf__uuid_or_null(const hf_id *id)
{
    static const hf_id zero;
    return memcmp(id, &zero, sizeof zero) == 0 ? hf__null() : hf__uuid(id);
}

int64_t hf__as_number(struct hf__cell cell)
{
    return hf__is_null(cell) ? 0 : cell.number;
}

const char *hf__as_text(struct hf__cell cell)
{
    return hf__is_null(cell) ? NULL : cell.bytes;
}

hf_id hf__as_uuid(struct hf__cell cell)
{
    hf_id id = { 0 };
    if (!hf__is_null(cell))
        memcpy(id.bytes, cell.bytes, sizeof id.bytes);
    return id;
}

bool hf__is_null(struct hf__cell cell)
{
    return cell.length == HF__NULL;
}

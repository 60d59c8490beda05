/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/error.h"

#include <endian.h>
#include <string.h>

/* The server's own limit for one value is 1 GB, with its overhead. */
enum { PARAM_BYTES_MAX = 1000000000, KEPT_SCRATCH = 1 << 20 };

enum {
    OID_BOOL = 16,
    OID_CHAR = 18,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_UUID = 2950,
    OID_XID8 = 5069
};

struct wire_type {
    Oid scalar;
    Oid array;
};

static const struct wire_type wire_types[] = {
    [HF__INT] = { OID_INT4, 1007 },  [HF__BIG] = { OID_INT8, 1016 },
    [HF__TEXT] = { OID_TEXT, 1009 }, [HF__UUID] = { OID_UUID, 2951 },
    [HF__BOOL] = { OID_BOOL, 1000 },
};

static void add_int32(struct hf__buffer *out, int32_t number)
{
    uint32_t wire = htobe32((uint32_t)number);
    hf__buffer_add(out, &wire, sizeof wire);
}

static void add_number(struct hf__buffer *out, enum hf__type type, int64_t number)
{
    if (type == HF__BIG) {
        uint64_t wire = htobe64((uint64_t)number);
        hf__buffer_add(out, &wire, sizeof wire);
    } else if (type == HF__INT) {
        add_int32(out, (int32_t)number);
    } else {
        hf__buffer_add(out, number ? "\1" : "\0", 1);
    }
}

static int32_t wire_length(enum hf__type type, const struct hf__cell *cell)
{
    switch (type) {
    case HF__INT: return 4;
    case HF__BIG: return 8;
    case HF__BOOL: return 1;
    case HF__UUID: return 16;
    case HF__TEXT: return cell->length;
    }
    return 0;
}

static void add_value(struct hf__buffer *out, enum hf__type type, const struct hf__cell *cell)
{
    if (type == HF__TEXT || type == HF__UUID)
        hf__buffer_add(out, cell->bytes, (size_t)wire_length(type, cell));
    else
        add_number(out, type, cell->number);
}

static hf_code check_cell(enum hf__type type, const struct hf__cell *cell,
                          const struct hf__statement *statement, int column, hf_error *err)
{
    if (type == HF__INT && (cell->number < INT32_MIN || cell->number > INT32_MAX))
        return hf__postgres_fail_as(err, HF_STORE, "22003",
                                    "parameter %d of statement '%s' is out of an int's range",
                                    column + 1, statement->name);
    if (type == HF__UUID && cell->length != 16)
        return hf__postgres_fail_as(err, HF_STORE, "22P02",
                                    "parameter %d of statement '%s' is not an id of 16 bytes",
                                    column + 1, statement->name);
    return HF_OK;
}

static bool is_null(const struct hf__table *table, int row, int column)
{
    return hf__table_row(table, row)[column].length == HF__NULL;
}

static bool has_null(const struct hf__table *table, int column, int rows)
{
    for (int row = 0; row < rows; row++)
        if (is_null(table, row, column))
            return true;
    return false;
}

/* Nulls at the end of a column are left out, which unnest fills up again: most columns of a new run are nothing but nulls, and
 * the server would take each in its hands several times. The first column says how many rows there are. */
static int rows_to_send(const struct hf__table *table, int column)
{
    int rows = table->nrows;
    while (column > 0 && rows > 0 && is_null(table, rows - 1, column))
        rows--;
    return rows;
}

/* An array's header: dimensions, whether it has nulls, element type; then of its one dimension length and lower bound. */
static void add_array_header(struct hf__buffer *out, enum hf__type type, int length, bool nulls)
{
    add_int32(out, length > 0);
    add_int32(out, nulls);
    add_int32(out, (int32_t)wire_types[type].scalar);
    if (length == 0)
        return;
    add_int32(out, length);
    add_int32(out, 1);
}

static hf_code add_array(struct hf__buffer *out, const struct hf__statement *statement,
                         const struct hf__table *table, int column, hf_error *err)
{
    enum hf__type type = statement->param_types[column];
    int length = rows_to_send(table, column);
    add_array_header(out, type, length, has_null(table, column, length));
    for (int row = 0; row < length; row++) {
        const struct hf__cell *cell = &hf__table_row(table, row)[column];
        if (cell->length == HF__NULL) {
            add_int32(out, -1);
            continue;
        }
        hf_code code = check_cell(type, cell, statement, column, err);
        if (code != HF_OK)
            return code;
        add_int32(out, wire_length(type, cell));
        add_value(out, type, cell);
    }
    return HF_OK;
}

static hf_code add_scalar(struct hf__buffer *out, const struct hf__statement *statement,
                          const struct hf__table *table, int column, hf_error *err)
{
    enum hf__type type = statement->param_types[column];
    const struct hf__cell *cell = &hf__table_row(table, 0)[column];
    if (cell->length == HF__NULL)
        return HF_OK;
    hf_code code = check_cell(type, cell, statement, column, err);
    if (code == HF_OK)
        add_value(out, type, cell);
    return code;
}

static hf_code check_table(const struct hf__statement *statement, const struct hf__table *table,
                           hf_error *err)
{
    if (table->failed)
        return hf__nomem(err);
    if (table->ncolumns != statement->nparams || statement->nparams > HF__POSTGRES_PARAMS_MAX)
        return hf__fail(err, HF_INTERNAL, "statement '%s' takes %d parameters, but got %d",
                        statement->name, statement->nparams, table->ncolumns);
    if (table->nrows == 0 || (statement->takes == HF__TAKES_ONE && table->nrows != 1))
        return hf__fail(err, HF_INTERNAL, "statement '%s' got %d rows of parameters",
                        statement->name, table->nrows);
    return HF_OK;
}

/* Pointers only now: the bytes moved while they grew. */
static void point_values(struct hf__postgres_params *params, const struct hf__statement *statement,
                         const struct hf__table *table)
{
    bool scalar = statement->takes == HF__TAKES_ONE;
    const char *at = params->bytes.data;
    for (int i = 0; i < params->count; i++) {
        bool null = scalar && hf__table_row(table, 0)[i].length == HF__NULL;
        params->values[i] = null ? NULL : at;
        if (at)
            at += params->lengths[i];
    }
}

static hf_code encode_columns(struct hf__postgres_params *params,
                              const struct hf__statement *statement, const struct hf__table *table,
                              hf_error *err)
{
    bool scalar = statement->takes == HF__TAKES_ONE;
    for (int i = 0; i < statement->nparams; i++) {
        const struct wire_type *wire = &wire_types[statement->param_types[i]];
        size_t before = params->bytes.length;
        hf_code code = scalar ? add_scalar(&params->bytes, statement, table, i, err)
                              : add_array(&params->bytes, statement, table, i, err);
        if (code != HF_OK)
            return code;
        size_t length = params->bytes.length - before;
        if (length > PARAM_BYTES_MAX)
            return hf__postgres_fail_as(err, HF_STORE, "54000",
                                        "parameter %d of statement '%s' has more than %d bytes; "
                                        "use smaller batches or values",
                                        i + 1, statement->name, PARAM_BYTES_MAX);
        params->types[i] = scalar ? wire->scalar : wire->array;
        params->lengths[i] = (int)length;
        params->formats[i] = 1;
        params->count++;
    }
    return params->bytes.failed ? hf__nomem(err) : HF_OK;
}

hf_code hf__postgres_encode(struct hf__postgres_params *params,
                            const struct hf__statement *statement, const struct hf__table *table,
                            hf_error *err)
{
    params->count = 0;
    if (params->bytes.capacity > KEPT_SCRATCH)
        hf__buffer_free(&params->bytes);
    hf__buffer_clear(&params->bytes);
    if (statement->takes == HF__TAKES_NOTHING)
        return HF_OK;
    if (!table)
        return hf__fail(err, HF_INTERNAL, "statement '%s' got no parameters", statement->name);

    hf_code code = check_table(statement, table, err);
    if (code == HF_OK)
        code = encode_columns(params, statement, table, err);
    if (code == HF_OK && !params->bytes.data)
        hf__buffer_add(&params->bytes, "", 0); /* empty texts need an address: no address is null */
    if (code == HF_OK && params->bytes.failed)
        code = hf__nomem(err);
    if (code == HF_OK)
        point_values(params, statement, table);
    return code;
}

void hf__postgres_params_free(struct hf__postgres_params *params)
{
    hf__buffer_free(&params->bytes);
    params->count = 0;
}

static bool is_number(Oid type)
{
    switch (type) {
    case OID_BOOL:
    case OID_CHAR:
    case OID_INT8:
    case OID_INT2:
    case OID_INT4:
    case OID_OID:
    case OID_XID8: return true;
    default: return false;
    }
}

/* What a statement gives is checked once per answer, so that a wrong type is an error and never a wrong number. */
static hf_code check_columns(const struct hf__statement *statement, const PGresult *result,
                             hf_error *err)
{
    if (PQnfields(result) != statement->ncolumns)
        return hf__fail(err, HF_INTERNAL, "statement '%s' gives %d columns instead of %d",
                        statement->name, PQnfields(result), statement->ncolumns);
    for (int i = 0; i < statement->ncolumns; i++) {
        enum hf__type type = statement->column_types[i];
        Oid oid = PQftype(result, i);
        if (type == HF__TEXT   ? is_number(oid) || oid == OID_UUID
            : type == HF__UUID ? oid != OID_UUID
                               : !is_number(oid))
            return hf__fail(err, HF_INTERNAL,
                            "column %d of statement '%s' has the PostgreSQL type %u, which is not "
                            "the declared one",
                            i + 1, statement->name, oid);
    }
    return HF_OK;
}

/* Big-endian, signed, of any whole length. */
static int64_t read_number(const char *bytes, int length)
{
    uint64_t number = length > 0 && (bytes[0] & 0x80) ? UINT64_MAX : 0;
    for (int i = 0; i < length; i++)
        number = number << 8 | (unsigned char)bytes[i];
    return (int64_t)number;
}

static bool read_cell(struct hf__cell *cell, enum hf__type type, struct hf__arena *arena,
                      const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column)) {
        cell->length = HF__NULL;
        return true;
    }
    const char *value = PQgetvalue(result, row, column);
    int length = PQgetlength(result, row, column);
    if (type == HF__TEXT || type == HF__UUID) {
        cell->bytes = hf__arena_strndup(arena, value, (size_t)length);
        cell->length = length;
        return cell->bytes != NULL;
    }
    cell->number = read_number(value, length);
    cell->length = 8;
    return true;
}

hf_code hf__postgres_decode(struct hf__table *table, const struct hf__statement *statement,
                            const PGresult *result, hf_error *err)
{
    hf_code code = check_columns(statement, result, err);
    if (code != HF_OK)
        return code;
    for (int row = 0; row < PQntuples(result); row++) {
        struct hf__cell *cells = hf__table_add(table);
        if (table->failed)
            return hf__nomem(err);
        for (int i = 0; i < statement->ncolumns; i++)
            if (!read_cell(&cells[i], statement->column_types[i], table->arena, result, row, i))
                return hf__nomem(err);
    }
    return HF_OK;
}

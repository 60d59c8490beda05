/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const unsigned char every_type[] = { HF__INT, HF__BIG, HF__TEXT, HF__UUID, HF__BOOL };
static const struct hf__statement one = {
    .name = "one", .sql = "-", .takes = HF__TAKES_ONE, .nparams = 5, .param_types = every_type
};
static const struct hf__statement rows = {
    .name = "rows", .sql = "-", .takes = HF__TAKES_ROWS, .nparams = 5, .param_types = every_type
};
static const struct hf__statement gives = {
    .name = "gives", .sql = "-", .ncolumns = 5, .column_types = every_type
};
static const hf_id some_id = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

static struct hf__arena arena;

static int give_back(void **state)
{
    (void)state;
    hf__arena_free(&arena);
    return 0;
}

static void add_row(struct hf__table *table)
{
    struct hf__cell *row = hf__table_add(table);
    row[0] = hf__number(-2);
    row[1] = hf__number(0x0102030405060708);
    row[2] = hf__text("ab");
    row[3] = hf__uuid(&some_id);
    row[4] = hf__number(1);
}

static void assert_param(const struct hf__postgres_params *params, int i, const char *bytes,
                         int length)
{
    assert_int_equal(params->lengths[i], length);
    assert_int_equal(params->formats[i], 1);
    assert_memory_equal(params->values[i], bytes, (size_t)length);
}

static void scalars_are_big_endian_with_explicit_types(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    add_row(&table);
    struct hf__postgres_params params = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &one, &table, NULL), HF_OK);
    assert_int_equal(params.count, 5);
    assert_param(&params, 0, "\xff\xff\xff\xfe", 4);
    assert_param(&params, 1, "\1\2\3\4\5\6\7\10", 8);
    assert_param(&params, 2, "ab", 2);
    assert_param(&params, 3, (const char *)some_id.bytes, 16);
    assert_param(&params, 4, "\1", 1);
    const Oid oids[] = { 23, 20, 25, 2950, 16 };
    assert_memory_equal(params.types, oids, sizeof oids);
    hf__postgres_params_free(&params);
}

static void a_null_scalar_has_no_address_and_an_empty_text_has_one(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    hf__table_add(&table)[2] = hf__text("");
    struct hf__postgres_params params = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &one, &table, NULL), HF_OK);
    assert_null(params.values[0]);
    assert_non_null(params.values[2]);
    assert_int_equal(params.lengths[2], 0);
    assert_null(params.values[4]);
    hf__postgres_params_free(&params);
}

static void rows_become_arrays_with_nulls(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    hf__table_add(&table);
    add_row(&table);
    struct hf__postgres_params params = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &rows, &table, NULL), HF_OK);
    assert_param(&params, 0,
                 "\0\0\0\1"
                 "\0\0\0\1"
                 "\0\0\0\x17"
                 "\0\0\0\2"
                 "\0\0\0\1"
                 "\xff\xff\xff\xff"
                 "\0\0\0\4\xff\xff\xff\xfe",
                 32);
    assert_param(&params, 2,
                 "\0\0\0\1"
                 "\0\0\0\1"
                 "\0\0\0\x19"
                 "\0\0\0\2"
                 "\0\0\0\1"
                 "\xff\xff\xff\xff"
                 "\0\0\0\2ab",
                 30);
    const Oid oids[] = { 1007, 1016, 1009, 2951, 1000 };
    assert_memory_equal(params.types, oids, sizeof oids);
    hf__postgres_params_free(&params);
}

static void nulls_at_the_end_of_a_column_are_left_out_unless_it_is_the_first(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    add_row(&table);
    hf__table_add(&table);
    struct hf__postgres_params params = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &rows, &table, NULL), HF_OK);
    assert_param(&params, 0,
                 "\0\0\0\1"
                 "\0\0\0\1"
                 "\0\0\0\x17"
                 "\0\0\0\2"
                 "\0\0\0\1"
                 "\0\0\0\4\xff\xff\xff\xfe"
                 "\xff\xff\xff\xff",
                 32);
    assert_param(&params, 2,
                 "\0\0\0\1"
                 "\0\0\0\0"
                 "\0\0\0\x19"
                 "\0\0\0\1"
                 "\0\0\0\1"
                 "\0\0\0\2ab",
                 26);
    hf__postgres_params_free(&params);
}

static void a_column_of_nulls_is_an_empty_array_unless_it_is_the_first(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    hf__table_add(&table);
    hf__table_add(&table)[1] = hf__number(1);
    struct hf__postgres_params params = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &rows, &table, NULL), HF_OK);
    assert_param(&params, 0,
                 "\0\0\0\1"
                 "\0\0\0\1"
                 "\0\0\0\x17"
                 "\0\0\0\2"
                 "\0\0\0\1"
                 "\xff\xff\xff\xff"
                 "\xff\xff\xff\xff",
                 28);
    assert_param(&params, 2,
                 "\0\0\0\0"
                 "\0\0\0\0"
                 "\0\0\0\x19",
                 12);
    hf__postgres_params_free(&params);
}

static void an_array_without_nulls_says_so(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    add_row(&table);
    struct hf__postgres_params params = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &rows, &table, NULL), HF_OK);
    assert_memory_equal(params.values[1], "\0\0\0\1\0\0\0\0", 8);
    hf__postgres_params_free(&params);
}

static void what_does_not_fit_is_an_error_of_the_data(void **state)
{
    (void)state;
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    hf__table_add(&table)[0] = hf__number(INT64_C(1) << 31);
    struct hf__postgres_params params = { 0 };
    hf_error err = { 0 };
    assert_int_equal(hf__postgres_encode(&params, &rows, &table, &err), HF_STORE);
    assert_string_equal(err.sqlstate, "22003");
    assert_true(hf__error_is_data(&err));

    hf__table_row(&table, 0)[0] = hf__number(INT32_MIN);
    hf__table_row(&table, 0)[3] = hf__text("not an id");
    assert_int_equal(hf__postgres_encode(&params, &one, &table, &err), HF_STORE);
    assert_string_equal(err.sqlstate, "22P02");
    hf__postgres_params_free(&params);
}

static void wrong_tables_are_refused(void **state)
{
    (void)state;
    struct hf__table table;
    struct hf__postgres_params params = { 0 };
    hf__table_init(&table, &arena, 4);
    hf__table_add(&table);
    assert_int_equal(hf__postgres_encode(&params, &rows, &table, NULL), HF_INTERNAL);
    hf__table_init(&table, &arena, 5);
    assert_int_equal(hf__postgres_encode(&params, &one, &table, NULL), HF_INTERNAL);
    table.failed = true;
    assert_int_equal(hf__postgres_encode(&params, &one, &table, NULL), HF_NOMEM);
    assert_int_equal(hf__postgres_encode(&params, &one, NULL, NULL), HF_INTERNAL);
    hf__postgres_params_free(&params);
}

static PGresult *result_of(const Oid *oids, int count)
{
    PGresAttDesc columns[8] = { 0 };
    char name[] = "column";
    for (int i = 0; i < count; i++)
        columns[i] = (PGresAttDesc){ .name = name, .format = 1, .typid = oids[i], .typlen = -1 };
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    assert_non_null(result);
    assert_true(PQsetResultAttrs(result, count, columns));
    return result;
}

static void set(PGresult *result, int row, int column, const char *bytes, int length)
{
    char copy[32];
    memcpy(copy, bytes, (size_t)length);
    assert_true(PQsetvalue(result, row, column, copy, length));
}

static void results_are_read_by_length(void **state)
{
    (void)state;
    PGresult *result = result_of((const Oid[]){ 21, 20, 25, 2950, 16 }, 5);
    set(result, 0, 0, "\xff\xfe", 2);
    set(result, 0, 1, "\x80\0\0\0\0\0\0\1", 8);
    set(result, 0, 2, "text", 4);
    set(result, 0, 3, (const char *)some_id.bytes, 16);
    set(result, 0, 4, "\1", 1);
    for (int i = 0; i < 5; i++)
        assert_true(PQsetvalue(result, 1, i, NULL, -1));

    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    assert_int_equal(hf__postgres_decode(&table, &gives, result, NULL), HF_OK);
    PQclear(result);
    assert_int_equal(table.nrows, 2);
    struct hf__cell *row = hf__table_row(&table, 0);
    assert_int_equal(hf__as_number(row[0]), -2);
    assert_true(hf__as_number(row[1]) == INT64_MIN + 1);
    assert_string_equal(hf__as_text(row[2]), "text");
    assert_true(hf_id_equal(hf__as_uuid(row[3]), some_id));
    assert_int_equal(hf__as_number(row[4]), 1);
    for (int i = 0; i < 5; i++)
        assert_true(hf__is_null(hf__table_row(&table, 1)[i]));
}

static void a_column_of_another_type_is_an_error(void **state)
{
    (void)state;
    static const Oid wrong[][5] = {
        { 701, 20, 25, 2950, 16 },  /* float8 where a number is promised */
        { 23, 1700, 25, 2950, 16 }, /* numeric */
        { 23, 20, 20, 2950, 16 },
        { 23, 20, 25, 25, 16 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        PGresult *result = result_of(wrong[i], 5);
        struct hf__table table;
        hf__table_init(&table, &arena, 5);
        assert_int_equal(hf__postgres_decode(&table, &gives, result, NULL), HF_INTERNAL);
        PQclear(result);
    }
    PGresult *result = result_of(wrong[0], 3);
    struct hf__table table;
    hf__table_init(&table, &arena, 5);
    assert_int_equal(hf__postgres_decode(&table, &gives, result, NULL), HF_INTERNAL);
    PQclear(result);
}

struct ear {
    struct hf__heard heard[300];
    int count;
};

static void hear(const struct hf__heard *heard, void *arg)
{
    struct ear *ear = arg;
    assert_true(ear->count < 300);
    ear->heard[ear->count++] = *heard;
}

static void lanes_are_heard_as_they_were_told(void **state)
{
    (void)state;
    const int32_t lanes[] = { 7, 2147483647 };
    struct hf__wake wake = { .lanes = lanes, .lane_count = 2, .earliest = 1700000000000000 };
    struct hf__buffer payload = { 0 };
    hf__postgres_wake_workers(&payload, &wake);
    assert_string_equal(payload.data, "7 2147483647@1700000000000000");

    struct ear ear = { 0 };
    assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 2);
    for (int i = 0; i < 2; i++) {
        assert_true(ear.heard[i].lanes);
        assert_int_equal(ear.heard[i].lane, lanes[i]);
        assert_true(ear.heard[i].earliest == wake.earliest);
        assert_false(ear.heard[i].workflows_changed);
    }
    hf__buffer_free(&payload);
}

static void a_new_run_is_heard_with_its_lane(void **state)
{
    (void)state;
    const int32_t lanes[] = { 7, 8 };
    struct hf__wake wake = {
        .lanes = lanes, .lane_count = 1, .earliest = 5, .fresh = &some_id, .workflows_changed = true
    };
    struct hf__buffer payload = { 0 };
    struct ear ear = { 0 };
    hf__postgres_wake_workers(&payload, &wake);
    assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 2);
    assert_int_equal(ear.heard[0].lane, 7);
    assert_true(ear.heard[0].earliest == 5);
    assert_true(hf_id_equal(ear.heard[0].fresh, some_id));
    assert_true(ear.heard[1].workflows_changed);
    wake.lane_count = 2; /* of which it would not be known whose it is */
    hf__buffer_clear(&payload);
    hf__postgres_wake_workers(&payload, &wake);
    assert_null(strchr(payload.data, '#'));
    ear = (struct ear){ 0 };
    assert_int_equal(hf__postgres_hear("holdfast_wake", "7@5#12", hear, &ear), 1);
    assert_true(ear.heard[0].lane == 7 && hf_id_is_zero(ear.heard[0].fresh));
    hf__buffer_free(&payload);
}

/* The place is added by the server (notify_early). */
static void a_new_run_is_heard_with_the_place_up_to_which_it_was_written(void **state)
{
    (void)state;
    const int32_t lane = 7;
    struct hf__wake wake = { .lanes = &lane, .lane_count = 1, .earliest = 5, .fresh = &some_id };
    static const struct {
        const char *added;
        int64_t place;
    } cases[] = { { "", 0 },   { "~123456789012", 123456789012 },        { "~", 0 }, { "~-1", 0 },
                  { "~x", 0 }, { "~99999999999999999999999", INT64_MAX } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hf__buffer payload = { 0 };
        struct ear ear = { 0 };
        hf__postgres_wake_workers(&payload, &wake);
        hf__buffer_add_text(&payload, cases[i].added);
        assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 1);
        assert_int_equal(ear.heard[0].lane, 7);
        assert_true(hf_id_equal(ear.heard[0].fresh, some_id));
        assert_true(ear.heard[0].place == cases[i].place);
        hf__buffer_free(&payload);
    }
}

static void changed_workflows_are_heard_with_and_without_lanes(void **state)
{
    (void)state;
    const int32_t lanes[] = { 3 };
    struct ear ear = { 0 };
    struct hf__wake wake = { .workflows_changed = true };
    struct hf__buffer payload = { 0 };
    hf__postgres_wake_workers(&payload, &wake);
    assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 1);
    assert_true(ear.heard[0].workflows_changed);
    assert_false(ear.heard[0].lanes);

    ear.count = 0;
    wake.lanes = lanes;
    wake.lane_count = 1;
    hf__buffer_clear(&payload);
    hf__postgres_wake_workers(&payload, &wake);
    assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 2);
    assert_int_equal(ear.heard[0].lane, 3);
    assert_true(ear.heard[1].workflows_changed);
    hf__buffer_free(&payload);
}

static void lost_leases_are_heard_with_and_without_workflows(void **state)
{
    (void)state;
    struct ear ear = { 0 };
    struct hf__wake wake = { .leases_lost = true };
    struct hf__buffer payload = { 0 };
    hf__postgres_wake_workers(&payload, &wake);
    assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 1);
    assert_true(ear.heard[0].leases_lost);
    assert_false(ear.heard[0].lanes);

    ear.count = 0;
    wake.workflows_changed = true;
    hf__buffer_clear(&payload);
    hf__postgres_wake_workers(&payload, &wake);
    assert_int_equal(hf__postgres_hear("holdfast_wake", payload.data, hear, &ear), 2);
    assert_true(ear.heard[0].workflows_changed);
    assert_true(ear.heard[1].leases_lost);
    hf__buffer_free(&payload);
}

static void too_many_names_become_any(void **state)
{
    (void)state;
    static int32_t lanes[5000];
    static hf_id ids[250];
    for (int i = 0; i < 5000; i++)
        lanes[i] = 1000000 + i;
    for (int i = 0; i < 250; i++)
        ids[i] = some_id;
    struct hf__wake wake = {
        .lanes = lanes, .lane_count = 5000, .earliest = 5, .watched = ids, .watched_count = 250
    };
    struct hf__buffer payload = { 0 };
    hf__postgres_wake_workers(&payload, &wake);
    assert_string_equal(payload.data, "0@5");
    hf__buffer_clear(&payload);
    hf__postgres_wake_runs(&payload, &wake);
    assert_string_equal(payload.data, "00000000000000000000000000000000");
    wake.watched_count = 212;
    hf__buffer_clear(&payload);
    hf__postgres_wake_runs(&payload, &wake);
    assert_in_range(payload.length, 6000, 7999);
    hf__buffer_free(&payload);
}

static void runs_are_heard_as_they_were_told(void **state)
{
    (void)state;
    hf_id ids[2] = { some_id, some_id };
    ids[1].bytes[15] = 0xfe;
    struct hf__wake wake = { .watched = ids, .watched_count = 2 };
    struct hf__buffer payload = { 0 };
    hf__postgres_wake_runs(&payload, &wake);
    struct ear ear = { 0 };
    assert_int_equal(hf__postgres_hear("holdfast_run", payload.data, hear, &ear), 2);
    assert_true(ear.heard[0].run && hf_id_equal(ear.heard[0].run_id, ids[0]));
    assert_true(ear.heard[1].run && hf_id_equal(ear.heard[1].run_id, ids[1]));
    hf__buffer_free(&payload);
}

static void what_cannot_be_read_means_look_everywhere(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "", "x", "-4x", "99999999999999999999", "1x@5", "@", "!"
    };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        struct ear ear = { 0 };
        assert_int_equal(hf__postgres_hear("holdfast_wake", strange[i], hear, &ear), 1);
        assert_true(ear.heard[0].lanes);
        assert_int_equal(ear.heard[0].lane, 0);
    }
    struct ear ear = { 0 };
    assert_int_equal(hf__postgres_hear("holdfast_wake", "-4@1", hear, &ear), 1);
    assert_int_equal(ear.heard[0].lane, -4); /* a free slot */
    ear = (struct ear){ 0 };
    assert_int_equal(hf__postgres_hear("holdfast_run", "zz", hear, &ear), 1);
    assert_true(hf_id_is_zero(ear.heard[0].run_id));
    assert_int_equal(hf__postgres_hear("holdfast_wake", "?abc", hear, &ear), 0);
    assert_int_equal(hf__postgres_hear("elsewhere", "1@2", hear, &ear), 0);
}

static void sqlstates_have_codes(void **state)
{
    (void)state;
    static const struct {
        const char *sqlstate;
        hf_code code;
    } known[] = {
        { "53100", HF_STORE_FULL },   { "53200", HF_STORE },        { "08006", HF_UNAVAILABLE },
        { "57P01", HF_UNAVAILABLE },  { "57P03", HF_UNAVAILABLE },  { "25006", HF_READ_ONLY },
        { "40001", HF_STORE },        { "40P01", HF_STORE },        { "55P03", HF_STORE },
        { "3F000", HF_SCHEMA_OLDER }, { "42P01", HF_SCHEMA_OLDER }, { "23505", HF_STORE },
        { "57014", HF_STORE },        { "26000", HF_UNAVAILABLE },  { "42P05", HF_UNAVAILABLE },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(hf__postgres_code(known[i].sqlstate), known[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_big_endian_with_explicit_types),
        cmocka_unit_test(a_null_scalar_has_no_address_and_an_empty_text_has_one),
        cmocka_unit_test(rows_become_arrays_with_nulls),
        cmocka_unit_test(nulls_at_the_end_of_a_column_are_left_out_unless_it_is_the_first),
        cmocka_unit_test(a_column_of_nulls_is_an_empty_array_unless_it_is_the_first),
        cmocka_unit_test(an_array_without_nulls_says_so),
        cmocka_unit_test(what_does_not_fit_is_an_error_of_the_data),
        cmocka_unit_test(wrong_tables_are_refused),
        cmocka_unit_test(results_are_read_by_length),
        cmocka_unit_test(a_column_of_another_type_is_an_error),
        cmocka_unit_test(lanes_are_heard_as_they_were_told),
        cmocka_unit_test(a_new_run_is_heard_with_its_lane),
        cmocka_unit_test(a_new_run_is_heard_with_the_place_up_to_which_it_was_written),
        cmocka_unit_test(changed_workflows_are_heard_with_and_without_lanes),
        cmocka_unit_test(lost_leases_are_heard_with_and_without_workflows),
        cmocka_unit_test(too_many_names_become_any),
        cmocka_unit_test(runs_are_heard_as_they_were_told),
        cmocka_unit_test(what_cannot_be_read_means_look_everywhere),
        cmocka_unit_test(sqlstates_have_codes),
    };
    return cmocka_run_group_tests(tests, NULL, give_back);
}

/* Where one head has what is wanted, a claim under limits has a statement of its own: it does to the last column what the one
 * for many heads does. B7.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sql/scratch.h"
#include "store/postgres.h"
#include "util/random.h"

enum { DRAWS = 400, RUNS_MOST = 12, NOW = 1000000000 };

static struct scratch scratch;
static struct hf__random dice;

static int below(int limit)
{
    return (int)hf__random_below(&dice, (uint64_t)limit);
}

/* One of the texts, which end with NULL. */
static const char *any_of(const char *const *texts)
{
    int count = 0;
    while (texts[count])
        count++;
    return texts[below(count)];
}

static void draw_limits(void)
{
    static const char *const limits[] = { "NULL", "2147483647", "1", "2", "4", "30", NULL };
    static const char *const key_limits[] = { "NULL", "NULL", "1", "3", "40", NULL };
    static const char *const rates[] = { "NULL, NULL, NULL", "1, 1000, 1", "3, 1000000, 5",
                                         "1000, 10, 1000", NULL };
    static const char *const paid[] = { "NULL",       "999999000",  "1000000000", "1000000900",
                                        "1000900000", "9000000000", NULL };
    pg_do(scratch.pg,
          "UPDATE holdfast.workflow SET max_running = %s, key_max_running = %s, "
          "(rate_count, rate_interval, rate_burst) = ROW(%s), rate_next = %s, "
          "(key_rate_count, key_rate_interval, key_rate_burst) = ROW(%s), paused = %s",
          any_of(limits), any_of(key_limits), any_of(rates), any_of(paid), any_of(rates),
          below(20) ? "false" : "true");
    pg_do(scratch.pg, "UPDATE holdfast.lane SET rate_next = %s", any_of(paid));
}

/* Of two lanes and priorities, pending or held, with a slot or without, some of them expired, exhausted, late or deleted. */
static void draw_runs(void)
{
    int count = below(RUNS_MOST + 1);
    for (int i = 0; i < count; i++) {
        bool held = below(3) == 0;
        pg_do(
            scratch.pg,
            "INSERT INTO holdfast.run (tenant_id, id, workflow_id, lane, status, priority, run_at, "
            "attempt, max_attempts, version, slot, leased_by, timeout_at, deleted_at, created_at, "
            "updated_at) SELECT w.tenant_id, '%08x-0000-7000-8000-000000000000', w.id, %s, %d, "
            "%d, %d, %d, %s, 7, %s, %s, %s, %s, 1, 1 FROM holdfast.workflow w",
            i + 1, below(3) ? "w.lane" : "7", held ? 1 : below(2) * 2, below(4) == 0,
            NOW + below(21) - 15, below(4), below(2) ? "NULL" : "2",
            held && below(3) ? "w.id" : "NULL", held ? "'ben'" : "NULL",
            below(8) ? "NULL" : "999999999", below(8) ? "NULL" : "999999999");
    }
}

/* All that a claim may write. */
static const char *what_is_there(void)
{
    return pg_text(scratch.pg,
                   "SELECT coalesce((SELECT string_agg(r::text, '|' ORDER BY r.id) "
                   "FROM holdfast.run r), '') || "
                   "(SELECT string_agg(w::text, '|') FROM holdfast.workflow w) || "
                   "(SELECT string_agg(l::text, '|' ORDER BY l.id) FROM holdfast.lane l) || "
                   "coalesce((SELECT string_agg(e.run_id::text || e.seq || e.version "
                   "|| e.name || e.actor, '|' "
                   "ORDER BY e.run_id, e.seq) FROM holdfast.event e), '')");
}

/* What is there after the claim, and how many it gave; the claim is undone. */
static const char *after(const char *claim, int *given)
{
    pg_do(scratch.pg, "SAVEPOINT before");
    PGresult *result = PQexec(scratch.pg, claim);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", claim, PQerrorMessage(scratch.pg));
    *given = 0;
    for (int i = 0; i < PQntuples(result); i++)
        *given += !PQgetisnull(result, i, 0);
    PQclear(result);
    const char *there = what_is_there();
    pg_do(scratch.pg, "ROLLBACK TO before");
    return there;
}

static int draw(void)
{
    char many[200], one[200];
    int most = 1 + below(8), hands = below(6), suspects = below(3), priority = below(2), given[2];
    int floor = below(3) ? 0 : NOW - 8;
    int lane = (int)pg_number(scratch.pg, "SELECT lane FROM holdfast.workflow");
    snprintf(many, sizeof many, "EXECUTE many('[[%d,%d,%d,%d]]', %d, 'anna', NULL, %d, %d)", lane,
             priority, floor, most, most, suspects, hands);
    snprintf(one, sizeof one, "EXECUTE one(%d, %d, %d, %d, 'anna', NULL, %d, %d)", lane, priority,
             floor, most, suspects, hands);
    pg_do(scratch.pg, "BEGIN");
    draw_limits();
    draw_runs();
    const char *by_many = after(many, &given[0]);
    const char *by_one = after(one, &given[1]);
    assert_string_equal(by_one, by_many);
    assert_int_equal(given[1], given[0]);
    pg_do(scratch.pg, "ROLLBACK");
    return given[0];
}

static void one_head_is_claimed_from_as_many_are(void **state)
{
    int claimed = 0, nothing = 0;
    (void)state;
    hf__random_seed(&dice, 7);
    pg_do(scratch.pg, "PREPARE many(text, int, text, bigint, int, int) AS %s",
          hf__postgres_statements[HF__STMT_CLAIM_LIMITED].sql);
    pg_do(scratch.pg, "PREPARE one(int, int, bigint, int, text, bigint, int, int) AS %s",
          hf__postgres_statements[HF__STMT_CLAIM_LIMITED_HEAD].sql);
    for (int i = 0; i < DRAWS; i++) {
        int given = draw();
        claimed += given;
        nothing += given == 0;
    }
    assert_true(claimed > DRAWS / 4); /* the draws are worth something */
    assert_in_range(nothing, DRAWS / 10, DRAWS * 9 / 10);
}

static int set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    hf_client *client = scratch_open(scratch.url);
    const hf_workflow work = { .name = "work" };
    assert_ok(hf_workflow_put(client, &work, 0, err));
    hf_close(client);
    pg_do(scratch.pg,
          "CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql STABLE "
          "AS 'SELECT 1000000000::bigint'");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_drop(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_head_is_claimed_from_as_many_are) };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

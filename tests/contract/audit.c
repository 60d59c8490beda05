/* The sealed journal: whatever was done to it behind the engine's back is found and named. Seals cover the whole store,
 * so each test undoes what it did. F2.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

#include <holdfast/audit.h>

#include <libpq-fe.h>
#include <pthread.h>
#include <unistd.h>

#include "audit/block.h"
#include "audit/seal.h"
#include "client/client.h"
#include "util/random.h"

#define PATIENCE HF_MINUTES(5)

/* ---- Sealing ---- */

static hf_audit_report report;
static char found[4000]; /* "event_changed 3 2, " for the event with seq 2 in block 3 */

static void note(const hf_audit_problem *problem, void *arg)
{
    size_t length = strlen(found);
    (void)arg;
    snprintf(found + length, sizeof found - length, "%s %lld %lld, ", problem->problem,
             (long long)problem->block, (long long)problem->seq);
    assert_true(strlen(problem->meaning) > 0);
}

static const char *verify_with(const char *head)
{
    hf_audit_options options = HF_AUDIT_INIT;
    found[0] = '\0';
    options.head = head;
    options.found = note;
    assert_ok(hf_audit_verify(fx.client, &report, &options, &fx.error));
    return found;
}

static const char *verify(void)
{
    return verify_with(NULL);
}

static struct hf__sealed seal(int most)
{
    struct hf__sealed sealed;
    assert_ok(hf__seal_next(fx.client->engine, (hf_id){ { 0 } }, most, &sealed, &fx.error));
    return sealed;
}

/* Transactions of others on the same server hold up a seal for a moment. What is written by now gets into one block. */
static void await_others(void)
{
    while (fx.backend == BACKEND_POSTGRES &&
           sql_number("SELECT count(*) FROM (SELECT xid FROM event ORDER BY xid DESC LIMIT 1) e "
                      "WHERE e.xid >= pg_snapshot_xmin(pg_current_snapshot())") > 0)
        usleep(50000);
}

static void seal_all(int most)
{
    await_others();
    for (int64_t waited = 0; waited < PATIENCE; waited += 50000) {
        while (seal(most).events > 0) {
        }
        verify();
        if (report.unsealed == 0)
            return;
        usleep(50000);
    }
    fail_msg("%lld events are not sealed", (long long)report.unsealed);
}

static int64_t last_block(void)
{
    hf_audit_head head;
    assert_ok(hf_audit_head_get(fx.client, &head, &fx.error));
    return head.block;
}

/* As one who owns the database. */
static void disarm(void)
{
    static const char *const triggers[] = { "event_no_update",  "event_no_delete",
                                            "event_no_replace", "run_removal",
                                            "run_no_replace",   "seal_no_update",
                                            "seal_no_delete",   "seal_no_replace" };
    if (fx.backend == BACKEND_POSTGRES)
        sql("SET session_replication_role = replica");
    for (size_t i = 0; fx.backend != BACKEND_POSTGRES && i < sizeof triggers / sizeof *triggers;
         i++)
        sql("DROP TRIGGER IF EXISTS %s", triggers[i]);
}

static void save(const char *table, const char *where)
{
    sql("DROP TABLE IF EXISTS saved");
    sql("CREATE TABLE saved AS SELECT * FROM %s WHERE %s", table, where);
}

static void restore(const char *table, const char *where)
{
    sql("DELETE FROM %s WHERE %s", table, where);
    sql("INSERT INTO %s SELECT * FROM saved", table);
    assert_string_equal(verify(), "");
}

/* A run that was sealed when it had three events. */
static hf_id sealed_run(void)
{
    hf_id run = run_that_is(HF_SUCCEEDED, 0);
    seal_all(HF__SEAL_EVENTS);
    assert_int_equal(sql_number("SELECT count(*) FROM event WHERE run_id = %s", sql_id(run)), 3);
    return run;
}

static const char *event_where(hf_id run, int seq)
{
    return text_of("run_id = %s AND seq = %d", sql_id(run), seq);
}

/* ---- Events ---- */

static void an_untouched_journal_is_good(void **state)
{
    (void)state;
    sealed_run();
    assert_string_equal(verify(), "");
    assert_int_equal(report.problems, 0);
    assert_int_equal(report.unsealed, 0);
    assert_int_equal(report.blocks, report.checked);
    assert_int_equal(report.events, sql_number("SELECT count(*) FROM event"));
}

static void what_is_not_sealed_yet_is_counted(void **state)
{
    (void)state;
    sealed_run();
    trigger(WORK);
    assert_string_equal(verify(), "");
    assert_int_equal(report.unsealed, 1);
}

static void a_changed_event_is_named_whatever_was_changed(void **state)
{
    static const char *const changes[] = {
        "name = 'failed'",
        "actor = 'somebody'",
        "actor = NULL",
        "step = 'x'",
        "data = '{}'",
        "at = at + 1",
        "version = 7",
        "kind = 1",
        "format = 2",
        "tenant_id = 1",
        "position = position + 100000000",
    };
    (void)state;
    disarm();
    hf_id run = sealed_run();
    size_t count = sizeof changes / sizeof *changes;
    if (fx.backend != BACKEND_POSTGRES)
        count--; /* there a position is the place: the event would be in no sealed block */
    for (size_t i = 0; i < count; i++) {
        save("event", event_where(run, 2));
        sql("UPDATE event SET %s WHERE %s", changes[i], event_where(run, 2));
        const char *expected = text_of("event_changed %lld 2, ", (long long)last_block());
        if (!strstr(verify(), expected))
            fail_msg("%s: %s", changes[i], found);
        restore("event", event_where(run, 2));
    }
}

static void a_changed_sequence_is_one_removed_and_one_inserted(void **state)
{
    (void)state;
    disarm();
    hf_id run = sealed_run();
    long long block = last_block();
    sql("UPDATE event SET seq = 9 WHERE %s", event_where(run, 2));
    assert_string_equal(verify(),
                        text_of("event_removed %lld 2, event_inserted %lld 9, ", block, block));
    sql("UPDATE event SET seq = 2 WHERE %s", event_where(run, 9));
}

static void a_removed_event_is_named(void **state)
{
    (void)state;
    disarm();
    hf_id run = sealed_run();
    save("event", event_where(run, 2));
    sql("DELETE FROM event WHERE %s", event_where(run, 2));
    assert_string_equal(verify(), text_of("event_removed %lld 2, ", (long long)last_block()));
    restore("event", event_where(run, 2));
}

static void removing_all_events_of_a_run_is_found(void **state)
{
    (void)state;
    disarm();
    hf_id run = sealed_run();
    const char *mine = text_of("run_id = %s", sql_id(run));
    long long block = last_block();
    save("event", mine);
    sql("DELETE FROM event WHERE %s", mine);
    assert_string_equal(
        verify(), text_of("event_removed %lld 1, event_removed %lld 2, event_removed %lld 3, ",
                          block, block, block));
    restore("event", mine);
}

static void an_event_slipped_into_a_sealed_block_is_named(void **state)
{
    (void)state;
    disarm();
    hf_id run = sealed_run();
    if (fx.backend == BACKEND_POSTGRES)
        sql("INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, xid) "
            "SELECT run_id, 4, 9, tenant_id, at, 1, 'paid', xid FROM event WHERE %s",
            event_where(run, 3));
    else
        sql("INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, position) "
            "SELECT run_id, 4, 9, tenant_id, at, 1, 'paid', -5 FROM event WHERE %s",
            event_where(run, 3));
    long long block = fx.backend == BACKEND_POSTGRES ? last_block() : 1;
    assert_string_equal(verify(), text_of("event_inserted %lld 4, ", block));
    sql("DELETE FROM event WHERE %s", event_where(run, 4));
}

static void events_of_a_run_that_was_removed_are_found(void **state)
{
    (void)state;
    disarm();
    hf_id run = sealed_run();
    const char *mine = text_of("id = %s", sql_id(run));
    save("run", mine);
    sql("DELETE FROM run WHERE %s", mine);
    assert_non_null(strstr(verify(), text_of("event_orphaned %lld 2, ", (long long)last_block())));
    restore("run", mine);
}

static void a_purge_leaves_the_journal_good(void **state)
{
    int64_t removed = 0;
    (void)state;
    hf_id run = sealed_run();
    hf_id kept = run_that_is(HF_WAITING, 0);
    seal_all(HF__SEAL_EVENTS);
    advance(1);
    verify();
    int64_t before = report.purged_events;
    assert_ok(hf_purge(fx.client, &removed, NULL, now(), &fx.error));
    assert_int_equal(removed, 1);
    assert_int_equal(sql_number("SELECT count(*) FROM event WHERE run_id = %s", sql_id(run)), 0);
    assert_string_equal(verify(), "");
    assert_int_equal(report.purged_events, before + 3);
    expect_status(kept, HF_WAITING);
}

static void *purge_one_by_one(void *arg)
{
    hf_client *client = arg;
    hf_runs *page = NULL;
    hf_filter filter = HF_FILTER_INIT;
    filter.limit = 1000;
    if (hf_list(client, &page, &filter, NULL) != HF_OK)
        return client;
    for (size_t i = page->count; i-- > 0;) {
        int64_t removed;
        if (hf_purge(client, &removed, NULL, page->items[i].finished_at + 1, NULL) != HF_OK)
            return client;
    }
    hf_runs_free(page);
    return NULL;
}

/* A block is read page by page, and a run may go between two pages. */
static void a_purge_beside_it_does_not_disturb(void **state)
{
    pthread_t thread;
    void *failed;
    (void)state;
    for (int i = 0; i < 300; i++)
        trigger(WORK);
    const hf_claims *claims = claim_as(WORKER, 300);
    for (size_t i = 0; i < claims->count; i++) {
        advance(1);
        succeed(&claims->items[i]);
    }
    seal_all(HF__SEAL_EVENTS);
    assert_int_equal(pthread_create(&thread, NULL, purge_one_by_one, fx.client), 0);
    do {
        assert_string_equal(verify(), "");
    } while (sql_number("SELECT count(*) FROM run r JOIN tenant t ON t.id = r.tenant_id "
                        "WHERE t.name = '%s'",
                        fx.tenant) > 0);
    pthread_join(thread, &failed);
    assert_null(failed);
}

/* ---- Seals ---- */

static void a_changed_seal_is_found_whatever_was_changed(void **state)
{
    static const char *const changes[] = { "events = events + 1", "created_at = created_at + 1",
                                           "runs = ''", "runs = runs || 'x'" };
    (void)state;
    disarm();
    sealed_run();
    const char *last = text_of("block = %lld", (long long)last_block());
    const char *expected = text_of("seal_changed %lld 0, ", (long long)last_block());
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        save("seal", last);
        sql("UPDATE seal SET %s WHERE %s", changes[i], last);
        assert_string_equal(verify(), expected);
        restore("seal", last);
    }
}

static void a_removed_seal_is_found(void **state)
{
    (void)state;
    disarm();
    sealed_run();
    long long middle = last_block();
    sealed_run();
    const char *where = text_of("block = %lld", middle);
    save("seal", where);
    sql("DELETE FROM seal WHERE %s", where);
    assert_string_equal(verify(), text_of("seal_removed %lld 0, ", middle));
    restore("seal", where);
}

/* The one who changed an event makes its seal anew: the next one does not fit. */
static void a_seal_made_anew_breaks_the_chain(void **state)
{
    (void)state;
    disarm();
    hf_id run = sealed_run();
    long long forged = last_block();
    sealed_run();
    const char *where = text_of("block >= %lld", forged);
    sql("DROP TABLE IF EXISTS after_it");
    sql("CREATE TABLE after_it AS SELECT * FROM seal WHERE block > %lld", forged);
    save("seal", where);
    sql("DELETE FROM seal WHERE %s", where);
    sql("UPDATE event SET actor = 'forger' WHERE %s", event_where(run, 2));
    /* Sealed in the same place, with another content. */
    while (last_block() < forged)
        seal(HF__SEAL_EVENTS);
    sql("UPDATE seal SET block = -1 WHERE block > %lld", forged);
    sql("DELETE FROM seal WHERE block = -1");
    sql("INSERT INTO seal SELECT * FROM after_it");
    assert_non_null(strstr(verify(), text_of("chain_broken %lld 0, ", forged + 1)));
    sql("DELETE FROM seal WHERE %s", where);
    sql("INSERT INTO seal SELECT * FROM saved");
    sql("UPDATE event SET actor = '" WORKER "' WHERE %s", event_where(run, 2));
    assert_string_equal(verify(), "");
}

static void a_chain_that_was_cut_off_is_found_by_a_noted_head(void **state)
{
    hf_audit_head head;
    (void)state;
    disarm();
    sealed_run();
    assert_ok(hf_audit_head_get(fx.client, &head, &fx.error));
    assert_string_equal(verify_with(head.hash), "");
    sealed_run();
    assert_string_equal(verify_with(head.hash), "");
    const char *where = text_of("block >= %lld", (long long)head.block);
    save("seal", where);
    sql("DELETE FROM seal WHERE %s", where);
    assert_string_equal(verify(), "");
    assert_string_equal(verify_with(head.hash), "head_missing 0 0, ");
    restore("seal", where);
}

static void seals_are_refused_to_everybody_else(void **state)
{
    (void)state;
    if (fx.backend == BACKEND_POSTGRES)
        sql("SET session_replication_role = origin");
    sealed_run();
    assert_false(sql_works("UPDATE seal SET events = 0"));
    assert_false(sql_works("DELETE FROM seal"));
    if (fx.backend != BACKEND_POSTGRES)
        assert_false(sql_works("INSERT OR REPLACE INTO seal SELECT * FROM seal"));
    else
        assert_false(sql_works("TRUNCATE seal"));
    assert_string_equal(verify(), "");
}

/* ---- Blocks ---- */

static void blocks_are_bounded(void **state)
{
    (void)state;
    seal_all(HF__SEAL_EVENTS);
    int64_t before = last_block();
    for (int i = 0; i < 20; i++)
        trigger(WORK);
    seal_all(4);
    assert_true(last_block() >= before + 5);
    assert_int_equal(
        sql_number("SELECT max(events) FROM seal WHERE block > %lld", (long long)before), 4);
    assert_string_equal(verify(), "");
}

/* More lines than a page has on SQLite, and more bytes than one has on PostgreSQL, all of them in one transaction there. */
static void a_block_of_several_pages_has_all_its_lines(void **state)
{
    enum { LINES = 506, LARGE = 6 };
    (void)state;
    seal_all(HF__SEAL_EVENTS);
    hf_id run = trigger(WORK);
    const char *large =
        fx.backend == BACKEND_POSTGRES ? "repeat('0', 1000000)" : "hex(zeroblob(500000))";
    sql("WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %d) INSERT INTO "
        "event (run_id, seq, version, tenant_id, at, kind, name, data) SELECT r.id, r.event_seq + "
        "n, r.version, r.tenant_id, r.created_at, 1, 'line', CASE WHEN n <= %d THEN %s END FROM n, "
        "run r WHERE r.id = %s ORDER BY n",
        LINES, LARGE, large, sql_id(run));
    sql("UPDATE run SET event_seq = event_seq + %d WHERE id = %s", LINES, sql_id(run));
    await_others();
    assert_int_equal(seal(HF__SEAL_EVENTS).events, LINES + 1);
    assert_string_equal(verify(), "");
}

static void the_sealer_does_not_seal_for_its_own_lines_alone(void **state)
{
    struct hf__sealed sealed;
    (void)state;
    seal_all(HF__SEAL_EVENTS);
    hf_id sealer = trigger(WORK);
    assert_ok(hf__seal_next(fx.client->engine, sealer, 100, &sealed, &fx.error));
    assert_int_equal(sealed.events, 0);
    assert_false(sealed.more);
    seal_all(HF__SEAL_EVENTS);
}

static void *seal_beside(void *arg)
{
    hf_client *client = arg;
    for (int i = 0; i < 50; i++) {
        struct hf__sealed sealed;
        hf_error err;
        if (hf__seal_next(client->engine, (hf_id){ { 0 } }, 3, &sealed, &err) != HF_OK)
            return client;
    }
    return NULL;
}

static void two_sealers_at_once_make_one_chain(void **state)
{
    pthread_t threads[2];
    (void)state;
    for (int i = 0; i < 60; i++)
        trigger(WORK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, seal_beside, fx.client), 0);
    for (int i = 0; i < 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    seal_all(3);
    assert_string_equal(verify(), "");
}

/* ---- Late commits, PostgreSQL ---- */

enum { WRITERS = 4, RUNS = 3, STEPS = 60, SEEDS = 25 };

struct writer {
    PGconn *conn;
    bool open;
    bool holds[RUNS];
};

static void tell(PGconn *conn, const char *text)
{
    PGresult *result = PQexec(conn, text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", text, PQerrorMessage(conn));
    PQclear(result);
}

static void finish(struct writer *writer, bool commits)
{
    tell(writer->conn, commits ? "COMMIT" : "ROLLBACK");
    writer->open = false;
    memset(writer->holds, 0, sizeof writer->holds);
}

static bool is_held(const struct writer *writers, const struct writer *me, int run)
{
    for (int i = 0; i < WRITERS; i++)
        if (&writers[i] != me && writers[i].holds[run])
            return true;
    return false;
}

static void write_line(struct writer *writer, hf_id run)
{
    tell(writer->conn,
         text_of("WITH r AS (UPDATE holdfast.run SET event_seq = event_seq + 1 WHERE id = %s "
                 "RETURNING *) INSERT INTO holdfast.event (run_id, seq, version, tenant_id, at, "
                 "kind, name) SELECT id, event_seq, version, tenant_id, 0, 1, 'line' FROM r",
                 sql_id(run)));
}

/* One draw: somebody begins (and has a number from then on), writes, commits, gives up; or a block is sealed. */
static void draw(struct writer *writers, const hf_id *runs, struct hf__random *random)
{
    struct writer *writer = &writers[hf__random_below(random, WRITERS)];
    int run = (int)hf__random_below(random, RUNS);
    switch (hf__random_below(random, 6)) {
    case 0: seal(1 + (int)hf__random_below(random, 5)); break;
    case 1:
        if (writer->open)
            finish(writer, hf__random_below(random, 4) != 0);
        break;
    default:
        if (!writer->open)
            tell(writer->conn, "BEGIN; SELECT pg_current_xact_id()");
        writer->open = true;
        if (!is_held(writers, writer, run)) {
            write_line(writer, runs[run]);
            writer->holds[run] = true;
        }
    }
}

/* Every event is in one block, and blocks follow each run's own order. None of these runs was there before `first`. */
static void expect_all_sealed_in_order(const hf_id *runs, int64_t first)
{
    int64_t next[RUNS] = { 1, 1, 1 };
    for (int64_t block = first, last = last_block(); block <= last; block++) {
        struct hf__arena arena = { 0 };
        struct hf__block read;
        bool good;
        hf__block_init(&read, &arena);
        assert_ok(hf__block_parse(
            &read, sql_text("SELECT runs FROM seal WHERE block = %lld", (long long)block), &good,
            &fx.error));
        assert_true(good);
        for (int i = 0; i < RUNS; i++) {
            const struct hf__block_run *run = hf__idmap_get(&read.by_id, runs[i]);
            for (size_t k = 0; run && k < run->count; k++)
                assert_int_equal(run->events[k].seq, next[i]++);
        }
        hf__block_free(&read);
        hf__arena_free(&arena);
    }
    for (int i = 0; i < RUNS; i++)
        assert_int_equal(next[i] - 1,
                         sql_number("SELECT event_seq FROM run WHERE id = %s", sql_id(runs[i])));
}

static void late_commits_are_sealed_and_in_each_runs_order(void **state)
{
    struct writer writers[WRITERS] = { 0 };
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    for (int i = 0; i < WRITERS; i++) {
        writers[i].conn = PQconnectdb(fx.url);
        assert_int_equal(PQstatus(writers[i].conn), CONNECTION_OK);
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct hf__random random;
        hf_id runs[RUNS];
        hf__random_seed(&random, seed);
        int64_t first = last_block() + 1;
        for (int i = 0; i < RUNS; i++)
            runs[i] = trigger(WORK);
        for (int i = 0; i < STEPS; i++)
            draw(writers, runs, &random);
        for (int i = 0; i < WRITERS; i++)
            if (writers[i].open)
                finish(&writers[i], true);
        seal_all(3);
        expect_all_sealed_in_order(runs, first);
    }
    assert_string_equal(verify(), "");
    for (int i = 0; i < WRITERS; i++)
        PQfinish(writers[i].conn);
}

/* One line, then one that comes after a line far behind it: the first block has no more than that one line. */
static void a_block_that_the_order_cuts_short_leaves_more(void **state)
{
    (void)state;
    if (fx.backend != BACKEND_POSTGRES)
        skip();
    seal_all(HF__SEAL_EVENTS);
    trigger(WORK);
    PGconn *late = PQconnectdb(fx.url);
    tell(late, "BEGIN; SELECT pg_current_xact_id()");
    for (int i = 0; i < 6; i++)
        trigger(WORK);
    hf_id run = trigger(WORK);
    write_line(&(struct writer){ .conn = late }, run);
    tell(late, "COMMIT");
    PQfinish(late);
    await_others();
    struct hf__sealed sealed = seal(4);
    assert_int_equal(sealed.events, 1);
    assert_true(sealed.more);
    sealed = seal(100);
    assert_int_equal(sealed.events, 8);
    assert_false(sealed.more);
    assert_string_equal(verify(), "");
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(seals_are_refused_to_everybody_else),
    CONTRACT_TEST(an_untouched_journal_is_good),
    CONTRACT_TEST(what_is_not_sealed_yet_is_counted),
    CONTRACT_TEST(a_changed_event_is_named_whatever_was_changed),
    CONTRACT_TEST(a_changed_sequence_is_one_removed_and_one_inserted),
    CONTRACT_TEST(a_removed_event_is_named),
    CONTRACT_TEST(removing_all_events_of_a_run_is_found),
    CONTRACT_TEST(an_event_slipped_into_a_sealed_block_is_named),
    CONTRACT_TEST(events_of_a_run_that_was_removed_are_found),
    CONTRACT_TEST(a_purge_leaves_the_journal_good),
    CONTRACT_TEST(a_purge_beside_it_does_not_disturb),
    CONTRACT_TEST(a_changed_seal_is_found_whatever_was_changed),
    CONTRACT_TEST(a_removed_seal_is_found),
    CONTRACT_TEST(a_seal_made_anew_breaks_the_chain),
    CONTRACT_TEST(a_chain_that_was_cut_off_is_found_by_a_noted_head),
    CONTRACT_TEST(blocks_are_bounded),
    CONTRACT_TEST(a_block_of_several_pages_has_all_its_lines),
    CONTRACT_TEST(the_sealer_does_not_seal_for_its_own_lines_alone),
    CONTRACT_TEST(two_sealers_at_once_make_one_chain),
    CONTRACT_TEST(late_commits_are_sealed_and_in_each_runs_order),
    CONTRACT_TEST(a_block_that_the_order_cuts_short_leaves_more),
};
CONTRACT("audit", tests)

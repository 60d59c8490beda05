/* Client roles: what a role of the database that is a client of one tenant can see and do in plain SQL, and all the
 * ways by which it does not come to more. F6.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sql/clients.h"

#include <holdfast/outbox.h>

#include "store/postgres.h"

#include <string.h>

static const char *const hidden[] = { "api_token",  "subscription", "client_role", "seal",
                                      "worker",     "host_lock",    "lane",        "schedule",
                                      "projection", "engine_lock" };

/* ---- What it can do ---- */

static void a_client_role_sees_its_tenant_and_nothing_else(void **state)
{
    (void)state;
    expect_only_acme(acme);
    assert_int_equal(pg_number(acme, "SELECT count(*) FROM holdfast.run WHERE id = '%s'", theirs),
                     0);
    assert_int_equal(pg_number(acme, "SELECT due FROM holdfast.workflows"), 1);
    PGconn *beta = connect_as(beta_role);
    assert_string_equal(pg_text(beta, "SELECT id::text FROM holdfast.runs"), theirs);
    PQfinish(beta);
}

static void a_client_role_acts_in_its_tenant_without_naming_it(void **state)
{
    (void)state;
    const char *id = pg_text(acme, "SELECT holdfast.trigger('work', '1')");
    assert_string_equal(pg_text(acme, "SELECT tenant FROM holdfast.runs WHERE id = '%s'", id),
                        "acme");
    pg_do(acme, "SELECT holdfast.trigger('work', '{}'::jsonb, tenant => 'acme')");
    pg_do(acme, "SELECT holdfast.signal('%s', 'go', '{}'::json)", id);
    pg_do(acme, "SELECT holdfast.signal('%s', 'go', tenant => 'acme')", ours);
    pg_do(acme, "SELECT holdfast.cancel('%s')", id);
    assert_string_equal(pg_text(scratch.pg, "SELECT actor FROM holdfast.run WHERE id = '%s'", id),
                        acme_role);
    /* the same key is another run in the other tenant, and is not told of */
    assert_string_equal(pg_text(acme, "SELECT holdfast.trigger('work', '\"of acme\"', key => 'k')"),
                        ours);
}

static void serve(const char *tenant, const char *pattern)
{
    pg_do(
        scratch.pg,
        "INSERT INTO holdfast.worker (name, tenants, serves, host, pid, program, threads, "
        "started_at, seen_at, expires_at) VALUES ('of %s', '[\"%s\"]', '[\"%s\"]', 'h', 1, 'p', 1, "
        "0, 0, 9000000000000000)",
        tenant, tenant, pattern);
}

/* Another tenant is refused before anybody looks at its workers; "default" stands for one's own. */
static void a_worker_that_is_required_is_one_of_the_callers_tenant(void **state)
{
    (void)state;
    static const char trigger[] = "SELECT holdfast.trigger('work', require_worker => true%s)";
    serve("beta", "*");
    serve("default", "*");
    assert_string_equal(pg_refusal(acme, trigger, ""), NO_WORKER);
    assert_string_equal(pg_refusal(acme, trigger, ", tenant => 'acme'"), NO_WORKER);
    assert_string_equal(pg_refusal(acme, trigger, ", tenant => 'beta'"), NOT_FOUND);
    assert_string_equal(pg_refusal(acme, trigger, ", tenant => 'nobody'"), NOT_FOUND);
    serve("acme", "wor*");
    pg_do(acme, trigger, "");
    pg_do(scratch.pg, "DELETE FROM holdfast.worker WHERE name LIKE 'of %%'");
}

static void a_client_role_cannot_act_in_another_tenant(void **state)
{
    (void)state;
    static const char *const tenants[] = { "'beta'", "'*'", "'nobody'", "NULL", "''" };
    for (size_t i = 0; i < COUNT(tenants); i++) {
        const char *t = tenants[i];
        assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work', tenant => %s)", t),
                            NOT_FOUND);
        assert_string_equal(
            pg_refusal(acme, "SELECT holdfast.trigger('work', '1'::jsonb, tenant => %s)", t),
            NOT_FOUND);
        assert_string_equal(
            pg_refusal(acme, "SELECT holdfast.signal('%s', 'x', tenant => %s)", theirs, t),
            NOT_FOUND);
        assert_string_equal(
            pg_refusal(acme, "SELECT holdfast.cancel('%s', tenant => %s)", theirs, t), NOT_FOUND);
    }
    /* by its id alone */
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.signal('%s', 'x')", theirs), NOT_FOUND);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.signal('%s', 'x', '1'::jsonb)", theirs),
                        NOT_FOUND);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.cancel('%s')", theirs), NOT_FOUND);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run r JOIN "
                                           "holdfast.tenant t ON t.id = r.tenant_id "
                                           "WHERE t.name = 'beta' AND r.status = 0"),
                     1);
    assert_int_equal(
        pg_number(scratch.pg, "SELECT count(*) FROM holdfast.signal WHERE run_id = '%s'", theirs),
        1);
}

/* A task's answer, a child's end and so on come as mail of these types. */
static void a_client_role_cannot_answer_for_a_person(void **state)
{
    static const char *const types[] = { "child", "continue", "retry", "task", "timer" };
    static const char *const ids[] = { "child:1", "requeue:1", "timer:1" };
    static const char *const payloads[] = { "'{}'", "'{}'::json", "'{}'::jsonb" };
    (void)state;
    int64_t before = pg_number(scratch.pg, "SELECT count(*) FROM holdfast.event");
    for (size_t i = 0; i < COUNT(payloads); i++) {
        for (size_t j = 0; j < COUNT(types); j++)
            assert_string_equal(
                pg_refusal(acme, "SELECT holdfast.signal('%s', 'approval', %s, type => '%s')", ours,
                           payloads[i], types[j]),
                "HF001");
        for (size_t j = 0; j < COUNT(ids); j++)
            assert_string_equal(
                pg_refusal(acme, "SELECT holdfast.signal('%s', 'approval', %s, id => '%s')", ours,
                           payloads[i], ids[j]),
                "HF001");
    }
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.event"), before);
}

static void a_client_role_steers_no_schedule(void **state)
{
    (void)state;
    hf_client *client = NULL;
    hf_run *run = NULL;
    hf_schedule_spec spec = HF_SCHEDULE_INIT;
    spec.name = "nightly";
    spec.workflow = "work";
    spec.cron = "@daily";
    assert_ok(hf_open_as(&client, root, "acme", "tester", err));
    assert_ok(hf_schedule_set(client, &spec, err));
    assert_ok(hf_get_by_key(client, &run, "holdfast.schedule", spec.name, err));
    char id[HF_ID_TEXT];
    hf_id_format(run->id, id);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.signal('%s', 'set', '{}')", id), "HF007");
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.signal('%s', 'set', '{}'::jsonb)", id),
                        "HF007");
    assert_int_equal(
        pg_number(scratch.pg, "SELECT count(*) FROM holdfast.signal WHERE run_id = '%s'", id), 0);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.cancel('%s')", id), "HF007");
    assert_int_equal(pg_number(scratch.pg, "SELECT status FROM holdfast.run WHERE id = '%s'", id),
                     HF_WAITING);
    hf_run_free(run);
    hf_close(client);
}

static void a_disabled_tenants_client_triggers_nothing(void **state)
{
    (void)state;
    assert_ok(hf_tenant_disable(root, "acme", true, err));
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work')"), "HF012");
}

static void a_reader_reads_and_does_nothing(void **state)
{
    (void)state;
    assert_ok(hf_tenant_grant(root, "acme", acme_role, true, err));
    expect_only_acme(acme);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work')"), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.signal('%s', 'x')", ours), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.cancel('%s')", ours), DENIED);
    assert_ok(hf_tenant_grant(root, "acme", acme_role, false, err));
    pg_do(acme, "SELECT holdfast.cancel('%s')", ours);
}

static void a_role_of_all_tenants_reads_them_all(void **state)
{
    (void)state;
    assert_ok(hf_tenant_grant(root, "*", other_role, true, err));
    PGconn *analyst = connect_as(other_role);
    assert_string_equal(
        pg_text(analyst, "SELECT string_agg(tenant, ' ' ORDER BY tenant) FROM holdfast.runs"),
        "acme beta");
    pg_do(analyst, "SELECT * FROM holdfast.workers");
    assert_string_equal(pg_refusal(analyst, "SELECT holdfast.trigger('work', tenant => 'beta')"),
                        DENIED);
    assert_string_equal(pg_refusal(analyst, "SELECT hash FROM holdfast.api_token"), DENIED);
    PQfinish(analyst);
}

/* ---- What it tries ---- */

static void settings_open_nothing(void **state)
{
    (void)state;
    pg_do(acme, "SET row_security = off");
    assert_string_equal(pg_refusal(acme, "SELECT * FROM holdfast.run"), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT * FROM holdfast.runs"), DENIED);
    pg_do(acme, "RESET row_security");
    pg_do(acme, "SET holdfast.tenant = 'beta'; SET holdfast.tenant_id = '3'");
    pg_do(acme, "SET application_name = 'holdfast'");
    expect_only_acme(acme);
    assert_string_equal(pg_refusal(acme, "SET session_replication_role = replica"), DENIED);
    assert_string_equal(pg_refusal(acme, "SET SESSION AUTHORIZATION %s", beta_role), DENIED);
    assert_string_equal(pg_refusal(acme, "SET ROLE %s", beta_role), DENIED);
    assert_string_equal(pg_refusal(acme, "ALTER ROLE %s BYPASSRLS", acme_role), DENIED);
}

/* Who it logged in as is what counts, even where it may become somebody else. */
static void another_role_in_the_same_session_opens_nothing(void **state)
{
    (void)state;
    pg_do(scratch.pg, "GRANT %s TO %s", beta_role, acme_role);
    expect_only_acme(acme);
    pg_do(acme, "SET ROLE %s", beta_role);
    expect_only_acme(acme);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.cancel('%s')", theirs), NOT_FOUND);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work', tenant => 'beta')"),
                        NOT_FOUND);
}

static void a_member_of_a_client_role_is_no_client(void **state)
{
    (void)state;
    pg_do(scratch.pg, "GRANT %s, %s TO %s", acme_role, beta_role, other_role);
    PGconn *member = connect_as(other_role);
    assert_int_equal(pg_number(member, "SELECT count(*) FROM holdfast.run"), 0);
    assert_int_equal(pg_number(member, "SELECT count(*) FROM holdfast.runs"), 0);
    assert_string_equal(pg_refusal(member, "SELECT holdfast.trigger('work', tenant => 'beta')"),
                        DENIED);
    assert_string_equal(
        pg_refusal(member, "SELECT holdfast.cancel('%s', tenant => 'beta')", theirs), DENIED);
    pg_do(member, "SET ROLE %s", beta_role);
    assert_int_equal(pg_number(member, "SELECT count(*) FROM holdfast.run"), 0);
    PQfinish(member);
}

static void rights_given_by_hand_do_not_lead_out_of_the_tenant(void **state)
{
    (void)state;
    pg_do(scratch.pg, "GRANT ALL ON ALL TABLES IN SCHEMA holdfast TO %s", acme_role);
    expect_only_acme(acme);
    assert_int_equal(pg_number(acme, "SELECT count(*) FROM holdfast.api_token"), 1);
    assert_int_equal(pg_number(acme, "WITH u AS (UPDATE holdfast.signal SET name = 'x' "
                                     "RETURNING 1) SELECT count(*) FROM u"),
                     1);
    assert_int_equal(pg_number(acme, "WITH u AS (DELETE FROM holdfast.task RETURNING 1) "
                                     "SELECT count(*) FROM u"),
                     1);
    assert_string_equal(pg_refusal(acme, "UPDATE holdfast.signal SET tenant_id = tenant_id + 1"),
                        DENIED);
    assert_string_equal(pg_refusal(acme, "INSERT INTO holdfast.run_tag SELECT tenant_id + 1, 'x', "
                                         "run_id FROM holdfast.run_tag"),
                        DENIED);
    assert_string_equal(pg_refusal(acme, "INSERT INTO holdfast.tenant (name) VALUES ('mine')"),
                        DENIED);
}

static void a_role_that_was_given_tables_and_no_tenant_sees_nothing(void **state)
{
    (void)state;
    pg_do(scratch.pg,
          "GRANT USAGE ON SCHEMA holdfast TO %s; GRANT SELECT ON ALL TABLES IN SCHEMA holdfast TO "
          "%s",
          other_role, other_role);
    PGconn *stranger = connect_as(other_role);
    for (size_t i = 0; i < readable_count; i++)
        assert_int_equal(pg_number(stranger, "SELECT count(*) FROM holdfast.%s", readable[i]), 0);
    assert_int_equal(pg_number(stranger, "SELECT count(*) FROM holdfast.api_token"), 0);
    PQfinish(stranger);
}

static void tables_cannot_be_written_or_emptied(void **state)
{
    (void)state;
    for (size_t i = 0; i < readable_count; i++) {
        const char *table = readable[i];
        assert_string_equal(pg_refusal(acme, "DELETE FROM holdfast.%s", table), DENIED);
        assert_string_equal(pg_refusal(acme, "TRUNCATE holdfast.%s", table), DENIED);
        assert_string_equal(pg_refusal(acme, "INSERT INTO holdfast.%s DEFAULT VALUES", table),
                            DENIED);
        assert_string_equal(pg_refusal(acme, "COPY holdfast.%s FROM STDIN", table), DENIED);
        assert_string_equal(pg_refusal(acme, "SELECT * FROM holdfast.%s FOR UPDATE", table),
                            DENIED);
        assert_string_equal(
            pg_refusal(acme, "DO $$BEGIN LOCK TABLE holdfast.%s IN ROW EXCLUSIVE MODE; END$$",
                       table),
            DENIED);
        assert_string_equal(
            pg_refusal(acme, "ALTER TABLE holdfast.%s DISABLE ROW LEVEL SECURITY", table), DENIED);
        assert_string_equal(pg_refusal(acme, "CREATE POLICY p ON holdfast.%s USING (true)", table),
                            DENIED);
        assert_string_equal(pg_refusal(acme, "DROP POLICY own_tenant ON holdfast.%s", table),
                            DENIED);
    }
    assert_string_equal(pg_refusal(acme, "UPDATE holdfast.run SET status = 4"), DENIED);
    assert_string_equal(pg_refusal(acme, "UPDATE holdfast.event SET name = 'x'"), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT nextval('holdfast.event_position')"), DENIED);
}

static void views_cannot_be_written(void **state)
{
    (void)state;
    assert_string_not_equal(pg_refusal(acme, "UPDATE holdfast.runs SET status = 'failed'"), "");
    assert_string_not_equal(pg_refusal(acme, "DELETE FROM holdfast.runs"), "");
    assert_string_not_equal(pg_refusal(acme, "INSERT INTO holdfast.events (run) VALUES (NULL)"),
                            "");
    /* a view of its own has no more rights than itself */
    pg_do(acme, "CREATE TEMP VIEW mine AS SELECT * FROM holdfast.run");
    assert_int_equal(pg_number(acme, "SELECT count(*) FROM mine"), 1);
    assert_string_equal(pg_refusal(acme, "UPDATE mine SET status = 4"), DENIED);
}

static void what_is_nobodys_business_cannot_be_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(hidden); i++)
        assert_string_equal(pg_refusal(acme, "SELECT 1 FROM holdfast.%s", hidden[i]), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT 1 FROM holdfast.workers"), DENIED);
    assert_string_equal(
        pg_refusal(acme, "INSERT INTO holdfast.client_role (role) VALUES ('%s')", acme_role),
        DENIED);
    assert_string_equal(pg_refusal(acme, "UPDATE holdfast.client_role SET tenant_id = NULL"),
                        DENIED);
}

static void copying_out_copies_the_own_rows(void **state)
{
    (void)state;
    char *line = NULL;
    int lines = 0;
    PQclear(PQexec(acme, "COPY holdfast.run TO STDOUT"));
    for (int length; (length = PQgetCopyData(acme, &line, 0)) > 0; lines++) {
        assert_null(strstr(line, "of beta"));
        PQfreemem(line);
    }
    PQclear(PQgetResult(acme));
    assert_int_equal(lines, 1);
}

/* A function in WHERE that would see rows before the policy does, were it called first. */
static void a_leaky_function_sees_no_more_than_the_policy_lets_through(void **state)
{
    (void)state;
    pg_do(acme,
          "CREATE TEMP TABLE seen (what text);"
          "CREATE FUNCTION pg_temp.leak(what text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 "
          "AS $$BEGIN INSERT INTO seen VALUES (what); RETURN true; END$$;"
          "CREATE OPERATOR pg_temp.<<< (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)");
    pg_do(acme, "SELECT * FROM holdfast.run WHERE pg_temp.leak(input)");
    pg_do(acme, "SELECT * FROM holdfast.runs WHERE pg_temp.leak(input::text)");
    pg_do(acme, "SELECT * FROM holdfast.events WHERE pg_temp.leak(tenant)");
    pg_do(acme, "SELECT * FROM holdfast.run r JOIN holdfast.tenant t ON pg_temp.leak(t.name)");
    pg_do(acme, "SELECT DISTINCT ON (pg_temp.leak(name)) name FROM holdfast.tenant");
    assert_true(pg_number(acme, "SELECT count(*) FROM seen") > 3);
    assert_int_equal(pg_number(acme, "SELECT count(*) FROM seen WHERE what ~ 'beta'"), 0);
    /* errors that depend on rows */
    pg_do(acme, "SELECT 1 / (CASE WHEN input ~ 'beta' THEN 0 ELSE 1 END) FROM holdfast.run");
    pg_do(acme, "SELECT * FROM holdfast.run WHERE 1 / (CASE WHEN input ~ 'beta' THEN 0 ELSE 1 END) "
                "= 1");
}

static void plans_and_statistics_show_no_values(void **state)
{
    (void)state;
    pg_do(scratch.pg, "ANALYZE holdfast.run; ANALYZE holdfast.tenant; ANALYZE holdfast.event");
    assert_int_equal(pg_number(acme,
                               "SELECT count(*) FROM pg_stats WHERE schemaname = 'holdfast' AND "
                               "tablename IN ('run', 'tenant', 'event')"),
                     0);
    assert_string_equal(pg_refusal(acme, "SELECT 1 FROM pg_statistic"), DENIED);
    PGresult *plan = PQexec(acme, "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM holdfast.runs");
    assert_int_equal(PQresultStatus(plan), PGRES_TUPLES_OK);
    for (int i = 0; i < PQntuples(plan); i++)
        assert_null(strstr(PQgetvalue(plan, i, 0), "beta"));
    PQclear(plan);
}

static void functions_of_its_own_are_not_taken_for_the_engines(void **state)
{
    (void)state;
    pg_do(scratch.pg, "GRANT CREATE ON DATABASE %s TO %s", scratch.database, acme_role);
    pg_do(acme,
          "CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;"
          "CREATE FUNCTION evil.to_regrole(text) RETURNS regrole LANGUAGE sql AS "
          "$$SELECT pg_catalog.to_regrole('%s')$$;"
          "CREATE FUNCTION evil.quote_ident(name) RETURNS text LANGUAGE sql AS $$SELECT '%s'$$;"
          "CREATE FUNCTION evil.has_table_privilege(name, text, text) RETURNS boolean LANGUAGE sql "
          "AS $$SELECT true$$;"
          "CREATE FUNCTION evil.visible_tenants() RETURNS int[] LANGUAGE sql AS "
          "$$SELECT '{1,2,3,4,5}'::int[]$$;"
          "CREATE FUNCTION evil.alike(int, int) RETURNS boolean LANGUAGE sql AS $$SELECT true$$;"
          "CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.alike);"
          "CREATE TEMP TABLE client_role (role regrole, tenant_id int, read_only boolean);"
          "CREATE TEMP TABLE tenant (id int, name text, disabled boolean);"
          "INSERT INTO client_role VALUES ('%s', NULL, false);"
          "SET search_path = evil, pg_temp, pg_catalog",
          beta_role, beta_role, acme_role);
    assert_string_equal(
        pg_text(acme, "SELECT pg_catalog.string_agg(tenant, ' ') FROM holdfast.runs"), "acme");
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.cancel('%s')", theirs), NOT_FOUND);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work', tenant => 'beta')"),
                        NOT_FOUND);
    assert_string_equal(pg_refusal(acme, "CREATE FUNCTION holdfast.mine() RETURNS int LANGUAGE sql "
                                         "AS $$SELECT 1$$"),
                        DENIED);
    assert_string_equal(pg_refusal(acme, "CREATE OR REPLACE FUNCTION holdfast.caller_tenant() "
                                         "RETURNS int LANGUAGE sql AS $$SELECT 0$$"),
                        DENIED);
}

/* Those that run with their owner's rights must ask who calls; the others have no rights to lend. */
static void the_engines_own_functions_lend_no_rights(void **state)
{
    (void)state;
    int tenant = (int)pg_number(scratch.pg, "SELECT id FROM holdfast.tenant WHERE name = 'beta'");
    int flow =
        (int)pg_number(scratch.pg, "SELECT id FROM holdfast.workflow WHERE tenant_id = %d", tenant);
    pg_do(scratch.pg,
          "INSERT INTO holdfast.lane (id, tenant_id, workflow_id, flow_key) VALUES "
          "(999, %d, %d, 'secret')",
          tenant, flow);
    assert_int_equal(pg_number(acme, "SELECT count(*) FROM holdfast.lanes_of(%d)", flow), 0);
    assert_int_equal(pg_number(scratch.pg,
                               "SELECT count(*) FROM holdfast.lane WHERE tenant_id = %d "
                               "AND flow_key = 'secret'",
                               tenant),
                     1);
    assert_int_equal(pg_number(acme, "SELECT count(holdfast.flow_key_of(n)) FROM "
                                     "generate_series(1, 1000) AS n"),
                     0);
    assert_string_equal(pg_text(acme, "SELECT name FROM holdfast.tenant WHERE id = ANY "
                                      "(holdfast.visible_tenants())"),
                        "acme");
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.tenant_grant('beta', '%s')", acme_role),
                        DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.tenant_revoke('acme', '%s')", acme_role),
                        DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.give_client_rights('%s')", acme_role),
                        DENIED);
    assert_string_equal(pg_refusal(acme,
                                   "SELECT holdfast.journal(%d, '%s', 99, 1, 0, 'x', 'y', "
                                   "NULL)",
                                   tenant, theirs),
                        DENIED);
    assert_string_equal(
        pg_refusal(acme, "SELECT holdfast.start_cancel_children(%d, '%s')", tenant, theirs),
        DENIED);
    assert_string_equal(
        pg_text(scratch.pg,
                "SELECT string_agg(DISTINCT proname, ' ' ORDER BY proname) FROM pg_proc "
                "WHERE pronamespace = 'holdfast'::regnamespace AND prosecdef"),
        "caller_tenant cancel flow_key_of lanes_of signal trigger visible_tenants");
    assert_int_equal(pg_number(scratch.pg,
                               "SELECT count(*) FROM pg_proc WHERE pronamespace = "
                               "'holdfast'::regnamespace AND prosecdef AND NOT coalesce("
                               "'search_path=pg_catalog, pg_temp' = ANY (proconfig), false)"),
                     0);
}

/* ---- Standing in the engine's way ---- */

/* Emits an event of beta's that somebody subscribed to, from a workflow with limits. */
static hf_code work_with_events(void)
{
    static const char *const pattern = "work";
    hf_workflow limited = { .name = "work", .max_running = 1 };
    hf_subscription_spec subscription = HF_SUBSCRIPTION_INIT;
    hf_new_outbox event = { .type = "order.paid" };
    hf_transition turn = { .version = HF_TRANSITION_VERSION };
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    char secret[HF_SECRET_TEXT];
    hf_error error;
    subscription.name = "shop";
    subscription.url = "http://127.0.0.1:9/";
    assert_ok(hf_workflow_put(beta_client, &limited, HF_SET_MAX_RUNNING, err));
    assert_ok(hf_subscription_put(beta_client, &subscription, secret, err));
    spec.worker = "w";
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    spec.limit = 1;
    hf_code code = hf_claim(beta_client, &claims, &spec, &error);
    if (code != HF_OK)
        return code;
    assert_int_equal(claims->count, 1);
    turn.run = claims->items[0].run.id;
    turn.run_version = claims->items[0].run.version;
    turn.worker = "w";
    turn.turn = HF_TURN_SUCCEED;
    turn.outbox = &event;
    turn.outbox_count = 1;
    code = hf_commit(beta_client, &turn, NULL, &error);
    hf_claims_free(claims);
    return code;
}

/* Locks by number are everybody's. */
static void locks_by_number_stop_no_other_tenant(void **state)
{
    (void)state;
    pg_do(acme, "SELECT pg_advisory_lock(1215653446, n), pg_advisory_lock(1215653447, n) FROM "
                "generate_series(1, 20) n");
    pg_do(acme, "SELECT pg_advisory_lock(7525352680829580148)");
    assert_ok(work_with_events());
    assert_ok(hf_subscription_delete(beta_client, "shop", err));
}

/* So that the next lock is none either. */
static void the_engine_takes_no_lock_by_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF__STMT_COUNT; i++)
        if (hf__postgres_statements[i].sql && strstr(hf__postgres_statements[i].sql, "advisory"))
            fail_msg("%s takes one", hf__postgres_statements[i].name);
    assert_int_equal(pg_number(scratch.pg,
                               "SELECT count(*) FROM pg_proc WHERE pronamespace = "
                               "'holdfast'::regnamespace AND prosrc LIKE '%%advisory%%'"),
                     0);
}

static void what_the_engine_locks_cannot_be_locked_by_a_client(void **state)
{
    static const char *const strengths[] = { "UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE" };
    static const char *const modes[] = { "ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE",
                                         "SHARE",     "EXCLUSIVE",     "ACCESS EXCLUSIVE" };
    (void)state;
    for (size_t i = 0; i < COUNT(strengths); i++) {
        assert_string_equal(
            pg_refusal(acme, "SELECT 1 FROM holdfast.engine_lock FOR %s", strengths[i]), DENIED);
        assert_string_equal(
            pg_refusal(acme, "SELECT 1 FROM holdfast.schema_version FOR %s", strengths[i]), DENIED);
        for (size_t j = 0; j < readable_count; j++)
            assert_string_equal(pg_refusal(acme, "SELECT 1 FROM holdfast.%s LIMIT 1 FOR %s",
                                           readable[j], strengths[i]),
                                DENIED);
    }
    assert_string_equal(
        pg_refusal(acme, "DO $$BEGIN LOCK TABLE holdfast.engine_lock IN ACCESS SHARE MODE; END$$"),
        DENIED);
    for (size_t i = 0; i < COUNT(modes); i++) {
        assert_string_equal(
            pg_refusal(acme, "DO $$BEGIN LOCK TABLE holdfast.schema_version IN %s MODE; END$$",
                       modes[i]),
            DENIED);
        for (size_t j = 0; j < readable_count; j++)
            assert_string_equal(pg_refusal(acme,
                                           "DO $$BEGIN LOCK TABLE holdfast.%s IN %s MODE; END$$",
                                           readable[j], modes[i]),
                                DENIED);
    }
}

/* Channels have no owner: anybody may notify. A forged wake-up is a look for work and nothing else. */
static void a_forged_notification_harms_nobody(void **state)
{
    (void)state;
    static const char *const forged[] = { "1", "!workflows", "-1", "99999999999", "x@y", "" };
    const char *pattern = "work";
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    hf_run *run = NULL;
    hf_id id;
    hf_error error;
    assert_true(hf_id_parse(theirs, &id));
    for (size_t i = 0; i < COUNT(forged); i++) {
        pg_do(acme, "SELECT pg_notify('holdfast_wake', '%s')", forged[i]);
        pg_do(acme, "SELECT pg_notify('holdfast_run', '%s')", forged[i]);
    }
    pg_do(acme, "SELECT pg_notify('holdfast_run', replace('%s', '-', ''))", theirs);
    assert_int_equal(hf_wait(beta_client, &run, id, HF_MILLISECONDS(50), &error), HF_TIMEOUT);
    spec.worker = "w";
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    spec.limit = 10;
    assert_ok(hf_claim(beta_client, &claims, &spec, err));
    assert_int_equal(claims->count, 1);
    hf_claims_free(claims);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENTS_TEST(a_client_role_sees_its_tenant_and_nothing_else),
        CLIENTS_TEST(a_client_role_acts_in_its_tenant_without_naming_it),
        CLIENTS_TEST(a_worker_that_is_required_is_one_of_the_callers_tenant),
        CLIENTS_TEST(a_client_role_cannot_act_in_another_tenant),
        CLIENTS_TEST(a_client_role_cannot_answer_for_a_person),
        CLIENTS_TEST(a_client_role_steers_no_schedule),
        CLIENTS_TEST(a_disabled_tenants_client_triggers_nothing),
        CLIENTS_TEST(a_reader_reads_and_does_nothing),
        CLIENTS_TEST(a_role_of_all_tenants_reads_them_all),
        CLIENTS_TEST(settings_open_nothing),
        CLIENTS_TEST(another_role_in_the_same_session_opens_nothing),
        CLIENTS_TEST(a_member_of_a_client_role_is_no_client),
        CLIENTS_TEST(rights_given_by_hand_do_not_lead_out_of_the_tenant),
        CLIENTS_TEST(a_role_that_was_given_tables_and_no_tenant_sees_nothing),
        CLIENTS_TEST(tables_cannot_be_written_or_emptied),
        CLIENTS_TEST(views_cannot_be_written),
        CLIENTS_TEST(what_is_nobodys_business_cannot_be_read),
        CLIENTS_TEST(copying_out_copies_the_own_rows),
        CLIENTS_TEST(a_leaky_function_sees_no_more_than_the_policy_lets_through),
        CLIENTS_TEST(plans_and_statistics_show_no_values),
        CLIENTS_TEST(functions_of_its_own_are_not_taken_for_the_engines),
        CLIENTS_TEST(the_engines_own_functions_lend_no_rights),
        CLIENTS_TEST(locks_by_number_stop_no_other_tenant),
        CLIENTS_TEST(the_engine_takes_no_lock_by_number),
        CLIENTS_TEST(what_the_engine_locks_cannot_be_locked_by_a_client),
        CLIENTS_TEST(a_forged_notification_harms_nobody),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests_name("client_roles", tests, NULL, NULL);
}

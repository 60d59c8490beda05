/* Granting tenants to roles of the database and taking them back; and what row-level security leaves as it was. F6.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sql/clients.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"

/* ---- Granting and revoking ---- */

static void a_revoked_role_can_do_nothing_at_once(void **state)
{
    (void)state;
    hf_error error;
    assert_ok(hf_tenant_revoke(root, "acme", acme_role, err));
    assert_string_equal(pg_refusal(acme, "SELECT 1 FROM holdfast.run"), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT 1 FROM holdfast.runs"), DENIED);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work')"), DENIED);
    assert_int_equal(hf_tenant_revoke(root, "acme", acme_role, &error), HF_NOT_FOUND);
    assert_int_equal(hf_tenant_revoke(root, "acme", beta_role, &error), HF_NOT_FOUND);
    PGconn *beta = connect_as(beta_role);
    assert_int_equal(pg_number(beta, "SELECT count(*) FROM holdfast.run"), 1);
    PQfinish(beta);
}

static void a_renamed_role_stays_in_its_tenant(void **state)
{
    (void)state;
    PQfinish(acme);
    pg_do(scratch.pg, "ALTER ROLE %s RENAME TO %s_2", acme_role, acme_role);
    strcat(acme_role, "_2");
    acme = connect_as(acme_role);
    expect_only_acme(acme);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.trigger('work', tenant => 'beta')"),
                        NOT_FOUND);
}

static void a_role_belongs_to_one_tenant(void **state)
{
    (void)state;
    hf_error error;
    assert_int_equal(hf_tenant_grant(root, "beta", acme_role, false, &error), HF_CONFLICT);
    assert_int_equal(hf_tenant_grant(root, "*", acme_role, false, &error), HF_CONFLICT);
    assert_ok(hf_tenant_grant(root, "acme", acme_role, false, err));
    expect_only_acme(acme);
}

static void what_does_not_exist_is_not_granted(void **state)
{
    (void)state;
    hf_error error;
    assert_int_equal(hf_tenant_grant(root, "acme", "hf_nobody", false, &error), HF_NOT_FOUND);
    assert_int_equal(hf_tenant_grant(root, "nobody", other_role, false, &error), HF_NOT_FOUND);
    assert_int_equal(hf_tenant_grant(root, "acme", "", false, &error), HF_INVALID);
    assert_int_equal(hf_tenant_grant(root, "acme", "x\"; DROP ROLE x", false, &error),
                     HF_NOT_FOUND);
    assert_int_equal(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.client_role"), 2);
}

static void a_role_with_a_strange_name_is_held_back_as_well(void **state)
{
    (void)state;
    char name[60];
    snprintf(name, sizeof name, "Hf \"%ld'", (long)getpid());
    char *quoted = PQescapeIdentifier(scratch.pg, name, strlen(name));
    pg_do(scratch.pg, "CREATE ROLE %s", quoted);
    assert_ok(hf_tenant_grant(root, "acme", name, false, err));
    pg_do(scratch.pg, "SET SESSION AUTHORIZATION %s", quoted);
    expect_only_acme(scratch.pg);
    pg_do(scratch.pg, "RESET SESSION AUTHORIZATION");
    assert_ok(hf_tenant_revoke(root, "acme", name, err));
    pg_do(scratch.pg, "DROP ROLE %s", quoted);
    PQfreemem(quoted);
}

static void a_role_that_cannot_be_held_back_is_no_client(void **state)
{
    (void)state;
    hf_error error;
    pg_do(scratch.pg, "ALTER ROLE %s BYPASSRLS", other_role);
    assert_int_equal(hf_tenant_grant(root, "acme", other_role, false, &error), HF_INVALID);
    pg_do(scratch.pg, "ALTER ROLE %s NOBYPASSRLS; GRANT INSERT ON holdfast.run TO %s", other_role,
          other_role);
    assert_int_equal(hf_tenant_grant(root, "acme", other_role, false, &error), HF_INVALID);
    pg_do(scratch.pg, "REVOKE INSERT ON holdfast.run FROM %s; GRANT pg_write_all_data TO %s",
          other_role, other_role);
    assert_int_equal(hf_tenant_grant(root, "acme", other_role, false, &error), HF_INVALID);
    pg_do(scratch.pg, "REVOKE pg_write_all_data FROM %s; GRANT %s TO %s", other_role,
          pg_text(scratch.pg, "SELECT session_user"), other_role);
    assert_int_equal(hf_tenant_grant(root, "acme", other_role, false, &error), HF_INVALID);
    pg_do(scratch.pg, "REVOKE %s FROM %s", pg_text(scratch.pg, "SELECT session_user"), other_role);
    assert_ok(hf_tenant_grant(root, "acme", other_role, false, err));
}

/* ---- The engine ---- */

static void an_engine_that_does_not_own_the_tables_works_on(void **state)
{
    (void)state;
    char url[SCRATCH_URL];
    char parameter[80];
    const char *pattern = "work";
    hf_client *engine = NULL;
    hf_client *engine_beta = NULL;
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_transition turn = { .version = HF_TRANSITION_VERSION };
    hf_claims *claims = NULL;
    hf_workflow workflow = { .name = "work" };
    hf_error error;
    pg_do(scratch.pg,
          "GRANT USAGE ON SCHEMA holdfast TO %s;"
          "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO %s;"
          "GRANT USAGE ON ALL SEQUENCES IN SCHEMA holdfast TO %s;"
          "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO %s",
          other_role, other_role, other_role, other_role);
    snprintf(parameter, sizeof parameter, "user=%s", other_role);
    scratch_url_with(url, scratch.url, parameter);
    engine = scratch_open(url);
    assert_ok(hf_tenant_create(engine, "new", err));
    assert_ok(hf_open_as(&engine_beta, engine, "new", NULL, err));
    assert_ok(hf_workflow_put(engine_beta, &workflow, 0, err));
    hf_close(engine_beta);
    assert_ok(hf_open_as(&engine_beta, engine, "beta", NULL, err));
    spec.worker = "w";
    spec.patterns = &pattern;
    spec.pattern_count = 1;
    spec.limit = 10;
    assert_ok(hf_claim(engine_beta, &claims, &spec, err));
    assert_int_equal(claims->count, 1);
    turn.run = claims->items[0].run.id;
    turn.run_version = claims->items[0].run.version;
    turn.worker = "w";
    turn.turn = HF_TURN_SUCCEED;
    turn.result = "1";
    assert_ok(hf_commit(engine_beta, &turn, NULL, err));
    hf_claims_free(claims);
    assert_int_equal(hf_tenant_grant(engine, "beta", beta_role, false, &error), HF_INVALID);
    hf_close(engine_beta);
    hf_close(engine);
}

/* The version before the one that brought client roles. */
static int schema_before(void)
{
    for (int i = 0; i < hf__postgres_driver.migration_count; i++)
        if (strcmp(hf__postgres_driver.migrations[i].name, "access") == 0)
            return hf__postgres_driver.migrations[i].version - 1;
    fail_msg("no migration is named access");
    return 0;
}

static void whoever_could_read_all_tenants_before_the_migration_still_can(void **state)
{
    (void)state;
    struct scratch old;
    hf_client *client = NULL;
    char url[SCRATCH_URL];
    char parameter[80];
    const struct hf__engine_options inner = { .max_schema = schema_before() };
    scratch_create_empty(&old);
    assert_ok(hf__open(&client, old.url, NULL, &inner, err));
    hf_close(client);
    pg_do(
        old.pg,
        "GRANT USAGE ON SCHEMA holdfast TO %s; GRANT SELECT ON holdfast.run, holdfast.tenant TO %s",
        other_role, other_role);
    hf_close(scratch_open(old.url));
    snprintf(parameter, sizeof parameter, "user=%s", other_role);
    scratch_url_with(url, old.url, parameter);
    PGconn *analyst = pg_connect(url);
    assert_int_equal(pg_number(analyst, "SELECT count(*) FROM holdfast.tenant"), 1);
    assert_string_equal(pg_refusal(analyst, "SELECT holdfast.trigger('work')"), DENIED);
    assert_string_equal(pg_text(old.pg, "SELECT read_only::text FROM holdfast.client_role"),
                        "true");
    PQfinish(analyst);
    scratch_drop(&old);
}

/* What a migration does after it has made a function anew, which nobody may call then. */
static void functions_that_are_made_anew_are_given_again(void **state)
{
    (void)state;
    assert_ok(hf_tenant_grant(root, "beta", beta_role, true, err));
    pg_do(scratch.pg, "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA holdfast FROM %s", acme_role);
    assert_string_equal(pg_refusal(acme, "SELECT holdfast.cancel('%s')", ours), DENIED);
    pg_do(scratch.pg, "SELECT holdfast.give_client_functions(c.role, c.read_only) "
                      "FROM holdfast.client_role c");
    pg_do(acme, "SELECT holdfast.cancel('%s')", ours);
    PGconn *beta = connect_as(beta_role);
    assert_string_equal(pg_refusal(beta, "SELECT holdfast.cancel('%s')", theirs), DENIED);
    PQfinish(beta);
}

/* A new table with a tenant_id needs a policy. */
static void every_table_of_tenants_is_secured(void **state)
{
    (void)state;
    assert_string_equal(
        pg_text(scratch.pg,
                "SELECT coalesce(string_agg(c.relname, ' '), 'none') FROM pg_class c "
                "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' "
                "WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p') "
                "AND c.relname <> 'client_role' AND NOT (c.relrowsecurity AND EXISTS "
                "(SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid))"),
        "none");
    assert_string_equal(
        pg_text(scratch.pg,
                "SELECT coalesce(string_agg(c.relname, ' '), 'none') FROM pg_class c "
                "WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'v' "
                "AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false)"),
        "none");
}

/* Otherwise a client's look at one run would read the runs of all. */
static void a_client_finds_a_run_by_the_index(void **state)
{
    (void)state;
    pg_do(acme, "SET enable_seqscan = off");
    PGresult *plan =
        PQexec(acme, "EXPLAIN SELECT * FROM holdfast.run WHERE id = gen_random_uuid()");
    bool found = false;
    for (int i = 0; i < PQntuples(plan); i++)
        found = found || (strstr(PQgetvalue(plan, i, 0), "Index Cond") &&
                          strstr(PQgetvalue(plan, i, 0), "tenant_id"));
    PQclear(plan);
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENTS_TEST(a_revoked_role_can_do_nothing_at_once),
        CLIENTS_TEST(a_renamed_role_stays_in_its_tenant),
        CLIENTS_TEST(a_role_belongs_to_one_tenant),
        CLIENTS_TEST(what_does_not_exist_is_not_granted),
        CLIENTS_TEST(a_role_with_a_strange_name_is_held_back_as_well),
        CLIENTS_TEST(a_role_that_cannot_be_held_back_is_no_client),
        CLIENTS_TEST(an_engine_that_does_not_own_the_tables_works_on),
        CLIENTS_TEST(whoever_could_read_all_tenants_before_the_migration_still_can),
        CLIENTS_TEST(functions_that_are_made_anew_are_given_again),
        CLIENTS_TEST(every_table_of_tenants_is_secured),
        CLIENTS_TEST(a_client_finds_a_run_by_the_index),
    };
    if (!scratch_server())
        return 77;
    return cmocka_run_group_tests_name("client_grants", tests, NULL, NULL);
}

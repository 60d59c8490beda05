/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/clients.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const readable[] = { "run",    "run_tag",  "event",  "signal",     "task",
                                 "outbox", "workflow", "tenant", "dead_letter" };
const size_t readable_count = COUNT(readable);

struct scratch scratch;
hf_client *root;
hf_client *beta_client;
PGconn *acme;
char acme_role[40], beta_role[40], other_role[40];
char ours[HF_ID_TEXT], theirs[HF_ID_TEXT];

static hf_client *acme_client;

PGconn *connect_as(const char *role)
{
    char url[SCRATCH_URL];
    char parameter[80];
    snprintf(parameter, sizeof parameter, "user=%s", role);
    scratch_url_with(url, scratch.url, parameter);
    return pg_connect(url);
}

static void create_role(char out[40], const char *name)
{
    snprintf(out, 40, "hf_%s_%ld", name, (long)getpid());
    pg_do(scratch.pg, "CREATE ROLE %s LOGIN", out);
}

static void drop_role(const char *role)
{
    pg_do(scratch.pg, "DROP OWNED BY %s; DROP ROLE %s", role, role);
}

/* A tenant with a workflow, a run with a tag, a step and mail, and a token. */
static hf_client *furnish(const char *tenant, char id[HF_ID_TEXT])
{
    static const char *const tags[] = { "secret" };
    hf_client *client = NULL;
    hf_workflow workflow = { .name = "work" };
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    hf_token_spec token = HF_TOKEN_INIT;
    hf_token_made secret;
    hf_triggered made;
    assert_ok(hf_tenant_create(root, tenant, err));
    assert_ok(hf_open_as(&client, root, tenant, NULL, err));
    assert_ok(hf_workflow_put(client, &workflow, 0, err));
    spec.workflow = "work";
    spec.input = strcmp(tenant, "beta") == 0 ? "\"of beta\"" : "\"of acme\"";
    spec.key = "k";
    spec.tags = tags;
    spec.tag_count = 1;
    assert_ok(hf_trigger(client, &made, &spec, err));
    signal.name = "go";
    assert_ok(hf_signal(client, made.id, &signal, NULL, err));
    token.name = "web";
    token.roles = HF_ROLE_ADMIN;
    assert_ok(hf_token_create(client, &secret, &token, err));
    hf_id_format(made.id, id);
    return client;
}

/* A row of each table for both tenants. */
static void fill_the_rest(void)
{
    pg_do(scratch.pg,
          "INSERT INTO holdfast.task (tenant_id, id, run_id, name, created_at, updated_at) "
          "SELECT tenant_id, gen_random_uuid(), id, 't', 1, 1 FROM holdfast.run;"
          "INSERT INTO holdfast.outbox (id, tenant_id, run_id, seq, type, created_at) "
          "SELECT gen_random_uuid(), tenant_id, id, 1, 'x', 1 FROM holdfast.run;"
          "INSERT INTO holdfast.dead_letter (tenant_id, run_id, reason, envelope, created_at) "
          "SELECT tenant_id, id, 'r', '{}', 1 FROM holdfast.run;"
          "INSERT INTO holdfast.event (tenant_id, run_id, seq, version, at, kind, name, step) "
          "SELECT tenant_id, id, 90, 1, 1, 2, 'succeeded', 's' FROM holdfast.run");
}

int clients_set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    root = scratch_open(scratch.url);
    acme_client = furnish("acme", ours);
    beta_client = furnish("beta", theirs);
    fill_the_rest();
    create_role(acme_role, "acme");
    create_role(beta_role, "beta");
    create_role(other_role, "other");
    assert_ok(hf_tenant_grant(root, "acme", acme_role, false, err));
    assert_ok(hf_tenant_grant(root, "beta", beta_role, false, err));
    acme = connect_as(acme_role);
    return 0;
}

int clients_tear_down(void **state)
{
    (void)state;
    PQfinish(acme);
    drop_role(acme_role);
    drop_role(beta_role);
    drop_role(other_role);
    hf_close(acme_client);
    hf_close(beta_client);
    hf_close(root);
    scratch_drop(&scratch);
    return 0;
}

void expect_only_acme(PGconn *pg)
{
    static const char *const views[] = { "runs", "events", "steps", "signals", "workflows" };
    for (size_t i = 0; i < readable_count; i++) {
        const char *column = strcmp(readable[i], "tenant") == 0 ? "id" : "tenant_id";
        assert_string_equal(pg_text(pg,
                                    "SELECT string_agg(DISTINCT t.name, ' ') FROM holdfast.%s x "
                                    "LEFT JOIN holdfast.tenant t ON t.id = x.%s",
                                    readable[i], column),
                            "acme");
    }
    for (size_t i = 0; i < COUNT(views); i++)
        assert_string_equal(
            pg_text(pg, "SELECT string_agg(DISTINCT tenant, ' ') FROM holdfast.%s", views[i]),
            "acme");
}

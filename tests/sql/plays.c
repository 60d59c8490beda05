/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/plays.h"

#include <holdfast/transition.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/invariants.h"

struct scratch scratch;
struct play plays[WAYS];
static hf_client *root;
static const char *actor;

/* ---- Runs in every status ---- */

const char *id_text(hf_id id)
{
    static char texts[8][HF_ID_TEXT];
    static int next;
    char *text = texts[next++ % 8];
    hf_id_format(id, text);
    return text;
}

static hf_id start(struct play *play, const char *workflow, const char *key)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered made;
    spec.workflow = workflow;
    spec.input = "{\"n\":1}";
    spec.key = key;
    assert_ok(hf_trigger(play->client, &made, &spec, err));
    return made.id;
}

static hf_claims *claim_one(struct play *play, const char *workflow)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "anna";
    spec.patterns = &workflow;
    spec.pattern_count = 1;
    assert_ok(hf_claim(play->client, &claims, &spec, err));
    assert_int_equal(claims->count, 1);
    return claims;
}

static void turn(struct play *play, const char *workflow, hf_transition transition, hf_id *children)
{
    hf_claims *claims = claim_one(play, workflow);
    transition.version = HF_TRANSITION_VERSION;
    transition.run = claims->items[0].run.id;
    transition.run_version = claims->items[0].run.version;
    transition.seen_position = claims->items[0].seen_position;
    transition.seen_at = claims->items[0].seen_at;
    transition.worker = "anna";
    assert_ok(hf_commit(play->client, &transition, children, err));
    hf_claims_free(claims);
}

static void change(struct play *play, hf_id run, hf_action action)
{
    assert_ok(hf_change_run(play->client, run, action, NULL, err));
}

static void is_pending(struct play *play)
{
    play->run = start(play, "work", "key \"1\"");
}

static void is_delayed(struct play *play)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_triggered made;
    spec.workflow = "work";
    spec.delay = HF_HOURS(2);
    assert_ok(hf_trigger(play->client, &made, &spec, err));
    play->run = made.id;
}

static void is_leased(struct play *play)
{
    is_pending(play);
    hf_claims_free(claim_one(play, "work"));
}

static void save_step(struct play *play, const hf_claimed *held, const char *name)
{
    const hf_step_record step = { .run = held->run.id,
                                  .run_version = held->run.version,
                                  .worker = "anna",
                                  .name = name,
                                  .status = "succeeded",
                                  .data = "1" };
    assert_ok(hf_step_save(play->client, &step, err));
}

static void is_leased_after_steps(struct play *play)
{
    is_pending(play);
    hf_claims *claims = claim_one(play, "work");
    save_step(play, &claims->items[0], "pack");
    save_step(play, &claims->items[0], "send");
    hf_claims_free(claims);
}

static void is_leased_with_a_pause_to_come(struct play *play)
{
    is_leased(play);
    change(play, play->run, HF_PAUSE);
}

static void is_waiting(struct play *play)
{
    is_pending(play);
    turn(play, "work",
         (hf_transition){
             .turn = HF_TURN_WAIT, .waiting_kind = "signal", .waiting_token = "token-2" },
         NULL);
}

static void is_waiting_until_a_time(struct play *play)
{
    int64_t now = pg_number(scratch.pg, "SELECT holdfast.now()");
    is_pending(play);
    turn(play, "work",
         (hf_transition){
             .turn = HF_TURN_WAIT, .waiting_kind = "timer", .waiting_until = now + HF_HOURS(1) },
         NULL);
}

static void is_paused(struct play *play)
{
    is_pending(play);
    change(play, play->run, HF_PAUSE);
}

static void is_paused_while_waiting(struct play *play)
{
    is_waiting(play);
    change(play, play->run, HF_PAUSE);
}

static void is_succeeded(struct play *play)
{
    is_pending(play);
    turn(play, "work", (hf_transition){ .turn = HF_TURN_SUCCEED, .result = "1" }, NULL);
}

static void is_failed(struct play *play)
{
    is_pending(play);
    turn(play, "work", (hf_transition){ .turn = HF_TURN_FAIL, .last_error = "no" }, NULL);
}

static void is_cancelled(struct play *play)
{
    is_pending(play);
    change(play, play->run, HF_CANCEL);
}

static void is_deleted(struct play *play)
{
    is_pending(play);
    change(play, play->run, HF_DELETE);
}

static void is_deleted_and_finished(struct play *play)
{
    is_succeeded(play);
    change(play, play->run, HF_DELETE);
}

static void is_unknown(struct play *play)
{
    play->run = (hf_id){ { 1, 2, 3 } };
}

static void is_of_another_tenant(struct play *play)
{
    hf_client *mine = play->client;
    play->client = root;
    is_pending(play);
    play->client = mine;
}

/* The acted-upon run is a child whose parent waits for `wanted` of two. */
static void is_child(struct play *play, int wanted, bool wake_on_failure, const char *key)
{
    hf_trigger_spec specs[2] = { HF_TRIGGER_INIT, HF_TRIGGER_INIT };
    hf_id children[2];
    specs[0].workflow = "child";
    specs[1].workflow = "sibling";
    specs[0].key = key;
    start(play, "work", NULL);
    turn(play, "work",
         (hf_transition){ .turn = HF_TURN_WAIT,
                          .waiting_kind = "children",
                          .wait_children = wanted,
                          .wake_on_child_failure = wake_on_failure,
                          .children = specs,
                          .child_count = 2 },
         children);
    play->run = children[0];
}

static void is_child_not_waited_for_yet(struct play *play)
{
    is_child(play, 2, false, NULL);
}

static void is_last_child_waited_for(struct play *play)
{
    is_child(play, 1, false, "k \"child\"");
}

static void is_child_whose_failure_wakes(struct play *play)
{
    is_child(play, 2, true, NULL);
}

static hf_id parent_of(struct play *play)
{
    hf_run *run;
    hf_id parent;
    assert_ok(hf_get(play->client, &run, play->run, err));
    parent = run->parent;
    hf_run_free(run);
    return parent;
}

static void is_child_of_a_paused_parent(struct play *play)
{
    is_child(play, 1, false, NULL);
    change(play, parent_of(play), HF_PAUSE);
}

static void is_child_of_a_finished_parent(struct play *play)
{
    is_child(play, 1, false, NULL);
    change(play, parent_of(play), HF_CANCEL);
}

/* Its parent was told of its first end already. */
static void is_retried_child(struct play *play)
{
    is_child(play, 2, false, NULL);
    change(play, play->run, HF_CANCEL);
    change(play, play->run, HF_RETRY_RUN);
}

static void is_deleted_child(struct play *play)
{
    is_child_not_waited_for_yet(play);
    change(play, play->run, HF_DELETE);
}

static void is_child_of_a_succeeded_parent(struct play *play)
{
    is_child(play, 1, true, NULL);
    pg_do(scratch.pg,
          "UPDATE holdfast.run SET status = 4, finished_at = 1, run_at = NULL, wait_count = 0, "
          "waiting_kind = NULL WHERE id = '%s'",
          id_text(parent_of(play)));
    pg_do(scratch.pg,
          "WITH r AS (UPDATE holdfast.run SET event_seq = event_seq + 1, version = version + 1 "
          "WHERE id = '%s' RETURNING tenant_id, id, event_seq, version) "
          "INSERT INTO holdfast.event (tenant_id, run_id, seq, version, at, kind, name) "
          "SELECT r.tenant_id, r.id, r.event_seq, r.version, 1, 0, 'succeeded' FROM r",
          id_text(parent_of(play)));
}

static void is_parent(struct play *play)
{
    is_child(play, 2, false, NULL);
    play->run = parent_of(play);
}

static void is_watched(struct play *play)
{
    is_waiting(play);
    pg_do(scratch.pg, "UPDATE holdfast.run SET watched = 2 WHERE id = '%s'", id_text(play->run));
}

/* ---- What both plays left ---- */

/* Runs of one workflow are made one after the other; those of several may be made at once. */
#define BY_RUN "(SELECT o.workflow_id FROM holdfast.run o WHERE o.id = r.run_id), r.run_id"

/* Every column, except what differs by nature; ids of runs by the order in which they were made. */
static const char *dump(struct play *play)
{
    static char all[WAYS][60000];
    char *out = all[play - plays];
    char where[200];
    snprintf(where, sizeof where,
             "r.tenant_id = (SELECT t.id FROM holdfast.tenant t WHERE t.name = '%s')",
             play->tenant);
    snprintf(out, sizeof all[0], "runs\n%s\nevents\n%s\nsignals\n%s\ntags\n%s\n",
             pg_rows(scratch.pg, "run", "tenant_id,workflow_id,lane,in_time", where,
                     "r.workflow_id, r.id"),
             pg_rows(scratch.pg, "event", "tenant_id,position,xid", where, BY_RUN ", r.seq"),
             pg_rows(scratch.pg, "signal", "tenant_id,position", where, BY_RUN ", r.position"),
             pg_rows(scratch.pg, "run_tag", "tenant_id", where, BY_RUN ", r.tag"));
    return out;
}

/* Ids become their number among all ids in the text, so that two texts can be compared. */
static char *without_ids(const char *text)
{
    char ids[100][HF_ID_TEXT];
    int count = 0;
    size_t size = strlen(text) + 1;
    char *out = malloc(size);
    char *to = out;
    while (*text) {
        hf_id id;
        char head[HF_ID_TEXT] = "";
        strncpy(head, text, HF_ID_TEXT - 1);
        if (strlen(head) < HF_ID_TEXT - 1 || !hf_id_parse(head, &id)) {
            *to++ = *text++;
            continue;
        }
        int at = 0;
        while (at < count && strcmp(ids[at], head) != 0)
            at++;
        if (at == count)
            strcpy(ids[count++], head);
        assert_in_range(count, 1, 99);
        to += sprintf(to, "<id %d>", at);
        text += HF_ID_TEXT - 1;
    }
    *to = '\0';
    return out;
}

void assert_same_rows(const char *name)
{
    char *library = without_ids(dump(&plays[LIBRARY]));
    char *sql = without_ids(dump(&plays[SQL]));
    if (strcmp(library, sql) != 0)
        fail_msg("%s\nby the library:\n%s\nby SQL:\n%s", name, library, sql);
    free(library);
    free(sql);
}

void assert_same_verdict(const char *name, hf_code code, const char *sqlstate)
{
    char expected[16] = "";
    if (code != HF_OK)
        snprintf(expected, sizeof expected, "HF%03d", (int)code);
    if (strcmp(expected, sqlstate) != 0)
        fail_msg("%s: the library says \"%s\", SQL says \"%s\"", name, expected, sqlstate);
}

/* ---- The two plays ---- */

static const struct situation situations[] = {
    { "pending", is_pending },
    { "delayed", is_delayed },
    { "leased", is_leased },
    { "leased, after steps", is_leased_after_steps },
    { "leased, with a pause to come", is_leased_with_a_pause_to_come },
    { "waiting", is_waiting },
    { "waiting until a time", is_waiting_until_a_time },
    { "paused", is_paused },
    { "paused while waiting", is_paused_while_waiting },
    { "succeeded", is_succeeded },
    { "failed", is_failed },
    { "cancelled", is_cancelled },
    { "deleted", is_deleted },
    { "deleted and finished", is_deleted_and_finished },
    { "unknown", is_unknown },
    { "of another tenant", is_of_another_tenant },
    { "a child not waited for yet", is_child_not_waited_for_yet },
    { "the last child waited for", is_last_child_waited_for },
    { "a child whose failure wakes", is_child_whose_failure_wakes },
    { "a child of a paused parent", is_child_of_a_paused_parent },
    { "a child of a finished parent", is_child_of_a_finished_parent },
    { "a child of a succeeded parent", is_child_of_a_succeeded_parent },
    { "a retried child", is_retried_child },
    { "a deleted child", is_deleted_child },
    { "a parent", is_parent },
    { "watched", is_watched },
};

void new_plays(void)
{
    static int counter;
    for (int way = 0; way < WAYS; way++) {
        struct play *play = &plays[way];
        hf_workflow work = { .name = "work" };
        hf_workflow child = { .name = "child", .timeout = HF_HOURS(5) };
        hf_close(play->client);
        snprintf(play->tenant, sizeof play->tenant, "t%d", counter++);
        assert_ok(hf_tenant_create(root, play->tenant, err));
        assert_ok(hf_open_as(&play->client, root, play->tenant, actor, err));
        assert_ok(hf_workflow_put(play->client, &work, 0, err));
        assert_ok(hf_workflow_put(play->client, &child, HF_SET_TIMEOUT, err));
        assert_ok(hf_workflow_put(play->client, &(hf_workflow){ .name = "sibling" }, 0, err));
    }
}

void stand_still(int64_t later)
{
    pg_do(scratch.pg,
          "CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql STABLE "
          "RETURN %lld::bigint",
          1900000000000000LL + (long long)later);
}

void in_every_situation(void (*act)(const struct situation *))
{
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        new_plays();
        stand_still(0);
        situations[i].make(&plays[LIBRARY]);
        situations[i].make(&plays[SQL]);
        stand_still(HF_SECONDS(60));
        act(&situations[i]);
    }
}

static bool query(void *arg, const char *sql, invariants_row row, void *row_arg)
{
    (void)arg;
    PGresult *result = PQexec(scratch.pg, sql);
    bool worked = PQresultStatus(result) == PGRES_TUPLES_OK;
    for (int i = 0; i < PQntuples(result); i++) {
        const char *cells[64];
        for (int n = 0; n < PQnfields(result) && n < 64; n++)
            cells[n] = PQgetisnull(result, i, n) ? NULL : PQgetvalue(result, i, n);
        row(cells, row_arg);
    }
    PQclear(result);
    return worked;
}

void the_journal_equals_the_state(void **state)
{
    (void)state;
    char complaint[500];
    pg_do(scratch.pg, "SET search_path = holdfast, public");
    const struct invariants_source source = {
        .query = query,
        .id_format = "CAST(%s AS text)",
        .now = pg_number(scratch.pg, "SELECT holdfast.now()"),
        .rests = true,
    };
    if (!invariants_hold(&source, complaint, sizeof complaint))
        fail_msg("%s", complaint);
    assert_true(pg_number(scratch.pg, "SELECT count(*) FROM holdfast.run") > 10);
}

int plays_set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    root = scratch_open(scratch.url);
    actor = strdup(pg_text(scratch.pg, "SELECT session_user"));
    hf_workflow work = { .name = "work" };
    assert_ok(hf_workflow_put(root, &work, 0, err));
    return 0;
}

int plays_tear_down(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++)
        hf_close(plays[way].client);
    hf_close(root);
    free((char *)actor);
    scratch_drop(&scratch);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/ask.h"
#include "client/client.h"
#include "kernel/chores.h"
#include "server/inner.h"
#include "server/park.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/random.h"
#include "worker/failure.h"

#include <inttypes.h>
#include <string.h>

#define LONGEST_WAIT HF_SECONDS(60)
#define SAFETY_LOOK HF_SECONDS(5) /* for wake-ups that got lost */
#define SILENCE HF_SECONDS(40)    /* after its last request a worker counts as dead */

enum { MOST_CLAIMS = 100 };

struct claiming {
    const char *worker;
    const char *const *workflows;
    size_t workflow_count;
    int limit;
    int64_t wait;
    const char *host;
    const char *program;
    const char *name; /* in the store */
    bool registered;
    bool idle; /* what the store was told */
};

const struct hf__member hf__work_claim_members[] = {
    HF__MEMBER(struct claiming, worker, TEXT, "the worker's name, unique in its tenant",
               .required = true),
    HF__MEMBER(struct claiming, workflows, WORDS, "billing.charge.v1, billing.* or *",
               .count_offset = offsetof(struct claiming, workflow_count), .required = true),
    HF__MEMBER(struct claiming, limit, INT, "how many runs at most, 1 to 100; default 1"),
    HF__MEMBER(struct claiming, wait, DURATION, "how long to wait for one, at most 60s; default 0"),
    HF__MEMBER(struct claiming, host, TEXT, "where the worker runs"),
    HF__MEMBER(struct claiming, program, TEXT, "what it is, and its version"),
    HF__MEMBERS_END,
};

const char *hf__work_name(struct hf__request *request, const char *worker)
{
    return hf__arena_printf(&request->arena, "%s/%s", request->client->tenant, worker);
}

/* ---- The worker's row ---- */

static hf_code list_json(const char **out, struct hf__arena *arena, const char *const *words,
                         size_t count, hf_error *err)
{
    struct hf__buffer json = { 0 };
    for (size_t i = 0; i < count; i++) {
        hf__buffer_add_text(&json, i ? "," : "[");
        hf__buffer_add_json_string(&json, words[i], strlen(words[i]));
    }
    hf__buffer_add_text(&json, count ? "]" : "[]");
    *out = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return *out ? HF_OK : hf__nomem(err);
}

/* Each request renews it: there is no other sign of life. */
static hf_code enlist(struct hf__request *request, struct claiming *claiming, hf_error *err)
{
    hf_client *client = request->client;
    const char *const tenants[] = { client->tenant };
    const char *tenants_text = NULL;
    const char *serves = NULL;
    hf_code code = list_json(&tenants_text, &request->arena, tenants, 1, err);
    if (code == HF_OK)
        code =
            list_json(&serves, &request->arena, claiming->workflows, claiming->workflow_count, err);
    if (code != HF_OK || claiming->registered)
        return code;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_PUT_WORKER);
    c[0] = hf__text(claiming->name);
    c[1] = hf__text(tenants_text);
    c[2] = hf__text(serves);
    c[3] = hf__text(claiming->host ? claiming->host : "remote");
    c[4] = hf__number(0);
    c[5] = hf__text(claiming->program ? claiming->program : "remote");
    c[6] = hf__number(claiming->limit);
    c[7] = hf__number(claiming->wait + SILENCE);
    code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    claiming->registered = code == HF_OK;
    return code;
}

/* An idle worker is told of work by the flush that makes it. */
static hf_code say_idle(struct hf__request *request, struct claiming *claiming, bool idle,
                        hf_error *err)
{
    struct hf__ask ask;
    if (claiming->idle == idle)
        return HF_OK;
    struct hf__cell *c = hf__ask_begin(&ask, request->client->engine, HF__STMT_BEAT_WORKER);
    c[0] = hf__text(claiming->name);
    c[1] = hf__number(0);
    c[2] = hf__number(idle);
    c[3] = hf__number(false);
    c[4] = hf__number(claiming->wait + SILENCE);
    hf_code code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    claiming->idle = idle;
    return code;
}

/* ---- Writing what was claimed ---- */

static const struct hf__field mail_fields[] = {
    { "id", HF__FIELD_TEXT, offsetof(hf_mail, id) },
    { "type", HF__FIELD_TEXT, offsetof(hf_mail, type) },
    { "name", HF__FIELD_TEXT, offsetof(hf_mail, name) },
    { "payload", HF__FIELD_JSON, offsetof(hf_mail, payload) },
    { "token", HF__FIELD_TEXT, offsetof(hf_mail, token) },
    { "sender", HF__FIELD_TEXT, offsetof(hf_mail, sender) },
    { "attempts", HF__FIELD_INT, offsetof(hf_mail, attempts) },
    { "occurred_at", HF__FIELD_TIME, offsetof(hf_mail, occurred_at) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static const struct hf__field step_fields[] = {
    { "seq", HF__FIELD_INT64, offsetof(hf_event, seq) },
    { "name", HF__FIELD_TEXT, offsetof(hf_event, step) },
    { "status", HF__FIELD_TEXT, offsetof(hf_event, name) },
    { "data", HF__FIELD_JSON, offsetof(hf_event, data) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void add_array(struct hf__buffer *out, const char *name, const struct hf__field *fields,
                      const void *items, size_t count, size_t size)
{
    hf__buffer_addf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        hf__buffer_add_text(out, i ? "," : "");
        hf__record_json(out, fields, (const char *)items + i * size);
    }
    hf__buffer_add_text(out, "]");
}

static void add_claimed(struct hf__buffer *out, const hf_claimed *claimed)
{
    hf__buffer_add_text(out, "{\"run\":");
    hf__record_json(out, hf__run_fields, &claimed->run);
    hf__buffer_addf(out,
                    ",\"lease_us\":%" PRId64 ",\"now_us\":%" PRId64 ",\"seen_position\":%" PRId64
                    ",\"seen_us\":%" PRId64 ",\"retried_seq\":%" PRId64,
                    claimed->lease, claimed->seen_at, claimed->seen_position, claimed->seen_at,
                    claimed->retried_seq);
    add_array(out, "mail", mail_fields, claimed->mail, claimed->mail_count, sizeof *claimed->mail);
    add_array(out, "steps", step_fields, claimed->steps, claimed->step_count,
              sizeof *claimed->steps);
    hf__buffer_add_text(out, "}");
}

/* ---- Claiming ---- */

/* A run without attempts or past its deadline reaches no handler. */
static void fail_unplayed(struct hf__request *request, const struct claiming *claiming,
                          const hf_claimed *claimed)
{
    struct hf__letter letter;
    hf_transition t = {
        .version = HF_TRANSITION_VERSION,
        .run = claimed->run.id,
        .run_version = claimed->run.version,
        .worker = claiming->name,
    };
    hf__fail_for_good(&t, claimed, &letter, &request->arena,
                      claimed->overdue ? "deadline_exceeded" : "attempts_exhausted",
                      claimed->overdue ? "the run's deadline has passed"
                                       : "no attempts are left; its last holder did not come back");
    /* If it cannot be written now, its lease expires and the next claim comes here again. */
    if (hf_commit(request->client, &t, NULL, NULL) != HF_OK)
        return;
}

static hf_code write_claims(struct hf__request *request, const struct claiming *claiming,
                            const hf_claims *claims, size_t *given)
{
    *given = 0;
    for (size_t i = 0; i < claims->count; i++) {
        const hf_claimed *claimed = &claims->items[i];
        if (claimed->overdue || claimed->exhausted) {
            fail_unplayed(request, claiming, claimed);
            continue;
        }
        hf__buffer_add_text(&request->out, *given ? "," : "{\"items\":[");
        add_claimed(&request->out, claimed);
        (*given)++;
    }
    return HF_OK;
}

/* What was claimed and cannot be told is given back. */
static void give_back(struct hf__request *request, const struct claiming *claiming,
                      const hf_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        hf_transition t = {
            .version = HF_TRANSITION_VERSION,
            .run = claims->items[i].run.id,
            .run_version = claims->items[i].run.version,
            .worker = claiming->name,
            .turn = HF_TURN_GIVE_BACK,
        };
        if (hf_commit(request->client, &t, NULL, NULL) != HF_OK)
            continue; /* its lease expires */
    }
}

static hf_code claim_now(struct hf__request *request, const struct claiming *claiming,
                         size_t *given, int64_t *next_due, hf_error *err)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = claiming->name;
    spec.patterns = claiming->workflows;
    spec.pattern_count = claiming->workflow_count;
    spec.limit = claiming->limit;
    *given = 0;
    hf_code code = hf_claim(request->client, &claims, &spec, err);
    if (code == HF_OK)
        code = write_claims(request, claiming, claims, given);
    if (code == HF_OK && request->out.failed) {
        give_back(request, claiming, claims);
        code = hf__nomem(err);
    }
    *next_due = code == HF_OK ? claims->next_due : 0;
    hf_claims_free(claims);
    return code;
}

/* The engine's own work needs the store, which a remote worker does not have. */
static hf_code check_workflows(const struct claiming *claiming, hf_error *err)
{
    if (claiming->workflow_count == 0)
        return hf__fail(err, HF_INVALID, "\"workflows\" names none");
    for (size_t i = 0; i < claiming->workflow_count; i++)
        if (strncmp(claiming->workflows[i], HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) == 0)
            return hf__fail(err, HF_INVALID,
                            "names that begin with \"" HF__CHORE_PREFIX "\" are the engine's own");
    return HF_OK;
}

static hf_code read_claiming(struct hf__request *request, struct claiming **out, hf_error *err)
{
    struct claiming *new = hf__arena_calloc(&request->arena, 1, sizeof *new);
    *out = new;
    if (!new)
        return hf__nomem(err);
    new->limit = 1;
    hf_code code = hf__request_body(request, new, NULL, err);
    if (code == HF_OK && (new->limit < 1 || new->limit > MOST_CLAIMS))
        code = hf__fail(err, HF_INVALID, "\"limit\" must be from 1 to %d", MOST_CLAIMS);
    if (code == HF_OK)
        code = check_workflows(new, err);
    if (code != HF_OK)
        return code;
    new->wait = new->wait < LONGEST_WAIT ? new->wait : LONGEST_WAIT;
    new->name = hf__work_name(request, new->worker);
    request->deadline = hf__monotonic_us() + new->wait;
    request->kept = new;
    return new->name ? HF_OK : hf__nomem(err);
}

static hf_code answer_claim(struct hf__request *request, struct claiming *claiming, size_t given,
                            hf_error *err)
{
    /* That it is busy now is known to nobody else; if the store is away, it only hears too much. */
    if (say_idle(request, claiming, false, NULL) != HF_OK)
        claiming->idle = false;
    hf__buffer_add_text(&request->out, given ? "]}" : "{\"items\":[]}");
    return hf__reply_done(request, 200, err);
}

/* The next look: when something becomes due, as far as this is known. */
static int64_t next_look(struct hf__request *request, int64_t next_due)
{
    int64_t now;
    int64_t look = hf__monotonic_us() + SAFETY_LOOK;
    if (next_due && hf_store_now(request->client, &now, NULL) == HF_OK) {
        int64_t due = hf__monotonic_us() + (next_due > now ? next_due - now : 0);
        look = due < look ? due : look;
    }
    return look < request->deadline ? look : request->deadline;
}

hf_code hf__work_claim(struct hf__request *request, hf_error *err)
{
    static const hf_id any_lane;
    struct claiming *claiming = request->kept;
    size_t given = 0;
    int64_t next_due = 0;
    hf_code code = claiming ? HF_OK : read_claiming(request, &claiming, err);
    if (code == HF_OK)
        code = enlist(request, claiming, err);
    if (code != HF_OK)
        return code;
    hf__park_listen(request, any_lane);
    code = claim_now(request, claiming, &given, &next_due, err);
    if (code == HF_OK && given == 0 && !claiming->idle && !hf__request_must_answer(request)) {
        /* First say idle, then look once more: what was committed in between told nobody. */
        code = say_idle(request, claiming, true, err);
        if (code == HF_OK)
            code = claim_now(request, claiming, &given, &next_due, err);
    }
    if (code != HF_OK)
        return code;
    if (given > 0 || hf__request_must_answer(request))
        return answer_claim(request, claiming, given, err);
    hf__park_sleep(request, next_look(request, next_due));
    return HF_OK;
}

/* ---- Leaving ---- */

struct leaving {
    const char *worker;
};

const struct hf__member hf__work_leave_members[] = {
    HF__MEMBER(struct leaving, worker, TEXT, "the worker's name", .required = true),
    HF__MEMBERS_END,
};

hf_code hf__work_leave(struct hf__request *request, hf_error *err)
{
    struct leaving leaving = { 0 };
    struct hf__ask ask;
    hf_code code = hf__request_body(request, &leaving, NULL, err);
    const char *name = code == HF_OK ? hf__work_name(request, leaving.worker) : NULL;
    if (!name)
        return code == HF_OK ? hf__nomem(err) : code;
    hf__ask_begin(&ask, request->client->engine, HF__STMT_REMOVE_WORKER)[0] = hf__text(name);
    code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

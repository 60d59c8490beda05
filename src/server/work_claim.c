/* SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/ask.h"
#include "client/client.h"
#include "server/inner.h"
#include "server/park.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/random.h"
#include "worker/failure.h"

#include <stdatomic.h>
#include <string.h>

#define LONGEST_WAIT HF_SECONDS(60)
#define SAFETY_LOOK HF_SECONDS(5) /* for wake-ups that got lost */

enum { MOST_CLAIMS = 100 };

struct claiming {
    struct hf__crew crew;
    int limit;
    int64_t wait;
    bool listed;      /* the worker's row is there */
    bool idle;        /* what the store was told */
    atomic_bool left; /* the worker has said that it stops */
};

const struct hf__member hf__work_claim_members[] = {
    HF__CREW_MEMBERS(struct claiming, crew),
    HF__MEMBER(struct claiming, limit, INT, "how many runs at most, 1 to 100; default 1"),
    HF__MEMBER(struct claiming, wait, DURATION, "how long to wait for one, at most 60s; default 0"),
    HF__MEMBERS_END,
};

static hf_code enlist(struct hf__request *request, struct claiming *claiming, hf_error *err)
{
    if (claiming->listed)
        return HF_OK;
    hf_code code = hf__crew_list(request, &claiming->crew, claiming->wait, err);
    claiming->listed = code == HF_OK;
    return code;
}

/* An idle worker is told of work by the flush that makes it. */
static hf_code say_idle(struct hf__request *request, struct claiming *claiming, bool idle,
                        hf_error *err)
{
    if (claiming->idle == idle)
        return HF_OK;
    claiming->idle = idle;
    return hf__crew_idle(request, &claiming->crew, idle, claiming->wait, err);
}

/* ---- Writing what was claimed ---- */

/* Of a run, what a claim reads. */
#define RUN(member, kind)                                                                          \
    {                                                                                              \
#member, HF__FIELD_##kind, offsetof(hf_run, member)                                        \
    }

const struct hf__field hf__claimed_fields[] = {
    { "lease_us", HF__FIELD_INT64, offsetof(hf_claimed, lease) },
    { "deadline_us", HF__FIELD_INT64, offsetof(hf_claimed, run.timeout_at) },
    { "seen_position", HF__FIELD_INT64, offsetof(hf_claimed, seen_position) },
    { "seen_us", HF__FIELD_INT64, offsetof(hf_claimed, seen_at) },
    { "retried_seq", HF__FIELD_INT64, offsetof(hf_claimed, retried_seq) },
    { "steps_cut", HF__FIELD_BOOL, offsetof(hf_claimed, steps_cut) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static const struct hf__field run_fields[] = {
    RUN(id, ID),
    RUN(tenant, TEXT),
    RUN(workflow, TEXT),
    RUN(key, TEXT),
    RUN(priority, INT),
    RUN(attempt, INT),
    RUN(max_attempts, INT),
    RUN(version, INT64),
    RUN(revision, INT64),
    RUN(input, JSON),
    RUN(state, JSON),
    RUN(error_code, TEXT),
    RUN(last_error, TEXT),
    RUN(current_step, TEXT),
    RUN(subject, TEXT),
    RUN(reference, TEXT),
    RUN(tags, WORDS),
    RUN(partition, TEXT),
    RUN(trace, TEXT),
    RUN(actor, TEXT),
    RUN(parent, ID),
    RUN(root, ID),
    RUN(created_at, TIME),
    RUN(started_at, TIME),
    { NULL, HF__FIELD_TEXT, 0 },
};

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
    { "version", HF__FIELD_INT64, offsetof(hf_event, version) },
    { "name", HF__FIELD_TEXT, offsetof(hf_event, step) },
    { "status", HF__FIELD_TEXT, offsetof(hf_event, name) },
    { "data", HF__FIELD_JSON, offsetof(hf_event, data) },
    { NULL, HF__FIELD_TEXT, 0 },
};

const struct hf__part hf__claimed_parts[] = {
    { .name = "run", .schema = "HeldRun", .fields = run_fields },
    { .name = "mail", .schema = "Mail", .fields = mail_fields, .many = true },
    { .name = "steps", .schema = "RememberedStep", .fields = step_fields, .many = true },
    { .name = NULL },
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
    hf__record_json(out, run_fields, &claimed->run);
    hf__buffer_add_text(out, ",");
    hf__record_members(out, hf__claimed_fields, claimed);
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
        .worker = claiming->crew.name,
    };
    hf__fail_for_good(&t, claimed, &letter, &request->arena,
                      claimed->overdue ? "deadline_exceeded" : "attempts_exhausted",
                      claimed->overdue ? "the run's deadline has passed"
                                       : "no attempts are left; its last holder did not come back");
    /* If it cannot be written now, its lease expires and the next claim comes here again. */
    if (hf_commit(request->client, &t, NULL, NULL) != HF_OK)
        return;
}

static void write_claims(struct hf__request *request, const struct claiming *claiming,
                         const hf_claims *claims, size_t *given)
{
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
            .worker = claiming->crew.name,
            .turn = HF_TURN_GIVE_BACK,
        };
        if (hf_commit(request->client, &t, NULL, NULL) != HF_OK)
            continue; /* its lease expires */
    }
}

static hf_code check_room(struct hf__request *request, hf_error *err)
{
    if (request->out.failed)
        return hf__nomem(err);
    if (hf__unread_has_room(request))
        return HF_OK;
    hf__unread_refuse(request);
    return HF_UNAVAILABLE; /* it is answered */
}

static hf_code tell_claims(struct hf__request *request, const struct claiming *claiming,
                           const hf_claims *claims, size_t *given, hf_error *err)
{
    write_claims(request, claiming, claims, given);
    return check_room(request, err);
}

/* The goodbye of TLS is a record that only the connection's own thread can read; but whoever waits sends nothing else. */
static bool hung_up(const struct hf__request *request)
{
    bool waited = request->calls > 1;
    return hf__sweep_hung_up(request->entry, waited && request->server->options.certificate);
}

static hf_code claim_now(struct hf__request *request, const struct claiming *claiming,
                         size_t *given, int64_t *next_due, hf_error *err)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = claiming->crew.name;
    spec.patterns = claiming->crew.workflows;
    spec.pattern_count = claiming->crew.workflow_count;
    spec.limit = claiming->limit;
    *given = 0;
    if (hung_up(request))
        return HF_OK;
    hf_code code = hf_claim(request->client, &claims, &spec, err);
    if (code == HF_OK) {
        bool heard = !hung_up(request); /* else it would be lost with the answer */
        if (heard)
            code = tell_claims(request, claiming, claims, given, err);
        if (!heard || code != HF_OK)
            give_back(request, claiming, claims);
    }
    *next_due = code == HF_OK ? claims->next_due : 0;
    hf_claims_free(claims);
    return code;
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
        code = hf__crew_check(request, &new->crew, new->limit, err);
    if (code != HF_OK)
        return code;
    new->wait = new->wait < LONGEST_WAIT ? new->wait : LONGEST_WAIT;
    request->deadline = hf__monotonic_us() + new->wait;
    request->kept = new;
    return HF_OK;
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

static bool must_answer(const struct hf__request *request, const struct claiming *claiming)
{
    return hf__request_must_answer(request) || atomic_load(&claiming->left);
}

static bool dismiss(struct hf__request *request, void *arg)
{
    struct claiming *claiming = request->kept;
    const char *name = arg;
    if (!claiming || strcmp(claiming->crew.name, name) != 0)
        return false;
    atomic_store(&claiming->left, true);
    return true;
}

void hf__work_dismiss(struct hf__request *request, char *name)
{
    hf__park_tell_workers(request->server->park, dismiss, name);
}

hf_code hf__work_claim(struct hf__request *request, hf_error *err)
{
    static const hf_id any_lane;
    struct claiming *claiming = request->kept;
    size_t given = 0;
    int64_t next_due = 0;
    hf_code code = claiming ? HF_OK : read_claiming(request, &claiming, err);
    if (code == HF_OK)
        hf__park_listen(request, any_lane);
    if (code == HF_OK)
        code = enlist(request, claiming, err);
    if (code != HF_OK)
        return code;
    if (hung_up(request) || atomic_load(&claiming->left))
        return answer_claim(request, claiming, 0, err);
    code = claim_now(request, claiming, &given, &next_due, err);
    if (code == HF_OK && given == 0 && !claiming->idle && !must_answer(request, claiming)) {
        /* First say idle, then look once more: what was committed in between told nobody. */
        code = say_idle(request, claiming, true, err);
        if (code == HF_OK)
            code = claim_now(request, claiming, &given, &next_due, err);
    }
    if (code != HF_OK)
        return code;
    if (given > 0 || must_answer(request, claiming))
        return answer_claim(request, claiming, given, err);
    hf__park_sleep(request, next_look(request, next_due));
    return HF_OK;
}

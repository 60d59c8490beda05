/* One turn of a dispatcher: it delivers a subscription's events, in order for each run, several runs at once, and then
 * sleeps until somebody writes the next one. A failure makes it wait, too many park it.
 *
 * What is delivered is recorded after the receiver took it, so an event may come twice and never not at all. The turn's
 * own commit holds only how it goes on: a dispatcher that lost its lease may end deliveries that it made, but not decide.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "client/ask.h"
#include "client/outbox.h"
#include "kernel/chores.h"
#include "outbox/courier.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"

#include <jansson.h>
#include <string.h>

#define PAGE 100                  /* events that are read at once, at most */
#define FIRST_PAGE 20             /* until it is known how large they are */
#define PAGE_BYTES (4 << 20)      /* of payloads, roughly */
#define TURN_LIMIT HF_SECONDS(10) /* then others get the hand */
#define LOOK_UP 200               /* ms between looks at whether the turn may go on */
#define RETRY_BASE HF_SECONDS(1)  /* after the first failure; doubles */
#define RETRY_MOST HF_MINUTES(5)  /* but for what a receiver asks for */
#define EXPIRE_MOST 200           /* published events that are removed before it sleeps */

#define ENOUGH (HF__MOST_HELD + 1) /* failures in a turn: it is not one event, it is the receiver */
#define GONE 410                   /* the receiver wants no more */

enum progress { WAITING, SENT, DONE, FAILED };

struct item {
    const struct hf__delivery *delivery;
    struct hf__request request;
    enum progress progress;
    const char *error; /* of one that failed */
};

struct round {
    hf_ctx *ctx;
    hf_client *client;
    struct hf__arena *arena; /* of the turn */
    struct hf__arena page;   /* of the events at hand */
    struct hf__courier *courier;
    struct hf__random random;

    hf_id subscription;
    const char *name; /* NULL: there is no such subscription */
    const char *url;
    const char *secret;
    hf_event_mode mode;
    int max_failures;

    int failures;  /* turns in a row that delivered nothing, with this one */
    int64_t stuck; /* the event that failed last, by its position; 0: none */
    int tries;     /* turns in a row in which it was that one */
    const char *error;
    bool parked;

    int64_t until; /* monotonic us: from then on nothing more is sent */
    int limit;     /* events of the next page */
    struct item items[PAGE];
    size_t count;
    int64_t reached;  /* the position of the last event that was read */
    int64_t left;     /* up to there, events that were not delivered, since the first failure */
    size_t delivered; /* in this turn */
    int failed_count; /* in this turn, each of another run */
    hf_id held[HF__MOST_HELD]; /* the runs of the first of them: their later events wait */
    int64_t failed_position;   /* of the one that was tried most */
    int failed_attempts;       /* of the same, before */
    bool gone;
    int64_t retry_after; /* us, as a receiver asked for */
};

/* ---- What it knows ---- */

static void read_state(struct round *round)
{
    const char *state = round->ctx->claimed->run.state;
    json_t *json = state ? json_loads(state, 0, NULL) : NULL;
    round->failures = (int)json_integer_value(json_object_get(json, "failures"));
    round->stuck = (int64_t)json_integer_value(json_object_get(json, "stuck"));
    round->tries = (int)json_integer_value(json_object_get(json, "tries"));
    round->parked = json_is_true(json_object_get(json, "parked"));
    round->error =
        hf__arena_strdup(round->arena, json_string_value(json_object_get(json, "error")));
    json_decref(json);
}

static hf_code load_subscription(struct round *round, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, round->client->engine, HF__STMT_LOAD_SUBSCRIPTION);
    c[0] = hf__number(round->client->tenant_id);
    c[1] = hf__uuid(&round->ctx->claimed->run.id);
    hf__table_init(&ask.out, round->arena, ask.out.ncolumns);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows > 0) {
        const struct hf__cell *row = hf__table_row(&ask.out, 0);
        round->subscription = hf__as_uuid(row[0]);
        round->name = hf__as_text(row[1]);
        round->url = hf__as_text(row[2]);
        round->secret = hf__as_text(row[3]);
        round->mode = (hf_event_mode)hf__as_number(row[4]);
        round->max_failures = (int)hf__as_number(row[5]);
    }
    hf__ask_end(&ask);
    return code;
}

static void forget_failures(struct round *round)
{
    round->failures = round->tries = 0;
    round->stuck = 0;
    round->error = NULL;
}

static void read_mail(struct round *round)
{
    const hf_claimed *claimed = round->ctx->claimed;
    for (size_t i = 0; i < claimed->mail_count; i++)
        if (strcmp(claimed->mail[i].name, "resume") == 0) {
            forget_failures(round);
            round->parked = false;
        }
}

/* ---- Delivering a page ---- */

/* Pages grow and shrink with the payloads, so that a hundred large ones do not fill the memory. */
static int next_limit(const struct round *round, size_t bytes)
{
    size_t each = round->count ? bytes / round->count + 1 : 1;
    size_t fit = PAGE_BYTES / each;
    return fit > PAGE ? PAGE : fit < 1 ? 1 : (int)fit;
}

/* What failed stays where it is, with all that waits behind it, and is passed by for the rest of the turn. An event with a
 * lower number may be committed meanwhile, and one of the same run after it: then the turn is over, and the next begins
 * with that one. */
static hf_code load_page(struct round *round, hf_error *err)
{
    struct hf__delivery *deliveries = NULL;
    struct hf__delivery_range range = {
        .subscription = round->subscription,
        .after = round->failed_count ? round->reached : 0,
        .most = round->limit,
    };
    size_t bytes = 0;
    memcpy(range.held, round->held, sizeof range.held);
    hf__arena_reset(&round->page);
    hf_code code =
        hf__deliveries_load(round->client, &deliveries, &round->count, &range, &round->page, err);
    if (code == HF_OK && round->count > 0 && range.after && deliveries[0].behind != round->left)
        round->count = 0;
    for (size_t i = 0; code == HF_OK && i < round->count; i++) {
        round->items[i] = (struct item){ .delivery = &deliveries[i] };
        bytes += deliveries[i].payload ? strlen(deliveries[i].payload) : 0;
        round->reached = deliveries[i].position;
    }
    round->limit = next_limit(round, bytes);
    return code;
}

/* The receiver must have had all earlier events of its run. */
static bool may_go(const struct round *round, size_t index)
{
    for (int i = 0; i < HF__MOST_HELD; i++)
        if (hf_id_equal(round->held[i], round->items[index].delivery->run))
            return false;
    for (size_t i = 0; i < index; i++)
        if (round->items[i].progress != DONE &&
            hf_id_equal(round->items[i].delivery->run, round->items[index].delivery->run))
            return false;
    return true;
}

static hf_code send_item(struct round *round, struct item *item, hf_error *err)
{
    const struct hf__delivery *d = item->delivery;
    const struct hf__cloudevent event = {
        .id = d->id,
        .tenant = round->client->tenant,
        .workflow = d->workflow,
        .run = d->run,
        .type = d->type,
        .subject = d->subject ? d->subject : d->key,
        .trace = d->trace,
        .created_at = d->created_at,
        .payload = d->payload,
    };
    hf_code code =
        hf__cloudevent_request(&item->request, &event, round->url, round->secret, round->mode,
                               hf__clock_now(&hf__system_clock), &round->page, err);
    if (code == HF_OK)
        code = hf__courier_send(round->courier, &item->request, item, err);
    if (code == HF_OK)
        item->progress = SENT;
    return code;
}

/* Nothing more is sent in this turn: too much has failed, or the receiver has asked for a rest. */
static bool is_enough(const struct round *round)
{
    return round->failed_count >= ENOUGH || round->gone || round->retry_after > 0 ||
           hf__monotonic_us() >= round->until;
}

static hf_code send_more(struct round *round, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < round->count; i++) {
        if (hf__courier_busy(round->courier) == HF__COURIER_MOST || is_enough(round))
            break;
        if (round->items[i].progress == WAITING && may_go(round, i))
            code = send_item(round, &round->items[i], err);
    }
    return code;
}

static void come_back(void *tag, const struct hf__receipt *receipt, void *arg)
{
    struct item *item = tag;
    struct round *round = arg;
    item->progress = receipt->taken ? DONE : FAILED;
    if (receipt->taken) {
        round->delivered++;
        return;
    }
    item->error = hf__arena_strdup(&round->page, receipt->error);
    if (round->failed_count < HF__MOST_HELD)
        round->held[round->failed_count] = item->delivery->run;
    if (round->failed_count++ == 0 || item->delivery->attempts > round->failed_attempts) {
        round->failed_position = item->delivery->position;
        round->failed_attempts = item->delivery->attempts;
        round->error = hf__arena_strdup(round->arena, receipt->error);
    }
    round->gone |= receipt->status == GONE;
    if (receipt->retry_after > round->retry_after)
        round->retry_after = receipt->retry_after;
}

static hf_code record_page(struct round *round, hf_error *err)
{
    const struct hf__delivery *ended[PAGE];
    size_t count = 0;
    for (size_t i = 0; i < round->count; i++)
        if (round->items[i].progress == DONE)
            ended[count++] = round->items[i].delivery;
    hf_code code = hf__deliveries_end(round->client, round->subscription, ended, count, err);
    for (size_t i = 0; code == HF_OK && i < round->count; i++)
        if (round->items[i].progress == FAILED)
            code = hf__delivery_blame(round->client, round->subscription, round->items[i].delivery,
                                      round->items[i].error, err);
    return code;
}

/* What was taken is recorded, whatever ended the page. */
static hf_code deliver_page(struct round *round, hf_error *err)
{
    hf_error ignored;
    hf_code code = send_more(round, err);
    while (code == HF_OK && hf__courier_busy(round->courier) > 0) {
        code = hf__courier_wait(round->courier, LOOK_UP, come_back, round, err);
        if (code == HF_OK)
            code = hf_check(round->ctx);
        if (code == HF_OK)
            code = send_more(round, err);
    }
    for (size_t i = 0; i < round->count; i++)
        round->left += round->items[i].progress != DONE;
    hf_code recorded = record_page(round, code == HF_OK ? err : &ignored);
    return code == HF_OK ? recorded : code;
}

static hf_code deliver(struct round *round, hf_error *err)
{
    hf_code code = hf__courier_new(&round->courier, err);
    round->until = hf__monotonic_us() + TURN_LIMIT;
    round->limit = FIRST_PAGE;
    while (code == HF_OK && !is_enough(round)) {
        code = load_page(round, err);
        if (code != HF_OK || round->count == 0)
            break;
        code = deliver_page(round, err);
    }
    return code;
}

/* ---- How it goes on ---- */

/* Of all, or of one event. */
static int worst_of(const struct round *round)
{
    return round->tries > round->failures ? round->tries : round->failures;
}

static int64_t backoff(struct round *round, int failures)
{
    int64_t delay = RETRY_MOST;
    if (failures < 20 && RETRY_BASE << (failures - 1) < RETRY_MOST)
        delay = RETRY_BASE << (failures - 1);
    delay += (int64_t)(hf__random_unit(&round->random) * (double)delay / 2);
    if (delay > RETRY_MOST)
        delay = RETRY_MOST;
    return delay > round->retry_after ? delay : round->retry_after;
}

static char *state_json(struct round *round)
{
    struct hf__buffer json = { 0 };
    hf__buffer_addf(&json, "{\"failures\":%d,\"stuck\":%lld,\"tries\":%d,\"parked\":%s,\"error\":",
                    round->failures, (long long)round->stuck, round->tries,
                    round->parked ? "true" : "false");
    if (round->error)
        hf__buffer_add_json_string(&json, round->error, strlen(round->error));
    else
        hf__buffer_add_text(&json, "null");
    hf__buffer_add_text(&json, "}");
    char *state = json.failed ? NULL : hf__arena_strdup(round->arena, json.data);
    hf__buffer_free(&json);
    return state;
}

static char *alert_json(struct round *round)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "{\"subscription\":");
    hf__buffer_add_json_string(&json, round->name, strlen(round->name));
    hf__buffer_add_text(&json, ",\"url\":");
    hf__buffer_add_json_string(&json, round->url, strlen(round->url));
    hf__buffer_addf(&json, ",\"failures\":%d,\"error\":", worst_of(round));
    hf__buffer_add_json_string(&json, round->error ? round->error : "",
                               round->error ? strlen(round->error) : 0);
    hf__buffer_add_text(&json, "}");
    char *alert = json.failed ? NULL : hf__arena_strdup(round->arena, json.data);
    hf__buffer_free(&json);
    return alert;
}

/* All mail is done with: there is nothing in it but "look again". */
static hf_code consume_mail(struct round *round, hf_transition *t, hf_error *err)
{
    const hf_claimed *claimed = round->ctx->claimed;
    const char **consumed =
        hf__arena_calloc(round->arena, claimed->mail_count + 1, sizeof *consumed);
    if (!consumed)
        return hf__nomem(err);
    for (size_t i = 0; i < claimed->mail_count; i++)
        consumed[i] = claimed->mail[i].id;
    t->consumed = consumed;
    t->consumed_count = claimed->mail_count;
    return HF_OK;
}

/* Too many failures, be it of all or of one event that nobody can take, park the subscription; the same commit says so. */
static hf_code count_failure(struct round *round, hf_transition *t, hf_error *err)
{
    round->tries = round->stuck == round->failed_position ? round->tries + 1 : 1;
    round->stuck = round->failed_position;
    round->failures = round->delivered ? 1 : round->failures + 1;
    int worst = worst_of(round);
    round->parked = round->gone || worst >= round->max_failures;
    if (!round->parked) {
        t->waiting_kind = "retry";
        int64_t now = 0;
        hf_code code = hf_store_now(round->client, &now, err);
        t->waiting_until = now + backoff(round, worst);
        return code;
    }
    hf_new_outbox *alert = hf__arena_alloc(round->arena, sizeof *alert);
    char *payload = alert_json(round);
    if (!alert || !payload)
        return hf__nomem(err);
    *alert = (hf_new_outbox){ .type = HF__ALERT_PARKED, .payload = payload };
    t->outbox = alert;
    t->outbox_count = 1;
    return HF_OK;
}

static hf_code suspend(struct round *round, hf_error *err)
{
    hf_ctx *ctx = round->ctx;
    hf_transition t = {
        .turn = HF_TURN_WAIT,
        .waiting_kind = HF__WAITING_OUTBOX,
        .seen_position = ctx->claimed->seen_position,
        .seen_at = ctx->claimed->seen_at,
    };
    hf_code code = consume_mail(round, &t, err);
    if (code == HF_OK && round->failed_count > 0)
        code = count_failure(round, &t, err);
    else if (code == HF_OK && round->delivered)
        forget_failures(round);
    if (round->parked)
        t.waiting_kind = "parked";
    t.state = state_json(round);
    if (code == HF_OK && !t.state)
        code = hf__nomem(err);
    if (code != HF_OK)
        return code;
    ctx->transition = t;
    ctx->suspended = true;
    return HF_SUSPENDED;
}

hf_code hf__dispatch_chore(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)arg;
    struct round *round = hf__arena_calloc(&ctx->arena, 1, sizeof *round);
    if (!round)
        return hf__nomem(err);
    round->ctx = ctx;
    round->client = hf_ctx_client(ctx);
    round->arena = &ctx->arena;
    if (!hf__random_seed_os(&round->random))
        hf__random_seed(&round->random, (uint64_t)ctx->claimed->run.version);
    read_state(round);
    read_mail(round);
    hf_code code = load_subscription(round, err);
    if (code == HF_OK && round->name && !round->parked) {
        code = deliver(round, err);
        if (code == HF_OK && round->count == 0)
            code = hf__outbox_expire(round->client, ctx->claimed->seen_at - HF__OUTBOX_RETENTION,
                                     EXPIRE_MOST, NULL, err);
    }
    if (code == HF_OK)
        code = suspend(round, err);
    hf__courier_free(round->courier);
    hf__arena_free(&round->page);
    return code;
}

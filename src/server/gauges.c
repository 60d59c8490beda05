/* SPDX-License-Identifier: Apache-2.0 */
#include "server/gauges.h"

#include "client/answer.h"
#include "client/client.h"
#include "client/live.h"
#include "server/inner.h"
#include "server/park.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#include <stdlib.h>
#include <string.h>

enum {
    MINUTES = 60,
    KINDS = 4,
    LOOK_BACK = 200000, /* positions; what happened before is not counted, however recent */
    MOST_TENANTS = 200, /* that are remembered although nobody asks for them any more */
    SHARE = 20          /* measuring takes at most one part in so many of the time */
};

#define MEASURE_EVERY HF_SECONDS(2)
#define WATCHED_FOR HF_SECONDS(15) /* after the last question */
#define FRESH_FOR HF_SECONDS(10)   /* an older one is not answered; a new one is made first */

/* What those who wait listen to, in the park's table of runs: no run has this id. */
static const hf_id channel = { { 0xff, 'g', 'a', 'u', 'g', 'e' } };

struct minute {
    int64_t at; /* us since the epoch: when it began */
    int64_t counts[KINDS];
};

static const struct hf__field minute_fields[] = {
    { "at", HF__FIELD_TIME, offsetof(struct minute, at) },
    { "created", HF__FIELD_INT64, offsetof(struct minute, counts[0]) },
    { "succeeded", HF__FIELD_INT64, offsetof(struct minute, counts[1]) },
    { "failed", HF__FIELD_INT64, offsetof(struct minute, counts[2]) },
    { "cancelled", HF__FIELD_INT64, offsetof(struct minute, counts[3]) },
    { NULL, HF__FIELD_TEXT, 0 },
};

/* One tenant. `wanted_at`, `json`, `length` and what follows them are guarded by the mutex; the rest is the thread's. */
struct gauge {
    struct gauge *next;
    int tenant;
    int64_t wanted_at; /* monotonic us */
    char *json;        /* NULL: not measured yet */
    size_t length;
    bool at_work;        /* is being measured: must stay */
    int64_t measured_at; /* monotonic us, also of a failure */
    int64_t cost;        /* us */
    hf_code code;
    hf_error err;

    struct minute minutes[MINUTES]; /* a minute's place is the remainder of its number */
    int64_t counted;                /* position up to which events were counted; -1: none yet */
    int64_t
        seen; /* the newest position at the look before, which late commits have had time to fill */
    int64_t since; /* us since the epoch: nothing before was counted */
};

struct hf__gauges {
    hf_client *client;
    struct hf__park *park;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    struct gauge *first;
    int count;
};

/* ---- The last hour ---- */

static void count_in(struct gauge *gauge, const struct hf__minute_count *found, int64_t this_minute)
{
    struct minute *minute = &gauge->minutes[found->minute % MINUTES];
    if (found->minute <= this_minute - MINUTES || found->minute > this_minute)
        return;
    if (minute->at != found->minute * HF_MINUTES(1))
        *minute = (struct minute){ .at = found->minute * HF_MINUTES(1) };
    for (int kind = 0; kind < KINDS; kind++)
        if (strcmp(minute_fields[1 + kind].name, found->name) == 0)
            minute->counts[kind] += found->count;
}

/* The first time, and after a long time without questions, it begins anew with the newest events. */
static void choose_start(struct gauge *gauge, int64_t newest)
{
    if (gauge->counted >= 0 && newest - gauge->counted <= LOOK_BACK)
        return;
    memset(gauge->minutes, 0, sizeof gauge->minutes);
    gauge->counted = newest > LOOK_BACK ? newest - LOOK_BACK : 0;
    gauge->seen = newest;
    gauge->since = 0;
}

static int64_t earliest(const struct hf__minute_counts *counts)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < counts->count; i++)
        if (counts->items[i].minute < first)
            first = counts->items[i].minute;
    return first;
}

static hf_code count_minutes(struct hf__gauges *gauges, struct gauge *gauge, int64_t now,
                             hf_error *err)
{
    struct hf__minute_counts *counts = NULL;
    int64_t newest;
    hf_code code = hf__newest_position(gauges->client, &newest, err);
    if (code != HF_OK)
        return code;
    choose_start(gauge, newest);
    bool cut = gauge->since == 0 && gauge->counted > 0;
    code =
        hf__minutes_read(gauges->client, &counts, gauge->tenant, gauge->counted, gauge->seen, err);
    if (code != HF_OK)
        return code;
    int64_t hour_ago = now - HF_HOURS(1);
    int64_t first = earliest(counts);
    if (cut && first == INT64_MAX)
        gauge->since = now;
    else if (cut && first * HF_MINUTES(1) > hour_ago)
        gauge->since = (first + 1) * HF_MINUTES(1);
    else if (gauge->since == 0)
        gauge->since = hour_ago;
    for (size_t i = 0; i < counts->count; i++)
        count_in(gauge, &counts->items[i], now / HF_MINUTES(1));
    gauge->counted = gauge->seen;
    gauge->seen = newest;
    hf__answer_free(counts);
    return HF_OK;
}

static const struct hf__field throughput_fields[] = {
    { "since", HF__FIELD_TIME, offsetof(struct gauge, since) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void add_minutes(struct hf__buffer *out, const struct gauge *gauge, int64_t now)
{
    int64_t last = now / HF_MINUTES(1);
    hf__buffer_add_text(out, ",\"throughput\":{");
    hf__record_members(out, throughput_fields, gauge);
    hf__buffer_add_text(out, ",\"minutes\":[");
    for (int64_t number = last - MINUTES + 1; number <= last; number++) {
        const struct minute *minute = &gauge->minutes[number % MINUTES];
        const struct minute quiet = { .at = number * HF_MINUTES(1) };
        hf__buffer_add_text(out, number > last - MINUTES + 1 ? "," : "");
        hf__record_json(out, minute_fields, minute->at == quiet.at ? minute : &quiet);
    }
    hf__buffer_add_text(out, "]}");
}

/* ---- The queues ---- */

#define FIELD(member, kind)                                                                        \
    {                                                                                              \
#member, HF__FIELD_##kind, offsetof(struct hf__queue, member)                              \
    }
static const struct hf__field queue_fields[] = {
    FIELD(name, TEXT),     FIELD(paused, BOOL),     FIELD(due, INT64),
    FIELD(delayed, INT64), FIELD(waiting, INT64),   FIELD(leased, INT64),
    FIELD(failed, INT64),  FIELD(oldest_due, TIME), { NULL, HF__FIELD_TEXT, 0 },
};

#define TOTAL_FIELDS (queue_fields + 2) /* without name and paused */

/* Without the engine's own, as lists of runs are. */
static void add_up(struct hf__queue *total, const struct hf__queue *queue)
{
    static const char own[] = "holdfast.";
    if (strncmp(queue->name, own, sizeof own - 1) == 0)
        return;
    total->due += queue->due;
    total->delayed += queue->delayed;
    total->waiting += queue->waiting;
    total->leased += queue->leased;
    total->failed += queue->failed;
    if (queue->oldest_due && (!total->oldest_due || queue->oldest_due < total->oldest_due))
        total->oldest_due = queue->oldest_due;
}

static hf_code add_queues(struct hf__buffer *out, struct hf__gauges *gauges, int tenant,
                          hf_error *err)
{
    struct hf__queues *queues = NULL;
    struct hf__queue total = { 0 };
    hf_code code = hf__queues_read(gauges->client, &queues, tenant, err);
    if (code != HF_OK)
        return code;
    hf__buffer_add_text(out, ",\"workflows\":[");
    for (size_t i = 0; i < queues->count; i++) {
        hf__buffer_add_text(out, i > 0 ? "," : "");
        hf__record_json(out, queue_fields, &queues->items[i]);
        add_up(&total, &queues->items[i]);
    }
    hf__buffer_add_text(out, "],\"total\":{");
    hf__record_members(out, TOTAL_FIELDS, &total);
    hf__buffer_add_text(out, "}");
    hf__answer_free(queues);
    return HF_OK;
}

/* ---- Measuring ---- */

struct stats {
    int64_t at; /* us since the epoch */
    int most;   /* a workflow's counts go no further */
};

const struct hf__field hf__stats_fields[] = {
    { "at", HF__FIELD_TIME, offsetof(struct stats, at) },
    { "most", HF__FIELD_INT, offsetof(struct stats, most) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static const struct hf__part throughput_parts[] = {
    { .name = "minutes", .schema = "MinuteStats", .fields = minute_fields, .many = true },
    { .name = NULL },
};

const struct hf__part hf__stats_parts[] = {
    { .name = "workflows", .schema = "WorkflowStats", .fields = queue_fields, .many = true },
    { .name = "total", .schema = "TotalStats", .fields = TOTAL_FIELDS },
    { .name = "throughput",
      .schema = "ThroughputStats",
      .fields = throughput_fields,
      .maybe = true,
      .parts = throughput_parts },
    { .name = NULL },
};

static hf_code measure(struct hf__gauges *gauges, struct gauge *gauge, struct hf__buffer *out,
                       hf_error *err)
{
    struct stats stats = { .most = HF__MOST_QUEUED };
    hf_code code = hf_store_now(gauges->client, &stats.at, err);
    if (code != HF_OK)
        return code;
    hf__buffer_add_text(out, "{");
    hf__record_members(out, hf__stats_fields, &stats);
    code = add_queues(out, gauges, gauge->tenant, err);
    if (code == HF_OK && gauge->measured_at)
        code = count_minutes(gauges, gauge, stats.at, err);
    if (code != HF_OK)
        return code;
    if (gauge->measured_at)
        add_minutes(out, gauge, stats.at);
    else
        hf__buffer_add_text(out, ",\"throughput\":null"); /* so that the first answer is quick */
    hf__buffer_add_text(out, "}");
    return out->failed ? hf__nomem(err) : HF_OK;
}

/* Without the mutex. */
static void measure_one(struct hf__gauges *gauges, struct gauge *gauge)
{
    struct hf__buffer out = { 0 };
    hf_error err = { 0 };
    int64_t begun = hf__monotonic_us();
    hf_code code = measure(gauges, gauge, &out, &err);
    size_t length = out.length;
    char *json = code == HF_OK ? hf__buffer_take(&out) : NULL;
    hf__buffer_free(&out);
    pthread_mutex_lock(&gauges->mutex);
    gauge->code = code;
    gauge->err = err;
    gauge->measured_at = hf__monotonic_us();
    gauge->cost = gauge->measured_at - begun;
    if (json) {
        free(gauge->json);
        gauge->json = json;
        gauge->length = length;
    }
    pthread_mutex_unlock(&gauges->mutex);
    hf__park_tell(gauges->park, channel);
}

static int64_t due_at(const struct gauge *gauge)
{
    int64_t pause = gauge->cost * SHARE;
    if (gauge->counted < 0 && gauge->code == HF_OK)
        return gauge->measured_at;
    if (gauge->wanted_at <= gauge->measured_at - WATCHED_FOR)
        return INT64_MAX;
    return gauge->measured_at + (pause > MEASURE_EVERY ? pause : MEASURE_EVERY);
}

/* Under the mutex: the gauge to measure next, when its time has come; else sleeps. */
static struct gauge *next_due(struct hf__gauges *gauges)
{
    struct gauge *next = NULL;
    int64_t soonest = INT64_MAX;
    for (struct gauge *gauge = gauges->first; gauge; gauge = gauge->next) {
        int64_t at = gauge->measured_at ? due_at(gauge) : 0;
        if (at < soonest) {
            soonest = at;
            next = gauge;
        }
    }
    if (next && soonest <= hf__monotonic_us())
        return next;
    struct timespec time = { .tv_sec = soonest / 1000000, .tv_nsec = soonest % 1000000 * 1000 };
    if (next)
        pthread_cond_timedwait(&gauges->changed, &gauges->mutex, &time);
    else
        pthread_cond_wait(&gauges->changed, &gauges->mutex);
    return NULL;
}

static void *measure_main(void *arg)
{
    struct hf__gauges *gauges = arg;
    pthread_mutex_lock(&gauges->mutex);
    while (!gauges->stop) {
        struct gauge *gauge = next_due(gauges);
        if (!gauge || gauges->stop)
            continue;
        gauge->at_work = true;
        pthread_mutex_unlock(&gauges->mutex);
        measure_one(gauges, gauge);
        pthread_mutex_lock(&gauges->mutex);
        gauge->at_work = false;
    }
    pthread_mutex_unlock(&gauges->mutex);
    return NULL;
}

hf_code hf__gauges_new(struct hf__gauges **out, hf_client *client, struct hf__park *park,
                       hf_error *err)
{
    struct hf__gauges *gauges = hf__calloc(1, sizeof *gauges);
    if (!gauges)
        return hf__nomem(err);
    gauges->client = client;
    gauges->park = park;
    hf__cond_init(&gauges->changed);
    pthread_mutex_init(&gauges->mutex, NULL);
    hf_code code = hf__thread_start(&gauges->thread, measure_main, gauges, err);
    if (code != HF_OK)
        free(gauges);
    else
        *out = gauges;
    return code;
}

static void gauge_free(struct gauge *gauge)
{
    free(gauge->json);
    free(gauge);
}

void hf__gauges_free(struct hf__gauges *gauges)
{
    if (!gauges)
        return;
    pthread_mutex_lock(&gauges->mutex);
    gauges->stop = true;
    pthread_cond_signal(&gauges->changed);
    pthread_mutex_unlock(&gauges->mutex);
    pthread_join(gauges->thread, NULL);
    while (gauges->first) {
        struct gauge *gauge = gauges->first;
        gauges->first = gauge->next;
        gauge_free(gauge);
    }
    pthread_cond_destroy(&gauges->changed);
    pthread_mutex_destroy(&gauges->mutex);
    free(gauges);
}

/* ---- Answering ---- */

/* Under the mutex. The one that was asked for least recently goes, unless somebody may still look at it. */
static void forget_oldest(struct hf__gauges *gauges)
{
    struct gauge **oldest = NULL;
    for (struct gauge **place = &gauges->first; *place; place = &(*place)->next)
        if (!(*place)->at_work && (!oldest || (*place)->wanted_at < (*oldest)->wanted_at))
            oldest = place;
    if (!oldest || (*oldest)->wanted_at > hf__monotonic_us() - WATCHED_FOR)
        return;
    struct gauge *gauge = *oldest;
    *oldest = gauge->next;
    gauges->count--;
    gauge_free(gauge);
}

/* Under the mutex. */
static hf_code gauge_of(struct hf__gauges *gauges, struct gauge **out, int tenant, hf_error *err)
{
    for (struct gauge *gauge = gauges->first; gauge; gauge = gauge->next)
        if (gauge->tenant == tenant) {
            *out = gauge;
            return HF_OK;
        }
    if (gauges->count >= MOST_TENANTS)
        forget_oldest(gauges);
    struct gauge *gauge = hf__calloc(1, sizeof *gauge);
    if (!gauge)
        return hf__nomem(err);
    gauge->tenant = tenant;
    gauge->counted = -1;
    gauge->next = gauges->first;
    gauges->first = gauge;
    gauges->count++;
    *out = gauge;
    return HF_OK;
}

/* Under the mutex. A failure that is newer than the measurement is answered instead of it. */
static hf_code answer(struct hf__request *request, const struct gauge *gauge, bool *ready,
                      hf_error *err)
{
    int64_t age = hf__monotonic_us() - gauge->measured_at;
    int64_t limit = FRESH_FOR + gauge->cost * (SHARE + 1);
    *ready = gauge->measured_at && age <= limit;
    if (!*ready || gauge->code == HF_OK) {
        if (*ready)
            hf__buffer_add(&request->out, gauge->json, gauge->length);
        return HF_OK;
    }
    *err = gauge->err;
    return gauge->code;
}

hf_code hf__gauges_answer(struct hf__request *request, hf_error *err)
{
    struct hf__gauges *gauges = request->server->gauges;
    struct gauge *gauge = NULL;
    bool ready = false;
    hf__park_listen(request, channel);
    if (!request->deadline)
        request->deadline = hf__monotonic_us() + HF_SECONDS(60);
    pthread_mutex_lock(&gauges->mutex);
    hf_code code = gauge_of(gauges, &gauge, request->client->tenant_id, err);
    if (code == HF_OK) {
        gauge->wanted_at = hf__monotonic_us();
        code = answer(request, gauge, &ready, err);
        pthread_cond_signal(&gauges->changed);
    }
    pthread_mutex_unlock(&gauges->mutex);
    if (code != HF_OK)
        return code;
    if (ready)
        return hf__reply_done(request, 200, err);
    if (hf__request_must_answer(request))
        return hf__fail(err, HF_TIMEOUT, "the store takes too long to be measured");
    hf__park_sleep(request, request->deadline);
    return HF_OK;
}

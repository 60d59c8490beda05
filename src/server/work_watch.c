/* A remote worker that holds runs for long: it hears at once which of them were cancelled. A hint, its heartbeat tells the truth.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/ask.h"
#include "client/client.h"
#include "server/inner.h"
#include "server/park.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_WAIT HF_SECONDS(60)
#define SAFETY_LOOK HF_SECONDS(5) /* for wake-ups that got lost */
#define PACE HF_MILLISECONDS(200) /* between two looks, whatever happens */
#define LOOK_BACK                                                                                  \
    HF_SECONDS(5)             /* of a new watch: what happened since the one before, or the claim */
#define LATE HF_SECONDS(2)    /* a change becomes visible after the time that it bears */
#define FORGET HF_SECONDS(30) /* what was told; longer than anybody looks back */

enum { MOST_TOLD = 1024, MOST_FOUND = 1000 };

/* ---- What was told: a worker asks again at once, and must not hear the same for ever ---- */

struct hf__told {
    pthread_mutex_t mutex;
    struct {
        hf_id run;
        int64_t cancelled_at; /* it may be tried again, and cancelled again */
        int64_t at;           /* monotonic us */
    } runs[MOST_TOLD];
    size_t next;
};

hf_code hf__told_new(struct hf__told **out, hf_error *err)
{
    struct hf__told *told = hf__calloc(1, sizeof *told);
    if (!told)
        return hf__nomem(err);
    pthread_mutex_init(&told->mutex, NULL);
    *out = told;
    return HF_OK;
}

void hf__told_free(struct hf__told *told)
{
    if (!told)
        return;
    pthread_mutex_destroy(&told->mutex);
    free(told);
}

/* False: it was told before. */
static bool tell_once(struct hf__told *told, hf_id run, int64_t cancelled_at)
{
    int64_t now = hf__monotonic_us();
    bool found = false;
    pthread_mutex_lock(&told->mutex);
    for (size_t i = 0; i < MOST_TOLD && !found; i++)
        found = told->runs[i].at + FORGET > now && told->runs[i].cancelled_at == cancelled_at &&
                hf_id_equal(told->runs[i].run, run);
    if (!found) {
        told->runs[told->next].run = run;
        told->runs[told->next].cancelled_at = cancelled_at;
        told->runs[told->next].at = now;
        told->next = (told->next + 1) % MOST_TOLD;
    }
    pthread_mutex_unlock(&told->mutex);
    return !found;
}

/* ---- Watching ---- */

struct watching {
    const char *worker;
    int64_t wait;
    char *name;        /* in the store */
    int64_t since;     /* store clock: what was cancelled before it is known */
    int64_t looked_at; /* monotonic us; 0: not yet */
};

const struct hf__member hf__work_watch_members[] = {
    HF__MEMBER(struct watching, worker, TEXT, "the worker's name", .required = true),
    HF__MEMBER(struct watching, wait, DURATION,
               "how long to wait for something, at most 60s; default 0"),
    HF__MEMBERS_END,
};

struct cancelled {
    hf_id id;
};

const struct hf__field hf__work_watch_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct cancelled, id) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code begin(struct hf__request *request, struct watching **out, hf_error *err)
{
    struct watching *new = *out = hf__arena_calloc(&request->arena, 1, sizeof *new);
    int64_t now = 0;
    if (!new)
        return hf__nomem(err);
    hf_code code = hf__request_body(request, new, NULL, err);
    if (code == HF_OK && !(new->name = hf__work_name(request, new->worker)))
        code = hf__nomem(err);
    if (code == HF_OK)
        code = hf_store_now(request->client, &now, err);
    if (code != HF_OK)
        return code;
    new->since = now - LOOK_BACK;
    new->wait = new->wait < LONGEST_WAIT ? new->wait : LONGEST_WAIT;
    request->deadline = hf__monotonic_us() + new->wait;
    request->kept = new;
    return HF_OK;
}

static void add_found(struct hf__request *request, const struct hf__table *found, size_t *told)
{
    for (int i = 0; i < found->nrows; i++) {
        const struct hf__cell *c = hf__table_row(found, i);
        struct cancelled run = { hf__as_uuid(c[0]) };
        if (!tell_once(request->server->told, run.id, hf__as_number(c[1])))
            continue;
        hf__buffer_add_text(&request->out, (*told)++ ? "," : "{\"items\":[");
        hf__record_json(&request->out, hf__work_watch_fields, &run);
    }
}

/* Adds what was not told before to the answer. */
static hf_code look(struct hf__request *request, struct watching *watching, size_t *told,
                    hf_error *err)
{
    struct hf__ask ask;
    int64_t now = 0;
    *told = 0;
    watching->looked_at = hf__monotonic_us();
    hf_code code = hf_store_now(request->client, &now, err);
    if (code != HF_OK)
        return code;
    struct hf__cell *c = hf__ask_begin(&ask, request->client->engine, HF__STMT_FIND_CANCELLED);
    c[0] = hf__number(request->client->tenant_id);
    c[1] = hf__number(watching->since);
    c[2] = hf__text(watching->name);
    c[3] = hf__number(MOST_FOUND);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        add_found(request, &ask.out, told);
    if (code == HF_OK && now - LATE > watching->since)
        watching->since = now - LATE;
    hf__ask_end(&ask);
    return code;
}

static void sleep_until(struct hf__request *request, int64_t until)
{
    hf__park_sleep(request, until < request->deadline ? until : request->deadline);
}

hf_code hf__work_watch(struct hf__request *request, hf_error *err)
{
    struct watching *watching = request->kept;
    size_t told = 0;
    hf_code code = watching ? HF_OK : begin(request, &watching, err);
    if (code != HF_OK)
        return code;
    int64_t next = watching->looked_at + PACE;
    if (watching->looked_at && next > hf__monotonic_us() && !hf__request_must_answer(request)) {
        hf__park_leave(request); /* what it hears now, it sees then */
        sleep_until(request, next);
        return HF_OK;
    }
    hf__park_listen(request, hf__lost_leases);
    code = look(request, watching, &told, err);
    if (code != HF_OK)
        return code;
    if (told == 0 && !hf__request_must_answer(request)) {
        sleep_until(request, watching->looked_at + SAFETY_LOOK);
        return HF_OK;
    }
    hf__buffer_add_text(&request->out, told ? "]}" : "{\"items\":[]}");
    return hf__reply_done(request, 200, err);
}

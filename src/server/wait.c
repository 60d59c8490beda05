/* SPDX-License-Identifier: Apache-2.0 */
#include "server/wait.h"

#include "client/read.h"
#include "client/watch.h"
#include "server/inner.h"
#include "server/park.h"
#include "server/stream.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST_WAIT HF_SECONDS(60)
#define SAFETY_LOOK                                                                                \
    HF_SECONDS(15) /* for wake-ups that got lost; also how often a stream says that it lives */

/* Events that a stream takes at once: as many as fit, or one. */
enum { PAGE = 50, PAGE_BYTES = 128 * 1024 };

static int64_t next_look(int64_t deadline)
{
    int64_t look = hf__monotonic_us() + SAFETY_LOOK;
    return look < deadline ? look : deadline;
}

/* Marks the run; *look: when to look again, sooner where it could not be marked because somebody held its row. */
static hf_code watch(struct hf__request *request, hf_id run, enum hf__watch_level level,
                     int64_t deadline, int64_t *look, hf_error *err)
{
    bool locked = false;
    hf_code code = hf__watch_try(request->client, run, level, &locked, err);
    *look = next_look(deadline);
    int64_t again = hf__monotonic_us() + hf__watch_pause(request->locked);
    if (locked && again < *look)
        *look = again;
    request->locked = locked ? request->locked + 1 : 0;
    return code;
}

hf_code hf__wait_for_end(struct hf__request *request, hf_id run, int64_t wait, hf_error *err)
{
    hf_run *found = NULL;
    int64_t look = 0;
    if (!request->deadline)
        request->deadline = hf__monotonic_us() + (wait < LONGEST_WAIT ? wait : LONGEST_WAIT);
    hf__park_listen(request, run);
    hf_code code = watch(request, run, HF__WATCH_END, request->deadline, &look, err);
    if (code == HF_OK)
        code = hf_get(request->client, &found, run, err);
    if (code == HF_OK && (hf_status_finished(found->status) || hf__request_must_answer(request)))
        code = hf__reply_run(request, found, err);
    else if (code == HF_OK)
        hf__park_sleep(request, look);
    hf_run_free(found);
    return code;
}

/* ---- Streams ---- */

struct follower {
    int64_t after; /* sequence number of the last event that was sent */
};

static hf_code follower_of(struct hf__request *request, int64_t after, struct follower **out,
                           hf_error *err)
{
    if (!request->kept) {
        const char *last = hf__request_header(request, "Last-Event-ID");
        struct follower *new = hf__arena_alloc(&request->arena, sizeof *new);
        if (!new)
            return hf__nomem(err);
        new->after = last ? strtoll(last, NULL, 10) : after;
        request->kept = new;
    }
    *out = request->kept;
    return HF_OK;
}

static hf_code add_event(struct hf__request *request, const hf_event *event, hf_error *err)
{
    struct hf__buffer line = { 0 };
    hf__record_json(&line, hf__event_fields, event);
    if (!line.failed)
        hf__stream_event(request, NULL, event->seq, line.data, line.length);
    hf_code code = line.failed ? hf__nomem(err) : HF_OK;
    hf__buffer_free(&line);
    return code;
}

/* One page; *more: there may be another. */
static hf_code add_page(struct hf__request *request, hf_id run, struct follower *follower,
                        bool *more, hf_error *err)
{
    hf_events *events = NULL;
    hf_code code = hf__events_list(request->client, &events, run, follower->after, PAGE, PAGE_BYTES,
                                   more, err);
    for (size_t i = 0; code == HF_OK && i < events->count; i++) {
        code = add_event(request, &events->items[i], err);
        follower->after = events->items[i].seq;
    }
    hf_events_free(events);
    return code;
}

/* Whether nothing more will happen: it was looked at before the events were. */
static hf_code is_over(struct hf__request *request, hf_id run, bool *over, hf_error *err)
{
    hf_run *found = NULL;
    hf_code code = hf_get(request->client, &found, run, err);
    *over = code == HF_OK && hf_status_finished(found->status);
    hf_run_free(found);
    return code;
}

hf_code hf__follow_events(struct hf__request *request, hf_id run, int64_t after, hf_error *err)
{
    struct follower *follower = NULL;
    bool over = false;
    bool more = false;
    int64_t look = 0;
    hf_code code = follower_of(request, after, &follower, err);
    if (code != HF_OK)
        return code;
    hf__park_listen(request, run);
    code = watch(request, run, HF__WATCH_EVENTS, INT64_MAX, &look, err);
    if (code == HF_OK)
        code = is_over(request, run, &over, err);
    if (code != HF_OK)
        return code;
    size_t before = request->out.length;
    if (!request->stream.on)
        hf__stream_begin(request);
    else
        before = 0;
    code = add_page(request, run, follower, &more, err);
    if (code != HF_OK)
        return code;
    if ((over && !more) || atomic_load(&request->server->stopping))
        hf__stream_end(request);
    else if (request->out.length == before)
        hf__stream_keep_alive(request);
    hf__park_sleep(request, more ? 0 : look);
    return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/feed.h"

#include "client/answer.h"
#include "client/client.h"
#include "client/live.h"
#include "server/inner.h"
#include "server/park.h"
#include "server/stream.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#include <stdlib.h>
#include <string.h>

enum {
    RING = 4096,     /* lines that are kept */
    PAGE = 2000,     /* lines of one look */
    BACKLOG = 200,   /* positions before the newest at which the reader begins */
    TOO_FAR = 20000, /* positions behind at which it goes on with the newest */
    BATCH = 8192,    /* bytes for a listener at a time: who does not read costs some 40 kB */
    SHARE = 4,       /* looking takes at most one part in so many of the time */
    MOST_LAST = 500
};

#define LOOK_EVERY HF_MILLISECONDS(500)
#define HOLD_FOR_GAP HF_SECONDS(2)
#define LINGER HF_SECONDS(10) /* the reader goes on for so long when nobody listens */
#define KEEP_ALIVE HF_SECONDS(15)
#define SHORTEST_LOOK HF_MILLISECONDS(4) /* at a listener that has more to read */
#define LONGEST_LOOK HF_SECONDS(4)

/* What the listeners listen to, in the park's table of runs: no run has this id. */
static const hf_id channel = { { 0xff, 'f', 'e', 'e', 'd' } };

struct line {
    int64_t position;
    int tenant;
    const char *kind; /* of the table of kinds: never freed */
    char *workflow;
    char *json;
};

struct hf__feed {
    hf_client *client;
    struct hf__park *park;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    bool wanted;            /* somebody came */
    bool running;           /* the ring is up to date */
    int64_t heard_at;       /* monotonic us: somebody listened */
    struct line ring[RING]; /* guarded by mutex; line n is at n % RING */
    int64_t first, end;     /* ordinals of the lines in the ring */
    /* the reader's own */
    bool in_order;     /* what commits later comes later: nothing is waited for */
    int64_t done;      /* position up to which lines were taken */
    int64_t cost;      /* us that the last look took */
    int64_t gap_since; /* monotonic us: a gap is waited for; 0: none */
    int64_t gap_upto;  /* what was there when the wait began */
    int64_t
        settled; /* the store's clock, us: what is missing before older lines does not come any more */
};

#define FIELD(member, kind)                                                                        \
    {                                                                                              \
#member, HF__FIELD_##kind, offsetof(struct hf__feed_line, member)                          \
    }
const struct hf__field hf__feed_fields[] = {
    FIELD(position, INT64), FIELD(run, ID),    FIELD(workflow, TEXT),       FIELD(key, TEXT),
    FIELD(seq, INT64),      FIELD(kind, TEXT), FIELD(name, TEXT),           FIELD(step, TEXT),
    FIELD(actor, TEXT),     FIELD(at, TIME),   { NULL, HF__FIELD_TEXT, 0 },
};

/* ---- The ring ---- */

static void line_free(struct line *line)
{
    free(line->workflow);
    free(line->json);
    *line = (struct line){ 0 };
}

/* Whoever has been placed finds itself before the first line, also if it had heard them all. */
static void ring_clear(struct hf__feed *feed)
{
    for (int64_t n = feed->first; n < feed->end; n++)
        line_free(&feed->ring[n % RING]);
    feed->first = ++feed->end;
}

static void ring_add(struct hf__feed *feed, const struct hf__feed_line *from)
{
    struct hf__buffer json = { 0 };
    hf__record_json(&json, hf__feed_fields, from);
    struct line line = { .position = from->position, .tenant = from->tenant, .kind = from->kind };
    line.workflow = from->workflow ? hf__strdup(from->workflow) : NULL;
    line.json = hf__buffer_take(&json);
    if (!line.json || (from->workflow && !line.workflow)) {
        line_free(&line); /* a live view may lose a line */
        return;
    }
    if (feed->end - feed->first == RING)
        line_free(&feed->ring[feed->first++ % RING]);
    feed->ring[feed->end++ % RING] = line;
}

/* The first line after a position. */
static int64_t ring_after(const struct hf__feed *feed, int64_t position)
{
    int64_t low = feed->first, high = feed->end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (feed->ring[middle % RING].position > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- Reading ---- */

/* Whether what is missing before this line will not come any more, or too late. */
static bool may_pass(const struct hf__feed *feed, const struct hf__feed_line *line, bool waited)
{
    return feed->in_order || line->at < feed->settled ||
           (waited && line->position <= feed->gap_upto);
}

static bool has_waited(const struct hf__feed *feed)
{
    return feed->gap_since && hf__monotonic_us() - feed->gap_since >= HOLD_FOR_GAP;
}

/* How many lines of the page may be taken: those before a gap that is still waited for. */
static size_t before_gap(struct hf__feed *feed, const struct hf__feed_page *page)
{
    bool waited = has_waited(feed);
    int64_t expected = feed->done + 1;
    for (size_t i = 0; i < page->count; i++) {
        int64_t position = page->items[i].position;
        if (position != expected && !may_pass(feed, &page->items[i], waited)) {
            if (!feed->gap_since || waited) {
                feed->gap_since = hf__monotonic_us();
                feed->gap_upto = page->items[page->count - 1].position;
            }
            return i;
        }
        expected = position + 1;
    }
    feed->gap_since = 0;
    return page->count;
}

/* Whether it has its place, be it that the first gap is waited for. */
static bool has_begun(const struct hf__feed *feed)
{
    return feed->running || feed->gap_since;
}

/* Begins with what is newest, or goes on there when it is too far behind. */
static hf_code find_place(struct hf__feed *feed, hf_error *err)
{
    int64_t newest;
    int64_t now;
    hf_code code = hf__newest_position(feed->client, &newest, err);
    if (code != HF_OK || (has_begun(feed) && newest - feed->done <= TOO_FAR))
        return code;
    code = hf_store_now(feed->client, &now, err);
    if (code != HF_OK)
        return code;
    pthread_mutex_lock(&feed->mutex);
    ring_clear(feed);
    pthread_mutex_unlock(&feed->mutex);
    feed->done = newest > BACKLOG ? newest - BACKLOG : 0;
    feed->settled = now - HOLD_FOR_GAP;
    feed->gap_since = 0;
    return HF_OK;
}

/* *more: there may be another page. */
static hf_code look(struct hf__feed *feed, bool *more, hf_error *err)
{
    struct hf__feed_page *page = NULL;
    hf_code code = hf__feed_read(feed->client, &page, feed->done, PAGE, err);
    if (code != HF_OK)
        return code;
    bool waited = has_waited(feed);
    size_t count = before_gap(feed, page);
    pthread_mutex_lock(&feed->mutex);
    for (size_t i = 0; i < count; i++)
        ring_add(feed, &page->items[i]);
    /* Who begins at the end, or some lines before it, must not be told of what was there already as if it were new. */
    feed->running = feed->running || waited || count == page->count;
    pthread_mutex_unlock(&feed->mutex);
    if (count > 0)
        feed->done = page->items[count - 1].position;
    *more = count == PAGE;
    hf__answer_free(page);
    return HF_OK;
}

static void read_new(struct hf__feed *feed)
{
    hf_error err;
    bool more = true;
    hf_code code = find_place(feed, &err);
    while (code == HF_OK && more) {
        bool was_running = feed->running;
        int64_t end = feed->end;
        code = look(feed, &more, &err);
        if (code == HF_OK && feed->running && (feed->end != end || !was_running))
            hf__park_tell(feed->park, channel);
    }
}

/* Under the mutex, until there is something to do. */
static void rest(struct hf__feed *feed)
{
    int64_t pause = feed->cost * SHARE > LOOK_EVERY ? feed->cost * SHARE : LOOK_EVERY;
    int64_t until = hf__monotonic_us() + pause;
    struct timespec time = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    if (has_begun(feed))
        pthread_cond_timedwait(&feed->changed, &feed->mutex, &time);
    while (!has_begun(feed) && !feed->wanted && !feed->stop)
        pthread_cond_wait(&feed->changed, &feed->mutex);
}

static void *reader_main(void *arg)
{
    struct hf__feed *feed = arg;
    pthread_mutex_lock(&feed->mutex);
    while (!feed->stop) {
        if (hf__monotonic_us() - feed->heard_at > LINGER && !feed->wanted) {
            feed->running = false;
            feed->gap_since = 0;
        }
        rest(feed);
        feed->wanted = false;
        pthread_mutex_unlock(&feed->mutex);
        if (hf__park_has_listeners(feed->park, channel))
            feed->heard_at = hf__monotonic_us();
        int64_t begun = hf__monotonic_us();
        read_new(feed);
        feed->cost = hf__monotonic_us() - begun;
        pthread_mutex_lock(&feed->mutex);
    }
    pthread_mutex_unlock(&feed->mutex);
    return NULL;
}

hf_code hf__feed_new(struct hf__feed **out, hf_client *client, struct hf__park *park, hf_error *err)
{
    struct hf__feed *feed = hf__calloc(1, sizeof *feed);
    if (!feed)
        return hf__nomem(err);
    feed->client = client;
    feed->park = park;
    feed->in_order = hf__engine_driver(client->engine) == &hf__sqlite_driver;
    feed->heard_at = hf__monotonic_us();
    hf__cond_init(&feed->changed);
    pthread_mutex_init(&feed->mutex, NULL);
    hf_code code = hf__thread_start(&feed->thread, reader_main, feed, err);
    if (code != HF_OK)
        free(feed);
    else
        *out = feed;
    return code;
}

void hf__feed_free(struct hf__feed *feed)
{
    if (!feed)
        return;
    pthread_mutex_lock(&feed->mutex);
    feed->stop = true;
    pthread_cond_signal(&feed->changed);
    pthread_mutex_unlock(&feed->mutex);
    pthread_join(feed->thread, NULL);
    ring_clear(feed);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->mutex);
    free(feed);
}

/* ---- Listening ---- */

struct listener {
    struct hf__feed_query query;
    bool placed;
    int64_t at;       /* ordinal of the next line; once placed */
    int64_t spoke_at; /* monotonic us: something was sent */
    int64_t patience; /* us until it is looked whether it has read */
};

static bool wants(const struct hf__request *request, const struct listener *listener,
                  const struct line *line)
{
    static const char own[] = "holdfast.";
    const struct hf__feed_query *query = &listener->query;
    if (!query->workflow && line->workflow && strncmp(line->workflow, own, sizeof own - 1) == 0)
        return false; /* the engine's own, as in lists of runs */
    return line->tenant == request->client->tenant_id &&
           (!query->workflow || (line->workflow && strcmp(line->workflow, query->workflow) == 0)) &&
           (!query->kind || strcmp(line->kind, query->kind) == 0);
}

static void tell_lost(struct hf__request *request, const struct hf__feed *feed)
{
    static const char data[] = "{}";
    int64_t before = feed->first < feed->end ? feed->ring[feed->first % RING].position - 1 : 0;
    hf__stream_event(request, "lost", before, data, sizeof data - 1);
}

/* Under the mutex: where the listener begins. */
static void place(struct hf__request *request, const struct hf__feed *feed,
                  struct listener *listener)
{
    const char *id = hf__request_header(request, "Last-Event-ID");
    int64_t after = id ? strtoll(id, NULL, 10) : 0;
    if (id && feed->first == feed->end)
        return; /* whether it missed something is known when there is a line */
    listener->placed = true;
    listener->at = feed->end;
    if (id) {
        listener->at = ring_after(feed, after);
        if (listener->at == feed->first && feed->first < feed->end &&
            after < feed->ring[feed->first % RING].position - 1)
            tell_lost(request, feed);
        return;
    }
    int left = listener->query.last;
    for (int64_t n = feed->end; n > feed->first && left > 0; n--)
        if (wants(request, listener, &feed->ring[(n - 1) % RING])) {
            listener->at = n - 1;
            left--;
        }
}

/* Under the mutex. True: there is more for it. */
static bool add_lines(struct hf__request *request, const struct hf__feed *feed,
                      struct listener *listener)
{
    if (feed->first == feed->end)
        return false; /* what was lost is told with the line that follows */
    if (listener->at < feed->first) {
        tell_lost(request, feed);
        listener->at = feed->first;
    }
    while (listener->at < feed->end && request->out.length < BATCH) {
        const struct line *line = &feed->ring[listener->at++ % RING];
        if (wants(request, listener, line))
            hf__stream_event(request, NULL, line->position, line->json, strlen(line->json));
    }
    return listener->at < feed->end;
}

static struct listener *listener_of(struct hf__request *request, const struct hf__feed_query *query)
{
    struct listener *listener = request->kept;
    if (!listener) {
        listener = hf__arena_calloc(&request->arena, 1, sizeof *listener);
        if (!listener)
            return NULL;
        listener->query = *query;
        if (listener->query.last > MOST_LAST)
            listener->query.last = MOST_LAST;
        request->kept = listener;
    }
    return listener;
}

/* Gives how long it may sleep, us. A listener that has not read what it was given gets nothing more, so that it costs no
 * more than one batch. */
static int64_t give(struct hf__request *request, struct hf__feed *feed, struct listener *listener)
{
    bool more = false;
    if (hf__stream_unread(request) > 0) {
        listener->patience =
            listener->patience < LONGEST_LOOK ? 2 * listener->patience : LONGEST_LOOK;
        return listener->patience;
    }
    listener->patience = SHORTEST_LOOK;
    pthread_mutex_lock(&feed->mutex);
    if (!feed->running) {
        feed->wanted = true;
        pthread_cond_signal(&feed->changed);
    } else {
        if (!request->stream.on)
            hf__stream_begin(request); /* from here on nothing is missed */
        if (!listener->placed)
            place(request, feed, listener);
        more = add_lines(request, feed, listener);
    }
    pthread_mutex_unlock(&feed->mutex);
    return more ? listener->patience : KEEP_ALIVE;
}

hf_code hf__feed_follow(struct hf__request *request, const struct hf__feed_query *query,
                        hf_error *err)
{
    struct hf__feed *feed = request->server->feed;
    struct listener *listener = listener_of(request, query);
    if (!listener)
        return hf__nomem(err);
    hf__park_listen(request, channel);
    int64_t now = hf__monotonic_us();
    bool stopping = atomic_load(&request->server->stopping);
    int64_t sleep = give(request, feed, listener);
    if (!request->stream.on && (stopping || now - request->begun >= KEEP_ALIVE))
        hf__stream_begin(request); /* the store is away; it hears when it is back */
    if (request->out.length > 0)
        listener->spoke_at = now;
    else if (request->stream.on && now - listener->spoke_at >= KEEP_ALIVE) {
        hf__stream_keep_alive(request);
        listener->spoke_at = now;
    }
    if (stopping)
        hf__stream_end(request);
    hf__park_sleep(request, now + sleep);
    return HF_OK;
}

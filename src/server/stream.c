/* SPDX-License-Identifier: Apache-2.0 */
#include "server/stream.h"

#include "server/inner.h"
#include "server/park.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <string.h>

enum { BLOCK = 2048, MOST_UNREAD = 256 * 1024 };

void hf__stream_begin(struct hf__request *request)
{
    request->stream.on = true;
    atomic_fetch_add(&request->server->streams, 1);
    request->status = 200;
    request->type = "text/event-stream";
    hf__buffer_add_text(&request->out, "retry: 2000\n\n");
}

void hf__stream_take_back(struct hf__request *request)
{
    if (!request->stream.on)
        return;
    request->stream.on = false;
    atomic_fetch_sub(&request->server->streams, 1);
}

void hf__stream_event(struct hf__request *request, const char *name, int64_t id, const char *data,
                      size_t length)
{
    hf__buffer_addf(&request->out, "id: %" PRId64 "\n", id);
    if (name)
        hf__buffer_addf(&request->out, "event: %s\n", name);
    hf__buffer_add_text(&request->out, "data: ");
    hf__buffer_add(&request->out, data, length);
    hf__buffer_add_text(&request->out, "\n\n");
}

void hf__stream_keep_alive(struct hf__request *request)
{
    hf__buffer_add_text(&request->out, ":\n\n");
}

size_t hf__stream_unread(struct hf__request *request)
{
    pthread_mutex_lock(&request->mutex);
    size_t unread = request->stream.out.length - request->stream.sent;
    pthread_mutex_unlock(&request->mutex);
    return unread;
}

void hf__stream_end(struct hf__request *request)
{
    pthread_mutex_lock(&request->mutex);
    request->stream.ended = true;
    pthread_mutex_unlock(&request->mutex);
}

bool hf__stream_is_over(struct hf__request *request)
{
    pthread_mutex_lock(&request->mutex);
    bool over = request->gone || request->stream.ended;
    pthread_mutex_unlock(&request->mutex);
    return over;
}

bool hf__stream_is_behind(struct hf__request *request)
{
    pthread_mutex_lock(&request->mutex);
    bool behind = request->stream.full && !atomic_load(&request->server->stopping);
    pthread_mutex_unlock(&request->mutex);
    return behind;
}

/* The connection has ended: whoever works for it finds out and lets go. */
void hf__stream_hang_up(struct hf__request *request)
{
    pthread_mutex_lock(&request->mutex);
    request->gone = true;
    pthread_mutex_unlock(&request->mutex);
    hf__park_wake(request);
}

static ssize_t stream_read(void *arg, uint64_t position, char *to, size_t room)
{
    struct hf__request *request = arg;
    struct hf__stream *stream = &request->stream;
    ssize_t taken = 0;
    bool drained = false;
    (void)position;
    pthread_mutex_lock(&request->mutex);
    size_t there = stream->out.length - stream->sent;
    if (there > 0) {
        size_t part = there < room ? there : room;
        memcpy(to, stream->out.data + stream->sent, part);
        stream->sent += part;
        taken = (ssize_t)part;
        if (part == there) {
            stream->sent = 0;
            hf__buffer_free(&stream->out);
            drained = stream->full;
            stream->full = false;
        }
    } else if (stream->ended) {
        taken = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        stream->reader_waits = true;
        hf__request_suspend(request);
    }
    pthread_mutex_unlock(&request->mutex);
    if (drained)
        hf__park_wake(request);
    return taken;
}

/* libmicrohttpd sends the last chunk even where HEAD asked for none, and the next answer behind it. */
struct MHD_Response *hf__stream_response(struct hf__request *request)
{
    static char nothing[1];
    if (strcmp(request->method, "HEAD") == 0)
        return MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, stream_read, request, NULL);
}

/* A client that reads slowly may never have read everything. */
static void drop_sent(struct hf__stream *stream)
{
    struct hf__buffer *out = &stream->out;
    if (stream->sent == 0)
        return;
    memmove(out->data, out->data + stream->sent, out->length - stream->sent);
    out->length -= stream->sent;
    stream->sent = 0;
}

/* Moves what the handler wrote to the connection. True: it may write more, but not while the client is behind (*full). */
static bool hand_over(struct hf__request *request, bool *full)
{
    struct hf__stream *stream = &request->stream;
    pthread_mutex_lock(&request->mutex);
    drop_sent(stream);
    hf__buffer_add(&stream->out, request->out.data, request->out.length);
    stream->ended = stream->ended || stream->out.failed || request->out.failed;
    *full = stream->full = stream->out.length > MOST_UNREAD;
    bool again = !stream->ended && !request->gone;
    if (!request->gone && stream->reader_waits && (stream->out.length > 0 || stream->ended)) {
        stream->reader_waits = false;
        hf__request_resume(request);
    }
    pthread_mutex_unlock(&request->mutex);
    hf__buffer_free(&request->out); /* most streams have nothing to say most of the time */
    return again;
}

void hf__stream_pump(struct hf__request *request)
{
    bool full;
    bool again = hand_over(request, &full);
    if (!request->stream.begun) {
        request->stream.begun = true;
        request->answered = true;
        hf__request_resume(request);
    }
    if (!again) {
        request->parked = false;
        hf__park_leave(request);
        return;
    }
    if (full)
        request->parking.until = INT64_MAX; /* until the client has read */
    hf__park_enter(request);
}

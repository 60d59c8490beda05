/* Between libmicrohttpd and the handlers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"
#include "server/park.h"

#include "client/client.h"
#include "server/assets.h"
#include "server/head.h"
#include "server/stream.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/http.h"

enum { MOST_PAIRS = 200 }; /* headers, or parameters of a query */

/* ---- Lifetime ---- */

void hf__request_hold(struct hf__request *request)
{
    atomic_fetch_add(&request->holders, 1);
}

void hf__request_release(struct hf__request *request)
{
    if (atomic_fetch_sub(&request->holders, 1) > 1)
        return;
    if (request->kept_free)
        request->kept_free(request->kept);
    hf__caller_release(request->server->access, request->caller);
    hf__body_drop(request);
    hf__unread_drop(request);
    hf__buffer_free(&request->out);
    hf__buffer_free(&request->stream.out);
    pthread_mutex_destroy(&request->mutex);
    hf__arena_free(&request->arena);
    free(request);
}

bool hf__request_must_answer(const struct hf__request *request)
{
    return atomic_load(&request->server->stopping) || hf__monotonic_us() >= request->deadline;
}

/* ---- Receiving ---- */

struct gathering {
    struct hf__request *request;
    struct hf__pair *pairs;
    size_t count;
    bool decode;
    bool bad;
};

/* What is not UTF-8 cannot be stored, nor told back as JSON. */
static bool is_text(const char *text)
{
    return text && hf__utf8_valid(text, strlen(text));
}

static enum MHD_Result gather_one(void *arg, enum MHD_ValueKind kind, const char *name,
                                  size_t name_length, const char *value, size_t value_length)
{
    struct gathering *into = arg;
    struct hf__arena *arena = &into->request->arena;
    (void)kind;
    if (into->count == MOST_PAIRS) {
        into->bad = true;
        return MHD_NO;
    }
    struct hf__pair *pair = &into->pairs[into->count++];
    value = value ? value : "";
    if (into->decode) {
        pair->name = hf__percent_decode(arena, name, name_length, true);
        pair->value = hf__percent_decode(arena, value, value_length, true);
    } else {
        pair->name = hf__arena_strndup(arena, name, name_length);
        pair->value = hf__arena_strndup(arena, value, value_length);
    }
    into->bad = into->bad || !is_text(pair->name) || !is_text(pair->value);
    return into->bad ? MHD_NO : MHD_YES;
}

static bool gather(struct hf__request *request, enum MHD_ValueKind kind, struct hf__pair **pairs,
                   size_t *count)
{
    int there = MHD_get_connection_values_n(request->connection, kind, NULL, NULL);
    struct gathering into = { .request = request, .decode = kind == MHD_GET_ARGUMENT_KIND };
    size_t room = there < MOST_PAIRS ? (size_t)(there > 0 ? there : 0) : MOST_PAIRS;
    into.pairs = hf__arena_calloc(&request->arena, room + 1, sizeof *into.pairs);
    if (!into.pairs || there > MOST_PAIRS)
        return false;
    MHD_get_connection_values_n(request->connection, kind, gather_one, &into);
    *pairs = into.pairs;
    *count = into.count;
    return !into.bad;
}

static bool decode_args(struct hf__request *request, const struct hf__path_match *match)
{
    for (int i = 0; i < HF__PATH_ARGS && match->starts[i]; i++) {
        request->args[i] =
            hf__percent_decode(&request->arena, match->starts[i], match->lengths[i], false);
        if (!is_text(request->args[i]))
            return false;
    }
    return true;
}

/* A mistyped parameter must not make a change of what was meant to be none. */
static void check_query(struct hf__request *request)
{
    const struct hf__member *known = request->route->query;
    for (size_t i = 0; !request->answered && i < request->query_count; i++) {
        hf_error err;
        const char *name = request->query[i].name;
        if (!hf__member_find(known, name) && hf__member_unknown(known, name, &err) != HF_OK)
            hf__reply_problem(request, &err);
    }
}

static void find_route(struct hf__request *request)
{
    struct hf__path_match match;
    enum hf__match found = hf__route_match(&match, request->method, request->path);
    bool api = strncmp(request->path, "/v1", 3) == 0 && strchr("/", request->path[3]);
    if (request->server->options.metrics_only && api)
        found = HF__NO_SUCH_PATH;
    switch (found) {
    case HF__MATCHED:
        request->route = match.route;
        if (!decode_args(request, &match))
            hf__reply_problem_as(request, HF__PROBLEM_INVALID, "the path is not well-formed", NULL);
        else if (api)
            check_query(request);
        break;
    case HF__NO_SUCH_METHOD:
        hf__reply_problem_as(request, HF__PROBLEM_METHOD_NOT_ALLOWED,
                             "this path does not have this method",
                             hf__arena_printf(&request->arena, "it has %s", match.allowed));
        hf__reply_header(request, "Allow", match.allowed);
        break;
    case HF__NO_SUCH_PATH:
        if (!hf__asset_answer(request))
            hf__reply_problem_as(request, HF__PROBLEM_NO_SUCH_PATH, "there is nothing at this path",
                                 api && !request->server->options.metrics_only
                                     ? "what there is stands in " HF__OPENAPI_PATH
                                     : NULL);
        break;
    }
}

static size_t count_headers(const struct hf__request *request, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++)
        count += strcasecmp(request->headers[i].name, name) == 0;
    return count;
}

/* A proxy in front must not understand it otherwise than we do: a second request could hide in the first. One that speaks
 * HTTP/1.0 may know no chunks. */
static bool is_framed_once(const struct hf__request *request)
{
    const char *encoding = hf__request_header(request, "Transfer-Encoding");
    size_t encodings = count_headers(request, "Transfer-Encoding");
    size_t lengths = count_headers(request, "Content-Length");
    return encodings + lengths <= 1 &&
           (!encoding || (strcasecmp(encoding, "chunked") == 0 && !request->is_old));
}

/* Of these everybody on the way may take another one. NULL: none is there twice. */
static const char *find_double(const struct hf__request *request)
{
    static const char *const singles[] = { "Host",           "Authorization",   "Holdfast-Tenant",
                                           "Holdfast-Actor", "Idempotency-Key", NULL };
    for (const char *const *name = singles; *name; name++)
        if (count_headers(request, *name) > 1)
            return *name;
    return NULL;
}

/* Says whether it was refused. */
static bool refuse_ambiguous(struct hf__request *request)
{
    const char *doubled = find_double(request);
    if (!is_framed_once(request))
        hf__reply_problem_as(request, HF__PROBLEM_INVALID,
                             "where the request ends is said in two ways, or in none that is known",
                             "send Content-Length or Transfer-Encoding: chunked, once");
    else if (doubled)
        hf__reply_problem_as(request, HF__PROBLEM_INVALID,
                             "a header that says one thing is there twice",
                             hf__arena_printf(&request->arena, "send the header %s once", doubled));
    else if (!request->is_old && !hf__request_header(request, "Host"))
        hf__reply_problem_as(request, HF__PROBLEM_INVALID, "the header Host is missing", NULL);
    return request->answered;
}

static void check_route(struct hf__request *request)
{
    find_route(request);
    if (!request->answered)
        hf__body_check(request);
}

/* What can be refused before the body has come. */
static void check_early(struct hf__request *request)
{
    if (refuse_ambiguous(request))
        return;
    hf__check_origin(request);
    if (!request->answered && !request->foreign)
        check_route(request);
}

static struct hf__request *begin(struct hf__server *server, struct MHD_Connection *connection,
                                 const char *url, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct hf__connection *known = info ? info->socket_context : NULL;
    struct hf__request *request = known ? hf__calloc(1, sizeof *request) : NULL;
    if (!request)
        return NULL;
    hf__head_end(known);
    request->server = server;
    request->connection = connection;
    request->entry = known->entry;
    request->is_old = strcmp(version, "HTTP/1.0") == 0;
    request->begun = hf__monotonic_us();
    atomic_init(&request->holders, 1);
    pthread_mutex_init(&request->mutex, NULL);
    hf__arena_init(&request->arena, 1024);
    request->path = hf__arena_strdup(&request->arena, url);
    request->method = hf__arena_strdup(&request->arena, method);
    if (!request->path || !request->method) {
        hf__request_release(request);
        return NULL;
    }
    atomic_fetch_add(&server->pending, 1);
    const char *fault = hf__head_fault(known, method, url, version);
    if (fault)
        hf__reply_problem_as(request, HF__PROBLEM_INVALID, "the request is not well-formed", fault);
    else if (!gather(request, MHD_HEADER_KIND, &request->headers, &request->header_count) ||
             !gather(request, MHD_GET_ARGUMENT_KIND, &request->query, &request->query_count))
        hf__reply_problem_as(request, HF__PROBLEM_INVALID,
                             "the query or the headers are not well-formed", NULL);
    else
        check_early(request);
    return request;
}

/* ---- Answering ---- */

/* libmicrohttpd takes chunks whose lines end with a lone LF, as not everybody on the way does. So whatever follows a request
 * in chunks is not read. */
static bool closes(const struct hf__request *request)
{
    return atomic_load(&request->server->stopping) ||
           hf__request_header(request, "Transfer-Encoding") != NULL;
}

static void add_headers(struct hf__request *request, struct MHD_Response *response)
{
    const char *type = request->type ? request->type : "application/json";
    if (request->status != 204)
        MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (closes(request))
        MHD_add_response_header(response, "Connection", "close");
    bool cached = false;
    for (int i = 0; i < request->answer_header_count; i++) {
        const struct hf__pair *header = &request->answer_headers[i];
        cached = cached || strcmp(header->name, "Cache-Control") == 0;
        MHD_add_response_header(response, header->name, header->value);
    }
    if (!cached)
        MHD_add_response_header(response, "Cache-Control", "no-store");
}

static struct MHD_Response *make_response(struct hf__request *request)
{
    if (request->stream.on)
        return hf__stream_response(request);
    const void *bytes = request->fixed ? request->fixed : request->out.data;
    size_t length = request->fixed ? request->fixed_length : request->out.length;
    union {
        const void *in;
        void *out;
    } body = { .in = bytes ? bytes : "" };
    return MHD_create_response_from_buffer(length, body.out, MHD_RESPMEM_PERSISTENT);
}

/* "Not modified" where the caller has this answer already, compressed or not. */
static void shorten(struct hf__request *request)
{
    for (int i = 0; request->status == 200 && i < request->answer_header_count; i++) {
        const struct hf__pair *header = &request->answer_headers[i];
        if (strcmp(header->name, "ETag") != 0)
            continue;
        const char *etag = header->value + (strncmp(header->value, "W/", 2) == 0 ? 2 : 0);
        if (hf__request_has(request, etag)) {
            request->status = 304;
            request->fixed = "";
            request->fixed_length = 0;
        }
    }
}

static enum MHD_Result send_answer(struct hf__request *request)
{
    shorten(request);
    struct MHD_Response *response = make_response(request);
    if (!response)
        return MHD_NO;
    add_headers(request, response);
    enum MHD_Result result =
        MHD_queue_response(request->connection, (unsigned)request->status, response);
    MHD_destroy_response(response);
    return result;
}

void hf__request_suspend(struct hf__request *request)
{
    atomic_fetch_add(&request->server->suspended, 1);
    MHD_suspend_connection(request->connection);
}

void hf__request_resume(struct hf__request *request)
{
    struct hf__server *server = request->server;
    MHD_resume_connection(request->connection);
    atomic_fetch_sub(&server->suspended, 1);
}

/* ---- Working ---- */

/* A stream that has begun cannot tell of an error: it ends, and a client that comes back is told why. */
static void fail(struct hf__request *request, hf_code code, hf_error *err)
{
    err->code = code;
    if (request->stream.begun) {
        hf__stream_end(request);
    } else if (!request->answered) {
        hf__stream_take_back(request);
        hf__reply_problem(request, err);
    }
}

static void call_handler(struct hf__request *request)
{
    hf_error err = { 0 };
    struct hf__access *access = request->server->access;
    if (request->calls == 0 && !hf__unread_may_change(request)) {
        hf__unread_refuse(request);
        return;
    }
    hf_code code = request->calls++ == 0 ? hf__access_check(access, request, &err)
                                         : hf__access_check_again(access, request, &err);
    if (code == HF_OK)
        code = request->route->handle(request, &err);
    if (code != HF_OK)
        fail(request, code, &err);
}

void hf__request_answered(struct hf__request *request)
{
    hf__park_leave(request);
    hf__gzip_answer(request);
    hf__unread_keep(request);
    hf__request_resume(request);
}

static void refuse_to_begin(struct hf__request *request)
{
    hf__reply_problem_as(request, HF__PROBLEM_STOPPING, "the server is stopping", NULL);
}

static void check_access(struct hf__request *request)
{
    hf_error err = { 0 };
    hf_code code = hf__access_check(request->server->access, request, &err);
    if (code != HF_OK)
        fail(request, code, &err);
}

static void check_host(struct hf__request *request)
{
    hf__check_host(request);
    if (!request->answered)
        check_route(request);
}

void hf__request_work(struct hf__request *request)
{
    if (request->asking) {
        if (request->foreign)
            check_host(request);
        else
            check_access(request);
        hf__request_resume(request);
        return;
    }
    if (request->route->pace == HF__PACE_SLOW && atomic_load(&request->server->closed)) {
        refuse_to_begin(request);
        hf__request_resume(request);
        return;
    }
    if (request->stream.on && hf__stream_is_over(request)) {
        hf__park_leave(request);
        return;
    }
    if (request->stream.on && hf__stream_is_behind(request)) {
        hf__park_enter(request);
        return;
    }
    if (request->calls == 0) /* its token may have been revoked while it waited for a hand */
        hf__access_recall(request->server->access, request);
    call_handler(request);
    if (request->later) /* whoever answers may be at it already: nothing of it may be looked at */
        return;
    if (request->stream.on)
        hf__stream_pump(request);
    else if (request->parked)
        hf__park_enter(request);
    else
        hf__request_answered(request);
}

/* On the connection's thread, where nothing may wait. False: a hand has to do it. */
static bool work_at_once(struct hf__request *request)
{
    bool known = request->route->may == HF__MAY_ANYONE ||
                 hf__access_recall(request->server->access, request);
    if (!request->route->quick || request->body.length > HF__SHORT_BODY || !known)
        return false;
    request->at_once = true;
    call_handler(request);
    if (request->later)
        return true;
    request->at_once = false;
    if (request->to_hand) {
        request->to_hand = false;
        return false;
    }
    hf__request_answered(request);
    return true;
}

/* It is suspended first and then looks whether the server has closed: one that closed meanwhile waits for it. False: it is
 * refused. */
static bool set_aside(struct hf__request *request)
{
    hf__request_suspend(request);
    if (!atomic_load(&request->server->closed))
        return true;
    refuse_to_begin(request);
    hf__request_resume(request);
    return false;
}

/* To look who asks takes a moment, whatever the route. */
static void give_to_hand(struct hf__request *request)
{
    enum hf__pace pace = request->asking ? HF__PACE_COMMON : request->route->pace;
    hf__request_hold(request);
    hf__hands_give(request->server->hands[pace], request);
}

static void start(struct hf__request *request)
{
    if (set_aside(request) && !work_at_once(request))
        give_to_hand(request);
}

/* A refusal is sent before the body has come, unless that comes at once. */
static enum MHD_Result take_or_refuse(struct hf__request *request)
{
    return request->answered && !hf__body_is_short(request) ? send_answer(request) : MHD_YES;
}

static enum MHD_Result ask_first(struct hf__request *request)
{
    request->asking = true;
    hf__sweep_busy(request->server->sweep, request->entry);
    if (set_aside(request))
        give_to_hand(request);
    return MHD_YES;
}

/* The headers are there. A body is taken only from those who may use the route. */
static enum MHD_Result admit(struct hf__request *request)
{
    if (request->answered)
        return send_answer(request);
    if (request->foreign)
        return ask_first(request);
    if (request->route->may == HF__MAY_ANYONE || !hf__body_is_coming(request))
        return MHD_YES;
    if (!hf__access_recall(request->server->access, request))
        return ask_first(request);
    check_access(request);
    return take_or_refuse(request);
}

enum MHD_Result hf__on_request(void *arg, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **context)
{
    struct hf__server *server = arg;
    struct hf__request *request = *context;
    if (!request) {
        request = *context = begin(server, connection, url, method, version);
        return request ? admit(request) : MHD_NO;
    }
    if (request->asking) { /* was set aside at the headers, and goes on there */
        bool foreign = request->foreign;
        request->asking = request->foreign = false;
        hf__sweep_idle(server->sweep, request->entry);
        return foreign ? admit(request) : take_or_refuse(request);
    }
    if (*upload_size > 0) {
        hf__body_take(request, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!request->received) {
        request->received = true;
        hf__sweep_busy(server->sweep, request->entry);
        if (!request->answered) {
            start(request);
            return MHD_YES;
        }
    }
    return send_answer(request);
}

/* Of a trigger, the run that it made or found. */
static const char *started_run(const struct hf__request *request)
{
    static const char start[] = "/v1/runs/";
    for (int i = 0; i < request->answer_header_count; i++)
        if (strcmp(request->answer_headers[i].name, "Location") == 0 &&
            strncmp(request->answer_headers[i].value, start, sizeof start - 1) == 0)
            return request->answer_headers[i].value + sizeof start - 1;
    return NULL;
}

static const char *named_run(const struct hf__request *request)
{
    return request->route && strstr(request->route->path, "/runs/{id}") ? request->args[0] : NULL;
}

static void log_request(const struct hf__request *request)
{
    const struct hf__server_options *options = &request->server->options;
    if (!options->log)
        return;
    const char *started = started_run(request);
    struct hf__server_event event = {
        .run = started ? started : named_run(request),
        .started = started != NULL,
        .trace = hf__request_header(request, "traceparent"),
        .method = request->method,
        .path = request->path,
        .tenant = request->client ? request->client->tenant : NULL,
        .actor = request->client ? request->client->actor : NULL,
        .status = request->status,
        .duration = hf__monotonic_us() - request->begun,
        .message = request->failure,
    };
    options->log(&event, options->log_arg);
}

static void count_request(const struct hf__request *request)
{
    struct hf__server *server = request->server;
    size_t route = 0;
    while (route < server->route_count && hf__route_at(route) != request->route)
        route++;
    int class = request->status / 100 - 1;
    if (class >= 0 && class < HF__STATUS_CLASSES)
        atomic_fetch_add(&server->requests[route * HF__STATUS_CLASSES + (size_t) class], 1);
    if (request->stream.on)
        atomic_fetch_sub(&server->streams, 1);
}

void hf__on_completed(void *arg, struct MHD_Connection *connection, void **context,
                      enum MHD_RequestTerminationCode code)
{
    struct hf__server *server = arg;
    struct hf__request *request = *context;
    (void)connection, (void)code;
    if (!request)
        return;
    *context = NULL;
    log_request(request);
    count_request(request);
    hf__sweep_idle(server->sweep, request->entry);
    if (request->stream.on)
        hf__stream_hang_up(request);
    atomic_fetch_sub(&server->pending, 1);
    hf__request_release(request);
}

static struct hf__connection *meet(struct hf__server *server, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct hf__connection *known = info ? hf__calloc(1, sizeof *known) : NULL;
    if (!known)
        return NULL;
    known->server = server;
    known->connection = connection;
    known->fd = info->connect_fd;
    known->entry = hf__sweep_add(server->sweep, known->fd);
    return known;
}

void hf__on_connection(void *arg, struct MHD_Connection *connection, void **context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct hf__server *server = arg;
    struct hf__connection *known = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = meet(server, connection);
        return;
    }
    *context = NULL;
    hf__head_end(known);
    hf__sweep_remove(server->sweep, known ? known->entry : NULL);
    free(known);
}

/* The path and the query are decoded by us, part by part, so that an encoded slash is no separator. */
size_t hf__on_unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg, (void)connection;
    return strlen(text);
}

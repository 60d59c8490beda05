/* Starting and stopping.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include "server/feed.h"
#include "server/gauges.h"
#include "server/head.h"
#include "server/http.h"
#include "server/inner.h"
#include "server/openapi.h"
#include "server/park.h"
#include "server/survey.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DEFAULT_CONNECTIONS = 20000,
    SPARE_FILES = 200, /* for the store and what handlers open */
    DEFAULT_HANDS = 8,
    IDLE_SECONDS = 75,            /* of a client that reads nothing of its answer */
    CONNECTION_MEMORY = 16 * 1024 /* for the request's line and headers */
};

/* When the server stops, clients of whom none moves a byte for so long are waited for no more: longer than a lost
 * packet takes to be sent again. */
#define STALLED HF_SECONDS(1)

#define DEFAULT_BODY ((size_t)16 * 1024 * 1024)
#define LEAST_BODIES ((size_t)64 * 1024 * 1024) /* of all requests together */
enum { LARGEST_BODIES = 16 };                   /* may be received at once */

static void fill_defaults(struct hf__server_options *options)
{
    options->host = options->host ? options->host : "127.0.0.1";
    options->max_body = options->max_body ? options->max_body : DEFAULT_BODY;
    options->receive_limit = options->receive_limit ? options->receive_limit : HF_SECONDS(30);
    options->hands = options->hands ? options->hands : DEFAULT_HANDS;
    if (!options->max_connections)
        options->max_connections = DEFAULT_CONNECTIONS;
}

/* As many connections as the system allows files for. */
static void fit_files(struct hf__server_options *options)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur != RLIM_INFINITY &&
        files.rlim_cur < (rlim_t)options->max_connections + SPARE_FILES)
        options->max_connections =
            (int)(files.rlim_cur > 2 * SPARE_FILES ? files.rlim_cur - SPARE_FILES
                                                   : files.rlim_cur / 2);
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static hf_code read_address(union address *out, const char *host, int port, hf_error *err)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons((uint16_t)port);
    } else if (inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons((uint16_t)port);
    } else {
        return hf__fail(err, HF_INVALID, "\"%.100s\" is not an address to listen on", host);
    }
    return HF_OK;
}

static hf_code start_daemon(struct hf__server *server, hf_error *err)
{
    const struct hf__server_options *options = &server->options;
    union address address;
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    hf_code code = read_address(&address, options->host, options->port, err);
    if (code != HF_OK)
        return code;
    if (address.any.sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    if (options->certificate)
        flags |= MHD_USE_TLS;
    struct MHD_OptionItem items[] = {
        { MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)hf__on_library_log, server },
        { MHD_OPTION_SOCK_ADDR, 0, &address },
        { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)hf__on_completed, server },
        { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)hf__on_connection, server },
        { MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)hf__on_target, NULL },
        { MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)hf__on_unescape, NULL },
        { MHD_OPTION_CONNECTION_LIMIT, options->max_connections, NULL },
        { MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, NULL },
        { MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL },
        { MHD_OPTION_LISTEN_BACKLOG_SIZE, 1024, NULL },
        { MHD_OPTION_STRICT_FOR_CLIENT, 0, NULL }, /* we are stricter, and answer */
        { options->certificate ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0,
          (void *)(intptr_t)options->certificate },
        { options->certificate ? MHD_OPTION_HTTPS_MEM_KEY : MHD_OPTION_END, 0,
          (void *)(intptr_t)options->private_key },
        { MHD_OPTION_END, 0, NULL },
    };
    errno = 0;
    server->daemon = MHD_start_daemon(flags, (uint16_t)options->port, NULL, NULL, hf__on_request,
                                      server, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
    if (!server->daemon)
        return errno ? hf__fail(err, HF_INVALID,
                                "cannot listen on %.100s port %d: %s; choose another with --listen",
                                options->host, options->port, strerror(errno))
                     : hf__fail(err, HF_INVALID, "the certificate or its key is not usable");
    return HF_OK;
}

static void note_url(struct hf__server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    bool v6 = strchr(server->options.host, ':') != NULL;
    snprintf(server->url, sizeof server->url, "%s://%s%.100s%s:%d",
             server->options.certificate ? "https" : "http", v6 ? "[" : "", server->options.host,
             v6 ? "]" : "", info ? info->port : server->options.port);
}

static void server_free(struct hf__server *server)
{
    for (int pace = 0; pace < HF__PACES; pace++)
        hf__hands_free(server->hands[pace]);
    hf__feed_free(server->feed);
    hf__told_free(server->told);
    hf__gauges_free(server->gauges);
    hf__park_free(server->park);
    hf__sweep_free(server->sweep);
    hf__access_free(server->access);
    hf__survey_free(server->survey);
    free(server->requests);
    free(server->openapi);
    hf__buffer_free(&server->openapi_packed);
    free(server);
}

static hf_code prepare_document(struct hf__server *server, hf_error *err)
{
    hf_code code = hf__openapi_make(&server->openapi, &server->openapi_length, err);
    if (code == HF_OK &&
        !hf__gzip(&server->openapi_packed, server->openapi, server->openapi_length))
        code = hf__nomem(err);
    return code;
}

static hf_code prepare_metrics(struct hf__server *server, hf_error *err)
{
    while (hf__route_at(server->route_count)->method)
        server->route_count++;
    server->requests =
        hf__calloc((server->route_count + 1) * HF__STATUS_CLASSES, sizeof *server->requests);
    return server->requests ? hf__survey_new(&server->survey, server->client, err) : hf__nomem(err);
}

/* The slow ones are fewer than the store's connections: they cannot hold all of these either. */
static hf_code start_hands(struct hf__server *server, hf_error *err)
{
    int count = server->options.hands;
    const int sizes[HF__PACES] = {
        [HF__PACE_COMMON] = count,
        [HF__PACE_SLOW] = count / 4 + 1,
        [HF__PACE_PROBE] = 1,
    };
    hf_code code = HF_OK;
    for (int pace = 0; code == HF_OK && pace < HF__PACES; pace++)
        code = hf__hands_new(&server->hands[pace], sizes[pace], err);
    return code;
}

hf_code hf__server_start(struct hf__server **out, hf_client *client,
                         const struct hf__server_options *options, hf_error *err)
{
    struct hf__server *server = hf__calloc(1, sizeof *server);
    if (!server)
        return hf__nomem(err);
    server->options = *options;
    server->client = client;
    server->started_at = hf__clock_now(&hf__system_clock);
    fill_defaults(&server->options);
    fit_files(&server->options);
    server->max_bodies = LARGEST_BODIES * server->options.max_body;
    if (server->max_bodies < LEAST_BODIES)
        server->max_bodies = LEAST_BODIES;
    /* Whoever spares memory for what comes spares it for what goes. */
    server->max_unread = server->max_bodies;
    hf_code code = prepare_document(server, err);
    if (code == HF_OK)
        code = prepare_metrics(server, err);
    if (code == HF_OK)
        code = hf__access_new(&server->access, client, options->open, err);
    if (code == HF_OK)
        code = hf__sweep_new(&server->sweep, server->options.receive_limit, err);
    if (code == HF_OK)
        code = start_hands(server, err);
    if (code == HF_OK)
        code = hf__park_new(&server->park, client, server->hands[HF__PACE_COMMON], err);
    if (code == HF_OK)
        code = hf__told_new(&server->told, err);
    if (code == HF_OK)
        code = hf__feed_new(&server->feed, client, server->park, err);
    if (code == HF_OK)
        code = hf__gauges_new(&server->gauges, client, server->park, err);
    if (code == HF_OK)
        code = start_daemon(server, err);
    if (code != HF_OK) {
        server_free(server);
        return code;
    }
    note_url(server);
    *out = server;
    return HF_OK;
}

const char *hf__server_url(const struct hf__server *server)
{
    return server->url;
}

static void await_requests(struct hf__server *server, int64_t until)
{
    while (atomic_load(&server->pending) > 0 && hf__monotonic_us() < until) {
        hf__park_wake_all(server->park);
        usleep(2000);
    }
}

/* Requests that have arrived are waited for until they are answered; what comes and goes by the network, only while
 * it moves. Somebody who has stopped reading or sending would else hold up the stop for the whole time. */
static void await_moving(struct hf__server *server, int64_t until)
{
    bool moving = true;
    while (moving && atomic_load(&server->pending) > 0 && hf__monotonic_us() < until) {
        int64_t look = hf__monotonic_us() + STALLED;
        uint64_t moved = hf__sweep_moved(server->sweep);
        bool busy = atomic_load(&server->suspended) > 0; /* its answer may have begun just now */
        await_requests(server, look < until ? look : until);
        moving =
            busy || atomic_load(&server->suspended) > 0 || hf__sweep_moved(server->sweep) != moved;
    }
}

/* A daemon must not stop while a connection is suspended. Those who work for one give up when the store's own limits are
 * over; what comes from now on is refused. */
static void end_suspended(struct hf__server *server)
{
    atomic_store(&server->closed, true);
    while (atomic_load(&server->suspended) > 0) {
        hf__park_wake_all(server->park);
        usleep(2000);
    }
    hf__park_wake_all(server->park);
    for (int pace = 0; pace < HF__PACES; pace++)
        hf__hands_stop(server->hands[pace]);
}

void hf__server_stop(struct hf__server *server, int64_t limit)
{
    if (!server)
        return;
    int64_t until = hf__monotonic_us() + limit;
    /* Refuses from now on; the daemon's thread may still look at it, so it is closed last. */
    MHD_socket listener = MHD_quiesce_daemon(server->daemon);
    if (listener != MHD_INVALID_SOCKET)
        shutdown(listener, SHUT_RDWR);
    atomic_store(&server->stopping, true);
    await_moving(server, until);
    end_suspended(server);
    MHD_stop_daemon(server->daemon);
    if (listener != MHD_INVALID_SOCKET)
        close(listener);
    server_free(server);
}

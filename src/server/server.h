/* The HTTP server. libmicrohttpd's threads read requests and send answers; handlers run on hands, since they wait for the
 * store. While a request is with a hand, or parked, its connection is suspended and costs no thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_SERVER_H
#define HF_SERVER_SERVER_H

#include <holdfast/client.h>

struct hf__server;

/* A request that was answered, or a message of the server's own (`method` is NULL). */
struct hf__server_event {
    const char *method;
    const char *path;
    const char *tenant; /* NULL: the caller was not known */
    const char *actor;
    const char *run;   /* the id of the run that it was about; NULL: about none or many */
    const char *trace; /* traceparent; NULL: none */
    bool started;      /* the run was triggered by it */
    int status;
    int64_t duration; /* us, from the first byte to the last */
    const char *message;
};

struct hf__server_options {
    const char *host;        /* an address; default 127.0.0.1 */
    int port;                /* 0: any that is free */
    bool open;               /* requests need no token */
    const char *certificate; /* PEM texts of TLS; NULL: plain HTTP */
    const char *private_key;
    size_t max_body;       /* bytes; default 16 MiB */
    int64_t receive_limit; /* us for one request to arrive; default 30 s */
    int max_connections;   /* default 20,000, less where the system allows less */
    int hands;             /* threads for handlers; default 8 */
    bool dashboard;
    bool metrics_only; /* nothing below /v1: metrics and health alone */
    void (*log)(const struct hf__server_event *event, void *arg); /* thread-safe; may be NULL */
    void *log_arg;
};

hf_code hf__server_start(struct hf__server **out, hf_client *client,
                         const struct hf__server_options *options, hf_error *err) HF_MUST_CHECK;
/* Where it listens: "http://127.0.0.1:8420". */
const char *hf__server_url(const struct hf__server *server);
/* No new connections; streams end, long polls are answered. Waits for requests that have arrived to be answered, and for
 * what is on its way in and out as long as some client takes or sends a byte; after `limit` us for handlers at work alone. */
void hf__server_stop(struct hf__server *server, int64_t limit);

#endif

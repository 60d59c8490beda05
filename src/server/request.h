/* One HTTP request: what was asked, by whom, and the answer that is being made.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_REQUEST_H
#define HF_SERVER_REQUEST_H

#include "server/access.h"
#include "server/problem.h"
#include "server/route.h"

#include <holdfast/client.h>

#include <pthread.h>
#include <stdatomic.h>

struct MHD_Connection;
struct hf__server;
struct hf__sweep_entry;

struct hf__pair {
    const char *name;
    const char *value; /* a query's values are decoded */
};

enum { HF__MOST_HEADERS = 8 }; /* in an answer, beside those that every answer has */

/* Where a request waits; see park.h. Guarded by the park's mutex. */
struct hf__parking {
    bool listening; /* is told of what it listens to */
    bool asleep;    /* waits to be called again */
    bool news;      /* something was heard while it was awake */
    bool any;       /* listens to the lanes of work, not to a run */
    hf_id run;
    int64_t until; /* monotonic us: is called again then at the latest */
    struct hf__request *child, *sibling,
        *before; /* of the sleepers' heap; before: the sibling or parent on whose
                                                   * list it is */
    struct hf__request *next_listener, *previous_listener;
};

/* Events that are sent as they come. Guarded by `mutex`. */
struct hf__stream {
    bool on;           /* the answer is a stream */
    bool begun;        /* the connection sends it */
    bool ended;        /* nothing more will be added */
    bool reader_waits; /* the connection is suspended until there is something to send */
    bool full;         /* the writer waits until the client has read */
    size_t sent;       /* bytes of `out` that have been handed to the connection */
    struct hf__buffer out;
};

struct hf__request {
    struct hf__server *server;
    struct MHD_Connection *connection;
    struct hf__sweep_entry *entry; /* of its connection */
    atomic_int holders;            /* the connection, and whoever works on it; the last frees it */
    pthread_mutex_t mutex;         /* guards gone and stream */
    bool gone;                     /* the connection has ended */

    /* What was asked. Everything lives in the arena. */
    struct hf__arena arena;
    const struct hf__route *route;
    const char *method;
    const char *path;
    const char *args[HF__PATH_ARGS]; /* decoded */
    hf_id named_run; /* what its workflow and key were found to name; zero: not asked */
    struct hf__pair *headers;
    size_t header_count;
    struct hf__pair *query;
    size_t query_count;
    struct hf__buffer body;
    size_t body_taken; /* bytes of it, as counted in the server's total */
    bool is_old;       /* HTTP/1.0 */
    bool foreign;      /* it was sent to a name that a server without tokens does not answer to */
    bool asking;       /* a hand looks who asks, before the body is taken */
    bool received;     /* the body is complete */
    int64_t begun;     /* monotonic us */

    const char *caller_key;    /* what the caller is found by; NULL: nobody asked yet */
    struct hf__caller *caller; /* who asks; holds the client */
    hf_client *client;         /* bound to the caller's tenant and name; borrowed from it */
    int64_t trusted_until;     /* monotonic us: one that waits is checked again from then on, */
    unsigned trusted_in;       /* or when this era of the access is over */

    /* The handler's own, for when it is called again. */
    void *kept;
    void (*kept_free)(void *kept);
    int64_t deadline; /* of a long poll, monotonic us; 0: not set yet */
    int calls;        /* how often the handler was called */
    int locked;       /* times in a row that it found its run's row held by somebody else */

    /* The answer. */
    int status;
    const char *type; /* default application/json */
    struct hf__buffer out;
    struct hf__pair answer_headers[HF__MOST_HEADERS];
    int answer_header_count;
    const void *fixed; /* in place of `out`: bytes that live as long as the server */
    size_t fixed_length;
    size_t unread;       /* bytes of `out`, as counted in the server's total */
    const char *failure; /* for the log; NULL: it is no fault of ours */
    bool answered;       /* the connection may send it */
    bool at_once;        /* the handler is called on the connection's thread: it must not wait */
    bool to_hand;        /* it would have to wait: it wants to be called by a hand */
    bool later;          /* somebody else answers, and calls hf__request_answered */
    bool parked;         /* the handler wants to be called again, see park.h */

    struct hf__parking parking;
    struct hf__stream stream;
    struct hf__request *next; /* in the hands' queue */
};

/* Whether a long poll has to answer now: its time is over, or the server stops. */
bool hf__request_must_answer(const struct hf__request *request);
/* NULL: there is none. Names of headers are compared without case. */
const char *hf__request_header(const struct hf__request *request, const char *name);
/* Whether it has Prefer: return=minimal (RFC 7240): people who look at runs need not carry what may be megabytes. */
bool hf__request_wants_little(const struct hf__request *request);
/* Whether the request's Content-Type is this one, whatever its parameters. */
bool hf__request_is(const struct hf__request *request, const char *type);
/* The body as the route's table says, or the query; `given` may be NULL. */
hf_code hf__request_body(struct hf__request *request, void *record, unsigned *given,
                         hf_error *err) HF_MUST_CHECK;
/* An array of objects in the body. */
struct hf__array {
    const char *name; /* for messages */
    const char *json; /* as read into a member of kind JSON; NULL: not given */
    const struct hf__member *members;
    const void *blank; /* what each item is read over */
    size_t size;       /* of an item, and of `blank` */
    size_t most;       /* items; bounds the memory of a request */
};
/* `out` is a pointer to an array of such items, in the request's arena. */
hf_code hf__request_array(struct hf__request *request, const struct hf__array *array, void *out,
                          size_t *count, hf_error *err) HF_MUST_CHECK;
hf_code hf__request_query(struct hf__request *request, void *record, hf_error *err) HF_MUST_CHECK;
/* The n-th {name} of the path as a run's id. HF_NOT_FOUND when it is none. */
hf_code hf__request_id(const struct hf__request *request, int n, hf_id *out,
                       hf_error *err) HF_MUST_CHECK;
/* The first one as a run: its id, or its workflow and key with a slash between, which is sent as %2F. A handler that is called
 * again gets the same run. */
hf_code hf__request_run(struct hf__request *request, hf_id *out, hf_error *err) HF_MUST_CHECK;
/* The revision (a task's version) that If-Match begins with; 0: none was given. */
hf_code hf__request_if_match(const struct hf__request *request, int64_t *revision,
                             hf_error *err) HF_MUST_CHECK;
/* Whether If-None-Match names this ETag, which is no weak one; W/ before the given ones makes no difference. */
bool hf__request_has(const struct hf__request *request, const char *etag);
/* Decodes %XX; NULL: it is not well-formed or has a NUL. */
char *hf__percent_decode(struct hf__arena *arena, const char *text, size_t length, bool plus);

/* The value is copied into the request's arena. */
void hf__reply_header(struct hf__request *request, const char *name, const char *value);
/* One record with its table. Runs get an ETag by hf__reply_run, and are told in short where that is preferred. */
hf_code hf__reply_record(struct hf__request *request, const struct hf__field *fields,
                         const void *record, hf_error *err) HF_MUST_CHECK;
hf_code hf__reply_run(struct hf__request *request, const hf_run *run, hf_error *err) HF_MUST_CHECK;
/* `size` bytes each. `next` may be NULL. */
hf_code hf__reply_list(struct hf__request *request, const struct hf__field *fields,
                       const void *items, size_t count, size_t size, const char *next,
                       hf_error *err) HF_MUST_CHECK;
hf_code hf__reply_nothing(struct hf__request *request);
/* After the handler has written into request->out. */
hf_code hf__reply_done(struct hf__request *request, int status, hf_error *err) HF_MUST_CHECK;
/* For an answer that was given later: it may be sent. */
void hf__request_answered(struct hf__request *request);

#endif

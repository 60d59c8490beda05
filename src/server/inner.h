/* The inside of the server, for its own files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_INNER_H
#define HF_SERVER_INNER_H

#include "server/request.h"
#include "server/server.h"

#include <stdatomic.h>

struct MHD_Daemon;
struct hf__feed;
struct hf__connection;
struct hf__gauges;
struct hf__hands;
struct hf__park;
struct hf__sweep;
struct hf__survey;
struct hf__told;

enum { HF__STATUS_CLASSES = 5 };

struct hf__server {
    struct hf__server_options options;
    hf_client *client; /* borrowed: the store */
    struct hf__access *access;
    struct hf__hands *hands[HF__PACES];
    struct hf__park *park;
    struct hf__feed *feed;
    struct hf__told *told; /* cancels that workers were told of */
    struct hf__gauges *gauges;
    struct hf__sweep *sweep;
    struct MHD_Daemon *daemon;
    struct hf__connection *arriving; /* whose heads are, see head.h */
    char url[300];
    struct hf__buffer openapi_packed; /* the document by gzip */
    char *openapi;                    /* the document, made at the start */
    size_t openapi_length;
    atomic_bool stopping; /* what waits is answered now */
    atomic_bool closed;   /* what still comes is refused; after `stopping` */
    atomic_int pending;   /* requests that have arrived and are not answered */
    atomic_int suspended; /* connections that somebody has to resume before the daemon may stop */
    atomic_size_t bodies; /* bytes of requests that are kept */
    size_t max_bodies;    /* how many they may be */
    atomic_size_t unread; /* bytes of answers that are kept until they are read */
    size_t max_unread;    /* from so many on, further ones are refused */
    int64_t started_at;   /* us since the epoch */
    atomic_int streams;   /* that are open */
    struct hf__survey *survey;
    size_t route_count;
    /* Answered, by the number of the route (the last: none) and the status class. */
    atomic_uint_fast64_t *requests;
};

/* ---- hands.c: threads that call handlers ---- */

hf_code hf__hands_new(struct hf__hands **out, int count, hf_error *err);
/* Takes over one hold on the request, released when the hand is done with it. Not from without once they have stopped. */
void hf__hands_give(struct hf__hands *hands, struct hf__request *request);
/* Waits for those at work; what is queued is answered too, and what they give one another. */
void hf__hands_stop(struct hf__hands *hands);
void hf__hands_free(struct hf__hands *hands);
/* http.c: calls the handler and sends, parks or streams. */
void hf__request_work(struct hf__request *request);

/* ---- http.c ---- */

void hf__request_hold(struct hf__request *request);
void hf__request_release(struct hf__request *request);
/* While it is suspended, a connection costs no thread and its request cannot end. */
void hf__request_suspend(struct hf__request *request);
/* The connection goes on; from then on the request is there only for those who hold it. */
void hf__request_resume(struct hf__request *request);

/* ---- body.c ---- */

enum { HF__SHORT_BODY = 64 * 1024 }; /* bytes that take no time to be read */

/* Whether the headers tell of a body. */
bool hf__body_is_coming(const struct hf__request *request);
/* Whether it may as well be read, and thrown away, before a refusal is sent: then the connection stays usable. */
bool hf__body_is_short(const struct hf__request *request);
/* Refuses one whose length is said to be more than the route takes. */
void hf__body_check(struct hf__request *request);
/* Keeps a part that has come, unless the request is answered already, or refuses it. */
void hf__body_take(struct hf__request *request, const char *bytes, size_t length);
void hf__body_drop(struct hf__request *request);

/* ---- sweep.c: connections that take too long to send a request ---- */

struct hf__sweep_entry;
hf_code hf__sweep_new(struct hf__sweep **out, int64_t limit, hf_error *err);
void hf__sweep_free(struct hf__sweep *sweep);
struct hf__sweep_entry *hf__sweep_add(struct hf__sweep *sweep, int fd);
void hf__sweep_remove(struct hf__sweep *sweep, struct hf__sweep_entry *entry);
/* A request has arrived whole: it may take its time. `idle`: it was answered, the next may come. */
void hf__sweep_busy(struct hf__sweep *sweep, struct hf__sweep_entry *entry);
void hf__sweep_idle(struct hf__sweep *sweep, struct hf__sweep_entry *entry);
/* Bytes that the connections have brought and taken, for comparing: as long as nobody's move, it stays the same. */
uint64_t hf__sweep_moved(struct hf__sweep *sweep);
/* Whether the caller of a request that waits has closed its end: nobody would get the answer. `silent`: whoever has not
 * would send nothing now, so that it has if anything came. */
bool hf__sweep_hung_up(const struct hf__sweep_entry *entry, bool silent);

/* ---- unread.c: answers that are kept until they are read ---- */

/* Whether so long an answer may be kept. */
bool hf__unread_has_room(const struct hf__request *request);
/* Whether something may be changed: afterwards the answer is not refused any more. */
bool hf__unread_may_change(const struct hf__request *request);
/* Puts a problem in place of the answer. */
void hf__unread_refuse(struct hf__request *request);
/* Counts the answer. If there is no room, one that only reads is refused. */
void hf__unread_keep(struct hf__request *request);
void hf__unread_drop(struct hf__request *request);

/* ---- work_watch.c ---- */

hf_code hf__told_new(struct hf__told **out, hf_error *err);
void hf__told_free(struct hf__told *told);

/* ---- gzip.c ---- */

bool hf__accepts_gzip(const struct hf__request *request);
/* False: no memory. */
bool hf__gzip(struct hf__buffer *out, const char *bytes, size_t length);
/* Whether the caller takes gzip and the answer is worth it; then `out` is replaced. */
void hf__gzip_answer(struct hf__request *request);

#endif

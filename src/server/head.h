/* The heads of requests, byte by byte: what libmicrohttpd reads too kindly must not pass. A proxy in front that understands a
 * head otherwise would take a part of one request for another one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_HEAD_H
#define HF_SERVER_HEAD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct hf__server;
struct hf__sweep_entry;

/* What we know of a connection. Belongs to the daemon's thread, as all that stands here. */
struct hf__connection {
    struct hf__server *server;
    struct MHD_Connection *connection;
    struct hf__sweep_entry *entry; /* NULL: no memory */
    int fd;
    bool arriving;   /* its request's line is there, and not yet all of its head */
    bool is_head;    /* the answer ends with its headers */
    bool bad_target; /* has bytes that no target may have */
    size_t target;   /* bytes of the request's target, as it was sent */
    struct hf__connection *next, *previous; /* of those that are arriving */
};

/* The line of a request is there. libmicrohttpd changes the target afterwards. */
void *hf__on_target(void *arg, const char *target, struct MHD_Connection *connection);
/* libmicrohttpd answers a head whose Content-Length it cannot read with two heads of its own. It says so in its log before,
 * and that is where we are faster: our answer is sent, and the connection shut. */
void hf__on_library_log(void *arg, const char *format, va_list values);

/* The head is there, or never will be. */
void hf__head_end(struct hf__connection *connection);

/* Whether each byte of the head is where the strict grammar of HTTP/1.1 has it: a method, a target and a version with one space
 * between them, lines that end with CRLF, names that are tokens, values without control characters, nothing folded. NULL, or
 * what is wrong. */
const char *hf__head_fault(const struct hf__connection *connection, const char *method,
                           const char *url, const char *version);

#endif

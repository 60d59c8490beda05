/* The bodies of requests: how much of them is kept.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"

#include <stdio.h>
#include <stdlib.h>

enum { UNREAD = 4096 }; /* bytes that may come to a route that takes no body; clients send "{}" */

static size_t limit_of(const struct hf__request *request)
{
    size_t most = request->server->options.max_body;
    return request->route->body || most < UNREAD ? most : UNREAD;
}

static void too_large(struct hf__request *request)
{
    char detail[100];
    snprintf(detail, sizeof detail, "the body may have at most %zu bytes", limit_of(request));
    hf__reply_problem_as(request, HF__PROBLEM_TOO_LARGE, hf_code_meaning(HF_TOO_LARGE), detail);
}

bool hf__body_is_coming(const struct hf__request *request)
{
    const char *length = hf__request_header(request, "Content-Length");
    return hf__request_header(request, "Transfer-Encoding") ||
           (length && strtoull(length, NULL, 10) > 0);
}

bool hf__body_is_short(const struct hf__request *request)
{
    const char *length = hf__request_header(request, "Content-Length");
    return length && strtoull(length, NULL, 10) <= HF__SHORT_BODY &&
           !hf__request_header(request, "Expect");
}

void hf__body_check(struct hf__request *request)
{
    const char *length = hf__request_header(request, "Content-Length");
    if (length && strtoull(length, NULL, 10) > limit_of(request))
        too_large(request);
}

void hf__body_drop(struct hf__request *request)
{
    atomic_fetch_sub(&request->server->bodies, request->body_taken);
    request->body_taken = 0;
    hf__buffer_free(&request->body);
}

void hf__body_take(struct hf__request *request, const char *bytes, size_t length)
{
    struct hf__server *server = request->server;
    if (request->answered)
        return;
    if (length > limit_of(request) - request->body_taken) {
        hf__body_drop(request);
        too_large(request);
        return;
    }
    request->body_taken += length;
    if (atomic_fetch_add(&server->bodies, length) + length > server->max_bodies) {
        hf__body_drop(request);
        hf__reply_problem_as(request, HF__PROBLEM_BUSY, "too much is being sent at once", NULL);
        return;
    }
    hf__buffer_add(&request->body, bytes, length);
    if (request->body.failed) {
        hf__body_drop(request);
        hf__reply_problem_as(request, HF__PROBLEM_NOMEM, hf_code_meaning(HF_NOMEM), NULL);
    }
}

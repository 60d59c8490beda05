/* Answers that have not been read yet: how much of them is kept. Whoever asks and does not read must not take the memory of
 * all others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"

#include <string.h>

enum { SHORT_ANSWER = 16 * 1024 }; /* as much as a connection takes anyway: is not counted */

static bool is_read(const struct hf__request *request)
{
    return strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
}

bool hf__unread_has_room(const struct hf__request *request)
{
    struct hf__server *server = request->server;
    return request->out.length <= SHORT_ANSWER || atomic_load(&server->unread) < server->max_unread;
}

bool hf__unread_may_change(const struct hf__request *request)
{
    struct hf__server *server = request->server;
    return is_read(request) || atomic_load(&server->unread) / 2 < server->max_unread;
}

void hf__unread_refuse(struct hf__request *request)
{
    hf__buffer_free(&request->out);
    request->answer_header_count = 0; /* they told of the answer */
    hf__reply_problem_as(request, HF__PROBLEM_BUSY, "too many answers wait to be read", NULL);
}

void hf__unread_keep(struct hf__request *request)
{
    if (request->fixed)
        return;
    if (is_read(request) && !hf__unread_has_room(request))
        hf__unread_refuse(request);
    if (request->out.length > SHORT_ANSWER)
        request->unread = request->out.length;
    atomic_fetch_add(&request->server->unread, request->unread);
}

void hf__unread_drop(struct hf__request *request)
{
    atomic_fetch_sub(&request->server->unread, request->unread);
    request->unread = 0;
}

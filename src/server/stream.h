/* Server-sent events: an answer that goes on as long as the client listens.
 *
 * The handler calls hf__stream_begin the first time, adds events to request->out, and parks itself (park.h) each time. What
 * it added is moved to the connection after it has returned; it is not called while the client is behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_STREAM_H
#define HF_SERVER_STREAM_H

#include "server/request.h"

struct MHD_Response;

void hf__stream_begin(struct hf__request *request);
/* The answer is no stream after all: nothing of it was sent. Safe for one that never began. */
void hf__stream_take_back(struct hf__request *request);
/* One event; name NULL: of the kind that EventSource gives to onmessage. `id` is what the client sends as Last-Event-ID to go on from there; the data is on one line. */
void hf__stream_event(struct hf__request *request, const char *name, int64_t id, const char *data,
                      size_t length);
/* A comment, so that both sides notice a dead connection. */
void hf__stream_keep_alive(struct hf__request *request);
/* Bytes that the client has not taken yet. */
size_t hf__stream_unread(struct hf__request *request);
/* Nothing follows. */
void hf__stream_end(struct hf__request *request);

/* For http.c. */
struct MHD_Response *hf__stream_response(struct hf__request *request);
void hf__stream_pump(struct hf__request *request);
bool hf__stream_is_over(struct hf__request *request);
/* Whether nothing may be added before the client has read. Never when the server stops. */
bool hf__stream_is_behind(struct hf__request *request);
void hf__stream_hang_up(struct hf__request *request);

#endif

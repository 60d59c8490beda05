/* One request of a program: reading it, answering it, and the functions that serve the verbs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_SCRIPT_CALL_H
#define HF_WORKER_SCRIPT_CALL_H

#include <jansson.h>

#include "worker/script.h"

struct hf__call {
    struct hf__script *script;
    struct hf__peer *peer;
    hf_ctx *ctx;
    json_t *request;
    hf_error error; /* filled by what refuses the request */
};

/* ---- Requests ---- */

/* NULL: there is no such member. */
const char *hf__call_text(const struct hf__call *call, const char *member);
/* A number within 0..most; what is missing is 0. False: the peer was told. */
bool hf__call_number(struct hf__call *call, const char *member, int64_t most, int64_t *out);
/* NULL: the peer was told that `what` is not a name. */
const char *hf__call_name(struct hf__call *call, const char *member, const char *what);

/* ---- Answers ---- */

/* Whether the call went well; if not, the peer was told so or is held. */
bool hf__call_went_well(struct hf__call *call, hf_code code);
/* The peer hears nothing more: its program is about to be ended. */
void hf__call_hold(const struct hf__call *call);

/* {"ok":true, then members, then the end. */
void hf__call_begin(const struct hf__call *call);
void hf__call_member(struct hf__buffer *out, const char *name, const char *text);
void hf__call_end(const struct hf__call *call);
/* The whole answer: one member; an error (`message` may be NULL); that it went well or not. */
void hf__call_answer(const struct hf__call *call, const char *name, const char *text);
void hf__call_refuse(const struct hf__call *call, hf_code code, const char *message);
void hf__call_finish(struct hf__call *call, hf_code code);

/* ---- Verbs ---- */

/* script_steps.c */
void hf__script_step(struct hf__call *call);
void hf__script_done(struct hf__call *call);
void hf__script_fail(struct hf__call *call);
/* Nobody will end the step that this peer has begun, if it has. */
void hf__script_forget_step(struct hf__script *script, struct hf__peer *peer);
/* script_waits.c */
void hf__script_sleep(struct hf__call *call);
void hf__script_pause(struct hf__call *call);
void hf__script_wait(struct hf__call *call);
void hf__script_ask(struct hf__call *call);
/* script_children.c */
void hf__script_start(struct hf__call *call);
void hf__script_children(struct hf__call *call);
/* script_values.c */
void hf__script_progress(struct hf__call *call);
void hf__script_state(struct hf__call *call);
void hf__script_emit(struct hf__call *call);
void hf__script_now(struct hf__call *call);
void hf__script_uuid(struct hf__call *call);
void hf__script_random(struct hf__call *call);

#endif

/* Durable programs: what a program that a worker runs asks for over its socket (`holdfast step` and its kin) becomes calls of
 * <holdfast/function.h>, made by the hand that watches over the program.
 *
 * A peer sends one JSON object per line and gets one in answer:
 *     {"do":"step","name":"fetch","attempts":3}     {"ok":true,"run":true,"key":"…","limit":1048576}
 *     {"do":"done","output":"text"}                 {"ok":true}
 *     {"do":"sleep","name":"night","us":3600000000} nothing: the program is ended, and started again in an hour
 *     {"do":"wait","name":"paid","timeout":1}       {"error":"timeout","message":"…"}
 * JSON of the user's is carried as text in a string, so that it comes out as it went in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_SCRIPT_H
#define HF_WORKER_SCRIPT_H

#include "worker/peers.h"
#include "worker/worker.h"

struct hf__script {
    hf_ctx *ctx;
    struct hf__peers peers;
    size_t max_payload;
    int running;     /* steps whose command runs now */
    bool called;     /* a durable call was made */
    bool suspending; /* a call waits: no other is begun, and what runs may end */
};

/* Listens for the program. False: it cannot, and programs that do not need it run all the same. */
bool hf__script_open(struct hf__script *script, hf_ctx *ctx);
void hf__script_close(struct hf__script *script);
/* After the program has ended well: one that left steps under way has broken a rule. */
void hf__script_refuse_open_steps(struct hf__script *script);
/* Whether the program is to be ended now, since all that is left is to wait. */
bool hf__script_is_suspended(const struct hf__script *script);

#endif

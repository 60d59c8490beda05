/* Who asks, and what they may do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_ACCESS_H
#define HF_SERVER_ACCESS_H

#include <holdfast/client.h>

struct hf__access;
struct hf__request;

/* A tenant, an actor and what they may do, shared by the requests that came with the same token. */
struct hf__caller {
    hf_client *client;
    unsigned may;     /* roles */
    char *key;        /* what it is found by */
    char *task_roles; /* as in hf_token_access */
    int holders;
    int64_t stale_at; /* monotonic us: is looked up again from then on */
    struct hf__caller *next;
};

/* `open`: requests need no token, and may act for any tenant. */
hf_code hf__access_new(struct hf__access **out, hf_client *base, bool open, hf_error *err);
void hf__access_free(struct hf__access *access);
/* Finds the caller by the request's headers and checks that they may use its route: HF_OK, with request->caller and
 * request->client set; or HF_NOT_ALLOWED, the request being answered. */
hf_code hf__access_check(struct hf__access *access, struct hf__request *request, hf_error *err);
/* The same for a request that has waited, once what is known of its caller is stale. A stream that has begun is not
 * answered. */
hf_code hf__access_check_again(struct hf__access *access, struct hf__request *request,
                               hf_error *err);
/* Sets request->caller if it is known without asking the store; what was found before is let go, it may be stale by now. */
bool hf__access_recall(struct hf__access *access, struct hf__request *request);
/* Whether requests need no token, as far as is known. */
bool hf__access_is_open(struct hf__access *access);
/* The same, after asking the store. */
hf_code hf__access_look(struct hf__access *access, bool *open, hf_error *err);
/* Forgets what it knows of tokens: one was revoked. */
void hf__access_forget(struct hf__access *access);
void hf__caller_release(struct hf__access *access, struct hf__caller *caller);

#endif

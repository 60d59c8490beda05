/* API tokens: who may do what in a tenant, for servers that act for callers. A token belongs to the tenant of the client that
 * made it, and is worth nothing anywhere else.
 *
 * The store keeps a hash of the secret and nothing else of it: nobody can read it there, and it is found by that hash, so
 * that the time of an answer tells nothing about it. The library checks tokens; which call needs which role is for the
 * server to say (hf_role_allows). Whoever can open the store needs no token.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_TOKEN_H
#define HOLDFAST_TOKEN_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/* symbol, bit, name, the roles it includes, what it allows. Bits are never reused. Root is included in no other role, and
 * only tokens of the tenant "default" have it. */
#define HF_ROLES(X)                                                                                \
    X(HF_ROLE_READ, 1u << 0, "read", 0, "see runs, events, workflows, schedules and workers")      \
    X(HF_ROLE_TRIGGER, 1u << 1, "trigger", HF_ROLE_READ, "start runs and send signals")            \
    X(HF_ROLE_WORK, 1u << 2, "work", HF_ROLE_READ, "claim runs and commit their turns")            \
    X(HF_ROLE_OPERATE, 1u << 3, "operate", HF_ROLE_READ,                                           \
      "cancel, pause, retry, delete; workflows, schedules and limits")                             \
    X(HF_ROLE_ADMIN, 1u << 4, "admin",                                                             \
      HF_ROLE_READ | HF_ROLE_TRIGGER | HF_ROLE_WORK | HF_ROLE_OPERATE,                             \
      "everything in its tenant: tokens, subscriptions and purge too")                             \
    X(HF_ROLE_ROOT, 1u << 5, "root", 0, "create, list, disable and enable tenants")

typedef enum hf_role {
#define HF_ROLE_ENUM(symbol, bit, name, includes, meaning) symbol = bit,
    HF_ROLES(HF_ROLE_ENUM)
#undef HF_ROLE_ENUM
} hf_role;

/* "read" for HF_ROLE_READ; NULL for what is no role. */
HF_PUBLIC const char *hf_role_name(hf_role role);
/* "read,trigger" as a set of bits. */
HF_PUBLIC hf_code hf_roles_parse(const char *names, unsigned *out, hf_error *err) HF_MUST_CHECK;
/* Whether `roles`, with all that they include, have every role in `needed`. A server also asks this before it lets
 * somebody make a token: nobody hands out more than they have. */
HF_PUBLIC bool hf_role_allows(unsigned roles, unsigned needed) HF_MUST_CHECK;

typedef struct hf_token_spec {
    int version;        /* HF_TOKEN_VERSION */
    const char *name;   /* who uses it: the actor in the journal; need not be unique */
    unsigned roles;     /* bits of HF_ROLE_...; at least one */
    int64_t expires_at; /* 0: by `lifetime` */
    int64_t lifetime;   /* us from now; used when expires_at is 0; 0: does not expire */
    const char *
        task_roles; /* JSON array of names: only tasks with one of these roles may be claimed and answered with it;
                             * NULL: all. Not for those who operate or administrate */
} hf_token_spec;

#define HF_TOKEN_VERSION 2 /* 2: task_roles */
#define HF_TOKEN_INIT                                                                              \
    {                                                                                              \
        HF_TOKEN_VERSION, NULL, 0, 0, 0, NULL                                                      \
    }

#define HF_TOKEN_SECRET                                                                            \
    47 /* bytes: "hf_", 43 characters that stand for 256 random bits, the final NUL */

#define HF_TOKEN_TASK_ROLES 1000 /* bytes of task_roles, with the final NUL */

typedef struct hf_token_made {
    hf_id id;
    char secret[HF_TOKEN_SECRET]; /* shown this once; wipe it when it was handed over */
    int64_t expires_at;           /* 0: never */
} hf_token_made;

HF_PUBLIC hf_code hf_token_create(hf_client *client, hf_token_made *out, const hf_token_spec *spec,
                                  hf_error *err) HF_MUST_CHECK;

typedef struct hf_token {
    hf_id id;
    const char *name;
    unsigned roles;
    const char *role_names; /* JSON array of strings */
    const char *task_roles; /* JSON array of strings; NULL: all tasks */
    int64_t created_at;
    const char *created_by; /* the actor of the client that made it */
    int64_t expires_at;     /* 0: never */
    int64_t revoked_at;
    const char *revoked_by;
} hf_token;

typedef struct hf_tokens {
    hf_token *items;
    size_t count;
} hf_tokens;

/* The tenant's tokens, oldest first, with those that have expired or were revoked. */
HF_PUBLIC hf_code hf_token_list(hf_client *client, hf_tokens **out, hf_error *err) HF_MUST_CHECK;
HF_PUBLIC void hf_tokens_free(hf_tokens *tokens);
/* For good and at once. Doing it again changes nothing. */
HF_PUBLIC hf_code hf_token_revoke(hf_client *client, hf_id id, hf_error *err) HF_MUST_CHECK;

/* symbol, name, why; for the log of whoever checks, never for the caller */
#define HF_TOKEN_REFUSALS(X)                                                                       \
    X(HF_TOKEN_ACCEPTED, "accepted", "the token is good")                                          \
    X(HF_TOKEN_UNKNOWN, "unknown", "no token has this secret")                                     \
    X(HF_TOKEN_REVOKED, "revoked", "the token was revoked")                                        \
    X(HF_TOKEN_EXPIRED, "expired", "the token has expired")                                        \
    X(HF_TOKEN_TENANT_DISABLED, "tenant_disabled", "the token's tenant is disabled")

typedef enum hf_token_refusal {
#define HF_TOKEN_REFUSAL_ENUM(symbol, name, why) symbol,
    HF_TOKEN_REFUSALS(HF_TOKEN_REFUSAL_ENUM)
#undef HF_TOKEN_REFUSAL_ENUM
} hf_token_refusal;

HF_PUBLIC const char *hf_token_refusal_name(hf_token_refusal refusal);

typedef struct hf_token_access {
    hf_id token;
    char name[201];   /* the actor to open a client with */
    char tenant[201]; /* the tenant to open a client for */
    int tenant_id;
    unsigned roles;     /* as given, without what they include; 0 unless accepted */
    int64_t expires_at; /* 0: never */
    char task_roles[HF_TOKEN_TASK_ROLES]; /* JSON; "": all tasks. For hf_task_allows */
    hf_token_refusal refusal;
} hf_token_access;

/* Whose token this is. `client` may be of any tenant of the store. HF_UNAUTHORIZED, always with the same message, when it is
 * not good; out->refusal tells why, and the rest of `out` whose it is if that is known. */
HF_PUBLIC hf_code hf_token_check(hf_client *client, const char *secret, hf_token_access *out,
                                 hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif

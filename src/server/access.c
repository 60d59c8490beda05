/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access.h"

#include "client/client.h"
#include "client/token.h"
#include "server/request.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FRESH_FOR HF_SECONDS(5) /* what another process revoked is noticed after that */
enum { MOST_KNOWN = 1000 };

struct hf__access {
    hf_client *base;
    atomic_bool open; /* requests need no token, as far as is known */
    atomic_uint era;  /* ends when all that is known of callers is forgotten */
    pthread_mutex_t mutex;
    struct hf__caller *known; /* newest first */
};

hf_code hf__access_new(struct hf__access **out, hf_client *base, bool open, hf_error *err)
{
    struct hf__access *access = hf__calloc(1, sizeof *access);
    if (!access)
        return hf__nomem(err);
    access->base = base;
    atomic_init(&access->open, open);
    pthread_mutex_init(&access->mutex, NULL);
    *out = access;
    return HF_OK;
}

/* Under the mutex. */
static void let_go(struct hf__caller *caller)
{
    if (--caller->holders > 0)
        return;
    hf_close(caller->client);
    free(caller->key);
    free(caller->task_roles);
    free(caller);
}

void hf__caller_release(struct hf__access *access, struct hf__caller *caller)
{
    if (!caller)
        return;
    pthread_mutex_lock(&access->mutex);
    let_go(caller);
    pthread_mutex_unlock(&access->mutex);
}

static void forget_from(struct hf__caller **place)
{
    while (*place) {
        struct hf__caller *caller = *place;
        *place = caller->next;
        let_go(caller);
    }
}

void hf__access_forget(struct hf__access *access)
{
    pthread_mutex_lock(&access->mutex);
    atomic_fetch_add(&access->era, 1);
    forget_from(&access->known);
    pthread_mutex_unlock(&access->mutex);
}

void hf__access_free(struct hf__access *access)
{
    if (!access)
        return;
    hf__access_forget(access);
    pthread_mutex_destroy(&access->mutex);
    free(access);
}

/* In a time that does not tell where they differ: keys hold secrets. */
static bool same_key(const char *a, const char *b)
{
    size_t length = strlen(a);
    unsigned char difference = 0;
    if (strlen(b) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        difference |= (unsigned char)(a[i] ^ b[i]);
    return difference == 0;
}

static struct hf__caller *recall(struct hf__access *access, const char *key)
{
    struct hf__caller *found = NULL;
    pthread_mutex_lock(&access->mutex);
    for (struct hf__caller *caller = access->known; caller && !found; caller = caller->next)
        if (same_key(caller->key, key) && hf__monotonic_us() < caller->stale_at)
            found = caller;
    if (found)
        found->holders++;
    pthread_mutex_unlock(&access->mutex);
    return found;
}

/* Under the mutex. Keeps the newest ones; those with the same key that are stale fall off the end in time. */
static void remember(struct hf__access *access, struct hf__caller *caller)
{
    caller->holders++;
    caller->next = access->known;
    access->known = caller;
    struct hf__caller **place = &access->known;
    for (int i = 0; *place && i < MOST_KNOWN; i++) {
        struct hf__caller *other = *place;
        if (other != caller && same_key(other->key, caller->key)) {
            *place = other->next;
            let_go(other);
        } else {
            place = &other->next;
        }
    }
    forget_from(place);
}

/* What was found out in an era that has ended is good for this request alone: it may be what was revoked. */
static void remember_of(struct hf__access *access, struct hf__caller *caller, unsigned era)
{
    pthread_mutex_lock(&access->mutex);
    if (era == atomic_load(&access->era))
        remember(access, caller);
    pthread_mutex_unlock(&access->mutex);
}

/* What a token says, or the request itself where none is needed. */
struct person {
    const char *tenant;
    const char *actor;
    unsigned may;
    const char *task_roles;
};

/* `key` was judged in `era`. */
static hf_code meet(struct hf__access *access, struct hf__caller **out, const char *key,
                    unsigned era, const struct person *person, hf_error *err)
{
    struct hf__caller *caller = hf__calloc(1, sizeof *caller);
    char *copy = hf__strdup(key);
    char *task_roles = hf__strdup(person->task_roles);
    hf_code code = caller && copy && task_roles ? hf_open_as(&caller->client, access->base,
                                                             person->tenant, person->actor, err)
                                                : hf__nomem(err);
    if (code != HF_OK) {
        free(caller);
        free(copy);
        free(task_roles);
        return code;
    }
    caller->client->from_afar = true;
    caller->holders = 1;
    caller->may = person->may;
    caller->key = copy;
    caller->task_roles = task_roles;
    caller->stale_at = hf__monotonic_us() + FRESH_FOR;
    remember_of(access, caller, era);
    *out = caller;
    return HF_OK;
}

static const char *bearer(const struct hf__request *request)
{
    const char *given = hf__request_header(request, "Authorization");
    return given && strncasecmp(given, "Bearer ", 7) == 0 ? given + 7 : NULL;
}

static const char *make_key(struct hf__request *request)
{
    const char *secret = bearer(request);
    const char *tenant = hf__request_header(request, "Holdfast-Tenant");
    const char *actor = hf__request_header(request, "Holdfast-Actor");
    if (secret)
        return hf__arena_printf(&request->arena, "token %s", secret);
    return hf__arena_printf(&request->arena, "open %s\n%s", tenant ? tenant : "",
                            actor ? actor : "");
}

/* What a request's caller is found by, made once: a stream may be checked for days. NULL: no memory. */
static const char *key_of(struct hf__request *request)
{
    if (!request->caller_key)
        request->caller_key = make_key(request);
    return request->caller_key;
}

bool hf__access_recall(struct hf__access *access, struct hf__request *request)
{
    const char *key = key_of(request);
    hf__caller_release(access, request->caller);
    request->client = NULL;
    request->caller = key ? recall(access, key) : NULL;
    return request->caller != NULL;
}

/* A stream that has begun has no place for a problem: it ends. */
static hf_code refuse(struct hf__request *request, enum hf__problem problem, const char *title)
{
    if (request->stream.begun)
        return HF_NOT_ALLOWED;
    hf__reply_problem_as(request, problem, title, NULL);
    hf__reply_header(request, "WWW-Authenticate", "Bearer realm=\"holdfast\"");
    return HF_NOT_ALLOWED;
}

static hf_code refuse_role(struct hf__request *request)
{
    if (request->stream.begun)
        return HF_NOT_ALLOWED;
    const char *needed = hf_role_name((hf_role)request->route->may);
    hf__reply_problem_as(request, HF__PROBLEM_FORBIDDEN, "the token's roles do not allow this",
                         hf__arena_printf(&request->arena, "it needs the role %s", needed));
    return HF_NOT_ALLOWED;
}

/* A token has its tenant. Who names another one believes to act there. */
static hf_code refuse_other_tenant(struct hf__request *request)
{
    const char *tenant = hf__request_header(request, "Holdfast-Tenant");
    if (!tenant || strcmp(tenant, request->client->tenant) == 0)
        return HF_OK;
    hf__reply_problem_as(request, HF__PROBLEM_FORBIDDEN, "the token belongs to another tenant",
                         "Holdfast-Tenant names a tenant other than the token's");
    return HF_NOT_ALLOWED;
}

bool hf__access_is_open(struct hf__access *access)
{
    return atomic_load(&access->open);
}

/* Once somebody has made a token, it is closed for good. */
hf_code hf__access_look(struct hf__access *access, bool *open, hf_error *err)
{
    bool closed = !hf__access_is_open(access);
    hf_code code = closed ? HF_OK : hf__token_any(access->base, &closed, err);
    if (closed && atomic_exchange(&access->open, false))
        hf__access_forget(access);
    *open = !closed;
    return code;
}

/* Without tokens everybody who reaches the server may do everything, in the tenant that they name. */
static hf_code meet_anybody(struct hf__access *access, struct hf__caller **out,
                            struct hf__request *request, unsigned era, hf_error *err)
{
    const char *actor = hf__request_header(request, "Holdfast-Actor");
    const char *key = key_of(request);
    bool open;
    hf_code code = hf__access_look(access, &open, err);
    if (code != HF_OK)
        return code;
    if (!open)
        return refuse(request, HF__PROBLEM_NO_TOKEN, "send a token as Authorization: Bearer");
    struct person person = { hf__request_header(request, "Holdfast-Tenant"), actor ? actor : "http",
                             ~0u, "" };
    return key ? meet(access, out, key, era, &person, err) : hf__nomem(err);
}

static hf_code meet_holder(struct hf__access *access, struct hf__caller **out,
                           struct hf__request *request, const char *secret, unsigned era,
                           hf_error *err)
{
    hf_token_access token;
    const char *key = key_of(request);
    hf_code code = key ? hf_token_check(access->base, secret, &token, err) : hf__nomem(err);
    if (code == HF_UNAUTHORIZED)
        return refuse(request, HF__PROBLEM_BAD_TOKEN, hf_code_meaning(HF_UNAUTHORIZED));
    if (code == HF_OK)
        code =
            meet(access, out, key, era,
                 &(struct person){ token.tenant, token.name, token.roles, token.task_roles }, err);
    return code;
}

/* `era` was looked at before. */
static hf_code find_caller(struct hf__access *access, struct hf__caller **out,
                           struct hf__request *request, unsigned era, hf_error *err)
{
    const char *secret = bearer(request);
    const char *key = key_of(request);
    *out = key ? recall(access, key) : NULL;
    if (*out)
        return HF_OK;
    return secret ? meet_holder(access, out, request, secret, era, err)
                  : meet_anybody(access, out, request, era, err);
}

/* `caller` is trusted for a while, and may or may not use the route. */
static hf_code judge(struct hf__request *request, const struct hf__caller *caller, unsigned era)
{
    request->trusted_until = caller->stale_at;
    request->trusted_in = era;
    return hf_role_allows(caller->may, request->route->may) ? HF_OK : refuse_role(request);
}

hf_code hf__access_check(struct hf__access *access, struct hf__request *request, hf_error *err)
{
    unsigned era = atomic_load(&access->era);
    hf_code code = HF_OK;
    if (request->route->may == HF__MAY_ANYONE)
        return HF_OK;
    if (!request->caller)
        code = find_caller(access, &request->caller, request, era, err);
    if (code != HF_OK)
        return code;
    request->client = request->caller->client;
    code = refuse_other_tenant(request);
    return code == HF_OK ? judge(request, request->caller, era) : code;
}

/* The caller that it came with stays its own: the connection's thread may look at it. */
hf_code hf__access_check_again(struct hf__access *access, struct hf__request *request,
                               hf_error *err)
{
    unsigned era = atomic_load(&access->era);
    struct hf__caller *caller = NULL;
    if (request->route->may == HF__MAY_ANYONE ||
        (era == request->trusted_in && hf__monotonic_us() < request->trusted_until))
        return HF_OK;
    hf_code code = find_caller(access, &caller, request, era, err);
    if (code == HF_OK)
        code = judge(request, caller, era);
    hf__caller_release(access, caller);
    return code;
}

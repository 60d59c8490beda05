/* Tokens, and who the caller is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"
#include "server/routes.h"

#include "client/client.h"
#include "util/error.h"

#include <string.h>

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_tokens *found = NULL;
    hf_code code = hf_token_list(request->client, &found, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__token_fields, found->items, found->count,
                              sizeof *found->items, NULL, err);
    hf_tokens_free(found);
    return code;
}

struct body {
    hf_token_spec spec;
    const char *const *roles;
    size_t role_count;
    const char *const *task_roles;
    size_t task_role_count;
};

#define SPEC(field, kind_, about_, ...)                                                            \
    {                                                                                              \
        .name = #field, .kind = HF__FIELD_##kind_, .offset = offsetof(struct body, spec.field),    \
        .about = about_, __VA_ARGS__                                                               \
    }

static const struct hf__member members[] = {
    SPEC(name, TEXT, "who uses it: the actor in the journal", .required = true),
    HF__MEMBER(struct body, roles, WORDS, "read, trigger, work, operate, admin, root",
               .count_offset = offsetof(struct body, role_count), .required = true),
    HF__MEMBER(struct body, task_roles, WORDS,
               "only tasks with one of these roles may be claimed and answered with it",
               .count_offset = offsetof(struct body, task_role_count)),
    SPEC(expires_at, TIME, "worth nothing from then on"),
    SPEC(lifetime, DURATION, "the same from now on"),
    HF__MEMBERS_END,
};

struct made {
    hf_token_made token;
    const char *secret; /* the token's */
};

static const struct hf__field made_fields[] = {
    { "id", HF__FIELD_ID, offsetof(struct made, token.id) },
    { "expires_at", HF__FIELD_TIME, offsetof(struct made, token.expires_at) },
    { "secret", HF__FIELD_TEXT, offsetof(struct made, secret) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code read_roles(struct body *body, hf_error *err)
{
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < body->role_count; i++) {
        unsigned role = 0;
        code = hf_roles_parse(body->roles[i], &role, err);
        body->spec.roles |= role;
    }
    return code;
}

static hf_code read_task_roles(struct hf__request *request, struct body *body, hf_error *err)
{
    struct hf__buffer json = { 0 };
    if (!body->task_roles)
        return HF_OK;
    hf__buffer_add_json_strings(&json, body->task_roles, body->task_role_count);
    body->spec.task_roles = json.failed ? NULL : hf__arena_strdup(&request->arena, json.data);
    hf__buffer_free(&json);
    return body->spec.task_roles ? HF_OK : hf__nomem(err);
}

static hf_code create(struct hf__request *request, hf_error *err)
{
    struct body body = { .spec = HF_TOKEN_INIT };
    struct made made;
    hf_code code = hf__request_body(request, &body, NULL, err);
    if (code == HF_OK)
        code = read_roles(&body, err);
    if (code == HF_OK)
        code = read_task_roles(request, &body, err);
    if (code == HF_OK && !hf_role_allows(request->caller->may, body.spec.roles)) {
        hf__reply_problem_as(request, HF__PROBLEM_FORBIDDEN, "nobody hands out more than they have",
                             NULL);
        return HF_OK;
    }
    if (code == HF_OK)
        code = hf_token_create(request->client, &made.token, &body.spec, err);
    if (code != HF_OK)
        return code;
    made.secret = made.token.secret;
    code = hf__reply_record(request, made_fields, &made, err);
    explicit_bzero(&made.token, sizeof made.token);
    hf__access_forget(request->server->access); /* from the first token on everybody needs one */
    return code;
}

static hf_code revoke(struct hf__request *request, hf_error *err)
{
    hf_id id;
    hf_code code = hf__request_id(request, 0, &id, err);
    if (code == HF_OK)
        code = hf_token_revoke(request->client, id, err);
    if (code == HF_OK)
        hf__access_forget(request->server->access);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

struct me {
    const char *tenant, *actor;
    const char *roles;      /* JSON */
    const char *task_roles; /* JSON; NULL: all tasks */
};

static const struct hf__field me_fields[] = {
    { "tenant", HF__FIELD_TEXT, offsetof(struct me, tenant) },
    { "actor", HF__FIELD_TEXT, offsetof(struct me, actor) },
    { "roles", HF__FIELD_WORDS, offsetof(struct me, roles) },
    { "task_roles", HF__FIELD_WORDS, offsetof(struct me, task_roles) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void add_roles(struct hf__buffer *out, unsigned may)
{
    const char *between = "";
    hf__buffer_add_text(out, "[");
    for (unsigned bit = 1; bit <= HF_ROLE_ROOT; bit <<= 1)
        if (hf_role_allows(may, bit)) {
            hf__buffer_addf(out, "%s\"%s\"", between, hf_role_name((hf_role)bit));
            between = ",";
        }
    hf__buffer_add_text(out, "]");
}

static hf_code me(struct hf__request *request, hf_error *err)
{
    struct hf__buffer roles = { 0 };
    add_roles(&roles, request->caller->may);
    const char *task_roles = request->caller->task_roles;
    struct me me = { request->client->tenant, request->client->actor, roles.data,
                     *task_roles ? task_roles : NULL };
    hf_code code = roles.failed ? hf__nomem(err) : hf__reply_record(request, me_fields, &me, err);
    hf__buffer_free(&roles);
    return code;
}

const struct hf__route hf__token_routes[] = {
    HF__ROUTE("tokens", "GET", "/v1/me", "getMe", READ, me, "Who the caller is",
              HF__ANSWERS(200, ONE, "Caller", me_fields)),
    HF__ROUTE("tokens", "GET", "/v1/tokens", "listTokens", ADMIN, list, "List tokens",
              HF__ANSWERS(200, LIST, "Token", hf__token_fields)),
    HF__ROUTE("tokens", "POST", "/v1/tokens", "createToken", ADMIN, create, "Make a token",
              .details = "The answer has the secret; it is never shown again.", .body = members,
              HF__ANSWERS(201, ONE, "TokenMade", made_fields)),
    HF__ROUTE("tokens", "DELETE", "/v1/tokens/{id}", "revokeToken", ADMIN, revoke,
              "Revoke a token, at once", HF__ANSWERS(204, NONE, NULL, NULL)),
    HF__ROUTES_END,
};

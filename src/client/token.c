/* API tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/token.h>

#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/role.h"
#include "client/token.h"
#include "util/base64.h"
#include "util/digest.h"
#include "util/error.h"
#include "util/random.h"
#include "util/text.h"

#define PREFIX "hf_" /* by which scanners of published code know a secret of ours */
#define ROOT_TENANT "default"

enum { RANDOM_BYTES = 32 };

/* One character less than with padding. */
_Static_assert(sizeof PREFIX - 1 + HF__BASE64_TEXT(RANDOM_BYTES) - 1 == HF_TOKEN_SECRET,
               "the secret's length");

/* ---- Making one ---- */

/* NULL: none. Programs made for version 1 do not have the member. */
static const char *task_roles_of(const hf_token_spec *spec)
{
    return spec->version >= 2 ? spec->task_roles : NULL;
}

/* Who may reassign tasks, make other tokens, or write what a run remembers, is not held back by them. */
static hf_code check_task_roles(const hf_token_spec *spec, hf_error *err)
{
    if (hf_role_allows(spec->roles, HF_ROLE_OPERATE) || hf_role_allows(spec->roles, HF_ROLE_WORK))
        return hf__fail(err, HF_INVALID,
                        "task roles hold nobody back who has the role work, operate or admin");
    hf_code code = hf__check_json("task roles", spec->task_roles, HF_TOKEN_TASK_ROLES - 1, err);
    return code == HF_OK ? hf__check_task_roles(spec->task_roles, err) : code;
}

static hf_code check_spec(const hf_client *client, const hf_token_spec *spec, hf_error *err)
{
    hf_code code = hf__check_version("hf_token_spec", spec->version, HF_TOKEN_VERSION, err);
    if (code == HF_OK)
        code = hf__name_check("token name", spec->name ? spec->name : "", err);
    if (code == HF_OK && (!spec->roles || !hf__roles_known(spec->roles)))
        code = hf__fail(err, HF_INVALID, "a token needs at least one role, and known ones only");
    if (code == HF_OK && spec->roles & HF_ROLE_ROOT && strcmp(client->tenant, ROOT_TENANT) != 0)
        code = hf__fail(err, HF_INVALID,
                        "only tokens of the tenant \"" ROOT_TENANT "\" can have the role root");
    if (code == HF_OK)
        code = hf__check_time("expires_at", spec->expires_at, err);
    if (code == HF_OK)
        code = hf__check_duration("lifetime", spec->lifetime, err);
    return code == HF_OK && task_roles_of(spec) ? check_task_roles(spec, err) : code;
}

/* What the store keeps of it. */
static hf_code digest_of(const char *secret, char out[HF__DIGEST_TEXT], hf_error *err)
{
    struct hf__digest digest;
    hf_code code = hf__digest_of(&digest, secret, strlen(secret), err);
    if (code == HF_OK)
        hf__digest_text(&digest, out);
    return code;
}

static hf_code make_secret(char secret[HF_TOKEN_SECRET], char digest[HF__DIGEST_TEXT],
                           hf_error *err)
{
    unsigned char bytes[RANDOM_BYTES];
    if (!hf__random_bytes(bytes, sizeof bytes))
        return hf__fail(err, HF_INTERNAL, "the operating system has no random numbers to give");
    strcpy(secret, PREFIX);
    hf__base64url_encode(bytes, sizeof bytes, secret + sizeof PREFIX - 1);
    explicit_bzero(bytes, sizeof bytes);
    return digest_of(secret, digest, err);
}

static hf_code store(hf_client *client, hf_token_made *made, const char *digest,
                     const hf_token_spec *spec, hf_error *err)
{
    struct hf__ask ask;
    char roles[HF__ROLES_TEXT];
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_INSERT_TOKEN);
    hf__roles_format(spec->roles, "", roles);
    c[0] = hf__uuid(&made->id);
    c[1] = hf__number(client->tenant_id);
    c[2] = hf__text(spec->name);
    c[3] = hf__text(digest);
    c[4] = hf__text(roles);
    c[5] = hf__number_or_null(spec->expires_at);
    c[6] = hf__number_or_null(spec->lifetime);
    c[7] = hf__text(client->actor);
    c[8] = hf__text(task_roles_of(spec));
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_INVALID, "expires_at has passed: give a time to come");
    if (code == HF_OK)
        made->expires_at = hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

hf_code hf_token_create(hf_client *client, hf_token_made *out, const hf_token_spec *spec,
                        hf_error *err)
{
    char digest[HF__DIGEST_TEXT];
    *out = (hf_token_made){ .id = hf__new_id() };
    hf_code code = check_spec(client, spec, err);
    if (code == HF_OK)
        code = make_secret(out->secret, digest, err);
    if (code == HF_OK)
        code = store(client, out, digest, spec, err);
    if (code != HF_OK)
        explicit_bzero(out, sizeof *out);
    return code;
}

/* ---- Looking after them ---- */

/* What the store has as "read,trigger". A name that this library does not know allows nothing. */
static unsigned read_roles(const char *names)
{
    unsigned roles = 0;
    return hf_roles_parse(names, &roles, NULL) == HF_OK ? roles : 0;
}

static hf_code read_token(hf_token *token, const struct hf__cell *c, struct hf__arena *arena,
                          hf_error *err)
{
    char names[HF__ROLES_TEXT];
    token->id = hf__as_uuid(c[0]);
    token->name = hf__as_text(c[1]);
    token->roles = read_roles(hf__as_text(c[2]));
    token->created_at = hf__as_number(c[3]);
    token->created_by = hf__as_text(c[4]);
    token->expires_at = hf__as_number(c[5]);
    token->revoked_at = hf__as_number(c[6]);
    token->revoked_by = hf__as_text(c[7]);
    token->task_roles = hf__as_text(c[8]);
    hf__roles_format(token->roles, "\"", names);
    token->role_names = hf__arena_printf(arena, "[%s]", names);
    return token->role_names ? HF_OK : hf__nomem(err);
}

static hf_code read_tokens(hf_tokens *list, const struct hf__table *rows, hf_error *err)
{
    struct hf__arena *arena = hf__answer_arena(list);
    hf_code code = HF_OK;
    list->items = hf__arena_calloc(arena, (size_t)rows->nrows + 1, sizeof *list->items);
    if (!list->items)
        return hf__nomem(err);
    for (int i = 0; code == HF_OK && i < rows->nrows; i++)
        code = read_token(&list->items[list->count++], hf__table_row(rows, i), arena, err);
    return code;
}

hf_code hf_token_list(hf_client *client, hf_tokens **out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_LIST_TOKENS)[0] = hf__number(client->tenant_id);
    hf_tokens *list = hf__answer_new(sizeof *list);
    hf_code code = hf__ask_into(&ask, list, err);
    if (code == HF_OK)
        code = read_tokens(list, &ask.out, err);
    if (code == HF_OK)
        *out = list;
    else
        hf__answer_free(list);
    hf__ask_end(&ask);
    return code;
}

void hf_tokens_free(hf_tokens *tokens)
{
    hf__answer_free(tokens);
}

hf_code hf_token_revoke(hf_client *client, hf_id id, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_REVOKE_TOKEN);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    c[2] = hf__text(client->actor);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_NOT_FOUND, "there is no such token in this tenant");
    hf__ask_end(&ask);
    return code;
}

/* ---- Checking one ---- */

const char *hf_token_refusal_name(hf_token_refusal refusal)
{
    switch (refusal) {
#define CASE(symbol, name, why)                                                                    \
    case symbol: return name;
        HF_TOKEN_REFUSALS(CASE)
#undef CASE
    }
    return "unknown";
}

/* What cannot be a secret of ours is not even looked for. */
static bool looks_right(const char *secret)
{
    return secret && strncmp(secret, PREFIX, sizeof PREFIX - 1) == 0 &&
           strnlen(secret, HF_TOKEN_SECRET) == HF_TOKEN_SECRET - 1;
}

static hf_token_refusal refusal_of(const struct hf__cell *row)
{
    int64_t expires_at = hf__as_number(row[6]);
    bool revoked = !hf__is_null(row[7]);
    bool expired = expires_at && expires_at <= hf__as_number(row[8]);
    bool disabled = hf__as_number(row[3]) != 0;
    return revoked    ? HF_TOKEN_REVOKED
           : expired  ? HF_TOKEN_EXPIRED
           : disabled ? HF_TOKEN_TENANT_DISABLED
                      : HF_TOKEN_ACCEPTED;
}

static void copy_text(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

static void read_access(hf_token_access *out, const struct hf__cell *row)
{
    out->token = hf__as_uuid(row[0]);
    out->tenant_id = (int)hf__as_number(row[1]);
    copy_text(out->tenant, sizeof out->tenant, hf__as_text(row[2]));
    copy_text(out->name, sizeof out->name, hf__as_text(row[4]));
    if (!hf__is_null(row[9]))
        copy_text(out->task_roles, sizeof out->task_roles, hf__as_text(row[9]));
    out->expires_at = hf__as_number(row[6]);
    out->refusal = refusal_of(row);
    out->roles = out->refusal == HF_TOKEN_ACCEPTED ? read_roles(hf__as_text(row[5])) : 0;
}

static hf_code find(hf_client *client, const char *digest, hf_token_access *out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_FIND_TOKEN)[0] = hf__text(digest);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows > 0)
        read_access(out, hf__table_row(&ask.out, 0));
    hf__ask_end(&ask);
    return code;
}

hf_code hf_token_check(hf_client *client, const char *secret, hf_token_access *out, hf_error *err)
{
    char digest[HF__DIGEST_TEXT];
    hf_code code = HF_OK;
    *out = (hf_token_access){ .refusal = HF_TOKEN_UNKNOWN };
    if (looks_right(secret)) {
        code = digest_of(secret, digest, err);
        if (code == HF_OK)
            code = find(client, digest, out, err);
    }
    if (code == HF_OK && out->refusal != HF_TOKEN_ACCEPTED)
        code = hf__fail(err, HF_UNAUTHORIZED, "the token is not accepted");
    return code;
}

hf_code hf__token_any(hf_client *client, bool *found, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_ANY_TOKEN);
    hf_code code = hf__ask_send(&ask, err);
    *found = code == HF_OK && hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

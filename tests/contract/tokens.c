/* Tokens: what a secret opens, for how long, and what the store keeps of it. F6.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

static hf_token_spec token_spec(unsigned roles)
{
    hf_token_spec spec = HF_TOKEN_INIT;
    spec.name = "web";
    spec.roles = roles;
    return spec;
}

static hf_token_made make(hf_client *client, const hf_token_spec *spec)
{
    hf_token_made made;
    assert_ok(hf_token_create(client, &made, spec, &fx.error));
    return made;
}

static hf_token_made a_token(void)
{
    hf_token_spec spec = token_spec(HF_ROLE_READ);
    return make(fx.client, &spec);
}

/* Why the secret is refused; the answer is the same for everybody. */
static hf_token_refusal refusal_of(const char *secret)
{
    hf_token_access access;
    assert_code(hf_token_check(fx.root, secret, &access, &fx.error), HF_UNAUTHORIZED);
    assert_string_equal(fx.error.message, "the token is not accepted");
    assert_int_equal(access.roles, 0);
    return access.refusal;
}

static void a_secret_tells_whose_it_is_and_what_it_allows(void **state)
{
    hf_token_spec spec = token_spec(HF_ROLE_TRIGGER | HF_ROLE_OPERATE);
    hf_token_made made = make(fx.client, &spec);
    hf_token_access access;
    (void)state;
    assert_ok(hf_token_check(fx.other, made.secret, &access, &fx.error));
    assert_true(hf_id_equal(access.token, made.id));
    assert_string_equal(access.name, "web");
    assert_string_equal(access.tenant, fx.tenant);
    assert_int_equal(access.tenant_id,
                     sql_number("SELECT id FROM tenant WHERE name = '%s'", fx.tenant));
    assert_int_equal(access.roles, HF_ROLE_TRIGGER | HF_ROLE_OPERATE);
    assert_int_equal(access.expires_at, 0);
    assert_int_equal(access.refusal, HF_TOKEN_ACCEPTED);
}

static void a_secret_is_long_and_never_the_same(void **state)
{
    hf_token_made one = a_token();
    hf_token_made two = a_token();
    (void)state;
    assert_int_equal(strlen(one.secret), HF_TOKEN_SECRET - 1);
    assert_memory_equal(one.secret, "hf_", 3);
    assert_int_equal(strspn(one.secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                        "0123456789-_"),
                     HF_TOKEN_SECRET - 1);
    assert_string_not_equal(one.secret, two.secret);
}

static void the_store_keeps_nothing_of_the_secret_but_its_hash(void **state)
{
    hf_token_made made = a_token();
    (void)state;
    const char *kept =
        fx.backend == BACKEND_POSTGRES
            ? sql_text("SELECT api_token::text FROM api_token WHERE id = %s", sql_id(made.id))
            : sql_text("SELECT name || roles || hex(hash) || CAST(hash AS TEXT) "
                       "FROM api_token WHERE id = %s",
                       sql_id(made.id));
    assert_null(strstr(kept, made.secret + 3));
    assert_int_equal(
        sql_number("SELECT length(hash) FROM api_token WHERE id = %s", sql_id(made.id)),
        fx.backend == BACKEND_POSTGRES ? 32 : 64);
}

static void a_secret_that_nobody_was_given_is_refused(void **state)
{
    hf_token_made made = a_token();
    char longer[HF_TOKEN_SECRET + 1];
    char other[HF_TOKEN_SECRET];
    char shorter[HF_TOKEN_SECRET];
    (void)state;
    snprintf(longer, sizeof longer, "%sA", made.secret);
    snprintf(shorter, sizeof shorter, "%.45s", made.secret);
    strcpy(other, made.secret);
    other[20] = other[20] == 'A' ? 'B' : 'A';
    assert_int_equal(refusal_of(other), HF_TOKEN_UNKNOWN);
    assert_int_equal(refusal_of(longer), HF_TOKEN_UNKNOWN);
    assert_int_equal(refusal_of(shorter), HF_TOKEN_UNKNOWN);
    assert_int_equal(refusal_of(made.secret + 3), HF_TOKEN_UNKNOWN);
    assert_int_equal(refusal_of(""), HF_TOKEN_UNKNOWN);
    assert_int_equal(refusal_of(NULL), HF_TOKEN_UNKNOWN);
    assert_int_equal(refusal_of("hf_' OR 1=1 --"), HF_TOKEN_UNKNOWN);
}

static void a_token_expires_by_the_stores_clock(void **state)
{
    hf_token_spec spec = token_spec(HF_ROLE_READ);
    hf_token_access access;
    (void)state;
    spec.lifetime = HF_DAYS(90);
    hf_token_made made = make(fx.client, &spec);
    assert_int_equal(made.expires_at, now() + HF_DAYS(90));
    advance(HF_DAYS(90) - 1);
    assert_ok(hf_token_check(fx.root, made.secret, &access, &fx.error));
    assert_int_equal(access.expires_at, made.expires_at);
    advance(1);
    assert_int_equal(refusal_of(made.secret), HF_TOKEN_EXPIRED);
}

static void a_token_is_not_made_for_the_past(void **state)
{
    hf_token_spec spec = token_spec(HF_ROLE_READ);
    hf_token_made made;
    (void)state;
    spec.expires_at = now();
    assert_code(hf_token_create(fx.client, &made, &spec, &fx.error), HF_INVALID);
    assert_string_equal(made.secret, "");
    spec.expires_at = now() + 1;
    assert_int_equal(make(fx.client, &spec).expires_at, now() + 1);
}

static void a_revoked_token_is_refused_at_once_and_for_good(void **state)
{
    hf_token_made made = a_token();
    hf_token_made kept = a_token();
    hf_token_access access;
    (void)state;
    assert_ok(hf_token_revoke(fx.client, made.id, &fx.error));
    assert_int_equal(refusal_of(made.secret), HF_TOKEN_REVOKED);
    assert_ok(hf_token_check(fx.root, kept.secret, &access, &fx.error));
}

static void a_token_of_a_disabled_tenant_is_refused_until_it_is_enabled(void **state)
{
    hf_token_made made = a_token();
    hf_token_access access;
    (void)state;
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, true, &fx.error));
    assert_int_equal(refusal_of(made.secret), HF_TOKEN_TENANT_DISABLED);
    assert_ok(hf_tenant_disable(fx.root, fx.tenant, false, &fx.error));
    assert_ok(hf_token_check(fx.root, made.secret, &access, &fx.error));
}

static void who_made_and_who_revoked_a_token_can_be_told(void **state)
{
    hf_client *eve = NULL;
    hf_tokens *tokens = NULL;
    hf_token_made first = a_token();
    hf_token_made second = a_token();
    (void)state;
    assert_ok(hf_open_as(&eve, fx.client, NULL, "eve", &fx.error));
    advance(5);
    assert_ok(hf_token_revoke(eve, first.id, &fx.error));
    int64_t revoked_at = now();
    advance(5);
    assert_ok(hf_token_revoke(fx.client, first.id, &fx.error)); /* the first time counts */
    hf_close(eve);
    assert_ok(hf_token_list(fx.client, &tokens, &fx.error));
    assert_int_equal(tokens->count, 2);
    assert_true(hf_id_equal(tokens->items[0].id, first.id));
    assert_true(hf_id_equal(tokens->items[1].id, second.id));
    assert_int_equal(tokens->items[0].revoked_at, revoked_at);
    assert_string_equal(tokens->items[0].revoked_by, "eve");
    assert_non_null(tokens->items[0].created_by);
    assert_int_equal(tokens->items[0].created_at, revoked_at - 5);
    assert_int_equal(tokens->items[1].revoked_at, 0);
    assert_null(tokens->items[1].revoked_by);
    assert_int_equal(tokens->items[1].roles, HF_ROLE_READ);
    assert_string_equal(tokens->items[1].role_names, "[\"read\"]");
    hf_tokens_free(tokens);
}

static void a_token_tells_which_tasks_it_is_for(void **state)
{
    hf_token_spec spec = token_spec(HF_ROLE_TRIGGER);
    hf_token_access access;
    hf_tokens *tokens;
    (void)state;
    hf_token_made all = make(fx.client, &spec);
    spec.task_roles = "[\"boss\",\"clerk\"]";
    hf_token_made some = make(fx.client, &spec);
    assert_ok(hf_token_check(fx.root, all.secret, &access, &fx.error));
    assert_string_equal(access.task_roles, "");
    assert_ok(hf_token_check(fx.root, some.secret, &access, &fx.error));
    assert_string_equal(access.task_roles, "[\"boss\",\"clerk\"]");
    assert_ok(hf_token_list(fx.client, &tokens, &fx.error));
    assert_null(tokens->items[0].task_roles);
    assert_string_equal(tokens->items[1].task_roles, "[\"boss\",\"clerk\"]");
    hf_tokens_free(tokens);
}

static void a_task_is_for_those_who_have_one_of_its_roles(void **state)
{
    static const struct {
        const char *task, *token;
        bool allowed;
    } cases[] = {
        { "[\"boss\"]", NULL, true },
        { NULL, "", true },
        { "[\"boss\"]", "[\"boss\"]", true },
        { "[ \"a\", \"boss\" ]", "[\"clerk\",\"boss\"]", true },
        { "[\"boss\"]", "[\"bos\",\"bosss\",\"BOSS\"]", false },
        { "[\"boss\"]", "[]", false },
        { "[]", "[\"boss\"]", false },
        { NULL, "[\"boss\"]", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_task task = { .roles = cases[i].task };
        if (hf_task_allows(&task, cases[i].token) != cases[i].allowed)
            fail_msg("case %zu", i);
    }
}

static void task_roles_that_make_no_sense_are_refused(void **state)
{
    static const char *const bad[] = { "boss", "[1]", "[\"two words\"]", "{\"boss\":1}", "[\"a" };
    char longest[HF_TOKEN_TASK_ROLES + 1] = "[";
    hf_token_spec spec = token_spec(HF_ROLE_TRIGGER);
    hf_token_made made;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec.task_roles = bad[i];
        assert_code(hf_token_create(fx.client, &made, &spec, &fx.error), HF_INVALID);
    }
    while (strlen(longest) < HF_TOKEN_TASK_ROLES - 20)
        strcat(longest, "\"boss\",");
    strcat(longest, "\"boss\"]");
    memset(longest + strlen(longest), ' ', HF_TOKEN_TASK_ROLES - strlen(longest));
    spec.task_roles = longest;
    assert_int_not_equal(hf_token_create(fx.client, &made, &spec, &fx.error), HF_OK);
    longest[HF_TOKEN_TASK_ROLES - 1] = '\0';
    make(fx.client, &spec);
    spec.task_roles = "[\"boss\"]";
    spec.roles = HF_ROLE_TRIGGER | HF_ROLE_OPERATE;
    assert_code(hf_token_create(fx.client, &made, &spec, &fx.error), HF_INVALID);
    spec.roles = HF_ROLE_ADMIN;
    assert_code(hf_token_create(fx.client, &made, &spec, &fx.error), HF_INVALID);
}

static void tokens_that_make_no_sense_are_refused(void **state)
{
    hf_token_made made;
    hf_token_spec specs[] = {
        token_spec(0),
        token_spec(1u << 20),
        token_spec(HF_ROLE_READ),
        token_spec(HF_ROLE_READ),
        token_spec(HF_ROLE_READ),
        token_spec(HF_ROLE_READ),
        token_spec(HF_ROLE_READ),
    };
    (void)state;
    specs[2].name = NULL;
    specs[3].name = "two words";
    specs[4].version = 99;
    specs[5].lifetime = -1;
    specs[6].expires_at = -1;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_code(hf_token_create(fx.client, &made, &specs[i], &fx.error), HF_INVALID);
    assert_int_equal(sql_number("SELECT count(*) FROM api_token WHERE tenant_id = "
                                "(SELECT id FROM tenant WHERE name = '%s')",
                                fx.tenant),
                     0);
}

/* ---- Roles ---- */

static void each_role_includes_what_the_header_says(void **state)
{
    unsigned lower = HF_ROLE_READ | HF_ROLE_TRIGGER | HF_ROLE_WORK | HF_ROLE_OPERATE;
    unsigned above_read[] = { HF_ROLE_TRIGGER, HF_ROLE_WORK, HF_ROLE_OPERATE };
    (void)state;
    assert_true(hf_role_allows(HF_ROLE_READ, HF_ROLE_READ));
    assert_false(hf_role_allows(0, HF_ROLE_READ));
    for (int i = 0; i < 3; i++) {
        assert_true(hf_role_allows(above_read[i], above_read[i] | HF_ROLE_READ));
        assert_false(hf_role_allows(HF_ROLE_READ, above_read[i]));
        assert_false(hf_role_allows(above_read[i], above_read[(i + 1) % 3]));
        assert_false(hf_role_allows(above_read[i], HF_ROLE_ADMIN));
    }
    assert_true(hf_role_allows(HF_ROLE_ADMIN, lower | HF_ROLE_ADMIN));
    assert_false(hf_role_allows(lower, HF_ROLE_ADMIN));
}

static void root_is_included_in_nothing_and_includes_nothing(void **state)
{
    hf_token_spec spec = token_spec(HF_ROLE_ROOT);
    hf_token_made made;
    (void)state;
    assert_false(hf_role_allows(HF_ROLE_ADMIN, HF_ROLE_ROOT));
    assert_false(hf_role_allows(HF_ROLE_ROOT, HF_ROLE_READ));
    assert_code(hf_token_create(fx.client, &made, &spec, &fx.error), HF_INVALID);
    assert_ok(hf_token_create(fx.root, &made, &spec, &fx.error));
    assert_ok(hf_token_revoke(fx.root, made.id, &fx.error));
}

static void roles_are_read_by_their_names(void **state)
{
    unsigned roles = 0;
    (void)state;
    assert_ok(hf_roles_parse("work,read", &roles, &fx.error));
    assert_int_equal(roles, HF_ROLE_WORK | HF_ROLE_READ);
    assert_string_equal(hf_role_name(HF_ROLE_OPERATE), "operate");
    assert_null(hf_role_name((hf_role)1024));
    static const char *const wrong[] = { "", ",", "read,", "rea", "reads", "read, work", "READ" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_code(hf_roles_parse(wrong[i], &roles, &fx.error), HF_INVALID);
    assert_code(hf_roles_parse(NULL, &roles, &fx.error), HF_INVALID);
}

/* A newer program may know more of them. */
static void a_token_with_a_role_that_is_not_known_allows_nothing(void **state)
{
    hf_token_made made = a_token();
    hf_token_access access;
    (void)state;
    sql("UPDATE api_token SET roles = 'read,emperor' WHERE id = %s", sql_id(made.id));
    assert_ok(hf_token_check(fx.root, made.secret, &access, &fx.error));
    assert_int_equal(access.roles, 0);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_secret_tells_whose_it_is_and_what_it_allows),
    CONTRACT_TEST(a_secret_is_long_and_never_the_same),
    CONTRACT_TEST(the_store_keeps_nothing_of_the_secret_but_its_hash),
    CONTRACT_TEST(a_secret_that_nobody_was_given_is_refused),
    CONTRACT_TEST(a_token_expires_by_the_stores_clock),
    CONTRACT_TEST(a_token_is_not_made_for_the_past),
    CONTRACT_TEST(a_revoked_token_is_refused_at_once_and_for_good),
    CONTRACT_TEST(a_token_of_a_disabled_tenant_is_refused_until_it_is_enabled),
    CONTRACT_TEST(who_made_and_who_revoked_a_token_can_be_told),
    CONTRACT_TEST(a_token_tells_which_tasks_it_is_for),
    CONTRACT_TEST(a_task_is_for_those_who_have_one_of_its_roles),
    CONTRACT_TEST(task_roles_that_make_no_sense_are_refused),
    CONTRACT_TEST(tokens_that_make_no_sense_are_refused),
    CONTRACT_TEST(each_role_includes_what_the_header_says),
    CONTRACT_TEST(root_is_included_in_nothing_and_includes_nothing),
    CONTRACT_TEST(roles_are_read_by_their_names),
    CONTRACT_TEST(a_token_with_a_role_that_is_not_known_allows_nothing),
};
CONTRACT("tokens", tests)

/* Opening and closing a client.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/check.h"
#include "kernel/migrate.h"
#include "util/alloc.h"
#include "util/error.h"
#include "util/text.h"

#define DEFAULT_TENANT "default"
#define MAX_PAYLOAD_LIMIT ((size_t)256 * 1024 * 1024)

const char *hf_library_version(void)
{
    return HF__VERSION;
}

static hf_code check_options(const hf_options *options, hf_error *err)
{
    hf_code code = hf__check_version("hf_options", options->version, HF_OPTIONS_VERSION, err);
    if (code == HF_OK &&
        (options->max_open < 0 || options->max_open > 1000 || options->max_idle < 0 ||
         options->max_lifetime < 0 || options->connect_limit < 0))
        code = hf__fail(err, HF_INVALID,
                        "max_open, max_idle, max_lifetime and connect_limit must "
                        "not be negative, and max_open at most 1000");
    if (code == HF_OK && options->max_lifetime > 0 && options->max_lifetime < HF_SECONDS(1))
        code = hf__fail(err, HF_INVALID, "max_lifetime must be at least a second, or 0: no limit");
    if (code == HF_OK && options->max_payload > MAX_PAYLOAD_LIMIT)
        code = hf__fail(err, HF_INVALID, "max_payload can be at most %zu bytes", MAX_PAYLOAD_LIMIT);
    return code;
}

/* The name of the user that the process runs as. */
static void default_actor(char *out, size_t size)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char buffer[4096];
    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) != 0)
        found = NULL;
    bool usable = found && hf__label_check("actor", found->pw_name, size - 1, NULL) == HF_OK;
    strcpy(out, usable ? found->pw_name : "unknown");
}

static hf_code find_tenant(struct hf__engine *engine, const char *name, int *id, hf_error *err)
{
    struct hf__ask ask;
    hf_code code = hf__name_check("tenant", name, err);
    if (code != HF_OK)
        return code;
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_GET_TENANT);
    c[0] = hf__text(name);
    code = hf__ask_send(&ask, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = hf__fail(err, HF_NOT_FOUND,
                        "there is no tenant \"%s\": create it with `holdfast tenant create %s`",
                        name, name);
    if (code == HF_OK)
        *id = (int)hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

hf_code hf__client_for(hf_client **out, struct hf__engine *engine, int tenant_id,
                       const char *tenant, const char *actor, hf_error *err)
{
    hf_client *client = hf__calloc(1, sizeof *client);
    char *tenant_copy = hf__strdup(tenant);
    char *actor_copy = hf__strdup(actor);
    if (!client || !tenant_copy || !actor_copy) {
        free(client);
        free(tenant_copy);
        free(actor_copy);
        return hf__nomem(err);
    }
    *client = (hf_client){
        .engine = hf__engine_ref(engine),
        .tenant_id = tenant_id,
        .tenant = tenant_copy,
        .actor = actor_copy,
    };
    pthread_mutex_init(&client->coverage_mutex, NULL);
    *out = client;
    return HF_OK;
}

/* A client of an engine for a tenant known by name. */
static hf_code bind(hf_client **out, struct hf__engine *engine, const char *tenant,
                    const char *actor, hf_error *err)
{
    int tenant_id = 0;
    hf_code code = hf__label_check("actor", actor, HF__MAX_LABEL, err);
    if (code == HF_OK)
        code = find_tenant(engine, tenant, &tenant_id, err);
    if (code == HF_OK)
        code = hf__client_for(out, engine, tenant_id, tenant, actor, err);
    return code;
}

hf_code hf__open(hf_client **out, const char *url, const hf_options *options,
                 const struct hf__engine_options *inner, hf_error *err)
{
    static const hf_options defaults = HF_OPTIONS_INIT;
    struct hf__engine_options engine_options = inner ? *inner : (struct hf__engine_options){ 0 };
    struct hf__engine *engine;
    if (!options)
        options = &defaults;
    hf_code code = url && *url ? check_options(options, err)
                               : hf__fail(err, HF_INVALID, "the store's URL is missing");
    if (code != HF_OK)
        return code;
    engine_options.no_migrate = options->no_migrate;
    engine_options.max_open = options->max_open;
    engine_options.max_idle = options->max_idle;
    engine_options.max_lifetime = options->max_lifetime;
    engine_options.connect_limit = options->connect_limit;
    engine_options.max_payload = options->max_payload;
    code = hf__engine_open(&engine, url, &engine_options, err);
    if (code != HF_OK)
        return code;
    char user[HF__MAX_LABEL];
    default_actor(user, sizeof user);
    code = bind(out, engine, options->tenant ? options->tenant : DEFAULT_TENANT,
                options->actor ? options->actor : user, err);
    hf__engine_unref(engine);
    return code;
}

hf_code hf_open(hf_client **out, const char *url, const hf_options *options, hf_error *err)
{
    return hf__open(out, url, options, NULL, err);
}

hf_code hf_open_as(hf_client **out, hf_client *base, const char *tenant, const char *actor,
                   hf_error *err)
{
    return bind(out, base->engine, tenant ? tenant : base->tenant, actor ? actor : base->actor,
                err);
}

void hf_close(hf_client *client)
{
    if (!client)
        return;
    hf__engine_unref(client->engine);
    pthread_mutex_destroy(&client->coverage_mutex);
    hf__coverage_free(&client->coverage);
    free(client->tenant);
    free(client->actor);
    free(client);
}

hf_code hf_schema(hf_client *client, int *in_store, int *newest, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_GET_SCHEMA_VERSION);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK) {
        *in_store = (int)hf__as_number(hf__table_row(&ask.out, 0)[0]);
        *newest = hf__engine_schema(client->engine);
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf_store_now(hf_client *client, int64_t *out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_GET_NOW);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        *out = hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

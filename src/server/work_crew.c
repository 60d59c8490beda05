/* Remote workers as rows of the store: who they are, what they serve, when they were last heard of.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/work.h"

#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/fit.h"
#include "kernel/chores.h"
#include "util/error.h"
#include "util/text.h"

#include <string.h>

enum { MOST_STUCK = 1000000 };
#define SILENCE HF_SECONDS(40) /* after its last request a worker counts as dead */

char *hf__work_name(struct hf__request *request, const char *worker)
{
    return hf__arena_printf(&request->arena, "%s/%s", request->client->tenant, worker);
}

/* The engine's own work needs the store, which a remote worker does not have. */
static hf_code check_pattern(const char *pattern, hf_error *err)
{
    if (strncmp(pattern, HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) == 0)
        return hf__fail(err, HF_INVALID,
                        "names that begin with \"" HF__CHORE_PREFIX "\" are the engine's own");
    return hf__check_pattern(pattern, err);
}

static hf_code check_patterns(const struct hf__crew *crew, hf_error *err)
{
    hf_code code = HF_OK;
    if (crew->workflow_count == 0)
        return hf__fail(err, HF_INVALID, "\"workflows\" names none");
    if (crew->workflow_count > HF__MOST_SERVED)
        return hf__fail(err, HF_TOO_LARGE, "\"workflows\" names more than %d", HF__MOST_SERVED);
    for (size_t i = 0; code == HF_OK && i < crew->workflow_count; i++)
        code = check_pattern(crew->workflows[i], err);
    return code;
}

hf_code hf__crew_check(struct hf__request *request, struct hf__crew *crew, int threads,
                       hf_error *err)
{
    size_t prefix = strlen(request->client->tenant) + 1; /* of its name in the store */
    hf_code code = hf__label_check("worker", crew->worker, HF__MAX_LABEL - prefix, err);
    if (code == HF_OK)
        code = hf__check_optional_label("host", crew->host, err);
    if (code == HF_OK)
        code = hf__check_optional_label("program", crew->program, err);
    if (code == HF_OK)
        code = check_patterns(crew, err);
    if (code != HF_OK)
        return code;
    crew->threads = crew->threads ? crew->threads : threads;
    crew->name = hf__work_name(request, crew->worker);
    return crew->name ? HF_OK : hf__nomem(err);
}

static hf_code list_json(const char **out, struct hf__arena *arena, const char *const *words,
                         size_t count, hf_error *err)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_json_strings(&json, words, count);
    *out = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return *out ? HF_OK : hf__nomem(err);
}

hf_code hf__crew_put(struct hf__request *request, const struct hf__crew *crew, int64_t wait,
                     hf_error *err)
{
    hf_client *client = request->client;
    const char *const tenants[] = { client->tenant };
    const char *tenants_text = NULL;
    const char *serves = NULL;
    hf_code code = list_json(&tenants_text, &request->arena, tenants, 1, err);
    if (code == HF_OK)
        code = list_json(&serves, &request->arena, crew->workflows, crew->workflow_count, err);
    if (code != HF_OK)
        return code;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_PUT_WORKER);
    c[0] = hf__text(crew->name);
    c[1] = hf__text(tenants_text);
    c[2] = hf__text(serves);
    c[3] = hf__text(crew->host ? crew->host : "remote");
    c[4] = hf__number(0);
    c[5] = hf__text(crew->program ? crew->program : "remote");
    c[6] = hf__number(crew->threads);
    c[7] = hf__number(wait + SILENCE);
    c[8] = hf__number(crew->stuck);
    code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code == HF_OK ? hf__fit_try_again(client->engine, tenants_text, serves, err) : code;
}

/* A sign of life. What is null stays as it was; `known`: the row is there. */
static hf_code beat(struct hf__request *request, const char *name, struct hf__cell running,
                    struct hf__cell idle, struct hf__cell stuck, int64_t wait, bool *known,
                    hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, request->client->engine, HF__STMT_BEAT_WORKER);
    c[0] = hf__text(name);
    c[1] = running;
    c[2] = idle;
    c[3] = hf__number(false);
    c[4] = hf__number(wait + SILENCE);
    c[5] = stuck;
    hf_code code = hf__ask_send(&ask, err);
    *known = code == HF_OK && ask.out.nrows > 0;
    hf__ask_end(&ask);
    return code;
}

hf_code hf__crew_list(struct hf__request *request, const struct hf__crew *crew, int64_t wait,
                      hf_error *err)
{
    bool known = false;
    hf_code code = beat(request, crew->name, hf__null(), hf__null(), hf__null(), wait, &known, err);
    return code == HF_OK && !known ? hf__crew_put(request, crew, wait, err) : code;
}

hf_code hf__crew_idle(struct hf__request *request, const struct hf__crew *crew, bool idle,
                      int64_t wait, hf_error *err)
{
    bool known;
    return beat(request, crew->name, hf__null(), hf__number(idle), hf__null(), wait, &known, err);
}

hf_code hf__crew_check_stuck(int stuck, hf_error *err)
{
    return hf__check_range("\"stuck\"", stuck, 0, MOST_STUCK, err);
}

hf_code hf__crew_seen(struct hf__request *request, const char *worker, size_t running,
                      const int *stuck, hf_error *err)
{
    bool known;
    const char *name = hf__work_name(request, worker);
    if (!name)
        return hf__nomem(err);
    return beat(request, name, hf__number((int64_t)running), hf__null(),
                stuck ? hf__number(*stuck) : hf__null(), 0, &known, err);
}

/* ---- Leaving ---- */

struct leaving {
    const char *worker;
};

const struct hf__member hf__work_leave_members[] = {
    HF__MEMBER(struct leaving, worker, TEXT, "the worker's name", .required = true),
    HF__MEMBERS_END,
};

hf_code hf__work_leave(struct hf__request *request, hf_error *err)
{
    struct leaving leaving = { 0 };
    struct hf__ask ask;
    hf_code code = hf__request_body(request, &leaving, NULL, err);
    char *name = code == HF_OK ? hf__work_name(request, leaving.worker) : NULL;
    if (!name)
        return code == HF_OK ? hf__nomem(err) : code;
    hf__work_dismiss(request, name);
    hf__ask_begin(&ask, request->client->engine, HF__STMT_REMOVE_WORKER)[0] = hf__text(name);
    code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

/* Subscriptions: where events are delivered to. Each has one run of the engine's own, played by workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/ids.h"
#include "client/outbox.h"
#include "kernel/chores.h"
#include "outbox/secret.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/text.h"

#define TRIES 5 /* others may create or delete the same subscription meanwhile */
#define DEFAULT_FAILURES 10
#define MAX_FAILURES 100000
#define MAX_PATTERNS 100
#define MAX_URL 2000
#define END_PAGE 500 /* deliveries of a removed subscription that are ended at once */

static const char *const modes[] = { "structured", "binary" };

const char *hf_event_mode_name(hf_event_mode mode)
{
    return mode == HF_EVENT_BINARY ? modes[1] : modes[0];
}

bool hf_event_mode_parse(const char *text, hf_event_mode *out)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(text, modes[i]) == 0) {
            *out = (hf_event_mode)i;
            return true;
        }
    return false;
}

void hf_subscription_free(hf_subscription *subscription)
{
    hf__answer_free(subscription);
}

void hf_subscriptions_free(hf_subscriptions *subscriptions)
{
    hf__answer_free(subscriptions);
}

/* ---- Checking ---- */

static hf_code check_url(const char *url, hf_error *err)
{
    hf_code code = hf__label_check("url", url ? url : "", MAX_URL, err);
    size_t scheme = code != HF_OK                      ? 0
                    : strncmp(url, "http://", 7) == 0  ? 7
                    : strncmp(url, "https://", 8) == 0 ? 8
                                                       : 0;
    if (code == HF_OK && (scheme == 0 || strchr("/?#", url[scheme]) || strchr(url, ' ')))
        code = hf__fail(err, HF_INVALID,
                        "\"%.100s\" is not a URL to deliver to: it begins with http:// or https:// "
                        "and names a host",
                        url);
    if (code == HF_OK && memchr(url + scheme, '@', strcspn(url + scheme, "/?#")))
        code = hf__fail(err, HF_INVALID,
                        "a URL must not hold a name and password: it is shown in lists");
    return code;
}

static hf_code check_patterns(const hf_subscription_spec *spec, hf_error *err)
{
    hf_code code = HF_OK;
    if (spec->event_count > MAX_PATTERNS)
        return hf__fail(err, HF_INVALID, "a subscription can name %d types", MAX_PATTERNS);
    for (size_t i = 0; code == HF_OK && i < spec->event_count; i++) {
        const char *pattern = spec->events[i] ? spec->events[i] : "";
        const char *star = strchr(pattern, '*');
        code = hf__label_check("event type", pattern, HF__MAX_LABEL, err);
        if (code == HF_OK && star && star[1])
            code = hf__fail(err, HF_INVALID,
                            "\"%.100s\": a star stands at the end of an event type or nowhere",
                            pattern);
    }
    return code;
}

static hf_code check_spec(const hf_subscription_spec *spec, hf_error *err)
{
    hf_code code =
        hf__check_version("hf_subscription_spec", spec->version, HF_SUBSCRIPTION_VERSION, err);
    if (code == HF_OK)
        code = hf__name_check("subscription name", spec->name ? spec->name : "", err);
    if (code == HF_OK)
        code = check_url(spec->url, err);
    if (code == HF_OK)
        code = check_patterns(spec, err);
    if (code == HF_OK && spec->secret)
        code = hf__secret_check(spec->secret, err);
    if (code == HF_OK && (unsigned)spec->mode > HF_EVENT_BINARY)
        code = hf__fail(err, HF_INVALID, "there is no mode %d", (int)spec->mode);
    if (code == HF_OK && (spec->max_failures < 0 || spec->max_failures > MAX_FAILURES))
        code = hf__fail(err, HF_INVALID, "max_failures must be from 1 to %d", MAX_FAILURES);
    return code;
}

/* ---- Setting ---- */

/* The run that delivers waits from its beginning: whoever writes an event wakes it. */
static hf_code start_run(hf_client *client, const char *name, hf_id *run, hf_error *err)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_transition initial = {
        .version = HF_TRANSITION_VERSION,
        .turn = HF_TURN_WAIT,
        .waiting_kind = HF__WAITING_OUTBOX,
    };
    hf_triggered made;
    spec.workflow = HF__CHORE_DISPATCH;
    spec.key = name;
    hf_code code = hf__chore_start(client, &made, &spec, &initial, err);
    *run = made.id;
    return code;
}

/* A run that somebody ended makes place for a new one. */
static hf_code ensure_run(hf_client *client, const char *name, hf_id *run, hf_error *err)
{
    hf_code code = HF_OK;
    for (int i = 0; i < TRIES; i++) {
        hf_run *found = NULL;
        code = start_run(client, name, run, err);
        if (code == HF_OK)
            code = hf_get(client, &found, *run, err);
        bool ended = code == HF_OK && (hf_status_finished(found->status) || found->deleted_at);
        hf_run_free(found);
        if (code != HF_OK || !ended)
            return code;
        code = hf__steer_run(client, *run, HF_DELETE, err);
        if (code != HF_OK && code != HF_NOT_ALLOWED && code != HF_NOT_FOUND)
            return code;
    }
    return hf__fail(err, HF_CONFLICT,
                    "the subscription \"%s\" is being changed by others: try again", name);
}

static char *filter_json(const hf_subscription_spec *spec, struct hf__arena *arena)
{
    static const char *const all[] = { "*" };
    struct hf__buffer json = { 0 };
    hf__buffer_add_json_strings(&json, spec->event_count ? spec->events : all,
                                spec->event_count ? spec->event_count : 1);
    char *text = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return text;
}

static hf_code put_row(hf_client *client, const hf_subscription_spec *spec, const char *fresh,
                       hf_id run, bool *created, hf_error *err)
{
    hf_id id = hf__new_id();
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_PUT_SUBSCRIPTION);
    char *filter = filter_json(spec, &ask.arena);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    c[2] = hf__text(spec->name);
    c[3] = hf__text(spec->url);
    c[4] = hf__text(filter);
    c[5] = hf__text(spec->secret);
    c[6] = hf__text(fresh);
    c[7] = hf__number((int)spec->mode);
    c[8] = hf__number(spec->max_failures ? spec->max_failures : DEFAULT_FAILURES);
    c[9] = hf__uuid(&run);
    hf_code code = filter ? hf__ask_send(&ask, err) : hf__nomem(err);
    *created = code == HF_OK && hf_id_equal(hf__as_uuid(hf__table_row(&ask.out, 0)[0]), id);
    hf__ask_end(&ask);
    return code;
}

/* A run that took another one's place has not heard of the events that wait already. */
static hf_code look_again(hf_client *client, hf_id run, hf_error *err)
{
    hf_signal_spec signal = HF_SIGNAL_INIT;
    signal.name = "look";
    return hf__steer(client, run, &signal, err);
}

hf_code hf_subscription_put(hf_client *client, const hf_subscription_spec *spec,
                            char secret[HF_SECRET_TEXT], hf_error *err)
{
    char fresh[HF_SECRET_TEXT] = "";
    hf_id run;
    bool created = false;
    hf_code code = check_spec(spec, err);
    if (code == HF_OK)
        code = hf__webhook_secret_make(fresh, err);
    if (code == HF_OK)
        code = ensure_run(client, spec->name, &run, err);
    if (code == HF_OK)
        code = put_row(client, spec, fresh, run, &created, err);
    if (code == HF_OK && !created)
        code = look_again(client, run, err);
    if (secret)
        strcpy(secret, code != HF_OK ? "" : spec->secret ? spec->secret : created ? fresh : "");
    return code;
}

/* ---- Reading ---- */

/* What the dispatcher wrote into its run's state. */
static void read_state(hf_subscription *out, const char *state, struct hf__arena *arena)
{
    json_t *json = state ? json_loads(state, 0, NULL) : NULL;
    const char *error = json_string_value(json_object_get(json, "error"));
    int all = (int)json_integer_value(json_object_get(json, "failures"));
    int one = (int)json_integer_value(json_object_get(json, "tries")); /* of one event */
    out->failures = all > one ? all : one;
    out->last_error = hf__arena_strdup(arena, error);
    json_decref(json);
}

static const char *state_of(const hf_subscription *sub, const struct hf__cell *c)
{
    hf_status status = (hf_status)hf__as_number(c[9]);
    const char *kind = hf__as_text(c[10]);
    if (hf__is_null(c[9]) || hf_status_finished(status))
        return "ended";
    if (status == HF_PAUSED || hf__as_number(c[13]) ||
        (status == HF_WAITING && kind && strcmp(kind, "parked") == 0))
        return "parked";
    return sub->last_error ? "retrying" : "active";
}

static void read_row(hf_subscription *out, const struct hf__cell *c, struct hf__arena *arena)
{
    *out = (hf_subscription){
        .name = hf__as_text(c[1]),
        .url = hf__as_text(c[2]),
        .events = hf__as_text(c[3]),
        .mode = hf_event_mode_name((hf_event_mode)hf__as_number(c[4])),
        .max_failures = (int)hf__as_number(c[5]),
        .run = hf__as_uuid(c[6]),
        .created_at = hf__as_number(c[7]),
        .updated_at = hf__as_number(c[8]),
        .pending = hf__as_number(c[14]),
        .oldest_at = hf__as_number(c[15]),
    };
    read_state(out, hf__as_text(c[11]), arena);
    if (!hf__is_null(c[16]))
        out->last_error = hf__as_text(c[16]);
    out->state = state_of(out, c);
    if (strcmp(out->state, "retrying") == 0)
        out->retry_at = hf__as_number(c[12]);
}

/* All of them, or the one of a name; `list` is the caller's to free. */
static hf_code read_all(hf_client *client, const char *name, hf_subscriptions **list, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_LIST_SUBSCRIPTIONS);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__text(name);
    *list = hf__answer_new(sizeof **list);
    hf_code code = hf__ask_into(&ask, *list, err);
    if (code == HF_OK) {
        struct hf__arena *arena = hf__answer_arena(*list);
        (*list)->count = (size_t)ask.out.nrows;
        (*list)->items = hf__arena_calloc(arena, (*list)->count + 1, sizeof *(*list)->items);
        code = (*list)->items ? HF_OK : hf__nomem(err);
        for (size_t i = 0; code == HF_OK && i < (*list)->count; i++)
            read_row(&(*list)->items[i], hf__table_row(&ask.out, (int)i), arena);
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf_subscription_list(hf_client *client, hf_subscriptions **out, hf_error *err)
{
    hf_subscriptions *list = NULL;
    hf_code code = read_all(client, NULL, &list, err);
    if (code == HF_OK)
        *out = list;
    else
        hf_subscriptions_free(list);
    return code;
}

static hf_code missing(const char *name, hf_error *err)
{
    return hf__fail(err, HF_NOT_FOUND, "there is no subscription \"%s\" in this tenant", name);
}

/* A list of one: the record is its first and only item. */
static hf_code find(hf_client *client, const char *name, hf_subscriptions **list, hf_error *err)
{
    *list = NULL;
    hf_code code = hf__name_check("subscription name", name ? name : "", err);
    if (code == HF_OK)
        code = read_all(client, name, list, err);
    if (code == HF_OK && (*list)->count == 0)
        code = missing(name, err);
    return code;
}

static hf_code copy(hf_subscription **out, const hf_subscription *from, hf_error *err)
{
    hf_subscription *record = hf__answer_new(sizeof *record);
    if (!record)
        return hf__nomem(err);
    struct hf__arena *arena = hf__answer_arena(record);
    *record = *from;
    record->name = hf__arena_strdup(arena, from->name);
    record->url = hf__arena_strdup(arena, from->url);
    record->events = hf__arena_strdup(arena, from->events);
    record->last_error = hf__arena_strdup(arena, from->last_error);
    if (!record->name || !record->url || !record->events) {
        hf_subscription_free(record);
        return hf__nomem(err);
    }
    *out = record;
    return HF_OK;
}

hf_code hf_subscription_get(hf_client *client, hf_subscription **out, const char *name,
                            hf_error *err)
{
    hf_subscriptions *list;
    hf_code code = find(client, name, &list, err);
    if (code == HF_OK)
        code = copy(out, &list->items[0], err);
    hf_subscriptions_free(list);
    return code;
}

/* ---- Changing ---- */

hf_code hf_subscription_park(hf_client *client, const char *name, hf_error *err)
{
    hf_subscriptions *list;
    hf_code code = find(client, name, &list, err);
    if (code == HF_OK)
        code = hf__steer_run(client, list->items[0].run, HF_PAUSE, err);
    if (code == HF_NOT_ALLOWED && strcmp(list->items[0].state, "parked") == 0)
        code = HF_OK;
    hf_subscriptions_free(list);
    return code;
}

/* The signal makes it forget its failures and look at once; the pause, if there is one, ends after it. */
hf_code hf_subscription_resume(hf_client *client, const char *name, hf_error *err)
{
    hf_subscriptions *list;
    hf_run *run = NULL;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    signal.name = "resume";
    hf_code code = find(client, name, &list, err);
    if (code == HF_OK)
        code = hf__steer(client, list->items[0].run, &signal, err);
    if (code == HF_OK)
        code = hf_get(client, &run, list->items[0].run, err);
    if (code == HF_OK && (run->status == HF_PAUSED || run->pause_requested))
        code = hf__steer_run(client, run->id, HF_RESUME, err);
    hf_run_free(run);
    hf_subscriptions_free(list);
    return code;
}

struct removal {
    hf_client *client;
    const char *name;
    hf_id id;
    hf_id run;
    bool found;
};

/* Whoever writes an event with this subscription in sight is waited for; all later ones do not see it. */
static hf_code remove_row(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                          hf_error *err)
{
    struct removal *removal = arg;
    struct hf__arena arena = { 0 };
    struct hf__table quiet, in, out;
    hf_code code = HF_OK;
    hf__table_init(&quiet, &arena, 1);
    hf__table_add(&quiet)[0] = hf__number(removal->client->tenant_id);
    hf__table_init(&in, &arena, 2);
    struct hf__cell *c = hf__table_add(&in);
    c[0] = hf__number(removal->client->tenant_id);
    c[1] = hf__text(removal->name);
    hf__table_init(&out, &arena, 2);
    if (quiet.failed || in.failed)
        code = hf__nomem(err);
    if (code == HF_OK && driver->statements[HF__STMT_WAIT_QUIET].sql)
        code = driver->send(conn, HF__STMT_WAIT_QUIET, &quiet, NULL, err);
    if (code == HF_OK)
        code = driver->send(conn, HF__STMT_DELETE_SUBSCRIPTION, &in, &out, err);
    if (code == HF_OK)
        code = driver->sync(conn, err);
    removal->found = code == HF_OK && out.nrows > 0;
    if (removal->found) {
        removal->id = hf__as_uuid(hf__table_row(&out, 0)[0]);
        removal->run = hf__as_uuid(hf__table_row(&out, 0)[1]);
    }
    hf__arena_free(&arena);
    return code;
}

static hf_code end_page(hf_client *client, hf_id subscription, size_t *count, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__delivery *page = NULL;
    const struct hf__delivery_range range = { .subscription = subscription, .most = END_PAGE };
    hf_code code = hf__deliveries_load(client, &page, count, &range, &arena, err);
    const struct hf__delivery **ended =
        code == HF_OK ? hf__arena_calloc(&arena, *count + 1, sizeof *ended) : NULL;
    if (code == HF_OK && !ended)
        code = hf__nomem(err);
    for (size_t i = 0; code == HF_OK && i < *count; i++)
        ended[i] = &page[i];
    if (code == HF_OK)
        code = hf__deliveries_end(client, subscription, ended, *count, err);
    hf__arena_free(&arena);
    return code;
}

hf_code hf_subscription_delete(hf_client *client, const char *name, hf_error *err)
{
    struct removal removal = { .client = client, .name = name };
    size_t left = 1;
    hf_code code = hf__name_check("subscription name", name ? name : "", err);
    if (code == HF_OK)
        code = hf__engine_transact(client->engine, remove_row, &removal, NULL, err);
    if (code == HF_OK && !removal.found)
        code = missing(name, err);
    while (code == HF_OK && left)
        code = end_page(client, removal.id, &left, err);
    if (code != HF_OK)
        return code;
    code = hf__steer_run(client, removal.run, HF_DELETE, err);
    return code == HF_NOT_FOUND || code == HF_NOT_ALLOWED ? HF_OK : code;
}

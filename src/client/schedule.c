/* Schedules: each is one run of the engine's own, told and read here and played by workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "kernel/chores.h"
#include "schedule/spec.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/text.h"

#define TRIES 5         /* others may create or delete the same schedule meanwhile */
#define STATE_ROOM 4096 /* bytes of the state beside the settings */
#define PAGE 1000

void hf_schedule_free(hf_schedule *schedule)
{
    hf__answer_free(schedule);
}

void hf_schedules_free(hf_schedules *schedules)
{
    hf__answer_free(schedules);
}

/* ---- Checking ---- */

/* What it would start must be something that can be triggered. */
static hf_code check_started(hf_client *client, const hf_schedule_spec *spec, hf_error *err)
{
    hf_trigger_spec started = HF_TRIGGER_INIT;
    started.workflow = spec->workflow;
    started.input = spec->input;
    started.priority = spec->priority;
    started.tags = spec->tags;
    started.tag_count = spec->tag_count;
    return hf__check_trigger(&started, hf__engine_max_payload(client->engine), err);
}

static hf_code check_clock(const hf_schedule_spec *spec, hf_error *err)
{
    struct hf__cron cron;
    struct hf__zone zone = { 0 };
    hf_code code = hf__schedule_clock(spec, &cron, &zone, err);
    hf__zone_free(&zone);
    return code;
}

static hf_code check_workflow(hf_client *client, const hf_schedule_spec *spec, hf_error *err)
{
    hf_workflow *workflow = NULL;
    hf_code code = hf_workflow_get(client, &workflow, spec->workflow, err);
    if (code == HF_UNKNOWN_WORKFLOW)
        code = hf__fail(err, code,
                        "no workflow is named \"%s\": create it with `holdfast workflow create "
                        "%s`, or start a worker that serves it",
                        spec->workflow, spec->workflow);
    hf_workflow_free(workflow);
    return code;
}

hf_code hf__schedule_check(hf_client *client, const hf_schedule_spec *spec, hf_error *err)
{
    hf_code code = hf__check_version("hf_schedule_spec", spec->version, HF_SCHEDULE_VERSION, err);
    if (code == HF_OK)
        code = hf__name_check("schedule name", spec->name ? spec->name : "", err);
    if (code == HF_OK && !spec->cron)
        code = hf__fail(err, HF_INVALID, "a schedule needs a cron expression or an interval");
    if (code == HF_OK && ((unsigned)spec->overlap > HF_OVERLAP_CANCEL))
        code = hf__fail(err, HF_INVALID, "there is no overlap policy %d", (int)spec->overlap);
    if (code == HF_OK && ((unsigned)spec->catch_up > HF_CATCH_UP_ALL))
        code = hf__fail(err, HF_INVALID, "there is no catch-up policy %d", (int)spec->catch_up);
    if (code == HF_OK)
        code = check_started(client, spec, err);
    return code == HF_OK ? check_clock(spec, err) : code;
}

/* ---- Setting ---- */

struct setting {
    const hf_schedule_spec *spec;
    struct hf__arena arena;
    char *input;   /* the settings as JSON */
    char *state;   /* the first one */
    int64_t first; /* due time */
};

/* Writes down what the schedule's run will begin with. */
static hf_code prepare(hf_client *client, struct setting *setting, hf_error *err)
{
    struct hf__schedule_state state = { .spec = *setting->spec };
    struct hf__cron cron;
    struct hf__zone zone = { 0 };
    hf_code code = hf__schedule_clock(setting->spec, &cron, &zone, err);
    if (code == HF_OK)
        code = hf_store_now(client, &state.from, err);
    if (code == HF_OK) {
        setting->first = hf__cron_next(&cron, &zone, state.from);
        setting->input = hf__schedule_spec_json(setting->spec, &setting->arena);
        setting->state = hf__schedule_state_json(&state, &setting->arena);
        code = setting->input && setting->state ? HF_OK : hf__nomem(err);
    }
    hf__zone_free(&zone);
    size_t limit = hf__engine_max_payload(client->engine);
    if (code == HF_OK && strlen(setting->state) + STATE_ROOM > limit)
        code = hf__fail(err, HF_TOO_LARGE,
                        "the schedule's input is too large: store large data elsewhere and pass a "
                        "reference, or raise max_payload");
    return code;
}

static hf_code create(hf_client *client, const struct setting *setting, hf_error *err)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_transition initial = {
        .version = HF_TRANSITION_VERSION,
        .turn = HF_TURN_WAIT,
        .state = setting->state,
        .waiting_kind = "schedule",
        .waiting_until = setting->first,
    };
    hf_triggered made;
    spec.workflow = HF__CHORE_SCHEDULE;
    spec.key = setting->spec->name;
    spec.input = setting->input;
    hf_code code = hf__chore_start(client, &made, &spec, &initial, err);
    return code == HF_OK && made.existed ? HF_CONFLICT : code;
}

/* A schedule that has ended makes place for a new one. */
static hf_code change(hf_client *client, const hf_run *run, const struct setting *setting,
                      hf_error *err)
{
    if (hf_status_finished(run->status)) {
        hf_code code = hf__steer_run(client, run->id, HF_DELETE, err);
        return code == HF_OK ? HF_CONFLICT : code;
    }
    hf_signal_spec signal = HF_SIGNAL_INIT;
    signal.name = HF__SCHEDULE_SET;
    signal.payload = setting->input;
    return hf__steer(client, run->id, &signal, err);
}

static hf_code create_or_change(hf_client *client, const struct setting *setting, hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = hf_get_by_key(client, &run, HF__CHORE_SCHEDULE, setting->spec->name, err);
    if (code == HF_OK)
        code = change(client, run, setting, err);
    else if (code == HF_NOT_FOUND || code == HF_UNKNOWN_WORKFLOW)
        code = create(client, setting, err);
    hf_run_free(run);
    return code;
}

/* Somebody created, ended or deleted it between the look and the act. */
static bool was_overtaken(hf_code code)
{
    return code == HF_CONFLICT || code == HF_NOT_ALLOWED || code == HF_NOT_FOUND;
}

hf_code hf_schedule_set(hf_client *client, const hf_schedule_spec *spec, hf_error *err)
{
    struct setting setting = { .spec = spec };
    hf_code code = hf__schedule_check(client, spec, err);
    if (code == HF_OK)
        code = check_workflow(client, spec, err);
    if (code == HF_OK)
        code = prepare(client, &setting, err);
    if (code == HF_OK) {
        code = HF_CONFLICT;
        for (int i = 0; i < TRIES && was_overtaken(code); i++)
            code = create_or_change(client, &setting, err);
        if (was_overtaken(code))
            code =
                hf__fail(err, HF_CONFLICT,
                         "the schedule \"%s\" is being changed by others: try again", spec->name);
    }
    hf__arena_free(&setting.arena);
    return code;
}

/* ---- Reading ---- */

/* Settings that were sent but that no worker has taken up yet hold already. */
static hf_code take_up(struct hf__schedule_state *state, const hf_run *run,
                       const struct hf__table *mail, struct hf__arena *arena)
{
    for (int i = 0; i < mail->nrows; i++) {
        const struct hf__cell *c = hf__table_row(mail, i);
        hf_schedule_spec spec;
        struct hf__cron cron;
        struct hf__zone zone = { 0 };
        if (!hf_id_equal(hf__as_uuid(c[0]), run->id) ||
            strcmp(hf__as_text(c[3]), HF__SCHEDULE_SET) != 0)
            continue;
        if (hf__schedule_spec_read(&spec, hf__as_text(c[4]), arena, NULL) != HF_OK ||
            hf__schedule_clock(&spec, &cron, &zone, NULL) != HF_OK)
            continue;
        hf__zone_free(&zone);
        state->spec = spec;
        if (hf__as_number(c[9]) > state->from)
            state->from = hf__as_number(c[9]);
    }
    return HF_OK;
}

static int64_t next_of(const struct hf__schedule_state *state)
{
    struct hf__cron cron;
    struct hf__zone zone = { 0 };
    int64_t next = 0;
    if (hf__schedule_clock(&state->spec, &cron, &zone, NULL) == HF_OK)
        next = hf__cron_next(&cron, &zone, state->from);
    hf__zone_free(&zone);
    return next;
}

static const char *tags_of(const hf_schedule_spec *spec, struct hf__arena *arena);

static hf_code read_schedule(hf_schedule *out, const hf_run *run, const struct hf__table *mail,
                             struct hf__arena *arena, hf_error *err)
{
    struct hf__schedule_state state;
    hf_code code = hf__schedule_state_read(&state, run->state, arena, err);
    if (code == HF_OK)
        code = take_up(&state, run, mail, arena);
    if (code != HF_OK)
        return code;
    bool paused = run->status == HF_PAUSED || run->pause_requested;
    *out = (hf_schedule){
        .name = hf__arena_strdup(arena, run->key),
        .cron = state.spec.cron,
        .timezone = state.spec.timezone,
        .workflow = state.spec.workflow,
        .input = state.spec.input,
        .overlap = hf_overlap_name(state.spec.overlap),
        .catch_up = hf_catch_up_name(state.spec.catch_up),
        .priority = state.spec.priority,
        .tags = tags_of(&state.spec, arena),
        .paused = paused,
        .status = run->status,
        .run = run->id,
        .next_at = paused || hf_status_finished(run->status) ? 0 : next_of(&state),
        .last_at = state.last_at,
        .last_run = state.last_run,
        .fired = state.fired,
        .skipped = state.skipped,
        .queued = state.queued,
        .last_error = hf__arena_strdup(arena, run->last_error),
        .created_at = run->created_at,
        .updated_at = run->updated_at,
    };
    return out->name ? HF_OK : hf__nomem(err);
}

/* Mail of these runs that no worker has seen; `ask` must be ended. */
static hf_code load_mail(hf_client *client, struct hf__ask *ask, const hf_run *runs, size_t count,
                         hf_error *err)
{
    hf__ask_begin(ask, client->engine, HF__STMT_LOAD_MAIL);
    hf__table_init(&ask->in, &ask->arena, ask->in.ncolumns);
    for (size_t i = 0; i < count; i++) {
        struct hf__cell *c = hf__table_add(&ask->in);
        c[0] = hf__number(client->tenant_id);
        c[1] = hf__uuid(&runs[i].id);
    }
    return count ? hf__ask_send(ask, err) : HF_OK;
}

static hf_code find(hf_client *client, hf_run **out, const char *name, hf_error *err)
{
    hf_code code = hf__name_check("schedule name", name ? name : "", err);
    if (code == HF_OK)
        code = hf_get_by_key(client, out, HF__CHORE_SCHEDULE, name, err);
    if (code == HF_NOT_FOUND || code == HF_UNKNOWN_WORKFLOW)
        code = hf__fail(err, HF_NOT_FOUND, "there is no schedule \"%s\" in this tenant", name);
    return code;
}

/* The run, then its mail. What the run has taken up in between is in neither: then both are read again. */
static hf_code find_with_mail(hf_client *client, hf_run **out, struct hf__ask *ask,
                              const char *name, hf_error *err)
{
    hf_code code = find(client, out, name, err);
    *ask = (struct hf__ask){ 0 };
    for (bool same = false; code == HF_OK && !same;) {
        hf_run *later = NULL;
        hf__ask_end(ask);
        code = load_mail(client, ask, *out, 1, err);
        if (code == HF_OK)
            code = find(client, &later, name, err);
        same = code == HF_OK && later->version == (*out)->version;
        hf_run_free(*out);
        *out = later;
    }
    return code;
}

hf_code hf_schedule_get(hf_client *client, hf_schedule **out, const char *name, hf_error *err)
{
    hf_run *run = NULL;
    struct hf__ask ask;
    hf_schedule *schedule = NULL;
    hf_code code = find_with_mail(client, &run, &ask, name, err);
    if (code == HF_OK && !(schedule = hf__answer_new(sizeof *schedule)))
        code = hf__nomem(err);
    if (code == HF_OK)
        code = read_schedule(schedule, run, &ask.out, hf__answer_arena(schedule), err);
    hf__ask_end(&ask);
    hf_run_free(run);
    if (code == HF_OK)
        *out = schedule;
    else
        hf_schedule_free(schedule);
    return code;
}

/* Adds a page of runs to the list, in memory that grows by halves. */
static hf_code add_page(hf_client *client, hf_schedules *list, size_t *capacity,
                        const hf_runs *page, hf_error *err)
{
    struct hf__arena *arena = hf__answer_arena(list);
    if (list->count + page->count > *capacity) {
        size_t wanted = (list->count + page->count) * 3 / 2 + 1;
        hf_schedule *items = hf__arena_calloc(arena, wanted, sizeof *items);
        if (!items)
            return hf__nomem(err);
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        *capacity = wanted;
    }
    struct hf__ask ask;
    hf_code code = load_mail(client, &ask, page->items, page->count, err);
    for (size_t i = 0; code == HF_OK && i < page->count; i++)
        code = read_schedule(&list->items[list->count++], &page->items[i], &ask.out, arena, err);
    hf__ask_end(&ask);
    return code;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const hf_schedule *)left)->name, ((const hf_schedule *)right)->name);
}

hf_code hf_schedule_list(hf_client *client, hf_schedules **out, hf_error *err)
{
    hf_filter filter = HF_FILTER_INIT;
    hf_runs *page = NULL;
    size_t capacity = 0;
    hf_schedules *list = hf__answer_new(sizeof *list);
    hf_code code = list ? HF_OK : hf__nomem(err);
    filter.workflow = HF__CHORE_SCHEDULE;
    filter.limit = PAGE;
    while (code == HF_OK) {
        hf_runs *before = page;
        filter.cursor = before ? before->next : NULL;
        page = NULL;
        code = hf_list(client, &page, &filter, err);
        hf_runs_free(before);
        if (code == HF_OK)
            code = add_page(client, list, &capacity, page, err);
        if (code != HF_OK || !page->next)
            break;
    }
    hf_runs_free(page);
    if (code == HF_OK) {
        if (list->count)
            qsort(list->items, list->count, sizeof *list->items, by_name);
        *out = list;
    } else {
        hf_schedules_free(list);
    }
    return code;
}

hf_code hf_schedule_next(hf_client *client, const char *name, int64_t *times, size_t count,
                         size_t *found, hf_error *err)
{
    hf_schedule *schedule = NULL;
    struct hf__cron cron;
    struct hf__zone zone = { 0 };
    int64_t now = 0;
    *found = 0;
    hf_code code = hf_schedule_get(client, &schedule, name, err);
    if (code == HF_OK)
        code = hf_store_now(client, &now, err);
    if (code == HF_OK) {
        hf_schedule_spec spec = { .cron = schedule->cron, .timezone = schedule->timezone };
        code = hf__schedule_clock(&spec, &cron, &zone, err);
    }
    while (code == HF_OK && *found < count) {
        now = hf__cron_next(&cron, &zone, now);
        if (now == 0)
            break;
        times[(*found)++] = now;
    }
    hf__zone_free(&zone);
    hf_schedule_free(schedule);
    return code;
}

static const char *tags_of(const hf_schedule_spec *spec, struct hf__arena *arena)
{
    struct hf__buffer json = { 0 };
    if (spec->tag_count == 0)
        return NULL;
    hf__buffer_add_json_strings(&json, spec->tags, spec->tag_count);
    const char *text = json.failed ? NULL : hf__arena_strdup(arena, json.data);
    hf__buffer_free(&json);
    return text;
}

/* ---- Changing ---- */

/* The action on the schedule's run, unless it is so already. */
static hf_code act(hf_client *client, const hf_run *run, hf_action action, bool is_so,
                   hf_error *err)
{
    if (is_so)
        return HF_OK;
    if (hf_status_finished(run->status) && action != HF_DELETE)
        return hf__fail(err, HF_NOT_ALLOWED, "the schedule \"%s\" has ended (%s): create it again",
                        run->key, hf_status_name(run->status));
    return hf__steer_run(client, run->id, action, err);
}

hf_code hf_schedule_pause(hf_client *client, const char *name, hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = find(client, &run, name, err);
    if (code == HF_OK)
        code = act(client, run, HF_PAUSE, run->status == HF_PAUSED || run->pause_requested, err);
    hf_run_free(run);
    return code;
}

hf_code hf_schedule_resume(hf_client *client, const char *name, hf_error *err)
{
    hf_run *run = NULL;
    hf_signal_spec signal = HF_SIGNAL_INIT;
    signal.name = HF__SCHEDULE_RESUMED;
    hf_code code = find(client, &run, name, err);
    bool paused = code == HF_OK && (run->status == HF_PAUSED || run->pause_requested);
    if (paused)
        code = hf__steer(client, run->id, &signal, err);
    if (code == HF_OK)
        code = act(client, run, HF_RESUME, !paused && !hf_status_finished(run->status), err);
    hf_run_free(run);
    return code;
}

hf_code hf_schedule_delete(hf_client *client, const char *name, hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = find(client, &run, name, err);
    if (code == HF_OK)
        code = act(client, run, HF_DELETE, false, err);
    hf_run_free(run);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/script.h"

#include "function/function.h"
#include "util/alloc.h"
#include "util/duration.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BESIDE_PAYLOAD (64 * 1024) /* bytes of a request besides its payload */
#define PAYLOADS_AT_ONCE 4         /* as much may be under way at a time */
#define CHILDREN_MOST 10000        /* of one wait */

/* A step whose command the peer runs now. */
struct open_step {
    hf_step step;
    hf_step_options options;
};

/* One request. */
struct call {
    struct hf__script *script;
    struct hf__peer *peer;
    hf_ctx *ctx;
    json_t *request;
    hf_error error; /* filled by what refuses the request */
};

/* ---- Answers ---- */

static void add_member(struct hf__buffer *out, const char *name, const char *text)
{
    hf__buffer_addf(out, ",\"%s\":", name);
    if (text)
        hf__buffer_add_json_string(out, text, strlen(text));
    else
        hf__buffer_add_text(out, "null");
}

static void begin_answer(const struct call *call)
{
    hf__buffer_add_text(&call->peer->out, "{\"ok\":true");
}

static void end_answer(const struct call *call)
{
    hf__buffer_add_text(&call->peer->out, "}\n");
}

static void answer_text(const struct call *call, const char *name, const char *text)
{
    begin_answer(call);
    add_member(&call->peer->out, name, text);
    end_answer(call);
}

static void answer_error(const struct call *call, hf_code code, const char *message)
{
    struct hf__buffer *out = &call->peer->out;
    hf__buffer_addf(out, "{\"error\":\"%s\"", hf_code_name(code));
    add_member(out, "message", message && *message ? message : hf_code_meaning(code));
    end_answer(call);
}

/* The peer hears nothing more: its program is about to be ended. */
static void hold(const struct call *call)
{
    call->script->suspending = true;
    call->peer->held = true;
}

/* Whether the call went well; if not, the peer was told so or is held. */
static bool went_well(struct call *call, hf_code code)
{
    const struct hf__function *function = call->ctx->function;
    if (code == HF_OK)
        return true;
    if (code == HF_SUSPENDED)
        hold(call);
    else if (call->error.message[0])
        answer_error(call, code, call->error.message);
    else
        answer_error(call, code,
                     function && function->error.code == code ? function->error.message : NULL);
    return false;
}

static void answer_code(struct call *call, hf_code code)
{
    if (!went_well(call, code))
        return;
    begin_answer(call);
    end_answer(call);
}

/* ---- Requests ---- */

static const char *text_of(const struct call *call, const char *member)
{
    return json_string_value(json_object_get(call->request, member));
}

/* A number within 0..most; what is missing is 0. False: the peer was told. */
static bool number_of(struct call *call, const char *member, int64_t most, int64_t *out)
{
    const json_t *value = json_object_get(call->request, member);
    *out = json_integer_value(value);
    if (!value || (json_is_integer(value) && *out >= 0 && *out <= most))
        return true;
    hf__fail(&call->error, HF_INVALID, "\"%s\" must be a whole number within 0 and %" PRId64,
             member, most);
    answer_error(call, HF_INVALID, call->error.message);
    return false;
}

/* NULL: the peer was told. */
static const char *name_of(struct call *call, const char *member, const char *what)
{
    const char *name = text_of(call, member);
    if (hf__label_check(what, name ? name : "", HF__NAME_MAX, &call->error) == HF_OK)
        return name;
    answer_error(call, HF_INVALID, call->error.message);
    return NULL;
}

/* ---- Steps ---- */

/* A failure is remembered as "exit N: words", so that the program sees the same exit code every time. */
static void answer_failure(const struct call *call, const char *message)
{
    struct hf__buffer *out = &call->peer->out;
    int number = 1, skipped = 0;
    if (sscanf(message, "exit %d: %n", &number, &skipped) != 1)
        number = 1;
    hf__buffer_addf(out, "{\"error\":\"%s\",\"exit\":%d", hf_code_name(HF_HANDLER_FAILED), number);
    add_member(out, "message", message + skipped);
    end_answer(call);
}

/* What an ended step came to. */
static void answer_outcome(struct call *call, const hf_step *step)
{
    const char *output = hf_step_output(step);
    hf_code code = hf_step_result(step, &call->error);
    if (code == HF_HANDLER_FAILED)
        answer_failure(call, call->error.message);
    if (code == HF_HANDLER_FAILED || !went_well(call, code))
        return;
    begin_answer(call);
    hf__buffer_add_text(&call->peer->out, ",\"output\":");
    hf__buffer_add_text(&call->peer->out, output);
    end_answer(call);
}

static void close_step(struct call *call)
{
    free(call->peer->business);
    call->peer->business = NULL;
    call->script->running--;
}

/* Its time limit is kept by the peer, who can end the command. */
static bool read_step_options(struct call *call, hf_step_options *options)
{
    int64_t attempts;
    *options = (hf_step_options)HF_STEP_OPTIONS_INIT;
    if (!number_of(call, "attempts", 1000000, &attempts) ||
        !number_of(call, "base", HF__DURATION_MAX, &options->retry_base) ||
        !number_of(call, "cap", HF__DURATION_MAX, &options->retry_cap))
        return false;
    options->max_attempts = attempts ? (int)attempts : 1;
    return true;
}

static void do_step(struct call *call)
{
    struct hf__buffer *out = &call->peer->out;
    struct open_step *open = NULL;
    const char *name = name_of(call, "name", "step name");
    if (!name)
        return;
    if (call->peer->business) {
        answer_error(call, HF_INVALID, "a step is under way on this connection");
        return;
    }
    if (!(open = hf__calloc(1, sizeof *open))) {
        answer_error(call, HF_NOMEM, NULL);
        return;
    }
    if (!read_step_options(call, &open->options)) {
        free(open);
        return;
    }
    if (!hf_step_begin_with(call->ctx, name, &open->options, &open->step)) {
        answer_outcome(call, &open->step);
        free(open);
        return;
    }
    call->peer->business = open;
    call->script->running++;
    begin_answer(call);
    hf__buffer_addf(out, ",\"run\":true,\"attempt\":%d,\"limit\":%zu", hf_step_attempt(&open->step),
                    call->script->max_payload);
    add_member(out, "key", hf_step_key(&open->step));
    end_answer(call);
}

/* While another call waits, a step that runs may still end. What it records is on disk before the run is suspended; should
 * it have to wait for its next attempt, the run waits for whatever comes first. */
struct thaw {
    bool frozen;
    hf_transition first;
};

static struct thaw thaw(struct call *call)
{
    hf_ctx *ctx = call->ctx;
    struct thaw before = { ctx->suspended, ctx->transition };
    if (before.frozen && ctx->function->over == HF_SUSPENDED)
        ctx->function->over = HF_OK;
    return before;
}

static void join(hf_ctx *ctx, const hf_transition *first)
{
    hf_transition *t = &ctx->transition, second = ctx->transition;
    size_t count = first->event_count + second.event_count;
    hf_new_event *events = hf__arena_calloc(&ctx->arena, count + 1, sizeof *events);
    *t = *first;
    if (events) {
        for (size_t i = 0; i < count; i++)
            events[i] =
                i < first->event_count ? first->events[i] : second.events[i - first->event_count];
        t->events = events;
        t->event_count = count;
    }
    if (second.waiting_until && (!t->waiting_until || second.waiting_until < t->waiting_until))
        t->waiting_until = second.waiting_until;
}

static void freeze(struct call *call, const struct thaw *before)
{
    hf_ctx *ctx = call->ctx;
    if (!before->frozen)
        return;
    if (ctx->function->over == HF_SUSPENDED)
        join(ctx, &before->first);
    else if (ctx->function->over == HF_OK)
        ctx->function->over = HF_SUSPENDED;
}

static struct open_step *step_of(struct call *call)
{
    if (!call->peer->business)
        answer_error(call, HF_INVALID, "no step is under way on this connection");
    return call->peer->business;
}

/* A string with its quotes, the caller's to free; NULL: no memory. */
static char *quoted(const char *text)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_json_string(&json, text, strlen(text));
    return hf__buffer_take(&json);
}

/* An output that cannot be remembered is a failure, else the step would be done over and over. */
static hf_code finish_step(struct call *call, struct open_step *open, const char *output)
{
    char *json = quoted(output);
    if (!json)
        return HF_NOMEM;
    hf_code code = hf_step_done(&open->step, json);
    free(json);
    if (code != HF_TOO_LARGE && code != HF_INVALID)
        return code;
    char why[100];
    snprintf(why, sizeof why, "exit 1: output too large: more than %zu bytes as JSON",
             call->script->max_payload);
    return hf_step_fail(&open->step, HF_PERMANENT, why);
}

static void do_done(struct call *call)
{
    struct open_step *open = step_of(call);
    const char *output = text_of(call, "output");
    if (!open)
        return;
    struct thaw before = thaw(call);
    hf_code code = finish_step(call, open, output ? output : "");
    freeze(call, &before);
    if (code == HF_HANDLER_FAILED)
        answer_outcome(call, &open->step);
    else
        answer_code(call, code);
    close_step(call);
}

static void do_fail(struct call *call)
{
    int64_t number;
    char text[sizeof call->error.message];
    struct open_step *open = step_of(call);
    const char *message = text_of(call, "message");
    if (!open || !number_of(call, "exit", 255, &number))
        return;
    bool permanent = json_is_true(json_object_get(call->request, "permanent"));
    snprintf(text, sizeof text, "exit %d: %s", (int)number, message ? message : "");
    struct thaw before = thaw(call);
    hf_code code = hf_step_fail(&open->step, permanent ? HF_PERMANENT : HF_HANDLER_FAILED, text);
    freeze(call, &before);
    if (code == HF_HANDLER_FAILED)
        answer_outcome(call, &open->step);
    else
        answer_code(call, code);
    close_step(call);
}

/* ---- Waiting ---- */

static void do_sleep(struct call *call)
{
    int64_t us, at;
    const char *name = name_of(call, "name", "name of the sleep");
    if (!name || !number_of(call, "us", HF__DURATION_MAX, &us) ||
        !number_of(call, "at", HF__TIME_MAX, &at))
        return;
    answer_code(call, at ? hf_sleep_until(call->ctx, name, at) : hf_sleep(call->ctx, name, us));
}

static void do_pause(struct call *call)
{
    int64_t us;
    const char *name = name_of(call, "name", "name of the pause");
    if (name && number_of(call, "us", HF__DURATION_MAX, &us))
        answer_code(call, hf_pause_here(call->ctx, name, us));
}

static void do_wait(struct call *call)
{
    int64_t timeout;
    const char *payload = NULL;
    const char *name = name_of(call, "name", "signal name");
    if (!name || !number_of(call, "timeout", HF__DURATION_MAX, &timeout))
        return;
    hf_code code = hf_wait_signal(call->ctx, name, timeout, &payload);
    if (code == HF_TIMEOUT)
        hf__fail(&call->error, code, "no signal \"%s\" came in time", name);
    if (went_well(call, code))
        answer_text(call, "payload", payload);
}

static void do_ask(struct call *call)
{
    int64_t timeout, due;
    const char *answer = NULL;
    const char *name = name_of(call, "name", "name of the question");
    if (!name || !number_of(call, "timeout", HF__DURATION_MAX, &timeout) ||
        !number_of(call, "due", HF__DURATION_MAX, &due))
        return;
    const hf_new_task task = {
        .name = text_of(call, "title"),
        .assignee = text_of(call, "assignee"),
        .roles = text_of(call, "roles"),
        .payload = text_of(call, "payload"),
        .form = text_of(call, "form"),
        .due_at = due ? hf__function_later(hf__function_now(call->ctx), due) : 0,
    };
    hf_code code = hf_ask_person(call->ctx, name, &task, timeout, &answer);
    if (code == HF_TIMEOUT)
        hf__fail(&call->error, code, "nobody answered \"%s\" in time", name);
    if (went_well(call, code))
        answer_text(call, "answer", answer);
}

/* ---- Children ---- */

static void do_start(struct call *call)
{
    hf_id id;
    char text[HF_ID_TEXT];
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    const char *name = name_of(call, "name", "name of the child");
    if (!name)
        return;
    spec.workflow = text_of(call, "workflow");
    spec.input = text_of(call, "input");
    spec.key = text_of(call, "key");
    if (!spec.workflow) {
        answer_error(call, HF_INVALID, "which workflow?");
        return;
    }
    hf_code code = hf_child_start(call->ctx, name, &spec, &id);
    if (code == HF_UNKNOWN_WORKFLOW)
        hf__fail(&call->error, code, "no workflow is called \"%.100s\"", spec.workflow);
    if (!went_well(call, code))
        return;
    hf_id_format(id, text);
    answer_text(call, "id", text);
}

/* The ids of the request in *out, in the turn's memory. False: the peer was told. */
static bool read_ids(struct call *call, hf_id **out, size_t *count)
{
    const json_t *list = json_object_get(call->request, "ids");
    *count = json_array_size(list);
    if (*count == 0 || *count > CHILDREN_MOST) {
        hf__fail(&call->error, HF_INVALID, "a wait is for 1 to %d children", CHILDREN_MOST);
        answer_error(call, HF_INVALID, call->error.message);
        return false;
    }
    *out = hf__arena_calloc(&call->ctx->arena, *count, sizeof **out);
    for (size_t i = 0; *out && i < *count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (text && hf_id_parse(text, &(*out)[i]))
            continue;
        hf__fail(&call->error, HF_INVALID, "\"%.100s\" is not the id of a child", text ? text : "");
        answer_error(call, HF_INVALID, call->error.message);
        return false;
    }
    if (!*out)
        answer_error(call, HF_NOMEM, NULL);
    return *out != NULL;
}

static void answer_ends(const struct call *call, hf_code code, const hf_child_end *ends,
                        size_t count)
{
    struct hf__buffer *out = &call->peer->out;
    begin_answer(call);
    hf__buffer_addf(out, ",\"late\":%s,\"ends\":[", code == HF_TIMEOUT ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        char id[HF_ID_TEXT];
        hf_id_format(ends[i].run, id);
        hf__buffer_addf(out, "%s{\"id\":\"%s\"", i ? "," : "", id);
        if (ends[i].ended) {
            hf__buffer_addf(out, ",\"status\":\"%s\"", hf_status_name(ends[i].status));
            add_member(out, "result", ends[i].result);
            add_member(out, "error", ends[i].error);
        }
        hf__buffer_add_text(out, "}");
    }
    hf__buffer_add_text(out, "]");
    end_answer(call);
}

static void do_children(struct call *call)
{
    hf_id *ids;
    size_t count;
    int64_t timeout;
    const char *name = name_of(call, "name", "name of the wait");
    const char *what = text_of(call, "for");
    hf_wait_for until = HF_WAIT_ALL;
    if (!name || !number_of(call, "timeout", HF__DURATION_MAX, &timeout) ||
        !read_ids(call, &ids, &count))
        return;
    if (what && strcmp(what, "any") == 0)
        until = HF_WAIT_ANY;
    else if (what && strcmp(what, "all_or_failure") == 0)
        until = HF_WAIT_ALL_OR_FAILURE;
    hf_child_end *ends = hf__arena_calloc(&call->ctx->arena, count, sizeof *ends);
    hf_code code =
        ends ? hf_children_wait(call->ctx, name, ids, count, until, timeout, ends) : HF_NOMEM;
    if (code == HF_TIMEOUT || went_well(call, code))
        answer_ends(call, code, ends, count);
}

/* ---- Telling ---- */

static void do_progress(struct call *call)
{
    int64_t percent;
    if (number_of(call, "percent", 100, &percent))
        answer_code(call, hf_progress(call->ctx, (int)percent, text_of(call, "text")));
}

static void do_state(struct call *call)
{
    const char *json = text_of(call, "json");
    answer_code(call, hf_publish(call->ctx, json ? json : "null"));
}

static void do_emit(struct call *call)
{
    const char *type = name_of(call, "type", "type of the event");
    if (type)
        answer_code(call, hf_emit(call->ctx, type, text_of(call, "json")));
}

/* ---- The same every time ---- */

static void do_now(struct call *call)
{
    int64_t us;
    char text[HF__TIME_TEXT];
    if (!went_well(call, hf_now(call->ctx, &us)))
        return;
    hf__time_format(us, text);
    answer_text(call, "text", text);
}

static void do_uuid(struct call *call)
{
    hf_id id;
    char text[HF_ID_TEXT];
    if (!went_well(call, hf_uuid(call->ctx, &id)))
        return;
    hf_id_format(id, text);
    answer_text(call, "text", text);
}

static void do_random(struct call *call)
{
    uint64_t number;
    char text[24];
    if (!went_well(call, hf_random(call->ctx, &number)))
        return;
    snprintf(text, sizeof text, "%" PRIu64, number);
    answer_text(call, "text", text);
}

/* ---- Lines ---- */

static const struct {
    const char *name;
    void (*serve)(struct call *call);
    bool ends_step; /* is served while another call waits */
} verbs[] = {
    { "step", do_step, false },         { "done", do_done, true },
    { "fail", do_fail, true },          { "sleep", do_sleep, false },
    { "pause", do_pause, false },       { "wait", do_wait, false },
    { "start", do_start, false },       { "children", do_children, false },
    { "progress", do_progress, false }, { "state", do_state, false },
    { "emit", do_emit, false },         { "now", do_now, false },
    { "uuid", do_uuid, false },         { "random", do_random, false },
    { "ask", do_ask, false },
};

/* Calls of a program come from several processes, in any order. */
static bool may_call(struct call *call)
{
    hf_code code = call->script->called ? HF_OK : hf__function_by_name(call->ctx);
    call->script->called |= code == HF_OK;
    return went_well(call, code);
}

static void serve(struct call *call)
{
    const char *verb = text_of(call, "do");
    for (size_t i = 0; verb && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].name, verb) != 0)
            continue;
        if (call->script->suspending && !verbs[i].ends_step)
            hold(call);
        else if (verbs[i].ends_step || may_call(call))
            verbs[i].serve(call);
        return;
    }
    answer_error(call, HF_INVALID,
                 "there is no such request; is the program `holdfast` of another version than the "
                 "worker?");
}

static void serve_line(struct hf__peer *peer, char *line, size_t length, void *arg)
{
    struct hf__script *script = arg;
    json_error_t where;
    struct call call = { .script = script, .peer = peer, .ctx = script->ctx };
    call.request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(call.request))
        serve(&call);
    else
        answer_error(&call, HF_INVALID, "a request is one JSON object in one line");
    json_decref(call.request);
}

/* Whoever left in the middle of a step has not done it: it begins again when it is called again. */
static void forget(struct hf__peer *peer, void *arg)
{
    struct hf__script *script = arg;
    if (!peer->business)
        return;
    free(peer->business);
    peer->business = NULL;
    script->running--;
}

/* ---- Its life ---- */

bool hf__script_open(struct hf__script *script, hf_ctx *ctx)
{
    char path[HF__SOCKET_PATH];
    size_t max_payload = hf__engine_max_payload(ctx->worker->engine);
    size_t line_limit = 2 * max_payload + BESIDE_PAYLOAD;
    *script = (struct hf__script){
        .ctx = ctx,
        .max_payload = max_payload,
        .peers = {
            .listener = -1,
            .line_limit = line_limit,
            .memory_limit = PAYLOADS_AT_ONCE * line_limit,
            .line = serve_line,
            .left = forget,
            .arg = script,
        },
    };
    pthread_mutex_lock(&ctx->worker->lock);
    bool named = hf__socket_dir_name(&ctx->worker->sockets, path);
    pthread_mutex_unlock(&ctx->worker->lock);
    return named && hf__peers_open(&script->peers, path);
}

void hf__script_close(struct hf__script *script)
{
    hf__peers_close(&script->peers);
}

bool hf__script_is_suspended(const struct hf__script *script)
{
    return script->suspending && script->running == 0;
}

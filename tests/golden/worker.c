/* The scenes of the golden histories, in C: worker STORE NAME GATE SCENE=PATTERN… See worker.py.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SOON = 50000, PAST = -1, TEXT = 1000, NAME = 64 };

static hf_worker *worker;
static const char *gate;
static bool begins;

/* Says it, as JSON. */
static hf_code say(hf_ctx *ctx, const char *format, ...)
{
    char text[4 * TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hf_return(ctx, text);
}

/* What became of a step, where its failure is no reason to fail: its output, or its name, code, message and details. */
static hf_code caught(const hf_step *step, const char *name, char text[TEXT])
{
    hf_error err = { 0 };
    hf_code code = hf_step_result(step, &err);
    const char *details = hf_step_error_details(step);
    if (code == HF_OK)
        snprintf(text, TEXT, "%s", hf_step_output(step));
    else if (code == HF_HANDLER_FAILED)
        snprintf(text, TEXT, "[\"%s\",\"%s\",\"%.400s\",%.100s]", name, hf_step_error_code(step),
                 err.message, details ? details : "null");
    return code == HF_HANDLER_FAILED ? HF_OK : code;
}

static hf_code done(hf_ctx *ctx, const char *name, const char *json, const char **output,
                    hf_error *err)
{
    hf_step step;
    if (hf_step_begin(ctx, name, &step))
        hf_try(hf_step_done(&step, json));
    hf_code code = hf_step_result(&step, err);
    *output = hf_step_output(&step);
    return code;
}

/* A wait whose time-out is no reason to fail. */
static hf_code is_late(hf_code code, bool *late)
{
    *late = code == HF_TIMEOUT;
    return *late ? HF_OK : code;
}

static hf_code steps(hf_ctx *ctx, const char *input, hf_error *err)
{
    char text[TEXT];
    const char *first, *second, *third;
    snprintf(text, sizeof text, "{\"text\":\"é\",\"input\":%s}", input);
    hf_try(done(ctx, "a", text, &first, err));
    hf_try(hf_sleep(ctx, "a", SOON));
    hf_try(done(ctx, "a", NULL, &second, err));
    hf_try(done(ctx, "b", "[1.5,\"x\"]", &third, err));
    return say(ctx, "[%s,%s,%s]", first, second, third);
}

static void charge(hf_ctx *ctx, hf_step *step)
{
    hf_step_failure failure = HF_STEP_FAILURE_INIT;
    failure.code = HF_PERMANENT;
    failure.error_code = "refused";
    failure.message = "no money";
    failure.details = "{\"left\":3}";
    if (hf_step_begin(ctx, "charge", step))
        (void)hf_step_fail_with(step, &failure);
}

static hf_code caught_failure(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_step step;
    char error[TEXT];
    const char *go, *after;
    (void)input;
    charge(ctx, &step);
    hf_try(caught(&step, "charge", error));
    hf_try(hf_wait_signal(ctx, "go", 0, &go));
    hf_try(done(ctx, "after", "1", &after, err));
    return say(ctx, "[%s,%s,%s]", error, go, after);
}

static hf_code failure(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_step step;
    (void)input;
    hf_try(hf_sleep(ctx, "nap", SOON));
    charge(ctx, &step);
    return hf_step_result(&step, err);
}

static hf_code retry(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_step step;
    char error[TEXT];
    const char *after;
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    hf_step_failure failed = HF_STEP_FAILURE_INIT;
    (void)input;
    options.max_attempts = 2;
    options.retry_base = SOON;
    failed.error_code = "Declined";
    failed.message = "Declined: not yet";
    if (hf_step_begin_with(ctx, "try", &options, &step))
        (void)hf_step_fail_with(&step, &failed);
    hf_try(caught(&step, "try", error));
    hf_try(done(ctx, "after", "1", &after, err));
    return say(ctx, "[%s,%s]", error, after);
}

static hf_code later(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_step put_off, no_more;
    char error[TEXT], first[TEXT];
    hf_step_options once = HF_STEP_OPTIONS_INIT;
    hf_step_options never = HF_STEP_OPTIONS_INIT;
    hf_step_failure busy = HF_STEP_FAILURE_INIT;
    (void)input;
    (void)err;
    once.max_attempts = never.max_attempts = 1;
    never.retry_after_limit = PAST;
    busy.retry_after = SOON;
    busy.error_code = busy.message = "busy";
    busy.details = "{\"free\":0}";
    if (hf_step_begin_with(ctx, "put off", &once, &put_off)) {
        if (begins)
            (void)hf_step_fail_with(&put_off, &busy);
        else
            hf_try(hf_step_done(&put_off, "\"done\""));
    }
    hf_try(caught(&put_off, "put off", first));
    if (hf_step_begin_with(ctx, "no more", &never, &no_more))
        (void)hf_step_fail_with(&no_more, &busy);
    hf_try(caught(&no_more, "no more", error));
    return say(ctx, "[%s,%s]", first, error);
}

static hf_code slow(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_step step;
    char error[TEXT];
    const char *go;
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    (void)input;
    (void)err;
    options.max_attempts = 1;
    options.timeout = SOON;
    if (hf_step_begin_with(ctx, "slow", &options, &step)) {
        usleep(4 * SOON);
        (void)hf_step_done(&step, NULL);
    }
    hf_try(caught(&step, "slow", error));
    hf_try(hf_wait_signal(ctx, "go", 0, &go));
    return say(ctx, "[%s,%s]", error, go);
}

static hf_code wait_signals(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *go, *stop, *again;
    (void)input;
    (void)err;
    hf_try(hf_wait_signal(ctx, "go", 0, &go));
    hf_try(hf_wait_signal(ctx, "stop", 0, &stop));
    hf_try(hf_wait_signal(ctx, "go", 0, &again));
    return say(ctx, "[%s,%s,%s]", go, stop, again);
}

static hf_code silence(hf_ctx *ctx, const char *input, hf_error *err)
{
    bool late;
    const char *go, *first;
    (void)input;
    (void)err;
    hf_try(is_late(hf_wait_signal(ctx, "go", SOON, &first), &late));
    hf_try(hf_wait_signal(ctx, "go", 0, &go));
    return say(ctx, "[%s,%s]", late ? "\"late\"" : first, go);
}

static hf_code late(hf_ctx *ctx, const char *input, hf_error *err)
{
    (void)input;
    (void)err;
    return hf_wait_signal(ctx, "go", SOON, NULL);
}

/* The member of an answer, as text of JSON. */
static void cut(const char *answer, const char *member, char text[NAME])
{
    const char *begin = strstr(answer, member) + strlen(member) + 2;
    snprintf(text, NAME, "%.*s", (int)strcspn(begin, ",}"), begin);
}

static hf_code ask(hf_ctx *ctx, const char *input, hf_error *err)
{
    bool late;
    const char *answer;
    char outcome[NAME], result[NAME], by[NAME];
    const hf_new_task task = { .name = "Approve it",
                               .payload = "{\"sum\":3}",
                               .roles = "[\"boss\"]" };
    (void)input;
    (void)err;
    hf_try(hf_ask_person(ctx, "approve", &task, 0, &answer));
    cut(answer, "\"outcome", outcome);
    cut(answer, "\"result", result);
    cut(answer, "\"by", by);
    hf_try(is_late(hf_ask_person(ctx, "approve", NULL, SOON, NULL), &late));
    return say(ctx, "[%s,%s,%s,%s]", outcome, result, by, late ? "\"late\"" : "null");
}

static hf_trigger_spec child(const char *workflow, const char *input)
{
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    spec.workflow = workflow;
    spec.input = input;
    return spec;
}

static const char *status_of(const hf_child_end *end)
{
    return !end->ended                   ? "null"
           : end->status == HF_SUCCEEDED ? "\"succeeded\""
           : end->status == HF_FAILED    ? "\"failed\""
                                         : "\"another\"";
}

static hf_code children(hf_ctx *ctx, const char *input, hf_error *err)
{
    bool late;
    hf_id kids[3];
    hf_child_end ends[2], some[2];
    char code[NAME], message[NAME];
    const hf_trigger_spec two[] = { child("kid.v1", "1"), child("kid.v1", "\"fail\"") };
    const hf_trigger_spec idle = child("idle.v1", NULL);
    (void)input;
    (void)err;
    hf_try(hf_children_start(ctx, "kids", two, 2, kids));
    hf_try(hf_children_wait(ctx, "ends", kids, 2, HF_WAIT_ALL, 0, ends));
    hf_try(hf_child_start(ctx, "idle", &idle, &kids[1]));
    hf_try(is_late(hf_children_wait(ctx, "some", kids, 2, HF_WAIT_ALL, SOON, some), &late));
    cut(ends[1].error, "\"code", code);
    cut(ends[1].error, "\"message", message);
    return say(ctx, "[%s,%s,%s,%s,[%s,%s]]", ends[0].result, status_of(&ends[1]), code, message,
               status_of(&some[0]), status_of(&some[1]));
}

static hf_code kid(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *output;
    if (strcmp(input, "1") != 0) {
        snprintf(err->message, sizeof err->message, "a bad kid");
        hf_try(hf_fail_with(ctx, "bad", NULL));
        return HF_PERMANENT;
    }
    hf_try(done(ctx, "double", "2", &output, err));
    return hf_return(ctx, output);
}

static hf_code told(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *go;
    (void)input;
    (void)err;
    hf_try(hf_progress(ctx, 50, "half"));
    hf_try(hf_publish(ctx, "{\"at\":\"half\"}"));
    hf_try(hf_emit(ctx, "order.paid", "{\"sum\":3}"));
    hf_try(hf_wait_signal(ctx, "go", 0, &go));
    hf_try(hf_emit(ctx, "order.paid", NULL));
    hf_try(hf_progress(ctx, 90, NULL));
    return hf_return(ctx, go);
}

static hf_code fixed(hf_ctx *ctx, const char *input, hf_error *err)
{
    int64_t now;
    uint64_t random;
    hf_id first, second;
    char text[HF_ID_TEXT];
    int change, again, other;
    (void)input;
    (void)err;
    hf_try(hf_now(ctx, &now));
    hf_try(hf_random(ctx, &random));
    hf_try(hf_uuid(ctx, &first));
    hf_try(hf_version(ctx, "change", 2, &change));
    hf_try(hf_sleep(ctx, "nap", SOON));
    hf_try(hf_version(ctx, "change", 3, &again));
    hf_try(hf_version(ctx, "other", 1, &other));
    hf_try(hf_uuid(ctx, &second));
    hf_id_format(first, text);
    return say(ctx, "[%" PRId64 ",%.17g,\"%s\",%d,%d,%d,%s]", now, (double)(random >> 11) * 0x1p-53,
               text, change, again, other, hf_id_equal(first, second) ? "true" : "false");
}

static hf_code limits(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_id id;
    hf_child_end end;
    hf_step in_time, too_late;
    char output[TEXT], error[TEXT];
    const char *go;
    bool gone, nobody, unended;
    hf_step_options none = HF_STEP_OPTIONS_INIT, past = HF_STEP_OPTIONS_INIT;
    const hf_trigger_spec idle = child("idle.v1", NULL);
    (void)input;
    (void)err;
    none.max_attempts = past.max_attempts = 1;
    past.timeout = PAST;
    hf_try(hf_wait_signal(ctx, "go", 0, &go));
    hf_try(is_late(hf_wait_signal(ctx, "go", PAST, NULL), &gone));
    hf_try(hf_sleep(ctx, "none", 0));
    hf_try(hf_sleep(ctx, "past", -HF_SECONDS(5)));
    hf_try(is_late(hf_ask_person(ctx, "ask", NULL, PAST, NULL), &nobody));
    hf_try(hf_child_start(ctx, "idle", &idle, &id));
    hf_try(is_late(hf_children_wait(ctx, "end", &id, 1, HF_WAIT_ALL, PAST, &end), &unended));
    hf_try(hf_pause_here(ctx, "look", PAST));
    if (hf_step_begin_with(ctx, "no limit", &none, &in_time))
        hf_try(hf_step_done(&in_time, "1"));
    hf_try(caught(&in_time, "no limit", output));
    if (hf_step_begin_with(ctx, "too late", &past, &too_late))
        (void)hf_step_done(&too_late, "1");
    hf_try(caught(&too_late, "too late", error));
    return say(ctx, "[%s,%s,%s,%s,%s,%s]", go, gone ? "\"late\"" : "null",
               nobody ? "\"late\"" : "null", status_of(&end), output, error);
}

static hf_code pause_once(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *seen;
    (void)input;
    hf_try(hf_pause_here(ctx, "look", 0));
    hf_try(done(ctx, "seen", "true", &seen, err));
    return hf_return(ctx, seen);
}

static hf_code misfit(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *output;
    (void)input;
    hf_try(done(ctx, begins ? "old" : "new", "1", &output, err));
    return hf_wait_signal(ctx, "go", 0, NULL);
}

static hf_code again(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *first, *second;
    (void)input;
    hf_try(done(ctx, "a", "1", &first, err));
    if (begins) {
        hf_retry_after(ctx, SOON);
        hf_try(hf_fail_with(ctx, "moment", "{\"attempt\":1,\"code\":\"moment\"}"));
        snprintf(err->message, sizeof err->message, "in a moment");
        return HF_RETRY;
    }
    hf_try(done(ctx, "b", "2", &second, err));
    return say(ctx, "[%s,%s]", first, second);
}

static hf_code broken(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *first;
    (void)input;
    hf_try(done(ctx, "a", "1", &first, err));
    hf_try(hf_fail_with(ctx, "Declined", NULL));
    snprintf(err->message, sizeof err->message, "Declined: not today");
    return HF_HANDLER_FAILED;
}

static hf_code some(hf_ctx *ctx, const char *input, hf_error *err)
{
    hf_id kids[2];
    hf_child_end first[2], ends[2];
    const hf_trigger_spec two[] = { child("idle.v1", NULL), child("kid.v1", "1") };
    const hf_trigger_spec bad = child("kid.v1", "\"fail\"");
    (void)input;
    (void)err;
    hf_try(hf_children_start(ctx, "kids", two, 2, kids));
    hf_try(hf_children_wait(ctx, "first", kids, 2, HF_WAIT_ANY, 0, first));
    hf_try(hf_child_start(ctx, "bad", &bad, &kids[1]));
    hf_try(hf_children_wait(ctx, "bad end", kids, 2, HF_WAIT_ALL_OR_FAILURE, 0, ends));
    return say(ctx, "[[%s,%s],[%s,%s]]", status_of(&first[0]), status_of(&first[1]),
               status_of(&ends[0]), status_of(&ends[1]));
}

static hf_code older(hf_ctx *ctx, const char *input, hf_error *err)
{
    int version;
    (void)input;
    (void)err;
    hf_try(hf_version(ctx, "change", begins ? 2 : 1, &version));
    return hf_wait_signal(ctx, "go", 0, NULL);
}

static hf_code shorter(hf_ctx *ctx, const char *input, hf_error *err)
{
    const char *first;
    (void)input;
    hf_try(done(ctx, "a", "1", &first, err));
    return begins ? hf_wait_signal(ctx, "go", 0, NULL) : HF_OK;
}

typedef hf_code (*scene_handler)(hf_ctx *ctx, const char *input, hf_error *err);

static const struct scene {
    const char *name;
    scene_handler play;
} scenes[] = {
    { "steps", steps },         { "caught_failure", caught_failure },
    { "failure", failure },     { "retry", retry },
    { "later", later },         { "slow", slow },
    { "signal", wait_signals }, { "silence", silence },
    { "late", late },           { "ask", ask },
    { "children", children },   { "kid", kid },
    { "told", told },           { "fixed", fixed },
    { "limits", limits },       { "pause", pause_once },
    { "misfit", misfit },       { "again", again },
    { "broken", broken },       { "some", some },
    { "older", older },         { "shorter", shorter },
};

static hf_code play(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const struct scene *scene = arg;
    char run[HF_ID_TEXT];
    hf_id_format(hf_ctx_run(ctx), run);
    if (begins)
        fprintf(stderr, "began %s\n", run);
    while (begins && access(gate, F_OK) != 0)
        usleep(20000);
    return scene->play(ctx, input, err);
}

static hf_code serve(char *word, hf_error *err)
{
    char *pattern = strchr(word, '=');
    *pattern++ = '\0';
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(scenes[i].name, word) == 0)
            return hf_worker_handle(worker, pattern, play, (void *)&scenes[i], err);
    snprintf(err->message, sizeof err->message, "there is no scene %s", word);
    return HF_INVALID;
}

static void observe(const hf_worker_event *event, void *arg)
{
    (void)arg;
    if (event->kind == HF_WORKER_DRAINING)
        fprintf(stderr, "leaves\n");
}

static void stop(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

int main(int argc, char **argv)
{
    hf_client *client = NULL;
    hf_error err = { 0 };
    hf_worker_options options = HF_WORKER_OPTIONS_INIT;
    if (argc < 4)
        return 2;
    options.name = argv[2];
    options.threads = 128;
    options.observer = observe;
    gate = argv[3];
    begins = strcmp(gate, "-") != 0;
    hf_code code = hf_open(&client, argv[1], NULL, &err);
    if (code == HF_OK)
        code = hf_worker_new(&worker, client, &options, &err);
    for (int i = 4; code == HF_OK && i < argc; i++)
        code = serve(argv[i], &err);
    if (code == HF_OK) {
        signal(SIGTERM, stop);
        code = hf_worker_run(worker, &err);
    }
    if (code != HF_OK)
        fprintf(stderr, "worker: %s\n", err.message);
    hf_worker_free(worker);
    hf_close(client);
    return code == HF_OK ? 0 : 1;
}

/* Functions at work: each plays its program on a stack of its own, so that the others act while it waits for the store,
 * and it can be left behind in the middle of any call. C1.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "function/function.h"
#include "program.h"
#include "util/error.h"

struct play {
    struct play *next;
    struct world *world;
    struct turn *turn;
    struct story *story;
    struct fiber *fiber;
    struct job *job; /* that it waits for */
    bool dead;       /* its process has crashed; it only unwinds */
    bool over;
    hf_code code;
    hf_error err;
    hf_ctx ctx;
    hf_worker worker;
    struct hf__haul haul;
    struct hf__master master;
    hf_id ids[CALLS_MOST][GROUP_MOST]; /* of the children that calls started */
};

static struct play *play_of(hf_ctx *ctx)
{
    return (struct play *)((char *)ctx - offsetof(struct play, ctx));
}

/* ---- The store, from inside ---- */

static void call_answered(struct world *world, struct job *job)
{
    struct turn *turn = job->turn;
    hf_code code = job->op.code;
    note(world, "  %s call of %s: %s%s", job->node->name, job->known->name, hf_code_name(code),
         job->op.resent ? " (sent again)" : "");
    for (size_t i = 0; code == HF_OK && i < job->transition.child_count; i++)
        known_of(world, job->op.commit.child_ids[i])->accepted = true;
    turn->phase = PLAYING;
}

static void fill(struct world *world, struct job *job, const struct hf__op *op)
{
    job->op.tenant = op->tenant;
    if (op->kind == HF__OP_STEP) {
        job->step = *op->step.record;
        job->step.name = world_printf(world, "%s", op->step.record->name);
        job->op.step.record = &job->step;
        return;
    }
    job->transition = *op->commit.transition;
    job->op.commit.transition = &job->transition;
    job->op.commit.child_ids = op->commit.child_ids;
    if (job->transition.event_count && job->transition.events->step)
        job->step.name = world_printf(world, "%s", job->transition.events->step);
    if (job->step.name && strcmp(job->transition.events->name, "waiting") == 0)
        job->portion = world_printf(world, "%s", job->transition.events->data);
    for (size_t i = 0; i < job->transition.child_count; i++)
        known_of(world, op->commit.child_ids[i])->function =
            strcmp(job->transition.children[i].workflow, workflow_name(SIM_FUNCTION)) == 0;
}

/* Takes the place of the engine: the operation goes with the node's others, and the fiber sleeps. */
static void apply(hf_ctx *ctx, struct hf__op *op)
{
    struct play *play = play_of(ctx);
    struct turn *turn = play->turn;
    op->decided = true;
    op->code = HF_CLOSED;
    if (play->dead)
        return;
    struct job *job = job_new(play->world, turn->node, op->kind, turn->known);
    fill(play->world, job, op);
    job->turn = turn;
    job->patient = false;
    job->answered = call_answered;
    turn->phase = ASKING;
    note(play->world, "%s asks for %s: %s", turn->node->name, turn->known->name,
         job->step.name ? job->step.name : "an event");
    job_submit(play->world, job);
    fiber_sleep(play->fiber);
    if (play->dead)
        return;
    op->code = job->op.code;
    if (op->code != HF_OK)
        *op->error = job->error;
}

/* Others act meanwhile. */
static void rest(struct play *play)
{
    if (!play->dead && !play->world->calm && chance(play->world, 30))
        fiber_sleep(play->fiber);
}

/* ---- What the claim knew ---- */

static const char *last_line(const hf_claimed *claimed, const char *full, const char **status)
{
    const char *data = NULL;
    for (size_t i = 0; i < claimed->step_count; i++)
        if (strcmp(claimed->steps[i].step, full) == 0) {
            data = claimed->steps[i].data;
            *status = claimed->steps[i].name;
        }
    return data;
}

static bool was_over(const struct play *play, const struct call *call)
{
    const char *status = "";
    bool found = last_line(play->ctx.claimed, call->full, &status) != NULL;
    return found && strcmp(status, "waiting") != 0;
}

/* Until when it waits, by the journal; 0: no limit, or it does not wait yet. */
static int64_t limit_of(const struct play *play, const struct call *call)
{
    const char *status;
    const char *data = last_line(play->ctx.claimed, call->full, &status);
    const char *until = data ? strstr(data, "\"until\":") : NULL;
    return until ? strtoll(until + strlen("\"until\":"), NULL, 10) : 0;
}

static bool goes_on(const struct play *play)
{
    return play->ctx.function && play->ctx.function->over == HF_OK;
}

/* ---- Steps ---- */

static int lines_of(struct play *play, const char *full, const char *status)
{
    const hf_claimed *claimed = play->ctx.claimed;
    sqlite3_stmt *stmt = play->world->sql.lines;
    sqlite3_reset(stmt);
    sqlite3_bind_blob(stmt, 1, claimed->run.id.bytes, sizeof claimed->run.id.bytes, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, full, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 3, claimed->run.version);
    sqlite3_bind_text(stmt, 4, status, -1, SQLITE_STATIC);
    int count = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return count;
}

/* A step runs only as long as neither this claim nor an earlier one has recorded it, and when its time has come. */
static void check_begun(struct play *play, const struct call *call, const hf_step *step)
{
    const char *run = play->turn->known->name;
    char id[HF_ID_TEXT];
    char key[HF_ID_TEXT + sizeof call->full + 1];
    hf_id_format(play->ctx.claimed->run.id, id);
    snprintf(key, sizeof key, "%s/%s", id, call->full);
    bool failed = lines_of(play, call->full, "failed") > 0;
    bool retried = failed && play->ctx.claimed->retried_seq > 0; /* all its attempts begin anew */
    if (lines_of(play, call->full, "succeeded") > 0 || (failed && !retried))
        breach(play->world, "step %s of %s runs again after it was recorded", call->full, run);
    if (!retried && hf_step_attempt(step) != 1 + lines_of(play, call->full, "waiting"))
        breach(play->world, "step %s of %s runs as attempt %d; its journal has %d before it",
               call->full, run, hf_step_attempt(step), lines_of(play, call->full, "waiting"));
    if (limit_of(play, call) > play->ctx.claimed->seen_at)
        breach(play->world, "step %s of %s is tried again before its time", call->full, run);
    if (strcmp(hf_step_key(step), key) != 0)
        breach(play->world, "step %s of %s has the key %s", call->full, run, hf_step_key(step));
}

struct work {
    struct play *play;
    const struct call *call;
};

static hf_code work(hf_step *step, hf_error *err, void *arg)
{
    const struct work *w = arg;
    char output[64];
    check_begun(w->play, w->call, step);
    rest(w->play);
    if (hf_step_attempt(step) <= w->call->fails)
        return hf__fail(err, w->call->permanent ? HF_PERMANENT : HF_HANDLER_FAILED,
                        "%s, attempt %d", w->call->full, hf_step_attempt(step));
    snprintf(output, sizeof output, "{\"step\":\"%s\",\"attempt\":%d}", w->call->full,
             hf_step_attempt(step));
    return hf_step_done(step, output);
}

static hf_code call_step(struct play *play, const struct call *call, const char **text)
{
    hf_step step;
    hf_error err = { 0 };
    hf_step_options options = HF_STEP_OPTIONS_INIT;
    struct work w = { play, call };
    const char *output = NULL;
    hf_code code;
    options.max_attempts = call->max_attempts;
    options.retry_base = HF_MILLISECONDS(700);
    if (call->in_one) {
        code = hf_step_run(&play->ctx, call->name, &options, work, &w, &output, &err);
    } else {
        if (hf_step_begin_with(&play->ctx, call->name, &options, &step)) {
            code = work(&step, &err, &w);
            if (code != HF_OK && goes_on(play))
                code = hf_step_fail(&step, code, err.message);
        }
        code = hf_step_result(&step, &err);
        output = hf_step_output(&step);
    }
    *text = code == HF_OK ? output : world_printf(play->world, "failed: %s", err.message);
    return code == HF_HANDLER_FAILED && goes_on(play) ? HF_OK : code;
}

/* ---- Waits ---- */

/* A wait that gave up or goes on waiting knows the time. */
static void check_patience(struct play *play, const struct call *call, hf_code code)
{
    int64_t until = limit_of(play, call);
    int64_t seen_at = play->ctx.claimed->seen_at;
    const char *run = play->turn->known->name;
    if (code == HF_TIMEOUT && (until == 0 || until > seen_at))
        breach(play->world, "%s of %s gave up before its time", call->full, run);
    if (code == HF_SUSPENDED && until && until <= seen_at)
        breach(play->world, "%s of %s waits beyond its time", call->full, run);
    int64_t wanted = until ? until : call->us ? seen_at + call->us : 0;
    if (code == HF_SUSPENDED && play->ctx.transition.waiting_until != wanted)
        breach(play->world, "%s of %s waits until another time than was recorded", call->full, run);
}

static bool is_taken(const struct play *play, int index, const char *payload)
{
    for (int i = 0; i < index; i++)
        if (play->story->program.calls[i].kind == CALL_SIGNAL && play->story->seen[i] &&
            strcmp(play->story->seen[i], payload) == 0)
            return true;
    return false;
}

/* The oldest signal of the name that no earlier call has got; NULL: there is none. */
static const char *due_signal(const struct play *play, int index)
{
    const hf_claimed *claimed = play->ctx.claimed;
    for (size_t i = 0; i < claimed->mail_count; i++)
        if (strcmp(claimed->mail[i].type, "external") == 0 &&
            strcmp(claimed->mail[i].name, play->story->program.calls[index].name) == 0 &&
            !is_taken(play, index, claimed->mail[i].payload))
            return claimed->mail[i].payload;
    return NULL;
}

static void check_signal(struct play *play, int index, hf_code code, const char *payload)
{
    const struct call *call = &play->story->program.calls[index];
    const char *due = due_signal(play, index);
    if (was_over(play, call) || (code != HF_OK && code != HF_TIMEOUT && code != HF_SUSPENDED))
        return;
    if ((code == HF_OK) != (due != NULL) || (due && strcmp(due, payload) != 0))
        breach(play->world, "%s of %s got %s where %s was due", call->full, play->turn->known->name,
               payload ? payload : "nothing", due ? due : "nothing");
    check_patience(play, call, code);
}

static hf_code call_signal(struct play *play, int index, const char **text)
{
    const struct call *call = &play->story->program.calls[index];
    const char *payload = NULL;
    hf_code code = hf_wait_signal(&play->ctx, call->name, call->us, &payload);
    if (goes_on(play) || code == HF_SUSPENDED)
        check_signal(play, index, code, payload);
    *text = code == HF_OK ? payload : "timeout";
    return code == HF_TIMEOUT && goes_on(play) ? HF_OK : code;
}

static hf_code call_sleep(struct play *play, const struct call *call)
{
    hf_code code = hf_sleep(&play->ctx, call->name, call->us);
    int64_t until = limit_of(play, call);
    if (code == HF_OK && until > play->ctx.claimed->seen_at)
        breach(play->world, "%s of %s woke up too early", call->full, play->turn->known->name);
    if (code == HF_SUSPENDED)
        check_patience(play, call, code);
    return code;
}

/* ---- Children ---- */

static hf_code call_start(struct play *play, int index, const char **text)
{
    const struct program *program = &play->story->program;
    const struct call *call = &program->calls[index];
    hf_trigger_spec specs[GROUP_MOST];
    char id[HF_ID_TEXT];
    *text = "";
    for (int i = 0; i < call->count; i++) {
        bool plain = (program->number >> i) % 4 == 0;
        specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
        specs[i].workflow = workflow_name(plain ? 0 : SIM_FUNCTION);
        specs[i].input = child_input(play->world, program, index, i);
    }
    hf_code code =
        hf_children_start(&play->ctx, call->name, specs, (size_t)call->count, play->ids[index]);
    for (int i = 0; i < call->count; i++) {
        hf_id_format(play->ids[index][i], id);
        *text = world_printf(play->world, "%s%s\"%s\"", *text, i ? "," : "", id);
    }
    *text = world_printf(play->world, "[%s]", *text);
    return code;
}

/* Whether the child's end lies in the mailbox or was told to an earlier call. */
static bool has_ended(const struct play *play, int index, int group, int child, bool *failed)
{
    const hf_claimed *claimed = play->ctx.claimed;
    const struct program *program = &play->story->program;
    char mail[HF_ID_TEXT + 8] = "child:";
    hf_id_format(play->ids[group][child], mail + strlen("child:"));
    for (size_t i = 0; i < claimed->mail_count; i++)
        if (strcmp(claimed->mail[i].id, mail) == 0) {
            *failed |= !strstr(claimed->mail[i].payload, "\"succeeded\"");
            return true;
        }
    for (int i = 0; i < index; i++) {
        const struct call *call = &program->calls[i];
        if (call->kind != CALL_CHILDREN || call->group != group || !play->story->seen[i])
            continue;
        const char *end = play->story->seen[i] + 1;
        for (int skip = child; skip > 0; skip--)
            end = strchr(end, ';') + 1;
        if (*end != '-') {
            *failed |= strncmp(end, "succeeded", strlen("succeeded")) != 0;
            return true;
        }
    }
    return false;
}

static void check_children(struct play *play, int index, hf_code code)
{
    const struct call *call = &play->story->program.calls[index];
    int ended = 0;
    bool failed = false;
    if (was_over(play, call) || (code != HF_OK && code != HF_TIMEOUT && code != HF_SUSPENDED))
        return;
    for (int i = 0; i < call->count; i++)
        ended += has_ended(play, index, call->group, i, &failed);
    bool done = call->what == HF_WAIT_ANY ? ended > 0 : ended == call->count;
    done |= call->what == HF_WAIT_ALL_OR_FAILURE && failed;
    if (done != (code == HF_OK))
        breach(play->world, "%s of %s answers %s with %d of %d children ended", call->full,
               play->turn->known->name, hf_code_name(code), ended, call->count);
    check_patience(play, call, code);
}

static hf_code call_children(struct play *play, int index, const char **text)
{
    const struct call *call = &play->story->program.calls[index];
    hf_child_end ends[GROUP_MOST];
    hf_code code = hf_children_wait(&play->ctx, call->name, play->ids[call->group],
                                    (size_t)call->count, call->what, call->us, ends);
    if (goes_on(play) || code == HF_SUSPENDED)
        check_children(play, index, code);
    *text = code == HF_TIMEOUT ? "!" : "=";
    for (int i = 0; i < call->count; i++)
        *text = world_printf(play->world, "%s%s:%s;", *text,
                             ends[i].ended ? hf_status_name(ends[i].status) : "-",
                             ends[i].ended && ends[i].result ? ends[i].result : "");
    return code == HF_TIMEOUT && goes_on(play) ? HF_OK : code;
}

/* ---- The rest ---- */

static hf_code call_now(struct play *play, const struct call *call, const char **text)
{
    int64_t now;
    hf_code code = hf_now(&play->ctx, &now);
    if (code == HF_OK && !was_over(play, call) && now != play->ctx.claimed->seen_at)
        breach(play->world, "%s tells another time than the store", call->full);
    *text = world_printf(play->world, "%" PRId64, now);
    return code;
}

static hf_code call_small(struct play *play, const struct call *call, const char **text)
{
    hf_ctx *ctx = &play->ctx;
    uint64_t number;
    hf_id id;
    int version;
    char id_text[HF_ID_TEXT];
    hf_code code;
    switch (call->kind) {
    case CALL_RANDOM:
        code = hf_random(ctx, &number);
        *text = world_printf(play->world, "\"%016" PRIx64 "\"", number);
        return code;
    case CALL_UUID:
        code = hf_uuid(ctx, &id);
        hf_id_format(id, id_text);
        *text = world_printf(play->world, "\"%s\"", id_text);
        return code;
    case CALL_VERSION:
        code = hf_version(ctx, call->name, call->count, &version);
        *text = world_printf(play->world, "%d", version);
        return code;
    case CALL_EMIT:
        return hf_emit(ctx, call->name, world_printf(play->world, "\"%s\"", call->full));
    case CALL_PROGRESS: return hf_progress(ctx, call->count, "on its way");
    case CALL_PUBLISH: return hf_publish(ctx, world_printf(play->world, "%d", call->count));
    default: return hf_pause_here(ctx, call->name, call->us);
    }
}

static hf_code make_call(struct play *play, int index, const char **text)
{
    const struct call *call = &play->story->program.calls[index];
    switch (call->kind) {
    case CALL_STEP: return call_step(play, call, text);
    case CALL_SLEEP: return call_sleep(play, call);
    case CALL_SIGNAL: return call_signal(play, index, text);
    case CALL_START: return call_start(play, index, text);
    case CALL_CHILDREN: return call_children(play, index, text);
    case CALL_NOW: return call_now(play, call, text);
    default: return call_small(play, call, text);
    }
}

/* ---- The function ---- */

/* What a call has answered once it answers always. */
static void see(struct play *play, int index, const char *text)
{
    struct story *story = play->story;
    const struct call *call = &story->program.calls[index];
    const char *expected = expected_text(play->world, call);
    if (!story->seen[index])
        story->seen[index] = world_printf(play->world, "%s", text);
    if (strcmp(story->seen[index], text) != 0)
        breach(play->world, "%s of %s answered %s, and now %s", call->full, play->turn->known->name,
               story->seen[index], text);
    if (expected && strcmp(expected, text) != 0)
        breach(play->world, "%s of %s answered %s instead of %s", call->full,
               play->turn->known->name, text, expected);
}

/* The run's deadline, the handler's own failures, and a worker that is asked to stop. */
static bool stumbles(struct play *play)
{
    int64_t timeout_at = play->ctx.claimed->run.timeout_at;
    if (timeout_at && play->world->now >= timeout_at)
        play->ctx.deadline = 0;
    if (play->dead || play->world->calm || !chance(play->world, 4))
        return false;
    if (chance(play->world, 50))
        return true;
    atomic_store(&play->ctx.lost, HF_CLOSED);
    return false;
}

static hf_code function(struct play *play)
{
    for (int i = 0; i < play->story->program.count; i++) {
        const char *text = "done";
        if (stumbles(play))
            return hf__fail(&play->err, HF_HANDLER_FAILED, "simulated: the handler stumbles");
        hf_code code = make_call(play, i, &text);
        if (code == HF_OK)
            see(play, i, text);
        if (play->ctx.function && play->ctx.function->over == HF_OK && code != HF_OK)
            breach(play->world, "%s of %s is refused: %s", play->story->program.calls[i].full,
                   play->turn->known->name, play->ctx.function->error.message);
        if (code != HF_OK)
            return code;
        rest(play);
    }
    play->ctx.result = world_printf(play->world, "%" PRIu64,
                                    result_of(play->story->seen, play->story->program.count));
    return HF_OK;
}

static void fiber_main(void *arg)
{
    struct play *play = arg;
    hf_code code = function(play);
    play->code = hf__function_outcome(&play->ctx, code, &play->err);
    if (play->ctx.error_code)
        breach(play->world, "%s: %s", play->turn->known->name, play->err.message);
    play->over = true;
}

/* ---- A turn ---- */

static struct play *play_begin(struct world *world, struct turn *turn)
{
    struct play *play = calloc(1, sizeof *play);
    if (!play)
        abort();
    play->world = world;
    play->turn = turn;
    play->story = story_of(world, turn->known, turn->claimed->run.input);
    play->worker.name = world_printf(world, "%s", turn->node->name);
    pthread_mutex_init(&play->worker.lock, NULL);
    play->master.id = SIM_TENANT;
    play->haul.sent_at = INT64_MAX; /* the time is that of the claim */
    play->ctx.worker = &play->worker;
    play->ctx.haul = &play->haul;
    play->ctx.claimed = turn->claimed;
    play->ctx.master = &play->master;
    play->ctx.deadline = INT64_MAX;
    play->ctx.wake_fd = -1;
    play->ctx.apply = apply;
    hf__arena_init(&play->ctx.arena, 0);
    play->fiber = fiber_begin(fiber_main, play);
    play->next = world->plays;
    world->plays = play;
    turn->play = play;
    return play;
}

void play_end(struct turn *turn)
{
    struct play *play = turn->play;
    if (!play)
        return;
    play->dead = true;
    if (!play->over)
        atomic_store(&play->ctx.lost, HF_STALE);
    while (!play->over)
        fiber_wake(play->fiber);
    struct play **place = &play->world->plays;
    while (*place != play)
        place = &(*place)->next;
    *place = play->next;
    turn->play = NULL;
    fiber_end(play->fiber);
    hf__function_free(&play->ctx);
    hf__arena_free(&play->ctx.arena);
    pthread_mutex_destroy(&play->worker.lock);
    free(play);
}

void plays_end(struct world *world)
{
    while (world->plays)
        play_end(world->plays->turn);
}

/* How much of the mailbox the wait knows, for whoever checks that nobody sleeps who has mail. */
static void remember_look(struct world *world, struct play *play)
{
    struct look *look = world_alloc(world, sizeof *look);
    look->version = play->turn->claimed->run.version + 1;
    look->seen_position = play->turn->claimed->seen_position;
    look->seen_at = play->turn->claimed->seen_at;
    look->next = play->story->looks;
    play->story->looks = look;
}

/* As worker/turn.c decides. */
static void decide(struct world *world, struct turn *turn, struct job *job)
{
    struct play *play = turn->play;
    hf_code lost = (hf_code)atomic_load(&play->ctx.lost);
    hf_transition *t = &job->transition;
    if (turn->plain) {
        fail_turn(world, turn, job, true);
    } else if (lost == HF_CLOSED && play->code != HF_OK) {
        t->turn = HF_TURN_GIVE_BACK;
    } else if (play->ctx.deadline == 0 && play->code != HF_SUSPENDED) {
        fail_turn(world, turn, job, true);
    } else if (play->code == HF_SUSPENDED && play->ctx.suspended) {
        hf_transition head = *t;
        *t = play->ctx.transition;
        t->version = head.version;
        t->run = head.run;
        t->run_version = head.run_version;
        t->worker = head.worker;
        remember_look(world, play);
    } else if (play->code == HF_OK) {
        t->turn = HF_TURN_SUCCEED;
        t->result = play->ctx.result;
    } else {
        fail_turn(world, turn, job, play->code == HF_PERMANENT);
    }
}

static void finish(struct world *world, struct turn *turn)
{
    struct play *play = turn->play;
    const hf_claimed *claimed = turn->claimed;
    hf_code lost = (hf_code)atomic_load(&play->ctx.lost);
    note(world, "%s ends %s v%" PRId64 " with %s", turn->node->name, turn->known->name,
         claimed->run.version, hf_code_name(play->code));
    if (lost == HF_STALE || lost == HF_RUN_CANCELLED) {
        let_go(turn);
        return;
    }
    struct job *job = commit_new(world, turn->node, turn->known, claimed->run.version);
    job->turn = turn;
    job->op.commit.parentless = hf_id_is_zero(claimed->run.parent);
    decide(world, turn, job);
    turn->phase = ASKING;
    job_submit(world, job);
}

void play_on(struct world *world, struct turn *turn)
{
    struct play *play = turn->play ? turn->play : play_begin(world, turn);
    turn->begun = true;
    if (!play->over)
        fiber_wake(play->fiber);
    if (play->over)
        finish(world, turn);
}

/* Interleavings: the statements of two or three flushes, on connections of their own, in an order drawn from a seed.
 * What only snapshots and row locks can get wrong shows here: no wake-up is lost, whoever comes between whom. A2.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <time.h>

#include "client/client.h"
#include "client/idle_lanes.h"
#include "client/ids.h"
#include "contract/fixture.h"
#include "kernel/flush.h"
#include "util/random.h"

enum { ACTORS = 3, SEEDS = 60, MOST_TRIES = 1000000 };
#define BLOCKED_AFTER HF_MILLISECONDS(15) /* a statement that takes longer waits for a lock */
#define STUCK_AFTER HF_SECONDS(60)

/* One flush under way, performed statement by statement. */
struct actor {
    struct hf__flusher flusher;
    struct hf__conn *conn;
    struct hf__op op;
    struct hf__table *lanes; /* to remove, instead of the operation; NULL: none */
    pthread_t thread;
    enum { IDLE, RUNNING, STOPPED, DONE } state;
    bool go;
    bool at_commit;     /* it has stopped before its COMMIT */
    enum hf__stmt sent; /* its last statement */
    hf_code failure;
    hf_error error;
};

static struct actor actors[ACTORS];
static size_t actor_count; /* in this play */
static int blocked;        /* statements that had to wait for another's lock, in this test */
static struct hf__database *db;
static struct hf__driver driver;
static const struct hf__driver *const real = &hf__postgres_driver;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* ---- The driver that stops after every statement ---- */

static struct actor *actor_of(const struct hf__conn *conn)
{
    struct actor *actor = actors;
    while (actor->conn != conn)
        actor++;
    return actor;
}

static void stop_here(struct hf__conn *conn, bool at_commit)
{
    struct actor *actor = actor_of(conn);
    pthread_mutex_lock(&mutex);
    actor->at_commit = at_commit;
    actor->state = STOPPED;
    pthread_cond_broadcast(&changed);
    while (!actor->go)
        pthread_cond_wait(&changed, &mutex);
    actor->go = false;
    pthread_mutex_unlock(&mutex);
}

static hf_code stepping_begin(struct hf__conn *conn, hf_error *err)
{
    stop_here(conn, false);
    return real->begin(conn, err);
}

static hf_code stepping_send(struct hf__conn *conn, enum hf__stmt stmt,
                             const struct hf__table *params, struct hf__table *result,
                             hf_error *err)
{
    stop_here(conn, false);
    actor_of(conn)->sent = stmt;
    hf_code code = real->send(conn, stmt, params, result, err);
    return code == HF_OK ? real->sync(conn, err) : code;
}

static hf_code stepping_commit(struct hf__conn *conn, const struct hf__wake *wake, bool *unknown,
                               hf_error *err)
{
    stop_here(conn, true);
    return real->commit(conn, wake, unknown, err);
}

static int open_actors(void **state)
{
    int status = fixture_set_up(state);
    blocked = 0;
    driver = *real;
    driver.begin = stepping_begin;
    driver.send = stepping_send;
    driver.commit = stepping_commit;
    assert_ok(real->open(&db, fx.url, NULL, &fx.error));
    for (int i = 0; i < ACTORS; i++) {
        assert_ok(real->connect(&actors[i].conn, db, &fx.error));
        hf__flusher_init(&actors[i].flusher, &driver, actors[i].conn);
        hf__random_seed(&actors[i].flusher.random, (uint64_t)i + 1000);
    }
    return status;
}

static int close_actors(void **state)
{
    for (int i = 0; i < ACTORS; i++) {
        hf__flusher_free(&actors[i].flusher);
        real->disconnect(actors[i].conn);
    }
    real->close(db);
    return fixture_tear_down(state);
}

/* ---- The play ---- */

static hf_code remove_lanes(struct actor *actor)
{
    bool unknown;
    hf_code code = driver.begin(actor->conn, &actor->error);
    if (code == HF_OK)
        code = hf__idle_lanes_remove(&driver, actor->conn, actor->lanes, &actor->error);
    if (code == HF_OK)
        code = driver.commit(actor->conn, &(struct hf__wake){ 0 }, &unknown, &actor->error);
    actor->op.decided = true;
    return code;
}

static void *act(void *arg)
{
    struct actor *actor = arg;
    struct hf__op *op = &actor->op;
    if (actor->lanes)
        actor->failure = remove_lanes(actor);
    for (int i = 0; i < MOST_TRIES && !op->decided && actor->failure == HF_OK; i++) {
        bool unknown = false;
        actor->failure = hf__flush(&actor->flusher, &op, 1, &unknown, &actor->error);
        op->again = false;
    }
    pthread_mutex_lock(&mutex);
    actor->state = DONE;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Waits until the actor has stopped or ended, but not for ever: it may wait for another's lock. */
static void let_go(struct actor *actor)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t us = until.tv_nsec / 1000 + BLOCKED_AFTER;
    until.tv_sec += us / 1000000;
    until.tv_nsec = us % 1000000 * 1000;
    actor->state = RUNNING;
    actor->go = true;
    pthread_cond_broadcast(&changed);
    while (actor->state == RUNNING && pthread_cond_timedwait(&changed, &mutex, &until) == 0)
        ;
    if (actor->state == RUNNING)
        blocked += (int)sql_number("SELECT count(*) FROM pg_stat_activity WHERE datname = "
                                   "current_database() AND wait_event_type = 'Lock'");
}

/* Whose statement comes next: a coin decides whether the last one goes on, so that long stretches of one flush between two
 * statements of another are as likely as quick changes. */
static struct actor *draw(struct hf__random *random, struct actor *last, bool *all_done)
{
    struct actor *ready[ACTORS];
    size_t count = 0;
    *all_done = true;
    for (size_t i = 0; i < actor_count; i++) {
        *all_done &= actors[i].state == DONE;
        if (actors[i].state == STOPPED)
            ready[count++] = &actors[i];
    }
    if (last && last->state == STOPPED && hf__random_below(random, 8) > 0)
        return last;
    return count ? ready[hf__random_below(random, count)] : NULL;
}

static void direct(uint64_t seed)
{
    struct hf__random random;
    struct actor *next = NULL;
    bool all_done = false;
    int idle = 0;
    hf__random_seed(&random, seed);
    pthread_mutex_lock(&mutex);
    while (!all_done) {
        next = draw(&random, next, &all_done);
        if (next) {
            let_go(next);
            idle = 0;
        } else if (!all_done) {
            struct timespec pause = { .tv_nsec = 1000 * 1000 };
            if (++idle > STUCK_AFTER / 1000)
                abort();
            pthread_mutex_unlock(&mutex);
            nanosleep(&pause, NULL);
            pthread_mutex_lock(&mutex);
        }
    }
    pthread_mutex_unlock(&mutex);
}

/* The operations of the first `count` actors, up to their first statement. */
static void begin_play(size_t count)
{
    actor_count = count;
    for (size_t i = 0; i < count; i++) {
        actors[i].state = RUNNING;
        actors[i].failure = HF_OK;
        actors[i].flusher.wary = 0; /* of what happened in the last play */
        assert_int_equal(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    }
}

/* Performs what is left of them in the order of the seed. */
static void end_play(uint64_t seed)
{
    direct(seed);
    for (size_t i = 0; i < actor_count; i++) {
        pthread_join(actors[i].thread, NULL);
        if (actors[i].failure != HF_OK || !actors[i].op.decided)
            fail_msg("seed %llu: actor %zu: %s", (unsigned long long)seed, i,
                     actors[i].failure ? actors[i].error.message : "never decided");
    }
}

static void play(size_t count, uint64_t seed)
{
    begin_play(count);
    end_play(seed);
}

/* Performs one actor's statements up to the one behind this, or, where that is HF__STMT_COUNT, up to its COMMIT; its transaction
 * stays open. */
static void play_past(struct actor *actor, enum hf__stmt stmt)
{
    pthread_mutex_lock(&mutex);
    actor->sent = HF__STMT_COUNT;
    bool named = stmt != HF__STMT_COUNT;
    while (actor->state != DONE &&
           !(actor->state == STOPPED && (actor->at_commit || (named && actor->sent == stmt)))) {
        if (actor->state == STOPPED) {
            actor->state = RUNNING;
            actor->go = true;
            pthread_cond_broadcast(&changed);
        }
        pthread_cond_wait(&changed, &mutex);
    }
    bool there = !named || actor->sent == stmt;
    pthread_mutex_unlock(&mutex);
    assert_true(there);
}

static void play_to_commit(struct actor *actor)
{
    play_past(actor, HF__STMT_COUNT);
}

static struct hf__op *cast(size_t actor, enum hf__op_kind kind)
{
    actors[actor].lanes = NULL;
    actors[actor].op = (struct hf__op){
        .kind = kind,
        .tenant = fx.client->tenant_id,
        .actor = "tester",
        .error = &actors[actor].error,
    };
    return &actors[actor].op;
}

static void cast_commit(size_t actor, const hf_transition *transition)
{
    cast(actor, HF__OP_COMMIT)->commit.transition = transition;
}

static void cast_signal(size_t actor, hf_id run, hf_signal_spec *spec, const char *id)
{
    *spec =
        (hf_signal_spec){ .version = HF_SIGNAL_VERSION, .id = id, .type = "external", .name = id };
    struct hf__op *op = cast(actor, HF__OP_SIGNAL);
    op->signal.run = run;
    op->signal.spec = spec;
}

static void cast_change(size_t actor, hf_id run, hf_action action)
{
    struct hf__op *op = cast(actor, HF__OP_CHANGE);
    op->change.run = run;
    op->change.action = action;
}

/* A claim of the test's only lane. */
static void cast_claim(size_t actor, struct hf__arena *arena)
{
    struct hf__op *op = cast(actor, HF__OP_CLAIM);
    struct hf__claim_head *head = keep(calloc(1, sizeof *head), free);
    head->lane =
        (int32_t)sql_number("SELECT lane FROM workflow WHERE tenant_id = %d", fx.client->tenant_id);
    op->claim.heads = head;
    op->claim.head_count = 1;
    op->claim.most = 1;
    op->claim.worker = WORKER;
    op->claim.suspect_attempts = 100;
    op->claim.arena = arena;
}

static void expect_codes(uint64_t seed, hf_code first, hf_code second, hf_code third)
{
    const hf_code expected[] = { first, second, third };
    for (size_t i = 0; i < actor_count; i++)
        if (actors[i].op.code != expected[i])
            fail_msg("seed %llu: actor %zu got %s, not %s", (unsigned long long)seed, i,
                     hf_code_name(actors[i].op.code), hf_code_name(expected[i]));
}

/* ---- The scenes ---- */

static void a_signal_beside_a_commit_to_waiting_always_wakes_the_run(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const hf_claimed *held = claim_new();
        hf_transition wait = turn_of(held, HF_TURN_WAIT);
        hf_signal_spec signals[2];
        cast_commit(0, &wait);
        cast_signal(1, held->run.id, &signals[0], "one");
        cast_signal(2, held->run.id, &signals[1], "two");
        size_t count = 2 + seed % 2;
        play(count, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        const hf_claims *claims = claim_as(WORKER, 10);
        if (claims->count != 1 || claims->items[0].mail_count != count - 1)
            fail_msg("seed %llu: the wake-up was lost", (unsigned long long)seed);
        succeed(&claims->items[0]);
    }
}

/* A parent and two children, all of them held: the parent is about to wait for the children, which end. Where the worker says
 * that they are children, the short way is taken. */
static void cast_family(hf_transition turns[3], bool known_as_children)
{
    hf_trigger_spec specs[2] = { spec_of("child"), spec_of("child") };
    hf_transition t = turn_of(claim_new(), HF_TURN_RETRY);
    t.children = specs;
    t.child_count = 2;
    commit(&t);
    const hf_claims *claims = claim_as(WORKER, 10);
    assert_int_equal(claims->count, 3);
    size_t children = 1;
    for (size_t i = 0; i < 3; i++) {
        bool is_child = strcmp(claims->items[i].run.workflow, "child") == 0;
        size_t actor = is_child ? children++ : 0;
        turns[actor] = turn_of(&claims->items[i], is_child ? HF_TURN_SUCCEED : HF_TURN_WAIT);
        turns[actor].wait_children = is_child ? 0 : 2;
        cast_commit(actor, &turns[actor]);
        if (is_child && known_as_children)
            actors[actor].op.commit.child = &claims->items[i].run;
    }
}

static void expect_parent_woken(uint64_t seed)
{
    const hf_claims *claims = claim_as(WORKER, 10);
    if (claims->count != 1 || claims->items[0].mail_count != 2)
        fail_msg("seed %llu: the parent sleeps, or was told too little or too much",
                 (unsigned long long)seed);
    succeed(&claims->items[0]);
}

static void play_families(bool known_as_children)
{
    define("child");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hf_transition turns[3];
        cast_family(turns, known_as_children);
        play(3, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        expect_parent_woken(seed);
    }
}

static void children_that_end_beside_their_parents_wait_always_wake_it(void **state)
{
    (void)state;
    play_families(false);
}

static void so_do_those_that_wait_for_their_parent_when_they_have_ended(void **state)
{
    (void)state;
    play_families(true);
    assert_true(blocked > 0);
}

/* A held parent that has seen the end of its second child only, while the flush of the first one's had come up to the lock;
 * now both have ended. */
static const hf_claimed *see_the_second_end(hf_turn first)
{
    hf_transition turns[3];
    define("child");
    cast_family(turns, true);
    turns[0].wait_children = 1;
    commit(&turns[0]);
    turns[1].turn = first;
    begin_play(2);
    play_past(&actors[1], HF__STMT_FINISH_CHILDREN);
    commit(&turns[2]);
    const hf_claimed *parent = claim();
    assert_int_equal(parent->mail_count, 1);
    end_play(0);
    return parent;
}

static void an_end_that_was_written_early_and_told_late_is_not_taken_out_unseen(void **state)
{
    (void)state;
    const hf_claimed *parent = see_the_second_end(HF_TURN_SUCCEED);
    hf_transition t = turn_of(parent, HF_TURN_GO_ON);
    cast_commit(0, &t);
    actors[0].op.commit.ends_from = 1;
    actors[0].op.commit.ends_to = parent->mail[0].position;
    play(1, 0);
    assert_int_equal(sql_number("SELECT count(*) FROM signal WHERE run_id = %s", sql_id(t.run)), 1);
}

static void a_failure_that_was_written_early_and_told_late_wakes_its_parent(void **state)
{
    (void)state;
    const hf_claimed *parent = see_the_second_end(HF_TURN_FAIL);
    hf_transition t = turn_of(parent, HF_TURN_WAIT);
    t.seen_position = parent->seen_position;
    t.seen_at = parent->seen_at;
    t.wait_children = 3;
    t.wake_on_child_failure = true;
    commit(&t);
    assert_int_equal(claim()->mail_count, 2);
}

static void a_child_that_is_deleted_beside_its_end_is_told_once(void **state)
{
    (void)state;
    define("child");
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hf_transition turns[3];
        cast_family(turns, true);
        commit(&turns[0]);
        cast_change(0, turns[1].run, HF_DELETE);
        play(3, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        expect_parent_woken(seed);
    }
}

static void a_claim_beside_a_cancel_never_brings_the_run_back(void **state)
{
    struct hf__arena arena;
    (void)state;
    hf__arena_init(&arena, 4096);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hf_id id = trigger(WORK);
        cast_claim(0, &arena);
        cast_change(1, id, HF_CANCEL);
        play(2, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        const hf_claims *claims = actors[0].op.claim.claims;
        expect_status(id, HF_CANCELLED);
        expect_journal(id, claims->count ? "created started cancelled" : "created cancelled");
        if (claims->count) {
            hf_transition t = turn_of(&claims->items[0], HF_TURN_SUCCEED);
            assert_code(try_commit(&t), HF_RUN_CANCELLED);
        }
    }
    hf__arena_free(&arena);
}

/* A claim passes over what another has locked, and neither waits for the other. */
static void claims_beside_each_other_share_the_runs(void **state)
{
    struct hf__arena arenas[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        hf__arena_init(&arenas[i], 4096);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hf_id ids[2] = { trigger(WORK), trigger(WORK) };
        size_t got = 0;
        for (size_t i = 0; i < 3; i++)
            cast_claim(i, &arenas[i]);
        play(3, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        for (size_t i = 0; i < 3; i++)
            got += actors[i].op.claim.claims->count;
        const hf_claims *rest = claim_as(WORKER, 10);
        assert_int_equal(got + rest->count, 2);
        for (int i = 0; i < 2; i++) {
            expect_journal(ids[i], "created started");
            change(ids[i], HF_CANCEL);
        }
    }
    for (int i = 0; i < 3; i++)
        hf__arena_free(&arenas[i]);
    assert_int_equal(blocked, 0);
}

/* Either the claim brings the signal along, or the holder's wait ends at once. */
static void a_signal_beside_a_claim_is_seen_or_wakes_the_run_again(void **state)
{
    struct hf__arena arena;
    (void)state;
    hf__arena_init(&arena, 4096);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hf_id id = run_that_is(HF_WAITING, 0);
        hf_signal_spec signals[2];
        send_signal(id, "early");
        cast_claim(0, &arena);
        cast_signal(1, id, &signals[0], "one");
        cast_signal(2, id, &signals[1], "two");
        play(3, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        const hf_claims *claims = actors[0].op.claim.claims;
        const hf_claimed *held = claims->count ? &claims->items[0] : claim();
        size_t seen = held->mail_count;
        hf_transition t = turn_of(held, HF_TURN_WAIT);
        consume_all(held, &t);
        if (seen < 3) {
            held = claim();
            assert_int_equal(held->mail_count, 3 - seen);
            succeed(held);
        } else {
            expect_nothing_due();
        }
    }
    hf__arena_free(&arena);
}

static void a_signal_beside_a_resume_always_wakes_the_run(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hf_id id = run_that_is(HF_WAITING, 0);
        hf_signal_spec signal;
        change(id, HF_PAUSE);
        cast_change(0, id, HF_RESUME);
        cast_signal(1, id, &signal, "one");
        play(2, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        succeed(claim());
    }
}

static void of_a_short_end_a_cancel_and_a_step_the_journal_tells_one_story(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const hf_claimed *held = claim_new();
        hf_transition end = turn_of(held, HF_TURN_SUCCEED);
        hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
        cast_commit(0, &end);
        actors[0].op.commit.parentless = true;
        cast_change(1, held->run.id, HF_CANCEL);
        cast(2, HF__OP_STEP)->step.record = &step;
        play(3, seed);
        bool ended = actors[0].op.code == HF_OK;
        bool cancelled = actors[1].op.code == HF_OK;
        assert_true(ended != cancelled);
        expect_status(held->run.id, ended ? HF_SUCCEEDED : HF_CANCELLED);
        assert_int_equal(events_of(held->run.id)->count, 3 + (actors[2].op.code == HF_OK));
    }
}

static void one_step_sent_by_three_at_once_under_one_request_is_one_line(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS / 2; seed++) {
        const hf_claimed *held = claim_new();
        hf_step_record step = { held->run.id, held->run.version, WORKER, "s", "succeeded", "1" };
        for (size_t i = 0; i < 3; i++) {
            cast(i, HF__OP_STEP)->step.record = &step;
            actors[i].op.step.request = "r";
        }
        play(3, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        expect_journal(held->run.id, "created started succeeded");
        succeed(held);
    }
}

static void one_turn_sent_by_two_at_once_under_one_request_starts_its_child_once(void **state)
{
    (void)state;
    define("child");
    for (uint64_t seed = 0; seed < SEEDS / 2; seed++) {
        const hf_claimed *held = claim_new();
        hf_trigger_spec child = spec_of("child");
        hf_transition t = turn_of(held, HF_TURN_GO_ON);
        hf_id ids[] = { hf__new_id(), hf__new_id() };
        hf_id answered[2];
        t.children = &child;
        t.child_count = 1;
        for (size_t i = 0; i < 2; i++) {
            cast_commit(i, &t);
            actors[i].op.commit.child_ids = &ids[i];
            actors[i].op.commit.request = "r";
            actors[i].op.commit.answered = &answered[i];
        }
        play(2, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        size_t winner = actors[0].op.commit.repeated;
        assert_true(actors[1 - winner].op.commit.repeated);
        assert_true(hf_id_equal(answered[1 - winner], ids[winner]));
        const hf_claims *children = claim_of("child", 2);
        assert_int_equal(children->count, 1);
        assert_true(hf_id_equal(children->items[0].run.id, ids[winner]));
        succeed(&children->items[0]);
        succeed(held);
    }
}

static void of_two_holders_one_stale_only_the_newer_commits(void **state)
{
    struct hf__arena arena;
    (void)state;
    hf__arena_init(&arena, 4096);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const hf_claimed *held = claim_new();
        hf_transition t = turn_of(held, HF_TURN_WAIT);
        advance(LEASE);
        cast_commit(0, &t);
        cast_claim(1, &arena);
        play(2, seed);
        bool committed = actors[0].op.code == HF_OK;
        size_t claimed = actors[1].op.claim.claims->count;
        assert_true(committed || actors[0].op.code == HF_STALE);
        assert_int_equal(claimed, committed ? 0 : 1);
        expect_status(held->run.id, committed ? HF_WAITING : HF_LEASED);
        change(held->run.id, HF_CANCEL);
    }
    hf__arena_free(&arena);
}

static void one_key_triggered_by_three_at_once_is_one_run(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS / 2; seed++) {
        hf_trigger_spec spec = spec_of(WORK);
        int made = 0;
        spec.key = text_of("key-%d", (int)seed);
        for (size_t i = 0; i < 3; i++) {
            struct hf__op *op = cast(i, HF__OP_TRIGGER);
            op->trigger.id = hf__new_id();
            op->trigger.spec = &spec;
        }
        play(3, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        for (size_t i = 0; i < 3; i++)
            made += !actors[i].op.trigger.existed;
        assert_int_equal(made, 1);
        succeed(claim());
    }
}

static void one_keyed_child_started_by_two_parents_at_once_is_one_run(void **state)
{
    (void)state;
    define("child");
    for (uint64_t seed = 0; seed < SEEDS / 2; seed++) {
        hf_trigger_spec child = spec_of("child");
        hf_transition turns[2];
        hf_id ids[2] = { hf__new_id(), hf__new_id() };
        child.key = text_of("key-%d", (int)seed);
        for (size_t i = 0; i < 2; i++) {
            turns[i] = turn_of(claim_new(), HF_TURN_SUCCEED);
            turns[i].children = &child;
            turns[i].child_count = 1;
            cast_commit(i, &turns[i]);
            actors[i].op.commit.child_ids = &ids[i];
        }
        play(2, seed);
        bool first = actors[0].op.code == HF_OK;
        expect_codes(seed, first ? HF_OK : HF_CONFLICT, first ? HF_CONFLICT : HF_OK, HF_OK);
        succeed(claim());
        change(turns[first].run, HF_CANCEL);
    }
}

static void cast_removal(size_t actor, struct hf__arena *arena, int32_t lane)
{
    cast(actor, HF__OP_TRIGGER);
    actors[actor].lanes = hf__arena_alloc(arena, sizeof *actors[actor].lanes);
    hf__table_init(actors[actor].lanes, arena, 1);
    *hf__table_add(actors[actor].lanes) = hf__number(lane);
}

/* By each of the three statements that insert runs with a flow key: one alone, one with a key, and a debounced one. */
static void a_trigger_beside_the_removal_of_its_lane_is_never_lost(void **state)
{
    struct hf__arena arena;
    int32_t last = 0;
    int removed = 0;
    (void)state;
    hf__arena_init(&arena, 4096);
    for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
        hf_trigger_spec spec = spec_of(WORK);
        struct hf__op *op = cast(0, HF__OP_TRIGGER);
        op->trigger.id = hf__new_id();
        op->trigger.spec = &spec;
        spec.flow_key = "key";
        spec.key = seed % 3 == 1 ? text_of("key-%d", (int)seed) : NULL;
        spec.debounce_key = seed % 3 == 2 ? "d" : NULL;
        spec.debounce_for = seed % 3 == 2;
        cast_removal(1, &arena, last);
        play(2, seed);
        expect_codes(seed, HF_OK, HF_OK, HF_OK);
        int32_t lane = (int32_t)sql_number("SELECT coalesce(max(id), 0) FROM lane WHERE "
                                           "tenant_id = %d AND flow_key = 'key'",
                                           fx.client->tenant_id);
        removed += last && lane != last;
        last = lane;
        advance(1);
        if (claim_as(WORKER, 10)->count != 1)
            fail_msg("seed %llu: a run has no lane", (unsigned long long)seed);
        change(op->trigger.id, HF_CANCEL);
        assert_ok(hf_purge(fx.client, NULL, WORK, now() + HF_HOURS(1), &fx.error));
    }
    hf__arena_free(&arena);
    assert_true(removed > 0);
}

/* ---- How much a claim locks ---- */

enum { IN_EACH_HEAD = 5, URGENT = 5 };

/* Due runs in two heads: of the usual priority, and urgent ones. */
static void make_due(void)
{
    hf_trigger_spec urgent = spec_of(WORK);
    urgent.priority = URGENT;
    for (int i = 0; i < IN_EACH_HEAD; i++) {
        trigger(WORK);
        trigger_spec(&urgent);
    }
}

/* What a worker beside would get. */
static int64_t count_unlocked(void)
{
    return sql_number("SELECT count(*) FROM (SELECT 1 FROM run WHERE tenant_id = %d AND status = 0 "
                      "FOR UPDATE SKIP LOCKED) r",
                      fx.client->tenant_id);
}

/* A claim of one run, by this statement, keeps one run from others while it is not committed. */
static void expect_one_locked(enum hf__stmt statement, size_t head_count, bool limited)
{
    struct hf__arena arena;
    struct hf__claim_head heads[2];
    hf__arena_init(&arena, 4096);
    cast_claim(0, &arena);
    heads[0] = heads[1] = actors[0].op.claim.heads[0];
    heads[0].priority = URGENT;
    heads[0].limited = heads[1].limited = limited;
    actors[0].op.claim.heads = heads;
    actors[0].op.claim.head_count = head_count;
    int64_t before = count_unlocked();
    begin_play(1);
    play_to_commit(&actors[0]);
    int64_t beside = count_unlocked();
    end_play(0);
    assert_int_equal(actors[0].sent, statement);
    assert_int_equal(actors[0].op.claim.claims->count, 1);
    assert_int_equal(beside, before - 1);
    hf__arena_free(&arena);
}

static void a_claim_locks_no_more_than_it_takes(void **state)
{
    const hf_workflow limits = { .name = WORK, .max_running = 100 };
    (void)state;
    make_due();
    expect_one_locked(HF__STMT_CLAIM_HEAD, 1, false);
    expect_one_locked(HF__STMT_CLAIM_RUNS, 2, false);
    assert_ok(hf_workflow_set(fx.client, &limits, HF_SET_MAX_RUNNING, &fx.error));
    expect_one_locked(HF__STMT_CLAIM_LIMITED_HEAD, 1, true);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, open_actors, close_actors)

static const struct CMUnitTest tests[] = {
    SCENE(a_signal_beside_a_commit_to_waiting_always_wakes_the_run),
    SCENE(children_that_end_beside_their_parents_wait_always_wake_it),
    SCENE(so_do_those_that_wait_for_their_parent_when_they_have_ended),
    SCENE(a_child_that_is_deleted_beside_its_end_is_told_once),
    SCENE(an_end_that_was_written_early_and_told_late_is_not_taken_out_unseen),
    SCENE(a_failure_that_was_written_early_and_told_late_wakes_its_parent),
    SCENE(a_claim_beside_a_cancel_never_brings_the_run_back),
    SCENE(claims_beside_each_other_share_the_runs),
    SCENE(a_signal_beside_a_claim_is_seen_or_wakes_the_run_again),
    SCENE(a_signal_beside_a_resume_always_wakes_the_run),
    SCENE(of_a_short_end_a_cancel_and_a_step_the_journal_tells_one_story),
    SCENE(one_step_sent_by_three_at_once_under_one_request_is_one_line),
    SCENE(one_turn_sent_by_two_at_once_under_one_request_starts_its_child_once),
    SCENE(of_two_holders_one_stale_only_the_newer_commits),
    SCENE(one_key_triggered_by_three_at_once_is_one_run),
    SCENE(one_keyed_child_started_by_two_parents_at_once_is_one_run),
    SCENE(a_trigger_beside_the_removal_of_its_lane_is_never_lost),
    SCENE(a_claim_locks_no_more_than_it_takes),
};

CONTRACT("interleavings", tests)

/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/group.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernel/batch.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/thread.h"

#define MAX_OPS 2000                /* in one flush */
#define MAX_BYTES (4 * 1024 * 1024) /* of payloads in one flush */
#define SHARED_TRIES 3              /* after so many it is flushed alone */
#define GATHER_EACH 10   /* us to wait for each caller that was just answered to come back */
#define GATHER_LEAST 300 /* us for all of them */
#define GATHER_MOST 1000
#define MISSED_MOST 2   /* gatherings in a row to which not all came */
#define HOPE_AGAIN 16   /* gatherings that went well, after which more are hoped for */
#define CROWD 200       /* so many are waited for asleep: the database has use for the processor */
#define CROWD_PAUSE 150 /* us */
#define LOCKED_PAUSE HF_MILLISECONDS(1) /* before looking again at runs that others have locked */
#define ASIDE_PAUSE HF_MILLISECONDS(5)  /* the same, of those that were set aside */
#define FIRST_BACKOFF HF_MILLISECONDS(20)
#define LAST_BACKOFF HF_MILLISECONDS(500)

struct queue {
    struct hf__op *first;
    struct hf__op *last;
};

struct hf__group {
    struct hf__group_options options;
    struct hf__flusher flusher; /* its conn is NULL until the first flush, and without a store */
    int64_t connected_at;
    size_t expected; /* callers that may want something soon; 0: do not wait for them */
    size_t hoped;    /* at most so many of them are waited for, by what was learnt */
    unsigned missed; /* how often, in a row, not so many came */
    unsigned kept;   /* how often they did since that number was changed */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work;
    struct queue ready;
    struct queue aside;   /* wait for runs that others keep locked: all others pass them */
    int64_t look_at;      /* monotonic us: when to look at those again */
    int64_t looked_at;    /* and when the look that is under way began its last try; 0: none is */
    atomic_size_t queued; /* in `ready`; also read without the mutex */
    bool asleep;          /* the thread waits for work */
    bool lent;            /* a caller flushes by itself: the thread waits for that, too */
    bool closing;
};

/* ---- The queue ---- */

static void push_front(struct queue *queue, struct hf__op *op)
{
    op->next = queue->first;
    queue->first = op;
    if (!queue->last)
        queue->last = op;
}

static void push_back(struct queue *queue, struct hf__op *op)
{
    op->next = NULL;
    if (queue->last)
        queue->last->next = op;
    else
        queue->first = op;
    queue->last = op;
}

static struct hf__op *pop(struct queue *queue)
{
    struct hf__op *op = queue->first;
    queue->first = op->next;
    if (!queue->first)
        queue->last = NULL;
    return op;
}

static void begin(const struct hf__group *group, struct hf__op *op)
{
    int64_t patience = op->patience ? op->patience : group->options.connect_limit;
    hf__op_begin(op, patience < 0 ? 0 : hf__monotonic_us() + patience);
}

void hf__group_submit(struct hf__group *group, struct hf__op *op)
{
    begin(group, op);
    pthread_mutex_lock(&group->mutex);
    push_back(&group->ready, op);
    group->queued++;
    bool wake = group->asleep && !group->lent;
    pthread_mutex_unlock(&group->mutex);
    if (wake) /* under the mutex it would wake up to wait for that */
        pthread_cond_signal(&group->work);
}

size_t hf__group_queued(struct hf__group *group)
{
    return atomic_load_explicit(&group->queued, memory_order_relaxed);
}

/* Those that were set aside are looked at from time to time, and once more at the end. Called with the mutex held. */
static bool aside_is_due(const struct hf__group *group)
{
    return group->aside.first &&
           (group->closing ? !group->ready.first : hf__monotonic_us() >= group->look_at);
}

/* What the next flush takes, first in first out. Called with the mutex held. */
static size_t take(struct hf__group *group, struct hf__op **ops)
{
    bool look = aside_is_due(group);
    struct queue *queue = look ? &group->aside : &group->ready;
    size_t count = 0;
    size_t bytes = 0;
    group->looked_at = look ? hf__monotonic_us() : 0;
    while (queue->first && count < MAX_OPS && bytes < MAX_BYTES) {
        bool alone = queue->first->tries >= SHARED_TRIES && !queue->first->passed_over;
        if (alone && count > 0)
            break;
        ops[count] = pop(queue);
        bytes += hf__op_bytes(ops[count++]);
        if (alone)
            break;
    }
    if (!look)
        group->queued -= count;
    return count;
}

/* It was passed over, or flushed alone, often enough. */
static bool belongs_aside(const struct hf__op *op)
{
    return op->tries > SHARED_TRIES || (op->tries == SHARED_TRIES && op->passed_over);
}

/* What was not decided is next again, in its order; but what waits for somebody's lock lets all others pass. Looking at that
 * again takes no more than half of the time. */
static void put_back(struct hf__group *group, struct hf__op **ops, size_t count)
{
    pthread_mutex_lock(&group->mutex);
    int64_t now = hf__monotonic_us();
    if (group->looked_at)
        group->look_at = now + ASIDE_PAUSE + now - group->looked_at;
    else if (!group->aside.first)
        group->look_at = now + ASIDE_PAUSE;
    for (size_t i = 0; i < count; i++)
        if (belongs_aside(ops[i]))
            push_back(&group->aside, ops[i]);
    for (size_t i = count; i > 0; i--)
        if (!belongs_aside(ops[i - 1])) {
            push_front(&group->ready, ops[i - 1]);
            group->queued++;
        }
    pthread_mutex_unlock(&group->mutex);
}

static bool is_closing(struct hf__group *group)
{
    pthread_mutex_lock(&group->mutex);
    bool closing = group->closing;
    pthread_mutex_unlock(&group->mutex);
    return closing;
}

/* ---- The connection ---- */

static void disconnect(struct hf__group *group)
{
    if (group->flusher.conn)
        group->options.driver->disconnect(group->flusher.conn);
    group->flusher.conn = NULL;
}

static hf_code connect(struct hf__group *group, hf_error *err)
{
    int64_t now = hf__monotonic_us();
    int64_t lifetime = group->options.max_lifetime;
    bool old = lifetime > 0 && now - group->connected_at > lifetime;
    if (group->flusher.conn && (old || group->options.driver->lost(group->flusher.conn)))
        disconnect(group);
    if (group->flusher.conn)
        return HF_OK;
    group->connected_at = now;
    return group->options.driver->connect(&group->flusher.conn, group->options.db, err);
}

static void pause_for(int64_t us)
{
    struct timespec time = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    nanosleep(&time, NULL);
}

/* ---- Answering ---- */

/* It was not done now. But one whose answer was lost may have been done before: that is not known, and no other code says
 * so. What a claim took is given back by itself. */
static void answer(struct hf__op *op, const hf_error *err)
{
    bool doubtful = op->resent && op->kind != HF__OP_CLAIM && err->code != HF_UNAVAILABLE;
    op->decided = true;
    op->code = doubtful ? HF_UNAVAILABLE : err->code;
    if (!op->error)
        return;
    *op->error = *err;
    if (doubtful)
        hf__fail(op->error, HF_UNAVAILABLE,
                 "the answer was lost, so it may have happened: look before you send it again (%s)",
                 err->message);
}

/* Hands out what is decided; what is not stays at the front of `ops`. */
static size_t hand_out(struct hf__op **ops, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->decided)
            ops[i]->done(ops[i], ops[i]->done_arg);
        else
            ops[left++] = ops[i];
    }
    return left;
}

static bool worth_trying_again(const struct hf__op *op, hf_code code, int64_t now, bool closing)
{
    if (closing)
        return false;
    if (op->give_up_at == 0 || (code == HF_LOCKED && op->bears_locks))
        return true;
    return (code == HF_UNAVAILABLE || code == HF_LOCKED) && now < op->give_up_at;
}

/* The store as a whole failed: whoever has no patience left is told. */
static size_t give_up(struct hf__group *group, struct hf__op **ops, size_t count, bool unknown,
                      const hf_error *err)
{
    int64_t now = hf__monotonic_us();
    bool closing = is_closing(group);
    for (size_t i = 0; i < count; i++) {
        struct hf__op *op = ops[i];
        op->resent |= unknown && !op->decided;
        op->again = false;
        /* A claim is not repeated: what it took is given back when the worker adopts it. */
        bool lost_claim = op->kind == HF__OP_CLAIM && unknown;
        if (!op->decided && (lost_claim || !worth_trying_again(op, err->code, now, closing)))
            answer(op, err);
    }
    return hand_out(ops, count);
}

/* Takes those out of a queue that have no patience left. Called with the mutex held. */
static struct queue take_impatient(struct hf__group *group, struct queue *queue, hf_code code)
{
    int64_t now = hf__monotonic_us();
    struct queue impatient = { 0 };
    struct queue patient = { 0 };
    while (queue->first) {
        struct hf__op *op = pop(queue);
        bool stays = worth_trying_again(op, code, now, group->closing);
        push_back(stays ? &patient : &impatient, op);
        group->queued -= !stays && queue == &group->ready;
    }
    *queue = patient;
    return impatient;
}

/* Whoever waits in this queue and has no patience left is told. */
static void give_up_queued(struct hf__group *group, struct queue *queue, const hf_error *err)
{
    pthread_mutex_lock(&group->mutex);
    struct queue impatient = take_impatient(group, queue, err->code);
    pthread_mutex_unlock(&group->mutex);
    while (impatient.first) {
        struct hf__op *op = pop(&impatient);
        answer(op, err);
        op->done(op, op->done_arg);
    }
}

/* ---- The thread ---- */

/* Of those that were looked at and not decided. A caller does not wait for ever for somebody else's transaction to end. When
 * closing, a look that got on with some is not the last: others may have waited for these alone. */
static size_t end_locked_out(struct hf__group *group, struct hf__op **ops, size_t left, bool got_on)
{
    static const hf_error locked = {
        .code = HF_LOCKED,
        .message = "another transaction keeps the run locked: end it, then try again",
    };
    if (got_on && is_closing(group))
        return left;
    return give_up(group, ops, left, false, &locked);
}

static void clear_again(struct hf__op **ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ops[i]->again = false;
}

static hf_code flush(struct hf__group *group, struct hf__op **ops, size_t count, bool *unknown,
                     hf_error *err)
{
    int64_t began = hf__monotonic_us();
    for (size_t i = 0; i < count; i++)
        ops[i]->flushed_at = began;
    if (group->looked_at) /* what came before it, as an outage, was no look */
        group->looked_at = began;
    hf_code code = hf__flush(&group->flusher, ops, count, unknown, err);
    if (group->options.metrics)
        hf__metrics_flush(group->options.metrics, count, hf__monotonic_us() - began);
    return code;
}

/* Flushes until every operation is answered or goes back into the queue. `lone`: so many are no company, but one caller. */
static void flush_all(struct hf__group *group, struct hf__op **ops, size_t count, size_t lone)
{
    int64_t backoff = FIRST_BACKOFF;
    while (count > 0) {
        hf_error err = { 0 };
        bool unknown = false;
        hf_code code = connect(group, &err);
        if (code == HF_OK)
            code = flush(group, ops, count, &unknown, &err);
        if (code == HF_OK) {
            bool looked = group->looked_at;
            group->expected = count > lone && !looked ? hf__group_queued(group) + count : 0;
            size_t left = hand_out(ops, count);
            bool got_on = left < count;
            clear_again(ops, left);
            if (looked)
                left = end_locked_out(group, ops, left, got_on);
            put_back(group, ops, left);
            if (!got_on && !looked)
                pause_for(LOCKED_PAUSE);
            return;
        }
        count = give_up(group, ops, count, unknown, &err);
        if (count > 0) {
            give_up_queued(group, &group->ready, &err);
            give_up_queued(group, &group->aside, &err);
            pause_for(backoff);
        }
        backoff = backoff * 2 < LAST_BACKOFF ? backoff * 2 : LAST_BACKOFF;
    }
}

/* Yielding, not sleeping, unless they are many: waking up again costs more than the moment. */
static void await_callers(struct hf__group *group, size_t count)
{
    int64_t patience = (int64_t)count * GATHER_EACH;
    patience = patience < GATHER_LEAST ? GATHER_LEAST : patience;
    patience = patience > GATHER_MOST ? GATHER_MOST : patience;
    int64_t until = hf__monotonic_us() + patience;
    while (hf__group_queued(group) < count && hf__monotonic_us() < until)
        if (count > CROWD)
            pause_for(CROWD_PAUSE);
        else
            sched_yield();
}

/* Where twice not all came, only so many are hoped for; now and then some more. */
static void learn(struct hf__group *group, size_t wanted)
{
    size_t came = hf__group_queued(group);
    group->missed = came < wanted ? group->missed + 1 : 0;
    if (group->missed == MISSED_MOST) {
        group->hoped = came;
        group->kept = group->missed = 0;
    } else if (!group->missed && wanted == group->hoped && ++group->kept == HOPE_AGAIN) {
        group->hoped += group->hoped / 8 + 1;
        group->kept = 0;
    }
}

/* Callers that were answered together come back together: giving way to them for a moment, until they are there beside
 * those who wait already, saves flushes. A lone caller is never waited for. */
static void gather(struct hf__group *group)
{
    size_t wanted = group->expected < group->hoped ? group->expected : group->hoped;
    if (group->expected) {
        await_callers(group, wanted);
        learn(group, wanted);
    }
    group->expected = 0;
}

/* Called with the mutex held. */
static void wait_until(struct hf__group *group, int64_t until)
{
    struct timespec time = { .tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000 };
    pthread_cond_timedwait(&group->work, &group->mutex, &time);
}

/* Sleeps until there is work. Called with the mutex held. */
static void await_work(struct hf__group *group)
{
    group->asleep = true;
    while (group->lent || (!group->ready.first && !group->closing && !aside_is_due(group)))
        if (group->aside.first && !group->lent)
            wait_until(group, group->look_at);
        else
            pthread_cond_wait(&group->work, &group->mutex);
    group->asleep = false;
}

/* A lone trigger brings a run that is due at once, into a lane that is known. */
static int32_t lane_of_lone_trigger(const struct hf__group *group, struct hf__op **ops,
                                    size_t count)
{
    if (count != 1 || ops[0]->kind != HF__OP_TRIGGER || ops[0]->resent || ops[0]->trigger.initial)
        return 0;
    const hf_trigger_spec *spec = ops[0]->trigger.spec;
    if (spec->run_at || spec->delay || spec->debounce_key)
        return 0;
    return hf__lane_recall(&group->flusher.lanes, ops[0]->tenant, spec->workflow, spec->flow_key);
}

/* If somebody in this process waits for the run of a lone trigger, the claim goes along: one flush for both. Returns how
 * many were added. */
static size_t add_claim(const struct hf__group *group, struct hf__op **ops, size_t count)
{
    int32_t lane = lane_of_lone_trigger(group, ops, count);
    if (!lane)
        return 0;
    ops[1] = group->options.claim(lane, &ops[0]->trigger.spec->priority, group->options.arg);
    if (!ops[1])
        return 0;
    begin(group, ops[1]);
    return 1;
}

/* Whether the thread has nothing to do, and leaves its connection to a caller. */
static bool borrow(struct hf__group *group)
{
    pthread_mutex_lock(&group->mutex);
    bool idle = group->asleep && !group->lent && !group->ready.first && !group->aside.first &&
                !group->closing;
    group->lent |= idle;
    pthread_mutex_unlock(&group->mutex);
    return idle;
}

static void give_back(struct hf__group *group)
{
    pthread_mutex_lock(&group->mutex);
    group->lent = false;
    bool wake = group->ready.first || group->aside.first || group->closing;
    pthread_mutex_unlock(&group->mutex);
    if (wake)
        pthread_cond_signal(&group->work);
}

void hf__group_apply(struct hf__group *group, struct hf__op *op)
{
    struct hf__op *ops[2] = { op };
    if (!borrow(group)) {
        hf__group_submit(group, op);
        return;
    }
    begin(group, op);
    group->looked_at = 0;
    size_t claims = add_claim(group, ops, 1);
    flush_all(group, ops, 1 + claims, 1 + claims);
    give_back(group);
}

static void *group_thread(void *arg)
{
    struct hf__group *group = arg;
    struct hf__op *ops[MAX_OPS];
    size_t count = 0;
    do {
        gather(group);
        pthread_mutex_lock(&group->mutex);
        await_work(group);
        count = take(group, ops);
        pthread_mutex_unlock(&group->mutex);
        size_t claims = add_claim(group, ops, count);
        flush_all(group, ops, count + claims, 1 + claims);
    } while (count > 0);
    return NULL;
}

static void free_group(struct hf__group *group)
{
    disconnect(group);
    hf__flusher_free(&group->flusher);
    pthread_cond_destroy(&group->work);
    pthread_mutex_destroy(&group->mutex);
    free(group);
}

hf_code hf__group_start(struct hf__group **out, const struct hf__group_options *options,
                        hf_error *err)
{
    struct hf__group *group = hf__calloc(1, sizeof *group);
    if (!group)
        return hf__nomem(err);
    group->options = *options;
    group->hoped = SIZE_MAX;
    pthread_mutex_init(&group->mutex, NULL);
    hf__cond_init(&group->work);
    hf__flusher_init(&group->flusher, options->driver, NULL);
    group->flusher.woke = options->woke;
    group->flusher.woke_arg = options->arg;
    group->flusher.metrics = options->metrics;
    group->flusher.shares_mail = options->shares_mail;
    if (options->max_payload)
        group->flusher.max_payload = options->max_payload;
    group->flusher.defers = options->defers;
    hf_code code = HF_OK;
    if (!hf__random_seed_os(&group->flusher.random))
        code = hf__fail(err, HF_INTERNAL, "the system gave no random numbers");
    if (code == HF_OK)
        code = hf__thread_start(&group->thread, group_thread, group, err);
    if (code == HF_OK)
        *out = group;
    else
        free_group(group);
    return code;
}

void hf__group_stop(struct hf__group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&group->mutex);
    group->closing = true;
    pthread_cond_signal(&group->work);
    pthread_mutex_unlock(&group->mutex);
    pthread_join(group->thread, NULL);
    free_group(group);
}

/* The thread that fetches runs. It claims while there is room and something is due, and sleeps
 * otherwise: until the next run is due, a wake-up comes, or the safety poll.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/clock.h"
#include "util/error.h"

#include <limits.h>

#define LOOK_PERIOD HF_SECONDS(1) /* between looks at all lanes while there is work */
#define FEW_LANES 256             /* so many are looked at whenever it is worth it */
#define BUSY_AFTER HF_SECONDS(1)  /* a trickle of work is not worth a write */
#define AHEAD_WINDOW                                                                               \
    HF_MILLISECONDS(500) /* work to have in the queue: hides the claims, hoards nothing */
#define HELD_BYTES (8.0 * 1024 * 1024) /* of payloads; each is there two or three times */
#define FIRST_PAUSE HF_MILLISECONDS(5)
#define SHORT_PAUSE HF_MILLISECONDS(100)
#define SHORT_PAUSES                                                                               \
    15 /* then the pauses grow to the poll: what cannot be had is paused or limited, not locked */
#define STORE_PAUSE HF_MILLISECONDS(500)

/* The claimer's own memory from round to round. */
struct claimer {
    hf_worker *worker;
    int64_t busy_since; /* monotonic us; 0: it slept since */
    int64_t pause;      /* us before looking again at due runs that could not be had */
    int pauses;
    hf_error error;
};

/* ---- Room; worker->lock is held ---- */

static int ahead(const hf_worker *worker)
{
    if (!worker->measured || hf__hands_are_stuck(worker))
        return worker->threads; /* what waits behind handlers that take hours is no other's */
    int64_t window = AHEAD_WINDOW;
    if (worker->shortest_lease && worker->shortest_lease / 2 < window)
        window = worker->shortest_lease / 2;
    double fits = worker->threads * (double)window / (worker->average + 1);
    if (fits >= HF__AHEAD_MOST)
        return worker->threads > HF__AHEAD_MOST ? worker->threads : HF__AHEAD_MOST;
    return fits > worker->threads ? (int)fits : worker->threads;
}

/* How many more runs memory has room for. No thread goes without one for that. */
static int affordable(const hf_worker *worker)
{
    double most = HELD_BYTES / (worker->payload + 1);
    if (most > INT_MAX)
        most = INT_MAX;
    int runs = most > worker->threads ? (int)most : worker->threads;
    return runs - worker->held_count;
}

static int room(const hf_worker *worker)
{
    int committing = worker->held_count - worker->queued - worker->running;
    int most = ahead(worker);
    int free_places = most - worker->queued - worker->running;
    if (free_places > affordable(worker))
        free_places = affordable(worker);
    if (worker->alone || committing >= HF__COMMITTING_MOST || free_places <= 0)
        return 0;
    if (worker->queued * 2 > most - worker->threads)
        return 0;
    return free_places < HF__CLAIM_MOST ? free_places : HF__CLAIM_MOST;
}

int hf__claimer_free_hands(const hf_worker *worker)
{
    int hands = worker->idle_hands - worker->queued;
    int places = room(worker);
    return hands < places ? hands : places;
}

/* How many runs may be claimed in this way now. */
static int capacity(const hf_worker *worker, enum hf__wish wish)
{
    switch (wish) {
    case HF__WISH_IDLE_HAND: return hf__claimer_free_hands(worker);
    case HF__WISH_EMPTY_HANDS: return worker->held_count == 0 && !worker->lent;
    case HF__WISH_ANY_HAND: return hf__claimer_free_hands(worker) > 0;
    case HF__WISH_NOTHING:
    case HF__WISH_ROOM: break;
    }
    return room(worker);
}

void hf__claimer_prompt(hf_worker *worker)
{
    if (worker->wish == HF__WISH_NOTHING || capacity(worker, worker->wish) <= 0)
        return;
    worker->wish = HF__WISH_NOTHING;
    worker->prompted = true;
    pthread_cond_signal(&worker->claimer);
}

/* ---- Hearing ---- */

static void ring_slot(struct hf__ring *ring, int32_t lane)
{
    for (size_t i = 0; i < ring->slot_count; i++)
        if (ring->slots[i] == lane)
            return;
    if (ring->slot_count == HF__RINGING_LANES)
        ring->any_slot = true;
    else
        ring->slots[ring->slot_count++] = lane;
}

static void ring_lane(struct hf__ring *ring, int32_t lane)
{
    if (lane < 0) {
        ring_slot(ring, -lane);
        return;
    }
    for (size_t i = 0; i < ring->lane_count; i++)
        if (ring->lanes[i] == lane)
            return;
    if (lane == 0 || ring->lane_count == HF__RINGING_LANES)
        ring->any = true;
    else
        ring->lanes[ring->lane_count++] = lane;
}

void hf__claimer_hear(const struct hf__heard *heard, void *arg)
{
    hf_worker *worker = arg;
    if (heard->leases_lost)
        hf__beat_alarm(worker);
    if (!heard->lanes && !heard->workflows_changed)
        return;
    pthread_mutex_lock(&worker->lock);
    if (heard->lanes)
        ring_lane(&worker->ring, heard->lane);
    worker->ring.taken |= heard->taken;
    worker->ring.workflows |= heard->workflows_changed;
    worker->standing_by = false; /* it is about to wake */
    pthread_cond_signal(&worker->claimer);
    pthread_mutex_unlock(&worker->lock);
}

static bool rings(const struct hf__ring *ring)
{
    return ring->any || ring->workflows || ring->lane_count || ring->slot_count;
}

static struct hf__ring take_ring(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    struct hf__ring ring = worker->ring;
    worker->ring = (struct hf__ring){ 0 };
    pthread_mutex_unlock(&worker->lock);
    return ring;
}

/* ---- Looking ---- */

static bool has_unknown_lane(const hf_worker *worker, const struct hf__ring *ring)
{
    for (size_t i = 0; i < ring->lane_count; i++)
        if (!hf__lanes_find(&worker->lanes, ring->lanes[i]))
            return true;
    return false;
}

/* Lanes that are still unknown belong to others. */
static hf_code note_foreign(hf_worker *worker, const struct hf__ring *ring, hf_error *err)
{
    int32_t foreign[HF__RINGING_LANES];
    size_t count = 0;
    for (size_t i = 0; i < ring->lane_count; i++)
        if (!hf__lanes_find(&worker->lanes, ring->lanes[i]))
            foreign[count++] = ring->lanes[i];
    return count ? hf__lanes_add_foreign(&worker->lanes, foreign, count, err) : HF_OK;
}

/* All that is unknown is younger than what was learned. */
static bool is_news_only(const hf_worker *worker, const struct hf__ring *ring)
{
    for (size_t i = 0; i < ring->lane_count; i++)
        if (!hf__lanes_find(&worker->lanes, ring->lanes[i]) &&
            !hf__lanes_is_new(&worker->lanes, ring->lanes[i]))
            return false;
    return true;
}

static hf_code learn(struct claimer *claimer, struct hf__ring *ring)
{
    hf_worker *worker = claimer->worker;
    int64_t now = hf__monotonic_us();
    bool old = !worker->lanes.learned_at || now - worker->lanes.learned_at >= worker->poll;
    bool unknown = has_unknown_lane(worker, ring);
    bool soon = now - worker->lanes.updated_at >= LOOK_PERIOD;
    if (!old && !ring->workflows && !unknown && !soon)
        return HF_OK;
    hf_code code = old || ring->workflows || !is_news_only(worker, ring)
                       ? hf__lanes_learn(worker, ring->workflows, &claimer->error)
                       : hf__lanes_learn_new(worker, &claimer->error);
    if (code == HF_OK)
        code = note_foreign(worker, ring, &claimer->error);
    ring->any |= ring->workflows;
    return code;
}

/* A freed slot lets lanes of its workflow give again; a wake-up that names nothing may be one. */
static void reopen(hf_worker *worker, const struct hf__ring *ring)
{
    if (ring->any || ring->any_slot)
        hf__heads_open(&worker->heads, &worker->lanes, 0);
    for (size_t i = 0; i < ring->slot_count; i++) {
        const struct hf__lane *lane = hf__lanes_find(&worker->lanes, ring->slots[i]);
        if (lane && lane->workflow)
            hf__heads_open(&worker->heads, &worker->lanes, lane->workflow);
    }
}

/* All lanes at most once a second where there are many; in between those that were not empty and those that were named. */
static hf_code look(struct claimer *claimer, const struct hf__ring *ring)
{
    hf_worker *worker = claimer->worker;
    const struct hf__heads *heads = &worker->heads;
    bool few = worker->lanes.count <= FEW_LANES;
    if (ring->any || !heads->looked_at || (few && heads->stale) ||
        hf__monotonic_us() - heads->looked_at >= LOOK_PERIOD)
        return hf__heads_look(worker, &claimer->error);
    if (ring->lane_count || heads->stale)
        return hf__heads_look_at(worker, ring->lanes, ring->lane_count, heads->stale,
                                 &claimer->error);
    return HF_OK;
}

static void look_again(hf_worker *worker)
{
    worker->heads.stale = true;
}

static void look_at_all(hf_worker *worker)
{
    worker->heads.looked_at = 0;
}

/* ---- Claiming ---- */

static int suspect_attempts(enum hf__wish wish)
{
    switch (wish) {
    case HF__WISH_IDLE_HAND: return 1;
    case HF__WISH_EMPTY_HANDS:
    case HF__WISH_ANY_HAND: return INT_MAX;
    case HF__WISH_NOTHING:
    case HF__WISH_ROOM: break;
    }
    return 0;
}

static void note_taken(hf_worker *worker, const hf_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++)
        hf__heads_taken(&worker->heads, claims->items[i].lane, claims->items[i].run.priority,
                        claims->items[i].due_at);
}

/* Other processes ring only for those who say that they sleep: a busy worker must look for itself. */
static void note_closed(hf_worker *worker, const struct hf__op *op)
{
    int64_t longest = atomic_load(&worker->idle) ? worker->poll : LOOK_PERIOD;
    hf__heads_close(&worker->heads, op->claim.closed, op->claim.closed_count,
                    hf__heads_now(&worker->heads) + longest);
}

static void take_in(hf_worker *worker, struct hf__haul *haul)
{
    const struct hf__op *op = &haul->errand.op;
    note_taken(worker, op->claim.claims);
    note_closed(worker, op);
    if (hf__heads_settle(&worker->heads, (int)op->claim.claims->count, op->claim.most))
        look_again(worker);
    hf__haul_admit(haul);
}

/* Waits for the answer to a claim, and lets handlers begin before it where the store told what it
 * will be. False: left behind. */
static bool await_claim(hf_worker *worker, struct hf__haul *haul)
{
    if (!hf__errand_await(&haul->errand, true))
        return false;
    bool told = haul->errand.told;
    if (told)
        take_in(worker, haul);
    if (told && !hf__errand_await(&haul->errand, false))
        return false;
    hf__worker_heard_from_store(worker, haul->errand.op.code, &haul->errand.error);
    if (!told && haul->errand.op.code == HF_OK && haul->errand.op.claim.claims)
        take_in(worker, haul);
    return true;
}

/* How many runs a claim brought; -1: it failed, or not all of them could be taken in. */
static int count_taken(const struct hf__haul *haul)
{
    const struct hf__op *op = &haul->errand.op;
    if (op->code != HF_OK || !op->claim.claims || haul->turn_count < op->claim.claims->count)
        return -1;
    return (int)haul->turn_count;
}

/* Claims due runs and puts them into the queue. Returns how many; -1: the store failed, or the
 * worker ends. */
static int claim(struct claimer *claimer, const struct hf__pick *pick, int hands,
                 enum hf__wish wish)
{
    hf_worker *worker = claimer->worker;
    struct hf__haul *haul = hf__haul_new(worker);
    if (!haul)
        return -1;
    struct hf__op *op = &haul->errand.op;
    op->kind = HF__OP_CLAIM;
    op->claim.heads =
        hf__heads_pick(&worker->heads, &worker->lanes, &haul->arena, pick, &op->claim.head_count);
    op->claim.most = pick->most;
    op->claim.hands = hands;
    op->claim.worker = worker->name;
    op->claim.suspect_attempts = suspect_attempts(wish);
    op->claim.arena = &haul->arena;
    if (!op->claim.heads) {
        hf__haul_free(haul);
        return -1;
    }
    hf__errand_send(&haul->errand);
    if (!await_claim(worker, haul))
        return -1;
    int got = count_taken(haul);
    if (got < 0)
        atomic_store(&worker->adopt, true); /* it may hold runs all the same */
    hf__haul_release(haul);
    return got;
}

/* ---- Saying whether it sleeps ---- */

static void say_idle(hf_worker *worker, bool idle)
{
    bool before = atomic_exchange(&worker->idle, idle);
    if (hf__beat_say(worker, NULL) != HF_OK)
        atomic_store(&worker->idle, before);
}

static void note_work(struct claimer *claimer)
{
    int64_t now = hf__monotonic_us();
    claimer->pause = 0;
    claimer->pauses = 0;
    if (!claimer->busy_since)
        claimer->busy_since = now;
    if (atomic_load(&claimer->worker->idle) && now - claimer->busy_since > BUSY_AFTER)
        say_idle(claimer->worker, false);
}

/* ---- Resting ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Nothing is due. Whoever triggers rings only for workers that say they sleep, so: say it, look
 * once more, sleep. Returns us; 0: look. */
static int64_t time_to_sleep(struct claimer *claimer)
{
    hf_worker *worker = claimer->worker;
    if (hf__heads_spent(&worker->heads)) {
        look_again(worker);
        return 0;
    }
    claimer->busy_since = 0;
    claimer->pause = 0;
    claimer->pauses = 0;
    if (!atomic_load(&worker->idle)) {
        say_idle(worker, true);
        look_at_all(worker);
        hf__heads_open(&worker->heads, &worker->lanes, 0); /* ends before that did not ring */
        return atomic_load(&worker->idle) ? 0 : STORE_PAUSE;
    }
    int64_t next = hf__heads_next(&worker->heads);
    if (hf__heads_due(&worker->heads)) /* since it was asked; hf__heads_next may have missed it */
        return 0;
    int64_t until = next ? next - hf__heads_now(&worker->heads) : worker->poll;
    return until < 1 ? 1 : sooner(until, worker->poll);
}

/* Something is due, but others have it locked, or it is paused or limited. */
static int64_t time_to_pause(struct claimer *claimer)
{
    hf_worker *worker = claimer->worker;
    int64_t next = 0, longest = claimer->pauses < SHORT_PAUSES ? SHORT_PAUSE : worker->poll;
    claimer->pauses += claimer->pauses < SHORT_PAUSES;
    claimer->pause = claimer->pause ? sooner(claimer->pause * 2, longest) : FIRST_PAUSE;
    look_again(worker);
    if (!atomic_load(&worker->idle))
        say_idle(worker, true);
    int64_t opens = hf__heads_next(&worker->heads); /* a limit, at the latest */
    if (opens && opens - hf__heads_now(&worker->heads) < claimer->pause)
        return opens - hf__heads_now(&worker->heads) + 1;
    if (claimer->pause <= SHORT_PAUSE ||
        hf__heads_ask_next(worker, &next, &claimer->error) != HF_OK || !next)
        return sooner(claimer->pause, worker->poll);
    int64_t until = next - hf__heads_now(&worker->heads);
    return until < 1 ? 1 : sooner(until, claimer->pause);
}

/* What would make another try worthwhile before the pause is over; worker->lock is held. */
static enum hf__wish unfulfilled(const hf_worker *worker)
{
    if (capacity(worker, HF__WISH_IDLE_HAND) <= 0)
        return HF__WISH_IDLE_HAND;
    return worker->held_count || worker->lent ? HF__WISH_EMPTY_HANDS : HF__WISH_NOTHING;
}

/* Sleeps for so many us, or until rung, or until hands are free for what could not be had. */
static void rest(struct claimer *claimer, int64_t us)
{
    hf_worker *worker = claimer->worker;
    int64_t until = hf__monotonic_us() + us;
    pthread_mutex_lock(&worker->lock);
    worker->prompted = false;
    worker->wish = claimer->pauses ? unfulfilled(worker) : HF__WISH_NOTHING;
    worker->standing_by =
        !claimer->pauses && worker->heads.looked_at && !hf__heads_due(&worker->heads);
    while (!worker->stopping && !worker->prompted && !rings(&worker->ring) &&
           hf__monotonic_us() < until)
        hf__worker_wait(worker, &worker->claimer, until);
    worker->standing_by = false;
    worker->wish = HF__WISH_NOTHING;
    pthread_mutex_unlock(&worker->lock);
}

/* Waits until something may be claimed in this way, or until a monotonic time. True: it had to
 * wait, so what is known of the heads is old. */
static bool await_capacity(hf_worker *worker, enum hf__wish wish, int64_t until)
{
    bool waited = false;
    pthread_mutex_lock(&worker->lock);
    while (!worker->stopping && capacity(worker, wish) <= 0 && hf__monotonic_us() < until) {
        waited = true;
        worker->wish = wish;
        hf__worker_wait(worker, &worker->claimer, until);
    }
    worker->wish = HF__WISH_NOTHING;
    waited |= worker->stopping;
    pthread_mutex_unlock(&worker->lock);
    return waited;
}

/* ---- Rounds ---- */

enum outcome { GOT_SOME, GOT_NONE, STORE_FAILED };

#define WIDER 8

static bool stopping(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool stop = worker->stopping;
    pthread_mutex_unlock(&worker->lock);
    return stop;
}

/* A claim, if there is capacity for it. One for few runs looks at few heads. What is due there may be locked, or wait for other
 * hands; then those count as spent by now, and more of the others have their turn. */
static enum outcome try_claim(struct claimer *claimer, enum hf__wish wish)
{
    hf_worker *worker = claimer->worker;
    pthread_mutex_lock(&worker->lock);
    int most = worker->stopping ? 0 : capacity(worker, wish);
    int hands = hf__claimer_free_hands(worker);
    pthread_mutex_unlock(&worker->lock);
    struct hf__pick pick = {
        .most = most,
        .breadth = most,
        .with_floors = wish == HF__WISH_ROOM,
        .passed_over = wish == HF__WISH_ANY_HAND,
    };
    int got = 0;
    if (most <= 0)
        return GOT_NONE;
    do {
        got = claim(claimer, &pick, hands > 0 ? hands : 0, wish);
        pick.breadth = pick.breadth < INT_MAX / WIDER ? pick.breadth * WIDER : INT_MAX;
    } while (got == 0 && !stopping(worker) && !worker->heads.stale &&
             hf__heads_due(&worker->heads));
    if (got < 0)
        return STORE_FAILED;
    if (got > 0)
        note_work(claimer);
    return got > 0 ? GOT_SOME : GOT_NONE;
}

/* Something has been passed over for so long that it must be a suspect of many attempts: it waits for a moment in which
 * this worker holds nothing. */
static bool must_make_way(hf_worker *worker)
{
    int64_t now = hf__monotonic_us();
    if (!worker->heads.passed_since || now - worker->heads.passed_since < worker->make_way_after)
        return false;
    worker->heads.passed_since = now;
    return true;
}

/* What is held for longer than this does not end soon. */
static int64_t end_of_patience(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    int64_t oldest = hf__monotonic_us();
    for (const hf_ctx *turn = worker->held; turn; turn = turn->older)
        if (turn->haul->sent_at < oldest)
            oldest = turn->haul->sent_at;
    pthread_mutex_unlock(&worker->lock);
    return oldest + worker->make_way_for;
}

/* A busy worker makes such a moment where that is a matter of seconds. Where it is not, the suspect goes beside others: better
 * that it may harm them than that it is never begun. */
static enum outcome make_way(struct claimer *claimer)
{
    hf_worker *worker = claimer->worker;
    await_capacity(worker, HF__WISH_EMPTY_HANDS, end_of_patience(worker));
    await_capacity(worker, HF__WISH_ANY_HAND, INT64_MAX);
    if (hf__heads_look(worker, &claimer->error) != HF_OK)
        return STORE_FAILED;
    return try_claim(claimer, HF__WISH_ANY_HAND);
}

/* Slow handlers have nothing waiting in the queue, and where something is passed over again and
 * again, it may be a suspect: then the next claim is for idle hands. */
static enum hf__wish first_wish(hf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    bool slow = ahead(worker) <= worker->threads;
    pthread_mutex_unlock(&worker->lock);
    return slow || worker->heads.passed_over ? HF__WISH_IDLE_HAND : HF__WISH_ROOM;
}

/* Claims what is due: fresh runs first, then suspects for idle hands, then one that must be
 * alone. Returns us to rest; 0: go on. */
static int64_t fetch(struct claimer *claimer)
{
    hf_worker *worker = claimer->worker;
    if (must_make_way(worker))
        return make_way(claimer) == STORE_FAILED ? STORE_PAUSE : 0;
    enum hf__wish wish = first_wish(worker);
    if (await_capacity(worker, wish, INT64_MAX))
        return 0;
    worker->heads.passed_over = false;
    for (; wish <= HF__WISH_EMPTY_HANDS; wish++) {
        enum outcome outcome = try_claim(claimer, wish);
        if (outcome != GOT_NONE)
            return outcome == GOT_SOME ? 0 : STORE_PAUSE;
        if (!hf__heads_due(&worker->heads))
            return 0; /* what was due is closed by a limit */
    }
    return time_to_pause(claimer);
}

/* A wake-up that names lanes of which something is remembered: a claim at once spares the sleeper the
 * look. */
static enum outcome answer_ring(struct claimer *claimer, const struct hf__ring *ring)
{
    hf_worker *worker = claimer->worker;
    if (ring->any || ring->taken || !ring->lane_count || !worker->heads.looked_at ||
        !hf__heads_ring(worker, ring->lanes, ring->lane_count))
        return GOT_NONE;
    enum outcome outcome = try_claim(claimer, HF__WISH_IDLE_HAND);
    if (outcome == GOT_SOME)
        look_again(worker); /* there may be more */
    return outcome;
}

static int64_t round_of(struct claimer *claimer)
{
    hf_worker *worker = claimer->worker;
    struct hf__ring ring = take_ring(worker);
    if (atomic_exchange(&worker->adopt, false)) {
        hf__standby_await(worker); /* what it brings is held, but not known yet */
        hf__adopt(worker);
    }
    hf_code code = learn(claimer, &ring);
    reopen(worker, &ring);
    enum outcome outcome = code == HF_OK ? answer_ring(claimer, &ring) : STORE_FAILED;
    if (outcome == GOT_SOME)
        return 0;
    if (outcome == STORE_FAILED || look(claimer, &ring) != HF_OK) {
        look_at_all(worker);
        return STORE_PAUSE;
    }
    return hf__heads_due(&worker->heads) ? fetch(claimer) : time_to_sleep(claimer);
}

void *hf__claimer_main(void *arg)
{
    hf_worker *worker = arg;
    struct claimer claimer = { .worker = worker };
    while (!stopping(worker)) {
        int64_t us = round_of(&claimer);
        if (us > 0)
            rest(&claimer, us);
    }
    hf__standby_await(worker);
    pthread_mutex_lock(&worker->lock);
    worker->claimer_ended = true;
    hf__worker_nudge(worker);
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

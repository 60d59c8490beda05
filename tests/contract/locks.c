/* Host locks: one holder at a time, expiring by themselves, fenced by a token that only rises. B11.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "contract/fixture.h"

#define TTL HF_MINUTES(1)

static hf_lock acquire(const char *holder)
{
    hf_lock lock;
    assert_ok(hf_lock_acquire(fx.client, &lock, "job", holder, TTL, 0, &fx.error));
    return lock;
}

static hf_code try_acquire(const char *holder)
{
    hf_lock lock;
    return hf_lock_acquire(fx.client, &lock, "job", holder, TTL, 0, &fx.error);
}

static void a_lock_has_one_holder(void **state)
{
    hf_lock lock = acquire("anna");
    (void)state;
    assert_string_equal(lock.name, "job");
    assert_string_equal(lock.holder, "anna");
    assert_int_equal(lock.until, now() + TTL);
    assert_code(try_acquire("bert"), HF_LOCKED);
    assert_non_null(strstr(fx.error.message, "anna"));
}

static void a_lock_expires_by_itself(void **state)
{
    (void)state;
    acquire("anna");
    advance(TTL - 1);
    assert_code(try_acquire("bert"), HF_LOCKED);
    advance(1);
    acquire("bert");
}

static void a_renewed_lock_lasts_longer(void **state)
{
    hf_lock lock = acquire("anna");
    (void)state;
    advance(TTL / 2);
    assert_ok(hf_lock_renew(fx.client, &lock, TTL, &fx.error));
    assert_int_equal(lock.until, now() + TTL);
    advance(TTL - 1);
    assert_code(try_acquire("bert"), HF_LOCKED);
}

static void the_token_rises_with_every_new_holder(void **state)
{
    hf_lock first = acquire("anna");
    (void)state;
    advance(TTL);
    hf_lock second = acquire("bert");
    assert_true(second.token > first.token);
    assert_ok(hf_lock_release(fx.client, &second, &fx.error));
    hf_lock third = acquire("anna");
    assert_true(third.token > second.token);
}

static void a_lost_lock_can_be_neither_renewed_nor_released(void **state)
{
    hf_lock lost = acquire("anna");
    (void)state;
    advance(TTL);
    hf_lock held = acquire("bert");
    const char *before = dump();
    assert_code(hf_lock_renew(fx.client, &lost, TTL, &fx.error), HF_STALE);
    assert_code(hf_lock_release(fx.client, &lost, &fx.error), HF_STALE);
    assert_string_equal(before, dump());
    assert_ok(hf_lock_renew(fx.client, &held, TTL, &fx.error));
}

/* Expiry alone refuses nobody; only another holder does. */
static void an_expired_lock_that_nobody_took_can_be_renewed(void **state)
{
    hf_lock lock = acquire("anna");
    (void)state;
    advance(TTL * 2);
    assert_ok(hf_lock_renew(fx.client, &lock, TTL, &fx.error));
    assert_code(try_acquire("bert"), HF_LOCKED);
}

static void a_released_lock_is_free_at_once_and_stays_released(void **state)
{
    hf_lock lock = acquire("anna");
    (void)state;
    assert_ok(hf_lock_release(fx.client, &lock, &fx.error));
    assert_code(hf_lock_release(fx.client, &lock, &fx.error), HF_STALE);
    assert_code(hf_lock_renew(fx.client, &lock, TTL, &fx.error), HF_STALE);
    acquire("bert");
}

static void two_names_are_two_locks(void **state)
{
    hf_lock other;
    (void)state;
    acquire("anna");
    assert_ok(hf_lock_acquire(fx.client, &other, "other", "bert", TTL, 0, &fx.error));
}

static void *release_soon(void *arg)
{
    struct timespec time = { .tv_nsec = 50 * 1000 * 1000 };
    hf_error err;
    nanosleep(&time, NULL);
    return hf_lock_release(fx.client, arg, &err) == HF_OK ? arg : NULL;
}

static void whoever_waits_gets_the_lock_when_it_is_released(void **state)
{
    hf_lock held = acquire("anna");
    hf_lock next;
    pthread_t thread;
    void *released = NULL;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, release_soon, &held), 0);
    assert_ok(hf_lock_acquire(fx.client, &next, "job", "bert", TTL, HF_MINUTES(2), &fx.error));
    pthread_join(thread, &released);
    assert_non_null(released);
    assert_true(next.token > held.token);
}

static void whoever_waits_too_long_is_told_who_holds_it(void **state)
{
    hf_lock lock;
    (void)state;
    acquire("anna");
    assert_code(
        hf_lock_acquire(fx.client, &lock, "job", "bert", TTL, HF_MILLISECONDS(20), &fx.error),
        HF_LOCKED);
}

enum { RIVALS = 8 };

static void *rival(void *arg)
{
    hf_lock lock;
    hf_error err;
    return hf_lock_acquire(fx.client, &lock, "job", arg, TTL, 0, &err) == HF_OK ? arg : NULL;
}

static void of_many_rivals_one_gets_the_lock(void **state)
{
    pthread_t threads[RIVALS];
    char names[RIVALS][8];
    int winners = 0;
    (void)state;
    for (int i = 0; i < RIVALS; i++) {
        snprintf(names[i], sizeof names[i], "r%d", i);
        assert_int_equal(pthread_create(&threads[i], NULL, rival, names[i]), 0);
    }
    for (int i = 0; i < RIVALS; i++) {
        void *won = NULL;
        pthread_join(threads[i], &won);
        winners += won != NULL;
    }
    assert_int_equal(winners, 1);
}

static void bad_names_holders_and_times_are_refused(void **state)
{
    hf_lock lock;
    (void)state;
    assert_code(hf_lock_acquire(fx.client, &lock, "a b", "me", TTL, 0, &fx.error), HF_INVALID);
    assert_code(hf_lock_acquire(fx.client, &lock, NULL, "me", TTL, 0, &fx.error), HF_INVALID);
    assert_code(hf_lock_acquire(fx.client, &lock, "job", "", TTL, 0, &fx.error), HF_INVALID);
    assert_code(hf_lock_acquire(fx.client, &lock, "job", "me", 1, 0, &fx.error), HF_INVALID);
    assert_code(hf_lock_acquire(fx.client, &lock, "job", "me", -1, 0, &fx.error), HF_INVALID);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_lock_has_one_holder),
    CONTRACT_TEST(a_lock_expires_by_itself),
    CONTRACT_TEST(a_renewed_lock_lasts_longer),
    CONTRACT_TEST(the_token_rises_with_every_new_holder),
    CONTRACT_TEST(a_lost_lock_can_be_neither_renewed_nor_released),
    CONTRACT_TEST(an_expired_lock_that_nobody_took_can_be_renewed),
    CONTRACT_TEST(a_released_lock_is_free_at_once_and_stays_released),
    CONTRACT_TEST(two_names_are_two_locks),
    CONTRACT_TEST(whoever_waits_gets_the_lock_when_it_is_released),
    CONTRACT_TEST(whoever_waits_too_long_is_told_who_holds_it),
    CONTRACT_TEST(of_many_rivals_one_gets_the_lock),
    CONTRACT_TEST(bad_names_holders_and_times_are_refused),
};
CONTRACT("locks", tests)

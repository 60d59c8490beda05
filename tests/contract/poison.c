/* Poison: a signal on which its run fails again and again is taken out, and the run goes on without it. F4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "contract/fixture.h"

static hf_id waiting_with_mail(const char *id)
{
    hf_id run = run_that_is(HF_WAITING, 0);
    hf_signal_spec spec = HF_SIGNAL_INIT;
    spec.id = id;
    spec.name = "bad";
    spec.payload = "{\"evil\":true}";
    spec.token = NULL;
    assert_ok(try_signal(run, &spec));
    return run;
}

static void blame(const hf_claimed *held, const char *id)
{
    hf_transition t = turn_of(held, HF_TURN_RETRY);
    t.blamed = &id;
    t.blamed_count = 1;
    commit(&t);
}

static int64_t letters(hf_id run)
{
    return sql_number("SELECT count(*) FROM dead_letter WHERE run_id = %s", sql_id(run));
}

static void a_blamed_signal_stays_and_counts_its_attempts(void **state)
{
    hf_id run = waiting_with_mail("bad-1");
    (void)state;
    for (int i = 0; i < 4; i++) {
        const hf_claimed *held = claim();
        assert_int_equal(held->mail_count, 1);
        assert_int_equal(held->mail[0].attempts, i);
        blame(held, "bad-1");
    }
    assert_int_equal(letters(run), 0);
}

static void the_fifth_blame_makes_a_dead_letter_and_the_run_goes_on_without_it(void **state)
{
    hf_id run = waiting_with_mail("bad-1");
    (void)state;
    send_signal(run, "good");
    for (int i = 0; i < 5; i++) {
        const hf_claimed *held = claim();
        assert_int_equal(held->mail_count, 2);
        blame(held, "bad-1");
    }
    assert_int_equal(letters(run), 1);
    const char *envelope =
        sql_text("SELECT envelope FROM dead_letter WHERE run_id = %s", sql_id(run));
    assert_non_null(strstr(envelope, "bad-1"));
    assert_non_null(strstr(envelope, "evil"));
    assert_string_equal(sql_text("SELECT node FROM dead_letter WHERE run_id = %s", sql_id(run)),
                        WORKER);
    const hf_claimed *held = claim();
    assert_int_equal(held->mail_count, 1);
    assert_string_equal(held->mail[0].name, "good");
}

static void a_dead_letter_sent_again_is_still_a_duplicate(void **state)
{
    hf_id run = waiting_with_mail("bad-1");
    hf_signal_spec spec = HF_SIGNAL_INIT;
    bool duplicate = false;
    (void)state;
    for (int i = 0; i < 5; i++)
        blame(claim(), "bad-1");
    spec.id = "bad-1";
    spec.name = "bad";
    assert_ok(hf_signal(fx.client, run, &spec, &duplicate, &fx.error));
    assert_true(duplicate);
    assert_int_equal(claim()->mail_count, 0);
}

static void mail_that_was_not_blamed_counts_nothing(void **state)
{
    waiting_with_mail("bad-1");
    (void)state;
    for (int i = 0; i < 7; i++)
        retry_after(claim(), 0);
    assert_int_equal(claim()->mail[0].attempts, 0);
}

static void blaming_what_is_not_there_does_no_harm(void **state)
{
    hf_id run = waiting_with_mail("bad-1");
    (void)state;
    for (int i = 0; i < 6; i++)
        blame(claim(), "nobody");
    assert_int_equal(letters(run), 0);
    assert_int_equal(claim()->mail_count, 1);
}

static const struct CMUnitTest tests[] = {
    CONTRACT_TEST(a_blamed_signal_stays_and_counts_its_attempts),
    CONTRACT_TEST(the_fifth_blame_makes_a_dead_letter_and_the_run_goes_on_without_it),
    CONTRACT_TEST(a_dead_letter_sent_again_is_still_a_duplicate),
    CONTRACT_TEST(mail_that_was_not_blamed_counts_nothing),
    CONTRACT_TEST(blaming_what_is_not_there_does_no_harm),
};
CONTRACT("poison", tests)

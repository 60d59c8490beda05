/* Sending while a name server is silent: the test's own getaddrinfo, which libcurl calls, answers when it is told to.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <netdb.h>
#include <pthread.h>
#include <cmocka.h>

#include "outbox/courier.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answers, answered;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    (void)name;
    (void)service;
    (void)hints;
    *found = NULL;
    pthread_mutex_lock(&mutex);
    while (!answers)
        pthread_cond_wait(&changed, &mutex);
    answered = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return EAI_AGAIN;
}

static void keep_receipt(void *tag, const struct hf__receipt *receipt, void *arg)
{
    (void)tag;
    *(struct hf__receipt *)arg = *receipt;
}

/* If the courier waited for the lookup, this would never end. */
static void a_lookup_that_hangs_does_not_hold_up_the_courier(void **state)
{
    const char *headers[] = { NULL };
    struct hf__request request = { .url = "http://silent.example/",
                                   .body = "",
                                   .headers = headers };
    struct hf__courier *courier = NULL;
    struct hf__receipt receipt = { 0 };
    hf_error err;
    (void)state;
    assert_int_equal(hf__courier_new(&courier, &err), HF_OK);
    assert_int_equal(hf__courier_send(courier, &request, NULL, &err), HF_OK);
    while (hf__courier_busy(courier))
        assert_int_equal(hf__courier_wait(courier, 1000, keep_receipt, &receipt, &err), HF_OK);
    hf__courier_free(courier);

    pthread_mutex_lock(&mutex);
    assert_false(answered);
    answers = true;
    pthread_cond_broadcast(&changed);
    while (!answered)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    assert_false(receipt.taken);
    assert_non_null(strstr(receipt.error, "Resolving timed out"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lookup_that_hangs_does_not_hold_up_the_courier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

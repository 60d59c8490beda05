/* Sending while a name server is silent, and through a proxy: the test's own getaddrinfo, which libcurl calls, answers what and
 * when it is told to. F3.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "outbox/courier.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answers, answered;

static const struct {
    const char *name, *address;
} names[] = { { "metadata.example", "169.254.169.254" }, { "shop.example", "192.0.2.7" } };

static int answer_for(const char *name, struct addrinfo **found)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) != 0)
            continue;
        struct {
            struct addrinfo info;
            struct sockaddr_in address;
        } *one = calloc(1, sizeof *one);
        one->address.sin_family = AF_INET;
        inet_pton(AF_INET, names[i].address, &one->address.sin_addr);
        one->info = (struct addrinfo){ .ai_family = AF_INET,
                                       .ai_socktype = SOCK_STREAM,
                                       .ai_protocol = IPPROTO_TCP,
                                       .ai_addrlen = sizeof one->address,
                                       .ai_addr = (struct sockaddr *)&one->address };
        *found = &one->info;
        return 0;
    }
    return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found)
{
    free(found);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    (void)service;
    (void)hints;
    *found = NULL;
    if (strcmp(name, "silent.example") != 0)
        return answer_for(name, found);
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

/* ---- Through a proxy ---- */

static struct proxy {
    int listener;
    int port;
    char asked[300]; /* the first line of what it was asked for; "": nothing */
} proxy;

/* Notes what it is asked for, and refuses. */
static void *refuse(void *arg)
{
    static const char answer[] = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n";
    int fd;
    (void)arg;
    while ((fd = accept(proxy.listener, NULL, NULL)) >= 0) {
        ssize_t length = recv(fd, proxy.asked, sizeof proxy.asked - 1, 0);
        proxy.asked[length > 0 ? length : 0] = '\0';
        proxy.asked[strcspn(proxy.asked, "\r\n")] = '\0';
        (void)!write(fd, answer, sizeof answer - 1);
        close(fd);
    }
    return NULL;
}

static void open_proxy(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t length = sizeof address;
    char url[60];
    pthread_t thread;
    proxy.listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(proxy.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(proxy.listener, 5), 0);
    getsockname(proxy.listener, (struct sockaddr *)&address, &length);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    setenv("http_proxy", url, 1);
    setenv("https_proxy", url, 1);
    assert_int_equal(pthread_create(&thread, NULL, refuse, NULL), 0);
    pthread_detach(thread);
}

static void send_to(const char *url, struct hf__receipt *receipt)
{
    const char *headers[] = { NULL };
    struct hf__request request = { .url = url, .body = "", .headers = headers };
    struct hf__courier *courier = NULL;
    hf_error err;
    proxy.asked[0] = '\0';
    assert_int_equal(hf__courier_new(&courier, &err), HF_OK);
    assert_int_equal(hf__courier_send(courier, &request, NULL, &err), HF_OK);
    while (hf__courier_busy(courier))
        assert_int_equal(hf__courier_wait(courier, 1000, keep_receipt, receipt, &err), HF_OK);
    hf__courier_free(courier);
    assert_false(receipt->taken);
}

static void no_proxy_is_asked_for_an_address_that_is_refused(void **state)
{
    static const char *const urls[] = {
        "http://169.254.169.254/latest/",   "http://2852039166/",       "https://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/", "http://metadata.example/", "https://metadata.example/"
    };
    struct hf__receipt receipt;
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        send_to(urls[i], &receipt);
        assert_string_equal(proxy.asked, "");
        assert_non_null(strstr(receipt.error, "one that events are not sent to"));
    }
}

/* Else the proxy could be told another address than we were. */
static void a_proxy_is_told_the_address_that_was_checked(void **state)
{
    struct hf__receipt receipt;
    (void)state;
    send_to("https://shop.example/hook", &receipt);
    assert_string_equal(proxy.asked, "CONNECT 192.0.2.7:443 HTTP/1.1");
    send_to("http://shop.example:8080/hook", &receipt);
    assert_string_equal(proxy.asked, "CONNECT 192.0.2.7:8080 HTTP/1.1");
}

static void a_name_that_only_the_proxy_knows_is_left_to_it_where_that_is_asked_for(void **state)
{
    struct hf__receipt receipt;
    (void)state;
    send_to("http://unknown.example/", &receipt);
    assert_string_equal(proxy.asked, "");
    assert_non_null(strstr(receipt.error, "HOLDFAST_DISPATCH_PROXY_RESOLVES=1"));
    setenv("HOLDFAST_DISPATCH_PROXY_RESOLVES", "1", 1);
    send_to("http://unknown.example/", &receipt);
    assert_string_equal(proxy.asked, "POST http://unknown.example/ HTTP/1.1");
    send_to("http://metadata.example/", &receipt);
    assert_string_equal(proxy.asked, "");
    unsetenv("HOLDFAST_DISPATCH_PROXY_RESOLVES");
}

static int set_up_proxy(void **state)
{
    (void)state;
    open_proxy();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lookup_that_hangs_does_not_hold_up_the_courier),
    };
    const struct CMUnitTest with_proxy[] = {
        cmocka_unit_test(no_proxy_is_asked_for_an_address_that_is_refused),
        cmocka_unit_test(a_proxy_is_told_the_address_that_was_checked),
        cmocka_unit_test(a_name_that_only_the_proxy_knows_is_left_to_it_where_that_is_asked_for),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("through a proxy", with_proxy, set_up_proxy, NULL);
}

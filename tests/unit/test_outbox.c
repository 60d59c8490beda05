/* Secrets, signatures, CloudEvents as requests, and addresses that are refused. F3.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <cmocka.h>

#include "outbox/address.h"
#include "outbox/cloudevent.h"
#include "outbox/secret.h"

#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define AS "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" /* 24 bytes */
#define TOO_LONG "whsec_" AS AS AS

/* ---- Secrets ---- */

/* The example of Standard Webhooks' own libraries. */
static void a_known_message_has_its_known_signature(void **state)
{
    char out[HF__SIGNATURE_TEXT];
    const char *body = "{\"test\": 2432232314}";
    (void)state;
    assert_int_equal(hf__secret_sign(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body,
                                     strlen(body), out, NULL),
                     HF_OK);
    assert_string_equal(out, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void made_secrets_are_valid_and_differ(void **state)
{
    char one[HF_SECRET_TEXT], two[HF_SECRET_TEXT];
    (void)state;
    assert_int_equal(hf__webhook_secret_make(one, NULL), HF_OK);
    assert_int_equal(hf__webhook_secret_make(two, NULL), HF_OK);
    assert_int_equal(hf__secret_check(one, NULL), HF_OK);
    assert_string_not_equal(one, two);
}

static void what_is_no_secret_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS=====",
        "whsec_MfKQ9r8GKYqr=wjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8G Yqr/wjUPD8ILPZIo2LaLaSw",
        TOO_LONG,
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hf__secret_check(bad[i], NULL) != HF_INVALID)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(hf__secret_check(SECRET, NULL), HF_OK);
}

/* ---- Requests ---- */

static struct hf__cloudevent sample(void)
{
    return (struct hf__cloudevent){
        .id = { { 1 } },
        .tenant = "ten",
        .workflow = "w:1",
        .run = { { 2 } },
        .type = "order \"paid\"",
        .subject = "Käse 5%",
        .trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        .created_at = INT64_C(1794801983022242),
        .payload = "{\"n\":1.50}",
    };
}

static const char *header(const struct hf__request *request, const char *name)
{
    size_t length = strlen(name);
    for (const char **line = request->headers; *line; line++)
        if (strncmp(*line, name, length) == 0 && (*line)[length] == ':')
            return *line + length + 2;
    return NULL;
}

static void the_structured_mode_is_one_json_object(void **state)
{
    struct hf__arena arena = { 0 };
    struct hf__request request;
    struct hf__cloudevent event = sample();
    (void)state;
    assert_int_equal(hf__cloudevent_request(&request, &event, "http://h", SECRET,
                                            HF_EVENT_STRUCTURED, 1614265330000000, &arena, NULL),
                     HF_OK);
    json_t *json = json_loads(request.body, 0, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "specversion")), "1.0");
    assert_string_equal(json_string_value(json_object_get(json, "type")), event.type);
    assert_string_equal(json_string_value(json_object_get(json, "subject")), event.subject);
    assert_string_equal(json_string_value(json_object_get(json, "source")),
                        "/holdfast/ten/w:1/02000000-0000-0000-0000-000000000000");
    assert_string_equal(json_string_value(json_object_get(json, "time")),
                        "2026-11-16T04:06:23.022242Z");
    assert_non_null(strstr(request.body, "\"data\":{\"n\":1.50}}"));
    assert_string_equal(header(&request, "webhook-id"), "01000000-0000-0000-0000-000000000000");
    assert_string_equal(header(&request, "webhook-timestamp"), "1614265330");
    assert_string_equal(header(&request, "Content-Type"),
                        "application/cloudevents+json; charset=utf-8");
    json_decref(json);
    hf__arena_free(&arena);
}

static void the_binary_mode_has_encoded_headers_and_the_data_alone(void **state)
{
    struct hf__arena arena = { 0 };
    struct hf__request request;
    struct hf__cloudevent event = sample();
    (void)state;
    assert_int_equal(hf__cloudevent_request(&request, &event, "http://h", SECRET, HF_EVENT_BINARY,
                                            1614265330000000, &arena, NULL),
                     HF_OK);
    assert_string_equal(request.body, "{\"n\":1.50}");
    assert_string_equal(header(&request, "ce-type"), "order%20%22paid%22");
    assert_string_equal(header(&request, "ce-subject"), "K%C3%A4se%205%25");
    assert_string_equal(header(&request, "ce-specversion"), "1.0");
    assert_string_equal(header(&request, "ce-traceparent"), event.trace);
    assert_string_equal(header(&request, "Content-Type"), "application/json");
    hf__arena_free(&arena);
}

static void what_an_event_does_not_have_is_left_out(void **state)
{
    struct hf__arena arena = { 0 };
    struct hf__request request;
    struct hf__cloudevent event = sample();
    (void)state;
    event.subject = event.trace = event.workflow = event.payload = NULL;
    assert_int_equal(hf__cloudevent_request(&request, &event, "http://h", SECRET,
                                            HF_EVENT_STRUCTURED, 0, &arena, NULL),
                     HF_OK);
    assert_null(strstr(request.body, "subject"));
    assert_null(strstr(request.body, "traceparent"));
    assert_non_null(strstr(request.body, "\"/holdfast/ten/-/"));
    assert_non_null(strstr(request.body, "\"data\":null}"));
    hf__arena_free(&arena);
}

/* ---- Addresses ---- */

static bool is_allowed(const char *text, bool public_only)
{
    struct sockaddr_in four = { .sin_family = AF_INET };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return hf__address_allowed((const struct sockaddr *)&four, public_only);
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return hf__address_allowed((const struct sockaddr *)&six, public_only);
}

static void addresses_are_refused_as_they_should_be(void **state)
{
    static const char *const open[] = { "8.8.8.8",      "172.32.0.1",     "100.128.0.1",
                                        "2606:4700::1", "::ffff:8.8.8.8", "2001:4860:4860::8888" };
    static const char *const private[] = { "127.0.0.1",
                                           "10.1.2.3",
                                           "172.16.0.1",
                                           "172.31.255.255",
                                           "192.168.0.1",
                                           "100.64.0.1",
                                           "0.0.0.0",
                                           "224.0.0.1",
                                           "255.255.255.255",
                                           "::1",
                                           "::",
                                           "fd12::1",
                                           "::ffff:10.0.0.1",
                                           "ff02::1",
                                           "64:ff9b::8.8.8.8",
                                           "64:ff9b:1::8.8.8.8",
                                           "::ffff:0:8.8.8.8",
                                           "2001::1" };
    static const char *const never[] = { "169.254.169.254",
                                         "fe80::1",
                                         "::ffff:169.254.169.254",
                                         "fd00:ec2::254",
                                         "100.100.100.200",
                                         "168.63.129.16",
                                         "192.0.0.192",
                                         "64:ff9b::169.254.169.254",
                                         "2002:a9fe:a9fe::1",
                                         "::169.254.169.254",
                                         "::ffff:0:169.254.169.254",
                                         "64:ff9b:1::169.254.169.254",
                                         "64:ff9b:1:a9fe:a9:fe00::",
                                         "64:ff9b:1:a9:fe:a9fe::",
                                         "64:ff9b:1:0:a9:fea9:fe00::",
                                         "2001:0:a9fe:a9fe::1",
                                         "fd20:ce::254",
                                         "fd00:42::42",
                                         "fd00:c1::a9fe:a9fe" };
    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_true(is_allowed(open[i], true) && is_allowed(open[i], false));
    for (size_t i = 0; i < sizeof private / sizeof *private; i++) {
        if (is_allowed(private[i], true) || !is_allowed(private[i], false))
            fail_msg("%s", private[i]);
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (is_allowed(never[i], false))
            fail_msg("%s", never[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_message_has_its_known_signature),
        cmocka_unit_test(made_secrets_are_valid_and_differ),
        cmocka_unit_test(what_is_no_secret_is_refused),
        cmocka_unit_test(the_structured_mode_is_one_json_object),
        cmocka_unit_test(the_binary_mode_has_encoded_headers_and_the_data_alone),
        cmocka_unit_test(what_an_event_does_not_have_is_left_out),
        cmocka_unit_test(addresses_are_refused_as_they_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

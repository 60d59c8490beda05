/* The stop of a server whose clients have gone quiet. It may take an hour, and so ends within the test only if it does not
 * wait for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <holdfast/transition.h>

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WORKFLOW "quiet.v1"
#define HOST "Host: localhost\r\n"

/* All runs or events together fit into no socket's buffer. */
enum { PAYLOAD = 900000, COUNT = 8, CLIENTS = 3 };

static hf_client *client;
static struct hf__server *server;
static int clients[CLIENTS];
static hf_id run;

/* Each with a large input, the last one also with a long journal. */
static void add_runs(void)
{
    hf_error err;
    hf_triggered made;
    hf_trigger_spec spec = HF_TRIGGER_INIT;
    hf_new_event events[COUNT];
    hf_transition initial = { .version = HF_TRANSITION_VERSION,
                              .turn = HF_TURN_RETRY,
                              .events = events };
    char *large = malloc(PAYLOAD + 1);
    assert_non_null(large);
    memset(large, 'x', PAYLOAD);
    large[0] = large[PAYLOAD - 1] = '"';
    large[PAYLOAD] = '\0';
    spec.workflow = WORKFLOW;
    spec.input = large;
    for (int i = 0; i < COUNT; i++) {
        events[i] = (hf_new_event){ .kind = "domain", .name = "large", .data = large };
        initial.event_count = i == COUNT - 1 ? COUNT : 0;
        assert_int_equal(hf_trigger_with(client, &made, &spec, &initial, &err), HF_OK);
    }
    run = made.id;
    free(large);
}

static int setup(void **state)
{
    hf_error err;
    hf_workflow workflow = { .name = WORKFLOW };
    struct hf__server_options options = { .open = true };
    (void)state;
    if (hf_open(&client, "sqlite::memory:", NULL, &err) != HF_OK ||
        hf_workflow_put(client, &workflow, 0, &err) != HF_OK ||
        hf__server_start(&server, client, &options, &err) != HF_OK)
        return -1;
    return 0;
}

/* The clients are there, and silent, until it has ended. */
static void stop_in_spite_of_them(void)
{
    hf__server_stop(server, HF_HOURS(1));
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    hf_close(client);
}

/* Sends a request and reads the beginning of what comes, so that it is under way. */
static void ask(const char *request, const char *beginning)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    to.sin_port = htons((uint16_t)atoi(strrchr(hf__server_url(server), ':') + 1));
    for (int i = 0; i < CLIENTS; i++) {
        char got[64] = "";
        int small = 4096;
        int fd = clients[i] = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
        assert_int_equal(recv(fd, got, strlen(beginning), MSG_WAITALL), (ssize_t)strlen(beginning));
        assert_string_equal(got, beginning);
    }
}

static void an_answer_that_nobody_reads_does_not_hold_up_the_stop(void **state)
{
    (void)state;
    add_runs();
    ask("GET /v1/runs?limit=100 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200");
    stop_in_spite_of_them();
}

static void a_stream_that_nobody_reads_does_not_hold_up_the_stop(void **state)
{
    char id[HF_ID_TEXT];
    char request[200];
    (void)state;
    add_runs();
    hf_id_format(run, id);
    snprintf(request, sizeof request,
             "GET /v1/runs/%s/events HTTP/1.1\r\n" HOST "Accept: text/event-stream\r\n\r\n", id);
    ask(request, "HTTP/1.1 200");
    stop_in_spite_of_them();
}

static void a_request_that_does_not_go_on_does_not_hold_up_the_stop(void **state)
{
    (void)state;
    ask("POST /v1/runs HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
        "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
        "HTTP/1.1 100");
    stop_in_spite_of_them();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_answer_that_nobody_reads_does_not_hold_up_the_stop, setup),
        cmocka_unit_test_setup(a_stream_that_nobody_reads_does_not_hold_up_the_stop, setup),
        cmocka_unit_test_setup(a_request_that_does_not_go_on_does_not_hold_up_the_stop, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

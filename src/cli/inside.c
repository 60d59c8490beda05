/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inside.h"

#include "util/error.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_MOST ((size_t)1 << 31) /* bytes; the worker keeps its own, smaller limits */

static const char *socket_path(void)
{
    const char *path = getenv("HOLDFAST_RUN_SOCKET");
    return path && *path ? path : NULL;
}

bool cli_means_inside(const char *operand)
{
    hf_id id;
    return socket_path() && !hf_id_parse(operand, &id) && !strchr(operand, '/');
}

/* ---- The connection ---- */

static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, length + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        if (errno == EINTR)
            continue;
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

bool cli_link_open(struct cli_worker_link *link, struct cli_session *session, bool in_step,
                   int *status)
{
    const char *path = socket_path();
    *link =
        (struct cli_worker_link){ .session = session, .fd = -1, .in = { .limit = ANSWER_MOST } };
    if (!path) {
        *status = cli_failf(session, HF_INVALID,
                            "this command works inside a program that a worker runs with --exec; "
                            "see `holdfast help worker` (HOLDFAST_RUN_SOCKET is not set)");
        return false;
    }
    if (!in_step && getenv("HOLDFAST_STEP_KEY")) {
        *status = cli_failf(session, HF_INVALID,
                            "this command does not work inside a step: a step is remembered as a "
                            "whole. Call it between the steps");
        return false;
    }
    link->fd = connect_to(path);
    if (link->fd < 0)
        *status = cli_failf(session, HF_CLOSED,
                            "the worker of this program does not answer at %.100s: %s", path,
                            strerror(errno));
    return link->fd >= 0;
}

void cli_link_close(struct cli_worker_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    hf__lines_free(&link->in);
}

int cli_link_lost(const struct cli_worker_link *link)
{
    signal(SIGPIPE, SIG_IGN); /* stderr was the worker's, too */
    int status = cli_failf(link->session, HF_CLOSED,
                           "the worker of this program is gone; the program ends, and is started "
                           "again by the next worker");
    kill(0, SIGTERM);
    return status;
}

/* What cannot be sent may have been refused half-way: the answer tells. */
static void send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* NULL: the worker is gone. */
static char *read_answer(struct cli_worker_link *link, size_t *length)
{
    char *line, bytes[65536];
    while (hf__lines_next(&link->in, &line, length) != HF__LINE_THERE) {
        ssize_t got = recv(link->fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || link->in.bytes.failed)
            return NULL;
        hf__lines_add(&link->in, bytes, (size_t)got);
    }
    return line;
}

json_t *cli_link_ask(struct cli_worker_link *link, struct hf__buffer *request, int *status)
{
    size_t length;
    hf__buffer_add_text(request, "}\n");
    if (request->failed) {
        *status = cli_failf(link->session, HF_NOMEM, "memory ran out");
        hf__buffer_free(request);
        return NULL;
    }
    send_all(link->fd, request->data, request->length);
    hf__buffer_free(request);
    char *line = read_answer(link, &length);
    if (!line) {
        *status = cli_link_lost(link);
        return NULL;
    }
    json_t *answer = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(answer)) {
        *status = cli_failf(link->session, HF_INTERNAL, "the worker's answer is not understood");
        json_decref(answer);
        return NULL;
    }
    return answer;
}

static json_t *ask_or_fail(struct cli_worker_link *link, struct hf__buffer *request, int *status)
{
    json_t *answer = cli_link_ask(link, request, status);
    if (!answer || !json_object_get(answer, "error"))
        return answer;
    *status = cli_link_fail(link, answer);
    json_decref(answer);
    return NULL;
}

static hf_code code_of(const char *name)
{
#define IF_NAMED(symbol, number, text, meaning)                                                    \
    if (name && strcmp(name, text) == 0)                                                           \
        return symbol;
    HF_ERRORS(IF_NAMED)
#undef IF_NAMED
    return HF_INTERNAL;
}

int cli_link_fail(const struct cli_worker_link *link, const json_t *answer)
{
    const char *message = json_string_value(json_object_get(answer, "message"));
    hf_code code = code_of(json_string_value(json_object_get(answer, "error")));
    return cli_failf(link->session, code, "%s", message ? message : hf_code_meaning(code));
}

json_t *cli_ask_worker(struct cli_session *session, struct hf__buffer *request, bool in_step,
                       int *status)
{
    struct cli_worker_link link;
    json_t *answer = NULL;
    if (cli_link_open(&link, session, in_step, status))
        answer = ask_or_fail(&link, request, status);
    else
        hf__buffer_free(request);
    cli_link_close(&link);
    return answer;
}

/* ---- Requests ---- */

void cli_request_begin(struct hf__buffer *request, const char *verb)
{
    *request = (struct hf__buffer){ 0 };
    hf__buffer_addf(request, "{\"do\":\"%s\"", verb);
}

void cli_request_text(struct hf__buffer *request, const char *name, const char *text)
{
    if (!text)
        return;
    hf__buffer_addf(request, ",\"%s\":", name);
    hf__buffer_add_json_string(request, text, strlen(text));
}

void cli_request_number(struct hf__buffer *request, const char *name, int64_t number)
{
    if (number)
        hf__buffer_addf(request, ",\"%s\":%" PRId64, name, number);
}

/* ---- Two commands that mean something else outside ---- */

int cli_wait_for_signal(struct cli_session *session, const char *name, int64_t timeout)
{
    int status = CLI_OK;
    struct hf__buffer request;
    cli_request_begin(&request, "wait");
    cli_request_text(&request, "name", name);
    cli_request_number(&request, "timeout", timeout);
    json_t *answer = cli_ask_worker(session, &request, false, &status);
    const char *payload = json_string_value(json_object_get(answer, "payload"));
    if (answer)
        puts(payload ? payload : "null");
    json_decref(answer);
    return status;
}

int cli_pause_here(struct cli_session *session, const char *name, int64_t limit)
{
    int status = CLI_OK;
    struct hf__buffer request;
    cli_request_begin(&request, "pause");
    cli_request_text(&request, "name", name);
    cli_request_number(&request, "us", limit);
    json_decref(cli_ask_worker(session, &request, false, &status));
    return status;
}

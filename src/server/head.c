/* SPDX-License-Identifier: Apache-2.0 */
#include "server/head.h"

#include "server/inner.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* Of a query. libmicrohttpd has memory for about as many, and falls silent beyond. */
enum { MOST_PARAMETERS = 200 };

/* ---- Heads that arrive ---- */

static void leave(struct hf__connection *one)
{
    if (one->previous)
        one->previous->next = one->next;
    else
        one->server->arriving = one->next;
    if (one->next)
        one->next->previous = one->previous;
    one->next = one->previous = NULL;
}

static void enter(struct hf__connection *one)
{
    struct hf__server *server = one->server;
    one->next = server->arriving;
    if (one->next)
        one->next->previous = one;
    server->arriving = one;
}

void hf__head_end(struct hf__connection *one)
{
    if (one && one->arriving)
        leave(one);
    if (one)
        one->arriving = false;
}

/* The method lies before the target, and nobody tells where it begins: only its last letter is looked at. No other method that is
 * served ends so, and an answer to one of them may do without its body. */
static bool is_head(const char *target)
{
    const char *at = target - 1;
    while (*at == ' ')
        at--;
    return at[-1] == 'D';
}

/* In place of libmicrohttpd. Over TLS it is only hung up on. */
static void shut(const struct hf__connection *one, const char *status, const char *type,
                 const char *title)
{
    char body[200], answer[500];
    int length = snprintf(body, sizeof body,
                          "{\"type\":\"" HF__PROBLEM_PREFIX "%s\",\"title\":\"%s\","
                          "\"status\":%.3s,\"detail\":null}",
                          type, title, status);
    int all = snprintf(answer, sizeof answer,
                       "HTTP/1.1 %s\r\nConnection: close\r\n"
                       "Content-Type: application/problem+json\r\nContent-Length: %d\r\n"
                       "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\r\n%s",
                       status, length, one->is_head ? "" : body);
    if (!one->server->options.certificate)
        (void)!send(one->fd, answer, (size_t)all, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(one->fd, SHUT_RDWR);
}

static bool is_target(unsigned char c)
{
    return c > ' ' && c != 0x7f;
}

static size_t count_of(const char *text, char c)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == c;
    return count;
}

void *hf__on_target(void *arg, const char *target, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct hf__connection *one = info ? info->socket_context : NULL;
    (void)arg;
    if (!one)
        return NULL;
    one->target = strlen(target);
    one->is_head = is_head(target);
    one->bad_target = false;
    for (const char *at = target; *at; at++)
        one->bad_target = one->bad_target || !is_target((unsigned char)*at);
    if (!one->arriving)
        enter(one);
    one->arriving = true;
    if (count_of(target, '&') >= MOST_PARAMETERS) {
        one->bad_target = true;
        shut(one, "400 Bad Request", "invalid", "the query has too many parameters");
    }
    return NULL;
}

/* ---- A Content-Length that libmicrohttpd cannot read ---- */

struct lengths {
    bool bad;
    bool large;
};

static enum MHD_Result look_at_length(void *arg, enum MHD_ValueKind kind, const char *name,
                                      size_t name_length, const char *value, size_t value_length)
{
    struct lengths *lengths = arg;
    uint64_t number = 0;
    (void)kind;
    if (name_length != strlen("Content-Length") || strcasecmp(name, "Content-Length") != 0)
        return MHD_YES;
    lengths->bad = lengths->bad || value_length == 0;
    for (size_t i = 0; i < value_length; i++) {
        unsigned digit = (unsigned)value[i] - '0';
        lengths->bad = lengths->bad || digit > 9;
        lengths->large = lengths->large || number > (UINT64_MAX - 9) / 10;
        number = number * 10 + digit;
    }
    return MHD_YES;
}

/* Several heads may be arriving, and the log does not say of which it tells. */
static void shut_if_unreadable(struct hf__connection *one)
{
    struct lengths lengths = { 0 };
    /* Only where the whole head is there: one that was closed may have lost its memory, and is still to be told of. */
    if (!MHD_get_connection_info(one->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE))
        return;
    MHD_get_connection_values_n(one->connection, MHD_HEADER_KIND, look_at_length, &lengths);
    if (lengths.bad)
        shut(one, "400 Bad Request", "invalid", "the Content-Length is not a number");
    else if (lengths.large)
        shut(one, "413 Content Too Large", "too_large", "the body is too large");
    else
        return;
    hf__head_end(one);
}

void hf__on_library_log(void *arg, const char *format, va_list values)
{
    struct hf__server *server = arg;
    (void)values;
    if (!strstr(format, "Content-Length"))
        return;
    for (struct hf__connection *one = server->arriving, *next; one; one = next) {
        next = one->next;
        shut_if_unreadable(one);
    }
}

/* ---- A head that has arrived ---- */

/* libmicrohttpd puts NULs into the head, where names and lines end, and hands out the places of what lies between. So what
 * it hands out has to follow each other without a gap, from the first byte to the last. */
struct walk {
    const char *at;
    const char *fault;
};

static bool is_token(const char *text, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && !memchr(others, c, sizeof others - 1))
            return false;
    }
    return length > 0;
}

static bool is_value(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return false;
    return true;
}

/* A lone LF leaves one NUL. Later versions of the library leave a part of the line's end as it is. */
static bool take_line_end(struct walk *walk)
{
    bool right = (walk->at[0] == '\0' || walk->at[0] == '\r') &&
                 (walk->at[1] == '\0' || walk->at[1] == '\n');
    walk->at += 2;
    return right;
}

static enum MHD_Result walk_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                   size_t name_length, const char *value, size_t value_length)
{
    struct walk *walk = arg;
    (void)kind;
    if (!is_token(name, name_length))
        walk->fault = "the name of a header is no token";
    else if (!is_value(value, value_length))
        walk->fault = "a header's value has control characters";
    else if (name != walk->at)
        walk->fault = "a header is folded, or its line does not end with CRLF";
    if (walk->fault)
        return MHD_NO;
    walk->at = name + name_length + 1;
    walk->at += strspn(walk->at, " \t");
    if (value == walk->at)
        walk->at += value_length;
    if (value + value_length != walk->at || !take_line_end(walk))
        walk->fault = "a header's value has control characters, or its line does not end with CRLF";
    return walk->fault ? MHD_NO : MHD_YES;
}

const char *hf__head_fault(const struct hf__connection *one, const char *method, const char *url,
                           const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(one->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct walk walk = { .at = version + strlen(version) };
    if (!info || one->bad_target || url != method + strlen(method) + 1 ||
        version != url + one->target + 1 || !take_line_end(&walk))
        return "the request's line is not a method, a target and a version with one space between";
    MHD_get_connection_values_n(one->connection, MHD_HEADER_KIND, walk_header, &walk);
    if (!walk.fault && (!take_line_end(&walk) || walk.at != method + info->header_size))
        walk.fault = "a header is folded, or a line does not end with CRLF";
    return walk.fault;
}

/* A plain HTTP client for triggers, and a store full of runs to list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define MAX_LINES 1000

static int reach(const struct bench *bench)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)bench->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("holdfast-bench: connect");
        exit(1);
    }
    return fd;
}

/* One connection, and the answer that it waits for. */
struct line {
    int fd;
    size_t used;
    char answer[2000];
};

static void give_up(const struct line *line)
{
    fprintf(stderr, "holdfast-bench: the server answered %.*s\n", (int)line->used, line->answer);
    exit(1);
}

static void ask(struct line *line, const char *input)
{
    char body[200];
    char request[400];
    int length =
        snprintf(body, sizeof body, "{\"workflow\":\"" BENCH_WORKFLOW "\",\"input\":%s}", input);
    int total = snprintf(request, sizeof request,
                         "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         "application/json\r\nContent-Length: %d\r\n\r\n%s",
                         length, body);
    line->used = 0;
    if (write(line->fd, request, (size_t)total) != total)
        give_up(line);
}

/* Reads what has come; true at the end of the answer, which is small and has a length. */
static bool hear(struct line *line)
{
    ssize_t got = read(line->fd, line->answer + line->used, sizeof line->answer - line->used - 1);
    if (got <= 0)
        give_up(line);
    line->used += (size_t)got;
    line->answer[line->used] = '\0';
    const char *end = strstr(line->answer, "\r\n\r\n");
    const char *length = end ? strcasestr(line->answer, "\r\nContent-Length: ") : NULL;
    if (!length || line->used < (size_t)(end + 4 - line->answer) + strtoul(length + 18, NULL, 10))
        return false;
    if (strncmp(line->answer, "HTTP/1.1 201", 12) != 0)
        give_up(line);
    return true;
}

void bench_http_trigger(const struct bench *bench, int *fd, const char *input)
{
    if (*fd < 0)
        *fd = reach(bench);
    struct line line = { .fd = *fd };
    ask(&line, input);
    while (!hear(&line))
        ;
}

static void ask_for(struct line *line, long i)
{
    char input[32];
    snprintf(input, sizeof input, "{\"i\":%ld}", i);
    ask(line, input);
}

/* The callers are connections of one thread, so that the processors are the server's as far as that goes. */
void bench_trigger_http(struct bench *bench)
{
    static struct line lines[MAX_LINES];
    static struct pollfd ready[MAX_LINES];
    int callers = bench->callers < MAX_LINES ? bench->callers : MAX_LINES;
    long asked = 0;
    for (int i = 0; i < callers; i++) {
        lines[i].fd = reach(bench);
        ready[i] = (struct pollfd){ .fd = lines[i].fd, .events = POLLIN };
    }
    double from = bench_seconds();
    for (int i = 0; i < callers; i++)
        ask_for(&lines[i], asked++);
    for (long answered = 0; answered < bench->count;) {
        poll(ready, (nfds_t)callers, -1);
        for (int i = 0; i < callers; i++) {
            if (!ready[i].revents || !hear(&lines[i]))
                continue;
            answered++;
            if (asked < bench->count)
                ask_for(&lines[i], asked++);
        }
    }
    bench_rate(bench, "trigger_http", bench->count, bench_seconds() - from);
}

enum { CHUNK = 5000 };

struct labels {
    char key[40], subject[40], reference[40], tag[40], flow_key[40];
};

static void describe(hf_trigger_spec *spec, struct labels *labels, const char *const *tags, long i)
{
    snprintf(labels->key, sizeof labels->key, "k-%ld", i);
    snprintf(labels->subject, sizeof labels->subject, "subject-%ld", i % 100000);
    snprintf(labels->reference, sizeof labels->reference, "order-%ld", i % 1000000);
    snprintf(labels->tag, sizeof labels->tag, "tag-%ld", i % 1000);
    snprintf(labels->flow_key, sizeof labels->flow_key, "customer-%ld", i / 100 % 1000);
    *spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    spec->workflow = BENCH_WORKFLOW;
    spec->flow_key = i % 100 == 0 ? labels->flow_key : NULL;
    spec->key = labels->key;
    spec->subject = labels->subject;
    spec->reference = labels->reference;
    spec->tags = tags;
    spec->tag_count = 1;
}

void bench_fill_varied(struct bench *bench)
{
    static hf_trigger_spec specs[CHUNK];
    static hf_triggered answers[CHUNK];
    static struct labels labels[CHUNK];
    static const char *tags[CHUNK];
    hf_error err;
    bench_open(bench);
    for (long done = 0; done < bench->count;) {
        size_t n = 0;
        for (; n < CHUNK && done < bench->count; n++, done++) {
            tags[n] = labels[n].tag;
            describe(&specs[n], &labels[n], &tags[n], done);
        }
        if (hf_trigger_many(bench->client, answers, specs, n, &err) != HF_OK)
            bench_die("trigger", &err);
    }
}

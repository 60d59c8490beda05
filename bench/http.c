/* A plain HTTP client for triggers, and a store full of runs to list.
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

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

/* Reads up to the end of one answer, which is small and has a length. */
static bool read_answer(int fd, char *answer, size_t size)
{
    size_t used = 0;
    for (;;) {
        ssize_t got = read(fd, answer + used, size - used - 1);
        if (got <= 0)
            return false;
        used += (size_t)got;
        answer[used] = '\0';
        const char *end = strstr(answer, "\r\n\r\n");
        const char *length = end ? strcasestr(answer, "\r\nContent-Length: ") : NULL;
        if (length && used >= (size_t)(end + 4 - answer) + strtoul(length + 18, NULL, 10))
            return true;
    }
}

void bench_http_trigger(const struct bench *bench, int *fd, const char *input)
{
    char body[200];
    char request[400];
    char answer[2000];
    if (*fd < 0)
        *fd = reach(bench);
    int length =
        snprintf(body, sizeof body, "{\"workflow\":\"" BENCH_WORKFLOW "\",\"input\":%s}", input);
    int total = snprintf(request, sizeof request,
                         "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                         "application/json\r\nContent-Length: %d\r\n\r\n%s",
                         length, body);
    if (write(*fd, request, (size_t)total) != total || !read_answer(*fd, answer, sizeof answer) ||
        strncmp(answer, "HTTP/1.1 201", 12) != 0) {
        fprintf(stderr, "holdfast-bench: the server answered %.300s\n", answer);
        exit(1);
    }
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

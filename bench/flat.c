/* Does a claim stay as cheap when millions are pending? 200 workflows, 150 of them served, 5 priorities, and half as many
 * runs again scheduled for the future.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "client/ask.h"
#include "client/client.h"
#include "util/buffer.h"

#define WORKFLOWS 200
#define SERVED 150
#define PRIORITIES 5
#define PAGE 5000
#define CLAIM_SIZE 100
#define SAMPLES 41
#define FIRST_SIZE 1000

static char names[WORKFLOWS][32];

static void create_workflows(struct bench *bench)
{
    hf_error err;
    for (int i = 0; i < WORKFLOWS; i++) {
        snprintf(names[i], sizeof names[i], "%s.job%03d.v1", i < SERVED ? "served" : "other", i);
        hf_workflow workflow = { .name = names[i] };
        if (hf_workflow_put(bench->client, &workflow, 0, &err) != HF_OK)
            bench_die("workflow", &err);
    }
}

static void fill(struct bench *bench, long count, int64_t delay)
{
    static hf_trigger_spec specs[PAGE];
    static hf_triggered answers[PAGE];
    for (long from = 0; from < count; from += PAGE) {
        hf_error err;
        size_t n = (size_t)(count - from < PAGE ? count - from : PAGE);
        for (size_t i = 0; i < n; i++) {
            long k = from + (long)i;
            specs[i] = (hf_trigger_spec)HF_TRIGGER_INIT;
            specs[i].workflow = names[k % WORKFLOWS];
            specs[i].priority = (int)(k / WORKFLOWS % PRIORITIES);
            specs[i].delay = delay ? delay + k : 0;
        }
        if (hf_trigger_many(bench->client, answers, specs, n, &err) != HF_OK)
            bench_die("fill", &err);
    }
}

struct heads {
    struct hf__claim_head *items;
    size_t count;
};

/* The lanes as JSON: [a, b, ...]. */
static char *served_lanes(struct bench *bench)
{
    struct hf__ask ask;
    hf_error err;
    struct hf__buffer json = { 0 };
    struct hf__cell *c = hf__ask_begin(&ask, bench->client->engine, HF__STMT_SERVED_LANES);
    c[0] = hf__number(bench->client->tenant_id);
    c[1] = hf__text("served.");
    c[2] = hf__text("served/");
    if (hf__ask_send(&ask, &err) != HF_OK)
        bench_die("ask", &err);
    hf__buffer_add_text(&json, "[");
    for (int i = 0; i < ask.out.nrows; i++)
        hf__buffer_addf(&json, "%s%d", i ? "," : "",
                        (int)hf__as_number(hf__table_row(&ask.out, i)[0]));
    hf__buffer_add_text(&json, "]");
    hf__ask_end(&ask);
    return hf__buffer_take(&json);
}

static struct heads find_heads(struct bench *bench, const char *lanes)
{
    struct hf__ask ask;
    hf_error err;
    hf__ask_begin(&ask, bench->client->engine, HF__STMT_FIND_HEADS)[0] = hf__text(lanes);
    if (hf__ask_send(&ask, &err) != HF_OK)
        bench_die("ask", &err);
    struct heads heads = { .count = (size_t)ask.out.nrows };
    heads.items = calloc(heads.count + 1, sizeof *heads.items);
    for (size_t i = 0; heads.items && i < heads.count; i++) {
        const struct hf__cell *c = hf__table_row(&ask.out, (int)i);
        heads.items[i].lane = (int32_t)hf__as_number(c[0]);
        heads.items[i].priority = (int)hf__as_number(c[1]);
    }
    hf__ask_end(&ask);
    return heads;
}

static double claim_once(struct bench *bench, const struct heads *heads)
{
    struct hf__arena arena;
    hf_error err;
    hf__arena_init(&arena, 65536);
    struct hf__op op = {
        .kind = HF__OP_CLAIM,
        .claim = { .heads = heads->items,
                   .head_count = heads->count,
                   .most = CLAIM_SIZE,
                   .worker = "bench",
                   .lease = HF_HOURS(1),
                   .arena = &arena },
        .error = &err,
    };
    double from = bench_seconds();
    hf__engine_apply(bench->client->engine, &op, 1);
    double ms = (bench_seconds() - from) * 1000;
    if (op.code != HF_OK)
        bench_die("claim", &err);
    hf__arena_free(&arena);
    return ms;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void measure(struct bench *bench, const char *lanes, long pending)
{
    double claims[SAMPLES], looks[SAMPLES];
    int samples = pending < SAMPLES * CLAIM_SIZE ? 7 : SAMPLES;
    for (int i = 0; i < samples; i++) {
        double from = bench_seconds();
        struct heads heads = find_heads(bench, lanes);
        looks[i] = (bench_seconds() - from) * 1000;
        claims[i] = claim_once(bench, &heads);
        free(heads.items);
    }
    qsort(claims, (size_t)samples, sizeof *claims, by_size);
    qsort(looks, (size_t)samples, sizeof *looks, by_size);
    printf("{\"workload\":\"claim_flat\",\"pending\":%ld,\"claim_ms\":%.3f,\"heads_ms\":%.3f}\n",
           pending, claims[samples / 2], looks[samples / 2]);
    fflush(stdout);
}

void bench_claim_flat(struct bench *bench)
{
    bench_open(bench);
    create_workflows(bench);
    fill(bench, bench->count / 2, HF_DAYS(1));
    fill(bench, FIRST_SIZE, 0);
    char *lanes = served_lanes(bench);
    struct heads heads = find_heads(bench, lanes);
    claim_once(bench, &heads);
    free(heads.items);
    measure(bench, lanes, FIRST_SIZE);
    for (long size = FIRST_SIZE * 10, have = FIRST_SIZE; have < bench->count; size *= 10) {
        size = size < bench->count ? size : bench->count;
        fill(bench, size - have, 0);
        have = size;
        measure(bench, lanes, size);
    }
    free(lanes);
}

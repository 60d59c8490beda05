/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top.h"

#include "client/ask.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_MOST = 20000 }; /* are read at a look; of more, as many stand for all */

void cli_top_free(struct cli_top *top)
{
    hf__measure_free(top->measure);
    hf_worker_list_free(top->workers);
    free(top->pulses);
    top->measure = NULL;
    top->workers = NULL;
    top->pulses = NULL;
}

/* ---- Rates ---- */

static hf_code mark(struct cli_top *top, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, top->client->engine, HF__STMT_JOURNAL_END);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && top->mark_count == CLI_TOP_SECONDS + 1)
        memmove(&top->marks[0], &top->marks[1], sizeof top->marks[0] * (size_t)--top->mark_count);
    if (code == HF_OK) {
        top->marks[top->mark_count].position = hf__as_number(hf__table_row(&ask.out, 0)[0]);
        top->marks[top->mark_count++].at = hf__monotonic_us();
    }
    hf__ask_end(&ask);
    return code;
}

struct counting {
    struct hf__table in, out, ignored;
};

static hf_code count_lines(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                           hf_error *err)
{
    struct counting *counting = arg;
    hf_code code = HF_OK;
    hf__table_init(&counting->out, counting->out.arena, counting->out.ncolumns);
    if (driver->statements[HF__STMT_ALLOW_BITMAPS].sql)
        code = driver->send(conn, HF__STMT_ALLOW_BITMAPS, NULL, &counting->ignored, err);
    if (code == HF_OK)
        code = driver->send(conn, HF__STMT_COUNT_LINES, &counting->in, &counting->out, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

static struct cli_pulse *pulse_of(struct cli_top *top, const char *workflow)
{
    for (size_t i = 0; i < top->measure->count; i++)
        if (strcmp(top->pulses[i].depth->workflow, workflow) == 0)
            return &top->pulses[i];
    return NULL;
}

static void add_rate(struct cli_pulse *pulse, const char *event, double rate)
{
    if (strcmp(event, "created") == 0)
        pulse->triggered += rate;
    else if (strcmp(event, "started") == 0)
        pulse->started += rate;
    else if (strcmp(event, "succeeded") == 0)
        pulse->succeeded += rate;
    else if (strcmp(event, "retried") == 0)
        pulse->retried += rate;
    else
        pulse->failed += rate;
}

static hf_code add_rates(struct cli_top *top, hf_error *err)
{
    int64_t first = top->marks[0].position;
    int64_t last = top->marks[top->mark_count - 1].position;
    double seconds = (double)(top->marks[top->mark_count - 1].at - top->marks[0].at) / 1e6;
    int64_t after = last - first > LINES_MOST ? last - LINES_MOST : first;
    if (last == first)
        return HF_OK;
    double weight = (double)(last - first) / (double)(last - after) / seconds;
    struct hf__arena arena = { 0 };
    struct counting counting;
    hf__table_init(&counting.in, &arena, 3);
    hf__table_init(&counting.out, &arena, 3);
    hf__table_init(&counting.ignored, &arena, 1);
    struct hf__cell *c = hf__table_add(&counting.in);
    c[0] = hf__number(top->client->tenant_id);
    c[1] = hf__number(after);
    c[2] = hf__number(last);
    hf_code code = hf__engine_transact(top->client->engine, count_lines, &counting, NULL, err);
    for (int i = 0; code == HF_OK && i < counting.out.nrows; i++) {
        const struct hf__cell *row = hf__table_row(&counting.out, i);
        struct cli_pulse *pulse = pulse_of(top, hf__as_text(row[0]));
        if (pulse)
            add_rate(pulse, hf__as_text(row[1]), (double)hf__as_number(row[2]) * weight);
    }
    hf__arena_free(&arena);
    return code;
}

/* ---- Looking ---- */

static double busyness(const struct cli_pulse *pulse)
{
    return (double)(pulse->depth->due + pulse->depth->leased) + pulse->triggered + pulse->started;
}

static int by_busyness(const void *left, const void *right)
{
    const struct cli_pulse *a = left;
    const struct cli_pulse *b = right;
    if (busyness(a) != busyness(b))
        return busyness(a) > busyness(b) ? -1 : 1;
    return strcmp(a->depth->workflow, b->depth->workflow);
}

hf_code cli_top_look(struct cli_top *top, hf_error *err)
{
    cli_top_free(top);
    hf_code code = mark(top, err);
    if (code == HF_OK)
        code = hf__measure(top->client->engine, top->client->tenant_id, &top->measure, err);
    if (code == HF_OK)
        code = hf_workers(top->client, &top->workers, err);
    if (code == HF_OK) {
        top->pulses = hf__calloc(top->measure->count + 1, sizeof *top->pulses);
        code = top->pulses ? HF_OK : hf__nomem(err);
    }
    for (size_t i = 0; code == HF_OK && i < top->measure->count; i++)
        top->pulses[i].depth = &top->measure->items[i];
    if (code == HF_OK)
        code = add_rates(top, err);
    if (code == HF_OK)
        qsort(top->pulses, top->measure->count, sizeof *top->pulses, by_busyness);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "client/live.h"

#include "client/answer.h"
#include "client/ask.h"
#include "client/client.h"
#include "kernel/batch.h"
#include "util/error.h"

hf_code hf__newest_position(hf_client *client, int64_t *out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_NEWEST_POSITION);
    hf_code code = hf__ask_send(&ask, err);
    *out = code == HF_OK && ask.out.nrows > 0 ? hf__as_number(hf__table_row(&ask.out, 0)[0]) : 0;
    hf__ask_end(&ask);
    return code;
}

/* All answers here are a pointer to items and a count. */
struct list {
    void *items;
    size_t count;
};

/* Sends the question and makes room for its rows, which are in ask->out until hf__ask_end. */
static hf_code answer_list(struct hf__ask *ask, struct list **out, size_t size, hf_error *err)
{
    struct list *list = hf__answer_new(sizeof *list);
    hf_code code = list ? HF_OK : hf__nomem(err);
    if (code == HF_OK) {
        hf__table_init(&ask->out, hf__answer_arena(list), ask->out.ncolumns);
        code = hf__ask_send(ask, err);
    }
    if (code == HF_OK) {
        list->count = (size_t)ask->out.nrows;
        list->items = hf__arena_calloc(hf__answer_arena(list), list->count + 1, size);
        code = list->items ? HF_OK : hf__nomem(err);
    }
    if (code == HF_OK)
        *out = list;
    else
        hf__answer_free(list);
    return code;
}

static void read_line(struct hf__feed_line *line, const struct hf__cell *c)
{
    *line = (struct hf__feed_line){
        .position = hf__as_number(c[0]),
        .tenant = (int)hf__as_number(c[1]),
        .run = hf__as_uuid(c[2]),
        .seq = hf__as_number(c[3]),
        .kind = hf__event_kind_name((int)hf__as_number(c[4])),
        .name = hf__as_text(c[5]),
        .actor = hf__as_text(c[6]),
        .step = hf__as_text(c[7]),
        .at = hf__as_number(c[8]),
        .workflow = hf__as_text(c[9]),
        .key = hf__as_text(c[10]),
    };
}

hf_code hf__feed_read(hf_client *client, struct hf__feed_page **out, int64_t after, int most,
                      hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_READ_FEED);
    struct list *list = NULL;
    c[0] = hf__number(after);
    c[1] = hf__number(most);
    hf_code code = answer_list(&ask, &list, sizeof(struct hf__feed_line), err);
    if (code == HF_OK) {
        *out = (struct hf__feed_page *)list;
        for (size_t i = 0; i < list->count; i++)
            read_line(&(*out)->items[i], hf__table_row(&ask.out, (int)i));
    }
    hf__ask_end(&ask);
    return code;
}

static void read_queue(struct hf__queue *queue, const struct hf__cell *c)
{
    *queue = (struct hf__queue){
        .name = hf__as_text(c[0]),
        .paused = hf__as_number(c[1]) != 0,
        .due = hf__as_number(c[2]),
        .delayed = hf__as_number(c[3]),
        .waiting = hf__as_number(c[4]),
        .leased = hf__as_number(c[5]),
        .failed = hf__as_number(c[6]),
        .oldest_due = hf__as_number(c[7]),
    };
}

hf_code hf__queues_read(hf_client *client, struct hf__queues **out, int tenant, hf_error *err)
{
    struct hf__ask ask;
    struct list *list = NULL;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_MEASURE_QUEUES);
    c[0] = hf__number(tenant);
    c[1] = hf__number(HF__MOST_QUEUED);
    hf_code code = answer_list(&ask, &list, sizeof(struct hf__queue), err);
    if (code == HF_OK) {
        *out = (struct hf__queues *)list;
        for (size_t i = 0; i < list->count; i++)
            read_queue(&(*out)->items[i], hf__table_row(&ask.out, (int)i));
    }
    hf__ask_end(&ask);
    return code;
}

hf_code hf__minutes_read(hf_client *client, struct hf__minute_counts **out, int tenant,
                         int64_t after, int64_t upto, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_COUNT_MINUTES);
    struct list *list = NULL;
    c[0] = hf__number(tenant);
    c[1] = hf__number(after);
    c[2] = hf__number(upto);
    hf_code code = answer_list(&ask, &list, sizeof(struct hf__minute_count), err);
    if (code == HF_OK) {
        *out = (struct hf__minute_counts *)list;
        for (size_t i = 0; i < list->count; i++) {
            const struct hf__cell *row = hf__table_row(&ask.out, (int)i);
            (*out)->items[i] =
                (struct hf__minute_count){ hf__as_number(row[0]), hf__as_text(row[1]),
                                           hf__as_number(row[2]) };
        }
    }
    hf__ask_end(&ask);
    return code;
}

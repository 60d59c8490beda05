/* Lists of runs: which of them, by the index that finds them, and then their rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/read.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/id.h"

enum {
    DEFAULT_LIMIT = 50,
    FIRST_STEPS = 1000,     /* runs to look at before an index of rare ones is asked */
    FIRST_REACH = 2000,     /* entries of the queue to look at first */
    MOST_STEPS = 1 << 28,   /* or entries to look at at once */
    MOST_CANDIDATES = 4000, /* to be looked at at once */
    GROWTH = 4,             /* of what is asked for from round to round */
};

/* How far a run's id may be from created_at, in milliseconds, before the index run_odd has it; in_time goes by the
 * same. */
enum { ID_BEHIND = 1000, ID_AHEAD = 100 };

static const hf_id lowest;
static const hf_id highest = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                 0xff, 0xff, 0xff, 0xff, 0xff } };

/* A list by time goes through three ranges of ids. Where the ids of that time are, all runs are looked at; above and below,
 * those whose ids tell another time. */
enum range { ABOVE, WITHIN, BELOW };

struct list {
    hf_client *client;
    const hf_filter *filter;
    bool brief;
    int limit;
    hf_id before; /* candidates come from before this */
    hf_id low;    /* the first id of the range at hand */
    enum range range;
    hf_runs *page;  /* with room for `limit` */
    int64_t bytes;  /* in it */
    bool more;      /* one that matches and that the page has no room for */
    bool exhausted; /* no candidates are left in the range */
    bool cut;       /* what was looked at last did not hold enough, but there is more */
    int candidates; /* to ask for at once */
    enum hf__stmt source;
    int steps;  /* of the newest to look at next, before the source is asked; 0: ask it */
    int walked; /* steps of the last time */
    int reach;  /* entries of the queue that the source may look at next */
};

/* ---- Candidates ---- */

static bool by_queue(const hf_filter *filter)
{
    return filter->statuses || filter->workflow || filter->prefix || filter->overdue;
}

/* The index that leaves most runs out. Where there is none, all are looked at. */
static enum hf__stmt source_of(const hf_filter *filter)
{
    if (!hf_id_is_zero(filter->parent))
        return HF__STMT_FIND_CHILDREN;
    if (filter->key && !filter->deleted)
        return HF__STMT_FIND_BY_KEY;
    if (filter->reference)
        return HF__STMT_FIND_BY_REFERENCE;
    if (filter->subject)
        return HF__STMT_FIND_BY_SUBJECT;
    if (filter->tag)
        return HF__STMT_FIND_BY_TAG;
    if (filter->flow_key)
        return HF__STMT_FIND_BY_FLOW_KEY;
    if (filter->deleted)
        return HF__STMT_FIND_DELETED;
    if (filter->current_step && !by_queue(filter))
        return HF__STMT_FIND_BY_STEP;
    if (filter->overdue)
        return HF__STMT_FIND_OVERDUE;
    if (by_queue(filter))
        return HF__STMT_FIND_BY_STATE;
    return HF__STMT_FIND_NEWEST;
}

/* These look into the queue, which has another order: they may end before they have found enough. */
static bool is_queued(const struct list *list)
{
    const hf_filter *filter = list->filter;
    return list->source == HF__STMT_FIND_OVERDUE ||
           (list->source == HF__STMT_FIND_BY_STATE &&
            (!filter->statuses || filter->statuses & 1u << HF_PENDING));
}

/* All regular runs with ids before the cursor were made before this. */
static int64_t run_before(const struct list *list)
{
    int64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | list->before.bytes[i];
    return (ms + ID_BEHIND + 1) * 1000;
}

/* What a source takes after the tenant, the cursor and how many. */
static hf_code fill_source(struct hf__ask *ask, const struct list *list, hf_error *err)
{
    const hf_filter *filter = list->filter;
    struct hf__cell *c = hf__table_row(&ask->in, 0) + 3;
    char *end = NULL;
    switch (ask->stmt) {
    case HF__STMT_FIND_CHILDREN: c[0] = hf__uuid(&filter->parent); return HF_OK;
    case HF__STMT_FIND_BY_KEY: c[0] = hf__text(filter->key); return HF_OK;
    case HF__STMT_FIND_BY_REFERENCE: c[0] = hf__text(filter->reference); return HF_OK;
    case HF__STMT_FIND_BY_SUBJECT: c[0] = hf__text(filter->subject); return HF_OK;
    case HF__STMT_FIND_BY_TAG: c[0] = hf__text(filter->tag); return HF_OK;
    case HF__STMT_FIND_BY_FLOW_KEY: c[0] = hf__text(filter->flow_key); return HF_OK;
    case HF__STMT_FIND_BY_STEP: c[0] = hf__text(filter->current_step); return HF_OK;
    case HF__STMT_FIND_ODD:
        c[0] = hf__uuid(&list->low);
        c[1] = hf__number_or_null(filter->created_after);
        c[2] = hf__number_or_null(filter->created_before);
        return HF_OK;
    default: /* by workflow */
        end = filter->prefix ? hf__prefix_end(&ask->arena, filter->prefix) : NULL;
        c[0] = hf__text(filter->workflow);
        c[1] = hf__text(filter->prefix);
        c[2] = hf__text(end);
        if (ask->stmt == HF__STMT_FIND_DELETED)
            return filter->prefix && !end ? hf__nomem(err) : HF_OK;
        c[3] = hf__number(is_queued(list) ? run_before(list) : 0);
        c[4] = hf__number(list->reach);
        if (ask->stmt == HF__STMT_FIND_BY_STATE)
            c[5] = hf__number(filter->statuses ? filter->statuses : (1u << HF_STATUS_COUNT) - 1);
        return filter->prefix && !end ? hf__nomem(err) : HF_OK;
    }
}

/* Fills in the answer of `ask`, newest first. */
static hf_code find(struct list *list, struct hf__ask *ask, int most, hf_error *err)
{
    struct hf__cell *c = hf__table_row(&ask->in, 0);
    hf_code code = HF_OK;
    if (ask->stmt == HF__STMT_FIND_NEWEST) {
        code = hf__filter_fill(ask, list->client, list->filter, &list->before, most, err);
        c[18] = hf__number_or_null(list->steps);
        c[19] = hf__uuid(&list->low);
    } else {
        c[0] = hf__number(list->client->tenant_id);
        c[1] = hf__uuid(&list->before);
        c[2] = hf__number(most);
        code = fill_source(ask, list, err);
    }
    return code == HF_OK ? hf__ask_send(ask, err) : code;
}

/* ---- Rows ---- */

static char *ids_json(struct hf__ask *found, int count)
{
    struct hf__buffer json = { 0 };
    char id[HF_ID_TEXT];
    for (int i = 0; i < count; i++) {
        hf_id_format(hf__as_uuid(hf__table_row(&found->out, i)[0]), id);
        hf__buffer_addf(&json, "%s\"%s\"", i ? "," : "[", id);
    }
    hf__buffer_add_text(&json, "]");
    char *text = json.failed ? NULL : hf__arena_printf(&found->arena, "%s", json.data);
    hf__buffer_free(&json);
    return text;
}

/* Those that the page has room for; one more than that tells that the list goes on. */
static void take_rows(struct list *list, const struct hf__table *rows, int total_column)
{
    int64_t held = 0;
    for (int i = 0; i < rows->nrows && !list->more; i++) {
        const struct hf__cell *row = hf__table_row(rows, i);
        int64_t total = hf__as_number(row[total_column]);
        list->more = list->page->count == (size_t)list->limit ||
                     (list->page->count > 0 && list->bytes + total > HF__PAGE_BYTES);
        if (!list->more) {
            hf__run_read(&list->page->items[list->page->count++], row);
            held = total;
        }
    }
    list->bytes += held;
}

static hf_code read_rows(struct list *list, struct hf__ask *found, int count, hf_error *err)
{
    struct hf__ask ask;
    char *ids = ids_json(found, count);
    struct hf__cell *c = hf__ask_begin(&ask, list->client->engine, HF__STMT_READ_RUNS);
    hf__table_init(&ask.out, hf__answer_arena(list->page), ask.out.ncolumns);
    hf_code code = ids ? hf__filter_fill(&ask, list->client, list->filter, &list->before,
                                         list->limit + 1 - (int)list->page->count, err)
                       : hf__nomem(err);
    c[18] = hf__text(ids);
    c[19] = hf__number(list->bytes < HF__PAGE_BYTES ? HF__PAGE_BYTES - list->bytes : 0);
    c[20] = hf__number(list->brief);
    if (code == HF_OK)
        code = hf__ask_send(&ask, err);
    if (code == HF_OK)
        take_rows(list, &ask.out, ask.out.ncolumns - 1);
    hf__ask_end(&ask);
    return code;
}

/* ---- Pages ---- */

/* The rows of those that were found. Where what was looked at did not hold enough, the last row is the one to go on from. */
static hf_code take_found(struct list *list, struct hf__ask *found, int most, hf_error *err)
{
    int count = found->out.nrows;
    hf_id last = count > 0 ? hf__as_uuid(hf__table_row(&found->out, count - 1)[0]) : list->before;
    list->cut = found->out.ncolumns == 2 && count > 0 &&
                !hf__as_number(hf__table_row(&found->out, count - 1)[1]);
    list->exhausted = count < most && !list->cut;
    count -= list->cut;
    size_t had = list->page->count;
    hf_code code = count > 0 ? read_rows(list, found, count, err) : HF_OK;
    if (hf__id_compare(last, list->before) < 0)
        list->before = last;
    /* One that fills the page by itself hid those behind it. */
    if (list->page->count > had && !list->more && list->bytes > HF__PAGE_BYTES) {
        list->before = list->page->items[list->page->count - 1].id;
        list->exhausted = false;
    }
    return code;
}

static int more(int number)
{
    return number < MOST_STEPS ? number * GROWTH : number;
}

static int first_steps(const struct list *list)
{
    int page = GROWTH * (list->limit + 1);
    if (list->source != HF__STMT_FIND_BY_STATE && list->source != HF__STMT_FIND_OVERDUE)
        return 0;
    return page > FIRST_STEPS ? page : FIRST_STEPS;
}

/* To look at the queue and at runs in the order of their ids in turn, and at more of both each time: so it does not take much
 * more than the better of them needs. Where the queue led on, the next runs may be what is looked for. */
static void choose_next(struct list *list, bool got_on)
{
    if (list->steps > 0) {
        list->walked = list->steps;
        list->steps = 0;
    } else {
        list->reach = more(list->reach);
        list->steps = got_on ? first_steps(list) : more(list->walked);
    }
}

/* One round: candidates, and the rows of those that match. What is common is among the newest; only where those are not
 * enough, the index of the rare ones is asked, which costs more. */
static hf_code go_on(struct list *list, hf_error *err)
{
    struct hf__ask found;
    enum hf__stmt stmt = list->steps > 0 ? HF__STMT_FIND_NEWEST : list->source;
    bool exact = stmt == HF__STMT_FIND_NEWEST; /* looks at all filters by itself */
    int most = exact ? list->limit + 1 - (int)list->page->count : list->candidates;
    hf_id from = list->before;
    hf__ask_begin(&found, list->client->engine, stmt);
    hf_code code = find(list, &found, most, err);
    if (code == HF_OK)
        code = take_found(list, &found, most, err);
    hf__ask_end(&found);
    if (!exact && list->candidates < MOST_CANDIDATES)
        list->candidates *= GROWTH;
    if (list->cut)
        choose_next(list, hf__id_compare(list->before, from) < 0);
    return code;
}

/* ---- Ranges ---- */

/* The first id of those that regular runs of the time may have, and the first behind them. */
static hf_id first_id(const hf_filter *filter)
{
    return filter->created_after ? hf__id_at(filter->created_after / 1000 - ID_BEHIND) : lowest;
}

static hf_id end_id(const hf_filter *filter)
{
    return filter->created_before ? hf__id_at(filter->created_before / 1000 + ID_AHEAD + 1)
                                  : highest;
}

static void enter(struct list *list, enum range range)
{
    hf_id first = first_id(list->filter);
    hf_id end = end_id(list->filter);
    hf_id top = range == ABOVE ? highest : range == WITHIN ? end : first;
    if (hf__id_compare(top, list->before) < 0)
        list->before = top;
    list->low = range == ABOVE ? end : range == WITHIN ? first : lowest;
    list->range = range;
    list->exhausted = false;
    list->candidates = list->limit + 1;
    list->source = range == WITHIN ? source_of(list->filter) : HF__STMT_FIND_ODD;
    list->steps = first_steps(list);
    list->reach = FIRST_REACH;
}

/* Goes to the next range that may hold anything; false where there is none. */
static bool find_range(struct list *list)
{
    bool passed = hf__id_compare(list->before, list->low) <= 0;
    while ((list->exhausted || passed) && list->range < BELOW) {
        enter(list, list->range + 1);
        passed = hf__id_compare(list->before, list->low) <= 0;
    }
    return !list->exhausted && !passed;
}

static hf_code fill_page(struct list *list, hf_error *err)
{
    hf_code code = HF_OK;
    enter(list, ABOVE);
    while (code == HF_OK && !list->more && find_range(list))
        code = go_on(list, err);
    if (code == HF_OK && list->more) {
        char *next = hf__arena_alloc(hf__answer_arena(list->page), HF_ID_TEXT);
        if (!next)
            return hf__nomem(err);
        hf_id_format(list->page->items[list->page->count - 1].id, next);
        list->page->next = next;
    }
    return code;
}

static hf_code cursor_of(const hf_filter *filter, hf_id *before, hf_error *err)
{
    *before = highest;
    if (!filter->cursor || hf_id_parse(filter->cursor, before))
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "\"%.60s\" is not a cursor: pass the `next` of the page before",
                    filter->cursor);
}

hf_code hf__list(hf_client *client, hf_runs **out, const hf_filter *filter, bool brief,
                 hf_error *err)
{
    static const hf_filter any = HF_FILTER_INIT;
    struct list list = { .client = client, .filter = filter ? filter : &any, .brief = brief };
    hf_code code = hf__check_filter(list.filter, err);
    if (code == HF_OK)
        code = cursor_of(list.filter, &list.before, err);
    if (code != HF_OK)
        return code;
    list.limit = list.filter->limit ? list.filter->limit : DEFAULT_LIMIT;
    list.candidates = list.limit + 1;
    list.page = hf__answer_new(sizeof *list.page);
    if (list.page)
        list.page->items = hf__arena_calloc(hf__answer_arena(list.page), (size_t)list.limit,
                                            sizeof *list.page->items);
    code = list.page && list.page->items ? fill_page(&list, err) : hf__nomem(err);
    if (code == HF_OK)
        *out = list.page;
    else
        hf__answer_free(list.page);
    return code;
}

hf_code hf_list(hf_client *client, hf_runs **out, const hf_filter *filter, hf_error *err)
{
    return hf__list(client, out, filter, false, err);
}

/* The outbox: reading it, and what becomes of its deliveries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "client/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "client/read.h"
#include "util/error.h"
#include "util/text.h"

#define DEFAULT_LIMIT 50
#define MAX_LIMIT 1000

/* ---- Lists ---- */

static hf_code check_filter(const hf_outbox_filter *filter, int64_t *before, hf_error *err)
{
    char *end = NULL;
    hf_code code =
        hf__check_version("hf_outbox_filter", filter->version, HF_OUTBOX_FILTER_VERSION, err);
    if (code == HF_OK && (filter->limit < 0 || filter->limit > MAX_LIMIT))
        code = hf__fail(err, HF_INVALID, "the limit must be from 1 to %d", MAX_LIMIT);
    if (code == HF_OK && filter->type)
        code = hf__label_check("event type", filter->type, HF__MAX_LABEL, err);
    *before = filter->cursor ? strtoll(filter->cursor, &end, 10) : 0;
    if (code == HF_OK && filter->cursor && (*before <= 0 || *end != '\0'))
        code = hf__fail(err, HF_INVALID,
                        "\"%.60s\" is not a cursor: pass the `next` of the page before",
                        filter->cursor);
    return code;
}

/* A type, or the range of those that begin with what stands before the star. */
static hf_code fill_type(struct hf__ask *ask, const char *type, hf_error *err)
{
    struct hf__cell *c = hf__table_row(&ask->in, 0);
    size_t length = type ? strlen(type) : 0;
    if (!type)
        return HF_OK;
    bool prefix = type[length - 1] == '*';
    char *first = hf__arena_strndup(&ask->arena, type, length - prefix);
    char *last = first && prefix ? hf__prefix_end(&ask->arena, first) : first;
    if (!last)
        return hf__nomem(err);
    c[3] = hf__text(first);
    c[4] = hf__text(last);
    return HF_OK;
}

static void read_entry(hf_outbox_entry *entry, const struct hf__cell *c)
{
    *entry = (hf_outbox_entry){
        .id = hf__as_uuid(c[0]),
        .position = hf__as_number(c[1]),
        .run = hf__as_uuid(c[2]),
        .type = hf__as_text(c[3]),
        .payload = hf__as_text(c[4]),
        .created_at = hf__as_number(c[5]),
        .published_at = hf__as_number(c[6]),
        .pending = (int)hf__as_number(c[7]),
        .attempts = (int)hf__as_number(c[8]),
        .last_error = hf__as_text(c[9]),
    };
}

static hf_code fill_page(hf_outbox_page *page, const struct hf__table *out, int limit,
                         hf_error *err)
{
    struct hf__arena *arena = hf__answer_arena(page);
    bool more;
    page->count = hf__page_rows(out, limit, HF__PAGE_BYTES, &more);
    page->items = hf__arena_calloc(arena, page->count + 1, sizeof *page->items);
    if (!page->items)
        return hf__nomem(err);
    for (size_t i = 0; i < page->count; i++)
        read_entry(&page->items[i], hf__table_row(out, (int)i));
    if (more) {
        page->next =
            hf__arena_printf(arena, "%lld", (long long)page->items[page->count - 1].position);
        if (!page->next)
            return hf__nomem(err);
    }
    return HF_OK;
}

hf_code hf_outbox_list(hf_client *client, hf_outbox_page **out, const hf_outbox_filter *filter,
                       hf_error *err)
{
    static const hf_outbox_filter any = HF_OUTBOX_FILTER_INIT;
    int64_t before;
    if (!filter)
        filter = &any;
    hf_code code = check_filter(filter, &before, err);
    if (code != HF_OK)
        return code;
    int limit = filter->limit ? filter->limit : DEFAULT_LIMIT;
    struct hf__ask ask;
    struct hf__cell *c =
        hf__ask_begin(&ask, client->engine,
                      filter->undelivered ? HF__STMT_LIST_UNDELIVERED : HF__STMT_LIST_OUTBOX);
    hf_outbox_page *page = hf__answer_new(sizeof *page);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__number_or_null(before);
    c[2] = hf__number(limit + 1);
    c[5] = hf__uuid_or_null(&filter->run);
    c[6] = hf__number(HF__PAGE_BYTES);
    code = fill_type(&ask, filter->type, err);
    if (code == HF_OK)
        code = hf__ask_into(&ask, page, err);
    if (code == HF_OK)
        code = fill_page(page, &ask.out, limit, err);
    if (code == HF_OK)
        *out = page;
    else
        hf__answer_free(page);
    hf__ask_end(&ask);
    return code;
}

void hf_outbox_page_free(hf_outbox_page *page)
{
    hf__answer_free(page);
}

hf_code hf_outbox_lag_get(hf_client *client, hf_outbox_lag *out, hf_error *err)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, client->engine, HF__STMT_COUNT_UNDELIVERED)[0] =
        hf__number(client->tenant_id);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK) {
        const struct hf__cell *c = hf__table_row(&ask.out, 0);
        out->undelivered = hf__as_number(c[0]);
        out->oldest_at = hf__as_number(c[1]);
    }
    hf__ask_end(&ask);
    return code;
}

/* ---- Deliveries ---- */

static void read_delivery(struct hf__delivery *delivery, const struct hf__cell *c)
{
    *delivery = (struct hf__delivery){
        .position = hf__as_number(c[0]),
        .id = hf__as_uuid(c[1]),
        .run = hf__as_uuid(c[2]),
        .type = hf__as_text(c[3]),
        .payload = hf__as_text(c[4]),
        .created_at = hf__as_number(c[5]),
        .attempts = (int)hf__as_number(c[6]),
        .workflow = hf__as_text(c[7]),
        .subject = hf__as_text(c[8]),
        .key = hf__as_text(c[9]),
        .trace = hf__as_text(c[10]),
        .behind = hf__as_number(c[11]),
    };
}

hf_code hf__deliveries_load(hf_client *client, struct hf__delivery **out, size_t *count,
                            const struct hf__delivery_range *range, struct hf__arena *arena,
                            hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_LOAD_DELIVERIES);
    c[0] = hf__uuid(&range->subscription);
    c[1] = hf__number(range->after);
    c[2] = hf__number(range->most);
    for (int i = 0; i < HF__MOST_HELD; i++)
        c[3 + i] = hf__uuid_or_null(&range->held[i]);
    hf__table_init(&ask.out, arena, ask.out.ncolumns);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK) {
        *count = (size_t)ask.out.nrows;
        *out = hf__arena_calloc(arena, *count + 1, sizeof **out);
        code = *out ? HF_OK : hf__nomem(err);
    }
    for (size_t i = 0; code == HF_OK && i < *count; i++)
        read_delivery(&(*out)[i], hf__table_row(&ask.out, (int)i));
    hf__ask_end(&ask);
    return code;
}

struct ending {
    hf_id subscription;
    const struct hf__delivery *const *ended;
    size_t count;
};

static hf_code send(const struct hf__driver *driver, struct hf__conn *conn, enum hf__stmt stmt,
                    const struct ending *ending, struct hf__arena *arena, hf_error *err)
{
    const struct hf__statement *statement = &driver->statements[stmt];
    struct hf__table in, out;
    if (!statement->sql)
        return HF_OK;
    hf__table_init(&in, arena, statement->nparams);
    hf__table_init(&out, arena, statement->ncolumns);
    for (size_t i = 0; i < ending->count; i++) {
        struct hf__cell *c = hf__table_add(&in);
        if (stmt == HF__STMT_END_DELIVERIES) {
            c[0] = hf__uuid(&ending->subscription);
            c[1] = hf__number(ending->ended[i]->position);
        } else {
            c[0] = hf__uuid(&ending->ended[i]->id);
        }
    }
    if (in.failed)
        return hf__nomem(err);
    hf_code code = driver->send(conn, stmt, &in, &out, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

/* Each statement sees what others committed before the locks were had. */
static hf_code end_all(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                       hf_error *err)
{
    static const enum hf__stmt steps[] = {
        HF__STMT_LOCK_OUTBOX,
        HF__STMT_END_DELIVERIES,
        HF__STMT_PUBLISH_OUTBOX,
    };
    struct hf__arena arena = { 0 };
    hf_code code = HF_OK;
    for (size_t i = 0; code == HF_OK && i < sizeof steps / sizeof *steps; i++)
        code = send(driver, conn, steps[i], arg, &arena, err);
    hf__arena_free(&arena);
    return code;
}

hf_code hf__deliveries_end(hf_client *client, hf_id subscription,
                           const struct hf__delivery *const *ended, size_t count, hf_error *err)
{
    struct ending ending = { subscription, ended, count };
    return count ? hf__engine_transact(client->engine, end_all, &ending, NULL, err) : HF_OK;
}

hf_code hf__delivery_blame(hf_client *client, hf_id subscription,
                           const struct hf__delivery *delivery, const char *why, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_BLAME_DELIVERY);
    c[0] = hf__uuid(&subscription);
    c[1] = hf__number(delivery->position);
    c[2] = hf__text(why);
    hf_code code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code;
}

hf_code hf__outbox_expire(hf_client *client, int64_t older_than, int limit, int64_t *removed,
                          hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_EXPIRE_OUTBOX);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__number(older_than);
    c[2] = hf__number(limit);
    hf_code code = hf__ask_send(&ask, err);
    if (code == HF_OK && removed)
        *removed = ask.out.nrows;
    hf__ask_end(&ask);
    return code;
}

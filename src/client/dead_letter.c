/* Dead letters: looking at them, sending them again, removing them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/dead_letter.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "client/answer.h"
#include "client/ask.h"
#include "client/check.h"
#include "client/client.h"
#include "util/error.h"

#define DEFAULT_LIMIT 50
#define MAX_LIMIT 1000
#define REQUEUED "dead_letter_requeued"
#define DISCARDED "dead_letter_discarded"

void hf_dead_letter_free(hf_dead_letter *letter)
{
    hf__answer_free(letter);
}

void hf_dead_letters_free(hf_dead_letters *letters)
{
    hf__answer_free(letters);
}

/* ---- Looking ---- */

static hf_dead_letter read_letter(const struct hf__cell *row)
{
    return (hf_dead_letter){
        .id = hf__as_uuid(row[0]),
        .run = hf__as_uuid(row[1]),
        .reason = hf__as_text(row[2]),
        .envelope = hf__as_text(row[3]),
        .node = hf__as_text(row[4]),
        .created_at = hf__as_number(row[5]),
    };
}

static hf_code no_such_letter(hf_error *err)
{
    return hf__fail(err, HF_NOT_FOUND, "there is no such dead letter in this tenant");
}

hf_code hf_dead_letter_get(hf_client *client, hf_dead_letter **out, hf_id id, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_GET_LETTER);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    hf_dead_letter *letter = hf__answer_new(sizeof *letter);
    hf_code code = hf__ask_into(&ask, letter, err);
    if (code == HF_OK && ask.out.nrows == 0)
        code = no_such_letter(err);
    if (code == HF_OK) {
        *letter = read_letter(hf__table_row(&ask.out, 0));
        *out = letter;
    } else {
        hf__answer_free(letter);
    }
    hf__ask_end(&ask);
    return code;
}

static hf_code check_filter(const hf_dead_letter_filter *filter, hf_id *before, hf_error *err)
{
    hf_code code = hf__check_version("hf_dead_letter_filter", filter->version,
                                     HF_DEAD_LETTER_FILTER_VERSION, err);
    if (code == HF_OK)
        code = hf__check_optional_label("reason", filter->reason, err);
    if (code == HF_OK && (filter->limit < 0 || filter->limit > MAX_LIMIT))
        code = hf__fail(err, HF_INVALID, "limit must be from 1 to %d", MAX_LIMIT);
    if (code == HF_OK && filter->cursor && !hf_id_parse(filter->cursor, before))
        code = hf__fail(err, HF_INVALID,
                        "\"%.60s\" is not a cursor: pass the `next` of the page before",
                        filter->cursor);
    return code;
}

static hf_code fill_page(hf_dead_letters *page, const struct hf__table *out, int limit,
                         hf_error *err)
{
    struct hf__arena *arena = hf__answer_arena(page);
    bool more;
    page->count = hf__page_rows(out, limit, HF__PAGE_BYTES, &more);
    page->items = hf__arena_calloc(arena, page->count + 1, sizeof *page->items);
    if (!page->items)
        return hf__nomem(err);
    for (size_t i = 0; i < page->count; i++)
        page->items[i] = read_letter(hf__table_row(out, (int)i));
    if (!more)
        return HF_OK;
    char *next = hf__arena_alloc(arena, HF_ID_TEXT);
    if (!next)
        return hf__nomem(err);
    hf_id_format(page->items[page->count - 1].id, next);
    page->next = next;
    return HF_OK;
}

hf_code hf_dead_letter_list(hf_client *client, hf_dead_letters **out,
                            const hf_dead_letter_filter *filter, hf_error *err)
{
    static const hf_dead_letter_filter any = HF_DEAD_LETTER_FILTER_INIT;
    hf_id before = { { 0 } };
    if (!filter)
        filter = &any;
    hf_code code = check_filter(filter, &before, err);
    if (code != HF_OK)
        return code;
    int limit = filter->limit ? filter->limit : DEFAULT_LIMIT;
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, client->engine, HF__STMT_LIST_LETTERS);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid_or_null(&before);
    c[2] = hf__number(limit + 1);
    c[3] = hf__uuid_or_null(&filter->run);
    c[4] = hf__text(filter->reason);
    c[5] = hf__number(HF__PAGE_BYTES);
    hf_dead_letters *page = hf__answer_new(sizeof *page);
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

/* ---- Settling ---- */

struct settling {
    const struct hf__table *in;
    struct hf__table out;
};

static hf_code take_away(const struct hf__driver *driver, struct hf__conn *conn, void *arg,
                         hf_error *err)
{
    struct settling *settling = arg;
    hf__table_init(&settling->out, settling->out.arena, 1);
    hf_code code = driver->send(conn, HF__STMT_SETTLE_LETTER, settling->in, &settling->out, err);
    return code == HF_OK ? driver->sync(conn, err) : code;
}

/* The letter goes and its run's journal says who did what; those who follow the journal hear of it. */
static hf_code settle(hf_client *client, hf_id id, hf_id run, const char *event, hf_error *err)
{
    struct hf__arena arena = { 0 };
    struct hf__table in;
    struct hf__wake wake = { .watched = &run, .watched_count = hf_id_is_zero(run) ? 0 : 1 };
    hf__table_init(&in, &arena, 4);
    struct hf__cell *c = hf__table_add(&in);
    c[0] = hf__number(client->tenant_id);
    c[1] = hf__uuid(&id);
    c[2] = hf__text(event);
    c[3] = hf__text(client->actor);
    struct settling settling = { .in = &in };
    hf__table_init(&settling.out, &arena, 1);
    hf_code code = in.failed
                       ? hf__nomem(err)
                       : hf__engine_transact(client->engine, take_away, &settling, &wake, err);
    if (code == HF_OK && settling.out.nrows == 0)
        code = no_such_letter(err);
    hf__arena_free(&arena);
    return code;
}

hf_code hf_dead_letter_discard(hf_client *client, hf_id id, hf_error *err)
{
    hf_dead_letter *letter = NULL;
    hf_code code = hf_dead_letter_get(client, &letter, id, err);
    if (code == HF_OK)
        code = settle(client, id, letter->run, DISCARDED, err);
    hf_dead_letter_free(letter);
    return code;
}

/* ---- Requeueing ---- */

static hf_code read_envelope(hf_signal_spec *spec, const json_t *envelope, hf_error *err)
{
    spec->type = json_string_value(json_object_get(envelope, "type"));
    spec->name = json_string_value(json_object_get(envelope, "name"));
    spec->payload = json_string_value(json_object_get(envelope, "payload"));
    spec->token = json_string_value(json_object_get(envelope, "token"));
    if (!spec->name || !spec->type)
        return hf__fail(err, HF_NOT_ALLOWED,
                        "this letter is no signal that could be sent again: discard it");
    if (strcmp(spec->type, "child") == 0)
        return hf__fail(err, HF_NOT_ALLOWED,
                        "the end of a child is told once and cannot be sent again: discard it");
    return HF_OK;
}

/* A signal with a stale token would be dropped, and the letter with it. */
static hf_code check_run(hf_client *client, const hf_dead_letter *letter, const char *token,
                         hf_error *err)
{
    hf_run *run = NULL;
    hf_code code = HF_NOT_FOUND;
    if (!hf_id_is_zero(letter->run))
        code = hf_get(client, &run, letter->run, err);
    if (code == HF_NOT_FOUND || (code == HF_OK && run->deleted_at))
        code = hf__fail(err, HF_NOT_ALLOWED, "its run is gone: the letter can only be discarded");
    else if (code == HF_OK && hf_status_finished(run->status))
        code = hf__fail(err, HF_NOT_ALLOWED,
                        "its run has finished (%s) and takes no more signals: retry the run first, "
                        "or discard the letter",
                        hf_status_name(run->status));
    else if (code == HF_OK && token &&
             (!run->waiting_token || strcmp(token, run->waiting_token) != 0))
        code =
            hf__fail(err, HF_NOT_ALLOWED,
                     "its run does not wait for it now: the letter's token is \"%.100s\"", token);
    hf_run_free(run);
    return code;
}

static hf_code send_again(hf_client *client, const hf_dead_letter *letter, const json_t *envelope,
                          hf_error *err)
{
    hf_signal_spec spec = HF_SIGNAL_INIT;
    char text[HF_ID_TEXT];
    char id[HF_ID_TEXT + sizeof "requeue:"];
    hf_id_format(letter->id, text);
    snprintf(id, sizeof id, "requeue:%s", text);
    spec.id = id;
    hf_code code = read_envelope(&spec, envelope, err);
    if (code == HF_OK)
        code = check_run(client, letter, spec.token, err);
    if (code == HF_OK)
        code = hf__steer(client, letter->run, &spec, err);
    return code;
}

/* Two transactions: if the second does not happen, the letter is still there, and requeueing it again sends a signal of
 * the same id, which the mailbox knows. */
hf_code hf_dead_letter_requeue(hf_client *client, hf_id id, hf_error *err)
{
    hf_dead_letter *letter = NULL;
    hf_code code = hf_dead_letter_get(client, &letter, id, err);
    json_t *envelope = code == HF_OK ? json_loads(letter->envelope, JSON_DECODE_ANY, NULL) : NULL;
    if (code == HF_OK)
        code = send_again(client, letter, envelope, err);
    if (code == HF_OK)
        code = settle(client, id, letter->run, REQUEUED, err);
    json_decref(envelope);
    hf_dead_letter_free(letter);
    return code;
}

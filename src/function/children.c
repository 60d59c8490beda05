/* Children: runs started by a function, whose ends come back as mail.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "client/brood.h"
#include "client/ids.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/id.h"
#include "util/json_members.h"
#include "worker/gate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORTION = 4000, /* of one commit, if they are alike; the first of several is half as large */
    SIMULATED_PORTION = 2,    /* for families as small as the simulator's */
    NOT_ALIKE_MOST = 25000,   /* of one call, and one commit */
    ID_BYTES = HF_ID_TEXT + 2 /* in a list */
};

/* ---- Starting ---- */

static size_t portion_of(const hf_ctx *ctx)
{
    return ctx->apply ? SIMULATED_PORTION : PORTION;
}

static void add_id(struct hf__buffer *text, hf_id id)
{
    char id_text[HF_ID_TEXT];
    hf_id_format(id, id_text);
    hf__buffer_add_text(text, text->length > 1 ? ",\"" : "\"");
    hf__buffer_add_text(text, id_text);
    hf__buffer_add_text(text, "\"");
}

/* "[\"id\",…]" */
static char *write_ids(const hf_id *ids, size_t count)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "[");
    for (size_t i = 0; i < count; i++)
        add_id(&json, ids[i]);
    hf__buffer_add_text(&json, "]");
    return hf__buffer_take(&json);
}

/* "\"id\"" */
static bool read_id(const char *json, size_t length, hf_id *id)
{
    char text[HF_ID_TEXT];
    if (length != sizeof text + 1)
        return false;
    memcpy(text, json + 1, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    return hf_id_parse(text, id);
}

static bool make_room_for_kin(hf_ctx *ctx, size_t count)
{
    struct hf__function *function = ctx->function;
    size_t needed = function->kin_count + count;
    if (needed <= function->kin_room)
        return true;
    size_t room = needed > 2 * function->kin_room ? needed : 2 * function->kin_room;
    struct hf__kin *bigger = hf__arena_calloc(&ctx->arena, room, sizeof *bigger);
    if (bigger && function->kin_count)
        memcpy(bigger, function->kin, function->kin_count * sizeof *bigger);
    if (bigger)
        function->kin_room = room;
    function->kin = bigger ? bigger : function->kin;
    return bigger != NULL;
}

static hf_code adopt(hf_ctx *ctx, const char *full, const hf_id *ids, size_t count)
{
    struct hf__function *function = ctx->function;
    bool good = make_room_for_kin(ctx, count);
    for (size_t i = 0; good && i < count; i++) {
        good = hf__idmap_put(&function->children, ids[i], ctx);
        function->kin[function->kin_count++] = (struct hf__kin){ full, ids[i] };
    }
    return good ? HF_OK : hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
}

static bool read_list(const char *array, hf_id *ids, size_t count, struct hf__brood *brood)
{
    const char *item;
    bool good = true;
    size_t at = 0;
    size_t length;
    while (hf__json_item_next(array, &at, &item, &length)) {
        if (brood->count < count)
            good &= read_id(item, length, &ids[brood->count]);
        brood->count++;
    }
    brood->started = brood->count;
    return good;
}

static bool read_row(const char *object, hf_id *ids, size_t count, struct hf__brood *brood)
{
    json_t *output = json_loads(object, JSON_DECODE_ANY, NULL);
    bool good = hf__brood_read(output, brood);
    for (size_t i = 0; good && i < count && i < brood->count; i++)
        good = hf__id_step(brood->first, i, &ids[i]);
    json_decref(output);
    return good;
}

static hf_code read_ids(hf_ctx *ctx, const struct hf__entry *entry, hf_id *ids, size_t count,
                        size_t *started)
{
    const char *output = entry->output ? entry->output : "[]";
    struct hf__brood brood = { 0 };
    bool good = *output == '[' ? read_list(output, ids, count, &brood)
                               : read_row(output, ids, count, &brood);
    *started = brood.started;
    if (good && brood.count == count)
        return HF_OK;
    return hf__function_misfit(ctx,
                               "\"%s\" starts %zu children where %zu are remembered: the code or "
                               "its input has changed under a running run",
                               entry->name, count, brood.count);
}

static char *write_output(const hf_ctx *ctx, const hf_id *ids, size_t count, size_t started)
{
    if (count <= portion_of(ctx) && count * ID_BYTES <= hf__function_max_payload(ctx) / 2)
        return write_ids(ids, count);
    return hf__brood_write(&(struct hf__brood){ ids[0], count, started });
}

/* Starts some more, and remembers how far that is. */
static hf_code start_some(hf_ctx *ctx, const char *full, hf_transition *some, const hf_id *ids,
                          size_t count, size_t started)
{
    size_t last = started + some->child_count;
    char *output = write_output(ctx, ids, count, last);
    if (!output)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    const struct hf__record record = {
        .op = "children",
        .name = full,
        .status = last == count ? HF__ENTRY_SUCCEEDED : HF__ENTRY_WAITING,
        .output = output,
    };
    hf_code code = hf__function_record(ctx, &record, some, started ? ids + started : ids, NULL);
    free(output);
    return code;
}

/* How many to start with one commit; 0: they are refused. Of several portions, all are checked before the first is started. Those
 * that are not alike are accepted or refused as a whole, so they are written as one. */
static size_t choose_portion(hf_ctx *ctx, const hf_trigger_spec *specs, size_t count, hf_code *code)
{
    hf_transition whole = { .children = specs, .child_count = count };
    if (count <= portion_of(ctx))
        return portion_of(ctx);
    *code = hf__function_check(ctx, &whole);
    if (*code != HF_OK)
        return 0;
    if (hf__children_are_alike(specs, count))
        return portion_of(ctx);
    if (count <= NOT_ALIKE_MOST)
        return count;
    *code = hf__fail(&ctx->function->error, HF_TOO_LARGE,
                     "more than %d children that differ in more than priority, trace and input: "
                     "start them in several calls",
                     NOT_ALIKE_MOST);
    return 0;
}

static hf_code start_rest(hf_ctx *ctx, const char *full, const hf_trigger_spec *specs,
                          const hf_id *ids, size_t count, size_t started)
{
    hf_code code = HF_OK;
    size_t portion = choose_portion(ctx, specs, count, &code);
    if (code != HF_OK)
        return code;
    do {
        size_t left = count - started;
        hf_transition some = { .children = started ? specs + started : specs,
                               .child_count = left < portion ? left : portion };
        if (started == 0 && left > portion) /* these are at work while the rest is written */
            some.child_count = portion / 2;
        code = start_some(ctx, full, &some, ids, count, started);
        started += some.child_count;
    } while (code == HF_OK && started < count);
    return code;
}

static hf_code start_children(hf_ctx *ctx, const char *name, const hf_trigger_spec *specs,
                              size_t count, hf_id *ids)
{
    const char *full;
    struct hf__entry *entry;
    size_t started = 0;
    hf_code code = hf__function_call(ctx, "children", name, &full, &entry);
    if (code != HF_OK)
        return code;
    if (count > HF__BROOD_MOST || (count && (!specs || !ids)))
        return hf__fail(&ctx->function->error, count > HF__BROOD_MOST ? HF_TOO_LARGE : HF_INVALID,
                        "hf_children_start takes specs and ids of at most %d children",
                        HF__BROOD_MOST);
    if (entry)
        code = read_ids(ctx, entry, ids, count, &started);
    else
        hf__new_row_of_ids(ids, count);
    if (code == HF_OK && (!entry || started < count))
        code = start_rest(ctx, full, specs, ids, count, started);
    return code == HF_OK ? adopt(ctx, full, ids, count) : code;
}

hf_code hf_children_start(hf_ctx *ctx, const char *name, const hf_trigger_spec *specs, size_t count,
                          hf_id *ids)
{
    return hf__inside(ctx, start_children(ctx, name, specs, count, ids));
}

hf_code hf_child_start(hf_ctx *ctx, const char *name, const hf_trigger_spec *spec, hf_id *id)
{
    return hf_children_start(ctx, name, spec, 1, id);
}

/* ---- Waiting ---- */

/* One wait for children, while it is looked at. */
struct wait {
    hf_ctx *ctx;
    const hf_id *ids;
    hf_child_end *ends;
    size_t count;
    size_t ended;
    size_t mailed;          /* so many of those by mail that lies there */
    bool failed;            /* one of them failed or was cancelled */
    const char **mail;      /* ids of their ends' mail */
    size_t *places;         /* of the same, in the mailbox */
    size_t others;          /* ends of other children that lie in the mailbox */
    struct hf__idmap index; /* run -> end */
};

static bool went_wrong(hf_status status)
{
    return status == HF_FAILED || status == HF_CANCELLED;
}

/* A value as it is handed out: written without spaces; NULL for null. Numbers that no int64 holds come out as reals; what the
 * parser does not take ("\\u0000", 1e400) comes out as it is. */
static const char *value_of(hf_ctx *ctx, const struct hf__json_member *member)
{
    if (member->value_length == 4 && memcmp(member->value, "null", 4) == 0)
        return NULL;
    json_t *json = json_loadb(member->value, member->value_length, JSON_DECODE_ANY, NULL);
    if (!json)
        json = json_loadb(member->value, member->value_length,
                          JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const char *copy = text ? hf__arena_strdup(&ctx->arena, text)
                            : hf__arena_strndup(&ctx->arena, member->value, member->value_length);
    free(text);
    json_decref(json);
    return copy;
}

/* One that was deleted has no status of its own: it counts as failed. */
static hf_status status_of(const struct hf__json_member *member)
{
    char name[16] = "";
    hf_status status;
    if (member->value_length >= 2 && member->value_length - 2 < sizeof name)
        memcpy(name, member->value + 1, member->value_length - 2);
    return hf_status_parse(name, &status) ? status : HF_FAILED;
}

static bool is_named(const struct hf__json_member *member, const char *name)
{
    return member->name_length == strlen(name) &&
           memcmp(member->name, name, member->name_length) == 0;
}

/* {"status":…,"result":…,"error":…}, as in mail and in what is remembered, where null is one that has not ended. Ten thousand
 * are read at once: only what is neither null nor a name is given to the parser. */
static void read_end(hf_ctx *ctx, const char *json, hf_child_end *end)
{
    struct hf__json_member member;
    size_t at = 0;
    end->status = HF_FAILED;
    while (hf__json_is_object(json) && hf__json_member_next(json, &at, &member)) {
        if (is_named(&member, "status")) {
            end->ended = true;
            end->status = status_of(&member);
        } else if (is_named(&member, "result")) {
            end->result = value_of(ctx, &member);
        } else if (is_named(&member, "error")) {
            end->error = value_of(ctx, &member);
        }
    }
}

static void read_mail(struct wait *wait, size_t place)
{
    const hf_mail *mail = &wait->ctx->claimed->mail[place];
    hf_id run;
    hf_child_end *end = NULL;
    if (strncmp(mail->id, HF__END_MAIL, strlen(HF__END_MAIL)) == 0 &&
        hf_id_parse(mail->id + strlen(HF__END_MAIL), &run))
        end = hf__idmap_get(&wait->index, run);
    if (end && !end->ended) {
        read_end(wait->ctx, mail->payload ? mail->payload : "null", end);
        end->ended = true;
        wait->failed |= went_wrong(end->status);
        wait->places[wait->mailed] = place;
        wait->mail[wait->mailed++] = mail->id;
        wait->ended++;
    } else {
        wait->others++;
    }
}

static void take_kept(struct wait *wait, size_t i)
{
    const hf_child_end *kept = hf__idmap_get(&wait->ctx->function->ends, wait->ids[i]);
    if (!kept)
        return;
    wait->ends[i] = *kept;
    wait->ended++;
    wait->failed |= went_wrong(kept->status);
}

/* Looks at what earlier waits have seen, then into the mailbox; false: no memory. */
static bool look(struct wait *wait)
{
    const hf_claimed *claimed = wait->ctx->claimed;
    wait->mail = hf__arena_calloc(&wait->ctx->arena, wait->count + 1, sizeof *wait->mail);
    wait->places = hf__arena_calloc(&wait->ctx->arena, wait->count + 1, sizeof *wait->places);
    if (!wait->mail || !wait->places)
        return false;
    for (size_t i = 0; i < wait->count; i++)
        if (!hf__idmap_put(&wait->index, wait->ids[i], &wait->ends[i]))
            return false;
    for (size_t i = 0; i < wait->count; i++)
        take_kept(wait, i);
    for (size_t i = 0; i < claimed->mail_count; i++)
        if (!wait->ctx->function->taken[i] && strcmp(claimed->mail[i].type, "child") == 0)
            read_mail(wait, i);
    return true;
}

static bool satisfied(const struct wait *wait, hf_wait_for what)
{
    switch (what) {
    case HF_WAIT_ANY: return wait->ended > 0 || wait->count == 0;
    case HF_WAIT_ALL_OR_FAILURE:
        if (wait->failed)
            return true;
        break;
    case HF_WAIT_ALL: break;
    }
    return wait->ended == wait->count;
}

static void add_end(struct hf__buffer *json, const hf_child_end *end)
{
    hf__buffer_add_text(json, json->length > 1 ? "," : "");
    if (!end->ended) {
        hf__buffer_add_text(json, "null");
        return;
    }
    hf__buffer_add_text(json, "{\"status\":\"");
    hf__buffer_add_text(json, hf_status_name(end->status));
    hf__buffer_add_text(json, "\"");
    if (end->result) {
        hf__buffer_add_text(json, ",\"result\":");
        hf__buffer_add_text(json, end->result);
    }
    if (end->error) {
        hf__buffer_add_text(json, ",\"error\":");
        hf__buffer_add_text(json, end->error);
    }
    hf__buffer_add_text(json, "}");
}

/* Their mail is gone after one wait, and a later one may ask for them again. */
static hf_code keep_ends(struct wait *wait)
{
    struct hf__function *function = wait->ctx->function;
    for (size_t i = 0; i < wait->count; i++) {
        if (!wait->ends[i].ended)
            continue;
        hf_child_end *kept = hf__arena_calloc(&wait->ctx->arena, 1, sizeof *kept);
        if (!kept || !hf__idmap_put(&function->ends, wait->ids[i], kept))
            return hf__function_end(wait->ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
        *kept = wait->ends[i];
    }
    return HF_OK;
}

/* Where every end that lies in the mailbox is one of those waited for, they are taken out as a whole. */
static void find_span(const struct wait *wait, struct hf__record *record)
{
    if (wait->others || wait->ctx->function->apart ||
        wait->ctx->claimed->mail_count >= HF__LOAD_MOST)
        return;
    for (size_t i = 0; i < wait->mailed; i++) {
        int64_t position = wait->ctx->claimed->mail[wait->places[i]].position;
        if (!record->ends_from || position < record->ends_from)
            record->ends_from = position;
        if (position > record->ends_to)
            record->ends_to = position;
    }
}

/* Remembers how they ended and takes their mail out. */
static hf_code conclude(struct wait *wait, const char *full, const char *error)
{
    struct hf__buffer json = { 0 };
    hf__buffer_add_text(&json, "[");
    for (size_t i = 0; i < wait->count; i++)
        add_end(&json, &wait->ends[i]);
    hf__buffer_add_text(&json, "]");
    if (json.failed)
        return hf__function_end(wait->ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    hf_transition extra = { .consumed = wait->mail, .consumed_count = wait->mailed };
    struct hf__record record = {
        .op = "children_wait",
        .name = full,
        .status = error ? HF__ENTRY_FAILED : HF__ENTRY_SUCCEEDED,
        .error = error,
        .output = json.data,
    };
    find_span(wait, &record);
    wait->ctx->function->apart |= wait->mailed && !record.ends_to;
    hf_code code = hf__function_record(wait->ctx, &record, &extra, NULL, NULL);
    for (size_t i = 0; code == HF_OK && i < wait->mailed; i++)
        wait->ctx->function->taken[wait->places[i]] = true;
    hf__buffer_free(&json);
    if (code == HF_OK)
        code = keep_ends(wait);
    return code == HF_OK && error ? hf__function_late(wait->ctx, error) : code;
}

/* Ends of other children count as mail, too: more than those must come. */
static hf_code suspend(struct wait *wait, const struct hf__record *record, hf_wait_for what,
                       int64_t until)
{
    size_t missing = what == HF_WAIT_ANY ? 1 : wait->count - wait->ended;
    hf_transition transition = {
        .waiting_kind = "children",
        .waiting_until = until,
        .wait_children = (int)(wait->others + wait->mailed + missing),
        .wake_on_child_failure = what == HF_WAIT_ALL_OR_FAILURE,
    };
    return hf__function_suspend(wait->ctx, record, &transition);
}

/* Reads the ends that are remembered; false: there are more or fewer than are waited for. */
static bool read_ends(struct wait *wait, const char *array)
{
    size_t count = 0;
    size_t at = 0;
    size_t length;
    const char *item;
    while (*array == '[' && hf__json_item_next(array, &at, &item, &length)) {
        if (count < wait->count)
            read_end(wait->ctx, item, &wait->ends[count]);
        count++;
    }
    return count == wait->count;
}

static hf_code recall(struct wait *wait, const struct hf__entry *entry)
{
    bool good = read_ends(wait, entry->output ? entry->output : "[]");
    hf_code code = good ? keep_ends(wait) : HF_OK;
    if (good && code == HF_OK && entry->status == HF__ENTRY_FAILED)
        return hf__function_late(wait->ctx, entry->error);
    if (good)
        return code;
    return hf__function_misfit(wait->ctx,
                               "\"%s\" waits for %zu children where another number is remembered: "
                               "the code or its input has changed under a running run",
                               entry->name, wait->count);
}

/* One that has not ended and never tells, since no call has started it; NULL: there is none. */
static const hf_id *find_stranger(const struct wait *wait)
{
    for (size_t i = 0; i < wait->count; i++)
        if (!wait->ends[i].ended && !hf__idmap_get(&wait->ctx->function->children, wait->ids[i]))
            return &wait->ids[i];
    return NULL;
}

static hf_code refuse_stranger(struct wait *wait, const char *full, hf_id stranger)
{
    char text[HF_ID_TEXT];
    hf_id_format(stranger, text);
    return hf__function_end(wait->ctx, HF_PERMANENT,
                            "\"%s\" waits for %s, which this run has not started", full, text);
}

static hf_code wait_or_go(struct wait *wait, const char *full, const struct hf__entry *entry,
                          hf_wait_for what, int64_t timeout)
{
    int64_t now = hf__function_now(wait->ctx);
    int64_t until = entry ? entry->until : hf__function_limit(now, timeout);
    if (!look(wait))
        return hf__function_end(wait->ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    if (wait->index.count != wait->count)
        return hf__function_end(wait->ctx, HF_PERMANENT, "\"%s\" waits for one child twice", full);
    if (satisfied(wait, what))
        return conclude(wait, full, NULL);
    if (until && until <= now)
        return conclude(wait, full, "not all children ended in time");
    if (what != HF_WAIT_ANY && wait->count - wait->ended + wait->mailed > HF__LOAD_MOST)
        return hf__function_end(wait->ctx, HF_PERMANENT,
                                "\"%s\" waits for more than %d ends at once: wait in portions",
                                full, HF__LOAD_MOST);
    const hf_id *stranger = find_stranger(wait);
    if (stranger)
        return refuse_stranger(wait, full, *stranger);
    const struct hf__record record = {
        .op = "children_wait",
        .name = full,
        .status = HF__ENTRY_WAITING,
        .started = now,
        .until = until,
    };
    return suspend(wait, entry ? NULL : &record, what, until);
}

static hf_code wait_for(struct wait *wait, const char *full, const struct hf__entry *entry,
                        hf_wait_for what, int64_t timeout)
{
    if (wait->count > HF__BROOD_MOST)
        return hf__function_end(wait->ctx, HF_PERMANENT,
                                "\"%s\" waits for more than %d children in one call", full,
                                HF__BROOD_MOST);
    if (entry && entry->status != HF__ENTRY_WAITING)
        return recall(wait, entry);
    hf__idmap_init(&wait->index);
    hf_code code = wait_or_go(wait, full, entry, what, timeout);
    hf__idmap_free(&wait->index);
    return code;
}

/* Refused before it is met, so that it leaves no trace. What is remembered of a wait for nobody is taken as it is. */
static hf_code refuse_nobody(hf_ctx *ctx, const char *name, const char *why)
{
    hf_code code;
    const struct hf__function *function = hf__function_of(ctx, &code);
    if (!function || function->over != HF_OK)
        return function ? function->over : code;
    if (function->next < function->count && hf__function_expects(ctx, "children_wait", name))
        return HF_OK;
    return hf__fail(&ctx->function->error, HF_INVALID, "\"%.100s\" waits for no children: %s",
                    name ? name : "", why);
}

static hf_code wait_for_children(hf_ctx *ctx, const char *name, const hf_id *ids, size_t count,
                                 hf_wait_for what, int64_t timeout, hf_child_end *ends)
{
    const char *full;
    struct hf__entry *entry;
    hf_code code = HF_OK;
    for (size_t i = 0; i < count; i++)
        ends[i] = (hf_child_end){ .run = ids[i] };
    if (count == 0)
        code = refuse_nobody(ctx, name, "leave the call out where there are none");
    if (code == HF_OK)
        code = hf__function_call(ctx, "children_wait", name, &full, &entry);
    if (code != HF_OK)
        return code;
    struct wait wait = { .ctx = ctx, .ids = ids, .ends = ends, .count = count };
    return wait_for(&wait, full, entry, what, timeout);
}

/* ---- Waiting for one's own ---- */

/* "resize" and "resize#2" are calls of one name. */
static bool is_called(const char *full, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(full, name, length) != 0)
        return false;
    return full[length] == '\0' ||
           (full[length] == '#' && full[length + 1] != '\0' &&
            strspn(full + length + 1, "0123456789") == strlen(full + length + 1));
}

static int by_id(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(hf_id));
}

/* By their ids, since programs may make several calls at once: what is remembered stands in one order. NULL: no memory. */
static hf_id *collect(hf_ctx *ctx, const char *name, size_t *count)
{
    const struct hf__function *function = ctx->function;
    hf_id *ids = hf__arena_calloc(&ctx->arena, function->kin_count + 1, sizeof *ids);
    *count = 0;
    for (size_t i = 0; ids && i < function->kin_count; i++)
        if (!name || is_called(function->kin[i].name, name))
            ids[(*count)++] = function->kin[i].id;
    if (ids && *count == 0 && name)
        return collect(ctx, NULL, count);
    if (ids)
        qsort(ids, *count, sizeof *ids, by_id);
    return ids;
}

static hf_code wait_for_own(hf_ctx *ctx, const char *name, hf_wait_for what, int64_t timeout,
                            hf_child_end **ends, size_t *count)
{
    const char *full;
    struct hf__entry *entry;
    hf_code code = HF_OK;
    if (!hf__function_of(ctx, &code))
        return code;
    hf_id *ids = collect(ctx, name, count);
    if (ids && *count == 0)
        code = refuse_nobody(ctx, name, "this run has started none");
    if (code == HF_OK)
        code = hf__function_call(ctx, "children_wait", name, &full, &entry);
    if (code != HF_OK)
        return code;
    if (entry && entry->output && strcmp(entry->output, "[]") == 0)
        *count = 0;
    *ends = hf__arena_calloc(&ctx->arena, *count + 1, sizeof **ends);
    if (!ids || !*ends)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    for (size_t i = 0; i < *count; i++)
        (*ends)[i].run = ids[i];
    struct wait wait = { .ctx = ctx, .ids = ids, .ends = *ends, .count = *count };
    return wait_for(&wait, full, entry, what, timeout);
}

hf_code hf__own_children_wait(hf_ctx *ctx, const char *name, hf_wait_for what, int64_t timeout,
                              hf_child_end **ends, size_t *count)
{
    return hf__inside(ctx, wait_for_own(ctx, name, what, timeout, ends, count));
}

hf_code hf_children_wait(hf_ctx *ctx, const char *name, const hf_id *ids, size_t count,
                         hf_wait_for what, int64_t timeout, hf_child_end *ends)
{
    return hf__inside(ctx, wait_for_children(ctx, name, ids, count, what, timeout, ends));
}

hf_code hf_child_wait(hf_ctx *ctx, const char *name, hf_id id, hf_child_end *end)
{
    return hf_children_wait(ctx, name, &id, 1, HF_WAIT_ALL, 0, end);
}

/* What a run remembers, and which of it a call meets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "function/function.h"

#include "client/check.h"
#include "record/step_lines.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/json_members.h"
#include "util/text.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MOST 500 /* bytes; with the number of its use it is still a label */

/* ---- The end ---- */

hf_code hf__function_end(hf_ctx *ctx, hf_code code, const char *fmt, ...)
{
    struct hf__function *function = ctx->function;
    va_list args;
    va_start(args, fmt);
    vsnprintf(function->error.message, sizeof function->error.message, fmt, args);
    va_end(args);
    function->error.code = function->over = code;
    return code;
}

hf_code hf__function_misfit(hf_ctx *ctx, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ctx->unfit = true;
    return hf__function_end(ctx, HF_PERMANENT, "%s", text);
}

static hf_code mismatch(hf_ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static hf_code mismatch(hf_ctx *ctx, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return hf__function_misfit(ctx,
                               "%s: the code has changed under a running run; %sgive the new code "
                               "a new name",
                               text, ctx->function->by_name ? "" : "use hf_version, or ");
}

hf_code hf__function_break(hf_ctx *ctx, const char *error_code, const char *fmt, ...)
{
    struct hf__function *function = ctx->function;
    va_list args;
    if (function->broken)
        return function->over;
    va_start(args, fmt);
    vsnprintf(function->error.message, sizeof function->error.message, fmt, args);
    va_end(args);
    function->broken = error_code;
    ctx->unfit = false; /* it may be for this that nothing fitted */
    function->error.code = function->over = HF_PERMANENT;
    return HF_PERMANENT;
}

static bool finished(const struct hf__function *function)
{
    return function->by_name || function->next == function->count;
}

/* What was done in the step would be done again by every replay, and nobody would ever know. */
static void refuse_open_step(hf_ctx *ctx)
{
    const struct hf__function *function = ctx->function;
    if (function->refused)
        hf__function_break(
            ctx, "result_refused",
            "the output of the step \"%.100s\" was refused, after its work was done: %s",
            function->open, function->refused);
    else
        hf__function_break(ctx, "not_awaited",
                           "the handler ended before its step \"%.100s\" did: end the step by "
                           "hf_step_done or hf_step_fail first",
                           function->open);
}

/* What became of the handler's calls, before they are looked at: a rule that was broken counts more than what it returned. */
static void look_for_broken_rules(hf_ctx *ctx, hf_code code)
{
    struct hf__function *function = ctx->function;
    if (atomic_load(&ctx->overlapped))
        hf__function_break(ctx, "calls_overlap",
                           "two threads of the handler made calls at once: make them one after the "
                           "other");
    if (function->over == HF_OK && code == HF_OK && function->open)
        refuse_open_step(ctx);
    if (function->over == HF_OK && code == HF_SUSPENDED)
        hf__function_break(
            ctx, "broken_rule",
            "the handler returned HF_SUSPENDED, but none of its calls waits: hand up "
            "only what a call has returned");
    if (!function->broken)
        return;
    ctx->error_code = function->broken;
    ctx->error = NULL;
}

static bool read_history(hf_ctx *ctx);

hf_code hf__function_outcome(hf_ctx *ctx, hf_code code, hf_error *err)
{
    if (!ctx->function && !(atomic_load(&ctx->overlapped) && read_history(ctx)))
        return code;
    struct hf__function *function = ctx->function;
    look_for_broken_rules(ctx, code);
    if (function->over == HF_OK && code == HF_OK && !finished(function))
        mismatch(ctx, "the handler ended where \"%s\" (%s) is remembered",
                 function->entries[function->next]->name, function->entries[function->next]->op);
    if (function->over == HF_OK && (code != function->error.code || err->message[0]))
        return code;
    *err = function->error;
    return function->over == HF_OK ? code : function->over;
}

static bool met_failure(const hf_ctx *ctx, hf_code code)
{
    return code == HF_HANDLER_FAILED && ctx->function && ctx->function->met_failure;
}

bool hf__function_gave_up_waiting(const hf_ctx *ctx, hf_code code)
{
    return code == HF_TIMEOUT && ctx->function && ctx->function->met_timeout;
}

bool hf__function_is_hopeless(const hf_ctx *ctx, hf_code code)
{
    return met_failure(ctx, code) || hf__function_gave_up_waiting(ctx, code);
}

const struct hf__entry *hf__function_failure(const hf_ctx *ctx, hf_code code)
{
    return met_failure(ctx, code) ? ctx->function->failure : NULL;
}

/* A script ends with an exit status of its own, whatever its calls have told it. */
hf_code hf__function_late(hf_ctx *ctx, const char *why)
{
    struct hf__function *function = ctx->function;
    function->met_timeout = !function->by_name;
    return hf__fail(&function->error, HF_TIMEOUT, "%s", why ? why : hf_code_meaning(HF_TIMEOUT));
}

const char *hf__entry_code(const struct hf__entry *entry)
{
    return entry->code ? entry->code : "step_failed";
}

void hf__function_set_failure_aside(hf_ctx *ctx)
{
    if (!ctx->function)
        return;
    ctx->function->met_failure = ctx->function->met_timeout = false;
    ctx->function->failure = NULL;
}

void hf__function_free(hf_ctx *ctx)
{
    struct hf__function *function = ctx->function;
    if (!function)
        return;
    hf__idmap_free(&function->all);
    hf__idmap_free(&function->uses);
    hf__idmap_free(&function->children);
    hf__idmap_free(&function->ends);
    hf__idmap_free(&function->versions);
    free(function->entries);
}

/* ---- Names ---- */

/* Names are looked up by a hash of theirs: 128 bits, so two names of a run do not meet. */
hf_id hf__function_hash(const char *name)
{
    uint64_t a = UINT64_C(14695981039346656037), b = UINT64_C(0x9ae16a3b2f90404f);
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        a = (a ^ *p) * UINT64_C(1099511628211);
        b = (b + *p) * UINT64_C(0xff51afd7ed558ccd);
        b ^= b >> 29;
    }
    hf_id id;
    memcpy(id.bytes, &a, sizeof a);
    memcpy(id.bytes + sizeof a, &b, sizeof b);
    return id;
}

static bool ends_like_a_use(const char *name)
{
    return name[hf__step_base(name)] != '\0';
}

/* Before anything is done under the name: what cannot be remembered must not begin. */
static hf_code check_call(hf_ctx *ctx, const char *op, const char *name)
{
    struct hf__function *function = ctx->function;
    hf_error bad;
    if (hf__label_check("the name of a call", name, NAME_MOST, &bad) != HF_OK)
        return hf__function_break(ctx, "broken_rule", "%s", bad.message);
    if (ends_like_a_use(name))
        return hf__function_break(ctx, "broken_rule",
                                  "the name \"%.100s\" ends like the second use of another; use a "
                                  "name without \"#\" and a number at its end",
                                  name);
    if (function->open)
        return hf__function_break(
            ctx, "calls_overlap",
            "\"%.100s\" (%s) was called before the step \"%.100s\" ended: end "
            "it by hf_step_done or hf_step_fail first",
            name, op, function->open);
    return HF_OK;
}

static int *uses_of(const hf_ctx *ctx, const char *name)
{
    return hf__idmap_get(&ctx->function->uses, hf__function_hash(name));
}

/* How often the name was used before in this turn; counts this use. */
static int count_use(hf_ctx *ctx, const char *name)
{
    struct hf__function *function = ctx->function;
    int *uses = uses_of(ctx, name);
    if (!uses) {
        uses = hf__arena_calloc(&ctx->arena, 1, sizeof *uses);
        if (!uses || !hf__idmap_put(&function->uses, hf__function_hash(name), uses))
            return -1;
    }
    return (*uses)++;
}

/* ---- Reading ---- */

enum { FIRST_VERSION = 1 }; /* of a run when it is made; its claims raise it */

static enum hf__entry_status read_status(const char *name)
{
    if (strcmp(name, "succeeded") == 0)
        return HF__ENTRY_SUCCEEDED;
    return strcmp(name, "failed") == 0 ? HF__ENTRY_FAILED : HF__ENTRY_WAITING;
}

static bool is_named(const struct hf__json_member *member, const char *name)
{
    return member->name_length == strlen(name) &&
           memcmp(member->name, name, member->name_length) == 0;
}

/* The output is kept as it was written; the others are small. */
static bool read_member(hf_ctx *ctx, struct hf__entry *entry, const struct hf__json_member *member)
{
    const char **json = is_named(member, "output")    ? &entry->output
                        : is_named(member, "details") ? &entry->details
                                                      : NULL;
    if (json) {
        *json = hf__arena_strndup(&ctx->arena, member->value, member->value_length);
        return *json != NULL;
    }
    json_t *value = json_loadb(member->value, member->value_length, JSON_DECODE_ANY, NULL);
    const char *text = json_string_value(value);
    const char **place = is_named(member, "op")      ? &entry->op
                         : is_named(member, "error") ? &entry->error
                         : is_named(member, "code")  ? &entry->code
                                                     : NULL;
    if (place && text)
        *place = hf__arena_strdup(&ctx->arena, text);
    else if (is_named(member, "attempt"))
        entry->attempt = (int)json_integer_value(value);
    else if (is_named(member, "until"))
        entry->until = json_integer_value(value);
    else if (is_named(member, "deferred"))
        entry->deferred = json_integer_value(value);
    json_decref(value);
    return !place || !text || *place;
}

static bool read_data(hf_ctx *ctx, struct hf__entry *entry, const char *data)
{
    struct hf__json_member member;
    bool good = true;
    size_t at = 0;
    entry->op = "step"; /* unless it says otherwise: recorded by other means */
    entry->output = entry->error = entry->code = entry->details = NULL;
    entry->attempt = 0;
    entry->until = entry->deferred = 0;
    while (good && hf__json_is_object(data) && hf__json_member_next(data, &at, &member))
        good = read_member(ctx, entry, &member);
    return good;
}

bool hf__function_append(struct hf__function *function, struct hf__entry *entry)
{
    if (function->count == function->capacity) {
        size_t capacity = function->capacity * 2 + 16;
        struct hf__entry **more =
            hf__realloc(function->entries, capacity * sizeof *function->entries);
        if (!more)
            return false;
        function->entries = more;
        function->capacity = capacity;
    }
    function->entries[function->count++] = entry;
    return hf__idmap_put(&function->all, hf__function_hash(entry->name), entry);
}

struct hf__entry *hf__function_find(const struct hf__function *function, const char *full)
{
    return hf__idmap_get(&function->all, hf__function_hash(full));
}

/* The last line of a name tells. */
static bool read_step(hf_ctx *ctx, const hf_event *step)
{
    struct hf__function *function = ctx->function;
    if (!step->step || !step->name)
        return true;
    struct hf__entry *entry = hf__function_find(function, step->step);
    if (!entry) {
        entry = hf__arena_calloc(&ctx->arena, 1, sizeof *entry);
        if (!entry)
            return false;
        entry->name = step->step;
        if (!hf__function_append(function, entry))
            return false;
    }
    entry->status = read_status(step->name);
    entry->own = step->version > FIRST_VERSION;
    return read_data(ctx, entry, step->data ? step->data : "{}");
}

static bool is_told(const struct hf__entry *entry)
{
    return strcmp(entry->op, "progress") == 0 || strcmp(entry->op, "published") == 0;
}

/* An operator who has a run tried again wants the step on which it gave up tried again. Failures that the code has dealt with
 * stay: what it did then is remembered behind them. */
static void forget_last_failure(const hf_claimed *claimed, struct hf__function *function)
{
    size_t count = function->count; /* what it told after that it has only told */
    while (count && is_told(function->entries[count - 1]))
        count--;
    struct hf__entry *last = count ? function->entries[count - 1] : NULL;
    if (!last || last->status != HF__ENTRY_FAILED || strcmp(last->op, "step") != 0 ||
        claimed->retried_seq < claimed->steps[claimed->step_count - 1].seq)
        return;
    last->status = HF__ENTRY_WAITING;
    last->attempt = 0;
    last->until = last->deferred = 0;
}

static bool read_history(hf_ctx *ctx)
{
    const hf_claimed *claimed = ctx->claimed;
    struct hf__function *function = hf__arena_calloc(&ctx->arena, 1, sizeof *function);
    if (!function)
        return false;
    ctx->function = function;
    hf__idmap_init(&function->all);
    hf__idmap_init(&function->uses);
    hf__idmap_init(&function->children);
    hf__idmap_init(&function->ends);
    hf__idmap_init(&function->versions);
    function->taken = hf__arena_calloc(&ctx->arena, claimed->mail_count + 1, sizeof(bool));
    bool good = function->taken != NULL;
    for (size_t i = 0; good && i < claimed->step_count; i++)
        good = read_step(ctx, &claimed->steps[i]);
    forget_last_failure(claimed, function);
    if (!good)
        hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    else if (claimed->steps_cut)
        hf__function_end(ctx, HF_PERMANENT,
                         "a run can remember %d calls at most: give parts of the work to children",
                         HF__LOAD_MOST);
    return true;
}

struct hf__function *hf__function_of(hf_ctx *ctx, hf_code *code)
{
    if (!ctx->function && !read_history(ctx)) {
        *code = HF_NOMEM;
        return NULL;
    }
    struct hf__function *function = ctx->function;
    hf_code held = hf_check(ctx);
    if (function->over == HF_OK && held != HF_OK)
        hf__function_end(ctx, held, "%s", hf_code_meaning(held));
    *code = function->over;
    return function->over == HF_OK ? function : NULL;
}

hf_code hf__function_by_name(hf_ctx *ctx)
{
    hf_code code;
    struct hf__function *function = hf__function_of(ctx, &code);
    if (function)
        function->by_name = true;
    return code;
}

/* ---- Meeting ---- */

static hf_code meet(hf_ctx *ctx, const char *op, const char *full, struct hf__entry **entry)
{
    struct hf__function *function = ctx->function;
    if (function->by_name)
        *entry = hf__function_find(function, full);
    else
        *entry = function->next < function->count ? function->entries[function->next] : NULL;
    if (*entry && (strcmp((*entry)->name, full) != 0 || strcmp((*entry)->op, op) != 0))
        return mismatch(ctx, "\"%s\" (%s) was called where \"%s\" (%s) is remembered", full, op,
                        (*entry)->name, (*entry)->op);
    function->next += *entry != NULL;
    return HF_OK;
}

bool hf__function_replays(const struct hf__function *function)
{
    return !function->by_name && function->next < function->count &&
           function->entries[function->count - 1]->own;
}

static const char *full_name(hf_ctx *ctx, const char *name, int used)
{
    return used == 0 ? hf__arena_strdup(&ctx->arena, name)
                     : hf__arena_printf(&ctx->arena, "%s#%d", name, used + 1);
}

hf_code hf__function_call(hf_ctx *ctx, const char *op, const char *name, const char **full,
                          struct hf__entry **entry)
{
    hf_code code;
    if (!hf__function_of(ctx, &code) || (code = check_call(ctx, op, name)) != HF_OK)
        return code;
    hf__function_set_failure_aside(ctx);
    int used = count_use(ctx, name);
    *full = full_name(ctx, name, used);
    if (used < 0 || !*full)
        return hf__function_end(ctx, HF_NOMEM, "%s", hf_code_meaning(HF_NOMEM));
    return meet(ctx, op, *full, entry);
}

bool hf__function_expects(hf_ctx *ctx, const char *op, const char *name)
{
    const struct hf__function *function = ctx->function;
    const int *uses = name ? uses_of(ctx, name) : NULL;
    const char *full = name ? full_name(ctx, name, uses ? *uses : 0) : NULL;
    if (function->next == function->count || !full)
        return true;
    const struct hf__entry *entry =
        function->by_name ? hf__function_find(function, full) : function->entries[function->next];
    return entry && strcmp(entry->op, op) == 0 && strcmp(entry->name, full) == 0;
}

int64_t hf__function_now(const hf_ctx *ctx)
{
    int64_t since = hf__monotonic_us() - ctx->haul->sent_at;
    return ctx->claimed->seen_at + (since > 0 ? since : 0);
}

int64_t hf__function_later(int64_t now, int64_t us)
{
    return us < HF__MAX_TIME - now ? now + us : HF__MAX_TIME;
}

int64_t hf__function_limit(int64_t now, int64_t us)
{
    return us == 0 ? 0 : hf__function_later(now, us > 0 ? us : 0);
}

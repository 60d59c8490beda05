/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/failure.h"

#include "client/ids.h"
#include "util/buffer.h"

#include <string.h>

static char *keep_text(struct hf__arena *arena, struct hf__buffer *text)
{
    char *copy = text->failed ? NULL : hf__arena_strdup(arena, text->data);
    hf__buffer_free(text);
    return copy;
}

static void add_member(struct hf__buffer *json, const char *name, const char *text)
{
    hf__buffer_addf(json, ",\"%s\":", name);
    if (text)
        hf__buffer_add_json_string(json, text, strlen(text));
    else
        hf__buffer_add_text(json, "null");
}

char *hf__error_json(struct hf__arena *arena, int attempt, const char *code, const char *message,
                     const char *step, const char *details)
{
    struct hf__buffer json = { 0 };
    hf__buffer_addf(&json, "{\"attempt\":%d", attempt);
    add_member(&json, "code", code);
    add_member(&json, "message", message);
    if (step)
        add_member(&json, "step", step);
    if (details) {
        hf__buffer_add_text(&json, ",\"details\":");
        hf__buffer_add_text(&json, details);
    }
    hf__buffer_add_text(&json, "}");
    return keep_text(arena, &json);
}

/* The kernel adds what the run was and did. */
static char *letter_json(struct hf__arena *arena, const hf_run *run, const hf_transition *t)
{
    char id[HF_ID_TEXT];
    struct hf__buffer json = { 0 };
    hf_id_format(run->id, id);
    hf__buffer_addf(&json, "{\"run\":\"%s\"", id);
    add_member(&json, "error_code", t->error_code);
    add_member(&json, "last_error", t->last_error);
    hf__buffer_add_text(&json, "}");
    return keep_text(arena, &json);
}

/* Starts the workflow that is told of runs that failed for good; never for its own failures,
 * which would not end. */
static void add_letter(hf_transition *t, const hf_claimed *claimed, struct hf__letter *letter,
                       struct hf__arena *arena)
{
    if (!claimed->dead_letter || strcmp(claimed->dead_letter, claimed->run.workflow) == 0)
        return;
    hf__letter_key(letter->key, claimed->run.id, claimed->run.version);
    letter->spec = (hf_trigger_spec)HF_TRIGGER_INIT;
    letter->spec.workflow = claimed->dead_letter;
    letter->spec.key = letter->key;
    letter->spec.trace = claimed->run.trace;
    letter->spec.input = letter_json(arena, &claimed->run, t);
    if (!letter->spec.input)
        return;
    letter->id = hf__new_id();
    t->starts = &letter->spec;
    t->start_count = 1;
}

static void note_error(hf_transition *t, const hf_claimed *claimed, struct hf__arena *arena,
                       const char *code, const char *message)
{
    t->error_code = code;
    t->last_error = message;
    if (!t->error)
        t->error = hf__error_json(arena, claimed->run.attempt, code, message, NULL, NULL);
}

void hf__fail_for_good(hf_transition *t, const hf_claimed *claimed, struct hf__letter *letter,
                       struct hf__arena *arena, const char *code, const char *message)
{
    t->turn = HF_TURN_FAIL;
    note_error(t, claimed, arena, code, message);
    add_letter(t, claimed, letter, arena);
}

void hf__fail_or_retry(hf_transition *t, const hf_claimed *claimed, struct hf__letter *letter,
                       struct hf__arena *arena, const struct hf__failure *failure, const char *code,
                       const char *message, double random)
{
    struct hf__retry_policy policy = {
        .max_attempts = claimed->run.max_attempts,
        .base = claimed->retry_base,
        .cap = claimed->retry_cap,
    };
    struct hf__verdict verdict = hf__retry_decide(&policy, failure, claimed->run.attempt, random);
    if (verdict.turn == HF_TURN_FAIL) {
        hf__fail_for_good(t, claimed, letter, arena, code, message);
        return;
    }
    t->turn = HF_TURN_RETRY;
    t->retry_delay = verdict.delay;
    note_error(t, claimed, arena, code, message);
}

void hf__leave_to_others(hf_transition *t, const hf_claimed *claimed, struct hf__letter *letter,
                         struct hf__arena *arena, const char *message, bool over)
{
    if (over) {
        hf__fail_for_good(t, claimed, letter, arena, HF__HISTORY_MISMATCH, message);
        return;
    }
    t->turn = HF_TURN_UNFIT;
    note_error(t, claimed, arena, HF__HISTORY_MISMATCH, message);
}

/* What was loaded of claimed runs, into their claims: mail and recorded steps.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "util/json_members.h"

static const char *keep(struct hf__batch *batch, struct hf__arena *arena, struct hf__cell cell)
{
    if (hf__is_null(cell))
        return NULL;
    const char *copy = hf__arena_strndup(arena, cell.bytes, (size_t)cell.length);
    if (!copy)
        batch->failed = true;
    return copy;
}

/* Rows of one run lie together: counts how many begin at `from`. */
static int same_run(const struct hf__table *out, int from)
{
    hf_id id = hf__as_uuid(hf__table_row(out, from)[0]);
    int n = 1;
    while (from + n < out->nrows && hf_id_equal(hf__as_uuid(hf__table_row(out, from + n)[0]), id))
        n++;
    return n;
}

static hf_mail read_mail(struct hf__batch *batch, struct hf__arena *arena, const struct hf__cell *c)
{
    return (hf_mail){
        .id = keep(batch, arena, c[1]),
        .type = keep(batch, arena, c[2]),
        .name = keep(batch, arena, c[3]),
        .payload = keep(batch, arena, c[4]),
        .token = keep(batch, arena, c[5]),
        .sender = keep(batch, arena, c[6]),
        .position = hf__as_number(c[7]),
        .visible_at = hf__as_number(c[8]),
        .occurred_at = hf__as_number(c[9]),
        .attempts = (int)hf__as_number(c[10]),
    };
}

/* At most so many pieces of mail are in a row; each takes more than a byte. */
static size_t most_in(const struct hf__cell *c)
{
    int64_t ends = hf__is_null(c[11]) ? 1 : hf__as_number(c[11]);
    return ends > 1 && ends < c[4].length ? (size_t)ends : 1;
}

/* The end of one child, out of a row that is shared. */
static void name_end(struct hf__batch *batch, struct hf__arena *arena, hf_mail *mail)
{
    static const char before[] = "{\"run\":\"";
    const size_t prefix = strlen(HF__END_MAIL);
    char *id = hf__arena_calloc(arena, 1, prefix + HF_ID_TEXT);
    if (!id || !mail->payload) {
        batch->failed = true;
        return;
    }
    memcpy(id, HF__END_MAIL, prefix);
    if (strlen(mail->payload) >= strlen(before) + HF_ID_TEXT)
        memcpy(id + prefix, mail->payload + strlen(before), HF_ID_TEXT - 1);
    mail->id = id;
    mail->sender = id + prefix;
}

static size_t attach_ends(struct hf__batch *batch, struct hf__arena *arena, hf_mail *mail,
                          const struct hf__cell *c)
{
    const hf_mail row = read_mail(batch, arena, c);
    size_t most = most_in(c);
    size_t count = 0;
    size_t at = 0;
    size_t length;
    const char *end;
    while (row.payload && count < most && hf__json_item_next(row.payload, &at, &end, &length)) {
        mail[count] = row;
        mail[count].payload = hf__arena_strndup(arena, end, length);
        name_end(batch, arena, &mail[count++]);
    }
    return count;
}

static void attach_mail(struct hf__batch *batch, struct hf__arena *arena, hf_claimed *claimed,
                        int from, int count)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_LOAD_MAIL);
    size_t most = 0;
    for (int i = 0; i < count; i++)
        most += most_in(hf__table_row(out, from + i));
    claimed->mail = hf__arena_calloc(arena, most, sizeof *claimed->mail);
    if (!claimed->mail) {
        batch->failed = true;
        return;
    }
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, from + i);
        hf_mail *mail = &claimed->mail[claimed->mail_count];
        if (most_in(c) > 1) {
            claimed->mail_count += attach_ends(batch, arena, mail, c);
        } else {
            *mail = read_mail(batch, arena, c);
            claimed->mail_count++;
        }
        if (hf__as_number(c[7]) > claimed->seen_position)
            claimed->seen_position = hf__as_number(c[7]);
    }
}

static void read_recorded(struct hf__batch *batch, struct hf__arena *arena, hf_event *step,
                          const struct hf__cell *c)
{
    step->run = hf__as_uuid(c[0]);
    step->kind = "step";
    step->seq = hf__as_number(c[1]);
    step->position = hf__as_number(c[2]);
    step->version = hf__as_number(c[3]);
    step->name = keep(batch, arena, c[4]);
    step->actor = keep(batch, arena, c[5]);
    step->step = keep(batch, arena, c[6]);
    step->data = keep(batch, arena, c[7]);
    step->at = hf__as_number(c[8]);
}

/* A holder's retry says after what delay; an operator's does not. */
static bool is_operators_retry(const struct hf__cell *c)
{
    return hf__is_null(c[6]) && (hf__is_null(c[7]) || !strstr(hf__as_text(c[7]), "\"delay_us\""));
}

static void attach_steps(struct hf__batch *batch, struct hf__arena *arena, hf_claimed *claimed,
                         int from, int count)
{
    const struct hf__table *out = hf__batch_out(batch, HF__STMT_LOAD_STEPS);
    claimed->steps = hf__arena_calloc(arena, (size_t)count, sizeof *claimed->steps);
    if (!claimed->steps) {
        batch->failed = true;
        return;
    }
    claimed->steps_cut = count >= HF__LOAD_MOST;
    for (int i = 0; i < count; i++) {
        const struct hf__cell *c = hf__table_row(out, from + i);
        if (is_operators_retry(c))
            claimed->retried_seq = hf__as_number(c[1]);
        else if (!hf__is_null(c[6]))
            read_recorded(batch, arena, &claimed->steps[claimed->step_count++], c);
    }
}

static void attach(struct hf__batch *batch, struct hf__arena *arena, enum hf__stmt stmt,
                   void (*one)(struct hf__batch *, struct hf__arena *, hf_claimed *, int, int))
{
    const struct hf__table *out = hf__batch_out(batch, stmt);
    for (int i = 0, n; i < out->nrows; i += n) {
        n = same_run(out, i);
        hf_claimed *claimed = hf__idmap_get(&batch->rows, hf__as_uuid(hf__table_row(out, i)[0]));
        if (claimed)
            one(batch, arena, claimed, i, n);
    }
}

void hf__claim_attach(struct hf__batch *batch, struct hf__arena *arena)
{
    attach(batch, arena, HF__STMT_LOAD_MAIL, attach_mail);
    attach(batch, arena, HF__STMT_LOAD_STEPS, attach_steps);
}

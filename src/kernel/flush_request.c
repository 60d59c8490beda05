/* Requests with an id: a holder that has heard no answer sends the same again, perhaps by way of another process. The first
 * journal line that a request writes bears its id, unique within the claim; what comes again under it writes nothing and is
 * answered as the first was. Looked up under the run's lock, or refused by the index.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel/batch.h"
#include "util/buffer.h"

const char *hf__request_of(const struct hf__op *op)
{
    if (op->kind == HF__OP_STEP)
        return op->step.request;
    return op->kind == HF__OP_COMMIT ? op->commit.request : NULL;
}

static int64_t version_of(const struct hf__op *op)
{
    return op->kind == HF__OP_STEP ? op->step.record->run_version
                                   : op->commit.transition->run_version;
}

void hf__ask_request(struct hf__batch *batch, const struct hf__op *op)
{
    hf_id *run = hf__arena_alloc(batch->arena, sizeof *run);
    if (!run) {
        batch->failed = true;
        return;
    }
    *run = hf__op_run(op);
    struct hf__cell *c = hf__batch_add(batch, HF__STMT_FIND_REQUESTS);
    c[0] = hf__number(op->tenant);
    c[1] = hf__uuid(run);
    c[2] = hf__number(version_of(op));
    c[3] = hf__text(hf__request_of(op));
}

const struct hf__cell *hf__find_request(struct hf__batch *batch, const struct hf__op *op)
{
    const struct hf__table *found = hf__batch_out(batch, HF__STMT_FIND_REQUESTS);
    for (int i = 0; hf__request_of(op) && i < found->nrows; i++)
        if (hf_id_equal(hf__as_uuid(hf__table_row(found, i)[0]), hf__op_run(op)))
            return hf__table_row(found, i);
    return NULL;
}

/* The ids of its children, each with a space behind it. */
static const char *answer_of(struct hf__batch *batch, const struct hf__op *op)
{
    const size_t count = op->commit.transition->child_count;
    if (count == 0)
        return NULL;
    char *text = hf__arena_alloc(batch->arena, count * HF_ID_TEXT + 1);
    if (!text) {
        batch->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        hf_id_format(op->commit.child_ids[i], text + i * HF_ID_TEXT);
        text[(i + 1) * HF_ID_TEXT - 1] = ' ';
    }
    text[count * HF_ID_TEXT] = '\0';
    return text;
}

void hf__answer_again(struct hf__op *op, const struct hf__cell *found)
{
    const size_t count = op->commit.transition->child_count;
    const char *text = hf__is_null(found[1]) ? "" : hf__as_text(found[1]);
    if (strlen(text) != count * HF_ID_TEXT) {
        hf__op_end(op, HF_CONFLICT,
                   "the request \"%s\" was sent before with other children: give each its own id",
                   op->commit.request);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char id[HF_ID_TEXT] = { 0 };
        memcpy(id, text + i * HF_ID_TEXT, HF_ID_TEXT - 1);
        if (!hf_id_parse(id, &op->commit.answered[i])) {
            hf__op_end(op, HF_INTERNAL, "the answer to the request \"%s\" is damaged",
                       op->commit.request);
            return;
        }
    }
    op->commit.repeated = true;
    hf__op_ok(op);
}

void hf__note_request(struct hf__batch *batch, const struct hf__op *op, struct hf__row *row,
                      int first)
{
    struct hf__table *lines = &batch->sheets[HF__STMT_INSERT_EVENTS].in;
    if (!op->commit.request)
        return;
    if (lines->nrows == first)
        hf__journal(batch, row, HF__LIFECYCLE, "gone_on", hf__commit_actor(op), NULL, NULL);
    if (lines->failed)
        return;
    struct hf__cell *c = hf__table_row(lines, first);
    c[9] = hf__text(op->commit.request);
    c[10] = hf__text(answer_of(batch, op));
}

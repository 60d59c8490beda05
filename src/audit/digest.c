/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/buffer.h"
#include "util/error.h"

/* A field is "LENGTH:BYTES,", so that no two lists of fields have the same bytes; a null is "-,". */
static void add_bytes(struct hf__buffer *out, const char *bytes, size_t length)
{
    hf__buffer_addf(out, "%zu:", length);
    hf__buffer_add(out, bytes, length);
    hf__buffer_add_text(out, ",");
}

static void add_number(struct hf__buffer *out, struct hf__cell cell)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%" PRId64, hf__as_number(cell));
    add_bytes(out, text, (size_t)length);
}

static void add_text(struct hf__buffer *out, struct hf__cell cell)
{
    if (hf__is_null(cell))
        hf__buffer_add_text(out, "-,");
    else
        add_bytes(out, cell.bytes, (size_t)cell.length);
}

static void add_run(struct hf__buffer *out, struct hf__cell cell)
{
    char text[HF_ID_TEXT];
    hf_id_format(hf__as_uuid(cell), text);
    add_bytes(out, text, strlen(text));
}

/* Frees the bytes. */
static hf_code finish(struct hf__digest *out, struct hf__buffer *bytes, hf_error *err)
{
    hf_code code =
        bytes->failed ? hf__nomem(err) : hf__digest_of(out, bytes->data, bytes->length, err);
    hf__buffer_free(bytes);
    return code;
}

hf_code hf__digest_event(struct hf__digest *out, const struct hf__cell *row, hf_error *err)
{
    struct hf__buffer bytes = { 0 };
    add_number(&bytes, row[HF__BLOCK_TENANT]);
    add_run(&bytes, row[HF__BLOCK_RUN]);
    add_number(&bytes, row[HF__BLOCK_SEQ]);
    add_number(&bytes, row[HF__BLOCK_VERSION]);
    add_number(&bytes, row[HF__BLOCK_POSITION]);
    add_number(&bytes, row[HF__BLOCK_AT]);
    add_number(&bytes, row[HF__BLOCK_KIND]);
    add_number(&bytes, row[HF__BLOCK_FORMAT]);
    for (int i = HF__BLOCK_NAME; i <= HF__BLOCK_DATA; i++)
        add_text(&bytes, row[i]);
    return finish(out, &bytes, err);
}

hf_code hf__digest_seal(struct hf__digest *out, const struct hf__seal *seal, hf_error *err)
{
    struct hf__buffer bytes = { 0 };
    hf__buffer_addf(&bytes,
                    "holdfast-seal-1\n%" PRId64 "\n%" PRId64 "\n%" PRId64 "\n%" PRId64 "\n%" PRId64
                    "\n",
                    seal->block, seal->lo, seal->hi, seal->events, seal->created_at);
    hf__buffer_add_text(&bytes, seal->previous);
    hf__buffer_add_text(&bytes, "\n");
    hf__buffer_add_text(&bytes, seal->runs);
    return finish(out, &bytes, err);
}

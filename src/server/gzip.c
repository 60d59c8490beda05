/* SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"

#include "util/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

enum { WORTH_IT = 1024, TOO_MUCH = 64 << 20, GZIP_WINDOW = 15 + 16 };

/* "gzip", or "gzip;q=" and more than nothing, among what is accepted. */
bool hf__accepts_gzip(const struct hf__request *request)
{
    const char *at = hf__request_header(request, "Accept-Encoding");
    while (at && *at) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ",");
        if (strncasecmp(at, "gzip", 4) == 0 && strchr("; \t,", at[4])) {
            const char *quality = memchr(at, '=', length);
            return !quality || strtod(quality + 1, NULL) > 0;
        }
        at += length;
    }
    return false;
}

/* The bytes are others than those of the plain answer, and may be others the next time. */
static void weaken_etag(struct hf__request *request)
{
    for (int i = 0; i < request->answer_header_count; i++) {
        struct hf__pair *header = &request->answer_headers[i];
        char *weak = strcmp(header->name, "ETag") == 0
                         ? hf__arena_printf(&request->arena, "W/%s", header->value)
                         : NULL;
        header->value = weak ? weak : header->value;
    }
}

bool hf__gzip(struct hf__buffer *out, const char *bytes, size_t length)
{
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)length };
    if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t bound = deflateBound(&stream, (uLong)length);
    char *packed = hf__malloc(bound);
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)bound;
    bool done = packed && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    if (done)
        hf__buffer_add(out, packed, stream.total_out);
    deflateEnd(&stream);
    free(packed);
    return done && !out->failed;
}

void hf__gzip_answer(struct hf__request *request)
{
    struct hf__buffer *out = &request->out;
    struct hf__buffer packed = { 0 };
    if (request->fixed || out->length < WORTH_IT || out->length > TOO_MUCH ||
        !hf__accepts_gzip(request))
        return;
    if (!hf__gzip(&packed, out->data, out->length)) {
        hf__buffer_free(&packed);
        return;
    }
    hf__buffer_free(out); /* the plain one would stay as long as the packed one is not read */
    *out = packed;
    hf__reply_header(request, "Content-Encoding", "gzip");
    weaken_etag(request);
}

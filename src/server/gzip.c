/* SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"

#include <string.h>
#include <zlib.h>

enum { WORTH_IT = 1024, GZIP_WINDOW = 15 + 16 };

bool hf__accepts_gzip(const struct hf__request *request)
{
    const char *accepted = hf__request_header(request, "Accept-Encoding");
    const char *gzip = accepted ? strstr(accepted, "gzip") : NULL;
    return gzip && strncmp(gzip, "gzip;q=0", 8) != 0;
}

void hf__gzip_answer(struct hf__request *request)
{
    struct hf__buffer *out = &request->out;
    if (request->fixed || out->length < WORTH_IT || !hf__accepts_gzip(request))
        return;
    z_stream stream = { 0 };
    if (deflateInit2(&stream, 1, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    size_t bound = deflateBound(&stream, (uLong)out->length);
    char *packed = hf__arena_alloc(&request->arena, bound);
    stream.next_in = (Bytef *)out->data;
    stream.avail_in = (uInt)out->length;
    stream.next_out = (Bytef *)packed;
    stream.avail_out = (uInt)bound;
    if (packed && deflate(&stream, Z_FINISH) == Z_STREAM_END) {
        hf__buffer_clear(out);
        hf__buffer_add(out, packed, stream.total_out);
        hf__reply_header(request, "Content-Encoding", "gzip");
    }
    deflateEnd(&stream);
}

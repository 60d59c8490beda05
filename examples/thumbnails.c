/* A worker in C: makes (pretended) thumbnails.
 *
 *   cc thumbnails.c serve.c $(pkg-config --cflags --libs holdfast) -o thumbnails
 *   ./thumbnails sqlite:shop.db
 *   holdfast --store sqlite:shop.db trigger media.thumbnail.v1 '{"image":"beach.jpg"}' --wait
 *
 * Every fifth image or so is "not uploaded yet" at the first look: the handler asks to be tried
 * again. Ctrl-C stops it: what is running ends first, the rest is given back to others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <stdio.h>
#include <time.h>

/* A long piece of work looks now and then whether it is still wanted. */
static hf_code draw(hf_ctx *ctx, hf_error *err)
{
    const struct timespec tick = { .tv_nsec = 20 * 1000 * 1000 };
    for (int i = 0; i < 10; i++) {
        hf_code code = hf_check(ctx);
        if (code != HF_OK) {
            snprintf(err->message, sizeof err->message, "stopped: %s", hf_code_meaning(code));
            return code;
        }
        nanosleep(&tick, NULL);
    }
    return HF_OK;
}

static bool is_uploaded(hf_ctx *ctx)
{
    return hf_ctx_attempt(ctx) > 1 || hf_ctx_run(ctx).bytes[15] % 5 != 0;
}

static hf_code thumbnail(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    (void)input;
    (void)arg;
    if (!is_uploaded(ctx)) {
        snprintf(err->message, sizeof err->message, "the image is not uploaded yet");
        hf_retry_after(ctx, HF_SECONDS(2));
        return HF_RETRY;
    }
    hf_code code = draw(ctx, err);
    if (code != HF_OK)
        return code;
    code = hf_record(ctx, "ThumbnailDrawn", "{\"width\":160}");
    return code == HF_OK ? hf_return(ctx, "{\"width\":160,\"height\":90}") : code;
}

int main(int argc, char **argv)
{
    static const struct served list[] = {
        { "media.thumbnail.v1", thumbnail },
        { NULL, NULL },
    };
    return serve(argc, argv, list);
}

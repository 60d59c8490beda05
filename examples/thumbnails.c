/* A worker in C: makes (pretended) thumbnails.
 *
 *   cc thumbnails.c $(pkg-config --cflags --libs holdfast) -o thumbnails
 *   ./thumbnails sqlite:shop.db
 *   holdfast --store sqlite:shop.db trigger media.thumbnail.v1 '{"image":"beach.jpg"}' --wait
 *
 * Every fifth image or so is "not uploaded yet" at the first look: the handler asks to be tried
 * again. Ctrl-C stops it: what is running ends first, the rest is given back to others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static hf_worker *worker;

static void stop(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

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

static int failed(const hf_error *err)
{
    fprintf(stderr, "thumbnails: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    hf_error err = { 0 };
    hf_client *client = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: thumbnails STORE, as in thumbnails sqlite:shop.db\n");
        return 2;
    }
    if (hf_open(&client, argv[1], NULL, &err) != HF_OK)
        return failed(&err);

    hf_code code = hf_worker_new(&worker, client, NULL, &err);
    if (code == HF_OK)
        code = hf_worker_handle(worker, "media.thumbnail.v1", thumbnail, NULL, &err);
    if (code == HF_OK) {
        signal(SIGINT, stop);
        signal(SIGTERM, stop);
        code = hf_worker_run(worker, &err);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
    hf_worker_free(worker);
    hf_close(client);
    return code == HF_OK ? 0 : failed(&err);
}

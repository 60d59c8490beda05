/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

#include <signal.h>
#include <stdio.h>

static hf_worker *worker;

static void stop(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

static hf_code work(hf_client *client, const struct served *list, hf_error *err)
{
    hf_code code = hf_worker_new(&worker, client, NULL, err);
    for (; code == HF_OK && list->workflow; list++)
        code = hf_worker_handle(worker, list->workflow, list->handler, NULL, err);
    if (code == HF_OK) {
        signal(SIGINT, stop);
        signal(SIGTERM, stop);
        code = hf_worker_run(worker, err);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
    hf_worker_free(worker);
    return code;
}

int serve(int argc, char **argv, const struct served *list)
{
    hf_error err = { 0 };
    hf_client *client = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: %s STORE, as in %s sqlite:shop.db\n", argv[0], argv[0]);
        return 2;
    }
    hf_code code = hf_open(&client, argv[1], NULL, &err);
    if (code == HF_OK)
        code = work(client, list, &err);
    hf_close(client);
    if (code != HF_OK)
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
    return code == HF_OK ? 0 : 1;
}

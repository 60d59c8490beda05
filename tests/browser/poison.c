/* Fails a run on a piece of its mail until that is a dead letter: poison STORE WORKFLOW MAIL
 *
 * Only a turn under the worker blames mail, so that the program and the HTTP API cannot do it. The run of WORKFLOW that is
 * due is the one that has it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <stdio.h>

enum { TIMES = 5 };

static hf_code blame(hf_client *client, const hf_run *run, const char *mail, hf_error *err)
{
    hf_transition turn = { .version = HF_TRANSITION_VERSION, .turn = HF_TURN_RETRY };
    turn.run = run->id;
    turn.run_version = run->version;
    turn.worker = "poisoned";
    turn.blamed = &mail;
    turn.blamed_count = 1;
    turn.last_error = "this signal cannot be read";
    return hf_commit(client, &turn, NULL, err);
}

static hf_code fail_once(hf_client *client, const char *workflow, const char *mail, hf_error *err)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "poisoned";
    spec.patterns = &workflow;
    spec.pattern_count = 1;
    hf_code code = hf_claim(client, &claims, &spec, err);
    if (code == HF_OK && claims->count == 0) {
        snprintf(err->message, sizeof err->message, "no run of %s is due", workflow);
        code = HF_NOT_FOUND;
    }
    if (code == HF_OK)
        code = blame(client, &claims->items[0].run, mail, err);
    hf_claims_free(claims);
    return code;
}

int main(int argc, char **argv)
{
    hf_client *client = NULL;
    hf_error err = { 0 };
    hf_code code = argc == 4 ? hf_open(&client, argv[1], NULL, &err) : HF_INVALID;
    for (int i = 0; i < TIMES && code == HF_OK; i++)
        code = fail_once(client, argv[2], argv[3], &err);
    if (code != HF_OK)
        fprintf(stderr, "poison: %s\n", err.message);
    hf_close(client);
    return code == HF_OK ? 0 : 1;
}

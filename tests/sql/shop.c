/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/shop.h"

#include <stdio.h>

struct scratch scratch;
hf_client *client;

hf_claims *claim_from(const char *workflow)
{
    hf_claim_spec spec = HF_CLAIM_INIT;
    hf_claims *claims = NULL;
    spec.worker = "anna";
    spec.patterns = &workflow;
    spec.pattern_count = 1;
    assert_ok(hf_claim(client, &claims, &spec, err));
    assert_int_equal(claims->count, 1);
    return claims;
}

char waiting_workflow[40];

hf_id waiting_run(void)
{
    static int counter;
    hf_workflow workflow = { .name = waiting_workflow };
    snprintf(waiting_workflow, sizeof waiting_workflow, "waiting-%d", counter++);
    assert_ok(hf_workflow_put(client, &workflow, 0, err));
    pg_do(scratch.pg, "SELECT holdfast.trigger('%s')", waiting_workflow);
    hf_claims *claims = claim_from(waiting_workflow);
    hf_transition wait = { .version = HF_TRANSITION_VERSION,
                           .run = claims->items[0].run.id,
                           .run_version = claims->items[0].run.version,
                           .turn = HF_TURN_WAIT,
                           .waiting_kind = "signal",
                           .worker = "anna" };
    assert_ok(hf_commit(client, &wait, NULL, err));
    hf_claims_free(claims);
    return wait.run;
}

const char *text_of(hf_id id)
{
    static char text[HF_ID_TEXT];
    hf_id_format(id, text);
    return text;
}

int shop_set_up(void **state)
{
    (void)state;
    scratch_create(&scratch);
    client = scratch_open(scratch.url);
    hf_workflow workflow = { .name = "work" };
    hf_workflow soon = { .name = "soon" };
    assert_ok(hf_workflow_put(client, &workflow, 0, err));
    assert_ok(hf_workflow_put(client, &soon, 0, err));
    return 0;
}

int shop_tear_down(void **state)
{
    (void)state;
    hf_close(client);
    scratch_drop(&scratch);
    return 0;
}

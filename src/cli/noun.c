/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/noun.h"

/* It is this one to look at, not a run. */
static int fail_not_allowed(struct cli_session *session, const struct cli_noun *noun,
                            const char *operand, const hf_error *err)
{
    char hint[200];
    snprintf(hint, sizeof hint, "look at it with `holdfast %s show %.100s`", noun->family, operand);
    return cli_fail_hint(session, err, noun->print ? hint : NULL);
}

int cli_noun_fail(struct cli_session *session, const struct cli_noun *noun, const char *operand,
                  const hf_error *err)
{
    if (err->code == HF_NOT_FOUND)
        return cli_failf(session, err->code, "no %s %.100s in tenant %.60s; see `holdfast %s list`",
                         noun->term, operand, cli_tenant(session), noun->family);
    return err->code == HF_NOT_ALLOWED ? fail_not_allowed(session, noun, operand, err)
                                       : cli_fail(session, err);
}

bool cli_noun_id(struct cli_session *session, const struct cli_noun *noun, const char *operand,
                 hf_id *id, int *status)
{
    if (hf_id_parse(operand, id))
        return cli_open(session, status);
    *status = cli_usage(session, "\"%.60s\" is not the id of a %s: see `holdfast %s list`", operand,
                        noun->term, noun->family);
    return false;
}

int cli_noun_show(struct cli_session *session, const struct cli_noun *noun, const char *name)
{
    int status = CLI_OK;
    return cli_open(session, &status) ? noun->print(session, name) : status;
}

int cli_noun_changed(struct cli_session *session, const struct cli_noun *noun, const char *operand,
                     hf_code code, const hf_error *err)
{
    if (code != HF_OK)
        return cli_noun_fail(session, noun, operand, err);
    return session->json ? noun->print(session, operand) : CLI_OK;
}

int cli_noun_change(struct cli_session *session, const struct cli_noun *noun, const char *name,
                    cli_noun_function *change)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    hf_code code = change(session->client, name, &err);
    return cli_noun_changed(session, noun, name, code, &err);
}

int cli_noun_remove(struct cli_session *session, const struct cli_noun *noun, const char *name,
                    cli_noun_function *remove)
{
    int status = CLI_OK;
    hf_error err = { 0 };
    if (!cli_open(session, &status))
        return status;
    return remove(session->client, name, &err) == HF_OK ? CLI_OK
                                                        : cli_noun_fail(session, noun, name, &err);
}

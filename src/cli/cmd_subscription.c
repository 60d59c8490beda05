/* holdfast subscription create, list, show, test, park, resume, delete
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/noun.h"
#include "cli/table.h"
#include "record/field.h"

#include <holdfast/outbox.h>

#include <stdio.h>
#include <string.h>

static struct {
    const char *url, *mode, *secret;
    struct cli_texts events;
    int64_t max_failures;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "url", "URL", "where events are delivered to, by POST: http or https",
            .value = &args.url),
    CLI_OPT(TEXTS, 0, "event", "TYPE",
            "what is delivered: a type, or a prefix with a star as in 'order.*'; may be given "
            "several times; default '*', all but holdfast.*",
            .value = &args.events),
    CLI_OPT(TEXT, 0, "mode", "MODE",
            "of CloudEvents: structured (default), one JSON object; or binary, attributes as "
            "headers",
            .value = &args.mode),
    CLI_OPT(TEXT, 0, "secret", "SECRET",
            "whsec_ and 24 to 64 bytes as base64; default: made, and shown once",
            .value = &args.secret),
    CLI_OPT(NUMBER, 0, "max-failures", "N", "in a row, before it is parked; default 10",
            .value = &args.max_failures, .min = 1, .max = 100000),
    CLI_OPTIONS_END,
};

/* ---- show ---- */

static const struct cli_column lines[] = {
    { .header = "name", .field = "name" },
    { .header = "state", .field = "state" },
    { .header = "url", .field = "url" },
    { .header = "events", .field = "events" },
    { .header = "mode", .field = "mode" },
    { .header = "pending", .field = "pending" },
    { .header = "oldest", .field = "oldest_at" },
    { .header = "failures", .field = "failures" },
    { .header = "max failures", .field = "max_failures" },
    { .header = "last error", .field = "last_error" },
    { .header = "next try", .field = "retry_at" },
    { .header = "created", .field = "created_at" },
    { .header = "run", .field = "run" },
    { .header = NULL },
};

static int print(struct cli_session *session, const char *name);

static const struct cli_noun noun = { "subscription named", "subscription", print };

static int print(struct cli_session *session, const char *name)
{
    hf_subscription *subscription = NULL;
    hf_error err = { 0 };
    if (hf_subscription_get(session->client, &subscription, name, &err) != HF_OK)
        return cli_noun_fail(session, &noun, name, &err);
    cli_block_print(session, lines, hf__subscription_fields, subscription);
    hf_subscription_free(subscription);
    return CLI_OK;
}

static int show(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_show(session, &noun, operands[0]);
}

/* ---- create ---- */

/* What a receiver needs to check signatures; never shown again. */
struct created {
    const char *name;
    const char *secret; /* NULL: as it was */
};

static const struct hf__field created_fields[] = {
    { "name", HF__FIELD_TEXT, offsetof(struct created, name) },
    { "secret", HF__FIELD_TEXT, offsetof(struct created, secret) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static const struct cli_column created_lines[] = {
    { .header = "name", .field = "name" },
    { .header = "secret", .field = "secret" },
    { .header = NULL },
};

static int create(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_subscription_spec spec = HF_SUBSCRIPTION_INIT;
    char secret[HF_SECRET_TEXT];
    if (!args.url)
        return cli_usage(session, "say where events are delivered to: --url URL");
    if (args.mode && !hf_event_mode_parse(args.mode, &spec.mode))
        return cli_usage(session, "--mode is structured or binary, not \"%.60s\"", args.mode);
    spec.name = operands[0];
    spec.url = args.url;
    spec.events = args.events.items;
    spec.event_count = args.events.count;
    spec.secret = args.secret;
    spec.max_failures = (int)args.max_failures;
    if (!cli_open(session, &status))
        return status;
    if (hf_subscription_put(session->client, &spec, secret, &err) != HF_OK)
        return cli_fail(session, &err);
    struct created made = { .name = spec.name, .secret = *secret ? secret : NULL };
    cli_block_print(session, created_lines, created_fields, &made);
    if (*secret)
        cli_notice(session, "keep the secret: it is not shown again");
    return CLI_OK;
}

/* ---- list ---- */

static const struct cli_column columns[] = {
    { .header = "NAME", .field = "name", .shrinks = true },
    { .header = "STATE", .field = "state" },
    { .header = "EVENTS", .field = "events", .shrinks = true },
    { .header = "URL", .field = "url", .shrinks = true },
    { .header = "PENDING", .field = "pending", .right = true },
    { .header = "OLDEST", .field = "oldest_at" },
    { .header = "FAILURES", .field = "failures", .right = true },
    { .header = NULL },
};

static int list(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    hf_subscriptions *found = NULL;
    if (!cli_open(session, &status))
        return status;
    if (hf_subscription_list(session->client, &found, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_table_print(session, columns, hf__subscription_fields, found->items, sizeof *found->items,
                    found->count, true);
    if (found->count == 0)
        cli_notice(session,
                   "no subscriptions in %s (tenant %s); create one with `holdfast subscription "
                   "create NAME --url URL`",
                   cli_store_name(session), cli_tenant(session));
    hf_subscriptions_free(found);
    return CLI_OK;
}

/* ---- test ---- */

struct answer {
    int status;
};

static const struct hf__field answer_fields[] = {
    { "status", HF__FIELD_INT, offsetof(struct answer, status) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static const struct cli_column answer_lines[] = {
    { .header = "status", .field = "status" },
    { .header = NULL },
};

static int test(struct cli_session *session, int count, char **operands)
{
    (void)count;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct answer answer = { 0 };
    if (!cli_open(session, &status))
        return status;
    if (hf_subscription_test(session->client, operands[0], &answer.status, &err) != HF_OK)
        return cli_noun_fail(session, &noun, operands[0], &err);
    cli_block_print(session, answer_lines, answer_fields, &answer);
    return CLI_OK;
}

/* ---- park, resume, delete ---- */

static int park(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_change(session, &noun, operands[0], hf_subscription_park);
}

static int resume(struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_change(session, &noun, operands[0], hf_subscription_resume);
}

static int delete (struct cli_session *session, int count, char **operands)
{
    (void)count;
    return cli_noun_remove(session, &noun, operands[0], hf_subscription_delete);
}

/* ---- The table ---- */

const struct cli_command cli_command_subscription_create = {
    .name = "subscription create",
    .summary = "Have events delivered to a URL, or change how",
    .operands = "NAME",
    .details =
        "Events that runs put into the outbox from now on are sent as CloudEvents, signed as "
        "Standard Webhooks say, at least once and in order per run, as long as any worker of "
        "the tenant lives. A subscription of that name gets the new settings and keeps its "
        "secret unless another is given.",
    .examples = "holdfast subscription create shop --url https://shop.example/hooks --event "
                "'order.*'\n"
                "holdfast subscription create alerts --url https://ops.example/hooks --event "
                "'holdfast.*'",
    .min_operands = 1,
    .max_operands = 1,
    .options = options,
    .creates = true,
    .run = create,
};

const struct cli_command cli_command_subscription_list = {
    .name = "subscription list",
    .summary = "List the subscriptions with what is still to be delivered",
    .operands = "",
    .run = list,
};

const struct cli_command cli_command_subscription_show = {
    .name = "subscription show",
    .summary = "Show a subscription",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .run = show,
};

const struct cli_command cli_command_subscription_test = {
    .name = "subscription test",
    .summary = "Send a test event to a subscription's URL at once",
    .operands = "NAME",
    .details = "It is of type holdfast.test, signed, sent from here and past the outbox.",
    .min_operands = 1,
    .max_operands = 1,
    .run = test,
};

const struct cli_command cli_command_subscription_park = {
    .name = "subscription park",
    .summary = "Keep a subscription's events back until it is resumed",
    .operands = "NAME",
    .min_operands = 1,
    .max_operands = 1,
    .run = park,
};

const struct cli_command cli_command_subscription_resume = {
    .name = "subscription resume",
    .summary = "Deliver to a parked subscription again",
    .operands = "NAME",
    .details = "Its failures are forgotten, and what was kept back is delivered at once.",
    .min_operands = 1,
    .max_operands = 1,
    .run = resume,
};

const struct cli_command cli_command_subscription_delete = {
    .name = "subscription delete",
    .summary = "Remove a subscription",
    .operands = "NAME",
    .details = "What was not delivered to it never will be.",
    .min_operands = 1,
    .max_operands = 1,
    .run = delete,
};

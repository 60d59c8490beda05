/* holdfast ask: for durable programs
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/inside.h"

#include <stdlib.h>
#include <string.h>

static struct {
    const char *title, *assignee, *form;
    struct cli_texts roles;
    int64_t due, timeout;
} args;

static const struct cli_option options[] = {
    CLI_OPT(TEXT, 0, "title", "TEXT", "the task's name; default NAME", .value = &args.title),
    CLI_OPT(TEXT, 0, "assignee", "PERSON", "who shall answer; default anybody",
            .value = &args.assignee),
    CLI_OPT(TEXTS, 0, "role", "ROLE", "who might answer; may be given several times",
            .value = &args.roles),
    CLI_OPT(TEXT, 0, "form", "JSON", "how to ask for the result; @FILE is accepted",
            .value = &args.form),
    CLI_OPT(DURATION, 0, "due-in", "DURATION", "when the answer is due", .value = &args.due,
            .min = -1),
    CLI_OPT(DURATION, 0, "timeout", "DURATION",
            "give up after so long, with exit code 6; 0: no limit", .value = &args.timeout),
    CLI_OPTIONS_END,
};

/* As a JSON array, which is a text in the request. */
static void add_roles(struct hf__buffer *request)
{
    struct hf__buffer roles = { 0 };
    if (args.roles.count == 0)
        return;
    hf__buffer_add_json_strings(&roles, args.roles.items, args.roles.count);
    if (roles.failed)
        request->failed = true;
    else
        cli_request_text(request, "roles", roles.data);
    hf__buffer_free(&roles);
}

static int send_question(struct cli_session *session, const char *name, const char *payload,
                         const char *form)
{
    int status = CLI_OK;
    struct hf__buffer request;
    cli_request_begin(&request, "ask");
    cli_request_text(&request, "name", name);
    cli_request_text(&request, "title", args.title);
    cli_request_text(&request, "assignee", args.assignee);
    cli_request_text(&request, "payload", payload);
    cli_request_text(&request, "form", form);
    add_roles(&request);
    cli_request_number(&request, "due", args.due);
    cli_request_number(&request, "timeout", args.timeout);
    json_t *answer = cli_ask_worker(session, &request, false, &status);
    const char *text = json_string_value(json_object_get(answer, "answer"));
    if (answer)
        puts(text ? text : "null");
    json_decref(answer);
    return status;
}

static int ask(struct cli_session *session, int count, char **operands)
{
    char *payload = NULL, *form = NULL;
    hf_error err = { 0 };
    if ((count > 1 && cli_input_json(&payload, "payload", operands[1], &err) != HF_OK) ||
        (args.form && cli_input_json(&form, "form", args.form, &err) != HF_OK)) {
        free(payload);
        return cli_fail(session, &err);
    }
    int status = send_question(session, operands[0], payload, form);
    free(payload);
    free(form);
    return status;
}

const struct cli_command cli_command_ask = {
    .name = "ask",
    .summary = "Ask a person and wait for the answer",
    .operands = "NAME [PAYLOAD|@FILE|-]",
    .details = "Makes a task, once, and prints its answer as JSON: task, outcome, result, by. The "
               "program is ended meanwhile and started again when somebody has answered. PAYLOAD "
               "is JSON that says what it is about.\n"
               "Works inside a program that `holdfast worker --exec` runs; see `holdfast help "
               "step`.",
    .examples =
        "holdfast ask approval '{\"amount\":700}' --role boss --timeout 3d | jq -r .outcome",
    .min_operands = 1,
    .max_operands = 2,
    .options = options,
    .run = ask,
};

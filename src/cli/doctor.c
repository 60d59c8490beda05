/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include "cli/field.h"
#include "cli/terminal.h"
#include "client/client.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 24 }; /* where a finding's text begins */

static const char *const level_names[] = {
    [CLI_FINE] = "ok",
    [CLI_WARNING] = "warning",
    [CLI_DANGER] = "danger",
};

struct finding {
    const char *check;
    const char *level;
    const char *message;
    const char *advice;
};

static const struct hf__field finding_fields[] = {
    { "check", HF__FIELD_TEXT, offsetof(struct finding, check) },
    { "level", HF__FIELD_TEXT, offsetof(struct finding, level) },
    { "message", HF__FIELD_TEXT, offsetof(struct finding, message) },
    { "advice", HF__FIELD_TEXT, offsetof(struct finding, advice) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void put_text(const char *text)
{
    char *clean = cli_clean_line(text);
    if (clean)
        cli_put_folded(stdout, clean, INDENT);
    putchar('\n');
    free(clean);
}

static void print_text(const struct cli_session *session, const struct finding *finding,
                       enum cli_level level)
{
    static const char *const statuses[] = { "succeeded", "waiting", "failed" };
    bool colors = cli_terminal_colors(session);
    printf("%s%-7s%s  %-13s  ", colors ? cli_color_of(statuses[level]) : "", finding->level,
           colors ? cli_color_end : "", finding->check);
    put_text(finding->message);
    if (finding->advice) {
        printf("%*s", INDENT, "-> ");
        put_text(finding->advice);
    }
}

void cli_doctor_say(struct cli_doctor *doctor, const char *check, enum cli_level level,
                    const char *advice, const char *fmt, ...)
{
    char message[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    struct finding finding = { check, level_names[level], message, advice };
    doctor->findings += level != CLI_FINE;
    if (doctor->session->json)
        cli_record_json(stdout, finding_fields, &finding);
    else if (level != CLI_FINE || !doctor->session->quiet)
        print_text(doctor->session, &finding, level);
    fflush(stdout);
}

bool cli_doctor_ask(struct cli_doctor *doctor, const char *check, struct hf__ask *ask)
{
    hf_error err = { 0 };
    if (hf__ask_send(ask, &err) == HF_OK)
        return true;
    bool locked = strcmp(err.sqlstate, "55P03") == 0;
    cli_doctor_say(doctor, check, CLI_WARNING,
                   locked ? "somebody has locked a table of the store: see \"locks\""
                          : "give this user the right to look, or use the owner of the schema",
                   "cannot look: %s", err.message);
    return false;
}

bool cli_doctor_has(const struct cli_doctor *doctor, enum hf__stmt stmt)
{
    return hf__engine_driver(doctor->session->client->engine)->statements[stmt].sql != NULL;
}

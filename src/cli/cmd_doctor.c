/* holdfast doctor
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/field.h"
#include "util/clock.h"

#include <inttypes.h>

#define SLOW HF_SECONDS(1) /* for an answer to the simplest question */
#define SKEW_LARGE HF_SECONDS(2)
#define SKEW_HUGE HF_MINUTES(1)

static int64_t patience;

static const struct cli_option options[] = {
    CLI_OPT(DURATION, 0, "longer-than", "DURATION",
            "tell of transactions and due runs that are older than this; default 5m",
            .value = &patience, .min = -1),
    CLI_OPTIONS_END,
};

static hf_code check_store(struct cli_doctor *doctor, hf_error *err)
{
    struct cli_session *session = doctor->session;
    char took[CLI_SPAN_TEXT];
    int64_t now;
    int in_store, newest;
    int64_t began = hf__monotonic_us();
    hf_code code = hf_store_now(session->client, &now, err);
    bool slow = hf__monotonic_us() - began > SLOW;
    cli_span_text(hf__monotonic_us() - began, took);
    if (code == HF_OK)
        code = hf_schema(session->client, &in_store, &newest, err);
    if (code != HF_OK)
        return code;
    cli_doctor_say(doctor, "store", slow ? CLI_WARNING : CLI_FINE,
                   slow ? "look at the load of the store's machine, and at the network in between"
                        : NULL,
                   "%s answers in %s", cli_store_name(session), took);
    cli_doctor_say(doctor, "schema", in_store > newest ? CLI_WARNING : CLI_FINE,
                   in_store > newest ? "install the newer program here too" : NULL,
                   "version %d, this program knows %d", in_store, newest);
    return HF_OK;
}

/* What the answer itself took is not counted as a difference. */
static hf_code check_clock(struct cli_doctor *doctor, hf_error *err)
{
    char span[CLI_SPAN_TEXT];
    int64_t now;
    int64_t before = hf__clock_now(&hf__system_clock);
    hf_code code = hf_store_now(doctor->session->client, &now, err);
    int64_t after = hf__clock_now(&hf__system_clock);
    if (code != HF_OK)
        return code;
    int64_t skew = now < before ? before - now : now > after ? now - after : 0;
    enum cli_level level = skew > SKEW_HUGE    ? CLI_DANGER
                           : skew > SKEW_LARGE ? CLI_WARNING
                                               : CLI_FINE;
    cli_span_text(skew, span);
    cli_doctor_say(doctor, "clock", level,
                   level == CLI_FINE ? NULL
                                     : "let both machines keep time by NTP; deadlines go by the "
                                       "store's clock",
                   level == CLI_FINE ? "this machine's and the store's agree, within %s"
                                     : "this machine's and the store's differ by %s",
                   span);
    return HF_OK;
}

static int doctor(struct cli_session *session, int count, char **operands)
{
    (void)count, (void)operands;
    int status = CLI_OK;
    hf_error err = { 0 };
    struct cli_doctor doctor = { .session = session,
                                 .patience = patience > 0 ? patience : HF_MINUTES(5) };
    if (!cli_open_unmigrated(session, &status))
        return status;
    if (check_store(&doctor, &err) != HF_OK || check_clock(&doctor, &err) != HF_OK)
        return cli_fail(session, &err);
    cli_doctor_server(&doctor);
    cli_doctor_disk(&doctor);
    cli_doctor_work(&doctor);
    return doctor.findings ? CLI_FAILED : CLI_OK;
}

const struct cli_command cli_command_doctor = {
    .name = "doctor",
    .summary = "Look for what is wrong with the store and its queues",
    .operands = "",
    .details =
        "One line for each thing that was looked at: ok, warning or danger, and what to do. It "
        "looks "
        "at the store, its schema and its clock; on PostgreSQL at settings that endanger "
        "durability, "
        "at connections, long transactions, locks and dead rows; on SQLite at the file "
        "system, the log and who may open the files; at the room on the disk, as far as it can be "
        "seen; at the triggers that keep the "
        "journal "
        "append-only; then at queues that do not move, "
        "dead workers that hold runs, and "
        "parked subscriptions. It changes nothing.\n"
        "Exit code 0: all is fine. 1: something was found. 5: the store cannot be reached, or has "
        "another schema. --quiet shows only what was found.\n"
        "On PostgreSQL a role sees only its own transactions, unless it has pg_monitor.",
    .examples = "holdfast doctor\n"
                "holdfast doctor --json | jq -r 'select(.level != \"ok\") | .message'",
    .options = options,
    .run = doctor,
};

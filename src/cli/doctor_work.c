/* Queues that do not move, and whoever should move them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"
#include "cli/field.h"
#include "client/coverage.h"
#include "client/measure.h"
#include "kernel/chores.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { HELD_MOST = 1000000 }; /* unfinished runs among which the held ones are looked for */

/* ---- Queues ---- */

static bool row_covers(const struct hf__cell *c, const struct hf__depth *depth)
{
    size_t i;
    json_t *item;
    bool covers = false;
    json_t *serves = json_loads(hf__as_text(c[1]), 0, NULL);
    json_array_foreach(serves, i, item)
    {
        const char *pattern = json_string_value(item);
        covers |= pattern && hf__pattern_serves(pattern, depth->workflow);
    }
    json_decref(serves);
    return covers && hf__tenant_listed(hf__as_text(c[0]), depth->tenant);
}

static bool is_covered(const struct hf__table *patterns, const struct hf__depth *depth)
{
    for (int i = 0; i < patterns->nrows; i++)
        if (row_covers(hf__table_row(patterns, i), depth))
            return true;
    return false;
}

static bool check_queue(struct cli_doctor *doctor, const struct hf__measure *measure,
                        const struct hf__depth *depth, bool covered)
{
    char span[CLI_SPAN_TEXT];
    int64_t age = measure->now - depth->oldest;
    if (depth->paused || !depth->oldest)
        return true;
    cli_span_text(age, span);
    if (!covered && age <= doctor->patience &&
        strncmp(depth->workflow, HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) == 0)
        return true; /* the next worker does it */
    if (!covered)
        cli_doctor_say(doctor, "queues", CLI_WARNING,
                       "start a worker for it, or see with `holdfast workers` what those that live "
                       "serve",
                       "%s (tenant %s) has had due runs for %s, and no live worker serves it",
                       depth->workflow, depth->tenant, span);
    else if (age > doctor->patience)
        cli_doctor_say(doctor, "queues", CLI_WARNING,
                       "look at its limits with `holdfast workflow show`, and whether workers have "
                       "threads left: `holdfast top`",
                       "%s (tenant %s) has had due runs for %s although %" PRId64
                       " workers live; they have %" PRId64 " threads and hold %" PRId64 " runs",
                       depth->workflow, depth->tenant, span, measure->workers, measure->threads,
                       measure->running);
    return covered && age <= doctor->patience;
}

static void check_queues(struct cli_doctor *doctor)
{
    struct hf__engine *engine = doctor->session->client->engine;
    struct hf__measure *measure = NULL;
    struct hf__ask ask;
    hf_error err = { 0 };
    bool fine = true;
    if (hf__measure(engine, 0, &measure, &err) != HF_OK) {
        cli_doctor_say(doctor, "queues", CLI_WARNING,
                       "somebody may have locked a table of the store: see \"locks\"",
                       "cannot look: %s", err.message);
        return;
    }
    hf__ask_begin(&ask, engine, HF__STMT_LIVE_PATTERNS);
    if (cli_doctor_ask(doctor, "queues", &ask)) {
        for (size_t i = 0; i < measure->count; i++)
            fine &= check_queue(doctor, measure, &measure->items[i],
                                is_covered(&ask.out, &measure->items[i]));
        if (fine && measure->workers)
            cli_doctor_say(doctor, "queues", CLI_FINE, NULL,
                           "what is due is being worked on, by %" PRId64 " live workers",
                           measure->workers);
        else if (fine)
            cli_doctor_say(doctor, "queues", CLI_FINE, NULL,
                           "nothing waits for a worker, and no worker is live");
    }
    hf__ask_end(&ask);
    hf__measure_free(measure);
}

/* ---- The journal, workers and subscriptions ---- */

static void check_guards(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, doctor->session->client->engine, HF__STMT_MISSING_GUARDS);
    if (cli_doctor_ask(doctor, "journal", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++)
            cli_doctor_say(doctor, "journal", CLI_DANGER,
                           "find out who removed it, run `holdfast audit verify`, and create it "
                           "again as it is in a new store",
                           "the trigger %s, which keeps the journal from being changed, is not "
                           "there or is switched off",
                           hf__as_text(hf__table_row(&ask.out, i)[0]));
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "journal", CLI_FINE, NULL, "the database keeps it append-only");
    }
    hf__ask_end(&ask);
}

static void check_holders(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, doctor->session->client->engine, HF__STMT_FIND_DEAD_HOLDERS)[0] =
        hf__number(HELD_MOST);
    if (cli_doctor_ask(doctor, "workers", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++) {
            const struct hf__cell *c = hf__table_row(&ask.out, i);
            char until[CLI_TIME_TEXT];
            cli_time_text(doctor->session, hf__as_number(c[2]), until);
            cli_doctor_say(doctor, "workers", CLI_WARNING,
                           "nothing, if a worker serves them: they go to it when their leases end; "
                           "give long workflows a shorter lease if that is too late",
                           "%s is dead and holds %" PRId64 " runs; end of the last lease: %s",
                           hf__as_text(c[0]), hf__as_number(c[1]), until);
        }
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "workers", CLI_FINE, NULL, "no dead worker holds runs");
    }
    hf__ask_end(&ask);
}

/* Busy ones may take as long as they like. Of these the runs are gone, and nobody will ever get their threads back. */
static void check_stuck(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, doctor->session->client->engine, HF__STMT_FIND_STUCK);
    if (cli_doctor_ask(doctor, "threads", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++) {
            const struct hf__cell *c = hf__table_row(&ask.out, i);
            cli_doctor_say(doctor, "threads", CLI_WARNING,
                           "see in its log which handlers do not return, restart it, and give "
                           "them time limits of their own",
                           "%s is live, but %" PRId64 " of its handlers do not return although "
                           "their runs are gone; it has %" PRId64 " threads",
                           hf__as_text(c[0]), hf__as_number(c[1]), hf__as_number(c[2]));
        }
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "threads", CLI_FINE, NULL,
                           "no live worker has lost all its threads");
    }
    hf__ask_end(&ask);
}

static void tell_unfit(struct cli_doctor *doctor, const struct hf__cell *c)
{
    char id[HF_ID_TEXT], span[CLI_SPAN_TEXT];
    const char *why = hf__as_text(c[5]);
    int64_t runs = hf__as_number(c[2]);
    hf_id_format(hf__as_uuid(c[4]), id);
    cli_span_text(hf__as_number(c[6]) - hf__as_number(c[3]), span);
    cli_doctor_say(doctor, "versions", CLI_WARNING,
                   "let workers live that have the code with which these runs began, or mend the "
                   "new code: see versions.md. They fail when the workflow's fit_within has passed",
                   "%s (tenant %s) has %" PRId64 " %s for a worker whose code fits, for up to %s; "
                   "%s: %s",
                   hf__as_text(c[1]), hf__as_text(c[0]), runs,
                   runs == 1 ? "run that waits" : "runs that wait", span, id, why ? why : "");
}

static void check_versions(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, doctor->session->client->engine, HF__STMT_FIND_UNFIT)[0] =
        hf__number(HELD_MOST);
    if (cli_doctor_ask(doctor, "versions", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++)
            tell_unfit(doctor, hf__table_row(&ask.out, i));
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "versions", CLI_FINE, NULL,
                           "no run waits for a worker whose code fits it");
    }
    hf__ask_end(&ask);
}

static void check_subscriptions(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, doctor->session->client->engine, HF__STMT_FIND_PARKED);
    if (cli_doctor_ask(doctor, "subscriptions", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++) {
            const struct hf__cell *c = hf__table_row(&ask.out, i);
            const char *error = hf__as_text(c[2]);
            cli_doctor_say(
                doctor, "subscriptions", CLI_WARNING,
                "mend its receiver, then `holdfast subscription resume`: its events are kept",
                "%s (tenant %s) is parked, nothing is delivered to it: %s", hf__as_text(c[1]),
                hf__as_text(c[0]), error ? error : "no error is known");
        }
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "subscriptions", CLI_FINE, NULL, "none is parked");
    }
    hf__ask_end(&ask);
}

void cli_doctor_work(struct cli_doctor *doctor)
{
    check_queues(doctor);
    check_guards(doctor);
    check_holders(doctor);
    check_stuck(doctor);
    check_versions(doctor);
    check_subscriptions(doctor);
}

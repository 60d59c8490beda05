/* The database server: what endangers durability, what holds back cleaning up, who is in the way.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"
#include "cli/field.h"
#include "client/client.h"

#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
    CROWDED = 80,      /* percent of the connections */
    MANY_DEAD = 10000, /* rows that may wait for cleaning up in any table */
    DEAD_PERCENT = 25  /* of those that live, beyond that */
};

static struct hf__engine *engine_of(const struct cli_doctor *doctor)
{
    return doctor->session->client->engine;
}

/* ---- Settings ---- */

static const struct setting {
    const char *name;
    const char *bad;
    const char *check;
    enum cli_level level;
    const char *meaning;
    const char *advice;
} settings[] = {
    { "fsync", "off", "durability", CLI_DANGER,
      "fsync is off: a crash of the machine loses or corrupts the whole database",
      "set fsync = on in postgresql.conf and reload the server" },
    { "full_page_writes", "off", "durability", CLI_DANGER,
      "full_page_writes is off: a crash of the machine can leave pages torn",
      "set full_page_writes = on in postgresql.conf and reload the server" },
    { "synchronous_commit", "off", "durability", CLI_WARNING,
      "synchronous_commit is off by default: the engine turns it on for itself, but what "
      "applications trigger in their own transactions can be lost in a crash",
      "set synchronous_commit = on for the roles that use the SQL functions" },
    { "autovacuum", "off", "autovacuum", CLI_DANGER,
      "autovacuum is off: the tables grow without bounds, and claims become slow",
      "set autovacuum = on in postgresql.conf and reload the server" },
    { "track_counts", "off", "autovacuum", CLI_DANGER,
      "track_counts is off, without which autovacuum does nothing",
      "set track_counts = on in postgresql.conf and reload the server" },
};

static bool check_setting(struct cli_doctor *doctor, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strcmp(settings[i].name, name) == 0 && strcmp(settings[i].bad, value) == 0) {
            cli_doctor_say(doctor, settings[i].check, settings[i].level, settings[i].advice, "%s",
                           settings[i].meaning);
            return false;
        }
    return true;
}

static void check_settings(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    bool fine = true;
    hf__ask_begin(&ask, engine_of(doctor), HF__STMT_SERVER_SETTINGS);
    if (cli_doctor_ask(doctor, "durability", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++) {
            const struct hf__cell *c = hf__table_row(&ask.out, i);
            fine &= check_setting(doctor, hf__as_text(c[0]), hf__as_text(c[1]));
        }
        if (fine)
            cli_doctor_say(doctor, "durability", CLI_FINE, NULL,
                           "what is committed survives a crash");
    }
    hf__ask_end(&ask);
}

/* ---- Connections ---- */

static void check_connections(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine_of(doctor), HF__STMT_SERVER_CONNECTIONS);
    if (cli_doctor_ask(doctor, "connections", &ask)) {
        const struct hf__cell *c = hf__table_row(&ask.out, 0);
        int64_t used = hf__as_number(c[0]);
        int64_t most = hf__as_number(c[1]);
        bool crowded = used * 100 >= most * CROWDED;
        cli_doctor_say(doctor, "connections", crowded ? CLI_WARNING : CLI_FINE,
                       crowded ? "raise max_connections, use fewer processes, or put a pooler in "
                                 "between (docs/postgres.md)"
                               : NULL,
                       "%" PRId64 " of %" PRId64 " connections are in use", used, most);
    }
    hf__ask_end(&ask);
}

/* ---- Others' transactions ---- */

static void tell_transaction(struct cli_doctor *doctor, const struct hf__cell *c)
{
    char span[CLI_SPAN_TEXT];
    int64_t pid = hf__as_number(c[0]);
    int64_t waiting = hf__as_number(c[5]);
    const char *who = hf__as_text(c[1]);
    const char *program = hf__as_text(c[2]);
    const char *state = hf__as_text(c[3]);
    cli_span_text(hf__as_number(c[4]), span);
    if (pid == 0)
        cli_doctor_say(doctor, "transactions", CLI_WARNING,
                       "commit prepared or rollback prepared it: it keeps dead rows from being "
                       "cleaned up",
                       "the prepared transaction \"%s\" of %s is open for %s", program, who, span);
    else if (waiting > 0)
        cli_doctor_say(doctor, "locks", CLI_WARNING,
                       "let it end, or end it: select pg_terminate_backend(pid)",
                       "%" PRId64 " session%s for locks of process %" PRId64
                       " (%s, \"%s\", %s), whose transaction is open for %s",
                       waiting, waiting == 1 ? " waits" : "s wait", pid, who ? who : "?",
                       program ? program : "", state ? state : "?", span);
    else
        cli_doctor_say(doctor, "transactions", CLI_WARNING,
                       "end it: select pg_terminate_backend(pid); set "
                       "idle_in_transaction_session_timeout for such programs",
                       "process %" PRId64 " (%s, \"%s\", %s) has had a transaction open for %s: it "
                       "keeps dead rows from being cleaned up, and readers of the journal back",
                       pid, who ? who : "?", program ? program : "", state ? state : "?", span);
}

static void check_transactions(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine_of(doctor), HF__STMT_LONG_TRANSACTIONS)[0] =
        hf__number(doctor->patience);
    if (cli_doctor_ask(doctor, "transactions", &ask)) {
        char span[CLI_SPAN_TEXT];
        cli_span_text(doctor->patience, span);
        for (int i = 0; i < ask.out.nrows; i++)
            tell_transaction(doctor, hf__table_row(&ask.out, i));
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "transactions", CLI_FINE, NULL,
                           "none is open for longer than %s", span);
    }
    hf__ask_end(&ask);
}

static void check_locks(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine_of(doctor), HF__STMT_TABLE_LOCKS);
    if (cli_doctor_ask(doctor, "locks", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++) {
            const struct hf__cell *c = hf__table_row(&ask.out, i);
            char span[CLI_SPAN_TEXT];
            cli_span_text(hf__as_number(c[5]), span);
            cli_doctor_say(doctor, "locks", CLI_DANGER,
                           "let it end, or end it: select pg_terminate_backend(pid)",
                           "process %" PRId64 " (%s, \"%s\") holds a %s on holdfast.%s for %s: "
                           "nothing can be written there",
                           hf__as_number(c[0]), hf__as_text(c[1]), hf__as_text(c[2]),
                           hf__as_text(c[4]), hf__as_text(c[3]), span);
        }
        if (ask.out.nrows == 0)
            cli_doctor_say(doctor, "locks", CLI_FINE, NULL, "no table is locked");
    }
    hf__ask_end(&ask);
}

/* ---- Tables ---- */

struct table_health {
    const char *name;
    int64_t live, dead, vacuumed_at, bytes;
    bool autovacuum;
};

static bool check_table(struct cli_doctor *doctor, const struct table_health *t)
{
    char age[CLI_TIME_TEXT];
    bool bloated = t->dead > MANY_DEAD + t->live * DEAD_PERCENT / 100;
    cli_time_text(doctor->session, t->vacuumed_at, age);
    if (!t->autovacuum)
        cli_doctor_say(doctor, "autovacuum", CLI_DANGER,
                       "turn it on again: alter table holdfast.NAME reset (autovacuum_enabled)",
                       "it is turned off for holdfast.%s, last cleaned up: %s", t->name,
                       *age ? age : "never");
    if (bloated)
        cli_doctor_say(doctor, "bloat", CLI_WARNING,
                       "end long transactions first, then vacuum the table: claims step over dead "
                       "rows",
                       "holdfast.%s has %" PRId64 " dead rows beside %" PRId64
                       " live ones, %" PRId64 " MiB, last cleaned up: %s",
                       t->name, t->dead, t->live, t->bytes >> 20, *age ? age : "never");
    return t->autovacuum && !bloated;
}

static void check_tables(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    bool fine = true;
    int64_t bytes = 0;
    hf__ask_begin(&ask, engine_of(doctor), HF__STMT_TABLE_HEALTH);
    if (cli_doctor_ask(doctor, "bloat", &ask)) {
        for (int i = 0; i < ask.out.nrows; i++) {
            const struct hf__cell *c = hf__table_row(&ask.out, i);
            struct table_health table = {
                .name = hf__as_text(c[0]),
                .live = hf__as_number(c[1]),
                .dead = hf__as_number(c[2]),
                .vacuumed_at = hf__as_number(c[3]),
                .autovacuum = hf__as_number(c[4]) != 0,
                .bytes = hf__as_number(c[5]),
            };
            bytes += table.bytes;
            fine &= check_table(doctor, &table);
        }
        if (fine)
            cli_doctor_say(doctor, "bloat", CLI_FINE, NULL,
                           "dead rows are cleaned up; the tables have %" PRId64 " MiB",
                           bytes >> 20);
    }
    hf__ask_end(&ask);
}

/* ---- Disk ---- */

/* The log may have a disk of its own; whoever is not the server's owner cannot see into the directory. */
static bool check_rooms(struct cli_doctor *doctor, const char *directory)
{
    struct statvfs data, log;
    char path[4096];
    if (!cli_doctor_room(doctor, directory))
        return false;
    snprintf(path, sizeof path, "%s/pg_wal", directory);
    if (statvfs(directory, &data) == 0 && statvfs(path, &log) == 0 && log.f_fsid != data.f_fsid)
        cli_doctor_room(doctor, path);
    return true;
}

/* Not to see it is no fault of the store: it is said, and nothing more. */
static void check_disk(struct cli_doctor *doctor)
{
    struct hf__ask ask;
    hf__ask_begin(&ask, engine_of(doctor), HF__STMT_SERVER_PLACE);
    if (cli_doctor_ask(doctor, "disk", &ask)) {
        const struct hf__cell *c = hf__table_row(&ask.out, 0);
        const char *directory = hf__as_text(c[0]);
        bool local = hf__as_number(c[1]) != 0;
        if (!directory || !local || !check_rooms(doctor, directory))
            cli_doctor_say(doctor, "disk", CLI_FINE, NULL,
                           "the database has %" PRId64 " MiB; how much is free cannot be seen from "
                           "here: %s",
                           hf__as_number(c[2]) >> 20,
                           !local       ? "the server is on another machine"
                           : !directory ? "only roles with pg_monitor may know where its data is"
                                        : "its directory is not on this machine");
    }
    hf__ask_end(&ask);
}

void cli_doctor_server(struct cli_doctor *doctor)
{
    if (!cli_doctor_has(doctor, HF__STMT_SERVER_SETTINGS))
        return;
    check_settings(doctor);
    check_connections(doctor);
    check_transactions(doctor);
    check_locks(doctor);
    check_tables(doctor);
    check_disk(doctor);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

static const struct cli_topic_row exit_codes[] = {
#define EXIT_ROW(symbol, number, meaning) { #number, meaning },
    CLI_EXITS(EXIT_ROW)
#undef EXIT_ROW
        { NULL, NULL },
};

static const struct cli_topic_row environment[] = {
    { "HOLDFAST_STORE", "the store, in place of --store" },
    { "HOLDFAST_TENANT", "the tenant, in place of --tenant" },
    { "HOLDFAST_ACTOR", "who acts, in place of --actor" },
    { "WORKER_TYPE_PREFIXES", "what a worker claims, separated by commas, in place of --prefix" },
    { "HOLDFAST_DISPATCH_PUBLIC_ONLY",
      "1: a worker delivers no events to private and loopback addresses" },
    { "HOLDFAST_DISPATCH_PROXY_RESOLVES",
      "1: a proxy is told receivers' names, not the addresses that were checked" },
    { "NO_COLOR", "if set and not empty: no colours" },
    { "HOLDFAST_RUN_SOCKET", "set by a worker for its programs: where `holdfast step` finds it" },
    { "HOLDFAST_STEP_KEY", "set by `holdfast step` for its command: the same in every attempt" },
    { "HOLDFAST_STEP_ATTEMPT", "set by `holdfast step` for its command: 1, 2, 3..." },
    { "HOLDFAST_LOCK_TOKEN", "set by `holdfast lock` for its command" },
    { NULL, NULL },
};

static const struct cli_topic_row stores[] = {
    { "sqlite:FILE", "a file, made if it is not there" },
    { "?access=group", "SQLite: the group may read and write what is made, too; default owner" },
    { "?lock_timeout=30s", "SQLite: how long a writer waits for its turn, at least 100ms" },
    { "sqlite::memory:", "gone when the program ends" },
    { "postgres://USER@HOST/DB", "PostgreSQL 15 or newer; all of libpq's parameters can be given" },
    { "?max_open=8", "PostgreSQL: connections of one program, at least 4" },
    { "?max_idle=4", "those for reading that stay open when they are not used" },
    { "?max_lifetime=30m", "replace a connection after this DURATION, at least 1s; default never" },
    { "?answer_timeout=10s", "after such a silence the server is asked what is the matter" },
    { "?prepare=off", "behind a pooler in transaction mode" },
    { NULL, NULL },
};

static const struct cli_topic_row times[] = {
    { "DURATION", "90, 250ms, 3d, 1h30m, 1.5s; units w d h m s ms us; a bare number is seconds, "
                  "but not where it says how long something is kept" },
    { "TIME", "RFC 3339, as in 2026-11-15T09:30:00Z or 2026-11-15T10:30:00+01:00" },
    { "WHEN", "a TIME, or a DURATION before now" },
    { NULL, NULL },
};

static const struct cli_topic_row json[] = {
    { "records", "one object per line, with all its fields; what is not set is null" },
    { "times", "RFC 3339 strings in UTC, such as \"2026-11-15T09:30:00.250Z\"" },
    { "durations", "strings as the options take them, such as \"1h30m\"" },
    { "errors", "on stderr, as {\"error\":\"not_found\",\"message\":\"...\"}" },
    { NULL, NULL },
};

const struct cli_topic cli_topics[] = {
    { "exit-codes", "Exit codes", NULL, exit_codes },
    { "environment", "Environment", "An option on the command line goes first.", environment },
    { "stores", "Stores", "With --store. Parameters follow a ?, with & between them.", stores },
    { "times", "Times and durations",
      "Times are those of the store's clock. On a terminal they are shown as \"3m ago\", elsewhere "
      "and with --utc exactly.",
      times },
    { "json", "Output for machines", "With --json. Field names are stable; new ones may come.",
      json },
    { NULL, NULL, NULL, NULL },
};

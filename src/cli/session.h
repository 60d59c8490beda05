/* One use of the program: the options that hold for every command, the client, and how to speak to the user.
 * Results go to stdout; errors, warnings and progress to stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_SESSION_H
#define HF_CLI_SESSION_H

#include "cli/exit.h"

#include <holdfast/client.h>

#include <stdio.h>

struct cli_command;

struct cli_session {
    const char *store;   /* URL */
    const char *tenant;  /* NULL: the library's default */
    const char *actor;   /* NULL: the library's default, the user's name */
    int64_t max_payload; /* bytes; 0: the library's default */
    bool json;           /* for machines: one object per line */
    bool quiet;          /* no warnings, notices and progress */
    bool no_color;
    bool utc; /* exact times instead of "3m ago" */
    bool help;
    bool version;
    const struct cli_command *command; /* NULL until it is known */
    hf_client *client;                 /* NULL until cli_open */
    int64_t now;                       /* the store's clock, us; 0: not asked yet */
};

/* The one session; the table of global options points into it. */
extern struct cli_session cli_the_session;

/* Takes from the environment what no option said. */
void cli_session_defaults(struct cli_session *session);
/* Opens the store once; false: the error was shown and *status is the exit code. */
bool cli_open(struct cli_session *session, int *status) HF_MUST_CHECK;
/* The same without bringing an older schema up to date. */
bool cli_open_unmigrated(struct cli_session *session, int *status) HF_MUST_CHECK;
void cli_close(struct cli_session *session);
/* The store's clock, asked once; the machine's if the store does not answer. */
int64_t cli_now(struct cli_session *session);
/* The tenant and the store for messages; a URL may hold a password, so only a file is named. */
const char *cli_tenant(const struct cli_session *session);
const char *cli_store_name(const struct cli_session *session);
/* The path of a SQLite store, without the parameters; false where it is none, or a memory store. */
#define CLI_STORE_FILE 600
bool cli_store_file(const struct cli_session *session, char out[CLI_STORE_FILE]);

/* Shows an error with a hint at what to do next; returns the exit code that belongs to it. */
int cli_fail(struct cli_session *session, const hf_error *err);
/* The same with another hint, or none (NULL). */
int cli_fail_hint(struct cli_session *session, const hf_error *err, const char *hint);
/* The same in the program's own words. */
int cli_failf(struct cli_session *session, hf_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A mistake in the command line; names the page of help to read. Returns CLI_USAGE. */
int cli_usage(struct cli_session *session, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Something to know, on stderr; not with --quiet. */
void cli_notice(const struct cli_session *session, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif

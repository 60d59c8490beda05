/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include "cli/command.h"
#include "cli/terminal.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_session cli_the_session;

static const char *from_environment(const char *value, const char *variable)
{
    if (value)
        return value;
    const char *found = getenv(variable);
    return found && *found ? found : NULL;
}

static const char default_store[] = "sqlite:holdfast.db";

void cli_session_defaults(struct cli_session *session)
{
    session->store = from_environment(session->store, "HOLDFAST_STORE");
    session->tenant = from_environment(session->tenant, "HOLDFAST_TENANT");
    session->actor = from_environment(session->actor, "HOLDFAST_ACTOR");
    if (!session->store)
        session->store = default_store;
}

static bool folder_exists(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash > path ? hf__strndup(path, (size_t)(slash - path)) : NULL;
    bool exists = !folder || access(folder, F_OK) == 0;
    free(folder);
    return exists;
}

bool cli_store_file(const struct cli_session *session, char out[CLI_STORE_FILE])
{
    const char *path = session->store + strlen("sqlite:");
    if (strncmp(session->store, "sqlite:", strlen("sqlite:")) != 0)
        return false;
    size_t length = strcspn(path, "?");
    snprintf(out, CLI_STORE_FILE, "%.*s", (int)length, path);
    return length > 0 && length < CLI_STORE_FILE && strcmp(out, ":memory:") != 0;
}

/* A command that needs what is there must not make a store of a typing error. What else is wrong with a path, the
 * library tells. */
static bool is_missing(const struct cli_session *session)
{
    char path[CLI_STORE_FILE];
    if (!session->command || session->command->creates || !cli_store_file(session, path))
        return false;
    return path[strlen(path) - 1] != '/' && access(path, F_OK) != 0 && errno == ENOENT &&
           folder_exists(path);
}

static bool open_store(struct cli_session *session, bool no_migrate, int *status)
{
    if (session->client)
        return true;
    if (session->store == default_store && getenv("HOLDFAST_RUN_SOCKET")) {
        *status = cli_failf(session, HF_INVALID,
                            "this program was not given the worker's store: start the worker with "
                            "--give-store, or name a store by --store");
        return false;
    }
    if (is_missing(session)) {
        const char *path = session->store + strlen("sqlite:");
        *status = cli_failf(session, HF_UNAVAILABLE,
                            "no such store: %sthere is no file \"%.*s\"; `holdfast migrate` "
                            "creates it",
                            session->store == default_store
                                ? "neither --store nor HOLDFAST_STORE is set, and "
                                : "",
                            (int)strcspn(path, "?"), path);
        return false;
    }
    hf_options options = HF_OPTIONS_INIT;
    options.tenant = session->tenant;
    options.actor = session->actor;
    options.no_migrate = no_migrate;
    options.max_payload = (size_t)session->max_payload;
    hf_error err = { 0 };
    if (hf_open(&session->client, session->store, &options, &err) == HF_OK)
        return true;
    session->client = NULL;
    *status = cli_fail(session, &err);
    return false;
}

bool cli_open(struct cli_session *session, int *status)
{
    const struct cli_command *command = session->command;
    return open_store(session, command && !command->creates && !command->migrates, status);
}

bool cli_open_unmigrated(struct cli_session *session, int *status)
{
    return open_store(session, true, status);
}

void cli_close(struct cli_session *session)
{
    if (session->client)
        hf_close(session->client);
    session->client = NULL;
}

int64_t cli_now(struct cli_session *session)
{
    if (session->now == 0 && session->client &&
        hf_store_now(session->client, &session->now, NULL) != HF_OK)
        session->now = 0;
    if (session->now == 0)
        session->now = hf__clock_now(&hf__system_clock);
    return session->now;
}

const char *cli_tenant(const struct cli_session *session)
{
    return session->tenant ? session->tenant : "default";
}

/* Without the password and the parameters. */
const char *cli_store_name(const struct cli_session *session)
{
    static char name[200];
    const char *url = session->store;
    const char *authority = strstr(url, "://");
    if (strncmp(url, "sqlite:", strlen("sqlite:")) == 0 || !authority)
        return url;
    authority += strlen("://");
    size_t word = strcspn(authority, "@/");
    const char *at = authority[word] == '@' ? authority + word : NULL;
    const char *colon = at ? memchr(authority, ':', word) : NULL;
    const char *rest = at ? at : authority;
    snprintf(name, sizeof name, "%.*s%.*s", (int)((colon ? colon : rest) - url), url,
             (int)strcspn(rest, "?"), rest);
    return name;
}

/* What usually helps, where the library cannot know the program's commands. */
static const char *hint_for(hf_code code)
{
    switch (code) {
    case HF_NO_WORKER: return "start one with `holdfast worker --exec`, see `holdfast workers`";
    case HF_NOT_ALLOWED: return "look at it with `holdfast get`";
    case HF_DISABLED: return "enable it with `holdfast tenant enable`";
    case HF_SCHEMA_OLDER: return "bring it up to date with `holdfast migrate`";
    case HF_UNAVAILABLE: return "check --store or HOLDFAST_STORE, and that the database runs";
    default: return NULL;
    }
}

static void show_json_error(hf_code code, const char *message)
{
    struct hf__buffer line = { 0 };
    hf__buffer_add_text(&line, "{\"error\":\"");
    hf__buffer_add_text(&line, hf_code_name(code));
    hf__buffer_add_text(&line, "\",\"message\":");
    hf__buffer_add_json_string(&line, message, strlen(message));
    hf__buffer_add_text(&line, "}\n");
    fputs(line.failed ? "{\"error\":\"out_of_memory\",\"message\":\"\"}\n" : line.data, stderr);
    hf__buffer_free(&line);
}

static void show_error(const struct cli_session *session, hf_code code, const char *message,
                       const char *hint)
{
    fflush(stdout);
    if (session->json) {
        show_json_error(code, message);
        return;
    }
    fputs("holdfast: ", stderr);
    cli_put_clean(stderr, message);
    fputc('\n', stderr);
    if (hint)
        fprintf(stderr, "hint: %s\n", hint);
}

int cli_fail_hint(struct cli_session *session, const hf_error *err, const char *hint)
{
    show_error(session, err->code, err->message[0] ? err->message : hf_code_meaning(err->code),
               hint);
    return cli_exit_of(err->code);
}

int cli_fail(struct cli_session *session, const hf_error *err)
{
    return cli_fail_hint(session, err, hint_for(err->code));
}

/* Through an hf_error, which cuts the message and keeps it presentable. */
static void format_message(hf_error *err, hf_code code, const char *fmt, va_list args)
{
    char text[sizeof err->message];
    vsnprintf(text, sizeof text, fmt, args);
    hf__fail(err, code, "%s", text);
}

int cli_failf(struct cli_session *session, hf_code code, const char *fmt, ...)
{
    hf_error err;
    va_list args;
    va_start(args, fmt);
    format_message(&err, code, fmt, args);
    va_end(args);
    return cli_fail(session, &err);
}

int cli_usage(struct cli_session *session, const char *fmt, ...)
{
    hf_error err;
    va_list args;
    va_start(args, fmt);
    format_message(&err, HF_INVALID, fmt, args);
    va_end(args);
    show_error(session, HF_INVALID, err.message, NULL);
    if (!session->json)
        fprintf(stderr, "hint: see `holdfast help%s%s`\n", session->command ? " " : "",
                session->command ? session->command->name : "");
    return CLI_USAGE;
}

void cli_notice(const struct cli_session *session, const char *fmt, ...)
{
    if (session->quiet)
        return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fflush(stdout);
    fputs("holdfast: ", stderr);
    cli_put_clean(stderr, text);
    fputc('\n', stderr);
}

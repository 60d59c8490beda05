/* Commands inside a program that a worker runs with --exec: they talk to that worker, not to the store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_INSIDE_H
#define HF_CLI_INSIDE_H

#include "cli/session.h"
#include "util/line.h"

#include <jansson.h>

/* Inside a program a word that can name no run, for it is no id and has no slash, means something of the program's own. */
bool cli_means_inside(const char *operand);

/* The connection to the worker. */
struct cli_worker_link {
    struct cli_session *session;
    int fd;
    struct hf__lines in;
};

/* False: the error was shown and *status is the exit code. `in_step`: may be called by a step's command too. */
bool cli_link_open(struct cli_worker_link *link, struct cli_session *session, bool in_step,
                   int *status) HF_MUST_CHECK;
void cli_link_close(struct cli_worker_link *link);
/* Sends a request (a JSON object without its closing brace, which is freed) and waits for the answer, however long that
 * takes; yours to decref. Errors of the request come as answers with a member "error". NULL: there was no answer, which was
 * shown, and *status is the exit code. If the worker is gone, so is the run: this process's group is ended. */
json_t *cli_link_ask(struct cli_worker_link *link, struct hf__buffer *request, int *status);
/* Shows the error in an answer; returns the exit code that belongs to it. */
int cli_link_fail(const struct cli_worker_link *link, const json_t *answer);
/* The worker is gone. Returns an exit code if this process is not ended with its group. */
int cli_link_lost(const struct cli_worker_link *link);

/* Opens, asks, closes. */
json_t *cli_ask_worker(struct cli_session *session, struct hf__buffer *request, bool in_step,
                       int *status);

/* A request {"do":verb, and its members; NULL texts and zero numbers are left out. */
void cli_request_begin(struct hf__buffer *request, const char *verb);
void cli_request_text(struct hf__buffer *request, const char *name, const char *text);
void cli_request_number(struct hf__buffer *request, const char *name, int64_t number);

/* `holdfast wait NAME` and `holdfast pause NAME` there. */
int cli_wait_for_signal(struct cli_session *session, const char *name, int64_t timeout);
int cli_pause_here(struct cli_session *session, const char *name, int64_t limit);

#endif

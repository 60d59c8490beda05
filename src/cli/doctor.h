/* What `holdfast doctor` finds: each check says that all is well, or what is not and what to do about it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_DOCTOR_H
#define HF_CLI_DOCTOR_H

#include "cli/session.h"
#include "client/ask.h"

enum cli_level { CLI_FINE, CLI_WARNING, CLI_DANGER };

struct cli_doctor {
    struct cli_session *session;
    int64_t patience; /* us: what lasts longer is told of */
    int findings;     /* that are not fine */
};

/* One finding. `advice` says what to do; NULL where all is fine. */
void cli_doctor_say(struct cli_doctor *doctor, const char *check, enum cli_level level,
                    const char *advice, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Sends a question; that it fails is a finding too. False: there is no answer. To be ended by hf__ask_end either way. */
bool cli_doctor_ask(struct cli_doctor *doctor, const char *check, struct hf__ask *ask);
/* Whether the statement exists for this store. */
bool cli_doctor_has(const struct cli_doctor *doctor, enum hf__stmt stmt);

/* doctor_server.c: settings, connections, transactions, locks, tables, disk; of PostgreSQL. */
void cli_doctor_server(struct cli_doctor *doctor);
/* doctor_disk.c: where a SQLite file lies. */
void cli_doctor_disk(struct cli_doctor *doctor);
/* Says how much room is left where a path lies; false: it cannot be seen. */
bool cli_doctor_room(struct cli_doctor *doctor, const char *path);
/* doctor_work.c: queues, workers, subscriptions. */
void cli_doctor_work(struct cli_doctor *doctor);

/* Whether files there may be seen differently by another machine; by the number that statfs gives. */
bool cli_is_network_fs(unsigned long type);

#endif

/* The worker of a command line, for `holdfast worker` and `holdfast serve`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_WORK_H
#define HF_CLI_WORK_H

#include "cli/log.h"
#include "cli/option.h"
#include "cli/session.h"
#include "cli/worker_log.h"

#include <holdfast/worker.h>

/* What to run, for whom, and how much at once. */
extern const struct cli_option cli_work_options[];

/* Takes the prefixes from WORKER_TYPE_PREFIXES unless some were given. */
hf_code cli_work_prefixes(hf_error *err) HF_MUST_CHECK;
bool cli_work_has_execs(void);
/* NULL: there is none. */
const char *cli_work_first_prefix(void);

struct cli_work {
    hf_worker *worker;
    char ***words; /* of the commands, as long as the worker */
};

/* `arg` must live as long as the worker. `chores_only`: it may have nothing to run but the engine's own work. */
hf_code cli_work_new(struct cli_work *out, struct cli_session *session, hf_worker_observer observer,
                     void *arg, bool chores_only, hf_error *err) HF_MUST_CHECK;
void cli_work_free(struct cli_work *work);

#endif

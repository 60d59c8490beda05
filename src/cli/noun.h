/* What commands about one thing of a kind have in common, whether it goes by a name (schedules) or an id (tasks).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_NOUN_H
#define HF_CLI_NOUN_H

#include "cli/session.h"

struct cli_noun {
    const char *term;   /* what stands before its name in a message: "task", "schedule named" */
    const char *family; /* its commands' first word: "task" */
    /* Prints it, in an open store; NULL: nobody asks for that here. */
    int (*print)(struct cli_session *session, const char *operand);
};

/* Shows an error of a call about this one; returns the exit code. */
int cli_noun_fail(struct cli_session *session, const struct cli_noun *noun, const char *operand,
                  const hf_error *err);
/* Opens the store and reads the operand as an id. False: the error was shown, *status is the exit code. */
bool cli_noun_id(struct cli_session *session, const struct cli_noun *noun, const char *operand,
                 hf_id *id, int *status) HF_MUST_CHECK;
/* Opens the store and prints it. */
int cli_noun_show(struct cli_session *session, const struct cli_noun *noun, const char *name);
/* After a call that changed it: for machines, what it is now. */
int cli_noun_changed(struct cli_session *session, const struct cli_noun *noun, const char *operand,
                     hf_code code, const hf_error *err);

typedef hf_code cli_noun_function(hf_client *client, const char *name, hf_error *err);

/* Open the store and change, or remove, what has this name. */
int cli_noun_change(struct cli_session *session, const struct cli_noun *noun, const char *name,
                    cli_noun_function *change);
int cli_noun_remove(struct cli_session *session, const struct cli_noun *noun, const char *name,
                    cli_noun_function *remove);

#endif

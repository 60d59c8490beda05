/* The command table: dispatch, help, completion and the manual are derived from it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_COMMAND_H
#define HF_CLI_COMMAND_H

#include "cli/option.h"
#include "cli/session.h"

#define CLI_MANY 1000000 /* no limit on the operands */

struct cli_command {
    const char *name;     /* "trigger", "workflow create" */
    const char *summary;  /* one line, no full stop */
    const char *operands; /* "WORKFLOW [INPUT]"; "" for none */
    const char *details;  /* paragraphs, one per line; may be NULL */
    const char *examples; /* one per line; may be NULL */
    int min_operands;
    int max_operands;
    /* Makes the store or brings its schema up to date; the others refuse, in case of a typing error. */
    bool creates;
    bool migrates;                    /* brings an older schema up to date, and makes no file */
    const struct cli_option *options; /* ends with CLI_END; may be NULL */
    /* Returns an exit code. Operands are valid UTF-8 and as many as allowed. */
    int (*run)(struct cli_session *session, int count, char **operands);
};

/* What belongs together for those who use it; a command is in one group. Help, manual and reference keep this order. */
struct cli_group {
    const char *title;                         /* "Runs" */
    const struct cli_command *const *commands; /* end with NULL */
};
extern const struct cli_group cli_groups[]; /* ends with a NULL title */

/* Gives all commands one after another; begin with an empty one. */
struct cli_command_walk {
    const struct cli_group *group; /* NULL: not begun */
    int at;                        /* the next one in it */
};
/* NULL: that was the last one. */
const struct cli_command *cli_command_next(struct cli_command_walk *walk);

/* Those that the program accepts everywhere. */
extern const struct cli_option cli_global_options[];

/* NULL: there is none. */
const struct cli_command *cli_command_find(const char *name);
/* Whether `word` alone only opens names of two words, as "workflow" does. */
bool cli_command_is_family(const char *word);
/* Whether it is the first whose name begins with its first word. */
bool cli_command_opens(const struct cli_command *command);

/* A page of help that is not about one command. */
struct cli_topic {
    const char *name;  /* "exit-codes" */
    const char *title; /* "Exit codes" */
    const char *intro; /* may be NULL */
    const struct cli_topic_row {
        const char *term;
        const char *meaning;
    } * rows; /* end with a NULL term */
};
extern const struct cli_topic cli_topics[]; /* ends with a NULL name */

/* What to begin with, and where the rest is. */
void cli_help_start(FILE *out);
void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const struct cli_command *command);
/* The commands whose names begin with this word. */
void cli_help_family(FILE *out, const char *family);
/* "--key KEY", "-y, --yes", "--wait[=DURATION]" */
void cli_help_option_syntax(const struct cli_option *option, char *out, size_t size);
/* The manual page (roff) and the reference (Markdown). */
void cli_write_man(FILE *out);
void cli_write_markdown(FILE *out);

#endif

/* Aligned columns for people.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_TABLE_H
#define HF_CLI_TABLE_H

#include "cli/field.h"

struct cli_column {
    const char *header; /* NULL ends a list of columns */
    const char *field;  /* name of the record's field; NULL: `make` tells */
    bool right;         /* numbers */
    bool shrinks;       /* gives way when the terminal is too narrow */
    int least;          /* columns it takes at least, so that the pages of one answer look alike */
    /* The caller frees the text; NULL when there is no memory. */
    char *(*make)(struct cli_session *session, const void *record);
};

/* What `list` shows of runs. */
extern const struct cli_column cli_run_columns[];

/* Rows of a table (JSON lines with --json), with the headers if it is the `first` page of an answer. Columns that are
 * empty in all rows are left out unless they have a least width. `stride` is the size of one record. */
void cli_table_print(struct cli_session *session, const struct cli_column *columns,
                     const struct hf__field *fields, const void *records, size_t stride,
                     size_t count, bool first);
/* One record as lines of "label  value", or one line of JSON. Lines without a value are left out. */
void cli_block_print(struct cli_session *session, const struct cli_column *lines,
                     const struct hf__field *fields, const void *record);

#endif

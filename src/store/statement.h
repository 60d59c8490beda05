/* Named statements: the same names, parameters and columns in every dialect, generated from the .sql files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_STORE_STATEMENT_H
#define HF_STORE_STATEMENT_H

enum hf__type { HF__INT, HF__BIG, HF__TEXT, HF__UUID, HF__BOOL };

enum hf__takes {
    HF__TAKES_NOTHING,
    HF__TAKES_ONE, /* one row of scalar parameters */
    HF__TAKES_ROWS /* any number of rows: arrays on PostgreSQL; on SQLite one execution per row, or holdfast_rows */
};

struct hf__statement {
    const char *name;
    const char *sql; /* NULL: not in this dialect */
    unsigned char takes;
    int nparams;
    const unsigned char *param_types;
    int ncolumns;
    const unsigned char *column_types;
    const char *const *column_names;
};

struct hf__migration {
    int version;
    const char *name;
    const char *sql;
};

#endif

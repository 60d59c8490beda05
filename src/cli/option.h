/* Options as tables: parsing, help, completion and the manual are derived from them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_OPTION_H
#define HF_CLI_OPTION_H

#include <holdfast/types.h>

/* The comment names what `value` points to. */
enum cli_option_kind {
    CLI_END,            /* closes a table */
    CLI_SWITCH,         /* bool */
    CLI_TEXT,           /* const char *, borrowed from argv */
    CLI_TEXTS,          /* struct cli_texts; may be given several times */
    CLI_NUMBER,         /* int64_t within min..max */
    CLI_DURATION,       /* int64_t, us, above 0 unless min is 0 */
    CLI_MAYBE_DURATION, /* struct cli_maybe: --wait or --wait=5m */
    CLI_TIME,           /* int64_t, us since the epoch */
    CLI_WHEN,           /* struct cli_when: a time, or a duration before now */
    CLI_STATUS_SET,     /* unsigned: bits by status; may be given several times or with commas */
    CLI_ID,             /* hf_id */
    CLI_INCLUDE         /* const struct cli_option *: another table's rows belong here too */
};

struct cli_texts {
    const char **items; /* borrowed from argv; the array lives as long as the program */
    size_t count;
};

struct cli_maybe {
    bool given;
    int64_t value; /* -1: given without a value */
};

struct cli_when {
    bool given;
    bool ago; /* `value` is us before now instead of a point in time */
    int64_t value;
};

struct cli_option {
    enum cli_option_kind kind;
    char letter;          /* 0: none */
    const char *name;     /* without the dashes */
    const char *argument; /* "DURATION"; NULL: takes none */
    const char *help;
    void *value;
    int64_t min, max; /* CLI_NUMBER; CLI_DURATION: min -1 refuses 0 */
    bool
        unit; /* CLI_DURATION: a bare number of seconds is refused: too little would destroy something */
    unsigned *mask; /* gets `bit` when the option is given; may be NULL */
    unsigned bit;
};

/* Rows of a table: one option; the rows of another table; the end. */
#define CLI_OPT(kind_, letter_, name_, argument_, help_, ...)                                      \
    {                                                                                              \
        .kind = CLI_##kind_, .letter = letter_, .name = name_, .argument = argument_,              \
        .help = help_, __VA_ARGS__                                                                 \
    }
#define CLI_OPTIONS_OF(table)                                                                      \
    {                                                                                              \
        .kind = CLI_INCLUDE, .value = (void *)(table)                                              \
    }
#define CLI_OPTIONS_END                                                                            \
    {                                                                                              \
        .kind = CLI_END                                                                            \
    }

/* Walks a table with those it includes: start with a zeroed walk; NULL at the end. */
struct cli_option_walk {
    const struct cli_option *outer;
    const struct cli_option *inner;
};
const struct cli_option *cli_option_next(struct cli_option_walk *walk,
                                         const struct cli_option *table);

/* NULL: the table (may be NULL) has no such option. `name` need not end at `length`. */
const struct cli_option *cli_option_find(const struct cli_option *table, const char *name,
                                         size_t length);
const struct cli_option *cli_option_find_letter(const struct cli_option *table, char letter);
bool cli_option_takes_value(const struct cli_option *option);
/* Checks `text` (NULL: no value was given) and stores it where the table says. */
hf_code cli_option_set(const struct cli_option *option, const char *text,
                       hf_error *err) HF_MUST_CHECK;

/* A whole decimal number within min..max. */
hf_code cli_number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *out,
                         hf_error *err) HF_MUST_CHECK;

#endif

/* What callers send as JSON, or as a query: tables of members say how it is read into a struct, and describe the API.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_RECORD_READER_H
#define HF_RECORD_READER_H

#include "record/field.h"
#include "util/arena.h"

/* The C type at `offset` is that of the kind (see hf__field_kind), but for two:
 * HF__FIELD_WORDS is a const char *const * at `offset` and a size_t at `count_offset`;
 * HF__FIELD_JSON is the value's own text, so that no number loses a digit. */
struct hf__member {
    const char *name;
    enum hf__field_kind kind;
    size_t offset;
    size_t count_offset;
    unsigned bit; /* set in *given when the member is there and not null */
    bool required;
    const char *about; /* a few words for the description of the API */
};

#define HF__MEMBER(type, field, kind_, about_, ...)                                                \
    {                                                                                              \
        .name = #field, .kind = HF__FIELD_##kind_, .offset = offsetof(type, field),                \
        .about = about_, __VA_ARGS__                                                               \
    }
/* A table's row before the end: members that it does not name are accepted and dropped. */
#define HF__MEMBERS_OTHERS                                                                         \
    {                                                                                              \
        .name = "*"                                                                                \
    }
#define HF__MEMBERS_END                                                                            \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Tables end with a NULL name. */
extern const struct hf__member hf__trigger_members[]; /* hf_trigger_spec */

/* Reads an object into `record`, on top of what is there; strings go into the arena. `given` may be NULL. A null is as
 * good as nothing. Members that the table does not have are refused. */
hf_code hf__members_read(void *record, const struct hf__member *members, struct hf__arena *arena,
                         const char *json, size_t length, unsigned *given,
                         hf_error *err) HF_MUST_CHECK;
/* One member from plain text, as in a query: durations "5m", times RFC 3339, words and statuses separated by commas. */
hf_code hf__member_read_text(void *record, const struct hf__member *member, struct hf__arena *arena,
                             const char *text, hf_error *err) HF_MUST_CHECK;
/* NULL: none of that name. */
const struct hf__member *hf__member_find(const struct hf__member *members, const char *name);
/* HF_INVALID, naming the member that was probably meant. */
hf_code hf__member_unknown(const struct hf__member *members, const char *name, hf_error *err);

#endif

/* "sqlite:orders.db?access=group&lock_timeout=10s": the path, and what the files and the wait for their lock shall be like.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/duration.h"
#include "util/error.h"

#include <string.h>

#define DEFAULT_LOCK_TIMEOUT HF_SECONDS(30)
#define SHORTEST_LOCK_TIMEOUT HF_MILLISECONDS(100)

static hf_code read_access(struct hf__sqlite_settings *out, const char *value, hf_error *err)
{
    if (strcmp(value, "owner") == 0)
        out->mode = 0600;
    else if (strcmp(value, "group") == 0)
        out->mode = 0660;
    else
        return hf__fail(err, HF_INVALID,
                        "the URL's parameter 'access' must be 'owner' or 'group', not '%.40s'",
                        value);
    return HF_OK;
}

static hf_code read_lock_timeout(struct hf__sqlite_settings *out, const char *value, hf_error *err)
{
    if (hf__duration_parse(value, &out->lock_timeout, NULL) == HF_OK &&
        out->lock_timeout >= SHORTEST_LOCK_TIMEOUT)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "the URL's parameter 'lock_timeout' must be a time of at least 100ms, such as "
                    "10s, not '%.40s'",
                    value);
}

static const struct {
    const char *start;
    hf_code (*read)(struct hf__sqlite_settings *out, const char *value, hf_error *err);
} parameters[] = { { "access=", read_access }, { "lock_timeout=", read_lock_timeout } };

static hf_code read_parameter(struct hf__sqlite_settings *out, const char *text, hf_error *err)
{
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        size_t length = strlen(parameters[i].start);
        if (strncmp(text, parameters[i].start, length) == 0)
            return parameters[i].read(out, text + length, err);
    }
    return hf__fail(err, HF_INVALID,
                    "a SQLite store has the settings access and lock_timeout: leave out \"%.60s\"",
                    text);
}

hf_code hf__sqlite_url_read(struct hf__sqlite_settings *out, char *text, hf_error *err)
{
    hf_code code = HF_OK;
    char *rest = NULL;
    char *query = strchr(text, '?');
    *out = (struct hf__sqlite_settings){ .mode = 0600, .lock_timeout = DEFAULT_LOCK_TIMEOUT };
    if (query)
        *query++ = '\0';
    for (char *part = query ? strtok_r(query, "&", &rest) : NULL; part && code == HF_OK;
         part = strtok_r(NULL, "&", &rest))
        code = read_parameter(out, part, err);
    return code;
}

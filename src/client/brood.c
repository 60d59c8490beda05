/* SPDX-License-Identifier: Apache-2.0 */
#include "client/brood.h"

#include "util/buffer.h"

char *hf__brood_write(const struct hf__brood *brood)
{
    struct hf__buffer json = { 0 };
    char first[HF_ID_TEXT];
    hf_id_format(brood->first, first);
    hf__buffer_addf(&json, "{\"first\":\"%s\",\"count\":%zu,\"started\":%zu}", first, brood->count,
                    brood->started);
    return hf__buffer_take(&json);
}

bool hf__brood_read(const json_t *output, struct hf__brood *brood)
{
    const char *first = json_string_value(json_object_get(output, "first"));
    json_int_t count = json_integer_value(json_object_get(output, "count"));
    json_int_t started = json_integer_value(json_object_get(output, "started"));
    size_t listed = json_array_size(output);
    struct hf__brood read = { .count = listed, .started = listed };
    if (!json_is_array(output)) {
        if (!first || !hf_id_parse(first, &read.first) || started <= 0 || started > count ||
            count > HF__BROOD_MOST)
            return false;
        read.count = (size_t)count;
        read.started = (size_t)started;
    }
    *brood = read;
    return true;
}

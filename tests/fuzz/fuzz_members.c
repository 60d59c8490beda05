/* Objects are read into records by their tables, and walked member by member, without a byte beyond their end; what the walk
 * finds is what a JSON library finds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "record/reader.h"
#include "server/routes.h"
#include "server/work.h"
#include "util/json.h"
#include "util/json_members.h"

#include <jansson.h>
#include <string.h>

const char *const fuzz_seeds[] = {
    "{\"workflow\":\"a.v1\",\"input\":{\"n\":[1,2.50,\"x\"]},\"tags\":[\"a\",\"b\\u0041\"],\"in\":"
    "\"5m\",\"priority\":7}",
    "{\"key\":\"k\\\"\\\\\",\"at\":\"2026-01-02T03:04:05Z\",\"require_worker\":true,\"timeout\":90,"
    "\"for\":null}",
    "{\"worker\":\"w\",\"version\":2,\"turn\":\"wait\",\"consumed\":[\"1\"],\"timers\":[{\"key\":"
    "\"t\",\"delay\":\"1s\"}],"
    "\"children\":[{\"workflow\":\"c\"}],\"waiting_until_us\":12345678901234}",
    "{\"status\":[\"failed\",\"pending\"],\"parent\":\"019a88d0-1234-7abc-8def-0123456789ab\","
    "\"limit\":50,\"deleted\":false}",
    "[ {\"a\" : [ ] , \"b\":{} } , \"]},\" , -0.5e+10 , null ]",
    "{\"a\":1,\"a\":2}",
    NULL,
};

enum { LARGEST_RECORD = 8192 }; /* bytes; far above all of them */

static void read_all(const char *text, size_t length)
{
    static const struct hf__member *const tables[] = { hf__trigger_members, hf__work_commit_members,
                                                       hf__filter_members };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        _Alignas(16) unsigned char record[LARGEST_RECORD] = { 0 };
        struct hf__arena arena;
        hf_error err = { 0 };
        hf__arena_init(&arena, 0);
        hf_code code = hf__members_read(record, tables[i], &arena, text, length, NULL, &err);
        FUZZ_EXPECT(code == HF_OK || err.message[0]);
        hf__arena_free(&arena);
    }
}

static void check_part(const char *start, size_t length)
{
    FUZZ_EXPECT(hf__json_check(start, length, NULL) == HF_OK);
}

/* A member that is there twice is walked twice. */
static void walk(const char *text, const json_t *value)
{
    struct hf__json_member member;
    const char *item;
    size_t length, at = 0, count = 0;
    if (json_is_object(value)) {
        for (; hf__json_member_next(text, &at, &member); count++) {
            check_part(member.name - 1, member.name_length + 2);
            check_part(member.value, member.value_length);
        }
        FUZZ_EXPECT(count >= json_object_size(value));
        FUZZ_EXPECT((count == 0) == (json_object_size(value) == 0));
    } else if (json_is_array(value)) {
        for (; hf__json_item_next(text, &at, &item, &length); count++)
            check_part(item, length);
        FUZZ_EXPECT(count == json_array_size(value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_EXPECT(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    read_all(text, strlen(text));
    if (hf__json_check(text, strlen(text), NULL) == HF_OK) {
        json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (value) /* it has limits that we have not */
            walk(text, value);
        json_decref(value);
    }
    free(text);
    return 0;
}

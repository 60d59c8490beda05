/* A path is matched exactly as the table writes it, and what is percent-encoded decodes to what it was. Input: a method, a
 * line feed, a path.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "server/request.h"
#include "server/route.h"

#include <string.h>

const char *const fuzz_seeds[] = {
    "GET\n/v1/runs/019a88d0-1234-7abc-8def-0123456789ab",
    "POST\n/v1/runs/019a88d0-1234-7abc-8def-0123456789ab/cancel",
    "POST\n/v1/runs/batch",
    "HEAD\n/v1/workflows/billing.charge.v1/runs/a%2Fb%20c%25%C3%BC%3F",
    "DELETE\n/v1/schedules/nightly%00",
    "PUT\n/v1/workflows/%zz/weight",
    "PATCH\n/v1/tenants/a/enable",
    "GET\n/healthz",
    NULL,
};

/* The path that the route and its values stand for; shorter than the room that there is. */
static void rebuild(const struct hf__path_match *match, char *out)
{
    int names = 0;
    for (const char *at = match->route->path; *at;) {
        if (*at == '{') {
            FUZZ_EXPECT(names < HF__PATH_ARGS && match->starts[names]);
            memcpy(out, match->starts[names], match->lengths[names]);
            out += match->lengths[names++];
            at += strcspn(at, "}") + 1;
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
    for (; names < HF__PATH_ARGS; names++)
        FUZZ_EXPECT(!match->starts[names]);
}

static void check_match(const char *method, const char *path, char *again)
{
    struct hf__path_match match;
    switch (hf__route_match(&match, method, path)) {
    case HF__MATCHED:
        FUZZ_EXPECT(strcmp(match.route->method, method) == 0 || strcmp(method, "HEAD") == 0);
        rebuild(&match, again);
        FUZZ_EXPECT(strcmp(path, again) == 0);
        break;
    case HF__NO_SUCH_METHOD: FUZZ_EXPECT(match.allowed[0]); break;
    case HF__NO_SUCH_PATH: FUZZ_EXPECT(!match.allowed[0]); break;
    }
}

static void check_decoding(struct hf__arena *arena, const char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char *decoded = hf__percent_decode(arena, text, length, false);
    char *encoded = hf__arena_alloc(arena, 3 * length + 1);
    FUZZ_EXPECT(encoded);
    FUZZ_EXPECT(!decoded || strlen(decoded) <= length);
    FUZZ_EXPECT(decoded || strchr(text, '%'));
    for (size_t i = 0; i < length; i++) {
        encoded[3 * i] = '%';
        encoded[3 * i + 1] = digits[(unsigned char)text[i] >> 4];
        encoded[3 * i + 2] = digits[text[i] & 15];
    }
    decoded = hf__percent_decode(arena, encoded, 3 * length, true);
    FUZZ_EXPECT(decoded && strlen(decoded) == length && memcmp(decoded, text, length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf__arena arena;
    hf__arena_init(&arena, 0);
    char *method = hf__arena_strndup(&arena, (const char *)data, size);
    char *again = hf__arena_alloc(&arena, size + 100);
    FUZZ_EXPECT(method && again);
    char *path = method + strcspn(method, "\n");
    if (*path)
        *path++ = '\0';
    check_match(method, path, again);
    check_decoding(&arena, path, strlen(path));
    hf__arena_free(&arena);
    return 0;
}

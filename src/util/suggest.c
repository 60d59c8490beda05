/* SPDX-License-Identifier: Apache-2.0 */
#include "util/suggest.h"

#include <stdbool.h>
#include <string.h>

enum {
    LONGEST = 40, /* bytes; longer words are not compared */
    SHORTEST = 3, /* of a beginning that stands for a word */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance of two words of at most LONGEST bytes. */
static size_t distance_of(const char *a, const char *b)
{
    size_t row[LONGEST + 1];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[width];
}

static bool is_cut_short(const char *typed, const char *candidate)
{
    size_t length = strlen(typed);
    return length >= SHORTEST && strncmp(typed, candidate, length) == 0;
}

void hf__suggest_start(struct hf__suggestion *suggestion, const char *typed)
{
    /* A third of the letters may be wrong; more than that is another word. */
    *suggestion = (struct hf__suggestion){ .typed = typed, .distance = strlen(typed) / 3 + 2 };
}

void hf__suggest_offer(struct hf__suggestion *suggestion, const char *candidate)
{
    if (strlen(suggestion->typed) > LONGEST || strlen(candidate) > LONGEST)
        return;
    size_t distance =
        is_cut_short(suggestion->typed, candidate) ? 0 : distance_of(suggestion->typed, candidate);
    bool shorter = suggestion->best && strlen(candidate) < strlen(suggestion->best);
    if (distance < suggestion->distance || (distance == suggestion->distance && shorter)) {
        suggestion->distance = distance;
        suggestion->best = candidate;
    }
}

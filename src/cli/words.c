/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/words.h"

#include "util/alloc.h"
#include "util/error.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool escapes_next(const char *at, char quote)
{
    if (at[0] != '\\' || at[1] == '\0' || quote == '\'')
        return false;
    return quote == '\0' || at[1] == '"' || at[1] == '\\';
}

/* Copies one word to *to without its quotes; false: a quote is not closed. */
static bool copy_word(const char **from, char **to)
{
    char quote = '\0';
    for (; **from && (quote || !is_blank(**from)); ++*from) {
        if (escapes_next(*from, quote))
            *(*to)++ = *++*from;
        else if (quote && **from == quote)
            quote = '\0';
        else if (!quote && (**from == '\'' || **from == '"'))
            quote = **from;
        else
            *(*to)++ = **from;
    }
    *(*to)++ = '\0';
    return quote == '\0';
}

hf_code cli_words_split(char ***out, const char *text, hf_error *err)
{
    /* Every second byte could begin a word, and no word is longer than its source. */
    size_t length = strlen(text);
    size_t most = length / 2 + 2;
    *out = NULL;
    char **words = hf__malloc(most * sizeof *words + length + 2);
    if (!words)
        return hf__nomem(err);
    char *to = (char *)(words + most);
    size_t count = 0;
    for (;;) {
        while (is_blank(*text))
            text++;
        if (!*text)
            break;
        words[count++] = to;
        if (!copy_word(&text, &to)) {
            free(words);
            return hf__fail(err, HF_INVALID, "a quote is not closed");
        }
    }
    words[count] = NULL;
    *out = words;
    return HF_OK;
}

/* Dead letters: mail on which its run failed again and again, taken out of the mailbox so that the run could go on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_DEAD_LETTER_H
#define HOLDFAST_DEAD_LETTER_H

#include <holdfast/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hf_dead_letter {
    hf_id id;
    hf_id run; /* zero: of none */
    const char *reason;
    const char *envelope; /* JSON: id, type, name, payload (as text), token, sender, occurred_at */
    const char *node;     /* the worker that gave up on it */
    int64_t created_at;
} hf_dead_letter;

typedef struct hf_dead_letters {
    hf_dead_letter *items;
    size_t count;
    const char *next; /* cursor of the next page; NULL on the last */
} hf_dead_letters;

typedef struct hf_dead_letter_filter {
    int version;        /* HF_DEAD_LETTER_FILTER_VERSION */
    hf_id run;          /* zero: of all runs */
    const char *reason; /* what it begins with, such as "poison"; NULL: any */
    const char *cursor; /* hf_dead_letters.next of the page before; NULL: newest first */
    int limit;          /* 1..1000; default 50 */
} hf_dead_letter_filter;

#define HF_DEAD_LETTER_FILTER_VERSION 1
#define HF_DEAD_LETTER_FILTER_INIT                                                                 \
    {                                                                                              \
        HF_DEAD_LETTER_FILTER_VERSION, { { 0 } }, NULL, NULL, 0                                    \
    }

/* Newest first; `filter` may be NULL. A page whose letters hold more than 16 MiB ends early, with a cursor to go on. */
HF_PUBLIC hf_code hf_dead_letter_list(hf_client *client, hf_dead_letters **out,
                                      const hf_dead_letter_filter *filter,
                                      hf_error *err) HF_MUST_CHECK;
HF_PUBLIC hf_code hf_dead_letter_get(hf_client *client, hf_dead_letter **out, hf_id id,
                                     hf_error *err) HF_MUST_CHECK;
/* Puts it back into the mailbox of its run, as new mail with the id "requeue:" and the letter's; the letter is gone then.
 * HF_NOT_FOUND: there is no such letter. HF_NOT_ALLOWED: its run is gone, has finished or no longer waits for it, and the
 * letter stays. Calling it again after a lost answer does no harm. */
HF_PUBLIC hf_code hf_dead_letter_requeue(hf_client *client, hf_id id, hf_error *err) HF_MUST_CHECK;
/* Removes it for good. */
HF_PUBLIC hf_code hf_dead_letter_discard(hf_client *client, hf_id id, hf_error *err) HF_MUST_CHECK;

HF_PUBLIC void hf_dead_letter_free(hf_dead_letter *letter);
HF_PUBLIC void hf_dead_letters_free(hf_dead_letters *letters);

#ifdef __cplusplus
}
#endif
#endif

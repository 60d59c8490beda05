/* An id is accepted exactly if it has the canonical form, and is written back the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <holdfast/types.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

const char *const fuzz_seeds[] = {
    "019a88d0-1234-7abc-8def-0123456789ab",
    "FFFFFFFF-FFFF-7FFF-BFFF-FFFFFFFFFFFF",
    "00000000-0000-0000-0000-000000000000",
    "019a88d012347abc8def0123456789ab",
    NULL,
};

static bool is_canonical(const char *text)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (strlen(text) != strlen(form))
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == '-' ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), again[HF_ID_TEXT];
    hf_id id;
    FUZZ_EXPECT(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    bool accepted = hf_id_parse(text, &id);
    FUZZ_EXPECT(accepted == is_canonical(text));
    if (accepted) {
        hf_id_format(id, again);
        FUZZ_EXPECT(strcasecmp(text, again) == 0);
    }
    free(text);
    return 0;
}

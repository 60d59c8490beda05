/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/library.h"

#include <pthread.h>
#include <stdio.h>

#include "util/error.h"
#include "util/late.h"

static struct hf__late library = { .file = "libcurl.so.4" };
static struct hf__library loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
#define FIND(name) *(void **)&loaded.f_##name = hf__late_find(&library, #name);
    HF__CURL_FUNCTIONS(FIND)
#undef FIND
    if (!library.trouble[0] && loaded.f_curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        snprintf(library.trouble, sizeof library.trouble, "curl_global_init failed");
}

hf_code hf__library_get(const struct hf__library **out, hf_error *err)
{
    pthread_once(&once, load);
    if (library.trouble[0])
        return hf__fail(err, HF_HANDLER_FAILED, "delivering events needs %s: %s", library.file,
                        library.trouble);
    *out = &loaded;
    return HF_OK;
}

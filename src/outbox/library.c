/* SPDX-License-Identifier: Apache-2.0 */
#include "outbox/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "util/error.h"

#define CURL_LIBRARY "libcurl.so.4"

static struct hf__library loaded;
static char trouble[256]; /* "": all is there */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found && !trouble[0]) {
        const char *why = dlerror();
        snprintf(trouble, sizeof trouble, "%s", why ? why : name);
    }
    return found;
}

static void load(void)
{
    void *curl = dlopen(CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
#define FIND(name) *(void **)&loaded.f_##name = find(curl, #name);
    HF__CURL_FUNCTIONS(FIND)
#undef FIND
    if (!trouble[0] && loaded.f_curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        snprintf(trouble, sizeof trouble, "curl_global_init failed");
}

hf_code hf__library_get(const struct hf__library **out, hf_error *err)
{
    pthread_once(&once, load);
    if (trouble[0])
        return hf__fail(err, HF_HANDLER_FAILED, "delivering events needs " CURL_LIBRARY ": %s",
                        trouble);
    *out = &loaded;
    return HF_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "util/late.h"

#include <dlfcn.h>
#include <stdio.h>

void *hf__late_find(struct hf__late *library, const char *name)
{
    if (!library->handle)
        library->handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    void *found = library->handle ? dlsym(library->handle, name) : NULL;
    if (!found && !library->trouble[0]) {
        const char *why = dlerror();
        snprintf(library->trouble, sizeof library->trouble, "%s", why ? why : name);
    }
    return found;
}

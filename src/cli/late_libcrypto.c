/* libcrypto, loaded at its first use: it would cost every process a millisecond, and hardly any of them makes or checks a
 * token. These definitions stand in for it when the program is linked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libcrypto.so.3"

static struct {
    const EVP_MD *(*sha256)(void);
    int (*digest)(const void *bytes, size_t length, unsigned char *out, unsigned *size,
                  const EVP_MD *type, ENGINE *engine);
} real;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "holdfast: tokens need " LIBRARY ": %s\n", dlerror());
        exit(CLI_FAILED);
    }
    return found;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    *(void **)&real.sha256 = find(library, "EVP_sha256");
    *(void **)&real.digest = find(library, "EVP_Digest");
}

const EVP_MD *EVP_sha256(void)
{
    pthread_once(&once, load);
    return real.sha256();
}

int EVP_Digest(const void *bytes, size_t length, unsigned char *out, unsigned *size,
               const EVP_MD *type, ENGINE *engine)
{
    pthread_once(&once, load);
    return real.digest(bytes, length, out, size, type, engine);
}

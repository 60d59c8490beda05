/* A folder of a test's own, among the temporary ones.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_FOLDER_H
#define HF_TESTS_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDER_MOST = 96 };

/* Where TMPDIR is no name for a store's URL or a shell, or too long, it is in /tmp. */
static inline void folder_make(char folder[static FOLDER_MOST])
{
    const char *wanted = getenv("TMPDIR");
    char *place = wanted && *wanted ? realpath(wanted, NULL) : NULL;
    bool good = place && strlen(place) <= 60 && !strpbrk(place, "'?#%");
    snprintf(folder, FOLDER_MOST, "%.60s/holdfast-test-XXXXXX", good ? place : "/tmp");
    free(place);
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
}

static inline int folder_remove(const char *folder)
{
    char command[FOLDER_MOST + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* Puts a store with the tables into it, if ./test has made one: to make them takes longer than to copy them. */
static inline void folder_put_tables(const char *folder, const char *name)
{
    char command[1024];
    const char *pristine = getenv("HOLDFAST_TEST_PRISTINE_FILE");
    if (!pristine || !*pristine)
        return;
    snprintf(command, sizeof command, "cp '%s' '%s/%s'", pristine, folder, name);
    if (system(command) != 0)
        exit(1);
}

#endif

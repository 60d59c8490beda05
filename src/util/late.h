/* A shared library that is loaded when it is first needed: it would cost every process time and memory, and hardly any needs it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_UTIL_LATE_H
#define HF_UTIL_LATE_H

/* Filled by one thread, once, before others look. */
struct hf__late {
    const char *file; /* "libcurl.so.4" */
    void *handle;
    char trouble[256]; /* "": all that was looked for is there */
};

/* The function of that name; NULL: `trouble` tells why it is not there. */
void *hf__late_find(struct hf__late *library, const char *name);

#endif

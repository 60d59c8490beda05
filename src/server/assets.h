/* The dashboard's files, embedded by tools/embed_assets.py.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_ASSETS_H
#define HF_SERVER_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct hf__request;

struct hf__asset {
    const char *name; /* below dashboard/ */
    const char *type;
    const unsigned char *bytes; /* gzip */
    size_t length;
    const char *etag;
};

extern const struct hf__asset hf__assets[]; /* ends with a NULL name */
extern const char hf__assets_version[];     /* changes with any of them */

/* Answers a request for a page or a file of the dashboard; false: the path is none. */
bool hf__asset_answer(struct hf__request *request);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/assets.h"

#include "server/inner.h"

#include <string.h>
#include <zlib.h>

enum { GZIP_WINDOW = 15 + 16 };

/* Nothing from elsewhere, nothing inline: a payload that gets into the page as markup could still do nothing. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

/* The first part of the paths that the page itself routes. */
static const char *const pages[] = { "",      "runs",         "workflows", "schedules", "workers",
                                     "tasks", "dead-letters", "outbox",    "settings",  NULL };

static const struct hf__asset *find(const char *name)
{
    for (const struct hf__asset *asset = hf__assets; asset->name; asset++)
        if (strcmp(asset->name, name) == 0)
            return asset;
    return NULL;
}

static bool is_page(const char *path)
{
    size_t length = strcspn(path + 1, "/");
    for (const char *const *page = pages; *page; page++)
        if (strlen(*page) == length && memcmp(*page, path + 1, length) == 0)
            return true;
    return false;
}

/* A mistyped address or an old link in a browser, which gets the page that says so; a program gets the problem as JSON. */
static bool is_lost_reader(const struct hf__request *request)
{
    const char *accept = hf__request_header(request, "Accept");
    return accept && strstr(accept, "text/html") && strncmp(request->path, "/v1", 3) != 0 &&
           strncmp(request->path, "/assets/", 8) != 0;
}

/* "/assets/VERSION/NAME". Another version's page asks for its own files, which are gone: it is loaded again. */
static const struct hf__asset *find_file(const char *path)
{
    static const char root[] = "/assets/";
    size_t version = strlen(hf__assets_version);
    if (strncmp(path, root, sizeof root - 1) != 0)
        return NULL;
    path += sizeof root - 1;
    if (strncmp(path, hf__assets_version, version) != 0 || path[version] != '/')
        return NULL;
    return find(path + version + 1);
}

/* For the few that do not take gzip. */
static bool add_plain(struct hf__request *request, const struct hf__asset *asset)
{
    char part[4096];
    int got = Z_OK;
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)asset->bytes,
                        .avail_in = (uInt)asset->length };
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return false;
    while (got == Z_OK) {
        stream.next_out = (Bytef *)part;
        stream.avail_out = sizeof part;
        got = inflate(&stream, Z_NO_FLUSH);
        hf__buffer_add(&request->out, part, sizeof part - stream.avail_out);
    }
    inflateEnd(&stream);
    return got == Z_STREAM_END && !request->out.failed;
}

static void add_page_headers(struct hf__request *request)
{
    hf__reply_header(request, "Content-Security-Policy", policy);
    hf__reply_header(request, "X-Frame-Options", "DENY");
    hf__reply_header(request, "Referrer-Policy", "no-referrer");
}

static void answer(struct hf__request *request, const struct hf__asset *asset, bool page)
{
    request->type = asset->type;
    hf__reply_header(request, "ETag", asset->etag);
    hf__reply_header(request, "Cache-Control",
                     page ? "no-cache" : "public, max-age=31536000, immutable");
    hf__reply_header(request, "Vary", "Accept-Encoding");
    add_page_headers(request);
    if (hf__accepts_gzip(request)) {
        hf__reply_header(request, "Content-Encoding", "gzip");
        request->fixed = asset->bytes;
        request->fixed_length = asset->length;
    } else if (!add_plain(request, asset)) {
        hf__reply_problem_as(request, HF__PROBLEM_NOMEM, hf_code_meaning(HF_NOMEM), NULL);
        return;
    }
    request->status = 200;
    request->answered = true;
    hf__unread_keep(request);
}

bool hf__asset_answer(struct hf__request *request)
{
    bool read = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    if (!request->server->options.dashboard || !read)
        return false;
    bool page = is_page(request->path);
    bool lost = !page && is_lost_reader(request);
    const struct hf__asset *asset = page || lost ? find("index.html") : find_file(request->path);
    if (asset)
        answer(request, asset, page || lost);
    if (asset && lost && request->status == 200)
        request->status = 404;
    return asset != NULL;
}

/* About the server itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/inner.h"
#include "server/routes.h"

/* Anybody may ask for it, so there is one of it for all. */
static hf_code openapi(struct hf__request *request, hf_error *err)
{
    const struct hf__server *server = request->server;
    bool packed = hf__accepts_gzip(request);
    request->fixed = packed ? server->openapi_packed.data : server->openapi;
    request->fixed_length = packed ? server->openapi_packed.length : server->openapi_length;
    if (packed)
        hf__reply_header(request, "Content-Encoding", "gzip");
    return hf__reply_done(request, 200, err);
}

struct index {
    const char *version; /* of the program */
    const char *openapi; /* where the document is */
};

static const struct hf__field index_fields[] = {
    { "version", HF__FIELD_TEXT, offsetof(struct index, version) },
    { "openapi", HF__FIELD_TEXT, offsetof(struct index, openapi) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static hf_code show_index(struct hf__request *request, hf_error *err)
{
    return hf__reply_record(request, index_fields, &(struct index){ HF__VERSION, HF__OPENAPI_PATH },
                            err);
}

static hf_code alive(struct hf__request *request, hf_error *err)
{
    hf__buffer_add_text(&request->out, "ok\n");
    request->type = "text/plain; charset=utf-8";
    return hf__reply_done(request, 200, err);
}

/* Whether requests can be served: the store answers, and the server is not about to stop. */
static hf_code ready(struct hf__request *request, hf_error *err)
{
    int64_t now;
    if (atomic_load(&request->server->stopping)) {
        hf__reply_problem_as(request, HF__PROBLEM_STOPPING, "the server is stopping", NULL);
        return HF_OK;
    }
    hf_code code = hf_store_now(request->server->client, &now, err);
    return code == HF_OK ? alive(request, err) : code;
}

const struct hf__route hf__system_routes[] = {
    HF__ROUTE("system", "GET", "/v1", "getIndex", ANYONE, show_index, "Where the document is",
              .quick = true, HF__ANSWERS(200, ONE, "Index", index_fields)),
    HF__ROUTE("system", "GET", HF__OPENAPI_PATH, "getOpenapi", ANYONE, openapi, "This document",
              .quick = true, HF__ANSWERS(200, ONE, NULL, NULL)),
    HF__ROUTE("system", "GET", "/healthz", "getHealth", ANYONE, alive, "Whether the server lives",
              .quick = true, HF__ANSWERS(200, TEXT, NULL, NULL)),
    HF__ROUTE("system", "GET", "/readyz", "getReadiness", ANYONE, ready,
              "Whether the server can serve: its store answers", .pace = HF__PACE_PROBE,
              HF__ANSWERS(200, TEXT, NULL, NULL)),
    HF__ROUTES_END,
};

/* The table of routes: dispatch, access, the OpenAPI document and its examples are derived from it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_ROUTE_H
#define HF_SERVER_ROUTE_H

#include "record/reader.h"

#include <holdfast/token.h>

struct hf__request;

/* The role that a caller needs; token.h tells which includes which. */
enum hf__may {
    HF__MAY_ANYONE = 0, /* needs no token */
    HF__MAY_READ = HF_ROLE_READ,
    HF__MAY_TRIGGER = HF_ROLE_TRIGGER,
    HF__MAY_WORK = HF_ROLE_WORK,
    HF__MAY_OPERATE = HF_ROLE_OPERATE,
    HF__MAY_ADMIN = HF_ROLE_ADMIN,
    HF__MAY_ROOT = HF_ROLE_ROOT
};

/* Answers through the request (request.h). Any code but HF_OK becomes a problem. Called from a hand's thread, and again for
 * a request that was parked (park.h). */
typedef hf_code (*hf__handle)(struct hf__request *request, hf_error *err);

/* Whose threads call a handler: those of one kind cannot hold up the others. */
enum hf__pace {
    HF__PACE_COMMON, /* takes a moment */
    HF__PACE_SLOW,   /* may take seconds */
    HF__PACE_PROBE,  /* tells whether the server is well, whatever its users do */
    HF__PACES
};

enum hf__shape {
    HF__SHAPE_NONE,   /* 204, or a body that the details tell of */
    HF__SHAPE_ONE,    /* an object with `answer`'s fields */
    HF__SHAPE_LIST,   /* {"items": [...], "next": cursor or null} */
    HF__SHAPE_ITEMS,  /* {"items": [...]}: there is never more */
    HF__SHAPE_STREAM, /* text/event-stream of such objects */
    HF__SHAPE_TEXT    /* plain text */
};

/* A member of an answer that is an object of its own, or an array of them. */
struct hf__part {
    const char *name;   /* NULL: the end of a table */
    const char *schema; /* NULL: it is a text, not an object */
    const struct hf__field *fields;
    bool many;
    bool maybe;                   /* null or missing at times; the details tell when */
    const struct hf__part *parts; /* what it has beside its fields; may be NULL */
};

/* Headers that mean something to a route, as bits. */
enum hf__header {
    HF__HEADER_IDEMPOTENCY_KEY = 1 << 0,
    HF__HEADER_IF_MATCH = 1 << 1,
    HF__HEADER_LAST_EVENT_ID = 1 << 2,
    HF__HEADER_TRACEPARENT = 1 << 3,
    HF__HEADER_PREFER = 1 << 4,
    HF__HEADER_ETAG = 1 << 5,    /* of the answer; a GET takes If-None-Match with it */
    HF__HEADER_LOCATION = 1 << 6 /* of the answer */
};

struct hf__route {
    const char *method;
    const char *path; /* "/v1/runs/{id}" */
    const char *name; /* operationId */
    const char *tag;  /* the group it is listed in */
    enum hf__may may;
    int status; /* of success */
    hf__handle handle;
    const char *summary; /* one line, no full stop */
    const char *details; /* may be NULL */
    const struct hf__member *query;
    const struct hf__member *body; /* of the JSON object in the request */
    const struct hf__field *answer;
    const char *schema;           /* the answer's name in the document; with `answer` */
    const struct hf__part *parts; /* what else the answer has; may be NULL */
    unsigned headers;             /* enum hf__header */
    enum hf__shape shape;
    const char *media;   /* of the body; NULL: application/json */
    const char *example; /* a request body; the tests send it */
    int also;            /* another status of success, with the same answer; 0: none */
    bool streams;        /* the answer can be had as text/event-stream too */
    bool refusals; /* a list where an item may be {"code", "message"} in place of the schema's */
    enum hf__pace pace;
    bool quick; /* is tried on the connection's own thread first; see hf__request.to_hand */
};

/* Rows of a table: a route, and what it answers with. */
#define HF__ROUTE(tag_, method_, path_, name_, may_, handle_, summary_, ...)                       \
    {                                                                                              \
        .method = method_, .path = path_, .name = name_, .tag = tag_, .may = HF__MAY_##may_,       \
        .handle = handle_, .summary = summary_, __VA_ARGS__                                        \
    }
#define HF__ANSWERS(status_, shape_, schema_, fields_)                                             \
    .status = status_, .shape = HF__SHAPE_##shape_, .schema = schema_, .answer = fields_
#define HF__ROUTES_END                                                                             \
    {                                                                                              \
        .method = NULL                                                                             \
    }

enum { HF__PATH_ARGS = 3 }; /* most {names} in a path */

#define HF__OPENAPI_PATH "/v1/openapi.json"

/* All routes, in the order of the document; ends with a NULL method. */
const struct hf__route *hf__route_at(size_t index);

enum hf__match { HF__NO_SUCH_PATH, HF__NO_SUCH_METHOD, HF__MATCHED };

struct hf__path_match {
    const struct hf__route *route;
    const char *starts[HF__PATH_ARGS]; /* the raw values of {names}, in the path */
    size_t lengths[HF__PATH_ARGS];
    char allowed[64]; /* HF__NO_SUCH_METHOD: for the Allow header */
};

/* HEAD is matched as GET. */
enum hf__match hf__route_match(struct hf__path_match *out, const char *method, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "server/openapi.h"

#include "server/header.h"
#include "server/problem.h"
#include "server/route.h"
#include "util/error.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define set(object, name, value) json_object_set_new(object, name, value)
#define text(value) json_string(value)

static json_t *with_format(const char *type, const char *format)
{
    return json_pack("{s:s,s:s}", "type", type, "format", format);
}

static json_t *array_of(json_t *items)
{
    return json_pack("{s:s,s:o}", "type", "array", "items", items);
}

static json_t *status_schema(void)
{
    json_t *names = json_array();
    for (int i = 0; i < HF_STATUS_COUNT; i++)
        json_array_append_new(names, text(hf_status_name((hf_status)i)));
    return json_pack("{s:s,s:o}", "type", "string", "enum", names);
}

static json_t *schema_of(enum hf__field_kind kind)
{
    switch (kind) {
    case HF__FIELD_TEXT: return json_pack("{s:s}", "type", "string");
    case HF__FIELD_JSON: return json_object();
    case HF__FIELD_WORDS: return array_of(json_pack("{s:s}", "type", "string"));
    case HF__FIELD_INT:
    case HF__FIELD_INT64: return json_pack("{s:s}", "type", "integer");
    case HF__FIELD_BOOL: return json_pack("{s:s}", "type", "boolean");
    case HF__FIELD_TIME: return with_format("string", "date-time");
    case HF__FIELD_SECONDS:
    case HF__FIELD_DURATION: return json_pack("{s:s,s:[s]}", "type", "string", "examples", "1m30s");
    case HF__FIELD_ID: return with_format("string", "uuid");
    case HF__FIELD_STATUS: return status_schema();
    case HF__FIELD_STATUSES: return array_of(status_schema());
    }
    return json_object();
}

/* Most values of a record may be null. */
static json_t *nullable(json_t *schema)
{
    json_t *type = json_object_get(schema, "type");
    if (json_is_string(type))
        json_object_set_new(schema, "type", json_pack("[s,s]", json_string_value(type), "null"));
    json_t *values = json_object_get(schema, "enum");
    if (values)
        json_array_append_new(values, json_null());
    return schema;
}

static bool never_null(enum hf__field_kind kind)
{
    return kind == HF__FIELD_INT || kind == HF__FIELD_INT64 || kind == HF__FIELD_BOOL ||
           kind == HF__FIELD_STATUS;
}

static json_t *record_schema(const struct hf__field *fields)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    for (; fields->name; fields++) {
        json_t *schema = schema_of(fields->kind);
        set(properties, fields->name, never_null(fields->kind) ? schema : nullable(schema));
        json_array_append_new(required, text(fields->name));
    }
    return json_pack("{s:s,s:o,s:o}", "type", "object", "properties", properties, "required",
                     required);
}

static json_t *body_schema(const struct hf__member *members)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    bool others = hf__member_find(members, "*") != NULL;
    for (; members->name; members++) {
        if (strcmp(members->name, "*") == 0)
            continue;
        json_t *schema = schema_of(members->kind);
        if (members->about)
            set(schema, "description", text(members->about));
        if (members->required)
            json_array_append_new(required, text(members->name));
        set(properties, members->name, schema);
    }
    json_t *schema = json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties,
                               "additionalProperties", others);
    if (json_array_size(required) > 0)
        set(schema, "required", required);
    else
        json_decref(required);
    return schema;
}

static json_t *reference(const char *kind, const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "#/components/%s/%s", kind, name);
    return json_pack("{s:s}", "$ref", path);
}

static json_t *list_schema(json_t *items)
{
    return json_pack("{s:s,s:{s:o,s:o},s:[s,s]}", "type", "object", "properties", "items",
                     array_of(items), "next", nullable(json_pack("{s:s}", "type", "string")),
                     "required", "items", "next");
}

static json_t *items_schema(json_t *items)
{
    return json_pack("{s:s,s:{s:o},s:[s]}", "type", "object", "properties", "items",
                     array_of(items), "required", "items");
}

static json_t *content(const char *type, json_t *schema)
{
    return json_pack("{s:{s:o}}", type, "schema", schema);
}

static json_t *item_schema(const struct hf__route *route)
{
    json_t *item = route->schema ? reference("schemas", route->schema) : json_object();
    if (!route->refusals)
        return item;
    json_t *refusal = json_pack("{s:s,s:{s:o,s:o},s:[s,s]}", "type", "object", "properties", "code",
                                schema_of(HF__FIELD_TEXT), "message", schema_of(HF__FIELD_TEXT),
                                "required", "code", "message");
    return json_pack("{s:[o,o]}", "anyOf", item, refusal);
}

static json_t *text_content(const char *type)
{
    return content(type, schema_of(HF__FIELD_TEXT));
}

static json_t *answer_content(const struct hf__route *route)
{
    json_t *content_of = NULL;
    switch (route->shape) {
    case HF__SHAPE_ONE:
        content_of =
            content("application/json", route->schema ? reference("schemas", route->schema)
                                                      : json_pack("{s:s}", "type", "object"));
        break;
    case HF__SHAPE_LIST:
        content_of = content("application/json", list_schema(item_schema(route)));
        break;
    case HF__SHAPE_ITEMS:
        content_of = content("application/json", items_schema(item_schema(route)));
        break;
    case HF__SHAPE_STREAM: return text_content("text/event-stream");
    case HF__SHAPE_TEXT: return text_content("text/plain");
    case HF__SHAPE_NONE: break;
    }
    if (route->streams)
        json_object_update_new(content_of, text_content("text/event-stream"));
    return content_of;
}

static void add_parameter(json_t *parameters, const char *name, size_t length, const char *where,
                          json_t *schema, const char *about)
{
    json_t *parameter = json_pack("{s:s%,s:s,s:b,s:o}", "name", name, length, "in", where,
                                  "required", strcmp(where, "path") == 0, "schema", schema);
    if (about)
        set(parameter, "description", text(about));
    if (json_is_array(json_object_get(schema, "items")) ||
        strcmp(json_string_value(json_object_get(schema, "type"))
                   ? json_string_value(json_object_get(schema, "type"))
                   : "",
               "array") == 0)
        set(parameter, "explode", json_false());
    json_array_append_new(parameters, parameter);
}

/* A GET whose answer has an ETag is not sent again to who has it. */
static bool takes(const struct hf__route *route, const struct hf__header_text *header)
{
    if (strcmp(header->name, "If-None-Match") == 0 && strcmp(route->method, "GET") != 0)
        return false;
    return (route->headers & (unsigned)header->bit) != 0;
}

static json_t *answer_header(const struct hf__header_text *header)
{
    return json_pack("{s:s,s:o}", "description", header->about, "schema",
                     schema_of(HF__FIELD_TEXT));
}

static json_t *answer_headers(const struct hf__route *route)
{
    json_t *headers = json_object();
    for (const struct hf__header_text *header = hf__header_texts; header->name; header++)
        if (!header->asked && (route->headers & (unsigned)header->bit))
            set(headers, header->name, answer_header(header));
    return headers;
}

static json_t *parameters_of(const struct hf__route *route)
{
    json_t *parameters = json_array();
    for (const char *at = strchr(route->path, '{'); at; at = strchr(at, '{')) {
        size_t length = strcspn(++at, "}");
        bool id = length == 2 && strncmp(at, "id", 2) == 0;
        bool key = length == 3 && strncmp(at, "key", 3) == 0;
        add_parameter(parameters, at, length, "path", schema_of(id ? HF__FIELD_ID : HF__FIELD_TEXT),
                      id    ? "its id"
                      : key ? "its key, percent-encoded"
                            : "its name, percent-encoded");
    }
    for (const struct hf__member *member = route->query; member && member->name; member++)
        add_parameter(parameters, member->name, strlen(member->name), "query",
                      schema_of(member->kind), member->about);
    for (const struct hf__header_text *header = hf__header_texts; header->name; header++)
        if (header->asked && takes(route, header))
            add_parameter(parameters, header->name, strlen(header->name), "header",
                          schema_of(HF__FIELD_TEXT), header->about);
    for (const struct hf__header_text *header = hf__header_callers; header->name; header++)
        if (route->may != HF__MAY_ANYONE)
            json_array_append_new(parameters, reference("parameters", header->name));
    return parameters;
}

/* Those that nearly every request may have are told of once. */
static json_t *shared_parameters(void)
{
    json_t *found = json_array();
    json_t *parameters = json_object();
    for (const struct hf__header_text *header = hf__header_callers; header->name; header++) {
        add_parameter(found, header->name, strlen(header->name), "header",
                      schema_of(HF__FIELD_TEXT), header->about);
        json_object_set(parameters, header->name,
                        json_array_get(found, json_array_size(found) - 1));
    }
    json_decref(found);
    return parameters;
}

static json_t *request_body(const struct hf__route *route)
{
    json_t *media = json_pack("{s:o}", "schema", body_schema(route->body));
    json_t *example = route->example ? json_loads(route->example, JSON_DECODE_ANY, NULL) : NULL;
    bool required = false;
    for (const struct hf__member *member = route->body; member->name; member++)
        required = required || member->required;
    if (example)
        set(media, "example", example);
    return json_pack("{s:b,s:{s:o}}", "required", required, "content",
                     route->media ? route->media : "application/json", media);
}

static void add_success(json_t *responses, const struct hf__route *route, int status)
{
    char name[12];
    json_t *answer = json_pack("{s:s}", "description", route->summary);
    json_t *body = answer_content(route);
    json_t *headers = answer_headers(route);
    if (body)
        set(answer, "content", body);
    if (json_object_size(headers) > 0)
        set(answer, "headers", headers);
    else
        json_decref(headers);
    snprintf(name, sizeof name, "%d", status);
    set(responses, name, answer);
}

static void add_problem(json_t *responses, const char *statuses, const char *about,
                        const struct hf__header_text *header)
{
    set(responses, statuses,
        json_pack("{s:s,s:o,s:{s:o}}", "description", about, "content",
                  content("application/problem+json", reference("schemas", "Problem")), "headers",
                  header->name, answer_header(header)));
}

static json_t *responses_of(const struct hf__route *route)
{
    json_t *responses = json_object();
    add_success(responses, route, route->status);
    if (route->also)
        add_success(responses, route, route->also);
    if ((route->headers & HF__HEADER_ETAG) && strcmp(route->method, "GET") == 0)
        set(responses, "304",
            json_pack("{s:s,s:o}", "description", "it is what If-None-Match says", "headers",
                      answer_headers(route)));
    add_problem(responses, "4XX", "the request cannot be served as it is",
                &hf__header_authenticate);
    add_problem(responses, "5XX", "the server or its store cannot serve it now",
                &hf__header_retry_after);
    return responses;
}

static json_t *operation(const struct hf__route *route)
{
    json_t *operation = json_pack("{s:s,s:[s],s:s,s:o,s:o}", "operationId", route->name, "tags",
                                  route->tag, "summary", route->summary, "parameters",
                                  parameters_of(route), "responses", responses_of(route));
    if (route->details)
        set(operation, "description", text(route->details));
    if (route->body)
        set(operation, "requestBody", request_body(route));
    if (route->may == HF__MAY_ANYONE)
        set(operation, "security", json_array());
    return operation;
}

static json_t *part_schema(const struct hf__part *part)
{
    if (!part->schema)
        return part->maybe ? nullable(schema_of(HF__FIELD_TEXT)) : schema_of(HF__FIELD_TEXT);
    json_t *one = reference("schemas", part->schema);
    if (part->many)
        one = array_of(one);
    return part->maybe ? json_pack("{s:[o,{s:s}]}", "anyOf", one, "type", "null") : one;
}

/* What an answer has beside its fields, each under a name of its own. */
static json_t *with_parts(json_t *schema, const struct hf__part *part, json_t *schemas)
{
    for (; part && part->name; part++) {
        set(json_object_get(schema, "properties"), part->name, part_schema(part));
        if (!part->maybe)
            json_array_append_new(json_object_get(schema, "required"), text(part->name));
        if (part->schema)
            set(schemas, part->schema,
                with_parts(record_schema(part->fields), part->parts, schemas));
    }
    return schema;
}

static void add_route(json_t *paths, json_t *schemas, const struct hf__route *route)
{
    char method[10] = "";
    json_t *path = json_object_get(paths, route->path);
    if (!path) {
        path = json_object();
        set(paths, route->path, path);
    }
    for (size_t i = 0; route->method[i] && i < sizeof method - 1; i++)
        method[i] = (char)(route->method[i] | 0x20);
    set(path, method, operation(route));
    if (route->schema && route->answer && !json_object_get(schemas, route->schema))
        set(schemas, route->schema,
            with_parts(record_schema(route->answer), route->parts, schemas));
}

/* Those of this version; a later one may have more. */
static json_t *problem_type_schema(void)
{
    json_t *types = json_array();
    for (int i = 0; i < HF__PROBLEM_COUNT; i++)
        json_array_append_new(
            types, json_sprintf(HF__PROBLEM_PREFIX "%s", hf__problem_type((enum hf__problem)i)));
    json_t *schema = with_format("string", "uri");
    set(schema, "examples", types);
    return schema;
}

static json_t *problem_schema(void)
{
    return json_pack("{s:s,s:{s:o,s:o,s:o,s:o},s:[s,s,s]}", "type", "object", "properties", "type",
                     problem_type_schema(), "title", schema_of(HF__FIELD_TEXT), "status",
                     schema_of(HF__FIELD_INT), "detail", nullable(schema_of(HF__FIELD_TEXT)),
                     "required", "type", "title", "status");
}

static json_t *document(void)
{
    json_t *paths = json_object();
    json_t *schemas = json_pack("{s:o}", "Problem", problem_schema());
    const struct hf__route *route;
    for (size_t i = 0; (route = hf__route_at(i))->method; i++)
        add_route(paths, schemas, route);
    return json_pack(
        "{s:s,s:{s:s,s:s,s:s,s:{s:s,s:s}},s:[{s:s}],s:[{s:[]}],s:o,s:{s:o,s:o,s:{s:{s:s,s:s}}}}",
        "openapi", "3.1.0", "info", "title", "Holdfast", "version", HF__VERSION, "description",
        "Durable workflows on SQLite and PostgreSQL.", "license", "name", "Apache-2.0",
        "identifier", "Apache-2.0", "servers", "url", "/", "security", "token", "paths", paths,
        "components", "schemas", schemas, "parameters", shared_parameters(), "securitySchemes",
        "token", "type", "http", "scheme", "bearer");
}

hf_code hf__openapi_make(char **out, size_t *length, hf_error *err)
{
    json_t *json = document();
    *out = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!*out)
        return hf__nomem(err);
    *length = strlen(*out);
    return HF_OK;
}

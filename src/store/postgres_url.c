/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres.h"

#include "util/alloc.h"
#include "util/duration.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

enum { URL_MAX = 8192, MOST_CONNECTIONS = 1000 };

#define DEFAULT_ANSWER_LIMIT HF_SECONDS(10)
#define SHORTEST_ANSWER_LIMIT HF_MILLISECONDS(100)
#define SHORTEST_LIFETIME HF_SECONDS(1)

struct setting {
    const char *keyword;
    const char *value;
};

/* In force unless the URL says otherwise. Together they notice a dead server within about ten seconds. */
static const struct setting defaults[] = {
    { "connect_timeout", "5" },      /* s, per address */
    { "keepalives", "1" },           /* */
    { "keepalives_idle", "4" },      /* s */
    { "keepalives_interval", "2" },  /* s */
    { "keepalives_count", "3" },     /* */
    { "tcp_user_timeout", "10000" }, /* ms */
    { "fallback_application_name", "holdfast" },
};

enum { DEFAULT_COUNT = sizeof defaults / sizeof defaults[0] };

static bool has_scheme(const char *url)
{
    return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

/* The '?' that opens the parameters. As libpq reads it: user and password end at an '@' that comes before any '/', and
 * may contain a '?'. */
static const char *find_query(const char *url)
{
    const char *start = strstr(url, "://") + 3;
    size_t credentials = strcspn(start, "@/");
    if (start[credentials] == '@')
        start += credentials;
    return strchr(start, '?');
}

static hf_code read_prepare(struct hf__postgres_url *out, const char *value, size_t length,
                            hf_error *err)
{
    if (length == 3 && memcmp(value, "off", 3) == 0)
        out->unprepared = true;
    else if (length == 2 && memcmp(value, "on", 2) == 0)
        out->unprepared = false;
    else
        return hf__fail(err, HF_INVALID,
                        "the URL's parameter 'prepare' must be 'on' or 'off', not '%.*s'",
                        length > 40 ? 40 : (int)length, value);
    return HF_OK;
}

static hf_code read_span(const char *name, int64_t shortest, int64_t *out, const char *value,
                         size_t length, hf_error *err)
{
    char text[HF__DURATION_TEXT] = "", least[HF__DURATION_TEXT];
    if (length < sizeof text)
        memcpy(text, value, length);
    if (hf__duration_parse(text, out, NULL) == HF_OK && *out >= shortest)
        return HF_OK;
    hf__duration_format(shortest, least);
    return hf__fail(
        err, HF_INVALID,
        "the URL's parameter '%s' must be a time of at least %s, such as 10s, not '%.*s'", name,
        least, length > 40 ? 40 : (int)length, value);
}

static hf_code read_count(const char *name, int least, int *out, const char *value, size_t length,
                          hf_error *err)
{
    char text[8] = "";
    if (length < sizeof text)
        memcpy(text, value, length);
    *out = *text && text[strspn(text, "0123456789")] == '\0' ? atoi(text) : -1;
    if (*out >= least && *out <= MOST_CONNECTIONS)
        return HF_OK;
    return hf__fail(err, HF_INVALID,
                    "the URL's parameter '%s' must be a number from %d to %d, not '%.*s'", name,
                    least, MOST_CONNECTIONS, length > 40 ? 40 : (int)length, value);
}

static hf_code read_answer_timeout(struct hf__postgres_url *out, const char *value, size_t length,
                                   hf_error *err)
{
    return read_span("answer_timeout", SHORTEST_ANSWER_LIMIT, &out->answer_limit, value, length,
                     err);
}

/* How few connections are enough is the engine's to say. */
static hf_code read_max_open(struct hf__postgres_url *out, const char *value, size_t length,
                             hf_error *err)
{
    return read_count("max_open", 1, &out->limits.max_open, value, length, err);
}

static hf_code read_max_idle(struct hf__postgres_url *out, const char *value, size_t length,
                             hf_error *err)
{
    return read_count("max_idle", 0, &out->limits.max_idle, value, length, err);
}

static hf_code read_max_lifetime(struct hf__postgres_url *out, const char *value, size_t length,
                                 hf_error *err)
{
    return read_span("max_lifetime", SHORTEST_LIFETIME, &out->limits.max_lifetime, value, length,
                     err);
}

static const struct own_parameter {
    const char *start; /* with the '=' */
    hf_code (*read)(struct hf__postgres_url *out, const char *value, size_t length, hf_error *err);
} own_parameters[] = {
    { "prepare=", read_prepare },           { "answer_timeout=", read_answer_timeout },
    { "max_open=", read_max_open },         { "max_idle=", read_max_idle },
    { "max_lifetime=", read_max_lifetime },
};

/* NULL: it is libpq's. */
static const struct own_parameter *find_own(const char *at, size_t length)
{
    for (size_t i = 0; i < sizeof own_parameters / sizeof own_parameters[0]; i++) {
        size_t start = strlen(own_parameters[i].start);
        if (length >= start && memcmp(at, own_parameters[i].start, start) == 0)
            return &own_parameters[i];
    }
    return NULL;
}

/* Copies the URL without the parameters that are ours, since libpq refuses what it does not know. */
static hf_code take_own_parameters(struct hf__postgres_url *out, const char *url,
                                   struct hf__buffer *rest, hf_error *err)
{
    const char *query = find_query(url);
    if (!query) {
        hf__buffer_add_text(rest, url);
        return HF_OK;
    }
    hf__buffer_add(rest, url, (size_t)(query - url));
    char separator = '?';
    const char *at = query + 1;
    while (true) {
        size_t length = strcspn(at, "&");
        const struct own_parameter *own = find_own(at, length);
        if (own) {
            size_t start = strlen(own->start);
            hf_code code = own->read(out, at + start, length - start, err);
            if (code != HF_OK)
                return code;
        } else {
            hf__buffer_add(rest, &separator, 1);
            hf__buffer_add(rest, at, length);
            separator = '&';
        }
        if (at[length] == '\0')
            return HF_OK;
        at += length + 1;
    }
}

/* libpq quotes the whole URL, with its password, in some messages: only the name of a parameter is let through. */
static int safe_length(const char *message)
{
    size_t length = strcspn(message, "\n");
    const char *quoted = strstr(message, ": \"");
    if (quoted && !strstr(message, "query parameter"))
        length = (size_t)(quoted - message);
    return length > 200 ? 200 : (int)length;
}

static bool is_port(const char *text, size_t length)
{
    long port = 0;
    if (length > 5 || strspn(text, "0123456789") < length)
        return false;
    for (size_t i = 0; i < length; i++)
        port = port * 10 + (text[i] - '0');
    return length == 0 || (port >= 1 && port <= 65535);
}

/* libpq looks at ports only when it connects, and then calls it a failed connection. One per host, with commas; an empty one is
 * the default. */
static hf_code check_ports(const PQconninfoOption *options, hf_error *err)
{
    const char *at = NULL;
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (strcmp(o->keyword, "port") == 0)
            at = o->val;
    /* What stands there may be half of a password: it is not shown. */
    while (at && *at) {
        size_t length = strcspn(at, ",");
        if (!is_port(at, length))
            return hf__fail(err, HF_INVALID,
                            "the port in the PostgreSQL URL is not a number from 1 to 65535 (in a "
                            "password, write / as %%2F and @ as %%40)");
        at += length + (at[length] == ',');
    }
    return HF_OK;
}

static bool is_given(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val != NULL;
    return false;
}

static bool add_setting(struct hf__postgres_url *out, const char *keyword, const char *value)
{
    out->keywords[out->count] = hf__strdup(keyword);
    out->values[out->count] = hf__strdup(value);
    bool ok = out->keywords[out->count] && out->values[out->count];
    out->count++;
    return ok;
}

static bool fill(struct hf__postgres_url *out, const PQconninfoOption *options)
{
    size_t room = DEFAULT_COUNT + 2; /* with the encoding and the final NULL */
    for (const PQconninfoOption *o = options; o->keyword; o++)
        room++;
    out->keywords = hf__calloc(room, sizeof *out->keywords);
    out->values = hf__calloc(room, sizeof *out->values);
    if (!out->keywords || !out->values)
        return false;

    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (o->val && strcmp(o->keyword, "client_encoding") != 0 &&
            !add_setting(out, o->keyword, o->val))
            return false;
    for (int i = 0; i < DEFAULT_COUNT; i++)
        if (!is_given(options, defaults[i].keyword) &&
            !add_setting(out, defaults[i].keyword, defaults[i].value))
            return false;
    return add_setting(out, "client_encoding", "UTF8");
}

hf_code hf__postgres_url_parse(struct hf__postgres_url *out, const char *url, hf_error *err)
{
    *out =
        (struct hf__postgres_url){ .answer_limit = DEFAULT_ANSWER_LIMIT, .limits = { -1, -1, -1 } };
    if (!url || !has_scheme(url))
        return hf__fail(err, HF_INVALID,
                        "a PostgreSQL URL starts with postgres:// or postgresql://, as in "
                        "postgres://user@host:5432/database");
    if (strlen(url) > URL_MAX)
        return hf__fail(err, HF_TOO_LARGE, "the database URL is longer than %d bytes", URL_MAX);

    struct hf__buffer rest = { 0 };
    char *message = NULL;
    PQconninfoOption *options = NULL;
    hf_code code = take_own_parameters(out, url, &rest, err);
    if (code != HF_OK)
        goto done;
    if (rest.failed) {
        code = hf__nomem(err);
        goto done;
    }
    options = PQconninfoParse(rest.data, &message);
    if (!options && message)
        code = hf__fail(err, HF_INVALID, "the PostgreSQL URL cannot be read: %.*s",
                        safe_length(message), message);
    else if (!options)
        code = hf__nomem(err);
    else
        code = check_ports(options, err);
    if (code == HF_OK && !fill(out, options))
        code = hf__nomem(err);
done:
    PQconninfoFree(options);
    PQfreemem(message);
    hf__buffer_free(&rest);
    if (code != HF_OK)
        hf__postgres_url_free(out);
    return code;
}

const char *hf__postgres_url_value(const struct hf__postgres_url *url, const char *keyword)
{
    for (int i = 0; i < url->count; i++)
        if (strcmp(url->keywords[i], keyword) == 0)
            return url->values[i];
    return NULL;
}

void hf__postgres_url_free(struct hf__postgres_url *url)
{
    for (int i = 0; i < url->count; i++) {
        free(url->keywords[i]);
        free(url->values[i]);
    }
    free(url->keywords);
    free(url->values);
    *url = (struct hf__postgres_url){ 0 };
}

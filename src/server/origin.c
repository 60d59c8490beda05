/* A page from elsewhere must not act through its visitor's browser on a server that trusts whoever reaches it: neither by a
 * request from its own origin, nor by a name that it made point to this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/http.h"
#include "server/inner.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* The host of "host:port", without the brackets of IPv6. */
static bool host_part(const char *text, char *out, size_t size)
{
    bool bracketed = *text == '[';
    const char *start = text + bracketed;
    size_t length = strcspn(start, bracketed ? "]" : ":");
    if (length >= size)
        return false;
    memcpy(out, start, length);
    out[length] = '\0';
    return true;
}

/* A name that somebody else's name server cannot have answered for. */
static bool is_own_name(const char *host)
{
    unsigned char address[16];
    return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, address) == 1 ||
           inet_pton(AF_INET6, host, address) == 1;
}

static bool same_origin(const char *origin, const char *host)
{
    const char *authority = strstr(origin, "://");
    return authority && host && strcasecmp(authority + 3, host) == 0;
}

void hf__check_origin(struct hf__request *request)
{
    const char *host = hf__request_header(request, "Host");
    const char *origin = hf__request_header(request, "Origin");
    char name[256];
    if (origin && !same_origin(origin, host))
        hf__reply_problem_as(request, HF__PROBLEM_FOREIGN_ORIGIN,
                             "requests from pages of other origins are refused", NULL);
    else if (hf__access_is_open(request->server->access) && host)
        request->foreign = !(host_part(host, name, sizeof name) && is_own_name(name));
}

/* Where the store cannot tell, what is known goes on: there are no tokens. */
void hf__check_host(struct hf__request *request)
{
    bool open;
    if (hf__access_look(request->server->access, &open, NULL) != HF_OK || open)
        hf__reply_problem_as(request, HF__PROBLEM_FOREIGN_HOST,
                             "without tokens the server answers to addresses and localhost only",
                             NULL);
}

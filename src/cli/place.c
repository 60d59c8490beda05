/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include "cli/option.h"
#include "client/token.h"
#include "util/error.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

hf_code cli_place_read(struct cli_place *out, const char *option, const char *text, hf_error *err)
{
    int64_t port = 0;
    char what[60];
    const char *colon = strrchr(text, ':');
    const char *start = *text == '[' ? text + 1 : text;
    size_t length = colon ? (size_t)(colon - start) - (*text == '[') : 0;
    if (!colon || length == 0 || length >= sizeof out->host)
        return hf__fail(err, HF_INVALID, "%s wants HOST:PORT, as in 127.0.0.1:8420, not \"%.100s\"",
                        option, text);
    memcpy(out->host, start, length);
    out->host[length] = '\0';
    snprintf(what, sizeof what, "the port of %s", option);
    hf_code code = cli_number_parse(what, colon + 1, 0, 65535, &port, err);
    out->port = (int)port;
    return code;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    return strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

hf_code cli_place_guard(const struct cli_place *place, hf_client *client, bool insecure,
                        bool *tokens, hf_error *err)
{
    hf_code code = hf__token_any(client, tokens, err);
    if (code == HF_OK && !*tokens && !is_loopback(place->host) && !insecure)
        code = hf__fail(
            err, HF_INVALID,
            "there are no tokens, so the server listens on this machine only; make one "
            "with `holdfast token create NAME --role ROLE`, or let everybody in with --insecure");
    return code;
}

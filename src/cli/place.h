/* Where a server of the program listens, and who may reach it there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_PLACE_H
#define HF_CLI_PLACE_H

#include <holdfast/client.h>

struct cli_place {
    char host[100];
    int port;
};

/* HOST:PORT or [HOST]:PORT, given with `option`. */
hf_code cli_place_read(struct cli_place *out, const char *option, const char *text,
                       hf_error *err) HF_MUST_CHECK;
/* Whether there are tokens. Without any, a place that others can reach is refused, unless they shall. */
hf_code cli_place_guard(const struct cli_place *place, hf_client *client, bool insecure,
                        bool *tokens, hf_error *err) HF_MUST_CHECK;

#endif

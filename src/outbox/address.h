/* Addresses that events are not sent to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_OUTBOX_ADDRESS_H
#define HF_OUTBOX_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Link-local ones are never allowed: there clouds hand out their machines' credentials. `public_only` refuses private,
 * loopback, shared, multicast and unspecified ones as well. */
bool hf__address_allowed(const struct sockaddr *address, bool public_only);

#endif

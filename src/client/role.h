/* Sets of roles as text.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLIENT_ROLE_H
#define HF_CLIENT_ROLE_H

#include <holdfast/token.h>

#define HF__ROLES_TEXT 80 /* bytes that hf__roles_format may write, with the NUL */

/* Whether no bit is set that is no role. */
bool hf__roles_known(unsigned roles);
/* "read,trigger", each name between two `quote`. */
void hf__roles_format(unsigned roles, const char *quote, char out[HF__ROLES_TEXT]);

#endif

/* What libmicrohttpd calls.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_SERVER_HTTP_H
#define HF_SERVER_HTTP_H

#include <microhttpd.h>

struct hf__request;

enum MHD_Result hf__on_request(void *arg, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *upload,
                               size_t *upload_size, void **context);
void hf__on_completed(void *arg, struct MHD_Connection *connection, void **context,
                      enum MHD_RequestTerminationCode code);
void hf__on_connection(void *arg, struct MHD_Connection *connection, void **context,
                       enum MHD_ConnectionNotificationCode code);
size_t hf__on_unescape(void *arg, struct MHD_Connection *connection, char *text);

/* origin.c: a page from elsewhere, opened in the user's browser, must not act through it: the request is answered, or
 * `foreign` and to be given to hf__check_host. */
void hf__check_origin(struct hf__request *request);
/* Answers a foreign one, unless somebody has made a token by now; asks the store. */
void hf__check_host(struct hf__request *request);

#endif

/* libcurl, loaded at its first use: it brings two dozen libraries with it, and only those who deliver events need it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_OUTBOX_LIBRARY_H
#define HF_OUTBOX_LIBRARY_H

#include <curl/curl.h>

#include <holdfast/error.h>

#define HF__CURL_FUNCTIONS(X)                                                                      \
    X(curl_global_init)                                                                            \
    X(curl_easy_init)                                                                              \
    X(curl_easy_setopt)                                                                            \
    X(curl_easy_getinfo)                                                                           \
    X(curl_easy_cleanup)                                                                           \
    X(curl_easy_strerror)                                                                          \
    X(curl_multi_init)                                                                             \
    X(curl_multi_add_handle)                                                                       \
    X(curl_multi_remove_handle)                                                                    \
    X(curl_multi_perform)                                                                          \
    X(curl_multi_poll)                                                                             \
    X(curl_multi_info_read)                                                                        \
    X(curl_multi_cleanup)                                                                          \
    X(curl_slist_append)                                                                           \
    X(curl_slist_free_all)

/* The headers have macros of some names, which check types: these members are called past them. */
struct hf__library {
#define MEMBER(name) __typeof__(name) *f_##name;
    HF__CURL_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The same for all threads, loaded once; HF_HANDLER_FAILED if it is not installed. */
hf_code hf__library_get(const struct hf__library **out, hf_error *err);

#endif

/* libmicrohttpd, loaded at its first use: it brings TLS with it, which costs every process that never serves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/late.h"

#include <microhttpd.h>
#include <stdarg.h>

#define LIBRARY "libmicrohttpd.so.12"
#define NEEDED "serving needs " LIBRARY

#define FUNCTIONS(X)                                                                               \
    X(enum MHD_Result, MHD_add_response_header,                                                    \
      (struct MHD_Response * r, const char *n, const char *v), (r, n, v))                          \
    X(struct MHD_Response *, MHD_create_response_from_buffer,                                      \
      (size_t s, void *b, enum MHD_ResponseMemoryMode m), (s, b, m))                               \
    X(struct MHD_Response *, MHD_create_response_from_callback,                                    \
      (uint64_t s, size_t b, MHD_ContentReaderCallback r, void *a,                                 \
       MHD_ContentReaderFreeCallback f),                                                           \
      (s, b, r, a, f))                                                                             \
    X(int, MHD_get_connection_values_n,                                                            \
      (struct MHD_Connection * c, enum MHD_ValueKind k, MHD_KeyValueIteratorN i, void *a),         \
      (c, k, i, a))                                                                                \
    X(enum MHD_Result, MHD_queue_response,                                                         \
      (struct MHD_Connection * c, unsigned int s, struct MHD_Response *r), (c, s, r))              \
    X(MHD_socket, MHD_quiesce_daemon, (struct MHD_Daemon * d), (d))                                \
    X(struct MHD_Daemon *, MHD_start_daemon_va,                                                    \
      (unsigned int f, uint16_t p, MHD_AcceptPolicyCallback a, void *b,                            \
       MHD_AccessHandlerCallback h, void *c, va_list l),                                           \
      (f, p, a, b, h, c, l))

/* The same for those that return nothing. */
#define PROCEDURES(X)                                                                              \
    X(void, MHD_destroy_response, (struct MHD_Response * r), (r))                                  \
    X(void, MHD_resume_connection, (struct MHD_Connection * c), (c))                               \
    X(void, MHD_stop_daemon, (struct MHD_Daemon * d), (d))                                         \
    X(void, MHD_suspend_connection, (struct MHD_Connection * c), (c))

/* These take anything after what is named; we give them nothing. */
#define QUESTIONS(X)                                                                               \
    X(const union MHD_ConnectionInfo *, MHD_get_connection_info,                                   \
      (struct MHD_Connection * c, enum MHD_ConnectionInfoType t, ...), (c, t))                     \
    X(const union MHD_DaemonInfo *, MHD_get_daemon_info,                                           \
      (struct MHD_Daemon * d, enum MHD_DaemonInfoType t, ...), (d, t))

static struct {
    FUNCTIONS(CLI_LATE_MEMBER) PROCEDURES(CLI_LATE_MEMBER) QUESTIONS(CLI_LATE_MEMBER)
} real;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    FUNCTIONS(CLI_LATE_FIND)
    PROCEDURES(CLI_LATE_FIND)
    QUESTIONS(CLI_LATE_FIND)
}

FUNCTIONS(CLI_LATE_FUNCTION)
PROCEDURES(CLI_LATE_PROCEDURE)
QUESTIONS(CLI_LATE_FUNCTION)

struct MHD_Daemon *MHD_start_daemon(unsigned int flags, uint16_t port,
                                    MHD_AcceptPolicyCallback accept, void *accept_arg,
                                    MHD_AccessHandlerCallback handler, void *handler_arg, ...)
{
    va_list options;
    va_start(options, handler_arg);
    struct MHD_Daemon *daemon =
        MHD_start_daemon_va(flags, port, accept, accept_arg, handler, handler_arg, options);
    va_end(options);
    return daemon;
}

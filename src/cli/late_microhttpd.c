/* libmicrohttpd, loaded at its first use: it brings TLS with it, which costs every process that never serves. These
 * definitions stand in for it when the program is linked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit.h"

#include <dlfcn.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libmicrohttpd.so.12"

/* what it returns, its name, its parameters, the arguments to hand on */
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
#define MEMBER(type, name, parameters, arguments) type(*name) parameters;
    FUNCTIONS(MEMBER) PROCEDURES(MEMBER) QUESTIONS(MEMBER)
#undef MEMBER
} real;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "holdfast: serving needs " LIBRARY ": %s\n", dlerror());
        exit(CLI_STORE);
    }
    return found;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
#define FIND(type, name, parameters, arguments) *(void **)&real.name = find(library, #name);
    FUNCTIONS(FIND)
    PROCEDURES(FIND)
    QUESTIONS(FIND)
#undef FIND
}

#define FORWARD(type, name, parameters, arguments)                                                 \
    type name parameters                                                                           \
    {                                                                                              \
        pthread_once(&once, load);                                                                 \
        return real.name arguments;                                                                \
    }
FUNCTIONS(FORWARD)
QUESTIONS(FORWARD)
#undef FORWARD

#define FORWARD(type, name, parameters, arguments)                                                 \
    type name parameters                                                                           \
    {                                                                                              \
        pthread_once(&once, load);                                                                 \
        real.name arguments;                                                                       \
    }
PROCEDURES(FORWARD)

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

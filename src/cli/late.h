/* Libraries that are loaded at their first use: definitions of our own stand in for theirs when the program is linked, and hand
 * on to what was found. A file lists the functions as X(what it returns, its name, its parameters, the arguments to hand on),
 * and has `real`, a struct of pointers to them, and `once`, by which `load` fills it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_LATE_H
#define HF_CLI_LATE_H

#include "cli/exit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if it is not there; `what` says which part of it needs the library. */
static inline void *cli_late_find(void *library, const char *name, const char *what)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "holdfast: %s: %s\n", what, dlerror());
        exit(CLI_STORE);
    }
    return found;
}

#define CLI_LATE_MEMBER(type, name, parameters, arguments) type(*name) parameters;
#define CLI_LATE_FIND(type, name, parameters, arguments)                                           \
    *(void **)&real.name = cli_late_find(library, #name, NEEDED);
#define CLI_LATE_FUNCTION(type, name, parameters, arguments)                                       \
    type name parameters                                                                           \
    {                                                                                              \
        pthread_once(&once, load);                                                                 \
        return real.name arguments;                                                                \
    }
/* The same for those that return nothing. */
#define CLI_LATE_PROCEDURE(type, name, parameters, arguments)                                      \
    type name parameters                                                                           \
    {                                                                                              \
        pthread_once(&once, load);                                                                 \
        real.name arguments;                                                                       \
    }

#endif

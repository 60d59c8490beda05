/* A child process that is fed, read and, if need be, killed, all by the thread that started it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_PROCESS_H
#define HF_WORKER_PROCESS_H

#include <holdfast/types.h>

#include "util/buffer.h"

#include <poll.h>

#define HF__PROCESS_TAIL 4096 /* bytes of stderr that are kept */

/* What else the thread attends to while the process runs. */
struct hf__process_side {
    nfds_t (*list)(void *arg, struct pollfd *fds);       /* at most HF__PROCESS_SIDE_FDS */
    bool (*attend)(void *arg, const struct pollfd *fds); /* true: end the process */
    void *arg;
};

#define HF__PROCESS_SIDE_FDS 100

struct hf__process_spec {
    const char *const *argv; /* the program is looked up in PATH */
    char *const *env;
    const char *input; /* for stdin */
    size_t input_length;
    size_t max_output; /* bytes of stdout */
    int64_t until;     /* monotonic us after which it is killed; INT64_MAX: never */
    int wake_fd;       /* readable: kill it */
    const struct hf__process_side *side; /* NULL: nothing */
};

enum hf__process_end {
    HF__PROCESS_EXITED,      /* number: the exit status */
    HF__PROCESS_SIGNALLED,   /* number: the signal, which was not ours */
    HF__PROCESS_NOT_STARTED, /* number: errno */
    HF__PROCESS_LATE,        /* killed: the time was up */
    HF__PROCESS_UNWANTED,    /* killed: wake_fd */
    HF__PROCESS_SUSPENDED,   /* killed: its side said so */
    HF__PROCESS_TALKATIVE    /* killed: more output than allowed */
};

struct hf__process_result {
    enum hf__process_end end;
    int number;
    struct hf__buffer output;
    char tail[HF__PROCESS_TAIL * 2]; /* the end of stderr lies at its front */
    size_t tail_length;              /* at most HF__PROCESS_TAIL when it has ended */
};

/* Runs it to its end in a process group of its own, which is killed (SIGTERM, after 2 s SIGKILL)
 * where `end` says so. It dies with the thread that runs it. What it left running in its group is killed when it has ended.
 * Free result->output. */
void hf__process_run(const struct hf__process_spec *spec, struct hf__process_result *result);

#endif

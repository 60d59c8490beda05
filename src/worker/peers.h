/* A listening socket and those who came to it, attended to by one thread between other things. A peer sends lines and gets
 * one line in answer to each; whatever it does, it neither blocks the thread nor takes more memory than the limits say.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_PEERS_H
#define HF_WORKER_PEERS_H

#include "util/line.h"
#include "worker/socket_dir.h"

#include <poll.h>
#include <stdint.h>

enum { HF__PEERS_MOST = 64 };

struct hf__peer {
    int fd; /* -1: nobody */
    struct hf__lines in;
    struct hf__buffer out; /* the answer, with its newline */
    size_t sent;           /* bytes of it */
    bool held;             /* gets no answer and is not read */
    bool leaving;          /* closed when the answer is sent */
    int64_t heard_at;      /* monotonic us of its coming or its last line */
    void *business;        /* the owner's; a peer that has some is never sent away for another */
};

struct hf__peers {
    int listener; /* -1: closed */
    char path[HF__SOCKET_PATH];
    size_t line_limit;
    size_t memory_limit; /* bytes that all peers may have sent and not seen answered */
    /* A line came: write the answer to peer->out, or hold the peer. */
    void (*line)(struct hf__peer *peer, char *line, size_t length, void *arg);
    /* It is gone. */
    void (*left)(struct hf__peer *peer, void *arg);
    void *arg;
    struct hf__peer all[HF__PEERS_MOST];
};

/* Listens at `path`; the other members are set by the caller before. False: errno tells. */
bool hf__peers_open(struct hf__peers *peers, const char *path);
void hf__peers_close(struct hf__peers *peers);
/* What to poll for: at most HF__PEERS_MOST + 1, in an order that hf__peers_attend knows. */
nfds_t hf__peers_list(const struct hf__peers *peers, struct pollfd *fds);
void hf__peers_attend(struct hf__peers *peers, const struct pollfd *fds);

#endif

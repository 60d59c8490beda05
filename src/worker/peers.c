/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/peers.h"

#include "util/clock.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CHUNK 65536
#define OUT_OF_FILES_PAUSE 10000 /* us */

_Static_assert(HF__SOCKET_PATH == sizeof((struct sockaddr_un *)0)->sun_path, "the system's limit");

/* ---- Opening and closing ---- */

bool hf__peers_open(struct hf__peers *peers, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    for (int i = 0; i < HF__PEERS_MOST; i++)
        peers->all[i] = (struct hf__peer){ .fd = -1 };
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    memcpy(peers->path, address.sun_path, sizeof peers->path);
    peers->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (peers->listener < 0)
        return false;
    if (bind(peers->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(peers->listener, HF__PEERS_MOST) == 0)
        return true;
    int why = errno;
    close(peers->listener);
    peers->listener = -1;
    errno = why;
    return false;
}

static void see_off(struct hf__peers *peers, struct hf__peer *peer)
{
    if (peer->fd < 0)
        return;
    peers->left(peer, peers->arg);
    close(peer->fd);
    hf__lines_free(&peer->in);
    hf__buffer_free(&peer->out);
    *peer = (struct hf__peer){ .fd = -1 };
}

void hf__peers_close(struct hf__peers *peers)
{
    if (peers->listener < 0)
        return;
    unlink(peers->path);
    close(peers->listener);
    peers->listener = -1;
    for (int i = 0; i < HF__PEERS_MOST; i++)
        see_off(peers, &peers->all[i]);
}

/* ---- Coming ---- */

static struct hf__peer *free_place(struct hf__peers *peers)
{
    for (int i = 0; i < HF__PEERS_MOST; i++)
        if (peers->all[i].fd < 0)
            return &peers->all[i];
    return NULL;
}

/* Whoever has been silent for longest and has nothing under way. */
static struct hf__peer *most_silent(struct hf__peers *peers)
{
    struct hf__peer *found = NULL;
    for (int i = 0; i < HF__PEERS_MOST; i++) {
        struct hf__peer *peer = &peers->all[i];
        if (peer->fd >= 0 && !peer->business && !peer->held &&
            (!found || peer->heard_at < found->heard_at))
            found = peer;
    }
    return found;
}

/* The folder keeps others out already; this holds even where it was opened to them. */
static bool is_our_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

static void welcome(struct hf__peers *peers)
{
    int fd = accept4(peers->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            usleep(
                OUT_OF_FILES_PAUSE); /* it stays readable: do not spin until there is a descriptor again */
        return;
    }
    struct hf__peer *place = free_place(peers);
    if (!place && (place = most_silent(peers)))
        see_off(peers, place);
    if (!place || !is_our_user(fd)) {
        close(fd);
        return;
    }
    *place = (struct hf__peer){
        .fd = fd,
        .in = { .limit = peers->line_limit },
        .heard_at = hf__monotonic_us(),
    };
}

/* ---- Reading and answering ---- */

static size_t memory_used(const struct hf__peers *peers)
{
    size_t sum = 0;
    for (int i = 0; i < HF__PEERS_MOST; i++)
        sum += peers->all[i].in.bytes.length;
    return sum;
}

/* False: it is gone, or takes too much. */
static bool read_some(struct hf__peers *peers, struct hf__peer *peer)
{
    char bytes[CHUNK];
    ssize_t got = recv(peer->fd, bytes, sizeof bytes, 0);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0 || memory_used(peers) + (size_t)got > peers->memory_limit)
        return false;
    hf__lines_add(&peer->in, bytes, (size_t)got);
    return true;
}

/* True: all of the answer is sent. False: not yet, or `gone`. */
static bool send_answer(struct hf__peer *peer, bool *gone)
{
    while (peer->sent < peer->out.length) {
        ssize_t sent = send(peer->fd, peer->out.data + peer->sent, peer->out.length - peer->sent,
                            MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            *gone = errno != EAGAIN;
            return false;
        }
        peer->sent += (size_t)sent;
    }
    hf__buffer_free(&peer->out);
    peer->sent = 0;
    return true;
}

static void answer_too_long(struct hf__peers *peers, struct hf__peer *peer)
{
    hf__buffer_addf(&peer->out,
                    "{\"error\":\"too_large\",\"message\":\"a request has at most %zu bytes\"}\n",
                    peers->line_limit);
    peer->leaving = true;
}

/* Answers what has come, one line after the other, as long as the answers can be sent. False: it is to go. */
static bool serve(struct hf__peers *peers, struct hf__peer *peer)
{
    bool gone = false;
    while (send_answer(peer, &gone)) {
        char *line;
        size_t length;
        if (peer->leaving)
            return false;
        if (peer->held)
            return true;
        switch (hf__lines_next(&peer->in, &line, &length)) {
        case HF__LINE_NONE: return true;
        case HF__LINE_NO_MEMORY: return false;
        case HF__LINE_TOO_LONG: answer_too_long(peers, peer); break;
        case HF__LINE_THERE:
            peer->heard_at = hf__monotonic_us();
            peers->line(peer, line, length, peers->arg);
            break;
        }
        if (peer->out.failed)
            return false;
    }
    return !gone;
}

/* ---- Attending ---- */

nfds_t hf__peers_list(const struct hf__peers *peers, struct pollfd *fds)
{
    bool room = false;
    for (int i = 0; i < HF__PEERS_MOST; i++) {
        const struct hf__peer *peer = &peers->all[i];
        short events = peer->out.length ? POLLOUT : POLLIN;
        room |= peer->fd < 0 || (!peer->business && !peer->held);
        fds[i] = (struct pollfd){ .fd = peer->fd, .events = peer->held ? 0 : events };
    }
    fds[HF__PEERS_MOST] = (struct pollfd){ .fd = room ? peers->listener : -1, .events = POLLIN };
    return HF__PEERS_MOST + 1;
}

static bool attend_to(struct hf__peers *peers, struct hf__peer *peer, short happened)
{
    if (peer->held)
        return !(happened & (POLLHUP | POLLERR));
    if (happened & POLLIN && !read_some(peers, peer))
        return false;
    if (happened & (POLLHUP | POLLERR) && !(happened & POLLIN))
        return false;
    return serve(peers, peer);
}

void hf__peers_attend(struct hf__peers *peers, const struct pollfd *fds)
{
    for (int i = 0; i < HF__PEERS_MOST; i++)
        if (fds[i].fd >= 0 && fds[i].revents && !attend_to(peers, &peers->all[i], fds[i].revents))
            see_off(peers, &peers->all[i]);
    if (fds[HF__PEERS_MOST].revents)
        welcome(peers);
}

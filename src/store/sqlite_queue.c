/* Standing in the kernel's queue for a flock, and leaving it when the time is up. A flock has no time limit of its own, so a
 * thread stands in the queue; who waits for it, waits for a condition. A thread that is left there goes on standing, for the
 * next who waits, and gives the lock back if nobody does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite.h"

#include "util/alloc.h"
#include "util/error.h"
#include "util/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

struct hf__sqlite_queue {
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t over;
    int fd;      /* the thread's own, of the same open file: the lock belongs to both */
    bool wanted; /* somebody waits */
    bool left;   /* nobody will come any more: the thread frees it all */
    bool ended;  /* the thread has ended */
    int failure; /* errno; 0: the lock was got */
};

static int flock_patiently(int fd, int operation)
{
    int rc;
    do
        rc = flock(fd, operation);
    while (rc != 0 && errno == EINTR);
    return rc;
}

static void free_queue(struct hf__sqlite_queue *queue)
{
    close(queue->fd);
    pthread_cond_destroy(&queue->over);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

static void *stand(void *arg)
{
    struct hf__sqlite_queue *queue = arg;
    int failure = flock_patiently(queue->fd, LOCK_EX) == 0 ? 0 : errno;
    pthread_mutex_lock(&queue->mutex);
    if (!failure && !queue->wanted)
        flock_patiently(queue->fd, LOCK_UN);
    queue->failure = failure;
    queue->ended = true;
    bool left = queue->left;
    pthread_cond_signal(&queue->over);
    pthread_mutex_unlock(&queue->mutex);
    if (left)
        free_queue(queue);
    return NULL;
}

static struct hf__sqlite_queue *begin(int fd)
{
    pthread_t thread;
    struct hf__sqlite_queue *queue = hf__calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    pthread_mutex_init(&queue->mutex, NULL);
    hf__cond_init(&queue->over);
    queue->wanted = true;
    queue->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (queue->fd < 0 || hf__thread_start(&thread, stand, queue, NULL) != HF_OK) {
        free_queue(queue);
        return NULL;
    }
    pthread_detach(thread);
    return queue;
}

/* Whether it has ended, in time. */
static bool await(struct hf__sqlite_queue *queue, int64_t deadline)
{
    struct timespec until = { .tv_sec = deadline / 1000000, .tv_nsec = deadline % 1000000 * 1000 };
    pthread_mutex_lock(&queue->mutex);
    queue->wanted = true;
    int rc = 0;
    while (!queue->ended && rc == 0)
        rc = pthread_cond_timedwait(&queue->over, &queue->mutex, &until);
    bool ended = queue->ended;
    queue->wanted = ended;
    pthread_mutex_unlock(&queue->mutex);
    return ended;
}

void hf__sqlite_queue_leave(struct hf__sqlite_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&queue->mutex);
    bool ended = queue->ended;
    queue->left = true;
    pthread_mutex_unlock(&queue->mutex);
    if (ended)
        free_queue(queue);
}

/* Of a former wait: the thread may have ended meanwhile, and then has no lock. */
static void drop_ended(struct hf__sqlite_queue **queue)
{
    if (!*queue)
        return;
    pthread_mutex_lock(&(*queue)->mutex);
    bool ended = (*queue)->ended;
    (*queue)->wanted |= !ended;
    pthread_mutex_unlock(&(*queue)->mutex);
    if (ended) {
        free_queue(*queue);
        *queue = NULL;
    }
}

int hf__sqlite_queue_flock(struct hf__sqlite_queue **queue, int fd, int64_t deadline)
{
    drop_ended(queue);
    if (!*queue && flock_patiently(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (!*queue && errno != EWOULDBLOCK)
        return -1;
    if (!*queue)
        *queue = begin(fd);
    if (!*queue) {
        errno = ENOMEM;
        return -1;
    }
    if (!await(*queue, deadline)) {
        errno = ETIMEDOUT;
        return -1;
    }
    int failure = (*queue)->failure;
    free_queue(*queue);
    *queue = NULL;
    errno = failure;
    return failure ? -1 : 0;
}

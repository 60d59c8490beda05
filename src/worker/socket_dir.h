/* A worker's private folder for the sockets of its runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_WORKER_SOCKET_DIR_H
#define HF_WORKER_SOCKET_DIR_H

#include <stdbool.h>
#include <stddef.h>

#define HF__SOCKET_PATH 108 /* bytes of sockaddr_un.sun_path */

/* Zeroed at first; not safe for two threads at once. */
struct hf__socket_dir {
    char path[HF__SOCKET_PATH]; /* "": not made yet */
    int lock;                   /* a descriptor that says to others that the folder is in use */
    unsigned used;              /* sockets named so far */
};

/* A new name in the folder, which is made at the first call, in XDG_RUNTIME_DIR or else in /tmp, for its owner alone. What
 * workers left there that were killed is removed then. False: none can be made; errno tells. */
bool hf__socket_dir_name(struct hf__socket_dir *dir, char out[HF__SOCKET_PATH]);
/* Removes it. */
void hf__socket_dir_close(struct hf__socket_dir *dir);

#endif

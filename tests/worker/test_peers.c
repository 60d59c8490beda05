/* Those who come to a run's socket, well-behaved and not.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/peers.h"
#include "worker/socket_dir.h"

#define LIMIT 1000

static struct hf__socket_dir dir;
static struct hf__peers peers;
static int heard, left;
static size_t answer_size; /* bytes of each answer; 0: an echo */

static void echo(struct hf__peer *peer, char *line, size_t length, void *arg)
{
    (void)arg;
    heard++;
    if (strcmp(line, "hold") == 0) {
        peer->held = true;
    } else if (strcmp(line, "work") == 0) {
        peer->business = &heard;
        hf__buffer_add_text(&peer->out, "go\n");
    } else if (answer_size) {
        for (size_t i = 0; i < answer_size; i++)
            hf__buffer_add(&peer->out, "x", 1);
        hf__buffer_add(&peer->out, "\n", 1);
    } else {
        hf__buffer_add(&peer->out, line, length);
        hf__buffer_add(&peer->out, "\n", 1);
    }
}

static void goodbye(struct hf__peer *peer, void *arg)
{
    (void)arg;
    peer->business = NULL;
    left++;
}

static int set_up(void **state)
{
    (void)state;
    char path[HF__SOCKET_PATH];
    heard = left = 0;
    answer_size = 0;
    peers = (struct hf__peers){
        .line_limit = LIMIT, .memory_limit = 4 * LIMIT, .line = echo, .left = goodbye
    };
    assert_true(hf__socket_dir_name(&dir, path));
    assert_true(hf__peers_open(&peers, path));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hf__peers_close(&peers);
    hf__socket_dir_close(&dir);
    return 0;
}

static int come(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strcpy(address.sun_path, peers.path);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Attends until nothing happens any more. */
static void attend(void)
{
    struct pollfd fds[HF__PEERS_MOST + 1];
    nfds_t count = hf__peers_list(&peers, fds);
    for (int i = 0; i < 10000 && poll(fds, count, 0) > 0; i++) {
        hf__peers_attend(&peers, fds);
        count = hf__peers_list(&peers, fds);
    }
    assert_int_equal(poll(fds, count, 0), 0); /* or it would spin */
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What has come; "" if nothing, "EOF" if the other side has closed. */
static const char *hear(int fd)
{
    static char bytes[5000];
    ssize_t got = recv(fd, bytes, sizeof bytes - 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        return "EOF";
    bytes[got < 0 ? 0 : got] = '\0';
    return bytes;
}

static void several_are_served_at_once(void **state)
{
    (void)state;
    int a = come(), b = come();
    attend();
    say(a, "one\nthr");
    say(b, "two\n");
    attend();
    assert_string_equal(hear(a), "one\n");
    assert_string_equal(hear(b), "two\n");
    say(a, "ee\nfour\n");
    attend();
    assert_string_equal(hear(a), "three\nfour\n");
    close(a);
    attend();
    assert_int_equal(left, 1);
    close(b);
}

static void one_who_dribbles_or_is_silent_stops_nobody(void **state)
{
    (void)state;
    int silent = come(), dribbling = come(), good = come();
    attend();
    for (const char *at = "slow and steady\n"; *at; at++) {
        char one[2] = { *at, '\0' };
        say(dribbling, one);
        say(good, "hello\n");
        attend();
        assert_string_equal(hear(good), "hello\n");
    }
    assert_string_equal(hear(dribbling), "slow and steady\n");
    close(silent);
    close(dribbling);
    close(good);
}

static void a_line_that_is_too_long_is_refused_and_its_sender_sent_away(void **state)
{
    (void)state;
    char much[LIMIT + 2];
    int bad = come(), good = come();
    memset(much, 'x', sizeof much);
    much[LIMIT + 1] = '\0';
    attend();
    say(bad, much);
    say(good, "hello\n");
    attend();
    assert_non_null(strstr(hear(bad), "\"error\":\"too_large\""));
    assert_string_equal(hear(bad), "EOF");
    assert_string_equal(hear(good), "hello\n");
    assert_int_equal(heard, 1);
    close(bad);
    close(good);
}

static void all_together_have_a_limit_too(void **state)
{
    (void)state;
    char half[LIMIT];
    int all[8], away = 0;
    memset(half, 'x', sizeof half);
    half[LIMIT - 1] = '\0';
    for (int i = 0; i < 8; i++) {
        all[i] = come();
        attend();
        say(all[i], half);
        attend();
    }
    for (int i = 0; i < 8; i++)
        away += strcmp(hear(all[i]), "EOF") == 0;
    assert_int_equal(away, 4);
    for (int i = 0; i < 8; i++)
        close(all[i]);
}

static void one_who_does_not_read_its_answers_is_not_read_from_either(void **state)
{
    (void)state;
    int deaf = come(), good = come(), asked = 0;
    answer_size = 100000;
    attend();
    while (asked < 1000 && send(deaf, "x\n", 2, MSG_NOSIGNAL) == 2) {
        asked++;
        attend();
    }
    assert_true(heard < 50);
    answer_size = 0;
    say(good, "hello\n");
    attend();
    assert_string_equal(hear(good), "hello\n");
    close(deaf);
    attend();
    assert_int_equal(left, 1);
    close(good);
}

static void the_silent_make_place_and_those_at_work_stay(void **state)
{
    (void)state;
    int working = come();
    say(working, "work\n");
    attend();
    int crowd[HF__PEERS_MOST + 10];
    for (int i = 0; i < HF__PEERS_MOST + 10; i++) {
        crowd[i] = come();
        attend();
    }
    int good = come();
    say(good, "hello\n");
    attend();
    assert_string_equal(hear(good), "hello\n");
    say(working, "done\n");
    attend();
    assert_string_equal(hear(working), "go\ndone\n");
    assert_string_equal(hear(crowd[0]), "EOF");
    for (int i = 0; i < HF__PEERS_MOST + 10; i++)
        close(crowd[i]);
    close(good);
    close(working);
}

static void when_all_are_at_work_newcomers_wait(void **state)
{
    (void)state;
    int all[HF__PEERS_MOST];
    for (int i = 0; i < HF__PEERS_MOST; i++) {
        all[i] = come();
        say(all[i], "work\n");
        attend();
    }
    int late = come();
    say(late, "hello\n");
    attend();
    assert_string_equal(hear(late), "");
    close(all[7]);
    attend();
    assert_string_equal(hear(late), "hello\n");
    for (int i = 0; i < HF__PEERS_MOST; i++)
        if (i != 7)
            close(all[i]);
    close(late);
}

static void who_is_held_hears_nothing_until_the_end(void **state)
{
    (void)state;
    int held = come(), gone = come();
    attend();
    say(held, "hold\nmore\n");
    say(gone, "hold\n");
    attend();
    assert_string_equal(hear(held), "");
    close(gone);
    attend();
    assert_int_equal(left, 1);
    assert_int_equal(heard, 2);
    hf__peers_close(&peers);
    assert_string_equal(hear(held), "EOF");
    close(held);
}

static void one_of_another_user_is_sent_away(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("# SKIP: only root can be somebody else\n");
        skip();
    }
    assert_int_equal(chmod(dir.path, 0755), 0);
    assert_int_equal(chmod(peers.path, 0777), 0);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char bytes[10];
        strcpy(address.sun_path, peers.path);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setuid(65534) != 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
            _exit(1);
        if (send(fd, "hello\n", 6, MSG_NOSIGNAL) != 6 || write(ready[1], "x", 1) != 1)
            _exit(2);
        _exit(recv(fd, bytes, sizeof bytes, 0) <= 0 ? 0 : 3);
    }
    char one;
    int status;
    assert_int_equal(read(ready[0], &one, 1), 1);
    attend();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(heard, 0);
    close(ready[0]);
    close(ready[1]);
}

static void the_folder_is_private_and_goes_with_its_owner(void **state)
{
    (void)state;
    struct stat info;
    char path[HF__SOCKET_PATH];
    strcpy(path, dir.path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    hf__peers_close(&peers);
    hf__socket_dir_close(&dir);
    assert_int_equal(stat(path, &info), -1);
}

/* A worker that was killed leaves its folder; one that lives is left alone. */
static void what_the_dead_left_is_removed(void **state)
{
    (void)state;
    char parent[] = "/tmp/holdfast-test-XXXXXX", dead[HF__SOCKET_PATH], name[HF__SOCKET_PATH];
    assert_non_null(mkdtemp(parent));
    setenv("XDG_RUNTIME_DIR", parent, 1);
    struct hf__socket_dir living = { 0 }, heir = { 0 }, victim = { 0 };
    assert_true(hf__socket_dir_name(&living, name));
    assert_true(hf__socket_dir_name(&victim, name));
    close(victim.lock); /* as its death would */
    strcpy(dead, victim.path);
    assert_true(hf__socket_dir_name(&heir, name));
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(living.path, F_OK), 0);
    hf__socket_dir_close(&living);
    hf__socket_dir_close(&heir);
    assert_int_equal(rmdir(parent), 0);
    unsetenv("XDG_RUNTIME_DIR");
}

static void a_long_runtime_folder_is_passed_over(void **state)
{
    (void)state;
    char parent[200], name[HF__SOCKET_PATH];
    struct hf__socket_dir other = { 0 };
    memset(parent, 'x', sizeof parent);
    memcpy(parent, "/tmp/", 5);
    parent[sizeof parent - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", parent, 1);
    assert_true(hf__socket_dir_name(&other, name));
    assert_int_equal(strncmp(name, "/tmp/holdfast-run-", 18), 0);
    hf__socket_dir_close(&other);
    unsetenv("XDG_RUNTIME_DIR");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    unsetenv("XDG_RUNTIME_DIR");
    const struct CMUnitTest tests[] = {
        TEST(several_are_served_at_once),
        TEST(one_who_dribbles_or_is_silent_stops_nobody),
        TEST(a_line_that_is_too_long_is_refused_and_its_sender_sent_away),
        TEST(all_together_have_a_limit_too),
        TEST(one_who_does_not_read_its_answers_is_not_read_from_either),
        TEST(the_silent_make_place_and_those_at_work_stay),
        TEST(when_all_are_at_work_newcomers_wait),
        TEST(who_is_held_hears_nothing_until_the_end),
        TEST(one_of_another_user_is_sent_away),
        TEST(the_folder_is_private_and_goes_with_its_owner),
        TEST(what_the_dead_left_is_removed),
        TEST(a_long_runtime_folder_is_passed_over),
    };
    return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}

/* Triggers runs until it is told to stop or has made enough, and writes down each one that was accepted, "KEY RUN", at
 * once. A store that cannot be reached, or that is full, is tried again with the same key. Killed and started again with
 * the number at which to go on, it makes no run twice. Without keys (-n) it triggers one at a time, each a run of its own, and
 * writes down names that tell nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH_MOST 8

static volatile sig_atomic_t told_to_stop;

struct maker {
    hf_client *client;
    const char *workflow;
    const char *prefix; /* of the keys */
    const char *input;
    int log_fd;
    bool keyless;
};

static void on_stop(int signal_number)
{
    (void)signal_number;
    told_to_stop = 1;
}

static void sleep_ms(long ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&time, NULL);
}

static bool store_is_away(hf_code code)
{
    return code == HF_UNAVAILABLE || code == HF_STORE_FULL;
}

static void write_down(const struct maker *maker, const char *key, hf_id id)
{
    char line[160], text[HF_ID_TEXT];
    hf_id_format(id, text);
    int length = snprintf(line, sizeof line, "%s %s\n", key, text);
    if (write(maker->log_fd, line, (size_t)length) != length)
        abort();
}

/* The keys from `first` on; each is asked for until it is accepted. False: one was refused. */
static bool make(const struct maker *maker, long first, size_t count)
{
    char keys[BATCH_MOST][64];
    bool done[BATCH_MOST] = { false };
    hf_trigger_spec specs[BATCH_MOST];
    hf_triggered out[BATCH_MOST];
    for (size_t i = 0; i < count; i++)
        snprintf(keys[i], sizeof keys[i], "%s-%ld", maker->prefix, first + (long)i);
    for (size_t left = count; left > 0;) {
        size_t where[BATCH_MOST], asked = 0;
        hf_error err;
        for (size_t i = 0; i < count; i++) {
            if (done[i])
                continue;
            specs[asked] = (hf_trigger_spec)HF_TRIGGER_INIT;
            specs[asked].workflow = maker->workflow;
            specs[asked].key = maker->keyless ? NULL : keys[i];
            specs[asked].input = maker->input;
            where[asked++] = i;
        }
        hf_code code = hf_trigger_many(maker->client, out, specs, asked, &err);
        for (size_t i = 0; i < asked; i++) {
            if (out[i].code == HF_OK) {
                write_down(maker, keys[where[i]], out[i].id);
                done[where[i]] = true;
                left--;
            } else if (!store_is_away(out[i].code)) {
                fprintf(stderr, "%s: %s: %s\n", keys[where[i]], hf_code_name(out[i].code),
                        err.message);
                return false;
            }
        }
        if (code != HF_OK)
            sleep_ms(20);
    }
    return true;
}

static hf_client *open_store(const char *url, int64_t connect_limit)
{
    hf_error err;
    hf_client *client = NULL;
    hf_options options = HF_OPTIONS_INIT;
    hf_code code;
    options.connect_limit = connect_limit;
    while (store_is_away(code = hf_open(&client, url, &options, &err)) && !told_to_stop)
        sleep_ms(50);
    if (code != HF_OK && !told_to_stop) {
        fprintf(stderr, "cannot open the store: %s\n", err.message);
        exit(1);
    }
    return client;
}

int main(int argc, char **argv)
{
    struct maker maker = { .workflow = "crash.work", .prefix = "key", .log_fd = -1 };
    const char *url = NULL, *log_path = NULL;
    long next = 0, count = 1000000, pause = 5;
    int64_t connect_limit = 0;
    for (int c; (c = getopt(argc, argv, "u:l:k:w:i:f:c:p:o:n")) != -1;) {
        switch (c) {
        case 'u': url = optarg; break;
        case 'l': log_path = optarg; break;
        case 'k': maker.prefix = optarg; break;
        case 'w': maker.workflow = optarg; break;
        case 'i': maker.input = optarg; break;
        case 'f': next = atol(optarg); break;
        case 'c': count = atol(optarg); break;
        case 'p': pause = atol(optarg); break; /* ms after each batch */
        case 'o': connect_limit = HF_MILLISECONDS(atol(optarg)); break;
        case 'n': maker.keyless = true; break;
        default: return 2;
        }
    }
    if (!url || !log_path)
        return 2;
    struct sigaction action = { .sa_handler = on_stop };
    sigaction(SIGTERM, &action, NULL);
    srandom((unsigned)getpid());
    maker.log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (maker.log_fd < 0)
        return 2;
    maker.client = open_store(url, connect_limit);
    bool good = true;
    while (good && maker.client && next < count && !told_to_stop) {
        long batch = maker.keyless ? 1 : 1 + random() % BATCH_MOST;
        batch = batch < count - next ? batch : count - next;
        good = make(&maker, next, (size_t)batch);
        next += batch;
        sleep_ms(pause);
    }
    hf_close(maker.client);
    return good ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/text.h"
#include "util/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_POLL HF_SECONDS(5)
#define POLL_LEAST HF_MILLISECONDS(1)
#define MAKE_WAY_AFTER HF_SECONDS(30)
#define MAKE_WAY_FOR HF_SECONDS(2)
#define STEP_GRACE HF_SECONDS(2)  /* for handlers that look at hf_step_check now and then */
#define LOST_GRACE HF_SECONDS(10) /* for those that look at hf_check */
#define DEFAULT_STOP_LIMIT HF_SECONDS(30)
#define SPAN_MOST HF_DAYS(366)

/* ---- Life ---- */

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

/* Of those that ended after the worker had. */
static void free_hands(struct hf__hand *hands)
{
    while (hands) {
        struct hf__hand *hand = hands;
        hands = hand->next;
        free(hand);
    }
}

static void destroy(hf_worker *worker)
{
    hf__registry_free(&worker->registry);
    hf__socket_dir_close(&worker->sockets);
    hf__lanes_free(&worker->lanes);
    hf__heads_free(&worker->heads);
    free_texts(worker->prefixes, worker->prefix_count);
    free_texts(worker->tenants, worker->tenant_count);
    pthread_cond_destroy(&worker->work);
    pthread_cond_destroy(&worker->claimer);
    pthread_cond_destroy(&worker->beat);
    pthread_cond_destroy(&worker->settled);
    pthread_mutex_destroy(&worker->lock);
    pthread_mutex_destroy(&worker->beat_lock);
    if (worker->stop_fd >= 0)
        close(worker->stop_fd);
    free_hands(worker->hands);
    free(worker->tenants_json);
    free(worker->serves_json);
    free(worker->name);
    free(worker->host);
    free(worker);
}

hf_worker *hf__worker_ref(hf_worker *worker)
{
    atomic_fetch_add(&worker->refs, 1);
    return worker;
}

void hf__worker_unref(hf_worker *worker)
{
    if (worker && atomic_fetch_sub(&worker->refs, 1) == 1)
        destroy(worker);
}

void hf_worker_free(hf_worker *worker)
{
    hf__worker_unref(worker);
}

static void init_locks(hf_worker *worker)
{
    pthread_mutex_init(&worker->lock, NULL);
    pthread_mutex_init(&worker->beat_lock, NULL);
    hf__cond_init(&worker->work);
    hf__cond_init(&worker->claimer);
    hf__cond_init(&worker->beat);
    hf__cond_init(&worker->settled);
}

/* ---- Options ---- */

static hf_code check_span(const char *what, int64_t us, hf_error *err)
{
    if (us < 0 || us > SPAN_MOST)
        return hf__fail(err, HF_INVALID, "%s must be between 0 and 366 days", what);
    return HF_OK;
}

static hf_code check_options(const hf_worker_options *options, hf_error *err)
{
    if (options->version < 1 || options->version > HF_WORKER_OPTIONS_VERSION)
        return hf__fail(err, HF_INVALID, "start the options with HF_WORKER_OPTIONS_INIT");
    if (options->threads < 0 || options->threads > HF_MAX_THREADS)
        return hf__fail(err, HF_INVALID, "threads must be between 1 and %d, or 0 for the default",
                        HF_MAX_THREADS);
    hf_code code = check_span("the poll time", options->poll, err);
    if (code == HF_OK)
        code = check_span("the heartbeat", options->heartbeat, err);
    if (code == HF_OK)
        code = check_span("the stop limit", options->stop_limit, err);
    return code;
}

static int default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 2 ? (int)cores * 2 : 4;
}

/* "billing.", "billing.*" and "billing" all become a stem with a star. */
static char *star(const char *prefix)
{
    size_t length = strlen(prefix);
    bool has_star = length > 0 && prefix[length - 1] == '*';
    char *copy = hf__malloc(length + 2);
    if (!copy)
        return NULL;
    memcpy(copy, prefix, length + 1);
    if (!has_star)
        memcpy(copy + length, "*", 2);
    return copy;
}

static hf_code copy_texts(char ***out, size_t *count, const char *const *texts, size_t wanted,
                          char *(*copy)(const char *), hf_error *err)
{
    *out = hf__calloc(wanted + 1, sizeof **out);
    if (!*out)
        return hf__nomem(err);
    for (size_t i = 0; i < wanted; i++) {
        if (!texts[i] || !*texts[i] || strlen(texts[i]) > HF__NAME_MAX)
            return hf__fail(err, HF_INVALID, "prefixes and tenants of a worker have 1 to %d bytes",
                            HF__NAME_MAX);
        (*out)[i] = copy(texts[i]);
        if (!(*out)[i])
            return hf__nomem(err);
        (*count)++;
    }
    return HF_OK;
}

static void apply_options(hf_worker *worker, const hf_worker_options *options)
{
    worker->threads = options->threads ? options->threads : default_threads();
    worker->poll = options->poll ? options->poll : DEFAULT_POLL;
    if (worker->poll < POLL_LEAST)
        worker->poll = POLL_LEAST;
    worker->heartbeat = options->heartbeat;
    worker->stop_limit = options->stop_limit ? options->stop_limit : DEFAULT_STOP_LIMIT;
    worker->chores_only = options->chores_only;
    worker->no_dispatch =
        options->version >= 2 && options->no_dispatch; /* version 1 does not have it */
    worker->make_way_after = MAKE_WAY_AFTER;
    worker->make_way_for = MAKE_WAY_FOR;
    worker->step_grace = STEP_GRACE;
    worker->lost_grace = LOST_GRACE;
    worker->observer = options->observer;
    worker->observer_arg = options->observer_arg;
}

static char *copy_text(const char *text)
{
    return hf__strdup(text);
}

static hf_code set_up(hf_worker *worker, const hf_worker_options *options, hf_error *err)
{
    apply_options(worker, options);
    worker->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->stop_fd < 0)
        return hf__fail(err, HF_INTERNAL, "no event descriptor for the worker: %s",
                        strerror(errno));
    hf_code code = hf__identity_choose(worker, options->name, err);
    if (code == HF_OK)
        code = copy_texts(&worker->prefixes, &worker->prefix_count, options->prefixes,
                          options->prefix_count, star, err);
    if (code == HF_OK)
        code = copy_texts(&worker->tenants, &worker->tenant_count, options->tenants,
                          options->tenant_count, copy_text, err);
    return code;
}

hf_code hf_worker_new(hf_worker **out, hf_client *client, const hf_worker_options *options,
                      hf_error *err)
{
    hf_worker_options defaults = HF_WORKER_OPTIONS_INIT;
    options = options ? options : &defaults;
    hf_code code = check_options(options, err);
    if (code != HF_OK)
        return code;
    hf_worker *worker = hf__calloc(1, sizeof *worker);
    if (!worker)
        return hf__nomem(err);
    worker->client = client;
    worker->engine = client->engine;
    worker->stop_fd = -1;
    atomic_init(&worker->refs, 1);
    atomic_init(&worker->master_users, 1);
    init_locks(worker);
    code = set_up(worker, options, err);
    if (code == HF_OK)
        *out = worker;
    else
        hf__worker_unref(worker);
    return code;
}

static hf_code check_not_running(const hf_worker *worker, hf_error *err)
{
    if (worker->has_run)
        return hf__fail(err, HF_INVALID, "handlers are registered before hf_worker_run");
    return HF_OK;
}

hf_code hf_worker_handle(hf_worker *worker, const char *pattern, hf_handler handler, void *arg,
                         hf_error *err)
{
    hf_code code = check_not_running(worker, err);
    if (code == HF_OK && !handler)
        code = hf__fail(err, HF_INVALID, "\"%s\" needs a handler", pattern ? pattern : "");
    if (code == HF_OK)
        code = hf__registry_add(&worker->registry, pattern, handler, arg, NULL, err);
    return code;
}

hf_code hf_worker_exec(hf_worker *worker, const char *pattern, const hf_exec_options *options,
                       hf_error *err)
{
    struct hf__program *program = NULL;
    hf_code code = check_not_running(worker, err);
    if (code == HF_OK)
        code = hf__program_new(&program, options, hf__engine_max_payload(worker->engine), err);
    if (code == HF_OK)
        code = hf__registry_add(&worker->registry, pattern, hf__program_handle, program,
                                hf__program_free, err);
    if (code != HF_OK)
        hf__program_free(program);
    return code;
}

/* ---- Small services ---- */

void hf__worker_nudge(hf_worker *worker)
{
    uint64_t one = 1;
    if (write(worker->stop_fd, &one, sizeof one) < 0)
        return; /* the counter is full: it is awake already */
}

void hf_worker_stop(hf_worker *worker)
{
    int before = errno;
    atomic_fetch_add(&worker->stop_calls, 1);
    hf__worker_nudge(worker);
    errno = before;
}

void hf__worker_end(hf_worker *worker, hf_code code)
{
    pthread_mutex_lock(&worker->lock);
    bool first = worker->end_code == HF_OK;
    if (first)
        worker->end_code = code;
    pthread_mutex_unlock(&worker->lock);
    if (first)
        hf_worker_stop(worker);
}

void hf__worker_observe(const hf_worker *worker, const hf_worker_event *event)
{
    if (worker->observer && !atomic_load(&worker->silent))
        worker->observer(event, worker->observer_arg);
}

void hf__worker_say(const hf_worker *worker, hf_worker_event_kind kind, const char *message)
{
    hf__worker_observe(worker, &(hf_worker_event){ .kind = kind, .message = message });
}

void hf__worker_heard_from_store(hf_worker *worker, hf_code code, const hf_error *err)
{
    if (code == HF_UNAVAILABLE || code == HF_STORE_FULL || code == HF_READ_ONLY) {
        if (!atomic_exchange(&worker->store_lost, true))
            hf__worker_say(worker, HF_WORKER_STORE_LOST,
                           err ? err->message : hf_code_meaning(code));
    } else if (code == HF_OK && atomic_exchange(&worker->store_lost, false)) {
        atomic_store(&worker->adopt, true);
        hf__claimer_hear(&(struct hf__heard){ .lanes = true }, worker);
        hf__worker_say(worker, HF_WORKER_STORE_BACK, NULL);
    }
}

hf_code hf__worker_query(hf_worker *worker, enum hf__stmt stmt, const struct hf__table *params,
                         struct hf__table *result, hf_error *err)
{
    hf_error own;
    hf_error *error = err ? err : &own;
    hf_code code = hf__engine_query(worker->engine, stmt, params, result, error);
    hf__worker_heard_from_store(worker, code, error);
    return code;
}

void hf__worker_wait(hf_worker *worker, pthread_cond_t *cond, int64_t until)
{
    struct timespec time = {
        .tv_sec = (time_t)(until / 1000000),
        .tv_nsec = (long)(until % 1000000) * 1000,
    };
    pthread_cond_timedwait(cond, &worker->lock, &time);
}

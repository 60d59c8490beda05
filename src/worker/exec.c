/* Programs as handlers: input on stdin, result on stdout.
 * SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "function/function.h"
#include "util/alloc.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/json.h"
#include "util/text.h"
#include "worker/exec_env.h"
#include "worker/exec_fault.h"
#include "worker/process.h"
#include "worker/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ARGUMENTS_MOST 1000
#define EXIT_TRY_LATER 75 /* EX_TEMPFAIL of sysexits.h */
#define EXIT_FOR_GOOD 78  /* EX_CONFIG of sysexits.h */
#define MESSAGE_TAIL 380  /* bytes of stderr in the one-line error */

struct hf__program {
    char **argv;
    char **env; /* added to its environment */
    size_t env_count;
    int64_t time_limit; /* us; 0: none */
    size_t max_output;
};

/* ---- The program ---- */

void hf__program_free(void *arg)
{
    struct hf__program *program = arg;
    if (!program)
        return;
    for (size_t i = 0; program->argv && program->argv[i]; i++)
        free(program->argv[i]);
    free(program->argv);
    for (size_t i = 0; i < program->env_count; i++)
        free(program->env[i]);
    free(program->env);
    free(program);
}

static hf_code copy_argv(struct hf__program *program, const char *const *argv, hf_error *err)
{
    size_t count = 0;
    while (argv[count] && count <= ARGUMENTS_MOST)
        count++;
    if (count > ARGUMENTS_MOST)
        return hf__fail(err, HF_INVALID, "a program takes at most %d arguments", ARGUMENTS_MOST);
    program->argv = hf__calloc(count + 1, sizeof *program->argv);
    if (!program->argv)
        return hf__nomem(err);
    for (size_t i = 0; i < count; i++)
        if (!(program->argv[i] = hf__strdup(argv[i])))
            return hf__nomem(err);
    return HF_OK;
}

static hf_code copy_env(struct hf__program *program, const hf_exec_options *options, hf_error *err)
{
    size_t count = options->version >= 2 ? options->env_count : 0; /* version 1 does not have it */
    program->env = hf__calloc(count + 1, sizeof *program->env);
    if (!program->env)
        return hf__nomem(err);
    for (size_t i = 0; i < count; i++) {
        hf_code code = hf__exec_env_check(options->env[i], err);
        if (code != HF_OK)
            return code;
        if (!(program->env[i] = hf__strdup(options->env[i])))
            return hf__nomem(err);
        program->env_count++;
    }
    return HF_OK;
}

hf_code hf__program_new(struct hf__program **out, const hf_exec_options *options,
                        size_t max_payload, hf_error *err)
{
    if (!options || options->version < 1 || options->version > HF_EXEC_OPTIONS_VERSION)
        return hf__fail(err, HF_INVALID, "start the options with HF_EXEC_OPTIONS_INIT");
    if (!options->argv || !options->argv[0] || !*options->argv[0])
        return hf__fail(err, HF_INVALID, "name the program to run");
    if (options->time_limit < 0)
        return hf__fail(err, HF_INVALID, "a time limit is not negative");
    struct hf__program *program = hf__calloc(1, sizeof *program);
    if (!program)
        return hf__nomem(err);
    program->time_limit = options->time_limit;
    program->max_output = max_payload;
    if (options->max_output && options->max_output < max_payload)
        program->max_output = options->max_output;
    hf_code code = copy_argv(program, options->argv, err);
    if (code == HF_OK)
        code = copy_env(program, options, err);
    if (code == HF_OK)
        *out = program;
    else
        hf__program_free(program);
    return code;
}

/* ---- What its end means ---- */

/* Programs end their last line; the value ends before that. */
static void trim_end(char *json, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", json[length - 1]))
        json[--length] = '\0';
}

static hf_code take_result(hf_ctx *ctx, struct hf__buffer *output, hf_error *err)
{
    hf_code code;
    struct hf__buffer text = { 0 };
    size_t length = output->length;
    if (length == 0)
        return HF_OK;
    if (memchr(output->data, '\0', length) || !hf__utf8_valid(output->data, length))
        return hf__fail(err, HF_HANDLER_FAILED, "the program's output is not UTF-8 text");
    if (hf__json_check(output->data, length, NULL) == HF_OK) {
        trim_end(output->data, length);
        code = hf_return(ctx, output->data);
    } else {
        if (output->data[length - 1] == '\n')
            length--;
        hf__buffer_add_json_string(&text, output->data, length);
        code = text.failed ? HF_NOMEM : hf_return(ctx, text.data);
        hf__buffer_free(&text);
    }
    ctx->refused = NULL; /* it is told in the words of programs */
    if (code == HF_INVALID)
        return hf__fail(err, HF_HANDLER_FAILED, "output too large: more than %zu bytes as JSON",
                        hf__engine_max_payload(ctx->worker->engine));
    return code == HF_OK ? HF_OK : hf__nomem(err);
}

/* The end of what it wrote to stderr, without the last newlines, cut at a character. */
static const char *last_words(struct hf__process_result *result)
{
    size_t length = result->tail_length, from = 0;
    while (length > 0 && strchr("\n\r\t ", result->tail[length - 1]) && result->tail[length - 1])
        length--;
    result->tail[length] = '\0';
    if (length > MESSAGE_TAIL)
        from = length - MESSAGE_TAIL;
    while (from > 0 && from < length && (result->tail[from] & 0xc0) == 0x80)
        from++;
    return result->tail + from;
}

static void keep_details(hf_ctx *ctx, const struct hf__process_result *result, const char *program)
{
    char code[32];
    struct hf__buffer json = { 0 };
    bool signalled = result->end == HF__PROCESS_SIGNALLED;
    const struct hf__entry *step = hf__function_failure(ctx, HF_HANDLER_FAILED);
    snprintf(code, sizeof code, "%s_%d", signalled ? "signal" : "exit", result->number);
    hf__buffer_add_text(&json, "{\"program\":");
    hf__buffer_add_json_string(&json, program, strlen(program));
    hf__buffer_addf(&json, ",\"%s\":%d,\"stderr\":", signalled ? "signal" : "exit", result->number);
    hf__buffer_add_json_string(&json, result->tail, result->tail_length);
    if (step) { /* on whose failure it gave up */
        hf__buffer_add_text(&json, ",\"step\":");
        hf__buffer_add_json_string(&json, step->name, strlen(step->name));
    }
    hf__buffer_add_text(&json, "}");
    if (!json.failed && hf_fail_with(ctx, step ? hf__entry_code(step) : code, json.data) != HF_OK)
        ctx->error = NULL;
    hf__buffer_free(&json);
}

static hf_code judge_exit(hf_ctx *ctx, const char *program, struct hf__process_result *result,
                          hf_error *err)
{
    if (result->number == 0 || result->number == 126 || result->number == 127)
        hf__function_set_failure_aside(ctx);
    if (result->number == 0)
        return take_result(ctx, &result->output, err);
    keep_details(ctx, result, program);
    const char *words = last_words(result);
    const char *colon = *words ? ": " : "";
    if (result->number == EXIT_TRY_LATER)
        return hf__fail(err, HF_RETRY, "%.100s asks to be tried again later%s%s", program, colon,
                        words);
    if (result->number == EXIT_FOR_GOOD)
        return hf__fail(err, HF_PERMANENT, "%.100s failed for good (exit %d)%s%s", program,
                        result->number, colon, words);
    if (result->number == 127)
        return hf__fail(err, HF_HANDLER_FAILED, "%.100s: a program was not found (exit 127)%s%s",
                        program, colon, words);
    if (result->number == 126)
        return hf__fail(err, HF_HANDLER_FAILED, "%.100s: a program may not be run (exit 126)%s%s",
                        program, colon, words);
    return hf__fail(err, HF_HANDLER_FAILED, "%.100s failed with exit %d%s%s", program,
                    result->number, colon, words);
}

static hf_code judge(hf_ctx *ctx, const char *program, struct hf__process_result *result,
                     hf_error *err)
{
    char fault[HF__EXEC_FAULT];
    if (result->end == HF__PROCESS_EXITED)
        return judge_exit(ctx, program, result, err);
    hf__function_set_failure_aside(ctx);
    switch (result->end) {
    case HF__PROCESS_EXITED: break;
    case HF__PROCESS_SIGNALLED:
        keep_details(ctx, result, program);
        return hf__fail(err, HF_HANDLER_FAILED, "%.100s was killed by signal %d", program,
                        result->number);
    case HF__PROCESS_NOT_STARTED:
        return hf__fail(err, HF_HANDLER_FAILED, "%s",
                        hf__exec_fault(program, result->number, fault, sizeof fault));
    case HF__PROCESS_LATE:
        return hf__fail(err, HF_HANDLER_FAILED, "%.100s was killed: it ran into its time limit",
                        program);
    case HF__PROCESS_UNWANTED:
        return hf__fail(err, HF_HANDLER_FAILED, "%.100s was killed: its run was taken away",
                        program);
    case HF__PROCESS_SUSPENDED: return hf__fail(err, HF_SUSPENDED, "the run waits");
    case HF__PROCESS_TALKATIVE: break;
    }
    return hf__fail(err, HF_HANDLER_FAILED, "%.100s: output too large", program);
}

/* ---- Running it ---- */

/* From here on the thread is told when the run is lost. */
static void set_wake_fd(hf_ctx *ctx, int fd)
{
    uint64_t one = 1;
    pthread_mutex_lock(&ctx->worker->lock);
    ctx->wake_fd = fd;
    if (fd >= 0 && atomic_load(&ctx->lost) != HF_OK && write(fd, &one, sizeof one) < 0)
        ctx->wake_fd = fd; /* cannot happen on a new descriptor */
    pthread_mutex_unlock(&ctx->worker->lock);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static nfds_t list_side(void *script, struct pollfd *fds)
{
    return hf__peers_list(&((struct hf__script *)script)->peers, fds);
}

static bool attend_side(void *arg, const struct pollfd *fds)
{
    struct hf__script *script = arg;
    hf__peers_attend(&script->peers, fds);
    return hf__script_is_suspended(script);
}

_Static_assert(HF__PEERS_MOST + 1 <= HF__PROCESS_SIDE_FDS, "all peers are polled for");

static hf_code run_program(hf_ctx *ctx, const struct hf__program *program,
                           struct hf__process_spec *spec, struct hf__process_result *result,
                           hf_error *err)
{
    set_wake_fd(ctx, spec->wake_fd);
    hf__process_run(spec, result);
    set_wake_fd(ctx, -1);
    hf_code code = judge(ctx, program->argv[0], result, err);
    hf__buffer_free(&result->output);
    return code;
}

hf_code hf__program_handle(hf_ctx *ctx, const char *input, hf_error *err, void *arg)
{
    const struct hf__program *program = arg;
    struct hf__arena arena = { 0 };
    int64_t limit = program->time_limit ? hf__monotonic_us() + program->time_limit : INT64_MAX;
    struct hf__process_result *result = hf__arena_alloc(&arena, sizeof *result);
    struct hf__script *script = hf__arena_alloc(&arena, sizeof *script);
    bool durable = script && hf__script_open(script, ctx);
    struct hf__process_side side = { list_side, attend_side, script };
    struct hf__process_spec spec = {
        .argv = (const char *const *)program->argv,
        .env = hf__exec_env(&arena, program->env, program->env_count, &ctx->claimed->run,
                            durable ? script->peers.path : NULL),
        .input = input,
        .input_length = strlen(input),
        .max_output = program->max_output,
        .until = sooner(limit, ctx->deadline),
        .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
        .side = durable ? &side : NULL,
    };
    hf_code code = spec.env && result && spec.wake_fd >= 0 ? HF_OK : hf__nomem(err);
    if (code == HF_OK)
        code = run_program(ctx, program, &spec, result, err);
    if (durable && code == HF_OK && ctx->function)
        hf__script_refuse_open_steps(script);
    if (durable)
        hf__script_close(script);
    if (spec.wake_fd >= 0)
        close(spec.wake_fd);
    hf__arena_free(&arena);
    return code;
}

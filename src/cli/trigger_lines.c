/* Many triggers from a file of JSON lines, sent in chunks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/field.h"
#include "cli/input.h"
#include "cli/line_spec.h"
#include "cli/terminal.h"
#include "cli/trigger.h"
#include "util/arena.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

enum { CHUNK_LINES = 500 };
#define CHUNK_BYTES ((size_t)8 * 1024 * 1024) /* of input held at once, but for the last line */

struct chunk {
    struct hf__arena arena; /* holds what the specs point to */
    hf_trigger_spec specs[CHUNK_LINES];
    hf_triggered answers[CHUNK_LINES];
    long numbers[CHUNK_LINES]; /* of the lines they came from */
    size_t count;
    size_t bytes;
};

struct tally {
    int64_t accepted, refused, unserved;
    int status; /* exit code of the first refusal */
};

struct line_answer {
    int64_t line;
    hf_id id;
    const char *code;
    const char *message;
    bool existed;
    bool no_worker;
    bool debounced;
};

static const struct hf__field line_answer_fields[] = {
    { "line", HF__FIELD_INT64, offsetof(struct line_answer, line) },
    { "id", HF__FIELD_ID, offsetof(struct line_answer, id) },
    { "code", HF__FIELD_TEXT, offsetof(struct line_answer, code) },
    { "message", HF__FIELD_TEXT, offsetof(struct line_answer, message) },
    { "existed", HF__FIELD_BOOL, offsetof(struct line_answer, existed) },
    { "no_worker", HF__FIELD_BOOL, offsetof(struct line_answer, no_worker) },
    { "debounced", HF__FIELD_BOOL, offsetof(struct line_answer, debounced) },
    { NULL, HF__FIELD_TEXT, 0 },
};

static void refuse(const struct cli_session *session, struct tally *tally, long line, hf_code code,
                   const char *message)
{
    if (tally->refused++ == 0)
        tally->status = cli_exit_of(code);
    if (session->json) {
        struct line_answer answer = { .line = line,
                                      .code = hf_code_name(code),
                                      .message = message };
        cli_record_json(stdout, line_answer_fields, &answer);
        return;
    }
    cli_progress_end(session);
    fflush(stdout);
    fprintf(stderr, "holdfast: line %ld: ", line);
    cli_put_clean(stderr, message);
    fputc('\n', stderr);
}

static void accept_line(const struct cli_session *session, struct tally *tally, long line,
                        const hf_triggered *triggered)
{
    tally->accepted++;
    tally->unserved += triggered->no_worker;
    if (session->json) {
        struct line_answer answer = { .line = line,
                                      .id = triggered->id,
                                      .code = "ok",
                                      .existed = triggered->existed,
                                      .no_worker = triggered->no_worker,
                                      .debounced = triggered->debounced };
        cli_record_json(stdout, line_answer_fields, &answer);
        return;
    }
    char id[HF_ID_TEXT];
    hf_id_format(triggered->id, id);
    puts(id);
}

static void explain_refusal(const struct cli_session *session, struct tally *tally,
                            const struct chunk *chunk, size_t i)
{
    hf_error err = chunk->answers[i].error;
    if (err.code == HF_UNKNOWN_WORKFLOW)
        hf__fail(&err, err.code,
                 "no workflow named %.100s: create it with `holdfast workflow create`",
                 chunk->specs[i].workflow);
    refuse(session, tally, chunk->numbers[i], err.code, err.message);
}

/* False when the store does not answer, so that going on is of no use. */
static bool send_chunk(struct cli_session *session, struct chunk *chunk, struct tally *tally)
{
    if (chunk->count == 0)
        return true;
    hf_code code =
        hf_trigger_many(session->client, chunk->answers, chunk->specs, chunk->count, NULL);
    for (size_t i = 0; i < chunk->count; i++)
        if (chunk->answers[i].code == HF_OK)
            accept_line(session, tally, chunk->numbers[i], &chunk->answers[i]);
        else
            explain_refusal(session, tally, chunk, i);
    chunk->count = 0;
    chunk->bytes = 0;
    hf__arena_reset(&chunk->arena);
    return cli_exit_of(code) != CLI_STORE;
}

static bool is_blank(const struct cli_lines *lines)
{
    return lines->line[strspn(lines->line, " \t\r")] == '\0' &&
           strlen(lines->line) == lines->length && !lines->too_long;
}

static void add_line(const struct cli_session *session, struct chunk *chunk, struct tally *tally,
                     const struct cli_lines *lines, bool full, const hf_trigger_spec *base)
{
    hf_error err = { 0 };
    hf_trigger_spec *spec = &chunk->specs[chunk->count];
    *spec = *base;
    hf_code code;
    if (lines->too_long)
        code = hf__fail(&err, HF_TOO_LARGE, "it is longer than %zu bytes", cli_max_line());
    else
        code = cli_line_spec(spec, &chunk->arena, lines->line, lines->length, full, &err);
    if (code != HF_OK) {
        refuse(session, tally, lines->number, code, err.message);
        return;
    }
    chunk->numbers[chunk->count++] = lines->number;
    chunk->bytes += lines->length;
}

static void send_lines(struct cli_session *session, struct cli_lines *lines, bool full,
                       const hf_trigger_spec *base, struct tally *tally)
{
    static struct chunk chunk;
    hf_error err = { 0 };
    bool failed = false;
    bool reachable = true;
    while (reachable && cli_lines_next(lines, &failed, &err)) {
        if (is_blank(lines))
            continue;
        add_line(session, &chunk, tally, lines, full, base);
        if (chunk.count == CHUNK_LINES || chunk.bytes >= CHUNK_BYTES) {
            reachable = send_chunk(session, &chunk, tally);
            cli_progress_show(session, "triggered", tally->accepted, 0);
        }
    }
    if (reachable)
        reachable = send_chunk(session, &chunk, tally);
    cli_progress_end(session);
    if (failed)
        refuse(session, tally, lines->number, err.code, err.message);
    if (!reachable)
        cli_notice(session, "stopped after line %ld: the store does not answer", lines->number);
    hf__arena_free(&chunk.arena);
}

int cli_trigger_lines(struct cli_session *session, const char *file, bool full,
                      const hf_trigger_spec *base)
{
    struct tally tally = { 0 };
    struct cli_lines lines;
    hf_error err = { 0 };
    int status = CLI_OK;
    if (cli_lines_open(&lines, file, &err) != HF_OK)
        return cli_fail(session, &err);
    if (cli_open(session, &status)) {
        send_lines(session, &lines, full, base, &tally);
        status = tally.status;
        cli_notice(session, "%" PRId64 " accepted, %" PRId64 " refused", tally.accepted,
                   tally.refused);
        if (tally.unserved)
            cli_notice(session, "warning: no live worker could run %" PRId64 " of them",
                       tally.unserved);
    }
    cli_lines_close(&lines);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "client/answer.h"

#include <stdalign.h>
#include <stdlib.h>

#include "util/alloc.h"

struct header {
    alignas(16) struct hf__arena arena;
};

void *hf__answer_new(size_t size)
{
    struct header *header = hf__calloc(1, sizeof *header + size);
    if (!header)
        return NULL;
    hf__arena_init(&header->arena, 4096);
    return header + 1;
}

struct hf__arena *hf__answer_arena(void *answer)
{
    return &((struct header *)answer - 1)->arena;
}

size_t hf__page_rows(const struct hf__table *rows, int limit, int64_t bytes, bool *more)
{
    int count = 0;
    int64_t total = 0;
    for (; count < rows->nrows && count < limit; count++) {
        int64_t next = hf__as_number(hf__table_row(rows, count)[rows->ncolumns - 1]);
        if (count > 0 && next > bytes)
            break;
        total = next;
    }
    *more = count < rows->nrows || total > bytes;
    return (size_t)count;
}

void hf__answer_free(void *answer)
{
    if (!answer)
        return;
    struct header *header = (struct header *)answer - 1;
    hf__arena_free(&header->arena);
    free(header);
}

void hf_run_free(hf_run *run)
{
    hf__answer_free(run);
}

void hf_runs_free(hf_runs *runs)
{
    hf__answer_free(runs);
}

void hf_events_free(hf_events *events)
{
    hf__answer_free(events);
}

void hf_workflow_free(hf_workflow *workflow)
{
    hf__answer_free(workflow);
}

void hf_workflows_free(hf_workflows *workflows)
{
    hf__answer_free(workflows);
}

void hf_worker_list_free(hf_worker_list *workers)
{
    hf__answer_free(workers);
}

void hf_tenants_free(hf_tenants *tenants)
{
    hf__answer_free(tenants);
}

void hf_claims_free(hf_claims *claims)
{
    hf__answer_free(claims);
}

void hf__run_read(hf_run *run, const struct hf__cell *c)
{
    run->id = hf__as_uuid(*c++);
    run->tenant = hf__as_text(*c++);
    run->workflow = hf__as_text(*c++);
    run->key = hf__as_text(*c++);
    run->status = (hf_status)hf__as_number(*c++);
    run->priority = (int)hf__as_number(*c++);
    run->attempt = (int)hf__as_number(*c++);
    run->max_attempts = (int)hf__as_number(*c++);
    run->version = hf__as_number(*c++);
    run->revision = hf__as_number(*c++);
    run->run_at = hf__as_number(*c++);
    run->lease_until = run->status == HF_LEASED ? run->run_at : 0;
    run->leased_by = hf__as_text(*c++);
    run->pause_requested = hf__as_number(*c++) != 0;
    run->input = hf__as_text(*c++);
    run->state = hf__as_text(*c++);
    run->result = hf__as_text(*c++);
    run->error = hf__as_text(*c++);
    run->error_code = hf__as_text(*c++);
    run->last_error = hf__as_text(*c++);
    run->current_step = hf__as_text(*c++);
    run->waiting_kind = hf__as_text(*c++);
    run->waiting_token = hf__as_text(*c++);
    run->waiting_until = hf__as_number(*c++);
    run->wait_count = (int)hf__as_number(*c++);
    run->last_worker = hf__as_text(*c++);
    run->subject = hf__as_text(*c++);
    run->reference = hf__as_text(*c++);
    run->tags = hf__as_text(*c++);
    run->partition = hf__as_text(*c++);
    run->trace = hf__as_text(*c++);
    run->actor = hf__as_text(*c++);
    run->parent = hf__as_uuid(*c++);
    run->root = hf__as_uuid(*c++);
    run->timeout_at = hf__as_number(*c++);
    run->created_at = hf__as_number(*c++);
    run->started_at = hf__as_number(*c++);
    run->updated_at = hf__as_number(*c++);
    run->paused_at = hf__as_number(*c++);
    run->finished_at = hf__as_number(*c++);
    run->deleted_at = hf__as_number(*c++);
    run->delete_reason = hf__as_text(*c++);
    run->flow_key = hf__as_text(*c++);
    run->debounce_key = hf__as_text(*c++);
}

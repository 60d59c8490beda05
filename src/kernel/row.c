/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/row.h"

#include <string.h>

void hf__row_read(struct hf__row *row, const struct hf__cell *c)
{
    memset(row, 0, sizeof *row);
    row->tenant = (int)hf__as_number(*c++);
    row->id = hf__as_uuid(*c++);
    row->workflow = hf__as_text(*c++);
    row->lane = (int)hf__as_number(*c++);
    row->priority = (int)hf__as_number(*c++);
    row->status = (hf_status)hf__as_number(*c++);
    row->watched = (int)hf__as_number(*c++);
    row->pause_requested = hf__as_number(*c++) != 0;
    row->wake_on_failure = hf__as_number(*c++) != 0;
    row->has_mail = hf__as_number(*c++) != 0;
    row->attempt = (int)hf__as_number(*c++);
    row->version = hf__as_number(*c++);
    row->revision = hf__as_number(*c++);
    row->event_seq = hf__as_number(*c++);
    row->wait_count = (int)hf__as_number(*c++);
    row->run_at = hf__as_number(*c++);
    row->due_at = hf__as_number(*c++);
    row->timeout_at = hf__as_number(*c++);
    row->started_at = hf__as_number(*c++);
    row->paused_at = hf__as_number(*c++);
    row->finished_at = hf__as_number(*c++);
    row->deleted_at = hf__as_number(*c++);
    row->delete_reason = hf__as_text(*c++);
    row->parent = hf__as_uuid(*c++);
    row->root = hf__as_uuid(*c++);
    row->key = hf__as_text(*c++);
    row->leased_by = hf__as_text(*c++);
    row->last_worker = hf__as_text(*c++);
    row->waiting_kind = hf__as_text(*c++);
    row->waiting_token = hf__as_text(*c++);
    row->waiting_until = hf__as_number(*c++);
    row->last_signal = hf__as_text(*c++);
    row->active_task = hf__as_uuid(*c++);
    row->limited = hf__as_number(*c++) != 0;
    row->trace = hf__as_text(*c++);
    row->unfit_since = hf__as_number(*c++);
    row->unfit_pause = hf__as_number(*c++);
    row->fit_within = hf__as_number(*c++);
    row->was_held = row->status == HF_LEASED;
}

void hf__row_write(const struct hf__row *row, struct hf__cell *c)
{
    *c++ = hf__number(row->tenant);
    *c++ = hf__uuid(&row->id);
    *c++ = hf__number(row->mask);
    *c++ = hf__number((int64_t)row->status);
    *c++ = hf__number(row->watched);
    *c++ = hf__number(row->pause_requested);
    *c++ = hf__number(row->wake_on_failure);
    *c++ = hf__number(row->has_mail);
    *c++ = hf__number(row->has_steps);
    *c++ = hf__number(row->attempt);
    *c++ = hf__number(row->version);
    *c++ = hf__number(row->revision);
    *c++ = hf__number(row->event_seq);
    *c++ = hf__number(row->wait_count);
    *c++ = hf__number_or_null(row->run_at);
    *c++ = hf__number_or_null(row->due_at);
    *c++ = hf__number_or_null(row->timeout_at);
    *c++ = hf__number_or_null(row->started_at);
    *c++ = hf__number_or_null(row->paused_at);
    *c++ = hf__number_or_null(row->finished_at);
    *c++ = hf__number_or_null(row->deleted_at);
    *c++ = hf__text(row->delete_reason);
    *c++ = hf__text(row->leased_by);
    *c++ = hf__text(row->last_worker);
    *c++ = hf__text(row->waiting_kind);
    *c++ = hf__text(row->waiting_token);
    *c++ = hf__number_or_null(row->waiting_until);
    *c++ = hf__text(row->last_signal);
    *c++ = hf__uuid_or_null(&row->active_task);
    *c++ = hf__text(row->state);
    *c++ = hf__text(row->current_step);
    *c++ = hf__text(row->result);
    *c++ = hf__text(row->error);
    *c++ = hf__text(row->error_code);
    *c++ = hf__text(row->last_error);
    *c++ = hf__number_or_null(row->unfit_since);
    *c++ = hf__number_or_null(row->unfit_pause);
}

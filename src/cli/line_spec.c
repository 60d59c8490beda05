/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line_spec.h"

#include "cli/input.h"
#include "record/reader.h"
#include "util/error.h"
#include "util/json.h"

static hf_code read_bare(hf_trigger_spec *spec, struct hf__arena *arena, const char *line,
                         size_t length, hf_error *err)
{
    hf_code code = hf__json_check(line, length, err);
    if (code != HF_OK)
        return hf__fail(err, code, "it is not JSON: %s", err->message);
    if (length > cli_max_payload())
        return hf__fail(err, HF_TOO_LARGE, "the input is larger than %zu bytes", cli_max_payload());
    spec->input = hf__arena_strndup(arena, line, length);
    return spec->input ? HF_OK : hf__nomem(err);
}

hf_code cli_line_spec(hf_trigger_spec *spec, struct hf__arena *arena, const char *line,
                      size_t length, bool full, hf_error *err)
{
    if (!full)
        return read_bare(spec, arena, line, length, err);
    hf_code code = hf__members_read(spec, hf__trigger_members, arena, line, length, NULL, err);
    if (code == HF_OK && !spec->workflow)
        return hf__fail(err, HF_INVALID, "which workflow? add \"workflow\", or give it as operand");
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "client/fit.h"

#include "client/ask.h"

hf_code hf__fit_is_over(struct hf__engine *engine, int tenant, hf_id run, bool *over, hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_JUDGE_FIT);
    c[0] = hf__number(tenant);
    c[1] = hf__uuid(&run);
    hf_code code = hf__ask_send(&ask, err);
    *over = code == HF_OK && ask.out.nrows && hf__as_number(hf__table_row(&ask.out, 0)[0]);
    hf__ask_end(&ask);
    return code;
}

hf_code hf__fit_try_again(struct hf__engine *engine, const char *tenants, const char *serves,
                          hf_error *err)
{
    struct hf__ask ask;
    struct hf__cell *c = hf__ask_begin(&ask, engine, HF__STMT_WAKE_UNFIT);
    c[0] = hf__text(tenants);
    c[1] = hf__text(serves);
    hf_code code = hf__ask_send(&ask, err);
    hf__ask_end(&ask);
    return code;
}

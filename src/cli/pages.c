/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pages.h"

#include <stdlib.h>

#include "util/alloc.h"

enum { PAGE = 1000 }; /* the most that the library gives at once */

static struct {
    int64_t limit;
    bool all;
    const char *cursor;
} args = { .limit = 50 };

const struct cli_option cli_pages_options[] = {
    CLI_OPT(NUMBER, 'n', "limit", "N", "show at most so many; default 50", .value = &args.limit,
            .min = 1, .max = 1000000000),
    CLI_OPT(SWITCH, 'a', "all", NULL, "show all of them", .value = &args.all),
    CLI_OPT(TEXT, 0, "cursor", "CURSOR", "go on after the page that named it",
            .value = &args.cursor),
    CLI_OPTIONS_END,
};

struct cli_pages cli_pages_begin(struct cli_session *session)
{
    return (struct cli_pages){
        .session = session,
        .most = args.all ? INT64_MAX : args.limit,
        .cursor = args.cursor ? hf__strdup(args.cursor) : NULL,
        .status = CLI_OK,
    };
}

bool cli_pages_next(struct cli_pages *pages)
{
    int64_t left = pages->most - pages->shown;
    pages->limit = left < PAGE ? (int)left : PAGE;
    return !pages->over && left > 0;
}

void cli_pages_show(struct cli_pages *pages, const struct cli_column *columns,
                    const struct hf__field *fields, const void *records, size_t stride,
                    size_t count, const char *next)
{
    cli_table_print(pages->session, columns, fields, records, stride, count, pages->shown == 0);
    pages->shown += (int64_t)count;
    free(pages->cursor);
    pages->cursor = next ? hf__strdup(next) : NULL;
    pages->over = !pages->cursor;
}

void cli_pages_fail(struct cli_pages *pages, const hf_error *err)
{
    pages->status = cli_fail(pages->session, err);
    pages->over = true;
}

int cli_pages_end(struct cli_pages *pages, const char *none)
{
    if (pages->status == CLI_OK && pages->shown == 0)
        cli_notice(pages->session, "%s %s (tenant %s)", none, cli_store_name(pages->session),
                   cli_tenant(pages->session));
    if (pages->status == CLI_OK && pages->cursor)
        cli_notice(pages->session, "there are more: add --all, or --cursor %s", pages->cursor);
    free(pages->cursor);
    return pages->status;
}

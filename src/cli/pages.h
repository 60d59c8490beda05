/* Lists that come in pages: how many are shown, and where to go on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_CLI_PAGES_H
#define HF_CLI_PAGES_H

#include "cli/option.h"
#include "cli/table.h"

/* --limit, --all and --cursor: a command includes them, and then asks for one page after the other:
 *
 *     struct cli_pages pages = cli_pages_begin(session);
 *     while (cli_pages_next(&pages)) {
 *         ... read a page of at most pages.limit, from pages.cursor ...
 *         cli_pages_show(&pages, columns, fields, page->items, sizeof *page->items, page->count, page->next);
 *         or, if it cannot be read, cli_pages_fail(&pages, &err);
 *     }
 *     return cli_pages_end(&pages, "no such runs in");
 */
extern const struct cli_option cli_pages_options[];

struct cli_pages {
    struct cli_session *session;
    int64_t most, shown; /* records */
    char *cursor;        /* of the next page; NULL: of the first, or there is none after it */
    int limit;           /* of the next page */
    bool over;
    int status; /* the exit code */
};

struct cli_pages cli_pages_begin(struct cli_session *session);
/* False: there is nothing more to show. */
bool cli_pages_next(struct cli_pages *pages);
/* `next` is the cursor of the page after it; NULL on the last. */
void cli_pages_show(struct cli_pages *pages, const struct cli_column *columns,
                    const struct hf__field *fields, const void *records, size_t stride,
                    size_t count, const char *next);
void cli_pages_fail(struct cli_pages *pages, const hf_error *err);
/* Says how to go on, or, if nothing was shown, `none`: the store's name follows it. Returns the exit code. */
int cli_pages_end(struct cli_pages *pages, const char *none);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "cli/terminal.h"
#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 16, GAP = 2, NARROWEST = 8 };

struct layout {
    const struct cli_column *columns;
    size_t column_count;
    size_t row_count;
    char **cells;             /* row by row, owned */
    int widths[MOST_COLUMNS]; /* 0: the column is left out */
};

static char *cell_text(struct cli_session *session, const struct cli_column *column,
                       const struct hf__field *fields, const void *record)
{
    if (column->make)
        return column->make(session, record);
    const struct hf__field *field = hf__field_find(fields, column->field);
    return field ? cli_field_text(session, field, record) : hf__strdup("");
}

static bool fill(struct layout *layout, struct cli_session *session, const struct hf__field *fields,
                 const void *records, size_t stride)
{
    layout->cells = hf__calloc(layout->row_count * layout->column_count, sizeof *layout->cells);
    if (!layout->cells)
        return false;
    for (size_t row = 0; row < layout->row_count; row++)
        for (size_t i = 0; i < layout->column_count; i++) {
            const void *record = (const char *)records + row * stride;
            char *text = cell_text(session, &layout->columns[i], fields, record);
            layout->cells[row * layout->column_count + i] = text;
            if (!text)
                return false;
        }
    return true;
}

static void measure(struct layout *layout)
{
    for (size_t i = 0; i < layout->column_count; i++) {
        int widest = 0;
        for (size_t row = 0; row < layout->row_count; row++) {
            int width = cli_text_width(layout->cells[row * layout->column_count + i]);
            if (width > widest)
                widest = width;
        }
        int header = cli_text_width(layout->columns[i].header);
        if (widest > 0 && widest < header)
            widest = header;
        layout->widths[i] = widest > layout->columns[i].least ? widest : layout->columns[i].least;
    }
}

static int total_width(const struct layout *layout)
{
    int total = -GAP;
    for (size_t i = 0; i < layout->column_count; i++)
        if (layout->widths[i] > 0)
            total += layout->widths[i] + GAP;
    return total;
}

/* Takes from the widest of the shrinking columns until all fit or none can give more. */
static void shrink(struct layout *layout, int terminal)
{
    for (int excess = total_width(layout) - terminal; terminal > 0 && excess > 0; excess--) {
        int *widest = NULL;
        for (size_t i = 0; i < layout->column_count; i++)
            if (layout->columns[i].shrinks && layout->widths[i] > NARROWEST &&
                (!widest || layout->widths[i] > *widest))
                widest = &layout->widths[i];
        if (!widest)
            return;
        --*widest;
    }
}

static size_t last_shown(const struct layout *layout)
{
    size_t last = 0;
    for (size_t i = 0; i < layout->column_count; i++)
        if (layout->widths[i] > 0)
            last = i;
    return last;
}

/* What cannot shrink enough loses its last columns: a row that goes on in the next line is harder to read. The others
 * share the room that this gives. */
static void fit(struct layout *layout, int terminal)
{
    int wanted[MOST_COLUMNS];
    memcpy(wanted, layout->widths, sizeof wanted);
    shrink(layout, terminal);
    while (terminal > 0 && total_width(layout) > terminal && last_shown(layout) > 0) {
        wanted[last_shown(layout)] = 0;
        memcpy(layout->widths, wanted, sizeof wanted);
        shrink(layout, terminal);
    }
}

static void put_padding(int columns)
{
    for (; columns > 0; columns--)
        putchar(' ');
}

static void put_cell(const char *text, int width, bool right, bool last, const char *color)
{
    int needed = cli_text_width(text);
    size_t bytes = strlen(text);
    const char *tail = "";
    if (needed > width) {
        bytes = cli_text_fit(text, width - 1);
        tail = "\xe2\x80\xa6"; /* an ellipsis */
        needed = width;
    }
    if (right)
        put_padding(width - needed);
    printf("%s%.*s%s%s", color, (int)bytes, text, tail, *color ? cli_color_end : "");
    if (!right && !last)
        put_padding(width - needed);
    if (!last)
        put_padding(GAP);
}

static void put_row(const struct layout *layout, char *const *cells, bool colors)
{
    size_t last = last_shown(layout);
    for (size_t i = 0; i < layout->column_count; i++) {
        const struct cli_column *column = &layout->columns[i];
        if (layout->widths[i] == 0)
            continue;
        const char *text = cells ? cells[i] : column->header;
        bool colored = cells && colors && strcmp(column->header, "STATUS") == 0;
        put_cell(text, layout->widths[i], column->right, i == last,
                 colored ? cli_color_of(text) : "");
    }
    putchar('\n');
}

static size_t count_columns(const struct cli_column *columns)
{
    size_t count = 0;
    while (columns[count].header && count < MOST_COLUMNS)
        count++;
    return count;
}

static void print_layout(struct layout *layout, struct cli_session *session, bool first)
{
    measure(layout);
    fit(layout, cli_terminal_width());
    if (first)
        put_row(layout, NULL, false);
    bool colors = cli_terminal_colors(session);
    for (size_t row = 0; row < layout->row_count; row++)
        put_row(layout, layout->cells + row * layout->column_count, colors);
}

void cli_table_print(struct cli_session *session, const struct cli_column *columns,
                     const struct hf__field *fields, const void *records, size_t stride,
                     size_t count, bool first)
{
    if (session->json) {
        for (size_t row = 0; row < count; row++)
            cli_record_json(stdout, fields, (const char *)records + row * stride);
        return;
    }
    if (count == 0)
        return;
    struct layout layout = { .columns = columns, .row_count = count };
    layout.column_count = count_columns(columns);
    if (fill(&layout, session, fields, records, stride))
        print_layout(&layout, session, first);
    else
        fputs("holdfast: memory ran out\n", stderr);
    for (size_t i = 0; layout.cells && i < count * layout.column_count; i++)
        free(layout.cells[i]);
    free(layout.cells);
}

/* JSON is not folded: it may be copied. */
static void put_value(const char *text, const struct cli_column *line,
                      const struct hf__field *fields, int indent)
{
    const struct hf__field *field = line->field ? hf__field_find(fields, line->field) : NULL;
    if (field && field->kind == HF__FIELD_JSON)
        fputs(text, stdout);
    else
        cli_put_folded(stdout, text, indent);
}

void cli_block_print(struct cli_session *session, const struct cli_column *lines,
                     const struct hf__field *fields, const void *record)
{
    if (session->json) {
        cli_record_json(stdout, fields, record);
        return;
    }
    int widest = 0;
    for (const struct cli_column *line = lines; line->header; line++)
        if (cli_text_width(line->header) > widest)
            widest = cli_text_width(line->header);
    bool colors = cli_terminal_colors(session);
    for (const struct cli_column *line = lines; line->header; line++) {
        char *text = cell_text(session, line, fields, record);
        bool colored = text && colors && strcmp(line->header, "status") == 0;
        if (text && *text) {
            printf("%-*s  %s", widest, line->header, colored ? cli_color_of(text) : "");
            put_value(text, line, fields, widest + GAP);
            printf("%s\n", colored ? cli_color_end : "");
        }
        free(text);
    }
}

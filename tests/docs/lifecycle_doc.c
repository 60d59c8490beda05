/* Prints docs/lifecycle.md from the lifecycle table; a test compares the two.
 *
 *   build/gcc/tests/lifecycle_doc > docs/lifecycle.md
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "kernel/lifecycle.h"

static const hf_status statuses[] = {
#define STATUS(symbol, number, name) symbol,
    HF_STATUSES(STATUS)
#undef STATUS
};
static const int status_count = (int)(sizeof statuses / sizeof *statuses);

static void print_diagram(void)
{
    puts("```mermaid\nstateDiagram-v2\n    [*] --> pending: created\n    [*] --> waiting: created");
    for (int i = 0; i < hf__lifecycle_count; i++)
        printf("    %s --> %s: %s\n", hf_status_name(hf__lifecycle[i].from),
               hf_status_name(hf__lifecycle[i].to), hf__lifecycle[i].event);
    for (int i = 0; i < status_count; i++)
        if (hf_status_finished(statuses[i]))
            printf("    %s --> [*]\n", hf_status_name(statuses[i]));
    puts("```\n");
}

static void print_table(void)
{
    puts("| from | to | event in the journal | when |\n|---|---|---|---|");
    for (int i = 0; i < hf__lifecycle_count; i++)
        printf("| %s | %s | `%s` | %s |\n", hf_status_name(hf__lifecycle[i].from),
               hf_status_name(hf__lifecycle[i].to), hf__lifecycle[i].event,
               hf__lifecycle[i].sentence);
}

int main(void)
{
    puts("# The lifecycle of a run\n\n"
         "<!-- made by tests/docs/lifecycle_doc.c from src/kernel/lifecycle.c; change it there "
         "-->\n\n"
         "These are all changes of status that there are; any other is refused. What each status "
         "means is in\n"
         "[concepts](concepts.md#statuses).\n");
    print_diagram();
    print_table();
    return 0;
}

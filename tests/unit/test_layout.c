/* The structs of the public headers, as programs know them that were built before: what was there stays where it was. A struct
 * without a version keeps its size, too: who has one of his own, or steps through an array of them, goes by that. New
 * members go to the end of a struct with a version, or into holes. This list changes with the soname alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include <holdfast/holdfast.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct place {
    const char *name;
    size_t is;
    size_t was; /* where pointers have 64 bits */
    bool grows;
};

#define SIZE(type, size)                                                                           \
    {                                                                                              \
        .name = "the size of " #type, .is = sizeof(type), .was = size                              \
    }
#define GROWS(type, size)                                                                          \
    {                                                                                              \
        .name = "the size of " #type, .is = sizeof(type), .was = size, .grows = true               \
    }
#define AT(type, member, offset)                                                                   \
    {                                                                                              \
        .name = #type "." #member, .is = offsetof(type, member), .was = offset                     \
    }

static const struct place places[] = {
#include "unit/layout.inc"
};

static void nothing_has_moved(void **state)
{
    (void)state;
    if (sizeof(void *) != 8)
        skip();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct place *place = &places[i];
        if (place->is != place->was && !(place->grows && place->is > place->was))
            fail_msg("%s was %zu, and is %zu", place->name, place->was, place->is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_moved),
    };
    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}

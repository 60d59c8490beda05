/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define STACK_SIZE ((size_t)256 * 1024)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

struct fiber {
    struct fiber *next; /* in the pool */
    ucontext_t inside;
    ucontext_t outside;
    void (*main)(void *arg);
    void *arg;
    const void *outer_stack; /* for the sanitizer, which must know on which stack we are */
    size_t outer_size;
    char stack[STACK_SIZE] __attribute__((aligned(16)));
};

static struct fiber *pool; /* stacks are used again */

#ifdef SANITIZED
#include <sanitizer/common_interface_defs.h>

static void leave(void **fake, const void *stack, size_t size)
{
    __sanitizer_start_switch_fiber(fake, stack, size);
}

static void arrive(void *fake, const void **stack, size_t *size)
{
    __sanitizer_finish_switch_fiber(fake, stack, size);
}
#else
static void leave(void **fake, const void *stack, size_t size)
{
    (void)fake;
    (void)stack;
    (void)size;
}

static void arrive(void *fake, const void **stack, size_t *size)
{
    (void)fake;
    (void)stack;
    (void)size;
}
#endif

/* makecontext hands over nothing but ints. */
static struct fiber *beginning;

static void trampoline(void)
{
    struct fiber *fiber = beginning;
    arrive(NULL, &fiber->outer_stack, &fiber->outer_size);
    fiber->main(fiber->arg);
    leave(NULL, fiber->outer_stack, fiber->outer_size);
}

struct fiber *fiber_begin(void (*main)(void *arg), void *arg)
{
    struct fiber *fiber = pool ? pool : malloc(sizeof *fiber);
    if (!fiber)
        abort();
    if (fiber == pool)
        pool = fiber->next;
    fiber->main = main;
    fiber->arg = arg;
    getcontext(&fiber->inside);
    fiber->inside.uc_stack.ss_sp = fiber->stack;
    fiber->inside.uc_stack.ss_size = sizeof fiber->stack;
    fiber->inside.uc_link = &fiber->outside;
    makecontext(&fiber->inside, trampoline, 0);
    return fiber;
}

void fiber_wake(struct fiber *fiber)
{
    void *fake = NULL;
    beginning = fiber;
    leave(&fake, fiber->stack, sizeof fiber->stack);
    swapcontext(&fiber->outside, &fiber->inside);
    arrive(fake, NULL, NULL);
}

void fiber_sleep(struct fiber *fiber)
{
    void *fake = NULL;
    leave(&fake, fiber->outer_stack, fiber->outer_size);
    swapcontext(&fiber->inside, &fiber->outside);
    arrive(fake, &fiber->outer_stack, &fiber->outer_size);
}

void fiber_end(struct fiber *fiber)
{
    fiber->next = pool;
    pool = fiber;
}

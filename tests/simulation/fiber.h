/* A function on a stack of its own that goes on where it went to sleep.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_TESTS_SIM_FIBER_H
#define HF_TESTS_SIM_FIBER_H

struct fiber;

struct fiber *fiber_begin(void (*main)(void *arg), void *arg);
/* From outside: goes on with it until it sleeps or returns. */
void fiber_wake(struct fiber *fiber);
/* From inside: back to whoever woke it. */
void fiber_sleep(struct fiber *fiber);
/* After its function has returned, or before it was woken. */
void fiber_end(struct fiber *fiber);

#endif

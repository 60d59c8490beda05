/* The engine's own work is runs too: workflows whose names begin with "holdfast.".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HF_KERNEL_CHORES_H
#define HF_KERNEL_CHORES_H

#include <stdbool.h>
#include <string.h>

#define HF__CHORE_PREFIX "holdfast."
#define HF__CHORE_PREFIX_END "holdfast/" /* the first that comes after all names that begin so */
#define HF__HOUSE "default"              /* the tenant of those that serve the whole store */
/* A chore is not given up because its store was away, or because those who did it died. */
#define HF__CHORE_ATTEMPTS 1000000
/* Input {"run": id, "reason": why, "tell": status}: cancels the unfinished children of a run that was cancelled, or that ended
 * and does not leave them; and tells subscriptions that it was cancelled, where it had the status "tell". */
#define HF__CHORE_CANCEL_CHILDREN "holdfast.cancel_children"
/* Key: a schedule's name. Starts runs when they are due; see schedule/spec.h. */
#define HF__CHORE_SCHEDULE "holdfast.schedule"
/* Key: a subscription's name. Delivers events to it. */
#define HF__CHORE_DISPATCH "holdfast.dispatch"
/* What it waits for when there is nothing to deliver: the flush that writes events wakes it. */
#define HF__WAITING_OUTBOX "outbox"

/* Types of the engine's own events. */
#define HF__ALERT_FAILED "holdfast.run.failed"
#define HF__ALERT_CANCELLED "holdfast.run.cancelled"
#define HF__ALERT_NO_HANDLER "holdfast.run.no_handler"
#define HF__ALERT_DEAD_LETTER "holdfast.dead_letter"
#define HF__ALERT_PARKED "holdfast.subscription.parked"
/* Input {"block": n}: closes blocks of the journal up to the n-th at least. For the whole store. */
#define HF__CHORE_SEAL "holdfast.seal"
/* Removes runs that have expired, and sleeps until the next one does. For the whole store. */
#define HF__CHORE_RETENTION "holdfast.retention"

/* Whether runs of this workflow are the engine's own. */
static inline bool hf__is_chore(const char *workflow)
{
    return strncmp(workflow, HF__CHORE_PREFIX, strlen(HF__CHORE_PREFIX)) == 0;
}

#endif

/* Holdfast: durable work without a cluster.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <holdfast/audit.h>
#include <holdfast/client.h>
#include <holdfast/dead_letter.h>
#include <holdfast/function.h>
#include <holdfast/outbox.h>
#include <holdfast/schedule.h>
#include <holdfast/task.h>
#include <holdfast/token.h>
#include <holdfast/transition.h>

#endif

/* Holdfast: durable work without a cluster.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <holdfast/client.h>
#include <holdfast/function.h>
#include <holdfast/schedule.h>
#include <holdfast/token.h>
#include <holdfast/transition.h>

#endif

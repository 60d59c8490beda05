/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/op.h"

int hf__fair_share(int most, int weight, int64_t weights, size_t workflows)
{
    int64_t parts = weights * (int64_t)workflows;
    int64_t share = ((int64_t)most * weight + parts - 1) / parts;
    return share < 1 ? 1 : share < most ? (int)share : most;
}

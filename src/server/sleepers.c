/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sleepers.h"

#define NODE(request) (&(request)->parking)

/* Of two trees without siblings, one. */
static struct hf__request *merge(struct hf__request *a, struct hf__request *b)
{
    if (!a || !b)
        return a ? a : b;
    if (NODE(b)->until < NODE(a)->until) {
        struct hf__request *swap = a;
        a = b;
        b = swap;
    }
    NODE(b)->before = a;
    NODE(b)->sibling = NODE(a)->child;
    if (NODE(b)->sibling)
        NODE(NODE(b)->sibling)->before = b;
    NODE(a)->child = b;
    return a;
}

/* Takes the first of a list of siblings off it. */
static struct hf__request *cut_first(struct hf__request **list)
{
    struct hf__request *first = *list;
    if (first) {
        *list = NODE(first)->sibling;
        NODE(first)->sibling = NODE(first)->before = NULL;
    }
    return first;
}

/* Siblings become one tree: first in pairs, then the pairs from the last to the first. */
static struct hf__request *merge_siblings(struct hf__request *list)
{
    struct hf__request *pairs = NULL;
    struct hf__request *tree = NULL;
    while (list) {
        struct hf__request *one = cut_first(&list);
        struct hf__request *pair = merge(one, cut_first(&list));
        NODE(pair)->sibling = pairs;
        pairs = pair;
    }
    while (pairs)
        tree = merge(tree, cut_first(&pairs));
    return tree;
}

void hf__sleepers_add(struct hf__sleepers *sleepers, struct hf__request *request)
{
    NODE(request)->child = NODE(request)->sibling = NODE(request)->before = NULL;
    sleepers->soonest = merge(sleepers->soonest, request);
}

void hf__sleepers_remove(struct hf__sleepers *sleepers, struct hf__request *request)
{
    struct hf__parking *node = NODE(request);
    struct hf__request *below = merge_siblings(node->child);
    if (sleepers->soonest == request) {
        sleepers->soonest = below;
    } else {
        if (NODE(node->before)->child == request)
            NODE(node->before)->child = node->sibling;
        else
            NODE(node->before)->sibling = node->sibling;
        if (node->sibling)
            NODE(node->sibling)->before = node->before;
        sleepers->soonest = merge(sleepers->soonest, below);
    }
    node->child = node->sibling = node->before = NULL;
}

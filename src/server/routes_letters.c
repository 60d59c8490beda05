/* Dead letters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/request.h"
#include "server/routes.h"

#include <holdfast/dead_letter.h>

static const struct hf__member filter_members[] = {
    HF__MEMBER(hf_dead_letter_filter, run, ID, "of this run"),
    HF__MEMBER(hf_dead_letter_filter, reason, TEXT, "what it begins with"),
    HF__MEMBER(hf_dead_letter_filter, limit, INT, "1 to 1000; default 50"),
    HF__MEMBER(hf_dead_letter_filter, cursor, TEXT, "`next` of the page before"),
    HF__MEMBERS_END,
};

static hf_code list(struct hf__request *request, hf_error *err)
{
    hf_dead_letter_filter filter = HF_DEAD_LETTER_FILTER_INIT;
    hf_dead_letters *found = NULL;
    hf_code code = hf__request_query(request, &filter, err);
    if (code == HF_OK)
        code = hf_dead_letter_list(request->client, &found, &filter, err);
    if (code == HF_OK)
        code = hf__reply_list(request, hf__dead_letter_fields, found->items, found->count,
                              sizeof *found->items, found->next, err);
    hf_dead_letters_free(found);
    return code;
}

static hf_code show(struct hf__request *request, hf_error *err)
{
    hf_dead_letter *found = NULL;
    hf_id id;
    hf_code code = hf__request_id(request, 0, &id, err);
    if (code == HF_OK)
        code = hf_dead_letter_get(request->client, &found, id, err);
    if (code == HF_OK)
        code = hf__reply_record(request, hf__dead_letter_fields, found, err);
    hf_dead_letter_free(found);
    return code;
}

static hf_code requeue(struct hf__request *request, hf_error *err)
{
    hf_id id;
    hf_code code = hf__request_id(request, 0, &id, err);
    if (code == HF_OK)
        code = hf_dead_letter_requeue(request->client, id, err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

static hf_code discard(struct hf__request *request, hf_error *err)
{
    hf_id id;
    hf_code code = hf__request_id(request, 0, &id, err);
    if (code == HF_OK)
        code = hf_dead_letter_discard(request->client, id, err);
    return code == HF_OK ? hf__reply_nothing(request) : code;
}

#define PATH "/v1/dead-letters/{id}"
#define NOTHING HF__ANSWERS(204, NONE, NULL, NULL)

const struct hf__route hf__letter_routes[] = {
    HF__ROUTE("dead letters", "GET", "/v1/dead-letters", "listDeadLetters", READ, list,
              "List mail on which runs failed again and again, newest first",
              .query = filter_members,
              HF__ANSWERS(200, LIST, "DeadLetter", hf__dead_letter_fields)),
    HF__ROUTE("dead letters", "GET", PATH, "getDeadLetter", READ, show, "Show a dead letter",
              HF__ANSWERS(200, ONE, "DeadLetter", hf__dead_letter_fields)),
    HF__ROUTE("dead letters", "POST", PATH "/requeue", "requeueDeadLetter", OPERATE, requeue,
              "Put it back into its run's mailbox", NOTHING),
    HF__ROUTE("dead letters", "DELETE", PATH, "discardDeadLetter", OPERATE, discard,
              "Discard it for good", NOTHING),
    HF__ROUTES_END,
};

/* Live views of the whole store.
 * SPDX-License-Identifier: Apache-2.0 */
#include "server/feed.h"
#include "server/gauges.h"
#include "server/routes.h"

static const struct hf__member stream_members[] = {
    HF__MEMBER(struct hf__feed_query, workflow, TEXT, "only of this workflow"),
    HF__MEMBER(struct hf__feed_query, kind, TEXT,
               "only of this kind: lifecycle, domain, step, task or signal"),
    HF__MEMBER(struct hf__feed_query, last, INT,
               "begin with so many of the newest events, if they are at hand; at most 500"),
    HF__MEMBERS_END,
};

static hf_code stream(struct hf__request *request, hf_error *err)
{
    struct hf__feed_query query = { 0 };
    hf_code code = request->kept ? HF_OK : hf__request_query(request, &query, err);
    return code == HF_OK ? hf__feed_follow(request, &query, err) : code;
}

static hf_code stats(struct hf__request *request, hf_error *err)
{
    return hf__gauges_answer(request, err);
}

const struct hf__route hf__live_routes[] = {
    HF__ROUTE(
        "live", "GET", "/v1/stats", "getStats", READ, stats,
        "What there is to do, and what happened in the last hour",
        .details =
            "Per workflow and in total: `due`, `delayed`, `waiting` (for a time, a "
            "signal, a child or a person), `leased`, `failed` and `oldest_due`, in "
            "total without the engine's own runs, of a workflow no more than `most` of each; and "
            "per minute of the last hour how many runs "
            "were "
            "`created`, `succeeded`, `failed` and "
            "`cancelled`, where nothing before `throughput.since` was counted; `throughput` is "
            "null in the first answer. Measured every two seconds while somebody asks, and less "
            "often where it takes long; `at` "
            "says when.",
        HF__ANSWERS(200, ONE, "Stats", hf__stats_fields), .parts = hf__stats_parts),
    HF__ROUTE("live", "GET", "/v1/stream", "followAll", READ, stream,
              "A stream of what happens to all runs",
              .details =
                  "Without the engine's own, unless a workflow is named. Server-sent events named "
                  "`event`, with the position as id; Last-Event-ID goes "
                  "on after it. An event named `lost` tells that some were left out, because the "
                  "client was too slow or away for too long. It is a live view: what is committed "
                  "more than two seconds after events with a higher position is left out; a run's "
                  "journal is complete.",
              .query = stream_members, .headers = HF__HEADER_LAST_EVENT_ID,
              HF__ANSWERS(200, STREAM, "FeedEvent", hf__feed_fields)),
    HF__ROUTES_END,
};

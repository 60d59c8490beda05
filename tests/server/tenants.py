#!/usr/bin/env python3
"""What belongs to one tenant is not there for another: every route that names something, every list, every stream. F6."""

import json
import sys
import time
from urllib.parse import quote

from scene import Client, Raw, Server, check, make_store, wait_until
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
OWN, OTHER = {"Holdfast-Tenant": "ours"}, {"Holdfast-Tenant": "theirs"}
SECRET = "very-secret-word"
WORKFLOW = "secret.v1"


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory), "--no-worker") as server:
            for tenant in ("ours", "theirs"):
                check(server.client.put(f"/v1/tenants/{tenant}").status == 204, "the tenant is created")
            function(server, Client(server.port, OWN), Client(server.port, OTHER))

    RUNNER.case(function.__name__, play)


class Estate:
    """One of everything that a tenant can have, with a word in it that nobody else should read."""

    def __init__(self, client):
        self.client = client
        self.key = SECRET + "-key"
        client.put(f"/v1/workflows/{WORKFLOW}", {"max_running": 7})
        self.run = client.trigger(WORKFLOW, input=SECRET, key=self.key, subject=SECRET, tags=[SECRET])
        self.held = client.trigger(WORKFLOW, input=SECRET, priority=5)
        claim = client.post("/v1/work/claim", {"worker": "w-" + SECRET, "workflows": [WORKFLOW], "limit": 1}).json
        self.version = claim["items"][0]["run"]["version"]
        check(claim["items"][0]["run"]["id"] == self.held, "the more urgent run is held")
        self.schedule = SECRET + "-schedule"
        check(client.put(f"/v1/schedules/{self.schedule}", {"workflow": WORKFLOW, "cron": "@daily", "input": SECRET}).status ==
              200, "scheduled")

    def picture(self):
        """All that can be read of it."""
        parts = []
        for path in ("/v1/runs", "/v1/runs?deleted=true", "/v1/workflows", "/v1/queues", "/v1/schedules",
                     f"/v1/runs/{self.run}/events", f"/v1/runs/{self.held}/events", f"/v1/runs/{self.held}/steps",
                     f"/v1/runs/{self.run}/children"):
            answer = self.client.get(path)
            check(answer.status == 200, f"{path}: {answer.text}")
            parts.append(answer.json)
        return json.dumps(parts, sort_keys=True)


def operations(client):
    for path, methods in client.get("/v1/openapi.json").json["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def body_of(operation, estate):
    content = operation.get("requestBody", {}).get("content")
    if not content:
        return None, None
    media, described = next(iter(content.items()))
    body = described.get("example") or {}
    if operation["operationId"] in ("saveStep", "commitTurn", "failTurn"):
        body = {"worker": "w-" + SECRET, "version": estate.version}
        body.update({"saveStep": {"name": "a", "status": "succeeded"}, "commitTurn": {"turn": "succeed"},
                     "failTurn": {"message": "m"}}[operation["operationId"]])
    if operation["operationId"] == "receiveEvent":
        body = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t", "holdfastrun": estate.run}
    return json.dumps(body), media


NOT_A_TENANTS_OWN = ("tenants", "system")  # groups


@case
def another_tenants_things_are_not_there(server, ours, theirs):
    estate = Estate(ours)
    before = estate.picture()
    makes_new = {"putWorkflow", "putSchedule", "putSubscription"}  # the same name is free for everybody
    walked = 0
    for method, path, operation in operations(ours):
        name = operation["operationId"]
        if "{" not in path or name in makes_new or operation["tags"][0] in NOT_A_TENANTS_OWN:
            continue
        for run in (estate.run, estate.held):
            target = path.replace("{id}", run).replace("{key}", quote(estate.key))
            target = target.replace("{name}", estate.schedule if "/schedules/" in path else WORKFLOW)
            raw, media = body_of(operation, estate)
            for accept in ("application/json", "text/event-stream"):
                headers = {"Accept": accept, **({"Content-Type": media} if media else {})}
                answer = theirs.ask(method, target, raw=raw, headers=headers)
                what = f"{name} ({method} {target}): {answer.status} {answer.text[:200]}"
                if name.endswith("Turn") or name == "saveStep":  # no longer held by them, whoever holds it
                    check(answer.status in (404, 409), what)
                else:
                    check(answer.status == 404, what)
                check(SECRET not in answer.text.replace(target, "").replace(estate.schedule, ""), what)
            walked += 1
    check(walked > 30, f"only {walked} routes were walked")
    check(estate.picture() == before, "nothing was changed")


@case
def another_tenants_things_are_in_no_list(server, ours, theirs):
    estate = Estate(ours)
    theirs.put("/v1/workflows/other.v1", {})
    mine = theirs.trigger("other.v1")
    for method, path, operation in operations(ours):
        if method != "GET" or "{" in path or operation["tags"][0] in NOT_A_TENANTS_OWN:
            continue
        if operation["operationId"] in ("followAll", "getMetrics"):  # the one has no end; the other is for whoever operates
            continue
        answer = theirs.get(path)
        check(answer.status == 200 and SECRET not in answer.text and WORKFLOW not in answer.text, f"{path}: {answer.text}")
    for query in (f"parent={estate.run}", f"key={estate.key}", f"subject={SECRET}", f"workflow={WORKFLOW}", "prefix=sec",
                  f"cursor={estate.run}", "status=leased,pending", "deleted=true", "overdue=true"):
        items = theirs.get("/v1/runs?" + query).json["items"]
        check(all(run["id"] == mine for run in items), f"{query}: {items}")


@case
def another_tenants_runs_are_not_changed_in_bulk_nor_claimed(server, ours, theirs):
    estate = Estate(ours)
    before = estate.picture()
    for action in ("cancel", "pause", "delete"):
        answer = theirs.post("/v1/runs/bulk", {"action": action, "filter": {"workflow": WORKFLOW}}).json
        check(answer["matched"] == 0 and answer["changed"] == 0, answer)
    beat = theirs.post("/v1/work/heartbeat", {"worker": "w-" + SECRET, "runs": [{"id": estate.held, "version": estate.version, "lease_us": 30000000}]})
    check(beat.json["items"][0]["code"] != "ok", beat.text)
    claim = theirs.post("/v1/work/claim", {"worker": "w", "workflows": ["*"], "limit": 10})
    check(SECRET not in claim.text, claim.text)
    event = {"specversion": "1.0", "id": "1", "source": "/x", "type": "t"}
    for whom in ({"holdfastrun": estate.run}, {"holdfastworkflow": WORKFLOW, "holdfastkey": estate.key}):
        answer = theirs.post("/v1/events", raw=json.dumps({**event, **whom}),
                             headers={"Content-Type": "application/cloudevents+json"})
        check(answer.status == 404, answer.text)
    check(estate.picture() == before, "nothing was changed")


@case
def the_same_names_and_keys_are_free_for_every_tenant(server, ours, theirs):
    estate = Estate(ours)
    before = estate.picture()
    check(theirs.put(f"/v1/workflows/{WORKFLOW}", {"max_running": 1}).json["max_running"] == 1, "their own workflow")
    run = theirs.trigger(WORKFLOW, key=estate.key, input=2)
    check(run != estate.run, "their own run")
    check(theirs.get(f"/v1/workflows/{WORKFLOW}/runs/{quote(estate.key)}").json["id"] == run, "found by their own key")
    check(theirs.put(f"/v1/schedules/{estate.schedule}", {"workflow": WORKFLOW, "cron": "@hourly"}).status == 200, "theirs")
    theirs.post(f"/v1/workflows/{WORKFLOW}/pause")
    theirs.delete(f"/v1/schedules/{estate.schedule}")
    check(estate.picture() == before, "nothing of ours was changed")


@case
def a_stream_tells_of_no_other_run(server, ours, theirs):
    estate = Estate(ours)
    theirs.put("/v1/workflows/other.v1", {})
    mine = theirs.trigger("other.v1")
    stream = Raw(server.port).send(f"GET /v1/runs/{mine}/events HTTP/1.1\r\nHost: localhost\r\nHoldfast-Tenant: theirs\r\n"
                                   "Accept: text/event-stream\r\n\r\n")
    check(b'"created"' in stream.receive(b'"created"'), "it flows")
    ours.post(f"/v1/runs/{estate.run}/signals", {"name": SECRET})
    ours.post(f"/v1/runs/{estate.run}/cancel", {"reason": SECRET})
    theirs.post(f"/v1/runs/{mine}/cancel")
    text = stream.receive(b'"cancelled"')
    check(SECRET.encode() not in text and estate.run.encode() not in text, text)


@case
def a_tenant_that_is_not_there_is_told_so(server, ours, theirs):
    for name in ("nobody", "a b", "x" * 300, "ours theirs"):
        answer = Client(server.port, {"Holdfast-Tenant": name}).get("/v1/runs")
        check(answer.status in (400, 403, 404, 413), f"{name}: {answer.status} {answer.text}")
    answer = Client(server.port, {"Holdfast-Tenant": "ours", "Holdfast-Actor": "theirs x"}).get("/v1/runs")
    check(answer.status == 200, answer.text)
    answer = Client(server.port, {"Holdfast-Tenant": "ours theirs", "Holdfast-Actor": "x"}).get("/v1/runs")
    check(answer.status in (400, 404), "two headers are not one name")


@case
def however_many_tenants_there_are_each_is_measured(server, ours, theirs):
    """Those that nobody has asked for in 15 s are forgotten, and begun anew."""
    names = [f"t{number}" for number in range(210)]

    def stats(name):
        answer = Client(server.port, {"Holdfast-Tenant": name}).get("/v1/stats")
        check(answer.status == 200, f"{name}: {answer.text}")
        return answer.json["throughput"]

    for name in names:
        check(server.client.put(f"/v1/tenants/{name}").status == 204, "the tenant is created")
        stats(name)
    wait_until(lambda: stats(names[0]), "the last hour is counted")
    time.sleep(16)
    for number in range(20):
        check(server.client.put(f"/v1/tenants/new{number}").status == 204, "the tenant is created")
        stats(f"new{number}")
    for name in names[:3]:
        wait_until(lambda: stats(name), "and again")  # pylint: disable=W0640


RUNNER.finish()

#!/usr/bin/env python3
"""What belongs to one tenant is not there for another: every route that names something, every list, every stream. F6."""

import json
import sys
import time
from urllib.parse import quote

from calls import Call, fill, media_of, operations, prepare
from letters import add_letter
from scene import Client, Raw, Server, check, make_store, run_program, wait_until
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


def holder(server, tenant, *roles):
    words = [word for role in roles for word in ("--role", role)]
    secret = server.program("--tenant", tenant, "token", "create", tenant, *words).stdout.strip()
    return Client(server.port, {"Authorization": f"Bearer {secret}"})


class Estate:
    """One of everything that a tenant can have, with a word in it that nobody else should read."""

    def __init__(self, client, url):
        self.client = client
        self.key = SECRET + "-key"
        client.put(f"/v1/workflows/{WORKFLOW}", {"max_running": 7, "lease": "1h"})
        self.subscription = SECRET + "-subscription"
        made = client.put(f"/v1/subscriptions/{self.subscription}", {"url": f"http://127.0.0.1:1/{SECRET}"})
        check(made.status == 200, made.text)
        self.asking = self.ask()
        self.task = client.get(f"/v1/tasks?run={self.asking}").json["items"][0]["id"]
        self.run = client.trigger(WORKFLOW, input=SECRET, key=self.key, subject=SECRET, tags=[SECRET])
        self.letter = add_letter(url, self.run)
        self.held = client.trigger(WORKFLOW, input=SECRET, priority=5)
        self.version = self.claim(self.held)["version"]
        self.schedule = SECRET + "-schedule"
        check(client.put(f"/v1/schedules/{self.schedule}", {"workflow": WORKFLOW, "cron": "@daily", "input": SECRET}).status ==
              200, "scheduled")

    def claim(self, run):
        claim = self.client.post("/v1/work/claim", {"worker": "w-" + SECRET, "workflows": [WORKFLOW], "limit": 1}).json
        check(claim["items"][0]["run"]["id"] == run, "the more urgent run is held")
        return claim["items"][0]["run"]

    def ask(self):
        """A run that waits for an answer, and has told of it: nobody has got the event yet."""
        run = self.client.trigger(WORKFLOW, priority=9)
        answer = self.client.post(f"/v1/work/runs/{run}/commit", {
            "worker": "w-" + SECRET, "version": self.claim(run)["version"], "turn": "wait",
            "tasks": [{"name": SECRET, "payload": SECRET}], "outbox": [{"type": SECRET, "payload": SECRET}]})
        check(answer.status == 200, answer.text)
        return run

    def pages(self):
        yield from ("/v1/workflows", "/v1/queues", "/v1/schedules", "/v1/subscriptions", "/v1/outbox", "/v1/tasks?status=all",
                    "/v1/dead-letters")
        if "Authorization" in self.client.headers:
            yield "/v1/tokens"
        for runs in ("/v1/runs?limit=1000", "/v1/runs?limit=1000&deleted=true", "/v1/runs?limit=1000&prefix=holdfast."):
            yield runs
            for run in self.client.get(runs).json["items"]:
                yield f"/v1/runs/{run['id']}/events"
                yield f"/v1/runs/{run['id']}/steps"
                yield f"/v1/runs/{run['id']}/children"

    def picture(self):
        """All that can be read of it."""
        parts = {}
        for path in self.pages():
            answer = self.client.get(path)
            check(answer.status == 200, f"{path}: {answer.text}")
            parts[path] = answer.json
        return parts


def check_unchanged(estate, before):
    after = estate.picture()
    check(after == before, f"changed: {[(path, before.get(path), after.get(path)) for path in {**before, **after} if before.get(path) != after.get(path)]}"[:2000])


NOT_A_TENANTS_OWN = ("tenants", "system")  # groups
MAKE_NEW = ("putWorkflow", "putSchedule", "putSubscription")  # the same name is free for everybody
OF_WORKERS = ("saveStep", "commitTurn", "failTurn", "leaveToOthers")  # a run that is not held is no longer theirs, whoever holds it


def requests_for_each_route(client, url, left_out):
    """Each that names something, with something real that the owner could do it to: (operationId, method, target, body,
    type, the names in the target)."""
    for method, path, operation in operations(client.get("/v1/openapi.json").json, left_out):
        name = operation["operationId"]
        if "{" not in path or operation["tags"][0] in NOT_A_TENANTS_OWN:
            continue
        call = Call(client, url, word=f"{SECRET}-{name}-", subject=SECRET, input=SECRET)
        prepare(call, path, operation)
        media, example, _ = media_of(operation)
        body = call.body if call.body is not None else example
        raw = json.dumps(body) if media and body is not None else None
        yield name, method, fill(path, call.path), raw, media, list(call.path.values())


def try_as_stranger(theirs, request):
    name, method, target, raw, media, names = request
    for accept in ("application/json", "text/event-stream"):
        answer = theirs.ask(method, target, raw=raw, headers={"Accept": accept, **({"Content-Type": media} if raw else {})})
        what = f"{name} ({method} {target}): {answer.status} {answer.text[:200]}"
        check(answer.status == 404 or (name in OF_WORKERS and answer.status == 409), what)
        told = answer.text
        for known in names:
            told = told.replace(known, "")
        check(SECRET not in told, what)


def try_as_owner(ours, request):
    name, method, target, raw, media, _ = request
    answer = ours.ask(method, target, raw=raw, headers={"Content-Type": media} if raw else {})
    check(answer.status < 300, f"{name} ({method} {target}) by its owner: {answer.status} {answer.text[:200]}")


def check_that_nothing_is_there(server, ours, strangers, left_out):
    check(ours.put("/v1/workflows/billing.charge.v1", {}).status == 200, "the examples' workflow")
    estate = Estate(ours, server.url)
    requests = list(requests_for_each_route(ours, server.url, (*MAKE_NEW, *left_out)))
    check(len(requests) >= 36 - len(left_out), f"only {len(requests)} routes are walked")
    before = estate.picture()
    for theirs in strangers:
        for request in requests:
            try_as_stranger(theirs, request)
        for path in (f"/v1/tasks/{estate.task}", f"/v1/dead-letters/{estate.letter}", f"/v1/subscriptions/{estate.subscription}",
                     f"/v1/schedules/{estate.schedule}", f"/v1/runs/{estate.run}", f"/v1/runs/{estate.held}/events"):
            check(theirs.get(path).status == 404 and ours.get(path).status == 200, path)
        check_unchanged(estate, before)
    for request in requests:
        try_as_owner(ours, request)


@case
def another_tenants_things_are_not_there(server, ours, theirs):
    check_that_nothing_is_there(server, ours, [theirs], ["revokeToken"])  # the first token closes the server to both of them


@case
def another_tenants_things_are_not_there_for_a_token(server, _, __):
    """However much it may do in its own, and to tenants as a whole."""
    theirs, root = holder(server, "theirs", "admin"), holder(server, "default", "admin", "root")
    check_that_nothing_is_there(server, holder(server, "ours", "admin"), [theirs, root], [])
    check(root.get("/v1/tenants").status == 200, "that is one who may see them")


def check_that_no_list_has_it(server, ours, theirs, left_out=()):
    estate = Estate(ours, server.url)
    check(theirs.put("/v1/workflows/other.v1", {}).status == 200, "a workflow of their own")
    mine = theirs.trigger("other.v1")
    for method, path, operation in operations(ours.get("/v1/openapi.json").json, ("followAll", *left_out)):
        if method != "GET" or "{" in path or operation["tags"][0] == "tenants":
            continue
        answer = theirs.get(path)
        check(answer.status == 200 and SECRET not in answer.text and WORKFLOW not in answer.text, f"{path}: {answer.text}")
    for query in (f"parent={estate.run}", f"key={estate.key}", f"subject={SECRET}", f"workflow={WORKFLOW}", "prefix=sec",
                  f"cursor={estate.run}", "status=leased,pending", "deleted=true", "overdue=true", "prefix=holdfast."):
        items = theirs.get("/v1/runs?" + query).json["items"]
        check(all(run["id"] == mine for run in items), f"{query}: {items}")
    for path in (f"tasks?run={estate.asking}", f"tasks?name={SECRET}", "tasks?status=all", f"tasks?cursor={estate.task}",
                 f"outbox?run={estate.asking}", f"outbox?type={SECRET}", "outbox?undelivered=true", "outbox?cursor=1000",
                 f"dead-letters?run={estate.run}", "dead-letters?reason=poison", f"dead-letters?cursor={estate.letter}"):
        items = theirs.get("/v1/" + path)
        check(items.status in (200, 400) and not items.json.get("items"), f"{path}: {items.text}")
    for path in ("tasks", "outbox", "outbox?undelivered=true", "dead-letters", "subscriptions", "schedules"):
        check(len(ours.get("/v1/" + path).json["items"]) == 1, f"the owner does not see it: {path}")


@case
def another_tenants_things_are_in_no_list(server, ours, theirs):
    check_that_no_list_has_it(server, ours, theirs, ["getMetrics"])  # without tokens everybody operates


@case
def another_tenants_things_are_in_no_list_for_a_token(server, _, __):
    ours, theirs = holder(server, "ours", "admin"), holder(server, "theirs", "admin")
    check_that_no_list_has_it(server, ours, theirs)
    check(len(ours.get("/v1/tokens").json["items"]) == 1 and len(theirs.get("/v1/tokens").json["items"]) == 1, "tokens")


@case
def another_tenants_runs_are_not_changed_in_bulk_nor_claimed(server, ours, theirs):
    estate = Estate(ours, server.url)
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
    check_unchanged(estate, before)


@case
def the_same_names_and_keys_are_free_for_every_tenant(server, ours, theirs):
    estate = Estate(ours, server.url)
    before = estate.picture()
    check(theirs.put(f"/v1/workflows/{WORKFLOW}", {"max_running": 1}).json["max_running"] == 1, "their own workflow")
    run = theirs.trigger(WORKFLOW, key=estate.key, input=2)
    check(run != estate.run, "their own run")
    check(theirs.get(f"/v1/workflows/{WORKFLOW}/runs/{quote(estate.key)}").json["id"] == run, "found by their own key")
    check(theirs.put(f"/v1/schedules/{estate.schedule}", {"workflow": WORKFLOW, "cron": "@hourly"}).status == 200, "theirs")
    check(theirs.put(f"/v1/subscriptions/{estate.subscription}", {"url": "http://127.0.0.1:1/"}).status == 200, "theirs")
    for path in (f"/v1/workflows/{WORKFLOW}/pause", f"/v1/schedules/{estate.schedule}/pause",
                 f"/v1/subscriptions/{estate.subscription}/park"):
        check(theirs.post(path).status == 200, path)
    for path in (f"/v1/schedules/{estate.schedule}", f"/v1/subscriptions/{estate.subscription}"):
        check(theirs.delete(path).status == 204, path)
    check_unchanged(estate, before)


@case
def an_id_that_another_tenant_has_leads_to_nothing_of_it(server, ours, theirs):
    """A worker may choose the ids of its run's children."""
    estate = Estate(ours, server.url)
    before = estate.picture()
    theirs.put("/v1/workflows/other.v1", {})
    for chosen in (estate.run, estate.held, estate.asking):
        run = theirs.trigger("other.v1", priority=1)
        held = theirs.post("/v1/work/claim", {"worker": "w", "workflows": ["other.v1"], "limit": 1}).json["items"][0]["run"]
        check(held["id"] == run, held)
        answer = theirs.post(f"/v1/work/runs/{run}/commit", {
            "worker": "w", "version": held["version"], "turn": "wait", "children": [{"workflow": "other.v1", "priority": -1}],
            "child_ids": [chosen]})
        check((answer.status, answer.problem) == (409, "conflict"), answer.text)
        theirs.post(f"/v1/runs/{run}/cancel")
        for path in (f"/v1/runs/{chosen}", f"/v1/runs/{chosen}/events", f"/v1/runs/{chosen}/steps", f"/v1/tasks?run={chosen}",
                     f"/v1/runs/{chosen}/children", f"/v1/outbox?run={chosen}", f"/v1/dead-letters?run={chosen}"):
            check(SECRET not in theirs.get(path).text, f"{path}: {theirs.get(path).text}")
        theirs.post(f"/v1/runs/{chosen}/signals", {"name": "theirs", "id": "m-1"})
        theirs.post(f"/v1/runs/{chosen}/cancel")
        check_unchanged(estate, before)
    sent = ours.post(f"/v1/runs/{estate.run}/signals", {"name": SECRET, "payload": SECRET})
    check(sent.status == 202, f"and the owner goes on: {sent.text}")
    claim = theirs.post("/v1/work/claim", {"worker": "w", "workflows": ["*"], "limit": 100})
    check(claim.status == 200 and SECRET not in claim.text, claim.text)


@case
def a_stream_tells_of_no_other_run(server, ours, theirs):
    estate = Estate(ours, server.url)
    theirs.put("/v1/workflows/other.v1", {})
    mine = theirs.trigger("other.v1")
    stream = Raw(server.port).send(f"GET /v1/runs/{mine}/events HTTP/1.1\r\nHost: localhost\r\nHoldfast-Tenant: theirs\r\n"
                                   "Accept: text/event-stream\r\n\r\n")
    check(b'"created"' in stream.receive(b'"created"'), "it flows")
    everything = Raw(server.port).send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nHoldfast-Tenant: theirs\r\n\r\n")
    everything.receive(b"retry:")
    ours.post(f"/v1/runs/{estate.run}/signals", {"name": SECRET})
    ours.post(f"/v1/runs/{estate.run}/cancel", {"reason": SECRET})
    theirs.post(f"/v1/runs/{mine}/cancel")
    text = stream.receive(b'"cancelled"')
    text += everything.receive(b'"cancelled"')
    check(mine.encode() in text, "they hear of their own")
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

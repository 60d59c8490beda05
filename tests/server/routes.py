#!/usr/bin/env python3
"""Workflows, queues, schedules, tenants, workers, and what belongs to a run, over HTTP. F11."""

import sys

from scene import Client, Server, check, claim, make_store, wait_until
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


def case(*options):
    def decorate(function):
        def play(directory):
            with Server(directory, make_store(KIND, directory), *(options or ["--no-worker"])) as server:
                function(server, server.client)

        RUNNER.case(function.__name__, play)

    return decorate


# ---- Workflows and queues ----


@case()
def a_workflow_keeps_what_is_not_given(server, client):
    made = client.put("/v1/workflows/a.v1", {"max_attempts": 7, "retry_base": "2s", "timeout": "1h"})
    check(made.status == 200 and (made.json["max_attempts"], made.json["retry_base"]) == (7, "2s"), made.text)
    changed = client.put("/v1/workflows/a.v1", {"max_running": 3, "rate_count": 10, "rate_interval": "1m"})
    check((changed.json["max_attempts"], changed.json["max_running"], changed.json["timeout"]) == (7, 3, "1h"), changed.text)
    check((changed.json["rate_count"], changed.json["rate_interval"]) == (10, "1m"), changed.text)
    check(client.get("/v1/workflows/a.v1").json == changed.json, "it is read as it was answered")


@case()
def a_workflows_settings_are_checked(server, client):
    for body in ({"max_attempts": -1}, {"max_attempts": "3"}, {"max_attempts": 1.5}, {"lease": "soon"}, {"lease": "-1s"},
                 {"paused": "yes"}, {"max_running": -1}, {"rate_count": 5}, {"no_such": 1}, {"max_attempts": 10 ** 30}):
        answer = client.put("/v1/workflows/a.v1", body)
        check(answer.status == 400 and answer.json["detail"], (body, answer.status, answer.text))
    check(client.get("/v1/workflows/a.v1").status == 404, "none was made")


@case()
def workflows_are_listed_by_prefix_with_their_queues(server, client):
    for name in ("a.one", "a.two", "b.one"):
        client.put(f"/v1/workflows/{name}", {})
    client.trigger("a.one")
    client.trigger("a.one", **{"in": "1h"})
    names = [item["name"] for item in client.get("/v1/workflows?prefix=a.").json["items"]]
    check(sorted(names) == ["a.one", "a.two"], names)
    queue = [item for item in client.get("/v1/queues").json["items"] if item["name"] == "a.one"][0]
    check((queue["due"], queue["delayed"], queue["leased"], queue["failed"]) == (1, 1, 0, 0), queue)
    claim(client, "a.one")
    queue = client.get("/v1/queues?prefix=a.o").json["items"][0]
    check((queue["due"], queue["leased"]) == (0, 1), queue)


@case()
def a_paused_workflow_begins_nothing(server, client):
    client.put("/v1/workflows/a.v1", {})
    client.trigger("a.v1")
    check(client.post("/v1/workflows/a.v1/pause").json["paused"] is True, "paused")
    check(client.post("/v1/work/claim", {"worker": "w", "workflows": ["a.v1"]}).json["items"] == [], "nothing is claimed")
    check(client.post("/v1/workflows/a.v1/resume").json["paused"] is False, "resumed")
    claim(client, "a.v1")
    check(client.post("/v1/workflows/none/pause").status == 404, "one that is not there")


@case()
def a_flow_key_has_a_weight(server, client):
    client.put("/v1/workflows/a.v1", {})
    check(client.put("/v1/workflows/a.v1/weight", {"flow_key": "acme", "weight": 5}).status == 204, "set")
    for body in ({"flow_key": "acme"}, {"flow_key": "acme", "weight": 0}, {"flow_key": "acme", "weight": 1001}):
        check(client.put("/v1/workflows/a.v1/weight", body).status == 400, body)
    check(client.put("/v1/workflows/none/weight", {"weight": 5}).status == 404, "one that is not there")


# ---- Schedules ----


@case()
def a_schedule_is_made_changed_paused_and_deleted(server, client):
    client.put("/v1/workflows/a.v1", {})
    body = {"workflow": "a.v1", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "input": {"n": 1}, "tags": ["x"],
            "overlap": "queue", "catch_up": "none"}
    made = client.put("/v1/schedules/nightly", body)
    check(made.status == 200 and made.json["cron"] == "0 3 * * *" and made.json["input"] == {"n": 1}, made.text)
    check([item["name"] for item in client.get("/v1/schedules").json["items"]] == ["nightly"], "listed")
    times = client.get("/v1/schedules/nightly/next?count=3").json["items"]
    check(len(times) == 3 and times == sorted(times), times)
    check(client.post("/v1/schedules/nightly/pause").json["paused"] is True, "paused")
    check(client.post("/v1/schedules/nightly/resume").json["paused"] is False, "resumed")
    check(client.put("/v1/schedules/nightly", {**body, "cron": "every 15m"}).json["cron"] == "every 15m", "changed")
    check(client.delete("/v1/schedules/nightly").status == 204, "deleted")
    check(client.get("/v1/schedules/nightly").status == 404, "gone")
    check(client.delete("/v1/schedules/nightly").status == 404, "it was gone already")


@case()
def a_schedule_is_checked(server, client):
    client.put("/v1/workflows/a.v1", {})
    good = {"workflow": "a.v1", "cron": "@daily"}
    for change in ({"cron": "61 * * * *"}, {"cron": ""}, {"timezone": "Mars/Olympus"}, {"overlap": "maybe"},
                   {"catch_up": "some"}, {"tags": [1]}, {"tags": "x"}, {"workflow": None}, {"cron": 5}):
        answer = client.put("/v1/schedules/s", {**good, **change})
        check(answer.status == 400, (change, answer.status, answer.text))
    check(client.put("/v1/schedules/s", {**good, "workflow": "none"}).status in (200, 404), "a workflow that is not there")
    client.put("/v1/schedules/s", good)
    for count in ("0", "101", "x"):
        check(client.get(f"/v1/schedules/s/next?count={count}").status == 400, count)


# ---- Tenants and workers ----


@case()
def a_disabled_tenant_triggers_nothing(server, client):
    check(client.put("/v1/tenants/acme").status == 204, "made")
    check(client.put("/v1/tenants/acme").status == 204, "it may be there already")
    acme = Client(server.port, {"Holdfast-Tenant": "acme"})
    acme.put("/v1/workflows/a.v1", {})
    acme.trigger("a.v1")
    check(client.post("/v1/tenants/acme/disable").status == 204, "disabled")
    wait_until(lambda: acme.post("/v1/runs", {"workflow": "a.v1"}).problem == "disabled", "it is refused")
    listed = {item["name"]: item for item in client.get("/v1/tenants").json["items"]}
    check({"acme", "default"} <= set(listed), listed)
    check(client.post("/v1/tenants/acme/enable").status == 204, "enabled")
    wait_until(lambda: acme.post("/v1/runs", {"workflow": "a.v1"}).status == 201, "it is accepted")
    for action in ("disable", "enable"):
        check(client.post(f"/v1/tenants/none/{action}").status == 404, "one that is not there")
    check(client.put("/v1/tenants/" + "x" * 300).status in (400, 413), "a name that is too long")


@case("--exec", "a.*=/bin/cat")
def the_servers_own_worker_is_listed(server, client):
    items = wait_until(lambda: client.get("/v1/workers").json["items"], "it is there")
    check(len(items) == 1, items)


# ---- What belongs to a run ----


@case()
def a_batch_is_bounded_and_each_of_it_checked(server, client):
    client.put("/v1/workflows/a.v1", {})
    runs = [{"workflow": "a.v1", "key": f"k{i % 50}"} for i in range(100)]
    items = client.post("/v1/runs/batch", {"runs": runs}).json["items"]
    check(len(items) == 100 and len({item["id"] for item in items}) == 50, "the same key is the same run")
    check(client.post("/v1/runs/batch", {"runs": []}).json["items"] == [], "none is few enough")
    many = client.post("/v1/runs/batch", {"runs": [{"workflow": "a.v1"}] * 10001})
    check((many.status, many.problem) == (413, "too_large"), many.text)
    for wrong in ({}, {"runs": {}}, {"runs": [1]}, {"runs": [{"workflow": "a.v1"}, {"wrkflow": "a"}]}, {"runs": [[]]}):
        answer = client.post("/v1/runs/batch", wrong)
        check(answer.status == 400, (wrong, answer.status))
    check("item 2" in client.post("/v1/runs/batch", {"runs": [{"workflow": "a.v1"}, {"x": 1}]}).json["detail"], "which it is")


@case()
def bulk_changes_what_can_be_changed(server, client):
    client.put("/v1/workflows/a.v1", {})
    runs = [client.trigger("a.v1") for _ in range(3)]
    client.post(f"/v1/runs/{runs[0]}/cancel")
    answer = client.post("/v1/runs/bulk", {"action": "pause", "filter": {"workflow": "a.v1"}, "reason": "night"}).json
    check(answer == {"matched": 3, "changed": 2, "refused": 1, "complete": True, "next": None}, answer)
    answer = client.post("/v1/runs/bulk", {"action": "resume", "filter": {"status": ["paused"]}}).json
    check(answer["changed"] == 2, answer)
    rest = {"workflow": "a.v1", "cursor": runs[2]}  # as if a request had come by the newest
    answer = client.post("/v1/runs/bulk", {"action": "pause", "filter": rest}).json
    check(answer == {"matched": 2, "changed": 1, "refused": 1, "complete": True, "next": None}, answer)
    check(client.get(f"/v1/runs/{runs[2]}").json["status"] == "pending", "it went on after the cursor")
    for wrong in ({"action": "explode", "filter": {"workflow": "a.v1"}}, {"filter": {"workflow": "a.v1"}},
                  {"action": "cancel"}, {"action": "cancel", "filter": []}, {"action": "cancel", "filter": {"x": 1}}):
        check(client.post("/v1/runs/bulk", wrong).status == 400, wrong)


@case()
def steps_are_remembered_and_a_fork_keeps_those_before(server, client):
    client.put("/v1/workflows/a.v1", {})
    run = client.trigger("a.v1", input={"n": 1})
    held = claim(client, "a.v1")
    for name in ("one", "two"):
        answer = client.post(f"/v1/work/runs/{run}/step", {"worker": "w", "version": held["version"], "name": name,
                                                           "status": "succeeded", "data": {"did": name}})
        check(answer.status == 204, answer.text)
    steps = client.get(f"/v1/runs/{run}/steps").json["items"]
    check([step["name"] for step in steps] == ["one", "two"], steps)
    client.post(f"/v1/runs/{run}/cancel")
    fork = client.post(f"/v1/runs/{run}/fork", {"step": "two", "input": {"n": 2}, "key": "again", "reason": "better"})
    check(fork.status == 201 and fork.json["id"] != run, fork.text)
    steps = client.get(f"/v1/runs/{fork.json['id']}/steps").json["items"]
    check([step["name"] for step in steps] == ["one"], steps)
    check(client.get(f"/v1/runs/{fork.json['id']}").json["input"] == {"n": 2}, "its own input")
    check(client.post(f"/v1/runs/{run}/fork", {"step": "none"}).status in (400, 404), "a step that is not there")


@case()
def children_are_listed_and_counted(server, client):
    client.put("/v1/workflows/a.v1", {})
    client.put("/v1/workflows/child.v1", {})
    run = client.trigger("a.v1")
    check(client.get(f"/v1/runs/{run}/children").json["items"] == [], "none yet")
    held = claim(client, "a.v1")
    answer = client.post(f"/v1/work/runs/{run}/commit", {
        "worker": "w", "version": held["version"], "turn": "wait", "waiting_kind": "children",
        "children": [{"workflow": "child.v1", "input": 1}, {"workflow": "child.v1", "input": 2}]})
    check(answer.status == 200, answer.text)
    children = client.get(f"/v1/runs/{run}/children").json
    check(len(children["items"]) == 2 and children["counts"]["pending"] == 2, children)
    check(all(child["parent"] == run and child["input"] for child in children["items"]), children)
    brief = client.get(f"/v1/runs/{run}/children", headers={"Prefer": "return=minimal"}).json
    check(brief["counts"] == children["counts"] and not any(child["input"] for child in brief["items"]), brief)
    client.post(f"/v1/runs/{children['items'][0]['id']}/cancel")
    children = client.get(f"/v1/runs/{run}/children?status=pending&limit=1").json
    check(len(children["items"]) == 1 and children["counts"]["cancelled"] == 1, children)


# ---- The server itself ----


@case()
def the_server_tells_how_it_is(server, client):
    for path in ("/healthz", "/readyz"):
        answer = client.get(path)
        check((answer.status, answer.text, answer.headers["Content-Type"]) == (200, "ok\n", "text/plain; charset=utf-8"), path)
    check(client.get("/v1/openapi.json").json["openapi"] == "3.1.0", "its document")
    check(client.post("/healthz").headers["Allow"] == "GET, HEAD", "only to be read")
    for path in ("/v1/", "/v1x", "/v1/runs/", "/v1/runs/x/y/z", "/v1/runs/../tenants"):
        check(client.get(path).status == 404, path)


RUNNER.finish()

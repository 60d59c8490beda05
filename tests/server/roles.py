#!/usr/bin/env python3
"""Each operation is called with a token of each role, and allowed or refused as the table in docs/access.md says; and nobody
gets at the engine's own runs past it. F6.

How each operation is called is in calls.py."""

import json
import pathlib
import re
import sys

from calls import WORKFLOW, Call, fill, media_of, operations, prepare
from scene import HOST, PROGRAM, Client, Raw, Server, check, make_store, run_program, wait_until
from processes import Process
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "access.md"
# What a token with one role may do: the operations of these rows of the table.
ROWS = {
    "nobody": {"none"},
    "read": {"none", "read"},
    "trigger": {"none", "read", "trigger"},
    "work": {"none", "read", "work"},
    "operate": {"none", "read", "operate"},
    "admin": {"none", "read", "trigger", "work", "operate", "admin"},
    "root": {"none", "root"},
}


def needed_roles():
    """{operation: the row that it stands in}"""
    table = PAGE.read_text().partition("| role | operations |\n|---|---|\n")[2].partition("\n\n")[0]
    needed = {}
    for line in table.splitlines():
        role, names = re.fullmatch(r"\| `?(\w+)`? \| (.*) \|", line).groups()
        for name in re.findall(r"`(\w+)`", names):
            check(name not in needed, f"{name} stands in docs/access.md twice")
            needed[name] = role
    return needed


def make_token(url, role, tenant="default"):
    return run_program("--store", url, "--tenant", tenant, "token", "create", role, "--role", role).stdout.strip()


def holder(server, secret):
    return Client(server.port, {"Authorization": f"Bearer {secret}"} if secret else {})


def with_tokens(function):
    def play(directory):
        url = make_store(KIND, directory)
        run_program("--store", url, "workflow", "create", WORKFLOW)
        secrets = {role: make_token(url, role) for role in ROWS if role != "nobody"}
        secrets["owner"] = run_program("--store", url, "token", "create", "owner", "--role", "admin", "--role", "root").stdout.strip()
        with Server(directory, url, "--no-worker") as server:
            clients = {role: holder(server, secrets.get(role)) for role in (*ROWS, "owner")}
            clients["owner"].store = url
            function(server, clients, secrets)

    RUNNER.case(function.__name__, play)


@with_tokens
def the_table_has_each_operation_of_the_document(server, clients, secrets):
    document = clients["nobody"].get("/v1/openapi.json").json
    there = {operation["operationId"] for _, _, operation in operations(document)}
    needed = set(needed_roles())
    check(there == needed, f"docs/access.md lacks {sorted(there - needed)} and has {sorted(needed - there)} for nothing")


def first_status(server, secret, path):
    """Of an answer that has no end."""
    who = f"Authorization: Bearer {secret}\r\n" if secret else ""
    with Raw(server.port) as raw:
        return raw.send(f"GET {path} HTTP/1.1\r\n{HOST}{who}\r\n").status()


def call(server, clients, secrets, role, method, path, operation):
    """What has to be there is made by the owner; the status and the problem of the answer."""
    one = Call(clients["owner"], clients["owner"].store, word=f"{role}-", tags=[role])
    prepare(one, path, operation)
    media, example, _ = media_of(operation)
    body = one.body if one.body is not None else example
    if operation["operationId"] == "followAll":
        return first_status(server, secrets.get(role), path), ""
    if operation["operationId"] == "createToken":
        body = {"name": "made", "roles": ["read"]}
    raw = json.dumps(body) if media and body is not None else None
    answer = clients[role].ask(method, fill(path, one.path), raw=raw, headers={"Content-Type": media} if raw else {})
    return answer.status, answer.problem


@with_tokens
def each_operation_is_for_the_roles_of_the_table(server, clients, secrets):
    needed = needed_roles()
    wrong = []
    document = clients["nobody"].get("/v1/openapi.json").json
    for method, path, operation in operations(document):
        name = operation["operationId"]
        for role, rows in ROWS.items():
            status, problem = call(server, clients, secrets, role, method, path, operation)
            if needed[name] in rows:
                good = status < 300 or (name == "releaseTask" and status == 409)  # the owner has claimed it
            else:
                good = (status, problem) == ((401, "no_token") if role == "nobody" else (403, "forbidden"))
                good = good or (name == "followAll" and status in (401, 403))
            if not good:
                wrong.append(f"{name} needs {needed[name]}; with {role} it is answered {status} {problem}")
    check(not wrong, "\n".join(wrong))


# ---- The engine's own runs ----

ACTIONS = ("cancel", "pause", "resume", "retry", "delete", "restore")


def engine_runs(owner):
    """Of a schedule and of a subscription."""
    check(owner.put("/v1/schedules/nightly", {"workflow": WORKFLOW, "cron": "0 3 * * *"}).status == 200, "a schedule")
    check(owner.put("/v1/subscriptions/shop", {"url": "http://127.0.0.1:9/", "events": ["x"]}).status == 200, "a subscription")
    return {"holdfast.schedule": owner.get("/v1/schedules/nightly").json["run"],
            "holdfast.dispatch": owner.get("/v1/subscriptions/shop").json["run"]}


def state_of(owner, run):
    shown = owner.get(f"/v1/runs/{run}").json
    return [shown[name] for name in ("status", "version", "revision", "deleted_at", "pause_requested")]


@with_tokens
def nobody_changes_a_run_of_the_engine_as_if_it_were_theirs(server, clients, secrets):
    owner = clients["owner"]
    runs = engine_runs(owner)
    before = {run: state_of(owner, run) for run in runs.values()}
    for role in ("operate", "admin"):
        client = clients[role]
        for workflow, run in runs.items():
            for action in ACTIONS:
                answer = client.post(f"/v1/runs/{run}/{action}")
                check((answer.status, answer.problem) == (409, "not_allowed"), f"{role}: {action} {workflow}: {answer.text}")
                bulk = client.post("/v1/runs/bulk", {"action": action, "filter": {"workflow": workflow}})
                check(bulk.status == 200 and bulk.json["changed"] == 0, f"{role}: {action} {workflow}: {bulk.text}")
            check(client.post(f"/v1/runs/{run}/fork", {}).status == 400, f"{role}: fork {workflow}")
            for method, path, body in (("PUT", "", {"lease": "1s"}), ("POST", "/pause", None), ("POST", "/resume", None),
                                       ("PUT", "/weight", {"flow_key": "a", "weight": 1})):
                answer = client.ask(method, f"/v1/workflows/{workflow}{path}", body)
                check(answer.status == 400 and "engine's own" in answer.text, f"{role}: {method} {workflow}{path}: {answer.text}")
            answer = client.post("/v1/runs", {"workflow": workflow})
            check(answer.status in (400, 403), f"{role}: trigger {workflow}: {answer.text}")
    check({run: state_of(owner, run) for run in runs.values()} == before, "one of them was changed")


@with_tokens
def what_serves_the_whole_store_is_not_stopped_over_http(server, clients, secrets):
    worker = Process(server.process.errors.parent, "worker", [PROGRAM, "--store", server.url, "worker", "--exec", "x.v1=true"])
    owner = clients["owner"]
    path = "/v1/workflows/holdfast.retention/runs/store"
    wait_until(lambda: owner.get(path).status == 200, "it removes what has expired")
    run = owner.get(path).json["id"]
    for role in ("operate", "admin"):
        for action in ("cancel", "pause", "delete"):
            answer = clients[role].post(f"/v1/runs/{run}/{action}")
            check((answer.status, answer.problem) == (409, "not_allowed"), f"{role}: {action}: {answer.text}")
    worker.kill()
    run_program("--store", server.url, "pause", run)
    check(clients["operate"].post(f"/v1/runs/{run}/resume").status == 200, "brought back to work")


@with_tokens
def no_worker_gets_at_a_run_of_the_engine(server, clients, secrets):
    owner, worker = clients["owner"], clients["work"]
    runs = engine_runs(owner)
    for pattern in ("holdfast.*", "holdfast.dispatch"):
        for path in ("join", "claim"):
            answer = worker.post(f"/v1/work/{path}", {"worker": "w", "workflows": [pattern]})
            check(answer.status == 400, f"{path} {pattern}: {answer.text}")
    answer = worker.post("/v1/work/join", {"worker": "w", "workflows": ["*"], "settings": {"holdfast.dispatch": {"lease": "1s"}}})
    check(answer.status == 400, answer.text)
    check(owner.post("/v1/subscriptions/shop/resume").status == 200, "its run is due")
    for pattern in ("*", "h*", "holdfast*"):
        claimed = worker.post("/v1/work/claim", {"worker": "w", "workflows": [pattern], "limit": 100}).json["items"]
        check(claimed == [], f"{pattern}: {claimed}")
    for run in runs.values():
        version = owner.get(f"/v1/runs/{run}").json["version"]
        for held in ({"turn": "succeed", "result": 1}, {"turn": "give_back"}):
            answer = worker.post(f"/v1/work/runs/{run}/commit", {"worker": "w", "version": version, **held})
            check(answer.status == 409, answer.text)
    one = Call(owner, owner.store)
    one.hold(turn="go_on")
    for member in ("children", "starts"):
        answer = owner.post(f"/v1/work/runs/{one.path['id']}/commit", {**one.body, member: [{"workflow": "holdfast.retention"}]})
        check(answer.status == 400 and "engine's own" in answer.text, f"{member}: {answer.text}")


@with_tokens
def by_their_own_operations_they_are_changed(server, clients, secrets):
    owner, operator = clients["owner"], clients["operate"]
    engine_runs(owner)
    for path, told in (("/v1/schedules/nightly", "paused"), ("/v1/subscriptions/shop", "state")):
        stop = "pause" if told == "paused" else "park"
        check(operator.post(f"{path}/{stop}").status == 200, stop)
        check(owner.get(path).json[told] in (True, "parked"), "it stands")
        check(operator.post(f"{path}/resume").status == 200, "resumed")
        wait_until(lambda: owner.get(path).json[told] in (False, "parked", "active"), "it goes on")  # pylint: disable=W0640
    check(operator.delete("/v1/subscriptions/shop").status == 403, "that is for who may create one")
    check(operator.delete("/v1/schedules/nightly").status in (200, 204), "the schedule is deleted")
    check(owner.delete("/v1/subscriptions/shop").status in (200, 204), "the subscription is deleted")


@with_tokens
def nor_with_the_program(server, clients, secrets):
    owner = clients["owner"]
    for workflow, run in engine_runs(owner).items():
        before = state_of(owner, run)
        for action in ACTIONS:
            done = run_program("--store", server.url, action, run, expect=None)
            check(done.returncode != 0 and "engine's own" in done.stderr, f"{action} {workflow}: {done.stderr}")
        for words in (["pause", "--workflow", workflow], ["workflow", "set", workflow, "--lease", "1s"],
                      ["workflow", "pause", workflow], ["fork", run]):
            done = run_program("--store", server.url, *words, expect=None)
            check(state_of(owner, run) == before, f"{words}: {done.stdout} {done.stderr}")


RUNNER.finish()

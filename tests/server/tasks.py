#!/usr/bin/env python3
"""Tasks over HTTP: looking at them, taking them, answering them. E7, F7."""

import sys

from scene import Client, Server, check, make_store, run_program
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
NOBODY = "01900000-0000-7000-8000-000000000001"


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory)) as server:
            check(server.client.put("/v1/workflows/ask.v1", {}).status == 200, "the workflow is created")
            function(server, server.client)

    RUNNER.case(function.__name__, play)


def claim(client):
    runs = client.post("/v1/work/claim", {"worker": "w", "workflows": ["ask.v1"], "wait": "10s"}).json["items"]
    check(len(runs) == 1, f"{len(runs)} runs are due")
    return runs[0]


def commit(client, held, **members):
    answer = client.post(f"/v1/work/runs/{held['run']['id']}/commit",
                         {"worker": "w", "version": held["run"]["version"], "turn": "wait",
                          "seen_position": held["seen_position"], "seen_us": held["seen_us"], **members})
    check(answer.status == 200, answer.text)


def ask(client, *tasks):
    """A run that waits for answers; gives its id and those of its tasks, in their order."""
    run = client.trigger("ask.v1")
    commit(client, claim(client),
           tasks=[{"name": "approve", "payload": number, **task} for number, task in enumerate(tasks or ({},))])
    made = client.get(f"/v1/tasks?run={run}").json["items"]
    return run, [task["id"] for task in sorted(made, key=lambda task: task["payload"] if len(made) > 1 else 0)]


def person(server, name):
    return Client(server.port, {"Holdfast-Actor": name})


@case
def an_answer_reaches_the_run_that_asked(server, client):
    run, (task,) = ask(client, {"roles": ["boss"], "payload": {"n": 7}, "form": {"f": []}, "token": "t",
                                "due_at": "2030-01-01T00:00:00Z"})
    shown = client.get(f"/v1/tasks/{task}")
    check(shown.status == 200 and shown.headers["ETag"] == '"1"', shown.headers)
    check({name: shown.json[name] for name in ("run", "workflow", "name", "status", "assignee", "roles", "payload", "form")}
          == {"run": run, "workflow": "ask.v1", "name": "approve", "status": "open", "assignee": None, "roles": ["boss"],
              "payload": {"n": 7}, "form": {"f": []}}, shown.json)
    check(shown.json["due_at"].startswith("2030-01-01T00:00:00"), shown.json)
    done = person(server, "kim").post(f"/v1/tasks/{task}/complete", {"outcome": "approved", "result": {"note": "fine"}})
    check(done.status == 200 and done.headers["ETag"] == '"2"', done.text)
    check((done.json["status"], done.json["outcome"], done.json["assignee"]) == ("completed", "approved", "kim"), done.json)
    (mail,) = claim(client)["mail"]
    check((mail["type"], mail["name"], mail["token"]) == ("task", "approve", "t"), mail)
    check(mail["payload"] == {"task": task, "outcome": "approved", "result": {"note": "fine"}, "by": "kim"}, mail)
    lines = [line for line in client.get(f"/v1/runs/{run}/events").json["items"] if line["kind"] == "task"]
    check([(line["name"], line["actor"]) for line in lines] == [("completed", "kim")], lines)


@case
def one_who_has_a_task_keeps_the_others_off(server, client):
    _, (task,) = ask(client)
    kim, lee = person(server, "kim"), person(server, "lee")
    path = f"/v1/tasks/{task}"
    taken = kim.post(f"{path}/claim")
    check((taken.status, taken.json["status"], taken.json["assignee"]) == (200, "claimed", "kim"), taken.text)
    for verb in ("claim", "release", "complete"):
        refused = lee.post(f"{path}/{verb}", {"outcome": "yes"} if verb == "complete" else None)
        check((refused.status, refused.problem) == (409, "conflict"), f"{verb}: {refused.text}")
    check(kim.post(f"{path}/release").json["assignee"] is None, "it is released")
    given = client.post(f"{path}/reassign", {"assignee": "lee"})
    check((given.json["status"], given.json["assignee"]) == ("open", "lee"), given.text)
    check(kim.post(f"{path}/claim").problem == "conflict", "it is lee's")
    check(client.post(f"{path}/reassign", {}).json["assignee"] is None, "it is nobody's")
    check(lee.post(f"{path}/complete", {"outcome": "yes"}).status == 200, "it is answered")
    check(lee.post(f"{path}/complete", {"outcome": "yes"}).status == 200, "the same answer again is fine")
    check(lee.post(f"{path}/complete", {"outcome": "no"}).problem == "not_allowed", "another is not")


@case
def a_task_that_changed_is_not_changed_blindly(server, client):
    _, (task,) = ask(client)
    path = f"/v1/tasks/{task}"
    tag = client.get(path).headers["ETag"]
    check(client.post(f"{path}/claim", headers={"If-Match": tag}).status == 200, "its tag fits")
    for verb, body in (("release", {}), ("reassign", {}), ("complete", {"outcome": "yes"})):
        refused = client.post(f"{path}/{verb}", body, headers={"If-Match": tag})
        check((refused.status, refused.problem) == (412, "revision_mismatch"), f"{verb}: {refused.text}")
    tag = client.get(path).headers["ETag"]
    check(client.post(f"{path}/complete", {"outcome": "yes"}, headers={"If-Match": tag}).status == 200, "the new one does")


@case
def lists_show_what_is_asked_for_page_by_page(server, client):
    run, tasks = ask(client, {"due_at": "2020-01-01T00:00:00Z"}, {"roles": ["boss"]},
                     {"assignee": "kim", "due_at": "2040-01-01T00:00:00Z"}, {"name": "check"})

    def listed(query):
        answer = client.get(f"/v1/tasks?{query}")
        check(answer.status == 200, answer.text)
        return sorted(tasks.index(task["id"]) for task in answer.json["items"])

    check(listed("") == [0, 1, 2, 3], listed(""))
    by_due = [task["id"] for task in client.get("/v1/tasks?by_due=true").json["items"]]
    check(by_due[:2] == [tasks[0], tasks[2]], by_due)
    for query, expected in (("role=boss", [1]), ("assignee=kim", [2]), ("name=check", [3]), ("overdue=true", [0]),
                            (f"run={run}&status=completed", []), ("status=open,claimed", [0, 1, 2, 3])):
        check(listed(query) == expected, f"{query}: {listed(query)}")
    for order in ("", "&by_due=true"):
        seen, cursor = [], ""
        while cursor is not None:
            page = client.get(f"/v1/tasks?limit=1{order}" + (f"&cursor={cursor}" if cursor else "")).json
            seen += [task["id"] for task in page["items"]]
            cursor = page["next"]
        check(len(seen) == 4 and set(seen) == set(tasks), f"{order}: {seen}")
    check(client.post(f"/v1/tasks/{tasks[3]}/complete", {"outcome": "yes"}).status == 200, "one is answered")
    check(listed("") == [0, 1, 2] and listed("status=completed") == [3] and listed("status=all") == [0, 1, 2, 3], "by status")
    check(client.get("/v1/tasks?status=done").problem == "invalid", "there is no such status")


@case
def tasks_end_with_their_run_or_when_they_are_withdrawn(server, client):
    run, tasks = ask(client, {"token": "a"}, {"token": "b"})
    check(client.post(f"/v1/runs/{run}/signals", {"name": "wake"}).status < 300, "it is woken")
    commit(client, claim(client), withdrawn_tasks=["a"])
    check(client.get(f"/v1/tasks/{tasks[0]}").json["outcome"] == "withdrawn", "it is withdrawn")
    check(client.get(f"/v1/tasks/{tasks[1]}").json["status"] == "open", "the other is not")
    check(client.post(f"/v1/runs/{run}/cancel").status < 300, "the run is cancelled")
    check(client.get(f"/v1/tasks/{tasks[1]}").json["status"] == "cancelled", "and its task")
    for task in tasks:
        check(client.post(f"/v1/tasks/{task}/complete", {"outcome": "yes"}).problem == "not_allowed", "too late")


@case
def what_is_not_there_or_not_well_formed_is_refused(server, client):
    _, (task,) = ask(client)
    for path in (f"/v1/tasks/{NOBODY}", "/v1/tasks/nonsense"):
        check(client.get(path).problem == "not_found", path)
        check(client.post(f"{path}/claim").problem == "not_found", path)
    check(client.post(f"/v1/tasks/{task}/complete", {}).problem == "invalid", "an answer has an outcome")
    check(client.post(f"/v1/tasks/{task}/complete", {"outcome": ""}).problem == "invalid", "that says something")


@case
def each_role_may_do_what_it_is_for(server, client):
    _, (task,) = ask(client)
    path = f"/v1/tasks/{task}"
    run_program("--store", server.url, "tenant", "create", "other")

    def holder(role, tenant="default"):
        secret = run_program("--store", server.url, "--tenant", tenant, "token", "create", f"{role}-{tenant}", "--role",
                             role).stdout.strip()
        return Client(server.port, {"Authorization": f"Bearer {secret}"})

    reader, answerer, operator, stranger = holder("read"), holder("trigger"), holder("operate"), holder("admin", "other")
    check(reader.get(path).status == 200, "a reader reads")
    for verb, body in (("claim", {}), ("release", {}), ("reassign", {}), ("complete", {"outcome": "yes"})):
        check(reader.post(f"{path}/{verb}", body).problem == "forbidden", f"a reader may not {verb}")
        check(stranger.post(f"{path}/{verb}", body).problem == "not_found", f"a stranger may not {verb}")
    check(stranger.get(path).status == 404 and stranger.get("/v1/tasks").json["items"] == [], "a stranger sees nothing")
    check(answerer.post(f"{path}/reassign", {}).problem == "forbidden", "who answers does not reassign")
    check(operator.post(f"{path}/reassign", {"assignee": "trigger-default"}).status == 200, "an operator does")
    check(answerer.post(f"{path}/complete", {"outcome": "yes"}).json["assignee"] == "trigger-default", "the token's name")


@case
def a_token_for_some_task_roles_answers_no_others(server, client):
    _, (boss, clerk, anybody) = ask(client, {"roles": ["boss", "chief"]}, {"roles": ["clerk"]}, {})
    secret = run_program("--store", server.url, "token", "create", "admin", "--role", "admin").stdout.strip()
    admin = Client(server.port, {"Authorization": f"Bearer {secret}"})
    made = admin.post("/v1/tokens", {"name": "kim", "roles": ["trigger"], "task_roles": ["chief", "judge"]})
    check(made.status == 201, made.text)
    kim = Client(server.port, {"Authorization": f"Bearer {made.json['secret']}"})
    check(kim.get("/v1/me").json["task_roles"] == ["chief", "judge"], "kim is told")
    check(admin.get("/v1/me").json["task_roles"] is None, "the administrator is not held back")
    check(len(kim.get("/v1/tasks").json["items"]) == 3, "all can be seen")
    for task in (clerk, anybody):
        for verb, body in (("claim", {}), ("release", {}), ("complete", {"outcome": "yes"})):
            refused = kim.post(f"/v1/tasks/{task}/{verb}", body)
            check((refused.status, refused.problem) == (403, "forbidden"), f"{verb}: {refused.text}")
        check(admin.get(f"/v1/tasks/{task}").json["version"] == 1, "nothing was done")
    check(kim.post(f"/v1/tasks/{NOBODY}/claim").problem == "not_found", "no task")
    for verb, body in (("claim", {}), ("release", {}), ("complete", {"outcome": "yes"})):
        check(kim.post(f"/v1/tasks/{boss}/{verb}", body).status == 200, verb)
    refused = admin.post("/v1/tokens", {"name": "lee", "roles": ["operate"], "task_roles": ["chief"]})
    check((refused.status, refused.problem) == (400, "invalid"), refused.text)


RUNNER.finish()

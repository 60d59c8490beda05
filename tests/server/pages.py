#!/usr/bin/env python3
"""Lists of large things: each page is bounded, and together they have everything. F11."""

import sys
import uuid

from letters import add_letters
from scene import Server, check, claim, make_store
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
LARGE = "x" * 900000
MANY = 20  # of these hold more than a page may


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory), "--no-worker") as server:
            server.client.put("/v1/workflows/a.v1", {})
            function(server, server.client)

    RUNNER.case(function.__name__, play)


def read_all(client, path, cursor="cursor"):
    """All items, of pages none of which is too large."""
    items, pages, following = [], 0, ""
    while following is not None:
        mark = "&" if "?" in path else "?"
        answer = client.get(f"{path}{mark}{cursor}={following}" if following else path)
        check(answer.status == 200, answer.text[:300])
        check(len(answer.bytes) < 17 << 20, f"{path}: a page of {len(answer.bytes)} bytes")
        items += answer.json["items"]
        following = answer.json["next"]
        pages += 1
    check(pages > 1, f"{path}: one page")
    return items


def commit(client, held, **members):
    body = {"worker": "w", "version": held["version"], **members}
    answer = client.post(f"/v1/work/runs/{held['id']}/commit", body)
    check(answer.status == 200, answer.text)


def note(client, run, status, data):
    """A journal line of a step that waits, or has waited."""
    held = claim(client, "a.v1")
    check(held["id"] == run, held)
    commit(client, held, turn="give_back", events=[{"kind": "step", "name": status, "step": "first", "data": data}])


@case
def a_journal_and_its_steps_are_told_in_pages_of_bounded_size(server, client):
    run = client.trigger("a.v1")
    note(client, run, "waiting", {"op": "wait"})
    held = claim(client, "a.v1")
    for number in range(MANY):
        answer = client.post(f"/v1/work/runs/{run}/step", {
            "worker": "w", "version": held["version"], "name": f"s{number}", "status": "succeeded",
            "data": {"op": "step", "output": LARGE}})
        check(answer.status == 204, answer.text)
    commit(client, held, turn="give_back")
    note(client, run, "succeeded", {"op": "wait", "output": LARGE})
    events = read_all(client, f"/v1/runs/{run}/events?limit=1000", "after")
    check([event["seq"] for event in events] == list(range(1, len(events) + 1)), [event["seq"] for event in events])
    check(len([event for event in events if event["kind"] == "step"]) == MANY + 2, "all lines")
    steps = read_all(client, f"/v1/runs/{run}/steps")
    check([step["name"] for step in steps] == ["first"] + [f"s{number}" for number in range(MANY)], "each once, in order")
    check(all(step["status"] == "succeeded" and step["output"] == LARGE for step in steps), "with what it gave")
    check(client.get(f"/v1/runs/{run}/steps?cursor=1000").json == {"items": [], "next": None}, "there is no more")
    check(client.get(f"/v1/runs/{run}/steps?cursor=-1").status == 400, "no cursor")


@case
def tasks_and_the_outbox_are_told_in_pages_of_bounded_size(server, client):
    for number in range(MANY):
        client.trigger("a.v1")
        held = claim(client, "a.v1")
        commit(client, held, turn="wait", tasks=[{"name": f"n{number}", "payload": LARGE, "assignee": "kim"}],
               outbox=[{"type": f"n{number}", "payload": LARGE}])
    for path, name in (("outbox?", "type"), ("tasks?", "name"), ("tasks?status=all&", "name"), ("tasks?assignee=kim&", "name"),
                       ("tasks?by_due=true&", "name"), ("tasks?by_due=true&assignee=kim&", "name")):
        names = [item[name] for item in read_all(client, f"/v1/{path}limit=1000")]
        check(sorted(names) == sorted(f"n{number}" for number in range(MANY)), f"{path}: {names}")


@case
def dead_letters_are_told_in_pages_of_bounded_size(server, client):
    run = client.trigger("a.v1")
    ids = [str(uuid.uuid4()) for _ in range(MANY)]
    add_letters(server.url, run, ids, {"payload": LARGE})
    found = [letter["id"] for letter in read_all(client, "/v1/dead-letters?limit=1000")]
    check(found == sorted(ids, reverse=True), found)


RUNNER.finish()

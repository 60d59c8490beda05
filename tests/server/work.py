#!/usr/bin/env python3
"""The protocol of remote workers, spoken by hand. B8."""

import json
import signal
import socket
import struct
import sys
import threading
import uuid

from scene import Client, Server, Skipped, check, make_store, wait_until
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory)) as server:
            function(server, Hand(server.port))

    RUNNER.case(function.__name__, play)


class Hand(Client):
    """A worker that does what it is told."""

    def __init__(self, port, name="w1", **options):
        super().__init__(port, **options)
        self.name = name

    def work(self, path, body=None):
        return self.post(f"/v1/work/{path}", {"worker": self.name, **(body or {})})

    def claim(self, workflow="work.v1", limit=1, wait="0s"):
        answer = self.work("claim", {"workflows": [workflow], "limit": limit, "wait": wait})
        check(answer.status == 200, answer.text)
        return answer.json["items"]

    def hold(self, workflow="work.v1", **options):
        claims = self.claim(workflow, wait="60s", **options)
        check(len(claims) == 1, claims)
        return claims[0]

    def on(self, claim, path, **body):
        run = claim["run"]
        return self.work(f"runs/{run['id']}/{path}", {"version": run["version"], **body})

    def beat(self, *claims, lease_us=30_000_000):
        runs = [{"id": claim["run"]["id"], "version": claim["run"]["version"], "lease_us": lease_us} for claim in claims]
        return [item["code"] for item in self.work("heartbeat", {"runs": runs}).json["items"]]

    def crew(self):
        """The remote workers; the server is one, too."""
        return [worker for worker in self.get("/v1/workers").json["items"] if worker["name"].startswith("default/")]

    def waits(self, name=""):
        wait_until(lambda: any(worker["idle"] and worker["name"].endswith(name) for worker in self.crew()), "a claim waits")

    def state(self, run):
        return self.get(f"/v1/runs/{run}").json

    def journal(self, run):
        return self.get(f"/v1/runs/{run}/events?limit=1000").json["items"]


def begin(hand, lease="30s", **settings):
    check(hand.put("/v1/workflows/work.v1", {"lease": lease, **settings}).status == 200, "the workflow is there")


def in_background(function):
    """What the function returned, as a list that is filled later, and its thread."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    return answers, thread


@case
def a_claimed_run_is_worked_on_and_committed(server, hand):
    begin(hand)
    run = hand.trigger("work.v1", input={"n": 1}, key="k")
    claim = hand.hold()
    check(claim["run"]["id"] == run and claim["run"]["input"] == {"n": 1} and claim["run"]["key"] == "k", claim)
    check(claim["run"]["attempt"] == 1 and claim["lease_us"] == 30_000_000 and claim["deadline_us"] == 0, claim)
    check(claim["mail"] == [] and claim["steps"] == [], claim)
    check(not [name for name in ("leased_by", "updated_at") if name in claim["run"]], claim)
    check(hand.state(run)["leased_by"] == "default/w1", "the store knows who holds it")
    check(hand.on(claim, "step", name="a", status="succeeded", data={"op": "step", "output": 7}).status == 204, "step")
    check(hand.on(claim, "commit", turn="succeed", result=[1]).json == {"children": []}, "commit")
    check(hand.state(run)["status"] == "succeeded" and hand.state(run)["result"] == [1], "it has ended")
    steps = hand.get(f"/v1/runs/{run}/steps").json["items"]
    check([(step["name"], step["op"], step["output"]) for step in steps] == [("a", "step", 7)], steps)


@case
def what_a_stale_holder_says_changes_nothing(server, hand):
    begin(hand)
    run = hand.trigger("work.v1")
    old = hand.hold()
    check(hand.on(old, "commit", turn="give_back").status == 200, "given back")
    new = Hand(server.port, "w2").hold()
    check(new["run"]["id"] == run and new["run"]["version"] > old["run"]["version"], new)
    before = hand.journal(run), hand.state(run)
    child = [{"workflow": "work.v1"}]
    refused = [
        hand.on(old, "step", name="a", status="succeeded", data={}),
        hand.on(old, "commit", turn="go_on", children=child, state={"a": 1}),
        hand.on(old, "commit", turn="succeed", result=1),
        hand.on(old, "commit", turn="wait", waiting_kind="x"),
        hand.on(old, "commit", turn="give_back"),
        hand.on(old, "fail", message="no", permanent=True),
    ]
    check([(answer.status, answer.problem) for answer in refused] == [(409, "stale")] * 6,
          [answer.text for answer in refused])
    check(hand.beat(old, new) == ["stale", "ok"], "each is answered for itself")
    after = hand.journal(run), hand.state(run)
    for state in (before[1], after[1]):
        for moving in ("lease_until", "run_at", "updated_at"):
            state.pop(moving)
    check(before == after, (before, after))
    check(len(hand.get("/v1/runs").json["items"]) == 1, "no child was started")
    check(hand.on(new, "commit", turn="succeed").status == 200, "the holder goes on")


@case
def a_commit_that_is_repeated_is_stale(server, hand):
    begin(hand)
    hand.trigger("work.v1")
    claim = hand.hold()
    answers = [hand.on(claim, "commit", turn="succeed", result=1) for _ in range(2)]
    check([answer.status for answer in answers] == [200, 409], [answer.text for answer in answers])


@case
def what_is_sent_to_two_servers_under_one_request_is_done_once(server, hand):
    begin(hand)
    hand.put("/v1/workflows/child.v1", {})
    run = hand.trigger("work.v1")
    claim = hand.hold()
    children = [{"workflow": "child.v1"}, {"workflow": "child.v1", "key": "k"}]
    with Server(server.process.errors.parent, server.url, name="beside") as beside:
        hands = [hand, Hand(beside.port)]

        def both(path, **body):
            told = [in_background(lambda hand=hand: hand.on(claim, path, **body)) for hand in hands]
            for _, thread in told:
                thread.join()
            return [answers[0] for answers, _ in told]

        for i in range(10):
            answers = both("step", request=f"s-{i}", name="a", status="succeeded", data={"op": "step", "output": i})
            check([answer.status for answer in answers] == [204, 204], [answer.text for answer in answers])
        first, second = both("commit", request="c", turn="go_on", state={"a": 1}, children=children)
        check(first.status == 200 and first.json == second.json and len(first.json["children"]) == 2, (first.text, second.text))
        again = hands[1].on(claim, "commit", request="c", turn="go_on", children=children)
        check(again.json == first.json, again.text)
    kinds = [(line["kind"], line["name"]) for line in hand.journal(run)]
    check(kinds[2:] == [("step", "succeeded")] * 10 + [("lifecycle", "gone_on")], kinds)
    check(len(hand.get("/v1/runs").json["items"]) == 3, "two children, once")
    refused = hand.on(claim, "commit", request="d", turn="succeed")
    check(refused.status == 400, refused.text)
    check(hand.on(claim, "commit", turn="succeed").status == 200, "it ends")
    check(hand.on(claim, "step", request="s-1", name="a", status="succeeded").problem == "stale", "the run has moved on")


@case
def who_joins_under_a_name_that_it_had_goes_on_at_once(server, hand):
    begin(hand, lease="1h")
    run = hand.trigger("work.v1")
    old = hand.hold()
    other = Hand(server.port, "w2")
    other.work("join", {"workflows": ["work.v1"]})
    check(other.claim() == [], "it is another's")
    left = Hand(server.port, "w1")
    check(left.work("leave").status == 204, "that it has said that it stops makes no difference")
    check(left.work("join", {"workflows": ["work.v1"]}).status == 204, "joined")
    new = left.hold()
    check(new["run"]["id"] == run and new["run"]["attempt"] == 2, new)
    check(hand.on(old, "commit", turn="succeed").problem == "stale", "the former one is shut out")
    check(left.on(new, "commit", turn="succeed").status == 200, "it goes on")


@case
def others_that_wait_hear_of_what_a_worker_leaves_that_comes_back(server, hand):
    begin(hand, lease="1h")
    run = hand.trigger("work.v1")
    hand.hold()
    answers, thread = in_background(lambda: Hand(server.port, "w2").claim(wait="60s"))
    hand.waits("w2")
    hand.work("join", {"workflows": ["work.v1"]})
    thread.join()
    check([item["run"]["id"] for item in answers[0]] == [run], answers)


def settings_of(hand, name):
    return hand.get(f"/v1/workflows/{name}").json


@case
def a_worker_brings_settings_and_schedules_when_it_joins(server, hand):
    def join(**members):
        return hand.work("join", {"workflows": ["new.v1", "other.v1"], **members})

    nightly = {"workflow": "new.v1", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "input": {"n": 1}, "tags": ["t"]}
    answer = join(settings={"new.v1": {"max_attempts": 7, "lease": "5s", "dead_letter": "other.v1"}, "other.v1": {}},
                  schedules={"nightly": nightly, "each.hour": {"workflow": "other.v1", "cron": "every 1h"}})
    check(answer.status == 204, answer.text)
    new = settings_of(hand, "new.v1")
    check((new["max_attempts"], new["lease"], new["dead_letter"]) == (7, "5s", "other.v1"), new)
    check(settings_of(hand, "other.v1")["max_attempts"] == 3, "what is not given stays")
    schedules = {item["name"]: item for item in hand.get("/v1/schedules").json["items"]}
    check(set(schedules) == {"nightly", "each.hour"}, schedules)
    check(schedules["nightly"]["timezone"] == "Europe/Berlin" and schedules["nightly"]["input"] == {"n": 1}, schedules)

    check(join(schedules={"nightly": nightly}).status == 204, "again")
    journal = hand.journal(schedules["nightly"]["run"])
    check("set" not in [line["name"] for line in journal], "what is set already is left alone, with what it has missed")
    check(join(schedules={"nightly": {**nightly, "cron": "0 4 * * *"}}).status == 204, "changed")
    check(hand.get("/v1/schedules/nightly").json["cron"] == "0 4 * * *", "it is what the worker says")


@case
def what_a_worker_brings_is_checked_as_a_whole(server, hand):
    hand.put("/v1/workflows/foreign.v1", {})
    hand.put("/v1/schedules/theirs", {"workflow": "foreign.v1", "cron": "@daily"})
    every = {"workflow": "new.v1", "cron": "@daily"}
    for members, status, words in [
        ({"settings": {"foreign.v1": {}}}, 400, ("settings", "foreign.v1", "workflows")),
        ({"settings": {"new.v1": {"leese": "5s"}}}, 400, ("settings", "new.v1", "leese", "lease")),
        ({"settings": {"new.v1": {"max_attempts": 0}}}, 400, ("new.v1", "attempts")),
        ({"settings": {"new.v1": 5}}, 400, ("new.v1",)),
        ({"settings": [1]}, 400, ("settings",)),
        ({"schedules": {"s": {"cron": "@daily"}}}, 400, ("schedules", "s", "workflow")),
        ({"schedules": {"s": {**every, "workflow": "foreign.v1"}}}, 400, ("schedules", "foreign.v1")),
        ({"schedules": {"s": {**every, "overlap": "push"}}}, 400, ("s", "push")),
        ({"schedules": {"s": {**every, "cron": "never"}}}, 400, ("s", "never")),
        ({"schedules": {"a \u00fc": every}}, 400, ("schedule",)),
        ({"settings": {"new\"v1": {}}}, 400, ("settings",)),
        ({"schedules": {"theirs": every}}, 409, ("theirs", "foreign.v1")),
    ]:
        answer = hand.work("join", {"workflows": ["new.v1"], **members})
        check(answer.status == status, (members, answer.text))
        check(all(word in answer.json["detail"] for word in words), (members, answer.text))
        check(status == 409 or hand.get("/v1/workflows/new.v1").status == 404, "nothing was done")
    check(hand.get("/v1/schedules/theirs").json["workflow"] == "foreign.v1", "it is as it was")


def watch(hand, wait="60s"):
    answer = hand.work("watch", {"wait": wait})
    check(answer.status == 200, answer.text)
    return [item["id"] for item in answer.json["items"]]


def others(server, directory):
    """Who cancels: this server, the program, and where there can be one another server."""
    def by_program(run):
        server.program("cancel", run)

    yield "this server", lambda run: Client(server.port).post(f"/v1/runs/{run}/cancel")
    yield "the program", by_program
    if KIND == "postgres":
        with Server(directory, server.url, name="beside") as beside:
            yield "another server", lambda run: Client(beside.port).post(f"/v1/runs/{run}/cancel")


@case
def a_worker_that_watches_hears_of_a_cancel_whoever_says_it(server, hand):
    begin(hand, lease="1h")
    for name, cancel in others(server, server.process.errors.parent):
        runs = [hand.trigger("work.v1") for _ in range(2)]
        held = hand.claim(limit=2)
        other = Hand(server.port, "w2")
        answers, thread = in_background(lambda: watch(Hand(server.port)))
        not_meant, second = in_background(lambda: watch(other, "3s"))
        wait_until(lambda: server.program("cancel", hand.trigger("work.v1")) and second.is_alive(), "it waits")
        check(thread.is_alive() and answers == [], "a run that nobody holds tells nobody")
        cancel(runs[0])
        thread.join()
        check(answers == [[runs[0]]], (name, answers))
        check(hand.beat(*held) == (["cancelled", "ok"] if held[0]["run"]["id"] == runs[0] else ["ok", "cancelled"]), name)
        check(watch(hand, "0s") == [], "it is told once")
        hand.on(next(claim for claim in held if claim["run"]["id"] == runs[1]), "commit", turn="succeed")
        second.join()
        check(not_meant == [[]], (name, not_meant))


@case
def watches_that_wait_cost_no_thread(server, hand):
    begin(hand)
    before = server.threads()
    workers = [Hand(server.port, f"w{i}") for i in range(40)]
    waiting = [in_background(lambda worker=worker: watch(worker)) for worker in workers]
    wait_until(lambda: "holdfast_http_requests_parked 40" in hand.get("/metrics").text, "they wait")
    now = server.threads()
    check(now < before + 20, f"{now} threads, {before} before")
    for i in range(40):
        run = hand.trigger("work.v1")
        check(Hand(server.port, f"w{i}").hold()["run"]["id"] == run, "held")
        hand.post(f"/v1/runs/{run}/cancel")
    for answers, thread in waiting:
        thread.join()
        check(len(answers[0]) == 1, answers)


@case
def a_cancel_just_before_the_watch_is_told_and_so_is_the_next_one(server, hand):
    begin(hand, lease="1h")
    run = hand.trigger("work.v1")
    hand.hold()
    hand.post(f"/v1/runs/{run}/cancel")
    check(watch(hand) == [run], "nothing is missed between two watches")
    check(hand.post(f"/v1/runs/{run}/retry").status == 200, "retried")
    check(hand.hold()["run"]["id"] == run, "held again")
    hand.post(f"/v1/runs/{run}/cancel")
    check(watch(hand) == [run], "cancelled again")


@case
def threads_that_are_stuck_are_seen(server, hand):
    begin(hand)
    hand.work("join", {"workflows": ["work.v1"], "threads": 2})
    stuck = lambda: [(worker["name"], worker["stuck"]) for worker in hand.crew()]  # noqa: E731
    check(stuck() == [("default/w1", 0)], stuck())
    check(hand.work("heartbeat", {"runs": [], "stuck": 2}).status == 200, "said")
    hand.work("heartbeat", {"runs": []})
    hand.claim()
    check(stuck() == [("default/w1", 2)], "it stays until another number is said")
    check("2 stuck" in server.program("workers").stdout, server.program("workers").stdout)
    check("holdfast_worker_threads_stuck 2" in hand.get("/metrics").text, "a metric")
    check(hand.work("heartbeat", {"runs": [], "stuck": -1}).status == 400, "not below 0")
    hand.work("join", {"workflows": ["work.v1"], "stuck": 1})
    check(stuck() == [("default/w1", 1)], stuck())
    hand.work("heartbeat", {"runs": [], "stuck": 0})
    check(stuck() == [("default/w1", 0)] and "stuck" not in server.program("workers").stdout, "none")


@case
def a_trigger_just_after_a_join_finds_its_workflow(server, hand):
    def trigger_at_once(other):
        for i in range(10):
            name = f"new{other.port}.v{i}"
            check(hand.work("join", {"workflows": [name]}).status == 204, "joined")
            answer = other.post("/v1/runs", {"workflow": name})
            check(answer.status == 201, answer.text)

    trigger_at_once(Client(server.port))
    if KIND == "postgres":
        with Server(server.process.errors.parent, server.url, name="beside") as beside:
            trigger_at_once(Client(beside.port))


@case
def a_token_to_work_with_sets_up_what_it_joins_with_and_nothing_else(server, hand):
    made = server.program("--json", "token", "create", "w", "--role", "work").stdout
    worker = Hand(server.port, headers={"Authorization": f"Bearer {json.loads(made)['secret']}"})
    settings = {"settings": {"new.v1": {"max_attempts": 7}}, "schedules": {"s": {"workflow": "new.v1", "cron": "@daily"}}}
    check(worker.work("join", {"workflows": ["new.v1"], **settings}).status == 204, "joined")
    check(worker.get("/v1/workflows/new.v1").json["max_attempts"] == 7, "set")
    check(worker.put("/v1/workflows/new.v1", {"max_attempts": 9}).status == 403, "not by itself")
    check(worker.put("/v1/schedules/s", {"workflow": "new.v1", "cron": "@daily"}).status == 403, "not by itself")


@case
def a_child_of_an_unknown_workflow_is_refused_as_such(server, hand):
    begin(hand)
    hand.trigger("work.v1")
    claim = hand.hold()
    refused = hand.on(claim, "commit", turn="go_on", request="r", children=[{"workflow": "none.v1"}])
    check((refused.status, refused.problem) == (404, "unknown_workflow") and "none.v1" in refused.text, refused.text)
    check(hand.on(claim, "commit", turn="go_on", request="r", state=1).status == 200, "the run is still held")


@case
def an_expired_lease_is_claimed_again(server, hand):
    begin(hand, lease="300ms")
    run = hand.trigger("work.v1")
    old = hand.hold()
    hand.on(old, "step", name="a", status="succeeded", data={"op": "step", "attempt": 1, "output": 7})
    new = Hand(server.port, "w2").hold()
    check(new["run"]["id"] == run and new["run"]["attempt"] == 2, new)
    check([(step["name"], step["status"], step["data"]["output"]) for step in new["steps"]] == [("a", "succeeded", 7)],
          new["steps"])
    check(hand.beat(old) == ["stale"], "the old holder learns it")


@case
def a_heartbeat_keeps_a_run(server, hand):
    begin(hand, lease="300ms")
    hand.trigger("work.v1")
    claim = hand.hold()
    check(hand.beat(claim) == ["ok"], "prolonged by 30 s")
    check(hand.claim(wait="700ms") == [], "nobody gets it")
    check(hand.work("heartbeat", {"runs": [{"id": "x", "version": 1, "lease_us": 1}]}).status == 400, "not an id")
    check(hand.work("heartbeat", {"runs": [{"id": claim["run"]["id"], "version": 1}]}).status == 400, "no lease")


@case
def cancelling_is_told_by_heartbeat_and_commit(server, hand):
    begin(hand)
    run = hand.trigger("work.v1")
    claim = hand.hold()
    hand.post(f"/v1/runs/{run}/cancel")
    check(hand.beat(claim) == ["cancelled"], "heartbeat")
    answer = hand.on(claim, "commit", turn="succeed")
    check((answer.status, answer.problem) == (409, "cancelled"), answer.text)
    check(hand.on(claim, "step", name="a", status="succeeded").problem == "cancelled", "step")


@case
def exhausted_and_overdue_runs_reach_no_worker(server, hand):
    begin(hand, lease="200ms", max_attempts=1, dead_letter="dead.v1")
    hand.put("/v1/workflows/dead.v1", {})
    run = hand.trigger("work.v1", input=5)
    hand.hold()
    check(hand.claim(wait="1s") == [], "its only attempt is gone")
    wait_until(lambda: hand.state(run)["status"] == "failed", "it failed")
    check(hand.state(run)["error_code"] == "attempts_exhausted", hand.state(run))
    late = hand.trigger("work.v1", input=6, timeout="50ms", **{"in": "1h"})
    check(hand.claim(wait="1s") == [], "its deadline has passed")
    wait_until(lambda: hand.state(late)["error_code"] == "deadline_exceeded", "it failed")
    letters = Hand(server.port).claim("dead.v1", limit=10)
    check(sorted(letter["run"]["input"]["input"] for letter in letters) == [5, 6], letters)
    check({letter["run"]["input"]["run"] for letter in letters} == {run, late}, letters)


@case
def a_failure_is_retried_by_the_workflows_policy(server, hand):
    begin(hand, max_attempts=2, retry_base="50ms")
    run = hand.trigger("work.v1")
    check(hand.on(hand.hold(), "fail", message="once").json == {"retried": True}, "tried again")
    check(hand.state(run)["last_error"] == "once", "the error is kept")
    check(hand.on(hand.hold(), "fail", message="twice", code="odd", error={"x": 1}).json == {"retried": False}, "over")
    state = hand.state(run)
    check((state["status"], state["error_code"], state["error"]) == ("failed", "odd", {"x": 1}), state)
    other = hand.trigger("work.v1")
    check(not hand.on(hand.hold(), "fail", message="m", code="history_mismatch", permanent=True).json["retried"], "over")
    check(hand.state(other)["error_code"] == "history_mismatch", "the code is the worker's")


@case
def a_run_that_does_not_fit_is_left_to_another_worker(server, hand):
    begin(hand, dead_letter="dead.v1")
    check(hand.put("/v1/workflows/dead.v1", {}).status == 200, "there is one for dead letters")
    run = hand.trigger("work.v1")
    why = 'step "b" was called where "a" is remembered'
    claim = hand.hold()
    check(hand.on(claim, "unfit", message=why).json == {"failed": False}, "it waits")
    check(hand.on(claim, "unfit", message=why).status == 409, "and is held no more")
    state = hand.state(run)
    check((state["status"], state["waiting_kind"], state["last_error"]) == ("waiting", "worker", why), state)
    check((state["error_code"], state["attempt"]) == ("history_mismatch", 0) and state["waiting_until"], state)
    other = Hand(server.port, name="w2")
    check(other.work("join", {"workflows": ["work.v1"]}).status == 204, "one with other code joins")
    claim = other.hold()
    check(claim["run"]["attempt"] == 1, "it cost no attempt")
    check(hand.put("/v1/workflows/work.v1", {"fit_within": "0s"}).json["fit_within"] == "0s", "from now on it fails at once")
    check(other.on(claim, "unfit", message=why).json == {"failed": True}, "it has failed")
    state = hand.state(run)
    check((state["status"], state["error_code"], state["last_error"]) == ("failed", "history_mismatch", why), state)
    letter = Hand(server.port).hold("dead.v1")["run"]["input"]
    check(letter["error_code"] == "history_mismatch" and letter["last_error"] == why, letter)


@case
def a_wait_ends_with_a_signal_that_is_consumed_once(server, hand):
    begin(hand)
    run = hand.trigger("work.v1")
    claim = hand.hold()
    hand.post(f"/v1/runs/{run}/signals", {"name": "go", "payload": {"n": 1}})
    seen = {name: claim[name] for name in ("seen_position", "seen_us")}
    check(hand.on(claim, "commit", turn="wait", waiting_kind="signal", **seen).status == 200, "waits")
    claim = hand.hold()
    mail = claim["mail"]
    check([(m["type"], m["name"], m["payload"]) for m in mail] == [("external", "go", {"n": 1})], mail)
    line = {"kind": "step", "name": "succeeded", "step": "go", "data": {"op": "wait", "output": {"n": 1}}}
    check(hand.on(claim, "commit", turn="go_on", consumed=[mail[0]["id"]], events=[line]).status == 200, "goes on")
    check(hand.on(claim, "commit", turn="give_back").status == 200, "given back")
    claim = hand.hold()
    check(claim["mail"] == [] and [step["name"] for step in claim["steps"]] == ["go"], claim)


@case
def children_have_the_ids_that_their_parent_chose(server, hand):
    begin(hand)
    run = hand.trigger("work.v1", input="parent")
    claim = hand.hold()
    ids = [str(uuid.uuid4()) for _ in range(3)]
    children = [{"workflow": "work.v1", "input": i} for i in range(3)]
    check(hand.on(claim, "commit", turn="go_on", children=children, child_ids=ids[:2]).status == 400, "one is missing")
    check(hand.on(claim, "commit", turn="go_on", children=children, child_ids=["x"] * 3).status == 400, "no ids")
    check(hand.on(claim, "commit", turn="go_on", children=children, child_ids=ids).json == {"children": ids}, "started")
    made = hand.on(claim, "commit", turn="go_on", children=[{"workflow": "work.v1", "input": 3}]).json["children"]
    hand.on(claim, "commit", turn="wait", waiting_kind="children", wait_children=4)
    for child in hand.claim(limit=10):
        check(child["run"]["parent"] == run, child)
        hand.on(child, "commit", turn="succeed", result=child["run"]["input"])
    mail = hand.hold()["mail"]
    check({m["id"] for m in mail} == {f"child:{child}" for child in ids + made}, mail)
    check(sorted(m["payload"]["result"] for m in mail) == [0, 1, 2, 3], mail)


@case
def a_claim_that_waits_is_woken_by_a_trigger(server, hand):
    begin(hand)
    for trigger in (lambda: hand.trigger("work.v1"), lambda: server.program("trigger", "work.v1", "--quiet")):
        other = Hand(server.port, "w2")
        answers, thread = in_background(lambda: other.claim(wait="60s"))
        hand.waits()
        trigger()
        thread.join(30)
        check(answers and len(answers[0]) == 1, answers)
        other.on(answers[0][0], "commit", turn="succeed")


@case
def two_servers_share_the_work(server, hand):
    if KIND != "postgres":
        raise Skipped("one process serves an SQLite store")
    begin(hand)
    with Server(server.process.errors.parent, server.url, name="serve2") as second:
        other = Hand(second.port, "w2")
        answers, thread = in_background(lambda: other.claim(wait="60s"))
        hand.waits()
        run = hand.trigger("work.v1")
        thread.join(30)
        claim = answers[0][0]
        check(claim["run"]["id"] == run, answers)
        mover = Hand(server.port, "w2")
        check(mover.beat(claim) == ["ok"], "a worker may go on at another server")
        check(mover.on(claim, "commit", turn="succeed").status == 200, "and commit there")


@case
def a_claim_whose_caller_hung_up_claims_nothing(server, hand):
    begin(hand)
    for name, linger in ((b"closed", (0, 0)), (b"reset", (1, 0))):
        body = b'{"worker":"%s","workflows":["work.v1"],"wait":"60s"}' % name
        with socket.create_connection(("127.0.0.1", server.port)) as caller:
            caller.sendall(b"POST /v1/work/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            hand.waits(name.decode())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", *linger))
        run = hand.trigger("work.v1")
        claimed = hand.hold()
        check((claimed["run"]["id"], claimed["run"]["attempt"]) == (run, 1), f"{name}: it went to nobody before")
        check(hand.on(claimed, "commit", turn="succeed").status == 200, "done")


@case
def a_worker_that_leaves_is_answered_and_forgotten(server, hand):
    check(hand.work("join", {"workflows": ["work.v1", "more.*"], "threads": 7, "program": "test"}).status == 204, "")
    check(hand.get("/v1/workflows/work.v1").status == 200, "the workflow was created")
    workers = hand.crew()
    check([(w["name"], w["threads"], w["serves"]) for w in workers] == [("default/w1", 7, ["work.v1", "more.*"])], workers)
    other = Hand(server.port)
    answers, thread = in_background(lambda: other.claim(wait="60s"))
    hand.waits()
    check(hand.crew()[0]["started_at"] == workers[0]["started_at"], "it started once")
    check(hand.work("leave").status == 204, "left")
    thread.join(30)
    check(answers == [[]], answers)
    check(hand.crew() == [], "it is forgotten")


@case
def what_a_worker_says_of_itself_is_bounded(server, hand):
    for path in ("join", "claim"):
        for odd in ({"worker": "w" * 513}, {"worker": ""}, {"host": "h" * 513}, {"program": "p" * 513},
                    {"workflows": ["w" * 201]}, {"workflows": ["work.v1", "w" * (1 << 20)]}, {"workflows": ["a b"]},
                    {"workflows": [f"many.v{number}" for number in range(1001)]}):
            answer = hand.work(path, {"workflows": ["work.v1"], **odd})
            check(answer.status in (400, 413) and answer.problem in ("invalid", "too_large"), (path, answer.text[:200]))
    check(hand.crew() == [], "nobody was listed")
    check(not [one for one in hand.get("/v1/workflows").json["items"] if not one["name"].startswith("holdfast.")],
          "nothing was created")
    names = [f"many.v{number}" for number in range(998)]
    check(hand.work("join", {"workflows": [*names, names[0], "family.*"]}).status == 204, "as many as there may be")
    made = [one["name"] for one in hand.get("/v1/workflows").json["items"] if not one["name"].startswith("holdfast.")]
    check(sorted(made) == sorted(names), "each was created, once")
    check(len(hand.crew()[0]["serves"]) == 1000, "and all are served")


@case
def tenants_do_not_meet(server, hand):
    server.program("tenant", "create", "acme")
    other = Hand(server.port, headers={"Holdfast-Tenant": "acme"})
    for one in (hand, other):
        begin(one)
    run = hand.trigger("work.v1")
    check(other.claim("*", wait="300ms") == [], "another tenant's run")
    claim = hand.hold()
    check(other.on(claim, "commit", turn="succeed").status in (404, 409), "another tenant's run")
    check(other.beat(claim) == ["stale"], "another tenant's run")
    check(hand.state(run)["status"] == "leased", "nothing happened")
    mine = other.trigger("work.v1")
    held = other.hold()
    server.program("tenant", "disable", "acme")
    check(other.post("/v1/runs", {"workflow": "work.v1"}).problem == "disabled", "no new runs")
    check(other.on(held, "commit", turn="succeed").status == 200, "what runs may end")
    check(other.state(mine)["status"] == "succeeded", "it ended")
    check(other.claim("*", wait="200ms") == [], "and nothing is begun")


@case
def the_engines_own_runs_are_not_given_out(server, hand):
    begin(hand)
    parents = [hand.trigger("work.v1") for _ in range(30)]
    for claim in hand.claim(limit=30):
        hand.on(claim, "commit", turn="wait", wait_children=1, children=[{"workflow": "work.v1", "in": "1h"}])
    server.process.send(signal.SIGSTOP)  # the server is a worker, too, and shall not do them first
    for parent in parents:
        server.program("cancel", parent)
    hand.connection.request("POST", "/v1/work/claim", '{"worker": "w1", "workflows": ["*"], "limit": 100}',
                            {"Content-Type": "application/json"})
    server.process.send(signal.SIGCONT)
    check(hand.connection.getresponse().read() == b'{"items":[]}', "nobody but the engine knows how to cancel children")
    wait_until(lambda: not hand.get("/v1/runs?status=pending,leased").json["items"], "the engine did")


@case
def what_makes_no_sense_is_refused(server, hand):
    begin(hand)
    check(hand.work("claim", {"workflows": []}).status == 400, "no workflow")
    check(hand.work("claim", {"workflows": ["work.v1"], "limit": 0}).status == 400, "no run")
    check(hand.work("claim", {"workflows": ["work.v1"], "limit": 101}).status == 400, "too many")
    hand.trigger("work.v1")
    claim = hand.hold()
    check(hand.on(claim, "commit", turn="dance").status == 400, "no such turn")
    check(hand.on(claim, "commit", turn="succeed", result="x" * (2 << 20)).status == 413, "too large")
    check(hand.on(claim, "step", name="a", status="waiting").status == 400, "a step has ended")
    check(hand.on(claim, "step", name="a", status="succeeded", data="x" * (2 << 20)).status == 413, "too large")
    check(hand.on(claim, "commit", turn="go_on", children=[{"workflow": "none"}]).problem == "unknown_workflow", "")
    check(hand.on(claim, "commit", turn="succeed").status == 200, "and it still holds the run")


RUNNER.finish()

#!/usr/bin/env python3
"""Real workers in Python and JavaScript at a real server, and what they survive. usage: remote.py STORE LANGUAGE|mixed
B8."""

import collections
import os
import pathlib
import random
import signal
import socket
import sys
import threading
import time

from scene import PROGRAM, Process, Server, check, make_store, wait_until
from processes import need_node
from runner import Runner
from stores import free_port

RUNNER = Runner(sys.argv)
KIND, LANGUAGE = sys.argv[1:3]
HERE = pathlib.Path(__file__).parent / "workers"
PROGRAMS = {"python": [sys.executable, HERE / "worker.py"], "node": ["node", HERE / "worker.mjs"]}
# Where workers are killed their leases are short; elsewhere a busy machine shall not lose one.
# What a step's own error is called in the run's
OWN = {"python": {"large step": "result_refused", "slow step": "timeout", "title": "result_refused", "flaky": "ValueError"},
       "node": {"large step": "result_refused", "slow step": "timeout", "title": "result_refused", "flaky": "Error"}}
SHORT = {"lease": "1s" if LANGUAGE == "mixed" else "10s", "max_attempts": 100, "retry_base": "50ms"}


class Scene:
    def __init__(self, directory):
        if LANGUAGE in ("node", "mixed"):
            need_node()
        self.directory = directory
        self.log = directory / "log"
        self.log.touch()
        self.url = make_store(KIND, directory)
        self.port = free_port()
        self.started = self.served = 0
        self.serve()
        for name in ("order.v1", "child.v1", "slow.v1", "changed.v1", "never.v1"):
            self.client.put(f"/v1/workflows/{name}", SHORT)

    def serve(self):
        self.served += 1
        self.server = Server(self.directory, self.url, "--listen", f"127.0.0.1:{self.port}", name=f"serve-{self.served}")
        self.client = self.server.client

    def worker(self, port=None, **environment):
        self.started += 1
        language = ("python", "node")[self.started % 2] if LANGUAGE == "mixed" else LANGUAGE
        name = f"{language}-{self.started}"
        return Process(self.directory, name, [*PROGRAMS[language], f"http://127.0.0.1:{port or self.port}", name, self.log],
                       env={**os.environ, **environment})

    def has_joined(self, worker):
        return f"default/{worker.name}" in (one["name"] for one in self.client.get("/v1/workers").json["items"])

    def stop(self, workers):
        """One that was started a moment ago may not have come so far that it hears a signal."""
        for worker in workers:
            wait_until(lambda one=worker: self.has_joined(one), f"{worker.name} has joined")
            check(worker.stop() == 0, worker.said())

    def lines(self):
        return self.log.read_text().splitlines()

    def end(self, run):
        for _ in range(5):  # minutes
            found = self.client.get(f"/v1/runs/{run}?wait=60s").json
            if found["status"] in ("succeeded", "failed", "cancelled"):
                break
        check(found["status"] in ("succeeded", "failed", "cancelled"), found)
        return found

    def steps(self, run):
        return self.client.get(f"/v1/runs/{run}/steps").json["items"]


class Leak:
    """A proxy that hands all requests on, and loses some of the answers with their connections."""

    def __init__(self, port, share, rng):
        self.port_behind, self.share, self.rng, self.lost = port, share, rng, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            caller, _ = self.listener.accept()
            behind = socket.create_connection(("127.0.0.1", self.port_behind))
            threading.Thread(target=self.carry, args=(caller, behind, False), daemon=True).start()
            threading.Thread(target=self.carry, args=(behind, caller, True), daemon=True).start()

    def carry(self, source, target, answers):
        try:
            while data := source.recv(1 << 20):
                if answers and self.rng.random() < self.share:
                    self.lost += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def case(function):
    def play(directory):
        scene = Scene(directory)
        try:
            function(scene)
            scene.server.stop()
        finally:
            scene.server.process.kill()

    if LANGUAGE != "mixed":
        RUNNER.case(function.__name__, play)


def trigger_order(scene, **members):
    run = scene.client.trigger("order.v1", input={"nap": 0.1, "kids": 3}, **members)
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go", "payload": {"run": run}})
    return run


def check_order(scene, run, state):
    """Each step ran to its record once, and what it gave then is what counted."""
    check(state["status"] == "succeeded", state)
    result = state["result"]
    names = collections.Counter((step["name"], step["op"]) for step in scene.steps(run))
    expected = {("charge", "step"), ("nap", "sleep"), ("go", "wait"), ("kids", "children"), ("first", "children_wait"),
                ("all", "children_wait"), ("ship", "step"), ("ship#2", "step"), ("uuid", "uuid"), ("change", "version")}
    check(set(names) == expected and set(names.values()) == {1}, names)
    outputs = {step["name"]: step["output"] for step in scene.steps(run)}
    check(result["charge"] == outputs["charge"] and result["ship"] == [outputs["ship"], outputs["ship#2"]], result)
    check(result["go"] == {"run": run} and result["kids"] == [0, 2, 4] and result["first"] and result["version"] == 2, result)
    happened = [line.split()[1] for line in scene.lines() if line.startswith(f"{run}/charge ")]
    check(result["charge"] in happened, "the step's record is of something that happened")
    return len(happened)


@case
def a_run_with_all_kinds_of_calls_ends_well(scene):
    worker = scene.worker()
    run = trigger_order(scene, key="k")
    before = scene.end(run)["result"]
    check(check_order(scene, run, scene.end(run)) == 1, "without a crash each step happens once")
    check(scene.server.program("tree", run).stdout.count("child.v1") == 3, scene.server.program("tree", run).stdout)
    fork = scene.client.post(f"/v1/runs/{run}/fork", {"step": "ship"}).json["id"]
    after = scene.end(fork)["result"]
    check(all(after[name] == before[name] for name in ("charge", "go", "kids")), (before, after))
    check(not set(after["ship"]) & set(before["ship"]), "from the chosen step on it is done again")
    check(worker.stop() == 0, worker.said())


@case
def more_than_a_thousand_children_are_started_waited_for_and_listed_by_their_age(scene):
    scene.worker()
    run = scene.client.trigger("order.v1", input={"nap": 0, "kids": 1010})
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go", "payload": None})
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["finished_at"], "all its children have ended")
    state = scene.end(run)
    check(state["status"] == "succeeded" and state["result"]["kids"] == [2 * i for i in range(1010)], str(state)[:1000])
    started = next(step["output"] for step in scene.steps(run) if step["name"] == "kids")
    check(started == sorted(started), "ids sort by time, so that lists do")
    check(scene.client.trigger("order.v1") > started[-1], "and with the ids that the server makes")


@case
def failures_are_what_they_are_in_every_language(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/timeouts.v1").status == 200, "the worker has joined")
    runs = {word: scene.client.trigger("failing.v1", input=word) for word in
            ("permanent", "later", "nonsense", "large", "large step", "silence", "slow step", "odd limits", "nested",
             "swallow")}
    flaky = {word: scene.client.trigger("flaky.v1", input=word) for word in ("catch", "pass")}
    timeouts = scene.client.trigger("timeouts.v1")
    late = scene.client.trigger("slow.v1", timeout="700ms")
    ends = {word: scene.end(run) for word, run in {**runs, **flaky}.items()}
    check((ends["permanent"]["error_code"], ends["permanent"]["last_error"]) == ("own_code", "never"), ends["permanent"])
    check((ends["later"]["status"], ends["later"]["result"]) == ("succeeded", 2), ends["later"])
    check(ends["large"]["error_code"] == "result_refused", ends["large"])
    check(ends["large step"]["error_code"] == OWN[LANGUAGE]["large step"], ends["large step"])
    check(scene.lines().count("large step") == 1, "what was done is not done again because its output is refused")
    check((ends["nonsense"]["error_code"], ends["nonsense"]["attempt"]) == ("result_refused", 1), ends["nonsense"])
    check((ends["silence"]["error_code"], ends["silence"]["attempt"]) == ("wait_timeout", 1), ends["silence"])
    check(ends["slow step"]["error_code"] == OWN[LANGUAGE]["slow step"] and "limit" in ends["slow step"]["last_error"], ends["slow step"])
    check((ends["odd limits"]["status"], ends["odd limits"]["result"]) == ("succeeded", [1, False]), ends["odd limits"])
    check(ends["nested"]["status"] == "failed" and '"outer"' in ends["nested"]["last_error"], ends["nested"])
    check((ends["swallow"]["status"], ends["swallow"]["result"]) == ("succeeded", 1), ends["swallow"])
    check(scene.end(late)["error_code"] == "deadline_exceeded", scene.end(late))
    check(ends["catch"]["status"] == "succeeded" and "not today" in ends["catch"]["result"], ends["catch"])
    check(ends["pass"]["error_code"] == OWN[LANGUAGE]["flaky"] and "not today" in ends["pass"]["last_error"], ends["pass"])
    tries = collections.Counter(line for line in scene.lines() if line.endswith("/try"))
    check(tries == {f"{run}/try": 3 for run in flaky.values()}, tries)
    check(scene.end(timeouts)["result"] == "twice", "timeouts")
    scene.client.post(f"/v1/runs/{flaky['pass']}/retry")
    scene.end(flaky["pass"])
    check(collections.Counter(scene.lines())[f"{flaky['pass']}/try"] == 6, "an operator's retry tries the step again")
    check(worker.stop() == 0, worker.said())


@case
def what_is_no_json_fails_the_run_and_holds_nobody_up(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/nonsense.v1").status == 200, "the worker has joined")
    runs = {word: scene.client.trigger("nonsense.v1", input=word) for word in
            ("ask", "form", "number", "title", "emit", "publish", "child", "caught")}
    ends = {word: scene.end(run) for word, run in runs.items()}
    caught = ends.pop("caught")
    check((caught["status"], caught["result"]) == ("succeeded", "went on"), caught)
    codes = {word: (end["error_code"], end["attempt"]) for word, end in ends.items()}
    expected = {word: (OWN[LANGUAGE]["title"] if word == "title" else "result_refused", 1) for word in codes}
    check(codes == expected, codes)
    check(not scene.client.get("/v1/tasks").json["items"], "nobody was asked")
    check(worker.stop() == 0, worker.said())


@case
def what_is_told_is_seen(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/tell.v1").status == 200, "the worker has joined")
    run = scene.client.trigger("tell.v1")
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["status"] == "paused", "it pauses")
    check(scene.client.get(f"/v1/runs/{run}").json["state"] == {"at": "half"}, "published")
    names = [line["name"] for line in scene.client.get(f"/v1/runs/{run}/events").json["items"]]
    check("progress" in names, names)
    scene.client.post(f"/v1/runs/{run}/resume")
    check(scene.end(run)["result"] == [True, True], "it goes on")
    told = collections.Counter(line["name"] for line in scene.client.get(f"/v1/runs/{run}/events").json["items"]
                               if line["kind"] == "domain")
    check(told == {"progress": 1, "published": 1}, told)
    check(worker.stop() == 0, worker.said())


@case
def steps_are_remembered_across_a_killed_worker(scene):
    first = scene.worker()
    run = scene.client.trigger("order.v1", input={"nap": 0, "kids": 3})
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["status"] == "waiting", "it waits for the signal")
    first.kill()
    second = scene.worker()
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go", "payload": {"run": run}})
    check(check_order(scene, run, scene.end(run)) == 1, "charged once")
    check(second.stop() == 0, second.said())


@case
def cancelling_reaches_the_handler(scene):
    worker = scene.worker()
    run = scene.client.trigger("slow.v1")
    wait_until(lambda: f"{run} began" in scene.lines(), "it began")
    scene.client.post(f"/v1/runs/{run}/cancel")
    wait_until(lambda: f"{run} cancelled" in scene.lines(), "the handler learned it")
    check(worker.stop() == 0, worker.said())


@case
def changed_code_is_told_of(scene):
    check(scene.client.put("/v1/workflows/changed.v1", {"fit_within": "0s"}).status == 200, "it shall wait for no other code")
    first = scene.worker(STEP="a")
    run = scene.client.trigger("changed.v1")
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["status"] == "waiting", "it waits")
    check(first.stop() == 0, first.said())
    second = scene.worker(STEP="b")
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go"})
    state = scene.end(run)
    check(state["error_code"] == "history_mismatch" and '"b"' in state["last_error"] and '"a"' in state["last_error"], state)
    check(second.stop() == 0, second.said())


@case
def a_stop_gives_back_what_does_not_end_in_time(scene):
    worker = scene.worker(LIMIT="0.5")
    run = scene.client.trigger("slow.v1")
    wait_until(lambda: f"{run} began" in scene.lines(), "it began")
    check(worker.stop() == 0, worker.said())
    state = scene.client.get(f"/v1/runs/{run}").json
    check((state["status"], state["attempt"]) == ("pending", 0), state)
    check(not [w for w in scene.client.get("/v1/workers").json["items"] if w["name"].startswith("default/")], "it has left")


@case
def a_server_that_is_killed_and_comes_back_loses_nothing(scene):
    workers = [scene.worker() for _ in range(2)]
    runs = [trigger_order(scene, key=f"k{i}") for i in range(12)]
    for _ in range(2):
        time.sleep(0.3)
        scene.server.process.kill()
        scene.client.close()
        scene.serve()
    for run in runs:
        check_order(scene, run, scene.end(run))
    scene.stop(workers)


@case
def answers_that_get_lost_are_survived(scene):
    leak = Leak(scene.port, 0.1, random.Random(RUNNER.seed))
    workers = [scene.worker(leak.port) for _ in range(2)]
    runs = [trigger_order(scene, key=f"k{i}") for i in range(10)]
    for run in runs:
        check_order(scene, run, scene.end(run))
    check(leak.lost > 5, f"{leak.lost} answers were lost")
    leak.share = 0
    scene.stop(workers)


SCRIPT = """#!/bin/bash
set -euo pipefail
a=$(holdfast step a -- echo of the script)
holdfast sleep nap 50ms
kid=$(holdfast child wait "kid end" "$(holdfast child start kid child.v1 3)")
name=$(holdfast uuid)
go=$(holdfast wait go1)
b=$(holdfast step b -- echo of the script)
holdfast wait go2 >ignored
echo "[\\"$a\\",$kid,\\"$name\\",$go,\\"$b\\"]"
"""


@case
def a_run_goes_from_the_library_to_a_remote_worker_and_back(scene):
    script = scene.directory / "relay.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    local = [PROGRAM, "--store", scene.url, "worker", "--exec", f"relay.v1={script}", "--exec", "child.v1=cat"]
    (scene.directory / "holdfast").symlink_to(PROGRAM)
    environment = {**os.environ, "PATH": f"{scene.directory}:{os.environ['PATH']}"}

    def waits(name):
        wait_until(lambda: (scene.client.get(f"/v1/runs/{run}").json["current_step"],
                            scene.client.get(f"/v1/runs/{run}").json["status"]) == (name, "waiting"), f"it waits: {name}")

    scene.client.put("/v1/workflows/relay.v1", SHORT)
    run = scene.client.trigger("relay.v1")
    worker = Process(scene.directory, "local-1", local, cwd=scene.directory, env=environment)
    waits("go1")
    check(worker.stop() == 0, worker.said())
    worker = scene.worker()
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go1", "payload": {"n": 1}})
    waits("go2")
    check(worker.stop() == 0, worker.said())
    before = scene.steps(run)
    worker = Process(scene.directory, "local-2", local, cwd=scene.directory, env=environment)
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go2"})
    end = scene.end(run)
    outputs = {step["name"]: step["output"] for step in before}
    check(end["result"] == ["of the script", 3, outputs["uuid"], {"n": 1}, "of the worker"], end)
    check([step["name"] for step in before] == ["a", "nap", "kid", "kid end", "uuid", "go1", "b", "go2"], before)
    check(worker.stop() == 0, worker.said())


def soak(directory):
    """Workers of both languages are killed at random; runs that one began the other finishes."""
    scene = Scene(directory)
    rng = random.Random(RUNNER.seed)
    count = 40 if RUNNER.quick else 150
    try:
        workers = [scene.worker() for _ in range(4)]
        runs = []
        until = time.monotonic() + (3 if RUNNER.quick else 7)
        while len(runs) < count or time.monotonic() < until:
            if len(runs) < count:
                runs += [trigger_order(scene, key=f"k{len(runs) + i}") for i in range(5)]
            victim = rng.randrange(len(workers))
            time.sleep(rng.uniform(0, 0.4))
            workers[victim].send(signal.SIGKILL)
            workers[victim].wait()
            workers[victim] = scene.worker()
        happened = [check_order(scene, run, scene.end(run)) for run in runs]
        RUNNER.note(f"{scene.started} workers, {len(runs)} runs, {sum(happened) - len(runs)} steps that happened again")
        holders = {line["actor"].split("/")[1].split("-")[0] for run in runs
                   for line in scene.client.get(f"/v1/runs/{run}/events?limit=1000").json["items"] if line["kind"] == "step"}
        check(holders == {"python", "node"}, holders)
        scene.stop(workers)
        scene.server.stop()
    finally:
        scene.server.process.kill()


if LANGUAGE == "mixed":
    RUNNER.case("workers_are_killed_and_each_step_is_recorded_once", soak)
RUNNER.finish()

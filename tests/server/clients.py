#!/usr/bin/env python3
"""What the clients in Python and JavaScript offer beside working: calling, waiting, asking people, and telling what went wrong.
usage: clients.py STORE LANGUAGE. B8."""

import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import threading

from scene import Client, Process, Server, check, make_store, run_program, wait_until
from processes import die_with_parent, need_node
from runner import Runner
from stores import free_port
from stub import Stub

RUNNER = Runner(sys.argv)
KIND, LANGUAGE = sys.argv[1:3]
HERE = pathlib.Path(__file__).parent / "workers"
COMMAND, ENDING, DIG = {"python": ([sys.executable], "py", "dig_deep"), "node": (["node"], "mjs", "digDeep")}[LANGUAGE]
FINISHED = ("succeeded", "failed", "cancelled")


class Gate:
    """Stands before a server that may go away: hands all that comes on, and counts."""

    def __init__(self, port):
        self.port_behind, self.asked, self.refused = port, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            caller, _ = self.listener.accept()
            try:
                behind = socket.create_connection(("127.0.0.1", self.port_behind))
            except OSError:
                self.refused += 1
                caller.close()
                continue
            threading.Thread(target=self.carry, args=(caller, behind, 1), daemon=True).start()
            threading.Thread(target=self.carry, args=(behind, caller, 0), daemon=True).start()

    def carry(self, source, target, asks):
        try:
            while data := source.recv(1 << 20):
                target.sendall(data)
                self.asked += asks
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Caller:
    """A client of the language under test. One program for many calls: to start one takes long."""

    def __init__(self, port):
        self.popen = subprocess.Popen([*COMMAND, HERE / f"caller.{ENDING}", f"http://127.0.0.1:{port}"], text=True, bufsize=1,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent())

    def send(self, method, *arguments, **options):
        self.popen.stdin.write(json.dumps([method, arguments, options]) + "\n")

    def says(self):
        """Whether there is something to read."""
        return bool(select.select([self.popen.stdout], [], [], 0)[0])

    def read(self):
        line = self.popen.stdout.readline()
        check(line, "the caller has ended")
        return json.loads(line)

    def read_all(self):
        return list(iter(self.read, None))

    def __call__(self, method, *arguments, **options):
        self.send(method, *arguments, **options)
        return self.read_all() if method in ("list", "tasks") else self.read()

    def close(self):
        self.popen.kill()
        self.popen.communicate()


def start_worker(directory, name, port, **environment):
    return Process(directory, name, [*COMMAND, HERE / f"worker.{ENDING}", f"http://127.0.0.1:{port}", name,
                                     directory / "log"], env={**os.environ, **environment})


def need_language():
    if LANGUAGE == "node":
        need_node()


class Scene:
    def __init__(self, directory, *options):
        need_language()
        self.directory, self.options = directory, options
        self.url = make_store(KIND, directory)
        self.port = free_port()
        self.started = 0
        self.serve()
        self.callers = []
        self.call = self.caller(self.port)

    def serve(self):
        self.started += 1
        self.server = Server(self.directory, self.url, "--listen", f"127.0.0.1:{self.port}", *self.options,
                             name=f"serve-{self.started}")
        self.client = self.server.client

    def worker(self, **environment):
        self.started += 1
        return start_worker(self.directory, f"worker-{self.started}", self.port, **environment)

    def caller(self, port):
        self.callers.append(Caller(port))
        return self.callers[-1]

    def end(self, run):
        found = wait_until(lambda: [one for one in [self.client.get(f"/v1/runs/{run}?wait=20s").json]
                                    if one["status"] in FINISHED], f"{run} ends")
        return found[0]


def case(function, *options):
    def play(directory):
        scene = Scene(directory, *options)
        try:
            function(scene)
            scene.server.stop()
        finally:
            scene.server.process.kill()
            for caller in scene.callers:
                caller.close()

    RUNNER.case(function.__name__, play)
    return function


def case_of_stub(function):
    """For answers that no server gives when it is asked to."""
    def play(directory):
        need_language()
        function(directory)

    RUNNER.case(function.__name__, play)


# ---- Calling ----

@case
def what_the_api_has_can_be_called(scene):
    scene.client.put("/v1/workflows/echo.v1", {})
    run = scene.call("trigger", "echo.v1", {"n": 1}, key="a/b ü", delay=3600)
    found = scene.call("get_by_key", "echo.v1", "a/b ü")
    check((found["id"], found["input"]) == (run, {"n": 1}), found)
    many = scene.call("trigger_many", [{"workflow": "echo.v1", "delay": 1800.5}, {"workflow": "echo.v1"}])
    now, later, far = (scene.client.get(f"/v1/runs/{id}").json["run_at"] for id in (many[1]["id"], many[0]["id"], run))
    check(now < later < far, "the delays are kept")
    check(scene.call("delete", run)["deleted_at"] and scene.call("restore", run)["deleted_at"] is None, "there again")
    fork = scene.call("fork", run, None, input={"n": 2}, key="c")
    check(scene.call("get", fork)["input"] == {"n": 2} and scene.call("steps", fork) == [], "a fork")
    check([one["id"] for one in scene.call("list", workflow="echo.v1", status=["pending"], limit=1)][:2] ==
          [fork, many[1]["id"]], "page by page")
    check(scene.call("get_by_key", "echo.v1", "none") == {"refused": "not_found"}, "no such key")


@case
def people_are_asked_and_answer(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/question.v1").status == 200, "the worker has joined")
    run = scene.call("trigger", "question.v1", 7)
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["status"] == "waiting", "it waits")
    worker.kill()
    task, = scene.call("tasks", role="boss", by_due=True)
    check((task["name"], task["payload"], task["roles"], task["form"]) == ("Approve it", {"sum": 7}, ["boss"], {"f": 1}), task)
    check(task["due_at"] and scene.call("tasks", overdue=True) == [], task)
    answered = scene.call("complete_task", task["id"], "approved", {"note": "fine"})
    check((answered["status"], answered["assignee"]) == ("completed", "kim"), answered)
    worker = scene.worker()
    first, second = scene.end(run)["result"]
    check(first == {"task": task["id"], "outcome": "approved", "result": {"note": "fine"}, "by": "kim"}, first)
    check(second == "no answer came in time", second)
    other, = (one for one in scene.call("tasks", run=run, status="all") if one["id"] != task["id"])
    check((other["status"], other["outcome"]) == ("cancelled", "withdrawn"), other)
    steps = [(step["name"], step["op"], step["status"]) for step in scene.call("steps", run)]
    check(steps == [("approval", "ask", "succeeded"), ("approval#2", "ask", "failed")], steps)
    check(worker.stop() == 0, worker.said())


SCRIPT = """#!/bin/sh
set -e
holdfast ask approval '{"sum": 7}' --title 'Approve it' --role boss >first
holdfast ask approval --timeout 1h >second
"""


@case
def a_question_of_a_script_is_answered_to_a_worker_that_took_over(scene):
    script = scene.directory / "question.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    (scene.directory / "holdfast").symlink_to(os.environ["HOLDFAST"])
    scene.client.put("/v1/workflows/question.v1", {})
    local = Process(scene.directory, "local", [os.environ["HOLDFAST"], "--store", scene.url, "worker", "--exec",
                                               f"question.v1={script}"], cwd=scene.directory,
                    env={**os.environ, "PATH": f"{scene.directory}:{os.environ['PATH']}"})
    run = scene.call("trigger", "question.v1", 7)
    task = wait_until(lambda: scene.client.get("/v1/tasks").json["items"], "the script asks")[0]
    check(local.stop() == 0, local.said())
    worker = scene.worker()
    scene.call("complete_task", task["id"], "approved")
    check(scene.end(run)["result"][0]["outcome"] == "approved", scene.end(run))
    check(worker.stop() == 0, worker.said())


@case
def children_stand_among_the_runs_of_their_time(scene):
    scene.client.put("/v1/workflows/leaf.v1", {})
    before = scene.client.trigger("leaf.v1")
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/mother.v1").status == 200, "the worker has joined")
    children = scene.end(scene.client.trigger("mother.v1"))["result"]
    after = scene.client.trigger("leaf.v1")
    found = [one["id"] for one in scene.call("list", workflow="leaf.v1")]
    check(found == [after, *reversed(children), before], f"{found} is not {after}, {children} reversed, {before}")
    check(all(id[14] == "7" and id[19] in "89ab" for id in children), children)
    late = scene.client.get(f"/v1/runs/{children[2]}").json
    check(late["run_at"] > late["created_at"], late)
    check(worker.stop() == 0, worker.said())


# ---- What a worker survives ----

@case
def a_sleep_until_a_moment_between_two_microseconds_ends(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/until.v1").status == 200, "the worker has joined")
    end = scene.end(scene.client.trigger("until.v1"))
    check((end["status"], end["result"]) == ("succeeded", "slept"), end)
    check(worker.stop() == 0, worker.said())


@case
def a_worker_with_very_many_files_open_works(scene):
    worker = scene.worker(FILES="1100")
    wait_until(lambda: scene.client.get("/v1/workflows/mother.v1").status == 200, "the worker has joined")
    for _ in range(2):
        check(scene.end(scene.client.trigger("child.v1", input=4))["result"] == 8, worker.said())
    check(worker.stop() == 0, worker.said())


@case
def a_worker_goes_on_after_what_nobody_thought_of(scene):
    scene.client.put("/v1/workflows/slow.v1", {"lease": "3s"})
    run = scene.client.trigger("slow.v1")
    worker = scene.worker(STUMBLE="1", LIMIT="60")
    log = scene.directory / "log"
    wait_until(lambda: log.exists() and f"{run} began" in log.read_text(), "it claims all the same")
    wait_until(lambda: "stumbled over /work/heartbeat" in worker.said(), "a heartbeat fails, too")
    scene.client.post(f"/v1/runs/{run}/cancel")
    wait_until(lambda: f"{run} cancelled" in log.read_text(), "the next heartbeat hears of the cancel")
    check("stumbled over /work/claim" in worker.said(), worker.said())
    check(worker.stop() == 0, worker.said())


# ---- A server that goes away ----

@case
def a_wait_outlives_the_server(scene):
    scene.client.put("/v1/workflows/child.v1", {})
    run = scene.client.trigger("child.v1", input=4)
    gate = Gate(scene.port)
    caller = scene.caller(gate.port)
    caller.send("wait", run, 600)
    wait_until(lambda: gate.asked, "it waits")
    scene.server.process.kill()
    wait_until(lambda: gate.refused >= 2 or caller.says(), "it asks again")
    scene.serve()
    worker = scene.worker()
    found = caller.read()
    check(found.get("result") == 8, found)
    check(worker.stop() == 0, worker.said())


@case
def a_wait_for_a_server_that_stays_away_ends_in_time(scene):
    scene.client.put("/v1/workflows/child.v1", {})
    run = scene.client.trigger("child.v1", input=4)
    check(scene.call("wait", run, 0.1) == {"refused": "timeout"}, "with a server")
    scene.server.stop()
    check(scene.call("wait", run, 0.5) == {"refused": "timeout"}, "without one")
    check(scene.call("get", run) == {"refused": "unavailable"}, "what is no waiting is told at once")
    scene.serve()


@case
def events_are_followed_across_a_restart(scene):
    scene.client.put("/v1/workflows/order.v1", {})
    run = scene.client.trigger("order.v1", input={"nap": 0, "kids": 1})
    worker = scene.worker()
    gate = Gate(scene.port)
    caller = scene.caller(gate.port)
    caller.send("events", run)
    events = [caller.read()]
    while events[-1]["name"] != "waiting":
        events.append(caller.read())
    scene.server.stop()
    wait_until(lambda: gate.refused >= 1, "it asks again")
    scene.serve()
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go"})
    events += caller.read_all()
    check([event["seq"] for event in events] == list(range(1, len(events) + 1)), events)
    check(events[-1]["name"] == "succeeded", events[-1])
    check(worker.stop() == 0, worker.said())


@case_of_stub
def streams_that_end_early_cost_no_events(_):
    """Each has one line and ends with its server; the run ends meanwhile."""
    opened = []

    def answer(path, headers, _body):
        if not path.endswith("/events"):
            return 200, {"status": "succeeded"}
        after = int(headers["Last-Event-ID"])
        opened.append(after)
        return 200, f'data: {{"seq": {after + 1}}}\n\n'.encode() if after < 3 else b":\n\n"

    caller = Caller(Stub(answer).port)
    caller.send("events", "r")
    events = caller.read_all()
    caller.close()
    check(events == [{"seq": 1}, {"seq": 2}, {"seq": 3}] and opened == [0, 1, 2, 3], f"{events}, {opened}")


# ---- Heartbeats ----

class Foreman:
    """Gives out so many runs, and hears the heartbeats. The first `silent` of these get no answer."""

    def __init__(self, runs, lease_us, silent=0):
        self.left, self.lease_us, self.silent = runs, lease_us, silent
        self.beats = []    # ports of the callers
        self.kept = set()  # ids of runs

    def answer(self, path, headers, body):
        if path.endswith("/work/claim"):
            return 200, {"items": [self.claim() for _ in range(min(self.left, body["limit"]))]}
        if not path.endswith("/work/heartbeat"):
            return 204, None
        self.beats.append(headers["port"])
        if len(self.beats) <= self.silent:
            return None
        if len(body["runs"]) > 1000:
            return 413, {"type": "urn:holdfast:problem:too_large"}
        self.kept.update(run["id"] for run in body["runs"])
        return 200, {"items": [{"code": "ok"} for _ in body["runs"]]}

    def claim(self):
        self.left -= 1
        run = {"id": f"r{self.left}", "workflow": "stay.v1", "key": None, "attempt": 1, "max_attempts": 3, "version": 1,
               "input": None}
        return {"run": run, "lease_us": self.lease_us, "deadline_us": 0, "seen_us": 1, "seen_position": 0, "mail": [],
                "steps": [], "retried_seq": 0}


@case_of_stub
def a_heartbeat_that_gets_no_answer_is_followed_by_another(directory):
    foreman = Foreman(1, 3_000_000, silent=1)
    worker = start_worker(directory, "worker", Stub(foreman.answer).port, HANDS="1", TIMEOUT="900")
    wait_until(lambda: foreman.kept, "the run is kept")
    check(foreman.beats[0] != foreman.beats[1], "over another connection")
    worker.kill()


@case_of_stub
def more_runs_than_a_heartbeat_may_name_are_kept(directory):
    foreman = Foreman(1001, 6_000_000)
    worker = start_worker(directory, "worker", Stub(foreman.answer).port, HANDS="1001")
    wait_until(lambda: len(foreman.kept) == 1001, "all are kept")
    worker.kill()


# ---- What went wrong ----

@case
def a_failure_is_told_with_its_trace(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/mother.v1").status == 200, "the worker has joined")
    runs = {word: scene.client.trigger("broken.v1", input=word, max_attempts=1) for word in ("here", "step", "long", "bytes")}
    ends = {word: scene.end(run) for word, run in runs.items()}
    for word, end in ends.items():
        error = end["error"]
        check((end["error_code"], error["code"], error["attempt"], error["message"]) ==
              (end["error_code"], end["error_code"], 1, end["last_error"]), error)
        check(0 < len(error["trace"]) <= 8000, f"{word}: {len(error['trace'])}")
        check(runs[word] in worker.said(), f"{word}: the log names the run")
    check(ends["here"]["last_error"].endswith("Error: oops") and DIG in ends["here"]["error"]["trace"], ends["here"])
    check(ends["step"]["error_code"] == {"python": "ValueError", "node": "RangeError"}[LANGUAGE] and DIG in ends["step"]["error"]["trace"], ends["step"])
    check("a\\0b" in ends["bytes"]["last_error"] and "c" in ends["bytes"]["error"]["trace"], ends["bytes"])
    said = worker.said()
    check(said.count(DIG) >= 4 and f"{runs['step']}, step \"dig\" failed in attempt 1" in said, said)
    check(DIG in scene.server.program("get", runs["here"]).stdout, "for people")
    check(worker.stop() == 0, worker.said())


def a_trace_that_is_too_much_is_left_out(scene):
    worker = scene.worker()
    wait_until(lambda: scene.client.get("/v1/workflows/mother.v1").status == 200, "the worker has joined")
    end = scene.end(scene.client.trigger("broken.v1", input="long", max_attempts=1))
    check(end["status"] == "failed" and "trace" not in end["error"], end)
    check(worker.stop() == 0, worker.said())


case(a_trace_that_is_too_much_is_left_out, "--max-payload", "3000")


# ---- A worker that is not let in ----

def make_token(scene, role, tenant="default"):
    return run_program("--store", scene.url, "--tenant", tenant, "token", "create", role, "--role", role).stdout.strip()


def ends_refused(scene, worker, *words):
    check(worker.wait(120) != 0, "a worker that is refused says so with its status")
    for word in (f"http://127.0.0.1:{scene.port}", *words):
        check(word in worker.said(), f"{word} is not in {worker.said()}")


@case
def a_worker_that_is_not_let_in_ends(scene):
    secret = make_token(scene, "read")
    ends_refused(scene, scene.worker(TOKEN="hf_wrong"), "401", "the token is not accepted")
    ends_refused(scene, scene.worker(), "401", "send a token")
    ends_refused(scene, scene.worker(TOKEN=secret), "403", "the token's roles do not allow this: it needs the role work")


def refusals(scene):
    return [line["path"] for line in scene.server.log() if line["status"] == 401]


SHUT_OUT = "does not let the worker in any more, it tries on: the token is not accepted (401 bad_token)"


@case
def a_worker_outlives_that_its_tenant_is_disabled(scene):
    run_program("--store", scene.url, "tenant", "create", "acme")
    root, admin = (Client(scene.port, {"Authorization": f"Bearer {make_token(scene, role, tenant)}"})
                   for role, tenant in (("root", "default"), ("admin", "acme")))
    made = admin.post("/v1/tokens", {"name": "w", "roles": ["work"]}).json
    for workflow, lease in (("slow.v1", "3s"), ("held.v1", "1h")):
        admin.put(f"/v1/workflows/{workflow}", {"lease": lease})
    slow, held = admin.trigger("slow.v1"), admin.trigger("held.v1")
    worker, log = scene.worker(TOKEN=made["secret"], LIMIT="0.5"), scene.directory / "log"
    wait_until(lambda: log.exists() and {f"{slow} began", f"{held} began"} <= set(log.read_text().splitlines()), "it works")

    check(root.post("/v1/tenants/acme/disable").status == 204, "disabled")
    (scene.directory / "log.go").touch()
    wait_until(lambda: {"/v1/work/claim", "/v1/work/heartbeat", f"/v1/work/runs/{held}/commit"} <= {*refusals(scene)} and
               len(refusals(scene)) > 5, "it is refused all that it asks for")
    check(1 <= worker.said().count(SHUT_OUT) <= 2, f"said once, or twice if an answer overtook another: {worker.said()}")

    check(root.post("/v1/tenants/acme/enable").status == 204, "enabled")
    child = admin.trigger("child.v1", input=4)
    for run, result in ((held, 1), (child, 8)):
        end = wait_until(lambda id=run: [one for one in [admin.get(f"/v1/runs/{id}").json] if one["status"] in FINISHED],
                         f"{run} ends: {worker.said()}")[0]
        check((end["status"], end["result"], end["attempt"]) == ("succeeded", result, 1), end)
    admin.post(f"/v1/runs/{slow}/cancel")
    wait_until(lambda: f"{slow} cancelled" in log.read_text(), "it hears by a heartbeat")
    check("lets the worker in again" in worker.said(), worker.said())

    slow = admin.trigger("slow.v1")
    wait_until(lambda: f"{slow} began" in log.read_text(), "it works again")
    check(admin.delete(f"/v1/tokens/{made['id']}").status == 204, "a token that is revoked")
    said = worker.said().count(SHUT_OUT)
    wait_until(lambda: worker.said().count(SHUT_OUT) > said, "is the same to the worker")
    check(worker.stop() == 0, worker.said())
    for client in (root, admin):
        client.close()


RUNNER.finish()

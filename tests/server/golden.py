#!/usr/bin/env python3
"""What durable functions remember is the same in C, Python (with and without asyncio) and JavaScript, and each goes on with what
another began: scenes with the same handler in all of them (tests/golden), and what the journal of each says in the end.
usage: golden.py STORE [--show]: what each language recorded, as JSON.
B8, C1, C2, C3, C4, C5.

A golden file is {"scene", "input", "turns", "end"}. A turn has "lines": what is recorded, [name, status, data], or ["told",
name, data]; and "end": how it ends. What it waited for comes before it: "mail" (signals), "answer" (to a person's
task), "resume", "children" or the "clock", which need nobody. "alone": false where the handler that ends a run does something
else than the one that began it. Times are "time", ids are numbered, traces are left out."""

import json
import os
import pathlib
import re
import signal
import sys

from scene import Process, Server, check, make_store, wait_until
from processes import need_node
from runner import Runner

RUNNER = Runner(sys.argv)
HERE = pathlib.Path(__file__).resolve().parent.parent / "golden"
PROGRAMS = {"c": [os.environ["HOLDFAST_GOLDEN"]], "python": [sys.executable, HERE / "worker.py"],
            "asyncio": [sys.executable, HERE / "worker.py"], "node": ["node", HERE / "worker.mjs"]}
ENVIRONMENTS = {"asyncio": {"ASYNC": "1"}}
NOBODY = "nobody"  # has begun it: one language does it all
SCENES = {path.stem: json.loads(path.read_text()) for path in sorted(HERE.glob("*.json"))}
ENDED = ("succeeded", "failed", "cancelled")
TIMES = ("started", "finished", "until", "deferred", "delay_us")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Reader:
    """Makes what two runs recorded comparable."""

    def __init__(self):
        self.known = {}  # what was remembered -> its word

    def read(self, value):
        if isinstance(value, dict):
            return {name: "time" if name in TIMES else self.read(part) for name, part in value.items() if name != "trace"}
        if isinstance(value, list):
            return [self.read(part) for part in value]
        if isinstance(value, str) and UUID.fullmatch(value):
            return self.known.setdefault(value, f"id {len(self.known) + 1}")
        if isinstance(value, str):
            return value.replace("hf_version", "ctx.version")  # what a misfit advises is a name of the language
        return value if isinstance(value, bool) or value is None else self.known.get(value, value)

    def line(self, event):
        data = event["data"]
        if event["kind"] == "domain":
            return ["told", event["name"], self.read(data)]
        if data["op"] in ("now", "random"):
            value = data["output"]
            value = (int(value, 16) >> 11) / 2**53 if data["op"] == "random" else value
            self.known[value] = data["op"]
            data = {**data, "output": value}
        return [event["step"], event["name"], self.read(data)]

    def turns(self, events):
        turns = []
        for event in events:
            if event["kind"] == "lifecycle" and event["name"] == "started":
                turns.append({"lines": []})
            elif event["kind"] in ("step", "domain"):
                turns[-1]["lines"].append(self.line(event))
            elif event["kind"] == "lifecycle" and turns and "end" not in turns[-1]:
                turns[-1]["end"] = [event["name"], self.read(event["data"])]
        return [turn for turn in turns if not is_idle(turn)]

    def end(self, run):
        members = ("status", "result", "error_code", "last_error", "error", "state")
        return {name: self.read(run[name]) for name in members if run[name] is not None}


def is_idle(turn):
    """Woken by mail that was for nobody: how often that is depends on when it came."""
    return not turn["lines"] and turn.get("end", [None])[0] == "waiting"


def pattern(scene, begun_by, ended_by):
    return f"{scene}={scene}.{begun_by}.{ended_by}"


class Stage:
    def __init__(self, directory):
        need_node()
        self.directory = directory
        self.gate = directory / "gate"
        self.store = make_store(RUNNER_KIND, directory)
        self.server = Server(directory, self.store)
        self.client = self.server.client
        self.runs = {}  # (scene, begun by, ended by) -> id
        for name in ("kid.v1", "idle.v1"):
            self.create(name)

    def create(self, workflow):
        answer = self.client.put(f"/v1/workflows/{workflow}", {"lease": "30s", "retry_base": "50ms", "fit_within": "0s"})
        check(answer.status == 200, answer.text)

    def worker(self, language, name, gate, patterns):
        where = self.store if language == "c" else f"http://127.0.0.1:{self.server.port}"
        return Process(self.directory, name, [*PROGRAMS[language], where, name, gate, *patterns],
                       env={**os.environ, **ENVIRONMENTS.get(language, {})})

    def has_joined(self, worker):
        check(worker.alive(), worker.said())
        names = [one["name"] for one in self.client.get("/v1/workers").json["items"]]
        return worker.name in names or f"default/{worker.name}" in names

    def trigger(self, scene, begun_by, ended_by):
        workflow = f"{scene}.{begun_by}.{ended_by}"
        self.create(workflow)
        self.runs[scene, begun_by, ended_by] = self.client.trigger(workflow, input=SCENES[scene].get("input"))

    def state(self, run):
        return self.client.get(f"/v1/runs/{run}").json

    def events(self, run):
        return self.client.get(f"/v1/runs/{run}/events?limit=1000").json["items"]

    def begin(self):
        """The first turn of each run is played by workers that leave after it."""
        begins = [self.worker(language, f"begins-{language}", self.gate,
                              [f"{scene}={scene}.{language}.*" for scene in SCENES]) for language in PROGRAMS]
        for language, worker in zip(PROGRAMS, begins):
            wait_until(lambda one=worker: self.has_joined(one), f"{worker.name} has joined")
            mine = [run for (_, begun_by, _), run in self.runs.items() if begun_by == language]
            wait_until(lambda one=worker, runs=mine: all(f"began {run}" in one.said() for run in runs), "all have begun")
            worker.send(signal.SIGTERM)
        for worker in begins:
            wait_until(lambda one=worker: "leaves" in one.said() or not self.has_joined(one), f"{worker.name} leaves")
        self.gate.touch()
        for worker in begins:
            check(worker.wait() == 0, worker.said())

    def bring(self, run, turn):
        """What the run waits for; nothing where that comes by itself."""
        if self.state(run)["status"] in ENDED:  # too early, as its history will say
            return
        for mail in turn.get("mail", []):
            answer = self.client.post(f"/v1/runs/{run}/signals", mail)
            check(answer.status in (200, 201, 202), answer.text)
        if "answer" in turn:
            task = self.client.get(f"/v1/tasks?run={run}").json["items"][0]
            check({name: task[name] for name in turn["asks"]} == turn["asks"], task)
            check(self.client.post(f"/v1/tasks/{task['id']}/complete", turn["answer"]).status == 200, "the task is completed")
        if "resume" in turn:
            check(self.client.post(f"/v1/runs/{run}/resume").status == 200, "the run is resumed")

    def bring_rest(self, run, turns, first):
        for number in range(first, len(turns)):
            if turns[number].keys() & {"mail", "answer", "resume"}:
                wait_until(lambda: self.stands(run, number), f"{run} has had {number} turns")
                self.bring(run, turns[number])

    def stands(self, run, number):
        state = self.state(run)
        turns = Reader().turns(self.events(run))
        return state["status"] in ENDED or (len(turns) >= number and "end" in turns[number - 1])

    def finish(self):
        return [self.worker(language, f"ends-{language}", "-",
                            ["kid=kid.v1"] + [pattern(scene, begun_by, language) for scene in SCENES
                                              for begun_by in (*PROGRAMS, NOBODY)]) for language in PROGRAMS]

    def found(self, run):
        state = wait_until(lambda: [one for one in [self.client.get(f"/v1/runs/{run}?wait=20s").json]
                                    if one["status"] in ENDED], f"{run} ends")[0]
        reader = Reader()
        return {"turns": reader.turns(self.events(run)), "end": reader.end(state)}


def expected(golden):
    turns = [{"lines": turn["lines"], "end": turn["end"]} for turn in golden["turns"]]
    return {"turns": turns, "end": golden["end"]}


def first_difference(found, wanted, at="$"):
    if isinstance(found, dict) and isinstance(wanted, dict) and found.keys() == wanted.keys():
        pairs = [(found[name], wanted[name], f"{at}.{name}") for name in wanted]
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        pairs = [(one, other, f"{at}[{i}]") for i, (one, other) in enumerate(zip(found, wanted))]
    else:
        return None if found == wanted else f"{at}: {json.dumps(found)} instead of {json.dumps(wanted)}"
    return next(filter(None, (first_difference(*pair) for pair in pairs)), None)


def play(directory):
    stage = Stage(directory)
    try:
        for scene, golden in SCENES.items():
            for ended_by in PROGRAMS:
                for begun_by in PROGRAMS:
                    stage.trigger(scene, begun_by, ended_by)
        stage.begin()
        for scene, golden in SCENES.items():
            for ended_by in PROGRAMS if golden.get("alone", True) else ():
                stage.trigger(scene, NOBODY, ended_by)
        workers = stage.finish()
        for (scene, _, _), run in stage.runs.items():
            stage.bring_rest(run, SCENES[scene]["turns"], 1)
        found = {who: stage.found(run) for who, run in stage.runs.items()}
        for worker in workers:
            check(worker.stop() == 0, worker.said())
        stage.server.stop()
        return found
    finally:
        stage.server.process.kill()


def name_of(scene, begun_by, ended_by):
    if begun_by == NOBODY:
        return f"{scene}: {ended_by} records what all do"
    return f"{scene}: {ended_by} goes on with what {begun_by} began"


RUNNER_KIND = sys.argv[1]
HISTORIES = {}
RUNNER.case("all scenes are played by all languages", lambda directory: HISTORIES.update(play(directory)))
if "--show" in sys.argv:
    print(json.dumps({f"{scene} {ended_by}": history for (scene, begun_by, ended_by), history in HISTORIES.items()
                      if begun_by == ended_by}, ensure_ascii=False))
for who, history in HISTORIES.items():
    RUNNER.case(name_of(*who), lambda _, who=who, history=history: check(
        history == expected(SCENES[who[0]]), first_difference(history, expected(SCENES[who[0]]))))
RUNNER.finish()

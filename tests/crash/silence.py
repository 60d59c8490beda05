#!/usr/bin/env python3
"""A PostgreSQL server that is connected and says nothing: its processes are stopped, or the line to it swallows
everything. Nobody waits without a limit, and afterwards all goes on: nothing is lost, nothing is done twice. F8.

usage: silence.py [--only NAME]
"""

import http.client
import json
import os
import re
import signal
import sys
import threading
import time

from processes import PATIENCE, PROGRAM, check, wait_until
from proxy import Proxy
from runner import Runner
from scene import HELD, Scene
from stores import Postgres

LIMITS = "answer_timeout=2s&connect_timeout=2"
PATIENT = 90  # s; the limits above, an engine's own patience and much reserve: far from "without a limit"


class Line:
    """The line between the programs and the server swallows everything, and forgets its connections or not."""

    def __init__(self, directory, store, forget):
        self.proxy = Proxy(directory, store)
        self.forget = forget
        store.url = f"postgres://postgres@/postgres?host={directory}&port={store.port}&{LIMITS}"

    def begin(self):
        self.proxy.fall_silent()

    def end(self):
        self.proxy.speak(forget=self.forget)


class Stopped:
    """The server's processes are stopped: all of them, or those that serve somebody."""

    def __init__(self, store, everything):
        self.store = store
        self.everything = everything
        self.pids = []
        store.url = f"{store.url}&{LIMITS}"

    def begin(self):
        self.pids = self.store.backends() + ([self.store.process.pid] if self.everything else [])
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    def end(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass


def silences(directory, store):
    return {"a line that keeps its connections": lambda: Line(directory, store, forget=False),
            "a line that forgets its connections": lambda: Line(directory, store, forget=True),
            "stopped backends": lambda: Stopped(store, everything=False),
            "a stopped server": lambda: Stopped(store, everything=True)}


class World:
    """A scene whose server can fall silent."""

    def __init__(self, directory, how):
        store = Postgres(directory, tables=True)
        self.silence = silences(directory, store)[how]()
        self.scene = Scene(directory, "postgres", store)

    def serve(self):
        child = self.scene.spawn("serve", [PROGRAM, "--store", self.scene.store.url, "--json", "serve", "--no-worker",
                                           "--listen", "127.0.0.1:0"])
        found = wait_until(lambda: re.search(r'"url":"http://[^"]*:(\d+)"', child.said()), "the server listens")
        return int(found.group(1))

    def __enter__(self):
        self.scene.__enter__()
        return self

    def __exit__(self, *what):
        self.silence.end()
        self.scene.__exit__(*what)


def ask(port, method, path, body=None):
    """Status, headers and JSON of an answer that comes within the limit."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT * PATIENCE)
    connection.request(method, path, json.dumps(body) if body else None,
                       {"Content-Type": "application/json"} if body else {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, text


def check_refused(answer, what):
    status, headers, text = answer
    check(status == 503, f"{what}: {status} {text[:300]}")
    check(headers["Content-Type"] == "application/problem+json", f"{what}: {headers['Content-Type']}")
    check(headers["Retry-After"], f"{what}: it is not told when to come again")


QUESTIONS = [("GET", "/v1/runs", None), ("GET", "/readyz", None), ("GET", "/v1/workflows", None),
             ("POST", "/v1/runs", {"workflow": "crash.work", "key": "asked-before", "input": {"ms": 3}}),
             ("POST", "/v1/runs", {"workflow": "crash.work", "key": "refused", "input": {"ms": 3}})]


def requests_are_refused_in_time(directory, how):
    """A crowd of them, more than the server has hands, and then a late one, which is refused without waiting long."""
    with World(directory, how) as world:
        port = world.serve()
        check(ask(port, *QUESTIONS[3])[0] == 201, "the run is accepted")
        check(ask(port, *QUESTIONS[0])[0] == 200, "runs are listed")
        answers = []
        world.silence.begin()
        crowd = [threading.Thread(target=lambda q=q: answers.append((q, ask(port, *q)))) for q in QUESTIONS * 8]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        check(len(answers) == len(crowd), f"only {len(answers)} of {len(crowd)} were answered within {PATIENT} s")
        if how != "stopped backends":  # there new connections are served
            for question, answer in answers:
                check_refused(answer, question)
        check(ask(port, "GET", "/healthz")[0] == 200, "the server itself lives")
        world.silence.end()
        wait_until(lambda: ask(port, "GET", "/readyz")[0] == 200, "the server is ready again")
        for question in QUESTIONS:
            check(ask(port, *question)[0] in (200, 201), f"{question} is answered again")
        runs = json.loads(ask(port, "GET", "/v1/runs")[2])["items"]
        check(sorted(run["key"] for run in runs) == ["asked-before", "refused"], f"there are other runs: {runs}")


def a_worker_gives_up_its_connection_and_goes_on(directory, how):
    """Handlers that end meanwhile keep their results: none is begun again, all are told."""
    with World(directory, how) as world:
        scene = world.scene
        worker = scene.worker(threads=4)
        for number in range(4):
            scene.trigger_one("crash.long", f"held-{number}", HELD)
        scene.held(4)  # what is claimed without an answer is begun again
        world.silence.begin()
        scene.let_go()
        wait_until(lambda: len(scene.lines("end")) == 4, "the handlers have ended")
        if how == "stopped backends":
            time.sleep(1)
        else:
            wait_until(lambda: scene.lines("store_lost"), "the worker says that the store is away")
        world.silence.end()
        scene.trigger_all("after", 50)
        scene.await_all_finished()
        check(worker.alive(), f"the worker ended: {worker.said()}")
        starts = [run for _, run, _ in scene.lines("start")]
        for key, run in scene.accepted().items():
            check(not key.startswith("held") or starts.count(run) == 1, f"run {run} was begun twice")
        scene.audit()


def main():
    runner = Runner(sys.argv[1:])
    for how in ("a line that keeps its connections", "a line that forgets its connections", "stopped backends",
                "a stopped server"):
        for test in (requests_are_refused_in_time, a_worker_gives_up_its_connection_and_goes_on):
            runner.case(f"{test.__name__.replace('_', ' ')}: {how}", test, how)
    runner.finish()


if __name__ == "__main__":
    main()

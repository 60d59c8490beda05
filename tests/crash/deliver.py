#!/usr/bin/env python3
"""Events reach their receivers: in order per run, at least once, whatever fails. F3.

usage: deliver.py sqlite|postgres [--quick] [--seed N]

Runs of a script emit numbered events. Receivers fail at random, are dead, hang, answer without end; workers, which
deliver, are killed with SIGKILL and started again.
"""

import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import time

from processes import PROGRAM, Process, Skipped, check, need_node, run_program, wait_until
from receiver import Receiver
from runner import Runner
from scene import Scene

EACH = 4  # events of a run whose input does not say how many

SCRIPT = """#!/bin/sh
last=$(cat)
[ "$last" != null ] || last=4
for n in $(seq "$last"); do holdfast emit "shop.event.$n" "{\\"n\\":$n}" || exit 1; done
"""


class Stage:
    """A scene with a script that emits, and workers that run it and deliver."""

    def __init__(self, scene, workers=2):
        self.scene = scene
        binaries = scene.directory / "bin"
        binaries.mkdir()
        (binaries / "holdfast").symlink_to(PROGRAM)
        os.environ["PATH"] = f"{binaries}:{os.environ['PATH']}"
        script = scene.directory / "script"
        script.write_text(SCRIPT, encoding="utf-8")
        script.chmod(0o755)
        scene.define("shop.order", lease="1s")
        self.workers = [self.hire() for _ in range(workers)]

    def hire(self):
        return self.scene.exec_worker(self.scene.directory / "script", "--threads", "8", pattern="shop.*")

    def program(self, *argv, **options):
        return run_program(*argv, "--store", self.scene.store.url, **options)

    def subscribe(self, name, url, *options):
        self.program("subscription", "create", name, "--url", url, *options)

    def subscription(self, name):
        return json.loads(self.program("subscription", "show", name, "--json").stdout)

    def emit(self, count):
        return [self.scene.trigger_one("shop.order", f"o{self.scene.made}-{i}") for i in range(count)]

    def emit_parked(self, name, *counts):
        """A run for each number of events, one after the other; the subscription is told of them when all are there."""
        self.program("subscription", "park", name)
        for made, count in enumerate(counts, 1):
            self.scene.trigger_one("shop.order", f"p{made}", str(count))
            wait_until(lambda n=made: self.scene.succeeded() == n, "the run has emitted its events")
        self.program("subscription", "resume", name)

    def short_lease(self):
        """So that a killed dispatcher is missed soon. It has the lease of its workflow, which the engine made."""
        sql = "UPDATE {workflow} SET lease = 1000000 WHERE name = 'holdfast.dispatch'"
        if self.scene.store.kind == "postgres":
            self.scene.store.ask(sql)
            return
        connection = sqlite3.connect(self.scene.store.path, timeout=60)
        with connection:
            connection.execute(sql.format(workflow="workflow"))
        connection.close()

    def await_published(self, runs, seconds=90):
        """The runs have succeeded, and all that they emitted has arrived."""
        wait_until(lambda: self.scene.succeeded() >= runs, f"{runs} runs have succeeded", seconds)
        wait_until(lambda: not self.program("outbox", "list", "--undelivered", "--json", "--quiet").stdout,
                   "all events are published", seconds)

    def dismiss(self):
        for worker in self.workers:
            status = worker.stop()
            check(status == 0 and "Sanitizer" not in worker.said(), f"{worker.name} ended with {status}: {worker.said()}")


def first_times(numbers):
    return list(dict.fromkeys(numbers))


def order_is_kept_under_failures(directory, runner, kind):
    with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
        stage = Stage(scene)
        stage.subscribe("flaky", f"{receiver.url}/flaky", "--event", "shop.*", "--max-failures", 1000)
        runs = stage.emit(12 if runner.quick else 40)
        wait_until(lambda: len(receiver.taken["/flaky"]) >= len(runs) * EACH, "all events are taken", 120)
        stage.await_published(len(runs))
        found = receiver.by_run("/flaky")
        check(len(found) == len(runs), f"events of {len(found)} runs came, not {len(runs)}")
        for source, numbers in found.items():
            check(numbers == [1, 2, 3, 4], f"{source} was taken as {numbers}")
        stage.dismiss()
        runner.note(f"{receiver.tried['/flaky'] - len(runs) * EACH} attempts failed")


def killed_dispatchers_lose_nothing(directory, runner, kind):
    chance = random.Random(runner.seed)
    with Receiver(runner.seed, delay=0.01) as receiver, Scene(directory, kind) as scene:
        stage = Stage(scene)
        stage.subscribe("a", f"{receiver.url}/ok/a", "--event", "shop.*", "--max-failures", 1000)
        stage.subscribe("b", f"{receiver.url}/ok/b", "--event", "shop.*", "--max-failures", 1000)
        stage.short_lease()
        runs, kills, end = [], 0, time.monotonic() + (6 if runner.quick else 15)
        while time.monotonic() < end or kills < (5 if runner.quick else 20):
            runs += stage.emit(3)
            scene.made += 1
            slot = chance.randrange(len(stage.workers))
            stage.workers[slot].kill()
            stage.workers[slot] = stage.hire()
            kills += 1
        stage.await_published(len(runs), 120)
        twice = 0
        for path in ("/ok/a", "/ok/b"):
            found = receiver.by_run(path)
            check(len(found) == len(runs), f"{path}: events of {len(found)} runs came, not {len(runs)}")
            for source, numbers in found.items():
                check(first_times(numbers) == [1, 2, 3, 4], f"{path}: {source} was taken as {numbers}")
                twice += len(numbers) - EACH
        runner.note(f"seed {runner.seed}: {len(runs)} runs, {kills} workers killed, {twice} events came again")


def a_dead_endpoint_blocks_nobody(directory, runner, kind):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
            stage = Stage(scene, workers=1)
            stage.subscribe("dead", dead, "--event", "shop.*", "--max-failures", 2)
            stage.subscribe("live", f"{receiver.url}/ok/live", "--event", "shop.*")
            stage.subscribe("alerts", f"{receiver.url}/ok/alerts", "--event", "holdfast.*")
            stage.emit(3)
            wait_until(lambda: len(receiver.taken["/ok/live"]) == 12, "the live one gets its events")
            wait_until(lambda: stage.subscription("dead")["state"] == "parked", "the dead one is parked")
            wait_until(lambda: receiver.taken["/ok/alerts"], "the alert comes")
            alert = receiver.taken["/ok/alerts"][0]
            check(alert["type"] == "holdfast.subscription.parked" and alert["data"]["subscription"] == "dead",
                  f"the alert is {alert}")
            check(stage.subscription("dead")["pending"] == 12, "a parked subscription lost events")
            stage.program("subscription", "resume", "dead")
            wait_until(lambda: len(receiver.taken["/ok/alerts"]) == 2, "it is parked again, and told of")
            alert = receiver.taken["/ok/alerts"][1]
            check(alert["data"]["failures"] == 2, f"what failed before the resume counted: {alert}")
            stage.subscribe("dead", f"{receiver.url}/ok/dead", "--event", "shop.*")
            stage.program("subscription", "resume", "dead")
            stage.await_published(3)
            check(len(receiver.taken["/ok/dead"]) == 12, "what was kept back did not come after the resume")
            check(len(receiver.taken["/ok/alerts"]) == 2, "it was told of more than once")
            stage.dismiss()


def an_event_that_nobody_takes_holds_up_its_run_alone(directory, runner, kind):
    failures = 4  # in a row: that takes longer than the other runs need to come by
    with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
        stage = Stage(scene, workers=0)
        stage.subscribe("picky", f"{receiver.url}/picky", "--event", "shop.*", "--max-failures", failures)
        stage.emit(4)
        stage.workers.append(stage.hire())
        wait_until(lambda: scene.succeeded() >= 4, "the runs have succeeded")
        wait_until(lambda: stage.subscription("picky")["state"] == "parked", "it is parked in the end")
        taken = receiver.by_run("/picky")
        check(taken.pop(receiver.first) == [1], "later events of the run came before the one that was not taken")
        check(list(taken.values()) == [[1, 2, 3, 4]] * 3, f"other runs were held up: {taken}")
        check(stage.subscription("picky")["failures"] == failures, "its failures are not counted as they were")
        check(stage.subscription("picky")["pending"] == 3, "what was not taken is not kept")


def a_refused_run_holds_up_no_other_however_much_it_has_to_tell(directory, runner, kind):
    with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
        stage = Stage(scene, workers=1)
        stage.subscribe("stubborn", f"{receiver.url}/stubborn", "--event", "shop.*", "--max-failures", 1000)
        stage.emit_parked("stubborn", 25, 2, 1)
        wait_until(lambda: len(receiver.by_run("/stubborn")) == 2, "the other runs' events come")
        wait_until(lambda: stage.subscription("stubborn")["pending"] == 25, "and nothing else is ended")
        taken = receiver.by_run("/stubborn")
        check(receiver.first not in taken, f"the refused run was passed by: {taken}")
        check(sorted(taken.values()) == [[1], [1, 2]], f"not in order: {taken}")
        stage.dismiss()


def each_refusal_is_kept_with_its_own_event(directory, runner, kind):
    with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
        stage = Stage(scene, workers=1)
        stage.subscribe("unfair", f"{receiver.url}/unfair", "--event", "shop.*", "--max-failures", 1000)
        stage.emit_parked("unfair", 1, 1)

        def errors():
            lines = stage.program("outbox", "list", "--undelivered", "--json", "--quiet").stdout.splitlines()
            found = [json.loads(line) for line in lines]
            return {event["run"]: event["last_error"] for event in found if event["last_error"]}

        wait_until(lambda: len(errors()) == 2, "both have failed")
        for run, error in errors().items():
            status = "400" if receiver.first.endswith(run) else "404"
            check(status in error, f"what was answered with {status} is said to have failed so: {error}")


def hostile_receivers_do_no_harm(directory, runner, kind):
    with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
        stage = Stage(scene, workers=1)
        for name in ("hang", "early", "endless", "headers", "gone", "moved", "busy", "ok"):
            stage.subscribe(name, f"{receiver.url}/{name}", "--event", "shop.event.1")
        stage.emit(1)
        wait_until(lambda: receiver.taken["/ok"], "the good one gets its event")
        wait_until(lambda: stage.subscription("gone")["state"] == "parked", "410 parks at once")
        check(receiver.tried["/gone"] == 1, "410 was tried again")
        for name, why in (("early", "transfer closed"), ("headers", "too many headers"), ("moved", "redirects"),
                          ("hang", "timed out")):
            wait_until(lambda n=name, w=why: w in (stage.subscription(n)["last_error"] or ""),
                       f"{name} fails because of: {why}")
            check(stage.subscription(name)["state"] == "retrying", f"{name} is not retried")
        check(not receiver.taken["/ok/followed"], "a redirect was followed")
        wait_until(lambda: stage.subscription("endless")["pending"] == 0, "an endless body is cut off")
        wait_until(lambda: receiver.taken["/busy"], "the busy one gets its event")
        waited = receiver.came_again_at - receiver.refused_at
        check(waited > 4.5, f"Retry-After: 5 was answered after {waited} s")


def public_only_refuses_this_machine(directory, runner, kind):
    with Receiver(runner.seed) as receiver, Scene(directory, kind) as scene:
        run_program("subscription", "create", "s", "--url", f"{receiver.url}/ok", "--store", scene.store.url)
        os.environ["HOLDFAST_DISPATCH_PUBLIC_ONLY"] = "1"
        try:
            done = run_program("subscription", "test", "s", "--store", scene.store.url, expect=None)
        finally:
            del os.environ["HOLDFAST_DISPATCH_PUBLIC_ONLY"]
        check(done.returncode != 0 and "not sent to" in done.stderr, f"it was sent: {done.stdout}{done.stderr}")
        check(not receiver.taken, "it arrived")
        run_program("subscription", "test", "s", "--store", scene.store.url)
        check(len(receiver.taken["/ok"]) == 1, "the test event did not come")


def standard_libraries_understand_them(directory, _runner, kind):
    modules = os.environ.get("HOLDFAST_TEST_NODE_MODULES")
    if not modules or not os.path.isdir(modules):
        raise Skipped("HOLDFAST_TEST_NODE_MODULES names no directory with cloudevents and standardwebhooks")
    need_node()
    with Scene(directory, kind) as scene:
        stage = Stage(scene, workers=1)
        secrets, log = directory / "secrets.json", directory / "taken.jsonl"
        log.touch()
        here = os.path.dirname(os.path.abspath(__file__))
        node = Process(directory, "node", ["node", f"{here}/receiver.cjs", directory / "port", secrets, log],
                       env={**os.environ, "NODE_PATH": modules})
        scene.children.append(node)
        port = wait_until(lambda: (directory / "port").exists() and (directory / "port").read_text(), "node listens")
        made = {}
        for mode in ("structured", "binary"):
            done = stage.program("subscription", "create", mode, "--url", f"http://127.0.0.1:{port}/{mode}", "--mode",
                                 mode, "--event", "shop.*", "--json")
            made[mode] = json.loads(done.stdout)["secret"]
        secrets.write_text(json.dumps(made), encoding="ascii")
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        run = scene.trigger_one("shop.order", "k", "--subject", 'Käse "5%"', "--trace", trace)
        stage.await_published(1)
        taken = [json.loads(line) for line in log.read_text().splitlines()]
        check(len(taken) == 2 * EACH, f"{len(taken)} events were taken: {node.said()}")
        for event in taken:
            number = event["data"]["n"]
            check(event["verified"] and event["forged"] is False, f"its signature is not what it should be: {event}")
            check(event["type"] == f"shop.event.{number}" and event["source"] == f"/holdfast/default/shop.order/{run}",
                  f"its attributes are wrong: {event}")
            check(event["subject"] == 'Käse "5%"' and event["traceparent"] == trace, f"its context is wrong: {event}")
            check(event["id"] == event["webhook_id"] and event["datacontenttype"] == "application/json",
                  f"its ids differ: {event}")


def main():
    kind = sys.argv[1]
    runner = Runner(sys.argv[2:])
    for name, function in (
            ("order per run is kept while the receiver fails", order_is_kept_under_failures),
            ("killed dispatchers lose nothing and keep the order", killed_dispatchers_lose_nothing),
            ("a dead endpoint is parked and blocks nobody", a_dead_endpoint_blocks_nobody),
            ("an event that nobody takes holds up its run alone", an_event_that_nobody_takes_holds_up_its_run_alone),
            ("a refused run holds up no other, however much it has to tell",
             a_refused_run_holds_up_no_other_however_much_it_has_to_tell),
            ("each refusal is kept with its own event", each_refusal_is_kept_with_its_own_event),
            ("hostile receivers do no harm", hostile_receivers_do_no_harm),
            ("private addresses are refused where that is asked for", public_only_refuses_this_machine),
            ("public libraries verify and read both modes", standard_libraries_understand_them)):
        runner.case(f"{name}, on {kind}", function, runner, kind)
    runner.finish()


if __name__ == "__main__":
    main()

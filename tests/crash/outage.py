#!/usr/bin/env python3
"""The four outages: one node down, all nodes down, the database down, everything down. B2.

usage: outage.py sqlite|postgres [--quick] [--seed N] [--only NAME]

Whatever is down, work goes on as soon as it can, nothing that was accepted is lost, and nothing whose success was
recorded is done again. SQLite has no server: its database is down while another program keeps it locked.
"""

import sqlite3
import sys
import time

from processes import check, run_program, wait_until
from runner import Runner
from scene import HELD, QUICK, Scene

RUNS = 600


def some_but_not_all(scene, share=0.2):
    wait_until(lambda: scene.succeeded() >= RUNS * share, "the work has begun")


def one_node_down(directory, kind):
    with Scene(directory, kind) as scene:
        workers = [scene.worker(), scene.worker()]
        scene.trigger_all("a", RUNS)
        some_but_not_all(scene)
        workers[0].kill()
        scene.trigger_all("b", RUNS)
        scene.await_all_finished()
        check(workers[1].alive(), "the other node has ended too")
        check(scene.audit() == 2 * RUNS, "not all runs were accepted")


def all_nodes_down(directory, kind):
    with Scene(directory, kind) as scene:
        workers = [scene.worker(), scene.worker()]
        scene.trigger_all("a", RUNS)
        some_but_not_all(scene)
        for worker in workers:
            worker.kill()
        scene.trigger_all("b", RUNS)
        scene.trigger_one("crash.work", "timer", "--in", "500ms")
        time.sleep(1)
        scene.worker()
        scene.await_all_finished()
        check(scene.audit() == 2 * RUNS + 1, "not all runs were accepted")


class Locked:
    """Another program keeps SQLite's file locked for writing."""

    def __init__(self, store):
        self.connection = sqlite3.connect(store.path, timeout=60, isolation_level=None)
        self.connection.execute("BEGIN IMMEDIATE")

    def end(self):
        self.connection.execute("ROLLBACK")
        self.connection.close()


class ServerKilled:
    def __init__(self, store):
        self.store = store
        store.kill()

    def end(self):
        self.store.start()


def outage_of(store):
    return Locked(store) if store.kind == "sqlite" else ServerKilled(store)


def database_down(directory, kind):
    """A handler that ends meanwhile keeps its result and commits it afterwards: it is not begun again."""
    with Scene(directory, kind) as scene:
        workers = [scene.worker(threads=2), scene.worker(threads=2)]
        held = [scene.trigger_one("crash.long", f"held-{i}", HELD) for i in range(3)]
        scene.held(3)
        outage = outage_of(scene.store)
        scene.let_go()
        refused = run_program("trigger", "crash.work", "--store", scene.store.url, expect=5)
        check("unavailable" in refused.stderr or "another program" in refused.stderr or "connect" in refused.stderr,
              f"the error does not say what is wrong: {refused.stderr}")
        wait_until(lambda: len(scene.lines("end")) == 3, "the handlers have ended")
        wait_until(lambda: scene.lines("store_lost"), "a worker says that the store is away")
        check(all(worker.alive() for worker in workers), "a worker has given up")
        outage.end()
        scene.trigger_all("after", RUNS)
        scene.await_all_finished()
        starts = [run for _, run, _ in scene.lines("start")]
        again = [run for run in held if starts.count(run) != 1]
        check(not again, f"begun again, though their holders lived on: {again}")
        scene.audit()


def everything_down(directory, kind):
    with Scene(directory, kind) as scene:
        workers = [scene.worker(), scene.worker()]
        trigger = scene.trigger("a", "-c", RUNS, "-p", 1, "-i", QUICK)
        scene.trigger_one("crash.work", "timer", "--in", "1500ms")
        some_but_not_all(scene)
        if kind == "postgres":
            scene.store.kill()
        for child in [trigger, *workers]:
            child.kill()
        time.sleep(2)
        if kind == "postgres":
            scene.store.start()
        scene.worker()
        scene.trigger_all("a", RUNS)
        scene.await_all_finished()
        check(scene.audit() == RUNS + 1, "not all runs were accepted")


def main():
    Runner(sys.argv[2:]).play((one_node_down, all_nodes_down, database_down, everything_down), sys.argv[1])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A worker outlives its connections: its sessions are ended, the server is restarted, and it goes on, without losing or
repeating a run. F8.

usage: reconnect.py [--only NAME]
"""

import sys
import time

from processes import check, run_program, wait_until
from runner import Runner
from scene import HELD, Scene
from stores import Postgres


def end_sessions(store):
    ended = store.ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                      "AND backend_type = 'client backend'")
    check(int(ended[0][0]) > 0, "there was no session to end")


def restart(store):
    store.stop()
    time.sleep(0.3)
    store.start()


def await_idle(scene):
    wait_until(lambda: scene.store.ask("SELECT count(*) FROM {worker} WHERE idle") == [("1",)], "the worker sleeps")


def an_idle_worker_reconnects(directory, disturb):
    """And it hears of new work at once: a listener that is not there again would cost the poll of ten minutes."""
    with Scene(directory, "postgres") as scene:
        worker = scene.worker(poll=600000)
        await_idle(scene)
        for number in range(2):
            disturb(scene.store)
            time.sleep(2)
            scene.trigger_one("crash.work", f"idle-{number}")
            scene.await_all_finished(120)
        check(worker.alive(), f"the worker ended: {worker.said()}")
        check(len(scene.lines("start")) == 2, "a run was begun twice")
        scene.audit()


def a_busy_worker_reconnects(directory, disturb):
    with Scene(directory, "postgres") as scene:
        worker = scene.worker(threads=4)
        for number in range(4):
            scene.trigger_one("crash.long", f"busy-{number}", HELD)
        scene.held(4)
        disturb(scene.store)
        scene.let_go()
        scene.trigger_all("more", 200)
        scene.await_all_finished()
        check(worker.alive(), f"the worker ended: {worker.said()}")
        long_starts = [run for _, run, _ in scene.lines("start")]
        for key, run in scene.accepted().items():
            check(not key.startswith("busy") or long_starts.count(run) == 1, f"run {run} was begun twice")
        scene.audit()


def a_worker_under_load_reconnects_again_and_again(directory):
    with Scene(directory, "postgres") as scene:
        worker = scene.worker(threads=4)
        trigger = scene.trigger("load", "-p", "2")
        for _ in range(10):
            time.sleep(0.3)
            end_sessions(scene.store)
        status = trigger.stop()
        check(status == 0, f"the triggering process failed: {trigger.said()}")
        scene.await_all_finished()
        check(worker.alive(), f"the worker ended: {worker.said()}")
        scene.audit()


def a_worker_that_starts_in_an_outage_waits_for_its_end(directory):
    with Scene(directory, "postgres") as scene:
        gate = scene.directory / "gate"
        worker = scene.worker(gate=gate)
        wait_until(lambda: scene.lines("opened"), "the store is open")
        scene.store.stop()
        gate.touch()
        wait_until(lambda: scene.lines("store_lost") or not worker.alive(), "the worker misses its store")
        check(worker.alive(), f"the worker gave up: {worker.said()}")
        scene.store.start()
        scene.trigger_one("crash.work", "late")
        scene.await_all_finished()
        scene.audit()
        check(worker.stop() == 0, f"the worker did not stop well: {worker.said()}")


def a_worker_that_waits_for_its_store_can_be_stopped(directory):
    with Scene(directory, "postgres") as scene:
        gate = scene.directory / "gate"
        worker = scene.worker(gate=gate)
        wait_until(lambda: scene.lines("opened"), "the store is open")
        scene.store.stop()
        gate.touch()
        wait_until(lambda: scene.lines("store_lost"), "the worker misses its store")
        time.sleep(0.5)
        check(worker.alive(), f"the worker gave up: {worker.said()}")
        check(worker.stop() == 0, f"it did not stop well: {worker.said()}")


def a_commit_that_nobody_can_be_told_of_is_a_commit(directory):
    """NOTIFY waits for a lock that another session keeps while its own commit waits for a standby that is not there."""
    server = Postgres(directory, settings=("synchronous_standby_names=nobody", "synchronous_commit=local"), tables=True)
    with Scene(directory, "postgres", server) as scene:
        scene.worker()
        await_idle(scene)
        stuck = scene.spawn("stuck", [server.bin / "psql", "-Xq", "-c", "SET synchronous_commit = on", "-c",
                                      "BEGIN; NOTIFY stuck; CREATE TABLE stuck (); COMMIT", server.direct])
        wait_until(lambda: server.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == [("1",)],
                   "a session holds the lock")
        run = run_program("trigger", "crash.work", '{"ms":3}', "--quiet", "--store", server.url)
        stuck.kill()
        server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        check(run.stdout.strip(), "the run is named")
        wait_until(lambda: scene.lines("start"), "the run begins")
        check(server.ask("SELECT count(*) FROM {run} WHERE workflow_id IN (SELECT id FROM {workflow} "
                         "WHERE name = 'crash.work')") == [("1",)], "it is there once")


def main():
    runner = Runner(sys.argv[1:])
    runner.case("an idle worker survives the end of its sessions", an_idle_worker_reconnects, end_sessions)
    runner.case("an idle worker survives a restart of the server", an_idle_worker_reconnects, restart)
    runner.case("a busy worker survives the end of its sessions", a_busy_worker_reconnects, end_sessions)
    runner.case("a busy worker survives a restart of the server", a_busy_worker_reconnects, restart)
    runner.case("a worker under load survives the end of its sessions again and again",
                a_worker_under_load_reconnects_again_and_again)
    runner.case("a worker whose store goes away while it starts waits for it",
                a_worker_that_starts_in_an_outage_waits_for_its_end)
    runner.case("a worker that still waits for its store can be stopped",
                a_worker_that_waits_for_its_store_can_be_stopped)
    runner.case("a commit that nobody can be told of is a commit", a_commit_that_nobody_can_be_told_of_is_a_commit)
    runner.finish()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What may be seen before it is on disk, and who waits until it is. A1, B6.

usage: disk.py sqlite|postgres [--quick] [--seed N] [--only NAME]

The disk of the server, or of the worker on SQLite, takes nothing as long as its gate is shut.
"""

import os
import sys
import time

from processes import TOOLS, check, wait_until
from runner import Runner
from scene import OURS, QUICK, Scene
from stores import Postgres

TRIES = 50
LONG_ENOUGH = 0.3  # s, for what would not wait


class Disk:
    """Of the processes that are started with its environment."""

    def __init__(self, directory):
        self.gate = directory / "gate"
        self.environment = {**os.environ, "LD_PRELOAD": str(TOOLS / "libslow_disk.so"), "HOLDFAST_DISK_GATE": str(self.gate)}

    def shut(self):
        self.gate.touch()

    def open(self):
        self.gate.unlink(missing_ok=True)


class SlowPostgres(Postgres):
    def __init__(self, directory, disk):
        self.disk = disk
        # The log writer would bring to disk what nobody waits for.
        super().__init__(directory, settings=["wal_writer_delay=10s", "autovacuum=off"], tables=True)

    def launch(self):
        self.identity = {**self.identity, "env": self.disk.environment}
        super().launch()

    def waiting(self, text):
        """Sessions that wait for the disk while they perform a statement with this text."""
        return int(self.ask("SELECT count(*) FROM pg_stat_activity WHERE lower(wait_event) IN ('walsync', 'walwrite') "
                            f"AND query LIKE '%{text}%'")[0][0])


def runs(scene):
    return {run for (run,) in scene.store.ask("SELECT uuid(id) FROM {run} WHERE " + OURS)}


def begun(scene):
    return {run for _, run, _ in scene.lines("start")}


def stop_between(scene, disk):
    """Triggers, with a worker at hand, until the disk keeps a trigger waiting whose run can be seen; returns that run."""
    scene.worker()
    wait_until(lambda: scene.lines("started"), "the worker is there")
    scene.trigger("k", "-n", "-p", 100, "-i", QUICK)
    for _ in range(TRIES):
        wait_until(lambda: runs(scene) == begun(scene) == set(scene.accepted().values()), "all is done so far")
        disk.shut()
        wait_until(lambda: scene.store.waiting(""), "somebody waits for the disk")
        new = runs(scene) - set(scene.accepted().values())
        if new and scene.store.waiting("schema_version"):
            check(len(new) == 1, f"more than one run is new: {new}")
            return new.pop()
        disk.open()
    raise AssertionError("no run was seen before it was on disk")


def nobody_acts_on_a_run_that_is_not_on_disk(directory, kind):
    disk = Disk(directory)
    with Scene(directory, kind, store=SlowPostgres(directory, disk)) as scene:
        run = stop_between(scene, disk)
        wait_until(lambda: scene.store.waiting("COMMIT"), "its claim waits for the disk, too")
        time.sleep(LONG_ENOUGH)
        check(run not in begun(scene), "the handler began before the run was on disk")
        check(run not in scene.accepted().values(), "the trigger was answered before the run was on disk")
        disk.open()
        wait_until(lambda: run in begun(scene), "the handler begins")
        wait_until(lambda: run in scene.accepted().values(), "the trigger is answered")
        scene.children[-1].stop()
        scene.await_all_finished()
        scene.audit()


def a_run_that_was_seen_is_accepted_though_the_server_ends_before_it_is_on_disk(directory, kind):
    disk = Disk(directory)
    with Scene(directory, kind, store=SlowPostgres(directory, disk)) as scene:
        run = stop_between(scene, disk)
        scene.store.kill()
        disk.open()
        scene.store.start()
        wait_until(lambda: run in scene.accepted().values(), "the trigger is answered")
        wait_until(lambda: run in begun(scene), "the handler begins")
        scene.children[-1].stop()
        scene.await_all_finished()
        scene.audit()


def a_handler_begins_before_its_claim_is_on_disk_and_its_end_waits_for_it(directory, kind):
    disk = Disk(directory)
    with Scene(directory, kind) as scene:
        scene.worker(environment=disk.environment)
        wait_until(lambda: scene.lines("started"), "the worker is there")
        scene.trigger_one("crash.work", "first", QUICK)
        scene.await_all_finished()
        time.sleep(LONG_ENOUGH)  # it goes to sleep, and says so
        disk.shut()
        trigger = scene.trigger("early", "-c", 1, "-i", QUICK)
        wait_until(lambda: len(scene.lines("end")) == 2, "the handler is done")
        check(scene.store.ask("SELECT status FROM {run} WHERE key = 'early-0'") == [(1,)], "the run is not leased")
        time.sleep(LONG_ENOUGH)
        check(len(scene.lines("finished")) == 1, "its end was taken before its claim")
        disk.open()
        check(trigger.wait() == 0, f"the trigger failed: {trigger.said()}")
        scene.await_all_finished()
        scene.audit()


TESTS = {
    "postgres": (nobody_acts_on_a_run_that_is_not_on_disk,
                 a_run_that_was_seen_is_accepted_though_the_server_ends_before_it_is_on_disk),
    "sqlite": (a_handler_begins_before_its_claim_is_on_disk_and_its_end_waits_for_it,),
}


def main():
    Runner(sys.argv[2:]).play(TESTS[sys.argv[1]], sys.argv[1])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""A graceful stop: SIGTERM ends a worker within its limit; what runs is finished or given back, nothing is lost. B5.

usage: stop.py sqlite|postgres [--only NAME]
"""

import signal
import sys
import time

from outage import outage_of
from processes import check, wait_until
from runner import Runner
from scene import HELD, OURS, Scene

SLACK = 50  # seconds beside the limit: for programs to die, for the last commits, and for a busy machine


def stop_within(worker, seconds):
    begin = time.monotonic()
    status = worker.stop(seconds + SLACK)
    check(status == 0, f"{worker.name} ended with status {status}: {worker.said()[-500:]}")
    return time.monotonic() - begin


def statuses(scene):
    return dict(scene.store.ask("SELECT key, status FROM {run} WHERE " + OURS))


def status_of(scene, key):
    return int(statuses(scene)[key])


def attempt_of(scene, key):
    return int(dict(scene.store.ask("SELECT key, attempt FROM {run} WHERE " + OURS))[key])


def running_handlers_finish(directory, kind):
    with Scene(directory, kind) as scene:
        worker = scene.worker(threads=2, stop_limit=20000)
        for number in range(2):
            scene.trigger_one("crash.long", f"r{number}", '{"ms":1500,"stubborn":1}')
        scene.begun(2)
        stop_within(worker, 20)
        check(scene.unfinished() == 0, "a handler that had time to finish was not let")
        scene.audit()


def what_was_not_begun_goes_back(directory, kind):
    with Scene(directory, kind) as scene:
        scene.trigger_all("queue", 300, "-w", "crash.long", "-i", '{"ms":300}')
        worker = scene.worker(threads=2, stop_limit=20000)
        scene.begun(4)
        stop_within(worker, 20)
        left = scene.store.ask(f"SELECT status, attempt, count(*) FROM {{run}} WHERE status <> 4 AND {OURS} GROUP BY status, attempt")
        check([(int(status), int(attempt)) for status, attempt, _ in left] == [(0, 0)],
              f"runs that were not begun are not pending and unharmed: {left}")
        check(len(scene.lines("start")) == scene.succeeded(), "a handler that was begun did not finish")
        scene.audit_invariants()


def a_stubborn_handler_is_left_behind(directory, kind):
    """Its run goes back at the limit, and another worker takes it at once, not after the lease."""
    with Scene(directory, kind) as scene:
        worker = scene.worker(threads=1, stop_limit=500)
        scene.trigger_one("crash.long", "stubborn", '{"ms":120000,"stubborn":1}')
        scene.begun(1)
        took = stop_within(worker, 1)
        check(took < 60, f"the worker took {took:.1f} s to stop")
        check(status_of(scene, "stubborn") == 0, "the run was not given back")


def a_cooperative_handler_gives_back(directory, kind):
    with Scene(directory, kind) as scene:
        worker = scene.worker(threads=1, stop_limit=500)
        scene.trigger_one("crash.long", "polite", '{"ms":60000}')
        scene.begun(1)
        stop_within(worker, 1)
        check(status_of(scene, "polite") == 0, "the run was not given back")
        check(attempt_of(scene, "polite") == 0, "the attempt was counted")


def write_script(directory, name, body):
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def a_program_finishes(directory, kind):
    marks = directory / "marks"
    script = write_script(directory, "work.sh", f"echo begun >> {marks}\nsleep 1.5\necho done >> {marks}\necho '{{}}'")
    with Scene(directory, kind) as scene:
        worker = scene.exec_worker(script, "--stop-limit", "20s")
        scene.trigger_one("crash.long", "program")
        wait_until(marks.exists, "the program runs")
        stop_within(worker, 20)
        check(marks.read_text().split() == ["begun", "done"], f"the program did {marks.read_text().split()}")
        check(status_of(scene, "program") == 4, "the run has not succeeded")


def a_long_program_is_ended_and_given_back(directory, kind):
    pid_file = directory / "pid"
    script = write_script(directory, "work.sh", f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}\nexec sleep 600")
    with Scene(directory, kind) as scene:
        worker = scene.exec_worker(script, "--stop-limit", "500ms")
        scene.trigger_one("crash.long", "long")
        wait_until(pid_file.exists, "the program runs")
        stop_within(worker, 1)
        check(status_of(scene, "long") == 0, "the run was not given back")
        check(attempt_of(scene, "long") == 0, "the attempt was counted")
        check(not process_exists(int(pid_file.read_text())), "the program outlived its worker")


def process_exists(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def a_second_signal_gives_back_at_once(directory, kind):
    with Scene(directory, kind) as scene:
        worker = scene.worker(threads=1, stop_limit=120000)
        scene.trigger_one("crash.long", "hurry", '{"ms":120000}')
        scene.begun(1)
        worker.send(signal.SIGTERM)
        wait_until(lambda: scene.lines("draining"), "the worker stops")
        took = stop_within(worker, 1)
        check(took < 60, f"the worker took {took:.1f} s to stop")
        check(status_of(scene, "hurry") == 0, "the run was not given back")


def the_program_of_a_killed_worker_works_in_vain(directory, kind):
    """Nobody takes its result any more; the run is begun again after the lease, and that one counts."""
    marks = directory / "marks"
    script = write_script(directory, "work.sh", f"echo begun >> {marks}\nsleep 2\necho \"$(wc -l < {marks})\"")
    with Scene(directory, kind) as scene:
        worker = scene.exec_worker(script)
        scene.trigger_one("crash.work", "orphan")
        wait_until(lambda: marks.exists() and marks.read_text(), "the program runs")
        worker.kill()
        scene.exec_worker(script)
        scene.await_all_finished()
        check(scene.store.ask("SELECT status, result, attempt FROM {run} WHERE " + OURS)[0][1] == "2", "the first result was taken")
        scene.audit_invariants()


def a_stop_does_not_wait_for_a_store_that_is_away(directory, kind):
    """What it could not commit is begun again by another worker, when the lease has ended."""
    with Scene(directory, kind) as scene:
        scene.define("crash.held", lease="6s")
        worker = scene.worker(threads=1, stop_limit=500)
        run = scene.trigger_one("crash.held", "held", HELD)
        scene.held(1)
        outage = outage_of(scene.store)
        scene.let_go()
        wait_until(lambda: scene.lines("store_lost"), "the worker says that the store is away")
        stop_within(worker, 10)
        outage.end()
        scene.worker()
        scene.await_all_finished()
        check([run for _, run, _ in scene.lines("start")].count(run) == 2, "the run was not begun again")
        scene.audit_invariants()


TESTS = (running_handlers_finish, what_was_not_begun_goes_back, a_stubborn_handler_is_left_behind,
         a_cooperative_handler_gives_back, a_program_finishes, a_long_program_is_ended_and_given_back,
         a_second_signal_gives_back_at_once, the_program_of_a_killed_worker_works_in_vain,
         a_stop_does_not_wait_for_a_store_that_is_away)


def main():
    Runner(sys.argv[2:]).play(TESTS, sys.argv[1])


if __name__ == "__main__":
    main()

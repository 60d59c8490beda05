#!/usr/bin/env python3
"""Accepted work is finished, once, whatever is killed. A3, B2, B4.

usage: kill.py sqlite|postgres [--quick] [--seed N]

Several processes trigger runs, several workers finish them. Meanwhile, at random: workers are killed with SIGKILL and
started again; workers are stopped past their leases and continued, so that they commit too late; triggering processes
are killed and go on; on PostgreSQL single sessions and the whole server are killed, and the server recovers. At the end
every accepted run must have succeeded exactly once.
"""

import os
import random
import signal
import sys
import time

from processes import Failure, check, run_program, wait_until
from runner import Runner
from scene import HELD, Scene

WORKERS = 3
TRIGGERS = 3
THREADS = 4  # of a worker
ENOUGH = 2000  # runs that are accepted: fewer prove little
ENOUGH_QUICK = 500


class Chaos:
    """Workers and triggering processes, each in a slot that is filled again when it is emptied."""

    def __init__(self, scene, chance):
        self.scene = scene
        self.chance = chance
        self.did = {}
        self.stopped = {}  # slot -> when to continue it
        self.workers = [self.hire(slot) for slot in range(WORKERS)]
        self.triggers = [self.send(slot) for slot in range(TRIGGERS)]

    def hire(self, slot):
        # The first one comes back under its own name, as a service does that has it in its configuration.
        return self.scene.worker("steady" if slot == 0 else None, threads=THREADS)

    def send(self, slot):
        # One that soon gives up while the store is away, and one whose runs may be seen before they are on disk.
        peculiar = {0: ("-o", "100"), 1: ("-n",)}.get(slot, ())
        return self.scene.trigger(f"t{slot}", "-p", "10", *peculiar)

    def kill_worker(self):
        slot = self.chance.randrange(WORKERS)
        self.stopped.pop(slot, None)
        self.workers[slot].kill()
        self.workers[slot] = self.hire(slot)

    def stop_worker(self):
        slot = self.chance.randrange(WORKERS)
        if slot not in self.stopped:
            self.workers[slot].send(signal.SIGSTOP)
            self.stopped[slot] = time.monotonic() + self.chance.uniform(1.1, 2.2)

    def kill_trigger(self):
        slot = self.chance.randrange(TRIGGERS)
        self.triggers[slot].kill()
        self.triggers[slot] = self.send(slot)

    def kill_session(self):
        """Any session that dies by a signal makes the server restart all of them."""
        try:
            pids = self.scene.store.backends()
            os.kill(self.chance.choice(pids), signal.SIGKILL)
        except (OSError, IndexError):
            pass

    def end_sessions(self):
        self.scene.store.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                             "AND random() < 0.5")

    def kill_server(self):
        self.scene.store.kill()
        time.sleep(self.chance.uniform(0, 0.5))
        self.scene.store.start()

    def do(self, deed):
        deed()
        self.did[deed.__name__] = self.did.get(deed.__name__, 0) + 1

    def continue_stopped(self, force=False):
        for slot, until in list(self.stopped.items()):
            if force or time.monotonic() >= until:
                self.workers[slot].send(signal.SIGCONT)
                del self.stopped[slot]

    def check_alive(self):
        for child in self.workers + self.triggers:
            if not child.alive():
                raise Failure(f"{child.name} ended by itself, status {child.popen.returncode}: {child.said()[-1000:]}")

    def rage(self, seconds, enough, deeds, server_kills):
        """`deeds` at random until `enough` runs are accepted, and the server's deaths spread over the time."""
        begin = time.monotonic()
        kills = sorted(self.chance.uniform(0.05, 0.95) * seconds for _ in range(server_kills))
        while time.monotonic() < begin + seconds or kills or len(self.scene.accepted()) < enough:
            check(time.monotonic() < begin + seconds + 300, "hardly any runs are accepted")
            time.sleep(self.chance.uniform(0.05, 0.4))
            self.continue_stopped()
            self.check_alive()
            if kills and time.monotonic() >= begin + kills[0]:
                kills.pop(0)
                self.do(self.kill_server)
            else:
                self.do(self.chance.choice(deeds))
        self.continue_stopped(force=True)

    def end_triggers(self):
        for child in self.triggers:
            status = child.stop(60)
            check(status in (0, -signal.SIGTERM), f"{child.name} failed with status {status}: {child.said()[-1000:]}")

    def end_workers(self):
        for child in self.workers:
            status = child.stop(60)
            check(status == 0, f"{child.name} failed with status {status}: {child.said()[-1000:]}")


def accepted_work_is_finished_once(directory, runner, kind):
    with Scene(directory, kind) as scene:
        chaos = Chaos(scene, random.Random(runner.seed))
        deeds = [chaos.kill_worker, chaos.kill_worker, chaos.stop_worker, chaos.stop_worker, chaos.kill_trigger]
        if kind == "postgres":
            deeds += [chaos.kill_session, chaos.end_sessions]
        kills = (4 if runner.quick else 20) if kind == "postgres" else 0
        enough = ENOUGH_QUICK if runner.quick else ENOUGH
        chaos.rage(8 if runner.quick else 30 if kills else 20, enough, deeds, kills)
        chaos.end_triggers()
        scene.await_all_finished(90)
        chaos.end_workers()
        count = scene.audit(late_starts=THREADS * chaos.did.get("stop_worker", 0))
        starts, losses = len(scene.lines("start")), len(scene.lines("lost"))
        runner.note(f"seed {runner.seed}: {count} runs, {starts} handlers begun, {losses} late commits refused; "
                    + ", ".join(f"{name} {times}" for name, times in sorted(chaos.did.items())))


def stop_outside_the_store(scene, worker):
    """A process that is stopped while it writes to SQLite stops everybody."""
    for _ in range(10):
        worker.send(signal.SIGSTOP)
        if run_program("workflow", "create", "crash.probe", "--store", scene.store.url, limit=10, expect=None):
            return
        worker.send(signal.SIGCONT)
    raise Failure("the worker is always in the store")


def a_zombie_is_refused(directory, kind):
    """A worker is stopped inside its handler until another one works on the run, and then ends its handler first."""
    with Scene(directory, kind) as scene:
        zombie = scene.worker("zombie", threads=1)
        run = scene.trigger_one("crash.work", "contested", HELD)
        scene.held(1)
        stop_outside_the_store(scene, zombie)
        scene.worker("heir", threads=1)
        scene.held(2)
        scene.let_go("zombie")
        zombie.send(signal.SIGCONT)
        wait_until(lambda: scene.lines("end"), "the zombie is done first")
        scene.let_go("heir")
        scene.await_all_finished()
        wait_until(lambda: scene.lines("finished"), "the heir hears of its success")
        check(scene.lines("finished") == [["heir", run, "2", "succeeded"]], f"it ended as {scene.lines('finished')}")
        wait_until(lambda: scene.lines("lost") == [["zombie", run, "1"]], "the zombie is told that it lost the run")
        scene.audit()


def main():
    kind = sys.argv[1]
    runner = Runner(sys.argv[2:])
    runner.case(f"a zombie's commit is refused, on {kind}", a_zombie_is_refused, kind)
    runner.case(f"accepted work is finished exactly once, whatever is killed, on {kind}",
                accepted_work_is_finished_once, runner, kind)
    runner.finish()


if __name__ == "__main__":
    main()

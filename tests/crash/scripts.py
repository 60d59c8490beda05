#!/usr/bin/env python3
"""What a durable script has done is done, whatever is killed. B8, C1.

usage: scripts.py sqlite|postgres [--quick] [--seed N]

Shell scripts with steps one after the other, steps at once in background jobs, a sleep and a signal run under workers that
are killed with SIGKILL at random and started again. Every run must succeed; every step's remembered output must be that of
its last execution, so that none was executed again after it was recorded; and nothing of a killed worker stays behind.
"""

import collections
import json
import os
import pathlib
import random
import sys
import time

from processes import PROGRAM, check, run_program, wait_until
from runner import Runner
from scene import Scene

WORKERS = 2

# Each execution leaves a line "RUN STEP TOKEN" before it ends and prints the token.
WORK = """#!/bin/bash
sleep 0.$((RANDOM % 3))
token=$$-$RANDOM$RANDOM
echo "$HOLDFAST_RUN_ID $1 $token" >>"$TRACE"
sleep 0.$((RANDOM % 3))
echo "$token"
"""

SCRIPT = """#!/bin/bash
set -eu
cd "$(dirname "$0")"
step() { holdfast step "$1" -- ./work "$1"; }
one=$(step one)
step two >"$HOLDFAST_RUN_ID.two" &
two=$!
step three >"$HOLDFAST_RUN_ID.three" &
three=$!
wait "$two"; wait "$three"
holdfast sleep nap 200ms
four=$(step four)
go=$(holdfast wait go --timeout 5m)
five=$(step five)
printf '{"one":"%s","two":"%s","three":"%s","four":"%s","five":"%s","go":%s}\\n' \\
    "$one" "$(cat "$HOLDFAST_RUN_ID.two")" "$(cat "$HOLDFAST_RUN_ID.three")" "$four" "$five" "$go"
"""


def write_program(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Stage:
    """The scripts, and workers that are replaced when they are killed."""

    def __init__(self, scene):
        self.scene = scene
        self.trace = scene.directory / "trace"
        self.trace.touch()
        binaries = scene.directory / "bin"
        binaries.mkdir()
        (binaries / "holdfast").symlink_to(PROGRAM)
        os.environ.update(PATH=f"{binaries}:{os.environ['PATH']}", TRACE=str(self.trace))
        write_program(scene.directory / "work", WORK)
        write_program(scene.directory / "script", SCRIPT)
        self.workers = [self.hire() for _ in range(WORKERS)]

    def hire(self):
        return self.scene.exec_worker(self.scene.directory / "script", "--threads", "4", "--env", "TRACE", pattern="crash.script")

    def kill_one(self, chance):
        slot = chance.randrange(WORKERS)
        self.workers[slot].kill()
        self.workers[slot] = self.hire()

    def executions(self):
        """(run, step) -> its tokens in the order of time."""
        found = collections.defaultdict(list)
        for line in self.trace.read_text().splitlines():
            run, step, token = line.split()
            found[run, step].append(token)
        return found


def left_behind(directory):
    """Processes of a scene that no worker watches over."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        ours = any(word.startswith(b"HOLDFAST_RUN_SOCKET=") for word in variables)
        if ours and f"TRACE={directory}/trace".encode() in variables and state != "Z":
            found.append(folder.name)
    return found


def audit(stage, runs):
    executions = stage.executions()
    repeated = 0
    for run in runs:
        result = json.loads(run_program("wait", run, "--timeout", "1s", "--store", stage.scene.store.url).stdout)
        check(result.pop("go") == {"ok": True}, f"run {run} saw another signal")
        for step, token in result.items():
            tokens = executions.pop((run, step), [])
            check(token in tokens, f"step {step} of run {run} remembers what no execution said: {token!r} {tokens}")
            check(token == tokens[-1], f"step {step} of run {run} was executed after it was recorded: {tokens}")
            repeated += len(tokens) - 1
    check(not executions, f"steps of nobody: {list(executions)[:3]}")
    return repeated


def send_go(scene, run):
    run_program("signal", run, "go", '{"ok":true}', "--store", scene.store.url)


def steps_are_done_once(directory, runner, kind):
    with Scene(directory, kind) as scene:
        chance = random.Random(runner.seed)
        scene.define("crash.script", lease="1s")
        stage = Stage(scene)
        runs, late, kills, end = [], [], 0, time.monotonic() + (6 if runner.quick else 15)
        while time.monotonic() < end or kills < (5 if runner.quick else 20):
            runs.append(scene.trigger_one("crash.script", f"s{len(runs)}"))
            if chance.random() < 0.5:
                send_go(scene, runs[-1])
            else:
                late.append(runs[-1])
            time.sleep(chance.uniform(0.1, 0.4))
            stage.kill_one(chance)
            kills += 1
        for run in late:
            send_go(scene, run)
        scene.await_all_finished(120)
        repeated = audit(stage, runs)
        wait_until(lambda: not left_behind(directory), "nothing of the killed workers is left")
        runner.note(f"seed {runner.seed}: {len(runs)} runs, {kills} workers killed, {repeated} steps begun again")


def main():
    kind = sys.argv[1]
    runner = Runner(sys.argv[2:])
    runner.case(f"recorded steps of scripts are never repeated, whatever is killed, on {kind}", steps_are_done_once,
                runner, kind)
    runner.finish()


if __name__ == "__main__":
    main()

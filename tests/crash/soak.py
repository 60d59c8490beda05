#!/usr/bin/env python3
"""A worker stays small however much waits for it, and so does the program.

usage: soak.py [--quick] [--only NAME]

Prints how long a worker takes from its start to its first run; times are only measured, not judged.
"""

import os
import pathlib
import subprocess
import sys
import time

from processes import PROGRAM, Skipped, check, run_program, wait_until
from runner import Runner
from scene import Scene

MEGABYTE = 1024 * 1024
LIBRARY_MOST = 50 * MEGABYTE  # with glibc's arenas as they are
WORKER_MOST = 35 * MEGABYTE
PROGRAM_MOST = 2 * MEGABYTE
PENDING = 100000
LARGE_RUNS = 200
LARGE_MOST = 100 * MEGABYTE
SANITIZED = float(os.environ.get("HOLDFAST_PATIENCE", "1")) > 1
os.environ.pop("MALLOC_PERTURB_", None)  # Meson's; it fills what is allocated, and so takes memory that nobody uses


def peak_of(process):
    """Bytes of memory that it had at most."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def fill(scene, count):
    lines = scene.directory / "lines"
    lines.write_text("".join('{"number":%d,"text":"%s"}\n' % (number, "x" * 200) for number in range(count)))
    run_program("trigger", "crash.work", "--lines", lines, "--quiet", "--store", scene.store.url)
    lines.unlink()


def a_worker_stays_small(directory, runner, kind):
    if SANITIZED:
        raise Skipped("a sanitizer's memory is not the worker's")
    with Scene(directory, kind) as scene:
        fill(scene, PENDING)
        begin = time.monotonic()
        library = scene.worker(threads=8)
        wait_until(lambda: scene.log.stat().st_size > 50, "the first run begins")
        first = time.monotonic() - begin
        scene.begun(2000 if runner.quick else 5000)
        program = scene.exec_worker("true")
        time.sleep(1 if runner.quick else 3)
        for worker, most in ((library, LIBRARY_MOST), (program, WORKER_MOST)):
            check(worker.alive(), f"{worker.name} ended: {worker.said()[-500:]}")
            peak = peak_of(worker)
            runner.note(f"{kind}: {worker.name} had {peak / MEGABYTE:.1f} MB at most with {PENDING} runs waiting")
            check(peak < most, f"{worker.name} took {peak / MEGABYTE:.1f} MB")
        runner.note(f"{kind}: {first * 1000:.0f} ms from the start of a worker to its first run")
        check(library.stop() == 0 and program.stop() == 0, "a worker did not stop well")


def large_inputs_do_not_fill_memory(directory, runner, kind):
    """Together they would be twice as much as the worker may take."""
    if SANITIZED:
        raise Skipped("a sanitizer's memory is not the worker's")
    with Scene(directory, kind) as scene:
        lines = scene.directory / "lines"
        with open(lines, "w", encoding="ascii") as file:
            for _ in range(LARGE_RUNS):
                file.write('{"ms":1,"text":"%s"}\n' % ("x" * 1000000))
        run_program("trigger", "crash.work", "--lines", lines, "--quiet", "--store", scene.store.url)
        lines.unlink()
        worker = scene.worker(threads=4)
        scene.await_all_finished()
        peak = peak_of(worker)
        runner.note(f"{kind}: a worker had {peak / MEGABYTE:.1f} MB at most with {LARGE_RUNS} inputs of a megabyte")
        check(peak < LARGE_MOST, f"the worker took {peak / MEGABYTE:.1f} MB")


def the_first_run_begins_soon(directory, runner):
    """Measured, on an empty store with one run."""
    with Scene(directory, "sqlite") as scene:
        times = []
        for number in range(5):
            scene.trigger_one("crash.work", f"first-{number}", '{"ms":0}')
            size = scene.log.stat().st_size
            begin = time.monotonic()
            worker = scene.worker()
            while "start" not in scene.log.read_text()[size:]:
                check(time.monotonic() - begin < 60, "the run does not begin")
                time.sleep(0.001)
            times.append(time.monotonic() - begin)
            worker.stop()
        runner.note(f"sqlite: {', '.join(f'{seconds * 1000:.0f}' for seconds in times)} ms from start to first run")


def the_program_is_small(directory, runner):
    if SANITIZED:
        raise Skipped("a sanitizer makes it larger")
    stripped = directory / "holdfast"
    subprocess.run(["strip", "-o", stripped, PROGRAM], check=True)
    size = stripped.stat().st_size
    runner.note(f"the program has {size / 1024:.0f} KiB")
    check(size < PROGRAM_MOST, f"the program has {size} bytes")


def main():
    runner = Runner(sys.argv[1:])
    runner.case("the stripped program has less than 2 MB", the_program_is_small, runner)
    runner.case("the first run begins", the_first_run_begins_soon, runner)
    runner.case("a worker takes less than 35 MB with 100,000 runs waiting, one in C 50 MB, on sqlite",
                a_worker_stays_small, runner, "sqlite")
    runner.case("a worker takes less than 35 MB with 100,000 runs waiting, one in C 50 MB, on postgres",
                a_worker_stays_small, runner, "postgres")
    for kind in ("sqlite", "postgres"):
        runner.case(f"inputs of a megabyte do not fill a worker's memory, on {kind}", large_inputs_do_not_fill_memory,
                    runner, kind)
    runner.finish()


if __name__ == "__main__":
    main()

"""Children that die with their test, and the two ways in which a test can end early.

The environment, set by the build: HOLDFAST names the program, HOLDFAST_CRASH the directory of crash_worker,
crash_trigger and crash_audit.
"""

import ctypes
import functools
import os
import pathlib
import signal
import subprocess
import time

PROGRAM = os.environ["HOLDFAST"]
TOOLS = pathlib.Path(os.environ["HOLDFAST_CRASH"])
PATIENCE = float(os.environ.get("HOLDFAST_PATIENCE", "1"))  # sanitizers make everything slower
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Failure(Exception):
    """A promise was broken; the message says which."""


class Skipped(Exception):
    """This machine cannot show it; the message says why."""


def check(condition, message):
    if not condition:
        raise Failure(message)


@functools.cache
def has_node():
    return subprocess.run([pathlib.Path(os.environ["HOLDFAST_SOURCE"]) / "tools/has_node.sh"]).returncode == 0


def need_node():
    if not has_node():
        raise Skipped("there is no node, or an old one")


def wait_until(condition, what, seconds=120):
    """Looks the less often the longer it takes: looking costs the machine more than waiting."""
    begin = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        waited = time.monotonic() - begin
        check(waited < seconds * PATIENCE, f"waited {seconds} s in vain: {what}")
        time.sleep(min(0.4, max(0.02, waited / 6)))


def die_with_parent(signal_number=signal.SIGKILL):
    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signal_number)

    return prepare


class Process:
    """A child; ended by its id, whatever state it is in."""

    def __init__(self, directory, name, argv, **options):
        self.name = name
        self.errors = directory / f"{name}.stderr"
        with open(self.errors, "ab") as errors:
            self.popen = subprocess.Popen(
                [str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                preexec_fn=die_with_parent(options.pop("with_parent", signal.SIGKILL)), **options)
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def send(self, signal_number):
        if self.alive():
            self.popen.send_signal(signal_number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.popen.wait()

    def stop(self, seconds=60):
        """Asks it to end; returns its exit status."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=60):
        try:
            return self.popen.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {seconds} s") from None

    def said(self):
        return self.errors.read_text(errors="replace").strip()


def run_program(*argv, expect=0, limit=60):
    """The finished program; None if it was not done within the limit and nothing was expected of it."""
    try:
        done = subprocess.run([PROGRAM, *map(str, argv)], capture_output=True, text=True, timeout=limit * PATIENCE,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        check(expect is None, f"holdfast {' '.join(map(str, argv))[:200]}: not done within {limit} s")
        return None
    if expect is not None:
        check(done.returncode == expect, f"holdfast {' '.join(map(str, argv))[:200]}: exit status {done.returncode}, "
                                         f"not {expect}: {done.stderr.strip()}")
    return done

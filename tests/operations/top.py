#!/usr/bin/env python3
"""`holdfast top` in a terminal and in a pipe.

usage: top.py sqlite|postgres [--only NAME]
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from processes import PROGRAM, Process, check, run_program, wait_until  # noqa: E402
from runner import Runner  # noqa: E402
from stores import make_store  # noqa: E402

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


def case(function):
    def play(directory):
        url = make_store(KIND, directory)
        for workflow in ("busy.v1", "idle.v1"):
            run_program("--store", url, "workflow", "create", workflow)
        for _ in range(3):
            run_program("--store", url, "trigger", "idle.v1", "1")
        function(directory, url)

    RUNNER.case(function.__name__, play)


class Terminal:
    """The program in a terminal of its own; `seen` is what it wrote since the last picture began."""

    def __init__(self, url, columns=100, rows=20):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [PROGRAM, "--store", url, "top"], {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        self.resize(columns, rows)
        self.text = ""

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, key):
        os.write(self.fd, key)

    def read(self):
        """False: it has ended."""
        try:
            while select.select([self.fd], [], [], 0.05)[0]:
                data = os.read(self.fd, 65536)
                if not data:
                    return False
                self.text += data.decode(errors="replace")
        except OSError:
            return False
        return True

    def picture(self):
        """The last whole picture, without colours."""
        self.read()
        frames = self.text.split("\033[H")
        whole = [frame for frame in frames[1:] if "\033[J" in frame]
        return re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", whole[-1]) if whole else ""

    def shows(self, words):
        return wait_until(lambda: words in self.picture() and self.picture(), f"it shows {words!r}: {self.picture()}")

    def ended(self):
        """Its exit status; what is left is read meanwhile."""
        def gone():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return (status,) if pid else None

        return wait_until(gone, "it ends")[0]

    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)


@case
def depths_and_workers_are_shown_and_q_ends_it(directory, url):
    worker = Process(directory, "worker", [PROGRAM, "--store", url, "worker", "--name", "ann", "--exec", "busy.*=cat"])
    terminal = Terminal(url)
    terminal.shows("ann")
    line = next(line for line in terminal.shows("idle.v1").splitlines() if line.startswith("idle.v1"))
    check(line.split()[:3] == ["idle.v1", "3", "0"], line)
    run_program("--store", url, "trigger", "idle.v1", "1")
    wait_until(lambda: re.search(r"idle\.v1 +4 ", terminal.picture()), "a new run is seen")
    check(not terminal.echoes(), "keys are not shown")
    terminal.press(b"q")
    check(os.waitstatus_to_exitcode(terminal.ended()) == 0, "it ended well")
    check("\033[?1049l" in terminal.text and "WORKFLOW" in terminal.text.split("\033[?1049l")[1], "the last picture stays")
    worker.stop()


@case
def rates_are_those_of_the_last_seconds(directory, url):
    worker = Process(directory, "worker", [PROGRAM, "--store", url, "worker", "--exec", "busy.*=cat"])
    terminal = Terminal(url, columns=120)
    terminal.shows("busy.v1")

    def rates():
        line = next(line for line in terminal.picture().splitlines() if line.startswith("busy.v1"))
        return [float(word.replace(",", "")) for word in line.split()[5:9]]

    for _ in range(5):
        run_program("--store", url, "trigger", "busy.v1", "1", "--wait=2m")
    wait_until(lambda: all(rate > 0 for rate in rates()[:3]), "it is triggered, started and ended")
    check(rates()[3] == 0, f"nothing failed: {rates()}")
    terminal.press(b"q")
    terminal.ended()
    worker.stop()


@case
def space_holds_the_picture(directory, url):
    terminal = Terminal(url)
    terminal.shows("idle.v1")
    terminal.press(b" ")
    terminal.shows("paused")
    run_program("--store", url, "trigger", "idle.v1", "1")
    begin = time.monotonic()
    wait_until(lambda: time.monotonic() > begin + 2.5, "two looks would have been taken")
    check(re.search(r"idle\.v1 +3 ", terminal.picture()), "it shows what it showed")
    terminal.press(b" ")
    wait_until(lambda: re.search(r"idle\.v1 +4 ", terminal.picture()), "it goes on")
    terminal.press(b"q")
    terminal.ended()


@case
def the_picture_fits_the_terminal(directory, url):
    for i in range(30):
        run_program("--store", url, "workflow", "create", f"many.{i}")
    terminal = Terminal(url, columns=60, rows=12)
    for columns, rows in ((60, 12), (90, 18), (30, 6)):
        terminal.resize(columns, rows)
        os.kill(terminal.pid, signal.SIGWINCH)

        def fits():
            lines = terminal.picture().replace("\r", "").split("\n")
            return len(lines) <= rows and max(map(len, lines)) <= columns and max(map(len, lines)) > columns - 12

        wait_until(fits, f"it fits into {columns} x {rows}: {terminal.picture()}")
    terminal.resize(90, 18)
    terminal.shows("more workflows")
    terminal.press(b"q")
    terminal.ended()


@case
def a_signal_gives_the_terminal_back(directory, url):
    terminal = Terminal(url)
    terminal.shows("idle.v1")
    wait_until(lambda: not terminal.echoes(), "keys are taken")
    os.kill(terminal.pid, signal.SIGINT)
    wait_until(lambda: terminal.echoes(), "keys are shown again")
    check(os.waitstatus_to_exitcode(terminal.ended()) == -signal.SIGINT, "it died of the signal")


@case
def in_a_pipe_there_is_one_picture(directory, url):
    said = run_program("--store", url, "top").stdout
    check("\033" not in said and said.count("WORKFLOW") == 1, said)
    check(re.search(r"^idle\.v1 +3 +0 +0 +0 ", said, re.M), said)
    rows = [json.loads(line) for line in run_program("--store", url, "--json", "top").stdout.splitlines()]
    check({row["workflow"]: row["due"] for row in rows} == {"idle.v1": 3, "busy.v1": 0}, rows)
    check(all(isinstance(row["started_per_second"], float) for row in rows), rows)


RUNNER.finish()

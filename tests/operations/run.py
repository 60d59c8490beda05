#!/usr/bin/env python3
"""`./run`: the examples start, work, stop as a whole, and go on where they ended.

usage: run.py [--only NAME]

It runs in a tree of links to the sources, in which it finds that the program is built: the build of the tests stands where
it keeps its own, and its ninja has nothing to do.
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from processes import Process, check, wait_until  # noqa: E402
from runner import Runner  # noqa: E402

RUNNER = Runner(sys.argv)
signal.signal(signal.SIGINT, signal.default_int_handler)  # who was started in the background may ignore it, and so would ./run
SOURCE, BUILD = os.environ["HOLDFAST_SOURCE"], os.environ["HOLDFAST_BUILD"]
WORKFLOWS = ("media.thumbnail.v1", "billing.charge.v1", "shop.order.v1", "shop.pack.v1", "shop.delivery.v1")


def make_tree(directory, ninja):
    """A tree whose build does what the given commands do."""
    tree = directory / "tree"
    (tree / "build").mkdir(parents=True)
    (tree / "bin").mkdir()
    for name in ("run", "tools", "examples"):
        (tree / name).symlink_to(pathlib.Path(SOURCE) / name)
    (tree / "build/run").symlink_to(BUILD)
    (tree / "bin/ninja").write_text(f"#!/bin/sh\n{ninja}\n")
    (tree / "bin/ninja").chmod(0o755)
    return tree


class Run:
    """`./run` in a session of its own, as in a terminal."""

    def __init__(self, tree, *argv, listen="127.0.0.1:0"):
        self.process = Process(tree, "said", [tree / "run", *argv], start_new_session=True, with_parent=signal.SIGTERM,
                               env={**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}", "HOLDFAST_LISTEN": listen})

    def says(self, pattern):
        """What it has said since it began, by a pattern with one group."""
        def found():
            match = re.search(pattern, self.process.said(), re.M)
            check(match or self.process.alive(), f"it ended: {self.process.said()}")
            return match

        return wait_until(found, f"it says {pattern}")[1]

    def await_start(self):
        self.port = int(self.says(r"^The dashboard and the API: +http://127\.0\.0\.1:(\d+)$"))
        self.program = self.says(r"^The program: +(.*)$")
        self.store = self.says(r"^  export HOLDFAST_STORE=(.*)$")

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        check(answer.status == 200, f"GET {path}: {answer.status} {body}")
        return body

    def has_succeeded(self, workflow):
        asked = urllib.parse.urlencode({"workflow": workflow, "status": "succeeded", "limit": 1})
        return json.loads(self.get(f"/v1/runs?{asked}"))["items"]

    def holdfast(self, *argv):
        done = subprocess.run([self.program, *argv], env={**os.environ, "HOLDFAST_STORE": self.store}, text=True,
                              capture_output=True, timeout=120)
        check(done.returncode == 0, f"holdfast {argv}: {done.returncode} {done.stderr}")
        return done.stdout

    def count(self, workflow):
        return len(self.holdfast("list", "--workflow", workflow, "--status", "succeeded", "--json", "-q").splitlines())

    def processes(self):
        """All that it started, however deep; a handler's program is in a process group of its own."""
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == self.process.pid and state != "Z":
                yield int(stat.parent.name)

    def ends(self):
        """Its exit status; nothing is left of what it started."""
        status = self.process.wait(120)
        wait_until(lambda: not any(self.processes()), f"{[*self.processes()]} live on")
        return status

    def interrupt(self, number):
        """A signal as Ctrl-C in its terminal sends it."""
        os.killpg(self.process.pid, number)
        return self.ends()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.popen.wait()


def case(ninja):
    def decorate(function):
        RUNNER.case(function.__name__, lambda directory: function(make_tree(directory, ninja)))

    return decorate


def deliver_as_it_says(run):
    for pattern in (r"^  (holdfast trigger shop.delivery.v1 '{\"order\":7}' --key d-7)$",
                    r"^  (holdfast signal shop.delivery.v1/d-7 packed '\"me\"')$"):
        run.says(pattern)
    run.holdfast("trigger", "shop.delivery.v1", '{"order":7}', "--key", "d-7")
    run.holdfast("signal", "shop.delivery.v1/d-7", "packed", '"me"')
    result = run.holdfast("wait", "shop.delivery.v1/d-7", "--timeout", "100s")
    check(json.loads(result)["packed_by"] == "me", result)


@case("true")
def the_examples_work_stop_and_go_on(tree):
    with Run(tree) as run:
        run.await_start()
        check("<title>Holdfast</title>" in run.get("/"), "the dashboard is there")
        deliver_as_it_says(run)
        run.says(r"^  (holdfast task list) ")
        wait_until(lambda: "Approve the order" in run.holdfast("task", "list"), "an order asks for its approval")
        for workflow in WORKFLOWS:
            wait_until(lambda: run.has_succeeded(workflow), f"one of {workflow} succeeds")
        check(run.interrupt(signal.SIGINT) == 130, f"Ctrl-C ends it: {run.process.said()}")
        check("Stopped. Everything is in" in run.process.said(), f"in an orderly way: {run.process.said()}")
        drawn = run.count("media.thumbnail.v1")

    (tree / "said.stderr").unlink()
    with Run(tree, tree / "holdfast-data") as run:
        run.await_start()
        check(json.loads(run.holdfast("wait", "shop.delivery.v1/d-7"))["packed_by"] == "me", "what was done is known")
        wait_until(lambda: run.count("media.thumbnail.v1") > drawn, "it goes on")
        check(run.interrupt(signal.SIGTERM) == 143, f"so does a request to end: {run.process.said()}")


@case("true")
def a_place_that_is_taken_is_said(tree):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Run(tree, listen=f"127.0.0.1:{port}") as run:
            check(run.ends() == 1, run.process.said())
            check(f"cannot listen on 127.0.0.1 port {port}" in run.process.said(), run.process.said())
            check("as with HOLDFAST_LISTEN=127.0.0.1:" in run.process.said(), run.process.said())


@case("true")
def another_apt_is_waited_for(tree):
    said = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)"
    (tree / "bin/dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (tree / "bin/apt-get").write_text(f"#!/bin/sh\necho \"$@\" >>{tree}/apt\n"
                                      f"[ $(grep -c update {tree}/apt) -gt 2 ] || {{ echo '{said}' >&2; exit 100; }}\n")
    (tree / "bin/id").write_text("#!/bin/sh\necho 0\n")
    for name in ("dpkg-query", "apt-get", "id"):
        (tree / "bin" / name).chmod(0o755)
    tried = subprocess.run(["bash", "-c", f". {SOURCE}/tools/packages.sh; without_default_cluster() {{ \"$@\"; }}; need_packages bc"],
                           capture_output=True, text=True, timeout=100,
                           env={**os.environ, "PATH": f"{tree}/bin:{os.environ['PATH']}", "APT_PAUSE": "0.01", "NO_INSTALL": ""})
    check(tried.returncode == 0 and tried.stdout.count("Another apt is at work") == 1, str(tried))
    check("install -y" in (tree / "apt").read_text(), (tree / "apt").read_text())


@case("echo 'x.c:7: that is no C'; exit 1")
def without_a_program_nothing_starts(tree):
    with Run(tree) as run:
        check(run.ends() == 1, run.process.said())
        check("x.c:7: that is no C" in run.process.said() and "The build failed." in run.process.said(), run.process.said())
        check(not (tree / "holdfast-data").exists(), "there is data")


RUNNER.finish()

#!/usr/bin/env python3
"""Ten thousand clients that wait: what they cost, that each hears of its run, and that each is let go at the end. F11.

A thousand where a sanitizer slows them down."""

import random
import resource
import selectors
import socket
import sys
import time

from scene import Server, check, make_store
from processes import PATIENCE, Skipped
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
CLIENTS = 10000 if PATIENCE == 1 else 1000
RUNS = 100
MOST_EACH = 30000  # bytes
SPARE = 500


class Crowd:
    """Many connections, looked after by one thread. Each has what it was sent."""

    def __init__(self, port, requests):
        source = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(1, 255)}"  # its ports are free
        self.selector = selectors.EpollSelector()
        self.heard = {}
        self.asked = {}
        self.open = set()
        for text in requests:
            one = socket.create_connection(("127.0.0.1", port), timeout=120, source_address=(source, 0))
            one.sendall(text.encode())
            one.setblocking(False)
            self.heard[one], self.asked[one] = b"", text.encode()
            self.open.add(one)
            self.selector.register(one, selectors.EVENT_READ)

    def listen(self, seconds=0.2):
        """Returns who was sent something."""
        ready = self.selector.select(seconds)
        for key, _ in ready:
            try:
                part = key.fileobj.recv(65536)
            except ConnectionResetError:
                part = b""
            self.heard[key.fileobj] += part
            if not part:
                self.selector.unregister(key.fileobj)
                self.open.discard(key.fileobj)
        return [key.fileobj for key, _ in ready]

    def ask_again(self, one):
        self.heard[one] = b""
        one.sendall(self.asked[one])

    def wait(self, marker, what, seconds=300):
        """Until all of them have been sent it. A poll whose time was over before is made anew, as clients do."""
        end = time.monotonic() + seconds * PATIENCE
        missing = {one for one, text in self.heard.items() if marker not in text}
        while missing and time.monotonic() < end:
            heard = set(self.listen())
            missing -= {one for one in heard if marker in self.heard[one]}
            for one in heard & missing:
                if b'"status":"pending"' in self.heard[one]:
                    self.ask_again(one)
        check(not missing, f"{len(missing)} of {len(self.heard)} did not hear: {what}")

    def wait_for_end(self, seconds=300):
        end = time.monotonic() + seconds * PATIENCE
        while self.open and time.monotonic() < end:
            self.listen()
        check(not self.open, f"{len(self.open)} of {len(self.heard)} were not let go")

    def close(self):
        for one in self.heard:
            one.close()
        self.selector.close()


def need_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CLIENTS + SPARE:
        raise Skipped(f"a process may have {hard} files open, {CLIENTS + SPARE} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CLIENTS + SPARE), hard))


def ask(run, path, accept="application/json"):
    return f"GET /v1/runs/{run}{path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"


class Costs:
    """What the server needs more than before."""

    def __init__(self, server):
        self.server = server
        self.memory = server.memory()
        self.threads = server.threads()

    def check(self, what):
        each = (self.server.memory() - self.memory) / CLIENTS
        RUNNER.note(f"{CLIENTS} {what}: {each / 1000:.1f} kB each, {self.server.threads()} threads")
        check(self.server.threads() == self.threads, f"{self.threads} threads have become {self.server.threads()}")
        check(PATIENCE > 1 or each < MOST_EACH, f"{each:.0f} bytes each")


def ten_thousand_wait_hear_and_are_let_go(directory):
    need_files()
    with Server(directory, make_store(KIND, directory), "--no-worker", "--quiet") as server:
        client = server.client
        client.put("/v1/workflows/idle.v1", {})
        runs = [client.trigger("idle.v1") for _ in range(RUNS)]
        chosen = [runs[number % RUNS] for number in range(CLIENTS)]

        costs = Costs(server)
        polls = Crowd(server.port, [ask(run, "?wait=60s") for run in chosen])
        client.get("/healthz")
        costs.check("long polls")
        for run in runs:
            client.post(f"/v1/runs/{run}/cancel")
        polls.wait(b'"cancelled"', "the run has ended")
        polls.close()
        for run in runs:
            client.post(f"/v1/runs/{run}/retry")

        streams = Crowd(server.port, [ask(run, "/events", "text/event-stream") for run in chosen])
        streams.wait(b'"created"', "what was there")
        costs.check("streams")
        for run in runs:
            client.post(f"/v1/runs/{run}/signals", {"name": "news"})
        streams.wait(b'"news"', "what came")
        check(len(streams.open) == CLIENTS, "they all go on")
        costs.check("streams that heard something")
        server.stop()
        streams.wait_for_end()
        check(all(text.endswith(b"0\r\n\r\n") for text in streams.heard.values()), "each was ended, not cut off")
        streams.close()


RUNNER.case("ten_thousand_wait_hear_and_are_let_go", ten_thousand_wait_hear_and_are_let_go)
RUNNER.finish()

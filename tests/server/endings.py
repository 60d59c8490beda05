#!/usr/bin/env python3
"""The server's end in the midst of work, and the loss of its store. F11."""

import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time

from scene import HOST, Client, Raw, Server, check, make_store, wait_until
from processes import PATIENCE, PROGRAM, Process, Skipped, run_program
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory), "--no-worker") as server:
            check(server.client.put("/v1/workflows/idle.v1", {}).status == 200, "the workflow is created")
            function(server, server.client)

    RUNNER.case(function.__name__, play)


# ---- The worker's end ----


def let_no_worker_in(directory, url):
    if KIND == "sqlite":
        with sqlite3.connect(directory / "store.db", timeout=60) as store:
            store.execute("ALTER TABLE worker RENAME COLUMN program TO was_program")
    else:
        subprocess.run(["psql", "-XAtqc", "ALTER TABLE holdfast.worker ADD CHECK (false) NOT VALID", url], check=True,
                       capture_output=True)


def a_worker_that_cannot_go_on_ends_the_server(directory):
    url = make_store(KIND, directory)
    run_program("--store", url, "migrate")
    let_no_worker_in(directory, url)
    process = Process(directory, "serve", [PROGRAM, "--store", url, "serve", "--listen", "127.0.0.1:0"])
    check(process.wait(60) == 1, process.said())
    check("holdfast: " in process.said(), f"it says why: {process.said()}")


RUNNER.case("a_worker_that_cannot_go_on_ends_the_server", a_worker_that_cannot_go_on_ends_the_server)


# ---- The stop ----


@case
def a_stop_answers_a_thousand_requests_under_way(server, client):
    """Long polls, streams, triggers and half requests."""
    run = client.trigger("idle.v1")
    polls = [Raw(server.port).send(f"GET /v1/runs/{run}?wait=60s HTTP/1.1\r\n{HOST}\r\n") for _ in range(400)]
    streams = [Raw(server.port).send(f"GET /v1/runs/{run}/events HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\n\r\n")
               for _ in range(300)]
    halves = [Raw(server.port).send("POST /v1/runs HTTP/1.1\r\n") for _ in range(100)]
    body = '{"workflow":"idle.v1"}'
    check(streams[-1].receive(b'"created"'), "the last one is served")
    triggers = [Raw(server.port).send(f"POST /v1/runs HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n"
                                      f"Content-Length: {len(body)}\r\n\r\n{body}") for _ in range(200)]
    check(triggers[-1].status() == 201, "the last one is made")
    server.stop()
    check([raw.status() for raw in polls] == [200] * 400, "every long poll is answered")
    for raw in streams[:-1]:
        check(raw.receive().endswith(b"0\r\n\r\n"), "every stream has an end")
    check([raw.status() for raw in triggers[:-1]] == [201] * 199, "every trigger is answered")
    for raw in halves:
        raw.receive()


def has_read_all(port, count):
    """Whether a server has so many connections or more, and nothing lies unread on any."""
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    queues = [queues for _, local, _, state, queues, *_ in lines if local.endswith(f":{port:04X}") and state == "01"]
    return len(queues) >= count and all(queue.endswith(":00000000") for queue in queues)


@case
def slow_requests_that_have_not_begun_do_not_hold_up_the_stop(server, client):
    """Each would take 15 s; three at a time."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as receiver:
        url = f"http://127.0.0.1:{receiver.getsockname()[1]}/"
        check(client.put("/v1/subscriptions/slow", {"url": url, "events": ["none"]}).status == 200, "subscribed")
        raws = [Raw(server.port, 300).send(f"POST /v1/subscriptions/slow/test HTTP/1.1\r\n{HOST}\r\n") for _ in range(60)]
        held = receiver.accept()[0]
        wait_until(lambda: has_read_all(server.port, 60), "the server has read all of them")
        check(client.get("/healthz").status == 200, "it answers meanwhile")
        server.stop()
        statuses = {raw.status() for raw in raws}
        check(statuses <= {0, 200, 503} and 503 in statuses, f"what had not begun is refused: {statuses}")
        held.close()


def stop_under_fire(server, client):
    """How long it takes, s."""
    run = client.trigger("idle.v1")
    body = '{"workflow":"idle.v1"}'
    kinds = (f"GET /v1/runs/{run} HTTP/1.1\r\n{HOST}\r\n", f"GET /v1/runs?limit=100 HTTP/1.1\r\n{HOST}\r\n",
             f"POST /v1/runs HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}")
    raws = [Raw(server.port) for _ in range(24)]

    def hammer(raw, text):
        try:
            raw.send(text * 20000)
        except OSError:
            pass

    threads = [threading.Thread(target=hammer, args=(raw, kinds[number % len(kinds)]), daemon=True)
               for number, raw in enumerate(raws)]
    threads += [threading.Thread(target=raw.receive, daemon=True) for raw in raws[1:]]
    for thread in threads:
        thread.start()
    check(raws[0].status() == 200, "they are served")
    threads.append(threading.Thread(target=raws[0].receive, daemon=True))
    threads[-1].start()
    begin = time.monotonic()
    server.stop()
    took = time.monotonic() - begin
    for thread in threads:
        thread.join(30)
    return took


@case
def requests_that_keep_coming_do_not_hold_up_the_stop(server, client):
    """Each is answered or refused, and connections are not kept alive. A stop that waits for those that keep coming takes
    its whole limit, every time; on a busy machine any stop may take as long, but not every time."""
    limit = 10
    took = stop_under_fire(server, client)
    for again in range(5):
        if took < limit:
            break
        with Server(server.process.errors.parent, server.url, "--no-worker", name=f"serve-{again}") as other:
            took = stop_under_fire(other, other.client)
    check(took < limit, f"the stop took {took:.1f} s: it waited for those that keep coming")


@case
def a_client_that_reads_nothing_does_not_hold_up_the_stop(server, client):
    run = client.trigger("idle.v1", input="x" * 900000)
    raws = [Raw(server.port).send(f"GET /v1/runs/{run} HTTP/1.1\r\n{HOST}\r\n" * 20) for _ in range(20)]
    wait_until(lambda: client.get(f"/v1/runs/{run}").status == 200, "it serves")
    server.stop()
    for raw in raws:
        raw.close()


# ---- The store ----


class Gate:
    """Stands before the database: lets through, holds back (as a frozen one does), or is shut (as a dead one is)."""

    def __init__(self, directory, url):
        found = re.search(r"host=([^&]*)&port=(\d+)", url)
        if not found:
            raise Skipped("HOLDFAST_TEST_POSTGRES is not reached by a socket in a directory")
        self.target = f"{found.group(1)}/.s.PGSQL.{found.group(2)}"
        self.path = f"{directory}/.s.PGSQL.{found.group(2)}"
        self.url = url.replace(found.group(1), str(directory), 1)
        self.open = threading.Event()
        self.ends = set()
        self.listener = None
        self.let_through()

    def let_through(self):
        self.open.set()
        if not self.listener:
            pathlib.Path(self.path).unlink(missing_ok=True)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(100)
            threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def hold_back(self):
        self.open.clear()

    def shut(self):
        os.unlink(self.path)
        self.listener.close()
        self.listener = None
        for end in list(self.ends):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            store = socket.socket(socket.AF_UNIX)
            store.connect(self.target)
            self.ends |= {client, store}
            for source, sink in ((client, store), (store, client)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.open.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            self.ends.discard(end)
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def gated(function):
    def play(directory):
        if KIND != "postgres":
            raise Skipped("a file does not go away")
        gate = Gate(directory, make_store(KIND, directory))
        try:
            with Server(directory, gate.url, "--no-worker") as server:
                check(server.client.put("/v1/workflows/idle.v1", {}).status == 200, "the workflow is created")
                function(server, server.client, gate)
        finally:
            gate.open.set()

    RUNNER.case(function.__name__, play)


def ask_everything(server, run, meanwhile=None, wait="60s"):
    """One of each kind, at once; the answers' statuses."""
    statuses = {}

    def ask(name, method, path, body=None, headers=None):
        try:
            statuses[name] = Client(server.port).ask(method, path, body, headers=headers).status
        except OSError as error:
            statuses[name] = error

    calls = (("get", "GET", f"/v1/runs/{run}"), ("trigger", "POST", "/v1/runs", {"workflow": "idle.v1"}),
             ("list", "GET", "/v1/runs"), ("signal", "POST", f"/v1/runs/{run}/signals", {"name": "x"}),
             ("batch", "POST", "/v1/runs/batch", {"runs": [{"workflow": "idle.v1"}]}), ("ready", "GET", "/readyz"),
             ("poll", "GET", f"/v1/runs/{run}?wait={wait}"), ("children", "GET", f"/v1/runs/{run}/children"),
             ("stream", "GET", f"/v1/runs/{run}/events", None, {"Accept": "text/event-stream"}),
             ("stranger", "GET", "/v1/runs", None, {"Holdfast-Actor": "somebody new"}))
    threads = [threading.Thread(target=ask, args=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    if meanwhile:
        meanwhile()
    for thread in threads:
        thread.join(60 * PATIENCE)
    return statuses


def check_lost(server, run):
    threads = server.threads()
    check(Client(server.port).get("/healthz").status == 200, "it lives")
    statuses = ask_everything(server, run)
    check(set(statuses.values()) <= {503, 504} and len(statuses) == 10, statuses)
    check(Client(server.port).get("/healthz").status == 200, "it lives")
    check(server.threads() <= threads + 1, f"{server.threads()} threads, of {threads} before")


def check_found(server, run):
    wait_until(lambda: Client(server.port).get("/readyz").status == 200, "it finds the store again")
    check(Client(server.port).get(f"/v1/runs/{run}").status == 200, "and what is in it")
    Client(server.port).trigger("idle.v1")


@gated
def a_dead_store_is_told_and_found_again(server, client, gate):
    run = client.trigger("idle.v1")
    stream = Raw(server.port).send(f"GET /v1/runs/{run}/events HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\n\r\n")
    check(stream.receive(b'"created"'), "a stream flows")
    gate.shut()
    check_lost(server, run)
    failed = [line for line in server.log() if line["status"] == 503]
    check(all(line["message"] for line in failed if line["path"] != "/healthz"), failed)
    answer = client.get(f"/v1/runs/{run}")
    check(answer.problem == "unavailable" and answer.json["detail"] is None, answer.text)
    check(answer.headers["Retry-After"], "when to come again")
    gate.let_through()
    check_found(server, run)


@gated
def a_frozen_store_holds_up_what_needs_it_and_nothing_else(server, client, gate):
    run = client.trigger("idle.v1")
    client.post(f"/v1/runs/{run}/cancel")
    threads = server.threads()

    def thaw():
        for _ in range(20):
            check(Client(server.port).get("/healthz").status == 200, "it lives")
        gate.let_through()

    gate.hold_back()
    statuses = ask_everything(server, run, thaw, wait="1s")
    check(set(statuses.values()) <= {200, 201, 409, 503} and len(statuses) == 10, statuses)
    check(server.threads() <= threads + 1, f"{server.threads()} threads, of {threads} before")
    check_found(server, run)


@gated
def the_loss_of_the_store_does_not_hold_up_the_stop(server, client, gate):
    run = client.trigger("idle.v1")
    waiting = [Raw(server.port).send(f"GET {path} HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\n\r\n")
               for path in (f"/v1/runs/{run}?wait=60s", f"/v1/runs/{run}/events")]
    check(waiting[1].receive(b'"created"'), "a stream flows")
    gate.shut()
    body = '{"workflow":"idle.v1"}'
    waiting += [Raw(server.port).send(f"POST /v1/runs HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n"
                                      f"Content-Length: {len(body)}\r\n\r\n{body}") for _ in range(30)]
    waiting += [Raw(server.port).send(f"GET {path} HTTP/1.1\r\n{HOST}\r\n") for path in (f"/v1/runs/{run}", "/v1/runs")]
    check(Client(server.port).get("/healthz").status == 200, "it lives")
    server.client.close()
    status = server.process.stop(60)
    check(status in (0, 1), f"{status}: {server.process.said()[-1000:]}")
    for raw in waiting:
        check(raw.status() in (0, 503), "refused, or hung up on")


RUNNER.finish()

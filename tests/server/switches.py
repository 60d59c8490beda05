#!/usr/bin/env python3
"""What a server is, each of which can be switched off: API, dashboard, worker, dispatcher; and how many it serves. F11, F12."""

import fcntl
import http.server
import sys
import threading

from scene import HOST, Client, Raw, Server, check, make_store, run_program, wait_until
from processes import Skipped
from runner import Runner
from stores import make_database

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


def case(function):
    RUNNER.case(function.__name__, lambda directory: function(directory, make_store(KIND, directory)))


class Receiver:
    """Takes what is delivered."""

    def __init__(self):
        self.got = got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                got.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@case
def a_server_makes_its_store(directory, _):
    url = f"sqlite:{directory}/new.db" if KIND == "sqlite" else make_database()[1]
    with Server(directory, url, "--no-worker") as server:
        check(Client(server.port).get("/v1/runs").json["items"] == [], "it has no runs")


@case
def a_lock_that_somebody_keeps_is_told_and_the_server_goes_on(directory, url):
    if KIND != "sqlite":
        raise Skipped("there is no such file")
    with Server(directory, f"{url}?lock_timeout=300ms", "--no-worker") as server:
        client = server.client
        client.put("/v1/workflows/idle.v1", {})
        with open(f"{url.removeprefix('sqlite:')}-lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            answer = client.post("/v1/runs", {"workflow": "idle.v1"})
            check((answer.status, answer.problem) == (503, "unavailable"), answer.text)
            check(client.get("/v1/runs").json["items"] == [], "what only reads goes on")
        check(client.post("/v1/runs", {"workflow": "idle.v1"}).status in (200, 201, 202), "and so does the rest")


def emit(client):
    """A run of a remote worker's, which tells of something."""
    client.trigger("far.v1")
    run = client.post("/v1/work/claim", {"worker": "w", "workflows": ["far.v1"], "wait": "30s"}).json["items"][0]["run"]
    answer = client.post(f"/v1/work/runs/{run['id']}/commit", {"worker": "w", "version": run["version"], "turn": "succeed",
                                                               "outbox": [{"type": "packed"}]})
    check(answer.status == 200, answer.text)


@case
def without_dispatch_events_are_left_to_another_process(directory, url):
    receiver = Receiver()
    with Server(directory, url, "--no-dispatch", "--exec", "work.*=cat") as server:
        client = server.client
        for name in ("far.v1", "work.v1"):
            client.put(f"/v1/workflows/{name}", {})
        check(client.put("/v1/subscriptions/shop", {"url": receiver.url}).status == 200, "it wants to be told")
        emit(client)
        client.put("/v1/schedules/soon", {"workflow": "work.v1", "cron": "every 1s"})
        wait_until(lambda: client.get("/v1/runs?workflow=work.v1&status=succeeded").json["items"], "other chores are done")
        dispatcher = client.get("/v1/runs?workflow=holdfast.dispatch").json["items"][0]
        check(dispatcher["run_at"] and (dispatcher["attempt"], dispatcher["last_worker"]) == (0, None), dispatcher)
        check(len(client.get("/v1/outbox?undelivered=true").json["items"]) == 1 and not receiver.got, "it waits")
        with Server(directory, url, name="other"):
            wait_until(lambda: receiver.got, "somebody else delivers it")
            wait_until(lambda: not client.get("/v1/outbox?undelivered=true").json["items"], "and says so")


@case
def without_the_api_there_is_still_work_health_and_metrics(directory, url):
    run_program("--store", url, "workflow", "create", "work.v1")
    with Server(directory, url, "--no-api", "--exec", "work.*=cat") as server:
        client = server.client
        run_program("--store", url, "trigger", "work.v1", "7", "--wait=2m")
        for path in ("/healthz", "/readyz", "/metrics"):
            check(client.get(path).status == 200, path)
        check('holdfast_runs_finished_total{tenant="default",workflow="work.v1",status="succeeded"} 1' in
              client.get("/metrics").text, "the run was counted")
        for method, path in (("GET", "/"), ("GET", "/runs"), ("GET", "/v1"), ("GET", "/v1/runs"), ("POST", "/v1/runs"),
                             ("GET", "/v1/openapi.json"), ("GET", "/index.html"), ("POST", "/v1/events")):
            answer = client.ask(method, path, raw="{}" if method == "POST" else None)
            check((answer.status, answer.problem) == (404, "no_such_path"), f"{path}: {answer.status} {answer.text[:200]}")


@case
def without_the_dashboard_there_is_the_api(directory, url):
    with Server(directory, url, "--no-dashboard") as server:
        check(server.client.get("/").problem == "no_such_path", "no page")
        check(server.client.get("/v1/runs").status == 200, "the API")
    with Server(directory, url, name="other") as server:
        check(b"<html" in server.client.get("/").bytes, "a page")


@case
def without_a_worker_nothing_is_run(directory, url):
    receiver = Receiver()
    with Server(directory, url, "--no-worker", "--exec", "work.*=cat") as server:
        client = server.client
        for name in ("far.v1", "work.v1"):
            client.put(f"/v1/workflows/{name}", {})
        run = client.trigger("work.v1", input=7)
        client.put("/v1/subscriptions/shop", {"url": receiver.url})
        emit(client)
        check([one["name"] for one in client.get("/v1/workers").json["items"]] == ["default/w"], "no worker of its own")
        with Server(directory, url, "--no-api", "--exec", "work.*=cat", name="other"):
            check(client.get(f"/v1/runs/{run}?wait=60s").json["result"] == 7, "another process does it")
            wait_until(lambda: receiver.got, "and delivers")


def ask(port):
    return Raw(port).send(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n")


@case
def no_more_clients_than_were_asked_for_are_served_at_once(directory, url):
    with Server(directory, url, "--no-worker", "--max-connections", "3", "--receive-limit", "10m") as server:
        served = [ask(server.port) for _ in range(3)]
        for raw in served:
            check(raw.receive(b"ok\n").startswith(b"HTTP/1.1 200"), "it is served, and stays")
        waiting = ask(server.port)
        waiting.socket.settimeout(1)
        try:
            check(False, f"one more is served: {waiting.socket.recv(100)}")
        except TimeoutError:
            pass
        served.pop().close()
        waiting.socket.settimeout(120)
        check(waiting.status() == 200, "it is, once another one has gone")
        for raw in (*served, waiting):
            raw.close()
        check(Client(server.port).get("/healthz").status == 200, "and so on")
    done = run_program("--store", url, "serve", "--max-connections", "0", expect=2)
    check("max-connections" in done.stderr, done.stderr)


RUNNER.finish()

"""A store of its own and a real `holdfast serve` on it, spoken to through a real socket."""

import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "crash"))

from processes import PATIENCE, PROGRAM, Process, Skipped, check, run_program, wait_until  # noqa: E402, F401
from stores import make_store  # noqa: E402, F401

PROBLEM = "urn:holdfast:problem:"
HOST = "Host: localhost\r\n"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.bytes = response.read()

    @property
    def text(self):
        return self.bytes.decode()

    @property
    def json(self):
        return json.loads(self.bytes)

    @property
    def problem(self):
        """The stable name of the problem; empty if the answer is none."""
        if self.headers.get("Content-Type") != "application/problem+json":
            return ""
        check(self.json["status"] == self.status, f"the problem says {self.json['status']}, the answer {self.status}")
        return self.json["type"].removeprefix(PROBLEM)


class Client:
    """One connection, kept alive."""

    def __init__(self, port, headers=None):
        self.port = port
        self.headers = headers or {}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120 * PATIENCE)

    def ask(self, method, path, body=None, headers=None, raw=None):
        sent = dict(self.headers)
        if body is not None:
            raw = json.dumps(body)
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        try:
            self.connection.request(method, path, raw, sent)
            return Answer(self.connection.getresponse())
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.connection.close()
            self.connection.request(method, path, raw, sent)
            return Answer(self.connection.getresponse())

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.ask("POST", path, {} if body is None and "raw" not in options else body, **options)

    def put(self, path, body=None, **options):
        return self.ask("PUT", path, body, **options)

    def delete(self, path, **options):
        return self.ask("DELETE", path, **options)

    def trigger(self, workflow, **members):
        answer = self.post("/v1/runs", {"workflow": workflow, **members})
        check(answer.status in (200, 201), f"trigger: {answer.status} {answer.text}")
        return answer.json["id"]

    def close(self):
        self.connection.close()


class Raw:
    """A socket, for what no HTTP client would send."""

    def __init__(self, port, seconds=60, room=None):
        self.socket = socket.socket()
        if room:  # bytes that may come before they are read, more or less
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.settimeout(seconds * PATIENCE)
        self.socket.connect(("127.0.0.1", port))

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def receive(self, marker=None):
        """What comes until the marker, or until the other side closes."""
        data = bytearray()
        looked_at = 0
        while marker is None or data.find(marker, looked_at) < 0:
            looked_at = max(0, len(data) - len(marker or b""))
            try:
                part = self.socket.recv(1 << 20)
            except ConnectionResetError:
                break
            if not part:
                break
            data += part
        return bytes(data)

    def status(self):
        """Of the next answer; 0: it was closed instead."""
        words = self.receive(b"\r\n\r\n").split(b" ", 2)
        return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") else 0

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def claim(client, workflow):
    """The one run that is due, held by w."""
    items = client.post("/v1/work/claim", {"worker": "w", "workflows": [workflow], "limit": 1}).json["items"]
    check(len(items) == 1, items)
    return items[0]["run"]


def follow(server, run, *headers):
    """Whoever is told of the run's events as they come."""
    lines = "".join(header + "\r\n" for header in headers)
    return Raw(server.port).send(f"GET /v1/runs/{run}/events HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\n{lines}\r\n")


class Server:
    """`holdfast serve` on a port that the system chose."""

    def __init__(self, directory, url, *options, name="serve", wrap=()):
        self.url = url
        self.process = Process(directory, name, [*wrap, PROGRAM, "--store", url, "--json", "serve", "--listen",
                                                 "127.0.0.1:0", *options])
        self.port = wait_until(self.listens, "the server listens")
        self.client = Client(self.port)

    def listens(self):
        check(self.process.alive(), f"the server ended: {self.process.said()}")
        found = re.search(r'"url":"https?://[^"]*:(\d+)"', self.process.said())
        return int(found.group(1)) if found else None

    def log(self):
        """What the server logged of requests."""
        lines = [json.loads(line) for line in self.process.said().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("event") == "request"]

    def memory(self):
        """Bytes that are resident."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def program(self, *argv, **options):
        return run_program("--store", self.url, *argv, **options)

    def stop(self):
        self.client.close()
        status = self.process.stop()
        check(status == 0, f"the server ended with {status}: {self.process.said()[-2000:]}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
        else:
            self.stop()


def cases_on_a_server(runner, kind):
    """A decorator: each case has a server without a worker and a workflow, idle.v1. The server answers afterwards, too."""

    def case(*options, **settings):
        def decorate(function):
            def play(directory):
                with Server(directory, make_store(kind, directory), "--no-worker", *options, **settings) as server:
                    check(server.client.put("/v1/workflows/idle.v1", {}).status == 200, "the workflow is created")
                    function(server, server.client)
                    check(Client(server.port).get("/healthz").status == 200, "it answers afterwards")

            runner.case(function.__name__, play)

        return decorate

    return case


def make_certificate(directory, name):
    """Signed by itself, for localhost."""
    key, certificate = directory / f"{name}.key", directory / f"{name}.pem"
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
    except FileNotFoundError:
        raise Skipped("there is no openssl to make a certificate") from None
    return str(certificate), str(key)

"""A receiver of events over HTTP that behaves as its path says, and remembers what it took."""

import collections
import http.server
import json
import random
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver = self.server.receiver
        event = json.loads(body)
        action = self.path.split("/")[1]
        with receiver.lock:
            receiver.tried[self.path] += 1
        getattr(self, f"be_{action}")(receiver, event)

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def be_ok(self, receiver, event):
        time.sleep(receiver.delay)
        receiver.take(self.path, event)
        self.answer(204)

    def be_flaky(self, receiver, event):
        dice = receiver.chance.random()
        if dice < 0.04:
            self.answer(500)
        elif dice < 0.08:
            self.close_connection = True
        else:
            self.be_ok(receiver, event)

    def be_picky(self, receiver, event):
        """Never takes the second event of the run that it heard of first."""
        if self.is_first(receiver, event) and event["data"]["n"] == 2:
            self.answer(400)
        else:
            self.be_ok(receiver, event)

    def is_first(self, receiver, event):
        """Whether it is of the run that it heard of first."""
        with receiver.lock:
            receiver.first = receiver.first or event["source"]
        return event["source"] == receiver.first

    def be_stubborn(self, receiver, event):
        """Takes nothing of the run that it heard of first."""
        if self.is_first(receiver, event):
            self.answer(400)
        else:
            self.be_ok(receiver, event)

    def be_unfair(self, receiver, event):
        """Takes nothing at all, for different reasons."""
        self.answer(400 if self.is_first(receiver, event) else 404)

    def be_early(self, _receiver, _event):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        self.close_connection = True

    def be_endless(self, receiver, event):
        receiver.take(self.path, event)
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            while not receiver.closing:
                self.wfile.write(b"x" * 65536)
        except OSError:
            pass

    def be_headers(self, receiver, _event):
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not receiver.closing:
                self.wfile.write(b"X-More: " + b"y" * 1000 + b"\r\n")
        except OSError:
            pass

    def be_hang(self, receiver, _event):
        while not receiver.closing:
            time.sleep(0.1)
        self.close_connection = True

    def be_gone(self, _receiver, _event):
        self.answer(410)

    def be_moved(self, receiver, _event):
        self.answer(307, [("Location", f"{receiver.url}/ok/followed")])

    def be_busy(self, receiver, event):
        """Once, for five seconds."""
        if receiver.tried[self.path] == 1:
            receiver.refused_at = time.monotonic()
            self.answer(429, [("Retry-After", "5")])
        else:
            receiver.came_again_at = receiver.came_again_at or time.monotonic()
            self.be_ok(receiver, event)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # senders that are killed break their connections


class Receiver:
    def __init__(self, seed, delay=0.0):
        self.lock = threading.Lock()
        self.chance = random.Random(seed)
        self.delay = delay
        self.taken = collections.defaultdict(list)  # path -> events, in order
        self.tried = collections.Counter()
        self.refused_at = self.came_again_at = 0
        self.first = None
        self.closing = False
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.receiver = self
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def take(self, path, event):
        with self.lock:
            self.taken[path].append(event)

    def by_run(self, path):
        """source -> the numbers of its events, in the order in which they were taken."""
        found = collections.defaultdict(list)
        with self.lock:
            for event in self.taken[path]:
                found[event["source"]].append(event["data"]["n"])
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing = True
        self.server.shutdown()
        self.server.server_close()

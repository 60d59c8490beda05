#!/usr/bin/env python3
"""Requests that were valid before they were changed at random, over a real socket: whatever comes, the server lives and
answers with HTTP that is well-formed, never with a failure of its own. F11.

--seed N does the same once more, but for what the server's threads make of it."""

import base64
import concurrent.futures
import gzip
import json
import random
import re
import socket
import sys
import threading
import time

from calls import WORKFLOW, Call, fill, media_of, operations, parameters, prepare
from scene import PROBLEM, Client, Server, check, make_store, run_program
from processes import PATIENCE, Failure
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
ROUNDS = 2 if PATIENCE == 1 else 1
MUTANTS = 10  # of each request and round
THREADS = 6
SILENCE = 3  # s after which nobody waits for an answer any more: a long poll has none yet
MISSING = "019a88d0-1234-7abc-8def-0123456789ab"

# ---- Requests ----


class Request:
    """One that is valid; `raw` is what it becomes."""

    def __init__(self, method, target, headers=(), body=b""):
        self.method = method
        self.target = target
        self.headers = list(headers)
        self.body = body if isinstance(body, bytes) else body.encode()

    def raw(self):
        headers = list(self.headers)
        if self.body or self.method in ("POST", "PUT"):
            headers.append(("Content-Length", str(len(self.body))))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"{self.method} {self.target} HTTP/1.1\r\n{lines}\r\n".encode() + self.body


HEADERS = {
    "If-Match": ('"1-abc"', '"1"', "*", 'W/"2-0"', '"1", "2"'),
    "If-None-Match": ('"1-abc"', "*", 'W/"1"', '"a", W/"b"'),
    "Prefer": ("return=minimal", "return=representation", "wait=1, return=minimal", 'return="minimal"; x=y'),
    "Last-Event-ID": ("0", "1", "9223372036854775807"),
    "traceparent": ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",),
    "Idempotency-Key": ("order-42", "k" * 512, "sch\u00f6n"),
    "Holdfast-Tenant": ("default",),
    "Holdfast-Actor": ("kim",),
}
COMMON = {
    "Accept-Encoding": ("gzip", "gzip;q=0", "br;q=1, gzip;q=0.5", "identity", "*;q=0.1", "gzip;q=1.0000", ""),
    "Accept": ("application/json", "text/event-stream", "*/*", "text/html, text/event-stream;q=0.1"),
    "Expect": ("100-continue",),
    "Range": ("bytes=0-10",),
}
TEXTS = {"workflow": WORKFLOW, "name": "fuzz", "run": MISSING, "parent": MISSING, "cursor": MISSING, "status": "pending",
         "wait": "20ms", "by": "kim", "action": "pause", "step": "one", "cron": "@daily", "timezone": "Europe/Berlin"}
BODIES = {
    "createToken": {"name": "ci", "roles": ["read", "trigger"], "lifetime": "1h", "task_roles": ["boss"]},
    "commitTurn": {
        "turn": "wait", "state": {"at": 1}, "current_step": "s", "waiting_kind": "mail", "waiting_token": "t",
        "waiting_until_us": 4102444800000000, "wait_children": 1, "wake_on_child_failure": True, "pause": False,
        "seen_position": 1, "seen_us": 1, "consumed": ["m-1"], "cancelled_timers": ["k"], "withdrawn_tasks": ["t"],
        "timers": [{"key": "k", "delay": "1h", "payload": 1, "token": "t"}, {"key": "l", "at": "2030-01-01T00:00:00Z"}],
        "children": [{"workflow": WORKFLOW, "input": [1], "in": "1h"}], "child_ids": [MISSING],
        "starts": [{"workflow": WORKFLOW, "key": "s", "tags": ["a", "b"]}],
        "events": [{"kind": "domain", "name": "paid", "data": {"n": 1.5}}, {"kind": "step", "name": "succeeded", "step": "a"}],
        "outbox": [{"type": "order.packed", "payload": {"a": [True, None]}}],
        "tasks": [{"name": "approve", "roles": ["boss"], "form": {"f": []}, "due_at": "2030-01-01T00:00:00+02:00"}]},
}


def sample(rng, name, schema):
    """A value that fits."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if name in TEXTS:
        return TEXTS[name]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array":
        return [sample(rng, name, schema["items"]) for _ in range(rng.randrange(3))]
    if kind == "integer":
        return rng.choice((0, 1, 5, 100))
    if kind == "boolean":
        return rng.random() < 0.5
    if schema.get("format") == "date-time":
        return rng.choice(("2030-01-01T00:00:00Z", "2020-02-29T23:59:59.999999+14:00"))
    if schema.get("format") == "uuid":
        return MISSING
    if "examples" in schema:
        return rng.choice(("20ms", "1h", "0s"))
    return rng.choice(("a", "1", "x-y.z"))


def as_text(value):
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_query(rng, target, described):
    chosen = [one for one in described if one["in"] == "query" and rng.random() < 0.4]
    pairs = [f"{one['name']}={as_text(sample(rng, one['name'], one['schema']))}" for one in chosen]
    return target + ("?" + "&".join(pairs) if pairs else "")


def body_for(rng, call, operation):
    name = operation["operationId"]
    media, example, schema = media_of(operation)
    if not media:
        return None, None
    body = {**(call.body or {}), **BODIES[name]} if name in BODIES else call.body if call.body is not None else example
    if body is None or rng.random() < 0.3:
        members = schema["properties"].items()
        body = {**(body or {}), **{key: sample(rng, key, one) for key, one in members if rng.random() < 0.4}}
    return media, body


def as_event(rng, request, event):
    """In one of the three modes."""
    mode = rng.choice(("structured", "batch", "binary"))
    if mode == "binary":
        data = event.pop("data", None)
        request.headers += [(f"ce-{key}", as_text(value)) for key, value in event.items()]
        request.headers.append(("Content-Type", rng.choice(("application/json", "text/plain"))))
        request.body = json.dumps(data).encode()
    elif mode == "batch":
        request.headers.append(("Content-Type", "application/cloudevents-batch+json"))
        request.body = json.dumps([event, {**event, "id": "e-2", "data_base64": base64.b64encode(b"\0\1").decode()}]).encode()
    else:
        request.headers.append(("Content-Type", "application/cloudevents+json; charset=utf-8"))
        request.body = json.dumps(event).encode()


def valid_request(rng, client, url, document, job):
    method, path, operation = job
    call = Call(client, url, word=f"f{rng.randrange(10 ** 6)}-")
    prepare(call, path, operation)
    described = parameters(document, operation)
    request = Request(method, with_query(rng, fill(path, call.path), described), [("Host", "localhost"), *client.headers.items()])
    if rng.random() < 0.8:
        request.headers.append(("Connection", "close"))
    for name, values in {**{one["name"]: HEADERS[one["name"]] for one in described if one["in"] == "header"}, **COMMON}.items():
        if rng.random() < 0.3:
            request.headers.append((name, rng.choice(values)))
    media, body = body_for(rng, call, operation)
    if operation["operationId"] == "receiveEvent":
        as_event(rng, request, dict(body))
    elif media:
        request.headers.append(("Content-Type", media))
        request.body = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode()
    return request


# ---- Mutations ----

NUMBERS = ("0", "-1", "1", "00", "2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775807",
           "9223372036854775808", "18446744073709551616", "1" + "0" * 40, "1e400", "-0", "1.5", "0x10", "1_000", " 7", "+7")
PIECES = (b"\0", b"\r\n", b"\n", b"\r\n\r\n", b"%", b"%00", b"%2f", b"%c0%80", b"..", b"/", b"?", b"&", b"=", b";", b",", b'"',
          b"\\", b"{", b"}", b"[", b"]", b":", b"null", b"\xff", b"\xc3\x28", "\u2028".encode(), b"\xed\xa0\x80", b"\\ud800",
          b"\\u0000", b"#", b"+", b"*", b"\t", b" ", b"1", b"A" * 300, b"[" * 300, b'{"a":' * 50)
VALUES = (None, True, 0, -1, 1.5, 10 ** 30, "", "\0", "\u202e", "\ud800", "x" * 5000, [], {}, [[]], [None], {"": {}}, ["a"] * 50,
          "2030-01-01T00:00:00Z", "1h", "-1h", "99999999999999d", MISSING, WORKFLOW)


def flip(rng, raw):
    place = rng.randrange(len(raw))
    return raw[:place] + bytes([raw[place] ^ 1 << rng.randrange(8)]) + raw[place + 1:]


def insert(rng, raw):
    place = rng.randrange(len(raw))
    return raw[:place] + rng.choice(PIECES) + raw[place:]


def remove(rng, raw):
    place = rng.randrange(len(raw))
    return raw[:place] + raw[place + rng.choice((1, 1, 2, 10, 100)):]


def repeat(rng, raw):
    place = rng.randrange(len(raw))
    piece = raw[place:place + rng.choice((1, 4, 16, 64))]
    return raw[:place] + piece * rng.choice((2, 3, 50)) + raw[place:]


def truncate(rng, raw):
    return raw[:rng.randrange(len(raw))]


def change_number(rng, raw):
    places = [found.span() for found in re.finditer(rb"\d+", raw)] or [(0, 0)]
    start, end = rng.choice(places)
    return raw[:start] + rng.choice(NUMBERS).encode() + raw[end:]


def change_length(rng, raw):
    """The length is another, is there twice, or the body comes in chunks, some of which lie."""
    head, _, body = raw.partition(b"\r\n\r\n")
    bare = re.sub(rb"\r\ncontent-length: [^\r]*", b"", head, flags=re.I)
    how = rng.randrange(4)
    if how == 0:
        return bare + b"\r\nContent-Length: " + rng.choice(NUMBERS).encode() + b"\r\n\r\n" + body
    if how == 1:
        return head + b"\r\nContent-Length: %d\r\n\r\n" % (len(body) + rng.choice((-1, 0, 1, 7))) + body
    size = max(1, rng.choice((1, 3, len(body))))
    chunks = [body[start:start + size] for start in range(0, len(body), size)]
    lie = rng.randrange(len(chunks)) if chunks and how == 3 else -1
    told = b"".join(b"%s\r\n%s\r\n" % (rng.choice(NUMBERS).encode() if number == lie else b"%x" % len(chunk), chunk)
                    for number, chunk in enumerate(chunks[:300]))
    return bare + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + told + b"0\r\n\r\n"


def repeat_line(rng, raw):
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    line = rng.choice(lines)
    lines.insert(rng.randrange(1, len(lines) + 1), rng.choice((line, line.upper(), line.replace(b":", b" :"), b" " + line)))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def change_header(rng, raw):
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    place = rng.randrange(1, len(lines)) if len(lines) > 1 else 0
    name, _, value = lines[place].partition(b":")
    junk = rng.choice((b"", b" ", b'"', b"\xff", b'""', b",", b'"1-' + b"9" * 40 + b'"', b"gzip;q=", b"=", b"-1", b"Bearer", b"x" * 3000,
                       rng.choice(PIECES), value[::-1], value * 2))
    lines[place] = name + b": " + junk.replace(b"\r", b"").replace(b"\n", b"")
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def change_method(rng, raw):
    _, _, rest = raw.partition(b" ")
    return rng.choice((b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"get", b"X" * 40)) + b" " + rest


def change_target(rng, raw):
    method, _, rest = raw.partition(b" ")
    target, _, rest = rest.partition(b" ")
    how = rng.randrange(5)
    if how == 0:
        target = b"".join(b"%%%02x" % byte if rng.random() < 0.3 else bytes([byte]) for byte in target)
    elif how == 1:
        target += rng.choice((b"/", b"//", b"/..", b"?", b"?a", b"?a=b", b"&", b"%", b"#x", b"?limit=1&limit=2", b"?wait"))
    elif how == 2:
        parts = target.split(b"/")
        parts[rng.randrange(len(parts))] = rng.choice((b"", b"..", b"%00", b"a" * 600, b"%ff", MISSING.encode(), b"%F0%9F%98%80"))
        target = b"/".join(parts)
    elif how == 3:
        pairs = target.split(b"&")
        target = b"&".join(pairs + [rng.choice(pairs).rpartition(b"?")[2]] * rng.choice((1, 2, 250)))
    else:
        target = rng.choice((b"http://localhost" + target, b"*", b"//" + target, target.upper()))
    return b" ".join((method, target, rest))


def change_json(rng, raw):
    """One value somewhere in the body, or its name; the length stays right."""
    head, _, body = raw.partition(b"\r\n\r\n")
    try:
        value = json.loads(body)
    except ValueError:
        return insert(rng, raw)
    places = []

    def walk(part):
        for key in part.keys() if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ():
            places.append((part, key))
            walk(part[key])

    walk(value)
    if not places:
        return insert(rng, raw)
    part, key = rng.choice(places)
    if isinstance(part, dict) and rng.random() < 0.2:
        part[rng.choice((key + "x", key.upper(), "", "\0", key * 40))] = part.pop(key)
    elif rng.random() < 0.15:
        del part[key]
    else:
        part[key] = rng.choice((*VALUES, part, [part[key]] * 20))
        if part[key] is part:
            part[key] = json.loads(json.dumps({"again": "and again"}))
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return re.sub(rb"(?i)\r\ncontent-length: [^\r]*", b"", head) + b"\r\nContent-Length: %d\r\n\r\n" % len(text) + text


MUTATIONS = (flip, insert, remove, repeat, truncate, change_number, change_number, change_length, repeat_line, change_header,
             change_header, change_method, change_target, change_target, change_json, change_json, change_json)


def mutate(rng, raw):
    names = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutation = rng.choice(MUTATIONS)
        raw = mutation(rng, raw) or b"\r\n"
        names.append(mutation.__name__)
    return names, raw


# ---- Answers ----

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Incomplete(Exception):
    """There is more to come."""


def read_chunks(data, place):
    body = b""
    while True:
        end = data.find(b"\r\n", place)
        if end < 0:
            raise Incomplete(body)
        size = int(data[place:end], 16)
        if len(data) < end + size + 4:
            raise Incomplete(body)
        body += data[end + 2:end + 2 + size]
        check(data[end + 2 + size:end + 4 + size] == b"\r\n", "a chunk that does not end")
        place = end + 4 + size
        if size == 0:
            return body, place


def read_answer(data, place, bodiless):
    """Of the answer that begins there: status, headers, body, and where it ends."""
    end = data.find(b"\r\n\r\n", place)
    if end < 0:
        raise Incomplete()
    line, *lines = data[place:end].split(b"\r\n")
    found = re.fullmatch(rb"HTTP/1\.[01] (\d{3}) [\x20-\x7e]*", line)
    check(found, f"no status line: {line[:200]}")
    status, headers = int(found.group(1)), {}
    for one in lines:
        name, colon, value = one.partition(b":")
        check(colon and TOKEN.fullmatch(name) and not re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value), f"no header: {one}")
        name = name.decode().lower()
        check(name not in headers, f"twice: {name}")
        headers[name] = value.strip().decode()
    place = end + 4
    if bodiless or status < 200 or status in (204, 304):
        return status, headers, b"", place
    check(("content-length" in headers) != ("transfer-encoding" in headers) or headers.get("connection") == "close",
          f"where does it end? {headers}")
    if "transfer-encoding" in headers:
        body, place = read_chunks(data, place)
        return status, headers, body, place
    if "content-length" not in headers:  # until the connection ends, as HTTP/1.0 has it
        raise Incomplete()
    length = int(headers["content-length"])
    if len(data) < place + length:
        raise Incomplete()
    return status, headers, data[place:place + length], place + length


def check_body(types, status, headers, body):
    kind = headers.get("content-type", "").split(";")[0]
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if kind.endswith("json"):
        told = json.loads(body.decode("utf-8"))
        check(status < 400 or kind == "application/problem+json", f"{status} as {kind}")
    if kind == "application/problem+json":
        check(told["status"] == status >= 400 and told["type"] in types and isinstance(told["title"], str), told)
    elif status >= 400:
        page = status == 404 and kind == "text/html"  # for who asks for one
        check(page or is_the_librarys(status, headers, body), f"{status} {headers} {body[:300]}")


def is_the_librarys(status, headers, body):
    """The HTTP library answers what it cannot read by itself, and hangs up. In some versions the head comes twice."""
    return headers.get("connection") == "close" and body.startswith((b"<html>", b"HTTP/1.1 %d " % status))


def check_answers(data, types, bodiless, ended):
    """The statuses of those that are whole. Of one that has not ended, what is there is checked."""
    place, statuses = 0, []
    while place < len(data):
        try:
            status, headers, body, place = read_answer(data, place, bodiless)
        except Incomplete:
            check(not ended or b"text/event-stream" in data or data.count(b"HTTP/1.") > 1, f"cut off: {data[-300:]}")
            return statuses
        check(status not in (500, 502), f"{status}: {body[:500]}")
        if status >= 200:
            if not bodiless and status not in (204, 304):
                check_body(types, status, headers, body)
                if body.startswith(b"HTTP/1.1"):
                    return [*statuses, status]
            statuses.append(status)
    return statuses


def converse(port, raw, types, patience):
    """Sends it, and reads until there is an answer, the server hangs up, or nothing comes."""
    bodiless = raw.startswith(b"HEAD ")
    data, ended = b"", False
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        try:
            connection.sendall(raw)
            while not ended and not (check_answers(data, types, bodiless, False) and b"onnection: close" not in data):
                part = connection.recv(1 << 18)
                ended = not part
                data += part
                if b"text/event-stream" in data and data.count(b"\n\n"):
                    break
        except TimeoutError:
            pass
        except (ConnectionResetError, BrokenPipeError):
            ended = not data or data.endswith(b"\n")  # what was under way may be lost with the connection
    return check_answers(data, types, bodiless, ended)


# ---- Playing ----


class Play:
    def __init__(self, server, headers):
        self.server = server
        self.headers = headers
        self.own = threading.local()
        self.document = self.client().get("/v1/openapi.json").json
        self.types = set(self.document["components"]["schemas"]["Problem"]["properties"]["type"]["examples"])
        self.sent = self.answered = self.skipped = self.valid = 0
        self.wrong = []

    def client(self):
        if not hasattr(self.own, "client"):
            self.own.client = Client(self.server.port, self.headers)
        return self.own.client

    def control(self):
        """Whoever asks for something sensible gets it."""
        client = self.client()
        check(client.put(f"/v1/workflows/{WORKFLOW}", {"paused": False}).status == 200, "a control request")
        run = client.trigger(WORKFLOW, input=[1])
        check(client.get(f"/v1/runs/{run}").json["input"] == [1], "what was triggered is there")
        check(client.post(f"/v1/runs/{run}/cancel").json["status"] == "cancelled", "and can be changed")

    def base(self, rng, job):
        for _ in range(3):
            try:
                return valid_request(rng, self.client(), self.server.url, self.document, job)
            except (Failure, IndexError, KeyError):
                continue  # what it needs was changed by another one's request
        self.skipped += 1
        return None

    def play(self, number, job):
        method, path, operation = job
        rng = random.Random(f"{RUNNER.seed}/{number}/{operation['operationId']}")
        request = self.base(rng, job)
        if request:
            self.valid += any(status < 400 for status in self.send(operation, ["as it is"], request.raw()))
            for _ in range(MUTANTS):
                statuses = self.send(operation, *mutate(rng, request.raw()))
                self.sent += 1
                self.answered += bool(statuses)
        self.control()

    def send(self, operation, names, raw):
        try:
            patience = 0.1 if "truncate" in names else SILENCE  # the rest of it never comes
            statuses = converse(self.server.port, raw, self.types, patience * PATIENCE)
            check(self.server.process.alive(), "the server is gone")
            return statuses
        except (Failure, ValueError, KeyError, OSError) as error:
            self.wrong.append(f"{operation['operationId']}, {names}: {error!r}\n{raw[:3000]!r}")
            return []


def requests_changed_at_random_do_no_harm(directory):
    url = make_store(KIND, directory)
    secret = run_program("--store", url, "token", "create", "fuzz", "--role", "admin", "--role", "root").stdout.strip()
    headers = {"Authorization": f"Bearer {secret}"}
    RUNNER.note(f"seed {RUNNER.seed}")
    with Server(directory, url, "--no-worker", "--receive-limit", "1s", "--max-body", "100000") as server:
        play = Play(server, headers)
        play.control()
        jobs = [(number, job) for number in range(ROUNDS) for job in operations(play.document)]
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(play.play, *job) for job in jobs]:
                done.result()
        RUNNER.note(f"{play.sent} requests, {play.answered} answers, {time.monotonic() - begun:.1f} s; of {len(jobs)} before they "
                    f"were changed {play.valid} were valid, {play.skipped} could not be made")
        check(not play.wrong, "\n".join(play.wrong[:5]))
        check(play.valid > len(jobs) / 2, f"only {play.valid} of {len(jobs)} were valid to begin with")
        check(play.answered > play.sent / 2, f"only {play.answered} of {play.sent} were answered")
        play.control()


RUNNER.case("requests_changed_at_random_do_no_harm", requests_changed_at_random_do_no_harm)
RUNNER.finish()

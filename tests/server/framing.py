#!/usr/bin/env python3
"""Requests that two readers may understand in two ways: where one ends, another one could hide. The server refuses them, hangs
up, and reads nothing of what follows; directly, over TLS, and behind haproxy, which tells it of some of them. F11."""

import os
import re
import socket
import ssl
import subprocess
import sys

from scene import HOST, Raw, Server, cases_on_a_server, check, make_certificate, make_store
from processes import PATIENCE, Process, Skipped
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
START = f"POST /v1/runs HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n"
GET = f"GET /v1/runs HTTP/1.1\r\n{HOST}"
TRIGGER = '{"workflow":"idle.v1"}'

case = cases_on_a_server(RUNNER, KIND)


def head(lines, start=START, body=""):
    return f"{start}{lines}\r\n\r\n{body}"


def chunked(body, lines="Transfer-Encoding: chunked"):
    return head(lines, body=body)


# What it is, what is sent before the hidden request (LENGTH is how long that is), and how it may be answered; 0: not at all.
CORPUS = [
    # The name of the header that tells the length is none.
    ("a space before the colon", head("Content-Length : LENGTH"), [400]),
    ("a tab before the colon", head("Content-Length\t: LENGTH"), [400]),
    ("a space before the name", head(" Content-Length: LENGTH"), [400]),
    ("a space before the first name", head("Content-Length: 0", start=START.replace("Host", " Host")), [400]),
    ("a space within the name", head("Content Length: LENGTH"), [400]),
    ("a NUL before the colon", head("Content-Length\0: LENGTH"), [400]),
    ("a NUL before the name", head("\0Content-Length: LENGTH"), [400]),
    ("a line feed's place taken by a NUL", head("X: y\0\0Content-Length: LENGTH"), [400]),
    ("a bare CR before the name", head("\rContent-Length: LENGTH"), [400]),
    ("a bare CR after the name", head("Content-Length\r: LENGTH"), [400]),
    ("a bare CR before the header", head("X: y\rContent-Length: LENGTH"), [400]),
    ("a bare CR and a space before the header", head("X: y\r Content-Length: LENGTH"), [400]),
    ("two CRs", head("X: y\r\r\nContent-Length: LENGTH"), [400]),
    ("an underscore is another name", head("Content_Length: LENGTH\r\nConnection: close"), [400]),
    ("no name", head(": LENGTH"), [400]),
    ("no colon", head("Content-Length LENGTH"), [400]),
    ("a name with a byte above 127", head("X\u00e9: 1\r\nContent-Length: LENGTH"), [400]),
    ("a name in quotes", head('"Content-Length": LENGTH'), [400]),
    # Folded.
    ("a folded length", head("Content-Length:\r\n LENGTH"), [400]),
    ("a length folded by a tab", head("Content-Length:\r\n\tLENGTH"), [400]),
    ("a length that is folded within", head("Content-Length: 1\r\n 2"), [400]),
    ("a length folded into another header", head("X: y\r\n Content-Length: LENGTH"), [400]),
    ("a fold of nothing", head("Content-Length: LENGTH\r\n "), [400]),
    ("a fold of nothing, before", head("X: y\r\n \r\nContent-Length: LENGTH"), [400]),
    ("a folded encoding", head("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5", body="0\r\n\r\n"), [400]),
    # The length is no number.
    ("a length with a plus", head("Content-Length: +LENGTH"), [400]),
    ("a length with a minus", head("Content-Length: -LENGTH"), [400]),
    ("a length in hexadecimal", head("Content-Length: 0x10"), [400]),
    ("a length with a point", head("Content-Length: 1.0"), [400]),
    ("a length with a unit", head("Content-Length: 1 B"), [400]),
    ("a length with a plus, to a HEAD", head("Content-Length: +LENGTH", GET.replace("GET", "HEAD")), [400]),
    ("a length with a plus, to the end of a HEAD", head("Content-Length: +LENGTH", GET.replace("GET", "D")), [400]),
    ("a length of nothing", head("Content-Length:"), [400]),
    ("a length of a space", head("Content-Length: "), [400]),
    ("a length with a space after", head("Content-Length: 1 "), [400]),
    ("a length with a NUL after", head("Content-Length: 1\0"), [400]),
    ("a length with a NUL within", head("Content-Length: 1\x005"), [400]),
    ("a length that is too large", head("Content-Length: 99999999999999999999"), [413]),
    ("a length that is too large by one", head("Content-Length: 18446744073709551616"), [413]),
    ("a list of lengths", head("Content-Length: LENGTH, LENGTH"), [400]),
    ("a list of other lengths", head("Content-Length: 0, LENGTH"), [400]),
    # Said twice.
    ("two lengths", head("Content-Length: LENGTH\r\nContent-Length: LENGTH"), [400]),
    ("two lengths that differ", head("Content-Length: 0\r\nContent-Length: LENGTH"), [400]),
    ("a length and an encoding", head("Content-Length: LENGTH\r\nTransfer-Encoding: chunked", body="0\r\n\r\n"), [400]),
    ("an encoding and a length", head("Transfer-Encoding: chunked\r\nContent-Length: LENGTH", body="0\r\n\r\n"), [400]),
    ("a length and a hidden encoding", head("Content-Length: 5\r\nTransfer-Encoding : chunked", body="0\r\n\r\n"), [400]),
    ("a length and an encoding behind a CR", head("Content-Length: 5\r\nX: y\rTransfer-Encoding: chunked", body="0\r\n\r\n"), [400]),
    ("a bad length and an encoding", chunked("0\r\n\r\n", "Content-Length: +5\r\nTransfer-Encoding: chunked"), [400]),
    ("two encodings", chunked("0\r\n\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), [400]),
    # Encodings.
    ("chunked, identity", chunked("0\r\n\r\n", "Transfer-Encoding: chunked, identity"), [400]),
    ("identity, chunked", chunked("0\r\n\r\n", "Transfer-Encoding: identity, chunked"), [400]),
    ("identity", head("Transfer-Encoding: identity\r\nContent-Length: LENGTH"), [400]),
    ("xchunked", chunked("0\r\n\r\n", "Transfer-Encoding: xchunked"), [400]),
    ("chunked in quotes", chunked("0\r\n\r\n", 'Transfer-Encoding: "chunked"'), [400]),
    ("chunked and a form feed", chunked("0\r\n\r\n", "Transfer-Encoding: \x0cchunked"), [400]),
    ("chunked and a space", chunked("0\r\n\r\n", "Transfer-Encoding: chunked "), [400]),
    ("chunked and a comma", chunked("0\r\n\r\n", "Transfer-Encoding: chunked,"), [400]),
    ("an encoding that is empty", chunked("0\r\n\r\n", "Transfer-Encoding:"), [400]),
    ("chunks in HTTP/1.0", chunked("0\r\n\r\n").replace("1.1", "1.0", 1).replace("\r\n", "\r\nConnection: keep-alive\r\n", 1), [400]),
    # Chunks.
    ("a chunk's size with a plus", chunked("+0\r\n\r\n"), [400]),
    ("a chunk's size with a minus", chunked("-0\r\n\r\n"), [400]),
    ("a chunk's size in C", chunked("0x0\r\n\r\n"), [400]),
    ("a chunk's size after a space", chunked(" 0\r\n\r\n"), [400]),
    ("a chunk's size before a space", chunked("0 \r\n\r\n"), [400]),
    ("a chunk without a size", chunked("\r\n\r\n"), [400]),
    ("a chunk's size with a CR", chunked("0\r0\r\n\r\n"), [400]),
    ("a chunk's size that is too large", chunked("10000000000000000\r\n\r\n"), [413]),
    ("a chunk that is longer than its size", chunked("1\r\n{}\r\n0\r\n\r\n"), [400]),
    ("a chunk whose line ends with LF", chunked("0\n\r\n"), [400]),
    ("a chunk whose extension ends with LF", chunked("2;\n{}\r\n0\r\n\r\n"), [400]),
    ("a chunk that ends with LF", chunked("2\r\n{}\n0\r\n\r\n"), [400]),
    ("a trailer that tells of a length", chunked("0\r\nContent-Length: LENGTH\r\n\r\n"), [400]),
    ("a trailer that is folded", chunked("0\r\nX: y\r\n Content-Length: LENGTH\r\n\r\n"), [400]),
    ("a trailer with a space", chunked("0\r\nContent-Length : LENGTH\r\n\r\n"), [400]),
    # Lines.
    ("lines that end with LF", head("Content-Length: LENGTH").replace("\r\n", "\n"), [400]),
    ("one line that ends with LF", head("X: y\nContent-Length: LENGTH"), [400]),
    ("a request line that ends with LF", head("Content-Length: LENGTH").replace("\r\n", "\n", 1), [400]),
    ("a last line that ends with LF", head("Content-Length: LENGTH").removesuffix("\r\n") + "\n", [400]),
    ("a line that begins with a NUL", head("\0: x\r\nContent-Length: LENGTH"), [400]),
    ("a line that is a NUL", head("\0\r\nContent-Length: LENGTH"), [400]),
    ("a value with a NUL", head("X: y\0z\r\nContent-Length: LENGTH"), [400]),
    ("a value that is a NUL", head("X:\0\r\nContent-Length: LENGTH"), [400]),
    ("a value that ends with a NUL", head("X: y\0\r\nContent-Length: LENGTH"), [400]),
    ("the last value ends with two NULs", head("Content-Length: 0\r\nX: y\0\0"), [400]),
    ("a value with an escape", head("X: \x1b[31m\r\nContent-Length: LENGTH"), [400]),
    ("a value with a DEL", head("X: \x7f\r\nContent-Length: LENGTH"), [400]),
    # The request's line.
    ("a space before the method", " " + head("Content-Length: LENGTH"), [0, 400]),
    ("two spaces before the target", head("Content-Length: LENGTH").replace(" ", "  ", 1), [400]),
    ("a tab before the target", head("Content-Length: LENGTH").replace(" ", "\t", 1), [0, 400]),
    ("two spaces before the version", head("Content-Length: LENGTH").replace(" HTTP", "  HTTP", 1), [400]),
    ("a space after the version", head("Content-Length: LENGTH").replace("1.1", "1.1 ", 1), [400]),
    ("a space in the target", head("Content-Length: LENGTH").replace("runs", "ru ns", 1), [400]),
    ("a space in the query", head("", GET.replace("runs", "runs?key=a b")), [400]),
    ("a CR in the target", head("Content-Length: LENGTH").replace("runs", "ru\rns", 1), [400]),
    ("a NUL in the target", head("Content-Length: LENGTH").replace("runs", "runs\0/x", 1), [400]),
    ("a NUL in the query", head("", GET.replace("runs", "runs?limit=1\x002")), [400]),
    ("a NUL before the query", head("", GET.replace("runs", "runs\0?limit=1")), [400]),
    ("a target of another server", head("", GET.replace("/v1", "http://example.org/v1")), [404]),
    ("a target of this server with a host", head("", GET.replace("/v1", "http://localhost/v1")), [404]),
    ("a target without a slash", head("", GET.replace("/v1", "v1")), [404]),
    ("too many parameters", head("", GET.replace("runs", "runs?" + "&".join(["a=1"] * 2000))), [0, 400, 414]),
    ("very many headers", head("\r\n".join(f"X-{i}: {i}" for i in range(250)), GET), [0, 400, 431]),
    ("no host", head("Content-Length: LENGTH").replace(HOST, ""), [400]),
    ("two hosts", head(HOST + "Content-Length: LENGTH"), [400]),
    ("HTTP/0.9", "GET /v1/runs\r\n\r\n", [0, 400]),
    ("HTTP/0.9 in words", head("Content-Length: LENGTH").replace("1.1", "0.9", 1), [400, 505]),
    ("HTTP/2", head("Content-Length: LENGTH").replace("1.1", "2.0", 1), [400, 505]),
    ("HTTP/11", head("Content-Length: LENGTH").replace("1.1", "11", 1), [0, 400]),
    ("HTTP in small letters", head("Content-Length: LENGTH").replace("HTTP", "http", 1), [0, 400]),
]

# These are right, and the request behind them is not hidden: it is refused, or answered after them.
UNUSUAL = [
    ("an empty line before", "\r\n" + head(f"Content-Length: {len(TRIGGER)}", body=TRIGGER)),
    ("a length with zeros", head(f"Content-Length: 000{len(TRIGGER)}", body=TRIGGER)),
    ("names in any case", head(f"cONTENT-lENGTH:{len(TRIGGER)}", body=TRIGGER)),
    ("tabs around nothing", head(f"X:\t\t\r\nContent-Length: \t{len(TRIGGER)}", body=TRIGGER)),
    ("values of text", head(f"X: \u00e9\tb\r\nContent-Length: {len(TRIGGER)}", body=TRIGGER)),
    ("chunks", chunked(f"{len(TRIGGER):x}\r\n{TRIGGER}\r\n0\r\n\r\n")),
    ("chunks with extensions", chunked(f"1;a=b\r\n{{\r\n{len(TRIGGER) - 1:X};c=\"d\"\r\n{TRIGGER[1:]}\r\n0;e\r\nX: y\r\n\r\n")),
    ("HTTP/1.0", head(f"Content-Length: {len(TRIGGER)}", body=TRIGGER).replace("1.1", "1.0", 1)),
]


def hidden(number):
    """Must not be done."""
    return f"PUT /v1/workflows/hidden-{number}.v1 HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"


def attack(number, sent):
    behind = hidden(number)
    return (sent.replace("LENGTH", str(len(behind))) + behind).encode("latin-1" if "\u00e9" not in sent else "utf-8")


def statuses(answer):
    """Of all answers, and of what stands between them."""
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d+) ", answer)]


def was_done(server, number):
    return server.client.get(f"/v1/workflows/hidden-{number}.v1").status == 200


def check_refused(server, number, name, answer, expected):
    found = statuses(answer)
    check((found or [0]) in [[one] for one in expected], f"{name}: {expected} expected, {answer[:400]}")
    check(not was_done(server, number), f"{name}: what was hidden was done")
    if found and b"problem+json" in answer:
        check(b"\r\nConnection: close\r\n" in answer, f"{name}: it is said that the connection ends: {answer[:400]}")


def tell(raw, data, step):
    """In parts, each of which the server may take for itself. It may have hung up before all was said."""
    raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for start in range(0, len(data), step):
            raw.send(data[start:start + step])
    except OSError:
        pass
    return raw.receive()


@case()
def what_can_be_read_in_two_ways_is_refused_and_the_rest_is_not_read(server, client):
    for number, (name, sent, expected) in enumerate(CORPUS):
        with Raw(server.port) as raw:
            check_refused(server, number, name, tell(raw, attack(number, sent), 1 << 20), expected)
    check(client.get("/v1/runs").json["items"] == [], "no run was made")


@case()
def it_is_refused_in_whatever_parts_it_comes(server, client):
    """Also while other heads are on their way."""
    others = [Raw(server.port).send(GET + "X: ") for _ in range(20)]
    for number, (name, sent, expected) in enumerate(CORPUS):
        with Raw(server.port) as raw:
            check_refused(server, number, name, tell(raw, attack(number, sent), 5 + number % 40), expected + [0])
    for raw in others:
        check(raw.send("y\r\n\r\n").receive(b"\r\n\r\n").startswith(b"HTTP/1.1 200"), "the others are answered")
        raw.close()


@case()
def what_is_refused_is_not_read_after_a_good_request_either(server, client):
    good = f"{GET}\r\n".encode()
    for number, (name, sent, expected) in enumerate(CORPUS):
        with Raw(server.port) as raw:
            answer = tell(raw, good + attack(number, sent), 1 << 20)
        first, _, rest = answer.partition(b'"next":null}')
        check(statuses(first) == [200], f"{name}: the first is answered: {first[:300]}")
        check_refused(server, number, name, rest, expected + [0])


@case()
def what_is_unusual_and_right_is_served(server, client):
    for number, (name, sent) in enumerate(UNUSUAL):
        before = len(client.get("/v1/runs").json["items"])
        with Raw(server.port) as raw:
            answer = raw.send(sent + f"{GET}Connection: close\r\n\r\n").receive()
        check(statuses(answer) in ([201, 200], [201]), f"{name}: {answer[:400]}")
        check(len(client.get("/v1/runs").json["items"]) == before + 1, f"{name}: one run was made")
        check(b"\r\nConnection: close\r\n" in answer, f"{name}: at the end it hangs up")


@case()
def what_follows_chunks_is_not_read(server, client):
    """Not everybody on the way takes the same line ends within them."""
    number = len(CORPUS)
    with Raw(server.port) as raw:
        answer = raw.send(chunked(f"{len(TRIGGER):x};\n{TRIGGER}\n0\n\n") + hidden(number)).receive()
    check(statuses(answer) in ([201], [400]) and b"\r\nConnection: close\r\n" in answer, answer)
    check(not was_done(server, number), "what was hidden was done")


@case()
def heads_of_any_length_are_walked_to_their_end(server, client):
    """The library moves and grows what it reads them into."""
    for length in (0, 100, 1000, 1500, 2500, 5000, 8000, 10000, 14000):
        query = "&".join(f"tag=k{i}%3D+v" for i in range(20))
        request = f"{GET.replace('runs', 'runs?' + query)}X: {'y' * length}\r\nCookie: a=b; c=\"d\"\r\n\r\n".encode()
        with Raw(server.port) as raw:
            raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for step in (len(request), 700, len(request)):
                for start in range(0, len(request), step):
                    raw.send(request[start:start + step])
                answer = raw.receive(b'"next":null}')
                check(statuses(answer) == [200], f"{length} bytes: {answer[:300]}")
            last = raw.send(request * 3 + f"{GET}Connection: close\r\n\r\n".encode()).receive()
            check(statuses(last) == [200] * 4, f"{length} bytes, one behind the other: {last[:300]}")


# ---- Over TLS ----


def over_tls_it_is_the_same(directory):
    certificate, key = make_certificate(directory, "one")
    context = ssl.create_default_context(cafile=certificate)
    with Server(directory, make_store(KIND, directory), "--no-worker", "--tls-cert", certificate, "--tls-key", key) as server:
        for number, (name, sent, expected) in enumerate(CORPUS[::6]):
            plain = socket.create_connection(("127.0.0.1", server.port), timeout=60 * PATIENCE)
            with context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=True) as secure:
                secure.sendall(attack(number, sent))
                answer = b""
                try:
                    while part := secure.recv(1 << 16):
                        answer += part
                except OSError:
                    pass
            check((statuses(answer) or [0]) in [[one] for one in expected + [0]], f"{name}: {answer[:300]}")
        check(not [line for line in server.log() if "hidden" in line["path"]], "what was hidden was done")


RUNNER.case("over_tls_it_is_the_same", over_tls_it_is_the_same)


# ---- Behind haproxy ----

HAPROXY = """
global
    maxconn 200
defaults
    mode http
    timeout connect 60s
    timeout client 60s
    timeout server 60s
    timeout queue 60s
{fronts}
"""
# One connection to the server, which all callers share: whoever is one answer behind is noticed.
FRONT = """
frontend {name}
    bind fd@{fd}
    {options}
    http-response set-header X-Through {name}
    default_backend {name}_server
backend {name}_server
    {options_behind}
    http-reuse always
    server s 127.0.0.1:{port} maxconn 1
"""
FRONTS = {
    "kept": ("option http-keep-alive", "option http-keep-alive"),
    "lenient": ("option http-keep-alive\n    option accept-invalid-http-request", "option http-keep-alive"),
    "closed": ("option accept-invalid-http-request", "option http-server-close"),
}


class Haproxy:
    def __init__(self, directory, port):
        self.listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in FRONTS}
        self.ports = {name: listener.getsockname()[1] for name, listener in self.listeners.items()}
        fds = {name: listener.fileno() for name, listener in self.listeners.items()}
        fronts = "".join(FRONT.format(name=name, fd=fds[name], options=options, options_behind=behind, port=port)
                         for name, (options, behind) in FRONTS.items())
        config = directory / "haproxy.cfg"
        config.write_text(HAPROXY.format(fronts=fronts))
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
        try:
            subprocess.run(["haproxy", "-v"], env={"PATH": path}, check=True, capture_output=True)
        except FileNotFoundError:
            raise Skipped("there is no haproxy") from None
        self.process = Process(directory, "haproxy", ["env", f"PATH={path}", "haproxy", "-db", "-f", config],
                               pass_fds=list(fds.values()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        for listener in self.listeners.values():
            listener.close()


def through(answer, front):
    """The answers that came from the server."""
    return answer.count(f"\r\nx-through: {front}\r\n".encode())


def what_haproxy_lets_through_is_what_it_asked_for(directory):
    """No more requests are served than it has sent on, and nobody gets the answer to somebody else's."""
    with Server(directory, make_store(KIND, directory), "--no-worker") as server:
        check(server.client.put("/v1/workflows/idle.v1", {}).status == 200, "the workflow is created")
        victims = [server.client.trigger("idle.v1") for _ in range(3)]
        with Haproxy(directory, server.port) as proxy:
            for front, port in proxy.ports.items():
                first = len(CORPUS) * list(FRONTS).index(front)
                for number, (name, sent, _) in enumerate(CORPUS, first):
                    what = f"{front}: {name}"
                    with Raw(port) as raw:
                        raw.send(attack(number, sent))
                        raw.socket.shutdown(socket.SHUT_WR)
                        answer = raw.receive()
                    check(not was_done(server, number) or through(answer, front) >= 2, f"{what}: {answer[:600]}")
                    for victim in victims:
                        with Raw(port) as raw:
                            told = raw.send(f"GET /v1/runs/{victim} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n").receive()
                        check(statuses(told) == [200] and f'"id":"{victim}"'.encode() in told, f"{what}: the next: {told[:600]}")
                    check(proxy.process.alive(), proxy.process.said())


RUNNER.case("what_haproxy_lets_through_is_what_it_asked_for", what_haproxy_lets_through_is_what_it_asked_for)

RUNNER.finish()

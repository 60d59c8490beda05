#!/usr/bin/env python3
"""What nobody should send, and who should not be served: after each the server answers, and ends well. F11."""

import gzip
import http.client
import json
import os
import pathlib
import socket
import ssl
import sys

from scene import HOST, Client, Raw, Server, cases_on_a_server, check, follow, make_certificate, make_store, run_program, wait_until
from processes import PATIENCE
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
JSON = HOST + "Content-Type: application/json\r\n"
FACT = '{"workflow":"idle.v1"}'

case = cases_on_a_server(RUNNER, KIND)


def count_runs(client):
    return len(client.get("/v1/runs?limit=1000").json["items"])


# ---- Requests that are not well-formed ----


@case("--receive-limit", "2s")
def garbage_is_refused_or_hung_up_on(server, client):
    for garbage in (b"\0" * 100, os.urandom(3000), b"\r\n" * 500, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                    b"GET /healthz\r\n\r\n", b"get\t/\tHTTP/1.1\r\n\r\n", b"GET /healthz HTTP/1.1\r\nNo colon\r\n\r\n",
                    b"GET /healthz HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with Raw(server.port) as raw:
            raw.send(garbage)
            raw.socket.shutdown(socket.SHUT_WR)
            answer = raw.receive()
            check(not answer or b" 4" in answer[:13] or b" 5" in answer[:13] or garbage.startswith(b"GET /healthz\r"),
                  (garbage[:40], answer[:100]))


@case()
def a_request_that_ends_early_anywhere_harms_nobody(server, client):
    body = FACT
    whole = f"POST /v1/runs HTTP/1.1\r\n{JSON}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    before = count_runs(client)
    for length in range(0, len(whole), 3):
        with Raw(server.port) as raw:
            raw.send(whole[:length])
    check(count_runs(client) == before, "half a request has no effect")
    for _ in range(30):  # whole, but nobody waits for the answer
        with Raw(server.port) as raw:
            raw.send(whole)
    wait_until(lambda: count_runs(client) == before + 30, "whole requests have")


@case("--receive-limit", "1s")
def whoever_dribbles_is_hung_up_on(server, client):
    """However often a byte comes: in the line, in a header, in the body, in a chunk."""
    starts = ["G", f"GET /healthz HTTP/1.1\r\n{HOST}X: ", f"POST /v1/runs HTTP/1.1\r\n{JSON}Content-Length: 5000\r\n\r\n",
              f"POST /v1/runs HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n1000\r\n"]
    raws = [Raw(server.port) for _ in starts]
    for raw, start in zip(raws, starts):
        raw.send(start)
        raw.socket.setblocking(False)

    def dribble(raw):
        try:
            raw.socket.send(b"a")
            return raw.socket.recv(1000) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    open_ones = list(raws)

    def all_gone():
        open_ones[:] = [raw for raw in open_ones if not dribble(raw)]
        return not open_ones

    wait_until(all_gone, "they are hung up on")
    check(count_runs(client) == 0, "no run")


@case("--max-body", "20000")
def a_body_that_is_too_large_is_refused(server, client):
    for framing, body in ((f"Content-Length: 20001\r\n\r\n", "x" * 20001), ("Content-Length: 99999999999999999999\r\n\r\n", ""),
                          ("Content-Length: 18446744073709551615\r\n\r\n", ""), ("Content-Length: -1\r\n\r\n", ""),
                          ("Transfer-Encoding: chunked\r\n\r\n", "5000\r\n" + "x" * 0x5000 + "\r\n0\r\n\r\n"),
                          ("Transfer-Encoding: chunked\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n"),
                          ("Transfer-Encoding: chunked\r\n\r\n", "-5\r\nabc")):
        with Raw(server.port) as raw:
            raw.send(f"POST /v1/runs HTTP/1.1\r\n{JSON}{framing}")
            try:
                raw.send(body)
            except OSError:
                pass
            check(raw.status() in (0, 400, 413), (framing, body[:30]))
    answer = client.post("/v1/runs", raw=b"x" * 20001, headers={"Content-Type": "application/json"})
    check((answer.status, answer.problem) == (413, "too_large"), answer.text)


@case()
def a_route_that_takes_no_body_takes_hardly_any(server, client):
    for path in ("/healthz", "/v1/runs"):
        check(client.ask("GET", path, raw=b"x" * 4096).status == 200, path)
        for framing, body in (("Content-Length: 4097\r\n\r\n", ""),
                              ("Transfer-Encoding: chunked\r\n\r\n", "1001\r\n" + "x" * 0x1001 + "\r\n0\r\n\r\n")):
            with Raw(server.port) as raw:
                check(raw.send(f"GET {path} HTTP/1.1\r\n{HOST}{framing}{body}").status() == 413, (path, framing))


def unread(port):
    """Bytes that the server has not taken from its connections."""
    lines = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(line[4].split(":")[1], 16) for line in lines if int(line[1].split(":")[1], 16) == port and line[3] == "01")


@case("--max-body", str(4 << 20), "--receive-limit", "300s")
def all_bodies_together_are_bounded(server, client):
    """As many as sixteen of the largest. These here leave a mebibyte of that, and never end."""
    head = f"POST /v1/runs HTTP/1.1\r\n{JSON}Content-Length: {4 << 20}\r\n\r\n"
    raws = [Raw(server.port).send(head).send(b"x" * ((4 << 20) - (64 << 10))) for _ in range(16)]
    wait_until(lambda: unread(server.port) == 0, "they are received")

    def send():
        return client.post("/v1/runs", raw=b"x" * (3 << 20), headers={"Content-Type": "application/json"})

    answer = send()
    check((answer.status, answer.problem) == (503, "busy") and answer.headers["Retry-After"], answer.text)
    check(client.get("/v1/runs").status == 200, "who sends nothing is served")
    client.trigger("idle.v1")
    raws.pop().close()
    wait_until(lambda: send().status == 400, "there is room again")
    for raw in raws:
        raw.close()


@case()
def what_is_said_to_be_shorter_than_it_is_is_no_second_request(server, client):
    hidden = f"DELETE /v1/schedules/none HTTP/1.1\r\n{HOST}\r\n"
    for framing in ("Content-Length: 0\r\nContent-Length: 9\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                    "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n",
                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Host: other\r\n"):
        with Raw(server.port) as raw:
            raw.send(f"POST /v1/runs HTTP/1.1\r\n{JSON}{framing}\r\n0\r\n\r\n{hidden}")
            raw.socket.shutdown(socket.SHUT_WR)
            answer = raw.receive()
            check(answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1") == 1, (framing, answer))
    check(not [line for line in server.log() if line["method"] == "DELETE"], "the hidden request was not served")


@case()
def who_asks_and_what_it_is_known_by_is_said_once(server, client):
    """A proxy in front may have looked at the other one."""
    for name in ("Host", "Authorization", "Holdfast-Tenant", "Holdfast-Actor", "Idempotency-Key"):
        own = "" if name == "Host" else HOST
        with Raw(server.port) as raw:
            raw.send(f"GET /v1/runs HTTP/1.1\r\n{own}{name}: localhost\r\n{name.lower()}: localhost\r\n\r\n")
            raw.socket.shutdown(socket.SHUT_WR)
            answer = raw.receive()
            check(answer.startswith(b"HTTP/1.1 400") and f"send the header {name} once".encode() in answer, answer)


@case("--receive-limit", "2s")
def lines_and_headers_without_end_are_refused(server, client):
    many = "".join(f"X-{i}: {i}\r\n" for i in range(10000))
    for request in (f"GET /healthz HTTP/1.1\r\n{HOST}{many}\r\n", f"GET /healthz HTTP/1.1\r\n{HOST}X: {'y' * 100000}\r\n\r\n",
                    f"GET /{'a' * 100000} HTTP/1.1\r\n{HOST}\r\n", f"GET /healthz?{'&'.join(['a=1'] * 1000)} HTTP/1.1\r\n{HOST}\r\n",
                    f"GET /healthz HTTP/1.1\r\n{HOST}{''.join(f'X-{i}: {i}{chr(13)}{chr(10)}' for i in range(300))}\r\n",
                    f"{'G' * 100000} / HTTP/1.1\r\n{HOST}\r\n", f"GET /healthz HTTP/1.1\r\n{HOST}{' ' * 90000}"):
        with Raw(server.port) as raw:
            try:
                raw.send(request)
            except OSError:
                pass
            check(raw.status() in (0, 400, 414, 431), request[:50])


@case()
def text_that_is_not_utf8_is_refused(server, client):
    bad = (f"GET /v1/workflows/%FF HTTP/1.1\r\n{HOST}\r\n".encode(), f"GET /v1/runs?key=%C3 HTTP/1.1\r\n{HOST}\r\n".encode(),
           f"GET /v1/workflows/%00 HTTP/1.1\r\n{HOST}\r\n".encode(), f"GET /v1/workflows/a%0 HTTP/1.1\r\n{HOST}\r\n".encode(),
           f"GET /v1/workflows/%zz HTTP/1.1\r\n{HOST}\r\n".encode(), b"GET /v1/workflows/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
           b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nHoldfast-Actor: \xe9\r\n\r\n",
           f"POST /v1/runs HTTP/1.1\r\n{JSON}Content-Length: {len(FACT)}\r\nIdempotency-Key: ".encode() + b"\xc3\r\n\r\n" + FACT.encode(),
           f"POST /v1/runs HTTP/1.1\r\n{JSON}Content-Length: 3\r\n\r\n".encode() + b'"\xff"',
           f"POST /v1/runs HTTP/1.1\r\n{JSON}Content-Length: 3\r\n\r\n".encode() + b"{}\0")
    for request in bad:
        with Raw(server.port) as raw:
            check(raw.send(request).status() == 400, request)
    check(count_runs(client) == 0, "no run")


@case()
def a_path_puts_nothing_into_the_answers_headers(server, client):
    for method, path in (("GET", "/v1/%0d%0aSet-Cookie:%20a=b"), ("PATCH", "/v1/workflows/%0d%0aSet-Cookie:%20a=b"),
                         ("GET", "/v1/workflows/%0d%0aSet-Cookie:%20a=b")):
        answer = client.ask(method, path)
        check(answer.status in (400, 404, 405) and "Set-Cookie" not in answer.headers, (answer.status, answer.headers))
    check(client.ask("PATCH", "/v1/workflows/a").headers["Allow"] == "GET, HEAD, PUT", "Allow names what there is")


# ---- What is unusual, but right ----


@case()
def pipelined_requests_are_answered_in_their_order(server, client):
    runs = [client.trigger("idle.v1") for _ in range(30)]
    with Raw(server.port) as raw:
        raw.send("".join(f"GET /v1/runs/{run} HTTP/1.1\r\n{HOST}\r\n" for run in runs[:-1]))
        raw.send(f"GET /v1/runs/{runs[-1]} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")
        answer = raw.receive().decode()
    places = [answer.index(f'"id":"{run}"') for run in runs]
    check(places == sorted(places) and answer.count("HTTP/1.1 200") == 30, "each in its turn")


@case()
def a_head_is_a_get_without_the_body(server, client):
    run = client.trigger("idle.v1")
    whole = client.get(f"/v1/runs/{run}")
    head = client.ask("HEAD", f"/v1/runs/{run}")
    check(head.status == 200 and head.bytes == b"" and head.headers["ETag"] == whole.headers["ETag"], head.headers)
    check(int(head.headers["Content-Length"]) == len(whole.bytes), "as long as the body would be")
    check(client.ask("HEAD", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"}).status == 200, "a stream")


@case()
def what_answers_a_head_ends_with_its_headers(server, client):
    """A stream's too: what follows is the next answer."""
    run = client.trigger("idle.v1")
    for path in ("/v1/stream", f"/v1/runs/{run}/events", f"/v1/runs/{run}"):
        with Raw(server.port) as raw:
            raw.send(f"HEAD {path} HTTP/1.1\r\n{HOST}Accept: text/event-stream\r\n\r\n"
                     f"GET /healthz HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")
            head, _, rest = raw.receive().partition(b"\r\n\r\n")
            check(head.startswith(b"HTTP/1.1 ") and rest.startswith(b"HTTP/1.1 200 OK"), f"{path}: {rest[:100]}")


@case()
def whoever_expects_to_be_told_is_told_to_go_on(server, client):
    head = f"HTTP/1.1\r\n{JSON}Expect: 100-continue\r\nContent-Length: {len(FACT)}\r\n\r\n"
    with Raw(server.port) as raw:
        check(raw.send(f"POST /v1/runs {head}").receive(b"\r\n\r\n").startswith(b"HTTP/1.1 100"), "go on")
        check(raw.send(FACT).status() == 201, "made")
    with Raw(server.port) as raw:
        check(raw.send(f"POST /v1/none {head}").status() == 404, "refused before the body is sent")


@case()
def a_body_may_come_in_chunks(server, client):
    chunks = "".join(f"1;ext=1\r\n{character}\r\n" for character in FACT)
    with Raw(server.port) as raw:
        raw.send(f"POST /v1/runs HTTP/1.1\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\nTrailer: x\r\n\r\n")
        check(raw.status() == 201, "made")


@case()
def large_answers_are_compressed_for_whoever_wants_it(server, client):
    run = client.trigger("idle.v1", input="a" * 900000)
    plain = client.get(f"/v1/runs/{run}")
    packed = client.get(f"/v1/runs/{run}", headers={"Accept-Encoding": "br;q=1, gzip;q=0.5"})
    check(packed.headers["Content-Encoding"] == "gzip" and len(packed.bytes) < 20000, packed.headers)
    check(gzip.decompress(packed.bytes) == plain.bytes, "the same")
    for accepted in ("gzip;q=0", "gzip; q=0.0", "x-gzip", "identity", ""):
        answer = client.get(f"/v1/runs/{run}", headers={"Accept-Encoding": accepted})
        check("Content-Encoding" not in answer.headers and answer.bytes == plain.bytes, accepted)
    again = client.get(f"/v1/runs/{run}", headers={"Accept-Encoding": "gzip", "If-None-Match": plain.headers["ETag"]})
    check(again.status == 304 and again.bytes == b"", again.status)


# ---- Streams ----


@case()
def a_stream_that_cannot_begin_is_a_problem(server, client):
    run = client.trigger("idle.v1")
    with follow(server, run, "Last-Event-ID: -5") as raw:
        check(raw.status() == 400, "it was answered")
    with follow(server, "019a88d0-1234-7abc-8def-0123456789ab") as raw:
        check(raw.status() == 404, "no such run")


@case()
def an_event_is_one_line_whatever_it_carries(server, client):
    run = client.trigger("idle.v1")
    raw = '{"name":"go","payload":[1,\n\nevent: end\r\ndata: 2]}'.replace("event: end\r\ndata: ", "\r\n\r")
    check(client.post(f"/v1/runs/{run}/signals", raw=raw, headers={"Content-Type": "application/json"}).status == 202, "")
    client.post(f"/v1/runs/{run}/cancel")
    text = client.get(f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"}).text
    for block in text.split("\n\n")[1:-1]:
        lines = block.split("\n")
        check(len(lines) == 2 and lines[1].startswith("data: {"), lines)
        json.loads(lines[1][6:])
        check("\r" not in block, block)


@case()
def a_client_that_does_not_read_its_answer_holds_up_nobody(server, client):
    runs = [client.trigger("idle.v1", input="y" * 500000) for _ in range(10)]
    raws = [Raw(server.port).send(f"GET /v1/runs HTTP/1.1\r\n{HOST}\r\n") for _ in range(10)]
    wait_until(lambda: client.get(f"/v1/runs/{runs[0]}").status == 200, "others are answered")
    for raw in raws:
        raw.close()


# ---- Many ----


@case("--receive-limit", "2s", wrap=("prlimit", "--nofile=600:600"))
def more_connections_than_there_may_be_wait_for_their_turn(server, client):
    client.close()
    raws = [Raw(server.port) for _ in range(700)]
    wait_until(lambda: Client(server.port).get("/healthz").status == 200, "room is made for others")
    for raw in raws:
        raw.close()


# ---- Everything at once ----


@case()
def a_filter_that_leaves_nothing_out_is_no_filter(server, client):
    client.trigger("idle.v1")
    for chosen in ({}, {"limit": 1}, {"status": None}, {"status": []}, {"overdue": False}, {"prefix": ""}, {"cursor": None}):
        answer = client.post("/v1/runs/bulk", {"action": "cancel", "filter": chosen})
        check(answer.status == 400, (chosen, answer.text))


@case()
def numbers_beyond_their_bounds_are_refused(server, client):
    run = client.trigger("idle.v1")
    for path in ("/v1/runs?limit=-1", "/v1/runs?limit=1001", "/v1/runs?limit=99999999999999999999", "/v1/runs?limit=x",
                 f"/v1/runs/{run}/events?limit=0", f"/v1/runs/{run}/events?limit=-1", f"/v1/runs/{run}/events?after=-1",
                 f"/v1/runs/{run}?wait=-1s", f"/v1/runs/{run}?wait=99999999999999999999d", "/v1/runs?cursor=zz",
                 f"/v1/runs/{run}/events?limit=1001", "/v1/runs?created_after=never", "/v1/runs?parent=1",
                 "/v1/runs?limit=1&limit=x", "/v1/runs?=1", "/v1/runs?tag"):
        check(client.get(path).status in (400, 200) if path.endswith("tag") else client.get(path).status == 400, path)
    for value in ('"0"', '"-1"', '"x"', "3", '"99999999999999999999"'):
        answer = client.post(f"/v1/runs/{run}/pause", headers={"If-Match": value})
        check(answer.status == 400, (value, answer.status))


# ---- The log ----


@case()
def the_log_has_no_control_characters(server, client):
    for path in (b"/a\x1b[31m", b"/\x9b31m", b"/a\x7f", b"/\xc2\x85", b"/\x01\x02"):
        with Raw(server.port) as raw:
            raw.send(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").status()
    wait_until(lambda: len(server.log()) == 6, "logged")
    for line in server.process.errors.read_bytes().splitlines():
        check(not any(byte < 32 or byte == 127 for byte in line), line)
        text = line.decode()
        check(not any(0x80 <= ord(character) < 0xa0 for character in text), text)


# ---- TLS ----


def tls_is_served_and_wrong_files_are_told(directory):
    url = make_store(KIND, directory)
    certificate, key = make_certificate(directory, "one")
    _, other_key = make_certificate(directory, "other")
    (directory / "garbage").write_text("garbage")
    (directory / "empty").write_text("")
    for pair in ((certificate, other_key), (certificate, str(directory / "garbage")), (str(directory / "garbage"), key),
                 (certificate, str(directory / "none")), (str(directory / "empty"), key), (certificate, str(directory))):
        done = run_program("--store", url, "serve", "--listen", "127.0.0.1:0", "--tls-cert", pair[0], "--tls-key", pair[1],
                           expect=None, limit=20)
        check(done and done.returncode not in (0, -6, -11), f"{pair}: {done and done.returncode}")
        check(done.stderr.strip(), "it says why")
    with Server(directory, url, "--no-worker", "--tls-cert", certificate, "--tls-key", key) as server:
        context = ssl.create_default_context(cafile=certificate)
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                check(b"200 OK" in secure.recv(1000), "served")
        with Raw(server.port) as raw:  # whoever speaks plainly is hung up on
            raw.send(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n")
            check(not raw.receive().startswith(b"HTTP"), "no plain answer")


RUNNER.case("tls_is_served_and_wrong_files_are_told", tls_is_served_and_wrong_files_are_told)


def a_claim_whose_caller_said_goodbye_over_tls_claims_nothing(directory):
    certificate, key = make_certificate(directory, "one")
    context = ssl.create_default_context(cafile=certificate)
    with Server(directory, make_store(KIND, directory), "--no-worker", "--tls-cert", certificate, "--tls-key", key) as server:
        client = Client(server.port)
        client.connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=120 * PATIENCE)
        client.put("/v1/workflows/idle.v1", {})
        body = '{"worker":"gone","workflows":["idle.v1"],"wait":"60s"}'
        plain = socket.create_connection(("127.0.0.1", server.port), timeout=60 * PATIENCE)
        with context.wrap_socket(plain, server_hostname="localhost") as caller:
            caller.sendall(f"POST /v1/work/claim HTTP/1.1\r\n{JSON}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            wait_until(lambda: any(one["idle"] for one in client.get("/v1/workers").json["items"]), "a claim waits")
            caller.settimeout(0.1)
            try:
                caller.unwrap()  # says so, and would wait for the other side to say it too
            except OSError:
                pass
            run = client.trigger("idle.v1")
            claim = {"worker": "alive", "workflows": ["idle.v1"], "wait": "60s"}
            claimed = client.post("/v1/work/claim", claim).json["items"][0]["run"]
            check((claimed["id"], claimed["attempt"]) == (run, 1), "it went to nobody before")
        client.close()


RUNNER.case("a_claim_whose_caller_said_goodbye_over_tls_claims_nothing",
            a_claim_whose_caller_said_goodbye_over_tls_claims_nothing)

RUNNER.finish()

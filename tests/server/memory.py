#!/usr/bin/env python3
"""What clients that send much, read nothing or just stay cost a server's memory. F11."""

import gzip
import sys
import time

from scene import HOST, Client, Raw, cases_on_a_server, check, claim, follow, wait_until
from processes import PATIENCE
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
SANITIZED = PATIENCE > 1  # where memory cannot be measured, and everything is slow
LARGE_STEPS = 10 if SANITIZED else 40

case = cases_on_a_server(RUNNER, KIND)


def save_large_step(client, claimed, name):
    """Half a megabyte."""
    answer = client.post(f"/v1/work/runs/{claimed['id']}/step", {
        "worker": "w", "version": claimed["version"], "name": name, "status": "succeeded", "data": "x" * 500000})
    check(answer.status == 204, answer.text)


@case()
def huge_arrays_of_no_use_take_no_memory(server, client):
    before, many = server.memory(), 50000 if SANITIZED else 1000000
    for member in ("[" + "[]," * many + "[]]", "[[" + "[]," * many + "[]]]", '["' + 'a","' * (many * 2 // 3) + '"]',
                   "[" * 100000):
        answer = client.post("/v1/runs", raw='{"workflow":"idle.v1","tags":' + member + "}",
                             headers={"Content-Type": "application/json"})
        check(answer.status == 400, answer.text)
    check(SANITIZED or server.memory() - before < 40e6, f"it took {(server.memory() - before) / 1e6:.0f} MB")


@case()
def a_client_that_does_not_read_its_stream_takes_bounded_memory(server, client):
    run = client.trigger("idle.v1")
    claimed = claim(client, "idle.v1")
    sleeper = follow(server, run)
    check(sleeper.receive(b'"created"'), "it has begun")
    before, count, begin = server.memory(), 0, time.monotonic()
    # A machine that is so slow that it would be hung up on for reading nothing (after 75 s) makes do with less.
    while count < (20 if SANITIZED else 150) and (count < 20 or time.monotonic() - begin < 30):
        number, count = count, count + 1
        save_large_step(client, claimed, f"s{number}")
    taken = server.memory() - before
    RUNNER.note(f"{taken / 1e6:.1f} MB for {count / 2:.0f} MB of events")
    check(SANITIZED or taken < 40e6, f"{taken / 1e6:.1f} MB for {count / 2:.0f} MB of events")
    for number in (0, count // 2, count - 1):
        marker = f'"step":"s{number}"'.encode()
        check(marker in sleeper.receive(marker), "once it reads, it misses nothing")
    sleeper.close()


@case()
def many_who_do_not_read_a_stream_of_large_events_take_bounded_memory(server, client):
    run = client.trigger("idle.v1")
    claimed = claim(client, "idle.v1")
    for number in range(LARGE_STEPS):
        save_large_step(client, claimed, f"s{number}")
    before = server.memory()
    sleepers = [follow(server, run) for _ in range(5 if SANITIZED else 40)]
    check(all(b'"created"' in sleeper.receive(b'"created"') for sleeper in sleepers), "they have begun")
    wait_until(lambda: client.get(f"/v1/runs/{run}/events?limit=1").status == 200, "others are served")
    taken = server.memory() - before
    RUNNER.note(f"{taken / 1e6:.1f} MB for {len(sleepers)} streams of {LARGE_STEPS / 2:.0f} MB")
    check(SANITIZED or taken < 250e6, f"{taken / 1e6:.1f} MB for {len(sleepers)} streams of {LARGE_STEPS / 2:.0f} MB")
    for number in (0, LARGE_STEPS - 1):
        marker = f'"step":"s{number}"'.encode()
        check(marker in sleepers[0].receive(marker), "once it reads, it misses nothing")
    for sleeper in sleepers:
        sleeper.close()


def sleeper(server, request, times):
    """Asks so many times and reads nothing: what the system does not take off the server's hands stays with it."""
    return Raw(server.port, room=4096).send(request * times)


@case()
def the_document_is_there_once_for_all_who_do_not_read_it(server, client):
    plain = client.get("/v1/openapi.json")
    packed = client.get("/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
    check(gzip.decompress(packed.bytes) == plain.bytes and packed.headers["Content-Encoding"] == "gzip", packed.headers)
    before = server.memory()
    sleepers = [sleeper(server, f"GET /v1/openapi.json HTTP/1.1\r\n{HOST}\r\n", 40) for _ in range(50)]
    wait_until(lambda: len(server.log()) > 50 * 5, "their answers fill what the system takes")
    check(Client(server.port).get("/healthz").status == 200, "it answers beside them")
    taken = (server.memory() - before) / len(sleepers)
    RUNNER.note(f"{taken / 1000:.1f} kB for each, the document has {len(plain.bytes) / 1000:.0f} kB")
    check(SANITIZED or taken < 60e3, f"{taken} bytes for each")
    for raw in sleepers:
        raw.close()


def sleepers_until(refused, most, make):
    """As many of those who do not read as it takes."""
    raws = []
    while not refused():
        check(len(raws) < most, f"{most} of them take no end of memory")
        raws.append(make())
    return raws


@case("--max-body", str(4 << 20), "--max-payload", str(4 << 20))
def all_answers_that_nobody_reads_are_bounded(server, client):
    """Here 64 MiB, and as much again for what has been changed already."""
    runs = [client.trigger("idle.v1", input="y" * 4000000) for _ in range(6)]
    short, wish = {"Prefer": "return=minimal"}, {"worker": "w", "workflows": ["idle.v1"]}

    def is_busy(answer):
        check(answer.problem in ("", "busy"), answer.text[:200])
        return answer.status == 503 and answer.headers["Retry-After"] and "ETag" not in answer.headers

    lists = sleepers_until(lambda: is_busy(client.get(f"/v1/runs/{runs[0]}")), 40,
                           lambda: sleeper(server, f"GET /v1/runs HTTP/1.1\r\n{HOST}\r\n", 2))
    check(client.get(f"/v1/runs/{runs[0]}", headers=short).status == 200, "short answers are given")
    check(is_busy(client.post("/v1/work/claim", wish)), "nothing long is claimed")
    check(client.get("/v1/runs?status=leased", headers=short).json["items"] == [], "what could not be told was given back")
    small = client.trigger("idle.v1", priority=1)
    check(client.post("/v1/work/claim", wish).json["items"][0]["run"]["id"] == small, "what is short is claimed")

    head = f"{HOST}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    change = "".join(f"POST /v1/runs/{runs[-1]}/{word} HTTP/1.1\r\n{head}{{}}" for word in ("pause", "resume"))
    changes = sleepers_until(lambda: is_busy(client.post("/v1/runs", {"workflow": "idle.v1", "key": "k"})), 60,
                             lambda: sleeper(server, change, 2))
    check(client.get("/v1/workflows/idle.v1/runs/k").json["key"] == "k", "it was made while there was room")
    answer = client.post("/v1/runs", {"workflow": "idle.v1", "key": "l"})
    check(is_busy(answer), "until there is none")
    RUNNER.note(f"{len(lists)} who read and {len(changes)} who change")
    for raw in lists + changes:
        raw.close()
    wait_until(lambda: client.get(f"/v1/runs/{runs[0]}").status == 200, "there is room again")
    check(client.get("/v1/workflows/idle.v1/runs/l").status == 404, "what was refused was not done")
    claimed = client.post("/v1/work/claim", wish).json["items"][0]["run"]
    check(claimed["id"] in runs and claimed["attempt"] == 1, "also for what is long")


@case("--receive-limit", "30s")
def two_thousand_idle_connections_take_little(server, client):
    before = server.memory()
    raws = [Raw(server.port) for _ in range(2000)]
    for raw in raws[::2]:
        raw.send("GET /heal")
    check(Client(server.port).get("/healthz").status == 200, "it answers beside them")
    taken = (server.memory() - before) / len(raws)
    RUNNER.note(f"{taken / 1000:.1f} kB for each idle connection")
    check(SANITIZED or taken < 30e3, f"{taken} bytes for each")
    for raw in raws:
        raw.close()


RUNNER.finish()

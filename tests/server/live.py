#!/usr/bin/env python3
"""Live views over HTTP: the stats and the stream of all runs; and the dashboard's files. B9, F11, F12."""

import gzip
import json
import subprocess
import sys
import time

from scene import Client, Server, check, follow, make_store, wait_until
from processes import Skipped
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
HOLD = 2  # s for which later events are held back for one that is missing


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory), *getattr(function, "options", [])) as server:
            for name in ("idle.v1", "other.v1"):
                check(server.client.put(f"/v1/workflows/{name}", {}).status == 200, "the workflow is created")
            function(server, server.client)

    RUNNER.case(function.__name__, play)


class Stream:
    """One listener, which hears what happens from now on. Events are (id, name, data). `meanwhile` is called when it has
    asked."""

    def __init__(self, server, path="/v1/stream", meanwhile=lambda: None, **headers):
        self.client = Client(server.port)
        self.client.connection.request("GET", path, headers={key.replace("_", "-"): value
                                                             for key, value in headers.items()})
        meanwhile()
        self.answer = self.client.connection.getresponse()
        check(self.answer.status == 200, self.answer.status)
        self.answer.readline(), self.answer.readline()  # retry

    def next(self):
        event = {}
        while True:
            line = self.answer.readline().decode()
            check(line, "the stream ended")
            if line.startswith(":"):
                continue
            if line == "\n":
                if event:
                    return int(event["id"]), event.get("event", "message"), json.loads(event["data"])
                continue
            name, _, value = line.rstrip("\n").partition(": ")
            event[name] = value


def skip(server, count):
    """So many positions stay without an event."""
    if KIND != "postgres":
        raise Skipped("only PostgreSQL lets positions be skipped")
    statement = f"SELECT setval('holdfast.event_position', nextval('holdfast.event_position') + {count - 1})"
    subprocess.run(["psql", "-XAtqc", statement, server.url], check=True, capture_output=True)


def totals(client):
    return client.get("/v1/stats").json["total"]


@case
def what_a_stream_tells_is_heard_by_onmessage(server, client):
    run = client.trigger("idle.v1")
    client.post(f"/v1/runs/{run}/cancel")
    with follow(server, run) as stream:
        told = stream.receive(b'"cancelled"').splitlines()
    told = [line for line in told if line.startswith((b"event:", b"data:"))]
    check(len(told) == 2 and all(line.startswith(b"data: {") for line in told), told)
    listener = Stream(server)
    client.trigger("idle.v1")
    check(listener.next()[1] == "message", "also what all runs do")


@case
def stats_tell_what_there_is_to_do(server, client):
    for _ in range(3):
        client.trigger("idle.v1")
    client.trigger("idle.v1", **{"in": "1h"})
    cancelled = client.trigger("other.v1")
    client.post(f"/v1/runs/{cancelled}/cancel")
    wait_until(lambda: totals(client)["due"] == 3, "three are due")
    stats = client.get("/v1/stats").json
    check(stats["total"]["delayed"] == 1 and stats["total"]["oldest_due"], stats["total"])
    idle = next(one for one in stats["workflows"] if one["name"] == "idle.v1")
    check((idle["due"], idle["delayed"], idle["leased"], idle["failed"]) == (3, 1, 0, 0), idle)


@case
def stats_tell_what_happened_in_the_last_hour(server, client):
    run = client.trigger("idle.v1")
    client.post(f"/v1/runs/{run}/cancel")

    def sums():
        minutes = (client.get("/v1/stats").json["throughput"] or {}).get("minutes", [])
        check(len(minutes) in (0, 60), len(minutes))
        return [sum(minute[name] for minute in minutes) for name in ("created", "cancelled", "succeeded", "failed")]

    wait_until(lambda: sums() == [1, 1, 0, 0], "one was created and cancelled")
    client.trigger("idle.v1")
    wait_until(lambda: sums() == [2, 1, 0, 0], "what comes is added, once")


@case
def stats_of_one_tenant_are_not_those_of_another(server, client):
    client.put("/v1/tenants/acme")
    acme = Client(server.port, {"Holdfast-Tenant": "acme"})
    client.trigger("idle.v1")
    wait_until(lambda: totals(client)["due"] == 1, "one is due here")
    check(totals(acme)["due"] == 0 and acme.get("/v1/stats").json["workflows"] == [], "and none there")


@case
def the_stream_tells_of_all_runs_of_the_tenant_alone(server, client):
    client.put("/v1/tenants/acme")
    acme = Client(server.port, {"Holdfast-Tenant": "acme"})
    acme.put("/v1/workflows/idle.v1", {})
    stream = Stream(server)
    acme.trigger("idle.v1")
    run = client.trigger("idle.v1", key="k")
    _, name, event = stream.next()
    check((name, event["run"], event["name"], event["workflow"], event["key"]) == ("message", run, "created", "idle.v1", "k"), event)
    client.post(f"/v1/runs/{run}/cancel")
    check(stream.next()[2]["name"] == "cancelled", "and of the next thing")


@case
def a_stream_goes_on_after_the_last_event_that_was_seen(server, client):
    first = Stream(server)
    runs = [client.trigger("idle.v1") for _ in range(3)]
    seen = first.next()
    check(seen[2]["run"] == runs[0], seen)
    again = Stream(server, Last_Event_ID=str(seen[0]))
    check([again.next()[2]["run"] for _ in range(2)] == runs[1:], "the others follow")


@case
def a_stream_begins_with_the_newest_when_asked(server, client):
    runs = [client.trigger("idle.v1") for _ in range(5)]
    stream = Stream(server, "/v1/stream?last=2")
    check([stream.next()[2]["run"] for _ in range(2)] == runs[3:], "the last two")


@case
def a_stream_begins_with_the_newest_behind_a_gap_too(server, client):
    skip(server, 1)
    runs = [client.trigger("idle.v1") for _ in range(5)]
    stream = Stream(server, "/v1/stream?last=2")
    check([stream.next()[2]["run"] for _ in range(2)] == runs[3:], "the last two")


@case
def a_stream_is_filtered_by_workflow_and_kind(server, client):
    signals = Stream(server, "/v1/stream?kind=signal")
    others = Stream(server, "/v1/stream?workflow=other.v1")
    run = client.trigger("idle.v1")
    client.post(f"/v1/runs/{run}/signals", {"name": "hello"})
    other = client.trigger("other.v1")
    check(signals.next()[2]["name"] == "hello", "the signal comes first")
    check(others.next()[2]["run"] == other, "the other workflow's run comes first")


@case
def who_was_away_for_too_long_is_told_so(server, client):
    body = {"runs": [{"workflow": "idle.v1"}] * 300}
    check(client.post("/v1/runs/batch", body).status == 200, "many are made")
    stream = Stream(server, Last_Event_ID="1")
    position, name, _ = stream.next()
    check(name == "lost", name)
    check(stream.next()[0] > position, "what is there follows")


@case
def a_late_commit_is_waited_for(server, client):
    if KIND != "postgres":
        raise Skipped("only PostgreSQL commits out of order")
    stream = Stream(server)
    for _ in range(20):
        begin = time.monotonic()
        late = subprocess.Popen(["psql", "-XAtq", "-c", "BEGIN", "-c", "SELECT holdfast.trigger('idle.v1')", "-c",
                                 "SELECT pg_sleep(1)", "-c", "COMMIT", server.url], stdout=subprocess.PIPE, text=True)
        first = late.stdout.readline().strip()
        second = client.trigger("idle.v1")
        late.wait()
        if time.monotonic() - begin < HOLD:  # else the machine was too busy to commit in time
            heard = []
            while len(heard) < 2:
                heard += [run for run in (stream.next()[2]["run"],) if run in (first, second)]
            check(heard == [first, second], "in their order")
            return
    check(False, "no commit came in time")


@case
def a_gap_that_stays_is_passed_over(server, client):
    stream = Stream(server)
    skip(server, 1)
    run = client.trigger("idle.v1")
    check(stream.next()[2]["run"] == run, "it comes all the same")


@case
def what_commits_late_is_waited_for_at_the_start_too(server, client):
    if KIND != "postgres":
        raise Skipped("only PostgreSQL commits out of order")
    for number in range(20):
        with Server(server.process.errors.parent, server.url, "--no-worker", name=f"fresh{number}") as fresh:
            late = subprocess.Popen(["psql", "-XAtq", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            print("BEGIN; SELECT holdfast.trigger('idle.v1');", file=late.stdin, flush=True)
            first = late.stdout.readline().strip()
            begin, ended = time.monotonic(), []
            second = client.trigger("idle.v1")

            def commit():
                time.sleep(HOLD / 4)  # it has begun to read
                late.communicate("COMMIT;\n")  # pylint: disable=W0640
                ended.append(time.monotonic())  # pylint: disable=W0640

            stream = Stream(fresh, "/v1/stream?last=100", commit)
            in_time = ended[0] - begin < HOLD  # else the machine was too busy to commit in time
            third = client.trigger("idle.v1")
            heard = []
            while third not in heard:
                heard.append(stream.next()[2].get("run"))
            stream.client.close()
            if in_time:
                check([run for run in heard if run in (first, second, third)] == [first, second, third], "in their order")
                return
    check(False, "no commit came in time")


FAR = 30000  # as if very much had happened meanwhile


def check_told_of_loss(stream, client):
    run = client.trigger("idle.v1")
    position, name, _ = stream.next()
    check(name == "lost", name)
    after, _, event = stream.next()
    check(after > position and event["run"] == run, (after, position, event))


@case
def who_had_heard_everything_is_told_what_it_misses_now(server, client):
    stream = Stream(server)
    run = client.trigger("idle.v1")
    check(stream.next()[2]["run"] == run, "it is up to date")
    skip(server, FAR)
    check_told_of_loss(stream, client)


@case
def who_comes_back_before_the_first_event_is_read_is_told_what_it_missed(server, client):
    skip(server, FAR)
    check_told_of_loss(Stream(server, Last_Event_ID="1"), client)


@case
def many_listeners_hear_the_same(server, client):
    streams = [Stream(server) for _ in range(200)]
    run = client.trigger("idle.v1")
    check(all(stream.next()[2]["run"] == run for stream in streams), "each hears of it")


@case
def a_listener_that_does_not_read_holds_nobody_up(server, client):
    lazy = Stream(server)
    for _ in range(12):
        check(client.post("/v1/runs/batch", {"runs": [{"workflow": "idle.v1", "key": None}] * 1000}).status == 200, "made")
    quick = Stream(server, "/v1/stream?last=1")
    run = client.trigger("other.v1")
    while quick.next()[2].get("run") != run:
        pass
    last, name, event = 0, "", {}
    while name != "lost" and event.get("run") != run:
        position, name, event = lazy.next()
        check(position > last, "in order")
        last = position


@case
def the_dashboard_is_served_with_its_own_paths(server, client):
    page = client.get("/runs/some-id")
    check(page.status == 200 and page.headers["Content-Type"].startswith("text/html"), page.headers)
    check(client.get("/", headers={"If-None-Match": page.headers["ETag"]}).status == 304, "it was not changed")
    packed = client.get("/", headers={"Accept-Encoding": "gzip"})
    check(gzip.decompress(packed.bytes) == page.bytes and "Accept-Encoding" in packed.headers["Vary"], packed.headers)
    check(client.get("/nothing-of-the-kind").problem == "no_such_path", "not every path is its")
    check(client.post("/runs", {}).problem == "no_such_path", "it is only read")


def dashboard_can_be_left_out(server, client):
    check(client.get("/").problem == "no_such_path", "the page is there")
    check(client.get("/v1/stats").status == 200, "the API is not")


dashboard_can_be_left_out.options = ["--no-dashboard"]
case(dashboard_can_be_left_out)

RUNNER.finish()

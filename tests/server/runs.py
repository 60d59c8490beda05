#!/usr/bin/env python3
"""Runs over HTTP: trigger, read, wait, follow, change. A12, B9, F7, F11, F13."""

import json
import select
import socket
import subprocess
import sys
import threading

from scene import Client, Raw, Server, Skipped, check, follow, make_store, wait_until
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory), "--exec", f"work.*={directory}/work.sh") as server:
            check(server.client.put("/v1/workflows/idle.v1", {}).status == 200, "the workflow is created")
            function(server, server.client)

    def with_script(directory):
        script = directory / "work.sh"
        script.write_text("#!/bin/sh\nexec cat\n")
        script.chmod(0o755)
        play(directory)

    RUNNER.case(function.__name__, with_script)


@case
def a_triggered_run_is_run_and_its_result_read(server, client):
    client.put("/v1/workflows/work.v1", {})
    answer = client.post("/v1/runs", {"workflow": "work.v1", "input": {"n": 1}})
    check(answer.status == 201, answer.text)
    check(answer.headers["Location"] == "/v1/runs/" + answer.json["id"], "Location names the run")
    run = client.get(answer.headers["Location"] + "?wait=30s").json
    check(run["status"] == "succeeded" and run["result"] == {"n": 1}, run)


@case
def numbers_keep_their_digits(server, client):
    raw = '{"workflow":"idle.v1","input":{"n":12345678901234567890.12345678901234567890}}'
    run = client.post("/v1/runs", raw=raw, headers={"Content-Type": "application/json"}).json["id"]
    check("12345678901234567890.12345678901234567890" in client.get(f"/v1/runs/{run}").text, "digits were lost")


@case
def an_idempotency_key_gives_the_first_run_again(server, client):
    first = client.post("/v1/runs", {"workflow": "idle.v1", "input": 1}, headers={"Idempotency-Key": "k"})
    again = client.post("/v1/runs", {"workflow": "idle.v1", "input": 1}, headers={"Idempotency-Key": "k"})
    other = client.post("/v1/runs", {"workflow": "idle.v1", "input": 2}, headers={"Idempotency-Key": "k"})
    check((first.status, again.status) == (201, 200), (first.status, again.status))
    check(first.json["id"] == again.json["id"] and again.json["existed"], again.text)
    check((other.status, other.problem) == (409, "conflict"), other.text)
    check(client.get("/v1/workflows/idle.v1/runs/k").json["id"] == first.json["id"], "found by its key")


@case
def a_path_names_a_run_by_its_workflow_and_key_too(server, client):
    run = client.trigger("idle.v1", key="a/b ü")
    path = "/v1/runs/idle.v1%2Fa%2Fb%20%C3%BC"
    for suffix in ("", "?wait=1ms", "/events", "/steps", "/children"):
        answers = [client.get(start + suffix) for start in (path, f"/v1/runs/{run}")]
        check(answers[0].status == 200 and answers[0].bytes == answers[1].bytes, (suffix, answers[0].text))
    check(client.post(path + "/signals", {"name": "go"}).json == {"duplicate": False}, "signalled")
    stream = follow(server, "idle.v1%2Fa%2Fb%20%C3%BC")
    stream.receive(b'"created"')
    check(client.post(path + "/pause").json["status"] == "paused", "paused")
    check(client.post(path + "/cancel").json["id"] == run, "cancelled")
    check(b'"cancelled"' in stream.receive(b'"cancelled"'), "the stream goes on with the same run")
    stream.close()
    for missing in ("idle.v1%2Fnone", "none.v1%2Fk", "idle.v1", "%2F", "idle.v1%2F"):
        check(client.get(f"/v1/runs/{missing}").status in (400, 404), missing)


@case
def keys_with_any_character_are_found_by_their_path(server, client):
    run = client.trigger("idle.v1", key="a/b c%ü?")
    check(client.get("/v1/workflows/idle.v1/runs/a%2Fb%20c%25%C3%BC%3F").json["id"] == run, "found by its key")


@case
def a_trace_is_kept_and_a_bad_one_in_a_header_is_not(server, client):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    run = client.post("/v1/runs", {"workflow": "idle.v1"}, headers={"traceparent": trace}).json["id"]
    check(client.get(f"/v1/runs/{run}").json["trace"] == trace, "from the header")
    run = client.post("/v1/runs", {"workflow": "idle.v1"}, headers={"traceparent": "nonsense"}).json["id"]
    check(client.get(f"/v1/runs/{run}").json["trace"] is None, "nonsense is left out")
    answer = client.post("/v1/runs", {"workflow": "idle.v1", "trace": "nonsense"})
    check(answer.status == 400 and "traceparent" in answer.json["detail"], answer.text)


@case
def lines_of_the_log_name_the_run(server, client):
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    client.put("/v1/workflows/work.v1", {})
    run = client.post("/v1/runs", {"workflow": "work.v1", "input": 1}, headers={"traceparent": trace}).json["id"]
    client.get(f"/v1/runs/{run}?wait=30s")
    client.get("/v1/runs")

    def lines():
        said = (line for line in server.process.said().splitlines() if line.startswith("{"))
        return [line for line in map(json.loads, said) if line.get("run") == run]

    wait_until(lambda: {line["event"] for line in lines()} == {"request", "run_started", "run_finished"}, "they do")
    wait_until(lambda: len([line for line in lines() if line["event"] == "request"]) == 2, "the trigger and the read")
    for line in lines():
        check(line["event"] == "request" or line["trace"] == trace, line)
        check(line["time"].endswith("Z") and line["tenant"] == "default", line)


@case
def a_batch_answers_for_each_run(server, client):
    items = client.post("/v1/runs/batch", {"runs": [{"workflow": "idle.v1"}, {"workflow": "none"}]}).json["items"]
    check("id" in items[0] and items[1]["code"] == "unknown_workflow", items)


@case
def lists_are_filtered_and_paged(server, client):
    runs = [client.trigger("idle.v1", tags=["odd" if i % 2 else "even"]) for i in range(5)]
    page = client.get("/v1/runs?tag=even&limit=2").json
    check([run["id"] for run in page["items"]] == [runs[4], runs[2]], page)
    page = client.get(f"/v1/runs?tag=even&limit=2&cursor={page['next']}").json
    check([run["id"] for run in page["items"]] == [runs[0]] and page["next"] is None, page)
    check(client.get("/v1/runs?status=failed,cancelled").json["items"] == [], "none has failed")
    answer = client.get("/v1/runs?stauts=failed")
    check(answer.status == 400 and 'did you mean "status"' in answer.json["detail"], answer.text)


@case
def what_may_be_large_is_left_out_wherever_a_run_is_told(server, client):
    run = client.trigger("idle.v1", key="little", input={"much": 1})
    little = {"Prefer": "handling=lenient, return=minimal"}
    for path in (f"/v1/runs/{run}", f"/v1/runs/{run}?wait=1ms", "/v1/workflows/idle.v1/runs/little"):
        check(client.get(path).json["input"] == {"much": 1}, path)
        check(client.get(path, headers=little).json["input"] is None, f"{path}, minimal")
    page = client.get("/v1/runs?key=little", headers=little).json
    check(page["items"][0]["input"] is None, page)
    check(client.post(f"/v1/runs/{run}/pause", headers=little).json["input"] is None, "after a change")
    lines = "Prefer: respond-async\r\nPrefer: return=minimal\r\n"
    with Raw(server.port) as raw:
        raw.send(f"GET /v1/runs/{run} HTTP/1.1\r\nHost: localhost\r\n{lines}Connection: close\r\n\r\n")
        check(b'"input":null' in raw.receive(), "every line is looked at")


@case
def a_change_names_the_revision_it_is_based_on(server, client):
    run = client.trigger("idle.v1")
    etag = client.get(f"/v1/runs/{run}").headers["ETag"]
    paused = client.post(f"/v1/runs/{run}/pause", {"reason": "wait"}, headers={"If-Match": etag})
    check(paused.json["status"] == "paused" and paused.headers["ETag"] != etag, paused.text)
    stale = client.post(f"/v1/runs/{run}/cancel", {}, headers={"If-Match": etag})
    check((stale.status, stale.problem) == (412, "revision_mismatch"), stale.text)
    check(client.post(f"/v1/runs/{run}/cancel", {"reason": "enough"}).json["status"] == "cancelled", "cancelled")
    check(client.post(f"/v1/runs/{run}/cancel").status == 409, "a cancelled run is not cancelled again")
    check(client.post(f"/v1/runs/{run}/retry").json["status"] == "pending", "tried again")
    check(client.post(f"/v1/runs/{run}/delete").json["deleted_at"], "deleted")
    check(not client.post(f"/v1/runs/{run}/restore").json["deleted_at"], "restored")
    check(client.get(f"/v1/runs/{run}", headers={"If-None-Match": "nothing"}).status == 200, "another revision")
    etag = client.get(f"/v1/runs/{run}").headers["ETag"]
    check(client.get(f"/v1/runs/{run}", headers={"If-None-Match": etag}).status == 304, "the same revision")


def hold(client, run):
    """Claims it, as the one run of its workflow that is due."""
    items = client.post("/v1/work/claim", {"worker": "w", "workflows": ["idle.v1"], "limit": 1}).json["items"]
    check([item["run"]["id"] for item in items] == [run], items)
    return items[0]["run"]["version"]


@case
def an_etag_changes_with_whatever_is_shown(server, client):
    run = client.trigger("idle.v1", input={"n": 1})
    seen = []

    def changed(what):
        known = {"If-None-Match": ", ".join(seen)} if seen else {}
        answer = client.get(f"/v1/runs/{run}", headers=known)
        check(answer.status == 200 and answer.headers["ETag"] not in seen, what)
        seen.append(answer.headers["ETag"])
        for form in (seen[-1], "W/" + seen[-1], '"x",' + seen[-1], ", ".join(seen)):
            check(client.get(f"/v1/runs/{run}", headers={"If-None-Match": form}).status == 304, f"{what}: {form}")
        brief = client.get(f"/v1/runs/{run}", headers={"Prefer": "return=minimal"}).headers["ETag"]
        check(brief not in seen, f"{what}: another answer has another tag")

    changed("pending")
    held = {"worker": "w", "version": hold(client, run)}
    changed("leased")
    check(client.post(f"/v1/work/runs/{run}/step", {**held, "name": "one", "status": "succeeded"}).status == 204, "a step")
    changed("a step more")
    beat = {"worker": "w", "runs": [{"id": run, "version": held["version"], "lease_us": 3600 * 1000000}]}
    check(client.post("/v1/work/heartbeat", beat).json["items"][0]["code"] == "ok", "held on")
    changed("a longer lease")
    paused = client.post(f"/v1/runs/{run}/pause", headers={"If-Match": "W/" + seen[0]})
    check(paused.status == 200, f"neither a claim nor a step is a change to be asked for: {paused.text}")
    changed("asked to pause")
    check(client.post(f"/v1/runs/{run}/cancel", headers={"If-Match": seen[-1]}).status == 200, "cancelled")
    check(client.post(f"/v1/runs/{run}/retry", headers={"If-Match": seen[-1]}).status == 412, "it was changed meanwhile")


def none_is_answered(raws):
    return not select.select([raw.socket for raw in raws], [], [], 0)[0]


@case
def requests_that_take_long_leave_the_others_alone(server, client):
    """More than there are threads, each of which waits for a receiver that says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as receiver:
        url = f"http://127.0.0.1:{receiver.getsockname()[1]}/"
        check(client.put("/v1/subscriptions/slow", {"url": url, "events": ["none"]}).status == 200, "subscribed")
        raws = [Raw(server.port).send("POST /v1/subscriptions/slow/test HTTP/1.1\r\nHost: localhost\r\n\r\n")
                for _ in range(30)]
        receiver.accept()[0].close()  # one of them at least is at it
        for path in ("/readyz", "/v1/runs", "/v1/workflows"):
            check(client.get(path).status == 200, path)
        client.trigger("idle.v1")
        check(len([raw for raw in raws if not none_is_answered([raw])]) < 8, "the others were answered first")
        for raw in raws:
            raw.close()


@case
def a_run_that_somebody_locks_holds_up_only_those_who_wait_for_it(server, client):
    if KIND != "postgres":
        raise Skipped("SQLite locks no single run")
    run = client.trigger("idle.v1")
    lock = f"SELECT 'locked' FROM holdfast.run WHERE id = '{run}' FOR UPDATE"
    with subprocess.Popen(["psql", "-XAtq", server.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:
        psql.stdin.write(f"BEGIN; {lock};\n")
        psql.stdin.flush()
        check(psql.stdout.readline() == "locked\n", "somebody holds it")
        raws = [Raw(server.port).send(f"GET /v1/runs/{run}?wait=50s HTTP/1.1\r\nHost: localhost\r\n\r\n")
                for _ in range(30)]
        streams = [Raw(server.port).send(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n"
                                         "Accept: text/event-stream\r\n\r\n") for _ in range(30)]
        check(all(b'"created"' in stream.receive(b'"created"') for stream in streams), "what is there is told")
        for path in ("/readyz", f"/v1/runs/{run}", "/v1/runs", "/v1/workflows"):
            check(client.get(path).status == 200, path)
        check(none_is_answered(raws), "those who wait were answered first")
        psql.stdin.write("COMMIT;\n")
        psql.stdin.close()
    client.post(f"/v1/runs/{run}/cancel")
    check(all(b'"cancelled"' in raw.receive(b'"cancelled"') for raw in raws + streams), "they hear of the end")


@case
def a_long_poll_is_woken_by_the_end(server, client):
    run = client.trigger("idle.v1")
    answers = []
    other = Client(server.port)
    waiting = threading.Thread(target=lambda: answers.append(other.get(f"/v1/runs/{run}?wait=60s").json))
    waiting.start()
    wait_until(lambda: waiting.is_alive(), "it waits")
    client.post(f"/v1/runs/{run}/cancel")
    waiting.join(30)
    check(answers and answers[0]["status"] == "cancelled", answers)


@case
def what_another_process_does_is_heard_by_all_who_wait(server, client):
    run = client.trigger("idle.v1")
    polls = [Raw(server.port, 14).send(f"GET /v1/runs/{run}?wait=60s HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(50)]
    wait_until(lambda: client.get(f"/v1/runs/{run}").status == 200, "it serves")
    server.program("cancel", run)
    for poll in polls:
        check(b'"cancelled"' in poll.receive(b'"cancelled"'), "it is told before it would have looked by itself")


@case
def a_long_poll_ends_at_its_time_with_the_run_as_it_is(server, client):
    run = client.trigger("idle.v1")
    check(client.get(f"/v1/runs/{run}?wait=200ms").json["status"] == "pending", "still pending")


def read_event(response):
    lines = {}
    while True:
        line = response.readline().decode().rstrip("\n")
        if not line and "data" in lines:
            return lines
        if not line and not response.fp:
            return None
        name, _, value = line.partition(": ")
        if name and value:
            lines[name] = value


@case
def events_are_followed_live_and_resumed(server, client):
    run = client.trigger("idle.v1")
    other = Client(server.port)
    other.connection.request("GET", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"})
    stream = other.connection.getresponse()
    check(stream.headers["Content-Type"] == "text/event-stream", stream.headers)
    check(json.loads(read_event(stream)["data"])["name"] == "created", "what was there comes first")
    client.post(f"/v1/runs/{run}/pause")
    event = read_event(stream)
    check(json.loads(event["data"])["name"] == "paused", event)
    client.post(f"/v1/runs/{run}/cancel")
    check(json.loads(read_event(stream)["data"])["name"] == "cancelled", "the end comes too")
    check(stream.read() == b"", "and then the stream ends")
    resumed = client.get(f"/v1/runs/{run}/events",
                         headers={"Accept": "text/event-stream", "Last-Event-ID": event["id"]})
    check('"cancelled"' in resumed.text and '"paused"' not in resumed.text, resumed.text)


@case
def a_remote_worker_does_not_get_the_engines_own_work(server, client):
    answer = client.post("/v1/work/claim", {"worker": "w", "workflows": ["holdfast.*"]})
    check(answer.status == 400, answer.text)


@case
def a_signal_is_taken_once(server, client):
    run = client.trigger("idle.v1")
    first = client.post(f"/v1/runs/{run}/signals", {"name": "go", "id": "s1", "payload": [1]})
    again = client.post(f"/v1/runs/{run}/signals", {"name": "go", "payload": [1]}, headers={"Idempotency-Key": "s1"})
    check((first.status, first.json["duplicate"], again.json["duplicate"]) == (202, False, True), again.text)


@case
def a_cloud_event_is_a_signal(server, client):
    run = client.trigger("idle.v1", key="k")
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "task", "data": {"sum": 3},
             "holdfastworkflow": "idle.v1", "holdfastkey": "k", "anything": "else"}
    kind = {"Content-Type": "application/cloudevents+json"}
    check(client.post("/v1/events", raw=json.dumps(event), headers=kind).json == {"accepted": 1, "duplicates": 0}, "1")
    check(client.post("/v1/events", raw=json.dumps(event), headers=kind).json["duplicates"] == 1, "taken once")
    binary = {"ce-specversion": "1.0", "ce-id": "2", "ce-source": "/shop", "ce-type": "timer", "ce-holdfastrun": run,
              "ce-holdfasttype": "task", "Content-Type": "application/json"}
    check(client.post("/v1/events", raw='{"sum":4}', headers=binary).status == 202, "binary mode")
    batch = {"Content-Type": "application/cloudevents-batch+json"}
    check(client.post("/v1/events", raw=json.dumps([event, {**event, "id": "3"}]), headers=batch).json ==
          {"accepted": 2, "duplicates": 1}, "a batch")
    lines = [line for line in client.get(f"/v1/runs/{run}/events").json["items"] if line["kind"] == "signal"]
    check(len(lines) == 3, lines)
    check({line["data"]["type"] for line in lines} == {"external"}, "whatever they say, they come from outside")
    del event["holdfastkey"]
    check(client.post("/v1/events", raw=json.dumps(event), headers=kind).status == 400, "nobody is meant")


@case
def a_parameter_that_is_not_known_changes_nothing(server, client):
    run = client.trigger("idle.v1")
    answer = client.post("/v1/runs/bulk?dry_run=true", {"action": "cancel", "filter": {"status": ["pending"]}})
    check(answer.status == 400 and "dry_run" in answer.json["detail"], answer.json)
    check(client.get(f"/v1/runs/{run}").json["status"] == "pending", "nothing was cancelled")
    answer = client.post(f"/v1/runs/{run}/fork", {"from": "b"})
    check(answer.status == 400 and "there are" in answer.json["detail"] and "step" in answer.json["detail"], answer.json)
    answer = client.post("/v1/tenants", {})
    check(answer.status == 405 and "it has GET" in answer.json["detail"], answer.json)


@case
def many_are_changed_by_a_filter(server, client):
    for _ in range(3):
        client.trigger("idle.v1", subject="bulk")
    body = {"action": "cancel", "filter": {"subject": "bulk"}, "dry_run": True}
    check(client.post("/v1/runs/bulk", body).json == {"matched": 3, "changed": 0, "refused": 0, "complete": True, "next": None}, "")
    body["dry_run"] = False
    check(client.post("/v1/runs/bulk", body).json["changed"] == 3, "cancelled")
    check(client.post("/v1/runs/bulk", {"action": "cancel", "filter": {}}).status == 400, "all is too many")


@case
def a_stop_ends_what_waits(server, client):
    run = client.trigger("idle.v1")
    streams = []
    for _ in range(5):
        other = Client(server.port)
        other.connection.request("GET", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"})
        streams.append((other, other.connection.getresponse()))
        check(json.loads(read_event(streams[-1][1])["data"])["name"] == "created", "it is followed")
    server.stop()
    rest = [stream.read().replace(b":\n\n", b"") for _, stream in streams]  # without signs of life
    check(rest == [b""] * 5, f"each has come to an orderly end: {rest}")


RUNNER.finish()

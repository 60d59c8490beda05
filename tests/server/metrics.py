#!/usr/bin/env python3
"""Metrics as Prometheus reads them: what the process counted, and what the store says at the scrape. F13."""

import re
import shutil
import subprocess
import sys
import threading
import time

from letters import add_letter
from scene import PROGRAM, Client, Process, Server, Skipped, check, make_store, run_program, wait_until
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
LINE = re.compile(r'([a-z_]+)(?:\{(.*)\})? ([0-9.eInf+]+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def case(function, *options):
    def play(directory):
        script = directory / "work.sh"
        script.write_text('#!/bin/sh\nread input\ncase "$input" in *fail*) echo no >&2; exit 78;; *again*) exit 1;; esac\n'
                          'echo 1\n')
        script.chmod(0o755)
        with Server(directory, make_store(KIND, directory), "--exec", f"work.*={script}", *options) as server:
            function(server, server.client)

    RUNNER.case(function.__name__, play)


def scrape(client, **options):
    answer = client.get("/metrics", **options)
    check(answer.status == 200, f"{answer.status} {answer.text}")
    check(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers["Content-Type"])
    return answer.text


def series(text):
    """{(name, frozenset of labels): value}"""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.match(line)
            check(match, f"not a line of the format: {line}")
            labels = frozenset(LABEL.findall(match.group(2) or ""))
            check((match.group(1), labels) not in found, f"twice: {line}")
            found[match.group(1), labels] = float(match.group(3))
    return found


def value(client, name, **labels):
    return series(scrape(client)).get((name, frozenset(labels.items())))


@case
def promtool_finds_nothing_to_say(server, client):
    if not shutil.which("promtool"):
        raise Skipped("promtool is not installed")
    client.put("/v1/workflows/work.v1", {})
    client.get("/v1/runs/" + client.trigger("work.v1", input="ok") + "?wait=30s")
    client.get("/nowhere")
    done = subprocess.run(["promtool", "check", "metrics"], input=scrape(client), text=True, capture_output=True,
                          check=False)
    check(done.returncode == 0 and not done.stderr, done.stderr)


@case
def runs_are_counted_by_workflow_and_by_their_end(server, client):
    client.put("/v1/workflows/work.v1", {"max_attempts": 2, "retry_base": "10ms", "retry_cap": "10ms"})
    client.put("/v1/workflows/idle.v1", {})
    for word in ("ok", "ok", "fail", "again"):
        client.get("/v1/runs/" + client.trigger("work.v1", input=word) + "?wait=30s")
    client.post("/v1/runs/" + client.trigger("idle.v1") + "/cancel")

    def count(name, workflow, **labels):
        return found.get((name, frozenset({"tenant": "default", "workflow": workflow, **labels}.items())))

    def all_turns_count():
        """Who waits for a run may hear of its end before it counts."""
        nonlocal found
        found = series(scrape(client))
        return count("holdfast_run_duration_seconds_count", "work.v1") == 5

    found = None
    wait_until(all_turns_count, "five turns have ended")
    found = series(scrape(client))  # that one may have been taken amidst the counting
    check(count("holdfast_runs_triggered_total", "work.v1") == 4, found)
    check(count("holdfast_runs_started_total", "work.v1") == 5, found)
    check(count("holdfast_runs_finished_total", "work.v1", status="succeeded") == 2, found)
    check(count("holdfast_runs_finished_total", "work.v1", status="failed") == 2, found)
    check(count("holdfast_runs_retried_total", "work.v1") == 1, found)
    check(count("holdfast_runs_finished_total", "idle.v1", status="cancelled") == 1, found)
    check(count("holdfast_run_wait_seconds_count", "work.v1") == 5, found)
    check(count("holdfast_run_duration_seconds_bucket", "work.v1", le="+Inf") == 5, found)
    check(0 < count("holdfast_run_duration_seconds_sum", "work.v1") < 60, found)


@case
def the_buckets_of_a_histogram_add_up(server, client):
    client.put("/v1/workflows/idle.v1", {})
    for _ in range(5):
        client.trigger("idle.v1")
    found = series(scrape(client))
    for name in ("holdfast_flush_operations", "holdfast_flush_duration_seconds"):
        buckets = [(dict(labels)["le"], number) for (key, labels), number in found.items() if key == name + "_bucket"]
        buckets.sort(key=lambda pair: float(pair[0]))
        check([number for _, number in buckets] == sorted(number for _, number in buckets), buckets)
        check(buckets[-1] == ("+Inf", found[name + "_count", frozenset()]), buckets)
    check(found["holdfast_flush_operations_sum", frozenset()] >= 5, found)


@case
def depths_and_ages_come_from_the_store(server, client):
    client.put("/v1/workflows/idle.v1", {})
    for _ in range(3):
        client.trigger("idle.v1")
    client.trigger("idle.v1", **{"in": "1h"})
    run = client.trigger("idle.v1", **{"in": "1h"})
    client.post(f"/v1/runs/{run}/signals", {"name": "go"})
    names = {"tenant": "default", "workflow": "idle.v1"}
    wait_until(lambda: value(client, "holdfast_runs_due", **names) == 4, "a signal makes one due")
    found = series(scrape(client))
    check(found["holdfast_runs_delayed", frozenset(names.items())] == 1, found)
    check(found["holdfast_mail_unconsumed", frozenset(names.items())] == 1, found)
    check(found["holdfast_workers_live", frozenset()] == 1, found)
    check(found["holdfast_store_up", frozenset()] == 1, found)
    wait_until(lambda: value(client, "holdfast_oldest_due_seconds", **names) > 0, "they grow older")


def claim(client, workflow):
    items = client.post("/v1/work/claim", {"worker": "far", "workflows": [workflow], "wait": "30s"}).json["items"]
    check(len(items) == 1, items)
    return items[0]["run"]


@case
def what_somebody_holds_and_what_failed_is_told_by_workflow(server, client):
    client.put("/v1/workflows/work.v1", {})
    client.put("/v1/workflows/far.v1", {})
    for word in ("ok", "fail", "fail"):
        client.get("/v1/runs/" + client.trigger("work.v1", input=word) + "?wait=30s")
    for _ in range(3):
        client.trigger("far.v1")
    held = [claim(client, "far.v1") for _ in range(2)]
    far, work = ({"tenant": "default", "workflow": name} for name in ("far.v1", "work.v1"))
    wait_until(lambda: value(client, "holdfast_runs_leased", **far) == 2, "two are held")
    check(value(client, "holdfast_runs_failed", **work) == 2 and value(client, "holdfast_runs_failed", **far) == 0, "failed")
    check(value(client, "holdfast_runs_leased", **work) == 0, "what has ended is not held")
    for run in held:
        client.post(f"/v1/work/runs/{run['id']}/commit", {"worker": "far", "version": run["version"], "turn": "succeed"})
    wait_until(lambda: value(client, "holdfast_runs_leased", **far) == 0, "none is")


@case
def mail_and_dead_letters_are_told_by_workflow(server, client):
    names = ("idle.v1", "other.v1", "quiet.v1")
    for name in names:
        client.put(f"/v1/workflows/{name}", {})
    runs = {name: client.trigger(name, **{"in": "1h"}) for name in names}
    for name, number in (("idle.v1", 3), ("other.v1", 1)):
        for _ in range(number):
            check(client.post(f"/v1/runs/{runs[name]}/signals", {"name": "go"}).status == 202, "it is sent")
    for name, number in (("idle.v1", 1), ("other.v1", 2)):
        for _ in range(number):
            add_letter(server.url, runs[name])

    def told(metric):
        found = series(scrape(client))
        return [found.get((metric, frozenset({"tenant": "default", "workflow": name}.items()))) for name in names]

    wait_until(lambda: told("holdfast_dead_letters") == [1, 2, 0], "dead letters")
    check(told("holdfast_mail_unconsumed") == [3, 1, 0], told("holdfast_mail_unconsumed"))
    letter = client.get(f"/v1/dead-letters?run={runs['idle.v1']}").json["items"][0]["id"]
    check(client.delete(f"/v1/dead-letters/{letter}").status == 204, "discarded")
    client.post(f"/v1/runs/{runs['other.v1']}/cancel")
    wait_until(lambda: told("holdfast_dead_letters") == [0, 2, 0], "one less")


@case
def what_is_not_delivered_is_told_with_its_age(server, client):
    client.put("/v1/workflows/far.v1", {})
    client.put("/v1/subscriptions/shop", {"url": "http://127.0.0.1:1/"})
    check(client.post("/v1/subscriptions/shop/park").status == 200, "nothing is delivered to it")

    def told(name):
        return value(client, f"holdfast_outbox_{name}")

    check((told("undelivered"), told("oldest_seconds")) == (0, 0), "nothing yet")
    for _ in range(2):
        client.trigger("far.v1")
        run = claim(client, "far.v1")
        client.post(f"/v1/work/runs/{run['id']}/commit", {"worker": "far", "version": run["version"], "turn": "succeed",
                                                          "outbox": [{"type": "packed"}, {"type": "sent"}]})
    wait_until(lambda: told("undelivered") == 4, "four events")
    age = wait_until(lambda: told("oldest_seconds"), "they have an age")
    wait_until(lambda: told("oldest_seconds") > age, "and grow older")
    check(client.delete("/v1/subscriptions/shop").status == 204, "nobody wants them any more")
    wait_until(lambda: (told("undelivered"), told("oldest_seconds")) == (0, 0), "none is left")


@case
def the_store_is_not_asked_at_every_scrape(server, client):
    client.put("/v1/workflows/idle.v1", {})
    names = {"tenant": "default", "workflow": "idle.v1"}
    wait_until(lambda: value(client, "holdfast_runs_due", **names) == 0, "the workflow is seen")
    ages = set()
    client.trigger("idle.v1")
    wait_until(lambda: value(client, "holdfast_runs_due", **names) == 1, "the run is seen")
    begin = time.monotonic()
    for _ in range(20):
        ages.add(value(client, "holdfast_oldest_due_seconds", **names))
    every = 2  # s
    check(len(ages) <= 2 + (time.monotonic() - begin) / every, f"twenty scrapes in a row asked {len(ages)} times")


@case
def requests_are_counted_by_their_route(server, client):
    client.get("/v1/runs")
    client.get("/v1/runs/00000000-0000-7000-8000-000000000000")
    client.get("/v1/runs/00000000-0000-7000-8000-000000000001")
    client.get("/nowhere")
    name = "holdfast_http_requests_total"
    wait_until(lambda: value(client, name, method="", route="(none)", status="4xx") == 1, "unknown paths share one")
    check(value(client, name, method="GET", route="/v1/runs", status="2xx") == 1, "a list")
    check(value(client, name, method="GET", route="/v1/runs/{id}", status="4xx") == 2, "ids are not in labels")


@case
def whoever_waits_is_counted(server, client):
    client.put("/v1/workflows/idle.v1", {})
    run = client.trigger("idle.v1")
    others = [Client(server.port), Client(server.port)]
    waiting = threading.Thread(target=lambda: others[0].get(f"/v1/runs/{run}?wait=60s"))
    waiting.start()
    others[1].connection.request("GET", f"/v1/runs/{run}/events", headers={"Accept": "text/event-stream"})
    stream = others[1].connection.getresponse()
    wait_until(lambda: value(client, "holdfast_http_streams_open") == 1, "the stream is open")
    wait_until(lambda: value(client, "holdfast_http_requests_parked") == 2, "both wait")
    client.post(f"/v1/runs/{run}/cancel")
    waiting.join(30)
    stream.read()
    wait_until(lambda: value(client, "holdfast_http_streams_open") == 0, "the stream is closed")
    wait_until(lambda: value(client, "holdfast_http_requests_parked") == 0, "nobody waits")


@case
def a_stream_that_cannot_begin_is_not_counted(server, client):
    client.put("/v1/workflows/idle.v1", {})
    run = client.trigger("idle.v1")
    stream = {"Accept": "text/event-stream"}
    check(client.get(f"/v1/runs/{run}/events", headers={**stream, "Last-Event-ID": "-1"}).status == 400, "refused")
    check(value(client, "holdfast_http_streams_open") == 0, "there is none")


@case
def leases_that_ran_out_and_were_lost_are_counted(server, client):
    client.put("/v1/workflows/far.v1", {"lease": "100ms", "max_attempts": 50})
    client.trigger("far.v1")

    def claim(worker):
        claims = client.post("/v1/work/claim", {"worker": worker, "workflows": ["far.v1"], "wait": "30s"}).json["items"]
        return claims[0] if claims else None

    first = wait_until(lambda: claim("one"), "it is claimed")
    wait_until(lambda: claim("two"), "its lease ran out")
    run = first["run"] if "run" in first else first
    answer = client.post(f"/v1/work/runs/{run['id']}/commit", {"worker": "one", "version": run["version"], "turn": "succeed"})
    check(answer.status == 409, f"{answer.status} {answer.text}")
    names = {"tenant": "default", "workflow": "far.v1"}
    check(value(client, "holdfast_leases_expired_total", **names) >= 1, "taken over")
    check(value(client, "holdfast_leases_lost_total", **names) == 1, "and refused")


@case
def the_number_of_workflows_with_a_label_is_bounded(server, client):
    names = [f"many.w{i}" for i in range(230)]
    for name in names:
        check(client.put(f"/v1/workflows/{name}", {}).status == 200, name)
    items = client.post("/v1/runs/batch", {"runs": [{"workflow": name} for name in names]}).json["items"]
    check(all("id" in item for item in items), items)
    triggered = {labels: number for (name, labels), number in series(scrape(client)).items()
                 if name == "holdfast_runs_triggered_total"}
    check(len(triggered) <= 201, len(triggered))
    check(sum(triggered.values()) >= 230, "none is lost; the engine has some of its own")
    wait_until(lambda: value(client, "holdfast_runs_due", tenant="", workflow="(other)"), "depths are added up too")
    found = series(scrape(client))
    check(sum(number for (name, _), number in found.items() if name == "holdfast_runs_due") >= 230, "none is lost")


@case
def a_token_shows_its_own_tenant_alone(server, client):
    for tenant in ("default", "acme"):
        if tenant != "default":
            server.program("tenant", "create", tenant)
        client.put(f"/v1/workflows/{tenant}.v1", {}, headers={"Holdfast-Tenant": tenant})
        client.post("/v1/runs", {"workflow": f"{tenant}.v1"}, headers={"Holdfast-Tenant": tenant})
    check("default.v1" in scrape(client) and "acme.v1" in scrape(client), "without tokens all is shown")

    def token(tenant, *roles):
        words = [word for role in roles for word in ("--role", role)]
        return server.program("--tenant", tenant, "token", "create", "x", *words).stdout.strip()

    acme, root = token("acme", "read"), token("default", "read", "root")
    work = token("default", "root")
    wait_until(lambda: Client(server.port).get("/metrics").status == 401, "a token is needed now")
    seen = scrape(Client(server.port, {"Authorization": f"Bearer {acme}"}))
    check("acme.v1" in seen and "default.v1" not in seen and "holdfast_workers_live" not in seen, seen)
    seen = scrape(Client(server.port, {"Authorization": f"Bearer {root}"}))
    check("acme.v1" in seen and "default.v1" in seen and "holdfast_workers_live" in seen, seen)
    check(Client(server.port, {"Authorization": f"Bearer {work}"}).get("/metrics").status == 403, "read is needed")


def a_worker_serves_its_own(directory):
    url = make_store(KIND, directory)
    run_program("--store", url, "workflow", "create", "work.v1")
    worker = Process(directory, "worker", [PROGRAM, "--store", url, "worker", "--exec", "work.*=cat", "--metrics",
                                           "127.0.0.1:0"])
    port = wait_until(lambda: re.search(r"metrics at http://127.0.0.1:(\d+)/metrics", worker.said()), "it listens")
    client = Client(int(port.group(1)))
    run_program("--store", url, "trigger", "work.v1", "1", "--wait=2m")
    names = {"tenant": "default", "workflow": "work.v1", "status": "succeeded"}
    wait_until(lambda: value(client, "holdfast_runs_finished_total", **names) == 1, "the run was counted")
    check(client.get("/healthz").status == 200, "it lives")
    answer = client.get("/v1/runs")
    check(answer.status == 404 and answer.json["detail"] is None, f"and serves nothing else: {answer.text}")
    client.close()
    check(worker.stop() == 0, worker.said())


def the_threads_of_live_workers_are_added_up(directory):
    url = make_store(KIND, directory)
    with Server(directory, url, "--threads", "3") as server, Server(directory, url, "--threads", "2", name="other"):
        wait_until(lambda: value(server.client, "holdfast_workers_live") == 2, "both are there")
        check(value(server.client, "holdfast_worker_threads") == 5, "and what they can do")


def connections_are_told_and_how_often_all_were_in_use(directory):
    if KIND != "postgres":
        raise Skipped("nobody can hold up who reads from SQLite")
    url = make_store(KIND, directory)
    with Server(directory, url, "--no-worker") as server:
        names = [f"holdfast_pool_{name}" for name in ("connections_open", "connections_idle", "waits_total")]

        def told():
            found = series(scrape(server.client))
            return [found[name, frozenset()] for name in names]

        wait_until(lambda: 1 <= (seen := told())[0] == seen[1] <= 5, "some are open, and nobody uses them")
        before = told()[2]
        with subprocess.Popen(["psql", "-XAtq", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            other.stdin.write("BEGIN; LOCK TABLE holdfast.run; SELECT 'locked';\n")
            other.stdin.flush()
            check(other.stdout.readline() == "locked\n", "all who read runs have to wait")
            problems = set()

            def read():
                client = Client(server.port)
                while other.poll() is None:
                    problems.add(client.get("/v1/runs").problem)

            readers = [threading.Thread(target=read) for _ in range(10)]
            for reader in readers:
                reader.start()
            wait_until(lambda: (seen := told())[:2] == [5, 0] and seen[2] > before, "all are in use, and somebody had to wait")
            other.stdin.write("ROLLBACK;\n")
            other.stdin.close()
        for reader in readers:
            reader.join()
        check(problems <= {"", "locked"}, f"who reads meanwhile is told {problems}")
        wait_until(lambda: (seen := told())[0] == seen[1] > 0, "nobody uses one")


RUNNER.case("a_worker_serves_its_own", a_worker_serves_its_own)
RUNNER.case("the_threads_of_live_workers_are_added_up", the_threads_of_live_workers_are_added_up)
RUNNER.case("connections_are_told_and_how_often_all_were_in_use", connections_are_told_and_how_often_all_were_in_use)
RUNNER.finish()

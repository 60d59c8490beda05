#!/usr/bin/env python3
"""Metrics as Prometheus reads them: what the process counted, and what the store says at the scrape. F13."""

import re
import shutil
import subprocess
import sys
import threading
import time

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
    found = series(scrape(client))

    def count(name, workflow, **labels):
        return found[name, frozenset({"tenant": "default", "workflow": workflow, **labels}.items())]

    check(count("holdfast_runs_triggered_total", "work.v1") == 4, found)
    check(count("holdfast_runs_started_total", "work.v1") == 5, found)
    check(count("holdfast_runs_finished_total", "work.v1", status="succeeded") == 2, found)
    check(count("holdfast_runs_finished_total", "work.v1", status="failed") == 2, found)
    check(count("holdfast_runs_retried_total", "work.v1") == 1, found)
    check(count("holdfast_runs_finished_total", "idle.v1", status="cancelled") == 1, found)
    check(count("holdfast_run_wait_seconds_count", "work.v1") == 5, found)
    check(count("holdfast_run_duration_seconds_count", "work.v1") == 5, found)
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
    check(found["holdfast_mail_unconsumed", frozenset()] == 1, found)
    check(found["holdfast_workers_live", frozenset()] == 1, found)
    check(found["holdfast_store_up", frozenset()] == 1, found)
    wait_until(lambda: value(client, "holdfast_oldest_due_seconds", **names) > 0, "they grow older")


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


RUNNER.case("a_worker_serves_its_own", a_worker_serves_its_own)
RUNNER.finish()

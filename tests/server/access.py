#!/usr/bin/env python3
"""Who may do what over HTTP. F6."""

import json
import subprocess
import sys
import time

from scene import HOST, PATIENCE, PROGRAM, Client, Raw, Server, check, make_store, run_program, wait_until
from runner import Runner

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
ROLES = ("read", "trigger", "work", "operate", "admin")


def case(function):
    def play(directory):
        function(directory, make_store(KIND, directory))

    RUNNER.case(function.__name__, play)


def token(url, role, name=None, tenant="default"):
    return run_program("--store", url, "--tenant", tenant, "token", "create", name or role, "--role", role).stdout.strip()


def holder(server, secret):
    return Client(server.port, {"Authorization": f"Bearer {secret}"})


def prepare(url):
    run_program("--store", url, "migrate")
    run_program("--store", url, "workflow", "create", "idle.v1")


@case
def each_role_opens_what_it_is_for(directory, url):
    prepare(url)
    secrets = {role: token(url, role) for role in ROLES}
    tries = {
        "read": ("GET", "/v1/runs", None, ROLES),
        "trigger": ("POST", "/v1/runs", {"workflow": "idle.v1"}, ("trigger", "admin")),
        "work": ("POST", "/v1/work/heartbeat", {"worker": "w", "runs": []}, ("work", "admin")),
        "operate": ("PUT", "/v1/workflows/idle.v1", {}, ("operate", "admin")),
        "admin": ("GET", "/v1/tokens", None, ("admin",)),
        "root": ("GET", "/v1/tenants", None, ()),
    }
    with Server(directory, url) as server:
        for role, secret in secrets.items():
            client = holder(server, secret)
            for needed, (method, path, body, allowed) in tries.items():
                answer = client.ask(method, path, body)
                check((answer.status < 300) == (role in allowed), f"{role}: {method} {path}: {answer.status}")
                check(role in allowed or answer.problem == "forbidden", answer.text)
                check(role in allowed or answer.json["detail"] == f"it needs the role {needed}", answer.text)
            me = client.get("/v1/me").json
            check(me["tenant"] == "default" and me["actor"] == role and role in me["roles"], me)


def sent_to(client, run, name, payload=None):
    """How a signal to this run is answered, by each of the two ways to send one."""
    event = {"specversion": "1.0", "id": name, "source": "/test", "type": name, "data": payload, "holdfastrun": run}
    return (client.post(f"/v1/runs/{run}/signals", {"name": name, "payload": payload}),
            client.post("/v1/events", raw=json.dumps(event), headers={"Content-Type": "application/cloudevents+json"}))


@case
def who_may_send_signals_steers_neither_schedules_nor_subscriptions(directory, url):
    prepare(url)
    trigger, admin = token(url, "trigger"), token(url, "admin")
    with Server(directory, url) as server:
        sender, owner = holder(server, trigger), holder(server, admin)
        owner.put("/v1/schedules/nightly", {"workflow": "idle.v1", "cron": "0 3 * * *", "input": {"n": 1}})
        owner.put("/v1/subscriptions/shop", {"url": "http://127.0.0.1:9/", "events": ["x"]})
        owner.post("/v1/subscriptions/shop/park")
        shown = owner.get("/v1/schedules/nightly").json
        listed = owner.get("/v1/runs?prefix=holdfast.&limit=100").json["items"]
        runs = {run["workflow"]: run["id"] for run in listed if run["key"] in ("nightly", "shop")}
        stolen = {"workflow": "idle.v1", "cron": "every 1s", "input": {"n": 2}}
        for client in (sender, owner):
            for workflow, name, payload in (("holdfast.schedule", "set", stolen), ("holdfast.dispatch", "resume", None)):
                for answer in sent_to(client, runs[workflow], name, payload):
                    check((answer.status, answer.problem) == (409, "not_allowed"), f"{workflow}: {answer.text}")
                    check("engine's own" in answer.json["detail"], answer.text)
        now = owner.get("/v1/schedules/nightly").json
        check([now[name] for name in ("cron", "workflow", "input")] == [shown[name] for name in ("cron", "workflow", "input")],
              "the schedule was changed")
        events = owner.get(f"/v1/runs/{runs['holdfast.dispatch']}/events").json["items"]
        check("resume" not in [event["name"] for event in events], events)
        for name, path, body, value in (("paused", "/pause", None, True), ("paused", "/resume", None, False),
                                        ("cron", "", {"workflow": "idle.v1", "cron": "0 4 * * *"}, "0 4 * * *")):
            if body:
                owner.put("/v1/schedules/nightly", body)
            else:
                owner.post(f"/v1/schedules/nightly{path}")
            wait_until(lambda: owner.get("/v1/schedules/nightly").json[name] == value,  # pylint: disable=W0640
                       f"{name} is {value}, by who may")
        check(owner.post("/v1/subscriptions/shop/resume").status == 200, "resumed by who may")
        wait_until(lambda: owner.get("/v1/subscriptions/shop").json["state"] == "active", "it delivers again")
        run = sender.trigger("idle.v1")
        check([answer.status for answer in sent_to(sender, run, "go")] == [202, 202], "other runs take signals")


@case
def without_a_good_token_nothing_is_told(directory, url):
    prepare(url)
    token(url, "read")
    with Server(directory, url) as server:
        check(server.client.get("/v1/runs").problem == "no_token", "no token")
        check(server.client.get("/v1/runs").headers["WWW-Authenticate"].startswith("Bearer"), "says how")
        for bad in ("x", "hf_" + "A" * 43, "hf_" + "A" * 5000):
            answer = holder(server, bad).get("/v1/runs")
            check((answer.status, answer.problem) == (401, "bad_token"), answer.text)
        check(server.client.get("/healthz").status == 200, "health needs none")
        answer = server.client.get("/v1/runs", headers={"Holdfast-Tenant": "default"})
        check(answer.status == 401, "naming a tenant is no token")


@case
def who_asks_without_a_token_does_not_make_the_others_be_looked_up_again(directory, url):
    prepare(url)
    secret = token(url, "read", name="known")
    made = json.loads(run_program("--store", url, "token", "list", "--json").stdout)["id"]
    with Server(directory, url) as server:
        begun = time.monotonic()
        check(holder(server, secret).get("/v1/runs").status == 200, "it is known from now on")
        run_program("--store", url, "token", "revoke", made)
        check(server.client.get("/v1/runs").status == 401, "nobody")
        answer = holder(server, secret).get("/v1/runs")
        slow = time.monotonic() - begun > 4  # what is known is looked up again after 5 s
        check(slow or answer.status == 200, f"it was looked up again: {answer.status}")


@case
def a_token_is_worth_nothing_in_another_tenant(directory, url):
    prepare(url)
    run_program("--store", url, "tenant", "create", "acme")
    run_program("--store", url, "--tenant", "acme", "workflow", "create", "idle.v1")
    ours, theirs = token(url, "admin"), token(url, "admin", tenant="acme")
    with Server(directory, url) as server:
        run = holder(server, ours).trigger("idle.v1")
        stranger = holder(server, theirs)
        check(stranger.get(f"/v1/runs/{run}").status == 404, "another tenant's run is not there")
        check(stranger.post(f"/v1/runs/{run}/cancel").status == 404, "nor can it be cancelled")
        check(stranger.get("/v1/runs").json["items"] == [], "nor listed")
        mistaken = Client(server.port, {"Authorization": f"Bearer {theirs}", "Holdfast-Tenant": "default"})
        answer = mistaken.post("/v1/runs", {"workflow": "idle.v1"})
        check(answer.status == 403 and "tenant" in answer.json["title"], "who names another tenant is told so")
        check(stranger.get("/v1/runs").json["items"] == [], "and nothing was done in the token's own")
        agreed = Client(server.port, {"Authorization": f"Bearer {theirs}", "Holdfast-Tenant": "acme"})
        check(agreed.get("/v1/runs").status == 200, "its own may be named")


@case
def a_token_is_made_shown_once_and_revoked(directory, url):
    prepare(url)
    admin = token(url, "admin")
    with Server(directory, url) as server:
        client = holder(server, admin)
        made = client.post("/v1/tokens", {"name": "ci", "roles": ["trigger"], "lifetime": "1h"})
        check(made.status == 201 and made.json["secret"].startswith("hf_") and made.json["expires_at"], made.text)
        other = holder(server, made.json["secret"])
        run = other.trigger("idle.v1")
        check(client.get(f"/v1/runs/{run}").json["actor"] == "ci", "the journal knows who it was")
        check(made.json["secret"] not in client.get("/v1/tokens").text, "the secret is not shown again")
        check(client.delete(f"/v1/tokens/{made.json['id']}").status == 204, "revoked")
        check(other.get("/v1/runs").status == 401, "and worth nothing at once")
        check(client.post("/v1/tokens", {"name": "x", "roles": ["root"]}).status == 403, "nobody gives what they lack")
        check(client.post("/v1/tokens", {"name": "x", "roles": ["king"]}).status == 400, "there is no such role")


@case
def the_tokens_of_a_disabled_tenant_are_worth_nothing_at_once(directory, url):
    prepare(url)
    run_program("--store", url, "tenant", "create", "acme")
    theirs, root = token(url, "read", tenant="acme"), token(url, "root")
    with Server(directory, url, "--no-worker") as server:
        check(holder(server, theirs).get("/v1/runs").status == 200, "it is known from now on")
        check(holder(server, root).post("/v1/tenants/acme/disable").status == 204, "disabled")
        check(holder(server, theirs).get("/v1/runs").status == 401, "worth nothing")
        check(holder(server, root).post("/v1/tenants/acme/enable").status == 204, "enabled")
        check(holder(server, theirs).get("/v1/runs").status == 200, "worth something again")




@case
def a_body_is_taken_only_from_those_who_may_send_it(directory, url):
    """Whoever may not is told before they have sent it; known or not, and whether they wait to be told or not."""
    prepare(url)
    secrets = {None: 401, "hf_" + "A" * 43: 401, token(url, "read"): 403, token(url, "trigger"): 100}
    with Server(directory, url, "--no-worker") as server:
        for secret, status in (*secrets.items(), *secrets.items()):
            who = f"Authorization: Bearer {secret}\r\n" if secret else ""
            head = f"POST /v1/runs HTTP/1.1\r\n{HOST}{who}Content-Type: application/json\r\nContent-Length: 9000000\r\n"
            with Raw(server.port) as raw:
                check(raw.send(head + "Expect: 100-continue\r\n\r\n").status() == status, (secret, status))
            if status != 100:
                with Raw(server.port) as raw:
                    check(raw.send(head + "\r\n").status() == status, (secret, status))


@case
def a_refusal_leaves_the_connection_usable(directory, url):
    prepare(url)
    token(url, "read")
    body = "x" * 30000
    with Server(directory, url, "--no-worker") as server, Raw(server.port) as raw:
        raw.send(f"POST /v1/runs HTTP/1.1\r\n{HOST}Content-Length: {len(body)}\r\n\r\n{body}"
                 f"GET /healthz HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")
        answers = raw.receive()
        check(answers.startswith(b"HTTP/1.1 401") and answers.endswith(b"ok\n"), answers)


SOON = 120  # s: what waits looks again after 15 s, what is known of tokens is old after 5 s; whoever is not told by then
# has an answer of another kind after 60 s


def waiting_requests(server, secret, run):
    """One of each kind that waits, with what it begins with."""
    head = f"{HOST}Authorization: Bearer {secret}\r\n" if secret else HOST
    claim = '{"worker":"w","workflows":["other.v1"],"wait":"60s"}'
    return {
        "a run's events": Raw(server.port, SOON).send(
            f"GET /v1/runs/{run}/events HTTP/1.1\r\n{head}Accept: text/event-stream\r\n\r\n"),
        "the live feed": Raw(server.port, SOON).send(f"GET /v1/stream HTTP/1.1\r\n{head}\r\n"),
        "a long poll": Raw(server.port, SOON).send(f"GET /v1/runs/{run}?wait=60s HTTP/1.1\r\n{head}\r\n"),
        "a worker's claim": Raw(server.port, SOON).send(
            f"POST /v1/work/claim HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
            f"Content-Length: {len(claim)}\r\n\r\n{claim}"),
    }


def has_ended(raw, heard):
    """A stream has its last chunk. What else it says is kept in `heard`."""
    raw.socket.settimeout(0.1)
    try:
        heard += raw.socket.recv(1 << 16)
    except TimeoutError:
        pass
    return heard.endswith(b"0\r\n\r\n")


def check_ended(waiting, where):
    for what, raw in waiting.items():
        if what in ("a run's events", "the live feed"):
            heard = bytearray()
            wait_until(lambda: has_ended(raw, heard), f"{where}, {what}: it ends", SOON)  # pylint: disable=W0640
            check(b"problem" not in heard, f"{where}, {what}: {heard}")
        else:
            try:
                check(raw.status() == 401, f"{where}, {what}: it is not refused")
            except TimeoutError:
                check(False, f"{where}, {what}: it did not end within {SOON} s")
        raw.close()


def have_begun(waiting):
    return all([b'"created"' in waiting["a run's events"].receive(b'"created"'),
                b"retry:" in waiting["the live feed"].receive(b"retry:")])


@case
def a_revoked_token_ends_what_waits_on_every_server(directory, url):
    prepare(url)
    run_program("--store", url, "workflow", "create", "other.v1")
    run = run_program("--store", url, "trigger", "idle.v1", "--quiet").stdout.strip()
    admin, kept = token(url, "admin"), token(url, "admin", name="kept")
    with Server(directory, url, "--no-worker") as server, Server(directory, url, "--no-worker", name="other") as other:
        made = holder(server, admin).post("/v1/tokens", {"name": "x", "roles": ["read", "work"]}).json
        here, there = (waiting_requests(one, made["secret"], run) for one in (server, other))
        good = waiting_requests(other, kept, run)
        for waiting in (here, there, good):
            check(have_begun(waiting), "the streams have begun")
        check(holder(server, admin).delete(f"/v1/tokens/{made['id']}").status == 204, "revoked")
        check_ended(here, "where it was revoked")
        check_ended(there, "elsewhere")
        for what, raw in good.items():
            raw.socket.settimeout(0.2)
            try:
                check(b"0\r\n\r\n" not in raw.receive(b"0\r\n\r\n"), f"{what}: ended, with a good token")
            except TimeoutError:
                pass
            raw.close()


@case
def a_token_that_expires_ends_what_waits(directory, url):
    prepare(url)
    run_program("--store", url, "workflow", "create", "other.v1")
    run = run_program("--store", url, "trigger", "idle.v1", "--quiet").stdout.strip()
    admin = token(url, "admin")
    with Server(directory, url, "--no-worker") as server:
        for seconds in (3, 10, 40):  # on a busy machine it may expire before all of them have begun
            token_of = {"name": f"x{seconds}", "roles": ["read", "work"], "lifetime": f"{seconds}s"}
            made = holder(server, admin).post("/v1/tokens", token_of).json
            waiting = waiting_requests(server, made["secret"], run)
            if have_begun(waiting) and holder(server, made["secret"]).get("/v1/runs").status == 200:
                break
        check_ended(waiting, "here")


@case
def the_first_token_ends_what_waits_without_one(directory, url):
    prepare(url)
    run_program("--store", url, "workflow", "create", "other.v1")
    run = run_program("--store", url, "trigger", "idle.v1", "--quiet").stdout.strip()
    with Server(directory, url, "--no-worker") as server:
        waiting = waiting_requests(server, None, run)
        check(have_begun(waiting), "the streams have begun")
        token(url, "admin")
        check_ended(waiting, "here")


@case
def the_first_token_closes_an_open_server(directory, url):
    prepare(url)
    with Server(directory, url) as server:
        check(server.client.get("/v1/runs").status == 200, "open")
        admin = server.client.post("/v1/tokens", {"name": "first", "roles": ["admin"]}).json["secret"]
        wait_until(lambda: server.client.get("/v1/runs").status == 401, "closed")
        check(holder(server, admin).get("/v1/runs").status == 200, "but for those with a token")


@case
def a_server_without_tokens_answers_to_no_name_that_others_may_have_made(directory, url):
    """Until the first token, wherever that was made: it must not take a restart."""
    prepare(url)
    with Server(directory, url, "--no-worker") as server:
        named = {"Host": "holdfast.example"}
        for method, path, body in (("GET", "/v1/runs", None), ("GET", "/healthz", None), ("GET", "/", None),
                                   ("POST", "/v1/runs", {"workflow": "idle.v1"}), ("GET", "/nothing", None)):
            answer = server.client.ask(method, path, body, headers=named)
            check((answer.status, answer.problem) == (403, "foreign_host"), f"{method} {path}: {answer.text}")
        check(server.client.get("/v1/runs", headers={"Host": "127.0.0.1:1"}).json["items"] == [], "nothing was done")
        client = holder(server, token(url, "trigger"))
        check(client.post("/v1/runs", {"workflow": "idle.v1"}, headers=named).status == 201, "it answers to every name")
        check(server.client.get("/", headers=named).status == 200, "the page too")
        check(server.client.get("/v1/runs", headers=named).problem == "no_token", "but to nobody without a token")


@case
def without_tokens_it_listens_on_this_machine_only(directory, url):
    prepare(url)
    done = subprocess.run([PROGRAM, "--store", url, "serve", "--listen", "0.0.0.0:0"], capture_output=True, text=True,
                          timeout=60 * PATIENCE)
    check(done.returncode == 2 and "token create" in done.stderr, done.stderr)


@case
def a_port_that_is_taken_is_told_without_blaming_the_store(directory, url):
    prepare(url)
    with Server(directory, url) as server:
        done = subprocess.run([PROGRAM, "--store", url, "serve", "--listen", f"127.0.0.1:{server.port}"],
                              capture_output=True, text=True, timeout=60 * PATIENCE)
        check(done.returncode == 2 and "choose another with --listen" in done.stderr, done.stderr)
        check("--store" not in done.stderr, done.stderr)


RUNNER.finish()

#!/usr/bin/env python3
"""Walks the server's own document: it is valid, each of its examples works, and each answer is as it says. F11.

How each operation is called is in calls.py."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import calls
from calls import WORKFLOW, Call, fill, media_of, parameters, prepare
from scene import PROBLEM, Server, check, make_store, wait_until
from processes import Skipped, need_node
from runner import Runner
from schema import faults

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
VALIDATOR = "@seriousme/openapi-schema-validator@2.7.0"
MISSING = "019a88d0-1234-7abc-8def-0123456789ab"


def case(function):
    def play(directory):
        with Server(directory, make_store(KIND, directory), "--no-worker") as server:
            check(server.client.put(f"/v1/workflows/{WORKFLOW}", {}).status == 200, "the workflow is created")
            server.client.store = server.url
            function(server, server.client, server.client.get("/v1/openapi.json").json)

    RUNNER.case(function.__name__, play)


# Called by tests of their own: one has no end, the other closes the server to everybody without a token.
LEFT_OUT = {"followAll": "live.py", "createToken": "access.py", "revokeToken": "access.py"}


def operations(document, left_out=LEFT_OUT):
    return calls.operations(document, left_out)


# ---- The document itself ----


@case
def every_operation_is_described(server, client, document):
    names = [operation["operationId"] for _, _, operation in operations(document, ())]
    check(len(names) == len(set(names)), f"an operationId is there twice: {sorted(names)}")
    for method, path, operation in operations(document, ()):
        what = f"{method} {path}"
        check(operation.get("summary") and not operation["summary"].endswith("."), f"{what}: its summary")
        check(operation["tags"], f"{what}: its group")
        for parameter in parameters(document, operation):
            check(parameter.get("description"), f"{what}: {parameter['name']} is not described")
        check({name for name in operation["responses"] if name[0] == "2"}, f"{what}: its success")
        check({"4XX", "5XX"} <= set(operation["responses"]), f"{what}: its problems")
        named = {part[1:-1] for part in path.split("/") if part.startswith("{")}
        check(named == {one["name"] for one in parameters(document, operation) if one["in"] == "path"}, f"{what}: its path")


@case
def it_is_valid_openapi(server, client, document):
    need_node()
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm:
        raise Skipped("there is no npm")
    place = pathlib.Path(os.environ["HOLDFAST_BUILD"]) / "npm" / "openapi"
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "node_modules" / ".package-lock.json").exists():
        done = subprocess.run([npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries", "1", "--prefix",
                               place, VALIDATOR],
                              capture_output=True, text=True, timeout=100)
        if done.returncode != 0:
            raise Skipped(f"{VALIDATOR} cannot be installed")
    (place / "document.json").write_text(json.dumps(document))
    (place / "check.mjs").write_text(
        'import { Validator } from "@seriousme/openapi-schema-validator";\n'
        'import { readFileSync } from "node:fs";\n'
        'const validator = new Validator();\n'
        'const result = await validator.validate(JSON.parse(readFileSync(process.argv[2], "utf8")));\n'
        'if (!result.valid || validator.version !== "3.1") {\n'
        '    console.log(JSON.stringify(result.errors ?? validator.version));\n'
        '    process.exit(1);\n'
        '}\n')
    done = subprocess.run([node, place / "check.mjs", place / "document.json"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, done.stdout[:2000] + done.stderr[:2000])


TAKEN = {
    "Idempotency-Key": {"triggerRun", "signalRun"},
    "If-Match": {"signalRun", "cancelRun", "pauseRun", "resumeRun", "retryRun", "deleteRun", "restoreRun", "claimTask",
                 "releaseTask", "reassignTask", "completeTask"},
    "If-None-Match": {"getRun", "getRunByKey", "getTask"},
    "Last-Event-ID": {"listEvents", "followAll"},
    "traceparent": {"triggerRun"},
    "Prefer": {"listRuns", "listChildren", "getRun", "getRunByKey", "cancelRun", "pauseRun", "resumeRun", "retryRun",
               "deleteRun", "restoreRun"},
}


@case
def headers_are_parameters_where_they_mean_something(server, client, document):
    found = {}
    closed = set()
    for _, _, operation in operations(document, ()):
        if operation.get("security") != []:
            closed.add(operation["operationId"])
        for parameter in parameters(document, operation):
            if parameter["in"] == "header":
                found.setdefault(parameter["name"], set()).add(operation["operationId"])
    check(found == TAKEN | {"Holdfast-Tenant": closed, "Holdfast-Actor": closed}, f"the document has {found}")


@case
def what_workers_are_answered_has_schemas(server, client, document):
    for path, methods in document["paths"].items():
        if path.startswith("/v1/work/"):
            for status, response in methods["post"]["responses"].items():
                schema = response.get("content", {}).get("application/json", {}).get("schema")
                check(status != "200" or schema and (schema.get("$ref") or schema["properties"]["items"]), f"{path}: {schema}")
    claimed = document["components"]["schemas"]["ClaimedRun"]
    check({"run", "mail", "steps", "lease_us"} <= set(claimed["required"]), claimed)


@case
def what_is_answered_has_a_schema(server, client, document):
    """But for this document."""
    bare = {operation["operationId"] for _, _, operation in operations(document, ())
            for response in operation["responses"].values()
            if response.get("content", {}).get("application/json", {}).get("schema") == {"type": "object"}}
    check(bare == {"getOpenapi"}, bare)


def types_of_problems(document):
    return {one.removeprefix(PROBLEM) for one in document["components"]["schemas"]["Problem"]["properties"]["type"]["examples"]}


@case
def the_manual_has_every_type_of_problem(server, client, document):
    """With its status, as far as one can be provoked here."""
    manual = (pathlib.Path(__file__).parents[2] / "docs" / "http.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", manual.partition("\n## Errors\n")[2].partition("\n## ")[0], re.M)
    told = {name: int(status) for status, names in rows for name in re.findall(r"`([a-z_]+)`", names)}
    check(set(told) == types_of_problems(document), f"one of them alone has {set(told) ^ types_of_problems(document)}")
    for answer in (client.get("/v1/runs?limit=x"), client.get("/nothing"), client.delete("/v1"), client.get(f"/v1/runs/{MISSING}"),
                   client.post("/v1/runs", {"workflow": "none"}), client.get("/v1", headers={"Origin": "http://else.where"}),
                   client.get("/v1", headers={"Host": "else.where"}), client.ask("GET", "/v1/runs", raw="x" * 4097)):
        check(answer.status == told[answer.problem], f"{answer.problem}: {answer.status}, not {told[answer.problem]}")


@case
def the_way_to_the_document_is_told(server, client, document):
    index = client.get("/v1")
    check(index.status == 200 and client.get(index.json["openapi"]).json == document, index.text)
    for path in ("/v1/", "/v1/nothing", "/v1/runs/x/y/z", "/v1//runs", "/v1/openapi"):
        answer = client.get(path)
        check((answer.status, answer.problem) == (404, "no_such_path"), f"{path}: {answer.status} {answer.text}")
        check("/v1/openapi.json" in answer.json["detail"], f"{path}: {answer.text}")
    check(client.get("/nothing").json["detail"] is None, "elsewhere there is no API")
    for path, allowed in (("/v1", "GET, HEAD"), ("/v1/runs", "POST, GET, HEAD")):
        answer = client.delete(path)
        check((answer.status, answer.problem, answer.headers["Allow"]) == (405, "method_not_allowed", allowed),
              f"{path}: {answer.status} {answer.headers['Allow']} {answer.text}")


# ---- Calling everything ----


def call_as_documented(client, document, method, path, operation):
    call = Call(client, client.store)
    prepare(call, path, operation)
    media, example, schema = media_of(operation)
    body = call.body if call.body is not None else example
    if media and body is not None:
        check(not faults(document, schema, body), f"the example: {faults(document, schema, body)}")
    raw = json.dumps(body) if media and body is not None else None
    return client.ask(method, fill(path, call.path), raw=raw, headers={"Content-Type": media} if raw else {})


# Those that tell a client what to do; each that comes is documented.
TELLING = ("ETag", "Location", "Retry-After", "WWW-Authenticate", "Allow")


def check_headers(response, answer, what):
    documented = response.get("headers", {})
    for name in TELLING:
        check(name not in answer.headers or name in documented, f"{what}: the header {name} is not documented")
    if answer.status < 400:
        for name in documented:
            check(name in answer.headers, f"{what}: the header {name} is documented, but does not come")


def check_answer(document, operation, answer, what):
    response = operation["responses"].get(str(answer.status)) or operation["responses"].get(f"{answer.status // 100}XX")
    check(response, f"{what}: {answer.status} is not documented: {answer.text[:300]}")
    check_headers(response, answer, what)
    content = response.get("content", {})
    given = (answer.headers.get("Content-Type") or "").split(";")[0]
    if not content:
        check(answer.bytes == b"", f"{what}: a body that is not documented")
        return
    check(given in content, f"{what}: {given} is not among {list(content)}")
    check(given != "application/problem+json" or answer.problem in types_of_problems(document), f"{what}: {answer.text}")
    if given.endswith("json"):
        wrong = faults(document, content[given]["schema"], answer.json)
        check(not wrong, f"{what}: {wrong[:5]}")


@case
def every_operation_works_as_documented(server, client, document):
    """With its example, if it has one."""
    wrong = []
    for method, path, operation in operations(document):
        what = f"{operation['operationId']} ({method} {path})"
        try:
            answer = call_as_documented(client, document, method, path, operation)
            check(answer.status < 300, f"{what}: {answer.status} {answer.text[:300]}")
            check_answer(document, operation, answer, what)
        except Exception as error:  # pylint: disable=broad-except
            wrong.append(f"{what}: {error!r}")
    check(not wrong, "\n".join(wrong))
    called = {(line["method"], line["path"]) for line in server.log()}
    check(len(called) >= len(list(operations(document))), "each through a socket")


@case
def lists_are_as_documented_when_they_are_full(server, client, document):
    """The walk before may have met empty lists."""
    for method, path, operation in operations(document):
        call_as_documented(client, document, method, path, operation)
    held = Call(client, client.store)
    held.hold(name="charge", status="succeeded", data=[1])
    client.post(f"/v1/work/runs/{held.path['id']}/step", held.body)
    client.put("/v1/schedules/nightly", {"workflow": WORKFLOW, "cron": "@daily", "tags": ["a"], "input": {"n": 1}})
    client.put("/v1/tenants/acme")
    for path in ("/v1/runs?limit=1000", "/v1/workflows", "/v1/queues", "/v1/schedules", "/v1/tenants", "/v1/workers",
                 "/v1/schedules/nightly/next", f"/v1/runs/{held.path['id']}/steps", f"/v1/runs/{held.path['id']}/events"):
        pattern = path.split("?")[0].replace("nightly", "{name}").replace(held.path["id"], "{id}")
        answer = client.get(path)
        check_answer(document, document["paths"][pattern]["get"], answer, path)
        check(answer.json["items"] or path == "/v1/workers", f"{path} is empty")


@case
def what_is_not_there_is_a_problem_as_documented(server, client, document):
    for method, path, operation in operations(document):
        if "{" not in path or operation["operationId"] in ("putWorkflow", "putSchedule", "putTenant", "putSubscription"):
            continue
        media, example, _ = media_of(operation)
        body = example or {"worker": "w1", "version": 1, "name": "a", "status": "succeeded", "message": "m"}
        raw = json.dumps(body) if media else None
        headers = {"Content-Type": media} if media else {}
        answer = client.ask(method, fill(path, {"id": MISSING, "name": "none", "key": "none"}), raw=raw, headers=headers)
        what = f"{operation['operationId']}: {answer.status} {answer.text[:200]}"
        check(answer.status in (400, 404, 409), what)
        check_answer(document, operation, answer, what)


@case
def what_is_not_asked_for_rightly_is_a_problem_as_documented(server, client, document):
    """A parameter, or a member, that there is not; a body that is no JSON."""
    for method, path, operation in operations(document):
        call = Call(client, client.store)
        prepare(call, path, operation)
        place = fill(path, call.path)
        media, _, schema = media_of(operation)
        tries = []
        if any(one["in"] == "query" for one in parameters(document, operation)):
            tries.append((place + "?nonsense=1", None))
        if media:
            tries += [(place, "{"), (place, "[]"), (place, '{"a":'), (place, "nonsense")]
            if schema.get("additionalProperties") is False:
                tries.append((place, '{"nonsense":1}'))
        for target, raw in tries:
            answer = client.ask(method, target, raw=raw, headers={"Content-Type": media} if raw else {})
            what = f"{operation['operationId']} {raw}: {answer.status} {answer.text[:200]}"
            check(answer.status == 400, what)
            check_answer(document, operation, answer, what)


@case
def a_claim_with_mail_and_steps_is_as_documented(server, client, document):
    operation = document["paths"]["/v1/work/claim"]["post"]
    held = Call(client, client.store)
    held.hold(name="charge", status="succeeded", data={"receipt": 7})
    run = held.path["id"]
    check(client.post(f"/v1/work/runs/{run}/step", held.body).status == 204, "the step is remembered")
    check(client.post(f"/v1/runs/{run}/signals", {"name": "paid", "payload": 1}).status == 202, "the signal is there")
    beat = client.post("/v1/work/heartbeat", {"worker": "w1", "runs": [
        {"id": run, "version": held.body["version"], "lease_us": 1000000}, {"id": MISSING, "version": 1, "lease_us": 1000000}]})
    check_answer(document, document["paths"]["/v1/work/heartbeat"]["post"], beat, "the heartbeat")
    check([item["code"] for item in beat.json["items"]] == ["ok", "stale"], beat.text)
    body = {"worker": "w1", "version": held.body["version"], "turn": "give_back"}
    check(client.post(f"/v1/work/runs/{run}/commit", body).status == 200, "it is given back")
    answer = client.post("/v1/work/claim", {"worker": "w1", "workflows": ["held.v1"], "limit": 1})
    check_answer(document, operation, answer, "the claim")
    check(answer.json["items"][0]["mail"] and answer.json["items"][0]["steps"], answer.text)


@case
def what_was_measured_is_as_documented(server, client, document):
    """The first answer has no throughput yet."""
    client.trigger(WORKFLOW)
    answer = wait_until(lambda: (found := client.get("/v1/stats")).json["throughput"] and found, "the last hour is counted")
    check_answer(document, document["paths"]["/v1/stats"]["get"], answer, "the measurement")
    check(answer.json["workflows"] and answer.json["throughput"]["minutes"], answer.text)


@case
def a_secret_is_documented_where_it_is_told(server, client, document):
    operation = document["paths"]["/v1/subscriptions/{name}"]["put"]
    for told in (True, False):
        answer = client.put("/v1/subscriptions/hook", {"url": "http://127.0.0.1:1/hook"})
        check(("secret" in answer.json) == told, answer.text)
        check_answer(document, operation, answer, "the subscription")


@case
def what_the_caller_has_is_not_sent_again_as_documented(server, client, document):
    run = client.trigger(WORKFLOW)
    etag = client.get(f"/v1/runs/{run}").headers["ETag"]
    answer = client.get(f"/v1/runs/{run}", headers={"If-None-Match": etag})
    check(answer.status == 304, answer.text)
    check_answer(document, document["paths"]["/v1/runs/{id}"]["get"], answer, "the run")


RUNNER.finish()

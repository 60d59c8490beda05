"""How each operation of the server's document is called: what has to be there first, and a body where there is no example.

An operation that nobody knows how to call is an error: teach PREPARATIONS what has to be there first."""

from urllib.parse import quote

from letters import add_letter
from scene import check

WORKFLOW = "billing.charge.v1"  # as in the examples
HOOK = "http://127.0.0.1:1/hook"


def operations(document, left_out=()):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["operationId"] not in left_out:
                yield method.upper(), path, operation


def parameters(document, operation):
    """With those that are told of once for many operations."""
    shared = document["components"]["parameters"]
    return [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation["parameters"]]


def media_of(operation):
    """The type, the example and the schema of the request's body."""
    content = operation.get("requestBody", {}).get("content", {})
    for media, described in content.items():
        return media, described.get("example"), described["schema"]
    return None, None, None


def fill(path, values):
    for name, value in values.items():
        path = path.replace("{" + name + "}", quote(value, safe=""))
    check("{" not in path, f"{path}: a part is not known")
    return path


class Call:
    """What a request needs beside what the document says: values for its path, a body where there is no example."""

    def __init__(self, client, url, word="", **members):
        self.client = client
        self.url = url  # of the store
        self.word = word  # begins the names of what is made for it
        self.members = members  # of the runs
        self.path = {}
        self.body = None

    def name(self, rest):
        self.path["name"] = self.word + rest
        return self.path["name"]

    def run(self, *actions, **members):
        self.path["id"] = self.client.trigger(WORKFLOW, **self.members, **members)
        for action in actions:
            answer = self.client.post(f"/v1/runs/{self.path['id']}/{action}")
            check(answer.status == 200, f"{action}: {answer.text}")

    def hold(self, **body):
        """A run that worker w1 holds: the new one, or one that was given back."""
        check(self.client.put("/v1/workflows/held.v1", {"lease": "1h"}).status == 200, "the workflow is created")
        self.client.trigger("held.v1", **self.members)
        answer = self.client.post("/v1/work/claim", {"worker": "w1", "workflows": ["held.v1"], "limit": 1})
        run = answer.json["items"][0]["run"]
        self.path["id"] = run["id"]
        self.body = {"worker": "w1", "version": run["version"], **body}

    def schedule(self):
        answer = self.client.put(f"/v1/schedules/{self.name('nightly')}", {"workflow": WORKFLOW, "cron": "@daily"})
        check(answer.status == 200, answer.text)

    def tenant(self):
        check(self.client.put(f"/v1/tenants/{self.name('acme')}").status == 204, "the tenant is created")

    def subscription(self):
        answer = self.client.put(f"/v1/subscriptions/{self.name('hook')}", {"url": HOOK})
        check(answer.status == 200, answer.text)

    def token(self):
        answer = self.client.post("/v1/tokens", {"name": self.word + "ci", "roles": ["read"]})
        check(answer.status == 201, answer.text)
        self.path["id"] = answer.json["id"]

    def task(self, *actions):
        self.hold(turn="wait", tasks=[{"name": self.word + "approve"}])
        run, body = self.path["id"], self.body
        answer = self.client.post(f"/v1/work/runs/{run}/commit", body)
        check(answer.status == 200, answer.text)
        self.body = None
        self.path["id"] = self.client.get(f"/v1/tasks?run={run}").json["items"][0]["id"]
        for action in actions:
            answer = self.client.post(f"/v1/tasks/{self.path['id']}/{action}")
            check(answer.status == 200, f"{action}: {answer.text}")

    def letter(self):
        self.run()
        self.path["id"] = add_letter(self.url, self.path["id"])

    def keyed(self):
        self.client.trigger(WORKFLOW, key="order-42")
        self.path.update(name=WORKFLOW, key="order-42")


PREPARATIONS = {
    "resumeRun": lambda call: call.run("pause"),
    "retryRun": lambda call: call.run("cancel"),
    "restoreRun": lambda call: call.run("delete"),
    "releaseTask": lambda call: call.task("claim"),
    "getRunByKey": Call.keyed,
    "receiveEvent": Call.keyed,
    "saveStep": lambda call: call.hold(name="charge", status="succeeded", data={"receipt": 7}),
    "commitTurn": lambda call: call.hold(turn="succeed", result={"paid": True}),
    "failTurn": lambda call: call.hold(message="the card was refused"),
    "leaveToOthers": lambda call: call.hold(message='step "b" was called where "a" is remembered'),
}

OF_PATHS = {
    "/v1/runs/{id}": Call.run,
    "/v1/workflows/{name}": lambda call: call.path.update(name=WORKFLOW),
    "/v1/schedules/{name}": Call.schedule,
    "/v1/tenants/{name}": Call.tenant,
    "/v1/subscriptions/{name}": Call.subscription,
    "/v1/tasks/{id}": Call.task,
    "/v1/tokens/{id}": Call.token,
    "/v1/dead-letters/{id}": Call.letter,
}


def prepare(call, path, operation):
    name = operation["operationId"]
    found = [make for start, make in OF_PATHS.items() if path.startswith(start)]
    for make in [PREPARATIONS[name]] if name in PREPARATIONS else found:
        make(call)
    check(all("{" + one + "}" not in path or one in call.path for one in ("id", "name", "key")),
          f"{name}: nobody knows what to call it with")

"""The workflows that remote.py and clients.py test, in Python. usage: worker.py URL NAME LOG. worker.mjs is the same in
JavaScript."""

import os
import pathlib
import resource
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients" / "python"))

import holdfast  # noqa: E402

URL, NAME, LOG = sys.argv[1:]
client = holdfast.Client(URL, token=os.environ.get("TOKEN"), timeout=float(os.environ.get("TIMEOUT", "30")))
worker = holdfast.Worker(client, name=NAME, concurrency=int(os.environ.get("HANDS", "8")),
                         stop_limit=float(os.environ.get("LIMIT", "20")))

if "FILES" in os.environ:  # so many are open already
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(int(os.environ["FILES"]))]

if "STUMBLE" in os.environ:  # the first of these fails in a way that nobody thought of
    ask, stumbling = client.ask, {"/work/claim", "/work/heartbeat"}

    def stumble(method, path, *arguments, **options):
        if path in stumbling:
            stumbling.remove(path)
            raise LookupError(f"stumbled over {path}")
        return ask(method, path, *arguments, **options)

    client.ask = stumble


def note(line):
    """A line in a file is something that cannot be undone."""
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(line + "\n")


def happen(key):
    token = uuid.uuid4().hex
    note(f"{key} {token}")
    time.sleep(0.03)  # a kill finds it done and not recorded
    return token


@worker.workflow("order.v1")
def order(ctx, input):
    charge = ctx.step("charge", lambda: happen(ctx.step_key))
    ctx.sleep("nap", input["nap"])
    go = ctx.wait_signal("go")
    kids = ctx.start_children("kids", [{"workflow": "child.v1", "input": i} for i in range(input["kids"])])
    first = ctx.wait_children("first", kids, "any")
    ends = ctx.wait_children("all", kids)
    shipped = []
    for _ in range(2):
        shipped.append(ctx.step("ship", lambda: happen(ctx.step_key)))
    return {"charge": charge, "go": go, "kids": [end.result for end in ends], "ship": shipped,
            "first": any(end.status for end in first), "uuid": ctx.uuid(), "version": ctx.version("change", 2)}


@worker.workflow("child.v1")
def child(ctx, input):
    return ctx.step("double", lambda: input * 2)


@worker.workflow("flaky.v1")
def flaky(ctx, input):
    def work():
        note(ctx.step_key)
        raise ValueError("not today")

    try:
        ctx.step("try", work, retries=2 if input == "catch" else None, backoff=0.05)
    except holdfast.StepFailed as error:
        if input == "catch":
            return str(error)
        raise
    return None


@worker.workflow("failing.v1")
def failing(ctx, input):
    if input == "permanent":
        raise holdfast.PermanentError("never", code="own_code")
    if input == "later" and ctx.attempt == 1:
        raise holdfast.RetryAfter(0.1, "in a moment")
    if input == "nonsense":
        return object()
    if input == "large":
        return "x" * (2 << 20)
    if input == "large step":
        ctx.step("large", lambda: note("large step") or "x" * (2 << 20))
    if input == "silence":
        ctx.wait_signal("never", timeout=0.05)
    if input == "slow step":
        ctx.step("slow", lambda: time.sleep(0.2), retries=0, timeout=0.1)
    if input == "odd limits":
        return [ctx.step("odd", lambda: 1, retries=0, timeout=2.01), ctx.step("far", lambda: False, retries=0, timeout=1e10)]
    if input == "nested":
        ctx.step("outer", lambda: ctx.step("inner", lambda: 1), retries=0)
    if input == "swallow":
        try:
            ctx.sleep("nap", 0.1)
        except BaseException:  # pylint: disable=broad-except
            return "it did not sleep"
    return ctx.attempt


@worker.workflow("nonsense.v1")
def nonsense(ctx, input):
    """What is handed on is no JSON."""
    value = {"at": object()}
    if input == "caught":
        try:
            ctx.emit("told", value)
        except holdfast.PermanentError:
            ctx.emit("told")
            ctx.sleep("nap", 0.05)
            return "went on"
    return {"ask": lambda: ctx.ask("q", value), "form": lambda: ctx.ask("q", form=value),
            "number": lambda: ctx.ask("q", float("nan")), "title": lambda: ctx.ask("q", title=object()),
            "emit": lambda: ctx.emit("told", value), "publish": lambda: ctx.publish(value),
            "child": lambda: ctx.start_child("kid", "child.v1", value)}[input]()


@worker.workflow("timeouts.v1")
def timeouts(ctx, input):
    kid = ctx.start_child("kid", "never.v1")
    try:
        ctx.wait_signal("never", timeout=0.1)
    except holdfast.WaitTimeout:
        try:
            ctx.wait_child("kid end", kid, timeout=0.1)
        except holdfast.WaitTimeout:
            return "twice"
    return None


@worker.workflow("slow.v1")
def slow(ctx, input):
    note(f"{ctx.run_id} began")
    try:
        for _ in range(600):
            ctx.check()
            time.sleep(0.05)
    except holdfast.RunCancelled:
        note(f"{ctx.run_id} cancelled")
        raise


@worker.workflow("held.v1")
def held(ctx, input):
    note(f"{ctx.run_id} began")
    while not os.path.exists(LOG + ".go"):
        time.sleep(0.05)
    return ctx.attempt


@worker.workflow("stay.v1")
def stay(ctx, input):
    threading.Event().wait()


@worker.workflow("until.v1")
def until(ctx, input):
    ctx.sleep_until("nap", time.time() + 0.1000005)
    return "slept"


@worker.workflow("tell.v1")
def tell(ctx, input):
    ctx.progress(50, "half")
    ctx.publish({"at": "half"})
    ctx.emit("told", {"n": 1})
    ctx.pause("look", timeout=30)
    return [ctx.now() > 0, 0 <= ctx.random() < 1]


@worker.workflow("changed.v1")
def changed(ctx, input):
    ctx.step(os.environ.get("STEP", "a"), lambda: 1)
    ctx.wait_signal("go")


@worker.workflow("relay.v1")
def relay(ctx, input):
    """The same calls as those of the script in remote.py."""
    a = ctx.step("a", lambda: "of the worker")
    ctx.sleep("nap", 0.05)
    kid = ctx.wait_child("kid end", ctx.start_child("kid", "child.v1", 3))
    name = ctx.uuid()
    go = ctx.wait_signal("go1")
    b = ctx.step("b", lambda: "of the worker")
    ctx.wait_signal("go2")
    return [a, kid, name, go, b]


@worker.workflow("broken.v1")
def broken(ctx, input):
    def dig_deep():
        raise ValueError({"long": "long " * 5000, "bytes": "a\0b\ud800c"}.get(input, "oops"))

    if input == "step":
        ctx.step("dig", dig_deep, retries=1, backoff=0.01)
    dig_deep()


@worker.workflow("question.v1")
def question(ctx, input):
    answers = []
    for _ in range(2):
        try:
            answers.append(ctx.ask("approval", {"sum": input}, title="Approve it", roles=["boss"], form={"f": 1},
                                   due_in=3600, timeout=0.1 if answers else None))
        except holdfast.WaitTimeout as error:
            answers.append(str(error))
    return answers


@worker.workflow("mother.v1")
def mother(ctx, input):
    return [*ctx.start_children("many", [{"workflow": "leaf.v1"}, {"workflow": "leaf.v1"}]),
            ctx.start_child("late", "leaf.v1", delay=3600)]


worker.run()

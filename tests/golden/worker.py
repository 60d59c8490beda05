"""The scenes of the golden histories, in Python. usage: worker.py URL NAME GATE SCENE=PATTERN… worker.c and worker.mjs are the
same in C and JavaScript. With a GATE ("-": none) it is a worker that begins: it says so, and goes on once there is such a file.

The handlers are played as plain functions, or with ASYNC in the environment as `async def`."""

import inspect
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

import holdfast  # noqa: E402

URL, NAME, GATE = sys.argv[1:4]
BEGINS = GATE != "-"
ASYNC = "ASYNC" in os.environ
worker = holdfast.Worker(holdfast.Client(URL), name=NAME, concurrency=128)


class Declined(Exception):
    pass


def fail(error):
    raise error


async def it(given):
    """What a call gives, in both kinds of handlers."""
    return await given if inspect.isawaitable(given) else given


def finish(coroutine):
    """Plays one that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


async def caught(call):
    try:
        return await it(call())
    except holdfast.StepFailed as error:
        return [error.step, error.code, error.message, error.details]
    except holdfast.WaitTimeout:
        return "late"


async def steps(ctx, input):
    first = await it(ctx.step("a", lambda: {"text": "é", "input": input}))
    await it(ctx.sleep("a", 0.05))
    return [first, await it(ctx.step("a", lambda: None)), await it(ctx.step("b", lambda: [1.5, "x"]))]


async def caught_failure(ctx, input):
    error = await caught(lambda: ctx.step("charge", lambda: fail(holdfast.PermanentError("no money", "refused", {"left": 3}))))
    return [error, await it(ctx.wait_signal("go")), await it(ctx.step("after", lambda: 1))]


async def failure(ctx, input):
    await it(ctx.sleep("nap", 0.05))
    await it(ctx.step("charge", lambda: fail(holdfast.PermanentError("no money", "refused", {"left": 3}))))


async def retry(ctx, input):
    error = await caught(lambda: ctx.step("try", lambda: fail(Declined("not yet")), retries=1, backoff=0.05))
    return [error, await it(ctx.step("after", lambda: 1))]


async def later(ctx, input):
    busy = holdfast.RetryAfter(0.05, "busy", "busy", {"free": 0})
    first = await it(ctx.step("put off", lambda: fail(busy) if BEGINS else "done", retries=0))
    return [first, await caught(lambda: ctx.step("no more", lambda: fail(busy), retries=0, retry_after_limit=-1))]


async def slow(ctx, input):
    async def block():  # and the loop with it
        time.sleep(0.2)

    work = block if ASYNC else lambda: time.sleep(0.2)
    error = await caught(lambda: ctx.step("slow", work, retries=0, timeout=0.05))
    return [error, await it(ctx.wait_signal("go"))]


async def signal(ctx, input):
    return [await it(ctx.wait_signal("go")), await it(ctx.wait_signal("stop")), await it(ctx.wait_signal("go"))]


async def silence(ctx, input):
    return [await caught(lambda: ctx.wait_signal("go", timeout=0.05)), await it(ctx.wait_signal("go"))]


async def late(ctx, input):
    await it(ctx.wait_signal("go", timeout=0.05))


async def ask(ctx, input):
    answer = await it(ctx.ask("approve", {"sum": 3}, title="Approve it", roles=["boss"]))
    return [answer["outcome"], answer["result"], answer["by"], await caught(lambda: ctx.ask("approve", timeout=0.05))]


async def children(ctx, input):
    kids = await it(ctx.start_children("kids", [{"workflow": "kid.v1", "input": 1}, {"workflow": "kid.v1", "input": "fail"}]))
    ends = await it(ctx.wait_children("ends", kids))
    idle = await it(ctx.start_child("idle", "idle.v1"))
    late_ends = await it(ctx.wait_children("some", [kids[0], idle], timeout=0.05))
    error = ends[1].error
    return [ends[0].result, ends[1].status, error["code"], error["message"], [end.status for end in late_ends]]


async def kid(ctx, input):
    if input == "fail":
        raise holdfast.PermanentError("a bad kid", "bad")
    return await it(ctx.step("double", lambda: input * 2))


async def told(ctx, input):
    await it(ctx.progress(50, "half"))
    await it(ctx.publish({"at": "half"}))
    await it(ctx.emit("order.paid", {"sum": 3}))
    go = await it(ctx.wait_signal("go"))
    await it(ctx.emit("order.paid"))
    await it(ctx.progress(90))
    return go


async def fixed(ctx, input):
    now, random = await it(ctx.now()), await it(ctx.random())
    values = [round(now * 1_000_000), random, await it(ctx.uuid()), await it(ctx.version("change", 2))]
    await it(ctx.sleep("nap", 0.05))
    return [*values, await it(ctx.version("change", 3)), await it(ctx.version("other", 1)), await it(ctx.uuid()) == values[2]]


async def limits(ctx, input):
    go = await it(ctx.wait_signal("go", timeout=0))
    gone = await caught(lambda: ctx.wait_signal("go", timeout=-1))
    await it(ctx.sleep("none", 0))
    await it(ctx.sleep("past", -5))
    nobody = await caught(lambda: ctx.ask("ask", timeout=-1))
    idle = await it(ctx.start_child("idle", "idle.v1"))
    ends = await it(ctx.wait_children("end", [idle], timeout=-1))
    await it(ctx.pause("look", -1))
    done = await it(ctx.step("no limit", lambda: 1, retries=0, timeout=0))
    error = await caught(lambda: ctx.step("too late", lambda: 1, retries=0, timeout=-1))
    return [go, gone, nobody, ends[0].status, done, error]


async def pause(ctx, input):
    await it(ctx.pause("look"))
    return await it(ctx.step("seen", lambda: True))


async def misfit(ctx, input):
    await it(ctx.step("old" if BEGINS else "new", lambda: 1))
    await it(ctx.wait_signal("go"))


async def again(ctx, input):
    first = await it(ctx.step("a", lambda: 1))
    if BEGINS:
        raise holdfast.RetryAfter(0.05, "in a moment", "moment", {"free": 0})
    return [first, await it(ctx.step("b", lambda: 2))]


async def broken(ctx, input):
    await it(ctx.step("a", lambda: 1))
    raise Declined("not today")


async def some(ctx, input):
    kids = await it(ctx.start_children("kids", [{"workflow": "idle.v1"}, {"workflow": "kid.v1", "input": 1}]))
    first = await it(ctx.wait_children("first", kids, "any"))
    bad = await it(ctx.start_child("bad", "kid.v1", "fail"))
    ends = await it(ctx.wait_children("bad end", [kids[0], bad], "all_or_failure"))
    return [[end.status for end in first], [end.status for end in ends]]


async def older(ctx, input):
    await it(ctx.version("change", 2 if BEGINS else 1))
    await it(ctx.wait_signal("go"))


async def shorter(ctx, input):
    await it(ctx.step("a", lambda: 1))
    if BEGINS:
        await it(ctx.wait_signal("go"))


def begin(scene):
    async def play(ctx, input):
        if BEGINS:
            print(f"began {ctx.run_id}", file=sys.stderr, flush=True)
        while BEGINS and not os.path.exists(GATE):
            time.sleep(0.02)
        return await scene(ctx, input)

    return play if ASYNC else lambda ctx, input: finish(play(ctx, input))


for word in sys.argv[4:]:
    name, _, pattern = word.partition("=")
    worker.workflow(pattern)(begin(globals()[name]))
worker.run()

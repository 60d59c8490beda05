"""The scenes of the golden histories, in Python. usage: worker.py URL NAME GATE SCENE=PATTERN… worker.c and worker.mjs are the
same in C and JavaScript. With a GATE ("-": none) it is a worker that begins: it says so, and goes on once there is such a file."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

import holdfast  # noqa: E402

URL, NAME, GATE = sys.argv[1:4]
BEGINS = GATE != "-"
worker = holdfast.Worker(holdfast.Client(URL), name=NAME, concurrency=64)


class Declined(Exception):
    pass


def fail(error):
    raise error


def caught(call):
    try:
        return call()
    except holdfast.StepFailed as error:
        return [error.step, error.code, error.message, error.details]
    except holdfast.WaitTimeout:
        return "late"


def steps(ctx, input):
    first = ctx.step("a", lambda: {"text": "é", "input": input})
    ctx.sleep("a", 0.05)
    return [first, ctx.step("a", lambda: None), ctx.step("b", lambda: [1.5, "x"])]


def caught_failure(ctx, input):
    error = caught(lambda: ctx.step("charge", lambda: fail(holdfast.PermanentError("no money", "refused", {"left": 3}))))
    return [error, ctx.wait_signal("go"), ctx.step("after", lambda: 1)]


def failure(ctx, input):
    ctx.sleep("nap", 0.05)
    ctx.step("charge", lambda: fail(holdfast.PermanentError("no money", "refused", {"left": 3})))


def retry(ctx, input):
    error = caught(lambda: ctx.step("try", lambda: fail(Declined("not yet")), retries=1, backoff=0.05))
    return [error, ctx.step("after", lambda: 1)]


def later(ctx, input):
    busy = holdfast.RetryAfter(0.05, "busy", "busy", {"free": 0})
    first = ctx.step("put off", lambda: fail(busy) if BEGINS else "done", retries=0)
    return [first, caught(lambda: ctx.step("no more", lambda: fail(busy), retries=0, retry_after_limit=-1))]


def slow(ctx, input):
    error = caught(lambda: ctx.step("slow", lambda: time.sleep(0.2), retries=0, timeout=0.05))
    return [error, ctx.wait_signal("go")]


def signal(ctx, input):
    return [ctx.wait_signal("go"), ctx.wait_signal("stop"), ctx.wait_signal("go")]


def silence(ctx, input):
    return [caught(lambda: ctx.wait_signal("go", timeout=0.05)), ctx.wait_signal("go")]


def late(ctx, input):
    ctx.wait_signal("go", timeout=0.05)


def ask(ctx, input):
    answer = ctx.ask("approve", {"sum": 3}, title="Approve it", roles=["boss"])
    return [answer["outcome"], answer["result"], answer["by"], caught(lambda: ctx.ask("approve", timeout=0.05))]


def children(ctx, input):
    kids = ctx.start_children("kids", [{"workflow": "kid.v1", "input": 1}, {"workflow": "kid.v1", "input": "fail"}])
    ends = ctx.wait_children("ends", kids)
    idle = ctx.start_child("idle", "idle.v1")
    some = ctx.wait_children("some", [kids[0], idle], timeout=0.05)
    return [ends[0].result, ends[1].status, ends[1].error["code"], ends[1].error["message"], [end.status for end in some]]


def kid(ctx, input):
    if input == "fail":
        raise holdfast.PermanentError("a bad kid", "bad")
    return ctx.step("double", lambda: input * 2)


def told(ctx, input):
    ctx.progress(50, "half")
    ctx.publish({"at": "half"})
    ctx.emit("order.paid", {"sum": 3})
    go = ctx.wait_signal("go")
    ctx.emit("order.paid")
    ctx.progress(90)
    return go


def fixed(ctx, input):
    values = [round(ctx.now() * 1_000_000), ctx.random(), ctx.uuid(), ctx.version("change", 2)]
    ctx.sleep("nap", 0.05)
    return [*values, ctx.version("change", 3), ctx.version("other", 1), ctx.uuid() == values[2]]


def limits(ctx, input):
    go = ctx.wait_signal("go", timeout=0)
    gone = caught(lambda: ctx.wait_signal("go", timeout=-1))
    ctx.sleep("none", 0)
    ctx.sleep("past", -5)
    nobody = caught(lambda: ctx.ask("ask", timeout=-1))
    idle = ctx.start_child("idle", "idle.v1")
    ends = ctx.wait_children("end", [idle], timeout=-1)
    ctx.pause("look", -1)
    done = ctx.step("no limit", lambda: 1, retries=0, timeout=0)
    error = caught(lambda: ctx.step("too late", lambda: 1, retries=0, timeout=-1))
    return [go, gone, nobody, ends[0].status, done, error]


def pause(ctx, input):
    ctx.pause("look")
    return ctx.step("seen", lambda: True)


def misfit(ctx, input):
    ctx.step("old" if BEGINS else "new", lambda: 1)
    ctx.wait_signal("go")


def begin(scene):
    def play(ctx, input):
        if BEGINS:
            print(f"began {ctx.run_id}", file=sys.stderr, flush=True)
        while BEGINS and not os.path.exists(GATE):
            time.sleep(0.02)
        return scene(ctx, input)

    return play


for word in sys.argv[4:]:
    name, _, pattern = word.partition("=")
    worker.workflow(pattern)(begin(globals()[name]))
worker.run()

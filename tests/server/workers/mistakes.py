"""Workflows that make the mistakes of python.py, and healthy ones beside them. usage: mistakes.py URL NAME LOG"""

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import os
import pathlib
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients" / "python"))

import holdfast  # noqa: E402
from holdfast import PermanentError, RetryAfter, StepFailed  # noqa: E402

URL, NAME, LOG = sys.argv[1:]
holdfast.GRACE = 0.2
holdfast.LONGEST_BEAT = float(os.environ.get("BEAT", holdfast.LONGEST_BEAT))
worker = holdfast.Worker(holdfast.Client(URL), name=NAME, concurrency=int(os.environ.get("HANDS", "4")))


def note(line):
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(line + "\n")


def wait_for(name):
    """Something that the test makes happen."""
    while not os.path.exists(f"{LOG}.{name}"):
        time.sleep(0.02)


def choose(ctx, input, ways):
    return ways[input["way"] if isinstance(input, dict) else input]()


@worker.workflow("healthy.v1")
def healthy(ctx, input):
    return ctx.step("double", lambda: input * 2)


# ---- What a handler raises ----

@worker.workflow("told.v1", attempts=7, backoff=1.5, lease=5, timeout=datetime.timedelta(hours=2), dead_letter="healthy.v1",
                 max_running=3, schedule=["30 2 * * *", {"name": "often", "every": datetime.timedelta(hours=1), "input": 1}])
def told_of(ctx, input):
    return input


def leave(error):
    raise error


@worker.workflow("leaves.v1", attempts=1)
def leaves(ctx, input):
    return choose(ctx, input, {
        "exit": lambda: sys.exit("the end"), "interrupt": lambda: leave(KeyboardInterrupt()),
        "generator": lambda: leave(GeneratorExit()),
        "step": lambda: ctx.step("leave", lambda: sys.exit("the step's end"), retries=0),
        "timed": lambda: ctx.step("leave", lambda: sys.exit("the step's end"), retries=0, timeout=60),
        "all": lambda: ctx.all([lambda: ctx.step("fine", lambda: 1), lambda: sys.exit("the branch's end")])})


@worker.workflow("leaves.async.v1", attempts=1)
async def leaves_async(ctx, input):
    if input == "step":
        await ctx.step("leave", lambda: sys.exit("the step's end"), retries=0)
    if input == "task":
        await asyncio.gather(ctx.step("fine", lambda: 1), asyncio.create_task(leave_later()))
    sys.exit("the end")


async def leave_later():
    sys.exit("the task's end")


@worker.workflow("dies.v1", attempts=1)
def dies(ctx, input):
    let_go = worker._let_go

    def die(one):
        worker._let_go = let_go
        sys.exit()

    worker._let_go = die


@worker.workflow("forks.v1", attempts=1)
def forks(ctx, input):
    child = os.fork()
    if not child:
        return "the child's"
    return os.WEXITSTATUS(os.waitpid(child, 0)[1])


# ---- Calls at once ----

@worker.workflow("threads.v1", attempts=1)
def threads(ctx, input):
    def call(i):
        try:
            ctx.step(f"s{i}", lambda: i)
        except BaseException:  # pylint: disable=broad-except
            pass

    many = [threading.Thread(target=call, args=(i,)) for i in range(3)]
    for one in many:
        one.start()
    for one in many:
        one.join()
    return "as if nothing were wrong"


@worker.workflow("all.v1", attempts=1)
def all_at_once(ctx, input):
    together = threading.Barrier(3)

    def work(name):
        note(f"{ctx.run_id} {name}")
        together.wait(60)
        return name

    def two():
        first = ctx.step("b", work, "b")
        return [first, ctx.step("then", lambda: "then"), ctx.step("then", lambda: "again")]

    result = ctx.all([functools.partial(ctx.step, "a", work, "a"), two, lambda: ctx.step("c", work, "c")])
    ctx.sleep("nap", 0.05)
    return [result, ctx.all([])]


@worker.workflow("all.fails.v1", attempts=1)
def all_fails(ctx, input):
    done = threading.Event()

    def late():
        done.wait(60)
        return "late"

    def fail():
        done.set()
        raise ValueError("not this one")

    try:
        ctx.all([lambda: ctx.step("late", late), lambda: ctx.step("bad", fail, retries=0)])
    except StepFailed as error:
        ctx.sleep("nap", 0.05)
        return [error.step, error.code]


@worker.workflow("all.again.v1", attempts=1)
def all_again(ctx, input):
    """One gives up before the other ends, and after it began."""
    begun, failed = threading.Event(), threading.Event()

    def fail():
        note(f"{ctx.run_id} bad")
        if os.path.exists(f"{LOG}.mended"):
            return "good"
        begun.wait(60)
        failed.set()
        raise ValueError("not this time")

    def late():
        note(f"{ctx.run_id} late")
        begun.set()
        failed.wait(60)
        while not [one for one in worker.client.steps(ctx.run_id) if one["name"] == "bad"]:
            time.sleep(0.01)
        return "late"

    return ctx.all([lambda: ctx.step("bad", fail, retries=0), lambda: ctx.step("late", late)])


@worker.workflow("all.retries.v1", attempts=1)
def all_retries(ctx, input):
    def flaky(name):
        note(f"{ctx.run_id} {name}")
        with open(LOG, encoding="utf-8") as log:
            if log.read().split().count(name) < 3:
                raise ValueError("again")
        return name

    return ctx.all([lambda: ctx.step("x", flaky, "x", retries=5, backoff=0.01),
                    lambda: ctx.step("y", lambda: note(f"{ctx.run_id} y") or "y"),
                    lambda: ctx.step("z", flaky, "z", retries=5, backoff=0.05)])


@worker.workflow("all.wrong.v1", attempts=1)
def all_wrong(ctx, input):
    def swallow(call):
        try:
            return call()
        except BaseException:  # pylint: disable=broad-except
            return "swallowed"

    def step(name):
        return lambda: ctx.step(name, lambda: 1)

    return swallow(lambda: choose(ctx, input, {
        "name": lambda: ctx.all([step("a"), step("a")]),
        "wait": lambda: ctx.all([step("a"), lambda: swallow(lambda: ctx.sleep("nap", 0.01))]),
        "nested": lambda: ctx.all([step("a"), lambda: ctx.all([step("b")])]),
        "called": lambda: ctx.all([step("a"), ctx.step("b", lambda: 1)]),
        "inside": lambda: ctx.step("outer", lambda: swallow(lambda: ctx.step("inner", lambda: 1)))}))


@worker.workflow("half.v1", attempts=9, backoff=0.01)
def half(ctx, input):
    """The first attempt is left while one of two steps is at work."""
    begun = threading.Event()

    def slow():
        note(f"{ctx.run_id} slow")
        begun.set()
        if ctx.attempt == 1:
            wait_for("killed")
        return "slow"

    def quick():
        begun.wait(60)
        note(f"{ctx.run_id} quick")
        return "quick"

    return ctx.all([lambda: ctx.step("slow", slow), lambda: ctx.step("quick", quick)])


# ---- async ----

@worker.workflow("async.v1", attempts=1)
async def at_once(ctx, input):
    together, order = threading.Barrier(3), []

    async def item(pause):
        """Names repeat; who takes which depends on the order of the answers."""
        await ctx.step(f"wait {pause}", asyncio.sleep, pause)
        order.append(pause)
        return await ctx.step("item", lambda: note(f"{ctx.run_id} item {pause}") or pause)

    overlapped = await asyncio.gather(*(ctx.step(f"s{i}", lambda i=i: together.wait(60) * 0 + i) for i in range(3)))
    items = await asyncio.gather(item(0.15), item(0.05), item(0.1))
    moment, name, chance = await asyncio.gather(ctx.now(), ctx.uuid(), ctx.random())
    await ctx.sleep("nap", 0.05)
    version = await ctx.version("change", 3)
    kid = await ctx.wait_child("kid end", await ctx.start_child("kid", "healthy.v1", 4))
    go = await ctx.wait_signal("go")
    await ctx.progress(50, "half")
    await ctx.publish({"at": "half"})
    note(f"{ctx.run_id} order {order}")
    return [overlapped, items, moment > 0, len(name), 0 <= chance < 1, version, kid, go,
            await ctx.all([lambda: ctx.step("p", lambda: "p"), ctx.step("q", lambda: "q")])]


@worker.workflow("async.group.v1", attempts=1)
async def group(ctx, input):
    async with asyncio.TaskGroup() as tasks:
        parts = [tasks.create_task(ctx.step(f"s{i}", lambda i=i: i)) for i in range(3)]
    await ctx.sleep("nap", 0.02)
    return [part.result() for part in parts]


@worker.workflow("async.retries.v1", attempts=1)
async def async_retries(ctx, input):
    def flaky(name):
        note(f"{ctx.run_id} {name}")
        with open(LOG, encoding="utf-8") as log:
            if log.read().split().count(name) < 2:
                raise ValueError("again")
        return name

    return await asyncio.gather(ctx.step("u", flaky, "u", retries=5, backoff=0.01), ctx.step("v", lambda: "v"),
                                ctx.step("w", flaky, "w", retries=5, backoff=0.05))


@worker.workflow("async.fails.v1", attempts=1)
async def async_fails(ctx, input):
    """One fails while another is at work, whose record is not lost."""
    failed = threading.Event()

    def late():
        failed.wait(60)
        time.sleep(0.1)  # the handler has ended meanwhile
        return "late"

    def fail():
        failed.set()
        raise ValueError("not this one")

    await asyncio.gather(ctx.step("late", late), ctx.step("bad", fail, retries=0))


@worker.workflow("async.wrong.v1", attempts=1)
async def async_wrong(ctx, input):
    async def swallow(call):
        try:
            return await call
        except BaseException:  # pylint: disable=broad-except
            return "swallowed"

    if input == "forgotten":
        ctx.sleep("pause", 0.01)
    if input == "open":
        asyncio.get_running_loop().create_task(ctx.step("quick", time.sleep, 0.05))
        await asyncio.sleep(0.01)
    if input == "overlap":
        await asyncio.gather(swallow(ctx.step("beside", time.sleep, 0.05)), swallow(ctx.sleep("pause", 0.01)))
    if input == "thread":
        await asyncio.to_thread(lambda: asyncio.run(swallow_call(ctx)))
    return "as if nothing were wrong"


async def swallow_call(ctx):
    try:
        await ctx.step("elsewhere", lambda: 1)
    except BaseException:  # pylint: disable=broad-except
        pass


@worker.workflow("async.changed.v1", attempts=1)
async def async_changed(ctx, input):
    """Other code than before."""
    first = await ctx.step(os.environ.get("STEP", "a"), lambda: 1)
    return [first, await ctx.wait_signal("go")]


@worker.workflow("ships.v1", attempts=1)
def ships(ctx, input):
    """Two versions of the code, as docs/versions.md teaches."""
    known = int(os.environ.get("VERSION", "1"))
    if known:
        way = "rail" if ctx.version("by rail", known) >= 1 else "road"
    else:
        way = "road"
    ctx.step(way, lambda: note(f"{ctx.run_id} {way}"))
    ctx.wait_signal("go")
    return way


@worker.workflow("async.stays.v1", attempts=1)
async def async_stays(ctx, input):
    note(f"{ctx.run_id} began")
    try:
        await ctx.step("stay", asyncio.sleep, 3600)
    finally:
        note(f"{ctx.run_id} left")


# ---- Steps that are none ----

def send_mail(run):
    note(f"{run} mail")


@worker.workflow("called.v1", attempts=3, backoff=0.01)
def called(ctx, input):
    def swallow(call):
        try:
            return call()
        except Exception:  # pylint: disable=broad-except
            return None

    def takes_all(**options):
        return sorted(options)

    choose(ctx, input, {
        "called": lambda: swallow(lambda: ctx.step("mail", send_mail(ctx.run_id))),
        "decorator": lambda: ctx.step("bare"),
        "mistyped": lambda: ctx.step("mail", send_mail, ctx.run_id, retires=3),
        "swallowed": lambda: ctx.step("mail", takes_all, retires=3),
        "unknown": lambda: ctx.step("mail", send_mail, ctx.run_id, colour="red"),
        "decorated": lambda: ctx.step("mail", max_backof=3)(send_mail),
        "name": lambda: swallow(lambda: ctx.step("mail#2", lambda: 1)),
        "seconds": lambda: swallow(lambda: ctx.step("mail", lambda: 1, timeout="1s")),
        "async": lambda: ctx.step("mail", asyncio.sleep, 0),
        "nobody": lambda: swallow(lambda: ctx.wait_children("all", [])),
        "version": lambda: swallow(lambda: ctx.version("change", "1"))})
    return "as if nothing were wrong"


class Speechless(Exception):
    def __str__(self):
        raise ValueError("no words")


@worker.workflow("written.v1", attempts=1)
def written(ctx, input):
    """What the store cannot take as it is."""
    def fail(error):
        raise error

    choose(ctx, input, {
        "large": lambda: ctx.step("report", lambda: "x" * 17_000_000),
        "code": lambda: fail(holdfast.PermanentError("the bank said no", "bad\ncode")),
        "speechless": lambda: fail(Speechless())})


@worker.workflow("keywords.v1", attempts=1)
def keywords(ctx, input):
    def takes(**options):
        return sorted(options)

    def own(retires):
        return retires

    return [ctx.step("a", takes, colour="red"), ctx.step("b", own, retires=4), ctx.step("c", dict, colour="red")]


# ---- Time ----

@worker.workflow("hangs.v1", attempts=1)
def hangs(ctx, input):
    """The step's function never comes back; the run goes on."""
    def hang():
        note(f"{ctx.run_id} hangs")
        wait_for("free")
        try:
            ctx.progress(99)
        finally:
            note(f"{ctx.run_id} left")

    try:
        ctx.step("hang", hang, retries=1, backoff=0.01, timeout=0.1)
    except StepFailed as error:
        note(f"{ctx.run_id} goes on")
        wait_for("left")
        return [error.code, str(error)]


@worker.workflow("hangs.async.v1", attempts=1)
async def hangs_async(ctx, input):
    try:
        await ctx.step("hang", wait_for, "free", retries=0, timeout=0.1)
    except StepFailed as error:
        try:
            await ctx.step("sleep", asyncio.sleep, 3600, retries=0, timeout=0.1)
        except StepFailed as other:
            return [error.code, other.code]


@worker.workflow("stays.v1", attempts=1)
def stays(ctx, input):
    note(f"{ctx.run_id} stays")
    wait_for("free")
    try:
        ctx.step("late", lambda: note(f"{ctx.run_id} late"))
    finally:
        note(f"{ctx.run_id} left")


@worker.workflow("limits.v1", attempts=1)
def limits(ctx, input):
    """0: none; less: it has passed."""
    ended = []
    for call in (lambda: ctx.wait_signal("never", timeout=-1), lambda: ctx.step("late", note, "late", retries=0, timeout=-1),
                 lambda: ctx.step("none", lambda: "fine", timeout=0),
                 lambda: ctx.wait_signal("soon", timeout=datetime.timedelta(seconds=0.01))):
        try:
            ended.append(call())
        except (holdfast.WaitTimeout, StepFailed) as error:
            ended.append(error.code)
    ctx.sleep("nap", datetime.timedelta(milliseconds=1))
    ctx.sleep_until("then", datetime.datetime.now(datetime.timezone.utc))
    ctx.wait_signal("come", timeout=0)
    return ended


# ---- Errors that are remembered ----

class OddError(Exception):
    pass


@worker.workflow("errors.v1", attempts=1)
def errors(ctx, input):
    told = []
    for name, error in (("own", PermanentError("no money", code="card_declined", details={"card": 17})), ("plain", OddError("odd")),
                        ("client", holdfast.HoldfastError("unknown_workflow", "no such"))):
        try:
            ctx.step(name, leave, error, retries=0)
        except StepFailed as failed:
            told.append([failed.step, failed.code, failed.message, failed.details, failed.__cause__ is None,
                         failed.__context__ is None])
    note(f"{ctx.run_id} {told}")
    ctx.sleep("nap", 0.02)
    if input == "pass":
        ctx.step("last", leave, PermanentError("no money", code="card_declined", details={"card": 17}))
    return told


@worker.workflow("busy.v1", attempts=2)
def busy(ctx, input):
    def work():
        note(f"{ctx.run_id} try")
        with open(LOG, encoding="utf-8") as log:
            if log.read().split().count(ctx.run_id) < 5:
                raise RetryAfter(0.01, "429")
        return "done"

    if input == "limit":
        ctx.step("charge", leave, RetryAfter(30, "429", code="busy"), retries=0, retry_after_limit=datetime.timedelta(seconds=1))
    return ctx.step("charge", work, retries=0)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Money:
    sum: decimal.Decimal
    day: datetime.date


Point = collections.namedtuple("Point", "x y")


@worker.workflow("json.v1", attempts=1)
def values(ctx, input):
    good = {"money": Money(decimal.Decimal("1.10"), datetime.date(2026, 1, 2)), "at": datetime.datetime(2026, 1, 2, 3, 4),
            "time": datetime.time(5, 6), "id": uuid.UUID(int=1), "colour": Colour.RED, "set": {3, 1, 2}, "tuple": (1, Point(2, 3))}
    if input == "good":
        return [ctx.step("good", lambda: good), good]
    bad = {"items": [1, {"when": 1j}]}
    return choose(ctx, input, {
        "step": lambda: ctx.step("charge", lambda: note("charged") or bad), "result": lambda: bad,
        "bytes": lambda: b"x", "nan": lambda: [float("nan")], "itself": lambda: bad["items"].append(bad) or bad,
        "key": lambda: {(1, 2): 3}, "child": lambda: ctx.start_child("kid", "healthy.v1", bad)})


@worker.workflow("children.v1", attempts=1)
def children(ctx, input):
    if input == "unknown":
        return ctx.start_child("kid", "nobody.v1")
    kid = ctx.start_child("kid", "leaves.v1", "exit")
    end, = ctx.wait_children("end", [kid])
    note(f"{ctx.run_id} {end!r}")
    ctx.wait_child("again", kid)


@worker.workflow("tells.v1", attempts=1)
def tells(ctx, input):
    ctx.publish({"at": "begin"})
    ctx.progress(1, "begin")
    for i in range(5):
        ctx.sleep(f"nap {i}", 0.01)
    ctx.publish({"at": "end"})


@worker.workflow("watched.v1", attempts=1)
def watched(ctx, input):
    def work():
        note(f"{ctx.run_id} began")
        while True:
            ctx.check()
            time.sleep(0.01)

    try:
        ctx.step("work", work)
    finally:
        note(f"{ctx.run_id} left")


@worker.workflow("afterwards.v1", attempts=1)
def afterwards(ctx, input):
    """A thread of its own goes on when the handler has ended, and its end is not yet told."""
    def tell():
        wait_for("on")
        try:
            ctx.progress(99)
        finally:
            note(f"{ctx.run_id} left")

    threading.Thread(target=tell).start()
    end = worker._end

    def end_late(one, body):
        pathlib.Path(f"{LOG}.on").touch()
        wait_for("told")
        end(one, body)

    worker._end = end_late


@worker.workflow("restart.v1", attempts=1)
def restart(ctx, input):
    def work():
        note(f"{ctx.run_id} began")
        wait_for("on")
        note(f"{ctx.run_id} done")
        return "kept"

    return ctx.step("work", work)


worker.run()

#!/usr/bin/env python3
"""Ordinary mistakes in handlers in Python: each ends its own attempt and nothing else. And what this client alone has.
usage: python.py STORE. B8, C1, C5."""

import os
import pathlib
import sys

from scene import Process, Server, check, make_store, wait_until
from runner import Runner
from stores import free_port
from stub import Stub

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

import holdfast  # noqa: E402

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
HERE = pathlib.Path(__file__).parent / "workers"
ENDED = ("succeeded", "failed", "cancelled")


class Scene:
    def __init__(self, directory):
        self.directory, self.log = directory, directory / "log"
        self.log.touch()
        self.url, self.port, self.started = make_store(KIND, directory), free_port(), 0
        self.serve()

    def serve(self):
        self.started += 1
        self.server = Server(self.directory, self.url, "--listen", f"127.0.0.1:{self.port}", name=f"serve-{self.started}")
        self.client = self.server.client
        self.python = holdfast.Client(f"http://127.0.0.1:{self.port}")

    def worker(self, hands=4, **environment):
        self.started += 1
        name = f"worker-{self.started}"
        worker = Process(self.directory, name, [sys.executable, HERE / "mistakes.py", f"http://127.0.0.1:{self.port}", name,
                                                self.log], env={**os.environ, "HANDS": str(hands), **environment})
        wait_until(lambda: self.has_joined(worker), f"{name} has joined")
        return worker

    def has_joined(self, worker):
        check(worker.alive(), worker.said())
        return f"default/{worker.name}" in (one["name"] for one in self.client.get("/v1/workers").json["items"])

    def happens(self, name):
        pathlib.Path(f"{self.log}.{name}").touch()

    def lines(self):
        return self.log.read_text().splitlines()

    def is_noted(self, line):
        wait_until(lambda: line in self.lines(), line)

    def end(self, run):
        return wait_until(lambda: [one for one in [self.client.get(f"/v1/runs/{run}?wait=20s").json] if one["status"] in ENDED],
                          f"{run} ends")[0]

    def play(self, workflow, input=None):
        return self.end(self.client.trigger(workflow, input=input))


def case(function):
    def play(directory):
        scene = Scene(directory)
        try:
            function(scene)
            scene.server.stop()
        finally:
            scene.server.process.kill()

    RUNNER.case(function.__name__, play)
    return function


def alone(function):
    """Without a server."""
    RUNNER.case(function.__name__, lambda _: function())
    return function


def refuses(call, *words, kind=(TypeError, ValueError)):
    try:
        call()
    except kind as error:
        for word in words:
            check(word in str(error), f"{word!r} is not in {error!r}")
        return
    check(False, f"nothing was refused: {words}")


# ---- What a handler raises or does ----

@case
def nothing_that_a_handler_raises_ends_a_thread(scene):
    worker = scene.worker(hands=1)
    for way, code, message in (("exit", "SystemExit", "the end"), ("interrupt", "KeyboardInterrupt", "KeyboardInterrupt"),
                               ("generator", "GeneratorExit", "GeneratorExit"), ("step", "SystemExit", "the step's end"),
                               ("timed", "SystemExit", "the step's end"), ("all", "SystemExit", "the branch's end")):
        end = scene.play("leaves.v1", way)
        check((end["status"], end["error_code"]) == ("failed", code) and end["last_error"].endswith(message), end)
        check("mistakes.py" in end["error"]["trace"] and "holdfast.py" not in end["error"]["trace"], end["error"]["trace"])
    for way, message in (("step", "the step's end"), ("task", "the task's end"), ("", "the end")):
        end = scene.play("leaves.async.v1", way)
        check((end["error_code"], end["last_error"]) == ("SystemExit", f"SystemExit: {message}"), end)
    check(scene.play("healthy.v1", 4)["result"] == 8, "the only thread goes on")
    check(worker.said().count("Traceback") >= 9 and worker.stop() == 0, worker.said())


@case
def a_thread_that_dies_all_the_same_is_replaced_and_its_run_fails(scene):
    worker = scene.worker(hands=1)
    run = scene.client.trigger("dies.v1")
    scene.end(run)
    check(scene.play("healthy.v1", 4)["result"] == 8, "another thread has taken over")
    check(f"run {run}: its thread has died" in worker.said() and worker.stop() == 0, worker.said())


@case
def a_process_that_a_handler_forked_off_does_not_become_a_second_worker(scene):
    worker = scene.worker(hands=1)
    end = scene.play("forks.v1")
    check((end["status"], end["result"]) == ("succeeded", 70), end)
    check("a process that its handler forked off came back from it" in worker.said() and worker.stop() == 0, worker.said())


# ---- Calls at once ----

@case
def threads_of_the_handlers_own_fail_its_run_though_it_swallows_the_error(scene):
    worker = scene.worker()
    end = scene.play("threads.v1")
    check((end["status"], end["error_code"]) == ("failed", "calls_overlap") and "ctx.all" in end["last_error"], end)
    check(worker.stop() == 0, worker.said())


@case
def functions_given_to_all_are_called_at_once_and_remembered_by_name(scene):
    worker = scene.worker()
    run = scene.client.trigger("all.v1")
    end = scene.end(run)
    check(end["result"] == [["a", ["b", "then", "again"], "c"], []], end)
    check(sorted(scene.lines()) == [f"{run} {name}" for name in "abc"], scene.lines())
    end = scene.play("all.fails.v1")
    check(end["result"] == ["bad", "ValueError"], end)
    run = scene.client.trigger("all.retries.v1")
    check(scene.end(run)["result"] == ["x", "y", "z"], scene.end(run))
    told = [line for line in scene.lines() if line.startswith(run)]
    check(sorted(told) == [f"{run} {name}" for name in "xxxyzzz"], told)
    attempts = {one["name"]: one["attempt"] for one in scene.client.get(f"/v1/runs/{run}/steps").json["items"]}
    check(attempts == {"x": 3, "y": 1, "z": 3}, attempts)
    check(worker.stop() == 0, worker.said())


@case
def an_operators_retry_tries_the_step_again_that_failed_beside_others(scene):
    """A13."""
    worker = scene.worker()
    run = scene.client.trigger("all.again.v1")
    check(scene.end(run)["error_code"] == "ValueError", scene.end(run))
    scene.happens("mended")
    scene.client.post(f"/v1/runs/{run}/retry")
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["status"] == "succeeded", "it is mended")
    check(scene.end(run)["result"] == ["good", "late"], scene.end(run))
    check(scene.lines().count(f"{run} bad") == 2 and scene.lines().count(f"{run} late") == 1, scene.lines())
    check(worker.stop() == 0, worker.said())


@case
def what_one_function_of_all_has_done_is_kept_when_the_worker_dies_in_another(scene):
    scene.client.put("/v1/workflows/half.v1", {"lease": "1s"})
    worker = scene.worker()
    run = scene.client.trigger("half.v1")
    scene.is_noted(f"{run} slow")
    wait_until(lambda: [one["name"] for one in scene.python.steps(run)] == ["quick"], "one of two is recorded")
    line, = [one for one in scene.python.ask("GET", f"/runs/{run}/events")["items"] if one["kind"] == "step"]
    check(line["data"]["open"] == ["slow"], line)
    worker.kill()
    worker = scene.worker()
    check(scene.end(run)["result"] == ["slow", "quick"], scene.end(run))
    check(sorted(scene.lines()) == [f"{run} quick", f"{run} slow", f"{run} slow"], scene.lines())
    check(worker.stop() == 0, worker.said())


@case
def what_all_cannot_take_fails_the_run_whoever_catches_the_error(scene):
    worker = scene.worker()
    for way, code, word in (("name", "calls_overlap", '"a"'), ("wait", "calls_overlap", '"nap" (sleep)'),
                            ("nested", "bad_call", "inside of ctx.all"), ("called", "bad_call", "int instead of a function"),
                            ("inside", "calls_overlap", 'before the step "outer" ended')):
        end = scene.play("all.wrong.v1", way)
        check((end["status"], end["error_code"]) == ("failed", code) and word in end["last_error"], (way, end))
        check("mistakes.py" in end["error"]["trace"], end["error"]["trace"])
    check(worker.stop() == 0, worker.said())


# ---- async ----

@case
def async_handlers_make_calls_at_once_and_replays_go_the_same_way(scene):
    worker = scene.worker()
    run = scene.client.trigger("async.v1")
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go", "payload": 7})
    end = scene.end(run)
    check(end["result"] == [[0, 1, 2], [0.15, 0.05, 0.1], True, 36, True, 3, 8, 7, ["p", "q"]], end)
    orders = {line for line in scene.lines() if "order" in line}
    check(orders == {f"{run} order [0.05, 0.1, 0.15]"}, scene.lines())
    check(len([line for line in scene.lines() if "item" in line]) == 3, "each once")
    told = [one["name"] for one in scene.python.ask("GET", f"/runs/{run}/events?limit=1000")["items"] if one["kind"] == "domain"]
    check(sorted(told) == ["progress", "published"], told)
    run = scene.client.trigger("async.retries.v1")
    check(scene.end(run)["result"] == ["u", "v", "w"], scene.end(run))
    check(sorted(one for one in scene.lines() if run in one) == [f"{run} {name}" for name in "uuww"], scene.lines())
    if sys.version_info >= (3, 11):
        check(scene.play("async.group.v1")["result"] == [0, 1, 2], "a group of tasks")
    run = scene.client.trigger("async.fails.v1")
    check(scene.end(run)["error_code"] == "ValueError", scene.end(run))
    check(["late", "succeeded"] in [[one["name"], one["status"]] for one in scene.python.steps(run)], "its record is not lost")
    check(worker.stop() == 0, worker.said())


@case
def a_forgotten_await_fails_the_run_and_names_the_call(scene):
    worker = scene.worker(hands=1)
    for way, code, words in (("forgotten", "not_awaited", ['"pause" (sleep)']), ("open", "not_awaited", ['"quick" (step)']),
                             ("overlap", "calls_overlap", ['"pause" (sleep)', '"beside" (step)', "await"]),
                             ("thread", "calls_overlap", ['"elsewhere" (step)'])):
        end = scene.play("async.wrong.v1", way)
        check((end["status"], end["error_code"]) == ("failed", code), (way, end))
        check(all(word in end["last_error"] for word in words), (way, end["last_error"]))
    check(scene.play("healthy.v1", 4)["result"] == 8, "nobody else noticed")
    check("never awaited" not in worker.said() and worker.stop() == 0, worker.said())


@case
def an_async_handler_whose_code_has_changed_is_told_of(scene):
    worker = scene.worker()
    run = scene.client.trigger("async.changed.v1")
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["status"] == "waiting", "it waits")
    check(worker.stop() == 0, worker.said())
    scene.client.put("/v1/workflows/async.changed.v1", {"fit_within": "0s"})
    worker = scene.worker(STEP="b")
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "go"})
    end = scene.end(run)
    check(end["error_code"] == "history_mismatch" and '"b"' in end["last_error"] and '"a"' in end["last_error"], end)
    check(worker.stop() == 0, worker.said())


@case
def a_run_is_left_to_a_worker_that_it_fits(scene):
    """C5. One whose history has a version that the code does not know, or a higher one."""
    scene.client.put("/v1/workflows/ships.v1", {})
    worker = scene.worker(VERSION="2")
    runs = [scene.client.trigger("ships.v1") for _ in range(2)]
    for run in runs:
        wait_until(lambda one=run: scene.client.get(f"/v1/runs/{one}").json["status"] == "waiting", "it waits")
    check(worker.stop() == 0, worker.said())
    for run, known in zip(runs, ("0", "1")):
        worker = scene.worker(VERSION=known)
        scene.client.post(f"/v1/runs/{run}/signals", {"name": "go"})
        wait_until(lambda one=run: scene.client.get(f"/v1/runs/{one}").json["waiting_kind"] == "worker", "it waits for a worker")
        check(worker.stop() == 0 and "waits for a worker that fits" in worker.said(), worker.said())
    worker = scene.worker(VERSION="2")
    for run in runs:
        end = scene.end(run)
        check((end["status"], end["result"], end["attempt"]) == ("succeeded", "rail", 1), end)
    check(sorted(scene.lines()) == sorted(f"{run} rail" for run in runs), "and nothing was done again")
    check(worker.stop() == 0, worker.said())


@case
def a_cancel_ends_an_async_handler_where_it_stands(scene):
    scene.client.put("/v1/workflows/async.stays.v1", {"lease": "1s"})
    worker = scene.worker(hands=1)
    run = scene.client.trigger("async.stays.v1")
    scene.is_noted(f"{run} began")
    scene.client.post(f"/v1/runs/{run}/cancel")
    scene.is_noted(f"{run} left")
    check(scene.play("healthy.v1", 4)["result"] == 8, "the thread is free")
    check(worker.stop() == 0, worker.said())


# ---- Steps that are none ----

@case
def what_was_called_instead_of_handed_over_fails_the_run_for_good(scene):
    worker = scene.worker()
    for way, words in (("called", ["hand the function over", "send_mail, x"]), ("decorator", ['"bare"', "no function"]),
                       ("mistyped", ['"retires"', '"retries"']), ("swallowed", ['"retires"', '"retries"']),
                       ("unknown", ['"colour"', "retry_after_limit"]), ("decorated", ['"max_backof"', '"max_backoff"']),
                       ("name", ["mail#2"]), ("seconds", ["'1s'"]), ("async", ["async def"]),
                       ("nobody", ["waits for no children"]), ("version", ["a whole number"])):
        run = scene.client.trigger("called.v1", input=way)
        end = scene.end(run)
        check((end["status"], end["error_code"], end["attempt"]) == ("failed", "bad_call", 1), (way, end))
        check(all(word in end["last_error"] for word in words), (way, end["last_error"]))
        check(scene.lines().count(f"{run} mail") == (way == "called"), "it was not sent")
    check(scene.play("keywords.v1")["result"] == [["colour"], 4, {"colour": "red"}], "what functions take they get")
    check(worker.stop() == 0, worker.said())


# ---- Time ----

@case
def a_step_past_its_limit_fails_and_its_run_goes_on(scene):
    worker = scene.worker(hands=1)
    run = scene.client.trigger("hangs.v1")
    scene.is_noted(f"{run} goes on")
    check(scene.lines() == [f"{run} hangs", f"{run} hangs", f"{run} goes on"], scene.lines())
    scene.happens("free")
    wait_until(lambda: scene.lines().count(f"{run} left") == 2, "what was left to itself comes back")
    scene.happens("left")
    check(scene.end(run)["result"] == ["timeout", "the step took longer than its limit of 0.1s"], scene.end(run))
    events = scene.python.ask("GET", f"/runs/{run}/events")["items"]
    check("progress" not in [one["name"] for one in events], "what it says then nobody hears")
    check("is left to itself" in worker.said() and worker.stop() == 0, worker.said())


@case
def async_steps_past_their_limit_fail_whatever_they_wait_in(scene):
    worker = scene.worker(hands=1)
    end = scene.play("hangs.async.v1")
    check(end["result"] == ["timeout", "timeout"], end)
    check(scene.play("healthy.v1", 4)["result"] == 8, "it claims on")
    check(worker.stop() == 0, worker.said())


@case
def a_thread_that_outlives_its_handler_changes_nothing(scene):
    worker = scene.worker(hands=1)
    run = scene.client.trigger("afterwards.v1")
    scene.is_noted(f"{run} left")
    scene.happens("told")
    check(scene.end(run)["status"] == "succeeded", scene.end(run))
    check("progress" not in [one["name"] for one in scene.python.ask("GET", f"/runs/{run}/events")["items"]], "it told nothing")
    check(worker.stop() == 0, worker.said())


@case
def a_handler_that_does_not_leave_its_cancelled_run_loses_its_thread_and_changes_nothing(scene):
    scene.client.put("/v1/workflows/stays.v1", {"lease": "1s"})
    worker = scene.worker(hands=1)
    run = scene.client.trigger("stays.v1")
    scene.is_noted(f"{run} stays")
    scene.client.post(f"/v1/runs/{run}/cancel")
    check(scene.play("healthy.v1", 4)["result"] == 8, "another thread works")
    late = scene.client.trigger("stays.v1", timeout="500ms")
    check(scene.end(late)["error_code"] == "deadline_exceeded", scene.end(late))
    check(scene.play("healthy.v1", 4)["result"] == 8, "and another")
    stuck = lambda: scene.client.get("/v1/workers").json["items"][0]["stuck"]
    wait_until(lambda: stuck() == 2, "two are stuck")
    scene.happens("free")
    wait_until(lambda: stuck() == 0, "both are back")
    scene.is_noted(f"{run} left")
    scene.is_noted(f"{late} left")
    check(not [line for line in scene.lines() if "late" in line and "left" not in line and "stays" not in line], scene.lines())
    check(scene.client.get(f"/v1/runs/{run}").json["status"] == "cancelled", "as it was")
    check("its handler does not leave" in worker.said() and "wait_for" in worker.said(), worker.said())
    check(worker.stop() == 0, worker.said())


@case
def no_limit_is_0_and_what_is_less_has_passed(scene):
    worker = scene.worker()
    run = scene.client.trigger("limits.v1")
    wait_until(lambda: scene.client.get(f"/v1/runs/{run}").json["current_step"] == "come", "it waits without a limit")
    check(scene.client.get(f"/v1/runs/{run}").json["waiting_until"] is None, "it waits without a limit")
    scene.client.post(f"/v1/runs/{run}/signals", {"name": "come"})
    check(scene.end(run)["result"] == ["wait_timeout", "timeout", "fine", "wait_timeout"], scene.end(run))
    check("late" not in scene.lines() and worker.stop() == 0, worker.said())


# ---- What is remembered of errors ----

@case
def the_error_of_a_step_is_the_same_in_every_replay(scene):
    worker = scene.worker()
    run = scene.client.trigger("errors.v1")
    told = [["own", "card_declined", "no money", {"card": 17}, True, True],
            ["plain", "OddError", "OddError: odd", None, True, True], ["client", "unknown_workflow", "no such", None, True, True]]
    check(scene.end(run)["result"] == told, scene.end(run))
    check(scene.lines() == [f"{run} {told}"] * 2, scene.lines())
    end = scene.play("errors.v1", "pass")
    check((end["error_code"], end["last_error"]) == ("card_declined", "no money"), end)
    error = end["error"]
    check((error["step"], error["details"], error["code"]) == ("last", {"card": 17}, "card_declined"), error)
    trace = error["trace"]
    check(trace.count("Traceback") == 1 and trace.index("in errors") < trace.index("in leave") and "holdfast.py" not in trace, trace)
    check(worker.stop() == 0, worker.said())


@case
def retry_after_costs_no_attempt_of_a_step_until_its_limit(scene):
    worker = scene.worker()
    run = scene.client.trigger("busy.v1")
    end = scene.end(run)
    check((end["result"], scene.lines()) == ("done", [f"{run} try"] * 5), end)
    lines = [one["data"] for one in scene.python.ask("GET", f"/runs/{run}/events?limit=1000")["items"] if one["kind"] == "step"]
    check([line.get("attempt", 0) for line in lines] == [0, 0, 0, 0, 1], lines)
    check(len({line.get("deferred") for line in lines[:-1]}) == 1, lines)
    end = scene.play("busy.v1", "limit")
    check((end["status"], end["error_code"], end["last_error"]) == ("failed", "busy", "429"), end)
    check(worker.stop() == 0, worker.said())


@case
def an_attempt_ends_whatever_it_would_have_written(scene):
    worker = scene.worker(hands=1)
    for way, code, words in (("large", "result_refused", "16777216 bytes"), ("code", "bad code", "the bank said no"),
                             ("speechless", "Speechless", "cannot say what it is")):
        end = scene.end(scene.client.trigger("written.v1", input=way))
        check((end["status"], end["error_code"]) == ("failed", code), (way, end["error_code"], end["last_error"]))
        check(words in end["last_error"], (way, end["last_error"]))
    check(scene.play("healthy.v1", 4)["result"] == 8, "the thread is free")
    check(worker.stop() == 0, worker.said())


@case
def values_are_written_as_json_and_what_cannot_be_is_named(scene):
    worker = scene.worker()
    plain = {"money": {"sum": "1.10", "day": "2026-01-02"}, "at": "2026-01-02T03:04:00", "time": "05:06:00",
             "id": "00000000-0000-0000-0000-000000000001", "colour": "red", "set": [1, 2, 3], "tuple": [1, [2, 3]]}
    check(scene.play("json.v1", "good")["result"] == [plain, plain], "good")
    for way, words in (("step", ['the step "charge" has done its work', "$.items[1].when is a complex"]),
                       ("result", ["what the handler returned", "$.items[1].when is a complex"]), ("bytes", ["$ is a bytes"]),
                       ("nan", ["$[0] is nan"]), ("itself", ["when is a complex"]), ("key", ["$ has a key that is a tuple"]),
                       ("child", ['the children of "kid"', "$[0].input.items[1].when is a complex"])):
        end = scene.play("json.v1", way)
        check((end["status"], end["error_code"]) == ("failed", "result_refused"), (way, end))
        check(all(word in end["last_error"] for word in words), (way, end["last_error"]))
    check(scene.lines() == ["charged"], "it is not done again")
    check(worker.stop() == 0, worker.said())


@case
def the_end_of_a_child_says_why(scene):
    worker = scene.worker()
    run = scene.client.trigger("children.v1")
    end = scene.end(run)
    check(end["error_code"] == "child_failed" and "ended as failed: SystemExit: the end" in end["last_error"], end)
    check("status='failed'" in scene.lines()[0] and "'code': 'SystemExit'" in scene.lines()[0], scene.lines())
    end = scene.play("children.v1", "unknown")
    check((end["error_code"], "nobody.v1" in end["last_error"]) == ("unknown_workflow", True), end)
    check(worker.stop() == 0, worker.said())


@case
def what_is_published_is_not_published_again_by_replays(scene):
    worker = scene.worker()
    run = scene.client.trigger("tells.v1")
    check(scene.end(run)["state"] == {"at": "end"}, scene.end(run))
    told = [one["name"] for one in scene.python.ask("GET", f"/runs/{run}/events?limit=1000")["items"] if one["kind"] == "domain"]
    check(told == ["published", "progress", "published"], told)
    check(worker.stop() == 0, worker.said())


# ---- The server ----

@case
def a_cancel_reaches_a_step_long_before_the_next_heartbeat(scene):
    """Which comes once in ten seconds, or never, for all that these leases need."""
    scene.client.put("/v1/workflows/watched.v1", {"lease": "1h"})
    worker = scene.worker(BEAT="86400")
    run = scene.client.trigger("watched.v1")
    scene.is_noted(f"{run} began")
    scene.client.post(f"/v1/runs/{run}/cancel")
    scene.is_noted(f"{run} left")
    check(worker.stop() == 0, worker.said())


@case
def what_a_handler_says_of_its_workflow_is_applied(scene):
    worker = scene.worker()
    told = scene.client.get("/v1/workflows/told.v1").json
    check((told["max_attempts"], told["retry_base"], told["lease"], told["timeout"], told["dead_letter"], told["max_running"]) ==
          (7, "1.5s", "5s", "2h", "healthy.v1", 3), told)
    for name, cron in (("told.v1", "30 2 * * *"), ("often", "every 3600s")):
        found = scene.client.get(f"/v1/schedules/{name}").json
        check((found["cron"], found["workflow"]) == (cron, "told.v1"), found)
    check(worker.stop() == 0, worker.said())


@case
def a_step_that_ends_while_the_server_is_away_is_not_done_again(scene):
    worker = scene.worker()
    run = scene.client.trigger("restart.v1")
    scene.is_noted(f"{run} began")
    scene.server.stop()
    scene.happens("on")
    scene.is_noted(f"{run} done")
    wait_until(lambda: "nothing listens at" in worker.said(), "it cannot say so")
    scene.serve()
    check(scene.end(run)["result"] == "kept" and scene.end(run)["attempt"] == 1, scene.end(run))
    check(scene.lines() == [f"{run} began", f"{run} done"], scene.lines())
    check(worker.stop() == 0, worker.said())


@case
def a_client_asks_the_next_server_when_one_is_away(scene):
    nobody = f"http://127.0.0.1:{free_port()}"
    client = holdfast.Client(f"{nobody}, http://127.0.0.1:{scene.port}")
    scene.client.put("/v1/workflows/idle.v1", {})
    run = client.trigger("idle.v1", {"n": 1}, key="a/b?ü")
    check(client.url == f"http://127.0.0.1:{scene.port}", client.url)
    client = holdfast.Client([f"http://127.0.0.1:{scene.port}", nobody])
    check(client.get("idle.v1/a/b?ü")["id"] == run, "by its key")
    check([one["status"] for one in (client.pause("idle.v1/a/b?ü"), client.cancel("idle.v1/a/b?ü"))] == ["paused", "cancelled"], run)
    check(client.wait("idle.v1/a/b?ü")["id"] == run, "waited for")
    check([*client.events("idle.v1/a/b?ü")][-1]["name"] == "cancelled", "events")
    refuses(lambda: client.get(f"{run}?wait=1s"), kind=holdfast.HoldfastError)
    refuses(lambda: client.complete_task("../runs", "x"), kind=holdfast.HoldfastError)
    refuses(lambda: holdfast.Client(nobody).get(run), nobody, "holdfast serve", kind=holdfast.Unavailable)


@alone
def a_process_that_was_forked_off_speaks_over_connections_of_its_own():
    ports = []

    def answer(_path, headers, _body):
        ports.append(headers["port"])
        return 200, {"id": "r"}

    client = holdfast.Client(f"http://127.0.0.1:{Stub(answer).port}")
    client.get("r")
    child = os.fork()
    if not child:
        client.get("r")
        os._exit(0)
    os.waitpid(child, 0)
    client.get("r")
    check(ports[0] == ports[2] != ports[1], ports)


# ---- What is refused where it is written ----

@alone
def handlers_are_refused_where_they_are_written():
    worker = holdfast.Worker(holdfast.Client())
    worker.workflow("shop.order.v1")(print)
    refuses(lambda: worker.workflow("shop.order.v1")(print), "shop.order.v1", "already")
    refuses(lambda: worker.workflow(print), '@worker.workflow("order.v1")')
    for name in ("", "a b", "order v1", "a..b", "a.", ".a", "holdfast.x", "x" * 201, "a*b", 7):
        refuses(lambda one=name: worker.workflow(one), repr(name)[:100])
    for name in ("*", "mail.*", "A-1_b:c.v1"):
        worker.workflow(name)(print)
    refuses(lambda: worker.workflow("a.v1", atempts=5), '"atempts"', '"attempts"')
    refuses(lambda: worker.workflow("a.*", attempts=5), "family")
    refuses(lambda: worker.workflow("a.v1", attempts=5, max_attempts=4), "twice")
    refuses(lambda: worker.workflow("a.v1", lease=b"5"), "seconds")
    refuses(lambda: holdfast.Client("127.0.0.1:8420"), "http://127.0.0.1:8420")


@alone
def only_handlers_that_fit_the_prefixes_are_served():
    def serves(prefixes=None, variable=""):
        os.environ["WORKER_TYPE_PREFIXES"] = variable
        worker = holdfast.Worker(holdfast.Client(), prefixes=prefixes)
        for name in ("shop.order.v1", "shop.parcel.v1", "mail.*"):
            worker.workflow(name)(print)
        worker._keep_prefixes()
        return worker._about()["workflows"]

    check(serves() == ["mail.*", "shop.order.v1", "shop.parcel.v1"], "all of them")
    check(serves(variable="mail., shop.o") == ["mail.*", "shop.order.v1"], serves(variable="mail., shop.o"))
    check(serves(["shop.*"], "mail.") == ["shop.order.v1", "shop.parcel.v1"], "an argument comes first")
    refuses(lambda: serves("nobody."), "nobody.", "shop.order.v1")
    del os.environ["WORKER_TYPE_PREFIXES"]


RUNNER.finish()

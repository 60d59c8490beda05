"""Holdfast for Python: trigger and follow runs, and work on them, over HTTP.

One file, Python 3.9 or later, nothing but the standard library. docs/python.md shows it at work, docs/remote-workers.md
is the protocol.

    client = Client("http://127.0.0.1:8421")
    worker = Worker(client)

    @worker.workflow("order.v1")
    def order(ctx, input):
        receipt = ctx.step("charge", charge, input["sum"])
        ctx.sleep("cool down", 3600)
        return {"receipt": receipt, "approval": ctx.wait_signal("approved")}

    worker.run()

A handler is called again from the top after a crash, a retry or a wait; each call on `ctx` that was made before answers as
it did then. So what changes the world, or may differ the next time, is done in a step, and calls come in the same order.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import queue
import select
import signal
import socket
import ssl
import threading
import time
import traceback
import urllib.parse
import uuid
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

__all__ = ["Client", "Worker", "Context", "ChildEnd", "HoldfastError", "Unavailable", "PermanentError", "RetryAfter",
           "StepFailed", "ChildFailed", "WaitTimeout", "HistoryMismatch", "Suspended", "RunLost", "RunCancelled"]

LOG = logging.getLogger("holdfast")
FINISHED = ("succeeded", "failed", "cancelled")
CLAIM_WAIT = 20      # s that a claim waits for work
FRESH = 15           # s that an idle connection is trusted; the server closes it after 30
LONGEST_BEAT = 10    # s between heartbeats
TRACE_LIMIT = 8000   # characters of a traceback that are kept with the run
MICRO = 1_000_000
MAIL_MOST = 100_000  # pieces that a claim brings
BEAT_MOST = 1000     # runs that one heartbeat may name
GIVE_BACK = {"path": "commit", "turn": "give_back"}


# ---- Errors ----

class HoldfastError(Exception):
    """The server refused a request. `code` is stable and made for programs."""

    def __init__(self, code: str, message: str, status: int = 0):
        super().__init__(message)
        self.code, self.status = code, status


class Unavailable(HoldfastError):
    """There was no answer, or none that says what became of the request."""


class PermanentError(Exception):
    """Raise it to fail a run (or a step) for good: tried again, it would fail again. `code` is kept with the run."""

    def __init__(self, message: str, code: str = "permanent"):
        super().__init__(message)
        self.code = code


class HistoryMismatch(PermanentError):
    """The handler makes other calls than the run remembers."""

    def __init__(self, message: str):
        super().__init__(f"{message}: the code has changed under a running run; use ctx.version, or give the new code a "
                         "new name", "history_mismatch")


class StepFailed(PermanentError):
    """A step has failed for good. It is remembered: a handler that is called again meets it again."""

    def __init__(self, step: str, message: str):
        super().__init__(message, "step_failed")
        self.step = step


class ChildFailed(PermanentError):
    """A child that was waited for did not succeed; `end` tells how it ended. Remembered, as all that waits have told."""

    def __init__(self, end: "ChildEnd"):
        super().__init__(f"the child run {end.run} ended as {end.status}", "child_failed")
        self.end = end


class WaitTimeout(PermanentError, TimeoutError):
    """The time of a wait has passed. Remembered, as all that waits have told."""

    def __init__(self, message: Optional[str]):
        super().__init__(message or "the time has passed", "wait_timeout")


class RetryAfter(Exception):
    """Raise it to fail this attempt and be tried again after so many seconds."""

    def __init__(self, seconds: float, message: str = "tried again later"):
        super().__init__(message)
        self.seconds = seconds


class Suspended(BaseException):
    """Unwinds a handler whose run waits. Let it pass."""


class RunLost(BaseException):
    """Unwinds a handler whose run is not held any more. Let it pass."""

    def __init__(self, message: str, end: Optional[Dict[str, Any]] = None):
        super().__init__(message)
        self.end = end  # the request that ends the turn; None: there is nothing left to say


class RunCancelled(RunLost):
    """The run was cancelled."""


# ---- HTTP ----

def _write(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _plain(value: Any) -> Any:
    """The value as it comes back from the store."""
    try:
        return json.loads(_write(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise PermanentError(f"this is no JSON: {error}", "result_refused") from error


def _new_id(now: int) -> str:
    """A UUIDv7 of this time (us), as the server makes them: lists are ordered by id."""
    head = now // 1000 << 80 | 7 << 76 | now % 1000 * 4096 // 1000 << 64
    return str(uuid.UUID(int=head | 2 << 62 | int.from_bytes(os.urandom(8), "big") >> 2))


def _late(run: Dict[str, Any]) -> Dict[str, Any]:
    """A run to be triggered, whose `delay` in seconds is the API's `in`: a word that Python keeps for itself."""
    delay = run.get("delay")
    run = {name: value for name, value in run.items() if name != "delay"}
    return run if delay is None else {**run, "in": delay if isinstance(delay, str) else f"{int(delay * 1000)}ms"}


def _quote(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _has_news(sock: socket.socket) -> bool:
    """Whether there is something to read. Not by select() where there is better: it knows no files above 1023."""
    if not hasattr(select, "poll"):
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


class Client:
    """Speaks to a server. May be used by many threads. Arguments that are not named here (`key`, `tags`, …) are those of
    the HTTP API; times are RFC 3339, durations "90s". What there is no method for can be had with ask()."""

    def __init__(self, url: str, token: Optional[str] = None, tenant: Optional[str] = None, timeout: float = 30,
                 actor: Optional[str] = None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an address of a server: {url}")
        self.url = url
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/") + "/v1"
        self._timeout = timeout
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if tenant:
            self._headers["Holdfast-Tenant"] = tenant
        if actor:  # who acts, where there are no tokens
            self._headers["Holdfast-Actor"] = actor
        self._lock = threading.Lock()
        self._idle: List[tuple] = []  # (connection, when it was used), newest last

    # -- requests --

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        """One that was used before, unless the server has closed it meanwhile: nothing may get lost for that."""
        with self._lock:
            while self._idle:
                connection, used = self._idle.pop()
                if time.monotonic() - used < FRESH and not _has_news(connection.sock):
                    connection.sock.settimeout(timeout)
                    return connection
                connection.close()
        return self._connect(timeout)

    def _forget_idle(self) -> None:
        """Where one connection went silent, the others may have, too."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None,
            wait: float = 0, timeout: float = float("inf")) -> Any:
        """One request below /v1, sent once; the answer's JSON. `wait`: how much longer than usual it may take; `timeout`:
        its own limit in seconds, where the client's is too long."""
        sent = {**self._headers, **(headers or {})}
        raw = None
        if body is not None:
            raw = _write(body)
            sent["Content-Type"] = "application/json"
        connection = self._take(min(timeout, self._timeout + wait))
        try:
            connection.request(method, self._prefix + path, raw, sent)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._forget_idle()
            raise Unavailable("unavailable", f"{method} {path}: {error or type(error).__name__}") from error
        if connection.sock:
            with self._lock:
                self._idle.append((connection, time.monotonic()))
        return self._read(response.status, text)

    @staticmethod
    def _read(status: int, text: bytes) -> Any:
        try:
            answer = json.loads(text) if text else None
        except ValueError:
            answer = None
            status = status if status >= 400 else 502
        if status < 400:
            return answer
        problem = answer if isinstance(answer, dict) else {}
        code = str(problem.get("type", f"http_{status}")).rpartition(":")[2]
        message = problem.get("detail") or problem.get("title") or f"the server answered {status}"
        if status == 403 and problem.get("detail"):  # what is needed, and by whom
            message = f"{problem.get('title')}: {message}"
        raise (Unavailable if status >= 500 and status != 507 else HoldfastError)(code, message, status)

    # -- runs --

    def trigger(self, workflow: str, input: Any = None, *, delay: Optional[float] = None, **options: Any) -> str:
        """Starts a run, not before `delay` seconds have passed, and returns its id. With a `key` it is safe to repeat."""
        return self.ask("POST", "/runs", _late({"workflow": workflow, "input": input, "delay": delay, **options}))["id"]

    def trigger_many(self, runs: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Each is accepted or refused by itself: an item of the answer has an id, or a code and a message."""
        return self.ask("POST", "/runs/batch", {"runs": [_late(run) for run in runs]})["items"]

    def get(self, run: str) -> Dict[str, Any]:
        return self.ask("GET", f"/runs/{run}")

    def get_by_key(self, workflow: str, key: str) -> Dict[str, Any]:
        return self.ask("GET", f"/workflows/{_quote(workflow)}/runs/{_quote(key)}")

    def steps(self, run: str) -> List[Dict[str, Any]]:
        """What the run remembers."""
        return [*self._pages(f"/runs/{run}/steps", {})]

    def wait(self, run: str, timeout: Optional[float] = None) -> Dict[str, Any]:
        """The run when it has ended. TimeoutError when that takes longer than `timeout` seconds. A server that is away
        is waited for as well."""
        until = time.monotonic() + timeout if timeout is not None else float("inf")
        pause = _Backoff()
        while True:
            patience = max(0.0, min(30.0, until - time.monotonic()))
            try:
                found = self.ask("GET", f"/runs/{run}?wait={int(patience * 1000)}ms", wait=patience)
                if found["status"] in FINISHED:
                    return found
                pause, known = _Backoff(), f"is {found['status']}"
            except Unavailable as error:
                known = f"cannot be asked for: {error}"
                time.sleep(max(0.0, min(pause.next(), until - time.monotonic())))
            if time.monotonic() >= until:
                raise TimeoutError(f"the run {run} {known}")

    def list(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Runs, newest first, as many as there are."""
        return self._pages("/runs", filters)

    def _pages(self, path: str, filters: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        query = {name: ",".join(value) if isinstance(value, (list, tuple)) else
                 str(value).lower() if isinstance(value, bool) else value for name, value in filters.items()}
        while True:
            page = self.ask("GET", f"{path}?{urllib.parse.urlencode(query)}")
            yield from page["items"]
            if not page["next"]:
                return
            query["cursor"] = page["next"]

    def _change(self, run: str, action: str, reason: Optional[str]) -> Dict[str, Any]:
        return self.ask("POST", f"/runs/{run}/{action}", {"reason": reason} if reason else {})

    def cancel(self, run: str, reason: Optional[str] = None) -> Dict[str, Any]:
        return self._change(run, "cancel", reason)

    def pause(self, run: str, reason: Optional[str] = None) -> Dict[str, Any]:
        return self._change(run, "pause", reason)

    def resume(self, run: str, reason: Optional[str] = None) -> Dict[str, Any]:
        return self._change(run, "resume", reason)

    def retry(self, run: str, reason: Optional[str] = None) -> Dict[str, Any]:
        return self._change(run, "retry", reason)

    def delete(self, run: str, reason: Optional[str] = None) -> Dict[str, Any]:
        return self._change(run, "delete", reason)

    def restore(self, run: str, reason: Optional[str] = None) -> Dict[str, Any]:
        return self._change(run, "restore", reason)

    def fork(self, run: str, step: Optional[str] = None, **options: Any) -> str:
        """A new run that keeps the steps before `step` (None: none of them); its id. Also `input`, `key`, `reason`."""
        return self.ask("POST", f"/runs/{run}/fork", {**({"step": step} if step else {}), **options})["id"]

    def signal(self, run: str, name: str, payload: Any = None, id: Optional[str] = None) -> bool:
        """Sends a signal; with an `id` it is taken once. False: it was there already."""
        body = {"name": name, "payload": payload, **({"id": id} if id else {})}
        return not self.ask("POST", f"/runs/{run}/signals", body)["duplicate"]

    def events(self, run: str, after: int = 0) -> Iterator[Dict[str, Any]]:
        """The run's journal: what is there, then what comes, until the run has ended."""
        pause = _Backoff()
        over = False  # the run had ended before the stream was opened
        while True:
            before = after
            connection = self._connect(3 * FRESH)  # a stream says every 15 s that it lives
            try:
                connection.request("GET", f"{self._prefix}/runs/{run}/events", headers={
                    **self._headers, "Accept": "text/event-stream", "Last-Event-ID": str(after)})
                response = connection.getresponse()
                if response.status >= 400:
                    self._read(response.status, response.read())
                for line in response:
                    if line.startswith(b"data:"):
                        event = json.loads(line[5:])
                        after = event["seq"]
                        pause = _Backoff()
                        yield event
                # Streams also end with their server, and the run may have ended since then: only one that was opened after
                # that, and had nothing to tell, says that there is no more.
                if over and after == before:
                    return
                over = self.get(run)["status"] in FINISHED
            except (OSError, http.client.HTTPException, Unavailable):
                time.sleep(pause.next())
            finally:
                connection.close()

    # -- questions to people --

    def tasks(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Open and claimed ones, newest first; by `role`, `assignee`, `run`, `name`, `status`, `overdue`, `by_due`."""
        return self._pages("/tasks", filters)

    def complete_task(self, task: str, outcome: str, result: Any = None) -> Dict[str, Any]:
        """Answers it: a word, and what else there is to say. The same answer once more changes nothing."""
        return self.ask("POST", f"/tasks/{task}/complete", {"outcome": outcome, "result": result})


class _Backoff:
    """Growing pauses between tries."""

    def __init__(self, first: float = 0.1, most: float = 10):
        self._pause, self._most = first, most

    def next(self) -> float:
        pause = self._pause
        self._pause = min(self._most, pause * 2)
        return pause


# ---- What a run remembers ----

class _Entry:
    """One remembered call: its last line in the journal."""

    def __init__(self, name: str, status: str, data: Dict[str, Any], own: bool = True):
        self.name, self.status = name, status
        self.own = own  # else it came with the run's start, as the steps of a fork
        self.op: str = data.get("op") or "step"
        self.output, self.error = data.get("output"), data.get("error")
        self.attempt, self.until = data.get("attempt") or 0, data.get("until") or 0


class ChildEnd:
    """How a child ended: `status` is None while it has not, else succeeded, failed, cancelled or deleted."""

    def __init__(self, run: str, end: Optional[Dict[str, Any]] = None):
        end = end or {}
        self.run: str = run
        self.status: Optional[str] = end.get("status")
        self.result, self.error = end.get("result"), end.get("error")

    def _write(self) -> Optional[Dict[str, Any]]:
        if not self.status:
            return None
        return {"status": self.status, **({"result": self.result} if self.result is not None else {}),
                **({"error": self.error} if self.error is not None else {})}


class Context:
    """A run in a handler's hands. Its methods are for the handler's thread, but for check()."""

    def __init__(self, worker: "Worker", claim: Dict[str, Any]):
        run = claim["run"]
        self.run_id: str = run["id"]
        self.workflow: str = run["workflow"]
        self.key: Optional[str] = run["key"]
        self.attempt: int = run["attempt"]
        self.run: Dict[str, Any] = run
        self._worker, self._claim = worker, claim
        self._claimed = time.monotonic()
        self._over: Optional[BaseException] = None  # what every call raises from then on
        self._open: Optional[str] = None            # the step that has begun and not ended
        self._uses: Dict[str, int] = {}
        self._versions: Dict[str, int] = {}
        self._ends: Dict[str, ChildEnd] = {}
        self._mail: List[Dict[str, Any]] = list(claim["mail"])  # not taken yet
        self._entries: List[_Entry] = []            # in the order in which they were first recorded
        self._next = 0                              # the entry that the next call must meet
        self._recall()

    def _recall(self) -> None:
        places: Dict[str, int] = {}
        for line in self._claim["steps"]:
            entry = _Entry(line["name"], line["status"], line["data"] if isinstance(line["data"], dict) else {},
                           line.get("version", 0) != 1)
            if entry.name in places:
                self._entries[places[entry.name]] = entry
            else:
                places[entry.name] = len(self._entries)
                self._entries.append(entry)
        last = self._entries[-1] if self._entries else None
        # An operator who has a run tried again wants the step on which it gave up tried again.
        if last and last.status == "failed" and last.op == "step" and \
                self._claim["retried_seq"] >= self._claim["steps"][-1]["seq"]:
            last.status, last.attempt, last.until = "waiting", 0, 0
        if self._claim.get("steps_cut"):
            self._lose(PermanentError("a run can remember 100,000 calls at most: give parts of the work to children"))

    # -- holding --

    def _now(self) -> int:
        """The store's clock."""
        return self._claim["seen_us"] + int((time.monotonic() - self._claimed) * MICRO)

    def check(self) -> None:
        """Raises when the run is lost, cancelled or past its deadline. Cheap: call it in long loops."""
        if not self._over and self._claim["deadline_us"] and self._now() >= self._claim["deadline_us"]:
            self._lose(RunLost("the deadline has passed", {
                "path": "fail", "permanent": True, "code": "deadline_exceeded",
                "message": "the run's deadline passed while it was worked on"}))
        if self._over:
            raise self._over

    def _lose(self, why: BaseException) -> None:
        self._over = self._over or why

    def _send(self, path: str, body: Dict[str, Any]) -> Any:
        """What is refused for its content is the caller's to handle; all else ends the turn."""
        try:
            return self._worker._ask_held(self, path, body)
        except HoldfastError as error:
            if error.code == "stale":
                self._lose(RunLost("somebody else holds the run"))
            elif error.code == "cancelled":
                self._lose(RunCancelled("the run was cancelled"))
            elif isinstance(error, Unavailable) or error.status in (401, 403, 507):
                # It may have been written or not: whoever claims the run next will see.
                self._lose(RunLost(str(error), GIVE_BACK))
            else:
                raise
        raise self._over  # type: ignore[misc]

    # -- meeting what is remembered --

    def _full(self, name: str) -> str:
        used = self._uses.get(name, 0)
        return name if used == 0 else f"{name}#{used + 1}"

    def _call(self, op: str, name: str) -> tuple:
        """The remembered name of this use, and its entry; None: it was not called before."""
        self.check()
        head, _, number = name.rpartition("#")
        if not name or len(name.encode()) > 500 or (head and number.isdigit()):
            raise PermanentError(f"the name of a call has 1 to 500 bytes and no \"#\" and number at its end: {name!r}")
        if self._open:
            raise PermanentError(f'"{name}" ({op}) was called before the step "{self._open}" ended')
        full = self._full(name)
        self._uses[name] = self._uses.get(name, 0) + 1
        entry = self._entries[self._next] if self._next < len(self._entries) else None
        if entry and (entry.name, entry.op) != (full, op):
            self._mismatch(f'"{full}" ({op}) was called where "{entry.name}" ({entry.op}) is remembered')
        self._next += entry is not None
        return full, entry

    def _mismatch(self, message: str) -> None:
        self._lose(HistoryMismatch(message))
        raise self._over  # type: ignore[misc]

    def _finish(self) -> None:
        """The handler has returned."""
        if not self._over and self._next < len(self._entries):
            entry = self._entries[self._next]
            self._mismatch(f'the handler ended where "{entry.name}" ({entry.op}) is remembered')
        self.check()

    # -- recording --

    def _line(self, op: str, *, started: int = 0, attempt: int = 0, until: int = 0, error: Optional[str] = None,
              **output: Any) -> Dict[str, Any]:
        data: Dict[str, Any] = {"op": op}
        if attempt:
            data["attempt"] = attempt
        if started:
            data.update(started=started, finished=self._now())
        if until:
            data["until"] = until
        if error is not None:
            data["error"] = error
        return {**data, **output}

    def _record(self, name: str, entry: Optional[_Entry], status: str, data: Dict[str, Any], **extra: Any) -> None:
        """Remembers a call, durably, together with what else is written with it. `entry`: its line before, or None."""
        if extra:
            event = {"kind": "step", "name": status, "step": name, "data": data}
            self._send("commit", {"turn": "go_on", "events": [event], **extra})
        else:
            self._send("step", {"name": name, "status": status, "data": data})
        if not entry:
            self._entries.append(_Entry(name, status, data))
            self._next += 1

    def _suspend(self, name: Optional[str], data: Optional[Dict[str, Any]], **wait: Any) -> None:
        if len(self._mail) >= MAIL_MOST and len(self._mail) == len(self._claim["mail"]) and not wait.get("pause"):
            # It would be woken at once for what it has not seen, and see the same again.
            self._lose(PermanentError(f"the mailbox holds more than a function sees at once, {MAIL_MOST} signals and ends "
                                      "of children, and none of them is what it waits for"))
            raise self._over  # type: ignore[misc]
        end = {"path": "commit", "turn": "wait", "seen_position": self._claim["seen_position"],
               "seen_us": self._claim["seen_us"], **wait}
        if data:
            end["current_step"] = name
            end["events"] = [{"kind": "step", "name": "waiting", "step": name, "data": data}]
        self._over = Suspended()
        self._over.end = end  # type: ignore[attr-defined]
        raise self._over

    # -- steps --

    @property
    def step_key(self) -> str:
        """Inside a step: the same for every attempt of this step of this run, and for no other. Hand it to what must not
        happen twice."""
        if not self._open:
            raise RuntimeError("step_key is for the inside of a step")
        return f"{self.run_id}/{self._open}"

    def _record_success(self, full: str, entry: Any, line: Dict[str, Any]) -> None:
        """What was done is not to be done again because its output is refused."""
        try:
            self._record(full, entry, "succeeded", line)
        except HoldfastError as error:
            raise PermanentError(str(error), "result_refused") from error

    def step(self, name: str, fn: Optional[Callable[..., Any]] = None, *args: Any, retries: Optional[int] = None,
             backoff: float = 1, max_backoff: float = 300, timeout: Optional[float] = None, **kwargs: Any) -> Any:
        """Calls `fn` once and remembers what it returned (JSON); StepFailed once it has failed 1 + `retries` times, by
        default as often as the run itself may be tried. What takes longer than `timeout` seconds counts as failed.
        Without `fn` it is a decorator, which calls the function at once: its name then stands for what it returned."""
        if fn is None:
            return lambda work: self.step(name, work, *args, retries=retries, backoff=backoff, max_backoff=max_backoff,
                                          timeout=timeout, **kwargs)
        full, entry = self._call("step", name)
        if entry and entry.status == "succeeded":
            return entry.output
        if entry and entry.status == "failed":
            raise StepFailed(full, entry.error or full)
        if entry and self._now() < entry.until:
            self._suspend(None, None, waiting_kind="step", waiting_until_us=entry.until)
        attempt, started, begun = (entry.attempt if entry else 0) + 1, self._now(), time.monotonic()
        self._open = full
        try:
            output = _plain(fn(*args, **kwargs))
            if timeout is not None and time.monotonic() - begun >= timeout:
                raise TimeoutError(f"the step took longer than its limit of {timeout:g}s")
            self._record_success(full, entry, self._line("step", attempt=attempt, started=started, output=output))
            return output
        except Exception as error:
            self.check()
            message = _say(error)
            most = self.run["max_attempts"] if retries is None else retries + 1
            if not isinstance(error, PermanentError) and attempt < most:
                pause = error.seconds if isinstance(error, RetryAfter) else \
                    min(max_backoff, backoff * 2 ** min(attempt - 1, 60)) * 1.25
                until = self._now() + int(pause * MICRO)
                LOG.warning("run %s, step \"%s\" failed in attempt %d", self.run_id, full, attempt, exc_info=error)
                self._suspend(full, self._line("step", attempt=attempt, started=started, until=until, error=message),
                              waiting_kind="step", waiting_until_us=until)
            self._record(full, entry, "failed", self._line("step", attempt=attempt, started=started, error=message))
            raise StepFailed(full, message) from error
        finally:
            self._open = None

    # -- waiting --

    def _limit(self, timeout: Optional[float]) -> int:
        return 0 if timeout is None else self._now() + int(max(0.0, timeout) * MICRO)

    def sleep(self, name: str, seconds: float) -> None:
        """The run waits, at no cost, for so long."""
        self._sleep_until(name, lambda: self._limit(seconds))

    def sleep_until(self, name: str, at: float) -> None:
        """`at`: seconds since the epoch, on the store's clock."""
        self._sleep_until(name, lambda: int(at * MICRO))

    def _sleep_until(self, name: str, when: Callable[[], int]) -> None:
        full, entry = self._call("sleep", name)
        now = self._now()
        until = entry.until if entry else when()
        if entry and until <= now:
            return
        data = self._line("sleep", started=now, until=until)
        if until <= now:
            self._record(full, entry, "succeeded", data)
        else:
            self._suspend(full, None if entry else data, waiting_kind="sleep", waiting_until_us=until)

    def pause(self, name: str, timeout: Optional[float] = None) -> None:
        """Paused until a person resumes the run, or the time has passed."""
        full, entry = self._call("pause", name)
        if not entry:
            until = self._limit(timeout)
            self._suspend(full, self._line("pause", started=self._now(), until=until), pause=True, waiting_until_us=until)

    def wait_signal(self, name: str, timeout: Optional[float] = None) -> Any:
        """The payload of the next signal of this name, also of one that came before. WaitTimeout after so many seconds."""
        full, entry = self._call("wait", name)
        found = [mail for mail in self._mail if mail["type"] == "external" and mail["name"] == name]
        return self._receive("wait", full, entry, found, timeout, "no signal came in time", {"waiting_kind": "signal"})

    def ask(self, name: str, payload: Any = None, *, title: Optional[str] = None, assignee: Optional[str] = None,
            roles: Sequence[str] = (), form: Any = None, due_in: Optional[float] = None,
            timeout: Optional[float] = None) -> Dict[str, Any]:
        """Asks people, once, and waits for the answer: {"task", "outcome", "result", "by"}. The task is called `title`, or
        as this call. WaitTimeout after `timeout` seconds; the task is withdrawn then."""
        payload, form = _plain(payload), _plain(form)
        full, entry = self._call("ask", name)
        found = [mail for mail in self._mail if mail["type"] == "task" and mail["token"] == full]
        due = datetime.fromtimestamp(self._limit(due_in) / MICRO, timezone.utc).isoformat() if due_in is not None else None
        task = {"name": title or name, "token": full, "payload": payload, "assignee": assignee, "roles": list(roles),
                "form": form, "due_at": due}
        task = {member: value for member, value in task.items() if value is not None}
        return self._receive("ask", full, entry, found, timeout, "no answer came in time",
                             {"waiting_kind": "task", "waiting_token": full, **({} if entry else {"tasks": [task]})},
                             withdrawn_tasks=[full])

    def _receive(self, op: str, full: str, entry: Optional[_Entry], found: List[Dict[str, Any]], timeout: Optional[float],
                 late: str, wait: Dict[str, Any], **too_late: Any) -> Any:
        """What the first of the mail says that was found; else the turn ends with `wait`. `too_late` is committed with the
        time-out."""
        if entry and entry.status == "succeeded":
            return entry.output
        if entry and entry.status == "failed":
            raise WaitTimeout(entry.error)
        now = self._now()
        until = entry.until if entry else self._limit(timeout)
        if found:
            payload = found[0]["payload"]
            self._record(full, entry, "succeeded", self._line(op, started=now, output=payload), consumed=[found[0]["id"]])
            self._mail.remove(found[0])
            return payload
        if until and until <= now:
            self._record(full, entry, "failed", self._line(op, started=now, error=late), **too_late)
            raise WaitTimeout(late)
        self._suspend(full, None if entry else self._line(op, started=now, until=until), waiting_until_us=until, **wait)

    # -- children --

    def start_child(self, name: str, workflow: str, input: Any = None, **options: Any) -> str:
        """Starts a run that is cancelled with this one and whose end can be waited for; its id. Options as for trigger."""
        return self.start_children(name, [{"workflow": workflow, "input": input, **options}])[0]

    def start_children(self, name: str, runs: Sequence[Dict[str, Any]]) -> List[str]:
        """Starts many: all or none. Each is an object as for triggering one; their ids come in the same order."""
        children = _plain([_late(run) for run in runs])
        full, entry = self._call("children", name)
        if entry:
            ids = entry.output if isinstance(entry.output, list) else []
            if len(ids) != len(runs):
                self._mismatch(f'"{full}" starts {len(runs)} children where {len(ids)} are remembered')
            return ids
        now = self._now()
        ids = [_new_id(now + i) for i in range(len(runs))]
        self._record(full, entry, "succeeded", self._line("children", output=ids),
                     children=children, child_ids=ids)
        return ids

    def wait_child(self, name: str, run: str, timeout: Optional[float] = None) -> Any:
        """The child's result. ChildFailed if it did not succeed, WaitTimeout when the time has passed first."""
        end = self.wait_children(name, [run], timeout=timeout)[0]
        if not end.status:
            raise WaitTimeout("not all children ended in time")
        if end.status != "succeeded":
            raise ChildFailed(end)
        return end.result

    def wait_children(self, name: str, runs: Sequence[str], wait_for: str = "all",
                      timeout: Optional[float] = None) -> List[ChildEnd]:
        """Waits until "all" have ended, "any" has, or "all_or_failure"; the ends come in the order of `runs`. Those that
        have no status had not ended when the wait was over."""
        if wait_for not in ("all", "any", "all_or_failure") or len(set(runs)) != len(runs):
            raise PermanentError(f"\"{name}\": children are waited for once each, by all, any or all_or_failure")
        full, entry = self._call("children_wait", name)
        if entry and entry.status != "waiting":
            told = entry.output if isinstance(entry.output, list) else []
            if len(told) != len(runs):
                self._mismatch(f'"{full}" waits for {len(runs)} children where {len(told)} are remembered')
            return self._keep([ChildEnd(run, end) for run, end in zip(runs, told)])
        now = self._now()
        until = entry.until if entry else self._limit(timeout)
        ends, mine, others = self._look(runs)
        ended = sum(end.status is not None for end in ends)
        failed = any(end.status not in (None, "succeeded") for end in ends)
        over = ended == len(ends) or (wait_for == "any" and ended) or (wait_for == "all_or_failure" and failed)
        if over or (until and until <= now):
            error = {} if over else {"error": "not all children ended in time"}
            self._record(full, entry, "succeeded" if over else "failed",
                         self._line("children_wait", output=[end._write() for end in ends], **error), consumed=list(mine))
            self._mail = [mail for mail in self._mail if mail["id"] not in mine]
            return self._keep(ends)
        # Ends of other children count as mail, too: more than those must come.
        missing = 1 if wait_for == "any" else len(ends) - ended
        self._suspend(full, None if entry else self._line("children_wait", started=now, until=until),
                      waiting_kind="children", waiting_until_us=until, wait_children=len(mine) + len(others) + missing,
                      wake_on_child_failure=wait_for == "all_or_failure")
        raise AssertionError("unreachable")

    def _look(self, runs: Sequence[str]) -> tuple:
        """How the children stand, the ends in the mail that tell so, by its id, and the mail of other children."""
        mail = {one["id"]: one for one in self._mail if one["type"] == "child"}
        ids = [f"child:{run}" for run in runs if run not in self._ends]
        mine = {id: mail[id]["payload"] for id in ids if id in mail}
        ends = [self._ends.get(run) or ChildEnd(run, mine.get(f"child:{run}")) for run in runs]
        return ends, mine, [one for one in mail.values() if one["id"] not in mine]

    def _keep(self, ends: List[ChildEnd]) -> List[ChildEnd]:
        self._ends.update((end.run, end) for end in ends if end.status)
        return ends

    # -- telling --

    def progress(self, percent: int, text: Optional[str] = None) -> None:
        """How far the run is. Seen at once; not remembered, and not told again as long as the run has remembered something
        that lies ahead."""
        data = {"percent": percent, **({"text": text} if text is not None else {})}
        self._tell({"events": [{"kind": "domain", "name": "progress", "data": data}]}, once=True)

    def publish(self, state: Any) -> None:
        """Publishes the run's state (JSON), at once; not remembered."""
        self._tell({"events": [{"kind": "domain", "name": "published"}], "state": state})

    def _replays(self) -> bool:
        """Whether a turn of this run came by here before."""
        return self._next < len(self._entries) and self._entries[-1].own

    def _tell(self, body: Dict[str, Any], once: bool = False) -> None:
        self.check()
        body = _plain(body)
        if not (once and self._replays()):
            self._send("commit", {"turn": "go_on", **body})

    def emit(self, type: str, data: Any = None) -> None:
        """Puts an event into the outbox, once."""
        data = _plain(data)
        full, entry = self._call("emit", type)
        if not entry:
            self._record(full, entry, "succeeded", self._line("emit", started=self._now()),
                         outbox=[{"type": type, "payload": data}])

    # -- the same every time --

    def _fix(self, op: str, fresh: Any) -> Any:
        full, entry = self._call(op, op)
        if not entry:
            self._record(full, entry, "succeeded", self._line(op, output=fresh))
        return entry.output if entry else fresh

    def now(self) -> float:
        """Seconds since the epoch, on the store's clock."""
        return self._fix("now", self._now()) / MICRO

    def random(self) -> float:
        """At least 0 and less than 1."""
        return (int(self._fix("random", os.urandom(8).hex()), 16) >> 11) / (1 << 53)

    def uuid(self) -> str:
        return self._fix("uuid", _new_id(self._now()))

    def version(self, change: str, current: int) -> int:
        """Which version of a piece of code this run goes through: `current` for runs that come here for the first time, 0
        for those that passed here before the change was there. The first answer holds for the whole run."""
        self.check()
        if change not in self._versions:
            entry = self._entries[self._next] if self._next < len(self._entries) else None
            self._versions[change] = 0
            if not entry or (entry.op, entry.name) == ("version", self._full(change)):
                full, entry = self._call("version", change)
                if not entry:
                    self._record(full, entry, "succeeded", self._line("version", output=current))
                self._versions[change] = entry.output if entry else current
        return self._versions[change]


def _say(error: BaseException) -> str:
    kind, text = type(error).__name__, str(error)
    told = isinstance(error, (PermanentError, RetryAfter, TimeoutError))
    return _clean((text if told else f"{kind}: {text}") if text else kind)


def _clean(text: str) -> str:
    """Text that every store takes: messages quote names of files and other bytes."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


# ---- The worker ----

Handler = Callable[[Context, Any], Any]


class Worker:
    """Claims runs, calls handlers, says how they ended. `name` must be unique; `stop_limit` is how many seconds handlers
    have to finish after a stop, then their runs are given back."""

    def __init__(self, client: Client, name: Optional[str] = None, concurrency: int = 4, stop_limit: float = 30):
        self.client = client
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{os.urandom(3).hex()}"
        self._concurrency, self._stop_limit = concurrency, stop_limit
        self._handlers: Dict[str, Handler] = {}
        self._asked: "queue.SimpleQueue[None]" = queue.SimpleQueue()  # to stop
        self._stopping = threading.Event()
        self._refusal: Optional[HoldfastError] = None  # why the server has never let it in
        self._shut_out = False                     # it was let in, and is not any more
        self._quit = False                         # the stop's limit has passed
        self._held: Dict[int, Context] = {}        # by id(context)
        self._change = threading.Condition()       # guards _held
        self._slots = threading.Semaphore(concurrency)
        self._turns: "queue.SimpleQueue[Context]" = queue.SimpleQueue()

    def workflow(self, name: str) -> Callable[[Handler], Handler]:
        """Serves a workflow ("order.v1", created if new) or a family ("billing.*"). The longest match wins."""
        def add(handler: Handler) -> Handler:
            self._handlers[name] = handler
            return handler
        return add

    def run(self, signals: bool = True) -> None:
        """Works until stop(), or (in the main thread, unless `signals` is false) SIGTERM or SIGINT. HoldfastError when the
        server does not let it in: its token, say, is not good for this. One that was let in, and is not any more, tries
        on."""
        if not self._handlers:
            raise ValueError("the worker serves no workflow")
        if signals and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: self.stop())
            signal.signal(signal.SIGINT, lambda *_: self.stop())
        threads = [threading.Thread(target=self._hand, daemon=True) for _ in range(self._concurrency)]
        for thread in (*threads, threading.Thread(target=self._beat, daemon=True)):
            thread.start()
        claimer = threading.Thread(target=self._claim_all, daemon=True)
        claimer.start()
        self._asked.get()
        self._stopping.set()
        self._drain(claimer)
        if self._refusal:
            raise self._refusal

    def stop(self) -> None:
        """No new claims; handlers at work may finish. Safe in signal handlers and any thread."""
        self._asked.put(None)

    def _refused(self, error: HoldfastError) -> bool:
        """Whether joining again is of no use; then it stops."""
        if error.status not in (400, 401, 403, 404) or error.code == "disabled":
            return False
        self._refusal = HoldfastError(
            error.code, f"{self.client.url} does not let the worker in: {error} ({error.status} {error.code})", error.status)
        self.stop()
        return True

    def _complain(self, what: str, error: HoldfastError) -> None:
        """A disabled tenant shuts its workers out until it is enabled again: they go on then, and say so once until then."""
        if error.status not in (401, 403):
            LOG.warning("%s: %s", what, error)
        elif not self._shut_out:
            self._shut_out = True
            LOG.warning("%s: %s does not let the worker in any more, it tries on: %s (%d %s)", what, self.client.url, error,
                        error.status, error.code)

    def _let_in(self) -> None:
        if self._shut_out:
            self._shut_out = False
            LOG.warning("%s lets the worker in again", self.client.url)

    def _drain(self, claimer: threading.Thread) -> None:
        until = time.monotonic() + self._stop_limit
        self._slots.release()  # a claimer that waits for a hand looks up
        while claimer.is_alive() and not self._refusal and time.monotonic() < until:
            try:  # The claim that waits is answered by it; one that was on its way meets the next.
                self.client.ask("POST", "/work/leave", {"worker": self.name})
            except HoldfastError as error:
                self._complain("could not leave", error)
            claimer.join(0.2)
        with self._change:
            self._change.wait_for(lambda: not self._held, max(0.0, until - time.monotonic()))
            self._quit = True
            left = list(self._held.values())
        for ctx in left:
            ctx._lose(RunLost("the worker stops"))
            try:
                self._ask_held(ctx, "commit", {"turn": "give_back"})
            except HoldfastError as error:
                LOG.warning("run %s was not given back: %s", ctx.run_id, error)

    # -- claiming --

    def _claim_all(self) -> None:
        about = {"worker": self.name, "workflows": sorted(self._handlers), "threads": self._concurrency,
                 "host": socket.gethostname(), "program": "holdfast.py"}
        joined, pause = False, _Backoff()
        while not self._stopping.is_set():
            free = 1
            self._slots.acquire()
            while free < 100 and self._slots.acquire(blocking=False):
                free += 1
            begun = 0
            try:
                if not joined and not self._stopping.is_set():
                    self.client.ask("POST", "/work/join", about)
                    joined = True
                if not self._stopping.is_set():
                    asked = time.monotonic()
                    claims = self.client.ask("POST", "/work/claim", {**about, "limit": free, "wait": f"{CLAIM_WAIT}s"},
                                             wait=CLAIM_WAIT)["items"]
                    self._let_in()
                    for claim in claims:
                        self._begin(claim)
                        begun += 1
                    if not claims and time.monotonic() - asked < 1:  # it did not wait: it stops
                        self._stopping.wait(0.3)
                pause = _Backoff()
            except HoldfastError as error:
                if not joined and self._refused(error):
                    return
                self._complain("cannot claim", error)
                self._stopping.wait(pause.next())
            except Exception:  # pylint: disable=broad-except
                LOG.exception("cannot claim")
                self._stopping.wait(pause.next())
            for _ in range(free - begun):
                self._slots.release()

    def _begin(self, claim: Dict[str, Any]) -> None:
        ctx = Context(self, claim)
        with self._change:
            self._held[id(ctx)] = ctx
            self._change.notify_all()
        self._turns.put(ctx)

    # -- playing --

    def _hand(self) -> None:
        while True:
            ctx = self._turns.get()
            try:
                end = GIVE_BACK if self._stopping.is_set() else self._play(ctx)
                if end:
                    self._end(ctx, end)
            except Exception:  # pylint: disable=broad-except
                LOG.exception("run %s", ctx.run_id)
            finally:
                with self._change:
                    self._held.pop(id(ctx), None)
                    self._change.notify_all()
                self._slots.release()

    def _find(self, workflow: str) -> Optional[Handler]:
        best = max((name for name in self._handlers if name == workflow or
                    (name.endswith("*") and workflow.startswith(name[:-1]))), key=len, default=None)
        return self._handlers[best] if best else None

    def _play(self, ctx: Context) -> Optional[Dict[str, Any]]:
        """Calls the handler; what is to be said then, None: nothing."""
        handler = self._find(ctx.workflow)
        if not handler:
            return GIVE_BACK
        try:
            result = handler(ctx, ctx.run["input"])
            ctx._finish()
            return {"path": "commit", "turn": "succeed", "result": _plain(result)}
        except (Suspended, RunLost) as over:
            return getattr(ctx._over or over, "end", None)
        except Exception as error:  # pylint: disable=broad-except
            try:
                ctx.check()
            except (Suspended, RunLost) as over:  # caught by the handler, and something else raised
                return getattr(over, "end", None)
            except Exception as over:  # pylint: disable=broad-except
                error = over
            return self._failure(ctx, error)

    @staticmethod
    def _failure(ctx: Context, error: Exception) -> Dict[str, Any]:
        if not isinstance(error, RetryAfter):
            LOG.error("run %s (%s) failed in attempt %d", ctx.run_id, ctx.workflow, ctx.attempt, exc_info=error)
        about = {"code": error.code if isinstance(error, PermanentError) else "failed", "message": _say(error)[:4000]}
        trace = _clean("".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip())[-TRACE_LIMIT:]
        end: Dict[str, Any] = {"path": "fail", **about, "error": {"attempt": ctx.attempt, **about, "trace": trace}}
        if isinstance(error, PermanentError):
            end.update(permanent=True)
        elif isinstance(error, RetryAfter):
            end.update(retry_after=f"{max(1, int(error.seconds * 1000))}ms")
        return end

    def _ask_held(self, ctx: Context, path: str, body: Dict[str, Any]) -> Any:
        return self.client.ask("POST", f"/work/runs/{ctx.run_id}/{path}",
                               {"worker": self.name, "version": ctx.run["version"], **body})

    def _end(self, ctx: Context, end: Dict[str, Any]) -> None:
        """Repeated until there is an answer: if the first was lost, the second says stale, and that is as good."""
        pause = _Backoff()
        body = {name: value for name, value in end.items() if name != "path"}
        path = end["path"]
        while True:
            try:
                self._ask_held(ctx, path, body)
                return
            except HoldfastError as error:
                refusal = error
            except Exception as error:  # pylint: disable=broad-except
                refusal = HoldfastError("failed", _say(error))  # what is no JSON, say: nobody would take it
            if refusal.code in ("stale", "cancelled"):
                return
            self._complain(f"run {ctx.run_id}", refusal)
            if isinstance(refusal, Unavailable) or refusal.status in (401, 403, 507):
                if self._quit:
                    return
                time.sleep(pause.next())
            elif path == "commit":
                code = "wait_refused" if body["turn"] == "wait" else "result_refused"
                path, body = "fail", {"permanent": True, "code": code, "message": str(refusal)}
            elif body.pop("error", None):  # said again in short: the trace may have been too much
                body["message"] = body["message"][:200]
            else:
                return

    # -- heartbeat --

    def _beat(self) -> None:
        """For all runs that are held, three times in the shortest lease."""
        due = 0.0
        while True:
            with self._change:
                self._change.wait_for(lambda: self._held)
                held = list(self._held.values())
                pause = min(LONGEST_BEAT, min(ctx._claim["lease_us"] for ctx in held) / MICRO / 3)
                rest = max(due, min(ctx._claimed for ctx in held)) + pause - time.monotonic()
                if rest > 0:
                    self._change.wait(rest)
                    continue
            due = time.monotonic()
            parts = [held[i:i + BEAT_MOST] for i in range(0, len(held), BEAT_MOST)]
            for part in parts:
                self._beat_for(part, pause / len(parts))

    def _beat_for(self, held: List[Context], patience: float) -> None:
        """A connection that went silent shall not cost the leases: there is time for the next beat, on another one."""
        runs = [{"id": c.run_id, "version": c.run["version"], "lease_us": c._claim["lease_us"]} for c in held]
        try:
            answer = self.client.ask("POST", "/work/heartbeat", {"worker": self.name, "runs": runs}, timeout=patience)
            self._let_in()
            for ctx, item in zip(held, answer["items"]):
                if item["code"] == "cancelled":
                    ctx._lose(RunCancelled("the run was cancelled"))
                elif item["code"] != "ok":
                    ctx._lose(RunLost("somebody else holds the run"))
        except HoldfastError as error:
            self._complain("heartbeat", error)
        except Exception:  # pylint: disable=broad-except
            LOG.exception("heartbeat")

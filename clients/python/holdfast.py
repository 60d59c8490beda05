"""Holdfast for Python: trigger and follow runs, and work on them, over HTTP.

One file, Python 3.9 or later, nothing but the standard library. docs/python.md shows it at work, docs/remote-workers.md
is the protocol.

    client = Client("http://127.0.0.1:8420")  # where `holdfast serve` listens
    worker = Worker(client)

    @worker.workflow("order.v1")
    def order(ctx, input):
        receipt = ctx.step("charge", charge, input["sum"])
        ctx.sleep("cool down", 3600)
        return {"receipt": receipt, "approval": ctx.wait_signal("approved")}

    worker.run()

A handler is called again from the top after a crash, a retry or a wait; each call on `ctx` that was made before answers as
it did then. So what changes the world, or may differ the next time, is done in a step, and calls come in the same order.
A handler may be an `async def`; then what `ctx` returns is awaited.

Seconds may be numbers or timedeltas everywhere. SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import decimal
import difflib
import enum
import functools
import http.client
import inspect
import itertools
import json
import logging
import math
import os
import queue
import re
import select
import selectors
import signal
import socket
import ssl
import sys
import threading
import time
import traceback
import types
import urllib.parse
import uuid
from datetime import date, datetime, time as time_of_day, timedelta, timezone
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union

__all__ = ["Client", "Worker", "Context", "AsyncContext", "ChildEnd", "HoldfastError", "Unavailable", "PermanentError",
           "RetryAfter", "StepFailed", "ChildFailed", "WaitTimeout", "HistoryMismatch", "Suspended", "RunLost", "RunCancelled"]

LOG = logging.getLogger("holdfast")
FINISHED = ("succeeded", "failed", "cancelled")
CLAIM_WAIT = 20      # s that a claim waits for work
WATCH_WAIT = 20      # s that a watch waits for news of runs that are held
FRESH = 15           # s that an idle connection is trusted; the server closes it after 30
LONGEST_BEAT = 10    # s between heartbeats
GRACE = 5            # s that a handler has to leave once its run is lost; then its thread is written off
STANDSTILL = 1       # s after which an async handler that makes no call does not fit what the run remembers
LONG_ENOUGH = 0.1    # s that a run is held before the server is asked for news of it
TRACE_LIMIT = 8000   # characters of a traceback that are kept with the run
CODE_LIMIT = 200     # bytes of an error's code
MICRO = 1_000_000
MAIL_MOST = 100_000  # pieces that a claim brings
BEAT_MOST = 1000     # runs that one heartbeat may name
CHANGED = "the code has changed under a running run; use ctx.version, or give the new code a new name"
GIVE_BACK = {"path": "commit", "turn": "give_back"}
Seconds = Union[float, timedelta]


NOT_USERS = (__file__, threading.__file__)
ASYNCIO = os.path.dirname(asyncio.__file__)


# ---- Errors ----

class HoldfastError(Exception):
    """The server refused a request. `code` is stable and made for programs."""

    def __init__(self, code: str, message: str, status: int = 0):
        super().__init__(message)
        self.code, self.status = code, status


class Unavailable(HoldfastError):
    """There was no answer, or none that says what became of the request."""


class PermanentError(Exception):
    """Raise it to fail a run (or a step) for good: tried again, it would fail again. `code` and `details` (JSON) are kept."""

    def __init__(self, message: str, code: str = "permanent", details: Any = None):
        super().__init__(message)
        self.code, self.details = code, details

    @property
    def message(self) -> str:
        return str(self)


class HistoryMismatch(PermanentError):
    """The handler makes other calls than the run remembers."""

    def __init__(self, message: str, why: str = CHANGED):
        super().__init__(f"{message}: {why}", "history_mismatch")


class StepFailed(PermanentError):
    """A step has failed for good. `code`, `message` and `details` are those of the step's own error. They are remembered: a
    handler that is called again meets the same."""

    def __init__(self, step: str, message: str, code: str = "step_failed", details: Any = None):
        super().__init__(message, code, details)
        self.step = step


class ChildFailed(PermanentError):
    """A child that was waited for did not succeed; `end` tells how it ended. Remembered, as all that waits have told."""

    def __init__(self, end: "ChildEnd"):
        why = f": {end.message}" if end.message else ""
        super().__init__(f"the child run {end.run} ended as {end.status}{why}", "child_failed")
        self.end = end


class WaitTimeout(PermanentError, TimeoutError):
    """The time of a wait has passed. Remembered, as all that waits have told."""

    def __init__(self, message: Optional[str]):
        super().__init__(message or "the time has passed", "wait_timeout")


class RetryAfter(Exception):
    """Raise it to be tried again after so many seconds. In a step it costs none of the step's `retries`."""

    def __init__(self, seconds: Seconds, message: str = "tried again later", code: str = "retry_after", details: Any = None):
        super().__init__(message)
        self.seconds, self.code, self.details = _seconds(seconds), code, details


class Suspended(BaseException):
    """Unwinds a handler whose run waits. Let it pass."""


class RunLost(BaseException):
    """Unwinds a handler whose run is not held any more. Let it pass."""

    def __init__(self, message: str, end: Optional[Dict[str, Any]] = None):
        super().__init__(message)
        self.end = end  # the request that ends the turn; None: there is nothing left to say


class RunCancelled(RunLost):
    """The run was cancelled."""


class _StepTimeout(Exception):
    """A step ran into its limit."""


OWN_ERRORS = (PermanentError, RetryAfter, HoldfastError)  # these bring a code


def _code(error: BaseException) -> str:
    """For programs: an error's own code, or the name of its class."""
    if isinstance(error, _StepTimeout):
        return "timeout"
    own = error.code if isinstance(error, OWN_ERRORS) else None
    code = re.sub(r"[\x00-\x1f\x7f]", " ", _clean(str(own or type(error).__name__)))
    return code.encode()[:CODE_LIMIT].decode(errors="ignore")


def _say(error: BaseException) -> str:
    """For people."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # pylint: disable=broad-except
        text = "an error that cannot say what it is"
    told = isinstance(error, (*OWN_ERRORS, TimeoutError, _StepTimeout))
    return _clean((text if told else f"{kind}: {text}") if text else kind)


def _details(error: BaseException) -> Any:
    try:
        return _plain(getattr(error, "details", None) if isinstance(error, (PermanentError, RetryAfter)) else None, "details")
    except PermanentError as refusal:
        return str(refusal)


def _clean(text: str) -> str:
    """Text that every store takes: messages quote names of files and other bytes."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def _is_users(filename: str) -> bool:
    return filename not in NOT_USERS and not filename.startswith(ASYNCIO)


def _frames(trace: Optional[types.TracebackType]) -> List[types.TracebackType]:
    """Those of the user: without the ones that lie between a handler and its thread, or its calls and this file."""
    frames = []
    while trace:
        if _is_users(trace.tb_frame.f_code.co_filename):
            frames.append(trace)
        trace = trace.tb_next
    return frames


def _here() -> Optional[types.TracebackType]:
    """Where the user's code is, as an exception that was raised there would say it."""
    frame: Optional[types.FrameType] = sys._getframe()
    kept = None
    while frame:
        if _is_users(frame.f_code.co_filename):
            kept = types.TracebackType(kept, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return kept


def _trace_of(frames: List[types.TracebackType]) -> Optional[types.TracebackType]:
    kept = None
    for frame in reversed(frames):
        kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _strip(error: BaseException, seen: Optional[Set[int]] = None) -> BaseException:
    """The error, and those it comes from, without the frames of this file in their tracebacks."""
    seen = set() if seen is None else seen
    if id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _trace_of(_frames(error.__traceback__))
        for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
            if isinstance(other, BaseException):
                _strip(other, seen)
    return error


# ---- Values ----

def _seconds(value: Seconds) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise TypeError(f"seconds are a number or a timedelta, not {value!r}")
    return float(value)


def _duration(value: Union[Seconds, str]) -> str:
    """As the HTTP API takes it."""
    return value if isinstance(value, str) else f"{int(_seconds(value) * 1000)}ms"


def _json_of(value: Any) -> Any:
    """What stands in JSON for a value that has no form of its own there."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (date, time_of_day)):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return sorted(value, key=repr)
    raise TypeError


def _odd(value: Any, at: str = "$") -> Optional[str]:
    """Where in a value there is something that JSON cannot say, and what."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"{at} is text with half a character (a lone surrogate)"
    if value is None or isinstance(value, (str, int)):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{at} is {value}"
    if isinstance(value, dict):
        for key in value:
            if not (key is None or isinstance(key, (str, int, float))):
                return f"{at} has a key that is a {type(key).__name__}"
        parts = [(part, f"{at}.{key}" if re.fullmatch(r"\w+", str(key)) else f"{at}[{json.dumps(str(key))}]")
                 for key, part in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(part, f"{at}[{i}]") for i, part in enumerate(value)]
    else:
        try:
            return _odd(_json_of(value), at)
        except TypeError:
            return f"{at} is a {type(value).__name__}"
    return next(filter(None, (_odd(part, place) for part, place in parts)), None)


def _write(value: Any, what: str = "the request") -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_json_of).encode()
    except (TypeError, ValueError, RecursionError) as error:
        reason = str(error)
    try:
        reason = _odd(value) or reason
    except RecursionError:
        reason = "it contains itself, or is nested too deeply"
    raise PermanentError(f"{what} cannot be written as JSON: {reason}", "result_refused")


def _plain(value: Any, what: str) -> Any:
    """The value as it comes back from the store."""
    return json.loads(_write(value, what))


def _new_id(now: int) -> str:
    """A UUIDv7 of this time (us), as the server makes them: lists are ordered by id."""
    head = now // 1000 << 80 | 7 << 76 | now % 1000 * 4096 // 1000 << 64
    return str(uuid.UUID(int=head | 2 << 62 | int.from_bytes(os.urandom(8), "big") >> 2))


def _late(run: Dict[str, Any]) -> Dict[str, Any]:
    """A run to be triggered, whose `delay` in seconds is the API's `in`: a word that Python keeps for itself."""
    delay = run.get("delay")
    run = {name: _duration(value) if isinstance(value, timedelta) and name != "input" else value
           for name, value in run.items() if name != "delay"}
    return run if delay is None else {**run, "in": _duration(delay)}


def _quote(text: str) -> str:
    return urllib.parse.quote(text, safe="")


# ---- HTTP ----

def _has_news(sock: socket.socket) -> bool:
    """Whether there is something to read. Not by select() where there is better: it knows no files above 1023."""
    if not hasattr(select, "poll"):
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


class _Place:
    """One server's address."""

    def __init__(self, url: str):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an address of a server: {url!r}; it looks like http://127.0.0.1:8420")
        self.url, self.host, self.port = url, parts.hostname, parts.port
        self.prefix = parts.path.rstrip("/") + "/v1"
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls) if self.tls else \
            http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

    def unreachable(self, error: OSError) -> str:
        if isinstance(error, ConnectionRefusedError):
            return f"nothing listens at {self.url}: start a server there with `holdfast serve`, or name another address"
        return f"{self.url} cannot be reached: {error or type(error).__name__}"


class Client:
    """Speaks to a server, or to one of several that share a store: `url` may name more, as a list or separated by commas;
    when one cannot be reached, the next is asked. May be used by many threads. Arguments that are not named here (`key`,
    `tags`, …) are those of the HTTP API; times are RFC 3339, durations "90s". What there is no method for can be had with
    ask(). A run is named by its id, or as "workflow/key"."""

    def __init__(self, url: Union[str, Iterable[str]] = "http://127.0.0.1:8420", token: Optional[str] = None,
                 tenant: Optional[str] = None, timeout: Seconds = 30, actor: Optional[str] = None):
        urls = url.split(",") if isinstance(url, str) else url
        self._places = [_Place(one.strip()) for one in urls]
        if not self._places:
            raise ValueError("no address of a server; it looks like http://127.0.0.1:8420")
        self._at = 0  # the place that is asked
        self._timeout = _seconds(timeout)
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if tenant:
            self._headers["Holdfast-Tenant"] = tenant
        if actor:  # who acts, where there are no tokens
            self._headers["Holdfast-Actor"] = actor
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._idle: List[tuple] = []  # (connection, its place, when it was used), newest last

    @property
    def url(self) -> str:
        """The address of the server that is asked."""
        return self._places[self._at].url

    # -- requests --

    def _after_fork(self) -> None:
        """A process that was forked off has connections of its own: two must not speak over one."""
        if self._pid != os.getpid():
            self._lock, self._idle, self._pid = threading.Lock(), [], os.getpid()

    def _leave(self, place: _Place) -> None:
        """Where one connection went silent, the others may have, too; and there may be another server."""
        with self._lock:
            idle, self._idle = self._idle, []
            if self._places[self._at] is place:
                self._at = (self._at + 1) % len(self._places)
        for connection, _, _ in idle:
            connection.close()

    def _connect(self, timeout: float) -> Tuple[http.client.HTTPConnection, _Place]:
        """A new connection, to the first server that can be reached."""
        reasons = []
        for _ in self._places:
            place = self._places[self._at]
            try:
                return place.connect(timeout if len(self._places) == 1 else min(timeout, 5)), place
            except OSError as error:
                reasons.append(place.unreachable(error))
                self._leave(place)
        raise Unavailable("unavailable", "; ".join(dict.fromkeys(reasons)))

    def _take(self, timeout: float) -> Tuple[http.client.HTTPConnection, _Place]:
        """One that was used before, unless the server has closed it meanwhile: nothing may get lost for that."""
        self._after_fork()
        with self._lock:
            while self._idle:
                connection, place, used = self._idle.pop()
                if time.monotonic() - used < FRESH and not _has_news(connection.sock):
                    connection.sock.settimeout(timeout)
                    return connection, place
                connection.close()
        connection, place = self._connect(timeout)
        connection.sock.settimeout(timeout)
        return connection, place

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None,
            wait: float = 0, timeout: float = float("inf")) -> Any:
        """One request below /v1, sent once; the answer's JSON. `wait`: how much longer than usual it may take; `timeout`:
        its own limit in seconds, where the client's is too long."""
        sent = {**self._headers, **(headers or {})}
        raw = None
        if body is not None:
            raw = _write(body)
            sent["Content-Type"] = "application/json"
        connection, place = self._take(min(timeout, self._timeout + wait))
        try:
            self._put(connection, method, place.prefix + path, raw, sent)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._leave(place)
            raise Unavailable("unavailable", f"{method} {place.url}{path}: {error or type(error).__name__}") from error
        except BaseException:  # an exception that another thread sent here, say: the answer would be taken for the next one's
            connection.close()
            raise
        if connection.sock:
            with self._lock:
                self._idle.append((connection, place, time.monotonic()))
        if response.status in (502, 503, 504):
            self._leave(place)
        return self._read(response.status, text)

    @staticmethod
    def _put(connection: http.client.HTTPConnection, method: str, path: str, raw: Optional[bytes], sent: Dict[str, str]) -> None:
        """A server that refuses a body for its size does not read it to its end: then its answer counts."""
        try:
            connection.request(method, path, raw, sent)
        except (BrokenPipeError, ConnectionResetError):
            if not raw or not connection.sock:
                raise

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

    def trigger(self, workflow: str, input: Any = None, *, delay: Union[None, Seconds, str] = None, **options: Any) -> str:
        """Starts a run, not before `delay` seconds have passed, and returns its id. With a `key` it is safe to repeat."""
        return self.ask("POST", "/runs", _late({"workflow": workflow, "input": input, "delay": delay, **options}))["id"]

    def trigger_many(self, runs: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Each is accepted or refused by itself: an item of the answer has an id, or a code and a message."""
        return self.ask("POST", "/runs/batch", {"runs": [_late(run) for run in runs]})["items"]

    def _run(self, run: str) -> str:
        """The path of a run; one named by its workflow and key is looked for."""
        workflow, slash, key = run.partition("/")
        return "/runs/" + _quote(self.get_by_key(workflow, key)["id"] if slash else run)

    def get(self, run: str) -> Dict[str, Any]:
        workflow, slash, key = run.partition("/")
        return self.get_by_key(workflow, key) if slash else self.ask("GET", self._run(run))

    def get_by_key(self, workflow: str, key: str) -> Dict[str, Any]:
        return self.ask("GET", f"/workflows/{_quote(workflow)}/runs/{_quote(key)}")

    def steps(self, run: str) -> List[Dict[str, Any]]:
        """What the run remembers."""
        return [*self._pages(f"{self._run(run)}/steps", {})]

    def wait(self, run: str, timeout: Optional[Seconds] = None) -> Dict[str, Any]:
        """The run when it has ended. TimeoutError when that takes longer than `timeout` seconds (None, 0: no limit). A
        server that is away is waited for as well."""
        until = time.monotonic() + _seconds(timeout) if timeout else float("inf")
        pause, path = _Backoff(), None
        while True:
            patience = max(0.0, min(30.0, until - time.monotonic()))
            try:
                path = path or self._run(run)
                found = self.ask("GET", f"{path}?wait={int(patience * 1000)}ms", wait=patience)
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
        return self.ask("POST", f"{self._run(run)}/{action}", {"reason": reason} if reason else {})

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
        return self.ask("POST", f"{self._run(run)}/fork", {**({"step": step} if step else {}), **options})["id"]

    def signal(self, run: str, name: str, payload: Any = None, id: Optional[str] = None) -> bool:
        """Sends a signal; with an `id` it is taken once. False: it was there already."""
        body = {"name": name, "payload": payload, **({"id": id} if id else {})}
        return not self.ask("POST", f"{self._run(run)}/signals", body)["duplicate"]

    def events(self, run: str, after: int = 0) -> Iterator[Dict[str, Any]]:
        """The run's journal: what is there, then what comes, until the run has ended."""
        pause = _Backoff()
        over = False  # the run had ended before the stream was opened
        path = None
        while True:
            before = after
            connection = None
            try:
                path = path or self._run(run)
                connection, place = self._connect(3 * FRESH)  # a stream says every 15 s that it lives
                connection.sock.settimeout(3 * FRESH)
                connection.request("GET", f"{place.prefix}{path}/events", headers={
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
                over = self.ask("GET", path)["status"] in FINISHED
            except (OSError, http.client.HTTPException, Unavailable):
                time.sleep(pause.next())
            finally:
                if connection:
                    connection.close()

    # -- questions to people --

    def tasks(self, **filters: Any) -> Iterator[Dict[str, Any]]:
        """Open and claimed ones, newest first; by `role`, `assignee`, `run`, `name`, `status`, `overdue`, `by_due`."""
        return self._pages("/tasks", filters)

    def complete_task(self, task: str, outcome: str, result: Any = None) -> Dict[str, Any]:
        """Answers it: a word, and what else there is to say. The same answer once more changes nothing."""
        return self.ask("POST", f"/tasks/{_quote(task)}/complete", {"outcome": outcome, "result": result})


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
        self.met = False  # the handler has come by
        self.call: Optional["_Call"] = None  # the open call that has met it, in an async handler
        self.op: str = data.get("op") or "step"
        self.output, self.error = data.get("output"), data.get("error")
        self.code, self.details = data.get("code") or "step_failed", data.get("details")
        self.attempt, self.until = data.get("attempt") or 0, data.get("until") or 0
        self.deferred = data.get("deferred") or 0  # when the series of RetryAfter began; 0: it is in none
        self.open: List[str] = data.get("open") or []  # the calls that were open beside it when it was answered

    @property
    def answered(self) -> bool:
        """Whether it says what the call gives. Steps that wait are tried again; sleeps and pauses say it all."""
        return self.status != "waiting" or self.op in ("sleep", "pause")


class _Call:
    """One call on a context, from its beginning to its answer."""

    def __init__(self, op: str, name: str, full: str, alone: bool):
        self.op, self.name, self.full, self.alone = op, name, full, alone
        self.entry: Optional[_Entry] = None  # what is remembered of it
        self.branch: Optional["_Branch"] = None  # of ctx.all
        self.told = False   # its line is written
        self.begun = self.parked = False
        self.answer: Optional[Tuple[Any, Optional[BaseException]]] = None  # what it will give, in an async handler
        self.turn: Optional["asyncio.Future[None]"] = None

    def __str__(self) -> str:
        return f'"{self.full}" ({self.op})'


class _Attempt:
    """One try of a step. Its function may outlive it, in a thread that was written off."""

    def __init__(self, ctx: "Context", call: _Call):
        self.ctx, self.call, self.over = ctx, call, False
        self.number = (call.entry.attempt if call.entry else 0) + 1
        self.started = ctx._now()
        self.ended = 0.0  # monotonic: when its function came back, whoever heard of it how late

    def run(self, work: Callable[[], Any]) -> Tuple[Any, Optional[BaseException]]:
        token = _STEP.set(self)
        try:
            return work(), None
        except BaseException as error:  # pylint: disable=broad-except
            return None, error
        finally:
            self.ended = time.monotonic()
            _STEP.reset(token)


_STEP: "contextvars.ContextVar[Optional[_Attempt]]" = contextvars.ContextVar("holdfast_step", default=None)
_MISSING: Any = object()  # stands where no function was given, for None is what a function that was called gives
_OPTIONS = ("retries", "backoff", "max_backoff", "timeout", "retry_after_limit")


class _StepOptions:
    def __init__(self, retries: Optional[int], backoff: Seconds, max_backoff: Seconds, timeout: Optional[Seconds],
                 retry_after_limit: Optional[Seconds]):
        if retries is not None and (isinstance(retries, bool) or not isinstance(retries, int)):
            raise TypeError(f"retries are a whole number, not {retries!r}")
        self.retries, self.backoff, self.max_backoff = retries, _seconds(backoff), _seconds(max_backoff)
        self.timeout = _seconds(timeout) if timeout else None
        self.retry_after_limit = _seconds(retry_after_limit) if retry_after_limit else math.inf


class ChildEnd:
    """How a child ended: `status` is None while it has not, else succeeded, failed, cancelled or deleted."""

    def __init__(self, run: str, end: Optional[Dict[str, Any]] = None):
        end = end or {}
        self.run: str = run
        self.status: Optional[str] = end.get("status")
        self.result, self.error = end.get("result"), end.get("error")

    @property
    def message(self) -> Optional[str]:
        """Why it failed, in a line; None where nothing says."""
        said = self.error.get("message") if isinstance(self.error, dict) else self.error
        return None if said is None else str(said)

    def __repr__(self) -> str:
        told = {name: value for name, value in (("result", self.result), ("error", self.error)) if value is not None}
        return f"ChildEnd(run={self.run!r}, status={self.status!r}{''.join(f', {name}={told[name]!r}' for name in told)})"

    def _write(self) -> Optional[Dict[str, Any]]:
        if not self.status:
            return None
        return {"status": self.status, **({"result": self.result} if self.result is not None else {}),
                **({"error": self.error} if self.error is not None else {})}


class Context:
    """A run in a handler's hands. Its methods are for the handler's thread, but for check(), progress() and publish(). What
    shall happen at once is given to all()."""

    def __init__(self, worker: "Worker", claim: Dict[str, Any]):
        run = claim["run"]
        self.run_id: str = run["id"]
        self.workflow: str = run["workflow"]
        self.key: Optional[str] = run["key"]
        self.attempt: int = run["attempt"]
        self.run: Dict[str, Any] = run
        self._worker, self._claim = worker, claim
        self._claimed = time.monotonic()
        self._book = threading.Condition()          # guards what the threads of ctx.all share
        self._sending = threading.Lock()            # the journal's order is the order of the answers
        self._requests = (f"{os.urandom(8).hex()}-{number}" for number in itertools.count(1))  # ids
        self._over: Optional[BaseException] = None  # what every call raises from then on
        self._over_at: Optional[types.TracebackType] = None  # where a rule was broken
        self._lost_at = 0.0                         # when that was, if the run is not held any more
        self._left = False                          # the handler has ended
        self._runner: Optional[threading.Thread] = None
        self._threads: Dict[int, Optional["_Branch"]] = {}  # the handler's, and those of ctx.all
        self._calls: Dict[_Call, None] = {}         # those that are open
        self._steps: List[_Attempt] = []            # those that are at work
        self._parked: List[Tuple[str, Optional[Dict[str, Any]], int]] = []  # steps before their next attempt: name, line, time
        self._bare: Dict[Any, str] = {}             # decorators that were not applied to a function
        self._causes: Dict[str, BaseException] = {}  # why steps failed in this turn, for the traceback
        self._uses: Dict[str, int] = {}
        self._versions: Dict[str, int] = {}
        self._ends: Dict[str, ChildEnd] = {}
        self._mail: List[Dict[str, Any]] = list(claim["mail"])  # not taken yet
        self._entries: List[_Entry] = []            # in the order in which they were answered
        self._known: Dict[str, _Entry] = {}
        self._next = 0                              # before this one all have been met
        self._recall()

    def _recall(self) -> None:
        for line in self._claim["steps"]:
            entry = _Entry(line["name"], line["status"], line["data"] if isinstance(line["data"], dict) else {},
                           line.get("version", 0) != 1)
            self._known.pop(entry.name, None)  # the last line is the answer, and stands at its place
            self._known[entry.name] = entry
        if self._known and self._claim["retried_seq"] >= self._claim["steps"][-1]["seq"]:
            self._retry()
        self._entries = sorted(self._known.values(), key=lambda entry: not entry.answered)
        if self._claim.get("steps_cut"):
            self._lose(PermanentError("a run can remember 100,000 calls at most: give parts of the work to children"))

    def _retry(self) -> None:
        """An operator who has a run tried again wants the step on which it gave up tried again: the last one, or one after which
        only such came to an end as were open beside it."""
        after: Set[str] = set()
        for entry in reversed(self._known.values()):
            if entry.op == "step" and entry.status == "failed" and after.issubset(entry.open):
                entry.status, entry.attempt, entry.until, entry.deferred = "waiting", 0, 0, 0
            after.add(entry.name)

    # -- holding --

    def _now(self) -> int:
        """The store's clock."""
        return self._claim["seen_us"] + int((time.monotonic() - self._claimed) * MICRO)

    def check(self) -> None:
        """Raises when the run is lost, cancelled or past its deadline, and in a step past its limit. Cheap: call it in long
        loops."""
        attempt = _STEP.get()
        if attempt and attempt.ctx is self and attempt.over:
            raise RunLost(f'the attempt of the step "{attempt.call.full}" is over')
        self._check_held()

    def _mind_deadline(self) -> None:
        if not self._over and self._claim["deadline_us"] and self._now() >= self._claim["deadline_us"]:
            self._lose(RunLost("the deadline has passed", {
                "path": "fail", "permanent": True, "code": "deadline_exceeded",
                "message": "the run's deadline passed while it was worked on"}))

    def _check_held(self) -> None:
        self._mind_deadline()
        if self._over:
            raise self._over.with_traceback(None)

    def _lose(self, why: BaseException) -> None:
        with self._book:
            if not self._over:
                self._over = why
                if isinstance(why, RunLost):
                    self._lost_at = time.monotonic()
            self._book.notify_all()

    def _break(self, message: str, code: str = "bad_call") -> None:
        """A rule is broken: that fails the run, whoever catches the exception."""
        self._spoil(PermanentError(message, code))

    def _mismatch(self, message: str, why: str = CHANGED) -> None:
        self._spoil(HistoryMismatch(message, why))

    def _close(self) -> None:
        """The handler has ended: threads that it left behind change nothing any more."""
        self._over = self._over or RunLost("the handler has ended")

    def _spoil(self, error: PermanentError) -> None:
        if not self._over:
            self._over_at = _here()
        self._lose(error)
        self._check_held()

    def _send(self, path: str, body: Dict[str, Any]) -> Any:
        """Sent until there is an answer, or the run is lost: what was done is not to be done again because the server was
        away. Sent again it changes nothing. What is refused for its content is the caller's to handle."""
        body = {"request": next(self._requests), **body}
        pause = _Backoff()
        while True:
            try:
                return self._worker._ask_held(self, path, body)
            except HoldfastError as error:
                refusal = error
            if refusal.code == "stale":
                self._lose(RunLost("somebody else holds the run"))
            elif refusal.code == "cancelled":
                self._lose(RunCancelled("the run was cancelled"))
            elif refusal.status == 404 and refusal.code == "not_found":
                self._lose(RunLost("the run is not there any more"))
            elif not (isinstance(refusal, Unavailable) or refusal.status in (401, 403, 507)):
                raise refusal
            elif self._worker._quit:
                self._lose(RunLost(str(refusal), GIVE_BACK))
            else:
                self._worker._complain(f"run {self.run_id}", refusal)
                with self._book:
                    self._book.wait_for(lambda: self._over, pause.next())
            self._check_held()

    # -- the handler --

    def _call_handler(self, handler: Callable[..., Any]) -> Any:
        self._threads[threading.get_ident()] = None
        result = handler(self, self.run["input"])
        if inspect.isawaitable(result):
            _close(result)
            self._break("the handler returned something to be awaited: write it as `async def`, so that it is")
        self._finish()
        return result

    def _finish(self) -> None:
        """The handler has returned."""
        if not self._over and self._bare:
            name = next(iter(self._bare.values()))
            self._break(f'the step "{name}" was given no function: hand one over, ctx.step({name!r}, function), or use '
                        f"@ctx.step({name!r}) as a decorator")
        first = self._first()
        if not self._over and first:
            self._mismatch(f'the handler ended where "{first.name}" ({first.op}) is remembered')
        self._check_held()

    # -- meeting what is remembered --

    def _first(self) -> Optional[_Entry]:
        """The first that was not met."""
        while self._next < len(self._entries) and self._entries[self._next].met:
            self._next += 1
        return self._entries[self._next] if self._next < len(self._entries) else None

    def _check_name(self, op: str, name: str) -> None:
        if not isinstance(name, str):
            self._break(f"the name of a call is text, not {name!r} ({op})")
        head, _, number = name.rpartition("#")
        if not name or len(name.encode(errors="replace")) > 500 or (head and number.isdigit()):
            self._break(f"the name of a call has 1 to 500 bytes and no \"#\" and number at its end: {name!r}")

    def _check_place(self, what: str) -> None:
        """Calls come from the handler, not from its steps or from threads that nobody knows of."""
        attempt = _STEP.get()
        if attempt and attempt.ctx is self:
            self.check()
            self._break(f'{what} was called before the step "{attempt.call.full}" ended', "calls_overlap")
        self._check_held()
        if threading.get_ident() not in self._threads:
            self._break(f"{what} was called by a thread of its own: give what shall be done at once to ctx.all([...])",
                        "calls_overlap")

    def _begin(self, op: str, name: str, alone: bool) -> _Call:
        """A call is made: under the name that this use of it has, with what is remembered of it."""
        self._check_name(op, name)
        self._check_place(f'"{name}" ({op})')
        with self._book:
            used = self._uses.get(name, 0)
            call = _Call(op, name, name if used == 0 else f"{name}#{used + 1}", alone)
            self._admit(call)
            self._uses[name] = used + 1
            call.entry = self._known.get(call.full)
            if call.entry and call.entry.op != op:
                self._mismatch(f'{call} was called where "{call.entry.name}" ({call.entry.op}) is remembered')
            self._meet(call)
            self._calls[call] = None
        return call

    def _admit(self, call: _Call) -> None:
        """What stands beside it. `_book` is held."""
        call.branch = self._threads[threading.get_ident()]
        if call.branch:
            call.branch.admit(call)

    def _meet(self, call: _Call) -> None:
        """Sequential code meets what is remembered in its order; in ctx.all each branch meets what is its own."""
        first = self._first()
        if call.branch:
            if not call.entry:
                call.branch.await_others(call)
        elif first and first is not call.entry:
            self._mismatch(f'{call} was called where "{first.name}" ({first.op}) is remembered')
        if call.entry:
            call.entry.met = True
            self._book.notify_all()

    def _do(self, op: str, name: str, act: Callable[[_Call], Any], alone: bool = False) -> Any:
        """A call from beginning to end. `alone`: it waits, so nothing else may be open."""
        call = self._begin(op, name, alone)
        try:
            return act(call)
        finally:
            with self._book:
                self._calls.pop(call, None)

    def all(self, thunks: Iterable[Callable[[], Any]]) -> List[Any]:
        """Calls functions without arguments at once, each in a thread: ctx.all([lambda: ctx.step("a", f), …]). What they
        gave, in their order; if some failed, the first of these errors, once all have ended. They may make calls, but waits;
        a name that one uses, no other may."""
        thunks = list(thunks)
        for thunk in thunks:
            if not callable(thunk):
                _close(thunk)
                self._break(f"ctx.all was given a {type(thunk).__name__} instead of a function: hand functions over, "
                            'ctx.all([lambda: ctx.step("name", function), ...])')
        self._check_place("ctx.all")
        if self._threads[threading.get_ident()]:
            self._break("ctx.all was called inside of ctx.all: give all functions to one")
        return _Branches(self, thunks).run()

    # -- recording --

    def _line(self, op: str, *, started: int = 0, until: int = 0, error: Optional[str] = None, **more: Any) -> Dict[str, Any]:
        data: Dict[str, Any] = {"op": op}
        if started:
            data.update(started=started, finished=self._now())
        if until:
            data["until"] = until
        if error is not None:
            data["error"] = error
        return {**data, **more}

    def _record(self, call: _Call, status: str, data: Dict[str, Any], **extra: Any) -> None:
        """Remembers a call, durably, together with what else is written with it."""
        with self._sending:
            self._check_held()
            with self._book:
                others = [one.full for one in self._calls if one is not call and not one.told and one.op]
            if others:
                data = {**data, "open": others}
            if extra:
                event = {"kind": "step", "name": status, "step": call.full, "data": data}
                self._send("commit", {"turn": "go_on", "events": [event], **extra})
            else:
                self._send("step", {"name": call.full, "status": status, "data": data})
            self._tell_order(call)

    def _tell_order(self, call: _Call) -> None:
        """It is recorded, before those whose lines are not written yet."""
        call.told = True

    def _suspend(self, lines: Sequence[Tuple[str, Optional[Dict[str, Any]]]], **wait: Any) -> None:
        """The turn ends; the run waits. `lines`: calls that wait, and what is written of them now."""
        if len(self._mail) >= MAIL_MOST and len(self._mail) == len(self._claim["mail"]) and not wait.get("pause"):
            # It would be woken at once for what it has not seen, and see the same again.
            self._break(f"the mailbox holds more than a function sees at once, {MAIL_MOST} signals and ends of children, and "
                        "none of them is what it waits for", "permanent")
        end = {"path": "commit", "turn": "wait", "seen_position": self._claim["seen_position"],
               "seen_us": self._claim["seen_us"], **wait}
        events = [{"kind": "step", "name": "waiting", "step": name, "data": data} for name, data in lines if data]
        if events:
            end["current_step"] = events[-1]["step"]
            end["events"] = events
        over = Suspended("the run waits")
        over.end = end  # type: ignore[attr-defined]
        self._lose(over)
        self._check_held()

    # -- steps --

    @property
    def step_key(self) -> str:
        """Inside a step: the same for every attempt of this step of this run, and for no other. Hand it to what must not
        happen twice."""
        attempt = _STEP.get()
        if not attempt or attempt.ctx is not self:  # a thread that the step has started
            attempt = self._steps[0] if len(self._steps) == 1 else None
        if not attempt:
            raise RuntimeError("step_key is for the inside of a step")
        return f"{self.run_id}/{attempt.call.full}"

    def step(self, name: str, fn: Callable[..., Any] = _MISSING, *args: Any, retries: Optional[int] = None,
             backoff: Seconds = 1, max_backoff: Seconds = 300, timeout: Optional[Seconds] = None,
             retry_after_limit: Optional[Seconds] = 3600, **kwargs: Any) -> Any:
        """Calls `fn` once and remembers what it returned (JSON); StepFailed once it has failed 1 + `retries` times, by
        default as often as the run itself may be tried. What takes longer than `timeout` seconds counts as failed: it is left
        to itself, in a thread of its own, and what it gives later is dropped. RetryAfter costs no attempt for
        `retry_after_limit` seconds. Without `fn` it is a decorator, which calls the function at once: its name then stands
        for what it returned."""
        try:
            options = _StepOptions(retries, backoff, max_backoff, timeout, retry_after_limit)
        except TypeError as error:
            self._break(f'the step "{name}": {error}')
        if fn is _MISSING:
            return self._decorate(name, options, kwargs)
        self._check_function(name, fn, args, kwargs)
        work = functools.partial(fn, *args, **kwargs) if args or kwargs else fn
        return self._do_step(name, work, options)

    def _decorate(self, name: str, options: _StepOptions, kwargs: Dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
        def apply(fn: Callable[..., Any]) -> Any:
            self._bare.pop(apply, None)
            self._check_function(name, fn, (), kwargs)
            return self._do_step(name, functools.partial(fn, **kwargs) if kwargs else fn, options)

        self._check_place(f'"{name}" (step)')
        self._bare[apply] = name
        return apply

    def _check_function(self, name: str, fn: Any, args: Sequence[Any], kwargs: Dict[str, Any]) -> None:
        """What was called instead of handed over has happened, and happens at every replay: so this is no matter of luck."""
        if not callable(fn):
            _close(fn)
            self._break(f'the step "{name}" was given a {type(fn).__name__} instead of a function, perhaps what the function '
                        f"returned: hand the function over: ctx.step({name!r}, send_mail, x), not "
                        f"ctx.step({name!r}, send_mail(x))")
        named: Set[str] = set()
        swallows, problem = False, ""
        if kwargs:
            try:
                signature = inspect.signature(fn, follow_wrapped=False)
            except (TypeError, ValueError):  # some that are built in do not tell
                return
            named = {parameter.name for parameter in signature.parameters.values() if parameter.kind in
                     (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)}
            swallows = any(parameter.kind == parameter.VAR_KEYWORD for parameter in signature.parameters.values())
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                problem = str(error)
        for given in kwargs:
            near = difflib.get_close_matches(given, _OPTIONS, 1, 0.75) if given not in named else []
            if near:
                self._break(f'the step "{name}" has no option "{given}"; did you mean "{near[0]}"? What the function itself '
                            f"shall get under that name: functools.partial(function, {given}=…)")
            if given not in named and not swallows:
                self._break(f'the step "{name}" has no option "{given}", and its function takes no such argument; the options '
                            f"are {', '.join(_OPTIONS)}")
        if problem:
            self._break(f'the step "{name}" cannot call its function: {problem}')

    def _do_step(self, name: str, work: Callable[[], Any], options: _StepOptions) -> Any:
        if _is_async(work):
            self._break(f'the function of the step "{name}" is `async def`: so must the handler be')
        return self._do("step", name, lambda call: self._step(call, work, options))

    def _step(self, call: _Call, work: Callable[[], Any], options: _StepOptions) -> Any:
        if call.entry and call.entry.answered:
            return self._remembered(call.entry)
        attempt = self._attempt(call)
        with self._at_work_on(attempt):
            output, error = self._try(attempt, work, options.timeout)
        return self._settle(attempt, output, error, options)

    @staticmethod
    def _remembered(entry: _Entry) -> Any:
        if entry.status == "failed":
            raise StepFailed(entry.name, entry.error or entry.name, entry.code, entry.details)
        return entry.output

    def _attempt(self, call: _Call) -> _Attempt:
        """The next one of a step that is not over."""
        if call.entry and self._now() < call.entry.until:
            self._park(call, call.entry.until, None)
        return _Attempt(self, call)

    def _at_work_on(self, attempt: _Attempt) -> "_AtWork":
        return _AtWork(self._steps, attempt)

    def _try(self, attempt: _Attempt, work: Callable[[], Any], limit: Optional[float]) -> Tuple[Any, Optional[BaseException]]:
        """What it returned, or what it raised."""
        if limit is not None and limit < 0:
            return None, _StepTimeout("the step's time had passed before it began")
        if limit is None:
            output, error = attempt.run(work)
        else:
            until = time.monotonic() + limit
            task = _Task(self._worker, lambda: attempt.run(work), self._book)
            with self._book:
                while not (task.done or self._over or time.monotonic() >= until):
                    self._book.wait(min(until - time.monotonic(), 3600))
            if not task.done:
                attempt.over = True
                task.write_off(f'run {self.run_id}: the step "{attempt.call.full}"')
                self._check_held()
                return None, _StepTimeout(f"the step took longer than its limit of {limit:g}s")
            output, error = task.result
            if error is None and attempt.ended >= until:
                error = _StepTimeout(f"the step took longer than its limit of {limit:g}s")
        if error is None and inspect.isawaitable(output):
            _close(output)
            error = PermanentError(f'the function of the step "{attempt.call.full}" returned something to be awaited: write '
                                   "the handler as `async def`", "bad_call")
        return output, error

    def _settle(self, attempt: _Attempt, output: Any, error: Optional[BaseException], options: _StepOptions) -> Any:
        """An attempt has ended: that is recorded, and what follows."""
        self._check_held()
        call, step = attempt.call, attempt.call.full
        line = functools.partial(self._line, "step", started=attempt.started)
        if error is None:
            try:
                output = _plain(output, f'the step "{step}" has done its work, but what it returned')
                self._record(call, "succeeded", line(attempt=attempt.number, output=output))
                return output
            except PermanentError as refusal:
                error = refusal
            except HoldfastError as refusal:
                error = PermanentError(f'the step "{step}" has done its work, but what it returned was refused: {refusal}',
                                       "result_refused")
        _strip(error)
        about = {"error": _say(error), "code": _code(error)}
        details = _details(error)
        if details is not None:
            about["details"] = details
        pause = self._pause(attempt, error, options)
        if pause:
            LOG.warning('run %s, step "%s" failed in attempt %d', self.run_id, step, attempt.number, exc_info=error)
            until, counted = pause
            self._park(call, until, line(until=until, **about, **counted))
        self._causes[step] = error
        self._record(call, "failed", line(attempt=attempt.number, **about))
        raise StepFailed(step, about["error"], about["code"], details)

    def _pause(self, attempt: _Attempt, error: BaseException, options: _StepOptions) -> Optional[tuple]:
        """When it is tried again, and what the line says of attempts; None: it is not."""
        now, entry = self._now(), attempt.call.entry
        if isinstance(error, RetryAfter):
            until = now + int(max(0.0, error.seconds) * MICRO)
            since = (entry.deferred if entry else 0) or now
            if (until - since) / MICRO <= options.retry_after_limit:
                counted = {"attempt": attempt.number - 1} if attempt.number > 1 else {}
                return until, {**counted, "deferred": since}
        most = self.run["max_attempts"] if options.retries is None else options.retries + 1
        if isinstance(error, PermanentError) or attempt.number >= most:
            return None
        pause = error.seconds if isinstance(error, RetryAfter) else \
            min(options.max_backoff, options.backoff * 2 ** min(attempt.number - 1, 60)) * 1.25
        return now + int(max(0.0, pause) * MICRO), {"attempt": attempt.number}

    def _park(self, call: _Call, until: int, line: Optional[Dict[str, Any]]) -> None:
        """A step waits for its next attempt, and the run with it as soon as no other step is at work."""
        with self._book:
            self._parked.append((call.full, line, until))
            if call.branch:
                call.branch.parked = True
        if call.branch:
            raise Suspended("the step waits")
        self._suspend_parked()

    def _suspend_parked(self) -> None:
        self._suspend([(name, line) for name, line, _ in self._parked], waiting_kind="step",
                      waiting_until_us=min(until for _, _, until in self._parked))

    # -- waiting --

    def _limit(self, timeout: Optional[Seconds]) -> int:
        """When it has passed; 0: never."""
        seconds = _seconds(timeout) if timeout else 0.0
        return self._now() + int(seconds * MICRO) if seconds and math.isfinite(seconds) else 0

    def sleep(self, name: str, seconds: Seconds) -> None:
        """The run waits, at no cost, for so long."""
        length = int(_seconds(seconds) * MICRO)
        return self._sleep_until(name, lambda now: now + length)

    def sleep_until(self, name: str, at: Union[float, datetime]) -> None:
        """`at`: seconds since the epoch, on the store's clock, or a datetime."""
        moment = int((at.timestamp() if isinstance(at, datetime) else at) * MICRO)
        return self._sleep_until(name, lambda _now: moment)

    def _sleep_until(self, name: str, when: Callable[[int], int]) -> Any:
        def act(call: _Call) -> None:
            now = self._now()
            until = call.entry.until if call.entry else when(now)
            if call.entry and until <= now:
                return
            data = self._line("sleep", started=now, until=until)
            if until <= now:
                self._record(call, "succeeded", data)
            else:
                self._suspend([(call.full, None if call.entry else data)], waiting_kind="sleep", waiting_until_us=until)

        return self._do("sleep", name, act, alone=True)

    def pause(self, name: str, timeout: Optional[Seconds] = None) -> None:
        """Paused until a person resumes the run, or the time has passed."""
        def act(call: _Call) -> None:
            if not call.entry:
                until = self._limit(timeout)
                line = self._line("pause", started=self._now(), until=until)
                self._suspend([(call.full, line)], pause=True, waiting_until_us=until)

        return self._do("pause", name, act, alone=True)

    def wait_signal(self, name: str, timeout: Optional[Seconds] = None) -> Any:
        """The payload of the next signal of this name, also of one that came before. WaitTimeout after so many seconds."""
        def act(call: _Call) -> Any:
            found = [mail for mail in self._mail if mail["type"] == "external" and mail["name"] == name]
            return self._receive(call, found, timeout, "no signal came in time", {"waiting_kind": "signal"})

        return self._do("wait", name, act, alone=True)

    def ask(self, name: str, payload: Any = None, *, title: Optional[str] = None, assignee: Optional[str] = None,
            roles: Sequence[str] = (), form: Any = None, due_in: Optional[Seconds] = None,
            timeout: Optional[Seconds] = None) -> Dict[str, Any]:
        """Asks people, once, and waits for the answer: {"task", "outcome", "result", "by"}. The task is called `title`, or
        as this call. WaitTimeout after `timeout` seconds; the task is withdrawn then."""
        due_in = None if due_in is None else _seconds(due_in)
        asked = {"name": title or name, "payload": payload, "assignee": assignee, "roles": list(roles), "form": form}
        asked = _plain({member: value for member, value in asked.items() if value is not None}, f'what "{name}" asks')

        def act(call: _Call) -> Any:
            found = [mail for mail in self._mail if mail["type"] == "task" and mail["token"] == call.full]
            task = {**asked, "token": call.full}
            if due_in is not None:
                task["due_at"] = datetime.fromtimestamp(self._now() / MICRO + due_in, timezone.utc).isoformat()
            wait = {"waiting_kind": "task", "waiting_token": call.full, **({} if call.entry else {"tasks": [task]})}
            return self._receive(call, found, timeout, "no answer came in time", wait, withdrawn_tasks=[call.full])

        return self._do("ask", name, act, alone=True)

    def _receive(self, call: _Call, found: List[Dict[str, Any]], timeout: Optional[Seconds], late: str, wait: Dict[str, Any],
                 **too_late: Any) -> Any:
        """What the first of the mail says that was found; else the turn ends with `wait`. `too_late` is committed with the
        time-out."""
        entry = call.entry
        if entry and entry.status == "succeeded":
            return entry.output
        if entry and entry.status == "failed":
            raise WaitTimeout(entry.error)
        now = self._now()
        until = entry.until if entry else self._limit(timeout)
        if found:
            payload = found[0]["payload"]
            self._record(call, "succeeded", self._line(call.op, started=now, output=payload), consumed=[found[0]["id"]])
            self._mail.remove(found[0])
            return payload
        if until and until <= now:
            self._record(call, "failed", self._line(call.op, started=now, error=late), **too_late)
            raise WaitTimeout(late)
        line = None if entry else self._line(call.op, started=now, until=until)
        return self._suspend([(call.full, line)], waiting_until_us=until, **wait)

    # -- children --

    def start_child(self, name: str, workflow: str, input: Any = None, **options: Any) -> str:
        """Starts a run that is cancelled with this one and whose end can be waited for; its id. Options as for trigger."""
        return self._start(name, [{"workflow": workflow, "input": input, **options}], lambda ids: ids[0])

    def start_children(self, name: str, runs: Sequence[Dict[str, Any]]) -> List[str]:
        """Starts many: all or none. Each is an object as for triggering one; their ids come in the same order."""
        return self._start(name, list(runs), lambda ids: ids)

    def _start(self, name: str, runs: List[Dict[str, Any]], give: Callable[[List[str]], Any]) -> Any:
        children = _plain([_late(run) for run in runs], f'what the children of "{name}" are given')

        def act(call: _Call) -> Any:
            if call.entry:
                ids = call.entry.output if isinstance(call.entry.output, list) else []
                if len(ids) != len(runs):
                    self._mismatch(f'"{call.full}" starts {len(runs)} children where {len(ids)} are remembered')
                return give(ids)
            now = self._now()
            ids = [_new_id(now + i) for i in range(len(runs))]
            self._record(call, "succeeded", self._line("children", output=ids), children=children, child_ids=ids)
            return give(ids)

        return self._do("children", name, act)

    def wait_child(self, name: str, run: str, timeout: Optional[Seconds] = None) -> Any:
        """The child's result. ChildFailed if it did not succeed, WaitTimeout when the time has passed first."""
        def give(ends: List[ChildEnd]) -> Any:
            if not ends[0].status:
                raise WaitTimeout("not all children ended in time")
            if ends[0].status != "succeeded":
                raise ChildFailed(ends[0])
            return ends[0].result

        return self._wait_children(name, [run], "all", timeout, give)

    def wait_children(self, name: str, runs: Sequence[str], wait_for: str = "all",
                      timeout: Optional[Seconds] = None) -> List[ChildEnd]:
        """Waits until "all" have ended, "any" has, or "all_or_failure"; the ends come in the order of `runs`. Those that
        have no status had not ended when the wait was over."""
        runs = list(runs)
        if wait_for not in ("all", "any", "all_or_failure") or len(set(runs)) != len(runs):
            self._break(f"\"{name}\": children are waited for once each, by all, any or all_or_failure")
        return self._wait_children(name, runs, wait_for, timeout, lambda ends: ends)

    def _wait_children(self, name: str, runs: List[str], wait_for: str, timeout: Optional[Seconds],
                       give: Callable[[List[ChildEnd]], Any]) -> Any:
        def act(call: _Call) -> Any:
            entry = call.entry
            if entry and entry.status != "waiting":
                told = entry.output if isinstance(entry.output, list) else []
                if len(told) != len(runs):
                    self._mismatch(f'"{call.full}" waits for {len(runs)} children where {len(told)} are remembered')
                return give(self._keep([ChildEnd(run, end) for run, end in zip(runs, told)]))
            return give(self._await_ends(call, runs, wait_for, timeout))

        return self._do("children_wait", name, act, alone=True)

    def _await_ends(self, call: _Call, runs: List[str], wait_for: str, timeout: Optional[Seconds]) -> List[ChildEnd]:
        if not runs:
            self._break(f'"{call.full}" waits for no children: leave the call out where there are none')
        now = self._now()
        until = call.entry.until if call.entry else self._limit(timeout)
        ends, mine, others = self._look(runs)
        ended = sum(end.status is not None for end in ends)
        failed = any(end.status not in (None, "succeeded") for end in ends)
        over = ended == len(ends) or (wait_for == "any" and ended) or (wait_for == "all_or_failure" and failed)
        if over or (until and until <= now):
            error = {} if over else {"error": "not all children ended in time"}
            self._record(call, "succeeded" if over else "failed",
                         self._line("children_wait", output=[end._write() for end in ends], **error), consumed=list(mine))
            self._mail = [mail for mail in self._mail if mail["id"] not in mine]
            return self._keep(ends)
        # Ends of other children count as mail, too: more than those must come.
        missing = 1 if wait_for == "any" else len(ends) - ended
        line = None if call.entry else self._line("children_wait", started=now, until=until)
        self._suspend([(call.full, line)], waiting_kind="children", waiting_until_us=until,
                      wait_children=len(mine) + len(others) + missing, wake_on_child_failure=wait_for == "all_or_failure")
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
        return self._tell("progress", {"events": [{"kind": "domain", "name": "progress", "data": data}]})

    def publish(self, state: Any) -> None:
        """Publishes the run's state (JSON), at once; as progress, it is not told again."""
        return self._tell("publish", {"events": [{"kind": "domain", "name": "published"}], "state": state})

    def _replays(self) -> bool:
        """Whether a turn of this run came by here before."""
        with self._book:
            return self._first() is not None and self._entries[-1].own

    def _tell(self, what: str, body: Dict[str, Any]) -> Any:
        self.check()
        body = _plain(body, f"what ctx.{what} tells")
        if not self._replays():
            self._tell_now(body)

    def _tell_now(self, body: Dict[str, Any]) -> None:
        with self._sending:
            self._send("commit", {"turn": "go_on", **body})

    def emit(self, type: str, data: Any = None) -> None:
        """Puts an event into the outbox, once."""
        data = _plain(data, f'the event "{type}"')

        def act(call: _Call) -> None:
            if not call.entry:
                self._record(call, "succeeded", self._line("emit", started=self._now()),
                             outbox=[{"type": type, "payload": data}])

        return self._do("emit", type, act)

    # -- the same every time --

    def _fix(self, op: str, fresh: Callable[[], Any], give: Callable[[Any], Any]) -> Any:
        def act(call: _Call) -> Any:
            if call.entry:
                return give(call.entry.output)
            value = fresh()
            self._record(call, "succeeded", self._line(op, output=value))
            return give(value)

        return self._do(op, op, act)

    def now(self) -> float:
        """Seconds since the epoch, on the store's clock."""
        return self._fix("now", self._now, lambda us: us / MICRO)

    def random(self) -> float:
        """At least 0 and less than 1."""
        return self._fix("random", lambda: os.urandom(8).hex(), lambda digits: (int(digits, 16) >> 11) / (1 << 53))

    def uuid(self) -> str:
        return self._fix("uuid", lambda: _new_id(self._now()), lambda id: id)

    def _check_version(self, change: str, current: Any) -> None:
        self._check_place(f'"{change}" (version)')
        if isinstance(current, bool) or not isinstance(current, int) or current < 1:
            self._break(f'version "{change}": the current version is a whole number, at least 1')

    def version(self, change: str, current: int) -> int:
        """Which version of a piece of code this run goes through: `current` for runs that come here for the first time, 0
        for those that passed here before the change was there. The first answer holds for the whole run."""
        self._check_version(change, current)
        if not self._takes_version(change):
            return self._versions[change]

        def act(call: _Call) -> int:
            if not call.entry:
                self._record(call, "succeeded", self._line("version", output=current))
            elif (call.entry.output or 0) > current:
                self._mismatch(f'version {call.entry.output} of "{call.full}" is remembered, and this code knows versions up '
                               f"to {current}", "it is older than the run")
            self._versions[change] = call.entry.output if call.entry else current
            return self._versions[change]

        return self._do("version", change, act)

    def _takes_version(self, change: str) -> bool:
        """Whether it is a call that is, or will be, remembered. Else its answer is in `_versions`."""
        with self._book:
            if change in self._versions:
                return False
            full = change if change not in self._uses else f"{change}#{self._uses[change] + 1}"
            entry, first = self._known.get(full), self._first()
            if not first or (entry and entry.op == "version" and (entry is first or self._meets_by_name())):
                return True
            self._versions[change] = 0
            return False

    def _meets_by_name(self) -> bool:
        return self._threads[threading.get_ident()] is not None


def _is_async(work: Any) -> bool:
    while isinstance(work, functools.partial):
        work = work.func
    return inspect.iscoroutinefunction(work) or inspect.iscoroutinefunction(getattr(work, "__call__", None))


def _close(value: Any) -> None:
    """A coroutine that nobody will await."""
    if inspect.iscoroutine(value):
        value.close()


class _AtWork:
    """While a step's function is called."""

    def __init__(self, steps: List[_Attempt], attempt: _Attempt):
        self._steps, self._attempt = steps, attempt

    def __enter__(self) -> None:
        self._steps.append(self._attempt)

    def __exit__(self, *_: Any) -> None:
        self._steps.remove(self._attempt)


class _Task:
    """A function in a thread of its own, which can be written off."""

    def __init__(self, worker: "Worker", work: Callable[[], Any], news: threading.Condition):
        self._worker, self._work, self._news = worker, work, news
        self.done = self._written_off = False
        self.result: Any = None
        self._thread = worker._start_thread(self._run)

    def _run(self) -> None:
        result = self._work()
        with self._news:
            self.result, self.done = result, True
            back = self._written_off
            self._news.notify_all()
        if back:
            self._worker._count_stuck(-1)

    def write_off(self, what: str) -> None:
        with self._news:
            if self.done:
                return
            self._written_off = True
        self._worker._count_stuck(1)
        LOG.warning("%s is left to itself; it is at\n%s", what, _stack(self._thread))


def _stack(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    frames = traceback.extract_stack(frame) if frame else []
    users = [one for one in frames if _is_users(one.filename)]
    return "".join(traceback.format_list((users or frames)[-5:])).rstrip() or "(unknown)"


# ---- Steps at once ----

class _Branch:
    """One function of ctx.all."""

    def __init__(self, branches: "_Branches", number: int, thunk: Callable[[], Any]):
        self.branches, self.number, self.thunk = branches, number, thunk
        self.parked = False  # a step of it waits for its next attempt
        self.result: Any = None
        self.error: Optional[BaseException] = None

    def run(self) -> None:
        ctx = self.branches.ctx
        ctx._threads[threading.get_ident()] = self
        try:
            self.result = self.thunk()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error
        finally:
            ctx._threads.pop(threading.get_ident(), None)
            with ctx._book:
                self.branches.live -= 1
                ctx._book.notify_all()

    def admit(self, call: _Call) -> None:
        ctx = self.branches.ctx
        if self.parked:
            raise Suspended("a step before waits")
        if call.alone:
            ctx._break(f"{call} was called inside of ctx.all, where nothing waits: call it before or after", "calls_overlap")
        owner = self.branches.owners.setdefault(call.name, self)
        if owner is not self:
            ctx._break(f'two functions of one ctx.all use the name "{call.name}" ({call.op}): give each a name of its own, so '
                       "that a replay can tell them apart", "calls_overlap")

    def await_others(self, call: _Call) -> None:
        """A call that is not remembered begins once all that is remembered was met, or if it was open beside it then."""
        ctx, waiting = self.branches.ctx, self.branches.waiting
        waiting.append(call)
        try:
            while not ctx._over and not self._may_begin(call):
                if len(waiting) == self.branches.live and not any(self._may_begin(one) for one in waiting):
                    first = ctx._first()
                    ctx._mismatch(f'{call} was called where "{first.name}" ({first.op}) is remembered')
                ctx._book.wait()
        finally:
            waiting.remove(call)
        ctx._check_held()

    def _may_begin(self, call: _Call) -> bool:
        first = self.branches.ctx._first()
        return not first or not first.answered or call.full in first.open


class _Branches:
    """What ctx.all does at once."""

    def __init__(self, ctx: Context, thunks: Sequence[Callable[[], Any]]):
        self.ctx = ctx
        self.owners: Dict[str, _Branch] = {}  # of the names
        self.waiting: List[_Call] = []        # for what is remembered to be met by the others
        self.live = len(thunks)               # branches that have not ended
        self.branches = [_Branch(self, number, thunk) for number, thunk in enumerate(thunks)]

    def run(self) -> List[Any]:
        ctx = self.ctx
        tasks = [_Task(ctx._worker, branch.run, ctx._book) for branch in self.branches]
        with ctx._book:
            ctx._book.wait_for(lambda: not self.live or isinstance(ctx._over, RunLost))
            ctx._book.wait_for(lambda: not self.live, GRACE)  # they may hear of it by themselves
            left = [task for task in tasks if not task.done] if self.live else []
        for task in left:
            task.write_off(f"run {ctx.run_id}: a function of ctx.all")
        ctx._check_held()
        if ctx._parked:
            ctx._suspend_parked()
        for branch in self.branches:
            if branch.error:
                raise branch.error
        return [branch.result for branch in self.branches]


# ---- Handlers that are `async def` ----

class _Idle(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """Tells when an event loop has nothing left to do, before it waits."""

    def __init__(self, idle: Callable[[], bool]):
        super().__init__()
        self._idle = idle

    def select(self, timeout: Optional[float] = None) -> Any:
        if timeout is None or timeout > 0:
            news = super().select(0)
            if news:
                return news
            if self._idle():
                timeout = 0
        return super().select(timeout)


class _Done:
    """Awaited, it is over at once."""

    def __await__(self) -> Iterator[None]:
        return iter(())


class AsyncContext(Context):
    """The context of a handler that is an `async def`, on an event loop of its own: the methods are those of Context, and what
    they return is awaited (but for check(), step_key and the plain members). Steps and other calls that do not wait may be
    open at the same time, by asyncio.gather, say. Answers are given one by one, in the order in which they were recorded, each
    once the handler stands still: so a replay goes the same way."""

    def __init__(self, worker: "Worker", claim: Dict[str, Any]):
        self._loop: Any = None
        self._queue: Deque[_Call] = collections.deque()  # calls that have ended, in the order of their lines
        self._made: Dict[object, Tuple[str, Any]] = {}   # coroutines that nobody has awaited yet
        self._telling = 0       # requests of progress() and publish() under way
        self._moves = 0         # grows while the handler goes on
        self._standing = -1     # where it stood when it was looked at last
        self._unwound = self._ended = False
        self._rest: Any = None  # what is awaited until no step is at work any more
        super().__init__(worker, claim)

    # -- the loop --

    def _call_handler(self, handler: Callable[..., Any]) -> Any:
        self._threads[threading.get_ident()] = None
        self._loop = asyncio.SelectorEventLoop(_Idle(self._idle))
        self._loop.set_exception_handler(self._complain)
        asyncio.set_event_loop(self._loop)
        try:
            result = self._loop.run_until_complete(self._loop.create_task(handler(self, self.run["input"])))
            self._await_steps()
            forgotten = [*(str(call) for call in self._calls), *(what for what, _ in self._made.values())]
            if forgotten and not self._over:
                self._break(f"the handler has ended, and nobody awaited {', '.join(forgotten)}: is an `await` missing?",
                            "not_awaited")
            self._finish()
            return result
        finally:
            self._tear_down()

    def _await_steps(self) -> None:
        """What is at work is not left alone: its record would be missing."""
        self._ended = True
        self._rest = self._loop.create_future()
        self._loop.run_until_complete(self._rest)

    def _tear_down(self) -> None:
        try:
            if not self._ended:
                self._await_steps()
            for _, coroutine in self._made.values():
                coroutine.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException:  # pylint: disable=broad-except
            LOG.exception("run %s: what the handler left behind", self.run_id)
        asyncio.set_event_loop(None)
        self._loop.close()

    def _complain(self, _loop: Any, context: Dict[str, Any]) -> None:
        error = context.get("exception")
        if not (self._over or isinstance(error, (Suspended, RunLost))):
            LOG.warning("run %s: %s", self.run_id, context.get("message"), exc_info=error)

    def _soon(self, do: Callable[..., None], *args: Any) -> None:
        """From any thread."""
        try:
            if self._loop:
                self._loop.call_soon_threadsafe(do, *args)
        except RuntimeError:  # it is closed
            pass

    def _lose(self, why: BaseException) -> None:
        super()._lose(why)
        self._soon(lambda: None)  # the loop looks up

    def _unwind(self) -> None:
        """The handler is left by asyncio.CancelledError, again if it does not go."""
        self._unwound = True
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.call_later(1, self._unwind)

    # -- whose turn it is --

    def _idle(self) -> bool:
        """The handler stands still: the next of the open calls goes on. Whether there is something to do then."""
        if self._over and not self._unwound and not self._ended:
            self._unwind()
            return True
        if self._ended:
            if not self._rest or self._rest.done() or (self._at_work() and not self._over):
                return False
            self._rest.set_result(None)
            return True
        if self._over or self._telling:
            return False
        call = self._next_call()
        if call:
            self._moves += 1
            call.turn.set_result(None)
            return True
        return self._stand_still()

    def _next_call(self) -> Optional[_Call]:
        first = self._first()
        waiting = [call for call in self._calls if not (call.begun or call.turn.done())]
        if first and first.answered:
            fresh = first.call or next((call for call in waiting if call.full in first.open), None)
        else:
            fresh = next(iter(waiting), None)
        if fresh:
            fresh.begun = True
            if fresh.entry:
                fresh.entry.met = True
            return fresh
        if first and first.answered:
            return None
        while self._queue and self._queue[0] not in self._calls:  # it was cancelled
            self._queue.popleft()
        return self._queue.popleft() if self._queue and self._queue[0].answer else None

    def _at_work(self) -> bool:
        return any(call.begun and not (call.parked or call.answer) for call in self._calls)

    def _stand_still(self) -> bool:
        if self._at_work():
            return False
        first = self._first()
        if first and first.answered:
            if len(asyncio.all_tasks(self._loop)) == 1 and self._calls:
                return self._does_not_fit(self._moves)
            if self._standing != self._moves:
                self._standing = self._moves
                self._loop.call_later(STANDSTILL, self._does_not_fit, self._moves)
        elif self._parked:
            try:
                self._suspend_parked()
            except BaseException:  # pylint: disable=broad-except
                return True
        return False

    def _does_not_fit(self, moves: int) -> bool:
        """It waits for answers that are not its turn, and the call whose turn it is does not come."""
        call = next(iter(self._calls), None)
        first = self._first()
        if moves != self._moves or self._over or self._ended or not call or not first:
            return False
        try:
            self._mismatch(f'{call} was called where "{first.name}" ({first.op}) is remembered')
        except PermanentError:
            pass
        return True

    def _admit(self, call: _Call) -> None:
        if self._ended:
            raise asyncio.CancelledError()
        other = next((one for one in self._calls if one.alone or call.alone), None)
        if other:
            self._break(f"{call} was called while {other} is open, and one that waits stands alone: is an `await` missing?",
                        "calls_overlap")

    def _meet(self, call: _Call) -> None:
        self._moves += 1
        call.turn = self._loop.create_future()
        if call.entry:
            call.entry.call = call

    def _meets_by_name(self) -> bool:
        return True

    # -- calls --

    def _promise(self, what: str, begin: Callable[[], Any]) -> Any:
        """A coroutine. One that is never awaited is noticed."""
        key = object()

        async def run() -> Any:
            self._made.pop(key, None)
            return await begin()

        coroutine = run()
        self._made[key] = (what, coroutine)
        return coroutine

    def _do(self, op: str, name: str, act: Callable[[_Call], Any], alone: bool = False) -> Any:
        self._check_place(f'"{name}" ({op})')
        return self._promise(f'"{name}" ({op})', lambda: self._await(op, name, alone, act))

    def _do_step(self, name: str, work: Callable[[], Any], options: _StepOptions) -> Any:
        self._check_place(f'"{name}" (step)')
        return self._promise(f'"{name}" (step)', lambda: self._await(
            "step", name, False, lambda call: self._remembered(call.entry), (work, options)))

    async def _await(self, op: str, name: str, alone: bool, act: Callable[[_Call], Any], step: Optional[tuple] = None) -> Any:
        call = self._begin(op, name, alone)
        try:
            await call.turn  # type: ignore[misc]
            if call.entry and call.entry.answered:
                return act(call)
            settle = await self._try_later(call, *step) if step else lambda: act(call)
            answer = await self._in_thread(settle)[0]
            if call.parked:
                await self._loop.create_future()  # until the turn ends
            call.answer, call.turn = answer, self._loop.create_future()
            if not call.told:
                self._queue.append(call)
            await call.turn
            if answer[1]:
                raise answer[1]
            return answer[0]
        finally:
            if call.entry:
                call.entry.met = True
            with self._book:
                self._calls.pop(call, None)

    def _tell_order(self, call: _Call) -> None:
        super()._tell_order(call)
        self._queue.append(call)

    def _park(self, call: _Call, until: int, line: Optional[Dict[str, Any]]) -> None:
        with self._book:
            self._parked.append((call.full, line, until))
            call.parked = True
        raise Suspended("the step waits")

    def _in_thread(self, work: Callable[[], Any]) -> Tuple[Any, _Task]:
        """A future for what it returned and what it raised, and its thread."""
        future = self._loop.create_future()

        def run() -> None:
            try:
                outcome = (work(), None)
            except BaseException as error:  # pylint: disable=broad-except
                outcome = (None, error)
            self._soon(lambda: future.done() or future.set_result(outcome))

        return future, _Task(self._worker, run, self._book)

    async def _try_later(self, call: _Call, work: Callable[[], Any], options: _StepOptions) -> Callable[[], Any]:
        """Does the step's work; what records its end."""
        try:
            attempt = self._attempt(call)
        except Suspended:
            return lambda: None  # it is parked
        with self._at_work_on(attempt):
            output, error = await self._try_job(attempt, work, options.timeout)
            if error is None and inspect.isawaitable(output):
                output, error = await self._try_job(attempt, _awaits(output), options.timeout)
        return lambda: self._settle(attempt, output, error, options)

    async def _try_job(self, attempt: _Attempt, work: Callable[[], Any], limit: Optional[float]) -> Tuple[Any, Any]:
        if limit is not None and limit < 0:
            return None, _StepTimeout("the step's time had passed before it began")
        until = time.monotonic() + (math.inf if limit is None else limit)
        if _is_async(work):
            job = self._loop.create_task(self._run_coroutine(attempt, work))
            abandon = job.cancel
        else:
            job, task = self._in_thread(lambda: attempt.run(work))
            abandon = functools.partial(task.write_off, f'run {self.run_id}: the step "{attempt.call.full}"')
        try:
            done, _ = await asyncio.wait({job}, timeout=limit)
        except asyncio.CancelledError:
            attempt.over = True
            abandon()
            raise
        if not done:
            attempt.over = True
            abandon()
            return None, _StepTimeout(f"the step took longer than its limit of {limit:g}s")
        output, error = job.result()
        if error is None and not _is_async(work):
            output, error = output  # of the attempt, in its thread
        if error is None and attempt.ended >= until:  # it kept the loop from seeing that
            error = _StepTimeout(f"the step took longer than its limit of {limit:g}s")
        return output, error

    async def _run_coroutine(self, attempt: _Attempt, work: Callable[[], Any]) -> Tuple[Any, Optional[BaseException]]:
        _STEP.set(attempt)  # for this task
        try:
            return await work(), None
        except asyncio.CancelledError as error:
            if attempt.over or self._over:
                raise
            return None, error
        except BaseException as error:  # pylint: disable=broad-except
            return None, error
        finally:
            attempt.ended = time.monotonic()

    def _tell(self, what: str, body: Dict[str, Any]) -> Any:
        if threading.get_ident() not in self._threads:  # a step's function, in a thread of its own
            super()._tell(what, body)
            return _Done()
        self.check()
        body = _plain(body, f"what ctx.{what} tells")
        return self._promise(f"ctx.{what}", lambda: self._tell_later(body))

    async def _tell_later(self, body: Dict[str, Any]) -> None:
        """Nothing else goes on meanwhile: a replay, which tells nothing, goes the same way."""
        self.check()
        if self._replays():
            return
        self._telling += 1
        try:
            _, error = await self._in_thread(lambda: self._tell_now(body))[0]
        finally:
            self._telling -= 1
        if error:
            raise error

    def version(self, change: str, current: int) -> Any:
        self._check_version(change, current)
        if self._takes_version(change):
            return super().version(change, current)
        return self._promise(f'"{change}" (version)', lambda: self._give(self._versions[change]))

    async def _give(self, value: Any) -> Any:
        return value

    def all(self, thunks: Iterable[Any]) -> Any:
        """What functions that return awaitables give, or awaitables; the first error once all have ended."""
        return self._promise("ctx.all", lambda: self._all([thunk() if callable(thunk) else thunk for thunk in thunks]))

    async def _all(self, parts: List[Any]) -> List[Any]:
        results = await asyncio.gather(*parts, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results


def _awaits(value: Any) -> Callable[[], Any]:
    async def work() -> Any:
        return await value

    return work


# ---- The worker ----

Handler = Callable[[Any, Any], Any]

# What @worker.workflow() takes beside the names of the HTTP API
SHORT_SETTINGS = {"attempts": "max_attempts", "backoff": "retry_base", "max_backoff": "retry_cap"}
DURATIONS = ("retry_base", "retry_cap", "lease", "timeout", "retention", "fit_within", "rate_interval", "key_rate_interval")
SETTINGS = ("max_attempts", "dead_letter", "on_cancel", "children", "max_running", "key_max_running", "rate_count", "rate_burst",
            "key_rate_count", "key_rate_burst", "paused", *DURATIONS)


class _Served:
    """A handler, and what the server is to know of its workflow."""

    def __init__(self, handler: Handler, settings: Dict[str, Any], schedules: Dict[str, Dict[str, Any]]):
        self.handler, self.settings, self.schedules = handler, settings, schedules


def _check_pattern(name: Any) -> None:
    """By the rules of the server, where the mistake is made."""
    if callable(name):
        raise TypeError('a handler needs the name of its workflow: @worker.workflow("order.v1")')
    if not isinstance(name, str):
        raise TypeError(f"the name of a workflow is text, not {name!r}")
    plain = name[:-1] if name.endswith("*") else name
    if name == "*":
        return
    if not plain or len(name.encode()) > 200:
        raise ValueError(f"the name of a workflow has 1 to 200 characters: {name!r}")
    bad = re.search(r"[^A-Za-z0-9_.:-]", plain)
    if bad:
        raise ValueError(f"the name of a workflow has letters, digits and _ . : - only, not {bad[0]!r}: {name!r}")
    if not re.match(r"[A-Za-z0-9]", plain) or ".." in plain or name.endswith("."):
        raise ValueError(f"the name of a workflow begins with a letter or a digit, has no two dots in a row and does not end "
                         f"with a dot: {name!r}")
    if plain.startswith("holdfast."):
        raise ValueError(f"names that begin with \"holdfast.\" belong to the engine: {name!r}")


def _read_settings(name: str, given: Dict[str, Any]) -> Dict[str, Any]:
    settings = {}
    for word, value in given.items():
        member = SHORT_SETTINGS.get(word, word)
        if member not in SETTINGS:
            near = difflib.get_close_matches(word, (*SHORT_SETTINGS, *SETTINGS, "schedule"), 1)
            raise TypeError(f'a workflow has no setting "{word}"' + (f'; did you mean "{near[0]}"?' if near else
                            f": there are {', '.join((*SHORT_SETTINGS, *SETTINGS, 'schedule'))}"))
        if member in settings:
            raise TypeError(f'"{word}" is given twice: it is {member}')
        settings[member] = _duration(value) if member in DURATIONS and value is not None else value
    if settings and name.endswith("*"):
        raise ValueError(f"settings are for one workflow, and {name!r} is a family: serve it by its full name")
    return settings


def _read_schedules(name: str, given: Any) -> Dict[str, Dict[str, Any]]:
    """By name: an expression of cron, an object as the HTTP API takes it, or several of these."""
    if given is None:
        return {}
    if name.endswith("*"):
        raise ValueError(f"a schedule starts one workflow, and {name!r} is a family: serve it by its full name")
    schedules: Dict[str, Dict[str, Any]] = {}
    for one in given if isinstance(given, (list, tuple)) else [given]:
        about = {"cron": one} if isinstance(one, str) else dict(one)
        label = about.pop("name", name)
        if "every" in about:
            every = about.pop("every")
            about["cron"] = f"every {every if isinstance(every, str) else f'{int(_seconds(every))}s'}"
        if label in schedules:
            raise ValueError(f'two schedules are called "{label}": give each a name of its own')
        schedules[label] = {**about, "workflow": name}
    return schedules


class Worker:
    """Claims runs, calls handlers, says how they ended. `name` must be unique, and is best the same after a restart: the
    runs of the one before it are taken up at once then. `stop_limit` is how many seconds handlers have to finish after a stop,
    then their runs are given back. `prefixes` (or WORKER_TYPE_PREFIXES, separated by commas): only handlers whose names begin
    with one of these are served."""

    def __init__(self, client: Client, name: Optional[str] = None, concurrency: int = 4, stop_limit: Seconds = 30,
                 prefixes: Union[None, str, Iterable[str]] = None):
        self.client = client
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{os.urandom(3).hex()}"
        self._concurrency, self._stop_limit = concurrency, _seconds(stop_limit)
        self._prefixes = [prefixes] if isinstance(prefixes, str) else list(prefixes or ())
        self._served: Dict[str, _Served] = {}
        self._asked: "queue.SimpleQueue[None]" = queue.SimpleQueue()  # to stop
        self._stopping = threading.Event()
        self._refusal: Optional[HoldfastError] = None  # why the server has never let it in
        self._shut_out = False                     # it was let in, and is not any more
        self._quit = False                         # the stop's limit has passed
        self._pid = os.getpid()
        self._held: Dict[int, Context] = {}        # by id(context)
        self._runners: Set[threading.Thread] = set()
        self._stuck = 0                            # threads that were written off and are not back
        self._stuck_told = 0                       # what the server knows of them
        self._change = threading.Condition()       # guards _held, _runners, _stuck
        self._slots = threading.Semaphore(concurrency)
        self._turns: "queue.SimpleQueue[Context]" = queue.SimpleQueue()

    def workflow(self, name: str, *, schedule: Any = None, **settings: Any) -> Callable[[Handler], Handler]:
        """Serves a workflow ("order.v1", created if new) or a family ("billing.*"). The longest match wins. Settings of the
        workflow are applied when the worker joins: those of PUT /v1/workflows/{name}, lengths of time in seconds, and
        `attempts`, `backoff`, `max_backoff` for max_attempts, retry_base, retry_cap. `schedule`: an expression of cron, or
        the members of PUT /v1/schedules/{name} with the schedule's `name` (default: the workflow's), and `every` for so many
        seconds; several in a list."""
        _check_pattern(name)
        told = _read_settings(name, settings), _read_schedules(name, schedule)

        def add(handler: Handler) -> Handler:
            if not callable(handler):
                raise TypeError(f"the handler of {name!r} is no function: {handler!r}")
            if name in self._served:
                raise ValueError(f"{name!r} has a handler already: {self._served[name].handler!r}")
            self._served[name] = _Served(handler, *told)
            return handler
        return add

    def run(self, signals: bool = True) -> None:
        """Works until stop(), or (in the main thread, unless `signals` is false) SIGTERM or SIGINT. HoldfastError when the
        server does not let it in: its token, say, is not good for this. One that was let in, and is not any more, tries
        on."""
        if not self._served:
            raise ValueError("the worker serves no workflow")
        self._keep_prefixes()
        self._pid = os.getpid()
        if signals and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._hear)
            signal.signal(signal.SIGINT, self._hear)
        for _ in range(self._concurrency):
            self._add_runner()
        self._start_thread(self._beat)
        self._start_thread(self._watch)
        self._start_thread(self._tend)
        claimer = self._start_thread(self._claim_all)
        self._asked.get()
        self._stopping.set()
        self._drain(claimer)
        if self._refusal:
            raise self._refusal

    def stop(self) -> None:
        """No new claims; handlers at work may finish. Safe in signal handlers and any thread."""
        self._asked.put(None)

    def _hear(self, number: int, _frame: Any) -> None:
        if os.getpid() == self._pid:
            self.stop()
        else:  # a process that a handler forked off: it ends as others do
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _keep_prefixes(self) -> None:
        prefixes = self._prefixes or re.findall(r"[^, ]+", os.environ.get("WORKER_TYPE_PREFIXES", ""))
        kept = {name: one for name, one in self._served.items()
                if not prefixes or any(name.startswith(prefix.rstrip("*")) for prefix in prefixes)}
        if not kept:
            raise ValueError(f"no handler's name begins with one of the prefixes {', '.join(prefixes)}; there are handlers for "
                             f"{', '.join(sorted(self._served))}")
        self._served = kept

    @staticmethod
    def _start_thread(work: Callable[[], Any]) -> threading.Thread:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
        thread.start()
        return thread

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

    def _about(self) -> Dict[str, Any]:
        return {"worker": self.name, "workflows": sorted(self._served), "threads": self._concurrency,
                "host": socket.gethostname(), "program": "holdfast.py"}

    def _join(self) -> None:
        settings = {name: one.settings for name, one in self._served.items() if one.settings}
        schedules = {name: about for one in self._served.values() for name, about in one.schedules.items()}
        self.client.ask("POST", "/work/join", {**self._about(), **({"settings": settings} if settings else {}),
                                               **({"schedules": schedules} if schedules else {})})

    def _claim_all(self) -> None:
        joined, pause = False, _Backoff()
        while not self._stopping.is_set():
            free = 1
            self._slots.acquire()
            while free < 100 and self._slots.acquire(blocking=False):
                free += 1
            begun = 0
            try:
                if not joined and not self._stopping.is_set():
                    self._join()
                    joined = True
                if not self._stopping.is_set():
                    asked = time.monotonic()
                    claims = self.client.ask("POST", "/work/claim", {**self._about(), "limit": free, "wait": f"{CLAIM_WAIT}s"},
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
            except BaseException:  # pylint: disable=broad-except
                LOG.exception("cannot claim")
                self._stopping.wait(pause.next())
            for _ in range(free - begun):
                self._slots.release()

    def _begin(self, claim: Dict[str, Any]) -> None:
        handler = self._find(claim["run"]["workflow"])
        ctx = (AsyncContext if handler and _is_async(handler) else Context)(self, claim)
        with self._change:
            self._held[id(ctx)] = ctx
            self._change.notify_all()
        self._turns.put(ctx)

    # -- playing --

    def _add_runner(self) -> None:
        with self._change:
            self._runners.add(self._start_thread(self._serve))

    def _serve(self) -> None:
        """A runner: one turn after the other, until it is written off."""
        while True:
            ctx = self._turns.get()
            ctx._runner = threading.current_thread()
            try:
                end = GIVE_BACK if self._stopping.is_set() else self._play(ctx)
            except BaseException as error:  # pylint: disable=broad-except
                LOG.exception("run %s", ctx.run_id)
                end = {"path": "fail", "code": _code(error), "message": _say(error)[:4000]}
            try:
                if end and id(ctx) in self._held:
                    self._end(ctx, end)
            except BaseException:  # pylint: disable=broad-except
                LOG.exception("run %s", ctx.run_id)
            if not self._let_go(ctx):
                self._count_stuck(-1)
                return

    def _let_go(self, ctx: Context) -> bool:
        """The run is not held any more, and its place is free. Whether it was held until here."""
        with self._change:
            held = self._held.pop(id(ctx), None)
            self._change.notify_all()
        if held:
            self._slots.release()
        return bool(held)

    def _count_stuck(self, change: int) -> None:
        with self._change:
            self._stuck += change
            self._change.notify_all()

    def _find(self, workflow: str) -> Optional[Handler]:
        best = max((name for name in self._served if name == workflow or
                    (name.endswith("*") and workflow.startswith(name[:-1]))), key=len, default=None)
        return self._served[best].handler if best else None

    def _play(self, ctx: Context) -> Optional[Dict[str, Any]]:
        """Calls the handler; what is to be said then, None: nothing."""
        handler = self._find(ctx.workflow)
        if not handler:
            return GIVE_BACK
        try:
            result = _plain(ctx._call_handler(handler), "what the handler returned")
            ctx._close()
            return {"path": "commit", "turn": "succeed", "result": result}
        except BaseException as raised:  # pylint: disable=broad-except
            error = raised
        finally:
            ctx._left = True
            if os.getpid() != self._pid:
                LOG.error("run %s: a process that its handler forked off came back from it, and ends here", ctx.run_id)
                os._exit(70)
        over = ctx._over  # whatever the handler has made of it
        ctx._close()
        if isinstance(over, (Suspended, RunLost)):
            return getattr(over, "end", None)
        if isinstance(over, HistoryMismatch):
            LOG.warning("run %s (%s) waits for a worker that fits: %s", ctx.run_id, ctx.workflow, over)
            return {"path": "unfit", "message": _say(over)[:4000]}
        return self._failure(ctx, over, ctx._over_at) if over else self._failure(ctx, error, error.__traceback__)

    @staticmethod
    def _failure(ctx: Context, error: BaseException, where: Optional[types.TracebackType]) -> Dict[str, Any]:
        frames, shown = _frames(where), _strip(error)
        if isinstance(error, StepFailed) and error.step in ctx._causes:  # the handler's way to the step, then the step's own
            shown = ctx._causes[error.step]
            frames += _frames(shown.__traceback__)
        told = (type(shown), shown, _trace_of(frames))
        if not isinstance(error, RetryAfter):
            LOG.error("run %s (%s) failed in attempt %d", ctx.run_id, ctx.workflow, ctx.attempt, exc_info=told)
        about = {"code": _code(error), "message": _say(error)[:4000]}
        trace = _clean("".join(traceback.format_exception(*told)).rstrip())[-TRACE_LIMIT:]
        known = {"attempt": ctx.attempt, **about, "step": error.step if isinstance(error, StepFailed) else None,
                 "details": _details(error), "trace": trace}
        end: Dict[str, Any] = {"path": "fail", **about,
                               "error": {name: value for name, value in known.items() if value is not None}}
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
            elif path == "unfit":
                path, body = "fail", {"permanent": True, "code": "history_mismatch", "message": body["message"]}
            elif body.pop("error", None):  # said again in short: the trace may have been too much
                body["message"] = body["message"][:200]
            elif path == "fail" and body["code"] != "failed":  # the attempt ends, whatever can be said of it
                body = {**{name: body[name] for name in ("permanent", "retry_after") if name in body}, "code": "failed",
                        "message": f"what went wrong could not be written: {_clean(str(refusal))[:200]}"}
            else:
                return

    # -- runners that do not come back --

    def _tend(self) -> None:
        """Looks after what is held: deadlines that pass, handlers that do not leave, threads that are gone."""
        while True:
            try:
                with self._change:
                    self._change.wait_for(lambda: self._held)
                    held = list(self._held.values())
                for ctx in held:
                    self._tend_to(ctx)
            except BaseException:  # pylint: disable=broad-except
                LOG.exception("cannot look after the runs")
            time.sleep(min(0.5, GRACE / 4))

    def _tend_to(self, ctx: Context) -> None:
        ctx._mind_deadline()
        runner = ctx._runner
        if not runner:
            return
        if not runner.is_alive():
            LOG.error("run %s: its thread has died", ctx.run_id)
            self._replace(ctx, runner, {"path": "fail", "code": "failed", "message": "the thread of the handler has died"})
        elif ctx._lost_at and not ctx._left and time.monotonic() - ctx._lost_at >= GRACE:
            LOG.error("run %s (%s): %s, and its handler does not leave; its thread is replaced. It is at\n%s", ctx.run_id,
                      ctx.workflow, ctx._over, _stack(runner))
            self._replace(ctx, runner, getattr(ctx._over, "end", None))

    def _replace(self, ctx: Context, runner: threading.Thread, end: Optional[Dict[str, Any]]) -> None:
        with self._change:
            if id(ctx) not in self._held:
                return
            self._runners.discard(runner)
            self._stuck += runner.is_alive()
        self._add_runner()
        self._let_go(ctx)
        if end:
            self._start_thread(lambda: self._end(ctx, end))

    # -- heartbeat --

    def _beat(self) -> None:
        """For all runs that are held, three times in the shortest lease."""
        due = 0.0
        while True:
            with self._change:
                self._change.wait_for(lambda: self._held or self._stuck != self._stuck_told)
                held = list(self._held.values())
            if self._stuck != self._stuck_told:  # nobody waits for a run to tell that
                self._beat_for([], LONGEST_BEAT)
            if not held:
                time.sleep(LONG_ENOUGH if self._stuck == self._stuck_told else 1)
                continue
            with self._change:
                pause = min(LONGEST_BEAT, min(ctx._claim["lease_us"] for ctx in held) / MICRO / 3)
                rest = max(due, min(ctx._claimed for ctx in held)) + pause - time.monotonic()
                if rest > 0:
                    self._change.wait(rest)
                    continue
            due = time.monotonic()
            held = [ctx for ctx in held if not ctx._lost_at]
            parts = [held[i:i + BEAT_MOST] for i in range(0, len(held), BEAT_MOST)]
            for part in parts:
                self._beat_for(part, pause / len(parts))

    def _beat_for(self, held: List[Context], patience: float) -> None:
        """A connection that went silent shall not cost the leases: there is time for the next beat, on another one."""
        runs = [{"id": c.run_id, "version": c.run["version"], "lease_us": c._claim["lease_us"]} for c in held]
        stuck = self._stuck
        try:
            answer = self.client.ask("POST", "/work/heartbeat", {"worker": self.name, "runs": runs, "stuck": stuck},
                                     timeout=patience)
            self._stuck_told = stuck
            self._let_in()
            for ctx, item in zip(held, answer["items"]):
                if item["code"] == "cancelled":
                    ctx._lose(RunCancelled("the run was cancelled"))
                elif item["code"] != "ok":
                    ctx._lose(RunLost("somebody else holds the run"))
        except HoldfastError as error:
            self._complain("heartbeat", error)
        except BaseException:  # pylint: disable=broad-except
            LOG.exception("heartbeat")

    def _watch(self) -> None:
        """While a run is held for long: whether one was cancelled or taken away. A heartbeat tells the truth then."""
        pause = _Backoff()
        while True:
            with self._change:
                self._change.wait_for(lambda: self._held)
                rest = min(ctx._claimed for ctx in self._held.values()) + LONG_ENOUGH - time.monotonic()
            if rest > 0:
                time.sleep(rest)
                continue
            try:
                items = self.client.ask("POST", "/work/watch", {"worker": self.name, "wait": f"{WATCH_WAIT}s"}, wait=WATCH_WAIT)
                named = {item["id"] for item in items["items"]}
                with self._change:
                    held = [ctx for ctx in self._held.values() if ctx.run_id in named and not ctx._lost_at]
                if held:
                    self._beat_for(held, LONGEST_BEAT)
                pause = _Backoff()
            except HoldfastError as error:
                if error.status in (404, 405):  # a server that does not know it
                    return
                time.sleep(pause.next())
            except BaseException:  # pylint: disable=broad-except
                LOG.exception("watch")
                time.sleep(pause.next())

"""What the crash tests share: a directory, processes, stores, and the audit of what is left.

Everything that a test starts is its own child, dies with it, and is ended by its process id. The directory is removed
when the test was good and kept, with a word where, when it was not.

The environment, set by the build: HOLDFAST names the program, HOLDFAST_CRASH the directory of crash_worker,
crash_trigger and crash_audit.
"""

import collections
import ctypes
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback

PROGRAM = os.environ["HOLDFAST"]
TOOLS = pathlib.Path(os.environ["HOLDFAST_CRASH"])
PATIENCE = float(os.environ.get("HOLDFAST_PATIENCE", "1"))  # sanitizers make everything slower
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Failure(Exception):
    """A promise was broken; the message says which."""


class Skipped(Exception):
    """This machine cannot show it; the message says why."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds * PATIENCE
    while True:
        answer = condition()
        if answer:
            return answer
        check(time.monotonic() < end, f"waited {seconds} s in vain: {what}")
        time.sleep(0.02)


# ---- Processes ----


def die_with_parent(signal_number=signal.SIGKILL):
    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signal_number)

    return prepare


class Process:
    """A child; ended by its id, whatever state it is in."""

    def __init__(self, directory, name, argv, **options):
        self.name = name
        self.errors = directory / f"{name}.stderr"
        with open(self.errors, "ab") as errors:
            self.popen = subprocess.Popen(
                [str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                preexec_fn=die_with_parent(options.pop("with_parent", signal.SIGKILL)), **options)
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def send(self, signal_number):
        if self.alive():
            self.popen.send_signal(signal_number)

    def kill(self):
        self.send(signal.SIGKILL)
        self.popen.wait()

    def stop(self, seconds=30):
        """Asks it to end; returns its exit status."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds=30):
        try:
            return self.popen.wait(seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not end within {seconds} s") from None

    def said(self):
        return self.errors.read_text(errors="replace").strip()


# ---- Stores ----


def run_program(*argv, expect=0, limit=60):
    """The finished program; None if it was not done within the limit and nothing was expected of it."""
    try:
        done = subprocess.run([PROGRAM, *map(str, argv)], capture_output=True, text=True, timeout=limit * PATIENCE,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        check(expect is None, f"holdfast {' '.join(map(str, argv))[:200]}: not done within {limit} s")
        return None
    if expect is not None:
        check(done.returncode == expect, f"holdfast {' '.join(map(str, argv))[:200]}: exit status {done.returncode}, "
                                         f"not {expect}: {done.stderr.strip()}")
    return done


class Sqlite:
    kind = "sqlite"

    def __init__(self, directory, name="store.db"):
        self.path = directory / name
        self.url = f"sqlite:{self.path}"

    def ask(self, sql):
        """Rows of a SELECT. Ids come as UUID texts from uuid(x); {event} names a table on every backend."""
        connection = sqlite3.connect(self.path, timeout=60)
        connection.create_function("uuid", 1, uuid_text, deterministic=True)
        try:
            return connection.execute(re.sub(r"\{(\w+)\}", r"\1", sql)).fetchall()
        finally:
            connection.close()

    def close(self):
        pass


def uuid_text(blob):
    text = blob.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


class Postgres:
    """A server of its own, as its user, that flushes to disk like one in production."""

    kind = "postgres"

    def __init__(self, directory, data=None, settings=(), init_options=()):
        self.directory = directory / "postgres"
        self.directory.mkdir()
        self.data = data or self.directory / "data"
        self.bin = newest_bin_dir()
        self.settings = settings
        self.identity = server_identity()
        if self.identity:
            os.chown(self.directory, self.identity["user"], self.identity["group"])
        self.port = free_port()
        self.url = f"postgres://postgres@/postgres?host={self.directory}&port={self.port}"
        self.process = None
        self.run_tool("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
                      "--no-sync", *init_options)
        self.start()

    def run_tool(self, tool, *argv, **options):
        return subprocess.run([self.bin / tool, *map(str, argv)], check=True, capture_output=True, text=True, cwd="/",
                              stdin=subprocess.DEVNULL, timeout=120 * PATIENCE, **{**self.identity, **options})

    def launch(self):
        settings = ["listen_addresses=", f"port={self.port}", f"unix_socket_directories={self.directory}",
                    "max_connections=100", "shared_buffers=32MB", "fsync=on", "full_page_writes=on",
                    "synchronous_commit=on", "restart_after_crash=on", *self.settings]
        argv = [self.bin / "postgres", "-D", self.data]
        for setting in settings:
            argv += ["-c", setting]
        self.process = Process(self.directory, "server", argv, cwd="/", with_parent=signal.SIGQUIT, **self.identity)

    def ready(self):
        try:
            self.run_tool("psql", "-XAtqc", "SELECT 1", self.url)
        except subprocess.CalledProcessError:
            return False
        return True

    def start(self):
        """Starts it, after a crash too. It refuses as long as an orphan of its former self holds the shared memory; the
        stale lock file it judges itself, so nobody removes it here."""
        self.launch()
        wait_until(self.started, "PostgreSQL starts", 60)

    def started(self):
        if not self.process.alive():
            time.sleep(0.05)
            self.launch()
        return self.ready()

    def kill(self):
        self.process.kill()

    def stop(self):
        self.process.send(signal.SIGINT)
        self.process.wait(60)

    def backends(self):
        return [int(pid) for (pid,) in self.ask("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                                                "AND backend_type = 'client backend'")]

    def ask(self, sql):
        """The server may be recovering, or the session may be the one that is killed: then once more."""
        sql = re.sub(r"\{(\w+)\}", r"holdfast.\1", sql).replace("uuid(", "text(")
        answer = wait_until(lambda: self.ask_once(sql), f"an answer to {sql}", 30)
        return [tuple(line.split("\x1f")) for line in answer.stdout.splitlines()]

    def ask_once(self, sql):
        try:
            return self.run_tool("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\x1f", "-c", sql, self.url)
        except subprocess.CalledProcessError as error:
            check(error.returncode == 2, f"{sql}: {error.stderr}")
            return None

    def close(self):
        if self.process and self.process.alive():
            self.process.send(signal.SIGQUIT)
            try:
                self.process.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()


def newest_bin_dir():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not found:
        raise Skipped("there is no PostgreSQL server in /usr/lib/postgresql")
    return found[-1]


def unprivileged(*names):
    """Options that run a child as the first of these users that exists."""
    import pwd
    for name in names:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise Skipped(f"there is no user {' or '.join(names)}")


def server_identity():
    """PostgreSQL refuses to run as root."""
    return unprivileged("postgres", "nobody") if os.getuid() == 0 else {}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def new_store(kind, directory):
    return Sqlite(directory) if kind == "sqlite" else Postgres(directory)


class SmallDisk:
    """A file system of a few megabytes that can be filled up and given room again."""

    def __init__(self, directory, megabytes):
        self.path = directory / "disk"
        self.ballast = self.path / "ballast"
        self.path.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", self.path],
                              capture_output=True, text=True)
        if done.returncode:
            raise Skipped(f"no file system can be mounted here: {done.stderr.strip()}")

    def fill(self):
        with open(self.ballast, "ab", buffering=0) as ballast:
            for size in (65536, 4096):
                try:
                    while True:
                        ballast.write(b"x" * size)
                except OSError:
                    pass

    def make_room(self):
        self.ballast.unlink()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if subprocess.run(["umount", self.path]).returncode:
            subprocess.run(["umount", "-l", self.path])


# ---- The scene of one test ----


class Scene:
    """A store with a workflow of short leases and one of long ones, workers and triggering processes."""

    def __init__(self, directory, kind, store=None):
        self.directory = directory
        self.log = directory / "workers.log"
        self.accepted_log = directory / "accepted.log"
        self.children = []
        self.made = 0
        self.log.touch()
        self.accepted_log.touch()
        self.store = store or new_store(kind, directory)

    def define(self, workflow, lease):
        run_program("workflow", "create", workflow, "--lease", lease, "--retry-base", "10ms", "--retry-cap", "100ms",
                    "--max-attempts", "100", "--store", self.store.url)

    def spawn(self, name, argv):
        child = Process(self.directory, name, argv)
        self.children.append(child)
        return child

    def worker(self, name=None, threads=4, stop_limit=10000, poll=1000):
        self.made += 1
        name = name or f"worker-{self.made}"
        return self.spawn(name, [TOOLS / "crash_worker", "-u", self.store.url, "-l", self.log, "-n", name,
                                 "-t", threads, "-s", stop_limit, "-p", poll])

    def exec_worker(self, command, *options, pattern="crash.*"):
        self.made += 1
        return self.spawn(f"exec-{self.made}", [PROGRAM, "worker", "--exec", f"{pattern}={command}", "--poll", "1s",
                                                "--store", self.store.url, *options])

    def trigger(self, prefix, *options):
        """A process that triggers; it goes on where one with the same prefix was killed."""
        return self.spawn(f"trigger-{prefix}", [TOOLS / "crash_trigger", "-u", self.store.url, "-l", self.accepted_log,
                                                "-k", prefix, "-f", self.next_of(prefix), *options])

    def next_of(self, prefix):
        """Batches are accepted in any order, but the next one begins only after all of the one before."""
        numbers = {int(key.rsplit("-", 1)[1]) for key in self.accepted() if key.rsplit("-", 1)[0] == prefix}
        number = 0
        while number in numbers:
            number += 1
        return number

    def trigger_all(self, prefix, count, *options):
        child = self.trigger(prefix, "-c", count, "-p", 0, *options)
        status = child.wait(60)
        check(status == 0, f"{child.name} failed: {child.said()}")

    def accepted(self):
        """key -> run. A key that was accepted twice must have been given the same run."""
        runs = {}
        for line in self.accepted_log.read_text().splitlines():
            key, run = line.split()
            check(runs.setdefault(key, run) == run, f"the key {key} was given two runs: {runs[key]} and {run}")
        return runs

    def trigger_one(self, workflow, key, *options):
        """One run, through the program; returns it."""
        run = run_program("trigger", workflow, "--key", key, "--quiet", *options, "--store", self.store.url)
        with open(self.accepted_log, "a", encoding="ascii") as log:
            log.write(f"{key} {run.stdout.strip()}\n")
        return run.stdout.strip()

    def begun(self, count=1):
        """Waits until so many handlers have begun in all."""
        wait_until(lambda: len(self.lines("start")) >= count, f"{count} handlers have begun")

    def lines(self, kind):
        words = (line.split() for line in self.log.read_text().splitlines())
        return [line[1:] for line in words if line[0] == kind]

    def unfinished(self):
        return int(self.store.ask("SELECT count(*) FROM {run} WHERE status < 4")[0][0])

    def succeeded(self):
        return int(self.store.ask("SELECT count(*) FROM {run} WHERE status = 4")[0][0])

    def await_all_finished(self, seconds=60):
        wait_until(lambda: self.unfinished() == 0, "all runs are finished", seconds)

    def __enter__(self):
        try:
            self.define("crash.work", lease="1s")
            self.define("crash.long", lease="30s")
        except BaseException:
            self.store.close()
            raise
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.kill()
        self.store.close()

    # -- The audit --

    def audit(self, late_starts=0):
        """Every accepted run has succeeded exactly once, by a handler that did run, and journal and state agree."""
        for child in self.children:
            check("Sanitizer" not in child.said(), f"{child.name} says: {child.said()[:2000]}")
        accepted = self.accepted()
        runs = {run: (int(status), token) for run, status, token in
                self.store.ask("SELECT uuid(id), status, coalesce(result, '') FROM {run}")}
        lost = [run for run in accepted.values() if run not in runs]
        check(not lost, f"{len(lost)} accepted runs are gone, such as {lost[:3]}")
        unfinished = [run for run in runs if runs[run][0] != 4]
        check(not unfinished, f"{len(unfinished)} runs have not succeeded, such as {unfinished[:3]}")
        self.audit_successes(runs)
        self.audit_repetitions(late_starts)
        self.audit_refusals()
        self.audit_invariants()
        return len(accepted)

    def audit_successes(self, runs):
        ends = collections.Counter(run for (run,) in self.store.ask(
            "SELECT uuid(run_id) FROM {event} WHERE kind = 0 AND name IN ('succeeded', 'failed', 'cancelled')"))
        odd = [run for run in runs if ends[run] != 1]
        check(not odd, f"{len(odd)} runs do not have exactly one end in the journal, such as {odd[:3]}")
        handled = {token: run for token, run, _ in self.lines("start")}
        for run, (_, result) in runs.items():
            token = re.search(r'"token": *"([^"]+)"', result)
            check(token and handled.get(token[1]) == run, f"run {run} has a result that no handler gave it: {result}")

    def audit_repetitions(self, allowed):
        """The log is in the order of time. A process that is stopped just before it calls its handler may call it after
        others have finished the run; what else it had claimed it must leave alone."""
        recorded, late = set(), []
        for line in self.log.read_text().splitlines():
            words = line.split()
            if words[0] == "finished" and words[4] == "succeeded":
                recorded.add(words[2])
            elif words[0] == "start" and words[2] in recorded:
                late.append(line)
        check(len(late) <= allowed, f"{len(late)} handlers begun after success was recorded, such as {late[:3]}")

    def audit_refusals(self):
        """What a worker was told is taken is the journal's success; what it was told is refused is not. An attempt that
        a worker had twice (given back in between) proves nothing."""
        begun = collections.Counter((token.rsplit("-", 2)[0], run, attempt) for token, run, attempt in
                                    self.lines("start"))
        success = {(actor, run, str(attempt)) for actor, run, attempt in self.store.ask(
            "SELECT e.actor, uuid(e.run_id), r.attempt FROM {event} e JOIN {run} r ON r.id = e.run_id "
            "WHERE e.kind = 0 AND e.name = 'succeeded'")}
        for worker, run, attempt, status in self.lines("finished"):
            check(status != "succeeded" or (worker, run, attempt) in success,
                  f"{worker} was told that attempt {attempt} of run {run} is its success, yet the journal has another")
        for worker, run, attempt in self.lines("lost"):
            turn = (worker, run, attempt)
            check(turn not in success or begun[turn] > 1,
                  f"{worker} was refused attempt {attempt} of run {run}, yet the journal has it as its success")

    def audit_invariants(self):
        done = subprocess.run([TOOLS / "crash_audit", self.store.url], capture_output=True, text=True)
        check(done.returncode == 0, f"the journal does not match the state: {done.stdout}{done.stderr}")


# ---- Running tests ----


class Runner:
    """Runs test functions as TAP. Each gets a directory of its own."""

    def __init__(self, argv):
        self.quick = "--quick" in argv
        self.only = argv[argv.index("--only") + 1] if "--only" in argv else ""
        self.seed = int(argv[argv.index("--seed") + 1]) if "--seed" in argv else random.SystemRandom().randrange(10**9)
        self.count = 0
        self.failed = 0
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def report(self, good, name, comment=""):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}{comment}", flush=True)

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def case(self, name, function, *args):
        if self.only not in name:
            return
        directory = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-crash-"))
        directory.chmod(0o755)
        try:
            function(directory, *args)
        except Skipped as why:
            self.report(True, name, f" # SKIP {why}")
        except Exception as error:  # pylint: disable=broad-except
            self.failed += 1
            self.report(False, name)
            self.note(error if isinstance(error, Failure) else traceback.format_exc())
            self.note(f"seed {self.seed}; what is left is in {directory}")
            return
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        else:
            self.report(True, name)
        shutil.rmtree(directory, ignore_errors=True)

    def finish(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)

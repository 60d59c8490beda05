#!/usr/bin/env python3
"""Everything that `holdfast doctor` warns of, brought about for real. A store that is well has no findings. F16.

usage: doctor.py sqlite|postgres [--only NAME]
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from processes import PROGRAM, Process, check, run_program, wait_until  # noqa: E402
from runner import Runner, remove  # noqa: E402
from stores import Postgres, SmallDisk, Sqlite  # noqa: E402

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]
SETTINGS = ("max_prepared_transactions=5", "max_connections=30", "superuser_reserved_connections=3")


class Patient:
    """A store of its own, and what the doctor says of it."""

    prefix = "holdfast." if KIND == "postgres" else ""  # of the tables

    def __init__(self, directory, store, url):
        self.directory, self.store, self.url = directory, store, url

    def program(self, *argv, **options):
        return run_program("--store", self.url, *argv, **options)

    def sql(self, text):
        if KIND == "sqlite":
            connection = sqlite3.connect(self.store.path, timeout=60)
            connection.executescript(text)
            connection.close()
        else:
            self.store.run_tool("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text, self.url)

    @contextlib.contextmanager
    def session(self, *statements):
        """Another program's session, with a transaction that stays open."""
        argv = [self.store.bin / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", self.url]
        session = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PGAPPNAME": "dawdler"})
        try:
            session.stdin.write("BEGIN;\n" + "".join(f"{line};\n" for line in statements) + "SELECT 'begun';\n")
            session.stdin.flush()
            while session.stdout.readline().strip() != "begun":
                check(session.poll() is None, "the session ended")
            yield session
        finally:
            session.kill()
            session.wait()

    def held_by(self, worker):
        """The workflows of the runs that it holds. The engine's own may be among them: a worker begins with its chores."""
        held = (f"SELECT w.name FROM {self.prefix}run r JOIN {self.prefix}workflow w ON w.id = r.workflow_id "
                f"WHERE r.status = 1 AND r.leased_by = '{worker}'")
        if KIND == "sqlite":
            return [name for (name,) in self.store.ask(held)]
        return self.store.run_tool("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", held, self.url).stdout.split()

    def examine(self, *options, expect=(0, 1)):
        done = self.program("--json", "doctor", *options, expect=None)
        check(done.returncode in expect, f"exit status {done.returncode}: {done.stderr}")
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        bad = [finding for finding in findings if finding["level"] != "ok"]
        check(done.returncode == (1 if bad else 0), f"exit status {done.returncode} with {bad}")
        check(all(finding["advice"] for finding in bad), f"a finding without advice: {bad}")
        return bad

    def finding(self, check_name, words, *options):
        """The finding of this check that has these words; None: there is none."""
        for finding in self.examine(*options):
            if finding["check"] == check_name and words in finding["message"]:
                return finding
        return None

    def finds(self, check_name, words, *options):
        found = wait_until(lambda: self.finding(check_name, words, *options), f"{check_name}: {words}")
        return found

    def healthy(self):
        """A busy machine may be found slow once, but not for good."""
        wait_until(lambda: not self.examine(), "it has nothing to say")


def patient(directory, server):
    if KIND == "sqlite":
        store = Sqlite(directory)
        return Patient(directory, store, store.url)
    name = "d" + os.urandom(6).hex()
    server.run_tool("psql", "-XAtqc", f"CREATE DATABASE {name} TEMPLATE postgres STRATEGY file_copy", server.url)
    return Patient(directory, server, server.url.replace("/postgres?", f"/{name}?"))


CASES = []


def case(*kinds):
    def add(function):
        if KIND in kinds:
            CASES.append(function)
        return function

    return add


@case("sqlite", "postgres")
def a_store_that_is_well_has_no_findings(p):
    p.healthy()
    said = p.program("doctor").stdout
    check("ok" in said and "warning" not in said and "danger" not in said, said)
    check(p.program("--quiet", "doctor").stdout == "", "--quiet has nothing to say")


@case("sqlite", "postgres")
def a_store_of_another_schema(p):
    table = "holdfast.schema_version" if KIND == "postgres" else "schema_version"
    p.sql(f"UPDATE {table} SET version = version + 100 WHERE version = (SELECT max(version) FROM {table})")
    p.finds("schema", "this program knows")
    p.sql(f"DELETE FROM {table} WHERE version = (SELECT max(version) FROM {table})")
    done = p.program("doctor", expect=5)
    check("holdfast migrate" in done.stderr, done.stderr)


@case("sqlite", "postgres")
def a_store_that_cannot_be_reached_is_an_error(p):
    url = "sqlite:/no/such/place.db" if KIND == "sqlite" else p.url.split("&port=")[0] + "&port=1"
    done = run_program("--store", url, "doctor", expect=None)
    check(done.returncode == 5 and done.stderr, f"{done.returncode} {done.stderr}")


@case("sqlite", "postgres")
def due_runs_that_nobody_serves(p):
    p.program("workflow", "create", "lonely.v1")
    p.program("trigger", "lonely.v1", "1")
    p.finds("queues", "lonely.v1 (tenant default) has had due runs")
    p.program("workflow", "pause", "lonely.v1")
    p.healthy()


@case("sqlite", "postgres")
def a_queue_that_does_not_move_although_workers_live(p):
    p.program("workflow", "create", "slow.v1", "--max-running", "1")
    worker = Process(p.directory, "worker", [PROGRAM, "--store", p.url, "worker", "--exec", "slow.*=sleep 300"])
    for _ in range(2):
        p.program("trigger", "slow.v1", "1")
    wait_until(lambda: '"leased":1' in p.program("--json", "workflows").stdout.replace(" ", ""), "one is at work")
    p.healthy()
    found = p.finds("queues", "although 1 workers live", "--longer-than", "1ms")
    check("slow.v1" in found["message"], found)
    worker.kill()


@case("sqlite", "postgres")
def a_dead_worker_that_holds_runs(p):
    p.program("workflow", "create", "long.v1", "--lease", "1h")
    worker = Process(p.directory, "worker", [PROGRAM, "--store", p.url, "worker", "--name", "gone", "--exec",
                                             "long.*=sleep 300"])
    p.program("trigger", "long.v1", "1")
    wait_until(lambda: '"leased":1' in p.program("--json", "workflows").stdout.replace(" ", ""), "it is at work")
    p.healthy()
    worker.kill()
    p.sql(f"UPDATE {p.prefix}worker SET expires_at = 1")
    check("long.v1" in p.held_by("gone"), "it held the run that it was at")
    wait_until(lambda: p.finding("workers", f"gone is dead and holds {len(p.held_by('gone'))} runs"), "all are counted")


@case("sqlite", "postgres")
def a_worker_whose_threads_are_all_stuck(p):
    fields = "name, tenants, serves, host, pid, program, threads, running, started_at, seen_at, expires_at, stuck"
    for name, running, stuck in (("busy", 2, 0), ("half", 2, 1)):
        p.sql(f"INSERT INTO {p.prefix}worker ({fields}) VALUES ('{name}', '[]', '[]', 'h', 1, 'p', 2, {running}, 0, 0, 9000000000000000, {stuck})")
    p.healthy()
    p.sql(f"INSERT INTO {p.prefix}worker ({fields}) VALUES ('hung', '[]', '[]', 'h', 1, 'p', 2, 0, 0, 0, 9000000000000000, 2)")
    p.finds("threads", "hung is live, but 2 of its handlers do not return")


@case("sqlite", "postgres")
def runs_that_wait_for_a_worker_whose_code_fits(p):
    script = pathlib.Path(p.directory) / "deploy.sh"

    def work(first):
        script.write_text(f"#!/bin/sh\n{PROGRAM} {first}\n{PROGRAM} wait go\n")
        script.chmod(0o755)
        return Process(p.directory, "worker", [PROGRAM, "--store", p.url, "worker", "--exec", f"deploy.v1={script}"])

    def waits_for(words):
        wait_until(lambda: words in p.program("get", "deploy.v1/one").stdout, words)

    p.program("workflow", "create", "deploy.v1")
    worker = work("step pay -- true")
    p.program("trigger", "deploy.v1", "1", "--key", "one")
    waits_for('signal "go"')
    worker.kill()
    worker = work("sleep pay 1ms")
    p.program("signal", "deploy.v1/one", "go")
    waits_for("a worker whose code fits")
    found = p.finds("versions", "deploy.v1 (tenant default) has 1 run that waits for a worker whose code fits")
    check('"pay" (sleep) was called where "pay" (step) is remembered' in found["message"], found)
    worker.kill()
    worker = work("step pay -- true")
    p.program("wait", "deploy.v1/one", "--timeout", "60s")
    worker.kill()
    p.healthy()


@case("sqlite", "postgres")
def a_journal_that_can_be_changed(p):
    p.sql("DROP TRIGGER event_no_update" if KIND == "sqlite" else
          "ALTER TABLE holdfast.event DISABLE TRIGGER event_append_only")
    check(p.finds("journal", "keeps the journal from being changed")["level"] == "danger", "danger")


@case("sqlite", "postgres")
def chores_that_the_next_worker_does_are_no_finding(p):
    p.program("workflow", "create", "lonely.v1")
    p.program("trigger", "lonely.v1", "1")
    table = "holdfast.workflow" if KIND == "postgres" else "workflow"
    p.sql(f"UPDATE {table} SET name = 'holdfast.lonely' WHERE name = 'lonely.v1'")
    p.healthy()
    p.finds("queues", "holdfast.lonely", "--longer-than", "1ms")


@case("sqlite", "postgres")
def a_parked_subscription(p):
    p.program("subscription", "create", "shop", "--url", "http://127.0.0.1:9/hook", "--event", "order.*")
    p.program("subscription", "park", "shop")
    p.finds("subscriptions", "shop (tenant default) is parked")


@case("sqlite")
def a_log_that_a_reader_keeps_from_being_copied_back(p):
    p.program("workflow", "create", "fill.v1")
    p.program("workflow", "pause", "fill.v1")
    reader = sqlite3.connect(p.store.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM run").fetchone()
    large = p.directory / "large.jsonl"
    large.write_text(("{" + '"input":"' + "x" * 1000000 + '"}\n') * 75)
    p.program("trigger", "fill.v1", "--lines", large)
    p.finds("log", "MiB")
    reader.close()


@case("sqlite")
def files_that_every_user_of_the_machine_may_open(p):
    p.healthy()
    for suffix in ("", "-lock"):
        path = pathlib.Path(f"{p.store.path}{suffix}")
        path.chmod(0o644)
        check(p.finds("rights", str(path))["level"] == "warning", "whoever reads it has the secrets, or the lock")
        path.chmod(0o600)
    p.healthy()


def a_disk_with_little_room(directory, _server):
    with SmallDisk(directory, 20) as disk:
        store = Sqlite(disk.path)
        p = Patient(directory, store, store.url)
        p.program("migrate")
        check(p.finds("disk", "MiB are free")["level"] == "danger", "twenty megabytes are next to nothing")


def a_server_whose_disk_has_little_room(directory, _server):
    with SmallDisk(directory, 300) as disk:
        disk.path.chmod(0o777)
        server = Postgres(disk.path)
        try:
            p = Patient(directory, server, server.url)
            p.program("migrate")
            check(p.finds("disk", "MiB are free")["level"] == "warning", "less than a gibibyte is little")
            disk.fill()
            check(p.finds("disk", "MiB are free")["level"] == "danger", "next to nothing is a danger")
            disk.make_room()
        finally:
            server.close()


@case("postgres")
def a_clock_that_is_wrong(p):
    p.sql("CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE sql STABLE AS "
          "$$ SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint + 3600000000 $$")
    found = p.finds("clock", "differ by")
    check(found["level"] == "danger" and ("1h" in found["message"] or "59m" in found["message"]), found)


@case("postgres")
def a_store_that_is_slow(p):
    p.sql("CREATE OR REPLACE FUNCTION holdfast.now() RETURNS bigint LANGUAGE plpgsql STABLE AS "
          "$$ BEGIN PERFORM pg_sleep(1.1); RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint; END $$")
    p.finds("store", "answers in 1.")


@case("postgres")
def a_disk_that_cannot_be_seen_is_no_finding(p):
    name = p.url.split("?")[0].rsplit("/", 1)[1]
    p.sql(f"CREATE ROLE {name} LOGIN; GRANT ALL ON SCHEMA holdfast TO {name}; "
          f"GRANT ALL ON ALL TABLES IN SCHEMA holdfast TO {name}")
    done = run_program("--store", p.url.replace("postgres@", f"{name}@"), "--json", "doctor", expect=None)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    disk = [finding for finding in said if finding["check"] == "disk"]
    check(len(disk) == 1 and disk[0]["level"] == "ok" and "cannot be seen" in disk[0]["message"], f"{said} {done.stderr}")


@case("postgres")
def a_transaction_that_stays_open(p):
    with p.session("SELECT count(*) FROM holdfast.run"):
        found = p.finds("transactions", "dawdler", "--longer-than", "1ms")
        check("idle in transaction" in found["message"], found)
        p.healthy()


@case("postgres")
def a_prepared_transaction_that_nobody_ends(p):
    p.sql("BEGIN; CREATE TABLE left_over (x int); PREPARE TRANSACTION 'forgotten'")
    p.finds("transactions", 'prepared transaction "forgotten"', "--longer-than", "1ms")
    p.sql("ROLLBACK PREPARED 'forgotten'")
    p.healthy()


@case("postgres")
def a_table_that_is_locked(p):
    with p.session("LOCK TABLE holdfast.run IN ACCESS EXCLUSIVE MODE"):
        found = p.finds("locks", "AccessExclusiveLock on holdfast.run")
        check(found["level"] == "danger" and "dawdler" in found["message"], found)
        p.finds("queues", "cannot look")
    p.healthy()


@case("postgres")
def a_session_that_others_wait_for(p):
    p.sql("CREATE TABLE mine (x int); INSERT INTO mine VALUES (1)")
    with p.session("UPDATE mine SET x = 2"):
        argv = [p.store.bin / "psql", "-XAtq", "-c", "UPDATE mine SET x = 3", p.url]
        waiting = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        found = p.finds("locks", "waits for locks of process")
        check("dawdler" in found["message"], found)
    waiting.wait()


@case("postgres")
def connections_that_run_out(p):
    with contextlib.ExitStack() as stack:
        for _ in range(21):
            stack.enter_context(p.session())
        p.finds("connections", "of 27 connections are in use")
    wait_until(lambda: not p.examine(), "they are gone again")


@case("postgres")
def no_connection_left(p):
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            try:
                stack.enter_context(p.session())
            except Exception:  # pylint: disable=broad-except
                break
        done = p.program("doctor", expect=None)
        check(done.returncode == 5 and "too many clients" in done.stderr, f"{done.returncode} {done.stderr}")


@case("postgres")
def autovacuum_that_is_turned_off_for_a_table(p):
    p.sql("ALTER TABLE holdfast.event SET (autovacuum_enabled = off)")
    check(p.finds("autovacuum", "turned off for holdfast.event")["level"] == "danger", "danger")
    p.sql("ALTER TABLE holdfast.event RESET (autovacuum_enabled)")
    p.healthy()


@case("postgres")
def dead_rows_that_are_not_cleaned_up(p):
    p.sql("ALTER TABLE holdfast.signal SET (autovacuum_enabled = off)")
    p.sql("INSERT INTO holdfast.signal (tenant_id, run_id, id, type, name, occurred_at, visible_at, consumed_at) "
          "SELECT 1, gen_random_uuid(), 's', 'external', 'x', 1, 1, 1 FROM generate_series(1, 15000)")
    p.sql("DELETE FROM holdfast.signal")
    p.finds("bloat", "holdfast.signal has 15000 dead rows")
    p.sql("VACUUM holdfast.signal")
    wait_until(lambda: not p.finding("bloat", "holdfast.signal"), "they are cleaned up")


@case("postgres")
def settings_of_the_database_that_endanger_it(p):
    name = p.url.split("?")[0].rsplit("/", 1)[1]
    for check_name, setting, level in (("durability", "synchronous_commit", "warning"),
                                       ("autovacuum", "track_counts", "danger")):
        p.sql(f"ALTER DATABASE {name} SET {setting} = off")
        check(p.finds(check_name, f"{setting} is off")["level"] == level, setting)
        p.sql(f"ALTER DATABASE {name} RESET {setting}")
        p.healthy()


def settings_of_the_server_that_endanger_it(directory, _server):
    server = Postgres(directory, settings=("fsync=off", "full_page_writes=off", "autovacuum=off"), tables=True)
    try:
        p = Patient(directory, server, server.url)
        for check_name, setting in (("durability", "fsync"), ("durability", "full_page_writes"),
                                    ("autovacuum", "autovacuum")):
            check(p.finds(check_name, f"{setting} is off")["level"] == "danger", setting)
    finally:
        server.close()


def play(directory, function, server):
    p = patient(directory, server)
    p.program("migrate")
    function(p)


def main():
    server = None
    place = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-doctor-"))
    try:
        if KIND == "postgres":
            place.chmod(0o755)
            server = Postgres(place, settings=SETTINGS, tables=True)
        for function in CASES:
            RUNNER.case(function.__name__, play, function, server)
        alone = ([a_disk_with_little_room] if KIND == "sqlite" else
                 [settings_of_the_server_that_endanger_it, a_server_whose_disk_has_little_room])
        for function in alone:
            RUNNER.case(function.__name__, function, server)
    finally:
        if server:
            server.close()
        remove(place)
    RUNNER.finish()


main()

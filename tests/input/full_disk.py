#!/usr/bin/env python3
"""A disk without room: a clear error for new work, and what was done is kept and recorded once there is room.

usage: full_disk.py [--only NAME]

Needs to be root, to mount a small file system.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from processes import check, run_program, wait_until  # noqa: E402
from runner import Runner  # noqa: E402
from scene import Scene  # noqa: E402
from stores import Postgres, SmallDisk, Sqlite, server_identity  # noqa: E402

LARGE = '{"hold":1,"ms":1,"stubborn":1,"pad":300000}'


def trigger_until_full(scene, most=200):
    """Large inputs first, then small ones, until nothing fits. Returns the last answer."""
    for size in (500000, 20000, 10):
        large = scene.directory / "large.json"
        large.write_text('"' + "x" * size + '"')
        for number in range(most):
            key = f"fill-{size}-{number}"
            done = run_program("trigger", "crash.work", f"@{large}", "--key", key, "--json", "--quiet",
                               "--store", scene.store.url, expect=None)
            if done.returncode != 0:
                break
            with open(scene.accepted_log, "a", encoding="ascii") as log:
                run = done.stdout.split('"id":"')[1].split('"')[0]
                log.write(f"{key} {run}\n")
    check(done.returncode == 5, f"exit status {done.returncode}, not 5: {done.stderr}")
    return done


def check_is_full(answer):
    check('"error":"store_full"' in answer.stderr.replace(" ", ""), f"not store_full: {answer.stderr}")
    check("room" in answer.stderr or "space" in answer.stderr, f"the error gives no advice: {answer.stderr}")


def work_goes_on_after_room_is_made(scene, disk, revive=lambda: None, full=check_is_full):
    worker = scene.worker(threads=2)
    large = [scene.trigger_one("crash.long", f"large-{i}", LARGE) for i in range(2)]
    scene.held(2)
    disk.fill()
    full(trigger_until_full(scene))
    scene.let_go()
    wait_until(lambda: len(scene.lines("end")) >= 2, "the handlers have ended")
    wait_until(lambda: scene.lines("store_lost"), "the worker has noticed")
    check(worker.alive(), f"the worker gave up: {worker.said()}")
    disk.make_room()
    revive()
    scene.trigger_all("after", 100)
    scene.await_all_finished()
    starts = [run for _, run, _ in scene.lines("start")]
    check(all(starts.count(run) == 1 for run in large), "a result was lost: its handler was begun again")
    check(worker.stop() == 0, f"the worker failed: {worker.said()}")
    scene.audit()


def sqlite_without_room(directory):
    with SmallDisk(directory, 12) as disk, Scene(directory, "sqlite", Sqlite(disk.path)) as scene:
        work_goes_on_after_room_is_made(scene, disk)


def a_new_sqlite_file_without_room(directory):
    with SmallDisk(directory, 1) as disk:
        disk.fill()
        done = run_program("migrate", "--store", f"sqlite:{disk.path}/new.db", "--json", expect=5)
        check_is_full(done)


def postgres_without_room_for_tables(directory):
    with SmallDisk(directory, 40) as disk, Scene(directory, "postgres", PostgresOnSmallTables(directory, disk)) as scene:
        work_goes_on_after_room_is_made(scene, disk)


class PostgresOnSmallTables(Postgres):
    """The log of changes elsewhere, the tables on the small disk."""

    def __init__(self, directory, disk):
        super().__init__(directory)
        tables = disk.path / "tables"
        tables.mkdir()
        if self.identity:
            os.chown(tables, self.identity["user"], self.identity["group"])
        try:
            self.ask(f"CREATE TABLESPACE small LOCATION '{tables}'")
            self.ask("CREATE DATABASE small TABLESPACE small")
        except BaseException:
            self.close()
            raise
        self.url = self.direct = self.url.replace("@/postgres?", "@/small?")


def postgres_without_any_room(directory):
    """Without room for its log the server stops itself; it is started again when there is room."""
    with SmallDisk(directory, 100) as disk:
        data = disk.path / "data"
        data.mkdir(mode=0o700)
        store = PostgresOnSmallDisk(directory, data)
        with Scene(directory, "postgres", store) as scene:
            work_goes_on_after_room_is_made(scene, disk, revive=store.revive, full=lambda answer: None)


class PostgresOnSmallDisk(Postgres):
    def __init__(self, directory, data):
        identity = server_identity()
        if identity:
            os.chown(data, identity["user"], identity["group"])
        super().__init__(directory, data, settings=("min_wal_size=2MB", "max_wal_size=8MB", "wal_recycle=off",
                                                    "wal_init_zero=off"))

    def revive(self):
        """It recovers by itself, or, when that failed for want of room, it is started again."""
        wait_until(self.started, "PostgreSQL is back", 60)


def main():
    runner = Runner(sys.argv[1:])
    runner.case("SQLite on a full disk: store_full, nothing lost, work goes on", sqlite_without_room)
    runner.case("a new SQLite file on a full disk: store_full", a_new_sqlite_file_without_room)
    runner.case("PostgreSQL without room for tables: store_full, nothing lost, work goes on",
                postgres_without_room_for_tables)
    runner.case("PostgreSQL without any room: nothing lost, work goes on", postgres_without_any_room)
    runner.finish()


if __name__ == "__main__":
    main()

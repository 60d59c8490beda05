#!/usr/bin/env python3
"""Backups as docs/backup.md tells to make them: taken while runs are triggered and worked on, restored elsewhere. What
was accepted before the backup is there, what had not ended ends there, and journal and state agree. F16.

usage: backup.py sqlite|postgres [--only NAME]
"""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crash"))

from processes import TOOLS, Skipped, check, run_program, wait_until  # noqa: E402
from runner import Runner  # noqa: E402
from scene import QUICK, Scene  # noqa: E402
from stores import Postgres, Sqlite, free_port, newest_bin_dir, server_identity  # noqa: E402

RUNNER = Runner(sys.argv)
KIND = sys.argv[1]


class Restored(Postgres):
    """A server on a data directory that was restored."""

    def __init__(self, directory, data, settings=()):  # pylint: disable=super-init-not-called
        self.directory = directory / "restored-server"
        self.directory.mkdir()
        self.data, self.settings, self.bin = data, settings, newest_bin_dir()
        self.identity = server_identity()
        if self.identity:
            os.chown(self.directory, self.identity["user"], self.identity["group"])
        self.port = free_port()
        self.url = self.direct = f"postgres://postgres@/postgres?host={self.directory}&port={self.port}"
        self.start()


def server_folder(store, path):
    """A folder that the server's user may write to."""
    path.mkdir()
    if store.identity:
        os.chown(path, store.identity["user"], store.identity["group"])
    path.chmod(0o700)
    return path


def run(*argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=120, check=False)
    check(done.returncode == 0, f"{argv[0]}: {done.stderr}")


def sqlite3_cli(path, command):
    if not shutil.which("sqlite3"):
        raise Skipped("sqlite3 is not installed")
    run("sqlite3", path, ".timeout 60000", command)


# ---- The ways ----

def vacuum_into(scene):
    copy = Sqlite(scene.directory, "copy.db")
    sqlite3_cli(scene.store.path, f"VACUUM INTO '{copy.path}'")
    return copy


def dot_backup(scene):
    copy = Sqlite(scene.directory, "copy.db")
    sqlite3_cli(scene.store.path, f".backup '{copy.path}'")
    return copy


def the_files_of_a_stopped_store(scene):
    """The workers were killed, so the log is still there and belongs to the data."""
    for child in scene.children:
        child.kill()
    copy = Sqlite(scene.directory, "copy.db")
    for suffix in ("", "-wal"):
        path = pathlib.Path(f"{scene.store.path}{suffix}")
        if path.exists():
            shutil.copyfile(path, f"{copy.path}{suffix}")
    check(pathlib.Path(f"{copy.path}-wal").stat().st_size > 0, "there was nothing in the log to lose")
    return copy


def pg_dump(scene):
    store = scene.store
    folder = server_folder(store, scene.directory / "dump")
    store.run_tool("pg_dump", "--format=custom", f"--file={folder}/holdfast.dump", store.url)
    other = Postgres(folder_of(scene, "other"))
    raise_transaction_ids(other)
    other.run_tool("pg_restore", "--exit-on-error", "--dbname", other.url, folder / "holdfast.dump")
    return other


def raise_transaction_ids(server):
    """As docs/audit.md asks, so that no event of the new server falls into a block that was sealed on the old one."""
    server.stop()
    server.run_tool("pg_resetwal", "--epoch=1", "-D", server.data)
    server.start()


def folder_of(scene, name):
    path = scene.directory / name
    path.mkdir()
    path.chmod(0o755)
    return path


def base_backup(scene):
    folder = server_folder(scene.store, scene.directory / "base")
    scene.store.run_tool("pg_basebackup", "--pgdata", folder, "--checkpoint=fast", "--wal-method=stream", "--dbname",
                         scene.store.url.replace("/postgres?", "/?"))
    return Restored(scene.directory, folder)


def a_point_in_time(scene):
    """A base backup, then the archived log up to a moment at which more was accepted."""
    store = scene.store
    folder = server_folder(store, scene.directory / "base")
    store.run_tool("pg_basebackup", "--pgdata", folder, "--checkpoint=fast", "--wal-method=none", "--dbname",
                   store.url.replace("/postgres?", "/?"))
    scene.before = accepted_after(scene, len(scene.accepted()) + 50)
    (moment,), = store.ask("SELECT now()")
    later = accepted_after(scene, len(scene.accepted()) + 50)
    (last,), = store.ask("SELECT pg_walfile_name(pg_switch_wal())")
    archive = scene.directory / "archive"
    wait_until(lambda: store.ask("SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver")[0][0] >= last,
               f"the log up to {last} is archived")
    (folder / "recovery.signal").touch()
    if store.identity:
        os.chown(folder / "recovery.signal", store.identity["user"], store.identity["group"])
    restored = Restored(scene.directory, folder, (f"restore_command=cp {archive}/%f %p",
                                                  f"recovery_target_time={moment}", "recovery_target_action=promote"))
    wait_until(lambda: restored.ask("SELECT pg_is_in_recovery()")[0][0] == "f", "it is promoted")
    kept = {row[0] for row in restored.ask("SELECT uuid(id) FROM {run}")}
    check(any(run not in kept for run in later.values()), "it went beyond the moment")
    return restored


# ---- The play ----

def accepted_after(scene, count):
    wait_until(lambda: len(scene.accepted()) >= count, f"{count} runs are accepted")
    return scene.accepted()


def statuses(store):
    """Of the runs that were triggered here; the engine has some of its own, which never end."""
    return {row[0]: int(row[1]) for row in store.ask(
        "SELECT uuid(r.id), r.status FROM {run} r JOIN {workflow} w ON w.id = r.workflow_id WHERE w.name LIKE 'crash.%'")}


def check_restored(scene, copy, before):
    runs = statuses(copy)
    lost = [run for run in before.values() if run not in runs]
    check(not lost, f"{len(lost)} runs that were accepted before the backup are not in it")
    check(any(status < 4 for status in runs.values()), "there was nothing left to do: this proves nothing")
    folder = scene.directory / "elsewhere"
    folder.mkdir()
    other = Scene(folder, KIND, store=copy)
    try:
        check(subprocess.run([TOOLS / "crash_audit", copy.url], capture_output=True).returncode == 0,
              "the restored journal does not match the state")
        other.worker(threads=32)
        other.await_all_finished()
        other.audit_invariants()
        ended = sum(status == 4 for status in statuses(copy).values())
        check(ended == len(runs), f"{ended} of {len(runs)} have succeeded")
        run_program("--store", copy.url, "trigger", "crash.work", QUICK, "--wait=2m")
        run_program("--store", copy.url, "audit", "verify")
    finally:
        for child in other.children:
            child.kill()


def play(directory, method, store=None):
    with Scene(directory, KIND, store=store and store(directory)) as scene:
        scene.worker()
        # More than four threads can do, and what many can end soon.
        scene.trigger("load", "-c", 1000000, "-p", 40, "-i", '{"ms":100}')
        scene.before = accepted_after(scene, 200)
        copy = method(scene)
        for child in scene.children:
            child.kill()
        try:
            check_restored(scene, copy, scene.before)
        finally:
            copy.close()


def archiving(directory):
    archive = directory / "archive"
    archive.mkdir()
    identity = server_identity()
    if identity:
        os.chown(archive, identity["user"], identity["group"])
    return Postgres(directory, settings=("archive_mode=on", f"archive_command=cp %p {archive}/%f"))


if KIND == "sqlite":
    RUNNER.case("vacuum_into", play, vacuum_into)
    RUNNER.case("dot_backup", play, dot_backup)
    RUNNER.case("the_files_of_a_stopped_store", play, the_files_of_a_stopped_store)
else:
    RUNNER.case("pg_dump", play, pg_dump)
    RUNNER.case("base_backup", play, base_backup)
    RUNNER.case("a_point_in_time", play, a_point_in_time, archiving)
RUNNER.finish()

"""The stores that the tests break: a SQLite file, a PostgreSQL server of their own, a disk that can be filled."""

import atexit
import functools
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import uuid

from processes import PATIENCE, Process, Skipped, check, run_program, wait_until


MEMORY = os.environ.get("HOLDFAST_TEST_MEMORY") or None  # a directory whose files are kept there
PRISTINE_FILE = os.environ.get("HOLDFAST_TEST_PRISTINE_FILE")  # an SQLite store with the tables, which is copied


def make_database(like="template1"):
    base = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if not base:
        raise Skipped("HOLDFAST_TEST_POSTGRES is not set")
    name = "test_" + uuid.uuid4().hex[:12]
    create = f"CREATE DATABASE {name} TEMPLATE {like} STRATEGY file_copy"
    subprocess.run(["psql", "-XAtqc", create, base], check=True, capture_output=True)
    return name, re.sub(r"(postgres(?:ql)?://[^/]*/)[^?]*", rf"\g<1>{name}", base)


@functools.cache
def pristine_database():
    """One with the tables, which is only copied: to make them takes much longer. ./test has made one for all."""
    made = os.environ.get("HOLDFAST_TEST_PRISTINE")
    if made:
        return made
    name, url = make_database()
    run_program("--store", url, "migrate")
    return name


def make_store(kind, directory):
    """The URL of a fresh store. One with the tables is copied where there is one."""
    if kind == "sqlite":
        if PRISTINE_FILE:
            shutil.copyfile(PRISTINE_FILE, directory / "store.db")
        return f"sqlite:{directory}/store.db"
    return make_database(like=pristine_database())[1]


class Sqlite:
    kind = "sqlite"

    def __init__(self, directory, name="store.db"):
        self.path = directory / name
        self.url = self.direct = f"sqlite:{self.path}"

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
    """A server of its own, as its user, that flushes to disk like one in production. With tables, most of its files are in
    memory if there is a place, but not its log: hundreds that are made and removed again take a disk more than all the rest."""

    kind = "postgres"

    def __init__(self, directory, data=None, settings=(), tables=False, copied=True):
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
        self.direct = self.url  # for the tests' own questions, wherever the programs are led
        self.process = None
        if not copied:
            self.initdb()
        else:
            if tables and MEMORY:
                self.data.symlink_to(tempfile.mkdtemp(prefix="holdfast-crash-data-", dir=MEMORY))
            subprocess.run(["cp", "-a", f"{pristine_data(tables)}/.", self.data], check=True)
            if self.data.is_symlink():
                self.keep_log()
        self.start()

    def keep_log(self):
        """On the disk."""
        log, kept = self.data / "pg_wal", self.directory / "log"
        subprocess.run(["cp", "-a", log, kept], check=True)
        shutil.rmtree(log)
        log.symlink_to(kept)

    def initdb(self):
        self.run_tool("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
                      "--no-sync", "--wal-segsize=1")

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
            self.run_tool("psql", "-XAtqc", "SELECT 1", self.direct)
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
        answer = wait_until(lambda: self.ask_once(sql), f"an answer to {sql}")
        return [tuple(line.split("\x1f")) for line in answer.stdout.splitlines()]

    def ask_once(self, sql):
        try:
            return self.run_tool("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-F", "\x1f", "-c", sql, self.direct)
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


@functools.cache
def pristine_data(tables):
    """The data of a server that nobody uses: to make it, and its tables, takes much longer than to copy it."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-crash-", dir=MEMORY))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    server = Postgres(directory, copied=tables)
    if tables:
        run_program("--store", server.url, "migrate")
    else:  # a third of all there is
        server.ask("UPDATE pg_database SET datistemplate = false WHERE datname = 'template0'")
        server.ask("DROP DATABASE template0")
    server.stop()
    return server.data


def newest_bin_dir():
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not found:
        raise Skipped("there is no PostgreSQL server in /usr/lib/postgresql")
    return found[-1]


def unprivileged(*names):
    """Options that run a child as the first of these users that exists."""
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
    """Not one of those that the system gives to connections: it might, before the port is used."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def new_store(kind, directory):
    return Sqlite(directory) if kind == "sqlite" else Postgres(directory, tables=True)


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

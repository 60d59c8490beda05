#!/usr/bin/env python3
"""Runs what a Markdown page shows, and fails if it does not work as shown.

usage: run_examples.py PAGE

The fenced blocks of a page are taken in order, in one temporary directory and one shell:

    ```sh           commands; each must succeed (`|| echo "exit code $?"` shows one that should not)
    ```sh postgres  the same, skipped without HOLDFAST_TEST_POSTGRES; libpq's variables lead to that server
    ```sh node      the same, skipped where node is missing or old
    ```output       what the block before printed on stdout; … stands for any text, alone in a line for any lines
    ```c NAME       a part of the file NAME (also python, javascript); parts are put together before the next commands run
    ```c            a fragment: must compile after the public headers

Any other tag (text, console, ...) is only shown. The folders clients and examples are those of the source tree. What was started in the background is stopped at the end.
HOLDFAST names the program, HOLDFAST_SOURCE and HOLDFAST_BUILD the two trees, HOLDFAST_CC the compiler.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "~~~ end of block {} ~~~"
PRELUDE = "#include <holdfast/holdfast.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
STRICT = ["-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
TIME_LIMIT = int(os.environ.get("DOCS_TIME_LIMIT", "120"))


class Broken(Exception):
    pass


def blocks(page):
    """Yields (line number, words of the tag, text)."""
    text = page.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        yield text.count("\n", 0, fence.start()) + 1, fence[1].split() or [""], fence[2]


def matches(expected, printed):
    """Whether the output is as shown; blanks at the ends of lines do not count."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip() + "\n") is not None


def environment(folder):
    source, build = Path(os.environ["HOLDFAST_SOURCE"]), Path(os.environ["HOLDFAST_BUILD"])
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("HOLDFAST_", "PG", "WORKER_")) and name != "NO_COLOR"}
    bin_dir = folder / ".bin"
    bin_dir.mkdir()
    (bin_dir / "holdfast").symlink_to(os.environ["HOLDFAST"])
    (bin_dir / "cc").symlink_to(shutil.which(os.environ.get("HOLDFAST_CC", "cc")))
    for name in ("clients", "examples"):
        (folder / name).symlink_to(source / name)
    env.update(PATH=f"{bin_dir}:{env['PATH']}", HOME=str(folder), LC_ALL="C.UTF-8", HOLDFAST_ACTOR="kim",
               PKG_CONFIG_PATH=str(build / "meson-uninstalled"), LD_LIBRARY_PATH=str(build / "src"))
    server = os.environ.get("HOLDFAST_TEST_POSTGRES")
    if server:
        url = urlsplit(server)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        env["PGHOST"] = asked.get("host") or url.hostname or "localhost"
        env["PGPORT"] = asked.get("port") or str(url.port or 5432)
        env["PGUSER"] = url.username or "postgres"
        if url.password:
            env["PGPASSWORD"] = url.password
    return env, source


def compile_fragment(line, text, source):
    command = [os.environ.get("HOLDFAST_CC", "cc"), *STRICT, "-Wno-unused-function", "-fsyntax-only",
               "-I", str(source / "include"), "-x", "c", "-"]
    done = subprocess.run(command, input=PRELUDE + text, capture_output=True, text=True)
    if done.returncode != 0:
        raise Broken(f"line {line}: the fragment does not compile\n{done.stderr}")


def has_node(source):
    return subprocess.run([source / "tools/has_node.sh"]).returncode == 0


class Page:
    """One page's commands as one script, with a mark after each block."""

    def __init__(self, path, folder):
        self.folder = folder
        self.env, source = environment(folder)
        self.missing = {name for name, there in (("postgres", os.environ.get("HOLDFAST_TEST_POSTGRES")),
                                                 ("node", has_node(source))) if not there}
        self.script = ["set -euo pipefail\n"]
        self.runs = []      # (line, text) of each block that is run
        self.expected = {}  # index of a run: what it prints
        self.databases = set()
        self.skipped = 0
        self.read(path, source)

    def read(self, path, source):
        last_ran = False
        for line, tag, text in blocks(path):
            if tag[0] == "sh":
                last_ran = not self.missing & set(tag)
                if last_ran:
                    self.add_commands(line, text)
                self.skipped += not last_ran
            elif tag[0] == "output" and last_ran:
                self.expected[len(self.runs) - 1] = text
            elif tag[0] in ("c", "python", "javascript") and len(tag) > 1:
                self.add_part(tag[1], text)
            elif tag[0] == "c":
                compile_fragment(line, text, source)

    def add_commands(self, line, text):
        self.databases |= set(re.findall(r"\bcreatedb (\w+)", text))
        self.script.append(f"{text}\nprintf '\\n%s\\n' '{MARK.format(len(self.runs))}'\n")
        self.runs.append((line, text))

    def add_part(self, name, text):
        part = self.folder / f".part-{len(self.script)}-{len(text)}"
        part.write_text(text, encoding="utf-8")
        self.script.append(f"cat {part} >>{name}\n")

    def drop_databases(self):
        for name in self.databases:
            subprocess.run(["dropdb", "--if-exists", "--force", name], env=self.env, capture_output=True)

    def play(self):
        """The shell's stdout, its stderr and its exit code."""
        with open(self.folder / ".stdout", "w+") as out, open(self.folder / ".stderr", "w+") as err:
            shell = subprocess.Popen(["bash", "-c", "".join(self.script)], cwd=self.folder, env=self.env,
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            try:
                code = shell.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                code = f"none: it took longer than {TIME_LIMIT} s"
            finally:
                stop_session(shell)
            out.seek(0)
            err.seek(0)
            return out.read(), err.read(), code

    def check(self):
        self.drop_databases()
        try:
            printed, complaints, code = self.play()
        finally:
            self.drop_databases()
        for i, (line, text) in enumerate(self.runs):
            output, mark, printed = printed.partition(f"\n{MARK.format(i)}\n")
            if not mark:
                raise Broken(f"line {line}: failed, exit code {code}\n{text}\nstdout:\n{output}\nstderr:\n{complaints}")
            if i in self.expected and not matches(self.expected[i], output):
                raise Broken(f"line {line}: printed something else\n{text}\nshown:\n{self.expected[i]}\n"
                             f"printed:\n{output}\nstderr:\n{complaints}")


def session_of(shell):
    """All processes that the shell started; a handler's program is in a process group of its own."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == shell.pid and state != "Z":
            yield int(stat.parent.name)


def stop_session(shell):
    """Workers in the background get a moment to stop by themselves."""
    for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        for pid in session_of(shell):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        until = time.monotonic() + patience
        while any(session_of(shell)) and time.monotonic() < until:
            shell.poll()
            time.sleep(0.05)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    path = Path(sys.argv[1])
    folder = Path(tempfile.mkdtemp(prefix="holdfast-docs-"))
    try:
        page = Page(path, folder)
        page.check()
    except Broken as broken:
        print(f"{path}: {broken}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    skipped = f", {page.skipped} skipped without {' and '.join(sorted(page.missing))}" if page.skipped else ""
    print(f"{path}: {len(page.runs)} blocks run, {len(page.expected)} outputs compared{skipped}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

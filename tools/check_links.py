#!/usr/bin/env python3
"""Fails if a Markdown file links to a file or heading of this repository that does not exist, or if it, a source or a
header names a file that does not: docs/journal.md, worker/turn.c, but not docs/NAME.md.

usage: check_links.py ROOT
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
PATH = re.compile(r"(?<![\w/.:-])((?:[\w-]+/)+[\w-]*[a-z][\w-]*\.(?:md|c|h|py|sql|mjs|sh|bats))\b")
FOLDERS = ("", "src", "include", "tests")  # that the names of files are relative to
IGNORED = {".git", "build", "node_modules", "holdfast-data"}


def prose(path):
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """GitHub's anchors: lower case, punctuation dropped, spaces as dashes."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in HEADING.findall(prose(path))}


def mistakes(path, root):
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path if not name else (root / name[1:] if name.startswith("/") else path.parent / name)
        if not file.exists():
            yield f"{path}: no such file: {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{path}: no such heading: {target}"


def lost(path, root):
    """What is named and not there. A folder that we do not have, either, is somebody else's."""
    places = [path.parent, *(root / folder for folder in FOLDERS)]
    text = prose(path) if path.suffix == ".md" else path.read_text(encoding="utf-8")
    for name in PATH.findall(text):
        if any((place / name).exists() for place in places):
            continue
        if any((place / Path(name).parts[0]).is_dir() for place in places):
            yield f"{path}: no such file: {name}"


def files(root, pattern):
    return [path for path in sorted(root.rglob(pattern)) if not IGNORED & set(path.relative_to(root).parts)]


def main():
    root = Path(sys.argv[1])
    found = [mistake for path in files(root, "*.md") for mistake in mistakes(path, root)]
    found += [mistake for folder, pattern in (("", "*.md"), ("src", "*.[ch]"), ("include", "*.h"))
              for path in files(root / folder, pattern) for mistake in lost(path, root)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

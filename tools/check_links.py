#!/usr/bin/env python3
"""Fails if a Markdown file links to a file or heading of this repository that does not exist.

usage: check_links.py ROOT
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
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


def main():
    root = Path(sys.argv[1])
    found = [mistake for path in sorted(root.rglob("*.md")) if not IGNORED & set(path.relative_to(root).parts)
             for mistake in mistakes(path, root)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

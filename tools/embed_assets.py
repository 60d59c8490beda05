#!/usr/bin/env python3
"""Turns the dashboard's files into a C table of gzip'ed bytes.

usage: embed_assets.py DASHBOARD_DIR OUT_FILE [--depfile FILE]

Scripts and styles are served below /assets/VERSION/, where VERSION is a hash over all of them: a browser may keep them for
ever, and a new program has new addresses. index.html speaks of "/assets/...", and gets the version here.
"""

import argparse
import gzip
import hashlib
import sys
from pathlib import Path

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PAGE = "index.html"


def read_files(root):
    files = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            if path.suffix not in TYPES:
                raise SystemExit(f"{path}: a file of this kind is not served")
            files[path.relative_to(root).as_posix()] = path.read_bytes()
    if PAGE not in files:
        raise SystemExit(f"{root}: there is no {PAGE}")
    return files


def version_of(files):
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(name.encode() + b"\0" + len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:12]


def c_bytes(data):
    lines = (", ".join(str(byte) for byte in data[i : i + 24]) for i in range(0, len(data), 24))
    return ",\n    ".join(lines)


def c_table(files, version):
    arrays, rows = [], []
    for number, (name, data) in enumerate(files.items()):
        if name == PAGE:
            data = data.replace(b'"/assets/', b'"/assets/' + version.encode() + b"/")
        packed = gzip.compress(data, 9, mtime=0)
        etag = hashlib.sha256(data).hexdigest()[:16]
        arrays.append(f"static const unsigned char bytes_{number}[] = {{\n    {c_bytes(packed)}\n}};\n")
        rows.append(
            f'    {{ "{name}", "{TYPES[Path(name).suffix]}", bytes_{number}, sizeof bytes_{number}, '
            f'"W/\\"{etag}\\"" }},\n'
        )
    return (
        "/* Made by tools/embed_assets.py. */\n"
        '#include "server/assets.h"\n\n'
        + "\n".join(arrays)
        + f'\nconst char hf__assets_version[] = "{version}";\n\n'
        + "const struct hf__asset hf__assets[] = {\n"
        + "".join(rows)
        + "    { 0 },\n};\n"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--depfile", type=Path)
    args = parser.parse_args()
    files = read_files(args.root)
    args.out.write_text(c_table(files, version_of(files)))
    if args.depfile:
        # The folders too: a new file changes its folder.
        read = [args.root] + [path for path in sorted(args.root.rglob("*"))]
        args.depfile.write_text(f"{args.out}: {' '.join(str(path) for path in read)}\n")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Fails if C code under the given folders holds SQL: it belongs into .sql files. Fails if a named statement there
changes, replaces or removes lines of the journal, or removes runs, other than in purge.sql: on SQLite the engine's own
connections are not held back by the triggers that refuse it to others. A piece may not do so even there: any statement
can include it.

usage: check_sql.py FOLDER...
"""

import re
import sys
from pathlib import Path

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
SQL = re.compile(r"\b(SELECT\s|INSERT\s+INTO\b|UPDATE\s+\w+\s+SET\b|DELETE\s+FROM\b|CREATE\s+(TABLE|INDEX)\b|"
                 r"ALTER\s+TABLE\b|BEGIN\s+IMMEDIATE\b|PRAGMA\s)")


REWRITES = re.compile(r"\bUPDATE\s+(holdfast\.)?event\b|\bREPLACE\s+INTO\b|\bOR\s+REPLACE\s+INTO\b|"
                      r"\bDELETE\s+FROM\s+(holdfast\.)?(event|run)\b", re.I)


def rewrites_of(folder):
    for path in sorted(Path(folder).rglob("*.sql")):
        if path.parent.name == "migrate":
            continue
        allowed = path.name == "purge.sql"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith(("-- name:", "-- piece:")):
                allowed = path.name == "purge.sql" and line.startswith("-- name:")
            elif not allowed and not line.startswith("--") and REWRITES.search(line):
                yield f"{path}:{number}: the journal is append-only, and runs are removed by purge.sql alone"


def main():
    found = 0
    for folder in sys.argv[1:]:
        for rewrite in rewrites_of(folder):
            print(rewrite)
            found += 1
        for path in sorted(Path(folder).rglob("*.[ch]")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if any(SQL.search(text) for text in STRING.findall(line)):
                    print(f"{path}:{number}: SQL in C; give it a name in src/store/sql")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

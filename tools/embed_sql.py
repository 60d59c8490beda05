#!/usr/bin/env python3
"""Turns the named SQL statements of both dialects into C tables.

usage: embed_sql.py SQL_DIR OUT_DIR [--depfile FILE]

SQL_DIR holds postgres/*.sql and sqlite/*.sql with named statements, and {postgres,sqlite}/migrate/NNN_name.sql.
OUT_DIR receives statements.h, statements_postgres.c and statements_sqlite.c.

A statement looks like this and lasts until the next `-- name:`:

    -- name: extend_leases
    -- Prolongs the leases that this worker still holds.
    -- takes: rows (tenant int, id uuid, version int)
    -- gives: (id uuid)
    UPDATE ...;

`takes:` is `nothing`, `one (...)` or `rows (...)`; `gives:` is `nothing` or `(...)`; a list may wrap over several
comment lines. Both dialects must have the same names with the same takes and gives, so that the code above the drivers
never asks which database it talks to; `-- only: postgres` (or sqlite) marks the exceptions.

What several statements of a dialect share is a piece. It is headed by a sentence as well, lasts as long, and takes the
place of every line that includes it, in statements and in other pieces, indented as that line is:

    -- piece: not_deleted
    -- Leaves out what was deleted.
    AND r.deleted_at IS NULL

    -- include: not_deleted
"""

import argparse
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

DIALECTS = ("postgres", "sqlite")
TYPES = {"int": "HF__INT", "bigint": "HF__BIG", "text": "HF__TEXT", "uuid": "HF__UUID", "bool": "HF__BOOL"}
TAKES = {"nothing": "HF__TAKES_NOTHING", "one": "HF__TAKES_ONE", "rows": "HF__TAKES_ROWS"}
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")
FIELD = re.compile(r"(name|takes|gives|only):\s*(.*)")
PIECE = re.compile(r"piece:\s*(.*)")
INCLUDE = re.compile(r"( *)-- include:\s*(.*)")
PLACEHOLDER = {"postgres": re.compile(r"\$(\d+)"), "sqlite": re.compile(r"\?(\d+)")}
MIGRATION = re.compile(r"(\d{3})_([a-z0-9_]+)\.sql")


class Mistake(Exception):
    def __init__(self, where, message):
        super().__init__(f"{where}: {message}")


@dataclass
class Statement:
    name: str
    where: str  # file:line of its `-- name:`
    takes: str = ""
    params: list = field(default_factory=list)  # (name, type)
    columns: list = field(default_factory=list)
    gives_seen: bool = False
    only: str = ""
    sql: str = ""


@dataclass
class Piece:
    name: str
    where: str  # file:line of its `-- piece:`
    sql: str = ""
    included: bool = False


def parse_list(text, where):
    """`(id uuid, ok bool)` -> [("id", "uuid"), ("ok", "bool")]"""
    if not (text.startswith("(") and text.endswith(")")):
        raise Mistake(where, f"expected a list such as (id uuid, ok bool), found '{text}'")
    pairs = []
    for item in text[1:-1].split(","):
        words = item.split()
        if len(words) != 2 or not IDENTIFIER.fullmatch(words[0]):
            raise Mistake(where, f"expected 'name type', found '{item.strip()}'")
        if words[1] not in TYPES:
            raise Mistake(where, f"unknown type '{words[1]}'; the types are {', '.join(TYPES)}")
        if words[0] in (name for name, _ in pairs):
            raise Mistake(where, f"'{words[0]}' appears twice in one list")
        pairs.append((words[0], words[1]))
    return pairs


def set_takes(statement, text, where):
    if statement.takes:
        raise Mistake(where, f"'{statement.name}' has two takes: lines")
    kind, _, rest = text.partition(" ")
    if kind not in TAKES or (kind == "nothing" and rest):
        raise Mistake(where, f"takes: must be 'nothing', 'one (...)' or 'rows (...)', found '{text}'")
    statement.takes = kind
    if kind != "nothing":
        statement.params = parse_list(rest.strip(), where)


def set_gives(statement, text, where):
    if statement.gives_seen:
        raise Mistake(where, f"'{statement.name}' has two gives: lines")
    statement.gives_seen = True
    if text != "nothing":
        statement.columns = parse_list(text, where)


def set_only(statement, text, where, dialect):
    if text not in DIALECTS:
        raise Mistake(where, f"only: must be one of {', '.join(DIALECTS)}, found '{text}'")
    if text != dialect:
        raise Mistake(where, f"'{statement.name}' is only for {text}, but stands in the {dialect} folder")
    statement.only = text


def comment_of(line):
    """The text of a line that is nothing but a comment, else None."""
    stripped = line.strip()
    return stripped[2:].strip() if stripped.startswith("--") else None


def remark_of(line):
    """As comment_of, but what includes a piece is no remark."""
    return None if INCLUDE.fullmatch(line.rstrip()) else comment_of(line)


def checked_name(text, where):
    if not IDENTIFIER.fullmatch(text):
        raise Mistake(where, f"a name is lower case letters, digits and underscores, found '{text}'")
    return text


def joined_field(lines, index, text):
    """A list that wraps goes on over the next comment lines until its parenthesis closes."""
    while "(" in text and ")" not in text and index + 1 < len(lines):
        more = comment_of(lines[index + 1])
        if more is None or FIELD.match(more):
            break
        text = f"{text} {more}"
        index += 1
    return text.strip(), index


def parse_header(lines, index, path, dialect):
    """Reads the comment block that starts with `-- name:`; returns the statement and the index of its first SQL line."""
    statement = None
    while index < len(lines) and (comment := remark_of(lines[index])) is not None:
        where = f"{path}:{index + 1}"
        match = FIELD.match(comment)
        if match and match[1] == "name":
            if statement:
                raise Mistake(statement.where, f"'{statement.name}' has no SQL")
            statement = Statement(checked_name(match[2], where), where)
        elif match:
            text, index = joined_field(lines, index, match[2])
            if match[1] == "takes":
                set_takes(statement, text, where)
            elif match[1] == "gives":
                set_gives(statement, text, where)
            else:
                set_only(statement, text, where, dialect)
        index += 1
    if not statement.takes:
        raise Mistake(statement.where, f"'{statement.name}' has no takes: line")
    if not statement.gives_seen:
        raise Mistake(statement.where, f"'{statement.name}' has no gives: line")
    return statement, index


def parse_piece(lines, index, path):
    """As parse_header, of a piece: sentences are all that follows its name."""
    where = f"{path}:{index + 1}"
    piece = Piece(checked_name(PIECE.match(comment_of(lines[index]))[1], where), where)
    while (index := index + 1) < len(lines) and (comment := remark_of(lines[index])) is not None:
        if FIELD.match(comment):
            raise Mistake(f"{path}:{index + 1}", f"a piece has no such line: '{comment}'")
    return piece, index


def starts_piece(line):
    comment = comment_of(line)
    return comment is not None and PIECE.match(comment) is not None


def starts_entry(line):
    comment = comment_of(line)
    return starts_piece(line) or (comment is not None and comment.startswith("name:"))


def parse_body(lines, index):
    body = []
    while index < len(lines) and not starts_entry(lines[index]):
        body.append(lines[index].rstrip())
        index += 1
    while body and (not body[-1] or remark_of(body[-1]) is not None):
        body.pop()
    while body and not body[0]:
        body.pop(0)
    return "\n".join(body), index


def check_body(statement, dialect):
    if not statement.sql.endswith(";"):
        raise Mistake(statement.where, f"the SQL of '{statement.name}' does not end with a semicolon")
    highest = max((int(n) for n in PLACEHOLDER[dialect].findall(statement.sql)), default=0)
    if highest > len(statement.params):
        raise Mistake(statement.where,
                      f"'{statement.name}' uses parameter {highest}, but takes: names {len(statement.params)}")


def expanded(sql, pieces, where, within=()):
    """The SQL with its pieces; `within` are the names of those that it is in itself."""
    lines = []
    for line in sql.split("\n"):
        match = INCLUDE.fullmatch(line)
        if not match:
            lines.append(line)
            continue
        piece = pieces.get(match[2])
        if not piece:
            raise Mistake(where, f"there is no piece '{match[2]}' to include")
        if piece.name in within:
            raise Mistake(where, f"the piece '{piece.name}' includes itself")
        piece.included = True
        inner = expanded(piece.sql, pieces, piece.where, (*within, piece.name))
        lines += [match[1] + text if text else text for text in inner.split("\n")]
    return "\n".join(lines)


def parse_file(path, dialect):
    """The statements and the pieces of a file, with their SQL as it stands there."""
    lines = path.read_text(encoding="utf-8").splitlines()
    index = 0
    while index < len(lines) and not starts_entry(lines[index]):
        if lines[index].strip() and comment_of(lines[index]) is None:
            raise Mistake(f"{path}:{index + 1}", "SQL before the first '-- name:'")
        index += 1
    entries = []
    while index < len(lines):
        if starts_piece(lines[index]):
            entry, index = parse_piece(lines, index, path)
        else:
            entry, index = parse_header(lines, index, path, dialect)
        entry.sql, index = parse_body(lines, index)
        if not entry.sql:
            raise Mistake(entry.where, f"'{entry.name}' has no SQL")
        entries.append(entry)
    return entries


def read_dialect(folder, dialect):
    """All statements by name, with their pieces in place."""
    statements, pieces = {}, {}
    for path in sorted(folder.glob("*.sql")):
        for entry in parse_file(path, dialect):
            found = pieces if isinstance(entry, Piece) else statements
            if entry.name in found:
                raise Mistake(entry.where, f"the name '{entry.name}' was used before at {found[entry.name].where}")
            found[entry.name] = entry
    for statement in statements.values():
        statement.sql = expanded(statement.sql, pieces, statement.where)
        check_body(statement, dialect)
    for piece in pieces.values():
        if not piece.included:
            raise Mistake(piece.where, f"no statement includes the piece '{piece.name}'")
    return statements


def spell(statement, what):
    pairs = statement.params if what == "takes" else statement.columns
    text = "(" + ", ".join(f"{name} {kind}" for name, kind in pairs) + ")" if pairs else "nothing"
    return f"{statement.takes} {text}" if what == "takes" and pairs else text


def check_pair(mine, other, other_dialect):
    for what in ("takes", "gives"):
        if spell(mine, what) != spell(other, what):
            raise Mistake(other.where, f"'{other.name}' {what} {spell(other, what)}, "
                                       f"but {spell(mine, what)} at {mine.where}")
    if mine.only or other.only:
        marked = mine if mine.only else other
        raise Mistake(marked.where, f"'{marked.name}' is marked only: {marked.only}, but both dialects have it")


def merge(by_dialect):
    """The names in the order of the enum: as PostgreSQL's files have them, then what only SQLite has."""
    names = list(by_dialect["postgres"])
    names += [name for name in by_dialect["sqlite"] if name not in by_dialect["postgres"]]
    for name in names:
        present = [dialect for dialect in DIALECTS if name in by_dialect[dialect]]
        first = by_dialect[present[0]][name]
        if len(present) == 2:
            check_pair(first, by_dialect[present[1]][name], present[1])
        elif first.only != present[0]:
            missing = DIALECTS[1 - DIALECTS.index(present[0])]
            raise Mistake(first.where, f"'{name}' is missing in {missing}; write it there, or mark it "
                                       f"'-- only: {present[0]}'")
    return names


def read_migrations(folder):
    migrations = []
    for path in sorted(folder.glob("*")):
        match = MIGRATION.fullmatch(path.name)
        if not match:
            raise Mistake(path, "a migration is named like 001_start.sql")
        version = int(match[1])
        if version != len(migrations) + 1:
            raise Mistake(path, f"expected migration {len(migrations) + 1:03}; they are numbered without gaps or repeats")
        migrations.append((version, match[2], path.read_text(encoding="utf-8").strip()))
    return migrations


def c_string(text, indent):
    """One literal per line. '?' is escaped because C17 still has trigraphs."""
    def escaped(line):
        out = []
        for byte in line.encode("utf-8"):
            char = chr(byte)
            if char in '"\\?':
                out.append("\\" + char)
            else:
                out.append(char if 32 <= byte < 127 else f"\\{byte:03o}")
        return "".join(out)

    lines = text.split("\n")
    ends = ["\\n"] * (len(lines) - 1) + [""]
    return "\n".join(f'{indent}"{escaped(line)}{end}"' for line, end in zip(lines, ends))


def header(names, migrations):
    lines = ["/* Made by tools/embed_sql.py from src/store/sql. */", "#ifndef HF__STATEMENTS_H",
             "#define HF__STATEMENTS_H", "", '#include "store/statement.h"', "", "enum hf__stmt {"]
    lines += [f"    HF__STMT_{name.upper()}," for name in names]
    lines += ["    HF__STMT_COUNT", "};", "", "enum {"]
    lines += [f"    HF__{dialect.upper()}_MIGRATION_COUNT = {len(migrations[dialect])}," for dialect in DIALECTS]
    lines += ["};", ""]
    for dialect in DIALECTS:
        lines.append(f"extern const struct hf__statement hf__{dialect}_statements[HF__STMT_COUNT];")
        lines.append(f"extern const struct hf__migration hf__{dialect}_migrations[];")
    lines += ["", "#endif", ""]
    return "\n".join(lines)


def statement_entry(statement, sql):
    """Returns the definitions that the entry needs, and the entry."""
    before, entry = [], [f"    [HF__STMT_{statement.name.upper()}] = {{", f'        .name = "{statement.name}",']
    if sql is not None:
        entry += ["        .sql =", c_string(sql, "            ") + ","]
    entry.append(f"        .takes = {TAKES[statement.takes]},")
    if statement.params:
        kinds = ", ".join(TYPES[kind] for _, kind in statement.params)
        before.append(f"static const unsigned char {statement.name}_params[] = {{ {kinds} }};")
        entry += [f"        .nparams = {len(statement.params)},", f"        .param_types = {statement.name}_params,"]
    if statement.columns:
        kinds = ", ".join(TYPES[kind] for _, kind in statement.columns)
        labels = ", ".join(f'"{name}"' for name, _ in statement.columns)
        before.append(f"static const unsigned char {statement.name}_columns[] = {{ {kinds} }};")
        before.append(f"static const char *const {statement.name}_labels[] = {{ {labels} }};")
        entry += [f"        .ncolumns = {len(statement.columns)},", f"        .column_types = {statement.name}_columns,",
                  f"        .column_names = {statement.name}_labels,"]
    entry.append("    },")
    return before, entry


def source(dialect, names, by_dialect, migrations):
    definitions, entries = [], []
    for name in names:
        own = by_dialect[dialect].get(name)
        other = by_dialect[DIALECTS[1 - DIALECTS.index(dialect)]].get(name)
        before, entry = statement_entry(own or other, own.sql if own else None)
        definitions += before
        entries += entry
    lines = ["/* Made by tools/embed_sql.py from src/store/sql. */", "#include <stddef.h>", "",
             '#include "store/statements.h"', ""]
    lines += definitions
    lines += ["", f"const struct hf__statement hf__{dialect}_statements[HF__STMT_COUNT] = {{"] + entries + ["};", ""]
    lines.append(f"const struct hf__migration hf__{dialect}_migrations[] = {{")
    for version, name, sql in migrations[dialect]:
        lines += [f'    {{ .version = {version}, .name = "{name}", .sql =', c_string(sql, "        "), "    },"]
    lines += ["    { .version = 0 },", "};", ""]
    return "\n".join(lines)


def write_if_changed(path, text):
    """Leaves an unchanged file alone, so that Ninja does not compile what depends on it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_depfile(path, target, sql_dir):
    """Depends on the folders too: a file that is added or removed must run this again."""
    needed = [str(sql_dir)]
    for folder, _, files in os.walk(sql_dir):
        needed.append(folder)
        needed += [os.path.join(folder, name) for name in files if name.endswith(".sql")]
    escaped = " ".join(name.replace(" ", "\\ ") for name in sorted(set(needed)))
    path.write_text(f"{target}: {escaped}\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Turns named SQL statements into C tables.")
    parser.add_argument("sql_dir", type=Path)
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--depfile", type=Path)
    args = parser.parse_args()
    try:
        by_dialect = {dialect: read_dialect(args.sql_dir / dialect, dialect) for dialect in DIALECTS}
        names = merge(by_dialect)
        migrations = {dialect: read_migrations(args.sql_dir / dialect / "migrate") for dialect in DIALECTS}
    except (Mistake, UnicodeDecodeError, OSError) as mistake:
        print(f"{mistake}", file=sys.stderr)
        return 1
    write_if_changed(args.out_dir / "statements.h", header(names, migrations))
    for dialect in DIALECTS:
        write_if_changed(args.out_dir / f"statements_{dialect}.c", source(dialect, names, by_dialect, migrations))
    if args.depfile:
        write_depfile(args.depfile, args.out_dir / "statements.h", args.sql_dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())

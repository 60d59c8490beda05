#!/usr/bin/env python3
"""Compares a journal with its seals, by nothing but what docs/audit.md says: a second opinion on `holdfast audit verify`.

usage: verify_seals.py FILE.db | postgres://...

Prints what does not hold and exits with 1. Reads PostgreSQL through psql.
"""

import hashlib
import json
import sqlite3
import subprocess
import sys

EVENT = "tenant_id, run_id, seq, version, position, at, kind, format, name, actor, step, data".split(", ")


def sqlite_rows(path, sql):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    for row in db.execute(sql.replace("PLACE", "position").replace("BOUND", "position")):
        row = dict(row)
        if isinstance(row.get("run_id"), bytes):
            text = row["run_id"].hex()
            row["run_id"] = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        yield row


def postgres_rows(url, sql):
    for word, meant in (("PLACE", "xid::text::bigint"), ("BOUND", "xid::text::bigint"), ("FROM ", "FROM holdfast.")):
        sql = sql.replace(word, meant)
    query = f"SELECT row_to_json(r) FROM ({sql}) r"
    psql = subprocess.run(["psql", "-XAtq", url, "-c", query], check=True, capture_output=True, text=True)
    yield from map(json.loads, psql.stdout.splitlines())


def event_digest(event):
    values = [None if event[name] is None else str(event[name]).encode() for name in EVENT]
    return hashlib.sha256(b"".join(b"-," if value is None else b"%d:%s," % (len(value), value) for value in values)).digest()


def hexadecimal(value):
    return "" if value is None else value.removeprefix("\\x")


def lines_of(events):
    runs = {}
    for event in events:
        runs.setdefault(event["run_id"], []).append(event)
    for run, mine in sorted(runs.items()):
        mine.sort(key=lambda event: event["seq"])
        digests = [event_digest(event) for event in mine]
        marks = " ".join(f"{event['seq']}:{digest.hex()[:8]}" for event, digest in zip(mine, digests))
        yield run, f"{mine[0]['tenant_id']} {run} {hashlib.sha256(b''.join(digests)).hexdigest()} {marks}"


def main(store):
    rows = postgres_rows if store.startswith("postgres") else sqlite_rows
    problems, previous, end = [], "", 0
    live = {row["run_id"] for row in rows(store, "SELECT id AS run_id FROM run")}
    events = sorted(rows(store, f"SELECT {', '.join(EVENT)}, PLACE AS place FROM event"), key=lambda e: e["place"])
    seals = rows(store, "SELECT block, lo_BOUND AS lo, hi_BOUND AS hi, events, hash, previous, runs, created_at "
                        "FROM seal ORDER BY block")
    for number, seal in enumerate(seals, 1):
        head = [seal[name] for name in ("block", "lo", "hi", "events", "created_at")]
        bytes_ = "\n".join(["holdfast-seal-1", *map(str, head), hexadecimal(seal["previous"]), seal["runs"]])
        chained = (seal["block"], seal["lo"], hexadecimal(seal["previous"])) == (number, end, previous)
        if not chained or hashlib.sha256(bytes_.encode()).hexdigest() != hexadecimal(seal["hash"]):
            problems.append(f"seal {seal['block']}")
        sealed = {line.split()[1]: line for line in seal["runs"].splitlines()}
        found = dict(lines_of(e for e in events if (number == 1 or e["place"] >= seal["lo"]) and e["place"] < seal["hi"]))
        for run in sealed.keys() | found.keys():
            if sealed.get(run) != found.get(run) and (run in live or run in found):
                problems.append(f"block {seal['block']}, run {run}")
        previous, end = hexadecimal(seal["hash"]), seal["hi"]
    print("\n".join(problems) or "good")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

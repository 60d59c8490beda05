"""Dead letters, which no request can make: they are written into the store."""

import json
import sqlite3
import subprocess
import uuid

ENVELOPE = {"id": "m-1", "type": "external", "name": "paid", "payload": "1"}


def add_letters(url, run, ids, envelope=None):
    text = json.dumps(envelope or ENVELOPE).replace("'", "''")
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:"), timeout=60) as store:
            for letter in ids:
                store.execute(insertion("dead_letter", "run", f"X'{uuid.UUID(letter).hex}'", f"X'{uuid.UUID(run).hex}'", text))
        return
    for letter in ids:
        sql = insertion("holdfast.dead_letter", "holdfast.run", f"'{letter}'", f"'{run}'", text)
        subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", url], input=sql, text=True, check=True, capture_output=True)


def insertion(letters, runs, letter, run, envelope):
    return (f"INSERT INTO {letters} (tenant_id, id, run_id, reason, envelope, created_at) "
            f"SELECT tenant_id, {letter}, id, 'poison', '{envelope}', 1 FROM {runs} WHERE id = {run}")


def add_letter(url, run):
    letter = str(uuid.uuid4())
    add_letters(url, run, [letter])
    return letter

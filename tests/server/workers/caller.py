"""Calls methods of the client in Python. usage: caller.py URL. Each line of stdin is [METHOD, ARGUMENTS, OPTIONS]; what the call
gives is a line of stdout, each item of many before a null. caller.mjs is the same in JavaScript."""

import inspect
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients" / "python"))

import holdfast  # noqa: E402

client = holdfast.Client(sys.argv[1], actor="kim")


def say(value):
    print(json.dumps(value), flush=True)


for line in sys.stdin:
    method, arguments, options = json.loads(line)
    try:
        given = getattr(client, method)(*arguments, **options)
        if inspect.isgenerator(given):
            for item in given:
                say(item)
            given = None
        say(given)
    except holdfast.HoldfastError as error:
        say({"refused": error.code})
    except TimeoutError:
        say({"refused": "timeout"})

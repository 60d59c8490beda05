#!/usr/bin/env python3
"""Calls one method of the client in Python. usage: caller.py URL METHOD ARGUMENTS OPTIONS, the last two as JSON. Prints what it
gives, one line of JSON for each item. caller.mjs is the same in JavaScript."""

import inspect
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "clients" / "python"))

import holdfast  # noqa: E402

url, method, arguments, options = sys.argv[1:]
client = holdfast.Client(url, token=os.environ.get("TOKEN"), actor=os.environ.get("ACTOR"))
try:
    given = getattr(client, method)(*json.loads(arguments), **json.loads(options))
    for item in given if inspect.isgenerator(given) else [given]:
        print(json.dumps(item), flush=True)
except holdfast.HoldfastError as error:
    print(json.dumps({"refused": error.code}))
except TimeoutError:
    print(json.dumps({"refused": "timeout"}))

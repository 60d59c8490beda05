"""An order: the card is charged once, a day later somebody approves, then each item is shipped by a run of its own.

    holdfast workflow create shop.order.v1
    holdfast serve &
    COOL_DOWN=5 python3 examples/python/order.py &
    id=$(holdfast trigger shop.order.v1 '{"sum": 30, "items": ["tea", "cup"]}' --quiet)
    holdfast signal "$id" approved '{"by": "ada"}'
    holdfast wait "$id"

HOLDFAST_URL names the server, HOLDFAST_TOKEN the token, COOL_DOWN the seconds between charge and approval (default: a day).
SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

from holdfast import ChildFailed, Client, PermanentError, WaitTimeout, Worker  # noqa: E402

client = Client(os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8420"), token=os.environ.get("HOLDFAST_TOKEN"))
worker = Worker(client)


def charge(sum, key):
    """A payment service that takes an idempotency key charges once, whatever happens between it and us."""
    return {"charged": sum, "key": key}


@worker.workflow("shop.order.v1")
def order(ctx, input):
    if input["sum"] <= 0:
        raise PermanentError("an order costs something", code="bad_sum")
    receipt = ctx.step("charge", lambda: charge(input["sum"], ctx.step_key), retries=5)
    ctx.progress(30, "charged")
    ctx.sleep("cool down", float(os.environ.get("COOL_DOWN", "86400")))
    try:
        approval = ctx.wait_signal("approved", timeout=7 * 86400)
    except WaitTimeout:
        ctx.step("refund", lambda: charge(-input["sum"], ctx.step_key), retries=5)
        return {"refunded": True}
    parcels = ctx.start_children("ship", [{"workflow": "shop.parcel.v1", "input": item} for item in input["items"]])
    ends = ctx.wait_children("shipped", parcels)
    for end in ends:
        if end.status != "succeeded":
            raise ChildFailed(end)
    ctx.emit("order.shipped", {"order": ctx.run_id})
    return {"receipt": receipt["charged"], "by": approval["by"], "parcels": [end.result for end in ends]}


@worker.workflow("shop.parcel.v1")
def parcel(ctx, item):
    return ctx.step("pack", lambda: f"{item} in a box")


if __name__ == "__main__":
    worker.run()

#!/bin/sh
# A handler in shell: charges a (pretended) card.
#
#   holdfast worker --exec 'billing.charge.v1=./charge.sh' &
#   holdfast trigger billing.charge.v1 '{"invoice":42}' --wait
#
# Input comes on stdin, the result goes to stdout. Exit 0: done; 75: try again later; 78: failed for good; anything else:
# failed, with the end of stderr as the error, and tried again by the workflow's policy. HOLDFAST_RUN_ID is the same in
# every attempt, so it is a good idempotency key for the bank.
set -eu

input=$(cat)
digit=$(printf %s "$HOLDFAST_RUN_ID" | tail -c 1)
sleep 0.1

case "$digit$HOLDFAST_ATTEMPT" in
    [01]1)
        echo "the bank is busy" >&2
        exit 75
        ;;
    f*)
        echo "card declined for $input" >&2
        exit 1
        ;;
esac

echo "{\"receipt\":\"$HOLDFAST_RUN_ID\",\"attempt\":$HOLDFAST_ATTEMPT}"

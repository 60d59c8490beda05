#!/usr/bin/env bash
# A durable script: an order is charged, waits to be packed, and is shipped.
#
#   holdfast worker --exec 'shop.delivery.v1=./deliver.sh' &
#   holdfast trigger shop.delivery.v1 '{"order":7}'
#   holdfast signal RUN packed '"kim"'
#
# Each step runs once, whatever is killed in between: the script starts again from the top, and finished steps give what
# they gave. While it sleeps or waits there is no process.
set -euo pipefail

input=$(cat)

holdfast progress 10 "charging"
receipt=$(holdfast step charge --retry 5 --timeout 10s -- sh -c 'sleep 0.1; echo "receipt for $HOLDFAST_STEP_KEY"')
holdfast sleep cool-down 2s

holdfast progress 50 "waiting to be packed"
if ! packer=$(holdfast wait packed --timeout 10s); then
    packer='"a robot"' # nobody said so in time
fi
label=$(holdfast step ship -- sh -c 'echo "label-$(echo "$HOLDFAST_RUN_ID" | tail -c 5)"')

printf '{"input":%s,"receipt":"%s","packed_by":%s,"label":"%s"}\n' "$input" "$receipt" "$packer" "$label"

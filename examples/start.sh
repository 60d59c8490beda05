#!/usr/bin/env bash
# A server, two workers in C and a stream of runs on one SQLite file. Ctrl-C stops them; started again, they go on where they ended.
#
#   examples/start.sh DIR     DIR holds the data; holdfast must be on PATH. HOLDFAST_LISTEN is where the server listens,
#                             default 127.0.0.1:8420
set -euo pipefail

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=$(realpath -m "${1:?usage: start.sh DIR}")
command -v holdfast >/dev/null || { echo "start.sh: put holdfast on PATH first, or use ./run" >&2; exit 1; }
programs=$(dirname "$(command -v holdfast)")/../../examples
started=()
most=1000 # runs that are counted

export HOLDFAST_STORE=sqlite:$data/shop.db
listen=${HOLDFAST_LISTEN:-127.0.0.1:8420}

some_live()
{
    kill -0 "${started[@]}" 2>/dev/null
}

# Ctrl-C has reached the workers too, and a second signal would hurry them: so they are only told if they do not stop.
stop_workers()
{
    trap - EXIT
    trap '' INT TERM
    echo
    echo "Stopping: what is running may end."
    for _ in {1..20}; do
        some_live || break
        sleep 0.1
    done
    kill -TERM "${started[@]}" 2>/dev/null || true
    wait "${started[@]}" 2>/dev/null || true
    echo "Stopped. Everything is in $data/shop.db"
    exit "$1"
}

# Ended runs are kept for a day, so that the file does not grow for ever.
create_workflows()
{
    holdfast workflow create media.thumbnail.v1 --max-attempts 4 --retention 1d -q
    holdfast workflow create billing.charge.v1 --max-attempts 3 --retry-base 1s --retention 1d -q
    holdfast workflow create shop.order.v1 --retention 1d -q
    holdfast workflow create shop.pack.v1 --retention 1d -q
    holdfast workflow create shop.delivery.v1 --retention 1d -q
    holdfast schedule create fee --every 30s --workflow billing.charge.v1 --input '{"invoice":"fee"}' --catch-up none -q
}

start_workers()
{
    "$programs/thumbnails" "$HOLDFAST_STORE" 2>"$data/thumbnails.log" &
    started+=($!)
    "$programs/order" "$HOLDFAST_STORE" 2>"$data/order.log" &
    started+=($!)
    holdfast serve --listen "$listen" --exec "billing.*=$examples/charge.sh" \
        --exec "shop.delivery.*=$examples/deliver.sh" >"$data/serve.out" 2>"$data/serve.log" &
    started+=($!)
}

say_why()
{
    cat "$data/serve.log" >&2
    if grep -q 'cannot listen' "$data/serve.log"; then
        echo "Something else listens on $listen: end it, or choose another place, as with HOLDFAST_LISTEN=127.0.0.1:9000" >&2
    fi
}

# The server says where it listens, or why it does not.
await_server()
{
    for _ in {1..100}; do
        [ ! -s "$data/serve.out" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || { say_why; return 1; }
        sleep 0.1
    done
}

say_what_to_try()
{
    cat <<TEXT

The dashboard and the API:  $(sed 's/Listening on //' "$data/serve.out")

At work, with their logs in $data:
  thumbnails (in C)   media.thumbnail.v1
  order (in C)        shop.order.v1, a durable function; every second order
                      waits for your approval: see Tasks on the dashboard
  the server itself   charge.sh for billing.*; for shop.delivery.* deliver.sh, a
                      durable script that waits for a signal

In another terminal, try:

  export HOLDFAST_STORE=$HOLDFAST_STORE
  holdfast list                          what there is, newest first
  holdfast list --status failed          the declined cards
  holdfast workflows                     the queues
  holdfast workers                       who is at work
  holdfast schedule list                 a fee that is charged by the clock

  holdfast task list                     the orders that wait for your approval
  holdfast task complete TASK approved   approve one; without it, the money goes
                                         back after ten minutes
  holdfast watch RUN                     one run, live
  holdfast get RUN                       all about it
  holdfast steps RUN                     what it remembers
  holdfast events RUN                    its journal
  holdfast cancel RUN --reason "changed my mind"
  holdfast retry RUN                     a failed one, again

  holdfast trigger billing.charge.v1 '{"invoice":7}' --wait
  holdfast trigger shop.delivery.v1 '{"order":7}' --key d-7
  holdfast signal shop.delivery.v1/d-7 packed '"me"'
                                         within ten seconds; else a robot does it

TEXT
}

trigger_some()
{
    holdfast trigger media.thumbnail.v1 "{\"image\":\"photo-$1.jpg\"}" -q >/dev/null
    holdfast trigger billing.charge.v1 "{\"invoice\":$1}" --subject "customer-$(($1 % 7))" -q >/dev/null
    (($1 % 5)) || holdfast trigger shop.delivery.v1 "{\"order\":$1}" -q >/dev/null
}

# The even ones are of regular customers, which need no approval.
order_one()
{
    local id input='{"items":3}'
    (($1 % 2)) || input='{"items":3,"regular":true}'
    id=$(holdfast trigger shop.order.v1 "$input" --subject "customer-$(($1 % 7))" -q)
    echo "          an order: holdfast events $id --follow"
}

# It is done every few seconds, and there are ever more: so not further than anybody wants to know.
count()
{
    local found
    found=$(holdfast list --status "$1" --limit "$most" --json -q "${@:2}" | wc -l)
    if ((found < most)); then echo "$found"; else echo "$most+"; fi
}

mkdir -p "$data"
create_workflows
rm -f "$data/serve.out"
start_workers
trap 'stop_workers $?' EXIT
trap 'stop_workers 0' INT TERM
await_server
say_what_to_try

for ((n = 1; ; n++)); do
    trigger_some "$n"
    ((n % 10 != 1)) || order_one $((n / 10))
    if ((n % 5 == 0)); then
        printf '%s  succeeded %s, failed %s, pending %s; orders that wait %s\n' "$(date +%T)" \
            "$(count succeeded)" "$(count failed)" "$(count pending)" \
            "$(count waiting --workflow shop.order.v1)"
    fi
    sleep 1 &
    wait $! || true
done

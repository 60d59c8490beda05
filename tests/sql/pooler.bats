# Holdfast behind pgbouncer in transaction mode, where no session belongs to anybody for longer than a transaction. F8.

bats_require_minimum_version 1.5.0

as_pooler()
{
    if [ "$(id -u)" -eq 0 ]; then runuser -u nobody -- "$@"; else "$@"; fi
}

start_pooler()
{
    local host port
    host=$(psql -AtqX "$HOLDFAST_TEST_POSTGRES" -c "SHOW unix_socket_directories")
    port=$(psql -AtqX "$HOLDFAST_TEST_POSTGRES" -c "SHOW port")
    pooler_dir=$(mktemp -d /tmp/holdfast-pooler.XXXXXX)
    chmod 777 "$pooler_dir"
    cat >"$pooler_dir/pgbouncer.ini" <<INI
[databases]
$database = host=$host port=$port user=postgres
[pgbouncer]
pool_mode = transaction
auth_type = any
unix_socket_dir = $pooler_dir
unix_socket_mode = 0777
listen_port = 6432
default_pool_size = 3
max_client_conn = 200
logfile = $pooler_dir/log
pidfile = $pooler_dir/pid
INI
    chmod 644 "$pooler_dir/pgbouncer.ini"
    as_pooler pgbouncer -q -d "$pooler_dir/pgbouncer.ini"
    pooled="postgres://postgres@/$database?host=$pooler_dir&port=6432"
    wait_until psql -AtqX "$pooled" -c "SELECT 1"
}

setup()
{
    [ -n "$HOLDFAST_TEST_POSTGRES" ] || skip "HOLDFAST_TEST_POSTGRES names no server"
    command -v pgbouncer >/dev/null || skip "pgbouncer is not installed"
    program=${HOLDFAST_BIN:-$HOLDFAST}
    unset HOLDFAST_TENANT WORKER_TYPE_PREFIXES
    export HOLDFAST_ACTOR=tester
    worker_pid=
    cd "$BATS_TEST_TMPDIR"
    database=holdfast_pooler_${BATS_TEST_NUMBER}_$$
    psql -qX "$HOLDFAST_TEST_POSTGRES" -c "CREATE DATABASE $database"
    start_pooler
}

teardown()
{
    [ -z "$worker_pid" ] || { kill -TERM "$worker_pid"; wait "$worker_pid"; } || true
    if [ -n "${pooler_dir:-}" ]; then
        [ ! -f "$pooler_dir/log" ] || tail -n 20 "$pooler_dir/log"
        kill "$(cat "$pooler_dir/pid")"
        rm -rf "$pooler_dir"
    fi
    [ -z "${database:-}" ] || psql -qX "$HOLDFAST_TEST_POSTGRES" -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
}

wait_until()
{
    local tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 400 ] || { echo "never happened: $*"; return 1; }
        sleep 0.05
    done
}

holdfast()
{
    "$program" "$@"
}

# The whole way of runs: registered, triggered one by one and by the hundred, claimed, committed, waited for, cancelled.
work_through_the_pooler()
{
    holdfast migrate -q
    printf '#!/bin/sh\nread n; echo $((n * 2))\n' >double.sh
    chmod +x double.sh
    holdfast workflow create double
    "$program" worker --poll 1s --exec 'double=./double.sh' 2>worker.log 3>&- &
    worker_pid=$!
    [ "$(holdfast trigger double 21 --wait=2m -q)" = 42 ]
    seq 1 200 | holdfast trigger double --lines - -q >/dev/null
    wait_until all_succeeded 201
    holdfast workflow create idle
    id=$(holdfast trigger idle 1 -q)
    holdfast signal "$id" hello
    holdfast cancel "$id" --reason enough
    [ "$(holdfast get "$id" --json | jq -r .status)" = cancelled ]
    [ "$(holdfast events "$id" --json | jq -rs 'map(.name) | join(" ")')" = "created hello cancelled" ]
}

all_succeeded()
{
    [ "$(psql -AtqX "$pooled" -c "SELECT count(*) FROM holdfast.runs WHERE status = 'succeeded' AND workflow = 'double'")" = "$1" ]
}

@test "all works with prepare=off" {
    export HOLDFAST_STORE="$pooled&prepare=off"
    work_through_the_pooler
    run ! grep -q "prepared statement" "$pooler_dir/log"
}

@test "who leaves at once leaves no answers to the next client" {
    export HOLDFAST_STORE="$pooled&prepare=off"
    holdfast migrate -q
    holdfast workflow create double
    holdfast workflow create other
    "$program" worker --poll 1s --exec 'double=cat' 2>worker.log 3>&- &
    worker_pid=$!
    seq 1 500 >lines
    seq 1 60 | xargs -P 6 -I {} sh -c '"$0" trigger double {} -q >/dev/null; "$0" trigger other --lines - -q <lines >/dev/null' "$program"
    wait_until all_succeeded 60
    # Notifications come to whoever listened in the session before.
    run ! grep "packet '[^A]' from server when not linked" "$pooler_dir/log"
}

@test "all works without a word in the URL, after the switch that is made by itself" {
    export HOLDFAST_STORE="$pooled"
    work_through_the_pooler
}

@test "the session of the pooler keeps none of the engine's settings with prepare=off" {
    export HOLDFAST_STORE="$pooled&prepare=off"
    holdfast migrate -q
    holdfast workflow create w
    holdfast trigger w 1 -q
    for i in 1 2 3 4 5 6; do
        [ "$(psql -AtqX "$pooled" -c "SHOW enable_seqscan")" = on ]
    done
}

@test "SQL functions work through the pooler" {
    export HOLDFAST_STORE="$pooled&prepare=off"
    holdfast migrate -q
    holdfast workflow create w
    id=$(psql -AtqX "$pooled" -c "SELECT holdfast.trigger('w', '{\"a\":1}', key => 'k')")
    [ "$(holdfast get "$id" --json | jq -r .input.a)" = 1 ]
    psql -AtqX "$pooled" -c "SELECT holdfast.signal('$id', 'go'), holdfast.cancel('$id')"
    [ "$(holdfast get "$id" --json | jq -r .status)" = cancelled ]
}

# What the tests of the program share. HOLDFAST_BIN (or HOLDFAST, set by the build) names the program.

bats_require_minimum_version 1.5.0

# An SQLite file of its own. To make the tables takes longer than to copy them, where ./test has made some.
use_fresh_store()
{
    program=${HOLDFAST_BIN:-$HOLDFAST}
    unset HOLDFAST_TENANT WORKER_TYPE_PREFIXES NO_COLOR TRACEPARENT
    export HOLDFAST_ACTOR=tester
    export HOLDFAST_STORE="sqlite:$BATS_TEST_TMPDIR/store.db"
    worker_pid=
    cd "$BATS_TEST_TMPDIR"
    [ -z "${HOLDFAST_TEST_PRISTINE_FILE:-}" ] || cp "$HOLDFAST_TEST_PRISTINE_FILE" store.db
}

# The program as `holdfast`, whatever it is called and wherever it lies.
holdfast()
{
    "$program" "$@"
}

# For programs that call it by its name.
put_program_on_path()
{
    mkdir bin
    ln -s "$program" bin/holdfast
    PATH="$PWD/bin:$PATH"
}

# A database of its own, until drop_postgres; its tables are made at the first use.
use_fresh_postgres()
{
    [ -n "$HOLDFAST_TEST_POSTGRES" ] || skip "HOLDFAST_TEST_POSTGRES names no server"
    database=holdfast_cli_${BATS_TEST_NUMBER}_$$
    psql -qX "$HOLDFAST_TEST_POSTGRES" -c "CREATE DATABASE $database"
    HOLDFAST_STORE=$(sed -E "s#^(postgres(ql)?://[^/]*)/[^?]*#\1/$database#" <<<"$HOLDFAST_TEST_POSTGRES")
    export HOLDFAST_STORE
}

drop_postgres()
{
    [ -z "$database" ] || psql -qX "$HOLDFAST_TEST_POSTGRES" -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
}

# script NAME BODY: an executable shell script in the current directory.
script_file()
{
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

# Starts a worker in the background, its log in worker.log, and waits until it says that it works.
start_worker()
{
    "$program" worker --poll 1s "$@" 2>worker.log 3>&- &
    worker_pid=$!
    wait_until grep -qE 'worker started|"started"' worker.log
}

stop_worker()
{
    [ -n "$worker_pid" ] || return 0
    kill -TERM "$worker_pid" 2>/dev/null || true
    worker_status=0
    wait "$worker_pid" || worker_status=$?
    worker_pid=
}

# Looks again and again, for two minutes or $patience seconds: a busy machine is no failure.
wait_until()
{
    local begin=$SECONDS
    until "$@"; do
        [ $((SECONDS - begin)) -lt "${patience:-120}" ] || { echo "never happened: $*"; return 1; }
        sleep 0.1
    done
}

status_of()
{
    local run
    run=$(holdfast get --json "$1")
    run=${run#*'"status":"'} # to start jq takes four times as long as to ask
    echo "${run%%'"'*}"
}

has_status()
{
    [ "$(status_of "$1")" = "$2" ]
}

# in_terminal COMMAND: what a person would see; answers come from stdin.
in_terminal()
{
    script -qec "stty cols ${columns:-100}; $1" /dev/null
}

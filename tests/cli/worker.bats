# The worker as a program. A10, B2.

load helper

setup()
{
    use_fresh_store
}

teardown()
{
    stop_worker
}

result_of()
{
    holdfast trigger "$@" --wait=2m -q
}

@test "a program gets the input and gives the result, in a store that its worker makes" {
    rm -f store.db
    script_file upper.sh 'tr a-z A-Z'
    start_worker --exec 'text.upper=./upper.sh'
    [ "$(result_of text.upper '"hello"')" = '"HELLO"' ]
}

@test "output that is no JSON becomes a string" {
    script_file plain.sh 'echo plain words'
    start_worker --exec 'w=./plain.sh'
    [ "$(result_of w | jq -r . | head -n 1)" = "plain words" ]
}

@test "words are split without a shell" {
    script_file show.sh 'for a; do printf "<%s>" "$a"; done | jq -R .'
    start_worker --exec "w=./show.sh one 'two words' \"a \\\"b\\\"\" c\\ d \$HOME * 'e\\\\f'"
    [ "$(result_of w | jq -r .)" = '<one><two words><a "b"><c d><$HOME><*><e\\f>' ]
}

@test "a program gets no secret of its worker but what it is given" {
    script_file show.sh 'echo "${HOLDFAST_STORE-none} ${PAYMENT_KEY-none} ${PLAIN-none} ${HOLDFAST_ACTOR-none}"'
    export PAYMENT_KEY=secret PLAIN=plain
    start_worker --exec 'w=./show.sh'
    [ "$(result_of w)" = '"none none none none"' ]
    stop_worker
    start_worker --exec 'w=./show.sh' --give-store --env PLAIN --env PAYMENT_KEY=public
    [ "$(result_of w)" = "\"$HOLDFAST_STORE public plain none\"" ]
}

@test "a program without a store is told how to get one, and makes none" {
    script_file ask.sh '"$PROGRAM" list 2>&1 >/dev/null | grep -o "start the worker with --give-store"'
    start_worker --exec 'w=./ask.sh' --env "PROGRAM=$program"
    [ "$(result_of w)" = '"start the worker with --give-store"' ]
    [ ! -e holdfast.db ]
}

@test "a failing program is tried again and then fails with the end of its stderr" {
    script_file fail.sh 'echo attempt >>attempts; echo "no luck" >&2; exit 1'
    holdfast workflow create w --retry-base 10ms --retry-cap 20ms --max-attempts 2
    start_worker --exec 'w=./fail.sh'
    run -8 --separate-stderr holdfast trigger w --wait=2m
    [[ "$stderr" == *"no luck"* ]]
    [ "$(wc -l <attempts)" = 2 ]
}

@test "a burst of debounced triggers is run once, with the last input" {
    script_file echo.sh 'tee -a inputs'
    start_worker --exec 'w=./echo.sh'
    for i in 1 2 3; do id=$(holdfast trigger w "$i" --debounce k --for 1h -q); done
    [ "$(holdfast trigger w 4 --debounce k --for 10ms --wait=2m -q)" = 4 ]
    [ "$(cat inputs)" = 4 ]
    [ "$(holdfast trigger w 5 --debounce k --for 10ms --wait=2m -q)" = 5 ]
    [ "$(holdfast list --json | jq -s length)" = 2 ]
}

@test "a program that takes too long is ended" {
    script_file slow.sh 'sleep 60'
    start_worker --exec 'w=./slow.sh' --exec-limit 200ms
    run -8 holdfast trigger w --max-attempts 1 --wait=2m
}

@test "the environment says which workflows are claimed, and what has no handler fails" {
    script_file echo.sh cat
    holdfast workflow create billing.b
    holdfast workflow create other.c
    export WORKER_TYPE_PREFIXES=billing.,mail.
    start_worker --exec 'billing.a=./echo.sh'
    unset WORKER_TYPE_PREFIXES
    [ "$(result_of billing.a 7)" = 7 ]
    run -8 holdfast trigger billing.b --wait=2m
    [[ "$output" == *no_handler_registered* ]]
    run -6 holdfast trigger other.c --wait=300ms
}

serves()
{
    holdfast workers --live --json | jq -rc '.serves | sort | join(" ")'
}

@test "a command without a pattern serves default. where nothing says what to claim" {
    script_file echo.sh cat
    holdfast workflow create default.a
    holdfast workflow create other.c
    start_worker --exec ./echo.sh
    [ "$(result_of default.a 7)" = 7 ]
    [ "$(serves)" = 'default.*' ]
    run -6 holdfast trigger other.c --wait=300ms
    stop_worker
    start_worker --exec ./echo.sh --exec 'other.*=echo "\"other\""'
    [ "$(result_of default.a 8)" = 8 ]
    [ "$(result_of other.c)" = '"other"' ]
    [ "$(serves)" = 'default.* other.*' ]
}

@test "a command without a pattern is for whatever the prefixes say" {
    script_file echo.sh cat
    holdfast workflow create billing.a
    holdfast workflow create default.a
    export WORKER_TYPE_PREFIXES=billing.,mail.
    start_worker --exec ./echo.sh
    unset WORKER_TYPE_PREFIXES
    [ "$(result_of billing.a 7)" = 7 ]
    [ "$(serves)" = 'billing.* mail.*' ]
    run ! grep -q warning worker.log
    run -6 holdfast trigger default.a --wait=300ms
}

@test "a prefix without a program to run is refused, with what to add" {
    rm -f store.db
    run -2 holdfast worker --prefix billing.
    [[ "$output" == *"nothing to run"*"--exec 'billing.*=./program'"* ]]
    [[ "$output" != *warning* ]]
    WORKER_TYPE_PREFIXES='mail.*' run -2 holdfast worker
    [[ "$output" == *"--exec 'mail.*=./program'"* ]]
    [ ! -e store.db ]
}

@test "an --exec that no prefix covers is warned about" {
    script_file echo.sh cat
    start_worker --exec 'mail.*=./echo.sh' --prefix billing.
    grep -q 'no --prefix covers' worker.log
}

@test "a worker with nothing to do is refused" {
    run -2 holdfast worker
    [[ "$output" == *"nothing to run; give --exec"* ]]
    run -2 holdfast worker --exec 'no-such-command'
    [[ "$output" == *"cannot run no-such-command: there is no such program in PATH"* ]]
    run -2 holdfast worker --exec '=cat'
    [[ "$output" == *"--exec wants PATTERN=COMMAND"* ]]
    run -2 holdfast worker --exec 'w='
    [[ "$output" == *"names no program"* ]]
    run -2 holdfast worker --exec "w=./a 'b"
    [[ "$output" == *"a quote is not closed"* ]]
    run -2 holdfast worker --exec 'w=./missing'
    [[ "$output" == *"cannot run ./missing: there is no such program"* ]]
    echo '#!/bin/sh' >plain.sh
    run -2 holdfast worker --exec 'w=./plain.sh'
    [[ "$output" == *"cannot run ./plain.sh: it is not executable (chmod +x ./plain.sh)"* ]]
    printf '#!/usr/bin/no-such-shell\n' >odd.sh && chmod +x odd.sh
    run -2 holdfast worker --exec 'w=./odd.sh'
    [[ "$output" == *"cannot run ./odd.sh: its interpreter /usr/bin/no-such-shell does not exist"* ]]
    run -2 holdfast worker --exec 'w=cat' --env HOLDFAST_KEY=mine
    [[ "$output" == *"HOLDFAST_KEY says which run it is"* ]]
    run -2 holdfast worker --exec 'w=no-such-program-anywhere'
    run -2 holdfast worker --exec 'w=cat' --threads 0
    run -2 holdfast worker --exec '..=cat'
}

@test "SIGTERM lets what is running end, and the program exits with 0" {
    script_file slow.sh 'touch begun; sleep 1; echo 1'
    start_worker --exec 'w=./slow.sh'
    id=$(holdfast trigger w -q)
    wait_until test -e begun
    stop_worker
    [ "$worker_status" = 0 ]
    [ "$(status_of "$id")" = succeeded ]
    grep -q 'worker stopped' worker.log
}

@test "a second signal gives running work back at once" {
    script_file slow.sh 'touch begun; sleep 600'
    start_worker --stop-limit 1h --exec 'w=./slow.sh'
    id=$(holdfast trigger w -q)
    wait_until test -e begun
    kill -INT "$worker_pid"
    sleep 0.3
    started=$SECONDS
    stop_worker
    [ $((SECONDS - started)) -lt 300 ]
    [ "$(status_of "$id")" = pending ]
}

@test "the log has a line for each event, or an object" {
    script_file echo.sh cat
    start_worker --exec 'w=./echo.sh'
    id=$(holdfast trigger w 1 -q)
    holdfast wait "$id" --timeout 2m
    stop_worker
    grep -qE "^20[0-9T:.-]+Z run succeeded $id w attempt 1 in " worker.log
    start_worker --exec 'w=./echo.sh' --json
    result_of w 1
    stop_worker
    [ "$(jq -rs '[.[] | select(.event == "run_finished")][0].status' worker.log)" = succeeded ]
    [ "$(jq -rs '.[-1].event' worker.log)" = stopped ]
}

@test "workers are listed while they live" {
    script_file echo.sh cat
    start_worker --exec 'billing.*=./echo.sh' --name north --threads 3
    run -0 holdfast workers --json
    [ "$(jq -c '[.name, .live, .threads]' <<<"$output")" = '["north",true,3]' ]
    run -0 holdfast workers
    [[ "$output" == *north*live* ]]
    stop_worker
    run -0 holdfast workers --live --json -q
    [ -z "$output" ]
}

@test "one worker serves several tenants" {
    script_file echo.sh cat
    holdfast tenant create acme
    start_worker --exec 'w=./echo.sh' --serve-tenant '*'
    holdfast --tenant acme workflow create w
    [ "$(result_of w 1)" = 1 ]
    [ "$(result_of w 2 --tenant acme)" = 2 ]
}

@test "a run whose worker died in its last attempt has made as many as it may" {
    script_file hang.sh 'exec sleep 60'
    holdfast workflow create w --lease 300ms --max-attempts 1
    start_worker --exec 'w=./hang.sh'
    id=$(holdfast trigger w -q)
    wait_until eval '[ "$(status_of "$id")" = leased ]'
    kill -KILL "$worker_pid"
    wait "$worker_pid" || true
    start_worker --exec 'w=./hang.sh'
    run -8 holdfast wait "$id" --timeout 2m
    run -0 holdfast get "$id"
    [[ "$output" =~ attempt\ +1\ of\ 1 ]]
    [[ "$output" == *"attempts_exhausted"* ]]
}

@test "a server says that it listens when its worker is registered, and its workflows exist" {
    "$program" serve --listen 127.0.0.1:0 --exec 'late.v1=cat' >served 2>worker.log 3>&- &
    worker_pid=$!
    wait_until grep -q Listening served
    [ "$(holdfast workers --live --json | jq -r '.serves[]')" = late.v1 ]
    [ "$(result_of late.v1 7)" = 7 ]
}

# holdfast lock: one command at a time, on all machines. B11.

load helper

setup()
{
    use_fresh_store
    holdfast migrate -q
}

@test "it runs the command and exits with its code" {
    run -0 holdfast lock nightly -- echo ran
    [ "$output" = ran ]
    run -5 holdfast lock nightly -- sh -c 'exit 5'
    run -143 holdfast lock nightly -- sh -c 'kill -TERM $$'
}

@test "the command gets a token that rises" {
    first=$(holdfast lock nightly -- sh -c 'echo $HOLDFAST_LOCK_TOKEN')
    second=$(holdfast lock nightly -- sh -c 'echo $HOLDFAST_LOCK_TOKEN')
    [ "$second" -gt "$first" ]
}

hold()
{
    "$program" lock "$@" -- sh -c 'touch held; while [ ! -e enough ]; do sleep 0.05; done' 3>&- &
    holder=$!
    wait_until test -e held
}

@test "while somebody holds it, others get 73" {
    hold nightly
    run -73 holdfast lock nightly -- echo ran
    [[ "$output" != *ran* ]]
    run -0 holdfast lock other -- echo ran
    touch enough
    wait "$holder"
    run -0 holdfast lock nightly -- echo ran
}

@test "with --wait it waits for its turn, or gives up" {
    hold nightly
    run -73 holdfast lock nightly --wait=200ms -- echo ran
    "$program" lock nightly --wait=2m -- echo ran >waited 3>&- &
    waiter=$!
    sleep 0.3
    touch enough
    wait "$holder"
    wait "$waiter"
    [ "$(cat waited)" = ran ]
}

@test "it is renewed while the command runs" {
    hold nightly --ttl 3s # longer than a busy machine sleeps
    sleep 4
    run -73 holdfast lock nightly -- echo ran
    touch enough
    wait "$holder"
}

@test "signals reach the command" {
    script_file careful.sh 'trap "echo stopped >told; exit 9" TERM; touch held; while :; do sleep 0.05; done'
    "$program" lock nightly -- ./careful.sh 3>&- &
    holder=$!
    wait_until test -e held
    kill -TERM "$holder"
    status=0
    wait "$holder" || status=$?
    [ "$status" = 9 ]
    [ "$(cat told)" = stopped ]
}

# A process that nobody has reaped yet is gone too.
is_gone()
{
    [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

@test "when the lock is lost, the command and what it started are ended, with exit code 74" {
    "$program" lock nightly --ttl 1s -- sh -c 'trap "" TERM; sleep 600 & echo $! >grandchild; touch held; wait' 3>&- &
    holder=$!
    wait_until test -e held
    sqlite3 store.db 'UPDATE host_lock SET token = token + 1'
    started=$SECONDS
    status=0
    wait "$holder" || status=$?
    [ "$status" = 74 ]
    [ $((SECONDS - started)) -lt 300 ]
    wait_until is_gone "$(cat grandchild)"
}

@test "a program that is not there gives 127 and the lock is free again" {
    run -127 holdfast lock nightly -- ./missing
    run -0 holdfast lock nightly -- true
}

@test "its options are checked" {
    run -2 holdfast lock nightly --ttl 10ms -- true
    run -2 holdfast lock nightly
    run -2 holdfast lock 'a name with blanks' -- true
}

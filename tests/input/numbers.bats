#!/usr/bin/env bats
# Times, durations and numbers out of reason.

load helper

setup()
{
    use_fresh_store
    holdfast workflow create work
}

@test "absurd durations are refused" {
    local bad
    for bad in -1 -5s abc 1e3 999999999999999999999 100000d 1y '1h 2m' '' ' ' 1h30 5x .5s 5. 0x10 '∞' "$(repeat 10240 9)"; do
        refuses 2 'duration' "$program" trigger work --in="$bad"
        refuses 2 'duration' "$program" trigger work --timeout="$bad"
        refuses 2 'duration' "$program" workflow create work --lease="$bad"
    done
    [ "$(count_of_runs)" -eq 0 ]
}

@test "absurd times are refused" {
    local bad
    for bad in 0000-00-00T00:00:00Z 2026-02-30T00:00:00Z 10000-01-01T00:00:00Z 1969-12-31T23:59:59Z 2026-11-15 tomorrow '' \
        2026-11-15T25:00:00Z 2026-11-15T10:00:00+99:99 2026-11-15T10:00:60Z 2026-11-15T10:00:00 "$(repeat 10240 1)" \
        9999-12-31T23:59:59-23:59; do
        refuses 2 'time' "$program" trigger work --at="$bad"
        refuses 2 'time' "$program" trigger work --deadline="$bad"
    done
    [ "$(count_of_runs)" -eq 0 ]
}

@test "the last moment that there is can be used" {
    id=$(holdfast trigger work -q --at 9999-12-31T23:59:59Z)
    [[ "$(holdfast get --json "$id" | jq -r .run_at)" =~ ^9999-12-31T23:59:59(\.0+)?Z$ ]]
}

@test "a deadline that has passed fails the run and does not call the handler" {
    script_file never.sh 'touch called'
    holdfast workflow create late
    id=$(holdfast trigger late -q --deadline 2001-01-01T00:00:00Z)
    start_worker --exec 'late=./never.sh'
    wait_until has_status "$id" failed
    stop_worker
    [ ! -e called ]
    [ "$(holdfast get --json "$id" | jq -r .error_code)" = deadline_exceeded ]
}

@test "numbers out of range, or that are none, are refused" {
    local bad
    for bad in -99999999999999999999 99999999999999999999 abc 1.5 '' 0x10 1e3 ' 1' NaN; do
        refuses 2 'number|within' "$program" trigger work --priority="$bad"
        refuses 2 'number|within' "$program" trigger work --max-attempts="$bad"
        refuses 2 'number|within' "$program" list --limit="$bad"
        refuses 2 'number|within' "$program" worker --exec work=true --threads="$bad"
        refuses 2 'number|within' "$program" workflow create work --max-attempts="$bad"
    done
    refuses 2 'within' "$program" trigger work --priority=1001
    refuses 2 'within' "$program" trigger work --priority=-1001
    refuses 2 'within' "$program" trigger work --max-attempts=0
    refuses 2 'within' "$program" list --limit=0
    [ "$(count_of_runs)" -eq 0 ]
}

teardown()
{
    stop_worker
}

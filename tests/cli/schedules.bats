# Schedules from the command line. B10.

load helper

setup()
{
    use_fresh_store
    holdfast workflow create w
}

teardown()
{
    stop_worker
}

fired()
{
    [ "$(holdfast list --workflow w --status succeeded --json | wc -l)" -ge "$1" ]
}

@test "a schedule is created and shown" {
    run -0 --separate-stderr holdfast schedule create s --cron '0 3 * * mon' --workflow w --timezone Europe/Berlin \
        --input '{"n": 1.50}' --overlap queue --catch-up all --priority 5 --tag a --tag b --json
    [ "$(jq -c '[.name, .cron, .timezone, .workflow, .overlap, .catch_up, .priority, .tags]' <<<"$output")" = \
        '["s","0 3 * * mon","Europe/Berlin","w","queue","all",5,["a","b"]]' ]
    [[ "$output" == *'"input":{"n": 1.50}'* ]]
    [[ "$stderr" == *"no worker is live"* ]]
    run -0 holdfast schedule show s
    [[ "$output" =~ cron\ +"0 3 * * mon" ]]
    [[ "$output" =~ state\ +active ]]
    run -0 holdfast schedule list
    [[ "$output" == *NAME*CRON*NEXT*s*active*"0 3 * * mon"* ]]
}

@test "the next due times are shown" {
    holdfast schedule create s -q --cron '0 12 1 7 *' --workflow w --timezone Asia/Tokyo
    run -0 holdfast schedule next s --count 2 --json
    [ "${#lines[@]}" = 2 ]
    [[ "$(jq -r .at <<<"${lines[0]}")" == *-07-01T03:00:00.000Z ]]
    run -0 holdfast schedule next s
    [ "${#lines[@]}" = 6 ]
    [[ "$output" != *paused* ]]
    holdfast schedule pause s
    run -0 holdfast schedule next s
    [[ "$output" == *'s is paused; it fires at these times after `holdfast schedule resume s`'* ]]
    run -2 holdfast schedule next s --count 0
}

@test "a worker that serves something else lets it fire" {
    holdfast schedule create s -q --every 1s --workflow w --input '"hello"' --overlap allow
    start_worker --exec 'other=true'
    has_run() { [ "$(holdfast list --workflow w --json | wc -l)" -ge 2 ]; }
    wait_until has_run
    run -0 holdfast list --workflow w --json
    [ "$(jq -r .input <<<"${lines[0]}")" = hello ]
    [[ "$(jq -r .key <<<"${lines[0]}")" == schedule:s:*Z ]]
    [ "$(jq -r .key <<<"$output" | sort | uniq -d)" = "" ]
}

@test "a schedule goes on after the worker was restarted, with changed settings" {
    holdfast schedule create s -q --every 1s --workflow w
    start_worker --exec 'w=cat'
    wait_until fired 1
    stop_worker
    count=$(holdfast schedule show s --json | jq .fired)
    holdfast schedule create s -q --every 2s --workflow w --input 7
    [ "$(holdfast schedule show s --json | jq -r .cron)" = "every 2s" ]
    start_worker --exec 'w=cat'
    wait_until fired $((count + 2))
    [ "$(holdfast list --workflow w --json | head -n 1 | jq .input)" = 7 ]
}

@test "pause, resume, delete" {
    holdfast schedule create s -q --every 1h --workflow w
    run -0 holdfast schedule pause s --json
    [ "$(jq -c '[.paused, .next_at]' <<<"$output")" = '[true,null]' ]
    holdfast schedule pause s
    [ "$(holdfast schedule resume s --json | jq .paused)" = false ]
    holdfast schedule resume s
    holdfast schedule delete s
    run -0 --separate-stderr holdfast schedule list
    [[ "$stderr" == *"no schedules in"*"create one with"* ]]
    for command in show next pause resume delete; do
        run -3 holdfast schedule $command s
        [[ "$output" == *"no schedule named s in tenant default"* ]]
    done
    holdfast schedule create s -q --every 2h --workflow w
    [ "$(holdfast schedule show s --json | jq -r .cron)" = "every 2h" ]
}

@test "mistakes are named" {
    refused() { run -2 holdfast schedule create s --workflow w "${@:2}"; [[ "$output" == *"$1"* ]]; }
    refused "either --cron or --every"
    refused "either --cron or --every" --cron @daily --every 1h
    refused "has 4 fields" --cron '* * * *'
    refused 'minute "61"' --cron '61 * * * *'
    refused "never comes" --cron '0 0 31 2 *'
    refused "from 1s to 366d" --every 10ms
    refused 'no time zone "Berlin"' --cron @daily --timezone Berlin
    refused 'no time zone "../x"' --cron @daily --timezone ../x
    refused "skip, allow, queue or cancel" --cron @daily --overlap never
    refused "one, none or all" --cron @daily --catch-up some
    refused "not JSON" --cron @daily --input '{'
    run -2 holdfast schedule create s --cron @daily
    [[ "$output" == *"--workflow NAME"* ]]
    run -2 holdfast schedule create 'a b' --cron @daily --workflow w
    run -2 holdfast schedule create s --cron @daily --workflow holdfast.schedule
    [[ "$output" == *"the engine's own"* ]]
    run -3 holdfast schedule create s --cron @daily --workflow nothing
    [[ "$output" == *"holdfast workflow create nothing"* ]]
    run -2 holdfast trigger holdfast.schedule
    run -0 holdfast schedule list -q
    [ "$output" = "" ]
}

@test "tenants do not see each other's schedules" {
    holdfast tenant create acme
    holdfast schedule create s -q --every 1h --workflow w
    run -3 holdfast --tenant acme schedule show s
    run -0 holdfast --tenant acme -q schedule list
    [ "$output" = "" ]
}

# Subscriptions and the outbox from the command line. Delivery itself is tested with real receivers in
# crash/deliver.py. F3.

load helper

setup()
{
    use_fresh_store
}

teardown()
{
    stop_worker
}

@test "a subscription is created with a secret that is shown once" {
    run -0 --separate-stderr holdfast subscription create s --url https://example.com/hook --event 'order.*' --event b \
        --mode binary --max-failures 3
    [[ "$output" =~ secret\ +whsec_[A-Za-z0-9+/]{32}$ ]]
    [[ "$stderr" == *"not shown again"* ]]
    run -0 holdfast subscription show s --json
    [ "$(jq -c '[.name, .url, .events, .mode, .state, .max_failures, .pending]' <<<"$output")" = \
        '["s","https://example.com/hook",["order.*","b"],"binary","active",3,0]' ]
    [[ "$output" != *whsec* ]]
    run -0 holdfast subscription list
    [[ "$output" == *NAME*STATE*s*active* ]]
    [[ "$output" != *whsec* ]]
}

@test "changing a subscription keeps its secret" {
    holdfast subscription create s --url https://example.com/a -q >/dev/null
    run -0 holdfast subscription create s --url https://example.com/b -q --json
    [ "$output" = '{"name":"s","secret":null}' ]
    [ "$(holdfast subscription show s --json | jq -r .url)" = https://example.com/b ]
}

@test "what cannot be a subscription is refused with a reason" {
    run -2 holdfast subscription create s
    [[ "$output" == *"--url"* ]]
    run -2 holdfast subscription create s --url http://h --mode fancy
    [[ "$output" == *"structured or binary"* ]]
    run ! holdfast subscription create s --url ftp://h
    [[ "$output" == *"http:// or https://"* ]]
    run ! holdfast subscription create s --url http://user:pw@h
    [[ "$output" == *"password"* ]]
    run ! holdfast subscription create s --url http://h --event 'a*b'
    [[ "$output" == *"star"* ]]
    run ! holdfast subscription create s --url http://h --secret short
    [[ "$output" == *"base64"* ]]
}

@test "a subscription that is not there is named" {
    holdfast migrate -q
    for command in show test park resume delete; do
        run -3 holdfast subscription "$command" nobody
        [[ "$output" == *"no subscription named nobody"* ]]
    done
    run -0 holdfast subscription list
    [[ "$output" == *"no subscriptions"* ]]
    run -0 holdfast outbox list
    [[ "$output" == *"nothing in the outbox"* ]]
}

@test "a narrow terminal shows what is undelivered, rather than of which run it is" {
    command -v script >/dev/null || skip "script(1) is not installed"
    script_file pack 'holdfast emit order.packed'
    PATH=$(dirname "$program"):$PATH start_worker --exec 'pack.v1=./pack'
    holdfast trigger pack.v1 -q --wait=2m
    stop_worker
    columns=80 run -0 in_terminal "'$program' outbox list"
    [[ "$output" == *"PENDING"* && "$output" != *"RUN"* ]]
}

@test "a subscription is parked, resumed and deleted" {
    holdfast subscription create s --url http://127.0.0.1:1/ -q >/dev/null
    [ "$(holdfast subscription park s --json | jq -r .state)" = parked ]
    [ "$(holdfast subscription resume s --json | jq -r .state)" = active ]
    run ! holdfast subscription test s
    [[ "$output" == *"not taken"* ]]
    holdfast subscription delete s
    run -3 holdfast subscription show s
}

@test "the outbox shows what was emitted, and what nobody could take" {
    script_file emit 'holdfast emit order.paid "{\"n\":1}"; holdfast emit mail.sent'
    put_program_on_path
    holdfast subscription create s --url http://127.0.0.1:1/ --event 'order.*' --max-failures 1 -q >/dev/null
    start_worker --exec "w=./emit"
    run=$(holdfast trigger w -q)
    wait_until has_status "$run" succeeded
    [ "$(holdfast outbox list --json | jq -r .type | paste -sd ' ')" = "mail.sent order.paid" ]
    [ "$(holdfast outbox list --undelivered --json | jq -r .type)" = order.paid ]
    [ "$(holdfast outbox list --type 'mail.*' --run "$run" --json | jq -c '[.pending, .payload]')" = '[0,null]' ]
    parked() { [ "$(holdfast subscription show s --json | jq -r .state)" = parked ]; }
    wait_until parked
    [[ "$(holdfast subscription show s --json | jq -r .last_error)" == *onnect* ]]
    [ "$(holdfast outbox list -n 1 --type order.paid --json | jq .attempts)" = 1 ]
}

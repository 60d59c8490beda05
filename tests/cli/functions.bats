# What durable functions leave behind, as people see it: steps, families, live views, forks. A13, C4.

load helper

setup()
{
    use_fresh_store
    export TERM=xterm
}

teardown()
{
    stop_worker
}

# start_orders [refuses]: the worker of order_worker.c in the background.
start_orders()
{
    "$HOLDFAST_BUILD/tests/order_worker" "$HOLDFAST_STORE" "$@" 2>worker.log 3>&- &
    worker_pid=$!
    wait_until grep -q 'worker started' worker.log
}

# An order that has packed its parcels and waits for approval.
waiting_order()
{
    start_orders
    holdfast trigger order '{"n":1}' -q --key "$1" >/dev/null
    wait_until has_status "order/$1" waiting
}

# An order whose card was refused.
failed_order()
{
    start_orders refuses
    holdfast workflow set order --max-attempts 1 -q
    holdfast trigger order '{"n":1}' -q --key "$1" --tag red --priority 3 >/dev/null
    wait_until has_status "order/$1" failed
    stop_worker
}

on_terminal()
{
    command -v script >/dev/null || skip "script(1) is not installed"
}

@test "steps are shown in order, with what they are and what came out" {
    waiting_order o-1
    run -0 holdfast steps order/o-1
    [[ "${lines[0]}" =~ ^STEP\ +WHAT\ +STATUS\ +TRY\ +WHEN\ +TOOK\ +OUTPUT ]]
    [[ "${lines[1]}" =~ ^reserve\ +step\ +succeeded\ +1\ .*\{\"shelf\":\"A-7\"\}$ ]]
    [[ "${lines[3]}" =~ ^pack\ +children\ +succeeded\ .*3\ children$ ]]
    [[ "${lines[4]}" =~ ^approval\ +wait\ +waiting\ .*until\ 20 ]]
    [ "${#lines[@]}" -eq 5 ]
}

@test "of a large family that is being started, the steps show how far it is" {
    local start='{"op":"children","output":{"first":"01890000-0000-7000-8000-000000000000","count":10000,"started":4000}}'
    holdfast workflow create family.v1 -q
    holdfast trigger family.v1 -q --key f >/dev/null
    sqlite3 "${HOLDFAST_STORE#sqlite:}" "INSERT INTO event (run_id, seq, version, tenant_id, at, kind, name, step, data)
        SELECT id, 2, 1, tenant_id, created_at, 2, 'waiting', 'fan', '$start' FROM run; UPDATE run SET event_seq = 2"
    run -0 holdfast steps family.v1/f
    [[ "${lines[1]}" =~ ^fan\ +children\ +waiting\ .*4000\ of\ 10000\ children$ ]]
}

@test "steps for machines lose nothing" {
    waiting_order o-1
    run -0 holdfast steps order/o-1 --json
    [[ "${lines[1]}" == *'"output":{"receipt":12345678901234567890.10}'* ]]
    [ "$(jq -s -c 'map(.op)' <<<"$output")" = '["step","step","children","wait"]' ]
    [ "$(jq -r 'select(.name == "pack").output | length' <<<"$output")" = 3 ]
    [[ "$(jq -r 'select(.name == "approval").until' <<<"$output")" == 20*Z ]]
}

@test "a wait that is over is one step, as long as it lasted" {
    waiting_order o-1
    holdfast signal order/o-1 approval '{"by":"kim"}'
    wait_until has_status order/o-1 succeeded
    run -0 holdfast steps order/o-1 --json
    [ "$(jq -s length <<<"$output")" = 4 ]
    [ "$(jq -r 'select(.name == "approval").status' <<<"$output")" = succeeded ]
    begun=$(jq -r 'select(.name == "approval").started' <<<"$output")
    waited=$(holdfast events order/o-1 --json | jq -r 'select(.name == "waiting" and .kind == "lifecycle").at')
    [ "${begun:0:19}" = "${waited:0:19}" ]
}

@test "a run without steps, and none at all" {
    holdfast workflow create empty -q
    id=$(holdfast trigger empty -q)
    run -0 --separate-stderr holdfast steps "$id"
    [ -z "$output" ]
    [[ "$stderr" == *"no steps yet"* ]]
    run -3 holdfast steps empty/none
    run -3 holdfast steps 00000000-0000-7000-8000-000000000001
}

@test "the tree shows a run with its children" {
    waiting_order o-1
    run -0 holdfast tree order/o-1
    [[ "${lines[0]}" =~ ^order/o-1\ \ waiting\ \ [0-9.]+m?s\ \ [0-9a-f-]{36}$ ]]
    [[ "${lines[1]}" == "|- parcel  "* ]]
    [[ "${lines[3]}" == "\`- parcel  "* ]]
    [ "${#lines[@]}" -eq 4 ]
}

@test "a tree is bounded, and says what it leaves out" {
    waiting_order o-1
    children=$(holdfast list --parent "$(holdfast get order/o-1 --json | jq -r .id)" --json | jq -r .id)
    holdfast cancel "$(head -1 <<<"$children")"
    wait_until [ "$(holdfast list --status waiting --workflow parcel --json | jq -s length)" = 2 ]
    run -0 holdfast tree order/o-1 --children 0
    [[ "${lines[1]}" == "\`- 3 children: 1 cancelled, 2 waiting" ]]
    run -0 holdfast tree order/o-1 --children 1
    [[ "${lines[1]}" == "|- parcel  "* ]]
    [[ "${lines[2]}" =~ "\`- ... and 2 more: " ]]
    run -0 holdfast tree order/o-1 --depth 0
    [[ "${lines[1]}" == *"3 children"*"(see --depth)" ]]
    run -0 holdfast tree order/o-1 --json
    [ "$(jq '.children | length' <<<"$output")" = 3 ]
    [ "$(jq -c '.children[0].children' <<<"$output")" = '[]' ]
    run -0 holdfast tree order/o-1 --json --depth 0
    [ "$(jq -c '[.children, .more]' <<<"$output")" = '[[],{"waiting":2,"cancelled":1}]' ]
}

@test "a terminal with UTF-8 gets lines, another one ASCII" {
    on_terminal
    waiting_order o-1
    LC_ALL=C.UTF-8 run -0 in_terminal "'$program' tree order/o-1"
    [[ "$output" == *"├─ parcel"* && "$output" == *"└─ parcel"* ]]
    LC_ALL=C run -0 in_terminal "'$program' tree order/o-1"
    [[ "$output" == *"|- parcel"* ]]
    LC_ALL=C.UTF-8 columns=50 run -0 in_terminal "'$program' tree order/o-1 --no-color"
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ "${#line}" -le 50 ]
    done <<<"$output"
}

@test "watch says each change once and ends as wait does" {
    waiting_order o-1
    "$program" watch order/o-1 >watched 2>&1 3>&- &
    watcher=$!
    wait_until grep -q 'step approval waiting: until' watched
    holdfast signal order/o-1 approval '{"by":"kim"}'
    wait "$watcher"
    [ "$(grep -c 'step reserve succeeded' watched)" = 1 ]
    grep -q 'progress 40%: reserved' watched
    grep -q 'step approval succeeded in .*{"by":"kim"}' watched
    [ "$(tail -1 watched)" = '{"by":"kim"}' ]
    run -0 holdfast watch order/o-1 --json
    [ "$(jq -s -r '.[0].name, .[-1].status' <<<"$output")" = $'created\nsucceeded' ]
}

@test "watching a run that failed has exit code 8" {
    failed_order o-2
    run -8 holdfast watch order/o-2
    [[ "$output" == *"step charge failed in "*": the card was refused"* ]]
    run -3 holdfast watch order/none
}

@test "watch draws on a screen of its own and leaves the last picture" {
    on_terminal
    waiting_order o-1
    (wait_until grep -q 'waits for' screen; "$program" signal order/o-1 approval '"yes"') 2>/dev/null 3>&- &
    LC_ALL=C.UTF-8 in_terminal "'$program' watch order/o-1" >screen
    output=$(cat screen)
    [[ "$output" == *$'\033[?1049h'*"waits for"*'signal "approval", for another 59m'*$'\033[?1049l'* ]]
    [[ "$output" == *"█"*"40%  reserved"* ]]
    left=${output##*$'\033[?1049l'}
    [[ "$left" == *succeeded*"result"*'"yes"'*"✓"*reserve* ]]
    LC_ALL=C NO_COLOR=1 columns=30 run -0 in_terminal "'$program' watch order/o-1"
    [[ "$output" == *"+ reserve"* && "$output" != *$'\033['* ]]
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ "${#line}" -le 30 ]
    done <<<"$output"
}

@test "a watch that is interrupted gives the screen back" {
    on_terminal
    waiting_order o-1
    run in_terminal "timeout --foreground -s INT 2 '$program' watch order/o-1"
    left=${output##*$'\033[?1049l'}
    [ "$left" != "$output" ]
    [[ "$left" == *order/o-1*waiting* ]]
    [[ "$output" == *$'\033[?25h'* ]]
}

@test "a fork goes on from the chosen step" {
    failed_order o-2
    start_orders
    id=$(holdfast fork order/o-2 --from charge --reason 'card replaced' -q)
    wait_until has_status "$id" waiting
    run -0 holdfast steps "$id" --json
    [ "$(jq -s -c 'map(.name + " " + .status)' <<<"$output")" = \
        '["reserve succeeded","charge succeeded","pack succeeded","approval waiting"]' ]
    run -0 holdfast events "$id" --json
    [ "$(jq -r 'select(.name == "forked_from").data | .step + ": " + .reason' <<<"$output")" = "charge: card replaced" ]
    [ "$(jq -r 'select(.step == "reserve").actor' <<<"$output")" = tester ]
    [ "$(jq -s 'map(select(.step == "reserve")) | length' <<<"$output")" = 1 ]
    run -0 holdfast get "$id" --json
    [ "$(jq -c '[.input, .tags, .priority, .key]' <<<"$output")" = '[{"n":1},["red"],3,null]' ]
    [ "$(status_of order/o-2)" = failed ]
}

@test "a fork may have another input and a key" {
    failed_order o-2
    id=$(echo '{"n":2}' | holdfast fork order/o-2 --input - --key o-2b -q)
    [ "$(holdfast get order/o-2b --json | jq -r '.id + " " + (.input | tojson)')" = "$id {\"n\":2}" ]
    run -0 holdfast steps "$id" -q
    [ -z "$output" ]
    run -0 --separate-stderr holdfast fork order/o-2 --input '{"n":2}' --key o-2b
    [ "$output" = "$id" ]
    [[ "$stderr" == *"was there already"* ]]
    run -4 holdfast fork order/o-2 --key o-2
    run -2 holdfast fork order/o-2 --input '{'
    run -0 holdfast fork order/o-2 --from charge --json -q
    [ "$(jq -r .step <<<"$output")" = charge ]
}

@test "a fork that cannot be is refused with what to do" {
    failed_order o-2
    run -2 holdfast fork order/o-2 --from chrge
    [[ "$output" == *'the run has no step "chrge"; it has "reserve", "charge"'* ]]
    waiting_order o-1
    run -4 holdfast fork order/o-1 --from approval
    [[ "$output" == *'the step "pack" started children'*'fork from "pack" or an earlier step'* ]]
    run -3 holdfast fork order/none
}

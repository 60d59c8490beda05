# Tasks from the command line, and programs that ask people. E7.

load helper

setup()
{
    use_fresh_store
    put_program_on_path
    holdfast workflow create w -q
}

teardown()
{
    stop_worker
}

has_task()
{
    [ -n "$(holdfast task list --json)" ]
}

# asks OPTION...: a run, w/1, of a program that asks; its task is in $task.
asks()
{
    printf '#!/bin/bash\nset -euo pipefail\nanswer=$(holdfast ask %s)\njq -c "del(.task)" <<<"$answer"\n' "$*" >w.sh
    chmod +x w.sh
    start_worker --exec 'w=./w.sh'
    holdfast trigger w --key 1 -q >/dev/null
    wait_until has_task
    task=$(holdfast task list --json | jq -r .id)
}

@test "a program asks, a person answers, the program goes on" {
    asks "approval '{\"amount\":7}' --title Refund --role boss --role clerk --form '{\"f\":1}' --due-in 1h"
    run -0 holdfast task list
    [[ "$output" == *NAME*STATUS*Refund*open*"boss, clerk"* || "$output" == *Refund*open*boss*clerk* ]]
    run -0 holdfast task show "$task" --json
    [ "$(jq -c '[.name, .status, .assignee, .roles, .payload, .form, .workflow, .version]' <<<"$output")" = \
        '["Refund","open",null,["boss","clerk"],{"amount":7},{"f":1},"w",1]' ]
    [ "$(jq '(.due_at[:19] + "Z" | fromdate) - (.created_at[:19] + "Z" | fromdate) | . >= 3599 and . <= 3601' <<<"$output")" = true ]
    run -0 holdfast --actor kim task complete "$task" approved '{"note":"fine"}'
    [ -z "$output" ]
    run -0 holdfast wait w/1 --timeout 2m
    [ "$output" = '{"outcome":"approved","result":{"note":"fine"},"by":"kim"}' ]
    run -0 holdfast task list -q
    [ -z "$output" ]
    run -0 holdfast task list --status completed
    [[ "$output" == *completed*kim* ]]
    [ "$(holdfast events w/1 --json | jq -c 'select(.kind == "task") | [.name, .actor, .data.outcome]')" = '["completed","kim","approved"]' ]
}

@test "one who has a task keeps the others off" {
    asks approval
    run -0 holdfast --actor kim task claim "$task" --json
    [ "$(jq -c '[.status, .assignee, .version]' <<<"$output")" = '["claimed","kim",2]' ]
    for command in claim release "complete"; do
        run -4 holdfast --actor lee task $command "$task" $([ $command = complete ] && echo yes)
        [[ "$output" == *"the task is kim's"* ]]
    done
    run -4 holdfast --actor kim task release "$task" --version-is 1
    [[ "$output" == *"at version 2, not 1"* ]]
    holdfast --actor kim task release "$task"
    holdfast task reassign "$task" --to lee
    run -0 holdfast task list --assignee lee --by-due --json
    [ "$(jq -r .id <<<"$output")" = "$task" ]
    holdfast --actor lee task complete "$task" yes
    holdfast --actor lee task complete "$task" yes
    run -4 holdfast --actor lee task complete "$task" no
    [[ "$output" == *"the task is completed"* ]]
    [[ "$output" == *"holdfast task show $task"* ]]
}

@test "lists show what is asked for" {
    asks approval --role boss
    [ "$(holdfast task list --role boss --json | jq -r .id)" = "$task" ]
    [ "$(holdfast task list --run w/1 --name approval --json | jq -r .id)" = "$task" ]
    for none in "--role bos" "--assignee kim" "--name other" --overdue "--status completed"; do
        run -0 --separate-stderr holdfast task list $none
        [ -z "$(sed 1d <<<"$output")" ]
        [[ "$stderr" == *"no such tasks"* ]]
    done
    run -2 holdfast task list --limit 0
    run ! holdfast task list --status done
    [[ "$output" == *"not a status of tasks"* ]]
}

@test "a task ends with its run" {
    asks approval
    holdfast cancel w/1 -q
    [ "$(holdfast task show "$task" --json | jq -r .status)" = cancelled ]
    run -4 holdfast task complete "$task" yes
    [[ "$output" == *"the task is cancelled"* ]]
    holdfast retry w/1 -q
    holdfast task complete "$task" yes
    run -0 holdfast wait w/1 --timeout 2m
    [[ "$output" == *'"outcome":"yes"'* ]]
}

@test "a program that nobody answers is told so" {
    printf '#!/bin/bash\nholdfast ask approval --timeout 200ms >out 2>err; echo "$?"\n' >w.sh
    chmod +x w.sh
    start_worker --exec 'w=./w.sh'
    [ "$(holdfast trigger w --wait=2m -q)" = 6 ]
    [[ "$(<err)" == *'nobody answered "approval" in time'* ]]
    [ "$(holdfast task list --status all --json | jq -r .outcome)" = withdrawn ]
}

@test "a task that is not there is named" {
    run -3 holdfast task show 01900000-0000-7000-8000-000000000001
    [[ "$output" == *"no task 01900000-0000-7000-8000-000000000001 in tenant default"* ]]
    run -2 holdfast task claim nonsense
    [[ "$output" == *"not the id of a task"* ]]
    run ! holdfast ask approval
    [[ "$output" == *worker* ]]
}

# Triggering runs, reading them, changing them. A12, B3, B9, F14.

load helper

setup()
{
    use_fresh_store
    holdfast workflow create billing.charge.v1
}

teardown()
{
    stop_worker
}

@test "trigger prints the id of a run that is then there" {
    id=$(holdfast trigger billing.charge.v1 '{"invoice":42}' --quiet)
    run -0 holdfast get "$id" --json
    [ "$(jq -r .id <<<"$output")" = "$id" ]
    [ "$(jq -c .input <<<"$output")" = '{"invoice":42}' ]
    [ "$(jq -r .status <<<"$output")" = pending ]
    [ "$(jq -r .actor <<<"$output")" = tester ]
}

@test "trigger takes all its options" {
    id=$(holdfast trigger billing.charge.v1 1 -q --key k --priority -7 --at 2090-01-01T00:00:00Z \
        --deadline 2091-01-01T00:00:00Z --tag red --tag blue --subject s --reference r \
        --partition p --max-attempts 9 --trace 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01)
    run -0 holdfast get "$id" --json
    [ "$(jq -r '[.key, .subject, .reference, .partition] | join(" ")' <<<"$output")" = "k s r p" ]
    [ "$(jq -c '[.priority, .max_attempts, .tags]' <<<"$output")" = '[-7,9,["red","blue"]]' ]
    [ "$(jq -r .run_at <<<"$output")" = 2090-01-01T00:00:00.000Z ]
    [ "$(jq -r .timeout_at <<<"$output")" = 2091-01-01T00:00:00.000Z ]
    [ "$(jq -r .trace <<<"$output")" = 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ]
}

@test "input comes from a file or from stdin" {
    echo '{"from":"file"}' >input.json
    id=$(holdfast trigger billing.charge.v1 @input.json -q)
    [ "$(holdfast get "$id" --json | jq -r .input.from)" = file ]
    id=$(echo '{"from":"stdin"}' | holdfast trigger billing.charge.v1 - -q)
    [ "$(holdfast get "$id" --json | jq -r .input.from)" = stdin ]
    id=$(holdfast trigger billing.charge.v1 -q -- -5)
    [ "$(holdfast get "$id" --json | jq -c .input)" = -5 ]
}

@test "input that is no JSON, no text, too large or not there is refused" {
    run -2 holdfast trigger billing.charge.v1 'hello'
    [[ "$output" == *"input is not JSON"* ]]
    printf '"a\0b"' >nul
    run -2 holdfast trigger billing.charge.v1 @nul
    [[ "$output" == *"NUL byte"* ]]
    printf '"\xff"' >binary
    run -2 holdfast trigger billing.charge.v1 @binary
    [[ "$output" == *"UTF-8"* ]]
    { printf '"'; head -c 1100000 /dev/zero | tr '\0' x; printf '"'; } >large
    run -2 holdfast trigger billing.charge.v1 @large
    [[ "$output" == *"larger than 1048576 bytes"* ]]
    run -2 holdfast trigger billing.charge.v1 @/dev/zero
    [[ "$output" == *"larger than"* ]]
    run -2 holdfast trigger billing.charge.v1 @missing
    [[ "$output" == *"cannot read \"missing\""* ]]
    run -2 holdfast trigger billing.charge.v1 @.
    [[ "$output" == *"cannot read"* ]]
    run -0 holdfast list --json -q
    [ -z "$output" ]
}

@test "an unknown workflow is refused with what to do" {
    run -3 holdfast trigger mail.send
    [[ "$output" == *"no workflow named mail.send: create it with \`holdfast workflow create mail.send\`"* ]]
    [[ "$output" != *"did you mean"* ]]
    run -2 holdfast trigger 'no such/name'
}

@test "an unknown workflow is compared with those that are known" {
    holdfast workflow create mail.send.v1
    run -3 holdfast trigger mail.sned.v1
    [[ "$output" == *"; did you mean mail.send.v1?" ]]
    run -3 holdfast workflow set mail.send.v --lease 10s
    [[ "$output" == *"; did you mean mail.send.v1?" ]]
}

@test "the same key and input give the first run, another input is a conflict" {
    first=$(holdfast trigger billing.charge.v1 '{"a":1,"b":2}' --key k -q)
    run -0 --separate-stderr holdfast trigger billing.charge.v1 '{"b":2, "a":1}' --key k
    [ "$output" = "$first" ]
    [[ "$stderr" == *"was there already"* ]]
    run -4 holdfast trigger billing.charge.v1 '{"a":2}' --key k
    run -0 holdfast trigger billing.charge.v1 '{"a":1,"b":2}' --key k --json -q
    [ "$(jq .existed <<<"$output")" = true ]
}

@test "trigger warns when nobody could run it, and refuses if asked to" {
    run -0 --separate-stderr holdfast trigger billing.charge.v1
    [[ "$stderr" == *"no live worker serves billing.charge.v1"* ]]
    run -0 --separate-stderr holdfast trigger billing.charge.v1 --quiet
    [ -z "$stderr" ]
    run -7 holdfast trigger billing.charge.v1 --require-worker
}

@test "a run is named by its id or by workflow and key" {
    id=$(holdfast trigger billing.charge.v1 -q --key inv/42)
    [ "$(holdfast get billing.charge.v1/inv/42 --json | jq -r .id)" = "$id" ]
    run -3 holdfast get billing.charge.v1/none
    [[ "$output" == *"no run \"billing.charge.v1/none\" in tenant default"* ]]
    run -3 holdfast get 00000000-0000-7000-8000-000000000001
    run -2 holdfast get nonsense
    [[ "$output" == *"give its id or WORKFLOW/KEY"* ]]
}

@test "get shows a block that people can read" {
    id=$(holdfast trigger billing.charge.v1 '{"invoice":42}' -q --key inv-42 --in 1h --tag a --tag b)
    run -0 holdfast get "$id"
    [[ "$output" =~ id\ +$id ]]
    [[ "$output" =~ status\ +pending ]]
    [[ "$output" =~ attempt\ +0\ of\ 3 ]]
    [[ "$output" =~ "next attempt"\ +20[0-9-]+T ]]
    [[ "$output" =~ tags\ +a,\ b ]]
    [[ "$output" =~ input\ +\{\"invoice\":42\} ]]
    [[ "$output" != *"last error"* ]]
    [[ "$output" != *$'\033'* ]]
}

@test "list filters and pages" {
    holdfast workflow create mail.send
    for i in 1 2 3 4 5; do holdfast trigger billing.charge.v1 $i -q --key "k$i" --tag "t$((i % 2))"; done
    holdfast trigger mail.send -q --subject greeting --reference ref-1
    [ "$(holdfast list --json | jq -s length)" = 6 ]
    [ "$(holdfast list --json | jq -rs '.[0].workflow')" = mail.send ]
    [ "$(holdfast list --json --workflow billing.charge.v1 | jq -s length)" = 5 ]
    [ "$(holdfast list --json --prefix mail. | jq -s length)" = 1 ]
    [ "$(holdfast list --json --tag t1 | jq -s length)" = 3 ]
    [ "$(holdfast list --json --key k3 | jq -r .input)" = 3 ]
    [ "$(holdfast list --json --subject greeting --reference ref-1 | jq -s length)" = 1 ]
    [ "$(holdfast list --json --status pending,failed | jq -s length)" = 6 ]
    [ "$(holdfast list --json --status failed --status waiting -q | jq -s length)" = 0 ]
    [ "$(holdfast list --json --created-after 1h | jq -s length)" = 6 ]
    [ "$(holdfast list --json --created-before 1h -q | jq -s length)" = 0 ]
    [ "$(holdfast list --json --created-before 1us | jq -s length)" = 6 ]
    [ "$(holdfast list --json --created-before 2090-01-01T00:00:00Z | jq -s length)" = 6 ]
    run -0 --separate-stderr holdfast list --json --limit 4
    [ "$(jq -s length <<<"$output")" = 4 ]
    cursor=$(sed -n 's/.*--cursor //p' <<<"$stderr")
    [ "$(holdfast list --json --cursor "$cursor" | jq -s length)" = 2 ]
    run -2 holdfast list --cursor nonsense
}

@test "list pages through more than the library gives at once" {
    seq 1 1203 | holdfast trigger billing.charge.v1 --lines - -q >/dev/null
    [ "$(holdfast list --all --json | jq -r .id | sort -u | wc -l)" = 1203 ]
    [ "$(holdfast list --limit 1100 --json -q | wc -l)" = 1100 ]
    run -0 holdfast list --all
    [ "$(grep -c '^ID ' <<<"$output")" = 1 ]
}

@test "an empty list says where it looked" {
    run -0 --separate-stderr holdfast list
    [ -z "$output" ]
    [[ "$stderr" == *"no such runs in sqlite:"*"(tenant default)"* ]]
}

@test "wait prints the result, and trigger --wait does too" {
    script_file double.sh 'read n; echo $((n * 2))'
    start_worker --exec 'billing.*=./double.sh'
    id=$(holdfast trigger billing.charge.v1 21)
    run -0 --separate-stderr holdfast wait "$id" --timeout 2m
    [ "$output" = 42 ]
    run -0 --separate-stderr holdfast trigger billing.charge.v1 4 --wait=2m
    [ "$output" = 8 ]
    run -0 holdfast trigger billing.charge.v1 5 --wait --json -q
    [ "$(jq -c '[.status, .result]' <<<"$output")" = '["succeeded",10]' ]
}

@test "wait exits with 8 when the run failed, with the error on stderr" {
    script_file fail.sh 'echo "the card was declined" >&2; exit 3'
    start_worker --exec 'billing.*=./fail.sh'
    run -8 --separate-stderr holdfast trigger billing.charge.v1 --max-attempts 1 --wait=2m
    [ -z "$output" ]
    [[ "$stderr" == *"failed: "*"the card was declined"* ]]
}

@test "wait exits with 8 when the run was cancelled" {
    id=$(holdfast trigger billing.charge.v1 -q)
    holdfast cancel "$id" --reason 'order withdrawn'
    run -8 holdfast wait "$id"
    [[ "$output" == *"was cancelled"* ]]
}

@test "wait exits with 6 when the time is over" {
    id=$(holdfast trigger billing.charge.v1 -q)
    run -6 holdfast wait "$id" --timeout 100ms
    run -6 holdfast trigger billing.charge.v1 --wait=100ms
}

@test "events shows the journal" {
    id=$(holdfast trigger billing.charge.v1 -q)
    holdfast --actor kim cancel "$id" --reason why-not
    run -0 holdfast events "$id" --json
    [ "$(jq -rs '[.[].name] | join(" ")' <<<"$output")" = "created cancelled" ]
    [ "$(jq -rs '.[1].actor' <<<"$output")" = kim ]
    [ "$(jq -rs '[.[].seq] | join(" ")' <<<"$output")" = "1 2" ]
    [[ "$(jq -rs '.[0].at' <<<"$output")" =~ ^20.*Z$ ]]
    [ "$(holdfast events "$id" --after 1 --json | jq -r .name)" = cancelled ]
    run -0 holdfast events "$id"
    [[ "$output" == *SEQ*created*cancelled* ]]
    run -3 holdfast events 00000000-0000-7000-8000-000000000001
}

@test "events --follow goes on until the run has ended" {
    id=$(holdfast trigger billing.charge.v1 1 -q --in 1s)
    "$program" events "$id" --follow --json >followed 3>&- &
    follower=$!
    script_file echo.sh 'cat'
    start_worker --exec 'billing.*=./echo.sh'
    wait "$follower"
    [ "$(jq -rs '.[0].name' followed)" = created ]
    [ "$(jq -rs '.[-1].name' followed)" = succeeded ]
    [ "$(jq -s '[.[].seq] == ([.[].seq] | unique)' followed)" = true ]
}

@test "pause, resume, cancel, retry, delete and restore change a run" {
    id=$(holdfast trigger billing.charge.v1 -q)
    holdfast pause "$id"
    [ "$(status_of "$id")" = paused ]
    holdfast resume "$id"
    [ "$(status_of "$id")" = pending ]
    holdfast cancel "$id"
    [ "$(status_of "$id")" = cancelled ]
    holdfast retry "$id"
    [ "$(status_of "$id")" = pending ]
    holdfast delete "$id" --reason test
    [ "$(holdfast list --json -q | jq -s length)" = 0 ]
    [ "$(holdfast list --deleted --json | jq -r .delete_reason)" = test ]
    holdfast restore "$id"
    [ "$(holdfast list --json | jq -r .id)" = "$id" ]
}

@test "a change that the status does not allow exits with 4" {
    id=$(holdfast trigger billing.charge.v1 -q)
    run -4 holdfast resume "$id"
    run -4 holdfast retry "$id"
    holdfast cancel "$id"
    run -4 holdfast cancel "$id"
    [[ "$output" == *"hint: look at it with"* ]]
}

@test "a change with an old revision exits with 4" {
    id=$(holdfast trigger billing.charge.v1 -q)
    revision=$(holdfast get "$id" --json | jq .revision)
    holdfast pause "$id"
    run -4 holdfast cancel "$id" --revision "$revision"
    holdfast cancel "$id" --revision "$(holdfast get "$id" --json | jq .revision)"
}

@test "several runs are changed at once, and what fails does not stop the others" {
    a=$(holdfast trigger billing.charge.v1 -q)
    b=$(holdfast trigger billing.charge.v1 -q)
    run -3 holdfast cancel "$a" 00000000-0000-7000-8000-000000000001 "$b"
    [ "$(status_of "$a")" = cancelled ]
    [ "$(status_of "$b")" = cancelled ]
}

@test "many runs are changed by filter, after a dry run, only with --yes" {
    holdfast workflow create mail.send
    seq 1 30 | holdfast trigger billing.charge.v1 --lines - -q >/dev/null
    other=$(holdfast trigger mail.send -q)
    run -0 holdfast cancel --prefix billing. --dry-run --json
    [ "$(jq -c '[.matched, .changed, .dry_run]' <<<"$output")" = '[30,0,true]' ]
    run -2 holdfast cancel --prefix billing. </dev/null
    [[ "$output" == *"add --yes"* ]]
    [ "$(holdfast list --json --status pending | jq -s length)" = 31 ]
    run -0 holdfast cancel --status pending --prefix billing. --yes --json --reason cleanup
    [ "$(jq -c '[.action, .matched, .changed, .refused]' <<<"$output")" = '["cancel",30,30,0]' ]
    [ "$(status_of "$other")" = pending ]
    run -0 holdfast retry --status cancelled --yes
    [[ "$output" == *"30 changed"* ]]
    [ "$(holdfast delete --all --yes --json | jq .changed)" = 31 ]
    [ "$(holdfast restore --all --yes --json | jq .changed)" = 31 ]
}

@test "a change without runs and without a filter is refused" {
    run -2 holdfast cancel
    [[ "$output" == *"which runs?"* ]]
    run -2 holdfast cancel a/b --status pending --yes
    [[ "$output" == *"not both"* ]]
}

@test "signals arrive once" {
    id=$(holdfast trigger billing.charge.v1 -q)
    run -0 holdfast signal "$id" approval '{"by":"kim"}' --id s-1 --json
    [ "$(jq .duplicate <<<"$output")" = false ]
    run -0 holdfast signal "$id" approval '{"by":"kim"}' --id s-1 --json -q
    [ "$(jq .duplicate <<<"$output")" = true ]
    run -2 --separate-stderr holdfast signal "$id" approval --type task
    [[ $stderr == *'"task" are the engine'* ]]
    run -2 holdfast signal "$id" approval '{'
    [[ "$output" == *"payload is not JSON"* ]]
    run -3 holdfast signal 00000000-0000-7000-8000-000000000001 approval
    run -4 holdfast signal "$id" approval --revision 12345
}

@test "purge removes what ended long enough ago" {
    id=$(holdfast trigger billing.charge.v1 -q)
    alive=$(holdfast trigger billing.charge.v1 -q)
    holdfast cancel "$id"
    run -2 holdfast purge
    [[ "$output" == *"--older-than 30d"* ]]
    [ "$(holdfast purge --older-than 1h --yes --json | jq .removed)" = 0 ]
    [ "$(holdfast purge --older-than 0 --workflow billing.charge.v1 --yes --json | jq .removed)" = 1 ]
    run -3 holdfast get "$id"
    [ "$(status_of "$alive")" = pending ]
}

@test "purge without a terminal wants --yes, and a dry run only counts" {
    id=$(holdfast trigger billing.charge.v1 -q)
    holdfast cancel "$id"
    run -2 holdfast purge --older-than 0 </dev/null
    [[ "$output" == *"add --yes, or --dry-run to count"* ]]
    run -0 holdfast purge --older-than 0 --dry-run </dev/null
    [ "$output" = "1 run would be removed; nothing was changed" ]
    [ "$(holdfast purge --older-than 0 -n --json | jq -c .)" = '{"dry_run":true,"matched":1,"removed":0}' ]
    [ "$(holdfast purge --older-than 0 -n --workflow other --json | jq .matched)" = 0 ]
    [ "$(status_of "$id")" = cancelled ]
    [ "$(holdfast purge --older-than 0 --yes --json | jq -c .)" = '{"dry_run":false,"matched":1,"removed":1}' ]
}

@test "a dry run shows the first of those that it would change" {
    for i in $(seq 12); do echo '{}'; done | holdfast trigger billing.charge.v1 --lines - -q >/dev/null
    run -0 holdfast cancel --status pending --dry-run
    [[ "${lines[0]}" == ID* ]]
    [ "$(grep -c pending <<<"$output")" = 10 ]
    [ "${lines[11]}" = ... ]
    [ "${lines[12]}" = "12 matched; nothing was changed" ]
    run -0 holdfast cancel --status failed --dry-run
    [ "$output" = "0 matched; nothing was changed" ]
}

@test "quiet changes of many say nothing at all" {
    holdfast trigger billing.charge.v1 -q >/dev/null
    run -0 holdfast cancel --all --yes --quiet
    [ -z "$output" ]
    run -0 holdfast retry --all --yes -q
    [ -z "$output" ]
    run -0 holdfast delete --all --dry-run -q
    [ -z "$output" ]
    [ "$(holdfast list --status pending --json | jq -s length)" = 1 ]
}

@test "a signal's payload comes from a file, and its duplicate is told" {
    id=$(holdfast trigger billing.charge.v1 -q --in 1h)
    echo '{"by":"kim"}' >payload.json
    run -0 holdfast signal "$id" approval @payload.json --id a-1 --json
    [ "$(jq .duplicate <<<"$output")" = false ]
    run -0 --separate-stderr holdfast signal "$id" approval @payload.json --id a-1
    [[ "$stderr" == *"had arrived before"* ]]
    run -4 holdfast signal "$id" approval --revision 99
}

@test "a debounced trigger goes into the run that has not begun" {
    holdfast workflow create w
    id=$(holdfast trigger w 1 --debounce k --for 1h --at-most 2h -q)
    run -0 --separate-stderr holdfast trigger w 2 --debounce k --for 1h
    [ "$output" = "$id" ]
    [[ "$stderr" == *"debounced: a run that has not begun has this input now"* ]]
    [ "$(holdfast trigger w 3 --debounce k --for 1h --json -q | jq -c '[.id, .debounced]')" = "[\"$id\",true]" ]
    [ "$(holdfast get "$id" --json | jq .input)" = 3 ]
    [ "$(holdfast events "$id" --json | jq -cs '[.[].name]')" = '["created","debounced","debounced"]' ]
    [ "$(holdfast events "$id" --json | jq -cs '.[1].data | [.input, .replaced]')" = '[2,1]' ]
}

@test "options of a debounce that do not fit together are told" {
    holdfast workflow create w
    run -2 holdfast trigger w --for 5s
    [[ "$output" == *"--for and --at-most belong to --debounce"* ]]
    run -2 holdfast trigger w --debounce k
    [[ "$output" == *"--debounce needs --for"* ]]
    run -2 holdfast trigger w --debounce k --for 1m --at-most 5s
    [[ "$output" == *"debounce_at_most is 5s; it must be between 1m"* ]]
    run -2 holdfast trigger w --debounce k --for 1m --in 1h
    [[ "$output" == *"leave run_at and delay away"* ]]
}

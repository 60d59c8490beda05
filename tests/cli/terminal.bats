# What a person in front of a terminal sees. F14.

load helper

setup()
{
    use_fresh_store
    command -v script >/dev/null || skip "script(1) is not installed"
    export TERM=xterm
    holdfast workflow create billing.charge.v1
    id=$(holdfast trigger billing.charge.v1 '{}' -q --key a-rather-long-key-that-does-not-fit-on-a-narrow-terminal)
}

@test "times are relative and statuses have colours" {
    run -0 in_terminal "'$program' list"
    [[ "$output" == *$'\033[33mpending\033[0m'* ]]
    [[ "$output" =~ (now|[0-9]+s\ ago) ]]
    run -0 in_terminal "'$program' get $id --utc"
    [[ "$output" =~ created\ +20[0-9-]+T ]]
}

@test "colours can be turned off" {
    run -0 in_terminal "'$program' list --no-color"
    [[ "$output" != *$'\033[3'* ]]
    NO_COLOR=1 run -0 in_terminal "'$program' list"
    [[ "$output" != *$'\033[3'* ]]
    TERM=dumb run -0 in_terminal "'$program' list"
    [[ "$output" != *$'\033[3'* ]]
}

@test "rows are cut to the terminal's width" {
    columns=90 run -0 in_terminal "'$program' list --no-color"
    [[ "$output" == *…* ]]
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ "${#line}" -le 90 ]
    done <<<"$output"
}

@test "columns that do not fit leave their room to the others" {
    columns=80 run -0 in_terminal "'$program' list --no-color"
    [[ "$output" == *" billing.charge.v1 "* ]]
    [[ "$output" != *KEY* ]]
}

@test "text from others cannot steer the terminal" {
    script_file evil.sh 'printf "\033]0;pwned\007 \302\233 bad" >&2; exit 1'
    start_worker --exec 'evil=./evil.sh'
    bad=$(holdfast trigger evil --max-attempts 1 -q)
    wait_until has_status "$bad" failed
    stop_worker
    run -0 in_terminal "'$program' get $bad --no-color"
    [[ "$output" == *bad* ]]
    [[ "$output" != *$'\033]0'* ]]
    [[ "$output" != *$'\302\233'* ]]
}

@test "text from others is not turned around" {
    turned=$(holdfast trigger billing.charge.v1 --key $'a\u202eb' --subject $'c\u2066d\u200fe' -q)
    run -0 in_terminal "'$program' get $turned --no-color"
    [[ "$output" =~ key\ +a\?b && "$output" =~ subject\ +c\?d\?e ]]
}

@test "a text that is longer than the terminal goes on below its beginning" {
    script_file refuse.sh 'printf "%s " $(seq 1000 1040) >&2; exit 78'
    start_worker --exec 'refuse=./refuse.sh'
    bad=$(holdfast trigger refuse -q)
    wait_until has_status "$bad" failed
    stop_worker
    columns=80 run -0 in_terminal "'$program' get $bad --no-color"
    text=$(sed -n '/^last error/,/^error code/p' <<<"${output//$'\r'/}" | sed '$d')
    [ "$(wc -l <<<"$text")" -gt 1 ]
    while IFS= read -r line; do
        [ "${#line}" -le 80 ]
        [[ "$line" == "last error "* || "$line" =~ ^\ {14}\ +[0-9] ]]
    done <<<"$text"
    columns=50 run -1 in_terminal "'$program' doctor --no-color"
    [[ "$output" == *"                        "* ]]
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ "${#line}" -le 50 ] || [[ "$line" != *" "*" "* ]] || { echo "too long: $line" && false; }
    done <<<"$output"
}

@test "what matters most of a list is shown on a narrow terminal, too" {
    holdfast schedule create nightly --cron '0 3 * * *' --workflow billing.charge.v1 -q
    columns=80 run -0 in_terminal "'$program' schedule list --no-color"
    [[ "$output" == *" NEXT"* && "$output" == *" billing.charge.v1 "* ]]
    start_worker --exec 'refuse=true'
    columns=80 run -0 in_terminal "'$program' workers --no-color"
    [[ "$output" == *" SERVES"* && "$output" == *" refuse"* ]]
    run -0 holdfast top
    [[ "$output" == *" refuse"* && "$output" != *'["refuse"]'* ]]
    stop_worker
}

@test "a change of many asks first" {
    run -1 in_terminal "'$program' cancel --all" < <(sleep 1; echo n)
    [[ "$output" == *"cancel 1 runs? [y/N]"* ]]
    [ "$(status_of "$id")" = pending ]
    run -0 in_terminal "'$program' cancel --all" < <(sleep 1; echo y)
    [ "$(status_of "$id")" = cancelled ]
}

@test "a purge tells how many and asks first" {
    holdfast cancel "$id"
    run -1 in_terminal "'$program' purge --older-than 0" < <(sleep 1; echo n)
    [[ "$output" == *"remove 1 run for good? [y/N]"* ]]
    [ "$(status_of "$id")" = cancelled ]
    run -0 in_terminal "'$program' purge --older-than 0" < <(sleep 1; echo y)
    [[ "$output" == *"1 run removed"* ]]
    run -3 holdfast get "$id"
}

@test "what cannot shrink loses its last columns instead of going on in the next line" {
    columns=60 run -0 in_terminal "'$program' list --no-color"
    [[ "$output" == *"$id"* ]]
    while IFS= read -r line; do
        line=${line%$'\r'}
        [ "${#line}" -le 60 ]
    done <<<"$output"
}

@test "a change of many shows a bar" {
    for i in $(seq 300); do echo '{}'; done | holdfast trigger billing.charge.v1 --lines - -q >/dev/null
    run -0 in_terminal "'$program' cancel --all --yes"
    [[ "$output" == *"cancel [####"*"/301 "* ]]
    [[ "$output" == *"301 changed"* ]]
    run -0 in_terminal "'$program' retry --all --yes --quiet"
    [ -z "$output" ]
}

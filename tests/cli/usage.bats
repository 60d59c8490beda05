# What the program says about itself, and how it refuses what it does not understand. F14.

load helper

setup()
{
    use_fresh_store
}

@test "without a command it shows how to start, on one screen, and exits with 2" {
    run -2 holdfast
    [[ "$output" == *"Start here:"*"trigger"*"Start a run"*"holdfast help"* ]]
    [ "${#lines[@]}" -le 30 ]
}

# The part of the overview that lists commands, with their groups.
listed()
{
    holdfast help | sed -n '/^Start here:/,/^Options of every command:/p' | sed '$d'
}

@test "help groups the commands by what people do, and what is used most comes first" {
    run -0 holdfast help
    [[ "$output" == *"Start here:"*"Runs:"*"Schedules:"*"Inside durable programs:"*"Operations:"*"Tenants and access:"* ]]
    [ "$(listed | sed -n '/^Runs:/,/^$/p' | grep -c '^  cancel ')" = 1 ]
    [ -z "$(listed | sed -n 's/^  \([a-z-]*\( [a-z]*\)\{0,1\}\)  .*/\1/p' | sort | uniq -d)" ]
}

@test "help fits a terminal of 80 columns, with a line for each command" {
    [ -z "$(holdfast help | awk 'length > 80')" ]
    [ -z "$(listed | grep '^   ')" ]
}

@test "the manual page and the reference have the same groups" {
    diff <(listed | sed -n 's/:$//p') <(holdfast help --markdown | sed -n 's/^### //p')
    diff <(listed | sed -n 's/:$//p' | tr a-z A-Z) \
        <(holdfast help --man | sed -n '/^.SH START HERE/,/^.SH EXIT CODES/s/^.SH //p' | sed '$d')
}

@test "help names every command, and every command has a page of its own" {
    commands=$(listed | sed -n 's/^  \([a-z-]*\( [a-z]*\)\{0,1\}\)  .*/\1/p')
    [ "$(wc -l <<<"$commands")" -ge 60 ]
    [ "$(wc -l <<<"$commands")" = "$(listed | grep -c '^  ')" ] # a line each
    while read -r command; do
        run -0 holdfast help $command
        [[ "$output" == "Usage: holdfast $command"* ]]
        run -0 holdfast $command --help
        [[ "$output" == "Usage: holdfast $command"* ]]
    done <<<"$commands"
}

@test "what the dashboard tells people to type is there" {
    commands=$(grep -ohE 'holdfast (schedule|workflow|token) [a-z]+|holdfast (worker|trigger)' "$HOLDFAST_SOURCE"/dashboard/*.js | sort -u)
    [ "$(wc -l <<<"$commands")" -ge 5 ]
    while read -r _ command; do
        run -0 holdfast help $command
    done <<<"$commands"
    holdfast -q workflow create hello.greet.v1
    schedule=$(grep -ohE 'holdfast schedule create [^"]*' "$HOLDFAST_SOURCE/dashboard/page_schedules.js")
    eval "run -0 $schedule"
}

@test "help of a family lists its commands" {
    run -0 holdfast help workflow
    [[ "$output" == *"workflow create"* ]]
    run -2 holdfast workflow
    [[ "$output" == *"workflow create"* ]]
}

@test "help explains the exit codes" {
    run -0 holdfast help exit-codes
    [[ "$output" == *"73"*"holds the lock"* ]]
}

@test "an unknown page of help names the nearest" {
    run -2 holdfast help exit-code
    [[ "$output" == *"did you mean exit-codes?"*'hint: see `holdfast help`'* ]]
}

@test "version is one line, or an object" {
    run -0 holdfast --version
    [[ "$output" =~ ^holdfast\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    [ "$(holdfast version --json | jq -r .version)" = "${output#holdfast }" ]
}

@test "an unknown command names the nearest" {
    run -2 holdfast triger
    [[ "$output" == *"did you mean trigger?"* ]]
    run -2 holdfast workflow craete x
    [[ "$output" == *"did you mean workflow create?"* ]]
    run -2 holdfast work
    [[ "$output" == *"did you mean worker?"* ]]
    run -2 holdfast xyzzyqqq
    [[ "$output" != *"did you mean"* ]]
}

@test "an unknown option names the nearest" {
    run -2 holdfast trigger w --priorty 3
    [[ "$output" == *"did you mean --priority?"* ]]
    run -2 holdfast list --stauts failed
    [[ "$output" == *"did you mean --status?"* ]]
    run -2 holdfast list -Z
    [[ "$output" == *"unknown option -Z"* ]]
}

@test "an unknown option that is another program's names ours, where there is one" {
    run -2 holdfast trigger w --delay=5m
    [[ "$output" == *"unknown option --delay; did you mean --in?"* ]]
    run -2 holdfast schedule create s --tz Europe/Berlin
    [[ "$output" == *"did you mean --timezone?"* ]]
    run -2 holdfast list --tz Europe/Berlin
    [[ "$output" != *"did you mean"* ]]
}

@test "too few and too many operands are refused" {
    run -2 holdfast get
    [[ "$output" == *"something is missing: holdfast get RUN..."* ]]
    run -2 holdfast wait a b
    [[ "$output" == *"\"b\" is one too many"* ]]
}

@test "numbers, durations, times, statuses and ids are checked" {
    run -2 holdfast trigger w --priority many
    [[ "$output" == *"--priority wants a whole number"* ]]
    run -2 holdfast trigger w --priority 1001
    [[ "$output" == *"within -1000 and 1000"* ]]
    run -2 holdfast trigger w --priority 99999999999999999999
    [[ "$output" == *"within -1000 and 1000"* ]]
    run -2 holdfast trigger w --in soon
    [[ "$output" == *"--in: "* ]]
    run -2 holdfast trigger w --at tomorrow
    [[ "$output" == *"--at: "* ]]
    run -2 holdfast trigger w --timeout 0
    [[ "$output" == *"longer than nothing"* ]]
    run -2 holdfast list --status fialed
    [[ "$output" == *"there is no status \"fialed\""*" failed "* ]]
    run -2 holdfast list --status running
    [[ "$output" == *"there is no status \"running\"; it is pending, leased"*"or cancelled"* ]]
    run -2 holdfast list --status failed,
    [[ "$output" == *"there is no status"* ]]
    run -2 holdfast list --parent 42
    [[ "$output" == *"--parent wants a run's id"* ]]
    run -2 holdfast list --created-after never
    [[ "$output" == *"--created-after wants a time"* ]]
}

@test "a limit that follows --wait is not taken for something else" {
    run -2 holdfast trigger w --wait 5s
    [[ "$output" == *"--wait takes its limit as --wait=5s"* ]]
    run -2 holdfast trigger w 1 --wait 10
    [[ "$output" == *"--wait takes its limit as --wait=10"* ]]
    run -2 holdfast lock name --wait 5s -- true
    [[ "$output" == *"--wait takes its limit as --wait=5s"* ]]
}

@test "what other programs call a command is understood" {
    run -2 holdfast status
    [[ "$output" == *"did you mean get?"* ]]
    run -2 holdfast logs
    [[ "$output" == *"did you mean events?"* ]]
}

@test "a missing value and a value too much are refused" {
    run -2 holdfast trigger w --key
    [[ "$output" == *"--key needs a value: --key KEY"* ]]
    run -2 holdfast list --all=yes
    [[ "$output" == *"--all takes no value"* ]]
}

@test "options that exclude each other are refused" {
    run -2 holdfast trigger w --at 2030-01-01T00:00:00Z --in 1h
    [[ "$output" == *"--at and --in exclude each other"* ]]
    run -2 holdfast trigger w --full
    [[ "$output" == *"--full belongs to --lines"* ]]
}

@test "with --json, errors are objects on stderr" {
    run -2 --separate-stderr holdfast trigger w --in soon --json
    [ -z "$output" ]
    [ "$(jq -r .error <<<"$stderr")" = invalid ]
}

@test "arguments that are not UTF-8 are refused" {
    run -2 holdfast trigger $'\xff\xfe'
    [[ "$output" == *"not valid UTF-8"* ]]
    run -2 holdfast trigger w --key $'\xc3('
    [[ "$output" == *"not valid UTF-8"* ]]
}

@test "the manual page that is checked in is current" {
    diff "$HOLDFAST_SOURCE/docs/man/holdfast.1" <(holdfast help --man) || {
        echo "make it again: holdfast help --man > docs/man/holdfast.1"
        return 1
    }
}

@test "the reference that is checked in is current" {
    diff <(sed '1,/^<!-- made by/d' "$HOLDFAST_SOURCE/docs/cli.md") <(holdfast help --markdown) || {
        echo "make the part below the mark again: holdfast help --markdown"
        return 1
    }
}

@test "the manual page has no mistakes in its roff" {
    command -v groff >/dev/null || skip "groff is not installed"
    run -0 bash -c "'$program' help --man | groff -man -Tutf8 -wall 2>&1 >/dev/null"
    [ -z "$output" ]
}

complete_line()
{
    bash -c '
        eval "$("$1" completion bash)"
        shift
        COMP_WORDS=("$@")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _holdfast
        printf "%s\n" "${COMPREPLY[@]}"' - "$program" "$@"
}

@test "bash completes commands, subcommands, options and statuses" {
    [ "$(complete_line holdfast trig)" = trigger ]
    [ "$(complete_line holdfast workflow cr)" = create ]
    [ "$(complete_line holdfast workflow | sort)" = $'workflow\nworkflows' ]
    [ "$(complete_line holdfast --store x workflow cr)" = create ]
    [ "$(complete_line holdfast trigger w --pri)" = --priority ]
    [ "$(complete_line holdfast list --status fa)" = failed ]
    [ "$(complete_line holdfast help exit)" = exit-codes ]
    [ "$(complete_line holdfast tenant create --ten)" = --tenant ]
    [ "$(complete_line holdfast --max-payload 9 workflow cr)" = create ]
}

# What fish itself offers, without the descriptions.
complete_fish()
{
    HOME=$BATS_TEST_TMPDIR fish --no-config -c '$argv[1] completion fish | source; complete -C "$argv[2..]"' "$program" "$@" |
        cut -f 1
}

@test "fish completes commands, subcommands, options and statuses" {
    command -v fish >/dev/null || skip "fish is not installed"
    touch afile
    [ "$(complete_fish holdfast trig)" = trigger ]
    [ "$(complete_fish holdfast workflow cr)" = create ]
    [ "$(complete_fish holdfast --json --max-payload 9 workflow cr)" = create ]
    [ "$(complete_fish holdfast trigger w --pri)" = --priority ]
    [ "$(complete_fish holdfast trigger w --lines afi)" = afile ]
    [ "$(complete_fish holdfast list --status fa)" = failed ]
    [ "$(complete_fish holdfast list -s fa)" = failed ]
    [ "$(complete_fish holdfast help exit)" = exit-codes ]
    [ "$(complete_fish holdfast tenant create --ten)" = --tenant ]
    [ -z "$(complete_fish holdfast tenant create --pri)" ]
}

# What zsh is told to offer: its completion system needs a terminal, so the functions that it gives are stood in for.
complete_zsh()
{
    zsh -f -c '
        offer() { local choice; for choice; do [[ $choice != $words[CURRENT]* ]] || print -r -- $choice; done; }
        compdef() { [[ "$*" == "_holdfast holdfast" ]] }
        compadd() { [[ $1 == -- ]] && shift; offer "$@"; }
        _describe() { [[ $1 == -o ]] && shift; offer "${(@)${(@P)2}%%:*}"; }
        _files() { print -l $words[CURRENT]*(N); }
        _message() { : }
        eval "$("$1" completion zsh)" || exit
        shift
        words=("$@")
        CURRENT=$#
        _holdfast' - "$program" "$@"
}

@test "zsh completes commands, subcommands, options and statuses" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    touch afile
    [ "$(complete_zsh holdfast trig)" = trigger ]
    [ "$(complete_zsh holdfast workflow cr)" = create ]
    [ "$(complete_zsh holdfast --json --max-payload 9 workflow cr)" = create ]
    [ "$(complete_zsh holdfast trigger w --pri)" = --priority ]
    [ "$(complete_zsh holdfast trigger w --lines afi)" = afile ]
    [ "$(complete_zsh holdfast trigger w afi)" = afile ]
    [ "$(complete_zsh holdfast list --status fa)" = failed ]
    [ "$(complete_zsh holdfast list -s fa)" = failed ]
    [ "$(complete_zsh holdfast help exit)" = exit-codes ]
    [ "$(complete_zsh holdfast tenant create --ten)" = --tenant ]
    [ -z "$(complete_zsh holdfast tenant create --pri)" ]
    run complete_zsh holdfast trigger w --key k
    [ -z "$output" ]
}

@test "output that cannot be written is a failure" {
    [ -e /dev/full ] || skip "no /dev/full"
    run -1 bash -c "'$program' help >/dev/full"
    [[ "$output" == *"cannot write the output"* ]]
}

@test "a store that cannot be opened is told, with exit code 5" {
    run -5 holdfast --store postgres://nobody@127.0.0.1:1/none list
    [[ "$output" == *"hint: check --store"* ]]
}

@test "a store of no known kind is wrong usage" {
    run -2 holdfast --store carrier-pigeon:coop list
}

@test "a command that needs something in the store creates none of a mistyped name" {
    for command in "list" "get a/b" "events a/b" "steps a/b" "tree a/b" "watch a/b" "wait a/b" "cancel --all --yes" \
        "signal a/b s" "fork a/b" "workflows" "workers" "tenant list" "purge --older-than 1d --yes" "workflow show w" \
        "trigger w"; do
        run -5 --separate-stderr holdfast --store sqlite:mistyped.db $command
        [[ "$stderr" == *'no such store: there is no file "mistyped.db"; `holdfast migrate` creates it'* ]]
        [ -z "$(ls mistyped.db* 2>/dev/null)" ]
    done
    HOLDFAST_STORE= run -5 holdfast list
    [[ "$output" == *'neither --store nor HOLDFAST_STORE is set, and there is no file "holdfast.db"'* ]]
    run -0 holdfast --store sqlite:made.db migrate
    run -0 holdfast --store sqlite:made.db list -q
    : >old.db # as old as can be
    run -5 holdfast --store sqlite:old.db list
    run -3 holdfast --store sqlite:old.db trigger w
    run -0 holdfast --store sqlite:old.db list -q
    run -0 holdfast --store sqlite:also.db workflow create w
    [ -e also.db ]
}

@test "a bad port is a mistake in the command line, not an outage" {
    for port in abc 99999 0; do
        run -2 holdfast list --store "postgres://nobody@localhost:$port/db"
        [[ "$output" == *"not a number from 1 to 65535"* ]]
    done
    run -2 holdfast list --store "postgres://user:se/cret@localhost/db"
    [[ "$output" != *"se"*"cret"* ]]
}

@test "a worker has at most 1024 threads" {
    run -2 holdfast worker --exec 'a=true' --threads 1025
    [[ "$output" == *"1024"* ]]
}

@test "a trace that is no traceparent is refused" {
    holdfast workflow create w -q
    run -2 holdfast trigger w --trace 00-abc-01
    [[ "$output" == *"not a W3C traceparent"* ]]
}

@test "a lease out of range is answered with durations" {
    run -2 holdfast workflow create w --lease 2d
    [[ "$output" == *"lease is 2d; it must be between 100ms and 1d"* ]]
}

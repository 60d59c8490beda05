# What the tests of hostile input share, beside those of the program.

load ../cli/helper

# refuses STATUS PATTERN COMMAND...: the command ends with this exit status and says what is wrong, in words and not by
# a crash.
refuses()
{
    local status_wanted=$1 pattern=$2
    shift 2
    run --separate-stderr timeout 60 "$@"
    if [ "$status" -ne "$status_wanted" ] || ! grep -qE -- "$pattern" <<<"$stderr" || [ -n "$output" ]; then
        echo "expected exit status $status_wanted and an error with /$pattern/:"
        printf '%q ' "${@:1:6}" | head -c 300
        printf '\nexit status %s\nstdout: %s\nstderr: %s\n' "$status" "${output:0:500}" "${stderr:0:500}"
        return 1
    fi
}

count_of_runs()
{
    holdfast list --all --json | wc -l
}

# repeat COUNT TEXT
repeat()
{
    printf "%0.s$2" $(seq "$1")
}

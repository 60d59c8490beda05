# The scripts that count and check must notice what they are there for.

setup()
{
    cd "$BATS_TEST_TMPDIR"
    mkdir src
}

# log RESULT RETURNCODE OUTPUT: one line as Meson writes it.
log()
{
    jq -cn --arg result "$1" --argjson code "$2" --arg out "$3" \
        '{name: "holdfast:unit / probe", stdout: $out, result: $result, returncode: $code}' >log.json
    run "$HOLDFAST_SOURCE/tools/tally.py" gcc log.json
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "cases of TAP are counted one by one" {
    log FAIL 1 $'1..3\nok 1 - works\nnot ok 2 - breaks\nnot ok 3 # SKIP later'
    [ "$output" = $'passed\tgcc/probe/works\nfailed\tgcc/probe/breaks\nskipped\tgcc/probe/later' ]
}

@test "several plans in one output are added up" {
    log OK 0 $'1..1\nok 1 - first\n1..1\nok 1 - second'
    [ "$output" = $'passed\tgcc/probe/first\npassed\tgcc/probe/second' ]
}

@test "a test that dies before its plan is done has failed" {
    log FAIL -6 $'1..2\nok 1 - works'
    [ "${lines[1]}" = $'failed\tgcc/probe/stopped after 1 of 2 cases' ]
}

@test "a failure after the last case, such as a leak, is a failed case" {
    log FAIL 23 $'1..1\nok 1 - works'
    [ "${lines[1]}" = $'failed\tgcc/probe/ended with fail, status 23' ]
}

# once_more NAME RESULT RETURNCODE OUTPUT: whether such a test gets a second try.
once_more()
{
    jq -cn --arg name "$1" --arg result "$2" --argjson code "$3" --arg out "$4" \
        '{name: $name, stderr: $out, result: $result, returncode: $code}' >log.json
    [ -n "$("$HOLDFAST_SOURCE/tools/tally.py" --once-more log.json)" ]
}

never_again()
{
    if once_more "$@"; then return 1; fi
}

@test "only what may have been overtaken is tried once more" {
    once_more "holdfast:server / routes" FAIL 1 "too late"
    once_more "holdfast:server / routes" TIMEOUT -15 ""
    never_again "holdfast:server / routes" OK 0 ""
    never_again "holdfast:server / routes" FAIL -11 ""
    never_again "holdfast:server / routes" FAIL 66 "WARNING: ThreadSanitizer: data race (pid=7)"
    never_again "holdfast:server / routes" FAIL 1 "x.c:1:2: runtime error: signed integer overflow"
    never_again "holdfast:crash / crash_kill_sqlite" FAIL 1 "a run is lost"
    never_again "holdfast:simulation / simulation" FAIL 1 "seed 7"
}

@test "a test without cases counts by its exit status" {
    log OK 0 'all is well'
    [ "$output" = $'passed\tgcc/probe' ]
    log TIMEOUT 1 ''
    [ "$output" = $'failed\tgcc/probe' ]
}

@test "SQL in C is found, prose is not" {
    printf '/* SELECT is fine here */\nconst char *a = "please SELECT";\n' >src/good.c
    "$HOLDFAST_SOURCE/tools/check_sql.py" src
    echo 'const char *b = "SELECT id FROM run";' >src/bad.c
    run "$HOLDFAST_SOURCE/tools/check_sql.py" src
    [ "$status" -eq 1 ]
    [[ "$output" == src/bad.c:1:* ]]
}

@test "a statement that rewrites the journal is found" {
    mkdir -p src/sql/migrate
    printf -- '-- UPDATE event in a remark\nUPDATE run SET status = 1;\nINSERT INTO event (seq) VALUES (1);\n' >src/sql/good.sql
    printf 'DELETE FROM run WHERE 1;\n' >src/sql/purge.sql
    printf 'UPDATE event SET at = 0;\n' >src/sql/migrate/001_x.sql
    "$HOLDFAST_SOURCE/tools/check_sql.py" src
    for bad in 'UPDATE holdfast.event SET at = 0' 'DELETE FROM event' 'DELETE FROM run' 'INSERT OR REPLACE INTO run VALUES (1)' \
        'REPLACE INTO event VALUES (1)'; do
        echo "$bad;" >src/sql/bad.sql
        run "$HOLDFAST_SOURCE/tools/check_sql.py" src
        [ "$status" -eq 1 ]
        [[ "$output" == src/sql/bad.sql:1:* ]]
    done
}

@test "a piece that rewrites the journal is found wherever it stands" {
    mkdir -p src/sql
    printf -- '-- name: purge\nDELETE FROM run WHERE 1;\n-- piece: gone\nDELETE FROM event\n-- name: more\nDELETE FROM run;\n' \
        >src/sql/purge.sql
    run "$HOLDFAST_SOURCE/tools/check_sql.py" src
    echo "$output"
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == src/sql/purge.sql:4:* ]]
}

@test "a link to nowhere is found" {
    printf '# Some heading\n[here](#some-heading) [web](https://example.org) [there](other.md#its-part)\n' >README.md
    printf '## Its part\n' >other.md
    "$HOLDFAST_SOURCE/tools/check_links.py" .
    echo '[gone](missing.md) [lost](other.md#no-part)' >>README.md
    run "$HOLDFAST_SOURCE/tools/check_links.py" .
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'README.md: no such file: missing.md' ]
    [ "${lines[1]}" = 'README.md: no such heading: other.md#no-part' ]
}

@test "the name of a file that is not there is found" {
    mkdir -p src/kernel docs
    touch src/kernel/op.c docs/here.md
    echo 'See kernel/op.c, docs/here.md, docs/NAME.md, example/other.c and https://example.org/docs/gone.md.' >README.md
    echo '/* See docs/here.md. */' >src/kernel/op.h
    "$HOLDFAST_SOURCE/tools/check_links.py" .
    echo 'See `kernel/gone.c`.' >>README.md
    echo '/* See docs/gone.md. */' >>src/kernel/op.h
    run "$HOLDFAST_SOURCE/tools/check_links.py" .
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = 'README.md: no such file: kernel/gone.c' ]
    [ "${lines[1]}" = 'src/kernel/op.h: no such file: docs/gone.md' ]
}

# What the documents show works, and what they list is complete. F14.

runner="$HOLDFAST_SOURCE/tests/docs/run_examples.py"

# What ran has worked; a page of which something did not run counts as skipped.
page()
{
    local said
    said=$("$runner" "$HOLDFAST_SOURCE/$1") || { echo "$said"; return 1; }
    [[ "$said" != *" skipped without "* ]] || skip "${said##*, }"
}

# Pages that are made by others than hand, or that show commands for other machines.
reference_pages="docs/cli.md docs/features.md docs/lifecycle.md docs/postgres.md"

@test "every page is run by a test here" {
    cd "$HOLDFAST_SOURCE"
    for file in README.md ARCHITECTURE.md docs/*.md; do
        [[ " $reference_pages " == *" $file "* ]] || grep -qF "page $file" tests/docs/docs.bats
    done
}

@test "README.md works as shown" { page README.md; }
@test "ARCHITECTURE.md works as shown" { page ARCHITECTURE.md; }
@test "docs/concepts.md works as shown" { page docs/concepts.md; }
@test "docs/workflows.md works as shown" { page docs/workflows.md; }
@test "docs/flow-control.md works as shown" { page docs/flow-control.md; }
@test "docs/workers.md works as shown" { page docs/workers.md; }
@test "docs/scripts.md works as shown" { page docs/scripts.md; }
@test "docs/c-api.md works as shown" { page docs/c-api.md; }
@test "docs/operations.md works as shown" { page docs/operations.md; }
@test "docs/repair.md works as shown" { page docs/repair.md; }
@test "docs/access.md works as shown" { page docs/access.md; }
@test "docs/tenants.md works as shown" { page docs/tenants.md; }
@test "docs/journal.md works as shown" { page docs/journal.md; }
@test "docs/schedules.md works as shown" { page docs/schedules.md; }
@test "docs/http.md works as shown" { page docs/http.md; }
@test "docs/metrics.md works as shown" { page docs/metrics.md; }
@test "docs/backup.md works as shown" { page docs/backup.md; }
@test "docs/dashboard.md works as shown" { page docs/dashboard.md; }
@test "docs/outbox.md works as shown" { page docs/outbox.md; }
@test "docs/tasks.md works as shown" { page docs/tasks.md; }
@test "docs/audit.md works as shown" { page docs/audit.md; }
@test "docs/dead-letters.md works as shown" { page docs/dead-letters.md; }
@test "docs/remote-workers.md works as shown" { page docs/remote-workers.md; }
@test "docs/calls.md works as shown" { page docs/calls.md; }
@test "docs/python.md works as shown" { page docs/python.md; }
@test "docs/javascript.md works as shown" { page docs/javascript.md; }
@test "docs/faq.md works as shown" { page docs/faq.md; }
@test "docs/functions.md works as shown" { page docs/functions.md; }
@test "docs/versions.md works as shown" { page docs/versions.md; }

@test "docs/lifecycle.md is what the lifecycle table says" {
    diff "$HOLDFAST_SOURCE/docs/lifecycle.md" <("$HOLDFAST_BUILD/tests/lifecycle_doc")
}

@test "the example programs of docs/c-api.md, docs/functions.md and docs/access.md call every public function" {
    cd "$HOLDFAST_SOURCE"
    cat include/holdfast/*.h | tr '\n' ' ' | grep -oE 'HF_PUBLIC[^;{]*\(' | grep -oE '\bhf_[a-z0-9_]+ ?\(' |
        tr -d ' (' | sort -u >"$BATS_TEST_TMPDIR/declared"
    [ -s "$BATS_TEST_TMPDIR/declared" ]
    while read -r name; do
        sed -n '/^```c /,/^```$/p' docs/c-api.md docs/functions.md docs/outbox.md docs/tasks.md docs/versions.md docs/access.md | grep -qE "\b$name\(" || { echo "not called: $name"; false; }
    done <"$BATS_TEST_TMPDIR/declared"
}

@test "docs/c-api.md lists every error code" {
    cd "$HOLDFAST_SOURCE"
    for name in $(grep -oE 'X\(HF_[A-Z_]+' include/holdfast/error.h | cut -c 3-); do
        grep -q "\`$name\`" docs/c-api.md || { echo "not listed: $name"; false; }
    done
}

@test "every function and statement that ARCHITECTURE.md names exists" {
    cd "$HOLDFAST_SOURCE"
    names=$(grep -oE '`[a-z]+_[a-z_]+`' ARCHITECTURE.md | tr -d '`' | sort -u)
    [ -n "$names" ]
    for name in $names; do
        grep -rqw -- "$name" src include || { echo "does not exist: $name"; false; }
    done
}

# ---- The runner itself ----

try_page()
{
    cat >"$BATS_TEST_TMPDIR/page.md"
    run "$runner" "$BATS_TEST_TMPDIR/page.md"
    echo "$output"
}

@test "the runner notices a command that fails" {
    try_page <<'PAGE'
```sh
true
false
```
PAGE
    [ "$status" -eq 1 ]
    [[ "$output" == *"line 1: failed, exit code 1"* ]]
}

@test "the runner notices an output that differs" {
    try_page <<'PAGE'
```sh
printf 'one\ntwo\n'
```
```output
one
three
```
PAGE
    [ "$status" -eq 1 ]
    [[ "$output" == *"printed something else"* ]]
}

@test "the runner takes … for any text and for any lines" {
    try_page <<'PAGE'
```sh
printf 'run 17 done\na\nb\nlast\n'
```
```output
run … done
…
last
```
PAGE
    [ "$status" -eq 0 ]
}

@test "the runner compiles C, puts parts of a file together and keeps the shell from block to block" {
    try_page <<'PAGE'
```c half.c
#include <stdio.h>
```
```c half.c
int main(void) { puts("whole"); return 0; }
```
```sh
cc -o half half.c
word=kept
```
```sh
echo "$(./half) $word"
```
```output
whole kept
```
PAGE
    [ "$status" -eq 0 ]
    try_page <<'PAGE'
```c
hf_code wrong = hf_no_such_function();
```
PAGE
    [ "$status" -eq 1 ]
    [[ "$output" == *"does not compile"* ]]
}

@test "the runner stops what a page left in the background" {
    try_page <<PAGE
\`\`\`sh
sleep 300 &
echo "\$!" >"$BATS_TEST_TMPDIR/left"
\`\`\`
PAGE
    [ "$status" -eq 0 ]
    run grep '^State:' "/proc/$(cat "$BATS_TEST_TMPDIR/left")/status"
    [ "$status" -ne 0 ] || [[ "$output" == *zombie* ]]
}

# first_lines FILE: the commands that its head shows.
first_lines()
{
    sed -n '1,20s/^\(#\|\/\/\| \*\|\)   *\(.*holdfast .*\)$/\2/p' "$HOLDFAST_SOURCE/examples/$1"
}

@test "what the shell examples show in their heads works as written" {
    cd "$BATS_TEST_TMPDIR"
    export HOLDFAST_STORE=sqlite:first.db PATH="${HOLDFAST%/*}:$PATH"
    cp "$HOLDFAST_SOURCE"/examples/*.sh .
    for name in charge:billing.charge.v1 deliver:shop.delivery.v1; do
        mapfile -t lines < <(first_lines "${name%:*}.sh")
        [ "${#lines[@]}" -ge 2 ]
        eval "${lines[0]% &} 2>>worker.log 3>&- &"
        worker=$!
        for _ in {1..300}; do
            ! holdfast workflow show "${name#*:}" >/dev/null 2>&1 || break
            sleep 0.2
        done
        run=$(eval "${lines[1]% --wait} --quiet")
        [ "${#lines[@]}" -lt 3 ] || eval "${lines[2]/RUN/$run}"
        holdfast wait "$run" --timeout 2m || [ $? -eq 8 ] # a card may be declined
        kill "$worker"
        wait "$worker" || true
    done
}

@test "the examples and the clients name the server's own port" {
    cd "$HOLDFAST_SOURCE"
    grep -qF 'default 127.0.0.1:8420' docs/cli.md
    run grep -rnE '127\.0\.0\.1:[0-9]+' examples clients --include=*.py --include=*.mjs --include=*.sh --include=*.c
    [ "$status" -eq 0 ]
    [ "$(grep -vcE '127\.0\.0\.1:8420|HOLDFAST_LISTEN=' <<<"$output")" -eq 0 ]
}

@test "the tests that docs/features.md names carry the feature's id" {
    cd "$HOLDFAST_SOURCE"
    features=0
    while IFS='|' read -r _ id _ _ tests _; do
        features=$((features + 1))
        for file in $(grep -o '`[^`]*`' <<<"$tests" | tr -d '`'); do
            head -n 6 "tests/$file" | grep -qw ${id// /} || { echo "$file: not headed by$id"; false; }
        done
    done < <(grep -E '^\| [A-F][0-9]+ \|' docs/features.md)
    [ "$features" -ge 40 ]
}

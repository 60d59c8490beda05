#!/usr/bin/env bats
# Names, keys and tags that nobody should choose.

load helper

setup()
{
    use_fresh_store
    holdfast workflow create work
    odd_texts=('../.. 😀' "a'b" 'a";DROP TABLE run;--' "'; DELETE FROM run; --" '*' '%s%n%s' '%' '_' '$(id) \'
        '<script>alert(1)</script>' 'NULL' '-1' '--help')
}

# find_by TEXT: what each way to look for it brings, a line each.
find_by()
{
    local option
    for option in --key --subject --tag --reference; do
        holdfast list --json "$option=$1"
    done
    holdfast get --json "work/$1"
}

@test "absurd names of workflows and tenants are refused" {
    local name
    for name in '' '../..' "$(repeat 10240 x)" $'a\nb' $'\x1b[31m' $'a\x7f' '😀' "a'b" 'a";DROP TABLE run;--' 'a b' 'a/b' \
        '*' '.' '-x' '%s%n' '$(id)'; do
        refuses 2 'workflow name' "$program" workflow create -- "$name"
        refuses 2 'tenant' "$program" tenant create -- "$name"
    done
    refuses 2 "engine's own" "$program" workflow create holdfast.mine
    [ "$(holdfast workflows --json | wc -l)" -eq 1 ]
}

@test "runs of workflows with absurd names are refused, not made" {
    local name
    for name in '' '../..' "$(repeat 10240 x)" $'a\nb' '😀' "a'b" '*'; do
        run --separate-stderr "$program" trigger -- "$name"
        [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
        [ -n "$stderr" ]
    done
    refuses 3 'no workflow|not registered|unknown' "$program" trigger unknown.workflow
    [ "$(count_of_runs)" -eq 0 ]
}

@test "keys, subjects and tags without sense are refused: empty, too long, with control characters" {
    local option text
    for option in --key --subject --reference --partition --tag --actor; do
        for text in '' "$(repeat 10240 x)" $'a\nb' $'a\tb' $'\x1b]0;x\a'; do
            refuses 2 'empty|too long|control character' "$program" trigger work "$option=$text"
        done
    done
    [ "$(count_of_runs)" -eq 0 ]
}

@test "keys, subjects and tags may be any text, and are found again by it" {
    local text id found
    for text in "${odd_texts[@]}"; do
        id=$(holdfast trigger work -q --key="$text" --subject="$text" --tag="$text" --reference="$text")
        found=$(find_by "$text")
        [ "$(wc -l <<<"$found")" -eq 5 ]
        [ "$(jq -r '"\(.id) \(.key)"' <<<"$found" | LC_ALL=C sort -u)" = "$id $text" ]
    done
    [ "$(count_of_runs)" -eq "${#odd_texts[@]}" ]
}

@test "runs that do not exist, or whose name makes no sense, are not found" {
    local name
    for name in 0199a1b2-0000-7000-8000-000000000000 work/none unknown/key; do
        refuses 3 . "$program" get -- "$name"
    done
    for name in '' / // work/ /key 0199a1b2 "$(repeat 10240 x)" "work/$(repeat 10240 x)" '../..' '😀' "' OR 1=1 --"; do
        run --separate-stderr "$program" get -- "$name"
        [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
        [ -n "$stderr" ]
    done
}

@test "cursors that nobody gave are refused" {
    local cursor
    for cursor in '' x "' OR 1=1 --" 99999999999999999999 "$(repeat 10240 f)" '😀'; do
        run --separate-stderr "$program" list --cursor="$cursor"
        [ "$status" -eq 2 ]
        [ -n "$stderr" ]
    done
}

@test "a worker's absurd patterns and names are refused" {
    local pattern
    for pattern in '=true' 'work' 'work=' "$(repeat 10240 x)=true" $'a\nb=true' '😀=true' 'a*b=true' 'work="open'; do
        refuses 2 . "$program" worker --exec "$pattern"
    done
    refuses 2 . "$program" worker --exec work=true --name ''
    refuses 2 . "$program" worker --exec work=true --name "$(repeat 10240 x)"
}

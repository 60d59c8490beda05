#!/usr/bin/env bats
# Inputs, signals and lines that are not what they should be.

load helper

setup()
{
    use_fresh_store
    holdfast workflow create work
}

@test "what is not JSON is refused with its position" {
    local bad
    for bad in '{' '' 'nul' '{"a":1} x' '[1,]' "{'a':1}" 'NaN' '01' '"\ud800"' '"\x"' $'"a\nb"' '{"a"}'; do
        refuses 2 'not JSON.*at byte [0-9]+' "$program" trigger work -- "$bad"
    done
    [ "$(count_of_runs)" -eq 0 ]
}

@test "JSON that databases stumble over is kept as it is" {
    local odd id
    for odd in '"\u0000"' '1e999' '-1e-999' '123456789012345678901234567890' '{"a":1,"a":2}' '{"":[{}]}' '"\ud83d\ude00"'; do
        id=$(holdfast trigger work -q -- "$odd")
        [ "$(holdfast get --json "$id" | sed 's/.*"input":\(.*\),"state".*/\1/')" = "$odd" ]
    done
}

@test "ten megabytes are refused, from an argument's file and from stdin" {
    { printf '"'; head -c 10000000 /dev/zero | tr '\0' x; printf '"'; } >big.json
    refuses 2 'larger than 1048576 bytes' "$program" trigger work @big.json
    refuses 2 'larger than 1048576 bytes' "$program" trigger work - <big.json
    id=$(holdfast trigger work -q)
    refuses 2 'larger than 1048576 bytes' "$program" signal "$id" go @big.json
    [ "$(count_of_runs)" -eq 1 ]
}

@test "a source without an end is refused, not read forever" {
    refuses 2 'larger than' "$program" trigger work @/dev/zero
    refuses 2 'larger than' "$program" trigger work - </dev/zero
}

@test "one mebibyte is accepted, one byte more is not" {
    { printf '"'; head -c 1048574 /dev/zero | tr '\0' x; printf '"'; } >exact.json
    { printf '"'; head -c 1048575 /dev/zero | tr '\0' x; printf '"'; } >over.json
    holdfast trigger work @exact.json -q
    refuses 2 'larger than 1048576 bytes' "$program" trigger work @over.json
}

@test "the limit can be raised and lowered" {
    { printf '"'; head -c 2000000 /dev/zero | tr '\0' x; printf '"'; } >large.json
    holdfast trigger work @large.json -q --max-payload 3000000
    refuses 2 'larger than 10 bytes' "$program" trigger work '"0123456789"' --max-payload 10
    refuses 2 'max-payload' "$program" trigger work --max-payload -1
}

@test "nesting without an end is refused" {
    refuses 2 'levels of nesting' "$program" trigger work "$(repeat 50000 '[')"
}

@test "invalid UTF-8 is refused wherever it comes from" {
    printf '"\xff\xfe"' >bad.json
    refuses 2 'UTF-8' "$program" trigger work @bad.json
    refuses 2 'UTF-8' "$program" trigger work $'"\xff"'
    refuses 2 'UTF-8' "$program" trigger work --key $'\xc0\x80'
    refuses 2 'UTF-8' "$program" trigger work --tag $'\xed\xa0\x80'
    refuses 2 'UTF-8' "$program" trigger $'w\xff'
    [ "$(count_of_runs)" -eq 0 ]
}

@test "NUL bytes are refused" {
    printf '"a\0b"' >nul.json
    refuses 2 'NUL byte' "$program" trigger work @nul.json
    refuses 2 'NUL byte' "$program" trigger work - <nul.json
}

@test "files that cannot be read are named" {
    refuses 2 'missing.json.*No such file' "$program" trigger work @missing.json
    refuses 2 'directory' "$program" trigger work "@$BATS_TEST_TMPDIR"
}

@test "bad lines are refused one by one, the good ones among them are accepted" {
    { echo '{"a":1}'; echo '{'; printf '"\xff"\n'; echo '2'; printf '"a\0b"\n'; repeat 20000 '['; echo; echo '3'; } >lines
    run --separate-stderr "$program" trigger work --lines lines
    [ "$status" -ne 0 ]
    [ "$(count_of_runs)" -eq 3 ]
    local line
    for line in 2 3 5 6; do
        grep -q "line $line\b" <<<"$stderr"
    done
}

@test "a program's output that is no text, or without an end, fails its run and not the worker" {
    script_file binary.sh 'printf "\377\376\000"'
    script_file endless.sh 'cat /dev/zero'
    holdfast workflow create binary --max-attempts 1
    holdfast workflow create endless --max-attempts 1
    holdfast workflow create fine
    start_worker --exec 'binary=./binary.sh' --exec 'endless=./endless.sh' --exec 'fine=cat'
    refuses 8 . "$program" trigger binary --wait=2m -q
    refuses 8 . "$program" trigger endless --wait=2m -q
    [ "$(holdfast trigger fine '{"a":1}' --wait=2m -q)" = '{"a":1}' ]
    stop_worker
    [ "$worker_status" -eq 0 ]
}

teardown()
{
    stop_worker
}

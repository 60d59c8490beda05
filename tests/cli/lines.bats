# trigger --lines: many runs from a file.

load helper

setup()
{
    use_fresh_store
    holdfast workflow create w
}

@test "every line becomes a run, blank ones do not count" {
    printf '{"n":1}\n\n  \r\n{"n":2}\n{"n":3}' >lines
    run -0 --separate-stderr holdfast trigger w --lines lines --tag bulk
    [ "$(wc -l <<<"$output")" = 3 ]
    [[ "$stderr" == *"3 accepted, 0 refused"* ]]
    [ "$(holdfast list --tag bulk --json | jq -s '[.[].input.n] | sort == [1,2,3]')" = true ]
}

@test "a refused line is named with its number, the others are accepted" {
    printf '1\nnot json\n3\n"\xff"\n' >lines
    run -2 --separate-stderr holdfast trigger w --lines lines
    [ "$(wc -l <<<"$output")" = 2 ]
    [[ "$stderr" == *"line 2: it is not JSON"* ]]
    [[ "$stderr" == *"line 4: "* ]]
    [[ "$stderr" == *"2 accepted, 2 refused"* ]]
}

@test "a line that is too long or has a NUL is refused" {
    { printf '"'; head -c 1200000 /dev/zero | tr '\0' x; printf '"\n1\n"a\0b"\n'; } >lines
    run -2 --separate-stderr holdfast trigger w --lines lines
    [ "$(wc -l <<<"$output")" = 1 ]
    [[ "$stderr" == *"line 1: it is longer than"* ]]
    [[ "$stderr" == *"line 3: it is not JSON"* ]]
}

@test "full lines say all about a run" {
    holdfast workflow create v
    cat >lines <<'LINES'
{"workflow":"v","input":{"big":123456789012345678901234567890,"s":"}]\"{"},"key":"k1","priority":5,"tags":["a","b"]}
{"input":[1, 2],"key":"k\u00e9","subject":"s","reference":"r","partition":"p","max_attempts":7,"at":"2090-01-01T00:00:00Z","require_worker":false}
{"key":"k3","in":"1h","timeout":7200,"input":null}
LINES
    run -0 holdfast trigger w --full --lines lines -q
    holdfast get v/k1 --json >got
    grep -q '"big":123456789012345678901234567890,' got
    [ "$(jq -c '[.priority, .tags, .input.s]' got)" = '[5,["a","b"],"}]\"{"]' ]
    [ "$(holdfast get w/ké --json | jq -c '[.input, .subject, .max_attempts, .run_at]')" = '[[1,2],"s",7,"2090-01-01T00:00:00.000Z"]' ]
    [ "$(holdfast get w/k3 --json | jq -c '.timeout_at != null')" = true ]
}

@test "full lines are checked member by member" {
    cat >lines <<'LINES'
{"workflow":"w","prioritty":5}
{"workflow":"w","priority":"high"}
{"workflow":"w","in":"soon"}
{"workflow":"w","tags":"red"}
{"workflow":"w","tags":[1]}
{"workflow":7}
[1]
{"input":1}
{"workflow":"w","require_worker":"yes"}
{"workflow":"w","key":"a\u0000b"}
{"workflow":"none"}
{"workflow":"w","priority":100000}
{"workflow":"w"}
LINES
    run -2 --separate-stderr holdfast trigger --full --lines lines
    [ "$(wc -l <<<"$output")" = 1 ]
    [[ "$stderr" == *'line 1: there is no member "prioritty"; did you mean "priority"?'* ]]
    [[ "$stderr" == *'line 2: "priority" must be a whole number'* ]]
    [[ "$stderr" == *'line 3: "in": '* ]]
    [[ "$stderr" == *'line 4: "tags" must be an array'* ]]
    [[ "$stderr" == *'line 5: "tags" must be a string'* ]]
    [[ "$stderr" == *'line 6: "workflow" must be a string'* ]]
    [[ "$stderr" == *"line 7: it must be a JSON object"* ]]
    [[ "$stderr" == *"line 8: which workflow?"* ]]
    [[ "$stderr" == *'line 9: "require_worker" must be true or false'* ]]
    [[ "$stderr" == *'line 10: "key" must not have a NUL'* ]]
    [[ "$stderr" == *"line 11: no workflow named none"* ]]
    [[ "$stderr" == *"line 12: "* ]]
    [[ "$stderr" == *"1 accepted, 12 refused"* ]]
}

@test "with --json every line has its answer" {
    printf '1\nx\n' >lines
    run -2 --separate-stderr holdfast trigger w --lines lines --json -q
    [ "$(jq -cs '[.[] | [.line, .code]] | sort' <<<"$output")" = '[[1,"ok"],[2,"invalid"]]' ]
}

@test "every refused line has its own message" {
    printf '{"key":"k","input":1}\n{"key":"k","input":2}\n{"workflow":"none"}\n{"key":"k","input":3}\n{"priority":7000}\n' >lines
    run -4 --separate-stderr holdfast trigger w --full --lines lines --json -q
    [ "$(jq -cs 'sort_by(.line) | [.[].code]' <<<"$output")" = '["ok","conflict","unknown_workflow","conflict","invalid"]' ]
    [ "$(jq -s '[.[] | select(.message | strings | test("belongs to run [0-9a-f-]+, which has another input"))] | length' <<<"$output")" = 2 ]
    [[ "$(jq -r 'select(.line == 5).message' <<<"$output")" == "priority is 7000; it must be between"* ]]
}

@test "thousands of lines come from stdin in chunks" {
    run -0 --separate-stderr bash -c "seq 1 2345 | '$program' trigger w --lines -"
    [ "$(sort -u <<<"$output" | wc -l)" = 2345 ]
    [[ "$stderr" == *"2345 accepted"* ]]
}

@test "a key that is taken by another input is refused alone" {
    printf '{"key":"k","input":1}\n{"key":"k","input":2}\n{"key":"l","input":2}\n' >lines
    run -4 --separate-stderr holdfast trigger w --full --lines lines
    [ "$(wc -l <<<"$output")" = 2 ]
    [[ "$stderr" == *"line 2: "* ]]
}

@test "lines may be debounced" {
    printf '{"input":1}\n{"input":2,"debounce":"b"}\n{"input":3}\n' >lines
    run -0 --separate-stderr holdfast trigger w --full --lines lines --debounce a --for 1h --json -q
    [ "$(jq -cs 'sort_by(.line) | [.[].debounced]' <<<"$output")" = '[false,false,true]' ]
    [ "$(holdfast list --json | jq -cs '[.[].input] | sort')" = '[2,3]' ]
    printf '{"input":1,"debounce":"c"}\n{"input":1,"debounce":"c","for":60,"at_most":"1h"}\n' >lines
    run -2 --separate-stderr holdfast trigger w --full --lines lines
    [[ "$stderr" == *"line 1: debounce_for is 0"* ]]
    [[ "$stderr" == *"1 accepted, 1 refused"* ]]
}

@test "a file that is not there is told" {
    run -2 holdfast trigger w --lines missing
    [[ "$output" == *"cannot read \"missing\""* ]]
}

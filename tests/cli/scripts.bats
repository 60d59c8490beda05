# Durable scripts: programs under --exec whose steps are remembered. B8.

load helper

setup()
{
    use_fresh_store
    put_program_on_path
    touch trace
    holdfast workflow create w --lease 2s --retry-base 10ms --retry-cap 20ms --max-attempts 5 -q
}

teardown()
{
    stop_worker
}

# durable BODY: a bash script for the workflow w, and a worker that runs it. note WORD leaves a line in the file trace.
durable()
{
    printf '#!/bin/bash\nset -euo pipefail\nnote() { echo "$1" >>trace; }\nexport -f note\n%s\n' "$1" >w.sh
    chmod +x w.sh
    start_worker --exec 'w=./w.sh'
}

result_of()
{
    holdfast trigger w "$@" --wait=2m -q
}

times()
{
    grep -cx "$1" trace || true
}

# Whether a process is there; one that nobody has reaped yet is not.
lives()
{
    [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null || echo Z)" != Z ]
}

waits()
{
    has_status "$1" waiting
}

# So many signals were taken.
has_moved_on()
{
    [ "$(holdfast steps "$1" --json | jq -s '[.[] | select(.op == "wait" and .status == "succeeded")] | length')" = "$2" ]
}

needs()
{
    command -v "$1" >/dev/null || skip "there is no $1 here"
}

@test "a finished step is not run again and prints what it printed" {
    durable '
        first=$(holdfast step first -- bash -c "note first; echo hellö")
        holdfast sleep nap 10ms
        note "$first"
        holdfast sleep again 10ms
        echo "$first"'
    [ "$(result_of)" = '"hellö"' ]
    [ "$(tr '\n' ' ' <trace)" = "first hellö hellö " ]
}

@test "a script that fails after its steps is tried again and repeats none of them" {
    durable '
        note began
        a=$(holdfast step a -- bash -c "note a; echo 1")
        b=$(holdfast step b -- bash -c "note b; echo 2")
        [ "$HOLDFAST_ATTEMPT" = 3 ] || exit 1
        echo "[$a,$b]"'
    [ "$(result_of | jq -c .)" = '[1,2]' ]
    [ "$(times began)" = 3 ]
    [ "$(times a)$(times b)" = 11 ]
}

@test "what a step prints is remembered byte for byte" {
    durable '
        holdfast step exact -- printf "  {\"b\": 1.50,\t\"a\":[]}\n\n" | od -An -c | tr -d " \n" >>"out.$HOLDFAST_ATTEMPT"
        [ "$HOLDFAST_ATTEMPT" = 2 ]'
    result_of
    [ -s out.1 ]
    cmp out.1 out.2
    grep -qF '1.50,\t"a":[]}\n\n' out.2
}

@test "a step that fails exits with its command's code, now and later, with its last words" {
    durable '
        code=0; holdfast step bad --retry 0 -- bash -c "note bad; echo the card is declined >&2; exit 9" 2>words || code=$?
        cat words >&2
        grep -q "the card is declined" words
        holdfast sleep nap 100ms
        echo $code'
    [ "$(result_of)" = 9 ]
    [ "$(times bad)" = 1 ]
}

@test "a step is retried by its policy, with the same key, and the script is not there meanwhile" {
    durable '
        note began
        holdfast step flaky --retry 3 --retry-base 10ms -- bash -c "
            echo \$HOLDFAST_STEP_KEY >>keys; note try-\$HOLDFAST_STEP_ATTEMPT; [ \$HOLDFAST_STEP_ATTEMPT = 3 ]"
        echo "$HOLDFAST_ATTEMPT"'
    [ "$(result_of)" = 1 ]
    [ "$(times began)" = 3 ]
    [ "$(grep try trace | tr '\n' ' ')" = "try-1 try-2 try-3 " ]
    [ "$(sort -u keys | wc -l)" = 1 ]
    grep -q '/flaky$' keys
}

@test "when its retries are used up, the step has failed; exit code 78 uses up none" {
    durable '
        code=0; holdfast step bad --retry 2 --retry-base 1ms -- bash -c "note bad; exit 4" || code=$?
        holdfast step hopeless --retry 9 -- bash -c "note hopeless; exit 78" || code=$code$?
        echo "$code"'
    [ "$(result_of)" = 478 ]
    [ "$(times bad)" = 3 ]
    [ "$(times hopeless)" = 1 ]
}

@test "a step that says nothing of retries is tried as often as its run" {
    durable '
        holdfast step flaky --retry-base 10ms -- bash -c "note try; [ \$HOLDFAST_STEP_ATTEMPT = 3 ]"
        echo "$HOLDFAST_ATTEMPT"'
    [ "$(result_of)" = 1 ]
    [ "$(times try)" = 3 ]
}

@test "a script that fails with its step fails for good, and is not begun again in vain" {
    durable '
        note began
        holdfast step bad --retry 1 --retry-base 1ms -- bash -c "note bad; exit 4"'
    run -8 result_of
    [ "$(times bad)" = 2 ]
    [ "$(times began)" = 2 ]
}

@test "a script that fails with a wait that timed out fails for good" {
    durable '
        set -e
        note began
        holdfast wait never --timeout 50ms'
    run -8 result_of
    [ "$(times began)" = 2 ]
}

@test "a script that fails with its child fails for good" {
    holdfast workflow create kid --max-attempts 1 -q
    printf '#!/bin/bash\nexit 4\n' >kid.sh
    printf '#!/bin/bash\nset -e\necho began >>trace\nholdfast child wait done "$(holdfast child start c kid)"\n' >w.sh
    chmod +x kid.sh w.sh
    start_worker --exec 'kid=./kid.sh' --exec 'w=./w.sh'
    run -8 result_of
    [ "$(times began)" = 2 ]
}

@test "a step that takes too long is ended with all that it started" {
    durable '
        code=0; holdfast step slow --retry 0 --timeout 200ms -- bash -c "sleep 1234.5 & echo \$! >pid; sleep 1234.5" || code=$?
        echo $code'
    [ "$(result_of)" = 6 ]
    run ! lives "$(cat pid)"
}

@test "output that cannot be remembered fails the step" {
    durable '
        code=0; holdfast step binary -- printf "\377\n" || code=$?
        holdfast step zero -- printf "a\0b" || code=$code$?
        holdfast step much -- bash -c "note much; head -c 2000000 /dev/zero | tr \"\\0\" x" || code=$code$?
        holdfast step quotes -- bash -c "head -c 700000 /dev/zero | tr \"\\0\" \\\"" || code=$code$?
        holdfast step missing --retry 0 -- ./no-such-program || code=$code-$?
        holdfast sleep nap 10ms
        holdfast step much -- true || code=$code-$?
        echo "\"$code\""'
    [ "$(result_of)" = '"1111-127"' ] || { cat worker.log; false; }
    [ "$(times much)" = 1 ]
}

@test "steps run at once in background jobs, and a wait does not cut them off" {
    durable '
        holdfast step slow -- bash -c "note slow; until [ -e quick-is-done ]; do sleep 0.05; done; sleep 0.3; echo 1" >slow.out &
        holdfast step quick -- bash -c "note quick; echo 2" >quick.out
        touch quick-is-done
        holdfast sleep nap 10ms
        wait
        echo "[$(cat slow.out),$(cat quick.out)]"'
    [ "$(result_of | jq -c .)" = '[1,2]' ]
    [ "$(times slow)$(times quick)" = 11 ]
}

@test "two background steps that both wait for their next attempt get it" {
    durable '
        for n in a b; do
            holdfast step $n --retry 5 --retry-base 50ms -- bash -c "note $n; [ \$HOLDFAST_STEP_ATTEMPT = 3 ] && echo $n" >$n.out &
        done
        wait
        echo "\"$(cat a.out b.out | tr -d "\n")\""'
    [ "$(result_of)" = '"ab"' ]
    [ "$(times a)$(times b)" = 33 ]
}

@test "a sleep takes no process and is slept once" {
    durable 'note began; echo $$ >pid; holdfast sleep nap 1s; note woke'
    id=$(holdfast trigger w -q)
    wait_until waits "$id"
    run ! lives "$(cat pid)"
    holdfast wait "$id" --timeout 2m
    [ "$(tr '\n' ' ' <trace)" = "began began woke " ]
}

@test "a sleep that is over is shown as ended, though only later lines tell of it" {
    durable 'holdfast sleep nap 1s; holdfast wait go >/dev/null'
    id=$(holdfast trigger w -q)
    wait_until eval 'holdfast steps "$id" | grep -q "^go "'
    run -0 holdfast steps "$id" --json
    [ "$(jq -c 'select(.name == "nap") | [.status, .finished == .until]' <<<"$output")" = '["succeeded",true]' ]
    [ "$(jq -r 'select(.name == "go").status' <<<"$output")" = waiting ]
    run -0 holdfast steps "$id"
    [[ "$output" =~ nap\ +sleep\ +succeeded.*\ 1\.0s ]]
}

@test "a sleep may end at a time" {
    durable 'holdfast sleep past 2020-01-01T00:00:00Z; holdfast sleep future "$(date -u -d "+1 sec" +%FT%TZ)"; note woke'
    result_of
    [ "$(times woke)" = 1 ]
}

@test "suspension ends all of the program's process group" {
    durable 'sleep 1234.6 & echo $! >pid; (trap "" TERM; echo $BASHPID >stubborn; sleep 1234.6) & sleep 0.2
        holdfast wait never'
    id=$(holdfast trigger w -q)
    wait_until waits "$id"
    run ! lives "$(cat pid)"
    run ! lives "$(cat stubborn)"
}

@test "a signal may come before or after it is waited for, and is seen once" {
    durable '
        early=$(holdfast wait early)
        late=$(holdfast wait late --timeout 1m)
        again=$(holdfast wait late --timeout 1m)
        echo "[$early,$late,$again]"'
    id=$(holdfast trigger w --in 500ms -q)
    holdfast signal "$id" early '{"n":1}'
    wait_until waits "$id"
    holdfast signal "$id" late '"two"'
    wait_until grep -q 'late' <(holdfast events "$id")
    holdfast signal "$id" late 3.50
    [ "$(holdfast wait "$id" --timeout 2m | tr -d ' ')" = '[{"n":1},"two",3.50]' ]
}

@test "a wait for a signal can time out, every time again" {
    durable '
        code=0; holdfast wait never --timeout 50ms 2>words || code=$?
        holdfast sleep nap 10ms
        grep -q never words
        echo $code'
    [ "$(result_of)" = 6 ]
}

@test "inside a script holdfast wait and pause still take runs by id and by key" {
    script_file kid.sh 'echo 7'
    durable '
        id=$(holdfast trigger kid --key k -q)
        a=$(holdfast wait "$id" --timeout 2m)
        b=$(holdfast wait kid/k --timeout 2m)
        code=0; holdfast pause kid/k 2>/dev/null || code=$?
        echo "[$a,$b,$code]"'
    stop_worker
    start_worker --give-store --exec 'w=./w.sh' --exec 'kid=./kid.sh'
    [ "$(result_of | jq -c .)" = '[7,7,4]' ]
}

@test "children are started once, and their results come back" {
    script_file kid.sh 'n=$(cat); echo kid >>trace; [ "$n" != 3 ] || exit 78; echo "$((n * 10))"'
    durable '
        a=$(holdfast child start a kid 1)
        b=$(holdfast child start b kid 2 --key bee)
        one=$(holdfast child wait one "$a")
        c=$(holdfast child start c kid 4)
        all=$(holdfast child wait all "$c" "$b" | jq -s -c "map(.result)")
        c=$(holdfast child start d kid 3)
        code=0; holdfast child wait bad "$c" 2>words || code=$?
        grep -q "failed" words
        many=0; holdfast child wait many "$a" "$c" 2>words >/dev/null || many=$?
        grep -q "the child $c is failed: " words
        echo "[$one,$all,$code,$many]"'
    stop_worker
    start_worker --exec 'w=./w.sh' --exec 'kid=./kid.sh'
    [ "$(result_of | jq -c .)" = '[10,[40,20],8,8]' ]
    [ "$(times kid)" = 4 ]
}

@test "a wait without ids is for the children of that name, or for all, and never for nobody" {
    script_file kid.sh 'n=$(cat); echo "$((n * 10))"'
    durable '
        none=0; holdfast child wait kids 2>words || none=$?
        grep -q "waits for no children: this run has started none" words
        holdfast child start one kid 1 >/dev/null
        for n in 2 3; do holdfast child start kids kid $n >/dev/null; done
        one=$(holdfast child wait one)
        kids=$(holdfast child wait kids | jq -s -c "map(.result)|sort")
        all=$(holdfast child wait everything | jq -s -c "map(.result)|sort")
        echo "[$none,$one,$kids,$all]"'
    stop_worker
    start_worker --exec 'w=./w.sh' --exec 'kid=./kid.sh'
    [ "$(result_of | jq -c .)" = '[2,10,[20,30],[10,20,30]]' ]
}

@test "a retry says whether the failed step is tried again, and else how to have it done again" {
    durable 'holdfast step pay -- sh -c "exit 78" || [ -e deaf ] || exit 78; holdfast step mail -- true; exit 78'
    holdfast trigger w --key w-1 --quiet >/dev/null
    run -8 holdfast wait w/w-1 --timeout 2m
    stop_worker
    run -0 --separate-stderr holdfast retry w/w-1
    [[ "$stderr" == *'the step "pay" will be tried again, those before it will not'* ]]
    touch deaf
    start_worker --exec 'w=./w.sh'
    run -8 holdfast wait w/w-1 --timeout 2m
    stop_worker
    run -0 --separate-stderr holdfast retry w/w-1
    [[ "$stderr" == *'meets the failure of "pay" that the run remembers; to have it done again: holdfast fork w/w-1 --from pay'* ]]
    run -0 holdfast fork w/w-1 --from pay --key w-2
}

@test "children: --any, --fail-fast, a timeout, and an unknown workflow" {
    script_file kid.sh 'n=$(cat); case $n in 1) echo 1;; 2) exit 78;; *) sleep 60;; esac'
    durable '
        quick=$(holdfast child start quick kid 1)
        slow=$(holdfast child start slow kid 0)
        any=$(holdfast child wait any "$slow" "$quick" --any | jq -c .result)
        bad=$(holdfast child start bad kid 2)
        fast=0; holdfast child wait fast "$slow" "$bad" --fail-fast >/dev/null || fast=$?
        late=0; holdfast child wait late "$slow" --timeout 50ms 2>/dev/null || late=$?
        unknown=0; holdfast child start what no.such.workflow 2>words || unknown=$?
        grep -q no.such.workflow words
        echo "[$any,$fast,$late,$unknown]"'
    stop_worker
    start_worker --exec 'w=./w.sh' --exec 'kid=./kid.sh' --stop-limit 1s
    [ "$(result_of | jq -c .)" = '[1,8,6,3]' ]
}

@test "who looks at a run that waits for a signal sees which" {
    durable 'holdfast wait go; holdfast wait go'
    id=$(holdfast trigger w -q)
    for turn in 1 2; do
        wait_until waits "$id"
        holdfast get "$id" | grep -qE '^waits for +signal "go"$'
        holdfast signal "$id" go "$turn" -q
        wait_until has_moved_on "$id" "$turn"
    done
}

@test "progress, state and events are told, also by a step" {
    durable '
        holdfast progress 40 "resizing"
        holdfast step inner -- bash -c "holdfast progress 60; holdfast state \"{\\\"phase\\\":\\\"inner\\\"}\""
        holdfast emit order.packed "{\"order\":7}"
        holdfast sleep nap 10ms'
    id=$(holdfast trigger w -q)
    holdfast wait "$id" --timeout 2m
    [ "$(holdfast events "$id" --json | jq -c 'select(.name == "progress") | .data.percent' | tr '\n' ' ')" = "40 60 " ]
    [ "$(holdfast get --json "$id" | jq -c .state)" = '{"phase":"inner"}' ]
    [ "$(sqlite3 store.db "SELECT count(*) FROM outbox WHERE type = 'order.packed'" 2>/dev/null || echo 1)" = 1 ]
}

@test "a script pauses itself until it is resumed, or for a time" {
    durable 'holdfast pause check; note resumed; holdfast pause again --for 100ms; note later'
    id=$(holdfast trigger w -q)
    wait_until has_status "$id" paused
    holdfast resume "$id"
    holdfast wait "$id" --timeout 2m
    [ "$(tr '\n' ' ' <trace)" = "resumed resumed later " ]
}

@test "time, ids and chance are the same every time" {
    durable '
        echo "$(holdfast now) $(holdfast uuid) $(holdfast uuid) $(holdfast random)" >>seen
        [ "$HOLDFAST_ATTEMPT" = 2 ]'
    result_of
    [ "$(wc -l <seen)" = 2 ]
    [ "$(sort -u seen | wc -l)" = 1 ]
    [ "$(cut -d' ' -f2 seen | sort -u)" != "$(cut -d' ' -f3 seen | sort -u)" ]
}

@test "a step's command cannot call what only the script may" {
    durable '
        holdfast step outer -- holdfast sleep inner 1d 2>words && exit 1
        grep -q "does not work inside a step" words
        echo 1'
    [ "$(result_of)" = 1 ]
}

@test "exit code 78 fails the run for good" {
    durable 'note began; echo "no such customer" >&2; exit 78'
    run -8 holdfast trigger w --wait=2m
    [[ "$output" == *"no such customer"* ]]
    [ "$(times began)" = 1 ]
}

@test "programs find the store of their worker if it is given to them" {
    script_file w.sh 'holdfast trigger w --key other --in 1h -q >/dev/null; echo "\"$HOLDFAST_STORE\""'
    store=$HOLDFAST_STORE
    unset HOLDFAST_STORE
    start_worker --give-store --exec 'w=./w.sh' --store "$store"
    export HOLDFAST_STORE=$store
    [ "$(result_of)" = "\"$store\"" ]
    [ "$(status_of w/other)" = pending ]
}

# A function of libpq that src/cli/late_libpq.c lacks would bring all of it back, without an error.
@test "the program does not load libpq before it needs it" {
    LD_TRACE_LOADED_OBJECTS=1 "$program" >libraries
    grep -q libsqlite3 libraries
    run ! grep libpq libraries
}

@test "outside a worker's program the commands say where they work" {
    run -2 holdfast step a -- true
    [[ "$output" == *"works inside a program that a worker runs with --exec"* ]]
    run -2 holdfast sleep a 1s
    run -2 holdfast progress 5
    run -2 holdfast pause check --for 1d
    HOLDFAST_RUN_SOCKET=/no/such/socket run -1 holdfast step a -- true
    [[ "$output" == *"does not answer"* ]]
}

@test "wrong usage is refused before anything is done" {
    durable '
        for words in "step a" "step a --retry -1 -- true" "sleep a" "sleep a soon" "progress 101" "state {" "emit" \
            "child start a" "child wait" "child wait a 7"; do
            code=0; holdfast $words 2>/dev/null || code=$?
            [ $code = 2 ] || { echo "$words: $code" >&2; exit 78; }
        done
        code=0; holdfast step "" -- note never || code=$?
        echo $code'
    [ "$(result_of)" = 2 ]
    [ "$(times never)" = 0 ]
}

@test "steps are remembered when the worker is killed, and what it ran dies with it" {
    durable '
        holdfast step a -- bash -c "note a; echo 1" >/dev/null
        [ -e killed ] || { sleep 1234.7 & echo $! >bystander; }
        holdfast step b -- bash -c "note b; echo \$\$ >pid; [ -e killed ] || exec sleep 1234.7"
        note end'
    id=$(holdfast trigger w -q)
    wait_until test -s pid
    touch killed
    victim=$(cat pid)
    kill -KILL "$worker_pid"
    wait "$worker_pid" || true
    gone() { ! lives "$victim" && ! lives "$(cat bystander)"; }
    wait_until gone
    start_worker --exec 'w=./w.sh'
    holdfast wait "$id" --timeout 2m
    [ "$(times a)" = 1 ]
    [ "$(times b)" = 2 ]
    [ "$(times end)" = 1 ]
}

@test "a program that talks to nobody dies with its worker, too" {
    script_file w.sh 'echo $$ >pid; exec sleep 1234.8'
    start_worker --exec 'w=./w.sh'
    holdfast trigger w -q
    wait_until test -s pid
    kill -KILL "$worker_pid"
    wait "$worker_pid" || true
    gone() { ! lives "$(cat pid)"; }
    wait_until gone
}

@test "what peers send does no harm" {
    needs python3
    cat >peers.py <<'PY'
import os, socket, sys
def peer():
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["HOLDFAST_RUN_SOCKET"])
    s.settimeout(20)
    return s
def ask(line):
    s = peer()
    s.sendall(line)
    return s.makefile("rb").readline()
bad = [b"\n", b"garbage\n", b"[]\n", b"{}\n", b'{"do":7}\n', b'{"do":"what"}\n', b'{"do":"step"}\n', b"\xff\xfe\x00\n",
       b'{"do":"step","name":"a","attempts":-1}\n', b'{"do":"step","name":"a","attempts":1e99}\n', b"[" * 100000 + b"\n",
       b'{"do":"step","name":"' + b"x" * 300 + b'"}\n', b'{"do":"done","output":"x"}\n', b'{"do":"fail"}\n',
       b'{"do":"sleep","name":"a","us":"1"}\n', b'{"do":"children","name":"a","ids":[1]}\n', b'{"do":"wait"}\n',
       b'{"do":"start","name":"a"}\n', b'{"do":"start","name":"a","workflow":"..","input":"{"}\n',
       b'{"do":"state","json":"{"}\n', b'{"do":"emit","type":""}\n', b'{"do":"progress","percent":101}\n']
for line in bad:
    answer = ask(line)
    assert b'"error":' in answer, (line, answer)
silent = [peer() for _ in range(100)]
half = peer(); half.sendall(b'{"do":"st')
mute = peer(); mute.sendall(b'{"do":"now"}\n' * 1000)
huge = peer()
try:
    for _ in range(100):
        huge.sendall(b"x" * 100000)
except OSError:
    pass
gone = peer(); gone.sendall(b'{"do":"step","name":"left"}\n'); gone.recv(100); gone.close()
os.system("holdfast step fine -- echo fine")
PY
    durable 'python3 peers.py'
    [ "$(result_of)" = '"fine"' ] || { cat worker.log; false; }
}

@test "a Python program is durable too" {
    needs python3
    cat >w.py <<'PY'
#!/usr/bin/env python3
import json, subprocess, sys
def holdfast(*words):
    return subprocess.run(["holdfast", *words], check=True, stdout=subprocess.PIPE, text=True).stdout
order = json.load(sys.stdin)
open("trace", "a").write("began\n")
price = holdfast("step", "price", "--", "sh", "-c", "echo price >>trace; echo 40")
holdfast("sleep", "nap", "100ms")
ok = json.loads(holdfast("wait", "approved", "--timeout", "1m"))
print(json.dumps({"order": order["id"], "price": int(price) + 2, "by": ok["by"]}))
PY
    chmod +x w.py
    start_worker --exec 'w=./w.py'
    id=$(holdfast trigger w '{"id":7}' -q)
    wait_until waits "$id"
    holdfast signal "$id" approved '{"by":"kim"}'
    [ "$(holdfast wait "$id" --timeout 2m | jq -c .)" = '{"order":7,"price":42,"by":"kim"}' ]
    [ "$(times price)" = 1 ]
}

@test "a Perl program is durable too" {
    needs perl
    cat >w.pl <<'PL'
#!/usr/bin/env perl
use strict; use warnings;
my $a = `holdfast step a -- sh -c 'echo a >>trace; echo 20'`; die if $?;
system("holdfast", "sleep", "nap", "100ms") == 0 or die;
open(my $b, "-|", "holdfast", "step", "b", "--", "sh", "-c", "echo b >>trace; echo 22") or die;
print $a + <$b>, "\n";
PL
    chmod +x w.pl
    start_worker --exec 'w=./w.pl'
    [ "$(result_of)" = 42 ]
    [ "$(times a)$(times b)" = 11 ]
}

@test "a script, its children and what it triggers have the trace of its run" {
    trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
    holdfast workflow create part -q
    durable '
        note "$TRACEPARENT"
        holdfast trigger part --key triggered -q >/dev/null
        holdfast child start kid part --key kid >/dev/null
        echo done'
    stop_worker
    start_worker --give-store --exec 'w=./w.sh'
    result_of --trace "$trace" --key one
    [ "$(times "$trace")" -ge 1 ]
    for run in w/one part/triggered part/kid; do
        [ "$(holdfast --json get "$run" | jq -r .trace)" = "$trace" ]
    done
}

@test "a trigger takes the trace from the environment if it is well-formed" {
    trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
    TRACEPARENT=$trace holdfast trigger w --key one -q
    TRACEPARENT=nonsense holdfast trigger w --key two -q
    TRACEPARENT=$trace holdfast trigger w --key three -q --trace "${trace%01}00"
    [ "$(holdfast --json get w/one | jq -r .trace)" = "$trace" ]
    [ "$(holdfast --json get w/two | jq -r .trace)" = null ]
    [ "$(holdfast --json get w/three | jq -r .trace)" = "${trace%01}00" ]
    run holdfast trigger w --key four --trace nonsense
    [ "$status" -eq 2 ]
}

@test "a script that ends while one of its steps runs has not succeeded" {
    durable '
        holdfast step late -- sh -c "touch begun; sleep 60" &
        while [ ! -e begun ]; do sleep 0.05; done
        echo done'
    run -8 --separate-stderr holdfast trigger w --key k --wait=2m
    [[ "$stderr" == *'the program ended while its step "late" was under way'* ]]
    [ "$(holdfast get w/k --json | jq -c '[.error_code, .attempt]')" = '["not_awaited",1]' ]
}

@test "a run that gives up on a step has the code of its command" {
    durable 'holdfast step pay --retry 0 -- sh -c "echo declined >&2; exit 4"'
    run -8 holdfast trigger w --key k --wait=2m
    [ "$(holdfast get w/k --json | jq -c '[.error_code, .error.step]')" = '["exit_4","pay"]' ]
    [ "$(holdfast events w/k --json | jq -r 'select(.step == "pay") | .data.code')" = exit_4 ]
    stop_worker
    durable 'holdfast step pay --retry 0 --timeout 50ms -- sleep 60'
    run -8 holdfast trigger w --key late --wait=2m
    [ "$(holdfast get w/late --json | jq -r .error_code)" = timeout ]
}

@test "exit code 75 with --retry-after uses up no try, until its limit" {
    durable '
        holdfast step ask --retry 0 --retry-after 10ms -- bash -c "
            note try-\$HOLDFAST_STEP_ATTEMPT; [ \$(grep -c ^try trace) = 4 ] || exit 75; echo 7"'
    [ "$(result_of)" = 7 ]
    [ "$(times try-1)" = 4 ]
    stop_worker
    durable 'holdfast step ask --retry 0 --retry-after 10ms --retry-after-limit 1ms -- sh -c "exit 75"'
    run -8 holdfast trigger w --key impatient --wait=2m
    [ "$(holdfast get w/impatient --json | jq -r .error_code)" = exit_75 ]
}

@test "a limit of 0 is none" {
    durable '
        a=$(holdfast step a --timeout 0 -- echo 1)
        b=$(holdfast wait go --timeout 0)
        echo "[$a,$b]"'
    id=$(holdfast trigger w -q)
    holdfast signal "$id" go 2
    [ "$(holdfast wait "$id" --timeout 2m | jq -c .)" = '[1,2]' ]
}

@test "a later pass tells nothing again, whatever the order, and still what is new" {
    durable '
        holdfast state "\"begun\""
        holdfast progress 10 & holdfast progress 20 & wait
        for n in 1 2 3; do
            holdfast state "\"turn\""
            holdfast sleep "nap-$n" 10ms
        done
        holdfast state "\"begun\""'
    id=$(holdfast trigger w -q)
    holdfast wait "$id" --timeout 2m
    told() { holdfast events "$id" --json | jq -c "select(.kind == \"domain\" and .name == \"$1\")" | wc -l; }
    [ "$(told published)" = 5 ]
    [ "$(told progress)" = 2 ]
    [ "$(holdfast get --json "$id" | jq -r .state)" = begun ]
}

@test "what a step that is tried again tells, it tells again" {
    durable '
        holdfast state "\"waits\""
        holdfast step s --retry 2 --retry-base 10ms -- bash -c "
            holdfast state \"\\\"works\\\"\"; [ \$HOLDFAST_STEP_ATTEMPT = 3 ]"'
    id=$(holdfast trigger w -q)
    holdfast wait "$id" --timeout 2m
    [ "$(holdfast events "$id" --json | jq -c 'select(.kind == "domain" and .name == "published")' | wc -l)" = 4 ]
}

@test "a retry does the step again on which a script gave up, also if it has told so" {
    durable '
        holdfast step s --retry 0 -- bash -c "note try; [ -e good ]" || { holdfast state "\"broken\""; exit 1; }
        echo 7'
    id=$(holdfast trigger w -q)
    run -8 holdfast wait "$id" --timeout 2m
    touch good
    holdfast retry "$id" -q
    [ "$(holdfast wait "$id" --timeout 2m)" = 7 ]
    [ "$(times try)" = 2 ]
}

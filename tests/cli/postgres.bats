# The program on PostgreSQL: the same behaviour on the other backend. F9.

load helper

setup()
{
    use_fresh_store
    use_fresh_postgres
    holdfast migrate -q
}

teardown()
{
    stop_worker
    drop_postgres
}

@test "a run is triggered, worked on and waited for" {
    script_file double.sh 'read n; echo $((n * 2))'
    start_worker --exec 'w=./double.sh'
    [ "$(holdfast trigger w 21 --wait=2m -q)" = 42 ]
    [ "$(holdfast list --status succeeded --json | jq .result)" = 42 ]
}

@test "keys, conflicts and unknown workflows have the same exit codes" {
    run -3 holdfast trigger none
    holdfast workflow create w
    holdfast trigger w 1 --key k -q
    run -4 holdfast trigger w 2 --key k
    run -0 holdfast trigger w 1 --key k --json -q
    [ "$(jq .existed <<<"$output")" = true ]
}

@test "many runs are triggered from lines and cancelled by filter" {
    holdfast workflow create w
    seq 1 1500 | holdfast trigger w --lines - -q >/dev/null
    [ "$(holdfast cancel --status pending --yes --json | jq .changed)" = 1500 ]
    [ "$(holdfast purge --older-than 0 --yes --json | jq .removed)" = 1500 ]
}

@test "events are followed to the end" {
    holdfast workflow create w
    id=$(holdfast trigger w 1 -q --in 500ms)
    "$program" events "$id" --follow --json >followed 3>&- &
    follower=$!
    script_file echo.sh cat
    start_worker --exec 'w=./echo.sh'
    wait "$follower"
    [ "$(jq -rs '.[-1].name' followed)" = succeeded ]
}

@test "a lock has one holder" {
    "$program" lock nightly -- sh -c 'touch held; while [ ! -e enough ]; do sleep 0.05; done' 3>&- &
    holder=$!
    wait_until test -e held
    run -73 holdfast lock nightly -- true
    touch enough
    wait "$holder"
    run -0 holdfast lock nightly --wait=2m -- true
}

@test "a command that looks does not make a schema" {
    psql -qX "$HOLDFAST_STORE" -c "DROP SCHEMA holdfast CASCADE" 2>/dev/null
    run -5 --separate-stderr holdfast list
    [[ "$stderr" == *"holdfast migrate"* ]]
    [ "$(psql -qXAt "$HOLDFAST_STORE" -c "SELECT count(*) FROM pg_namespace WHERE nspname = 'holdfast'")" = 0 ]
    run -0 holdfast workflow create w
    run -0 holdfast list
}

@test "the store's URL with its password is not shown" {
    HOLDFAST_STORE=${HOLDFAST_STORE/postgres@/postgres:se?cret@}
    run -0 --separate-stderr holdfast list
    [[ "$stderr" == *"no such runs in postgres://postgres@/"* ]]
    [[ "$stderr$output" != *cret* && "$stderr$output" != *:se* ]]
}

@test "a role is granted a tenant, reads it alone, and loses it again" {
    app="hf_cli_app_$$"
    holdfast tenant create acme
    holdfast --tenant acme workflow create w
    holdfast workflow create w
    holdfast trigger w -q
    psql -qX "$HOLDFAST_STORE" -c "CREATE ROLE $app LOGIN"
    run -0 holdfast tenant grant acme "$app" --json
    [ "$output" = "{\"tenant\":\"acme\",\"role\":\"$app\",\"granted\":true}" ]
    as_app="$HOLDFAST_STORE&user=$app"
    id=$(psql -AtqX "$as_app" -c "SELECT holdfast.trigger('w')")
    [ "$(psql -AtqX "$as_app" -c "SELECT id FROM holdfast.runs")" = "$id" ]
    [ "$(holdfast --tenant acme get "$id" --json | jq -r .actor)" = "$app" ]
    run -0 holdfast tenant grant acme "$app" --read-only
    run ! psql -AtqX "$as_app" -c "SELECT holdfast.trigger('w')"
    run -4 holdfast tenant grant default "$app"
    run -3 holdfast tenant grant acme nobody_at_all
    run -0 holdfast tenant revoke acme "$app"
    run -3 holdfast tenant revoke acme "$app"
    run ! psql -AtqX "$as_app" -c "SELECT 1 FROM holdfast.runs"
    psql -qX "$HOLDFAST_STORE" -c "DROP ROLE $app"
}

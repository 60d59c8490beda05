# The sealed journal and dead letters from the command line, on both backends, and a second opinion on seals. F2.

load helper

setup()
{
    use_fresh_store
    database=
}

teardown()
{
    stop_worker
    drop_postgres
}

# Runs, worked on and sealed by a worker that starts when all is done.
make_sealed_store()
{
    holdfast workflow create w
    for key in a b c; do
        holdfast trigger w '{"ü": "x"}' --key $key -q
    done
    start_worker --exec 'w=cat'
    for key in a b c; do
        holdfast wait w/$key --timeout 2m >/dev/null
    done
    stop_worker
    before=$(holdfast audit head 2>/dev/null) || before=none
    holdfast workflow create later
    holdfast trigger later -q # so that there is something to seal for the next worker, and with it all that came before
    start_worker --exec 'other=true'
    all_sealed() { [ "$(holdfast audit verify --json | jq '.unsealed')" -le 10 ] && [ "$(holdfast audit head)" != "$before" ]; }
    patience=900 wait_until all_sealed # transactions of others on the same server hold it up, and it looks ever more seldom
    stop_worker
}

second_opinion()
{
    "$HOLDFAST_SOURCE/examples/verify_seals.py" "${HOLDFAST_STORE#sqlite:}"
}

# tamper SQL: as one who owns the database; tables are called as in SQLite.
tamper()
{
    if [ -n "$database" ]; then
        psql -qX "$HOLDFAST_STORE" -c "SET session_replication_role = replica; SET search_path = holdfast; $1"
    else
        sqlite3 store.db "DROP TRIGGER IF EXISTS event_no_update; DROP TRIGGER IF EXISTS event_no_delete; $1"
    fi
}

check_tampering()
{
    make_sealed_store
    run -0 holdfast audit verify
    [[ "$output" == good:* ]]
    run -0 second_opinion
    [ "$output" = good ]
    head=$(holdfast audit head)
    [ "${#head}" = 64 ]
    run -0 holdfast audit verify --head "$head"
    run -9 holdfast audit verify --head "${head//[0-9]/f}"
    [[ "$output" == *head_missing* ]]

    id=$(holdfast get w/b --json | jq -r .id)
    tamper "UPDATE event SET actor = 'nobody' WHERE name = 'succeeded' AND run_id = (SELECT id FROM run WHERE key = 'b')"
    run -9 holdfast audit verify
    [[ "$output" == *"event_changed"*"run $id, event 3"* ]]
    [[ "$output" == *"NOT GOOD: 1 problem in"* ]]
    run -9 holdfast audit verify --json
    [ "$(jq -r .problem <<<"${lines[0]}") $(jq -r .run <<<"${lines[0]}") $(jq -r .seq <<<"${lines[0]}")" = "event_changed $id 3" ]
    [ "$(jq .problems <<<"${lines[1]}")" = 1 ]
    run -1 second_opinion
    [[ "$output" == *"run $id"* ]]
}

@test "tampering with a SQLite file is found, and by another program too" {
    check_tampering
}

@test "tampering with PostgreSQL is found, and by another program too" {
    use_fresh_postgres
    check_tampering
}

check_purge()
{
    make_sealed_store
    holdfast purge --older-than 0s --workflow w -y -q
    [ "$(holdfast list --workflow w --json | wc -l)" = 0 ]
    run -0 holdfast audit verify --json
    [ "$(jq .purged_events <<<"$output")" = 9 ]
    run -0 second_opinion
}

@test "after a purge a SQLite journal is still good, for another program too" {
    check_purge
}

@test "after a purge a PostgreSQL journal is still good, for another program too" {
    use_fresh_postgres
    check_purge
}

@test "a store without seals says so" {
    holdfast workflow create w
    run -3 holdfast audit head
    [[ "$output" == *"nothing is sealed yet"* ]]
    run -0 holdfast audit verify
    run -2 holdfast audit verify --head short
}

@test "a workflow's retention is kept by workers" {
    holdfast workflow create w --retention 1s
    holdfast trigger w --key old -q
    holdfast cancel w/old -q
    sleep 1.1
    start_worker --exec 'other=true'
    is_gone() { ! holdfast get w/old >/dev/null 2>&1; }
    wait_until is_gone
    run -0 holdfast get holdfast.retention/store --json
    [ "$(jq -r .status <<<"$output")" != failed ]
}

# A letter as the engine writes it.
make_letter()
{
    sqlite3 store.db "INSERT INTO dead_letter (tenant_id, id, run_id, reason, envelope, node, created_at)
        SELECT tenant_id, x'0190000000007000800000000000000$1', id, 'poison: the run failed on this signal 5 times',
               json_object('id', 'bad-$1', 'type', 'external', 'name', 'pay', 'payload', '{\"n\":$1}'), 'w1', 1
          FROM run WHERE key = '$2'"
}

@test "dead letters are listed, shown, requeued and discarded" {
    holdfast workflow create w
    holdfast trigger w --key k --in 1h -q
    make_letter 1 k
    make_letter 2 k
    run -0 holdfast dead-letter list
    [[ "${lines[0]}" == *ID*REASON*RUN* ]]
    [ "${#lines[@]}" = 3 ]
    first=01900000-0000-7000-8000-000000000001
    second=01900000-0000-7000-8000-000000000002
    run -0 holdfast dead-letter list --run w/k --reason poison --limit 1 --json --quiet
    [ "$(jq -r .id <<<"$output")" = $second ]
    run -0 holdfast dead-letter show $first --json
    [ "$(jq -r .envelope.name <<<"$output")" = pay ]
    run -0 holdfast --actor ada dead-letter requeue $first
    run -0 holdfast --actor ben dead-letter discard $second
    [ "$(holdfast dead-letter list --json -q | wc -l)" = 0 ]
    run -0 holdfast events w/k --json
    [ "$(jq -r 'select(.name == "dead_letter_requeued") | .actor' <<<"$output")" = ada ]
    [ "$(jq -r 'select(.name == "dead_letter_discarded") | .actor' <<<"$output")" = ben ]
    [ "$(jq -r 'select(.name == "pay") | .kind' <<<"$output")" = signal ]
}

@test "a dead letter that cannot be requeued stays, with the reason" {
    holdfast workflow create w
    holdfast trigger w --key k --in 1h -q
    make_letter 1 k
    holdfast cancel w/k -q
    run -4 holdfast dead-letter requeue 01900000-0000-7000-8000-000000000001
    [[ "$output" == *"has finished (cancelled)"* ]]
    run -3 holdfast dead-letter show 01900000-0000-7000-8000-000000000009
    run -2 holdfast dead-letter discard nonsense
    [ "$(holdfast dead-letter list --json | wc -l)" = 1 ]
}

# The SQL in docs/postgres.md works as shown, block after block, in a new database.

bats_require_minimum_version 1.5.0

setup()
{
    [ -n "$HOLDFAST_TEST_POSTGRES" ] || skip "HOLDFAST_TEST_POSTGRES names no server"
    program=${HOLDFAST_BIN:-$HOLDFAST}
    database=holdfast_doc_$$
    psql -qX "$HOLDFAST_TEST_POSTGRES" -c "CREATE DATABASE $database"
    HOLDFAST_STORE=$(sed -E "s#^(postgres(ql)?://[^/]*)/[^?]*#\1/$database#" <<<"$HOLDFAST_TEST_POSTGRES")
    export HOLDFAST_STORE
    "$program" workflow create billing.invoice_charge.v1 >/dev/null
    "$program" workflow create billing.reminder.v1 >/dev/null
}

teardown()
{
    [ -n "${database:-}" ] || return 0
    psql -qX "$HOLDFAST_TEST_POSTGRES" -c "DROP DATABASE IF EXISTS $database WITH (FORCE)"
    for role in $roles; do psql -qX "$HOLDFAST_TEST_POSTGRES" -c "DROP ROLE IF EXISTS ${role}_$$"; done
}

roles="holdfast_engine shop analyst"

# Roles belong to the whole server: they get names of their own. Its settings are not ours to change.
examples()
{
    local expression='/ALTER SYSTEM/d'
    for role in $roles; do expression+="; s/\\b$role\\b/${role}_$$/g"; done
    sed -n '/^ *```sql$/,/^ *```$/{/```/!p}' "$HOLDFAST_SOURCE/docs/postgres.md" | sed "$expression"
}

query()
{
    psql -AtqX "$HOLDFAST_STORE" -c "$1"
}

@test "the examples work" {
    examples >"$BATS_TEST_TMPDIR/examples.sql"
    [ "$(grep -c holdfast.trigger "$BATS_TEST_TMPDIR/examples.sql")" -ge 5 ]
    psql -AtqX -v ON_ERROR_STOP=1 -f "$BATS_TEST_TMPDIR/examples.sql" "$HOLDFAST_STORE" >"$BATS_TEST_TMPDIR/output"
    [ "$(query "SELECT status FROM holdfast.runs WHERE key = 'inv-42'")" = cancelled ]
    [ "$(query "SELECT status FROM holdfast.runs WHERE key = 'inv-43'")" = pending ]
    [ "$(query "SELECT count(*) FROM holdfast.runs WHERE workflow = 'billing.reminder.v1'")" = 1002 ]
    [ "$(query "SELECT flow_key FROM holdfast.runs WHERE key = 'reminder-42'")" = customer-7 ]
    [ "$(query "SELECT count(*) FROM holdfast.runs WHERE debounce_key = 'invoice-42'")" = 1 ]
    [ "$(query "SELECT count(*) FROM holdfast.signals WHERE id = 'payment-1'")" = 1 ]
}

@test "the roles of the examples can do what the page says" {
    examples >"$BATS_TEST_TMPDIR/examples.sql"
    psql -AtqX -v ON_ERROR_STOP=1 -f "$BATS_TEST_TMPDIR/examples.sql" "$HOLDFAST_STORE" >/dev/null
    as_shop="$HOLDFAST_STORE&user=shop_$$"
    as_analyst="$HOLDFAST_STORE&user=analyst_$$"
    id=$(psql -AtqX "$as_shop" -c "SELECT holdfast.trigger('billing.reminder.v1')")
    run ! psql -AtqX "$as_shop" -c "SELECT 1 FROM holdfast.runs"
    [ "$(psql -AtqX "$as_analyst" -c "SELECT status FROM holdfast.runs WHERE id = '$id'")" = pending ]
    run ! psql -AtqX "$as_analyst" -c "SELECT holdfast.cancel('$id')"
    run ! psql -AtqX "$as_analyst" -c "SELECT secret FROM holdfast.subscription"
    for view in runs events steps signals workflows workers; do
        psql -AtqX "$as_analyst" -c "SELECT * FROM holdfast.$view" >/dev/null
    done
    HOLDFAST_STORE="$HOLDFAST_STORE&user=holdfast_engine_$$" "$program" trigger billing.reminder.v1 1 -q
    HOLDFAST_STORE="$HOLDFAST_STORE&user=holdfast_engine_$$" "$program" cancel "$id"
    [ "$(query "SELECT actor FROM holdfast.events WHERE run = '$id' AND seq = 1")" = "shop_$$" ]
}

# Workflows, tenants, the schema. B1.

load helper

setup()
{
    use_fresh_store
}

@test "a workflow is created once and shown" {
    holdfast workflow create w --max-attempts 5 --retry-base 2s --retry-cap 1m --lease 45s \
        --timeout 1h --retention 90d --dead-letter graveyard
    holdfast workflow create w
    run -0 holdfast workflow show w --json
    [ "$(jq -c '[.name, .max_attempts, .retry_base, .retry_cap, .lease, .timeout]' <<<"$output")" = \
        '["w",5,"2s","1m","45s","1h"]' ]
    [ "$(jq -r .dead_letter <<<"$output")" = graveyard ]
    run -0 holdfast workflow show w
    [[ "$output" =~ "max attempts"\ +5 ]]
    [[ "$output" =~ lease\ +45s ]]
}

@test "a retention without a unit is refused: days that are taken for seconds destroy" {
    holdfast workflow create w -q
    run -2 --separate-stderr holdfast workflow set w --retention 30
    [[ "$stderr" == *"--retention needs a unit, as in 30d"* ]]
    run -2 holdfast purge --older-than 30 --yes
    run -0 holdfast workflow set w --retention 0
}

@test "a rate may name its unit alone" {
    holdfast workflow create w --rate 5/s -q
    [ "$(holdfast workflow show w --json | jq -c '[.rate_count, .rate_interval]')" = '[5,"1s"]' ]
}

@test "set changes what it is told and nothing else" {
    holdfast workflow create w --max-attempts 5 --dead-letter graveyard
    holdfast workflow set w --lease 10s --dead-letter ''
    run -0 holdfast workflow show w --json
    [ "$(jq -c '[.max_attempts, .lease, .dead_letter]' <<<"$output")" = '[5,"10s",null]' ]
    run -2 holdfast workflow set w
    [[ "$output" == *"nothing to set"* ]]
    run -3 holdfast workflow set unknown --lease 10s
    [[ "$output" == *"no workflow named unknown: create it"* ]]
}

@test "a definition comes from a file" {
    echo 'do: [ ]' >definition.yaml
    holdfast workflow create w --definition @definition.yaml
    [ "$(holdfast workflow show w --json | jq -r .definition)" = 'do: [ ]' ]
    run -2 holdfast workflow create w --definition @missing
}

@test "names are checked" {
    run -2 holdfast workflow create 'a b'
    run -2 holdfast workflow create ''
    run -2 holdfast workflow create "$(printf 'x%.0s' $(seq 300))"
    run -2 holdfast tenant create '../etc'
}

@test "workflows are listed with their counts" {
    holdfast workflow create billing.a
    holdfast workflow create mail.b
    holdfast trigger billing.a -q
    holdfast trigger billing.a -q --in 1h
    run -0 holdfast workflows --json
    [ "$(jq -rs '[.[].name] | sort | join(" ")' <<<"$output")" = "billing.a mail.b" ]
    [ "$(jq -c 'select(.name == "billing.a") | [.due, .delayed]' <<<"$output")" = '[1,1]' ]
    [ "$(holdfast workflow list --prefix mail. --json | jq -r .name)" = mail.b ]
    run -0 holdfast workflow list
    [[ "$output" == *NAME*DUE*billing.a*mail.b* ]]
}

@test "a workflow is paused and resumed" {
    holdfast workflow create w
    holdfast workflow pause w
    [ "$(holdfast workflow show w --json | jq .paused)" = true ]
    holdfast workflow resume w
    [ "$(holdfast workflow show w --json | jq .paused)" = false ]
    run -3 holdfast workflow pause unknown
}

@test "who triggers, waits for or looks at a run of a paused workflow is told" {
    holdfast workflow create w
    run -0 --separate-stderr holdfast trigger w
    [[ "$stderr" != *paused* ]]
    holdfast workflow pause w
    run -0 --separate-stderr holdfast trigger w
    [[ "$stderr" == *'w is paused; its runs begin after `holdfast workflow resume w`'* ]]
    id=$output
    run -0 holdfast get "$id"
    [[ "$output" == *"next attempt   when its workflow, which is paused, is resumed"* ]]
    run -6 holdfast wait "$id" --timeout 10ms
    [[ "$output" == *"w is paused;"* ]]
    run -6 holdfast trigger w --wait=10ms
    [ "$(grep -c "w is paused;" <<<"$output")" -eq 1 ]
    holdfast cancel "$id"
    run -8 holdfast wait "$id"
    [[ "$output" != *paused* ]]
}

@test "tenants do not see each other" {
    holdfast tenant create acme
    holdfast workflow create w
    holdfast --tenant acme workflow create w
    id=$(holdfast trigger w -q)
    run -3 holdfast --tenant acme get "$id"
    HOLDFAST_TENANT=acme run -0 holdfast list --json -q
    [ -z "$output" ]
    [ "$(holdfast tenant list --json | jq -rs '[.[].name] | sort | join(" ")')" = "acme default" ]
    run -3 holdfast --tenant nobody list
}

@test "a disabled tenant is refused until it is enabled" {
    holdfast tenant create acme
    holdfast --tenant acme workflow create w
    holdfast tenant disable acme
    [ "$(holdfast tenant list --json | jq -r 'select(.name == "acme") | .disabled')" = true ]
    run -4 holdfast --tenant acme trigger w
    holdfast tenant enable acme
    holdfast --tenant acme trigger w -q
    run -3 holdfast tenant disable nobody
    [[ "$output" == *"no tenant named nobody"* ]]
}

@test "migrate creates the store and tells its version" {
    rm -f store.db
    run -5 holdfast migrate --check
    run -0 holdfast migrate --json
    [ "$(jq '.schema == .newest' <<<"$output")" = true ]
    run -0 holdfast migrate --check
    [[ "$output" == *"up to date"* ]]
}

@test "migrate --check accepts a newer schema that suits this program, and says so" {
    holdfast migrate -q
    sqlite3 "${HOLDFAST_STORE#sqlite:}" "INSERT INTO schema_version (version, name, min_writer, applied_at)
        VALUES (99, 'future', 1, 0)"
    run -0 holdfast migrate --check
    [[ "$output" == *"schema version 99, newer than"*"go on using it"* ]]
    run -0 holdfast migrate --check --json
    [ "$(jq '.schema > .newest' <<<"$output")" = true ]
    sqlite3 "${HOLDFAST_STORE#sqlite:}" "UPDATE schema_version SET min_writer = 98 WHERE version = 99"
    run -5 holdfast migrate --check
    [[ "$output" == *"install a newer holdfast"* ]]
}

@test "without --store, holdfast.db in the current directory is used" {
    unset HOLDFAST_STORE
    holdfast workflow create w
    [ -f holdfast.db ]
    [ "$(holdfast workflows --json | jq -r .name)" = w ]
    [ "$(holdfast --store sqlite:holdfast.db workflows --json | jq -r .name)" = w ]
}

@test "a store that is no database is refused and not destroyed" {
    echo 'these are my notes, and they are long enough to be taken for a file with a header, are they not' >notes.txt
    cp notes.txt before.txt
    run ! holdfast --store sqlite:notes.txt list
    cmp notes.txt before.txt
}

@test "limits are set, shown and removed" {
    holdfast workflow create mail.v1 --max-running 5 --rate 100/1m+20 --max-running-per-key 2 --rate-per-key 1/1s
    run holdfast workflow show mail.v1
    [[ "$output" == *"max running   5"* ]]
    [[ "$output" == *"rate          100/1m+20"* ]]
    [[ "$output" == *"max per key   2"* ]]
    [[ "$output" == *"rate per key  1/1s+1"* ]]
    holdfast workflow set mail.v1 --max-running 0 --rate none
    run holdfast workflow show mail.v1 --json
    [[ "$output" == *'"max_running":0'* ]]
    [[ "$output" == *'"rate_count":0'* ]]
    [[ "$output" == *'"key_max_running":2'* ]]
}

@test "unusable limits are refused with what to write" {
    holdfast workflow create mail.v1
    for rate in 100 /1m x/1m 100/ 100/1m+0 0/1m 100/1m+x 100/99999d; do
        run holdfast workflow set mail.v1 --rate "$rate"
        [ "$status" -ne 0 ]
        [ -n "$output" ]
    done
    for weight in 3 acme= acme=0 acme=1001 acme=x; do
        run holdfast workflow set mail.v1 --weight "$weight"
        [ "$status" -ne 0 ]
    done
    holdfast workflow set mail.v1 --weight acme=3 --weight a=b=2
}

@test "a flow key is given by an option or a line" {
    holdfast workflow create mail.v1
    holdfast trigger mail.v1 --flow-key acme
    echo '{"flow_key":"acme"}' | holdfast trigger mail.v1 --lines - --full
    run holdfast workflow show mail.v1
    [[ "$output" == *"due           2"* ]]
    run holdfast trigger mail.v1 --flow-key ''
    [ "$status" -ne 0 ]
}

@test "the flow key of a run and the weights of keys are shown" {
    holdfast workflow create w
    holdfast workflow set w --weight acme=3 --weight =2 -q
    run -0 holdfast workflow show w
    [[ "$output" == *'weights '*'{"acme":3,"":2}'* ]]
    [ "$(holdfast workflow show w --json | jq -c .weights)" = '{"acme":3,"":2}' ]
    id=$(holdfast trigger w --flow-key acme -q)
    holdfast trigger w --flow-key tiny -q
    run -0 holdfast get "$id"
    [[ "$output" == *"flow key"*"acme"* ]]
    [ "$(holdfast list --flow-key acme --json | jq -r .id)" = "$id" ]
    [ "$(holdfast list --json | jq -cs '[.[].flow_key] | sort')" = '["acme","tiny"]' ]
}

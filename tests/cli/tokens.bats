# Tokens from the command line. F6.

load helper

setup()
{
    use_fresh_store
    holdfast migrate -q
    holdfast tenant create acme
}

@test "the secret stands alone on stdout, and the notice on stderr" {
    run --separate-stderr -0 holdfast token create web --role trigger
    [[ "$output" =~ ^hf_[A-Za-z0-9_-]{43}$ ]]
    [[ "$stderr" == *"only time"* ]]
    run --separate-stderr -0 holdfast token create web --role trigger --quiet
    [ -z "$stderr" ]
}

@test "as JSON it comes with its id" {
    made=$(holdfast token create web --role read --expires 90d --json -q)
    [ "$(jq -r '.name' <<<"$made")" = web ]
    [ "$(jq -r '.id' <<<"$made")" = "$(holdfast token list --json | jq -r .id)" ]
    [ "$(jq -r '.expires_at' <<<"$made")" != null ]
    [ "$(jq -r '.secret | length' <<<"$made")" = 46 ]
}

@test "a list shows everything but the secret" {
    secret=$(holdfast --tenant acme token create web --role operate,trigger --role work -q)
    run -0 holdfast --tenant acme token list
    [[ "$output" == *web*"trigger, work, operate"*good*tester* ]]
    [[ "$output" != *"${secret#hf_}"* ]]
    run -0 holdfast --tenant acme token list --json
    [ "$(jq -c .roles <<<"$output")" = '["trigger","work","operate"]' ]
    [[ "$output" != *"${secret#hf_}"* ]]
    run --separate-stderr -0 holdfast token list --json
    [ -z "$output" ]
    [[ "$stderr" == *"no tokens in"*"holdfast token create"* ]]
}

@test "a token is revoked by its id, in its own tenant" {
    holdfast --tenant acme token create web --role read -q
    id=$(holdfast --tenant acme token list --json | jq -r .id)
    run -3 holdfast token revoke "$id"
    run -0 holdfast --tenant acme --actor eve token revoke "$id"
    [ "$(holdfast --tenant acme token list --json | jq -r .revoked_by)" = eve ]
    run -0 holdfast --tenant acme token list
    [[ "$output" == *revoked* ]]
    run -2 holdfast token revoke web
}

@test "what a token may do must be said" {
    run -2 holdfast token create web
    [[ "$output" == *--role* ]]
    run -2 holdfast token create web --role reader
    [[ "$output" == *'no role is named "reader"; there are read,trigger,work,operate,admin,root'* ]]
    run -2 holdfast token create web --role read --expires 1d --expires-at 2099-01-01T00:00:00Z
    run -2 holdfast token create web --role read --expires-at 2020-01-01T00:00:00Z
    run -2 holdfast --tenant acme token create web --role root
    [ -z "$(holdfast token list --json)" ]
}

@test "libcrypto is not loaded by those who need it not" {
    run ldd "$HOLDFAST"
    [[ "$output" != *libcrypto* ]]
}

@test "roles of a database are refused on SQLite" {
    run -2 holdfast tenant grant acme app
    [[ "$output" == *PostgreSQL* ]]
    run -2 holdfast tenant revoke acme app
}

@test "a token can be for some tasks only" {
    holdfast token create kim --role trigger --task-role boss --task-role clerk -q
    [ "$(holdfast token list --json | jq -c .task_roles)" = '["boss","clerk"]' ]
    run -0 holdfast token list
    [[ "$output" == *"TASK ROLES"*"boss, clerk"* ]]
    run -2 holdfast token create kim --role admin --task-role boss
    [[ "$output" == *"hold nobody back"* ]]
}

#!/usr/bin/env bats
# Stores that are none, that are not there, or that cannot be used.

load helper

setup()
{
    use_fresh_store
    place=
}

teardown()
{
    stop_worker
    [ -z "$place" ] || rm -rf "$place"
}

# A directory that another user can reach, with the program in it.
make_place()
{
    [ "$(id -u)" -eq 0 ] || skip "only root can become another user"
    setpriv --reuid nobody --regid nogroup --clear-groups true || skip "setpriv cannot become nobody here"
    place=$(mktemp -d /tmp/holdfast-input.XXXXXX)
    chmod 755 "$place"
    cp "$program" "$place/holdfast"
    holdfast workflow create work --store "sqlite:$place/store.db"
    holdfast trigger work -q --store "sqlite:$place/store.db"
    as_nobody=(setpriv --reuid nobody --regid nogroup --clear-groups "$place/holdfast")
}

@test "unknown schemes are refused" {
    local url
    mkdir empty
    cd empty
    for url in x mysql://x SQLITE:a file:a.db sqlite libsql://x http://example.org ' ' "$(repeat 10240 x)"; do
        refuses 2 'is not a store.*sqlite:FILE' "$program" list --store "$url"
    done
    refuses 2 'missing' "$program" list --store ''
    refuses 2 'names no file' "$program" list --store sqlite:
    [ -z "$(ls -A)" ]
}

@test "a missing directory is named and not made" {
    refuses 5 '/nonexistent/dir.*does not exist' "$program" list --store sqlite:/nonexistent/dir/a.db
    refuses 5 'nowhere.*does not exist' "$program" list --store sqlite:nowhere/a.db
    [ ! -e nowhere ]
}

@test "a directory, and what is no regular file, is no database" {
    mkdir dir
    refuses 2 'dir is a folder' "$program" list --store sqlite:dir
    refuses 2 'not a regular file' "$program" list --store sqlite:/dev/null
    refuses 2 'not a regular file' "$program" list --store sqlite:/dev/zero
    [ -z "$(ls -A dir)" ]
}

@test "a text file is no database and is left as it was" {
    echo 'hello, I am a text' >text.db
    head -c 8192 /dev/urandom >random.db
    sum=$(cat text.db random.db | sha256sum)
    refuses 1 'not a SQLite database' "$program" list --store sqlite:text.db
    refuses 1 'not a SQLite database' "$program" trigger work --store sqlite:random.db
    [ "$(cat text.db random.db | sha256sum)" = "$sum" ]
}

@test "somebody else's database is not taken over" {
    sqlite3 other.db 'CREATE TABLE run (mine TEXT); INSERT INTO run VALUES (1)'
    run --separate-stderr "$program" list --store sqlite:other.db
    [ "$status" -ne 0 ]
    [ -n "$stderr" ]
    [ "$(sqlite3 other.db 'SELECT count(*), sum(mine) FROM run')" = '1|1' ]
    [ "$(sqlite3 other.db 'SELECT count(*) FROM sqlite_master')" -eq 1 ]
}

@test "a truncated database is reported, not repaired by guess" {
    holdfast workflow create work
    truncate -s 10000 store.db
    rm -f store.db-wal store.db-shm
    run --separate-stderr "$program" list
    [ "$status" -ne 0 ]
    grep -qiE 'corrupt|malformed|not a database|disk image' <<<"$stderr"
}

@test "PostgreSQL that is not there: closed port, missing socket, unknown host" {
    refuses 5 'cannot connect.*refused' "$program" list --store postgres://127.0.0.1:1/x
    refuses 5 'cannot connect.*No such file' "$program" list --store 'postgres:///x?host=/nonexistent'
    refuses 5 'cannot connect.*(host|name)' "$program" list --store postgres://nosuchhost.invalid/x
    refuses 5 'cannot connect' "$program" trigger work --store postgres://127.0.0.1:1/x
    refuses 5 'cannot connect' "$program" worker --exec work=true --store postgres://127.0.0.1:1/x
}

@test "PostgreSQL URLs that make no sense are refused" {
    refuses 2 'cannot be read' "$program" list --store 'postgres://u@/x?bogus=1'
    refuses 2 'cannot be read' "$program" list --store 'postgres://127.0.0.1:1/%zz'
    refuses 2 'cannot be read' "$program" list --store 'postgres://[::1/x'
    refuses 2 "'max_open' must be a number" "$program" list --store 'postgres://127.0.0.1:1/x?max_open=many'
    refuses 2 'max_open is 3; it must be at least 4' "$program" list --store 'postgres://127.0.0.1:1/x?max_open=3'
}

@test "a SQLite store has settings of its own, and no others" {
    refuses 2 'settings access and lock_timeout.*max_open=4' "$program" migrate --store 'sqlite:other.db?max_open=4'
    refuses 2 'settings access and lock_timeout.*max_idle=2' "$program" list --store 'sqlite::memory:?max_idle=2'
    [ ! -e other.db ]
}

@test "a PostgreSQL database or user that does not exist is named" {
    [ -n "${HOLDFAST_TEST_POSTGRES:-}" ] || skip "HOLDFAST_TEST_POSTGRES is not set"
    refuses 5 'nosuchdb.*does not exist' "$program" list --store "${HOLDFAST_TEST_POSTGRES/\/postgres\?//nosuchdb?}"
    refuses 5 'nosuchuser.*does not exist' "$program" list --store "${HOLDFAST_TEST_POSTGRES/postgres@/nosuchuser@}"
}

@test "passwords in a URL are not repeated in errors" {
    run --separate-stderr "$program" list --store 'postgres://kim:topsecret@127.0.0.1:1/x'
    [ "$status" -eq 5 ]
    ! grep -q topsecret <<<"$stderr$output"
}

@test "a schema that is newer than the program is left alone" {
    holdfast workflow create work
    sqlite3 store.db "INSERT INTO schema_version VALUES (999, 'future', 999, 1)"
    refuses 5 'install a newer' "$program" list
    refuses 5 'install a newer' "$program" trigger work
    refuses 5 'install a newer' "$program" worker --exec work=true
    refuses 5 'install a newer' "$program" migrate
    refuses 5 '"schema_newer"' "$program" list --json
}

@test "a file that cannot be written is reported as read-only" {
    make_place
    chmod 444 "$place/store.db"
    chmod 777 "$place"
    refuses 5 '"read_only"' "${as_nobody[@]}" trigger work --json --store "sqlite:$place/store.db"
    refuses 5 'cannot be written|must be writable' "${as_nobody[@]}" trigger work --store "sqlite:$place/store.db"
    [ "$(holdfast list --json --store "sqlite:$place/store.db" | wc -l)" -eq 1 ]
}

@test "a directory that cannot be written is reported as read-only" {
    make_place
    rm -f "$place"/store.db-*
    chmod 644 "$place/store.db"
    refuses 5 '"read_only"' "${as_nobody[@]}" trigger work --json --store "sqlite:$place/store.db"
    refuses 5 'may read and write' "${as_nobody[@]}" migrate --store "sqlite:$place/new.db"
    refuses 5 'must be writable' "${as_nobody[@]}" worker --exec work=true --store "sqlite:$place/store.db"
    [ ! -e "$place/new.db" ]
}

@test "a file that cannot be read is reported" {
    make_place
    chmod 600 "$place/store.db"
    refuses 5 'cannot be written|may read and write|writable' "${as_nobody[@]}" list --store "sqlite:$place/store.db"
    mkdir -m 700 "$place/closed"
    refuses 5 'may read and write' "${as_nobody[@]}" list --store "sqlite:$place/closed/store.db"
}

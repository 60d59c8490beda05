#!/usr/bin/env bash
# A private PostgreSQL server for tests and benchmarks, in a directory of its own.
#
#   tools/test_postgres.sh start DIR [BIN_DIR]   starts it and prints its URL
#   tools/test_postgres.sh stop DIR              stops it at once and removes its data
#
# DIR must not exist or be empty. BIN_DIR defaults to Debian's newest server. As root, the server runs as the user
# postgres (or nobody), since PostgreSQL refuses root. It listens on a socket in DIR and on a free port of 127.0.0.1,
# and trusts whoever reaches it. Set FSYNC=on for a server that survives a power cut (default: off, faster), and
# POSTGRES_OPTIONS for more settings, such as '-c max_connections=50'.
set -euo pipefail

self=$(realpath "${BASH_SOURCE[0]}")

fail()
{
    echo "test_postgres.sh: $*" >&2
    exit 1
}

as_server_user()
{
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
    else
        runuser -u "$server_user" -- "$@"
    fi
}

choose_server_user()
{
    server_user=$(id -un)
    if [ "$(id -u)" -eq 0 ]; then
        server_user=postgres
        getent passwd postgres >/dev/null || server_user=nobody
    fi
}

newest_bin_dir()
{
    local newest
    newest=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    [ -n "$newest" ] || fail "found no server in /usr/lib/postgresql; install postgresql-15 or name its bin directory"
    echo "$newest"
}

free_port()
{
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# A checkout below a private home directory cannot be read by the server's user: then it gets a copy.
reachable_bin_dir()
{
    local bin_dir=$1 dir=$2
    if as_server_user test -x "$bin_dir/postgres" -a -r "$bin_dir/postgres"; then
        echo "$bin_dir"
    else
        cp -a "$(dirname "$bin_dir")" "$dir/native"
        chown -R "$server_user" "$dir/native"
        echo "$dir/native/$(basename "$bin_dir")"
    fi
}

initialise()
{
    as_server_user "$bin_dir/initdb" -D "$dir/data" -U postgres --auth=trust --encoding=UTF8 --locale=C \
        --no-sync >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; fail "initdb failed"; }
}

launch()
{
    local fsync=${FSYNC:-off}
    port=$(free_port)
    as_server_user "$bin_dir/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 60 -s start -o "\
        -c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='$dir' -c max_connections=200 \
        -c shared_buffers=128MB -c fsync=$fsync -c synchronous_commit=on -c full_page_writes=$fsync \
        ${POSTGRES_OPTIONS:-}" >/dev/null 2>&1
}

start()
{
    dir=$1
    [ -z "$(ls -A "$dir" 2>/dev/null)" ] || fail "$dir is not empty"
    mkdir -p "$dir"
    dir=$(realpath "$dir")
    bin_dir=$(realpath "${2:-$(newest_bin_dir)}")
    cd / # the server's user may not be allowed where we are
    choose_server_user
    [ "$(id -u)" -ne 0 ] || { chown "$server_user" "$dir"; chmod 755 "$dir"; }
    [ "${#dir}" -lt 80 ] || fail "$dir is too long for a socket; choose a shorter one"
    as_server_user test -w "$dir" || fail "the user $server_user cannot reach $dir; choose one below /tmp"
    bin_dir=$(reachable_bin_dir "$bin_dir" "$dir")
    echo "$bin_dir" >"$dir/bin_dir"
    initialise
    # Somebody else may take the port between its choice and its use.
    launch || launch || launch || { cat "$dir/server.log" >&2; fail "the server did not start"; }
    echo "postgres://postgres@/postgres?host=$dir&port=$port"
}

stop()
{
    dir=$(realpath "$1")
    [ -f "$dir/bin_dir" ] || fail "$dir holds no server of this script"
    cd /
    choose_server_user
    as_server_user "$(cat "$dir/bin_dir")/pg_ctl" -D "$dir/data" -m immediate -w -s stop || true
    rm -rf "$dir"
}

case "${1:-} $#" in
    "start 2" | "start 3") start "${@:2}" ;;
    "stop 2") stop "$2" ;;
    *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$self" >&2; exit 2 ;;
esac

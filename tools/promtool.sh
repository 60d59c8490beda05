#!/usr/bin/env bash
# Fetches promtool, which checks metrics, for tests: out of Debian's package of Prometheus, which would start a server if it
# were installed.
#
#   tools/promtool.sh DIR     puts it into DIR, unless it is there already
set -euo pipefail

mkdir -p "${1:?usage: promtool.sh DIR}"
dir=$(realpath "$1")
[ ! -x "$dir/promtool" ] || exit 0
work=$(mktemp -d "$dir/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# As whoever asks: the user that apt would become may not come here.
apt()
{
    apt-get -qq -o APT::Sandbox::User="$(id -un)" "$@"
}

# Where lists of packages were never fetched, or name what is there no more, others are fetched, for this alone.
download_by_own_lists()
{
    mkdir -p lists/partial
    apt -o Dir::State::lists="$work/lists" update && apt -o Dir::State::lists="$work/lists" download prometheus
}

if ! { apt download prometheus || download_by_own_lists; } >log 2>&1; then
    echo "promtool cannot be had: $(grep -m 1 '^E:' log || tail -n 1 log)" >&2
    exit 1
fi
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool
chmod 755 promtool
mv promtool "$dir/promtool"

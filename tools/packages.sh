# shellcheck shell=bash
# Sourced by ./run and ./test: installs Debian packages that are missing, and only those.

missing_packages()
{
    local package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# Debian's package creates and starts a cluster of its own unless it is told not to.
without_default_cluster()
{
    local drop_in=/etc/postgresql-common/createcluster.d/holdfast-test.conf status=0
    mkdir -p "$(dirname "$drop_in")"
    echo 'create_main_cluster = false' >"$drop_in"
    "$@" || status=$?
    rm -f "$drop_in"
    rmdir --ignore-fail-on-non-empty /etc/postgresql-common/createcluster.d /etc/postgresql-common
    return "$status"
}

# Another apt, as those that update a machine at night, may hold the locks for a while.
patient_apt()
{
    local said status=0 told=
    until said=$(DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" 2>&1 >/dev/null); do
        if ! grep -qE '^E: (Could not get lock|Unable to (lock|acquire))' <<<"$said"; then
            status=1
            break
        fi
        [ -n "$told" ] || echo "Another apt is at work: waiting until it has ended"
        told=yes
        sleep "${APT_PAUSE:-2}"
    done
    [ -z "$said" ] || echo "$said" >&2
    return "$status"
}

apt_install()
{
    patient_apt update -qq && patient_apt install -y -qq --no-install-recommends "$@"
}

# Ends the script with a clear message when something is missing and cannot be installed.
need_packages()
{
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ] || [ -n "${NO_INSTALL:-}" ]; then
        echo "Missing packages: ${missing[*]}" >&2
        echo "Install them with: sudo apt-get install ${missing[*]}" >&2
        exit 1
    fi
    echo "Installing ${missing[*]}"
    without_default_cluster apt_install "${missing[@]}" || {
        echo "apt-get could not install: ${missing[*]}" >&2
        exit 1
    }
}

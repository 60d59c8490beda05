#!/usr/bin/env bash
# Fetches what drives the browser, once, and runs the tests. Speaks TAP.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${HOLDFAST_SOURCE:-$here/../..}
modules=${HOLDFAST_BROWSER_MODULES:-$root/build/browser-modules}
PACKAGES=(playwright-core@1.65.0 axe-core@4.14.0)

skip()
{
    echo "1..1"
    echo "ok 1 - the dashboard in a browser # SKIP $1"
    exit 0
}

# Without windows it takes half the time.
browser=$(command -v chromium-headless-shell || command -v chromium || true)
[ -n "$browser" ] || skip "chromium is not installed"
"$root/tools/has_node.sh" || skip "there is no node, or an old one"
if [ ! -e "$modules/node_modules/axe-core/axe.min.js" ] || [ ! -e "$modules/node_modules/playwright-core/package.json" ]; then
    command -v npm >/dev/null || skip "npm is not installed"
    mkdir -p "$modules"
    timeout 300 npm install --ignore-scripts --no-save --no-audit --no-fund --prefix "$modules" "${PACKAGES[@]}" >"$modules/log" 2>&1 ||
        skip "npm cannot fetch ${PACKAGES[*]}"
fi
export HOLDFAST_BROWSER_MODULES=$modules HOLDFAST_BROWSER=$browser
exec node "$here/run.mjs" "$@"

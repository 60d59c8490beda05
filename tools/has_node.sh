#!/bin/sh
# Succeeds if node is there and as new as docs/javascript.md wants it.
exec node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' >/dev/null 2>&1

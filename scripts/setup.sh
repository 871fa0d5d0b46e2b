#!/usr/bin/env bash
# Installs what is missing, and says nothing when nothing is. `setup.sh bench` adds what only benchmarks need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Daemons stand in sbin on some systems, which an ordinary user's PATH leaves out.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { echo "setup: $*" >&2; }

missing=()
# need PROGRAM PACKAGE
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }

need tor tor
if [ "${1:-}" = bench ]; then
  need haproxy haproxy
  need socat socat
  need iperf3 iperf3
  need wrk wrk
fi

stamp=node_modules/.postern-stamp
lock=$(sha256sum package-lock.json | cut -d' ' -f1)
npm_stale=false
if [ ! -x node_modules/.bin/node ] || [ "$(cat "$stamp" 2>/dev/null || true)" != "$lock" ]; then
  npm_stale=true
  need npm npm
fi

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null 2>&1; then
    say "missing: ${missing[*]}; install them with this system's package manager, then run this again"
    exit 1
  fi
  if [ "$(id -u)" != 0 ]; then
    say "missing: ${missing[*]}; install them, then run this again:"
    echo "  sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  say "installing ${missing[*]} by apt-get"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get could not install ${missing[*]}; see the lines above"
    exit 1
  fi
fi

if $npm_stale; then
  say "installing Node and the libraries by npm ci"
  npm ci --no-audit --no-fund --loglevel=error >&2
  if [ ! -x node_modules/.bin/node ]; then
    say "npm brought no Node for this machine ($(uname -sm)); Postern runs on Linux, x64 and arm64"
    exit 1
  fi
  echo "$lock" >"$stamp"
fi

#!/usr/bin/env bash
# Installs what is missing, and says nothing when nothing is. `setup.sh test` adds the parts of a Kubernetes node and buildah
# where it can: tests that need them are left out without. `setup.sh bench` adds those and what only benchmarks need.
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

# What a cluster's node and its images are made of. Only root can run one, and nothing else is removed for it.
optional=()
want() { [ -e "$1" ] || optional+=("$2"); }
if [ "${1:-}" = test ] || [ "${1:-}" = bench ] || [ "${1:-}" = images ]; then
  want /usr/bin/buildah buildah
  want /usr/bin/strip binutils
  want /etc/ssl/certs/ca-certificates.crt ca-certificates
  want /usr/bin/obfs4proxy obfs4proxy
fi
if [ "${1:-}" = test ] || [ "${1:-}" = bench ]; then
  want /usr/bin/containerd containerd
  want /usr/sbin/runc runc
  want /usr/lib/cni/bridge containernetworking-plugins
  want /usr/sbin/iptables iptables
  want /usr/sbin/nft nftables
  want /usr/sbin/conntrack conntrack
  want /usr/sbin/ipset ipset
  want /usr/sbin/ethtool ethtool
  want /bin/kmod kmod
  want /bin/busybox busybox-static
  want /usr/bin/curl curl
  want /usr/bin/promtool prometheus
fi
if [ ${#optional[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  say "installing ${optional[*]} by apt-get"
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update && apt-get install -y --no-install-recommends --no-remove "${optional[@]}"; } >"$log" 2>&1; then
    tail -n 3 "$log" >&2
    say "went on without: the tests say what they leave out"
  fi
  rm -f "$log"
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

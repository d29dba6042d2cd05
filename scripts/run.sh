#!/usr/bin/env bash
# Sets up, builds and serves. Arguments go to the server: scripts/run.sh --listen 127.0.0.1:3100
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

listen="${RUNLOOM_LISTEN:-127.0.0.1:3000}"
previous=
for argument in "$@"; do
  case "$argument" in --listen=*) listen="${argument#--listen=}" ;; esac
  if [ "$previous" = --listen ]; then listen="$argument"; fi
  previous="$argument"
done
host="${listen%:*}"
case "$host" in
  0.0.0.0) host=127.0.0.1 ;;
  '[::]') host='[::1]' ;;
esac
port="${listen##*:}"
bare="${host#[}"
if (exec 3<>"/dev/tcp/${bare%]}/$port") 2>/dev/null; then
  fail "Something already serves http://$host:$port." \
    "Stop it, or choose another port: make run ARGS='--listen 127.0.0.1:3100'"
fi

"$ROOT/scripts/setup.sh" run
"$ROOT/scripts/build.sh" dev
use_postgres
say "Starting Runloom on http://$host:$port (Ctrl-C stops it)"
# What only concerns the build is no setting of the server.
exec env -u RUNLOOM_SITE -u RUNLOOM_WASM_FALLBACK "$(output_dir dev)/runloom" "$@"

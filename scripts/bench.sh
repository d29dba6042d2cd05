#!/usr/bin/env bash
# Measures a release build by every end2end/bench/*.bench.mjs, or by those that are named, and prints one table.
# --write (or BENCH_WRITE=1): docs/benchmarks.md is written anew; for that all of them have to run.
# BENCH_REPEATS: how often each is measured, 3 by default.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$ROOT"
clear_settings
write="${BENCH_WRITE:-}"
benches=()
for argument in "$@"; do
  if [ "$argument" = --write ]; then write=1; else benches+=("$argument"); fi
done
if [ -n "$write" ] && [ ${#benches[@]} != 0 ]; then
  fail "docs/benchmarks.md is written from all benches, not from some." "Leave out --write, or the names."
fi
if [ ${#benches[@]} = 0 ]; then benches=(end2end/bench/*.bench.mjs); fi
for bench in "${benches[@]}"; do
  [ -e "$bench" ] || fail "There is no bench: $bench" "Name one of those in end2end/bench/."
done

scripts/setup.sh bench
scripts/build.sh release
use_postgres
CHROMIUM="$(find_chromium)"
export CHROMIUM
RUNLOOM_BINARY="$(output_dir release)/runloom"
export RUNLOOM_BINARY
BENCH_RESULTS="$(mktemp -d)"
export BENCH_RESULTS
trap 'rm -rf "$BENCH_RESULTS"' EXIT

status=0
for bench in "${benches[@]}"; do
  say "Measuring: $bench"
  node "$bench" || status=1
done
options=()
if [ -n "$write" ]; then
  if [ "$status" = 0 ]; then
    options=(--write docs/benchmarks.md)
  else
    printf '\nA bench failed: docs/benchmarks.md stays as it is.\n' >&2
  fi
fi
node end2end/bench/support/report.mjs "$BENCH_RESULTS" "${options[@]}"
exit "$status"

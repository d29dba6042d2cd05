#!/usr/bin/env bash
# Measures a release build: every end2end/bench/*.mjs, or those that are named.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "$ROOT"
clear_settings
benches=("$@")
if [ ${#benches[@]} = 0 ]; then benches=(end2end/bench/*.bench.mjs); fi
[ -e "${benches[0]}" ] || fail "There is no bench: ${benches[0]}" "Name one of those in end2end/bench/."

scripts/setup.sh bench
scripts/build.sh release
use_postgres
CHROMIUM="$(find_chromium)"
export CHROMIUM
status=0
for bench in "${benches[@]}"; do
  say "Measuring: $bench"
  RUNLOOM_BINARY="$(output_dir release)/runloom" node "$bench" || status=1
done
exit "$status"

#!/usr/bin/env bash
# Sets up, builds and runs every check and test; the last line says how many passed and failed.
# RUNLOOM_TEST_LONG=1 runs the long checks at their full counts.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$ROOT/scripts/legs.sh"
source "$ROOT/scripts/lint.sh"

cd "$ROOT"
clear_settings

# In CI every run is a new checkout, whose crates are added to the target folder; start afresh when it got too big.
cache_limit_gib=30
if [ "${CI:-}" = true ] && [ -d "$CARGO_TARGET_DIR" ] && [ "$(du -sm "$CARGO_TARGET_DIR" | cut -f1)" -gt $((cache_limit_gib * 1024)) ]; then
  say "The build cache is over $cache_limit_gib GiB: starting afresh"
  rm -rf "$CARGO_TARGET_DIR"
fi

leg check "Setup" scripts/setup.sh test || {
  summary
  printf '\n0 passed, %d failed\n' "$failed_total"
  exit 1
}
use_postgres
CHROMIUM="$(find_chromium)"
export CHROMIUM

rust_tests() {
  if [ ! -d "$ROOT/../shared/captures" ]; then
    say "The recorded provider streams (../shared/captures) are not here: the tests that need them are skipped"
  fi
  RUNLOOM_SITE="$(output_dir dev)/site" cargo test "${native[@]}" --no-fail-fast "${locked[@]}"
}

browser_tests() {
  local specs=(end2end/tests/*.spec.mjs)
  if [ ! -e "${specs[0]}" ]; then
    printf 'error: there is no end2end/tests/*.spec.mjs\n' >&2
    return 1
  fi
  RUNLOOM_BINARY="$(output_dir dev)/runloom" node --test --test-concurrency=1 --test-reporter=spec "${specs[@]}"
}

if leg check "Build" scripts/build.sh dev; then
  # shellcheck disable=SC2034 # read by lint.sh
  page_is_built=1
  lint_legs || true
  leg tests "Rust tests" rust_tests || true
  leg tests "Browser tests" browser_tests || true
else
  skip "Lints and tests" "the build failed"
fi

summary
printf '\n%d passed, %d failed\n' "$passed_total" "$failed_total"
[ "$failed_total" = 0 ]

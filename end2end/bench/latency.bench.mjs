// Sent by the simulator → committed → received → painted: ten runs at once, one of them watched in a page; and what it
// costs in CPU and in bytes on the wire.

import assert from "node:assert/strict";

import { live, runIn, runThat } from "../support/content.mjs";
import { Server } from "../support/server.mjs";
import { launch } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { checkClocks, now } from "./support/clock.mjs";
import { committedTimes, contentBytes, paintedTimes, receivedTimes, spans } from "./support/load.mjs";
import { probe } from "./support/probe.mjs";
import { cpu, shares } from "./support/processes.mjs";
import { Results } from "./support/results.mjs";
import { Simulation, providerSetting } from "./support/simulation.mjs";
import { Socket } from "./support/socket.mjs";
import { medianRun, number, spread, triple } from "./support/statistics.mjs";

const RUNS = 10;
const RATE = 100;
const SECONDS = 20;
const COUNT = RATE * SECONDS;
const GATE = "load:begin";
const GOAL_MS = 100;

/** A viewer of one run that keeps every frame with its time. */
async function watch(server, run, after = 0) {
  const frames = [];
  const viewer = await Socket.connect(server.url, (text, at) => frames.push([at, text.toString()]));
  viewer.subscribe(run, after);
  return { run, frames, viewer };
}

/** The bytes that a viewer gets who comes when all is over. */
async function catchUp(server, run, lastSeq) {
  let isWhole = false;
  const viewer = await Socket.connect(server.url, (text) => {
    const frame = JSON.parse(text.toString());
    const end = frame.type === "execution_stream" ? frame.seq + frame.ops.length - 1 : 0;
    isWhole ||= frame.type === "snapshot_end" || end >= lastSeq;
  });
  viewer.subscribe(run, 0);
  await until("a late viewer has everything", async () => isWhole);
  viewer.close();
  return viewer.bytes;
}

async function once(simulation, browser) {
  const server = new Server({ env: providerSetting("anthropic", simulation.url) });
  const { control } = simulation;
  let context = null;
  let plain = [];
  try {
    await server.start();
    await control.arm(GATE);
    const series = `bench-${Math.round(now())}`;
    const runs = [];
    for (let place = 0; place < RUNS; place += 1) {
      const id = `${series}-${place}`;
      const { session, run } = await server.begin(`load rate=${RATE} seconds=${SECONDS} id=${id}`);
      runs.push({ id, session, run });
    }
    const watched = runs[0];
    context = await browser.newContext();
    const page = await context.newPage();
    const seen = await probe(page);
    await page.goto(`${server.url}/s/${watched.session}`);
    await live(page);
    plain = await Promise.all(runs.slice(1).map(({ run }) => watch(server, run)));
    await until("every stream waits at its gate", async () => {
      const gates = await simulation.json("/_sim/gates");
      return gates[GATE].waiting === RUNS;
    });
    await checkClocks(page);

    const before = await cpu();
    const begun = now();
    await control.open(GATE);
    await runIn(page, "succeeded", { timeout: (SECONDS + 30) * 1000 });
    for (const { run } of runs) {
      await until(`run ${run} is over`, async () => (await server.snapshot(run)).run.status === "succeeded");
    }
    const wall = now() - begun;
    const used = shares(before, await cpu(), wall);
    await checkClocks(page);

    const last = (COUNT - 1).toString(36).padStart(3, "0");
    await runThat(page, "the page shows the last delta", (run) => run.pieces.at(-1)?.text.endsWith(last));
    const { received, painted } = await seen.read();
    const sent = await simulation.sent(watched.id);
    const committed = await committedTimes(server, watched.run);
    const receivedAt = receivedTimes(received, watched.run);
    const paintedAt = paintedTimes(painted);
    assert.equal(paintedAt.length, COUNT, "the page shows as many deltas as were sent");

    const others = [];
    for (const { run, frames, viewer } of plain) {
      assert.equal(viewer.end, null, "no plain viewer lost its connection");
      const { id } = runs.find((other) => other.run === run);
      others.push(...spans(await simulation.sent(id), receivedTimes(frames, run), COUNT, "received by a plain viewer"));
    }
    const seq = (await server.snapshot(plain[0].run)).run.last_seq;
    const late = await catchUp(server, plain[0].run, seq);
    const bytes = plain.reduce((sum, { viewer }) => sum + viewer.bytes, 0) / plain.length;
    return {
      committed: spread(spans(sent, committed, COUNT, "committed")),
      saved: spread(spans(committed, receivedAt, COUNT, "received")),
      received: spread(spans(sent, receivedAt, COUNT, "received")),
      drawn: spread(spans(receivedAt, paintedAt, COUNT, "painted")),
      painted: spread(spans(sent, paintedAt, COUNT, "painted")),
      others: spread(others),
      used,
      frames: plain[0].viewer.frames,
      live: bytes / contentBytes(COUNT),
      late: late / contentBytes(COUNT),
    };
  } finally {
    for (const { viewer } of plain) viewer.close();
    await context?.close();
    await control.openAll();
    await server.stop();
    await server.clear();
  }
}

const results = new Results("latency");
const simulation = await new Simulation().start();
const browser = await launch();
try {
  const all = await results.repeat("ten runs, one watched in a page", () => once(simulation, browser));
  const run = medianRun(all, ({ painted }) => painted.p95);
  results.figure({
    goal: "latency",
    what: "sent → painted (p50 / p95 / p99)",
    value: triple(run.painted),
    met: run.painted.p95 <= GOAL_MS,
  });
  results.figure({
    goal: "wire",
    what: "one run with 1 stream of that load, live · a viewer who comes after its end (ten streams in one run, live: held at ≤ 10 by `server/tests/it/wire_size.rs`)",
    value: `${number(run.live, 1)} · ${number(run.late, 2)}`,
  });
  results.detail(
    "Where the time goes",
    `The ${COUNT.toLocaleString("en-US")} deltas of the watched run. *Committed* is the server's clock in whole milliseconds, taken just before the transaction, so the commit itself lies in the next line. *Painted* is the animation frame after the one in which the text came into the DOM. Bytes on the wire are those of WebSocket frames with their heads.`,
    ["from → to", "p50", "p95", "p99", "longest"],
    [
      ["sent → committed", run.committed],
      ["committed → received by the page", run.saved],
      ["sent → received by the page", run.received],
      ["received → painted", run.drawn],
      ["sent → painted", run.painted],
      [`sent → received by ${RUNS - 1} plain viewers, one of each other run`, run.others],
    ].map(([what, { p50, p95, p99, max }]) => [what, ...[p50, p95, p99, max].map((ms) => `${number(ms, 1)} ms`)]),
  );
  results.detail(
    "CPU under that load",
    `Of one core, while the ten runs stream; ${number(run.frames)} frames went to each plain viewer.`,
    ["server", "database", "simulator", "browser", "plain viewers"],
    [["server", "database", "simulator", "browser", "bench"].map((role) => `${Math.round(run.used[role] * 100)} %`)],
  );
  results.detail(
    "All repetitions of the latency",
    "Sent → painted; the run in the middle by p95 is the one above.",
    ["p50", "p95", "p99", "longest"],
    all.map(({ painted }) => [painted.p50, painted.p95, painted.p99, painted.max].map((ms) => `${number(ms, 1)} ms`)),
  );
} finally {
  await browser.close();
  await simulation.stop();
}
await results.finish();

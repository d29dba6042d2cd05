// Two hundred streams on one instance; a thousand viewers of one run.

import assert from "node:assert/strict";

import { Server } from "../support/server.mjs";
import { until } from "../support/until.mjs";
import { checkClocks, now } from "./support/clock.mjs";
import { receivedTimes } from "./support/load.mjs";
import { cpu, shareWords, shares } from "./support/processes.mjs";
import { Results } from "./support/results.mjs";
import { Simulation, providerSetting } from "./support/simulation.mjs";
import { Socket } from "./support/socket.mjs";
import { medianRun, number, quantile, spread, triple } from "./support/statistics.mjs";

const GATE = "load:begin";
const STREAMS = { count: 200, rate: 50, seconds: 15, sockets: 4, goalMs: 100 };
const VIEWERS = { count: 1000, rate: 100, seconds: 15, goalMs: 250 };
const WORKERS = ["server", "database", "simulator", "bench"];

const results = new Results("streams");

/** Starts runs that wait at their gate, lets `watch` come, opens the gate, waits for their ends, then asks `find`. */
async function measure(simulation, { runs: count, rate, seconds }, watch, find) {
  const server = new Server({ env: providerSetting("anthropic", simulation.url) });
  const { control } = simulation;
  let viewers = [];
  try {
    await server.start();
    await control.arm(GATE);
    const series = `bench-${Math.round(now())}`;
    const runs = [];
    for (let place = 0; place < count; place += 1) {
      const id = `${series}-${place}`;
      const { run } = await server.begin(`load rate=${rate} seconds=${seconds} id=${id}`);
      runs.push({ id, run });
    }
    const waiting = async () => (await simulation.json("/_sim/gates"))[GATE].waiting === count;
    await until("every stream waits at its gate", waiting, { timeout: 60_000 });
    const watched = await watch(server, runs);
    viewers = watched.viewers;
    await checkClocks(null);
    const before = await cpu();
    const begun = now();
    await control.open(GATE);
    const isOver = async () => (await server.snapshot(runs.at(-1).run)).run.status === "succeeded";
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    await until("the last run is over", isOver, { timeout: 60_000 });
    const isWhole = async () => watched.isWhole() || viewers.some((viewer) => viewer.end);
    await until("all have everything", isWhole, { timeout: 120_000 });
    const used = shares(before, await cpu(), now() - begun);
    await checkClocks(null);
    for (const viewer of viewers) assert.equal(viewer.end, null, "no viewer lost its connection");
    return { used, ...(await find(runs, watched)) };
  } finally {
    for (const viewer of viewers) viewer.close();
    await control.openAll();
    await server.stop();
    await server.clear();
  }
}

/** Whether a frame says that its run is over: by the last op, or by a snapshot for who was too slow. */
function isEnd(text) {
  const holds = (words) => text.includes(words);
  return holds('"status":"succeeded"') && (holds('"op":"run_updated"') || holds('"type":"snapshot_begin"'));
}

function streams(simulation) {
  const { count, rate, seconds, sockets } = STREAMS;
  const watch = async (server, runs) => {
    const frames = [];
    let ended = 0;
    const hear = (text, at) => {
      frames.push([at, text.toString()]);
      if (isEnd(text)) ended += 1;
    };
    const viewers = [];
    for (let place = 0; place < sockets; place += 1) viewers.push(await Socket.connect(server.url, hear));
    for (const [place, { run }] of runs.entries()) viewers[place % sockets].subscribe(run);
    return { viewers, frames, isWhole: () => ended >= count };
  };
  const find = async (runs, { frames }) => {
    const byRun = new Map(runs.map(({ run }) => [run, []]));
    for (const frame of frames) byRun.get(/"run_id":"([^"]+)"/.exec(frame[1])?.[1])?.push(frame);
    const all = [];
    for (const { id, run } of runs) {
      const sent = await simulation.sent(id);
      const received = receivedTimes(byRun.get(run), run);
      // What came in a snapshot, because the viewer was too slow, was never in time.
      for (const [index, at] of sent.entries()) all.push((received[index] ?? Infinity) - at);
      assert.equal(sent.length, rate * seconds, "the simulator has sent everything");
    }
    return { published: spread(all), late: all.filter((ms) => !Number.isFinite(ms)).length };
  };
  return measure(simulation, { runs: count, rate, seconds }, watch, find);
}

function crowd(simulation) {
  const { count, rate, seconds } = VIEWERS;
  const watch = async (server, [{ run }]) => {
    // The first viewer's frames tell what is in each; the others' are known again by their first seq.
    const frames = [];
    const times = [];
    let ended = 0;
    const viewers = [];
    for (let place = 0; place < count; place += 1) {
      const seen = new Map();
      times.push(seen);
      const hear = (text, at) => {
        const head = text.toString("latin1", 0, 256);
        if (!head.startsWith('{"type":"execution_stream"')) return;
        seen.set(Number(/"seq":(\d+)/.exec(head)?.[1]), at);
        if (place === 0) frames.push([at, text.toString()]);
        if (isEnd(text)) ended += 1;
      };
      const viewer = await Socket.connect(server.url, hear);
      viewer.subscribe(run, 0);
      viewers.push(viewer);
    }
    await until("every viewer follows the run", async () => times.every((seen) => seen.size > 0));
    return { viewers, frames, times, run, isWhole: () => ended >= count };
  };
  const find = async ([{ id }], { frames, times, run }) => {
    const sent = await simulation.sent(id);
    // A frame is as late as its oldest delta.
    const oldest = new Map();
    for (const [, text] of frames) {
      const frame = JSON.parse(text);
      const delta = frame.ops.find((op) => op.op === "block_delta");
      if (frame.run_id === run && delta) oldest.set(frame.seq, sent[delta.offset / 4]);
    }
    const worst = times.map((seen) => {
      // A frame that the viewer never got came too late for it, and then within a snapshot.
      return quantile([...oldest].map(([seq, at]) => (seen.get(seq) ?? Infinity) - at), 0.99);
    });
    return { worst: Math.max(...worst), middle: quantile(worst, 0.5) };
  };
  return measure(simulation, { runs: 1, rate, seconds }, watch, find);
}

const simulation = await new Simulation().start();
try {
  const many = await results.repeat(`${STREAMS.count} streams`, () => streams(simulation));
  const run = medianRun(many, ({ published }) => published.p99);
  const late = run.late ? `; ${number(run.late)} deltas came in a snapshot only` : "";
  results.figure({
    goal: "streams",
    what: "received by plain viewers of all of them (p50 / p95 / p99)",
    value: `${triple(run.published)}${late}; ${shareWords(run.used, WORKERS)} of a core`,
    met: run.published.p99 <= STREAMS.goalMs,
  });
  const crowds = await results.repeat(`${VIEWERS.count} viewers`, () => crowd(simulation));
  const middle = medianRun(crowds, ({ worst }) => worst);
  results.figure({
    goal: "viewers",
    what: "p99 of the slowest viewer · of the one in the middle",
    value: `${number(middle.worst)} · ${number(middle.middle)} ms; ${shareWords(middle.used, WORKERS)} of a core`,
    met: middle.worst <= VIEWERS.goalMs,
  });
} finally {
  await simulation.stop();
}
await results.finish();

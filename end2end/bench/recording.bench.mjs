// What recording costs for each byte: one attempt in deltas of one token, short and long.

import { Server } from "../support/server.mjs";
import { until } from "../support/until.mjs";
import { corpus } from "./support/corpus.mjs";
import { cpu } from "./support/processes.mjs";
import { Results } from "./support/results.mjs";
import { providerSetting } from "./support/simulation.mjs";
import { number } from "./support/statistics.mjs";
import { TextProvider } from "./support/text_provider.mjs";

const GOAL = 1.3;
const TOKEN = 4;
const SHORT = { bytes: 50 * 1024, runs: 20 };
const LONG = { bytes: 5 * 1024 * 1024, runs: 1 };

const results = new Results("recording");
const provider = await new TextProvider().start();
const server = new Server({ env: providerSetting("openai_chat", provider.url) });

/** Microseconds of CPU of server and database for each byte of so many answers, one after another. */
async function cost({ bytes, runs }) {
  const part = corpus(200);
  const text = part.repeat(Math.ceil(bytes / part.length)).slice(0, bytes);
  const before = await cpu();
  for (let place = 0; place < runs; place += 1) {
    const prompt = `${bytes} bytes, answer ${place}`;
    provider.serve(prompt, [{ content: text }], TOKEN)();
    const { session } = await server.begin(prompt);
    const status = async () => (await server.json(`/api/sessions/${session}`)).runs.at(-1).status;
    await until("the run is over", async () => (await status()) === "succeeded", { timeout: 600_000, seen: status });
  }
  const after = await cpu();
  const used = after.server + after.database - before.server - before.database;
  return (used * 1000) / (bytes * runs);
}

try {
  await server.start();
  // Once, so that what is only done at first is done.
  await cost({ bytes: SHORT.bytes, runs: 2 });
  const short = await cost(SHORT);
  const long = await cost(LONG);
  results.figure({
    goal: "recording",
    what: "CPU of server and database for each byte: 50 KB · 5 MB · ratio",
    value: `${number(short, 2)} · ${number(long, 2)} µs · ${number(long / short, 2)}×`,
    met: long / short <= GOAL,
  });
} finally {
  await server.stop();
  await server.clear();
  await provider.close();
}
await results.finish();

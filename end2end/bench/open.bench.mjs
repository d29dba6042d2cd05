// How long a large session takes to open, and how much of it is in the page.

import { live } from "../support/content.mjs";
import { Server } from "../support/server.mjs";
import { launch } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { corpus } from "./support/corpus.mjs";
import { Results } from "./support/results.mjs";
import { providerSetting } from "./support/simulation.mjs";
import { medianRun, number } from "./support/statistics.mjs";
import { TextProvider } from "./support/text_provider.mjs";

const GOAL_MS = 1000;
const GOAL_NODES = 3000;
const BLOCKS = 20_000;
const BLOCK_BYTES = 5 * 1024 * 1024;
const PATIENCE = { timeout: 120_000 };

/** One block of 5 MB. */
function block() {
  const part = corpus(2000);
  return [{ content: part.repeat(Math.ceil(BLOCK_BYTES / part.length)).slice(0, BLOCK_BYTES) }];
}

/** Reasoning and text in turn, each a block of its own. */
function blocks() {
  return Array.from({ length: BLOCKS }, (_, place) =>
    place % 2 === 0 ? { reasoning_content: `Thought ${place} of many.` } : { content: `Answer ${place}, in short.` },
  );
}

async function open(browser, server, session) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const begun = performance.now();
    await page.goto(`${server.url}/s/${session}`, { waitUntil: "commit", timeout: 60_000 });
    await live(page, { timeout: 60_000 });
    // It answers: two frames after it was connected something was drawn.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const ms = performance.now() - begun;
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    return { ms, nodes };
  } finally {
    await context.close();
  }
}

const results = new Results("open");
const provider = await new TextProvider().start();
const server = new Server({ env: providerSetting("openai_chat", provider.url) });
const browser = await launch();
try {
  await server.start();
  for (const [goal, prompt, parts] of [
    ["block", "one large block", block()],
    ["blocks", "many blocks", blocks()],
  ]) {
    results.say(`recording a session: ${prompt}`);
    provider.serve(prompt, parts)();
    const { session, run } = await server.begin(prompt);
    const status = async () => (await server.json(`/api/sessions/${session}`)).runs.at(-1).status;
    const isOver = async () => ["succeeded", "failed"].includes(await status());
    await until(`the run with ${prompt} is over`, isOver, PATIENCE);
    if ((await status()) !== "succeeded") throw new Error(`the run ${run} with ${prompt} is ${await status()}`);
    const all = await results.repeat(`open ${prompt}`, () => open(browser, server, session));
    const middle = medianRun(all, ({ ms }) => ms);
    results.figure({
      goal,
      what: "from the request to two frames after the page is connected · DOM elements",
      value: `${number(middle.ms)} ms · ${number(middle.nodes)}`,
      met: middle.ms <= GOAL_MS && middle.nodes <= GOAL_NODES,
    });
  }
} finally {
  await browser.close();
  await server.stop();
  await server.clear();
  await provider.close();
}
await results.finish();

// How long a large session takes to open, how much of it is in the page, and what a call with 50 MB costs it.

import { createHash } from "node:crypto";

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
const OUTPUT_BYTES = 50 * 1000 * 1000;
const GOAL_PREVIEW_MS = 200;
const GOAL_HEAP_BYTES = 20 * 1000 * 1000;
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

/** The arguments of a call, 50 MB long. */
function output() {
  const line = '"a line of an argument that is long", ';
  return `{"lines": [${line.repeat(Math.ceil(OUTPUT_BYTES / line.length))}"the end"]}`;
}

/** Opens the row of a call and reads on in it. Gives how long its preview took, and by how much the page's memory grew. */
async function openOutput(browser, server, session) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`${server.url}/s/${session}`, { timeout: 60_000 });
    await live(page, { timeout: 60_000 });
    const devtools = await context.newCDPSession(page);
    const heap = async () => {
      await devtools.send("HeapProfiler.collectGarbage");
      const { usedSize, backingStorageSize = 0 } = await devtools.send("Runtime.getHeapUsage");
      return usedSize + backingStorageSize;
    };
    const before = await heap();
    const ms = await page.evaluate(
      () =>
        new Promise((done) => {
          const row = document.querySelector('#main [data-block-kind="tool_ref"]');
          const begun = performance.now();
          row.querySelector(".row__toggle").click();
          const look = () =>
            row.querySelector('[data-channel="arguments"] pre')?.textContent
              ? requestAnimationFrame(() => done(performance.now() - begun))
              : requestAnimationFrame(look);
          look();
        }),
    );
    const section = page.locator('[data-channel="arguments"]');
    const words = () => section.locator(".io__more").last().innerText();
    for (let step = 0; step < 20; step += 1) {
      const known = await words();
      await section.getByRole("button", { name: "Load more" }).click();
      await until("more is shown", async () => (await words()) !== known);
    }
    return { ms, heap: (await heap()) - before };
  } finally {
    await context.close();
  }
}

/** Whether all of a content comes, byte for byte. */
async function isAllThere(server, run, text) {
  const { nodes } = await server.json(`/api/runs/${run}/snapshot?window=10`);
  const call = nodes.find((node) => node.outputs.arguments);
  const wanted = createHash("sha256").update(text).digest("hex");
  const found = createHash("sha256");
  for await (const piece of (await server.fetch(`/api/nodes/${call.node_id}/output?channel=arguments`)).body) {
    found.update(piece);
  }
  return found.digest("hex") === wanted;
}

/** Records a session, and gives its ids once its run is in the state. */
async function record(prompt, parts, state) {
  results.say(`recording a session: ${prompt}`);
  provider.serve(prompt, parts)();
  const begun = await server.begin(prompt);
  const status = async () => (await server.json(`/api/sessions/${begun.session}`)).runs.at(-1).status;
  const isOver = async () => ["succeeded", "failed"].includes(await status());
  await until(`the run with ${prompt} is over`, isOver, PATIENCE);
  if ((await status()) !== state) throw new Error(`the run ${begun.run} with ${prompt} is ${await status()}`);
  return begun;
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
    const { session } = await record(prompt, parts, "succeeded");
    const all = await results.repeat(`open ${prompt}`, () => open(browser, server, session));
    const middle = medianRun(all, ({ ms }) => ms);
    results.figure({
      goal,
      what: "from the request to two frames after the page is connected · DOM elements",
      value: `${number(middle.ms)} ms · ${number(middle.nodes)}`,
      met: middle.ms <= GOAL_MS && middle.nodes <= GOAL_NODES,
    });
  }
  const text = output();
  // The stream breaks behind the arguments: what came of them is kept, and nothing is sent back.
  const { session, run } = await record("a long call", [{ tool: "long_call", arguments: text }, { cut: true }], "failed");
  const all = await results.repeat("open a call with 50 MB", () => openOutput(browser, server, session));
  const middle = medianRun(all, ({ ms }) => ms);
  const isWhole = await isAllThere(server, run, text);
  results.figure({
    goal: "output",
    what: "arguments of a call: from the click to the frame with the preview · heap after reading on 20 times · every byte",
    value: `${number(middle.ms)} ms · ${number(middle.heap / 1e6, 1)} MB · ${isWhole ? "yes" : "no"}`,
    met: middle.ms <= GOAL_PREVIEW_MS && middle.heap <= GOAL_HEAP_BYTES && isWhole,
  });
} finally {
  await browser.close();
  await server.stop();
  await server.clear();
  await provider.close();
}
await results.finish();

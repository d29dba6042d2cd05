// What a streamed Markdown reply costs the browser, and that it does not grow with the reply.

import assert from "node:assert/strict";

import { live, runIn } from "../support/content.mjs";
import { Server } from "../support/server.mjs";
import { launch } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { corpus } from "./support/corpus.mjs";
import { Feed } from "./support/feed.mjs";
import { Results } from "./support/results.mjs";
import { providerSetting } from "./support/simulation.mjs";
import { medianRun, number } from "./support/statistics.mjs";
import { TextProvider } from "./support/text_provider.mjs";

/** Paragraphs, CPU throttle, deltas of 4 characters a frame. */
const ORDINARY = { paragraphs: 200, throttle: 1, perFrame: 4 };
const LONG = { paragraphs: 2000, throttle: 1, perFrame: 50 };
const THROTTLED = { paragraphs: 300, throttle: 8, perFrame: 25 };

/**
 * CPU µs per character of streamdown 2.7.1 (React 19, production build) for a text of the same shape, fed in the same
 * way, by the same clock, in Chromium 156 on the machine of docs/benchmarks.md, by paragraphs. On another machine only
 * the order of magnitude holds.
 */
const STREAMDOWN = { 200: 225, 2000: 86, 300: 496 };

const STRETCHES = 5;

const results = new Results("markdown");

/** The end of the text, as the page shows it; of a long text the rest may not be in the page. */
function shown(page) {
  return page.evaluate(() => document.querySelector('#main [data-block-kind="text"]').textContent.trim().slice(-40));
}

/** Letters and digits alone: marks are not shown. */
const letters = (text) => text.replaceAll(/[^\p{L}\p{N}]+/gu, "");

async function once(browser, server, provider, { paragraphs, throttle, perFrame }) {
  const text = corpus(paragraphs);
  const prompt = `${paragraphs} paragraphs, ${Math.random().toString(36).slice(2)}`;
  const begin = provider.serve(prompt, [{ content: text }]);
  const { session, run } = await server.begin(prompt);
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const feed = await Feed.take(page);
    await page.goto(`${server.url}/s/${session}`);
    await live(page);
    await runIn(page, "running");
    await feed.hold();
    begin();
    const { last_seq: seq } = await until("the run is over", async () => {
      const { run: known } = await server.snapshot(run);
      return known.status === "succeeded" ? known : null;
    });
    await feed.arrived(seq);
    const frames = await feed.prepare(perFrame);
    await feed.throttle(throttle);
    const stretches = [];
    for (let stretch = 1; stretch <= STRETCHES; stretch += 1) {
      stretches.push(await feed.play(Math.round((frames * stretch) / STRETCHES)));
    }
    await feed.throttle(1);
    await runIn(page, "succeeded");
    const grown = await shown(page);
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    const sum = (name) => stretches.reduce((total, stretch) => total + stretch[name], 0);
    assert.ok(letters(text).endsWith(letters(grown)), `the page ends with ${grown}`);
    return {
      characters: text.length,
      perCharacter: (sum("task") * 1e6) / text.length,
      layout: (sum("layout") * 1e6) / text.length,
      script: (sum("script") * 1e6) / text.length,
      style: (sum("style") * 1e6) / text.length,
      growth: stretches.at(-1).task / stretches[0].task,
      stretches: stretches.map(({ task }) => (task * 1e6 * STRETCHES) / text.length),
      gap: Math.max(...stretches.map(({ gap }) => gap)),
      longest: Math.max(...stretches.map(({ longest }) => longest)),
      longTasks: stretches.reduce((total, { tasks }) => total + tasks.length, 0),
      seconds: sum("seconds"),
      nodes,
    };
  } finally {
    await context.close();
  }
}

const provider = await new TextProvider().start();
const server = new Server({ env: providerSetting("openai_chat", provider.url) });
const browser = await launch();
try {
  await server.start();
  const found = {};
  for (const work of [ORDINARY, THROTTLED, LONG]) {
    const what = `${work.paragraphs} paragraphs, ${work.throttle}× throttle, ${work.perFrame} deltas a frame`;
    const all = await results.repeat(what, () => once(browser, server, provider, work));
    found[work.paragraphs] = medianRun(all, ({ perCharacter }) => perCharacter);
  }
  const [ordinary, long, throttled] = [ORDINARY, LONG, THROTTLED].map((work) => found[work.paragraphs]);
  results.figure({
    goal: "flat",
    what: "last fifth / first fifth of 2,000 paragraphs · longest task",
    value: `${number(long.growth, 2)}× · ${long.longest ? `${number(long.longest)} ms` : "none over 50 ms"}`,
    met: long.growth <= 1.2 && long.longest <= 50,
  });
  results.figure({
    goal: "throttled",
    what: "longest frame gap of 300 paragraphs",
    value: `${number(throttled.gap)} ms`,
    met: throttled.gap <= 100,
  });
  for (const [work, run] of [
    [ORDINARY, ordinary],
    [LONG, long],
    [THROTTLED, throttled],
  ]) {
    const streamdown = STREAMDOWN[work.paragraphs];
    const share = run.perCharacter / streamdown;
    results.figure({
      goal: "character",
      what: `${number(work.paragraphs)} paragraphs, ${work.throttle}×, ${work.perFrame} deltas a frame (Streamdown: ${streamdown} µs)`,
      value: `${number(run.perCharacter, 1)} µs (${number(share, 2)} of it)`,
      met: share <= 1 / 3,
    });
  }
  results.detail(
    "A streamed Markdown reply in the page",
    "CPU is the processor time of the page's main thread for script, style, layout and paint, in µs per character; deltas of 4 characters, so many each animation frame, handed to the page's socket from within. The last column is the same in fifths of the reply.",
    ["paragraphs (characters)", "throttle, deltas a frame", "CPU", "of it script", "style", "layout", "long tasks", "longest", "longest frame gap", "DOM nodes", "CPU in fifths"],
    [
      [ORDINARY, ordinary],
      [LONG, long],
      [THROTTLED, throttled],
    ].map(([work, run]) => [
      `${number(work.paragraphs)} (${number(run.characters)})`,
      `${work.throttle}×, ${work.perFrame}`,
      number(run.perCharacter, 1),
      number(run.script, 1),
      number(run.style, 1),
      number(run.layout, 1),
      number(run.longTasks),
      run.longest ? `${number(run.longest)} ms` : "–",
      `${number(run.gap)} ms`,
      number(run.nodes),
      run.stretches.map((stretch) => number(stretch, 1)).join(" · "),
    ]),
  );
} finally {
  await browser.close();
  await server.stop();
  await server.clear();
  await provider.close();
}
await results.finish();

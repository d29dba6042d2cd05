// What a streamed Markdown reply costs the browser, that it does not grow with the reply, and what it costs with Streamdown.

import assert from "node:assert/strict";

import { live, runIn } from "../support/content.mjs";
import { Server } from "../support/server.mjs";
import { launch } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { corpus } from "./support/corpus.mjs";
import { Feed } from "./support/feed.mjs";
import { Peer } from "./support/peer.mjs";
import { Results } from "./support/results.mjs";
import { providerSetting } from "./support/simulation.mjs";
import { medianRun, number, spread } from "./support/statistics.mjs";
import { TextProvider } from "./support/text_provider.mjs";

/** Paragraphs, CPU throttle, deltas of 4 characters a frame. */
const LONG = { paragraphs: 2000, throttle: 1, perFrame: 50 };
const THROTTLED = { paragraphs: 300, throttle: 8, perFrame: 25 };
const WORKS = [
  { paragraphs: 10, throttle: 1, perFrame: 4 },
  { paragraphs: 50, throttle: 1, perFrame: 4 },
  { paragraphs: 200, throttle: 1, perFrame: 4 },
  THROTTLED,
  LONG,
];

const STRETCHES = 5;

const results = new Results("markdown");

/** The end of a text, as a page shows it; of a long text the rest may not be in the page. */
function shown(page, selector) {
  return page.evaluate((text) => document.querySelector(text).textContent.trim().slice(-40), selector);
}

/** Letters and digits alone: marks are not shown. */
const letters = (text) => text.replaceAll(/[^\p{L}\p{N}]+/gu, "");

/** Plays all frames of a text in a page, in stretches, and sums up. */
async function measured({ page, pace, frames, play, text, throttle, ended, selector }) {
  await pace.throttle(throttle);
  const stretches = [];
  for (let stretch = 1; stretch <= STRETCHES; stretch += 1) {
    stretches.push(await play(Math.round((frames * stretch) / STRETCHES)));
  }
  await pace.throttle(1);
  await ended();
  const grown = await shown(page, selector);
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  const sum = (name) => stretches.reduce((total, stretch) => total + stretch[name], 0);
  assert.ok(grown && letters(text).endsWith(letters(grown)), `the page ends with ${grown}`);
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
}

async function ours(browser, server, provider, { paragraphs, throttle, perFrame }) {
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
    return await measured({
      page,
      pace: feed.pace,
      frames,
      play: (end) => feed.play(end),
      text,
      throttle,
      ended: () => runIn(page, "succeeded"),
      selector: '#main [data-block-kind="text"]',
    });
  } finally {
    await context.close();
  }
}

async function theirs(browser, peer, { paragraphs, throttle, perFrame }) {
  const text = corpus(paragraphs);
  const opened = await peer.open(browser, text, perFrame);
  try {
    return await measured({ ...opened, text, throttle, ended: async () => {}, selector: "#root" });
  } finally {
    await opened.close();
  }
}

const inWords = ({ paragraphs, throttle, perFrame }) =>
  `${number(paragraphs)} paragraphs, ${throttle}×, ${perFrame} deltas a frame`;

/** The run in the middle by CPU, with the frame gap in the middle. */
function middle(runs) {
  const run = medianRun(runs, ({ perCharacter }) => perCharacter);
  return { ...run, gap: spread(runs.map(({ gap }) => gap)).p50 };
}

const provider = await new TextProvider().start();
const server = new Server({ env: providerSetting("openai_chat", provider.url) });
const peer = new Peer();
const browser = await launch();
try {
  await peer.start((words) => results.say(words));
  await server.start();
  const found = [];
  for (const work of WORKS) {
    // In turn, so that both meet the same machine.
    const both = await results.repeat(inWords(work), async () => ({
      ours: await ours(browser, server, provider, work),
      theirs: await theirs(browser, peer, work),
    }));
    found.push({
      work,
      ours: middle(both.map((pair) => pair.ours)),
      theirs: middle(both.map((pair) => pair.theirs)),
    });
  }
  const of = (wanted) => found.find(({ work }) => work === wanted).ours;
  const long = of(LONG);
  results.figure({
    goal: "flat",
    what: "last fifth / first fifth of 2,000 paragraphs · longest task",
    value: `${number(long.growth, 2)}× · ${long.longest ? `${number(long.longest)} ms` : "none over 50 ms"}`,
    met: long.growth <= 1.2 && long.longest <= 50,
  });
  results.figure({
    goal: "throttled",
    what: "longest frame gap of 300 paragraphs",
    value: `${number(of(THROTTLED).gap)} ms`,
    met: of(THROTTLED).gap <= 100,
  });
  for (const { work, ours: own, theirs: other } of found) {
    const share = own.perCharacter / other.perCharacter;
    results.figure({
      goal: "character",
      what: inWords(work),
      value: `${number(own.perCharacter, 1)} µs, ${peer.name}: ${number(other.perCharacter, 1)} µs (${number(share, 2)} of it)`,
      met: share <= 1 / 3,
    });
  }
  for (const { work, ours: own, theirs: other } of found) {
    results.figure({
      goal: "gap",
      what: inWords(work),
      value: `${number(own.gap, 1)} ms, ${peer.name}: ${number(other.gap, 1)} ms (${number(own.gap / other.gap, 2)} of it)`,
      met: own.gap < other.gap,
    });
  }
  results.detail(
    "A streamed Markdown reply in the page",
    `CPU is the processor time of the page's main thread for script, style, layout and paint, in µs per character; deltas of 4 characters, so many each animation frame. Runloom's page is given them through its socket, from within, and shows them in its session's page; ${peer.name} (React 19, production build) is given the text so far, and has a page to itself that shows nothing else and does not scroll. Both are played in turn in the same browser. The last column is the same in fifths of the reply.`,
    ["paragraphs (characters)", "throttle, deltas a frame", "page", "CPU", "of it script", "style", "layout", "long tasks", "longest", "longest frame gap", "DOM nodes", "CPU in fifths"],
    found.flatMap(({ work, ours: own, theirs: other }) =>
      [
        ["Runloom", own],
        [peer.name, other],
      ].map(([name, run]) => [
        `${number(work.paragraphs)} (${number(run.characters)})`,
        `${work.throttle}×, ${work.perFrame}`,
        name,
        number(run.perCharacter, 1),
        number(run.script, 1),
        number(run.style, 1),
        number(run.layout, 1),
        number(run.longTasks),
        run.longest ? `${number(run.longest)} ms` : "–",
        `${number(run.gap, 1)} ms`,
        number(run.nodes),
        run.stretches.map((stretch) => number(stretch, 1)).join(" · "),
      ]),
    ),
  );
} finally {
  await browser.close();
  await server.stop();
  await server.clear();
  await provider.close();
  await peer.close();
}
await results.finish();

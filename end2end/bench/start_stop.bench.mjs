// How long a start takes, and how soon the stop button reaches the provider.

import { live, runThat } from "../support/content.mjs";
import { Server } from "../support/server.mjs";
import { launch } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { checkClocks, now } from "./support/clock.mjs";
import { Results } from "./support/results.mjs";
import { Simulation, providerSetting } from "./support/simulation.mjs";
import { number, spread } from "./support/statistics.mjs";

const GOAL_MS = 1000;
const FIRST_STARTS = 3;
const STARTS = 7;
const STOPS = 15;

const results = new Results("start_stop");

/** From the start of the process to the last byte of the first page. */
async function firstPage(server) {
  const begun = now();
  await server.start();
  const answer = await server.fetch("/");
  const html = await answer.text();
  if (!answer.ok || !html.includes("</html>")) throw new Error(`the first page answers ${answer.status}`);
  return now() - begun;
}

async function starts() {
  const first = [];
  const later = [];
  for (let series = 1; series <= FIRST_STARTS; series += 1) {
    results.say(`first start and ${STARTS} later ones, ${series} of ${FIRST_STARTS}`);
    const server = new Server();
    try {
      first.push(await firstPage(server));
      for (let time = 0; time < STARTS; time += 1) {
        await server.stop();
        later.push(await firstPage(server));
      }
      await server.stop();
    } finally {
      await server.clear();
    }
  }
  const again = spread(later);
  results.figure({
    goal: "start",
    what: "p50 · longest",
    value: `${number(again.p50)} · ${number(again.max)} ms`,
    met: again.p50 <= GOAL_MS,
  });
  const ever = spread(first);
  results.figure({
    goal: "start",
    what: "first-ever start, p50 · longest",
    value: `${number(ever.p50)} · ${number(ever.max)} ms`,
  });
}

async function stops() {
  const simulation = await new Simulation().start();
  const browser = await launch();
  const server = new Server({ env: providerSetting("anthropic", simulation.url) });
  const spans = [];
  try {
    await server.start();
    const page = await browser.newPage();
    for (let time = 1; time <= STOPS; time += 1) {
      results.say(`stop button, ${time} of ${STOPS}`);
      const { session } = await server.begin("slow");
      await page.goto(`${server.url}/s/${session}`);
      await live(page);
      await runThat(page, "the stream is running", (run) => run.pieces.some((piece) => piece.text.length > 10));
      const pressed = await page.getByRole("button", { name: "Stop" }).evaluate((button) => {
        const at = performance.timeOrigin + performance.now();
        button.click();
        return at;
      });
      await checkClocks(page);
      const ended = await until("the provider's socket is closed", async () => {
        const { connections } = await simulation.json("/_sim/connections");
        const last = connections.at(-1);
        return connections.length === time && last.end ? last : null;
      });
      if (ended.end !== "client_closed") throw new Error(`the stream ended by itself: ${ended.end}`);
      spans.push(ended.ended_at_ms - pressed);
    }
  } finally {
    await browser.close();
    await server.stop();
    await server.clear();
    await simulation.stop();
  }
  const all = spread(spans);
  results.figure({
    goal: "stop",
    what: "p50 · longest",
    value: `${number(all.p50)} · ${number(all.max)} ms`,
    met: all.max <= GOAL_MS,
  });
}

await starts();
await stops();
await results.finish();

// Models within models, and calls that run at the same time.

import assert from "node:assert/strict";

import { live, readRun, runIn, runThat, runWith } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 1400 } };

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(made.run)).run.status === "succeeded");
  return made;
}

const tools = (page) => page.locator('#main [data-block-kind="tool_ref"]');

/** The states of the calls of the page's run, in their order. */
const states = (run) => run.pieces.filter((piece) => piece.kind === "tool_ref").map((piece) => piece.state);

suite("nested", { speed: 20 }, (test) => {
  test("of twelve models within each other eight stand in place, and the boundary leads into the details", async ({
    server,
    open,
  }) => {
    const { session } = await finished(server, "nested");
    const page = await open(`/s/${session}`, WIDE);
    for (let level = 0; level < 8; level++) {
      await tools(page).nth(level).locator(":scope > .row__toggle").click();
      const below = level < 7 ? tools(page).nth(level + 1) : page.locator("#main .depth");
      await until(`level ${level + 2} is there`, () => below.isVisible());
    }
    assert.equal(await tools(page).count(), 8);
    const boundary = page.locator("#main .depth");
    assert.equal(await boundary.count(), 1);
    assert.match(await boundary.innerText(), /4 model calls/);
    assert.doesNotMatch(await page.locator("#main").innerText(), /Level 3: I ask/);

    await boundary.getByRole("link", { name: "Open in details" }).click();
    const details = page.locator("#details");
    await until("the details begin there", async () => (await details.innerText()).includes("Level 4: I ask the next model."));
    assert.doesNotMatch(await details.innerText(), /Level 5: I ask/);
    // From there the last one is in place again.
    const rows = details.locator('[data-block-kind="tool_ref"]');
    for (let level = 0; level < 3; level++) {
      await rows.nth(level).locator(":scope > .row__toggle").click();
      await until("the next level is there", () => rows.nth(level + 1).isVisible());
    }
    assert.match(await details.innerText(), /a key-value store as small as a nutshell/);
    assert.equal(await details.locator(".depth").count(), 0);
  });

  test("calls that overlap stand in one frame in their order, each with its own end, and one is stopped alone", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("pause:end");
    const { session } = await server.begin("overlap");
    const page = await open(`/s/${session}`, WIDE);
    const all = await runThat(page, "all four run", (run) => states(run).join() === "running,running,running,running");
    const order = all.pieces.map((piece) => piece.id);
    const head = page.locator("#main .group__head");
    assert.equal(await head.count(), 1);
    const words = async () => (await head.innerText()).replace(/\s+/g, " ");
    await until("the frame counts them", async () => /^4 in parallel 4 running/.test(await words()), { seen: words });

    await simulator.open("pause:end");
    const three = await runThat(page, "three are done", (run) => states(run).join() === "succeeded,succeeded,succeeded,running");
    await until("the frame counts them anew", async () => /3 done/.test(await words()) && /1 running/.test(await words()), {
      seen: words,
    });
    const last = three.pieces.filter((piece) => piece.kind === "tool_ref").at(-1).node;
    const stopped = await server.fetch(`/api/nodes/${last}/cancel`, { method: "POST" });
    assert.equal(stopped.status, 202);
    const over = await runIn(page, "succeeded");
    assert.deepEqual(states(over), ["succeeded", "succeeded", "succeeded", "cancelled"]);
    assert.deepEqual(over.pieces.slice(0, order.length).map((piece) => piece.id), order);
  });

  test("two calls at once, one of which asks a model, are the same before and after a refresh in the middle", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("reader:middle");
    const { session } = await server.begin("asking");
    const page = await open(`/s/${session}`, WIDE);
    await simulator.reached("reader:middle");
    await runThat(page, "one is done and one runs", (run) => states(run).join() === "succeeded,running");
    await tools(page).nth(1).locator(":scope > .row__toggle").click();
    await runWith(page, "The log is read once,");
    const before = await readRun(page);
    await page.reload();
    await live(page);
    const after = await runWith(page, "The log is read once,");
    assert.deepEqual(after.pieces, before.pieces, "what was opened stays open, and all of it is the same");
    await simulator.open("reader:middle");
    const over = await runIn(page, "succeeded");
    assert.deepEqual(states(over).slice(0, 2), ["succeeded", "succeeded"]);
    await page.reload();
    await live(page);
    assert.deepEqual((await runIn(page, "succeeded")).pieces, over.pieces);
  });
});

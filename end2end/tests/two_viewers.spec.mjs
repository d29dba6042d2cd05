// Several pages at once: on one run, on one session, on the list.

import assert from "node:assert/strict";

import { comparable, live, readRun, readStructure, runIn, runThat } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const MIDDLE = "what went on before the";
const AFTER_SEARCH = "so I read that file.";

suite("two viewers", { speed: 20 }, (test) => {
  test("two pages on one run show the same in the middle and at the end, also the one that came late", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("welcome:middle", "welcome:after-search");
    const { session, run } = await server.begin("welcome");
    const first = await open(`/s/${session}`);
    await simulator.reached("welcome:middle");
    const atMiddle = (read) => read.pieces.some((piece) => piece.text.endsWith(MIDDLE));
    const early = await runThat(first, "the first page has come to the gate", atMiddle);
    const second = await open(`/s/${session}`);
    assert.deepEqual(comparable(await runThat(second, "the second page, too", atMiddle)), comparable(early));

    await simulator.open("welcome:middle");
    await simulator.reached("welcome:after-search");
    // What was sent before the gate may still be on its way into the record.
    const atSearch = (read) => read.pieces.some((piece) => piece.text.endsWith(AFTER_SEARCH));
    const [left, right] = await Promise.all([
      runThat(first, "the first page has come to the second gate", atSearch),
      runThat(second, "the second page, too", atSearch),
    ]);
    assert.deepEqual(comparable(right).pieces, comparable(left).pieces);

    await simulator.open("welcome:after-search");
    await Promise.all([runIn(first, "succeeded"), runIn(second, "succeeded")]);
    const [one, two] = await Promise.all(
      [first, second].map((page) => runThat(page, "the page has a digest", (read) => read.digest)),
    );
    assert.deepEqual(comparable(two), comparable(one));
    assert.deepEqual(await readStructure(second), await readStructure(first));
    assert.equal(one.digest, await server.verify(run));
  });

  test("a second run that one page starts in the session appears on the other", async ({ server, simulator, open }) => {
    await simulator.arm("echo:end");
    const { session, run } = await server.begin("The first prompt");
    await simulator.open("echo:end");
    const first = await open(`/s/${session}`);
    const second = await open(`/s/${session}`);
    await runIn(first, "succeeded");
    await simulator.arm("echo:end");

    const field = first.getByLabel("Prompt", { exact: true });
    await field.fill("The second prompt");
    await field.press("Control+Enter");
    const isSecond = (read) => read.run !== run && read.prompt === "The second prompt";
    await runThat(first, "the second run is on the page that asked for it", isSecond);
    assert.equal(await field.inputValue(), "", "what was sent is gone from the field");
    // The gate holds it there.
    const isRunning = (read) => isSecond(read) && read.state === "running";
    await runThat(second, "the second run is on the other page and runs", isRunning);
    assert.equal(await second.locator("#main [data-run-id]").count(), 2);
    await simulator.reached("echo:end");
    await simulator.open("echo:end");
    const [here, there] = await Promise.all([runIn(first, "succeeded"), runIn(second, "succeeded")]);
    assert.deepEqual(here.pieces, there.pieces);
    assert.match(here.pieces[0].text, /^You wrote:\s*The second prompt/);
  });

  test("a prompt that is sent while a run goes on waits for its turn", async ({ server, simulator, open }) => {
    await simulator.arm("slow:middle");
    const { session } = await server.begin("slow rate=400 seconds=1");
    await simulator.reached("slow:middle");
    const page = await open(`/s/${session}`);
    await page.getByLabel("Prompt", { exact: true }).fill("After that");
    await page.getByRole("button", { name: "Send after" }).click();
    const queued = await runThat(page, "the second run is queued", (read) => read.prompt === "After that");
    assert.equal(queued.state, "queued");
    await simulator.open("slow:middle");
    await runThat(page, "then it runs", (read) => read.prompt === "After that" && read.state === "succeeded");
    const states = await page
      .locator("#main [data-run-id]")
      .evaluateAll((runs) => runs.map((run) => run.dataset.state));
    assert.deepEqual(states, ["succeeded", "succeeded"]);
  });

  test("the list shows a new session on top and its state as it changes, without a reload", async ({
    server,
    simulator,
    open,
  }) => {
    const list = await open("/");
    await list.evaluate(() => (globalThis.__sameLife = true));
    await simulator.arm("slow:middle");
    const { session } = await server.begin("slow rate=400 seconds=1");
    await simulator.reached("slow:middle");
    const entry = list.locator(`[data-session-id="${session}"]`);
    await until("the new session is listed as running", async () => {
      return (await entry.count()) === 1 && (await entry.getAttribute("data-state")) === "running";
    });
    assert.equal(await list.locator("[data-session-id]").first().getAttribute("data-session-id"), session);
    await simulator.open("slow:middle");
    await until("then as done", async () => (await entry.getAttribute("data-state")) === "succeeded");
    assert.match(await entry.innerText(), /done/);
    await entry.click();
    await list.waitForURL(`**/s/${session}`);
    await live(list);
    assert.equal((await readRun(list)).state, "succeeded");
    await list.goBack();
    await until("the list is back", async () => (await list.locator(`[data-session-id="${session}"]`).count()) === 1);
    assert.equal(await list.evaluate(() => globalThis.__sameLife), true, "all of it in one page");
  });
});

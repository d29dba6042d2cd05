// Following the end of a growing text, and leaving it to read.

import assert from "node:assert/strict";

import { readRun, runIn, runThat, textOf } from "../support/content.mjs";
import { drawn } from "../support/frames.mjs";
import { NEAR_PX, STILL_PX, distance, rest, watchAnchor, watchEnd, wheelUp } from "../support/scrolling.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 700 } };
const PROMPT = "long characters=30000 rate=2500";

const longer = (page, length) =>
  runThat(page, `the text is longer than ${length}`, (run) => textOf(run).length > length);

async function streaming({ server, simulator, open }) {
  await simulator.arm("long:begin", "long:end");
  const { session } = await server.begin(PROMPT);
  await simulator.reached("long:begin");
  const page = await open(`/s/${session}`, WIDE);
  await simulator.open("long:begin");
  await longer(page, 3_000);
  return page;
}

async function finish(page, simulator) {
  await simulator.reached("long:end");
  await simulator.open("long:end");
  await runIn(page, "succeeded", { timeout: 60_000 });
}

/** Ends the stream where the rest of it says nothing new. */
async function cancel(page, server) {
  await server.fetch(`/api/runs/${(await readRun(page)).run}/cancel`, { method: "POST" });
  await runIn(page, "cancelled");
}

suite("scroll", { speed: 1 }, (test) => {
  test("the page keeps to the end while it grows", async (desk) => {
    const page = await streaming(desk);
    assert.ok((await distance(page)) <= NEAR_PX, "it is at the end");
    const ends = await watchEnd(page);
    await longer(page, 9_000);
    const worst = Math.max(...(await ends()));
    assert.ok(worst <= NEAR_PX, `at each frame it was at most ${NEAR_PX} px from the end, but once ${worst}`);
    assert.equal(await page.locator(".follow").count(), 0);
    await finish(page, desk.simulator);
    assert.ok((await distance(page)) <= NEAR_PX, "also when the run is over");
  });

  test("the wheel upwards stops that; what is read stays where it is while more comes; the button says how much", async (desk) => {
    const page = await streaming(desk);
    await wheelUp(page, 600);
    const anchor = await watchAnchor(page);
    const start = textOf(await readRun(page)).length;
    const button = page.locator(".follow button");
    await until("the button says how much is new", async () => {
      return (await button.count()) === 1 && /^Follow · [\d,.\u202f\u00a0 ]+ new lines?$/.test((await button.innerText()).trim());
    });
    const lines = async () => Number(/· ([\d,.\u202f\u00a0 ]+) new/.exec(await button.innerText())[1].replaceAll(/\D/g, ""));
    const first = await lines();
    await longer(page, start + 6_000);
    assert.ok((await lines()) > first, "and counts on");
    const worst = Math.max(...(await anchor()));
    assert.ok(worst <= STILL_PX, `what is read moved by ${worst} px`);
    assert.ok((await distance(page)) > 600);

    await button.click();
    await until("the button leads to the end", async () => (await distance(page)) <= NEAR_PX);
    await until("and goes", async () => (await button.count()) === 0);
    const ends = await watchEnd(page);
    await longer(page, start + 10_000);
    assert.ok(Math.max(...(await ends())) <= NEAR_PX, "from there it follows again");
    await cancel(page, desk.server);
  });

  for (const [when, wait] of [
    ["once the page rests", rest],
    ["while the page still moves up", async () => {}],
  ]) {
    test(`PageUp stops that, and End follows again, ${when}`, async (desk) => {
      const page = await streaming(desk);
      await page.locator(".main__scroll").focus();
      await page.keyboard.press("PageUp");
      const button = page.locator(".follow button");
      await until("PageUp stops it", async () => (await button.count()) === 1);
      assert.ok((await distance(page)) > NEAR_PX);
      await wait(page);
      await page.keyboard.press("End");
      await until("End leads to the end", async () => (await distance(page)) <= NEAR_PX);
      await until("the button goes", async () => (await button.count()) === 0);
      const length = textOf(await readRun(page)).length;
      const ends = await watchEnd(page);
      await longer(page, length + 4_000);
      assert.ok(Math.max(...(await ends())) <= NEAR_PX, "from there it follows again");
      await cancel(page, desk.server);
    });
  }

  test("opening a row above leaves it where it is", async ({ server, open }) => {
    const { session, run } = await server.begin("tool_error");
    await until("the run is over", async () => (await server.snapshot(run)).run.status === "succeeded");
    const page = await open(`/s/${session}`, { viewport: { width: 1440, height: 420 } });
    const toggle = page.locator('#main [data-block-kind="tool_ref"] > .row__toggle').first();
    await toggle.scrollIntoViewIfNeeded();
    const top = () => toggle.evaluate((element) => element.getBoundingClientRect().top);
    const before = await top();
    await toggle.click();
    await drawn(page);
    assert.ok(Math.abs((await top()) - before) <= STILL_PX, "opened");
    await toggle.click();
    await drawn(page);
    assert.ok(Math.abs((await top()) - before) <= STILL_PX, "closed");
  });

  test("a finished session is read from its top", async ({ server, open }) => {
    const { session, run } = await server.begin("long characters=8000 rate=100000");
    await until("the run is over", async () => (await server.snapshot(run)).run.status === "succeeded");
    const page = await open(`/s/${session}`, WIDE);
    assert.equal(await page.locator(".main__scroll").evaluate((element) => element.scrollTop), 0);
  });
});

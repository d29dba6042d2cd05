// A network that fails between page and server: afterwards nothing is missing or doubled, without a reload.

import assert from "node:assert/strict";

import { comparable, connection, live, readRun, readStructure, runIn, runThat, textOf } from "../support/content.mjs";
import { Frames } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { passing, until } from "../support/until.mjs";

/** What a browser says by itself about a connection that breaks. */
const BROKEN = [/WebSocket connection to .* failed/, /net::ERR_(CONNECTION_(RESET|REFUSED|CLOSED|ABORTED)|EMPTY_RESPONSE)/];
/** A real outage: longer than the page and the server wait for a sign of life. */
const BLACK_HOLE_MS = 30_000;
/** So long after the network is back the page may take. */
const RECOVERY_MS = 20_000;

/** The page says what a page that is opened now says, and its digest is that of the record. */
async function isWhole({ server, open }, page, session, run) {
  const done = await until("the page has a digest", async () => {
    const read = await readRun(page);
    return read.digest ? read : null;
  });
  const other = await open(`/s/${session}`);
  const fresh = await runThat(other, "the new page has a digest", (read) => read.digest);
  assert.deepEqual(comparable(done), comparable(fresh));
  assert.deepEqual(await readStructure(page), await readStructure(other));
  assert.equal(done.digest, await server.verify(run));
  assert.equal(await page.evaluate(() => globalThis.__sameLife), true, "the page was not loaded again");
}

async function follow({ server, open }, proxy, prompt) {
  const { session, run } = await server.begin(prompt);
  const page = await open(`/s/${session}`, { baseURL: proxy.url });
  await page.evaluate(() => (globalThis.__sameLife = true));
  return { page, session, run };
}

const longer = (page, length) =>
  runThat(page, `the text is longer than ${length}`, (run) => textOf(run).length > length);

suite("network", { speed: 1 }, (test) => {
  test("one dropped connection in the middle of a stream", async (desk) => {
    const proxy = await desk.proxy();
    const { page, session, run } = await follow(desk, proxy, "slow rate=300 seconds=6");
    await longer(page, 200);
    proxy.drop();
    await runIn(page, "succeeded");
    await isWhole(desk, page, session, run);
  }, { allow: BROKEN });

  test("the page says calmly that it connects again, keeps what it shows, and is live when it can be", async (desk) => {
    const proxy = await desk.proxy();
    await desk.simulator.arm("slow:end");
    const { page, session, run } = await follow(desk, proxy, "slow rate=500 seconds=2");
    const before = await longer(page, 200);
    proxy.refuse(true);
    proxy.drop();
    await until("the page says that it connects again", async () => (await connection(page)) === "reconnecting");
    const tag = page.locator(".topbar [role=status]", { hasText: "reconnecting" });
    assert.equal(await tag.innerText(), "reconnecting …");
    assert.equal(await page.locator("[role=alert]").count(), 0, "no alarm");
    const during = await readRun(page);
    assert.ok(textOf(during).startsWith(textOf(before).slice(0, 200)), "what was shown stays");
    await desk.simulator.reached("slow:end");
    proxy.refuse(false);
    await live(page, { timeout: RECOVERY_MS });
    await until("the tag goes", async () => (await tag.count()) === 0);
    await desk.simulator.open("slow:end");
    await runIn(page, "succeeded");
    await isWhole(desk, page, session, run);
  }, { allow: BROKEN });

  test("a black hole of 30 seconds in the middle of a stream", async (desk) => {
    const proxy = await desk.proxy();
    const { page, session, run } = await follow(desk, proxy, "slow rate=60 seconds=45");
    const before = await longer(page, 100);
    proxy.swallow(true);
    await passing(BLACK_HOLE_MS);
    const during = await readRun(page);
    assert.equal(during.state, "running");
    assert.ok(textOf(during).startsWith(textOf(before).slice(0, 100)));
    assert.equal(await connection(page), "reconnecting", "after 20 seconds without a sign of life");
    const missed = (await desk.server.snapshot(run)).seq;
    assert.ok(missed > during.seq, "the run went on meanwhile");
    proxy.swallow(false);
    await live(page, { timeout: RECOVERY_MS });
    await runThat(page, "what was missed is there", (read) => read.seq >= missed, { timeout: RECOVERY_MS });
    await runIn(page, "succeeded", { timeout: 60_000 });
    await isWhole(desk, page, session, run);
  }, { allow: BROKEN, timeout: 150_000 });

  test("frames that are lost, doubled or out of order change nothing in the end", async (desk) => {
    const { server, viewer } = desk;
    await desk.simulator.arm("slow:begin");
    const { session, run } = await server.begin("slow rate=400 seconds=4");
    const { page } = await viewer();
    const frames = await Frames.take(page);
    let streamed = 0;
    let held = null;
    frames.change = (frame) => {
      if (frame.type !== "execution_stream") return [frame];
      streamed += 1;
      if (streamed === 10) return [];
      if (streamed === 20) return [frame, frame];
      if (streamed === 30) {
        held = frame;
        return [];
      }
      if (streamed === 31) return [frame, held];
      return [frame];
    };
    await page.goto(`${server.url}/s/${session}`);
    await live(page);
    await page.evaluate(() => (globalThis.__sameLife = true));
    await desk.simulator.open("slow:begin");
    await runIn(page, "succeeded", { timeout: 30_000 });
    assert.ok(streamed > 31, `only ${streamed} frames came`);
    await isWhole(desk, page, session, run);
  });
});

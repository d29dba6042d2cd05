// Attempts on the page: boundaries, folded older attempts, and the two buttons under a run that is over.

import assert from "node:assert/strict";

import { comparable, live, readRun, runIn, runThat, textOf } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const BROKEN = [/WebSocket connection to .* failed/, /net::ERR_(CONNECTION_(RESET|REFUSED|CLOSED|ABORTED)|EMPTY_RESPONSE)/];

/** The texts of all boundaries. */
function boundaries(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("[data-boundary]")].map((line) => line.textContent.replace(/\s+/g, " ").trim()),
  );
}

function button(page, name) {
  return page.locator("#main").getByRole("button", { name, exact: true });
}

/** The page after a reload is what it was, and its digest is the stored one. */
async function assertLasting(page, server, run) {
  const before = await runThat(page, "the run has a digest", (read) => read.digest);
  const lines = await boundaries(page);
  await page.reload();
  await live(page);
  const after = await runThat(page, "the refreshed run has a digest", (read) => read.digest);
  assert.deepEqual(comparable(after), comparable(before));
  assert.deepEqual(await boundaries(page), lines);
  assert.equal(after.digest, await server.verify(run));
}

suite("attempts", { speed: 20, env: { RUNLOOM_RECOVERY__RETRY_DELAYS: "[0.2, 0.2]" } }, (test) => {
  test("a cut connection goes on below a boundary, and the older attempt is folded and readable", async ({
    server,
    simulator,
    open,
    picture,
  }) => {
    await simulator.arm("cut_once:before");
    const { session, run } = await server.begin("cut_once");
    const page = await open(`/s/${session}`);
    await simulator.reached("cut_once:before");
    await runThat(page, "the first attempt is shown", (read) => textOf(read).includes("line.sp"));
    await simulator.open("cut_once:before");
    const seen = await runIn(page, "succeeded");
    assert.match(textOf(seen), /The last record of a key counts\./);
    assert.doesNotMatch(textOf(seen), /each one a record/, "the older attempt is folded");

    const [line, ...more] = await boundaries(page);
    assert.deepEqual(more, []);
    assert.match(line, /^Attempt 1 ?demo ?18 tokens kept ?failed after .*Attempt 2 ?demo ?again after an error, goes on/);
    const folded = page.locator("[data-attempt-id]");
    assert.equal(await folded.count(), 1);
    await folded.getByRole("button").click();
    const opened = await runThat(page, "the older attempt is open", (read) => textOf(read).includes("each one a record"));
    assert.match(textOf(opened), /key, value = line\.sp/);
    assert.ok(
      opened.remarks.some((remark) => remark.startsWith("Failed.")),
      JSON.stringify(opened.remarks),
    );
    await picture(page, "attempts");
    await folded.getByRole("button").click();
    assert.equal(await button(page, "Resume").count(), 0, "it has succeeded");
    await assertLasting(page, server, run);
  });

  test("after kill -9 Resume lets the run go on from what is kept", async ({ server, simulator, open }) => {
    await simulator.arm("cut_once:before");
    const { session, run } = await server.begin("cut_once");
    const page = await open(`/s/${session}`);
    await simulator.reached("cut_once:before");
    await runThat(page, "the first attempt is shown", (read) => textOf(read).includes("line.sp"));
    await server.kill();
    await server.start();
    await runIn(page, "interrupted", { timeout: 10_000 });
    await live(page);

    await button(page, "Resume").click();
    const seen = await runIn(page, "succeeded");
    assert.match(textOf(seen), /The last record of a key counts\./);
    const [line] = await boundaries(page);
    assert.match(line, /^Attempt 1 ?demo ?18 tokens kept ?interrupted after .*Attempt 2 ?demo ?resumed, goes on from there/);
    assert.equal(await button(page, "Resume").count(), 0);
    await assertLasting(page, server, run);
    const { attempts } = await server.snapshot(run);
    assert.deepEqual(
      attempts.map(({ reason, status }) => [reason, status]),
      [
        ["initial", "interrupted"],
        ["resume", "completed"],
      ],
    );
  }, { allow: BROKEN });

  test("Regenerate asks for another answer to the last prompt, also without script", async ({ server, open }) => {
    const { session } = await server.begin("Hello there");
    const page = await open(`/s/${session}`);
    await runIn(page, "succeeded");
    const run = await server.more(session, "And again");
    await until("both runs are shown", async () => (await page.locator("#main [data-run-id]").count()) === 2);
    await runIn(page, "succeeded");
    await until("the button stands under the last run only", async () => (await button(page, "Regenerate").count()) === 1);
    await button(page, "Regenerate").click();
    await until("there is a boundary", async () => (await boundaries(page)).length === 1);
    await runIn(page, "succeeded");
    assert.match((await boundaries(page))[0], /superseded after .*Attempt 2 ?demo ?another answer was asked for/);
    await assertLasting(page, server, run);

    const plain = await open(`/s/${session}`, { javaScriptEnabled: false });
    await button(plain, "Regenerate").click();
    await plain.waitForURL(`**/s/${session}`);
    await until("the reloaded page has three attempts", async () => {
      await plain.reload();
      const shown = await readRun(plain);
      return shown.state === "succeeded" && (await boundaries(plain)).length === 2;
    });
  });
});

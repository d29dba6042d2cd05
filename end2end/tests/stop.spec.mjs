// The stop button.

import assert from "node:assert/strict";

import { comparable, live, readRun, runIn, runThat, textOf } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** From the click to a closed run and a closed connection to the provider. */
const STOP_MS = 1_000;

suite("stop", { speed: 1 }, (test) => {
  test("Stop cancels the run within a second, says so, and closes the connection to the provider", async ({
    server,
    simulator,
    open,
  }) => {
    const { session, run } = await server.begin("slow rate=100 seconds=60");
    const page = await open(`/s/${session}`);
    await runThat(page, "some text is there", (read) => textOf(read).length > 100);
    const stop = page.getByRole("button", { name: "Stop" });
    assert.equal(await stop.isEnabled(), true);

    // The clock of the page, so that only the page's and the server's own time counts.
    await page.evaluate(() => {
      const run = document.querySelector("#main [data-run-id]");
      document.querySelector('form[action$="/cancel"]').addEventListener(
        "submit",
        () => {
          globalThis.__asked = performance.now();
          globalThis.__askedAt = Date.now();
        },
        { capture: true },
      );
      new MutationObserver(() => {
        if (run.dataset.state === "cancelled") globalThis.__stopped ??= performance.now();
      }).observe(run, { attributes: true });
    });
    await stop.click();
    const stopped = await runIn(page, "cancelled");
    const [took, askedAt] = await page.evaluate(() => [
      globalThis.__stopped - globalThis.__asked,
      globalThis.__askedAt,
    ]);
    assert.ok(took <= STOP_MS, `it took ${took} ms`);

    const report = await simulator.idle();
    const reply = report.connections.at(-1);
    assert.equal(reply.end, "client_closed");
    assert.ok(reply.ended_at_ms - askedAt <= STOP_MS, `the connection lived ${reply.ended_at_ms - askedAt} ms longer`);

    assert.equal(stopped.pieces[0].state, "cut");
    assert.ok(stopped.remarks.some((remark) => remark.startsWith("Cut.")), stopped.remarks.join("\n"));
    assert.ok(
      stopped.remarks.some((remark) => /^Cancelled\. A person stopped/.test(remark)),
      stopped.remarks.join("\n"),
    );
    assert.match(await page.locator(".topbar .chip").innerText(), /cancelled/);
    assert.equal(await page.getByRole("button", { name: "Stop" }).isDisabled(), true);
    const model = page.locator("#main .row--model").first();
    assert.equal(await model.getAttribute("data-state"), "cancelled");

    await page.reload();
    await live(page);
    const refreshed = await runThat(page, "the refreshed page has a digest", (read) => read.digest);
    assert.deepEqual(comparable(refreshed).pieces, stopped.pieces);
    assert.equal(refreshed.digest, await server.verify(run));
  });

  test("Stop before the first token cancels, too", async ({ server, simulator, open }) => {
    await simulator.arm("slow:begin");
    const { session } = await server.begin("slow");
    await simulator.reached("slow:begin");
    const page = await open(`/s/${session}`);
    await page.getByRole("button", { name: "Stop" }).click();
    const stopped = await runIn(page, "cancelled", { timeout: STOP_MS * 3 });
    assert.deepEqual(stopped.pieces, []);
    assert.ok(stopped.remarks.length > 0, "the page says why there is nothing");
    await simulator.idle();
  });

  test("Stop while a call is announced leaves it as not run", async ({ server, simulator, open }) => {
    await simulator.arm("parallel:between");
    const { session } = await server.begin("parallel");
    await simulator.reached("parallel:between");
    const page = await open(`/s/${session}`);
    await runThat(page, "the first call is announced", (read) =>
      read.pieces.some((piece) => piece.kind === "tool_ref" && piece.text === "README.md"),
    );
    await page.getByRole("button", { name: "Stop" }).click();
    const stopped = await runIn(page, "cancelled");
    assert.deepEqual(
      stopped.pieces.filter((piece) => piece.kind === "tool_ref").map(({ state, mark }) => [state, mark]),
      [["not_run", "not run"]],
    );
  });

  test("the keyboard reaches Stop", async ({ server, simulator, open }) => {
    await simulator.arm("slow:middle");
    const { session } = await server.begin("slow rate=400");
    await simulator.reached("slow:middle");
    const page = await open(`/s/${session}`);
    await until("Tab reaches Stop", async () => {
      await page.keyboard.press("Tab");
      return page.evaluate(() => document.activeElement?.textContent?.trim() === "Stop");
    });
    await page.keyboard.press("Enter");
    await runIn(page, "cancelled");
    assert.equal((await readRun(page)).pieces[0].state, "cut");
  });
});

// The pages without script: everything can be read, and a prompt sent, and a run stopped.

import assert from "node:assert/strict";

import { readRun } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const PLAIN = { javaScriptEnabled: false };

/** Loads the page again until its run is in a state: without script that is how it is followed. */
async function reloadUntil(page, state) {
  return until(`the reloaded page says ${state}`, async () => {
    await page.reload();
    const run = await readRun(page);
    return run?.state === state ? run : null;
  });
}

suite("without script", { speed: 20 }, (test) => {
  test("the composer's form starts a session and leads to its page", async ({ open, simulator }) => {
    const page = await open("/", PLAIN);
    await page.getByLabel("Prompt").fill("Hello there\nsecond line");
    await page.getByRole("button", { name: "Start" }).click();
    await page.waitForURL(/\/s\/ses_\w+$/);
    await simulator.idle();
    const run = await reloadUntil(page, "succeeded");
    assert.equal(run.prompt, "Hello there second line");
    assert.match(run.pieces[0].text, /^You wrote: Hello there second line/);

    await page.getByLabel("Prompt").fill("And once more");
    await page.getByRole("button", { name: "Send" }).click();
    await page.waitForURL(/\/s\/ses_\w+$/);
    const second = await reloadUntil(page, "succeeded");
    assert.equal(second.prompt, "And once more");
    assert.equal(await page.locator("#main [data-run-id]").count(), 2);
  });

  test("a sample's button starts its session", async ({ open }) => {
    const page = await open("/", PLAIN);
    await page.locator('button.sample[value="Show me a tool that fails"]').click();
    await page.waitForURL(/\/s\/ses_\w+$/);
    const run = await reloadUntil(page, "succeeded");
    assert.equal(run.prompt, "Show me a tool that fails");
  });

  test("the list leads to a session, whose page holds all of its content", async ({ open, server }) => {
    const { session, run } = await server.begin("welcome");
    await until("the run is over", async () => (await server.snapshot(run)).run.status === "succeeded");
    const list = await open("/", PLAIN);
    const entry = list.locator(`[data-session-id="${session}"]`);
    assert.match(await entry.innerText(), /done/);
    await entry.click();
    await list.waitForURL(`**/s/${session}`);

    const shown = await readRun(list);
    assert.deepEqual(
      shown.pieces.map((piece) => piece.kind),
      ["reasoning", "text", "tool_ref", "text", "tool_ref", "text", "tool_ref", "reasoning", "text"],
    );
    const text = shown.pieces[1].text;
    for (const words of ["Welcome to Runloom", "Reasoning, the quiet line above", 'id = "main"', "Open a second window"]) {
      assert.ok(text.includes(words), words);
    }
    assert.equal(await list.locator("#main table tbody tr").count(), 4);
    assert.equal(await list.locator("#tree [data-tree-node]").count() >= 5, true, "the tree is there");
  });

  test("a node's details are reached by its link", async ({ open, server }) => {
    const { session, run } = await server.begin("tool_error");
    await until("the run is over", async () => (await server.snapshot(run)).run.status === "succeeded");
    const page = await open(`/s/${session}`, PLAIN);
    const row = page.locator('#main [data-block-kind="tool_ref"]').first();
    const node = await row.getAttribute("data-node-id");
    await row.hover();
    await row.getByRole("link", { name: "Open in details" }).click();
    await page.waitForURL(`**/s/${session}?node=${node}`);
    const details = page.locator("#details");
    assert.equal(await details.locator("[data-details-node]").getAttribute("data-details-node"), node);
    assert.match(await details.innerText(), /docs\/no-such-file\.md/);
    assert.match(await details.locator(".io--error").innerText(), /\S/);
  });

  test("the stop form stops the run", async ({ open, server, simulator }) => {
    await simulator.arm("slow:middle");
    const { session, run } = await server.begin("slow");
    await simulator.reached("slow:middle");
    const page = await open(`/s/${session}`, PLAIN);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.waitForURL(`**/s/${session}`);
    const stopped = await reloadUntil(page, "cancelled");
    assert.ok(stopped.remarks.some((remark) => remark.startsWith("Cancelled.")), stopped.remarks.join("\n"));
    assert.match(stopped.pieces[0].text, /^This answer takes its time\./);
    assert.equal((await server.snapshot(run)).run.status, "cancelled");
    assert.equal(await page.getByRole("button", { name: "Stop" }).isDisabled(), true);
  });

  test("search and filter answer with an address", async ({ open, server }) => {
    const { session, run } = await server.begin("a rare word: quokka");
    await until("the run is over", async () => (await server.snapshot(run)).run.status === "succeeded");
    const page = await open("/", PLAIN);
    await page.getByLabel("Search sessions").fill("quokka");
    await page.getByLabel("Search sessions").press("Enter");
    await page.waitForURL(/[?&]q=quokka/);
    assert.deepEqual(
      await page.locator("[data-session-id]").evaluateAll((rows) => rows.map((row) => row.dataset.sessionId)),
      [session],
    );
  });
});

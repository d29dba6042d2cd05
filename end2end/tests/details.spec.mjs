// Going deeper: opening rows, the details panel, the tree, deep links, the keyboard.

import assert from "node:assert/strict";

import { live, readRun, runIn } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 } };

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(made.run)).run.status === "succeeded");
  return made;
}

const tools = (page) => page.locator('#main [data-block-kind="tool_ref"]');

suite("details", { speed: 20 }, (test) => {
  test("a row that failed says why in its one line, and opens to arguments, return value and error", async ({
    server,
    open,
  }) => {
    const { session } = await finished(server, "tool_error");
    const page = await open(`/s/${session}`, WIDE);
    const read = await readRun(page);
    const [missing, outside] = read.pieces.filter((piece) => piece.kind === "tool_ref");
    assert.deepEqual([missing.state, missing.mark], ["failed", "failed"]);
    assert.deepEqual([outside.state, outside.mark], ["failed", "failed"]);
    assert.match(missing.text, /no-such-file\.md/);
    assert.notEqual(missing.text, outside.text);

    const row = tools(page).first();
    const toggle = row.locator(".row__toggle");
    const height = (await toggle.boundingBox()).height;
    assert.equal(await row.locator(".row__body").isVisible(), false);
    await toggle.click();
    assert.equal(await toggle.getAttribute("aria-expanded"), "true");
    const body = row.locator(".row__body");
    assert.equal(await body.getAttribute("id"), await toggle.getAttribute("aria-controls"));
    const titles = await body.locator(".io__title").allInnerTexts();
    assert.deepEqual(
      titles.map((title) => title.trim()),
      ["Error", "Arguments", "Return value"],
    );
    const error = await body.locator(".io--error pre").innerText();
    assert.equal(error.split("\n")[0].trim(), missing.text, "the one line is the first of the error");
    assert.match(await body.locator('[data-channel="arguments"] pre').innerText(), /"path": "docs\/no-such-file\.md"/);
    assert.equal((await toggle.boundingBox()).height, height, "opening does not change the row's height");
    await toggle.click();
    assert.equal(await body.isVisible(), false);
  });

  test("an open row holds the whole return value, as the server has it", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const row = tools(page).nth(2);
    await row.locator(".row__toggle").click();
    const node = await row.getAttribute("data-node-id");
    const answer = await server.fetch(`/api/nodes/${node}/output?channel=result`);
    const whole = await answer.text();
    const shown = await row.locator('[data-channel="result"] pre').evaluate((element) => element.textContent);
    assert.equal(shown.replaceAll("\r\n", "\n"), whole.replaceAll("\r\n", "\n"));
    assert.match(shown, /class Log/);
  });

  test("an open row stays open through streaming and a refresh, a closed one stays closed", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("welcome:after-search");
    const { session } = await server.begin("welcome");
    await simulator.reached("welcome:after-search");
    const page = await open(`/s/${session}`, WIDE);
    await tools(page).first().locator(".row__toggle").click();
    await page.locator('#main [data-block-kind="reasoning"] .row__toggle').first().click();
    const expanded = () =>
      page.locator("#main [data-block-id] > .row__toggle").evaluateAll((rows) =>
        rows.map((row) => row.getAttribute("aria-expanded")),
      );
    await page.reload();
    await live(page);
    await until("what was open is open again", async () => {
      const now = await expanded();
      return now[0] === "true" && now[1] === "true" && now[2] === "false";
    }, { seen: expanded });
    assert.equal(await tools(page).first().locator(".row__body pre").first().isVisible(), true);
    await simulator.open("welcome:after-search");
    await runIn(page, "succeeded");
    assert.deepEqual(await expanded(), ["true", "true", "false", "false", "false"]);
  });

  test("Open in details shows the node in the panel, Locate selects it in the tree, and both stand in the address", async ({
    server,
    open,
  }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const row = tools(page).nth(1);
    const node = await row.getAttribute("data-node-id");
    await row.hover();
    await row.getByRole("link", { name: "Open in details" }).click();
    await page.waitForURL(`**/s/${session}?node=${node}`);
    const title = page.locator("#details [data-details-node]");
    await until("the panel shows the node", async () => (await title.getAttribute("data-details-node")) === node);
    assert.match(await page.locator("#details").innerText(), /search_files[\s\S]*"pattern": "TODO"/);
    assert.match(await row.getAttribute("class"), /row--selected/);
    const item = page.locator(`#tree [data-tree-node="${node}"]`);
    assert.equal(await item.getAttribute("aria-current"), "true");

    const other = tools(page).nth(2);
    const next = await other.getAttribute("data-node-id");
    await other.hover();
    await other.getByRole("button", { name: "Locate in tree" }).click();
    await page.waitForURL(`**/s/${session}?node=${next}`);
    const located = page.locator(`#tree [data-tree-node="${next}"]`);
    await until("the tree selects it", async () => (await located.getAttribute("aria-current")) === "true");
    assert.equal(await item.getAttribute("aria-current"), null);

    await page.goBack();
    await until("Back selects the one before", async () => (await title.getAttribute("data-details-node")) === node);
    await page.getByRole("button", { name: "Close details" }).click();
    await page.waitForURL((url) => !url.search.includes("node="));
    assert.equal(await title.count(), 0);
  });

  test("a link to a node opens it for somebody who comes by it", async ({ server, open }) => {
    const { session, run } = await finished(server, "tool_error");
    const { nodes } = await server.snapshot(run);
    const node = nodes.filter((known) => known.kind === "function").at(-1).node_id;
    const page = await open(`/s/${session}?node=${node}`, WIDE);
    assert.equal(await page.locator("#details [data-details-node]").getAttribute("data-details-node"), node);
    assert.match(await page.locator("#details").innerText(), /"path": "\.\.\/outside"/);
    const row = page.locator(`#main [data-node-id="${node}"]`);
    assert.match(await row.getAttribute("class"), /row--selected/);
    await until("its row is in sight", () =>
      row.evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
      }),
    );
  });

  test("a link to a node that is not there says so", async ({ server, open }) => {
    const { session } = await finished(server, "Hello");
    const page = await open(`/s/${session}?node=exec_${"0".repeat(22)}`, WIDE);
    assert.match(await page.locator("#details [role=alert]").innerText(), /This session has no node exec_0+/);
  });

  test("an item of the tree leads to its row", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, { viewport: { width: 1440, height: 500 } });
    const row = tools(page).first();
    const node = await row.getAttribute("data-node-id");
    await page.locator(`#tree [data-tree-node="${node}"]`).click();
    await page.waitForURL(`**/s/${session}?node=${node}`);
    await until("the row is in sight", () =>
      row.evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect();
        const { top: from, bottom: to } = document.querySelector(".main__scroll").getBoundingClientRect();
        return top >= from && bottom <= to;
      }),
    );
  });

  test("the keyboard alone opens a row, closes it, and opens its details", async ({ server, open }) => {
    const { session } = await finished(server, "tool_error");
    const page = await open(`/s/${session}`, WIDE);
    const toggle = tools(page).first().locator(".row__toggle");
    const node = await tools(page).first().getAttribute("data-node-id");
    let steps = 0;
    await until("Tab reaches the row", async () => {
      await page.keyboard.press("Tab");
      steps += 1;
      assert.ok(steps < 60, "the row is reached within 60 steps");
      return toggle.evaluate((element) => element === document.activeElement);
    });
    const outline = await toggle.evaluate((element) => getComputedStyle(element).outlineStyle);
    assert.notEqual(outline, "none", "focus is seen");
    await page.keyboard.press("Enter");
    await until("Enter opens it", async () => (await toggle.getAttribute("aria-expanded")) === "true");
    await page.keyboard.press("Space");
    await until("Space closes it", async () => (await toggle.getAttribute("aria-expanded")) === "false");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Locate in tree");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Open in details");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/s/${session}?node=${node}`);
  });

  test("on a phone the details are a drawer that opens with its node and gives the page back", async ({ server, open }) => {
    const { session, run } = await finished(server, "tool_error");
    const { nodes } = await server.snapshot(run);
    const node = nodes.find((known) => known.kind === "function").node_id;
    const page = await open(`/s/${session}?node=${node}`, PHONE);
    const panel = page.locator("#details");
    await until("the drawer is open", () => panel.isVisible());
    const box = await panel.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 390, `it lies within the page: ${JSON.stringify(box)}`);
    await page.getByRole("button", { name: "Close details" }).click();
    await until("the drawer is closed", async () => !(await panel.isVisible()));
    await page.getByRole("button", { name: "Open execution tree" }).click();
    await until("the tree is open", () => page.locator("#tree").isVisible());
    await page.keyboard.press("Escape");
    await until("Escape closes the tree", async () => !(await page.locator("#tree").isVisible()));
  });
});

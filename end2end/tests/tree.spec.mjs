// The execution tree: keys, search, one selection in tree, content and details, and thousands of nodes.

import assert from "node:assert/strict";
import { after } from "node:test";

import { providerSetting } from "../bench/support/simulation.mjs";
import { TextProvider } from "../bench/support/text_provider.mjs";
import { live, runIn } from "../support/content.mjs";
import { focused, focusOn, isMarked } from "../support/focus.mjs";
import { drawn } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 900 } };
const LOW = { viewport: { width: 1440, height: 420 } };
const PHONE = { viewport: { width: 390, height: 844 } };
const CALLS = 1500;

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  const isOver = async () => !["queued", "running"].includes((await server.snapshot(made.run)).run.status);
  await until("the run is over", isOver);
  return made;
}

const items = (page) => page.locator("#tree [role=treeitem]");
const item = (page, id) => page.locator(`#tree [data-tree-node="${id}"]`);
const shown = (page) => items(page).evaluateAll((all) => all.map((one) => one.dataset.treeNode));
const current = (page) => page.locator("#tree [aria-current=true]").evaluateAll((all) => all.map((one) => one.dataset.treeNode));
const nodeOf = (page, place) => page.locator('#main [data-block-kind="tool_ref"]').nth(place).getAttribute("data-node-id");
const selectedRows = (page) =>
  page.locator("#main .row--selected").evaluateAll((rows) => rows.map((row) => row.dataset.nodeId));

/** Whether an element lies within what is seen of its scroller. */
const isInSight = (locator, scroller) =>
  locator.evaluate((element, selector) => {
    const { top, bottom } = element.getBoundingClientRect();
    const box = document.querySelector(selector).getBoundingClientRect();
    return top >= box.top - 1 && bottom <= box.bottom + 1;
  }, scroller);

suite("tree", { speed: 20 }, (test) => {
  test("the keyboard goes through the tree as in any tree, with one stop for Tab", async ({ server, open }) => {
    const { session, run } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const ids = await shown(page);
    assert.equal(ids[0], run);
    const [, answer, list, search, read] = ids;
    assert.equal(await page.locator('#tree [role=treeitem][tabindex="0"]').count(), 1);
    await page.locator("#tree-search").focus();
    await page.keyboard.press("Tab");
    await focusOn(page, `item ${run}`);
    assert.equal(await isMarked(page), true, "the focus is seen");
    const press = async (key, id) => {
      await page.keyboard.press(key);
      await focusOn(page, `item ${id}`);
    };
    await press("ArrowDown", answer);
    await press("ArrowDown", list);
    await press("End", read);
    await press("ArrowUp", search);
    await press("ArrowLeft", answer);
    await page.keyboard.press("ArrowLeft");
    await until("it is closed", async () => (await item(page, answer).getAttribute("aria-expanded")) === "false");
    assert.deepEqual(await shown(page), [run, answer]);
    await press("ArrowLeft", run);
    await press("ArrowRight", answer);
    await page.keyboard.press("*");
    await until("the star opens it", async () => (await shown(page)).length === ids.length);
    await press("ArrowRight", list);
    await press("Home", run);
    await page.keyboard.type("read");
    await focusOn(page, `item ${read}`);
    await press("Home", run);
    await press("s", search);
    assert.equal(await page.locator("#stop[open]").count(), 0, "a letter is a name here, no command");

    // What was closed stays so after a refresh.
    await press("ArrowLeft", answer);
    await page.keyboard.press("ArrowLeft");
    await until("it is closed", async () => (await shown(page)).length === 2);
    await page.reload();
    await live(page);
    await until("it is closed still", async () => (await shown(page)).length === 2, { seen: () => shown(page) });
  });

  test("Space selects and stays, Enter goes to the row, and Locate comes back and opens the path", async ({ server, open }) => {
    const { session, run } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, LOW);
    const [list, , read] = [await nodeOf(page, 0), await nodeOf(page, 1), await nodeOf(page, 2)];
    await item(page, run).focus();
    await page.keyboard.type("list");
    await focusOn(page, `item ${list}`);
    await page.keyboard.press("Space");
    await page.waitForURL(`**/s/${session}?node=${list}`);
    await until("it is marked everywhere", async () =>
      (await current(page)).join() === list && (await selectedRows(page)).join() === list &&
      (await page.locator("#details [data-details-node]").getAttribute("data-details-node")) === list,
    );
    assert.equal(await focused(page), `item ${list}`);
    const row = (id) => page.locator(`#main [data-node-id="${id}"]`).first();
    await until("its row is in sight", () => isInSight(row(list), ".main__scroll"));

    await page.keyboard.press("End");
    await focusOn(page, `item ${read}`);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/s/${session}?node=${read}`);
    await focusOn(page, `row ${read}`);
    assert.equal(await isInSight(row(read), ".main__scroll"), true);

    // What is in sight does not move when it is selected again.
    const top = () => page.locator(".main__scroll").evaluate((element) => element.scrollTop);
    const before = await top();
    await item(page, run).locator(".tree__chev").click();
    await until("the tree is closed", async () => (await shown(page)).length === 1);
    await row(read).locator(".row__toggle").focus();
    await page.keyboard.press("l");
    await focusOn(page, `item ${read}`);
    assert.equal((await shown(page)).length > 1, true, "the path to it is open");
    assert.equal(await top(), before);

    await page.reload();
    await live(page);
    assert.deepEqual(await current(page), [read], "the address keeps it");
    assert.deepEqual(await selectedRows(page), [read]);
  });

  test("an item leads to its row also where the row's run and model are closed", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const node = await nodeOf(page, 1);
    await page.locator("#main .row--model > .row__toggle").first().click();
    await until("the row is gone", async () => (await page.locator(`#main [data-node-id="${node}"]`).count()) === 0);
    await item(page, node).focus();
    await page.keyboard.press("Enter");
    await focusOn(page, `row ${node}`);
  });

  test("a search leaves what matches with its path, and Escape brings the rest back", async ({ server, open }) => {
    const { session, run } = await finished(server, "tool_error");
    const page = await open(`/s/${session}`, WIDE);
    const all = await shown(page);
    const node = await nodeOf(page, 1);
    await item(page, run).focus();
    await page.keyboard.press("/");
    await focusOn(page, "#tree-search");
    await page.keyboard.type("outside");
    await until("one is left, with its path", async () => (await shown(page)).join() === [all[0], all[1], node].join(), {
      seen: () => shown(page),
    });
    assert.equal(await page.locator(".tree__found").innerText(), "1 match");
    await page.keyboard.press("Enter");
    await focusOn(page, `item ${node}`);
    await page.keyboard.press("/");
    await page.keyboard.press("Escape");
    await until("all are back", async () => (await shown(page)).join() === all.join());
    await page.keyboard.type("failed");
    await until("states are searched too", async () => (await page.locator(".tree__found").innerText()) === "2 matches");
    await page.keyboard.type(" quokka");
    await until("nothing is found", async () => (await page.locator(".tree__found").innerText()) === "Nothing matches");
    assert.equal(await items(page).count(), 0);
    await page.keyboard.press("Escape");
    await until("all are back", async () => (await shown(page)).join() === all.join());
  });

  test("on a phone Locate opens the tree, and an item gives the page back", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, PHONE);
    const node = await nodeOf(page, 0);
    const toggle = page.locator(`#main [data-node-id="${node}"] > .row__toggle`);
    await toggle.focus();
    await page.keyboard.press("l");
    await focusOn(page, `item ${node}`);
    assert.equal(await page.locator("#details").isVisible(), false, "only one drawer is open");
    const other = await nodeOf(page, 2);
    await item(page, other).click();
    await until("the drawer is closed", async () => !(await page.locator("#tree").isVisible()));
    await until("its row is in sight", () => isInSight(page.locator(`#main [data-node-id="${other}"]`), ".main__scroll"));
  });

  test("without script the tree is links, and one leads to the details", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, { ...WIDE, javaScriptEnabled: false });
    const node = await nodeOf(page, 1);
    await item(page, node).click();
    await page.waitForURL(`**/s/${session}?node=${node}`);
    assert.equal(await page.locator("#details [data-details-node]").getAttribute("data-details-node"), node);
    assert.deepEqual(await current(page), [node]);
    assert.equal(await page.locator("#tree-search").isVisible(), false);
  });
});

const provider = await new TextProvider().start();

after(() => provider.close());

const SETTINGS = { ...providerSetting("openai_chat", provider.url), RUNLOOM_RECOVERY__RETRY_DELAYS: "[]" };

suite("large tree", { env: SETTINGS }, (test) => {
  test(`of ${CALLS} calls a few are in the page, and all are reached`, async ({ server, open }) => {
    provider.serve("Hello", [{ content: "Hello." }])();
    const { session } = await finished(server, "Hello");
    const parts = Array.from({ length: CALLS }, (_, place) => [
      { content: `Step ${place}. ` },
      { tool: "read_file", arguments: JSON.stringify({ path: `file-${place}.txt` }) },
    ]);
    const begin = provider.serve("many calls", [...parts.flat(), { cut: true }], 64 * 1024);
    const page = await open(`/s/${session}`, WIDE);
    await server.more(session, "many calls");
    begin();
    await runIn(page, "failed", { timeout: 60_000 });
    const count = await items(page).count();
    assert.ok(count > 20 && count < 130, `${count} items`);
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(nodes <= 3000, `${nodes} elements`);

    await items(page).first().focus();
    await page.keyboard.press("End");
    const last = () => page.evaluate(() => {
      const { ariaPosInSet, ariaSetSize, textContent } = document.activeElement;
      return `${ariaPosInSet} of ${ariaSetSize} ${/file-\d+/.exec(textContent)}`;
    });
    await until("the last one has the focus", async () => (await last()) === `${CALLS} of ${CALLS} file-${CALLS - 1}`, { seen: last });
    assert.equal(await isInSight(page.locator("#tree :focus"), ".tree"), true);
    const begun = performance.now();
    await page.keyboard.press("Home");
    await until("the first one has the focus", async () => (await items(page).first().evaluate((one) => one === document.activeElement)));
    process.stderr.write(`# from the end to the start: ${Math.round(performance.now() - begun)} ms\n`);

    // The wheel takes the items away; the keyboard goes on from where it was.
    await page.keyboard.press("ArrowDown");
    const from = await focused(page);
    await page.locator(".tree").evaluate((element) => element.scrollTo(0, 20_000));
    await drawn(page);
    await until("other items are there", async () => !(await shown(page)).includes(from.slice("item ".length)));
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "tree");
    await page.keyboard.press("ArrowUp");
    await until("it goes on", async () => (await items(page).first().evaluate((one) => one === document.activeElement)));

    await page.keyboard.press("/");
    const asked = performance.now();
    await page.keyboard.type("file-1234");
    await until("one is found", async () => (await page.locator(".tree__found").innerText()).startsWith("1 match"));
    process.stderr.write(`# found among ${CALLS}: ${Math.round(performance.now() - asked)} ms\n`);

    // Its row is far from what is drawn: the content is taken there.
    const node = (await shown(page)).at(-1);
    assert.equal(await page.locator(`#main [data-node-id="${node}"]`).count(), 0);
    await page.keyboard.press("Enter");
    await focusOn(page, `item ${node}`);
    await page.keyboard.press("Enter");
    await focusOn(page, `row ${node}`);
    const after = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(after <= 3000, `${after} elements`);
  }, { timeout: 120_000 });
});

// The search of a session's content: what is closed, folded, not drawn or not loaded is found, and the way to it is opened.

import assert from "node:assert/strict";
import { after } from "node:test";

import { corpus } from "../bench/support/corpus.mjs";
import { providerSetting } from "../bench/support/simulation.mjs";
import { TextProvider } from "../bench/support/text_provider.mjs";
import { serious } from "../support/axe.mjs";
import { focusOn } from "../support/focus.mjs";
import { runIn, runThat, textOf } from "../support/content.mjs";
import { rest } from "../support/scrolling.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 900 } };
const MOST_NODES = 3000;

/** Ends with the tests. */
const provider = await new TextProvider().start();

after(() => provider.close());

const countOf = (page) => page.locator(".find__count").evaluate((count) => count.firstChild.textContent);
const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);
const kept = (page) => page.evaluate(() => sessionStorage.getItem("expansion"));

/** The painted ranges of a name: their words, and whether they are in sight below the bar. */
const painted = (page, name) =>
  page.evaluate((name) => {
    const bar = document.querySelector(".find").getBoundingClientRect();
    return [...CSS.highlights.get(name)].map(({ startContainer, startOffset, endContainer, endOffset }) => {
      const range = document.createRange();
      range.setStart(startContainer, startOffset);
      range.setEnd(endContainer, endOffset);
      const { top, bottom, left, right, height } = range.getBoundingClientRect();
      const isCovered = top < bar.bottom && bottom > bar.top && left < bar.right && right > bar.left;
      const foot = document.querySelector(".main__foot").getBoundingClientRect().top;
      const around = startContainer.parentElement.closest("p, li, td, pre, .row, .prompt")?.textContent ?? "";
      return { words: range.toString(), isSeen: height > 0 && top >= 44 && bottom <= foot && !isCovered, around };
    });
  }, name);

/** Waits until the place of the hit is marked, and in sight. */
async function shown(page, words, around = /(?:)/) {
  const look = () => painted(page, "find-current");
  await until(
    `“${words}” is the place that is shown`,
    async () => {
      const [place, ...more] = await look();
      return place?.words.toLowerCase() === words.toLowerCase() && place.isSeen && around.test(place.around) && !more.length;
    },
    { seen: look },
  );
}

/** Opens the bar by its key and writes; waits for how many are found. */
async function search(page, words, count) {
  await page.keyboard.press("/");
  await focusOn(page, "#find");
  await page.keyboard.type(words);
  await until(`${words}: ${count}`, async () => (await countOf(page)) === count, { seen: () => countOf(page) });
}

async function goTo(page, count) {
  await page.keyboard.press("Enter");
  await until(`it says ${count}`, async () => (await countOf(page)) === count, { seen: () => countOf(page) });
}

async function finished(server, prompt, status = "succeeded") {
  const { session, run } = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(run)).run.status === status, { timeout: 150_000 });
  return { session, run };
}

suite("find", { speed: 20, env: { RUNLOOM_RECOVERY__RETRY_DELAYS: "[0.2, 0.2]" } }, (test) => {
  test("a hit in a closed row opens it, without a choice that the user did not make; the keys go through all hits", async ({
    open,
    server,
    picture,
  }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    await runIn(page, "succeeded");
    const { hits } = await server.json(`/api/sessions/${session}/search?q=acorn&limit=500`);
    const fields = new Set(hits.map((hit) => hit.field));
    for (const field of ["text", "arguments", "result"]) assert.ok(fields.has(field), JSON.stringify([...fields]));
    const of = (place) => `${place} of ${hits.length}`;
    const before = await page.locator(".main__scroll").evaluate((scroller) => scroller.scrollTop);
    await search(page, "ACORN", `${hits.length} hits`);
    assert.equal(await page.locator(".main__scroll").evaluate((scroller) => scroller.scrollTop), before, "writing moves nothing");
    await goTo(page, of(1));
    await shown(page, "acorn");
    for (let place = 2; place <= hits.length; place += 1) {
      await goTo(page, of(place));
      await shown(page, "acorn");
    }
    await goTo(page, of(1));
    await page.keyboard.press("Shift+Enter");
    await until("back round", async () => (await countOf(page)) === of(hits.length));
    await page.keyboard.press("ArrowUp");
    await until("one back", async () => (await countOf(page)) === of(hits.length - 1));
    await page.keyboard.press("ArrowDown");
    await until("one on", async () => (await countOf(page)) === of(hits.length));
    await shown(page, "acorn");
    await picture(page, "find-wide");
    assert.equal(await kept(page), null, "what was opened on the way is no choice of the user");
    await page.keyboard.press("Escape");
    await until("the bar is closed", async () => (await page.locator(".find").count()) === 0);
    assert.equal(await page.evaluate(() => CSS.highlights.get("find-every").size), 0);
    assert.notEqual(await page.evaluate(() => document.activeElement.tagName), "BODY");
  });

  test("a hit in what a call gave back is shown in its row, which the user can close", async ({ open, server }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    await runIn(page, "succeeded");
    const { hits } = await server.json(`/api/sessions/${session}/search?q=def&limit=500`);
    const place = hits.findIndex((hit) => hit.field === "result");
    assert.ok(place >= 0, JSON.stringify(hits));
    const row = page.locator(`#main [data-node-id="${hits[place].node_id}"] > .row__toggle`);
    assert.equal(await row.getAttribute("aria-expanded"), "false");
    await search(page, "def", `${hits.length} hits`);
    for (let step = 0; step <= place; step += 1) await goTo(page, `${step + 1} of ${hits.length}`);
    await shown(page, "def");
    assert.equal(await row.getAttribute("aria-expanded"), "true");
    await page.keyboard.press("Escape");
    await row.click();
    await until("the user closes it", async () => (await row.getAttribute("aria-expanded")) === "false");
    assert.deepEqual(Object.values(JSON.parse(await kept(page))), [false]);
  });

  test("a hit in an older attempt unfolds it for now", async ({ open, server }) => {
    const { session } = await finished(server, "cut_once");
    const page = await open(`/s/${session}`, WIDE);
    const seen = await runIn(page, "succeeded");
    assert.doesNotMatch(textOf(seen), /each one a record/);
    await search(page, "each one a record", "1 hit");
    await goTo(page, "1 of 1");
    await shown(page, "each one a record");
    assert.equal(await kept(page), null);
    await page.reload();
    const again = await runIn(page, "succeeded");
    assert.doesNotMatch(textOf(again), /each one a record/);
  });

  test("while a run goes on what is new is found when it is asked for again", async ({ open, server, simulator }) => {
    await simulator.arm("slow:middle");
    const { session, run } = await server.begin("slow seconds=4");
    await simulator.reached("slow:middle");
    const page = await open(`/s/${session}`, WIDE);
    await page.keyboard.press("Control+f");
    await focusOn(page, "#find");
    await page.keyboard.type("a");
    await until("some are found", async () => /^\d+ hits$/.test(await countOf(page)), { seen: () => countOf(page) });
    const count = Number.parseInt(await countOf(page), 10);
    await page.keyboard.press("Enter");
    await shown(page, "a");
    await simulator.open("slow:middle");
    await runThat(page, "the run is over", (read) => read.state === "succeeded");
    const total = (await server.json(`/api/sessions/${session}/search?q=a&limit=500`)).hits.length;
    assert.ok(total > count, `${total} after ${count}`);
    await page.keyboard.press("Enter");
    await until("more are found", async () => new RegExp(`^\\d+ of ${Math.min(total, 200)}`).test(await countOf(page)), {
      seen: () => countOf(page),
    });
    await server.verify(run);
  });

  test("what is not found is said, and nothing is wrong with the page or with the bar", async ({ open, server }) => {
    const { session } = await finished(server, "tool_error");
    const page = await open(`/s/${session}`, WIDE);
    await runIn(page, "succeeded");
    await page.getByRole("button", { name: "Search this session" }).click();
    await focusOn(page, "#find");
    await page.keyboard.type("quokka");
    await until("nothing is found", async () => (await countOf(page)) === "No hits");
    await page.locator("#find").fill("outside");
    await until("it is", async () => /^\d+ hits?$/.test(await countOf(page)), { seen: () => countOf(page) });
    await page.keyboard.press("Enter");
    await shown(page, "outside");
    assert.deepEqual(await serious(page), []);
    await page.keyboard.press("Escape");
    await focusOn(page, "Search this session");
  });

  test("without script the words stand in the address, and each hit is a link that opens its place", async ({ open, server }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, { ...WIDE, javaScriptEnabled: false });
    const { hits } = await server.json(`/api/sessions/${session}/search?q=def&limit=500`);
    const hit = hits.find(({ field }) => field === "result");
    await page.getByRole("searchbox", { name: "Search this session" }).fill("def");
    await page.getByRole("button", { name: "Search this session" }).click();
    await page.waitForURL(/\?q=def$/);
    assert.equal(await page.locator(".found h2").innerText(), `${hits.length} hits for “def”`);
    const links = page.locator(".found__hit");
    assert.equal(await links.count(), hits.length);
    await links.nth(hits.indexOf(hit)).click();
    await page.waitForURL(new RegExp(`block=${hit.block_id}#block-${hit.block_id}$`));
    const section = page.locator(`#block-${hit.block_id} [data-channel="result"]`);
    assert.match(await section.innerText(), /def/);
    for (const [query, words] of [["%25%00", /cannot be searched/], ["x".repeat(300), /at most 200/]]) {
      await page.goto(`${server.url}/s/${session}?q=${query}`);
      assert.match(await page.locator(".found h2").innerText(), words);
    }
  });

  test("on a phone the bar fits, and covers nothing that it shows", async ({ open, server, picture }) => {
    const { session } = await finished(server, "welcome");
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(`/s/${session}`, { viewport: { width: 360, height: 740 }, colorScheme });
      await runIn(page, "succeeded");
      await page.getByRole("button", { name: "Search this session" }).click();
      await focusOn(page, "#find");
      await page.keyboard.type("log");
      await until("some are found", async () => /^\d+\+? hits$/.test(await countOf(page)));
      for (let step = 0; step < 4; step += 1) await page.getByRole("button", { name: "Next hit" }).click();
      await shown(page, "log");
      const { width } = await page.locator(".find").boundingBox();
      assert.ok(width <= 360);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
      assert.deepEqual(await serious(page), []);
      await picture(page, `find-phone-${colorScheme}`);
    }
  });
});

const SETTINGS = { ...providerSetting("openai_chat", provider.url), RUNLOOM_RECOVERY__RETRY_DELAYS: "[]" };

suite("find in large content", { env: SETTINGS }, (test) => {
  test("a block that is not loaded is loaded and drawn, by a hit and by a link", async ({ open, server }) => {
    const parts = Array.from({ length: 1200 }, (_, place) =>
      place % 2 === 0 ? { reasoning_content: `Thought ${place} of many.` } : { content: `Answer ${place}, in short.` },
    );
    provider.serve("many blocks", parts)();
    const { session } = await finished(server, "many blocks");
    const page = await open(`/s/${session}`, WIDE);
    await search(page, "answer 31,", "1 hit");
    await goTo(page, "1 of 1");
    await shown(page, "Answer 31,", /Answer 31, in short/);
    assert.ok((await nodes(page)) <= MOST_NODES, `${await nodes(page)} nodes`);
    // Reasoning is a closed row.
    await page.locator("#find").fill("thought 600 of");
    await until("it is found", async () => (await countOf(page)) === "1 hit", { seen: () => countOf(page) });
    await goTo(page, "1 of 1");
    await shown(page, "Thought 600 of");
    const { hits } = await server.json(`/api/sessions/${session}/search?q=${encodeURIComponent("Thought 50 of")}`);
    const linked = await open(`/s/${session}?block=${hits[0].block_id}`, WIDE);
    const row = linked.locator(`#main [data-block-id="${hits[0].block_id}"]`);
    await until("the link leads there", () => row.evaluate((one) => {
      const { top, bottom } = one.getBoundingClientRect();
      return top > 40 && bottom < innerHeight;
    }).catch(() => false));
    assert.equal(await row.locator(".row__toggle").getAttribute("aria-expanded"), "true");
  }, { timeout: 240_000 });

  test("a hit late in a block of 5 MB loads its piece, and what stands before it can be read", async ({ open, server }) => {
    const part = corpus(2000);
    const text = part.repeat(Math.ceil((5 * 1024 * 1024) / part.length)).slice(0, 5 * 1024 * 1024);
    const at = text.indexOf("\n\n", 3_500_000) + 2;
    provider.serve("one large block", [{ content: `${text.slice(0, at)}Here is the quokka at last.\n\n${text.slice(at)}` }])();
    const { session } = await finished(server, "one large block");
    const page = await open(`/s/${session}`, WIDE);
    await search(page, "quokka at", "1 hit");
    await goTo(page, "1 of 1");
    await shown(page, "quokka at", /Here is the quokka at last/);
    await rest(page);
    await shown(page, "quokka at");
    assert.ok((await nodes(page)) <= MOST_NODES, `${await nodes(page)} nodes`);
    const earlier = page.getByRole("button", { name: "Show earlier part" });
    const place = () => page.locator(".main__col").getByText("Here is the quokka at last").count();
    await earlier.click();
    await until("the part before is shown", async () => (await place()) === 0);
    await page.getByRole("button", { name: "Load more" }).click();
    await until("the part after it joins it", async () => (await place()) === 1);
    await page.locator("#find").fill("paragraph");
    await page.keyboard.press("Enter");
    await until("other hits are found", async () => /^\d+ of 200\+$|^No hits$/.test(await countOf(page)), { seen: () => countOf(page) });
  }, { timeout: 240_000 });

  test("a hit late in a long argument is shown, where its view does not hold it as it came", async ({ open, server }) => {
    const lines = Array.from({ length: 40_000 }, (_, place) => `"a line ${place} of an argument"`);
    const text = `{"lines": [${lines.join(", ")}]}`;
    provider.serve("a long call", [{ tool: "long_call", arguments: text }, { cut: true }])();
    const { session } = await finished(server, "a long call", "failed");
    const page = await open(`/s/${session}`, WIDE);
    await search(page, "a line 31234 of", "1 hit");
    await goTo(page, "1 of 1");
    await shown(page, "a line 31234 of");
    assert.ok((await nodes(page)) <= MOST_NODES, `${await nodes(page)} nodes`);
  }, { timeout: 240_000 });
});

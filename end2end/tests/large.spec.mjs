// Large content: a session of 20,000 blocks, one block of 5 MB, one call with 50 MB (less in a short run). Each opens quickly, keeps the page
// small, and every byte of it is reached.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after } from "node:test";

import { corpus } from "../bench/support/corpus.mjs";
import { providerSetting } from "../bench/support/simulation.mjs";
import { TextProvider } from "../bench/support/text_provider.mjs";
import { live, runIn } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const MOST_NODES = 3000;
/** On a busy machine; what is to be reached is measured by the benches. */
const PATIENCE_MS = 15_000;
/** The full sizes in the long run, a fifth of them else: windows and pieces are the same. */
const SHARE = process.env.RUNLOOM_TEST_LONG === "1" ? 1 : 5;
const BLOCKS = 20_000 / SHARE;
const BLOCK_BYTES = 5 * 1024 * 1024;
const OUTPUT_BYTES = (50 * 1000 * 1000) / SHARE;

/** Ends with the tests. */
const provider = await new TextProvider().start();

after(() => provider.close());

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

async function record(server, prompt, parts, state = "succeeded") {
  provider.serve(prompt, parts)();
  const { session, run } = await server.begin(prompt);
  const status = async () => (await server.json(`/api/sessions/${session}`)).runs.at(-1).status;
  await until(`the run is over`, async () => ["succeeded", "failed"].includes(await status()), { timeout: 150_000 });
  assert.equal(await status(), state);
  return { session, run };
}

/** Opens a page and says how long that took, until it answers. */
async function opened(open, path) {
  const begun = performance.now();
  const page = await open(path);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const ms = performance.now() - begun;
  const count = await nodes(page);
  process.stderr.write(`# ${path}: ${Math.round(ms)} ms, ${count} nodes\n`);
  assert.ok(ms < PATIENCE_MS, `${ms} ms`);
  assert.ok(count <= MOST_NODES, `${count} nodes`);
  return page;
}

const shownBlocks = (page) =>
  page.locator("#main [data-block-kind]").evaluateAll((all) => all.map((block) => block.textContent.replace(/\s+/g, " ")));

/** A stream that breaks is not asked for again: it would only send the same once more. */
const SETTINGS = { ...providerSetting("openai_chat", provider.url), RUNLOOM_RECOVERY__RETRY_DELAYS: "[]" };

suite("large content", { env: SETTINGS }, (test, server) => {
  test(`a session of ${BLOCKS} blocks opens at its end, and leads to its beginning`, async ({ open }) => {
    const parts = Array.from({ length: BLOCKS }, (_, place) =>
      place % 2 === 0 ? { reasoning_content: `Thought ${place} of many.` } : { content: `Answer ${place}, in short.` },
    );
    const { session, run } = await record(server, "many blocks", parts);
    const page = await opened(open, `/s/${session}`);
    const last = await shownBlocks(page);
    assert.match(last.at(-1), new RegExp(`Answer ${BLOCKS - 1}, in short`));
    // The digest of the whole, of which the page holds a part.
    const digest = await server.verify(run);
    const shown = () => page.locator(`[data-run-id="${run}"]`).getAttribute("data-digest");
    await until("the page shows the digest", async () => (await shown()) === digest, { seen: shown });

    // Back by the button: what is read stays in its place, and nothing is missing in between.
    const number = (text) => Number(/(?:Thought|Answer) (\d+)/.exec(text)?.[1]);
    let first = number(last[0]);
    for (let step = 0; step < 6; step += 1) {
      const button = page.getByRole("link", { name: /^Show [\d,]+ earlier blocks$/ });
      await button.scrollIntoViewIfNeeded();
      const anchor = page.locator("#main [data-block-kind]").first();
      const id = await anchor.getAttribute("data-block-id");
      const before = (await anchor.boundingBox()).y;
      await button.click();
      await until("earlier blocks are shown", async () => number((await shownBlocks(page))[0]) < first);
      const place = async () => (await page.locator(`#main [data-block-id="${id}"]`).boundingBox())?.y;
      await until("what was read is in its place", async () => Math.abs((await place()) - before) <= 2, { seen: place });
      const numbers = (await shownBlocks(page)).map(number);
      numbers.forEach((found, index) => assert.equal(found, numbers[0] + index));
      assert.ok(numbers.includes(first - 1), "nothing is left out in between");
      assert.ok((await nodes(page)) <= MOST_NODES, `${await nodes(page)} nodes`);
      first = numbers[0];
    }
    // And forward again to the end.
    for (;;) {
      const button = page.getByRole("link", { name: /^Show [\d,]+ later blocks?$/ });
      if ((await button.count()) === 0) break;
      const end = number((await shownBlocks(page)).at(-1));
      await button.click();
      await until("later blocks are shown", async () => number((await shownBlocks(page)).at(-1)) > end);
    }
    assert.match((await shownBlocks(page)).at(-1), new RegExp(`Answer ${BLOCKS - 1}, in short`));

    // The beginning by its address, also without script.
    const attempt = (await server.json(`/api/runs/${run}/snapshot?window=1`)).attempts[0].attempt_id;
    for (const options of [{}, { javaScriptEnabled: false }]) {
      const start = await open(`/s/${session}?attempt=${attempt}&before=40`, options);
      const numbers = (await shownBlocks(start)).map(number);
      assert.equal(numbers[0], 0);
      assert.ok(numbers.includes(39));
      assert.ok((await nodes(start)) <= MOST_NODES);
    }
    const plain = await open(`/s/${session}`, { javaScriptEnabled: false });
    const from = number((await shownBlocks(plain))[0]);
    await plain.getByRole("link", { name: /earlier blocks$/ }).click();
    await until("the link leads to what stands before", async () => number((await shownBlocks(plain))[0]) < from);
  }, { timeout: 240_000 });

  test("one block of 5 MB opens as its beginning, and all of it is read on and downloaded", async ({ open }) => {
    const part = corpus(2000);
    const text = part.repeat(Math.ceil(BLOCK_BYTES / part.length)).slice(0, BLOCK_BYTES);
    const { session, run } = await record(server, "one large block", [{ content: text }]);
    const page = await opened(open, `/s/${session}`);
    const controls = page.locator("#main .io__more").last();
    assert.match(await controls.innerText(), /KB of 5\.2 MB/);
    for (let step = 0; step < 5; step += 1) {
      const before = await controls.innerText();
      await controls.getByRole("button", { name: "Load more" }).click();
      await until("more is shown", async () => (await controls.innerText()) !== before, { seen: () => controls.innerText() });
      assert.ok((await nodes(page)) <= MOST_NODES, `${await nodes(page)} nodes`);
    }
    const shown = await controls.innerText();
    await page.getByRole("button", { name: "Show earlier part" }).click();
    await until("the part before is there again", async () => (await controls.innerText()) !== shown);
    const href = await controls.getByRole("link", { name: "Download" }).getAttribute("href");
    const whole = new Uint8Array(await (await server.fetch(href)).arrayBuffer());
    assert.equal(hash(whole), hash(text));
    await page.reload();
    await live(page);
    await runIn(page, "succeeded");
    const digest = await server.verify(run);
    const told = () => page.locator(`[data-run-id="${run}"]`).getAttribute("data-digest");
    await until("the page shows the digest", async () => (await told()) === digest, { seen: told });
  }, { timeout: 240_000 });

  test(`a call with ${OUTPUT_BYTES / 1e6} MB shows a preview, and all of it is reached`, async ({ open }) => {
    const line = '"a line of an argument that is long, with é", ';
    const list = line.repeat(Math.ceil(OUTPUT_BYTES / Buffer.byteLength(line)));
    const text = `{"lines": [${list}"the end"]}`;
    // The stream breaks after the arguments: the call is not run, and what came of it is kept.
    const { session, run } = await record(server, "a long call", [{ tool: "long_call", arguments: text }, { cut: true }], "failed");
    const page = await opened(open, `/s/${session}`);
    const heap = async () => (await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0));
    const before = await heap();
    const row = page.locator('#main [data-block-kind="tool_ref"]');
    const begun = performance.now();
    await row.locator(".row__toggle").click();
    const section = row.locator('[data-channel="arguments"]');
    await section.locator("pre").waitFor();
    process.stderr.write(`# its preview: ${Math.round(performance.now() - begun)} ms\n`);
    const size = Math.floor(Buffer.byteLength(text) / 1e6);
    assert.match(await section.innerText(), new RegExp(`32\\.\\d KB of ${size}\\.\\d MB`));
    for (let step = 0; step < 6; step += 1) {
      const words = await section.locator(".io__more").last().innerText();
      await section.getByRole("button", { name: "Load more" }).click();
      await until("more is shown", async () => (await section.locator(".io__more").last().innerText()) !== words);
    }
    assert.ok((await section.locator("pre").innerText()).length < 1_000_000, "what is far away is dropped");
    assert.ok((await nodes(page)) <= MOST_NODES);
    const grown = (await heap()) - before;
    process.stderr.write(`# heap grown by ${Math.round(grown / 1024)} KiB\n`);
    assert.ok(grown < 20 * 1024 * 1024, `${grown} bytes`);
    const href = await section.getByRole("link", { name: "Open whole" }).getAttribute("href");
    const stream = createHash("sha256");
    let bytes = 0;
    for await (const piece of (await server.fetch(href)).body) {
      stream.update(piece);
      bytes += piece.length;
    }
    assert.equal(bytes, Buffer.byteLength(text));
    assert.equal(stream.digest("hex"), hash(text));
    const end = await server.fetch(href, { headers: { range: "bytes=-12" } });
    assert.equal(end.status, 206);
    assert.equal(await end.text(), text.slice(-12));
    await server.verify(run);
  }, { timeout: 240_000 });
});

// A long text while it grows, and after: the page holds the parts of it that are near what is seen, and each of the
// others when it is scrolled to. The run's ops are handed to the page from within, so many each frame.

import assert from "node:assert/strict";
import { after } from "node:test";

import { Feed } from "../bench/support/feed.mjs";
import { providerSetting } from "../bench/support/simulation.mjs";
import { TextProvider } from "../bench/support/text_provider.mjs";
import { live, runIn } from "../support/content.mjs";
import { drawn } from "../support/frames.mjs";
import { NEAR_PX, STILL_PX, distance, watchAnchor, watchEnd, wheelUp } from "../support/scrolling.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const MOST_NODES = 3000;
const PARAGRAPHS = 2000;
const WIDE = { viewport: { width: 1440, height: 700 } };

/** Ends with the tests. */
const provider = await new TextProvider().start();

after(() => provider.close());

/** Numbered pieces of every kind that matters for heights: prose with marks, headings, lists, code, tables. */
const SHAPES = [
  (n) => `## N${n}. A heading`,
  (n) => `N${n}. A **paragraph** of \`several\` words that [goes](https://example.org/${n}) on over more than one line of the page, ${"and on, ".repeat(12)}until here.`,
  (n) => `- N${n}. one\n- two\n  - *three*`,
  (n) => `N${n}. A short one.`,
  (n) => `\`\`\`rust\n// N${n}.\nfn step() {}\n\`\`\``,
  (n) => `| N${n}. | count |\n|---|---|\n| a | ${n} |\n| b | c |`,
  (n) => `> N${n}. A quotation, ${"that is long, ".repeat(n % 9)}and ends.`,
];

const TEXT = `${Array.from({ length: PARAGRAPHS }, (_, n) => SHAPES[n % SHAPES.length](n)).join("\n\n")}\n`;

/** A page whose run has the whole text to be played. Gives the page, and how to play up to a share of it. */
async function prepared({ server, viewer }, perFrame, text = TEXT) {
  const prompt = `a long text, ${perFrame} a frame, ${Math.random().toString(36).slice(2)}`;
  const begin = provider.serve(prompt, [{ content: text }]);
  const { session, run } = await server.begin(prompt);
  const { page } = await viewer(WIDE);
  const feed = await Feed.take(page);
  await page.goto(`${server.url}/s/${session}`);
  await live(page);
  await runIn(page, "running");
  await feed.hold();
  begin();
  const { last_seq: seq } = await until("the run is over", async () => {
    const { run: known } = await server.snapshot(run);
    return known.status === "succeeded" ? known : null;
  }, { timeout: 60_000 });
  await feed.arrived(seq);
  const frames = await feed.prepare(perFrame);
  return { page, play: (share) => feed.play(Math.round(frames * share)) };
}

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

/** The numbers in the page; those that are `seen` stand in what is seen of it. */
function numbers(page, seen = false) {
  return page.evaluate((onlySeen) => {
    const box = document.querySelector(".main__scroll").getBoundingClientRect();
    return [...document.querySelectorAll('#main [data-block-kind="text"] :is(.md__piece, .md__tail > *)')]
      .filter((piece) => {
        const rect = piece.getBoundingClientRect();
        return !onlySeen || (rect.bottom > box.top && rect.top < box.bottom);
      })
      .map((piece) => Number(/N(\d+)\./.exec(piece.textContent)?.[1]));
  }, seen);
}

/** Scrolls by so many pixels. Gives how far something that is seen before and after has moved besides. */
function scrollBy(page, pixels) {
  return page.evaluate(async (by) => {
    const scroller = document.querySelector(".main__scroll");
    const box = scroller.getBoundingClientRect();
    const middle = box.top + box.height / 2;
    const anchor = [...document.querySelectorAll("#main .md__piece")].find((piece) => {
      const { top } = piece.getBoundingClientRect();
      return by < 0 ? top >= box.top && top < middle : top >= middle && top < box.bottom;
    });
    const top = anchor?.getBoundingClientRect().top;
    const from = scroller.scrollTop;
    scroller.scrollTop += by;
    const by_now = scroller.scrollTop - from;
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    await frame();
    await frame();
    await frame();
    return { moved: anchor ? Math.abs(anchor.getBoundingClientRect().top - (top - by_now)) : null, rests: by_now === 0 };
  }, pixels);
}

async function assertSmall(page) {
  const count = await nodes(page);
  assert.ok(count <= MOST_NODES, `${count} nodes`);
}

suite("a long live text", { env: providerSetting("openai_chat", provider.url) }, (test) => {
  test("the page keeps to the end, is small at any length, and scrolling up leads through every paragraph", async (desk) => {
    const { page, play } = await prepared(desk, 200);
    for (let share = 0.1; share < 0.85; share += 0.1) {
      const ends = await watchEnd(page);
      await play(share);
      const worst = Math.max(...(await ends()));
      assert.ok(worst <= NEAR_PX, `it was ${worst} px from the end`);
      await assertSmall(page);
    }
    const last = Math.max(...(await numbers(page, true)));
    assert.ok(last > PARAGRAPHS / 2, `${last} paragraphs have come`);

    const seen = new Set();
    const height = await page.locator(".main__scroll").evaluate((element) => element.clientHeight);
    for (;;) {
      const shown = await numbers(page, true);
      assert.ok(shown.length > 0 && shown.every((number, place) => number === shown[0] + place), `${shown}`);
      shown.forEach((number) => seen.add(number));
      const { moved, rests } = await scrollBy(page, -Math.round(height * 0.8));
      if (rests) break;
      assert.ok(moved === null || moved <= STILL_PX, `what is read moved by ${moved} px at ${shown[0]}`);
      await assertSmall(page);
    }
    assert.deepEqual([...Array(last + 1).keys()].filter((number) => !seen.has(number)), []);

    // More comes while the beginning is read; then the button leads to the end.
    const anchor = await watchAnchor(page);
    await play(0.95);
    const worst = Math.max(...(await anchor()));
    assert.ok(worst <= STILL_PX, `what is read moved by ${worst} px`);
    await assertSmall(page);
    await page.locator(".follow button").click();
    await until("the button leads to the end", async () => (await distance(page)) <= NEAR_PX);
    const ends = await watchEnd(page);
    await play(1);
    await runIn(page, "succeeded");
    assert.ok(Math.max(...(await ends())) <= NEAR_PX, "from there it follows again");
    assert.equal((await numbers(page)).at(-1), PARAGRAPHS - 1);
    await assertSmall(page);
  }, { timeout: 240_000 });

  test("a jump shows what stands there, and printing shows everything", async (desk) => {
    const { page, play } = await prepared(desk, 1000);
    await play(1);
    await runIn(page, "succeeded");
    for (const share of [0.5, 0, 0.3, 0.9, 0.1]) {
      await page.locator(".main__scroll").evaluate((element, to) => (element.scrollTop = element.scrollHeight * to), share);
      const shown = () => numbers(page, true);
      await until(`there is text at ${share}`, async () => (await shown()).length > 1, { seen: shown });
      const found = await shown();
      assert.ok(found.every((number, place) => number === found[0] + place), `${found}`);
      await drawn(page);
      await assertSmall(page);
    }
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.deepEqual(await numbers(page), [...Array(PARAGRAPHS).keys()]);
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await assertSmall(page);
  }, { timeout: 240_000 });

  test("what is selected stays in the page and selected, and the open end is what it would be if drawn at once", async (desk) => {
    const { page, play } = await prepared(desk, 20);
    await play(0.02);
    const words = await page.evaluate(() => {
      const piece = [...document.querySelectorAll("#main .md__piece")].at(3);
      getSelection().selectAllChildren(piece);
      // After each frame: the tail against its own markup, read anew.
      const tail = piece.closest(".md").querySelector(".md__tail");
      globalThis.__odd = [];
      const look = () => {
        const again = tail.cloneNode(false);
        again.innerHTML = tail.innerHTML;
        if (!again.isEqualNode(tail)) globalThis.__odd.push(tail.innerHTML);
        requestAnimationFrame(look);
      };
      look();
      return getSelection().toString();
    });
    assert.match(words, /N3\./);
    await play(0.25);
    assert.deepEqual(await page.evaluate(() => globalThis.__odd), []);
    assert.equal(await page.evaluate(() => getSelection().toString()), words);
    assert.ok((await numbers(page, true)).at(-1) > 100);
    // Let go, it is as any other.
    await page.evaluate(() => getSelection().removeAllRanges());
    await play(1);
    await runIn(page, "succeeded");
    await assertSmall(page);
    assert.equal((await numbers(page)).includes(3), false);
  }, { timeout: 240_000 });

  test("an image that was asked for stays one, and a note is found, though their parts left the page meanwhile", async (desk) => {
    const picture = "![a glyph](/pkg/icon.svg) and a note[^far].";
    const { page, play } = await prepared(desk, 200, `[^far]: The note.\n\n${picture}\n\n${TEXT}\n\nThe end[^far].\n`);
    await page.route("**/pkg/icon.svg", (route) =>
      route.fulfill({ contentType: "image/svg+xml", body: '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"/>' }),
    );
    await play(0.05);
    await page.locator("#main a.md__image").first().click();
    const image = page.locator('#main .md img[alt="a glyph"]');
    await until("the image is there", async () => (await image.count()) === 1);
    await play(1);
    await runIn(page, "succeeded");
    const scroller = page.locator(".main__scroll");
    await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight));
    await until("the image has left the page", async () => (await image.count()) === 0);
    const note = page.locator("#main .md__footnote");
    assert.equal(await note.count(), 0);
    await page.locator("#main .md__mark a").last().click();
    await until("the note is seen", async () => {
      const box = (await note.count()) === 1 ? await note.boundingBox() : null;
      return box !== null && box.y > 0 && box.y < 700;
    });
    await until("the image is there again", async () => (await image.count()) === 1);
    assert.equal(await page.locator("#main a.md__image").count(), 0);
    await assertSmall(page);
  }, { timeout: 240_000 });

  test("the wheel upwards within a long text stops following; what is read stays while parts come and go", async (desk) => {
    const { page, play } = await prepared(desk, 200);
    await play(0.4);
    await wheelUp(page, 900);
    const anchor = await watchAnchor(page);
    await play(0.8);
    const worst = Math.max(...(await anchor()));
    assert.ok(worst <= STILL_PX, `what is read moved by ${worst} px`);
    await assertSmall(page);
  }, { timeout: 240_000 });
});

// Colours of code: asked of the server once a block has closed, painted over the text, which stays as it is.

import assert from "node:assert/strict";

import { hasColours, hold, readColours } from "../support/colours.mjs";
import { live, readStructure, runIn, runWith } from "../support/content.mjs";
import { drawn } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** High enough for all of the answer. */
const HIGH = { viewport: { width: 1440, height: 2200 }, reducedMotion: "reduce" };

/** The place and size of every row and of every element of a text, and of the region that holds them. */
const geometry = (page) =>
  page.evaluate(() => {
    const box = (element) => {
      const { x, y, width, height } = element.getBoundingClientRect();
      return [x, y, width, height].join(" ");
    };
    const scroller = document.querySelector(".main__scroll");
    return [scroller.scrollHeight, scroller.scrollTop, ...[...document.querySelectorAll("#main .row, #main .md, #main .md *")].map(box)];
  });

const markup = (page) => page.locator("#main .md").evaluateAll((texts) => texts.map((text) => text.innerHTML));

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(made.run)).run.status === "succeeded");
  return made;
}

suite("colours", { speed: 20 }, (test) => {
  test("a block of code gets its colours when its fence has closed, and the one that is open has none", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("rows:before-code", "rows:first-block", "rows:open-block");
    const { session } = await server.begin("rows");
    await simulator.reached("rows:before-code");
    const page = await open(`/s/${session}`, HIGH);
    await simulator.open("rows:before-code");
    await simulator.reached("rows:first-block");
    await runWith(page, "the block that is still");
    await until("the closed block has colours", () =>
      hasColours(page, {
        comment: "// One step, so that two callers never share a number.",
        function: "next",
        number: "1",
      }),
      { seen: () => readColours(page) },
    );
    await simulator.open("rows:first-block");
    await simulator.reached("rows:open-block");
    await runWith(page, "-- the long ones");
    await until("every language has colours", () =>
      hasColours(page, {
        keyword: "return",
        comment: "# All tests, twice",
        string: "\"acorn\"",
        deleted: "-    self.lines.append(line)",
      }),
      { seen: () => readColours(page) },
    );
    await until("so has text of more than one unit", () => hasColours(page, { comment: "// é 😀" }), {
      seen: () => readColours(page),
    });
    const all = Object.values(await readColours(page)).flat();
    assert.ok(!all.some((word) => word.includes("SELECT") || word.includes("the long ones")), "the open block has none");
    await simulator.open("rows:open-block");
    await runIn(page, "succeeded");
    await until("the last block has colours", () => hasColours(page, { keyword: "SELECT", comment: "-- the long ones" }), {
      seen: () => readColours(page),
    });
  });

  test("colours change neither text nor elements nor any place, and what is selected stays selected", async ({
    server,
    simulator,
    viewer,
  }) => {
    await simulator.arm("rows:before-code", "rows:in-block");
    const { session } = await server.begin("rows");
    await simulator.reached("rows:before-code");
    const { page } = await viewer(HIGH);
    const held = await hold(page);
    await page.goto(`${server.url}/s/${session}`);
    await live(page);
    await simulator.open("rows:before-code");
    await simulator.reached("rows:in-block");
    await runWith(page, "self.lines.append(line)");
    await until("the page asks", () => held.questions.length > 0);
    await drawn(page);
    // From the middle of a word in one block to the middle of a word in another.
    const selected = await page.evaluate(() => {
      const codes = document.querySelectorAll("#main figure.codeblock code");
      const [first, second] = [codes[0].firstChild, codes[1].firstChild];
      getSelection().setBaseAndExtent(first, 60, second, 7);
      globalThis.__selected = [first, second];
      return getSelection().toString();
    });
    assert.match(selected, /^n next[\s\S]*def add$/);
    const [before, elements] = [await geometry(page), await markup(page)];
    const plain = await page.locator("#main figure.codeblock").first().screenshot();

    held.go();
    await until("there are colours", () => hasColours(page, { function: "add", keyword: "return" }));
    await drawn(page);
    assert.deepEqual(await geometry(page), before);
    assert.deepEqual(await markup(page), elements);
    const colourful = await page.locator("#main figure.codeblock").first().screenshot();
    assert.ok(!plain.equals(colourful), "the colours are seen");

    await simulator.open("rows:in-block");
    await runIn(page, "succeeded");
    const kept = await page.evaluate(() => {
      const { anchorNode, anchorOffset, focusNode, focusOffset } = getSelection();
      const [first, second] = globalThis.__selected;
      return [anchorNode === first, anchorOffset, focusNode === second, focusOffset, getSelection().toString()];
    });
    assert.deepEqual(kept, [true, 60, true, 7, selected], "to the end of the run");
  });

  test("the markup with colours is that of the page without script", async ({ server, open }) => {
    const { session } = await finished(server, "rows");
    const page = await open(`/s/${session}`, HIGH);
    await until("there are colours", () => hasColours(page, { keyword: "SELECT", number: "120" }));
    const structure = await readStructure(page);
    const plain = await open(`/s/${session}`, { ...HIGH, javaScriptEnabled: false });
    assert.deepEqual(await readStructure(plain), structure);
  });

  test("each hue is that of the theme, in light and in dark", async ({ server, open }) => {
    const { session } = await finished(server, "rows");
    for (const colorScheme of ["light", "dark"]) {
      const page = await open(`/s/${session}`, { ...HIGH, colorScheme });
      await until("there are colours", () => hasColours(page, { keyword: "SELECT" }));
      const hues = await page.evaluate(() => {
        const code = document.querySelector("#main figure.codeblock code");
        const probe = document.createElement("i");
        code.after(probe);
        const hues = Object.entries({
          comment: "syn-com",
          keyword: "syn-kw",
          string: "syn-str",
          number: "syn-num",
          function: "syn-fn",
          inserted: "ok",
          deleted: "err",
        }).map(([name, token]) => {
          probe.style.setProperty("color", `var(--${token})`);
          return [name, getComputedStyle(code, `::highlight(code-${name})`).color, getComputedStyle(probe).color];
        });
        probe.remove();
        return hues;
      });
      for (const [name, painted, token] of hues) assert.equal(painted, token, `${name}, ${colorScheme}`);
      assert.equal(new Set(hues.map(([, painted]) => painted)).size, hues.length, "each has its own");
    }
  });

  test("only what is in sight is asked for and painted, and nothing is asked for twice", async ({ server, viewer }) => {
    const { session } = await finished(server, "rows");
    const { page } = await viewer({ viewport: { width: 1000, height: 420 } });
    const held = await hold(page);
    held.go();
    await page.goto(`${server.url}/s/${session}`);
    await live(page);
    const scroll = (language) =>
      page
        .locator("#main figure.codeblock", { has: page.locator("figcaption span", { hasText: language }) })
        .evaluate((block) => block.scrollIntoView({ block: "center" }));
    const colours = { seen: () => readColours(page) };
    await scroll("rust");
    await until("what is in sight has colours", () => hasColours(page, { function: "next" }), colours);
    const asked = (language) => held.questions.filter((question) => question.language === language).length;
    assert.equal(asked("sql"), 0, "what is out of sight is not asked for");
    await scroll("sql");
    await until("what came into sight has colours", () => hasColours(page, { keyword: "SELECT" }), colours);
    await until("what went out of sight has none", async () => !(await hasColours(page, { function: "next" })), colours);
    await scroll("rust");
    await until("what is in sight again has colours again", () => hasColours(page, { function: "next" }), colours);
    assert.equal(asked("rust"), 1);
    assert.equal(new Set(held.questions.map((question) => JSON.stringify(question))).size, held.questions.length);
  });

  test(
    "where the server does not say, or the browser cannot paint, the text is plain",
    async ({ server, viewer }) => {
      const { session } = await finished(server, "rows");
      const refused = await viewer(HIGH);
      let questions = 0;
      await refused.page.route("**/api/highlight", (route) => {
        questions += 1;
        return route.fulfill({ status: 500, contentType: "application/problem+json", body: "{}" });
      });
      await refused.page.goto(`${server.url}/s/${session}`);
      await live(refused.page);
      await until("the page asks", () => questions > 0);
      await drawn(refused.page);
      assert.deepEqual(await readColours(refused.page), {});
      assert.match(await refused.page.locator("#main figure.codeblock code").first().innerText(), /fetch_add/);

      const old = await viewer(HIGH);
      await old.page.addInitScript(() => {
        delete globalThis.Highlight;
      });
      await old.page.goto(`${server.url}/s/${session}`);
      await live(old.page);
      await drawn(old.page);
      assert.match(await old.page.locator("#main figure.codeblock code").first().innerText(), /fetch_add/);
    },
    { allow: [/api\/highlight/] },
  );
});

// The tour of the demo provider: from the first page to a finished run, live, refreshed and without script.

import assert from "node:assert/strict";

import { comparable, live, readRun, readStructure, runIn, runThat, runWith } from "../support/content.mjs";
import { Frames } from "../support/frames.mjs";
import { watchRows } from "../support/rows.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const PROMPT = "Show me what Runloom does";
const TOOLS = ["list_dir", "search_files", "read_file"];
/** The last words before the gate `welcome:middle`. */
const MIDDLE = "what went on before the";
/** The last words before the gate `welcome:before-tools`. */
const BEFORE_TOOLS = "First I list the workspace.";

const endsWith = (words) => (run) => run.pieces.some((piece) => piece.text.endsWith(words));

suite("welcome", { speed: 20 }, (test) => {
  test("the first page says that the demo answers and how to set a key", async ({ open }) => {
    const page = await open("/");
    const note = await page.locator(".demo").innerText();
    assert.match(note, /demo provider/);
    assert.match(note, /ANTHROPIC_API_KEY=… runloom serve/);
    assert.match(note, /OPENAI_API_KEY/);
    assert.equal(await page.locator("h1").innerText(), "What should run next?");
  });

  test("a click on the welcome sample leads to its session, where each kind of content appears while it streams", async ({
    open,
    simulator,
  }) => {
    await simulator.arm("welcome:reasoning", "welcome:middle", "welcome:before-tools", "welcome:end");
    const page = await open("/");
    await page.locator(`button.sample[value="${PROMPT}"]`).click();
    await page.waitForURL(/\/s\/ses_\w+$/);
    await live(page);

    await simulator.reached("welcome:reasoning");
    const thinking = await runThat(page, "reasoning shows its newest line", (run) =>
      run.pieces.some((piece) => piece.kind === "reasoning" && piece.text.includes("text again.")),
    );
    assert.equal(thinking.prompt, PROMPT);
    assert.equal(thinking.pieces[0].state, "streaming");
    const reasoning = page.locator('#main [data-block-kind="reasoning"]').first();
    assert.equal(await reasoning.locator(".row__toggle").getAttribute("aria-expanded"), "false");
    assert.equal(await reasoning.locator(".row__body").isVisible(), false);

    await simulator.open("welcome:reasoning");
    await simulator.reached("welcome:middle");
    const middle = await runThat(page, "the text has come up to the gate", endsWith(MIDDLE));
    assert.deepEqual(
      middle.pieces.map(({ kind, state }) => [kind, state]),
      [
        ["reasoning", "complete"],
        ["text", "streaming"],
      ],
    );
    const text = page.locator('#main [data-block-kind="text"]').first();
    assert.equal(await text.locator("h2").innerText(), "Welcome to Runloom");
    assert.equal(await text.locator("ul > li").count(), 2);
    assert.equal(await text.locator("table").count(), 0);

    await simulator.open("welcome:middle");
    await simulator.reached("welcome:before-tools");
    await runThat(page, "the first text is whole", endsWith(BEFORE_TOOLS));
    assert.equal(await text.locator("ul > li").count(), 3);
    assert.equal(await text.locator("table tbody tr").count(), 4);
    assert.match(await text.locator("figure.codeblock code").innerText(), /^\[\[providers\]\]\nid = "main"/);

    await simulator.open("welcome:before-tools");
    await simulator.reached("welcome:end");
    const tools = await runWith(page, "What came out");
    assert.deepEqual(
      tools.pieces.filter((piece) => piece.kind === "tool_ref").map(({ name, state, mark }) => [name, state, mark]),
      TOOLS.map((name) => [name, "succeeded", "done"]),
    );
    assert.equal(tools.state, "running");

    await simulator.open("welcome:end");
    const done = await runIn(page, "succeeded");
    assert.deepEqual(
      done.pieces.map((piece) => piece.kind),
      ["reasoning", "text", "tool_ref", "text", "tool_ref", "text", "tool_ref", "reasoning", "text"],
    );
    assert.deepEqual(done.remarks, []);
    const rows = done.pieces.filter((piece) => piece.kind === "tool_ref");
    assert.deepEqual(
      rows.map((row) => row.text),
      [".", "TODO in acorn", "acorn/log.py"],
    );
    assert.match(rows[0].meta, /^\d+ entries$/);
  });

  test("a tool row goes from pending over running to done in one element, which never changes its height", async ({
    server,
    simulator,
    viewer,
  }) => {
    await simulator.arm("welcome:before-tools");
    const { session } = await server.begin("welcome");
    await simulator.reached("welcome:before-tools");
    const { page } = await viewer();
    const rows = await watchRows(page);
    const frames = await Frames.take(page);
    await page.goto(`${server.url}/s/${session}`);
    await live(page);
    frames.slowly = true;
    await simulator.open("welcome:before-tools");
    await runIn(page, "succeeded", { timeout: 60_000 });

    const seen = await rows.seen();
    assert.equal(seen.length, 3, "one element for each call");
    for (const [place, row] of seen.entries()) {
      assert.deepEqual(row.states, ["pending", "running", "succeeded"], TOOLS[place]);
      assert.equal(new Set(row.heights).size, 1, `heights of ${TOOLS[place]}: ${row.heights}`);
      assert.equal(row.isThere, true, "the element of the first moment is still in the page");
    }
  });

  test("a refresh in the middle of a text changes neither order nor states nor text", async ({ server, simulator, open }) => {
    await simulator.arm("welcome:middle");
    const { session } = await server.begin("welcome");
    const page = await open(`/s/${session}`);
    await simulator.reached("welcome:middle");
    const before = await runThat(page, "the text has come up to the gate", endsWith(MIDDLE));
    const structure = await readStructure(page);
    await page.reload();
    const rendered = await readRun(page);
    assert.deepEqual(comparable(rendered), comparable(before), "as the server renders it");
    await live(page);
    assert.deepEqual(comparable(await readRun(page)), comparable(before), "after hydration");
    assert.deepEqual(await readStructure(page), structure);

    await simulator.open("welcome:middle");
    await runIn(page, "succeeded");
  });

  test("a refresh between two calls keeps the row that is done, and the page goes on in it", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("welcome:after-list");
    const { session } = await server.begin("welcome");
    const page = await open(`/s/${session}`);
    await simulator.reached("welcome:after-list");
    const before = await runThat(page, "the text after the first call is there", (run) => {
      const place = run.pieces.findIndex((piece) => piece.kind === "tool_ref");
      return place >= 0 && (run.pieces[place + 1]?.text ?? "").includes("a toy key-value store in Python.");
    });
    await page.reload();
    await live(page);
    assert.deepEqual(comparable(await readRun(page)), comparable(before));
    await simulator.open("welcome:after-list");
    const done = await runIn(page, "succeeded");
    const known = before.pieces.length;
    assert.deepEqual(
      done.pieces.slice(0, known - 1),
      before.pieces.slice(0, known - 1),
      "what was finished before stays as it was",
    );
    assert.ok(done.pieces[known - 1].text.startsWith(before.pieces[known - 1].text));
  });

  test("at the end the page, the refreshed page, the page without script and `runloom verify` have one digest", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("welcome:reasoning");
    const { session, run } = await server.begin("welcome");
    const page = await open(`/s/${session}`);
    await simulator.open("welcome:reasoning");
    await runIn(page, "succeeded");
    const seen = await until("the page has a digest", async () => {
      const read = await readRun(page);
      return read.digest ? read : null;
    });
    assert.match(seen.digest, /^[0-9a-f]{64}$/);
    const structure = await readStructure(page);

    await page.reload();
    await live(page);
    const refreshed = await until("the refreshed page has a digest", async () => {
      const read = await readRun(page);
      return read.digest ? read : null;
    });
    assert.deepEqual(comparable(refreshed), comparable(seen));
    assert.deepEqual(await readStructure(page), structure, "the grown markup equals the one rendered at once");

    const plain = await open(`/s/${session}`, { javaScriptEnabled: false });
    assert.deepEqual(comparable(await readRun(plain)), comparable(seen));
    assert.equal(await server.verify(run), seen.digest);
  });
});

// Rows of tools: one geometry over the whole life of a row, and what each kind shows when it is opened.

import assert from "node:assert/strict";

import { hasColours, readColours } from "../support/colours.mjs";
import { live, readRun, runIn, runThat } from "../support/content.mjs";
import { Frames } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 1400 } };
const KINDS = ["edit", "write", "shell", "web", "code", "model"];
// How they end: the text to edit is not there, a file is written, and there is no shell, no such address, no programs, no
// such model.
const ENDS = ["failed", "succeeded", "not_run", "not_run", "succeeded", "failed"];

const tools = (page) => page.locator('#main [data-block-kind="tool_ref"]');

/** Notes the boxes of each row and of its fixed columns at every change. Must be called before the page is opened. */
async function watchBoxes(page) {
  await page.addInitScript(() => {
    const rows = new Map();
    const note = (element) => {
      if (!rows.has(element)) rows.set(element, { states: new Set(), boxes: new Set() });
      const row = rows.get(element);
      row.states.add(element.dataset.state);
      const toggle = element.querySelector(":scope > .row__toggle");
      const parts = [toggle, ...[".row__icon", ".state", ".row__time"].map((part) => toggle.querySelector(`:scope > ${part}`))];
      const box = (part) => {
        const { x, width, height } = part.getBoundingClientRect();
        return [x, width, height].map((number) => Math.round(number * 100) / 100);
      };
      const [row_, icon, state, time] = parts.map(box);
      // Of the state and the time the columns count, not the words within.
      row.boxes.add(JSON.stringify([row_, icon, [state[0], state[1]], [time[0], time[1]]]));
    };
    const look = () => document.querySelectorAll('#main [data-block-kind="tool_ref"]').forEach(note);
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    globalThis.__boxes = rows;
  });
  return () =>
    page.evaluate(() =>
      [...globalThis.__boxes].map(([element, { states, boxes }]) => ({
        isThere: element.isConnected,
        states: [...states],
        boxes: [...boxes],
      })),
    );
}

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(made.run)).run.status === "succeeded");
  return made;
}

async function opened(page, place) {
  const row = tools(page).nth(place);
  await row.locator(".row__toggle").click();
  await until("the row is open", () => row.locator(".row__body").isVisible());
  return row;
}

suite("rows", { speed: 20 }, (test) => {
  for (const width of [1440, 390]) {
    test(`a row of each kind keeps its box and its columns from its first byte to its end, ${width} px wide`, async ({
      server,
      simulator,
      viewer,
    }) => {
      await simulator.arm("rows:before-tools");
      const { session } = await server.begin("rows");
      await simulator.reached("rows:before-tools");
      const { page } = await viewer({ viewport: { width, height: 900 } });
      const boxes = await watchBoxes(page);
      const frames = await Frames.take(page);
      await page.goto(`${server.url}/s/${session}`);
      await live(page);
      frames.slowly = true;
      await simulator.arm("rows:before-code");
      await simulator.open("rows:before-tools");
      await runThat(page, "all calls are over", (run) => {
        const rows = run.pieces.filter((piece) => piece.kind === "tool_ref");
        return rows.length === KINDS.length && rows.every((row, place) => row.state === ENDS[place]);
      });
      const seen = await boxes();
      assert.equal(seen.length, KINDS.length, "one element for each call");
      for (const [place, row] of seen.entries()) {
        assert.ok(row.states.includes("pending") && row.states.includes(ENDS[place]), `${row.states}`);
        assert.equal(row.boxes.length, 1, `${KINDS[place]}: ${row.boxes.join("\n")}`);
        assert.ok(row.isThere);
      }
    });
  }

  test("each kind of tool has its icon and its words while the arguments come", async ({ server, simulator, open }) => {
    await simulator.arm("rows:edited", "rows:before-code");
    const { session } = await server.begin("rows");
    const page = await open(`/s/${session}`, WIDE);
    await simulator.reached("rows:edited");
    const edit = await runThat(page, "the edit has come", (run) => run.pieces.at(-1)?.text === "acorn/log.py");
    assert.equal(edit.pieces.at(-1).name, "edit_file");
    const row = await opened(page, 0);
    const change = row.locator('[data-channel="arguments"] pre');
    await until("the change is whole", async () => (await change.innerText()).includes("+        self.lines"));
    assert.deepEqual(await change.locator("span").evaluateAll((all) => all.map((span) => [span.className, span.textContent])), [
      ["ctx", " def append(self, line):\n"],
      ["del", "-    self.lines.append(line)\n"],
      ["add", "+    if line:\n+        self.lines.append(line)\n"],
    ]);
    await simulator.open("rows:edited");
    await simulator.reached("rows:before-code");
    await runThat(page, "all calls are over", (run) => {
      const rows = run.pieces.filter((piece) => piece.kind === "tool_ref");
      return rows.length === ENDS.length && rows.every((row, place) => row.state === ENDS[place]);
    });
    const icons = await tools(page).evaluateAll((rows) =>
      rows.map((row) => row.querySelector(".row__icon use").getAttribute("href")),
    );
    assert.deepEqual(icons, KINDS.map((kind) => `#i-${kind}`));
    assert.equal(await row.locator(".row__body").isVisible(), true, "what was opened stays open");
    // Raw arguments, there and back.
    const raw = row.getByRole("button", { name: "Raw" });
    await raw.click();
    await until("the arguments stand as they came", async () => (await change.innerText()).startsWith('{"path": "acorn/log.py"'));
    assert.equal(await raw.getAttribute("aria-pressed"), "true");
    assert.equal(await row.locator('[data-channel="arguments"] .io__title').innerText(), "Arguments");
    await raw.click();
    await until("the change is back", async () => (await change.locator(".add").count()) === 1);
  });

  test("an opened row shows a file, a command, a program and a question as what they are", async ({ server, open }) => {
    const { session } = await finished(server, "rows");
    const page = await open(`/s/${session}`, WIDE);
    const titles = [];
    for (const place of KINDS.keys()) {
      const row = await opened(page, place);
      titles.push(await row.locator('[data-channel="arguments"] .io__title').innerText());
    }
    assert.deepEqual(titles, ["Change", "Content", "Command", "Arguments", "Program", "Prompt"]);
    const part = (place) => tools(page).nth(place).locator('[data-channel="arguments"]');
    assert.equal(await part(1).locator(".code").getAttribute("data-lines"), "1\n2\n3\n4\n5\n6\n7");
    assert.equal(await part(1).locator("pre").evaluate((pre) => pre.textContent.split("\n")[0]), "from acorn.log import Log");
    assert.equal(await part(2).locator("pre").innerText(), "python -m pytest -q tests/test_empty_lines.py");
    assert.equal(await part(4).locator(".io__note").innerText(), "js · 4 lines");
    assert.equal(await part(5).locator("strong").innerText(), "empty");
    await until("code has its colours", () => hasColours(page, { comment: "// all of them", keyword: "def" }), {
      seen: () => readColours(page),
    });
    // Arguments can be copied as they are shown, and as they came.
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    await part(2).getByRole("button", { name: "Copy command" }).click();
    await until("the command is copied", async () => (await clipboard()) === "python -m pytest -q tests/test_empty_lines.py");
    await part(2).getByRole("button", { name: "Raw" }).click();
    await part(2).getByRole("button", { name: "Copy arguments" }).click();
    await until("the arguments are copied", async () => (await clipboard()).startsWith('{"command": "python'));
  });

  test("a file that was read has the numbers of its lines beside it, in its colours, and is not changed by them", async ({
    server,
    open,
  }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const row = await opened(page, 2);
    const result = row.locator('[data-channel="result"]');
    const node = await row.getAttribute("data-node-id");
    const whole = await (await server.fetch(`/api/nodes/${node}/output?channel=result`)).text();
    assert.equal(await result.locator("pre").evaluate((pre) => pre.textContent), whole);
    const numbers = (await result.locator(".code").getAttribute("data-lines")).split("\n");
    assert.equal(numbers[0], "1");
    assert.ok(numbers.length >= whole.split("\n").length - 2, `${numbers.length} numbers`);
    await until("its words have colours", () => hasColours(page, { keyword: "class", function: "Log" }), {
      seen: () => readColours(page),
    });
    // Each number stands beside its line: as many lines of the text's height as there are numbers.
    const lines = await result.locator("pre").evaluate((pre) => {
      const style = getComputedStyle(pre);
      const inner = pre.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
      return inner / parseFloat(style.lineHeight);
    });
    assert.ok(Math.abs(lines - (whole.split("\n").length - 1)) < 0.5, `${lines}`);
  });

  test("what a search found stands by file with the numbers of the lines, and the matches are marked", async ({
    server,
    open,
  }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const read = await readRun(page);
    assert.equal(read.pieces.filter((piece) => piece.kind === "tool_ref")[1].name, "search_files");
    const row = await opened(page, 1);
    const result = row.locator('[data-channel="result"]');
    const node = await row.getAttribute("data-node-id");
    const whole = await (await server.fetch(`/api/nodes/${node}/output?channel=result`)).text();
    const expected = new Map();
    for (const line of whole.split("\n")) {
      const found = /^(.+?):(\d+): /.exec(line);
      if (found) expected.set(found[1], [...(expected.get(found[1]) ?? []), found[2]]);
    }
    assert.ok(expected.size > 0, whole);
    const shown = await result.locator(".hits__file").evaluateAll((files) =>
      files.map((file) => [file.textContent.trim(), file.nextElementSibling.dataset.lines.split("\n")]),
    );
    assert.deepEqual(shown, [...expected]);
    await until("the matches are marked", async () => {
      const marked = (await readColours(page))["code-match"] ?? [];
      return marked.length >= 1 && marked.every((word) => word === "TODO");
    }, { seen: () => readColours(page) });
    await result.getByRole("button", { name: "Raw" }).click();
    await until("the lines stand as they came", async () =>
      (await result.locator("pre").evaluate((pre) => pre.textContent)) === whole,
    );
  });

  test("an opened row looks the same after a refresh, and the row's own height never changes", async ({ server, open }) => {
    const { session } = await finished(server, "rows");
    const page = await open(`/s/${session}`, WIDE);
    const row = await opened(page, 0);
    const height = (await row.locator(".row__toggle").boundingBox()).height;
    const body = await row.locator(".row__body").innerHTML();
    await page.reload();
    await live(page);
    await until("it is open again", () => tools(page).nth(0).locator(".row__body").isVisible());
    assert.equal((await tools(page).nth(0).locator(".row__toggle").boundingBox()).height, height);
    const plain = (html) => html.replaceAll("<!---->", "").replaceAll("<!>", "");
    assert.equal(plain(await tools(page).nth(0).locator(".row__body").innerHTML()), plain(body));
    await runIn(page, "succeeded");
  });
});

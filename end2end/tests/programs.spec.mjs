// Programs of `run_code`: their calls are rows like any other, under the row of the program.

import assert from "node:assert/strict";

import { comparable, live, readRun, runIn, runThat } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 1400 } };

const program = (page) => page.locator('#main [data-block-kind="tool_ref"].row--code');

/** Name, summary and state of each call of the program, in order. */
const read = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("#main .row--code ~ .nest > div > .row")].map((row) => ({
      node: row.dataset.nodeId,
      name: row.querySelector(".row__name").textContent,
      sum: row.querySelector(".row__sum").textContent,
      state: row.dataset.state,
    })),
  );

const states = async (page) => (await read(page)).map((call) => call.state).join();

suite("programs", { speed: 20 }, (test) => {
  test("the calls of a program come as rows under it while it runs, and a change of one renders that row only", async ({
    server,
    simulator,
    open,
  }) => {
    await simulator.arm("reader:middle");
    const { session } = await server.begin("program");
    const page = await open(`/s/${session}`, WIDE);
    await simulator.reached("reader:middle");
    await until("three have ended and one runs", async () => (await states(page)) === "succeeded,succeeded,failed,running", {
      seen: () => read(page),
    });
    assert.equal(await program(page).getAttribute("data-state"), "running");
    assert.equal(await program(page).locator(".row__toggle").getAttribute("aria-expanded"), "false");
    await page.evaluate(() => {
      window.changed = {};
      const rows = [...document.querySelectorAll("#main .row--code ~ .nest > div > .row")];
      for (const [place, row] of rows.entries()) {
        window.changed[place] = 0;
        const count = (records) => (window.changed[place] += records.length);
        new MutationObserver(count).observe(row, { attributes: true, childList: true, characterData: true, subtree: true });
      }
    });
    await simulator.open("reader:middle");
    await runIn(page, "succeeded");
    const { 3: last, ...others } = await page.evaluate(() => window.changed);
    assert.ok(last > 0, "the row of the call that ended was rendered");
    assert.deepEqual(Object.values(others), [0, 0, 0], "no other row was");
    assert.equal(await program(page).getAttribute("data-state"), "succeeded");
  });

  test("a call that failed is red and its program is not; the program opens to its text, console and value", async ({
    server,
    open,
  }) => {
    const { session } = await server.begin("program");
    const page = await open(`/s/${session}`, WIDE);
    const run = await runIn(page, "succeeded");
    assert.deepEqual(
      (await read(page)).map(({ name, state }) => [name, state]),
      [
        ["read_file", "succeeded"],
        ["list_dir", "succeeded"],
        ["read_file", "failed"],
        ["ask_model", "succeeded"],
      ],
    );
    const row = run.pieces.filter((piece) => piece.kind === "tool_ref");
    assert.equal(row.length, 1, "the model called one tool");
    assert.deepEqual([row[0].name, row[0].text], ["Code", "Reads what Acorn is and asks a model about it"]);
    const [failed, fine] = await page.evaluate(() => {
      const colour = (selector) => getComputedStyle(document.querySelector(selector)).color;
      const nested = '#main .row--code ~ .nest > div > [data-state="failed"] .state';
      return [colour(nested), colour("#main .row--code > .row__toggle .state")];
    });
    assert.notEqual(failed, fine);
    // Open or closed, the calls are there.
    await program(page).locator(":scope > .row__toggle").click();
    await until("it is open", async () => /Program/.test(await program(page).innerText()));
    const words = await program(page).innerText();
    for (const part of ["Promise.all", "README.md has", "read_file failed, and the program goes on", '"missing": "not_found"']) {
      assert.ok(words.includes(part), `${part}: ${words}`);
    }
    assert.equal((await read(page)).length, 4);
    await program(page).locator(":scope > .row__toggle").click();
    assert.equal((await read(page)).length, 4);

    const before = { run: comparable(await readRun(page)), calls: await read(page) };
    await page.reload();
    await live(page);
    assert.deepEqual({ run: comparable(await readRun(page)), calls: await read(page) }, before, "the same after a refresh");
  });

  test("a call of a program opens in the details as any other does", async ({ server, open }) => {
    const { session } = await server.begin("program");
    const page = await open(`/s/${session}`, WIDE);
    await runIn(page, "succeeded");
    const [first] = await read(page);
    const row = page.locator(`#main [data-node-id="${first.node}"]`);
    await row.hover();
    await row.getByRole("link", { name: "Open in details" }).click();
    const details = page.locator("#details");
    await until("its whole record is there", async () => /append-only log/.test(await details.innerText()));
    assert.match(await details.innerText(), /README\.md/);
  });

  test("of two thousand calls a part is in the page, and ways lead to all others", async ({ server, open }) => {
    const made = await server.begin("program_many");
    const page = await open(`/s/${made.session}`, WIDE);
    await runThat(page, "it runs", (run) => run.pieces.some((piece) => piece.kind === "tool_ref"));
    let most = 0;
    const size = async () => {
      const elements = await page.evaluate(() => document.querySelectorAll("*").length);
      most = Math.max(most, elements);
      return elements;
    };
    await until("the run is over", async () => {
      await size();
      return (await server.snapshot(made.run)).run.status === "succeeded";
    });
    await runIn(page, "succeeded");
    await size();
    assert.ok(most <= 3000, `${most} elements`);
    const nest = page.locator("#main .row--code ~ .nest");
    const meta = await program(page).locator(".row__meta").innerText();
    assert.equal(meta, "2,000 calls");
    const earlier = nest.getByRole("link", { name: /Show [\d,]+ earlier calls/ });
    const known = await read(page);
    const hidden = 2000 - known.length;
    assert.equal(await earlier.innerText(), `Show ${hidden.toLocaleString("en")} earlier calls`);
    await earlier.click();
    await until("earlier ones are there", async () => (await read(page)).every((call) => call.node !== known[0].node));
    assert.ok((await size()) <= 3000);
    await nest.getByRole("link", { name: /later call/ }).click();
    await until("the newest are there", async () => (await read(page)).at(-1).node === known.at(-1).node);

    // A link leads to one that was not in the page.
    const { nodes } = await server.snapshot(made.run);
    const wanted = nodes.find((node) => node.ordinal === 700 && node.name === "list_dir").node_id;
    await page.goto(`${server.url}/s/${made.session}?node=${wanted}`);
    await live(page);
    await until("its row is there", async () => (await read(page)).some((call) => call.node === wanted), { seen: size });
    assert.ok((await size()) <= 3000);
  });
});

// The keyboard: every key that the sheet lists does what it says, none is taken while typing, and the focus is never lost.

import assert from "node:assert/strict";

import { live, runIn, runWith } from "../support/content.mjs";
import { focused, focusOn, isMarked } from "../support/focus.mjs";
import { drawn } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const WIDE = { viewport: { width: 1440, height: 700 } };
const CAPS = { Space: " ", "↑": "ArrowUp", "↓": "ArrowDown", "←": "ArrowLeft", "→": "ArrowRight", "↵": "Enter", Esc: "Escape" };

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(made.run)).run.status === "succeeded");
  return made;
}

/** The sheet as it is read: region, key, words. */
async function sheet(page) {
  await page.keyboard.press("?");
  await until("the sheet is open", () => page.locator("#keys[open]").isVisible());
  const lines = await page.locator(".keys__region").evaluateAll((regions) =>
    regions.flatMap((region) =>
      [...region.querySelectorAll("dl > div")].flatMap((line) =>
        line.querySelector("dt").textContent.split(" or ").map((keys) => `${region.querySelector("h3").textContent}: ${keys}`),
      ),
    ),
  );
  await page.keyboard.press("Escape");
  await until("Escape closes it", async () => !(await page.locator("#keys").isVisible()));
  return lines;
}

const key = (cap) => (cap.startsWith("Ctrl") ? `Control+${CAPS[cap.slice(4)] ?? cap.slice(4)}` : (CAPS[cap] ?? cap));
const rows = (page) => page.locator("#main .row__toggle");
const tools = (page) => page.locator('#main [data-block-kind="tool_ref"] > .row__toggle');
const scroller = (page) => page.locator(".main__scroll");
const top = (page) => scroller(page).evaluate((element) => element.scrollTop);
const stateOf = (locator, name) => locator.getAttribute(name);

suite("keyboard", { speed: 20 }, (test) => {
  test("the sheet is opened by its key and its button, and gives the focus back", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const row = rows(page).nth(1);
    await row.focus();
    const before = await focused(page);
    await page.keyboard.press("?");
    const dialog = page.locator("#keys");
    await until("it is open", () => dialog.isVisible());
    assert.equal(await dialog.evaluate((element) => element.contains(document.activeElement)), true);
    // Its keys are not those of the page behind it.
    await page.keyboard.press("j");
    await page.keyboard.press("c");
    assert.equal(await dialog.evaluate((element) => element.contains(document.activeElement)), true);
    await page.keyboard.press("Escape");
    await until("it is closed", async () => !(await dialog.isVisible()));
    await focusOn(page, before);

    await page.getByRole("button", { name: "Keys" }).click();
    await until("it is open", () => dialog.isVisible());
    await dialog.getByRole("button", { name: "Close" }).click();
    await until("it is closed", async () => !(await dialog.isVisible()));
    await focusOn(page, "Keys");
  });

  test("every key that the sheet lists for a session does what it says", async ({ server, simulator, open }) => {
    await simulator.arm("slow:begin");
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    await live(page);
    const tree = () => page.locator("#tree [role=treeitem]");
    const node = (place) => rows(page).nth(place).evaluate((row) => row.closest(".row").dataset.nodeId);
    const [answer, list] = [await node(0), await page.locator('#main [data-block-kind="tool_ref"]').first().getAttribute("data-node-id")];
    const row = (id) => page.locator(`#main [data-node-id="${id}"] > .row__toggle`);
    const item = (id) => page.locator(`#tree [data-tree-node="${id}"]`);
    const run = await tree().first().getAttribute("data-tree-node");

    // Each is given its key, after what it needs has been set up.
    const from = {
      content: async () => row(list).focus(),
      tree: async (id = answer) => item(id).focus(),
    };
    const press = (cap) => page.keyboard.press(key(cap));
    const toggles = async (cap) => {
      await from.content();
      const before = await stateOf(row(list), "aria-expanded");
      await press(cap);
      await until(`${cap} opens or closes the row`, async () => (await stateOf(row(list), "aria-expanded")) !== before);
    };
    const follows = async (cap) => {
      await scroller(page).evaluate((element) => element.scrollTo(0, 0));
      await from.content();
      await press(cap);
      await until(`${cap} goes to the end`, () =>
        scroller(page).evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop <= 8),
      );
    };
    const found = async (cap) => {
      await page.locator("#tree-search").fill("list_dir");
      await until("it is found", async () => (await tree().count()) === 3);
      await page.locator("#tree-search").focus();
      await press(cap);
      await focusOn(page, `item ${list}`);
      await page.locator("#tree-search").fill("");
      await until("all are back", async () => (await tree().count()) > 3);
    };
    const details = async () => {
      await from.content();
      await press("o");
      await focusOn(page, `details ${list}`);
    };
    const closes = async (cap) => {
      await details();
      await press(cap);
      await until("the details are closed", async () => (await page.locator("[data-details-node]").count()) === 0);
      await focusOn(page, `row ${list}`);
    };
    const opensSearch = async (cap) => {
      await from.content();
      await press(cap);
      await focusOn(page, "#find");
      await press("Esc");
      await focusOn(page, `row ${list}`);
    };
    const place = async () => Number(/^(\d+) of/.exec(await page.locator(".find__count").innerText())?.[1] ?? 0);
    const goes = (what, wanted) => until(`the search goes ${what}`, async () => wanted(await place()));
    const searches = async () => {
      await from.content();
      await press("/");
      await focusOn(page, "#find");
      await page.locator("#find").fill("acorn");
      await until("it is found", async () => /hits/.test(await page.locator(".find__count").innerText()));
    };
    const stepsOn = async (cap) => {
      await searches();
      await press(cap);
      await goes("to a hit", (now) => now > 0);
      await press("Esc");
    };
    const checks = {
      "Everywhere: ?": async () => assert.ok((await sheet(page)).length > 0),
      "Everywhere: Esc": closes,
      "Session: c": async (cap) => {
        await from.content();
        await press(cap);
        await focusOn(page, "#say");
      },
      "Session: t": async (cap) => {
        await item(answer).focus();
        await from.content();
        await press(cap);
        await focusOn(page, `item ${answer}`);
      },
      "Session: /": opensSearch,
      "Session: Ctrlf": opensSearch,
      "Session: F3": async (cap) => {
        await searches();
        await from.content();
        await press(cap);
        await goes("to a hit", (now) => now > 0);
        await page.locator("#find").focus();
        await press("Esc");
      },
      "Session: g": follows,
      "Session: End": follows,
      "Session: Home": async (cap) => {
        await follows("End");
        await press(cap);
        await until("it goes to the start", async () => (await top(page)) === 0);
      },
      "Session: s": async (cap) => {
        // Nothing runs: nothing is asked.
        await from.content();
        await press(cap);
        await drawn(page);
        assert.equal(await page.locator("#stop").isVisible(), false);
      },
      "Rows of the content: j": async (cap) => {
        await rows(page).nth(1).focus();
        await press(cap);
        await until("the next row has the focus", () => rows(page).nth(2).evaluate((row) => row === document.activeElement));
        assert.equal(await isMarked(page), true);
      },
      "Rows of the content: k": async (cap) => {
        await rows(page).nth(1).focus();
        await press(cap);
        await until("the row before has the focus", () => rows(page).nth(0).evaluate((row) => row === document.activeElement));
      },
      "Rows of the content: ↵": toggles,
      "Rows of the content: Space": toggles,
      "Rows of the content: l": async (cap) => {
        await from.content();
        await press(cap);
        await focusOn(page, `item ${list}`);
      },
      "Rows of the content: o": async () => {
        await details();
        assert.equal(await isMarked(page), true);
      },
      "Execution tree: ↓": async (cap) => (await from.tree(), await press(cap), focusOn(page, `item ${list}`)),
      "Execution tree: ↑": async (cap) => (await from.tree(), await press(cap), focusOn(page, `item ${run}`)),
      "Execution tree: →": async (cap) => (await from.tree(), await press(cap), focusOn(page, `item ${list}`)),
      "Execution tree: ←": async (cap) => (await from.tree(list), await press(cap), focusOn(page, `item ${answer}`)),
      "Execution tree: Home": async (cap) => (await from.tree(list), await press(cap), focusOn(page, `item ${run}`)),
      "Execution tree: End": async (cap) => {
        await from.tree();
        await press(cap);
        await focusOn(page, `item ${await tree().last().getAttribute("data-tree-node")}`);
      },
      "Execution tree: *": async (cap) => {
        await from.tree();
        await press("←");
        await until("it is closed", async () => (await tree().count()) === 2);
        await press(cap);
        await until("it is open", async () => (await tree().count()) > 2);
      },
      "Execution tree: Space": async (cap) => {
        await from.tree(list);
        await press(cap);
        await until("it is selected", async () => (await stateOf(item(list), "aria-current")) === "true");
        assert.equal(await focused(page), `item ${list}`);
      },
      "Execution tree: ↵": async (cap) => (await from.tree(list), await press(cap), focusOn(page, `row ${list}`)),
      "Execution tree: /": async (cap) => (await from.tree(), await press(cap), focusOn(page, "#tree-search")),
      "Search of the tree: ↵": found,
      "Search of the tree: ↓": found,
      "Search of the tree: Esc": async (cap) => {
        await page.locator("#tree-search").fill("list_dir");
        await until("it is found", async () => (await tree().count()) === 3);
        await press(cap);
        await until("all are back", async () => (await tree().count()) > 3);
      },
      "Details: l": async (cap) => {
        await details();
        await press(cap);
        await focusOn(page, `item ${list}`);
      },
      "Details: Esc": closes,
      "Search of the content: ↵": stepsOn,
      "Search of the content: ↓": stepsOn,
      "Search of the content: F3": stepsOn,
      "Search of the content: ↑": async (cap) => {
        await searches();
        await press("↓");
        await goes("to a hit", (now) => now > 0);
        const first = await place();
        await press("↓");
        await goes("on", (now) => now !== first);
        await press(cap);
        await goes("back", (now) => now === first);
        await press("Esc");
      },
      "Search of the content: Esc": async (cap) => {
        await searches();
        await press(cap);
        await focusOn(page, `row ${list}`);
        assert.equal(await page.locator(".find").count(), 0);
      },
      "Prompt: Ctrl↵": async (cap) => {
        await page.locator("#say").fill("slow");
        await press(cap);
        await until("it was sent", async () => (await page.locator("#main [data-run-id]").count()) === 2);
      },
    };
    assert.deepEqual((await sheet(page)).sort(), Object.keys(checks).sort(), "these keys and no others are listed");
    for (const [line, check] of Object.entries(checks)) {
      process.stderr.write(`# ${line}\n`);
      await check(line.split(": ")[1]);
    }
    // Now a run goes on: the key asks first.
    await simulator.reached("slow:begin");
    await scroller(page).focus();
    await page.keyboard.press("s");
    await until("it is asked", () => page.locator("#stop").isVisible());
    await page.keyboard.press("Escape");
    await until("the question is gone", async () => !(await page.locator("#stop").isVisible()));
    await focusOn(page, "Content");
    await page.keyboard.press("s");
    await page.getByRole("button", { name: "Stop the run" }).click();
    await runIn(page, "cancelled");
    assert.equal(await page.locator("#stop").isVisible(), false);
  });

  test("no key is taken while somebody types", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    const text = "j k l o g c s t ? / * ";
    for (const field of ["#say", "#tree-search"]) {
      await page.locator(field).focus();
      await page.keyboard.type(text);
      assert.equal(await page.locator(field).inputValue(), text);
      assert.equal(await focused(page), field);
    }
    assert.equal(await page.locator("dialog[open]").count(), 0);
    assert.match(page.url(), new RegExp(`/s/${session}$`));
    // With these keys a browser does something else.
    await scroller(page).focus();
    for (const combined of ["Control+l", "Alt+c", "Control+/"]) {
      await page.keyboard.press(combined);
      assert.equal(await focused(page), "Content", combined);
    }
  });

  test("the keys of the list of sessions do what its sheet says", async ({ server, open }) => {
    const { session } = await finished(server, "Hello");
    await finished(server, "Hello again");
    const page = await open("/", WIDE);
    assert.deepEqual((await sheet(page)).sort(), [
      "Everywhere: ?",
      "Everywhere: Esc",
      "List of sessions: /",
      "List of sessions: c",
      "List of sessions: j",
      "List of sessions: k",
      "List of sessions: ↵",
      "Prompt: Ctrl↵",
    ]);
    const at = (place) => until(`session ${place} has the focus`, () =>
      page.locator(".ses").nth(place).evaluate((link) => link === document.activeElement),
    );
    await page.keyboard.press("/");
    await until("the search has the focus", () => page.getByLabel("Search sessions").evaluate((field) => field === document.activeElement));
    await page.getByLabel("Search sessions").evaluate((field) => field.blur());
    await page.keyboard.press("c");
    await focusOn(page, "#say");
    await page.locator("#say").evaluate((field) => field.blur());
    await page.keyboard.press("j");
    await at(0);
    assert.equal(await isMarked(page), true);
    await page.keyboard.press("j");
    await at(1);
    await page.keyboard.press("k");
    await at(0);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/s/${session}`);
  });

  test("after a prompt was sent from the list, the focus is in the new session's content", async ({ open }) => {
    const page = await open("/", WIDE);
    await page.locator("#say").fill("Hello there");
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/\/s\/ses_\w+$/);
    await focusOn(page, "Content");
    await runWith(page, "Hello there");
    await page.keyboard.press("c");
    await focusOn(page, "#say");
    await page.goBack();
    await page.waitForURL((url) => url.pathname === "/");
    await until("the list has the focus", async () => (await focused(page)) === "#main", { seen: () => focused(page) });
  });

  test("keys of rows lead on from a control of a row, and reasoning leads to the node that thought", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, WIDE);
    await tools(page).nth(0).focus();
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "Locate in tree");
    await page.keyboard.press("j");
    await until("the next row has the focus", () => tools(page).nth(1).evaluate((row) => row === document.activeElement));
    // Reasoning has no node of its own: the one that thought it is located.
    const reasoning = page.locator("#main .row--reason > .row__toggle").first();
    const answer = await page.locator("#main .row--model").first().getAttribute("data-node-id");
    await reasoning.focus();
    await page.keyboard.press("l");
    await focusOn(page, `item ${answer}`);
  });
});

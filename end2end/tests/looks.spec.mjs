// Looks and access at three sizes, light and dark: nothing runs over, nothing overlaps, axe finds nothing serious. The
// pictures in end2end/results/ are for people to look at.

import assert from "node:assert/strict";

import { serious } from "../support/axe.mjs";
import { live, runWith } from "../support/content.mjs";
import { drawn } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
  { width: 360, height: 740 },
];
const SCHEMES = ["light", "dark"];
/** Parts of a bar that a person reads or uses. */
const CONTROLS = ".topbar :is(a, button, h1, .chip, .tag), .composer__bar :is(button, select), .listbar :is(h2, input, button)";

/** What is wider than the page, and which controls lie over each other or outside. */
function layout(page) {
  return page.evaluate((selector) => {
    const problems = [];
    const root = document.documentElement;
    const name = (element) =>
      `<${element.localName} class="${element.className}"> ${element.textContent.trim().slice(0, 30)}`;
    if (root.scrollWidth > root.clientWidth) {
      problems.push(`the page is ${root.scrollWidth} px wide in ${root.clientWidth}`);
    }
    for (const scroller of document.querySelectorAll(".main__scroll, .page, .side, .details")) {
      if (scroller.checkVisibility() && scroller.scrollWidth > scroller.clientWidth) {
        problems.push(`${name(scroller)} is ${scroller.scrollWidth} px wide in ${scroller.clientWidth}`);
      }
    }
    const shown = [...document.querySelectorAll(selector)]
      .filter((element) => element.checkVisibility({ visibilityProperty: true }))
      .map((element) => ({ element, box: element.getBoundingClientRect() }))
      .filter(({ box }) => box.width > 0 && box.height > 0);
    for (const { element, box } of shown) {
      if (box.left < -0.5 || box.right > root.clientWidth + 0.5) {
        problems.push(`${name(element)} lies outside: ${Math.round(box.left)} to ${Math.round(box.right)}`);
      }
    }
    for (const [place, one] of shown.entries()) {
      for (const other of shown.slice(place + 1)) {
        if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
        const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
        const height = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
        if (width > 1 && height > 1) {
          problems.push(`${name(one.element)} lies over ${name(other.element)} by ${Math.round(width)} × ${Math.round(height)}`);
        }
      }
    }
    return problems;
  }, CONTROLS);
}

const NOT_FOUND = [/status of 404/];
/** What fails is looked at at once, not after retries. */
const AT_ONCE = { RUNLOOM_RECOVERY__RETRY_DELAYS: "[]", RUNLOOM_LIMITS__RATE_LIMIT_SECONDS: "0" };

suite("looks", { speed: 20, env: AT_ONCE }, (test) => {
  /** Opens a page at each size, looks at it in each scheme, and collects what is wrong with it. */
  async function look(desk, problems, what, path, act = async () => {}) {
    for (const viewport of SIZES) {
      const { page, context } = await desk.viewer({ viewport });
      await page.goto(desk.server.url + path);
      await act(page);
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        await drawn(page);
        const where = `${what}-${viewport.width}-${colorScheme}`;
        await desk.picture(page, where);
        for (const problem of await layout(page)) problems.push(`${where}: ${problem}`);
        for (const violation of await serious(page)) problems.push(`${where}: ${JSON.stringify(violation)}`);
      }
      await context.close();
    }
  }

  test("the first page, empty and with sessions", async (desk) => {
    const problems = [];
    await look(desk, problems, "home-empty", "/", live);
    for (const prompt of ["welcome", "tool_error", "cut", "refusal", "A prompt that is very long ".repeat(12)]) {
      const { run } = await desk.server.begin(prompt);
      await until("the run is over", async () =>
        ["succeeded", "failed"].includes((await desk.server.snapshot(run)).run.status),
      );
    }
    await look(desk, problems, "home", "/", live);
    await look(desk, problems, "home-none-found", "/?q=nothing+like+this&status=failed", live);
    assert.deepEqual(problems, []);
  }, { timeout: 180_000 });

  test("a session while it streams", async (desk) => {
    const problems = [];
    await desk.simulator.arm("welcome:after-search");
    const { session } = await desk.server.begin("welcome");
    await desk.simulator.reached("welcome:after-search");
    await look(desk, problems, "session-streaming", `/s/${session}`, async (page) => {
      await live(page);
      await runWith(page, "A search has its own kind of row");
    });
    assert.deepEqual(problems, []);
  }, { timeout: 180_000 });

  test("a finished session, with open rows and with details", async (desk) => {
    const problems = [];
    const { session, run } = await desk.server.begin("welcome");
    await until("the run is over", async () => (await desk.server.snapshot(run)).run.status === "succeeded");
    await look(desk, problems, "session", `/s/${session}`, live);
    await look(desk, problems, "session-open", `/s/${session}`, async (page) => {
      await live(page);
      for (const row of await page.locator("#main [data-block-id] > .row__toggle").all()) await row.click();
      await page.locator(".runinfo > summary").click();
    });
    const { nodes } = await desk.server.snapshot(run);
    const node = nodes.filter((known) => known.kind === "function").at(-1).node_id;
    await look(desk, problems, "session-details", `/s/${session}?node=${node}`, live);
    assert.deepEqual(problems, []);
  }, { timeout: 240_000 });

  test("a session of failures: failed rows, a cut answer, a refusal, a provider's error", async (desk) => {
    const problems = [];
    const { session, run } = await desk.server.begin("tool_error");
    const runs = [run];
    for (const prompt of ["cut", "refusal", "error_event", "max_tokens", "empty", "http_401", "parallel"]) {
      runs.push(await desk.server.more(session, prompt));
    }
    await until("all runs are over", async () => {
      const read = await desk.server.snapshot(runs.at(-1));
      return ["succeeded", "failed", "cancelled"].includes(read.run.status);
    }, { timeout: 60_000 });
    await look(desk, problems, "session-failures", `/s/${session}`, live);
    assert.deepEqual(problems, []);
  }, { timeout: 180_000 });

  test("an address that leads nowhere", async (desk) => {
    const problems = [];
    await look(desk, problems, "not-found", "/no/such/page");
    await look(desk, problems, "no-session", `/s/ses_${"0".repeat(22)}`);
    assert.deepEqual(problems, []);
  }, { allow: NOT_FOUND, timeout: 180_000 });

  test("the switch changes the scheme at once and is remembered", async ({ open }) => {
    const page = await open("/", { colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.getByRole("button", { name: "Switch theme" }).click();
    const dark = await background();
    assert.notEqual(dark, light);
    await page.reload();
    assert.equal(await background(), dark);
  });
});

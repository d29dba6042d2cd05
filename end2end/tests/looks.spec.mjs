// Looks and access at three sizes, light and dark: nothing runs over, nothing overlaps, axe finds nothing serious. The
// pictures in end2end/results/ are for people to look at.

import assert from "node:assert/strict";

import { serious } from "../support/axe.mjs";
import { live, runWith } from "../support/content.mjs";
import { drawn } from "../support/frames.mjs";
import { layout } from "../support/layout.mjs";
import { noteShifts, shifts } from "../support/shifts.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { PHONE, SMALL, WIDE, walk } from "../support/walk.mjs";

const NOT_FOUND = [/status of 404/];
/** What fails is looked at at once, not after retries. */
const AT_ONCE = { RUNLOOM_RECOVERY__RETRY_DELAYS: "[]", RUNLOOM_LIMITS__RATE_LIMIT_SECONDS: "0" };

/** A page's script that does nothing. */
const IDLE = "export default async () => ({}); export function hydrate() {}";

suite("looks", { speed: 20, env: AT_ONCE }, (test) => {
  /** What is wrong with a page, at each size and in each scheme. */
  function look(desk, what, path, act) {
    return walk(desk, what, path, {
      sizes: [WIDE, PHONE, SMALL],
      act,
      look: async (page, { where }) => {
        await desk.picture(page, where);
        return [...(await layout(page)), ...(await serious(page))];
      },
    });
  }

  test("the first page, empty and with sessions", async (desk) => {
    const problems = [];
    problems.push(...(await look(desk, "home-empty", "/", live)));
    for (const prompt of ["welcome", "tool_error", "cut", "refusal", "A prompt that is very long ".repeat(12)]) {
      const { run } = await desk.server.begin(prompt);
      await until("the run is over", async () =>
        ["succeeded", "failed"].includes((await desk.server.snapshot(run)).run.status),
      );
    }
    problems.push(...(await look(desk, "home", "/", live)));
    problems.push(...(await look(desk, "home-none-found", "/?q=nothing+like+this&status=failed", live)));
    assert.deepEqual(problems, []);
  }, { timeout: 180_000 });

  test("a session while it streams", async (desk) => {
    const problems = [];
    await desk.simulator.arm("welcome:after-search");
    const { session } = await desk.server.begin("welcome");
    await desk.simulator.reached("welcome:after-search");
    problems.push(...(await look(desk, "session-streaming", `/s/${session}`, async (page) => {
      await live(page);
      await runWith(page, "A search has its own kind of row");
    })));
    assert.deepEqual(problems, []);
  }, { timeout: 180_000 });

  test("a finished session, with open rows and with details", async (desk) => {
    const problems = [];
    const { session, run } = await desk.server.begin("welcome");
    await until("the run is over", async () => (await desk.server.snapshot(run)).run.status === "succeeded");
    problems.push(...(await look(desk, "session", `/s/${session}`, live)));
    problems.push(...(await look(desk, "session-open", `/s/${session}`, async (page) => {
      await live(page);
      for (const row of await page.locator("#main [data-block-id] > .row__toggle").all()) await row.click();
      await page.locator(".runinfo > summary").click();
    })));
    const { nodes } = await desk.server.snapshot(run);
    const node = nodes.filter((known) => known.kind === "function").at(-1).node_id;
    problems.push(...(await look(desk, "session-details", `/s/${session}?node=${node}`, live)));
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
    problems.push(...(await look(desk, "session-failures", `/s/${session}`, live)));
    assert.deepEqual(problems, []);
  }, { timeout: 180_000 });

  test("a page that comes in drops stands still from its first paint on", async (desk) => {
    const { session, run } = await desk.server.begin("welcome");
    await until("the run is over", async () => (await desk.server.snapshot(run)).run.status === "succeeded");
    const style = await (await desk.server.fetch("/pkg/runloom.css")).text();
    const proxy = await desk.proxy();
    proxy.drip(true);
    for (const viewport of [WIDE, PHONE]) {
      for (const path of ["/", `/s/${session}`]) {
        const { context, page } = await desk.viewer({ viewport });
        await noteShifts(context);
        // The style is there at once, as on any page but the first: nothing but the document itself is waited for.
        await page.route("**/*.css", (route) => route.fulfill({ body: style, contentType: "text/css" }));
        // What hydration does is another test's.
        await page.route("**/*.js", (route) => route.fulfill({ body: IDLE, contentType: "text/javascript" }));
        await page.goto(proxy.url + path);
        await drawn(page);
        const painted = await until("the first paint is noted", () =>
          page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime),
        );
        const parsed = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domInteractive);
        assert.ok(parsed > 100, `the document took ${parsed} ms`);
        assert.deepEqual(await shifts(page), [], `${path} at ${viewport.width}, painted after ${painted} of ${parsed} ms`);
        await context.close();
      }
    }
  });

  test("an address that leads nowhere", async (desk) => {
    const problems = [];
    problems.push(...(await look(desk, "not-found", "/no/such/page")));
    problems.push(...(await look(desk, "no-session", `/s/ses_${"0".repeat(22)}`)));
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

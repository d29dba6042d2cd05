// Access: axe on every kind of page, what is announced, motion, paper, and addresses that lead nowhere.

import assert from "node:assert/strict";

import { serious } from "../support/axe.mjs";
import { live, runIn, runWith } from "../support/content.mjs";
import { drawn } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";
import { PHONE, WIDE, walk } from "../support/walk.mjs";

const AT_WIDE = { viewport: WIDE };
const NOT_FOUND = [/status of 404/];
const TOKEN = "a-token-that-is-long-enough";

async function finished(server, prompt) {
  const made = await server.begin(prompt);
  await until("the run is over", async () => (await server.snapshot(made.run)).run.status === "succeeded");
  return made;
}

/** What axe finds at an address, at each size and in each scheme, after something was done there. */
function findings(desk, what, path, act) {
  return walk(desk, what, path, {
    sizes: [WIDE, PHONE],
    act,
    look: async (page, { where }) => {
      await desk.picture(page, `access-${where}`);
      return serious(page);
    },
  });
}

suite("access", { speed: 20 }, (test) => {
  test("axe finds nothing serious on the pages, with what can lie over them", async (desk) => {
    const { session, run } = await finished(desk.server, "welcome");
    const { nodes } = await desk.server.snapshot(run);
    const node = nodes.filter((known) => known.kind === "function").at(-1).node_id;
    const withKeys = async (page) => {
      await live(page);
      await page.keyboard.press("?");
      await until("the sheet is open", () => page.locator("#keys").isVisible());
    };
    const withTree = async (page) => {
      await live(page);
      if (await page.getByRole("button", { name: "Open execution tree" }).isVisible()) {
        await page.getByRole("button", { name: "Open execution tree" }).click();
      }
      await page.locator("#tree-search").fill("list");
      await until("it is found", async () => (await page.locator(".tree__found").innerText()) === "1 match");
    };
    const found = [
      ...(await findings(desk, "sessions", "/", live)),
      ...(await findings(desk, "sessions-keys", "/", withKeys)),
      ...(await findings(desk, "session", `/s/${session}`, live)),
      ...(await findings(desk, "session-keys", `/s/${session}`, withKeys)),
      ...(await findings(desk, "session-tree", `/s/${session}`, withTree)),
      ...(await findings(desk, "details", `/s/${session}?node=${node}`, live)),
    ];
    assert.deepEqual(found, []);
  }, { timeout: 240_000 });

  test("axe finds nothing serious while a run goes on, and while it is asked whether to stop it", async (desk) => {
    await desk.simulator.arm("slow:middle");
    const { session } = await desk.server.begin("slow");
    await desk.simulator.reached("slow:middle");
    const found = [
      ...(await findings(desk, "live", `/s/${session}`, live)),
      ...(await findings(desk, "stop", `/s/${session}`, async (page) => {
        await live(page);
        await page.keyboard.press("s");
        await until("it is asked", () => page.locator("#stop").isVisible());
      })),
    ];
    assert.deepEqual(found, []);
  }, { timeout: 180_000 });

  test("a page that is not there has a heading, a way on, and does not repeat a long address", async (desk) => {
    assert.deepEqual(await findings(desk, "not-found", "/no/such/page"), []);
    const page = await desk.open("/no/such/page", { javaScriptEnabled: false });
    assert.equal(await page.locator("h1").innerText(), "Nothing is here");
    const long = "x".repeat(5_000);
    for (const path of [`/${long}`, `/s/${long}`]) {
      const answer = await desk.server.fetch(path);
      assert.equal(answer.status, 404);
      await page.goto(desk.server.url + path);
      assert.equal(await page.locator("h1").count(), 1);
      const words = await page.locator("main").innerText();
      assert.ok(words.length < 300, `${words.length} characters`);
    }
  }, { allow: NOT_FOUND, timeout: 120_000 });

  test("start and end of a run are announced once each, and no token is", async ({ server, simulator, open }) => {
    await simulator.arm("welcome:reasoning", "welcome:middle");
    const { session } = await finished(server, "Hello");
    const page = await open(`/s/${session}`, AT_WIDE);
    await page.evaluate(() => {
      const region = document.querySelector("#main > [role=status]");
      const said = [];
      new MutationObserver(() => said.push(region.textContent)).observe(region, {
        subtree: true,
        childList: true,
        characterData: true,
      });
      globalThis.__said = said;
    });
    const said = () => page.evaluate(() => [...new Set(globalThis.__said)].filter((words) => words));
    await server.more(session, "welcome");
    await simulator.reached("welcome:reasoning");
    await until("its start is said", async () => (await said()).at(-1) === "The run is live.", { seen: said });
    const before = (await said()).length;
    await simulator.open("welcome:reasoning");
    await simulator.reached("welcome:middle");
    await runWith(page, "what went on before the");
    assert.equal((await said()).length, before, "what is written is not said");
    await simulator.open("welcome:middle");
    await runIn(page, "succeeded");
    await until("its end is said", async () => /^The run is over: done\b/.test((await said()).at(-1)), { seen: said });
    const noisy = await page.evaluate(() =>
      [...document.querySelectorAll("#main .main__scroll :is([aria-live], [role=status], [role=log])")].map((one) => one.outerHTML),
    );
    assert.deepEqual(noisy, [], "nothing in the content speaks by itself");
  });

  test("with reduced motion nothing moves", async ({ server, simulator, open }) => {
    await simulator.arm("slow:middle");
    const { session } = await server.begin("slow");
    await simulator.reached("slow:middle");
    const moving = (page) =>
      page.evaluate(() => document.getAnimations().filter((animation) => animation.playState === "running").length);
    const page = await open(`/s/${session}`, { ...AT_WIDE, reducedMotion: "reduce" });
    await runWith(page, "takes its time");
    await drawn(page);
    assert.equal(await moving(page), 0);
    const usual = await open(`/s/${session}`, { ...AT_WIDE, reducedMotion: "no-preference" });
    await until("without it something does", async () => (await moving(usual)) > 0);
  });

  test("on paper stands the content alone, with everything opened, and afterwards all is as it was", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const page = await open(`/s/${session}`, AT_WIDE);
    const bodies = page.locator("#main [data-block-id] > .row__body");
    const count = await bodies.count();
    const opened = async () => {
      const shown = await Promise.all((await bodies.all()).map((body) => body.isVisible()));
      return shown.filter(Boolean).length;
    };
    assert.equal(await opened(), 0);
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await until("every row is open", async () => (await opened()) === count, { seen: opened });
    for (const part of ["#tree", "#details", ".composer", ".main__foot", ".row__acts", ".topbar button", "#main .btn"]) {
      for (const one of await page.locator(part).all()) assert.equal(await one.isVisible(), false, part);
    }
    assert.equal(await page.locator("h1").isVisible(), true);
    const whole = await page.evaluate(() => {
      const { scrollHeight, clientHeight } = document.querySelector(".main__scroll");
      return scrollHeight - clientHeight;
    });
    assert.ok(whole <= 1, "nothing is left to be scrolled to");
    const paper = await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);
    assert.equal(paper, "light");
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await until("all is closed again", async () => (await opened()) === 0);
  });

  test("without script a row keeps its columns", async ({ server, open }) => {
    const { session } = await finished(server, "welcome");
    const places = async (options) => {
      const page = await open(`/s/${session}`, { ...AT_WIDE, ...options });
      return page.locator('#main [data-block-kind="tool_ref"] > .row__toggle').first().evaluate((row) => {
        const left = row.getBoundingClientRect().left;
        return [...row.children].map((part) => [part.classList[0], Math.round(part.getBoundingClientRect().left - left)]);
      });
    };
    const slots = ["icon", "row__name", "state", "row__time"];
    const known = (all) => all.filter(([name]) => slots.includes(name));
    assert.deepEqual(known(await places({ javaScriptEnabled: false })), known(await places({})));
  });
});

suite("access with a token", { token: TOKEN }, (test) => {
  test("axe finds nothing serious on the page that asks for it", async (desk) => {
    assert.deepEqual(await findings(desk, "sign-in", "/sign-in"), []);
    assert.deepEqual(await findings(desk, "sign-in-needed", "/"), []);
  }, { timeout: 120_000 });
});

// Fixtures: every state of every component (app/src/fixtures), at four sizes, light and dark. Nothing lies over anything,
// runs over or moves, hydration changes nothing, axe finds nothing, and what is read to people who do not see the page is
// as it stands in end2end/snapshots/. UPDATE_SNAPSHOTS=1 writes those files anew.
//
// FIXTURES=rows,views walks through some of them only; PICTURES=1 keeps pictures of each in end2end/results/.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { serious } from "../support/axe.mjs";
import { markup } from "../support/markup.mjs";
import { drawn } from "../support/frames.mjs";
import { layout } from "../support/layout.mjs";
import { noteShifts, shifts } from "../support/shifts.mjs";
import { suite } from "../support/suite.mjs";
import { passing, until } from "../support/until.mjs";
import { PHONE, SMALL, TABLET, WIDE, walk } from "../support/walk.mjs";

const SNAPSHOTS = fileURLToPath(new URL("../snapshots/", import.meta.url));
const UPDATES = process.env.UPDATE_SNAPSHOTS === "1";
const ONLY = process.env.FIXTURES?.split(",");
/** So many pages are walked through side by side: most of what each takes is waiting. */
const AT_ONCE = 3;
/** Nothing may move for so long after a page was hydrated. */
const REST_MS = 1_000;

/** Name and address of each fixture, as the index lists them. */
async function fixtures(server) {
  const index = await (await server.fetch("/fixtures")).text();
  const links = [...index.matchAll(/<a href="([^"]+)" data-fixture="([^"]+)"/g)];
  return links.map(([, path, name]) => ({ name, path: path.replaceAll("&amp;", "&") }));
}

/** Says all that was found, where something was looked at: a comparison of lists leaves most of a long one out. */
function none(found, seen) {
  assert.ok(seen.size > 0, "fixtures were walked through");
  assert.ok(found.length === 0, `${found.length} found:\n${found.join("\n")}`);
}

/** Goes through one fixture, and gives what is wrong with it, by rule. */
async function through(desk, { name, path }) {
  const found = { moves: [], changes: [], access: [], layout: [], words: "" };
  const sent = await (await desk.server.fetch(path)).text();
  found.layout = await walk(desk, name, path, {
    sizes: [WIDE, TABLET, PHONE, SMALL],
    once: true,
    // What turns takes more room at every moment.
    options: { reducedMotion: "reduce" },
    act: async (page) => {
      await until("it is hydrated", () => page.locator("[data-hydrated=true]").count());
      await drawn(page);
      const [before, after] = await markup(page, sent);
      const place = before.findIndex((line, place) => line !== after[place]);
      if (place >= 0 || before.length !== after.length) {
        found.changes.push(`${name}: ${before.at(place)} became ${after.at(place)} (line ${place})`);
      }
      await passing(REST_MS);
      found.moves = (await shifts(page)).map((move) => `${name}: ${move}`);
      found.words = await page.locator("body").ariaSnapshot();
    },
    look: async (page, { where, viewport, scheme }) => {
      if (process.env.PICTURES) await desk.picture(page, `fixture-${where}`);
      // All rules at the largest and the smallest size; colours in both schemes.
      const rules = { "1440-light": null, "1440-dark": ["color-contrast"], "360-light": null }[`${viewport.width}-${scheme}`];
      if (rules !== undefined) {
        const violations = await serious(page, rules);
        found.access.push(...violations.map((violation) => `${where}: ${JSON.stringify(violation)}`));
      }
      // Colours change no place.
      if (scheme === "dark") return [];
      return [...(await layout(page)), ...(await inDrawers(page))];
    },
  });
  return found;
}

/** How panels are laid out that are drawers at this size. */
async function inDrawers(page) {
  const problems = [];
  for (const id of ["tree", "details"]) {
    const drawer = page.locator(`#${id}[popover]`);
    if ((await drawer.count()) === 0 || (await drawer.isVisible())) continue;
    await drawer.evaluate((element) => element.showPopover());
    await drawn(page);
    problems.push(...(await layout(page)).map((problem) => `${id}: ${problem}`));
    await drawer.evaluate((element) => element.hidePopover());
  }
  return problems;
}

suite("fixtures", {}, (test) => {
  const all = { names: [], moves: [], changes: [], access: [], layout: [], words: new Map() };

  test("every fixture is opened, and nothing goes wrong in it", async (desk) => {
    const viewer = desk.viewer;
    desk.viewer = async (options) => {
      const opened = await viewer(options);
      await noteShifts(opened.context);
      return opened;
    };
    const known = await fixtures(desk.server);
    assert.ok(known.length > 20, `the index lists ${known.length}`);
    all.names = known.map(({ name }) => name);
    const waiting = known.filter(({ name }) => !ONLY || ONLY.includes(name));
    const next = async () => {
      for (let fixture = waiting.shift(); fixture; fixture = waiting.shift()) {
        const found = await through(desk, fixture);
        for (const rule of ["moves", "changes", "access", "layout"]) all[rule].push(...found[rule]);
        all.words.set(fixture.name, `${found.words.trimEnd()}\n`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }, { timeout: 300_000 });

  test("nothing lies over anything, runs over, is cut off, or is too small", () => none(all.layout, all.words));
  test("nothing moves by itself, from the first paint on", () => none(all.moves, all.words));
  test("hydration changes nothing", () => none(all.changes, all.words));
  test("axe finds nothing serious", () => none(all.access, all.words));

  test("what is read out is as it was", async () => {
    assert.ok(all.words.size > 0, "fixtures were walked through");
    if (UPDATES) {
      if (!ONLY) await rm(SNAPSHOTS, { recursive: true, force: true });
      await mkdir(SNAPSHOTS, { recursive: true });
      for (const [name, words] of all.words) await writeFile(`${SNAPSHOTS}${name}.yml`, words);
    }
    for (const [name, words] of all.words) {
      const kept = await readFile(`${SNAPSHOTS}${name}.yml`, "utf8").catch(() => "there is no such file");
      assert.equal(words, kept, `${name}: UPDATE_SNAPSHOTS=1 writes it anew`);
    }
    const files = await readdir(SNAPSHOTS);
    assert.deepEqual(files.sort(), all.names.map((name) => `${name}.yml`).sort(), "one file for each fixture");
  });
});

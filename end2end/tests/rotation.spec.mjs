// A stream that stalls in the middle of a code block: the chip says what is waited for, the same provider is asked again,
// then another one goes on. Real HTTP, real time, two providers.

import assert from "node:assert/strict";

import { Simulation } from "../bench/support/simulation.mjs";
import { live, runIn, runThat, textOf } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** Ends with the tests. */
const simulation = await new Simulation().start();

function provider(id) {
  const model = '{ id = "large", class = "action", context = 200000 }';
  const stall = "{ first_byte = 2, first_token = 2, no_byte = 2, no_content = 2 }";
  return `{ id = "${id}", kind = "anthropic", base_url = "${simulation.url}", models = [${model}], stall = ${stall} }`;
}

const SETTINGS = {
  RUNLOOM_PROVIDERS: `[${provider("north")}, ${provider("south")}]`,
  RUNLOOM_RECOVERY__RETRY_DELAYS: "[2, 0.2]",
  RUNLOOM_RECOVERY__RETRY_JITTER: "0",
  RUNLOOM_RECOVERY__ROTATION_DELAY: "3",
  RUNLOOM_RECOVERY__ROTATIONS: "1",
};

suite("rotation", { env: SETTINGS }, (test) => {
  test("it stalls in a code block, is asked for again, and another provider goes on", async ({ server, open, picture }) => {
    await simulation.control.arm("rotate:first", "rotate:second", "rotate:third");
    const { session, run } = await server.begin("rotate");
    const page = await open(`/s/${session}`);
    const chip = page.locator("header .chip").first();
    const said = [];
    const says = async (words) => {
      await until(`the chip says ${words}`, async () => words.test(await chip.innerText()), {
        timeout: 20_000,
        seen: () => chip.innerText(),
      });
      said.push(await chip.innerText());
    };
    await runThat(page, "the first attempt is shown", (read) => textOf(read).includes("self._log.app"));
    await says(/retrying\s+2\/3\s+in/);
    await picture(page, "rotation-retrying");
    await says(/moves\s+to\s+south\s+in/);
    await picture(page, "rotation-moves");

    const seen = await runIn(page, "succeeded");
    const attempts = (await server.snapshot(run)).attempts;
    assert.deepEqual(
      attempts.map(({ provider, reason, status }) => [provider, reason, status]),
      [
        ["north", "initial", "stalled"],
        ["north", "stall_retry", "stalled"],
        ["north", "stall_retry", "stalled"],
        ["south", "provider_rotation", "completed"],
      ],
    );
    // One code block, whole, in the attempt that is shown; nothing of the others is joined to it.
    const code = await page.locator("#main pre code").allInnerTexts();
    assert.equal(code.length, 1, JSON.stringify(code));
    assert.equal(
      code[0].trim(),
      "def put(self, key, value):\n    place = self._log.append(key, value)\n    self._index[key] = place",
    );
    assert.doesNotMatch(textOf(seen), /```/);
    const boundaries = await page.locator("[data-boundary]").allInnerTexts();
    assert.equal(boundaries.length, 3);
    assert.match(boundaries[0].replace(/\s+/g, " "), /Attempt 1 north .* kept .*stalled after .*Attempt 2 north/);
    assert.match(boundaries[2].replace(/\s+/g, " "), /Attempt 3 north .*stalled after .*Attempt 4 south/);
    await picture(page, "rotation");

    // Each of the older ones is there to be read.
    for (const folded of await page.locator("[data-attempt-id] > button").all()) await folded.click();
    const opened = await runThat(page, "the first attempt is open", (read) => textOf(read).includes("self._log.app"));
    assert.ok(opened);

    await page.reload();
    await live(page);
    const after = await runThat(page, "the refreshed run has a digest", (read) => read.digest);
    assert.equal(after.digest, await server.verify(run));
    assert.equal((await simulation.control.connections()).open, 0, "every socket was closed");
  }, { timeout: 90_000 });

  test("the simulator ends", () => simulation.stop());
});

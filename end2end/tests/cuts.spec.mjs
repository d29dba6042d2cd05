// The page must not depend on how a stream was cut into frames: what it has drawn at the end, grown piece by piece, is
// what a page shows that is opened afterwards.

import assert from "node:assert/strict";

import { comparable, live, readRun, readStructure, runThat } from "../support/content.mjs";
import { Frames } from "../support/frames.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** Numbers from 1 to `most`, always the same for a seed. */
function sizes(seed, most) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return 1 + (state % most);
  };
}

const CASES = [
  { prompt: "welcome", gate: "welcome:reasoning", most: 1, seed: 1 },
  { prompt: "welcome", gate: "welcome:reasoning", most: 12, seed: 2 },
  { prompt: "welcome", gate: "welcome:reasoning", most: 40, seed: 3 },
  { prompt: "welcome", gate: "welcome:middle", most: 25, seed: 4 },
  { prompt: "parallel", gate: "parallel:between", most: 5, seed: 5 },
  { prompt: "long characters=6000 rate=1500", gate: "long:begin", most: 8, seed: 6 },
  { prompt: "long characters=6000 rate=1500", gate: "long:begin", most: 30, seed: 7 },
];

suite("cuts", { speed: 4 }, (test) => {
  for (const { prompt, gate, most, seed } of CASES) {
    test(`${prompt}, from ${gate} in frames of 1 to ${most} ops`, async ({ server, simulator, viewer, open }) => {
      await simulator.arm(gate);
      const { session, run } = await server.begin(prompt);
      await simulator.reached(gate);
      const { page } = await viewer();
      const frames = await Frames.take(page);
      await page.goto(`${server.url}/s/${session}`);
      await live(page);
      await until("the page has all there is", async () => {
        return (await readRun(page)).seq === (await server.snapshot(run)).seq;
      });
      frames.withhold();
      const { seq } = await readRun(page);
      await simulator.open(gate);
      await until("the run is over", async () => (await server.snapshot(run)).run.status === "succeeded");
      await frames.send(await server.ops(run, seq), sizes(seed, most));
      const grown = await runThat(page, "the page has taken it in", (read) => read.digest);

      const other = await open(`/s/${session}`);
      const fresh = await runThat(other, "the new page has a digest", (read) => read.digest);
      assert.deepEqual(comparable(grown), comparable(fresh));
      assert.deepEqual(await readStructure(page), await readStructure(other));
      assert.equal(grown.digest, await server.verify(run));
    });
  }
});

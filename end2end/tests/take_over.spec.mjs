// Two servers on one database: what one of them executes is watched on the other one, which takes it over when the
// first one is killed.

import assert from "node:assert/strict";

import { comparable, live, readRun, runIn, runThat } from "../support/content.mjs";
import { assertKept, BROKEN, unsettled } from "../support/kept.mjs";
import { Server } from "../support/server.mjs";
import { Simulator } from "../support/simulator.mjs";
import { suite } from "../support/suite.mjs";

const GATE = "welcome:after-list";
/** A lease of 15 s and a sweep each 5 s; and as much again as a busy machine may need. */
const TAKEN_OVER_MS = 30_000;

/** The place of the server whose demo provider is asked: that one executes the run. */
function ownerOf(simulators) {
  const reached = async (simulator, place) => {
    await simulator.reached(GATE);
    return place;
  };
  return Promise.any(simulators.map(reached));
}

suite("take over", { speed: 20 }, (test) => {
  test("a page on another server than the owner's is live, and when the owner is killed its server takes over and says so", async (desk) => {
    // The third server only runs the database.
    const database = desk.server;
    const env = { DATABASE_URL: await database.databaseUrl() };
    database.pause();
    const servers = [new Server({ env }), new Server({ env })];
    try {
      for (const server of servers) await server.start();
      const simulators = servers.map((server) => new Simulator(server));
      for (const simulator of simulators) await simulator.arm(GATE);
      for (const server of servers) desk.origins.add(`127.0.0.1:${server.port}`);
      const { session, run } = await servers[0].begin("welcome");
      const place = await ownerOf(simulators);
      const [dying, living] = place === 0 ? servers : [servers[1], servers[0]];

      const near = await desk.open(`/s/${session}`, { baseURL: dying.url });
      const far = await desk.open(`/s/${session}`, { baseURL: living.url });
      await far.evaluate(() => (globalThis.__sameLife = true));
      const atGate = (read) => read.pieces.some((piece) => piece.text.endsWith("a toy key-value store in Python."));
      const seen = await runThat(near, "the owner's page has come to the gate", atGate);
      const before = await runThat(far, "the other one, too", atGate);
      assert.deepEqual(comparable(before).pieces, comparable(seen).pieces);

      await near.context().close();
      await dying.kill();
      const after = await runIn(far, "interrupted", { timeout: TAKEN_OVER_MS });
      assert.equal(await far.evaluate(() => globalThis.__sameLife), true, "the page was not loaded again");
      assertKept(before, after, "without a reload");
      assert.deepEqual(await unsettled(far), []);
      const words = /^Taken over\. The server that executed this run had given no sign of life for \d+ s\./;
      assert.ok(after.remarks.some((remark) => words.test(remark)), JSON.stringify(after.remarks));

      await far.reload();
      await live(far);
      const refreshed = await runThat(far, "the refreshed page has a digest", (read) => read.digest);
      assert.deepEqual(refreshed.pieces, after.pieces);
      assert.deepEqual(refreshed.remarks, after.remarks);
      assert.equal(refreshed.digest, await living.verify(run));

      await living.more(session, "Still there?");
      await runThat(far, "the next run has ended well", (read) => read.run !== run && read.state === "succeeded");
      assert.equal((await readRun(far)).prompt, "Still there?");
      assert.deepEqual(living.alarms(), []);
    } finally {
      for (const server of servers) await server.clear();
      database.proceed();
    }
  }, { allow: BROKEN });
});

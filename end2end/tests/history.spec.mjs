// What was: a run at any of its ops, a run as a file, and files of other servers and programs.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { live, readRun, runThat } from "../support/content.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** A run that is over. */
async function finished(server, prompt) {
  const begun = await server.begin(prompt);
  const last = await until("the run is over", async () => {
    const snapshot = await server.snapshot(begun.run);
    return snapshot.run.status === "succeeded" ? snapshot.seq : null;
  });
  return { ...begun, last };
}

const bar = (page) => page.getByRole("group", { name: "Replay" });

suite("history", { speed: 20 }, (test) => {
  test("a link to a run and an op shows the run as it was, and the range leads to any other op", async ({ open, server }) => {
    const { session, run, last } = await finished(server, "welcome");
    const page = await open(`/s/${session}?run=${run}&at=0`);
    const begin = await readRun(page);
    assert.deepEqual([begin.seq, begin.pieces.length], [0, 0]);
    const range = bar(page).getByRole("slider", { name: "Op of the run" });
    await range.fill(String(last));
    const end = await runThat(page, "the run is at its last op", (read) => read.seq === last && read.digest);
    assert.equal(end.digest, await server.verify(run));
    await range.fill("30");
    const middle = await runThat(page, "the run is at op 30", (read) => read.seq === 30);
    assert.ok(middle.pieces.length < end.pieces.length);
    assert.equal(middle.digest, null, "what is not over has no digest");
    assert.match(await bar(page).getByRole("link", { name: "Link to here" }).getAttribute("href"), /at=30$/);
    // The marks lead from call to call.
    await bar(page).getByRole("link", { name: /^Next mark: / }).click();
    const marked = await runThat(page, "the next mark is shown", (read) => read.seq > 30);
    assert.ok(marked.seq < last);
    assert.equal(await page.getByRole("button", { name: "Stop" }).count(), 0);
    await bar(page).getByRole("link", { name: "End replay" }).click();
    await live(page);
    assert.equal((await readRun(page)).digest, end.digest);
  });

  test("it plays on from where it stands to the end, which is the recorded one", async ({ open, server }) => {
    const { session, run, last } = await finished(server, "parallel");
    const page = await open(`/s/${session}?run=${run}&at=3`);
    await bar(page).getByLabel("Speed").selectOption("100");
    await bar(page).getByRole("button", { name: "Play" }).click();
    const end = await runThat(page, "it has played to the end", (read) => read.seq === last && read.digest, { timeout: 30_000 });
    assert.equal(end.digest, await server.verify(run));
    await bar(page).getByRole("button", { name: "Play" }).waitFor();
  });

  test("without script the range is a form", async ({ open, server }) => {
    const { session, run } = await finished(server, "welcome");
    const page = await open(`/s/${session}?run=${run}&at=0`, { javaScriptEnabled: false });
    await bar(page).getByRole("slider", { name: "Op of the run" }).fill("40");
    await bar(page).getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/at=40$/);
    assert.equal((await readRun(page)).seq, 40);
  });

  test("a run leaves as a page that reads alone, and comes back from its lines", async ({ open, server, viewer }) => {
    const { session, run } = await finished(server, "welcome");
    const page = await open(`/s/${session}`);
    await page.getByRole("button", { name: "Export" }).click();
    const folder = await mkdtemp(join(tmpdir(), "runloom-export-"));
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: /^HTML/ }).click()]);
    assert.equal(download.suggestedFilename(), `${run}.html`);
    const file = join(folder, "run.html");
    await download.saveAs(file);
    // From disk, without a network.
    const { page: alone } = await viewer({ offline: true, javaScriptEnabled: false });
    await alone.setContent(await readFile(file, "utf8"));
    const read = await readRun(alone);
    assert.equal(read.digest, await server.verify(run));
    assert.match(await alone.locator("#main, main").innerText(), /def records/, "what calls gave back is opened");

    const lines = await (await fetch(`${server.url}/api/runs/${run}/export`)).text();
    const answer = await fetch(`${server.url}/api/import`, { method: "POST", body: lines });
    assert.equal((await answer.json()).runs[0].outcome, "native");
    await rm(folder, { recursive: true });
  });
});

// Tools of MCP servers in the page: a public server, unchanged, over its standard input and output and over HTTP.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

import { runIn, runThat } from "../support/content.mjs";
import { freePort, Server } from "../support/server.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const EVERYTHING = fileURLToPath(new URL("../node_modules/.bin/mcp-server-everything", import.meta.url));
const WIDE = { viewport: { width: 1440, height: 1400 } };

const settings = (server) => ({ RUNLOOM_MCP_SERVERS: `[{ id = "everything", ${server} }]` });
const rows = (run) => run.pieces.filter((piece) => piece.kind === "tool_ref");

/** The public server over streamable HTTP, on a port of loopback, until it is stopped. */
async function overHttp() {
  const port = await freePort();
  const child = spawn(process.execPath, [EVERYTHING, "streamableHttp"], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${port}/mcp`;
  await until("the MCP server listens", async () => (await fetch(url).catch(() => null)) !== null);
  return { url, stop: () => child.kill("SIGKILL") };
}

const stdio = settings(`command = [${JSON.stringify(process.execPath)}, ${JSON.stringify(EVERYTHING)}, "stdio"]`);

suite("mcp", { speed: 20, env: stdio }, (test) => {
  test("tools of a public server are rows like any other, with their progress, also from a program", async ({ server, open }) => {
    const { session } = await server.begin("mcp");
    const page = await open(`/s/${session}`, WIDE);
    await runThat(page, "the long call tells how far it is", (run) => /^\d\/4$/.test(rows(run)[2]?.meta ?? ""));
    const run = await runIn(page, "succeeded");
    assert.deepEqual(
      rows(run).map((row) => [row.name, row.state]),
      [
        ["everything__echo", "succeeded"],
        ["everything__get-sum", "succeeded"],
        ["everything__trigger-long-running-operation", "succeeded"],
        ["Code", "succeeded"],
      ],
    );
    assert.equal(await page.locator("#main .group__head").count(), 1, "what only reads runs together");
    const echo = page.locator('#main [data-block-kind="tool_ref"]').first();
    await echo.locator(":scope > .row__toggle").click();
    await until("the answer is shown", async () => (await echo.innerText()).includes("Echo: Is anybody there?"));
    const within = page.locator("#main .nest .row");
    assert.equal(await within.count(), 3);
    const { nodes } = await server.snapshot(run.run);
    const program = nodes.find((node) => node.kind === "code");
    assert.equal(program.outputs.result.text, "6");
  });

  test("the same server over HTTP gives the same, and once it is gone a run says so", async () => {
    const http = await overHttp();
    const other = new Server({ speed: 20, env: settings(`url = ${JSON.stringify(http.url)}`) });
    try {
      await other.start();
      const first = await other.begin("mcp");
      await until("the run is over", async () => (await other.snapshot(first.run)).run.status === "succeeded");
      const { nodes } = await other.snapshot(first.run);
      const calls = nodes.filter((node) => node.kind === "function" && node.name.startsWith("everything__"));
      assert.deepEqual(calls.map((node) => node.status), Array(6).fill("succeeded"));
      http.stop();
      const second = await other.begin("mcp");
      await until("the run is over", async () => (await other.snapshot(second.run)).run.status === "succeeded");
      const after = await other.snapshot(second.run);
      const failed = after.nodes.find((node) => node.name === "everything__echo");
      assert.ok(["mcp_disconnected", "unknown_tool"].includes(failed.error.code), failed.error.code);
    } finally {
      http.stop();
      await other.clear();
    }
  });
});

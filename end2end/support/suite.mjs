// Browser tests: a real Chromium against the real server with its built-in demo provider.
//
// `node --test end2end/tests/NAME.spec.mjs` with
//   RUNLOOM_BINARY  the server's binary,
//   CHROMIUM        the browser,
//   PG_BIN          PostgreSQL's programs, where the server would not find them by itself.
// `make test` sets them and runs all files.
//
// Each file is one `suite`: it starts the server once, on a free port with an empty data folder, and stops it at the
// end, which is a test of its own (status 0, no process left, no error in its log). Each test gets pages of its own.
//
//   * No sleeps: a stream is held where it stands by a gate of the demo provider (`simulator.arm`, `.reached`, `.open`;
//     docs/scenarios.md lists the gates), and conditions are waited for (`until.mjs`).
//   * An error on the page's console, an uncaught exception, a violated policy, a failed request or one that leaves the
//     origin fails the test. A test that breaks the network names what the browser may say about that (`allow`).
//   * The page is read through its data attributes: data-run-id, data-block-id, data-block-kind, data-node-id,
//     data-state, data-seq, data-digest, data-connection (`content.mjs`).
//   * Where a test fails, its page's picture and the server's last words are kept in end2end/results/ and in the output.

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

import { live } from "./content.mjs";
import { Proxy } from "./proxy.mjs";
import { Server } from "./server.mjs";
import { Simulator } from "./simulator.mjs";
import { Viewer } from "./viewer.mjs";

const TEST_MS = 90_000;
const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));

const LAUNCH = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launch() {
  const executablePath = process.env.CHROMIUM;
  if (!executablePath) throw new Error("CHROMIUM must name the browser (`make test` sets it)");
  return chromium.launch({ executablePath, args: LAUNCH });
}

/** What a test has at hand. */
class Desk {
  constructor(server, browser, allow) {
    this.server = server;
    this.simulator = new Simulator(server);
    this.browser = browser;
    this.allow = allow;
    this.viewers = [];
    this.proxies = [];
    this.origins = new Set([`127.0.0.1:${server.port}`]);
    // Tests take them out of the desk.
    for (const name of ["viewer", "open", "proxy", "picture"]) this[name] = this[name].bind(this);
  }

  /** A new page in a context of its own; `options` are those of Playwright's contexts. */
  async viewer(options = {}) {
    const viewer = await Viewer.open(this.browser, this.origins, options);
    this.viewers.push(viewer);
    return viewer;
  }

  /** A new page at an address of the server, hydrated and connected unless it has no script. */
  async open(path, options = {}) {
    const { page } = await this.viewer(options);
    await page.goto((options.baseURL ?? this.server.url) + path);
    if (options.javaScriptEnabled !== false) await live(page);
    return page;
  }

  async proxy() {
    const proxy = await new Proxy(this.server.port).start();
    this.proxies.push(proxy);
    this.origins.add(`127.0.0.1:${proxy.port}`);
    return proxy;
  }

  /** A picture for people to look at. */
  async picture(page, name) {
    await mkdir(RESULTS, { recursive: true });
    await page.screenshot({ path: `${RESULTS}${name}.png` });
  }

  troubles() {
    const isAllowed = (trouble) => this.allow.some((pattern) => pattern.test(trouble));
    return this.viewers.flatMap((viewer) => viewer.troubles).filter((trouble) => !isAllowed(trouble));
  }

  async explain(name) {
    const file = name.replaceAll(/\W+/g, "-").slice(0, 80);
    const lines = [`--- the server's last words ---`, this.server.log()];
    for (const [place, viewer] of this.viewers.entries()) {
      const picture = `failed-${file}-${place + 1}`;
      await this.picture(viewer.page, picture).catch(() => {});
      lines.push(`--- page ${place + 1}, ${viewer.page.url()} (results/${picture}.png) ---`);
      lines.push(...viewer.troubles, ...viewer.notes);
    }
    process.stderr.write(`${lines.join("\n")}\n`);
  }

  async close() {
    for (const viewer of this.viewers) await viewer.context.close().catch(() => {});
    for (const proxy of this.proxies) await proxy.close();
    await this.simulator.openAll().catch(() => {});
  }
}

/**
 * Tests that share a server. `body` is given `test(rule, run, {allow, timeout})`; `run` is given the desk.
 * `alarms` are patterns of log lines that may stand there as errors.
 */
export function suite(name, options, body) {
  describe(name, { concurrency: 1 }, () => {
    const server = new Server(options);
    let browser = null;
    before(
      async () => {
        await server.start();
        browser = await launch();
      },
      { timeout: TEST_MS },
    );
    after(async () => {
      await browser?.close();
      await server.clear();
    });

    const test = (rule, run, { allow = [], timeout = TEST_MS } = {}) =>
      it(rule, { timeout }, async () => {
        const desk = new Desk(server, browser, allow);
        try {
          await run(desk);
          assert.deepEqual(desk.troubles(), [], "nothing goes wrong in the page");
        } catch (error) {
          await desk.explain(`${name} ${rule}`);
          throw error;
        } finally {
          await desk.close();
        }
      });
    body(test, server);

    it("the server stops with nothing left behind and no error in its log", { timeout: TEST_MS }, async () => {
      const problems = await server.stop();
      const alarms = server.alarms().filter((line) => !(options.alarms ?? []).some((pattern) => pattern.test(line)));
      assert.deepEqual([...problems, ...alarms], [], server.log());
    });
  });
}

// Streamdown in a page of its own: its published package with React, built for production, fed at the same pace.
//
// Its packages and the bundle lie in the cache, so that only who measures has them.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Pace } from "./pace.mjs";

const SOURCE = fileURLToPath(new URL("../peer/", import.meta.url));
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "runloom");
const PARTS = ["package.json", "package-lock.json", "page.mjs"];

const PAGE = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Peer</title><div id="root"></div><script src="/bundle.js"></script></html>';

/** Installs and bundles what is not there yet. Gives the bundle's path. */
async function bundle(say) {
  const parts = await Promise.all(PARTS.map((name) => readFile(join(SOURCE, name))));
  const sum = createHash("sha256");
  parts.forEach((part) => sum.update(part));
  const folder = join(CACHE, "peer", sum.digest("hex").slice(0, 16));
  const file = join(folder, "bundle.js");
  if (existsSync(file)) return file;
  say("installing and bundling Streamdown");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const name of PARTS.slice(0, 2)) await copyFile(join(SOURCE, name), join(folder, name));
  const env = { ...process.env, npm_config_cache: join(CACHE, "npm") };
  const words = ["ci", "--no-progress", "--no-audit", "--no-fund", "--loglevel=error"];
  await promisify(execFile)("npm", words, { cwd: folder, env });
  const { build } = createRequire(join(folder, "package.json"))("esbuild");
  const { outputFiles } = await build({
    entryPoints: [join(SOURCE, "page.mjs")],
    nodePaths: [join(folder, "node_modules")],
    define: { "process.env.NODE_ENV": '"production"' },
    bundle: true,
    minify: true,
    write: false,
    logLevel: "error",
  });
  // Last, so that a bundle that is there is whole.
  await writeFile(file, outputFiles[0].contents);
  return file;
}

/* Runs in the page: a text in deltas of so many characters, so many each animation frame. */
function prepare([text, perFrame, size]) {
  const step = perFrame * size;
  globalThis.__play = (from, end) =>
    globalThis.__pace(from, end, (place) => globalThis.__give(text.slice(0, (place + 1) * step)));
  return Math.ceil(text.length / step);
}

export class Peer {
  #server;

  async start(say) {
    const script = await readFile(await bundle(say));
    const { dependencies } = JSON.parse(await readFile(join(SOURCE, "package.json"), "utf8"));
    this.name = `Streamdown ${dependencies.streamdown}`;
    this.#server = createServer((request, response) => {
      const isScript = request.url === "/bundle.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? script : PAGE);
    });
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  /** Opens the page for a text. Gives how many frames it takes, and how to play up to one. */
  async open(browser, text, perFrame, size = 4) {
    const context = await browser.newContext();
    const page = await context.newPage();
    const pace = await Pace.of(page);
    await page.goto(`http://127.0.0.1:${this.#server.address().port}/`);
    await page.waitForFunction(() => globalThis.__give);
    const frames = await page.evaluate(prepare, [text, perFrame, size]);
    let next = 0;
    const play = async (end) => {
      const played = await pace.measure(() =>
        page.evaluate(([from, upTo]) => globalThis.__play(from, upTo), [next, end]),
      );
      next = end;
      return played;
    };
    return { page, pace, frames, play, close: () => context.close() };
  }

  async close() {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => (this.#server ? this.#server.close(resolve) : resolve()));
  }
}

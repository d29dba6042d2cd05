// What the page's files weigh.

import { readFile, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

import { Results } from "./support/results.mjs";
import { size } from "./support/statistics.mjs";

const GOAL_BYTES = 350_000;

const folder = join(dirname(process.env.RUNLOOM_BINARY), "site", "pkg");
const results = new Results("size");
const bytes = (path) => stat(join(folder, path)).then(({ size: found }) => found, () => null);
const words = (found) => (found === null ? "–" : size(found));

const names = (await readdir(folder)).filter((name) => !/\.(br|gz)$/.test(name)).sort();
const rows = [];
for (const name of names) {
  const [raw, brotli, gzip] = [await bytes(name), await bytes(`${name}.br`), await bytes(`${name}.gz`)];
  rows.push([name, words(raw), words(brotli), words(gzip)]);
  if (name === "runloom.wasm") {
    // A development build is not compressed.
    results.figure({
      goal: "wasm",
      what: "compressed · raw",
      value: `${words(brotli)} · ${words(raw)}`,
      met: brotli === null ? null : brotli <= GOAL_BYTES,
    });
    const file = await readFile(join(folder, name));
    const start = file.subarray(0, 4).toString("latin1");
    if (start !== "\0asm") throw new Error(`${name} is no WebAssembly`);
    // Fixtures are for development: what is shipped does not even know their address.
    if (brotli !== null && file.includes("fixtures")) throw new Error(`${name} holds fixtures`);
  }
}
results.detail("The page's files", "Fetched by the first visit, then kept by the browser.", ["file", "raw", "brotli", "gzip"], rows);
await results.finish();

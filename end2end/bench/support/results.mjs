// What a measurement found. Under `make bench` all of it goes into one table; by hand each file prints its own.

import { mkdir, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";

import { table } from "./table.mjs";

const REPEATS = Number(process.env.BENCH_REPEATS ?? 3);

export class Results {
  /** `name` is that of the file. */
  constructor(name) {
    this.found = { name, figures: [], details: [], load: [loadavg()[0]], seconds: 0 };
    this.began = Date.now();
  }

  /** What is happening, for who waits. */
  say(words) {
    process.stderr.write(`    ${words}\n`);
  }

  /**
   * A figure: `what` was measured, the value in words, the id of the goal that it is about, if any, and whether that is
   * `met`: true, false, or null where the figure alone cannot tell.
   */
  figure({ goal = null, what, value, met = null }) {
    this.found.figures.push({ goal, what, value, met });
  }

  /** A table below the figures: a title, a sentence, the heads and the rows. */
  detail(title, words, heads, rows) {
    this.found.details.push({ title, words, heads, rows });
  }

  /** Does the same several times, one after another. */
  async repeat(what, once, times = REPEATS) {
    const runs = [];
    for (let number = 1; number <= times; number += 1) {
      this.say(`${what}, ${number} of ${times}`);
      runs.push(await once());
    }
    return runs;
  }

  async finish() {
    this.found.load.push(loadavg()[0]);
    this.found.seconds = (Date.now() - this.began) / 1000;
    const folder = process.env.BENCH_RESULTS;
    if (folder) {
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, `${this.found.name}.json`), JSON.stringify(this.found));
      return;
    }
    const rows = this.found.figures.map(({ what, value, met }) => [what, value, mark(met)]);
    process.stdout.write(`${table(["figure", "measured", "reached"], rows)}\n`);
    for (const { title, heads, rows: more } of this.found.details) {
      process.stdout.write(`\n${title}\n\n${table(heads, more)}\n`);
    }
  }
}

export function mark(met) {
  if (met === null) return "";
  return met ? "yes" : "no";
}

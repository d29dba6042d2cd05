// What a measurement found. Under `make bench` all of it goes into one table; by hand each file prints its own.

import { mkdir, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";

import { busy, cpu } from "./processes.mjs";
import { table } from "./table.mjs";

const REPEATS = Number(process.env.BENCH_REPEATS ?? 3);

export class Results {
  /** `name` is that of the file. */
  constructor(name) {
    this.found = { name, figures: [], details: [], load: [loadavg()[0]], others: 0 };
    this.began = others();
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
    const [before, after] = [await this.began, await others()];
    this.found.others = (after.ms - before.ms) / (after.at - before.at);
    const folder = process.env.BENCH_RESULTS;
    if (folder) {
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, `${this.found.name}.json`), JSON.stringify(this.found));
      return;
    }
    const rows = this.found.figures.map(({ goal, what, value, met }) => [`${goal ?? ""} ${what}`, value, mark(met)]);
    process.stdout.write(`${table(["figure", "measured", "reached"], rows)}\n`);
    for (const { title, heads, rows: more } of this.found.details) {
      process.stdout.write(`\n${title}\n\n${table(heads, more)}\n`);
    }
  }
}

/** CPU time of all that does not belong to the measurement. Its own processes that have ended count with this one. */
async function others() {
  const own = Object.values(await cpu()).reduce((sum, ms) => sum + ms, 0);
  return { at: Date.now(), ms: (await busy()) - own };
}

export function mark(met) {
  if (met === null) return "";
  return met ? "yes" : "no";
}

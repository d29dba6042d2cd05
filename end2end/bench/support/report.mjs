// One table of everything that was measured, beside the goals.
//
//   node report.mjs FOLDER [--write FILE]
//
// FOLDER holds what the measurements left. With `--write` the table goes into FILE, too; BENCH_NOTE is a sentence about
// this measurement that is to stand there.

import { execFileSync } from "node:child_process";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

import { GOALS, HELD_BY_TESTS } from "./goals.mjs";
import { mark } from "./results.mjs";
import { number } from "./statistics.mjs";
import { plainTable, table } from "./table.mjs";

const HEADS = ["what", "goal", "measured", "reached"];

function version(program, words) {
  try {
    return execFileSync(program, words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "unknown";
  }
}

async function machine() {
  const all = cpus();
  const system = (await readFile("/etc/os-release", "utf8").catch(() => "")).match(/^PRETTY_NAME="(.*)"$/m);
  const postgres = process.env.PG_BIN ? version(join(process.env.PG_BIN, "postgres"), ["--version"]) : "unknown";
  return {
    processor: `${all[0]?.model.trim()}, ${all.length} cores`,
    memory: `${number(totalmem() / 1024 ** 3)} GiB`,
    system: system?.[1] ?? "unknown",
    browser: version(process.env.CHROMIUM, ["--version"]).split(" ").slice(0, 2).join(" "),
    database: postgres.replace(/^postgres \(PostgreSQL\) (\S+).*/, "PostgreSQL $1"),
  };
}

/** The table's rows: each goal with what was measured for it, then the figures that no goal is about. */
function rows(figures) {
  const all = GOALS.flatMap(({ id, what, goal }) => {
    const own = figures.filter((figure) => figure.goal === id);
    if (own.length === 0) return [[what, goal, HELD_BY_TESTS[id] ?? "not measured yet", ""]];
    return own.map((figure, place) => [
      place === 0 ? `${what}: ${figure.what}` : `… ${figure.what}`,
      place === 0 ? goal : "",
      figure.value,
      mark(figure.met),
    ]);
  });
  const others = figures.filter((figure) => !figure.goal).map(({ what, value }) => [what, "", value, ""]);
  return [...all, ...others];
}

function page(all, found, about) {
  const load = found.flatMap((one) => one.load);
  const shares = found.map((one) => one.others * 100);
  const others = [Math.min(...shares), Math.max(...shares)].map((share) => number(Math.max(0, share)));
  const words = [
    "# Benchmarks",
    "",
    "Written by `make bench ARGS=--write`: a release build, every file of `end2end/bench/`. Latency, streams, viewers, Markdown and opening are measured three times, of which the middle one stands here. Times are of one host's clock.",
    "",
    `Machine: ${about.processor}, ${about.memory} of memory, ${about.system}, ${about.browser}, ${about.database}. Server, database, simulator, browser and load generator share it. Measured on ${new Date().toISOString().slice(0, 10)}; meanwhile everything else on the machine used ${others.join(" to ")} % of a core, by file, and the load average of the last minute, the measurement included, was ${number(Math.min(...load), 1)} to ${number(Math.max(...load), 1)}.`,
    ...(process.env.BENCH_NOTE ? ["", process.env.BENCH_NOTE] : []),
    "",
    plainTable(HEADS, all),
  ];
  for (const { title, words: sentence, heads, rows: cells } of found.flatMap((one) => one.details)) {
    words.push("", `## ${title}`, "", sentence, "", plainTable(heads, cells));
  }
  return `${words.join("\n")}\n`;
}

const [folder, option, file] = process.argv.slice(2);
const names = (await readdir(folder)).filter((name) => name.endsWith(".json")).sort();
const found = await Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name), "utf8"))));
const about = await machine();
const all = rows(found.flatMap((one) => one.figures));

process.stdout.write(`\n${Object.values(about).join(" · ")}\n\n${table(HEADS, all)}\n`);
for (const { title, heads, rows: cells } of found.flatMap((one) => one.details)) {
  process.stdout.write(`\n${title}\n\n${table(heads, cells)}\n`);
}
if (option === "--write") {
  await writeFile(file, page(all, found, about));
  process.stdout.write(`\nWritten to ${file}\n`);
}

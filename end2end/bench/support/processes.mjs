// Who used the processor, from /proc.

import { execFileSync } from "node:child_process";
import { readFile, readdir } from "node:fs/promises";

const TICK_MS = 1000 / Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** Every process that can be seen: its parent, its name, its CPU time and that of its children that have ended. */
async function all() {
  const processes = new Map();
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(() => null);
    if (!stat) continue;
    // The name stands in parentheses and may hold anything.
    const end = stat.lastIndexOf(")");
    const fields = stat.slice(end + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    processes.set(Number(name), {
      parent: Number(fields[1]),
      name: stat.slice(stat.indexOf("(") + 1, end),
      ms: ticks * TICK_MS,
    });
  }
  return processes;
}

/** To whom a process belongs: it is found by the child of this process that it descends from. */
async function roles(processes) {
  const children = new Map();
  for (const [pid, { parent }] of processes) {
    if (parent !== process.pid) continue;
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    const second = words.split("\0")[1];
    children.set(pid, second === "serve" ? "server" : second === "simulate" ? "simulator" : "browser");
  }
  return (pid) => {
    if (pid === process.pid) return "bench";
    for (let at = pid; processes.has(at); at = processes.get(at).parent) {
      const role = children.get(at);
      if (!role) continue;
      return role === "server" && at !== pid ? "database" : role;
    }
    return null;
  };
}

/**
 * CPU time so far, in milliseconds, of `server`, `database` (all that the server started), `simulator`, `browser` and
 * `bench` (this process with its plain viewers).
 */
export async function cpu() {
  const processes = await all();
  const roleOf = await roles(processes);
  const sums = { server: 0, database: 0, simulator: 0, browser: 0, bench: 0 };
  for (const [pid, { ms }] of processes) {
    const role = roleOf(pid);
    if (role) sums[role] += ms;
  }
  return sums;
}

/** CPU time of the whole machine so far that was not idle, in milliseconds. */
export async function busy() {
  const [line] = (await readFile("/proc/stat", "utf8")).split("\n");
  // user nice system idle iowait irq softirq steal
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return (ticks.reduce((sum, part) => sum + part, 0) - ticks[3] - ticks[4]) * TICK_MS;
}

/** The share of one core that each used between two readings `ms` apart. */
export function shares(before, after, ms) {
  return Object.fromEntries(Object.keys(after).map((role) => [role, (after[role] - before[role]) / ms]));
}

/** `server 12 %, database 8 %, …` of one core. */
export function shareWords(used, roles = Object.keys(used)) {
  return roles.map((role) => `${role} ${Math.round(used[role] * 100)} %`).join(", ");
}

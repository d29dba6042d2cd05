// The real binary as a process: started on a free port with a data folder of its own, stopped, killed, asked to verify.

import { spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_MS = 60_000;
/** A little more than the grace period that the server is given below. */
const STOP_MS = 15_000;
const GRACE_SECONDS = 2;

/** A port of loopback that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function binary() {
  const path = process.env.RUNLOOM_BINARY;
  if (!path) throw new Error("RUNLOOM_BINARY must name the server's binary (`make test` sets it)");
  return path;
}

/** The caller's environment without its settings and keys. */
function environment(extra) {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(RUNLOOM_.*|.*_API_KEY|DATABASE_URL|RUST_LOG|RUST_BACKTRACE)$/.test(name),
  );
  return {
    ...Object.fromEntries(kept),
    NO_COLOR: "1",
    RUNLOOM_SERVER__GRACE_SECONDS: String(GRACE_SECONDS),
    // What fails is looked at where it failed; rotation.spec.mjs lets another provider go on.
    RUNLOOM_RECOVERY__ROTATIONS: "0",
    ...extra,
  };
}

/** Runs the binary to its end. */
export function runToEnd(args, extra = {}, timeoutMs = 30_000) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary(), args, { env: environment(extra), stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (part) => (output += part));
    child.stderr.on("data", (part) => (output += part));
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, output });
    });
  });
}

/** Ends a process that may be gone already. */
function end(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Servers that live: they end with this process, however it ends. */
const living = new Set();
process.once("exit", () => living.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

export class Server {
  #child = null;
  #ended = null;
  #base = null;
  #log = [];
  #rest = "";

  /**
   * `speed` makes the built-in demo provider so many times faster; `env` are further variables; `token` is what the
   * server asks for.
   */
  constructor({ speed = 20, env = {}, token = null } = {}) {
    this.token = token;
    this.env = { ...env, RUNLOOM_TEST_DEMO_SPEED: String(speed) };
    if (token) this.env.RUNLOOM_TOKEN = token;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get dataDir() {
    return join(this.#base, "data");
  }

  /** Starts it: for the first time on a free port with an empty data folder, later on the same. */
  async start() {
    if (!this.#base) {
      // As root PostgreSQL runs as another user, which must be able to reach the data folder.
      this.#base = await mkdtemp(join(tmpdir(), "runloom-end2end-"));
      await chmod(this.#base, 0o755);
      this.port = await freePort();
    }
    const args = ["serve", "--listen", `127.0.0.1:${this.port}`, "--data-dir", this.dataDir];
    const child = spawn(binary(), args, { env: environment(this.env), stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    living.add(child);
    child.once("exit", () => living.delete(child));
    const serves = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`the server does not serve after ${START_MS} ms`)), START_MS);
      const hear = (part) => {
        const lines = (this.#rest + part).split("\n");
        this.#rest = lines.pop();
        this.#log.push(...lines);
        if (lines.some((line) => line.includes("serves http://"))) {
          clearTimeout(timer);
          resolve();
        }
      };
      child.stderr.on("data", hear);
      child.stdout.on("data", hear);
      this.#ended = new Promise((ended) => {
        child.once("error", (error) => {
          clearTimeout(timer);
          reject(error);
          ended({ code: null, signal: null });
        });
        child.once("exit", (code, signal) => {
          clearTimeout(timer);
          reject(new Error(`the server ended with ${code ?? signal} before it served`));
          ended({ code, signal });
        });
      });
    });
    serves.catch(() => {});
    try {
      await serves;
    } catch (error) {
      throw new Error(`${error.message}\n${this.log()}`);
    }
    const ready = await this.fetch("/readyz");
    if (!ready.ok) throw new Error(`the server serves, but /readyz says ${ready.status}`);
    return this;
  }

  /** The last lines of its log. */
  log(lines = 40) {
    return this.#log.slice(-lines).join("\n");
  }

  /** Lines of its log that no healthy server writes. */
  alarms() {
    return this.#log.filter((line) => /\bERROR\b|panicked/.test(line));
  }

  /** A request to it; `path` begins with a slash. */
  async fetch(path, init = {}) {
    const headers = { ...init.headers };
    if (this.token) headers.authorization = `Bearer ${this.token}`;
    return fetch(this.url + path, { ...init, headers });
  }

  /** The JSON answer of a request that must succeed. */
  async json(path, body) {
    const init = body
      ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }
      : {};
    const answer = await this.fetch(path, init);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** Starts a session with a prompt. */
  async begin(prompt) {
    const { session_id: session } = await this.json("/api/sessions", {});
    const { run_id: run } = await this.json(`/api/sessions/${session}/runs`, { prompt });
    return { session, run };
  }

  /** Another run of a session. */
  async more(session, prompt) {
    return (await this.json(`/api/sessions/${session}/runs`, { prompt })).run_id;
  }

  snapshot(run) {
    return this.json(`/api/runs/${run}/snapshot`);
  }

  /** The ops of a run after `seq`, as the journal has them. */
  async ops(run, seq) {
    const all = [];
    for (;;) {
      const after = all.at(-1)?.seq ?? seq;
      const answer = await this.fetch(`/api/runs/${run}/ops?after=${after}`);
      const part = (await answer.text()).trim();
      if (!part) return all;
      all.push(...part.split("\n").map((line) => JSON.parse(line)));
    }
  }

  /** `runloom verify`: the digest of the stored rows; throws when journal and rows do not agree. */
  async verify(run) {
    const { code, output } = await runToEnd(["verify", run, "--data-dir", this.dataDir], this.env);
    const digest = /^digest\s+(\S+)$/m.exec(output)?.[1];
    if (code !== 0 || !digest) throw new Error(`runloom verify ${run} ended with ${code}:\n${output}`);
    return digest;
  }

  /** How other servers reach the database that this one runs. */
  async databaseUrl() {
    const password = (await readFile(join(this.dataDir, "postgres.password"), "utf8")).trim();
    const lines = (await readFile(join(this.dataDir, "postgres", "data", "postmaster.pid"), "utf8")).split("\n");
    return `postgres://runloom:${password}@localhost/runloom?host=${encodeURIComponent(lines[4])}`;
  }

  /** From now on it does nothing at all; the database that it runs goes on. */
  pause() {
    this.#child.kill("SIGSTOP");
  }

  /** It goes on. */
  proceed() {
    this.#child.kill("SIGCONT");
  }

  /** kill -9. */
  async kill() {
    this.#child.kill("SIGKILL");
    await this.#ended;
    this.#child = null;
  }

  /** Stops it as a service manager does. Gives what is wrong with how it ended: nothing, if all is well. */
  async stop() {
    if (!this.#child) return [];
    const problems = [];
    this.#child.kill("SIGTERM");
    const late = setTimeout(() => {
      problems.push(`it did not stop within ${STOP_MS} ms of SIGTERM`);
      this.#child.kill("SIGKILL");
    }, STOP_MS);
    const { code, signal } = await this.#ended;
    clearTimeout(late);
    this.#child = null;
    if (code !== 0) problems.push(`it ended with ${code ?? signal}, not with 0`);
    for (const { pid, words } of await this.#left()) {
      problems.push(`it left process ${pid} behind: ${words}`);
      end(pid);
    }
    return problems;
  }

  /** Processes that live in the data folder or name it. They are this server's, since the folder is. */
  async #left() {
    const left = [];
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
      const words = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
      const folder = await readlink(`/proc/${name}/cwd`).catch(() => "");
      if (words.includes(this.#base) || folder.startsWith(this.#base)) {
        left.push({ pid: Number(name), words: words.replaceAll("\0", " ").trim() });
      }
    }
    return left;
  }

  /** Ends what is left of it, and its data. */
  async clear() {
    if (this.#child) {
      this.#child.kill("SIGKILL");
      await this.#ended;
      this.#child = null;
    }
    if (!this.#base) return;
    for (const { pid } of await this.#left()) end(pid);
    await rm(this.#base, { recursive: true, force: true, maxRetries: 5 });
  }
}

// `runloom simulate` as a process of its own, so that its work is told apart from the server's.

import { spawn } from "node:child_process";

import { freePort } from "../../support/server.mjs";
import { Simulator } from "../../support/simulator.mjs";
import { until } from "../../support/until.mjs";

export class Simulation {
  #child;

  async start() {
    this.port = await freePort();
    this.#child = spawn(process.env.RUNLOOM_BINARY, ["simulate", "--listen", `127.0.0.1:${this.port}`], {
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, RUNLOOM_LOG__FILTER: "warn" },
    });
    const child = this.#child;
    process.once("exit", () => child.kill());
    await until("the simulator answers", () => this.fetch("/_sim/gates").catch(() => null));
    this.control = new Simulator(this);
    return this;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  fetch(path, init = {}) {
    return fetch(this.url + path, init);
  }

  async json(path) {
    const answer = await this.fetch(path);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** When each delta of a load stream was handed to its socket, by index. */
  async sent(id) {
    return (await this.json(`/_sim/load/${id}`)).sent_ms;
  }

  async stop() {
    if (!this.#child) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGTERM");
    await ended;
    this.#child = null;
  }
}

/** The server's setting for one provider. */
export function providerSetting(kind, url) {
  const model = '{ id = "bench", class = "thinking", context = 10000000 }';
  return {
    RUNLOOM_PROVIDERS: `[{ id = "bench", kind = "${kind}", base_url = "${url}", models = [${model}] }]`,
  };
}

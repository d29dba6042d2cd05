// A TCP proxy between the page and the server, whose network can fail.

import { connect, createServer } from "node:net";
import { setTimeout } from "node:timers/promises";

/** How a network drips: two drops a frame or so. */
const DROP_BYTES = 2_048;
const DROP_MS = 8;

export class Proxy {
  #server;
  #pairs = new Set();
  #swallows = false;
  #refuses = false;
  #drips = false;

  constructor(target) {
    this.target = target;
  }

  async start() {
    this.#server = createServer({ pauseOnConnect: true }, (near) => this.#accept(near));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.port = this.#server.address().port;
    return this;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get connections() {
    return this.#pairs.size;
  }

  #accept(near) {
    if (this.#refuses) {
      near.destroy();
      return;
    }
    const far = connect(this.target, "127.0.0.1");
    const pair = { near, far };
    this.#pairs.add(pair);
    const end = () => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      from.on("data", (part) => {
        if (this.#drips && from === far) this.#drip(part, from, to);
        else if (!to.write(part)) from.pause();
      });
      to.on("drain", () => {
        if (!this.#swallows) from.resume();
      });
      from.on("error", end);
      from.on("close", end);
    }
    if (this.#swallows) {
      near.pause();
      far.pause();
    } else {
      near.resume();
    }
  }

  /** Passes a part on in drops, with a pause after each; what comes after it waits. */
  async #drip(part, from, to) {
    from.pause();
    for (let place = 0; place < part.length && !to.destroyed; place += DROP_BYTES) {
      to.write(part.subarray(place, place + DROP_BYTES));
      await setTimeout(DROP_MS);
    }
    if (!this.#swallows) from.resume();
  }

  /** While on, what the server sends comes slowly, a few kilobytes at a time. */
  drip(on) {
    this.#drips = on;
  }

  /** Breaks all connections that are open now. */
  drop() {
    for (const { near, far } of [...this.#pairs]) {
      near.resetAndDestroy();
      far.resetAndDestroy();
    }
  }

  /** While on, every new connection is broken at once. */
  refuse(on) {
    this.#refuses = on;
  }

  /**
   * While on, connections are taken and stay open, but nothing passes in either direction: no byte, no end, no error.
   * Afterwards what was held passes, as TCP would send it again.
   */
  swallow(on) {
    this.#swallows = on;
    for (const { near, far } of this.#pairs) {
      if (on) {
        near.pause();
        far.pause();
      } else {
        near.resume();
        far.resume();
      }
    }
  }

  async close() {
    for (const { near, far } of [...this.#pairs]) {
      near.destroy();
      far.destroy();
    }
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

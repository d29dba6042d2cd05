// The control of the demo provider inside the server: its gates, and what became of its replies.

export class Simulator {
  constructor(server) {
    this.server = server;
    this.armed = new Set();
  }

  async #gate(name, what, method) {
    const answer = await this.server.fetch(`/_sim/gates/${encodeURIComponent(name)}/${what}`, { method });
    if (!answer.ok) throw new Error(`gate ${name}, ${what}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** From now on streams stop at these gates. */
  async arm(...names) {
    for (const name of names) {
      this.armed.add(name);
      await this.#gate(name, "arm", "POST");
    }
  }

  /** Streams that wait at the gate go on. */
  async open(name) {
    this.armed.delete(name);
    await this.#gate(name, "open", "POST");
  }

  /** Waits until a stream waits at the gate. */
  reached(name) {
    return this.#gate(name, "wait?timeout_ms=30000", "GET");
  }

  async openAll() {
    for (const name of [...this.armed]) await this.open(name);
  }

  connections() {
    return this.server.json("/_sim/connections");
  }

  /** Waits until no reply is open. */
  async idle() {
    const answer = await this.server.fetch("/_sim/connections/idle?timeout_ms=30000");
    if (!answer.ok) throw new Error(`replies are still open: ${await answer.text()}`);
    return answer.json();
  }
}

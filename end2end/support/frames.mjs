// The page's WebSocket in the test's hands: its frames can be passed on one op at a time, dropped, doubled or changed.

export class Frames {
  /** Must be made before the page is opened. */
  static async take(page) {
    const frames = new Frames(page);
    await page.routeWebSocket("**/api/stream", (socket) => frames.#route(socket));
    return frames;
  }

  #queue = Promise.resolve();

  constructor(page) {
    this.page = page;
    /** While set, each op comes in a frame of its own, and the next one only after the page was drawn. */
    this.slowly = false;
    /** Is given each frame of the server, parsed, with its place; gives the frames that pass in its stead. */
    this.change = (frame) => [frame];
    /** How many frames of the server have come. */
    this.count = 0;
  }

  #route(socket) {
    const server = socket.connectToServer();
    server.onMessage((text) => {
      this.#queue = this.#queue.then(() => this.#pass(socket, text)).catch(() => {});
    });
  }

  async #pass(socket, text) {
    const changed = this.change(JSON.parse(text), this.count++);
    for (const frame of changed) {
      if (!this.slowly || frame.type !== "execution_stream") {
        socket.send(JSON.stringify(frame));
        continue;
      }
      for (const [place, op] of frame.ops.entries()) {
        socket.send(JSON.stringify({ ...frame, seq: frame.seq + place, ops: [op] }));
        await drawn(this.page);
      }
    }
  }
}

/** Two frames later everything that came before is on the screen. */
export function drawn(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

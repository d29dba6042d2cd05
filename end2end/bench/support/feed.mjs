// Streams a text into the page's own code at an exact pace: so many deltas of 4 characters each animation frame.
//
// The page's WebSocket is held back until the run is over. Its ops are then cut anew, into deltas of 4 characters, and
// handed to the page as frames of the same form, so that network, server and database take no part in the figures.

import { until } from "../../support/until.mjs";
import { Pace } from "./pace.mjs";

/* Runs in the page before anything else. */
function take() {
  const Native = globalThis.WebSocket;
  const kept = [];
  let socket = null;
  let isHeld = false;
  let frames = [];
  let next = 0;

  class Held extends Native {
    #hear = null;
    constructor(...words) {
      super(...words);
      socket = this;
      super.addEventListener("message", (event) => {
        if (isHeld && event.data.startsWith('{"type":"execution_stream"')) kept.push(event.data);
        else this.give(event.data);
      });
    }
    get onmessage() {
      return this.#hear;
    }
    set onmessage(hear) {
      this.#hear = hear;
    }
    give(data) {
      this.#hear?.call(this, new MessageEvent("message", { data }));
    }
  }
  globalThis.WebSocket = Held;

  const cut = (perFrame, size) => {
    const parsed = kept.splice(0).map((text) => JSON.parse(text));
    const { ops: _, seq: first, ...envelope } = parsed[0];
    let seq = first;
    let row = [];
    const flush = () => {
      if (row.length === 0) return;
      frames.push(JSON.stringify({ ...envelope, seq, ops: row }));
      seq += row.length;
      row = [];
    };
    for (const op of parsed.flatMap((frame) => frame.ops)) {
      if (op.op !== "block_delta") {
        flush();
        row = [op];
        flush();
        continue;
      }
      for (let at = 0; at < op.delta.length; at += size) {
        row.push({ ...op, offset: op.offset + at, delta: op.delta.slice(at, at + size) });
        if (row.length === perFrame) flush();
      }
    }
    flush();
  };

  globalThis.__feed = {
    hold: () => (isHeld = true),
    /** The `seq` of the last op that came. */
    reached: () => {
      if (kept.length === 0) return 0;
      const last = JSON.parse(kept.at(-1));
      return last.seq + last.ops.length - 1;
    },
    prepare: (perFrame, size) => {
      frames = [];
      next = 0;
      cut(perFrame, size);
      return frames.length;
    },
    /** Gives the page one frame each animation frame, up to `end`. */
    play: async (end) => {
      const played = await globalThis.__pace(next, end, (place) => socket.give(frames[place]));
      next = Math.max(next, end);
      return played;
    },
  };
}

export class Feed {
  /** Must be made before the page is opened. */
  static async take(page) {
    const pace = await Pace.of(page);
    await page.addInitScript(take);
    return new Feed(page, pace);
  }

  constructor(page, pace) {
    this.page = page;
    this.pace = pace;
  }

  hold() {
    return this.page.evaluate(() => globalThis.__feed.hold());
  }

  /** Waits until the page's socket has brought everything up to `seq`. */
  arrived(seq) {
    const reached = () => this.page.evaluate(() => globalThis.__feed.reached());
    return until(`the socket has brought op ${seq}`, async () => (await reached()) >= seq, {
      seen: reached,
      timeout: 60_000,
    });
  }

  /** Cuts what arrived; gives how many frames that makes. */
  prepare(perFrame, size = 4) {
    return this.page.evaluate(([count, length]) => globalThis.__feed.prepare(count, length), [perFrame, size]);
  }

  /** Plays up to a frame. Gives the frame gap, long tasks and work of that stretch. */
  play(end) {
    return this.pace.measure(() => this.page.evaluate((upTo) => globalThis.__feed.play(upTo), end));
  }
}

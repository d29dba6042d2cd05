// A viewer without a browser: the WebSocket `GET /api/stream`, with each frame's time and its bytes on the wire.

import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";

import { now } from "./clock.mjs";

const ACCEPT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455 §1.3
const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export class Socket {
  #socket;
  #rest = Buffer.alloc(0);
  #parts = [];

  /** `hear(text, at)` is given each message as a buffer, valid during the call only. */
  constructor(socket, hear) {
    this.#socket = socket;
    this.hear = hear;
    /** Bytes of frames so far, with their heads. */
    this.bytes = 0;
    this.frames = 0;
    /** Why it ended, if it did. */
    this.end = null;
    socket.setNoDelay(true);
    socket.on("data", (data) => this.#take(data));
    socket.on("error", (error) => (this.end ??= error.message));
    socket.on("close", () => (this.end ??= "closed"));
  }

  /** Connects to a server's address (`http://…`). */
  static connect(url, hear) {
    const key = randomBytes(16).toString("base64");
    const expected = createHash("sha1").update(key + ACCEPT).digest("base64");
    return new Promise((resolve, reject) => {
      const asked = request(`${url}/api/stream`, {
        agent: false,
        headers: {
          connection: "Upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": key,
        },
      });
      asked.once("error", reject);
      asked.once("response", (response) => {
        response.resume();
        reject(new Error(`the stream answers ${response.statusCode}, not 101`));
      });
      asked.once("upgrade", (response, socket, head) => {
        if (response.headers["sec-websocket-accept"] !== expected) {
          socket.destroy();
          reject(new Error("the stream does not speak the WebSocket protocol"));
          return;
        }
        const viewer = new Socket(socket, hear);
        if (head.length > 0) viewer.#take(head);
        resolve(viewer);
      });
      asked.end();
    });
  }

  subscribe(run, after = 0) {
    this.#send(TEXT, Buffer.from(JSON.stringify({ subscribe: { run, after } })));
  }

  close() {
    this.#socket.destroy();
  }

  #take(data) {
    const at = now();
    let buffer = this.#rest.length > 0 ? Buffer.concat([this.#rest, data]) : data;
    for (;;) {
      const frame = head(buffer);
      if (!frame || buffer.length < frame.end) break;
      this.bytes += frame.end;
      this.#frame(frame, buffer.subarray(frame.start, frame.end), at);
      buffer = buffer.subarray(frame.end);
    }
    this.#rest = Buffer.from(buffer);
  }

  #frame({ opcode, isLast }, payload, at) {
    if (opcode === PING) this.#send(PONG, payload);
    if (opcode === CLOSE) this.end ??= `closed by the server: ${payload.subarray(2).toString()}`;
    if (opcode > TEXT) return;
    if (!isLast || this.#parts.length > 0) {
      this.#parts.push(Buffer.from(payload));
      if (!isLast) return;
      payload = Buffer.concat(this.#parts);
      this.#parts = [];
    }
    this.frames += 1;
    // The server's heartbeat wants an answer.
    if (payload.length < 64 && payload.includes('"type":"ping"')) {
      const { at: sent } = JSON.parse(payload.toString());
      this.#send(TEXT, Buffer.from(JSON.stringify({ pong: sent })));
      return;
    }
    try {
      this.hear(payload, at);
    } catch (error) {
      // Thrown from here it would end the process, and leave the server behind.
      this.end ??= error.stack;
      this.#socket.destroy();
    }
  }

  #send(opcode, payload) {
    const mask = randomBytes(4);
    const masked = Buffer.from(payload.map((byte, place) => byte ^ mask[place % 4]));
    const start = Buffer.from([0x80 | opcode, 0x80 | Math.min(payload.length, 126)]);
    const length = payload.length < 126 ? Buffer.alloc(0) : Buffer.from([payload.length >> 8, payload.length & 255]);
    this.#socket.write(Buffer.concat([start, length, mask, masked]));
  }
}

/** Where the first frame of a buffer starts and ends (RFC 6455 §5.2); nothing while its head is not whole. */
function head(buffer) {
  if (buffer.length < 2) return null;
  const short = buffer[1] & 0x7f;
  const start = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (buffer.length < start) return null;
  const length = short === 127 ? Number(buffer.readBigUInt64BE(2)) : short === 126 ? buffer.readUInt16BE(2) : short;
  return { opcode: buffer[0] & 15, isLast: (buffer[0] & 0x80) !== 0, start, end: start + length };
}

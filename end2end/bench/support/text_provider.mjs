// A provider that answers with a given text: Chat Completions as a stream, for texts that no scenario has.

import { createServer } from "node:http";

/** Usual characters of one event; the reader of a measurement cuts anew. */
const EVENT = 4096;

/** A piece of a tool call's arguments; the first one begins the call. */
function call(name, piece, isFirst, index) {
  const start = isFirst ? { id: `call_${index + 1}`, type: "function" } : {};
  return { index, ...start, function: { ...(isFirst ? { name } : {}), arguments: piece } };
}

export class TextProvider {
  #server;
  #answers = new Map();

  async start() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  /** The value of `base_url`. */
  get url() {
    return `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  /**
   * A prompt and its answer: parts `{content}`, `{reasoning_content}`, `{tool, arguments}`, or `{cut: true}`, where the
   * connection breaks. `size` is the characters of one event. Gives a function that lets it begin.
   */
  serve(prompt, parts, size = EVENT) {
    let begin;
    const begun = new Promise((resolve) => (begin = resolve));
    this.#answers.set(prompt, { parts, begun, size });
    return begin;
  }

  async #answer(request, response) {
    let body = "";
    for await (const part of request) body += part;
    const asked = JSON.parse(body).messages.findLast((message) => message.role === "user");
    const answer = this.#answers.get(asked?.content);
    if (!answer) {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `no text is served for ${JSON.stringify(asked)}` } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    const send = (delta, finish = null) => {
      const chunk = { id: "text", object: "chat.completion.chunk", created: 0, model: "text" };
      return response.write(
        `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      );
    };
    await answer.begun;
    let calls = 0;
    for (const part of answer.parts) {
      if (part.cut) {
        await new Promise((resolve) => response.write("\n", resolve));
        response.destroy();
        return;
      }
      const [name, text] = part.tool ? ["tool_calls", part.arguments] : Object.entries(part)[0];
      for (let at = 0; at < text.length; at += answer.size) {
        const piece = text.slice(at, at + answer.size);
        if (!send({ [name]: part.tool ? [call(part.tool, piece, at === 0, calls)] : piece })) {
          await new Promise((resolve) => response.once("drain", resolve));
        }
      }
      if (part.tool) calls += 1;
    }
    send({}, "stop");
    response.end("data: [DONE]\n\n");
  }

  async close() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

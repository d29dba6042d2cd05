// An MCP server for the tests, over standard input and output: its tools do what servers should, and what they should not.

import { createInterface } from "node:readline";

const [mode] = process.argv.slice(2);
if (mode === "dies") {
  process.stderr.write("no licence was found\n");
  process.exit(3);
}

const tool = (name, more = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
  ...more,
});
const tools = [
  tool("echo", {
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    annotations: { readOnlyHint: true },
  }),
  ...["fail", "refuse", "steps", "wait", "environment", "picture", "stop", "garbage", "hang", "more", "long"].map((name) => tool(name)),
  tool("a name with spaces"),
];

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (words, more = {}) => ({ content: [{ type: "text", text: words }], ...more });

function call(id, { name, arguments: given, _meta }) {
  const result = (result) => send({ id, result });
  switch (name) {
    case "echo":
      return result(text(given.text));
    case "fail":
      return result(text("It cannot be done.", { isError: true }));
    case "refuse":
      return send({ id, error: { code: -32602, message: "Not like that." } });
    case "steps":
      return steps(_meta.progressToken, () => result(text("done")));
    case "wait":
      process.stderr.write("waiting\n");
      return undefined;
    case "environment":
      return result(text(JSON.stringify(process.env)));
    case "picture":
      return result({ content: [{ type: "image", data: "AAAA".repeat(100), mimeType: "image/png" }] });
    case "stop":
      process.stdout.write('{"jsonrpc":"2.0","id":');
      return process.exit(7);
    case "garbage":
      process.stdout.write("\u0000\u0001garbage\n{{{\n[]\n{\"jsonrpc\":\"2.0\"}\n");
      process.stdout.write(`{"jsonrpc":"2.0","id":"${id}x","result":{}}\n`);
      return send({ id, result: { surprise: true } });
    case "hang":
      // Whoever asked knows now that it has begun.
      send({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress: 1 } });
      for (;;);
    case "more":
      tools.push(tool("added"));
      send({ method: "notifications/tools/list_changed" });
      return result(text("There is one more."));
    case "long":
      return result(text("x".repeat(3_000_000)));
    default:
      return send({ id, error: { code: -32601, message: "unknown tool" } });
  }
}

/** Three steps that take a moment each, as real work does. */
function steps(token, then) {
  const step = (progress) => {
    if (progress > 3) return then();
    const params = { progressToken: token, progress, total: 3, message: `step ${progress}` };
    send({ method: "notifications/progress", params });
    return setTimeout(step, 50, progress + 1);
  };
  return step(1);
}

const cancelled = [];
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (mode === "silent") return;
  if (mode === "noise") {
    process.stdout.write("Welcome to the server!\n");
    return;
  }
  switch (method) {
    case "initialize":
      return send({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "for tests", version: "1" },
        },
      });
    case "tools/list":
      return send({ id, result: { tools } });
    case "tools/call":
      if (params.name === "echo" && params.arguments.text === "cancelled?") {
        return send({ id, result: text(String(cancelled.length)) });
      }
      return call(id, params);
    case "notifications/cancelled":
      return cancelled.push(params.requestId);
    case "ping":
      return send({ id, result: {} });
    default:
      return undefined;
  }
});

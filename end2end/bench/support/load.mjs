// The four times of each delta of a load stream: sent by the simulator, committed, received, painted.

const BYTES = 4;

/** Marks `times` of all deltas that a `block_delta` op holds. */
function mark(times, op, at) {
  if (op.op !== "block_delta") return;
  const end = (op.offset + op.delta.length) / BYTES;
  for (let index = Math.ceil(op.offset / BYTES); index < end; index += 1) times[index] ??= at;
}

/** By index, from the frames that a viewer received: pairs of time and text. */
export function receivedTimes(frames, run) {
  const times = [];
  for (const [at, text] of frames) {
    const frame = JSON.parse(text);
    if (frame.type !== "execution_stream" || frame.run_id !== run) continue;
    for (const op of frame.ops) mark(times, op, at);
  }
  return times;
}

/** By index, from the journal: the server's clock just before the commit that holds the delta. */
export async function committedTimes(server, run) {
  const times = [];
  let after = 0;
  for (;;) {
    const answer = await server.fetch(`/api/runs/${run}/ops?after=${after}`);
    if (!answer.ok) throw new Error(`the journal answers ${answer.status}`);
    const entries = (await answer.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    if (entries.length === 0) return times;
    for (const entry of entries) mark(times, entry, entry.at);
    after = entries.at(-1).seq;
  }
}

/** By index, from what the page saw: pairs of time and the last index in the DOM. */
export function paintedTimes(painted) {
  const times = [];
  for (const [at, index] of painted) {
    while (times.length <= index) times.push(at);
  }
  return times;
}

/** Milliseconds from one time to the other, of every delta. Throws when a delta is missing. */
export function spans(from, to, count, what) {
  const spans = [];
  for (let index = 0; index < count; index += 1) {
    const span = to[index] - from[index];
    if (!Number.isFinite(span)) throw new Error(`delta ${index} of ${count} was never ${what}`);
    spans.push(span);
  }
  return spans;
}

/** The bytes of a load stream's text. */
export function contentBytes(count) {
  return count * BYTES;
}

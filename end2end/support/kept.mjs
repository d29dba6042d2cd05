// What a page keeps of a run whose server was killed.

import assert from "node:assert/strict";

/** What the browser says of a server that is gone. */
export const BROKEN = [/WebSocket connection to .* failed/, /net::ERR_(CONNECTION_(RESET|REFUSED|CLOSED|ABORTED)|EMPTY_RESPONSE)/];

/** Everything that was seen is there: the same pieces in the same order, each with at least the same text. */
export function assertKept(before, after, where) {
  assert.ok(after.pieces.length >= before.pieces.length, `${where}: no piece is missing`);
  for (const [place, seen] of before.pieces.entries()) {
    const kept = after.pieces[place];
    assert.deepEqual([kept.id, kept.kind, kept.name], [seen.id, seen.kind, seen.name], where);
    if (seen.kind === "text") {
      assert.ok(kept.text.startsWith(seen.text), `${where}: “${kept.text}” begins with “${seen.text}”`);
    }
    if (seen.state === "complete" || seen.state === "succeeded") assert.deepEqual(kept, seen, where);
  }
}

/** What the page shows as not over yet. */
export function unsettled(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("[data-state]")]
      .filter((element) => ["running", "pending", "streaming", "queued", "waiting"].includes(element.dataset.state))
      .map((element) => `${element.className} ${element.dataset.state}`),
  );
}

// Waiting for a condition, with words for when it does not come.

const STEP_MS = 15;

/** How long a condition may take that has no limit of its own: machines that run tests are slow. */
export const PATIENCE_MS = 20_000;

/**
 * Asks `read` until it gives something true, and gives that. `what` says what is waited for. When it does not come, the
 * error holds the last answer, or what `seen` gives.
 */
export async function until(what, read, { timeout = PATIENCE_MS, seen = null } = {}) {
  const end = Date.now() + timeout;
  let last;
  for (;;) {
    last = await read();
    if (last) return last;
    if (Date.now() >= end) break;
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
  const known = seen ? await seen() : last;
  throw new Error(`not within ${timeout} ms: ${what}. Last seen: ${JSON.stringify(known, null, 1)}`);
}

/** A time that has to pass because the rule under test is about time. */
export function passing(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

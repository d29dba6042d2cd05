// The host's clock, which server, simulator, page and this process share.

/** How far a clock that counts from the start of its process may be off. */
const TOLERANCE_MS = 2;

/** Milliseconds since the epoch, with a fraction. */
export function now() {
  return performance.timeOrigin + performance.now();
}

/** Throws when the counted clock of this process or of a page has left the host's. */
export async function checkClocks(page) {
  const off = () => Math.abs(Date.now() - (performance.timeOrigin + performance.now()));
  const offs = { "this process": off(), "the page": page ? await page.evaluate(off) : 0 };
  for (const [whose, ms] of Object.entries(offs)) {
    if (ms > TOLERANCE_MS) throw new Error(`the clock of ${whose} is off by ${ms} ms: the host's clock was set`);
  }
}

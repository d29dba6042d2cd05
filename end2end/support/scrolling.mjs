// The page's scrolling: where its end is, what is read, and how both move.

import { drawn } from "./frames.mjs";
import { until } from "./until.mjs";

/** So close to the end counts as at the end. */
export const NEAR_PX = 8;
/** So far may the reading position move. */
export const STILL_PX = 2;

/** How far the page is from its end. */
export const distance = (page) =>
  page.locator(".main__scroll").evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);

/** Calls `look` in the page after each frame: then everything that belongs to the frame is done, and it is what is seen. */
const AFTER_EACH_FRAME = `(look) => {
  let isOn = true;
  const next = () => requestAnimationFrame(() => setTimeout(() => { if (isOn) { look(); next(); } }, 0));
  next();
  return () => { isOn = false; };
}`;

/** Watches, after each frame, how far the page is from its end. */
export async function watchEnd(page) {
  await page.evaluate((afterEachFrame) => {
    const scroller = document.querySelector(".main__scroll");
    const ends = [];
    const stop = (0, eval)(afterEachFrame)(() =>
      ends.push(scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop),
    );
    globalThis.__ends = () => (stop(), ends);
  }, AFTER_EACH_FRAME);
  return () => page.evaluate(() => globalThis.__ends());
}

/** Takes what stands in the middle of what is read as the anchor, and watches after each frame where it stands. */
export async function watchAnchor(page) {
  await page.evaluate((afterEachFrame) => {
    const box = document.querySelector(".main__scroll").getBoundingClientRect();
    const points = Array.from({ length: 20 }, (_, step) => box.top + (box.height * (step + 1)) / 22);
    const anchor = points
      .map((y) => document.elementFromPoint(box.left + box.width / 2, y))
      .find((element) => element?.closest(".md__piece") && element !== element.closest(".md__piece"));
    if (!anchor) throw new Error("there is no piece to read");
    const top = () => anchor.getBoundingClientRect().top;
    const first = top();
    const moves = [];
    const stop = (0, eval)(afterEachFrame)(() => moves.push(anchor.isConnected ? Math.abs(top() - first) : 1e9));
    globalThis.__moves = () => (stop(), moves);
  }, AFTER_EACH_FRAME);
  return () => page.evaluate(() => globalThis.__moves());
}

/** Turns the wheel upwards over the content, and waits until the page has come to rest. */
export async function wheelUp(page, pixels) {
  const box = await page.locator(".main__scroll").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, -pixels);
  await rest(page);
}

/** Waits until the page does not scroll any more. */
export async function rest(page) {
  const top = () => page.locator(".main__scroll").evaluate((element) => element.scrollTop);
  let before = await top();
  await until("scrolling has come to rest", async () => {
    await drawn(page);
    await drawn(page);
    const now = await top();
    const rests = now === before;
    before = now;
    return rests;
  });
}

// A page at every size and in both schemes, and what is found there.

import { drawn } from "./frames.mjs";

export const WIDE = { width: 1440, height: 900 };
export const TABLET = { width: 768, height: 1024 };
export const PHONE = { width: 390, height: 844 };
export const SMALL = { width: 360, height: 740 };
export const SCHEMES = ["light", "dark"];

/**
 * Opens a page at each size, does something there (`act`), and gives what `look` finds in each scheme, with its place.
 * With `once` the page is opened at the first size alone and then resized; `options` are those of its context.
 */
export async function walk(desk, what, path, { sizes, once = false, options = {}, act = async () => {}, look }) {
  const found = [];
  let viewer = null;
  for (const viewport of sizes) {
    if (viewer && once) {
      await viewer.page.setViewportSize(viewport);
    } else {
      await viewer?.context.close();
      viewer = await desk.viewer({ ...options, viewport });
      await viewer.page.goto(desk.server.url + path);
      await act(viewer.page);
    }
    const { page } = viewer;
    for (const scheme of SCHEMES) {
      await page.emulateMedia({ colorScheme: scheme });
      await drawn(page);
      const where = `${what}-${viewport.width}-${scheme}`;
      for (const problem of await look(page, { where, viewport, scheme })) {
        found.push(`${where}: ${typeof problem === "string" ? problem : JSON.stringify(problem)}`);
      }
    }
  }
  await viewer?.context.close();
  return found;
}

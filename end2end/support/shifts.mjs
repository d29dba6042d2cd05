// What moves on a page by itself: the browser's own layout shifts.

/** From now on the pages of this context note what moves in them. */
export function noteShifts(context) {
  return context.addInitScript(() => {
    globalThis.__shifts = [];
    new PerformanceObserver((list) => globalThis.__shifts.push(...list.getEntries())).observe({
      type: "layout-shift",
      buffered: true,
    });
  });
}

/** What moved by itself since the page was opened. */
export function shifts(page) {
  return page.evaluate(() =>
    globalThis.__shifts.map(({ value, sources }) => {
      const box = ({ x, y, width, height }) => `${x}, ${y}, ${width} × ${height}`;
      const moved = sources.map(
        ({ node, previousRect, currentRect }) =>
          `${node?.className || node?.nodeName || "something that is gone"} from ${box(previousRect)} to ${box(currentRect)}`,
      );
      return `${moved.join(", ")}: ${value}`;
    }),
  );
}

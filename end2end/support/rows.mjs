// Which states each tool row was seen in, by element: a row that is made anew is another element.

/** Must be called before the page is opened. */
export async function watchRows(page) {
  await page.addInitScript(() => {
    const rows = new Map();
    const note = (element) => {
      if (!rows.has(element)) rows.set(element, { id: element.dataset.blockId, states: [], heights: [] });
      const row = rows.get(element);
      if (row.states.at(-1) !== element.dataset.state) row.states.push(element.dataset.state);
      row.heights.push(element.getBoundingClientRect().height);
    };
    const look = () => document.querySelectorAll('#main [data-block-kind="tool_ref"]').forEach(note);
    new MutationObserver(look).observe(document, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ["data-state", "class"],
    });
    globalThis.__rows = rows;
  });
  return {
    /** In the order in which they appeared. */
    seen: () =>
      page.evaluate(() =>
        [...globalThis.__rows].map(([element, row]) => ({ ...row, isThere: element.isConnected })),
      ),
  };
}

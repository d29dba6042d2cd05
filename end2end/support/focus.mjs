// Where the focus is, in words, and whether it is seen.

import { until } from "./until.mjs";

/** The id, the node, the name or the tag of what has the focus. */
export function focused(page) {
  return page.evaluate(() => {
    const element = document.activeElement;
    if (!element || element === document.body) return "nothing";
    if (element.dataset.treeNode) return `item ${element.dataset.treeNode}`;
    if (element.dataset.detailsNode) return `details ${element.dataset.detailsNode}`;
    const row = element.matches(".row__toggle") && element.closest(".row");
    if (row) return `row ${row.dataset.nodeId ?? row.dataset.blockId}`;
    if (element.id) return `#${element.id}`;
    return element.getAttribute("aria-label") ?? element.textContent.trim() ?? element.localName;
  });
}

/** Waits until something has the focus, and is in sight with a mark that is seen. */
export async function focusOn(page, what) {
  await until(`the focus is on ${what}`, async () => (await focused(page)) === what, { seen: () => focused(page) });
  await until(`${what} is in sight`, () =>
    page.evaluate(() => {
      const { top, bottom, height } = document.activeElement.getBoundingClientRect();
      return height > 0 && bottom > 0 && top < innerHeight;
    }),
  );
}

/** Whether the focus has a mark around it. */
export function isMarked(page) {
  return page.evaluate(() => {
    const marks = (element) => {
      const { outlineStyle, boxShadow } = getComputedStyle(element);
      return outlineStyle !== "none" || boxShadow !== "none";
    };
    const element = document.activeElement;
    return [element, element.closest(".composer, .field")].some((part) => part && marks(part));
  });
}

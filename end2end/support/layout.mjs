// What lies over something else, is cut off, runs over, or is too small to be pressed.

/* Runs in the page. */
function read() {
  const problems = [];
  const root = document.documentElement;
  const name = (element) => {
    const words = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.localName} class="${element.getAttribute("class") ?? ""}"> “${words}”`;
  };
  if (root.scrollWidth > root.clientWidth) problems.push(`the page is ${root.scrollWidth} px wide in ${root.clientWidth}`);

  for (const scroller of document.querySelectorAll(".main__scroll, .page, .side, .details, .tree, .dialog")) {
    if (scroller.checkVisibility() && scroller.scrollWidth > scroller.clientWidth) {
      problems.push(`${name(scroller)} is ${scroller.scrollWidth} px wide in ${scroller.clientWidth}`);
    }
  }

  // What lies in the top layer is looked at by itself: it lies over the page on purpose.
  const top = document.querySelector("dialog:modal, [popover]:popover-open") ?? document.body;
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const isForReaders = (element) => element.closest(".sr-only, .skip, [aria-hidden=true], .follow") !== null;
  const shown = [...top.querySelectorAll("*")].filter((element) => isShown(element) && !isForReaders(element));

  // A text that does not fit is scrolled, or ends with an ellipsis.
  const scrolls = (overflow) => overflow === "auto" || overflow === "scroll";
  for (const element of shown) {
    // Within what scrolls sideways a line may be as long as it is.
    if (element instanceof SVGElement || element.parentElement.closest("pre, .md__scroll")) continue;
    const style = getComputedStyle(element);
    if (style.display === "inline" || style.display === "contents") continue;
    if (/^(INPUT|TEXTAREA|SELECT|OPTION|OPTGROUP|PROGRESS|DETAILS)$/.test(element.tagName)) continue;
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = element;
    // What turns takes more room at every moment, but lies over nothing.
    const moves = () => element.getAnimations({ subtree: true }).length > 0;
    if (scrollWidth > clientWidth + 1 && !scrolls(style.overflowX) && style.textOverflow !== "ellipsis" && !moves()) {
      problems.push(`${name(element)} holds ${scrollWidth} px in a width of ${clientWidth}`);
    }
    const isCut = style.overflowY === "hidden" || style.overflowY === "clip";
    if (scrollHeight > clientHeight + 1 && isCut && style.textOverflow !== "ellipsis") {
      problems.push(`${name(element)} holds ${scrollHeight} px in a height of ${clientHeight}`);
    }
  }

  // What is seen of a box: as much of it as the boxes around it let out.
  const windows = new Map();
  const windowOf = (element) => {
    if (!element || element === root) return { left: -1e6, top: -1e6, right: 1e6, bottom: 1e6 };
    if (windows.has(element)) return windows.get(element);
    const around = windowOf(element.parentElement);
    const style = getComputedStyle(element);
    const own = element.getBoundingClientRect();
    const seen = { ...around };
    if (style.overflowX !== "visible" || style.contain.includes("paint") || style.contain === "content") {
      seen.left = Math.max(seen.left, own.left);
      seen.right = Math.min(seen.right, own.right);
      seen.top = Math.max(seen.top, own.top);
      seen.bottom = Math.min(seen.bottom, own.bottom);
    }
    windows.set(element, seen);
    return seen;
  };
  const clip = (box, frame) => ({
    left: Math.max(box.left, frame.left),
    top: Math.max(box.top, frame.top),
    right: Math.min(box.right, frame.right),
    bottom: Math.min(box.bottom, frame.bottom),
  });
  const CONTROLS = "a[href], button, input, select, textarea, summary";
  const boxes = [];
  const range = document.createRange();
  for (const element of shown) {
    if (element.matches(CONTROLS) && getComputedStyle(element).display !== "inline") {
      boxes.push({ element, box: clip(element.getBoundingClientRect(), windowOf(element.parentElement)) });
    }
    for (const text of element.childNodes) {
      if (text.nodeType !== Node.TEXT_NODE || text.data.trim() === "") continue;
      range.selectNodeContents(text);
      for (const rect of range.getClientRects()) boxes.push({ element, box: clip(rect, windowOf(element)) });
    }
  }
  const seen = boxes.filter(({ box }) => box.right - box.left > 1 && box.bottom - box.top > 1);
  seen.sort((one, other) => one.box.top - other.box.top);
  for (const [place, one] of seen.entries()) {
    for (let next = place + 1; next < seen.length && seen[next].box.top < one.box.bottom - 2; next += 1) {
      const other = seen[next];
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const width = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const height = Math.min(one.box.bottom, other.box.bottom) - other.box.top;
      if (width > 1 && height > 2) {
        problems.push(`${name(one.element)} lies over ${name(other.element)} by ${Math.round(width)} × ${Math.round(height)}`);
      }
    }
  }
  // Of a box that scrolls more is seen later; everything else has to lie within the page.
  for (const { element, box } of seen) {
    if (box.left < -0.5 || box.right > root.clientWidth + 0.5) {
      problems.push(`${name(element)} lies outside: ${Math.round(box.left)} to ${Math.round(box.right)}`);
    }
  }

  /** What a finger needs, in CSS pixels. A link among words is as high as they are. */
  const LEAST = 24;
  for (const element of shown.filter((one) => one.matches(CONTROLS))) {
    if (getComputedStyle(element).display === "inline" || element.disabled) continue;
    // A field is as large as what frames it.
    const { width, height } = (element.closest(".field, .composer, .seg__opt") ?? element).getBoundingClientRect();
    if (width < LEAST - 0.5 || height < LEAST - 0.5) {
      problems.push(`${name(element)} is ${Math.round(width)} × ${Math.round(height)}`);
    }
  }
  return [...new Set(problems)];
}

/** In words, what is wrong with how the page is laid out. */
export function layout(page) {
  return page.evaluate(read);
}

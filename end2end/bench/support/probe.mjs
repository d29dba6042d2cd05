// When each delta of a load stream was received and painted, seen from inside the page.

/* Runs in the page before anything else. It parses nothing while the stream runs. */
function watch() {
  const now = () => performance.timeOrigin + performance.now();
  const Native = globalThis.WebSocket;
  const received = [];
  globalThis.WebSocket = class extends Native {
    constructor(...words) {
      super(...words);
      this.addEventListener("message", (event) => received.push([now(), event.data]));
    }
  };

  // A load stream is numbers of three digits in base 36, so the end of the text says how far it is.
  const last = () => {
    const block = [...document.querySelectorAll('#main [data-block-kind="text"]')].at(-1);
    for (let part = block?.lastElementChild; part; part = part.previousElementSibling) {
      const text = part.textContent.trimEnd();
      if (text) return parseInt(text.slice(-3), 36);
    }
    return -1;
  };
  const painted = [];
  let shown = -1;
  new MutationObserver(() => {
    const index = last();
    if (index <= shown) return;
    shown = index;
    // The frame after the one in which the text came into the DOM.
    requestAnimationFrame(() => painted.push([now(), index]));
  }).observe(document, { subtree: true, childList: true, characterData: true });
  globalThis.__probe = { received, painted };
}

export async function probe(page) {
  await page.addInitScript(watch);
  return {
    read: () => page.evaluate(() => globalThis.__probe),
  };
}

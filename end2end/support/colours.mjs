// What the page painted over its texts: by class the words, read from the browser's registry of highlights.

/* Runs in the page. */
function read() {
  const found = {};
  for (const [name, highlight] of CSS.highlights) {
    const words = [...highlight].map((place) => {
      const range = document.createRange();
      range.setStart(place.startContainer, place.startOffset);
      range.setEnd(place.endContainer, place.endOffset);
      return { text: range.toString(), isThere: place.startContainer.isConnected };
    });
    if (words.length > 0) found[name] = words.filter(({ isThere }) => isThere).map(({ text }) => text);
  }
  return found;
}

/** By the name of the highlight, such as `code-keyword`, its words. */
export function readColours(page) {
  return page.evaluate(read);
}

/** Whether each of `wanted` (`{class: word}`) is painted. */
export async function hasColours(page, wanted) {
  const colours = await readColours(page);
  return Object.entries(wanted).every(([name, word]) => (colours[`code-${name}`] ?? []).includes(word));
}

/** Holds the page's questions for colours until `go`. Must be made before the page asks. */
export async function hold(page) {
  let go;
  const held = new Promise((resolve) => {
    go = resolve;
  });
  const questions = [];
  await page.route("**/api/highlight", async (route) => {
    questions.push(route.request().postDataJSON());
    await held;
    await route.continue().catch(() => {});
  });
  return { go, questions };
}

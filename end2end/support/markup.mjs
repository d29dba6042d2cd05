// The elements and texts of a page, as the server sent them and as they are now.

/* Runs in the page. */
function read(sent) {
  // What may differ: marks of tests, what only a script can open, the nonce.
  const IGNORED = new Set(["data-hydrated", "nonce", "open"]);
  const lines = (body) => {
    const found = [];
    let text = "";
    const end = () => {
      if (text.trim()) found.push(text.replace(/\s+/g, " "));
      text = "";
    };
    const write = (node) => {
      if (node.nodeType === Node.TEXT_NODE) text += node.data;
      if (node.nodeType !== Node.ELEMENT_NODE || /^(script|noscript|style)$/.test(node.localName)) return;
      end();
      const attributes = [...node.attributes]
        .filter(({ name }) => !IGNORED.has(name))
        .map(({ name, value }) => ` ${name}="${value.trim().replace(/\s+/g, " ")}"`)
        .sort();
      found.push(`<${node.localName}${attributes.join("")}>`);
      node.childNodes.forEach(write);
      end();
      found.push(`</${node.localName}>`);
    };
    body.childNodes.forEach(write);
    end();
    return found;
  };
  return [lines(new DOMParser().parseFromString(sent, "text/html").body), lines(document.body)];
}

/** Lines of what the server sent and of what is there, which can be compared. */
export function markup(page, sent) {
  return page.evaluate(read, sent);
}

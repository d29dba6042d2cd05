// A Markdown reply of so many paragraphs, always the same: headings, prose with marks, lists, code and tables, about 190
// characters a paragraph.

const NOUNS = ["buffer", "cursor", "ledger", "packet", "replica", "segment", "shard", "socket", "timer", "worker"];
const VERBS = ["drains", "extends", "follows", "holds", "marks", "orders", "publishes", "repairs", "skips", "trims"];

/** xorshift32: choices that are the same in every run. */
function chooser(seed) {
  let state = seed;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

function marked(word, choice) {
  if (choice === 0) return `**${word}**`;
  if (choice === 1) return `*${word}*`;
  if (choice === 2) return `\`${word}\``;
  if (choice === 3) return `[${word}](https://example.org/${word})`;
  return word;
}

/** All ten shapes in turn: seven of prose, and one each of heading, list, and code or table. */
export function corpus(paragraphs) {
  const below = chooser(2463534242);
  const word = () => {
    const words = below(2) === 0 ? NOUNS : VERBS;
    return marked(words[below(words.length)], below(14));
  };
  const sentence = (words) => `${Array.from({ length: words }, word).join(" ")}.`;
  const rows = (count) =>
    Array.from({ length: count }, () => `| ${NOUNS[below(NOUNS.length)]} | ${below(1000)} |`).join("\n");
  const shapes = {
    0: (place) => `## Section ${place}: ${sentence(4)}`,
    4: () => `- ${sentence(8)}\n- ${sentence(6)}\n  - ${sentence(5)}`,
    7: (place) =>
      `\`\`\`rust\nfn step_${place}(input: u32) -> u32 {\n    let next = input * ${place};\n    // ${sentence(6)}\n    next + 1\n}\n\`\`\``,
    9: () => `| part | count |\n|---|---|\n${rows(3)}`,
  };
  const prose = () => sentence(25 + below(10));
  const all = Array.from({ length: paragraphs }, (_, place) => (shapes[place % 10] ?? prose)(place));
  return `${all.join("\n\n")}\n`;
}

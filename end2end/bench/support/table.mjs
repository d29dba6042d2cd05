// Tables that read well on a terminal and are Markdown.

export function table(heads, rows) {
  const all = [heads, ...rows].map((row) => row.map((cell) => String(cell).replaceAll("|", "\\|")));
  const widths = heads.map((_, place) => Math.max(3, ...all.map((row) => [...(row[place] ?? "")].length)));
  const line = (row) => `| ${widths.map((width, place) => pad(row[place] ?? "", width)).join(" | ")} |`;
  const rule = `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`;
  return [line(all[0]), rule, ...all.slice(1).map(line)].join("\n");
}

function pad(text, width) {
  return text + " ".repeat(width - [...text].length);
}

/** The same without padding, for a file whose cells are long. */
export function plainTable(heads, rows) {
  const line = (row) => `| ${row.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(heads), `|${heads.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

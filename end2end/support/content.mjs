// What a session's page shows, read from its DOM: the same words whether the page is live, refreshed or without script.

import { drawn } from "./frames.mjs";
import { until } from "./until.mjs";

/* Runs in the page. */
function read() {
  const words = (element) => (element ? element.textContent.replace(/\s+/g, " ").trim() : "");
  const visible = (text) => text.replace(/\s+/g, " ").trim();
  const piece = (element) => {
    const { blockId: id, blockKind: kind, state } = element.dataset;
    if (kind === "tool_ref") {
      const part = (name) => words(element.querySelector(`:scope > .row__toggle > ${name}`));
      return {
        id,
        kind,
        state,
        node: element.dataset.nodeId,
        name: part(".row__name"),
        text: part(".row__sum"),
        meta: part(".row__meta"),
        mark: part(".state"),
      };
    }
    if (kind === "reasoning") return { id, kind, state, text: words(element.querySelector(".row__sum")) };
    return { id, kind, state, text: visible(element.textContent) };
  };
  return [...document.querySelectorAll("#main [data-run-id]")].map((run) => ({
    run: run.dataset.runId,
    state: run.dataset.state,
    seq: Number(run.dataset.seq),
    digest: run.dataset.digest ?? null,
    prompt: words(run.querySelector("[data-message-id] .prompt__text")),
    pieces: [...run.querySelectorAll("[data-block-id]")].map(piece),
    remarks: [...run.querySelectorAll(".gap, .notice")].map(words),
  }));
}

/* Runs in the page: the elements and texts of every block, without what only the framework sees. */
function structure() {
  const write = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE) return "";
    const name = node.localName;
    const kept = ["href", "start", "class", "id", "type", "checked", "aria-label"]
      .filter((attribute) => node.hasAttribute(attribute))
      .map((attribute) => ` ${attribute}="${node.getAttribute(attribute).trim().replace(/\s+/g, " ")}"`);
    return `<${name}${kept.join("")}>${[...node.childNodes].map(write).join("")}</${name}>`;
  };
  return [...document.querySelectorAll('#main [data-block-kind="text"]')].map((block) => [block.dataset.blockId, write(block)]);
}

/** All runs of the page, in order: ids, states, digest, and their pieces in order. */
export function readRuns(page) {
  return page.evaluate(read);
}

/** The last run of the page. */
export async function readRun(page) {
  const runs = await readRuns(page);
  return runs.at(-1);
}

/** The markup of every text on the page. */
export function readStructure(page) {
  return page.evaluate(structure);
}

/** What must be the same before and after a refresh, on two pages, or with and without script. */
export function comparable(run) {
  const { run: id, state, seq, digest, prompt, pieces, remarks } = run;
  return { id, state, seq, digest, prompt, pieces, remarks };
}

/** Waits until the last run of the page is as `wanted` says, and gives it, once all that came with it is drawn. */
export async function runThat(page, what, wanted, options = {}) {
  const isSo = async () => {
    const run = await readRun(page);
    return run && wanted(run);
  };
  await until(what, isSo, { seen: () => readRun(page), ...options });
  await drawn(page);
  return readRun(page);
}

/** Waits until the last run of the page is in a state, and gives it. */
export function runIn(page, state, options = {}) {
  return runThat(page, `the run is ${state}`, (run) => run.state === state, options);
}

/** Waits until the last run of the page holds a text, and gives the run. */
export function runWith(page, text, options = {}) {
  const holds = (run) => run.pieces.some((piece) => piece.text.includes(text));
  return runThat(page, `the page shows “${text}”`, holds, options);
}

/** Waits until the page is hydrated and connected. */
export function live(page, options = {}) {
  return until(
    "the page is connected",
    async () => (await connection(page)) === "live",
    { seen: () => connection(page), ...options },
  );
}

/** The word of how the page is connected. */
export function connection(page) {
  return page.evaluate(() => document.querySelector("[data-connection]")?.dataset.connection ?? null);
}

/** All texts of a run, joined. */
export function textOf(run) {
  return run.pieces
    .filter((piece) => piece.kind === "text")
    .map((piece) => piece.text)
    .join("\n");
}

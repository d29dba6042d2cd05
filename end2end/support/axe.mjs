// What axe finds in a page.

import axe from "axe-core";

/** Findings that are serious or critical. The page's policy lets no further script in: the debugger does not ask it. */
export async function serious(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"] }),
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, impact, nodes }) => ({
      id,
      impact,
      nodes: nodes.slice(0, 5).map(({ html, failureSummary }) => `${html.slice(0, 160)} — ${failureSummary}`),
    }));
}

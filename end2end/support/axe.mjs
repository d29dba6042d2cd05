// What axe finds in a page.

import axe from "axe-core";

/**
 * Findings that are serious or critical, by all rules or those that are named. The page's policy lets no further script in:
 * the debugger does not ask it.
 */
export async function serious(page, rules = null) {
  await page.evaluate(`globalThis.axe ?? (() => { ${axe.source} })()`);
  const { violations } = await page.evaluate(
    (runOnly) => globalThis.axe.run(document, { resultTypes: ["violations"], ...(runOnly && { runOnly }) }),
    rules,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, impact, nodes }) => ({
      id,
      impact,
      nodes: nodes.slice(0, 5).map(({ html, failureSummary }) => `${html.slice(0, 160)} — ${failureSummary}`),
    }));
}

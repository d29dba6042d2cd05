// Who may use the server, and what hostile text can do: nothing.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { live, readRun, runIn } from "../support/content.mjs";
import { freePort, runToEnd } from "../support/server.mjs";
import { suite } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const TOKEN = "a-token-of-twenty-four-ch";

/** What must neither run nor load, in prompt and reply. `evil.example` is reserved and answers to nobody. */
const HOSTILE = [
  "<script>globalThis.__hacked = 1</script>",
  '<img src="x" onerror="globalThis.__hacked = 1">',
  '<svg onload="globalThis.__hacked = 1"></svg>',
  '<iframe srcdoc="<script>parent.__hacked = 1</script>"></iframe>',
  "[click](javascript:globalThis.__hacked=1)",
  "[click](data:text/html,<script>globalThis.__hacked=1</script>)",
  "![picture](http://evil.example/pixel.png)",
  '<a href="http://evil.example/" onclick="globalThis.__hacked=1">a</a>',
  '<style>@import "http://evil.example/a.css";</style>',
  '<base href="http://evil.example/"><form action="http://evil.example/"><button>b</button></form>',
  '<meta http-equiv="refresh" content="0;url=http://evil.example/">',
  '"><script>globalThis.__hacked = 1</script>',
  "</script><script>globalThis.__hacked = 1</script>",
];

function hostile(page) {
  return page.evaluate(() => {
    const within = document.querySelectorAll(
      ":is(#main, #tree, #details) :is(script, iframe, object, embed, style, base, meta, link, form:not(.composer), [onerror], [onload], [onclick], [srcdoc])",
    );
    const links = [...document.querySelectorAll("a[href], img[src]")]
      .map((element) => element.getAttribute("href") ?? element.getAttribute("src"))
      .filter((target) => /^\s*(javascript|data|vbscript):/i.test(target) && target !== "data:,");
    return {
      hacked: globalThis.__hacked ?? null,
      elements: [...within].map((element) => element.outerHTML.slice(0, 120)),
      links,
      pictures: [...document.querySelectorAll("img")].map((picture) => picture.src),
    };
  });
}

const NOTHING = { hacked: null, elements: [], links: [], pictures: [] };

suite("safety", { speed: 20 }, (test) => {
  test("markup in a prompt and in a reply is text: nothing runs, nothing loads, nothing leaves", async ({
    server,
    open,
  }) => {
    const { session, run } = await server.begin(HOSTILE[0]);
    const runs = [run];
    for (const prompt of HOSTILE.slice(1)) runs.push(await server.more(session, prompt));
    const page = await open(`/s/${session}`);
    await until("the last run is over", async () => (await readRun(page)).run === runs.at(-1));
    await runIn(page, "succeeded", { timeout: 60_000 });
    assert.deepEqual(await hostile(page), NOTHING, "live");
    const words = await page.locator("#main").innerText();
    for (const visible of [
      "<script>globalThis.__hacked = 1</script>",
      '<img src="x" onerror="globalThis.__hacked = 1">',
      '<meta http-equiv="refresh" content="0;url=http://evil.example/">',
    ]) {
      // Once as the prompt, once in the reply's quotation.
      assert.ok(words.split(visible).length - 1 >= 2, `shown as text: ${visible}`);
    }
    await page.reload();
    await live(page);
    assert.deepEqual(await hostile(page), NOTHING, "as the server renders it");
    for (const link of await page.locator("#main .md a").all()) {
      if (await link.isVisible()) await link.click({ trial: true });
    }
    await page.goto(`${server.url}/`);
    await live(page);
    assert.deepEqual(await hostile(page), NOTHING, "in the list");
  });

  test("markup in an address is text", async ({ server, open, viewer }) => {
    const attack = encodeURIComponent('"><script>globalThis.__hacked = 1</script>');
    const page = await open(`/?q=${attack}`);
    assert.deepEqual(await hostile(page), NOTHING);
    const other = await viewer();
    await other.page.goto(`${server.url}/s/${attack}?node=${attack}`);
    assert.deepEqual(await hostile(other.page), NOTHING);
  }, { allow: [/status of 40[04]/] });

  test("a page of another site can neither change anything nor read the stream", async ({ server }) => {
    const foreign = { origin: "http://evil.example", "content-type": "application/json" };
    const made = await fetch(`${server.url}/api/sessions`, { method: "POST", headers: foreign, body: "{}" });
    assert.equal(made.status, 403);
    const form = await fetch(`${server.url}/sessions`, {
      method: "POST",
      headers: { origin: "http://evil.example", "content-type": "application/x-www-form-urlencoded" },
      body: "prompt=hello",
      redirect: "manual",
    });
    assert.equal(form.status, 403);
  });

  test("off loopback the server does not start without a token, and says what to do", async () => {
    const folder = await mkdtemp(join(tmpdir(), "runloom-end2end-"));
    const listen = `0.0.0.0:${await freePort()}`;
    const { code, output } = await runToEnd(["serve", "--listen", listen, "--data-dir", join(folder, "data")]);
    await rm(folder, { recursive: true, force: true });
    assert.equal(code, 2, output);
    assert.match(output, /RUNLOOM_TOKEN/);
  });
});

suite("safety with a token", { speed: 20, token: TOKEN }, (test) => {
  test("nothing is served without it, and the form opens the page for whoever knows it", async ({ server, viewer }) => {
    const bare = await fetch(`${server.url}/api/sessions`);
    assert.equal(bare.status, 401);
    const pack = await fetch(`${server.url}/pkg/runloom.js`, { redirect: "manual" });
    assert.notEqual(pack.status, 200);
    const gate = await fetch(`${server.url}/_sim/gates`, { redirect: "manual" });
    assert.notEqual(gate.status, 200);

    const { page, context } = await viewer();
    await page.goto(`${server.url}/`);
    assert.equal(new URL(page.url()).pathname, "/sign-in");
    assert.equal(await page.locator("h1").innerText(), "Sign in to Runloom");
    await page.getByLabel("Token").fill("not-the-token-at-all");
    await page.getByRole("button", { name: "Sign in" }).click();
    assert.equal(
      await page.locator("[role=alert]").innerText(),
      "This is not the token that the server was started with.",
    );
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${server.url}/`);
    await live(page);
    const cookies = await context.cookies();
    assert.equal(cookies.length, 1);
    assert.equal(cookies[0].httpOnly, true);
    assert.equal(cookies[0].sameSite, "Lax");
    assert.ok(!cookies[0].value.includes(TOKEN), "the cookie does not hold the token");

    await page.getByLabel("Prompt").fill("Hello");
    await page.getByRole("button", { name: "Start" }).click();
    await page.waitForURL(/\/s\/ses_\w+$/);
    await live(page);
    await runIn(page, "succeeded");
    assert.equal(server.log(10_000).includes(TOKEN), false, "nor does the log");
    assert.equal((await page.content()).includes(TOKEN), false, "nor the page");
  }, { allow: [/status of 401/] });

  test("a link to a session leads to the sign-in form first", async ({ server, viewer }) => {
    const { session } = await server.begin("Hello");
    const { page } = await viewer();
    await page.goto(`${server.url}/s/${session}`);
    assert.equal(new URL(page.url()).pathname, "/sign-in");
    assert.equal(await page.locator("[data-run-id]").count(), 0);
  });
});

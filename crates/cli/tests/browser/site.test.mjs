// A site of `aerostat view --site` in a real browser, from the disk: labs that run in the tab.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { AEROSTAT, AXE, OUT, WARNINGS, launch, open, write } from "./lib.mjs";

const MODULE = process.env.AEROSTAT_MODULE ?? "target/web/module.js";
/** Labs whose results are compared; AEROSTAT_SITE_LABS=all or a list of names compares others. */
const FEW = ["two-hosts", "telephony", "clip"];
const SITE = path.join(OUT, "site");
const skip = fs.existsSync(MODULE) ? false : "crates/web/build has not made a module";
if (skip) console.log(`labs in a tab: skipped: ${skip}`);

/** @type {any} */
let browser;

/**
 * Runs the program.
 * @param {string[]} words
 */
function program(...words) {
  const { status, stdout, stderr } = spawnSync(AEROSTAT, words, { encoding: "utf8", maxBuffer: 1 << 30 });
  if (status !== 0 && status !== WARNINGS) throw new Error(`${words.join(" ")}: exit code ${status}: ${stderr}`);
  return stdout;
}

before(async () => {
  if (skip) return;
  fs.rmSync(SITE, { recursive: true, force: true });
  program("view", "--site", SITE, "--module", MODULE);
  browser = await launch();
});
after(() => browser?.close());

/**
 * Opens a page of the site, does something, and closes it. It has no error and asks for nothing but its own files.
 * @param {string} name of the page, with what follows `#`
 * @param {(page: any) => Promise<void>} act
 */
async function on(name, act) {
  const [file, hash] = name.split("#", 2);
  const at = path.join(SITE, file);
  const { page, requests, errors, close } = await open(browser, at, { hash: hash === undefined ? "" : `#${hash}` });
  try {
    await act(page);
    assert.deepEqual(errors, []);
    const own = /^(file:.*\/pages\/(site|frame)\b|blob:|data:)/;
    const foreign = requests.filter((request) => !own.test(request));
    assert.deepEqual(foreign, [], "requests");
  } finally {
    await close();
  }
}

/**
 * Waits until a condition of the page holds.
 * @param {any} page
 * @param {string} condition
 * @param {number} [seconds]
 */
async function until(page, condition, seconds = 60) {
  for (let attempt = 0; attempt < seconds * 20; attempt += 1) {
    if (await page.evaluate(condition)) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  const seen = await page.evaluate("document.body.innerText.slice(0, 2000)");
  assert.fail(`never came true: ${condition}\n${seen}`);
}

/** The text of a part of the page. @param {any} page @param {string} id */
const text = (page, id) => page.evaluate(`part("${id}").textContent`);
const READY = '!field("run").disabled';
const DONE = '!part("results").hidden';

/**
 * Puts a text into the editor, as a user does, and waits for what the page says of it.
 * @param {any} page
 * @param {string} lab
 */
async function type(page, lab) {
  const put = `aerostat.editor.area.value = ${JSON.stringify(lab)}`;
  await page.evaluate(`${put}; aerostat.editor.area.dispatchEvent(new InputEvent("input"))`);
  await until(page, 'part("verdict").textContent !== "" && aerostat.answer !== null && !aerostat.isWaiting()');
}

/**
 * Runs the lab of the page to its end, and gives the document of results and the recorded page.
 * @param {any} page
 * @param {number} [seconds]
 */
async function run(page, seconds = 600) {
  await until(page, READY);
  await page.fill("#most-seconds", String(seconds));
  await page.click("#run");
  await until(page, DONE, seconds);
  return page.evaluate(
    "({ json: aerostat.results.json, page: aerostat.results.page, said: part('progress').textContent })",
  );
}

const SMALL = `switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s1, elan: a, ip: 10.1.0.20 }
traffic:
  - { name: ping, from: anna, to: bert, kind: ping, rate: 10pps, start: 1s, duration: 1s }
`;

describe("labs in a tab", { skip }, () => {
  const chosen = process.env.AEROSTAT_SITE_LABS;
  const names = chosen === "all" ? fs.readdirSync("labs") : chosen?.split(",").map((name) => `${name}.atm.yml`);
  const labs = names?.filter((name) => name.endsWith(".atm.yml")).map((name) => name.slice(0, -".atm.yml".length));
  for (const lab of labs ?? FEW) {
    test(`results of ${lab} are those of the program, to the octet`, async (t) => {
      if (!fs.existsSync(path.join(SITE, `${lab}.html`))) return t.skip("it does not run in a tab");
      await on(`${lab}.html`, async (page) => {
        const inTab = await run(page);
        assert.ok(inTab.json === program("run", lab, "--quiet", "-o", "json"), "the JSON differs");
        const file = path.join(OUT, `${lab}-of-the-program.html`);
        program("run", lab, "--quiet", "--view", file);
        assert.ok(inTab.page === fs.readFileSync(file, "utf8"), "the page differs");
        console.log(`${lab}: equal; ${inTab.said}`);
      });
    });
  }

  test("seed, end and changes are those of the program", () =>
    on("campus.html#seed=7&until=2500ms&set=mpoa=false&set=hosts.urku.ip=10.1.0.99", async (page) => {
      const { json } = await run(page);
      const words = ["--seed", "7", "--until", "2500ms", "--set", "mpoa=false", "--set", "hosts.urku.ip=10.1.0.99"];
      assert.equal(json, program("run", "campus", "--quiet", "-o", "json", ...words));
      const frame = page.frames().find((/** @type {any} */ one) => one !== page.mainFrame());
      await frame.waitForSelector("#sheet .machine");
      assert.equal(await frame.locator("#sheet .machine").count(), 10, "the recorded page is alive");
    }));

  test("a mistake is shown at its place, and its repair runs", () =>
    on("two-hosts.html", async (page) => {
      await until(page, READY);
      await type(page, SMALL.replace("bert: { on: s1", "bert: { on: s2"));
      assert.equal(await text(page, "verdict"), "1 error");
      assert.equal(await page.evaluate(READY), false, "it cannot run");
      const marked = await page.locator("#marks mark").allTextContents();
      assert.deepEqual(marked, ["s2"]);
      assert.equal(await page.locator("#numbers .error").textContent(), "5\n");
      await page.locator("#findings button").click();
      assert.equal(
        await page.evaluate(
          "getSelection().toString() || aerostat.editor.text.slice(aerostat.editor.area.selectionStart, aerostat.editor.area.selectionEnd)",
        ),
        "s2",
      );
      await page.screenshot({ path: path.join(OUT, "site-error.png") });
      const said = spawnSync(AEROSTAT, ["validate", write("two-hosts.atm.yml", await page.inputValue("#text"))], {
        encoding: "utf8",
      });
      const message = said.stderr.split("\n")[0].split("error: ")[1];
      assert.ok((await text(page, "findings")).includes(message), message);
      await type(page, SMALL);
      assert.equal(await text(page, "verdict"), "valid");
      assert.equal(await page.locator("#marks mark").count(), 0);
      const { json } = await run(page);
      assert.equal(JSON.parse(json).flows[0].received_packets, 10);
    }));

  test("a mistake in an option names the option", () =>
    on("two-hosts.html", async (page) => {
      await until(page, READY);
      await page.fill("#set", "mpoa=perhaps");
      await until(page, 'part("verdict").textContent === "1 error"');
      assert.match(await text(page, "findings"), /--set mpoa=perhaps error/);
    }));

  test("what needs a file is a mistake with its place", () =>
    on("two-hosts.html", async (page) => {
      await until(page, READY);
      await type(page, `${SMALL}capture: [anna-s1]\n`);
      assert.match(await text(page, "findings"), /8:11 error a recording is a file, and there are no files here/);
      const trace = "  - { name: load, from: anna, to: bert, kind: load, trace: morning.txt, start: 1s }\n";
      await type(page, SMALL + trace.replace("trace:", "arrivals: trace, trace:"));
      assert.match(await text(page, "findings"), /there are no files here/);
      const clip = `switches: { s1: {} }
clip: { c: { subnet: 10.1.0.0/24, server: anna, next_hops: file hops.txt } }
hosts:
  anna: { on: s1, elan: c, ip: 10.1.0.10 }
`;
      await type(page, clip);
      assert.match(await text(page, "findings"), /there are no files here/);
      await type(page, fs.readFileSync("labs/host/both.atm.yml", "utf8"));
      assert.match(await text(page, "findings"), /time cannot be virtual|not virtual/);
    }));

  test("a run that is stopped gives the results so far", () =>
    on("campus.html#until=1000s", async (page) => {
      await until(page, READY);
      await page.click("#run");
      await until(page, 'part("progress").textContent.includes("of virtual time")');
      await page.click("#stop");
      await until(page, DONE);
      await page.screenshot({ path: path.join(OUT, "site-stopped.png") });
      const { interrupted, end_s: end } = JSON.parse(await page.evaluate("aerostat.results.json"));
      assert.equal(interrupted, true);
      assert.ok(end > 0 && end < 1000, `${end} s`);
      assert.match(await text(page, "outcome"), /^stopped at/);
      await until(page, READY);
    }));

  test("a lab without an end is told before its time is up, and ends then", () =>
    on("campus.html#until=100000s", async (page) => {
      await until(page, READY);
      await page.fill("#most-seconds", "5");
      await page.click("#run");
      await until(page, '!part("forecast").hidden');
      assert.match(await text(page, "forecast"), /and 5\.0 s are its bound/);
      await page.screenshot({ path: path.join(OUT, "site-forecast.png") });
      await until(page, DONE);
      assert.match(await text(page, "outcome"), /^ended early: the time was up/);
      assert.equal(JSON.parse(await page.evaluate("aerostat.results.json")).interrupted, true);
    }));

  test("a lab that is too large for a tab is told before it runs", () =>
    on("two-hosts.html", async (page) => {
      await until(page, READY);
      const host = (/** @type {number} */ n) => `  h${n}: { on: s1, elan: a, ip: 10.1.${n >> 8}.${n & 255} }\n`;
      const hosts = Array.from({ length: 10_000 }, (_, n) => host(n + 10)).join("");
      await type(
        page,
        `switches: { s1: {} }\nlane: { on: s1, elans: { a: { subnet: 10.1.0.0/16 } } }\nhosts:\n${hosts}`,
      );
      await until(page, 'part("size").textContent.includes("10002 machines")');
      assert.match(await text(page, "size"), /A tab runs at most \d+ machines/);
      assert.equal(await page.evaluate(READY), false);
      await page.screenshot({ path: path.join(OUT, "site-large.png") });
    }));

  test("a page in a frame of another page runs the lab of its address", async () => {
    const lab = encodeURIComponent(SMALL);
    const frame = `<!doctype html><title>course</title><h1>A lesson</h1><iframe width="900" height="900" src="site/two-hosts.html#lab=${lab}&seed=3&run"></iframe>`;
    write("frame.html", frame);
    await on("../frame.html", async (page) => {
      const inner = page.frames()[1] ?? (await page.waitForEvent("framenavigated"));
      await until(inner, `typeof aerostat === "object" && ${DONE}`);
      assert.equal(JSON.parse(await inner.evaluate("aerostat.results.json")).seed, 3);
      assert.equal(await inner.evaluate('document.documentElement.classList.contains("framed")'), true);
      assert.match(
        await inner.evaluate("document.querySelector('footer').innerText"),
        /aerostat \d.* · Apache-2.0 OR MIT/,
      );
      await page.screenshot({ path: path.join(OUT, "site-frame.png") });
    });
  });

  test("the address that a page gives leads to the same lab", () =>
    on("two-hosts.html", async (page) => {
      await until(page, READY);
      await type(page, `# 100 % \u00e9 & <b> + #\n${SMALL}`);
      await page.fill("#set", "seed=5  mpoa=false");
      await page.click("#share-button");
      const address = await page.inputValue("#link");
      await on(`two-hosts.html${address.slice(address.indexOf("#"))}`, async (other) => {
        await until(other, DONE);
        assert.equal(await other.inputValue("#text"), await page.inputValue("#text"));
        assert.deepEqual(JSON.parse(await other.evaluate("aerostat.results.json")).overrides, ["seed=5", "mpoa=false"]);
      });
    }));

  test("it works from a server, too", async () => {
    const types = /** @type {Record<string, string>} */ ({ html: "text/html", js: "text/javascript", css: "text/css" });
    const server = http.createServer((request, response) => {
      const name = path.basename(new URL(request.url ?? "", "http://x").pathname);
      response.setHeader("content-type", types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream");
      response.end(fs.readFileSync(path.join(SITE, name)));
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
    const { port } = /** @type {any} */ (server.address());
    const context = await browser.newContext();
    try {
      const page = await context.newPage();
      await page.goto(`http://127.0.0.1:${port}/two-hosts.html`);
      const { json } = await run(page);
      assert.equal(json, program("run", "two-hosts", "--quiet", "-o", "json"));
    } finally {
      await context.close();
      server.close();
    }
  });

  test("a module of another version is refused", async () => {
    const other = write(
      "module-of-other.js",
      fs.readFileSync(MODULE, "utf8").replace(/^.*\n/, "// aerostat-web 0.0.1\n"),
    );
    const { status, stderr } = spawnSync(AEROSTAT, ["view", "--site", SITE, "--module", other], { encoding: "utf8" });
    assert.equal(status, 1);
    assert.match(stderr, /this is aerostat-web 0\.0\.1, and the program needs aerostat-web/);
  });

  test("no barriers", () =>
    on("two-hosts.html#run", async (page) => {
      await until(page, DONE);
      await page.evaluate(AXE);
      const { violations } = await page.evaluate("axe.run({ exclude: ['iframe'] }, { preload: false })");
      const told = violations.map((/** @type {any} */ one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`);
      assert.deepEqual(told, []);
    }));
});

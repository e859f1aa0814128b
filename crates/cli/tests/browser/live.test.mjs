// The page of a running lab in a real browser: by the program, and by a server that tells what no lab would tell.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { AEROSTAT, AXE, OUT, launch } from "./lib.mjs";
import { serve } from "./longlab.mjs";

/** @type {any} */
let browser;
/** The text of the page of a running lab. */
let text = "";
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/**
 * Waits until a condition holds in the page.
 * @param {any} page
 * @param {string} condition
 * @param {number} [seconds]
 */
async function until(page, condition, seconds = 20) {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    // A page that loads again has no answer for a moment.
    if (await page.evaluate(`Boolean(${condition})`).catch(() => false)) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`never came true: ${condition}`);
}

/**
 * A page in a browser, whose errors are noted.
 * @param {string} address
 */
async function open(address) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on("pageerror", (/** @type {Error} */ error) => errors.push(error.message));
  await page.goto(address);
  return { page, errors, close: () => context.close() };
}

describe("a running lab", () => {
  const runtime = fs.mkdtempSync(path.join(os.tmpdir(), "aerostat-page-"));
  const env = { ...process.env, XDG_RUNTIME_DIR: runtime, LC_ALL: "C.UTF-8" };
  const file = path.join(runtime, "live.atm.yml");
  /** @type {any} */
  let server;
  let address = "";
  const aerostat = (/** @type {string[]} */ args) => spawnSync(AEROSTAT, args, { env, encoding: "utf8" });
  const up = () => {
    const { status, stderr } = aerostat(["up", "-d", "-q", "--embedded", file]);
    assert.equal(status, 0, stderr);
  };

  before(async () => {
    const lab = fs.readFileSync("labs/two-subnets.atm.yml", "utf8");
    fs.writeFileSync(file, lab.replace(/^name:.*$/m, "name: live"));
    up();
    server = spawn(AEROSTAT, ["view", "live"], { env, stdio: ["ignore", "pipe", "ignore"] });
    address = await new Promise((done) =>
      server.stdout.once("data", (/** @type {any} */ data) => done(`${data}`.trim())),
    );
    text = await (await fetch(address)).text();
  });
  after(() => {
    server?.kill();
    aerostat(["down", "--all"]);
    fs.rmSync(runtime, { recursive: true, force: true });
  });

  test("a link is broken and mended by clicks, changed by words, and the cursor follows the present", async () => {
    const { page, errors, close } = await open(address);
    await until(page, "window.aerostat?.page");
    assert.equal(await page.title(), "live");
    const machines = await page.locator("#sheet .machine").count();
    assert.ok(machines >= 4, `${machines} machines`);
    await until(page, "aerostat.page.clock.model.all('shortcut').size > 0", 30);
    await page.evaluate("aerostat.page.select({ kind: 'link', id: 's1-s2' })");
    await page.click("#acts >> text=Break");
    await until(page, "aerostat.page.clock.model.isDown('link', 's1-s2')", 3);
    await until(page, "document.querySelectorAll('.cable.cut').length === 1", 3);
    await page.screenshot({ path: path.join(OUT, "live-cut.png") });
    await page.click("#acts >> text=Mend");
    await until(page, "!aerostat.page.clock.model.isDown('link', 's1-s2')", 3);
    // The words stay where somebody writes them, while samples come.
    await page.fill("#acts input", "loss=2");
    await new Promise((done) => setTimeout(done, 1500));
    assert.equal(await page.inputValue("#acts input"), "loss=2");
    await page.press("#acts input", "Enter");
    await until(page, "document.querySelector('#acts [role=status]').textContent.includes('probability')", 3);
    await page.fill("#acts input", "loss=1% delay=5ms");
    await page.click("#acts >> text=Set");
    await until(
      page,
      "aerostat.page.clock.model.recording.story.some((line) => line.event === 'fault.link-change')",
      3,
    );
    await page.click("#acts >> text=Reset");
    await until(page, "aerostat.page.clock.model.recording.story.some((line) => line.event === 'fault.link-reset')", 3);
    await page.click("#acts >> text=Copy");
    const copied = await page.evaluate("navigator.clipboard.readText()");
    assert.equal(copied, "aerostat capture --lab live s1-s2 -w - | wireshark -k -i -");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click("#acts >> text=Capture to a file"),
    ]);
    assert.equal(download.suggestedFilename(), "live-s1-s2.pcapng");
    await download.cancel();
    // Pause, and the present again.
    await page.click("#play");
    const [t, end] = await page.evaluate("[aerostat.page.clock.t, aerostat.page.clock.model.recording.until]");
    await until(page, `aerostat.page.clock.model.recording.until > ${end}`);
    assert.equal(await page.evaluate("aerostat.page.clock.t"), t);
    await page.click("#now");
    await until(page, `aerostat.page.clock.t > ${end}`);
    await page.evaluate(AXE);
    const { violations } = await page.evaluate("axe.run()");
    assert.deepEqual(
      violations.map((/** @type {any} */ one) => one.id),
      [],
    );
    assert.deepEqual(errors, []);
    await close();
  });

  test("a lab that is killed is missed within 2 s, and shown again when it is back", async () => {
    const { page, errors, close } = await open(address);
    await until(page, "window.aerostat?.page");
    const pid = /live,(\d+)/.exec(aerostat(["ls", "-o", "csv"]).stdout)?.[1];
    process.kill(Number(pid), "SIGSTOP");
    await until(page, "document.getElementById('notice').textContent.includes('does not say anything')", 3);
    process.kill(Number(pid), "SIGCONT");
    await until(page, "document.getElementById('notice').hidden", 3);
    await page.evaluate("window.former = true");
    process.kill(Number(pid), "SIGKILL");
    await until(page, "document.getElementById('notice').textContent.includes('the lab live has ended')", 2);
    await page.screenshot({ path: path.join(OUT, "live-lost.png") });
    aerostat(["down", "--all"]);
    up();
    await until(page, "!window.former && window.aerostat?.page && document.getElementById('notice').hidden", 20);
    assert.deepEqual(errors, []);
    await close();
  });
});

test("the record of hours takes no more memory than that of minutes", async (t) => {
  // AEROSTAT_LONG has the hours; one of them is six times the window of ten minutes. Looks follow the lab's clock, not
  // that of the machine: a slow browser makes the test longer and nothing else.
  const hours = Number(process.env.AEROSTAT_LONG ?? 1);
  const lab = await serve({ page: text, hours });
  t.after(() => lab.close());
  const { page, errors, close } = await open(lab.address);
  // A test that fails must not leave what keeps its process.
  t.after(close);
  await until(page, "window.aerostat?.page");
  const session = await page.context().newCDPSession(page);
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return usedSize / 1e6;
  };
  /** @type {number[]} */
  const sizes = [];
  const looks = 20 * hours;
  for (let look = 1; look <= looks; look += 1) {
    const now = (look / looks) * lab.end;
    await lab.tellUntil(now);
    await until(page, `aerostat.page.clock.model.recording.until >= ${now}`, 60);
    // The window is full after ten minutes.
    if (now > 15 * 60e9) sizes.push(await heap());
  }
  // A reading has the record and what the page has just drawn, so no reading is below what the record takes. The first
  // half has the least one so far; at the end, readings follow each other until one is as low, or for a while.
  const half = Math.floor(sizes.length / 2);
  const first = Math.min(...sizes.slice(0, half));
  let last = Math.min(...sizes.slice(half));
  const patience = Date.now() + 20_000;
  while (last > first * 1.1 && Date.now() < patience) {
    await new Promise((done) => setTimeout(done, 100));
    sizes.push(await heap());
    last = Math.min(last, sizes[sizes.length - 1]);
  }
  const told = await page.evaluate("aerostat.page.clock.model.recording.order");
  console.log(
    `# ${hours} h, ${lab.lines()} lines, ${told} of them messages and story: heap ${sizes.map((size) => size.toFixed(1)).join(" ")} MB`,
  );
  assert.ok(last <= first * 1.1, `${first} MB, later ${last} MB`);
  assert.deepEqual(errors, []);
});

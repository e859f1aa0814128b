// Frames per second of the page with 500 machines and 2 000 connections, of which 50 change ten times a second.

import { execFileSync } from "node:child_process";
import os from "node:os";
import { launch, open, record, withStream } from "./lib.mjs";
import { synthetic } from "./synthetic.mjs";

const seconds = 10;
const file = withStream(
  "synthetic.html",
  record("small", "labs/two-hosts.atm.yml", ["--until", "1s"]),
  synthetic({ seconds }),
);
const browser = await launch();
const { page } = await open(browser, file);
/** @type {number[]} */
const times = await page.evaluate(`new Promise((done) => {
  const { clock } = aerostat.page;
  const times = [];
  clock.skips = false;
  clock.play();
  const frame = (now) => {
    times.push(now);
    if (now - times[0] < ${seconds - 0.5} * 1000) requestAnimationFrame(frame);
    else done(times);
  };
  requestAnimationFrame(frame);
})`);
await browser.close();
const intervals = times
  .slice(1)
  .map((time, index) => time - times[index])
  .sort((a, b) => a - b);
const rate = (/** @type {number} */ share) => (1000 / intervals[Math.floor(share * (intervals.length - 1))]).toFixed(1);
const program = process.env.CHROMIUM ?? "/usr/bin/chromium";
const asked = { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
const version = execFileSync(program, ["--version", "--no-sandbox"], asked).trim();
console.log(
  `500 machines, 2 000 connections, 500 changes a second; ${version}, drawn by the processor; ${os.cpus().length} processors, load ${os.loadavg()[0].toFixed(1)}`,
);
console.log(
  `frames a second: median ${rate(0.5)}, 5th percentile ${rate(0.95)}, 1st percentile ${rate(0.99)}; ${intervals.length} frames`,
);

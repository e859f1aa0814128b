// What the tests of the page share: pages that the program wrote, changed pages, and the browser.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const tools = process.env.AEROSTAT_BROWSER_TOOLS ?? "target/browser";
const require = createRequire(path.resolve(tools, "package.json"));
const { chromium } = require("playwright-core");
/** The text of axe-core, which finds barriers. */
export const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
/** The program under test. */
export const AEROSTAT = process.env.AEROSTAT ?? "target/debug/aerostat";
/** Exit code of a run that has warnings. */
export const WARNINGS = 3;
/** Where pages and drawings go. */
export const OUT = path.resolve(tools, "pages");
fs.mkdirSync(OUT, { recursive: true });

/**
 * Writes a file among the pages.
 * @param {string} name
 * @param {string} text
 */
export function write(name, text) {
  const file = path.join(OUT, name);
  fs.writeFileSync(file, text);
  return file;
}

/**
 * Runs a lab and gives the path of its page.
 * @param {string} name of the page
 * @param {string} lab
 * @param {string[]} [more] arguments
 */
export function record(name, lab, more = []) {
  const file = path.join(OUT, `${name}.html`);
  const { status, stderr } = spawnSync(AEROSTAT, ["run", lab, "--quiet", "--view", file, ...more], {
    encoding: "utf8",
  });
  // A lab with faults ends with warnings.
  if (status !== 0 && status !== WARNINGS) throw new Error(`${lab}: exit code ${status}: ${stderr}`);
  return file;
}

const OPENING = /<script type="application\/json" id="events">\n?/;

/**
 * The parts of a page: in front of the stream, the stream, and behind it.
 * @param {string} file
 */
export function parts(file) {
  const text = fs.readFileSync(file, "utf8");
  const found = OPENING.exec(text);
  if (!found) throw new Error(`${file} has no stream`);
  const begin = found.index + found[0].length;
  const end = text.indexOf("</script>", begin);
  return { before: text.slice(0, begin), stream: text.slice(begin, end), behind: text.slice(end) };
}

/**
 * The lines of a page's stream.
 * @param {string} file
 * @returns {any[]}
 */
export function linesOf(file) {
  return parts(file)
    .stream.split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/**
 * A page of the program that carries another stream.
 * @param {string} name
 * @param {string} file the page
 * @param {object[]} lines
 */
export function withStream(name, file, lines) {
  const { before, behind } = parts(file);
  const code = (/** @type {string} */ sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const text = lines.map((line) => JSON.stringify(line).replace(/[<>&\u2028\u2029]/g, code)).join("\n");
  return write(name, `${before}${text}\n${behind}`);
}

/** Starts the browser. Pages are drawn by the processor, as on a machine without a graphics card. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

/**
 * Opens a page; every request and every error of it is noted.
 * @param {any} browser
 * @param {string} file
 * @param {{hash?: string, context?: object, before?: (page: any) => Promise<void>}} [options]
 */
export async function open(browser, file, { hash = "", context = {}, before } = {}) {
  const made = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...context });
  const page = await made.newPage();
  const address = pathToFileURL(file).href;
  /** @type {string[]} */
  const requests = [];
  /** @type {string[]} */
  const errors = [];
  page.on("request", (/** @type {any} */ request) => requests.push(request.url()));
  page.on("pageerror", (/** @type {Error} */ error) => errors.push(error.message));
  page.on("console", (/** @type {any} */ message) => message.type() === "error" && errors.push(message.text()));
  await before?.(page);
  await page.goto(address + hash);
  return { page, requests, errors, address, close: () => made.close() };
}

/**
 * The states at an instant by the stream alone: a fold over its lines, independent of the page.
 * @param {any[]} lines
 * @param {number} t nanoseconds
 */
export function statesAt(lines, t) {
  const kinds = new Set(["call", "vc", "member", "shortcut", "fault", "traffic"]);
  /** @type {Map<string, Map<string | number, object>>} */
  const all = new Map();
  for (const { is, t: when, gone, ...fields } of lines) {
    if (!kinds.has(is) || when > t) continue;
    const id = fields.id ?? fields.flow;
    const of = all.get(is) ?? new Map();
    all.set(is, of);
    if (gone) of.delete(id);
    else of.set(id, { ...of.get(id), ...fields, id });
  }
  /** @type {Record<string, object[]>} */
  const plain = {};
  for (const [kind, of] of all)
    plain[kind] = [...of.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, state]) => state);
  return plain;
}

/**
 * Counters and levels at the last sample in front of an instant, by the stream alone.
 * @param {any[]} lines
 * @param {number} t nanoseconds
 */
export function countersAt(lines, t) {
  /** @type {Record<string, number[]>} */
  const all = {};
  for (const line of lines) {
    if (line.is !== "sample" || line.t > t) continue;
    for (const group of ["links", "flows", "calls"]) {
      for (const [name, values] of Object.entries(line[group] ?? {})) all[`${group}/${name}`] = values;
    }
  }
  return all;
}

/**
 * Numbers from 0 to 1, the same for the same seed.
 * @param {number} seed
 */
export function random(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

// The recorded page in a real browser: labs by the program, and pages changed as a hostile or broken world would.

import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, describe, test } from "node:test";
import {
  AXE,
  OUT,
  countersAt,
  launch,
  linesOf,
  open,
  parts,
  random,
  record,
  statesAt,
  withStream,
  write,
} from "./lib.mjs";

/** @type {any} */
let browser;
/** Pages of the program. */
let campus = "";
let faults = "";

before(async () => {
  browser = await launch();
  campus = record("campus", "labs/campus.atm.yml", ["--until", "6.3s", "--follow", "voice:100"]);
  faults = record("faults", "crates/cli/tests/browser/faults.atm.yml");
});
after(() => browser?.close());

/**
 * Opens a page, does something, and closes it. A page must come to life, ask for nothing, and have no error.
 * @param {string} file
 * @param {object} options
 * @param {(page: any) => Promise<void>} act
 */
async function on(file, options, act) {
  const { page, requests, errors, address, close } = await open(browser, file, options);
  try {
    await act(page);
    assert.deepEqual(errors, []);
    const foreign = requests.filter((request) => request.split("#")[0] !== address);
    assert.deepEqual(foreign, [], "requests");
  } finally {
    await close();
  }
}

/** What the page says of itself. */
const alive = (/** @type {any} */ page) => page.evaluate("document.documentElement.className");
const cursor = (/** @type {any} */ page) => page.evaluate("aerostat.page.clock.t");
const overflow = (/** @type {any} */ page) => page.evaluate("document.documentElement.scrollWidth - innerWidth");

/**
 * Waits until a condition holds; the page's policy forbids the browser driver to do this in the page.
 * @param {any} page
 * @param {string} condition
 */
async function until(page, condition) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (await page.evaluate(condition)) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`never came true: ${condition}`);
}

/** @param {any} page */
async function barriers(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate("axe.run()");
  return violations.map(
    (/** @type {any} */ one) =>
      `${one.id}: ${one.nodes.map((/** @type {any} */ node) => node.html.slice(0, 160)).join(" | ")}`,
  );
}

describe("campus", () => {
  test("the page comes to life and asks for nothing", () =>
    on(campus, {}, async (page) => {
      assert.equal(await alive(page), "alive");
      assert.equal(await page.title(), "campus");
      assert.equal(await page.locator("#sheet .machine").count(), 10);
      assert.ok(fs.statSync(campus).size <= 1_000_000, "a page of at most 1 MB");
    }));

  test("states at 50 instants are those of the stream, in any order of visits", () =>
    on(campus, {}, async (page) => {
      const lines = linesOf(campus);
      const changes = lines.filter((line) => ["call", "member", "shortcut", "traffic"].includes(line.is));
      const draw = random(34);
      const instants = Array.from({ length: 50 }, (_, visit) => {
        const at = changes[Math.floor(draw() * changes.length)].t;
        return Math.max([at, at - 1, at + 1, Math.floor(draw() * lines.at(-1).t)][visit % 4], 0);
      });
      const visited = `${JSON.stringify(instants)}.map((t) => (aerostat.seek(t), aerostat.stateAt(t)))`;
      const all = await page.evaluate(visited);
      for (const [visit, t] of instants.entries()) {
        const [shown, told] = [all[visit], statesAt(lines, t)];
        for (const kind of new Set([...Object.keys(shown), ...Object.keys(told)])) {
          assert.deepEqual(shown[kind] ?? [], told[kind] ?? [], `${kind} at ${t}`);
        }
      }
    }));

  test("counters at 50 instants are those of the sample before", () =>
    on(campus, {}, async (page) => {
      const lines = linesOf(campus);
      const draw = random(35);
      const instants = Array.from({ length: 50 }, () => Math.floor(draw() * lines.at(-1).t));
      const told = instants.map((t) => countersAt(lines, t));
      const visits = JSON.stringify(instants.map((t, visit) => [t, Object.keys(told[visit])]));
      const counters = "(key) => [key, aerostat.page.clock.model.counters(key).values]";
      const shown = await page.evaluate(
        `${visits}.map(([t, keys]) => (aerostat.seek(t), Object.fromEntries(keys.map(${counters}))))`,
      );
      assert.deepEqual(shown, told);
      const compared = told.flatMap((one) => Object.keys(one)).length;
      assert.ok(compared > 500, `${compared} counters`);
    }));

  test("a link to an instant opens there, and the address follows the cursor", () =>
    on(campus, { hash: "#t=6.02" }, async (page) => {
      assert.equal(await cursor(page), 6_020_000_000);
      assert.equal(await page.inputValue("#instant"), "6.020\u2009000\u2009000");
      await page.fill("#instant", "6.022456");
      await page.press("#instant", "Enter");
      assert.equal(await cursor(page), 6_022_456_000);
      assert.equal(await page.evaluate("location.hash"), "#t=6.022456");
      await page.evaluate("location.hash = '#t=1.5'");
      await until(page, "aerostat.page.clock.t === 1500000000");
    }));

  test("an instant is written in several forms, and what is none is told", () =>
    on(campus, { hash: "#t=6.02s" }, async (page) => {
      assert.equal(await cursor(page), 6_020_000_000);
      for (const [text, t] of [
        ["500ms", 500e6],
        ["1e-3", 1e6],
        ["2,5 s", 2.5e9],
        ["7 µs", 7000],
      ]) {
        await page.fill("#instant", text);
        await page.press("#instant", "Enter");
        assert.equal(await cursor(page), t, text);
        assert.equal(await page.evaluate("document.activeElement.id"), "", "keys are the page's again");
      }
      const end = linesOf(campus).at(-1).t;
      for (const [text, t, told] of [
        ["-1", 7000, "is no instant"],
        ["soon", 7000, "is no instant"],
        ["99", end, "the run ends at"],
      ]) {
        await page.fill("#instant", text);
        await page.press("#instant", "Enter");
        assert.equal(await cursor(page), t, text);
        assert.ok((await page.textContent("#happens")).includes(told), text);
        assert.match(await page.inputValue("#instant"), /^\d+\.\d{3}/);
      }
      await page.evaluate("location.hash = '#t=never'");
      await until(page, "document.getElementById('happens').textContent.includes('never')");
    }));

  test("no link carries more than its rate, and an idle link says so", () =>
    on(campus, { hash: "#t=6.3" }, async (page) => {
      const loads = await page.evaluate(
        "aerostat.page.plots.plots.find((plot) => plot.title === 'Load of links').curves.flatMap((curve) => curve.values)",
      );
      assert.ok(loads.length > 100);
      assert.ok(Math.max(...loads) <= 100.5, `${Math.max(...loads)} %`);
      const label = page.locator(
        '.cable-label[data-id="asn9000-ls1010"] .rate, .cable-label[data-id="ls1010-asn9000"] .rate',
      );
      assert.match(await label.first().textContent(), /0 {2}. 0 Mbit\/s/);
      assert.match(await page.textContent("#state"), /rates of 6\.2 to 6\.3 s/);
    }));

  test("the story is told while the record plays", () =>
    on(campus, { hash: "#t=0" }, async (page) => {
      await page.selectOption("#speed", "0.1");
      await page.evaluate("aerostat.seek(6.0e9)");
      await page.click("#play");
      await until(page, "aerostat.page.clock.t > 6.03e9");
      const told = await page.textContent("#happens");
      const lines = linesOf(campus).filter((line) => line.is === "story" && line.milestone && line.t >= 6e9);
      assert.ok(
        lines.some((line) => told === `${line.node} ${line.text}`),
        told,
      );
    }));

  test("the shortcut replaces the routed path", () =>
    on(campus, { hash: "#t=6.002" }, async (page) => {
      const shown = () =>
        page.evaluate(`(() => {
      const { threads, model } = aerostat.page.drawing;
      const rows = [...model.all("shortcut").values()].filter((one) => threads.shortcuts.has(one.call));
      return rows.map((one) => [one.from, one.to, model.get("call", one.call).via.length]);
    })()`);
      assert.deepEqual(await shown(), []);
      assert.equal(await page.locator(".plate").count(), 0);
      await page.evaluate("aerostat.seek(6.1e9)");
      const rows = await shown();
      // All four hosts have one, and each is on the two links of the common switch.
      assert.deepEqual(rows.map((/** @type {any} */ row) => row[0]).sort(), ["basso", "jaarli", "sello", "urku"]);
      assert.ok(
        rows.every((/** @type {any} */ row) => row[2] === 2),
        JSON.stringify(rows),
      );
      assert.equal(await page.locator(".plate").count(), 2);
      assert.match(await page.locator(".plate").first().textContent(), /^shortcut \w+ ⇄ \w+$/);
    }));

  test("the record plays, skips idle times and stops at its end", () =>
    on(campus, { hash: "#t=5.9" }, async (page) => {
      await page.selectOption("#speed", "10");
      await page.click("#play");
      await until(page, "!aerostat.page.clock.playing");
      assert.equal(await cursor(page), linesOf(campus).at(-1).t);
      // From the end it begins again. Nothing happens for most of the second second: it is skipped.
      await page.evaluate("aerostat.seek(1.0e9)");
      await page.selectOption("#speed", "0.001");
      await page.click("#play");
      await until(page, "aerostat.page.clock.t > 1.2e9");
      await page.click("#play");
    }));

  test("messages travel while it plays slowly, and stand as arrows at their instant", () =>
    on(campus, {}, async (page) => {
      const message = linesOf(campus).find((line) => line.is === "message" && line.protocol === "mpoa");
      await page.evaluate(`aerostat.seek(${message.t})`);
      assert.ok((await page.locator(".callout").count()) >= 1);
      assert.match(await page.locator(".callout text").first().textContent(), /^MPOA/);
      await page.evaluate(
        `aerostat.seek(${message.t - 1000}); aerostat.page.clock.setSpeed(1e-5); aerostat.page.clock.play()`,
      );
      await until(page, "!aerostat.page.marks.clean");
      assert.equal(await page.locator(".callout").count(), 0);
    }));

  test("the ladder has all messages, and its filter leaves those that are asked for", () =>
    on(campus, {}, async (page) => {
      const messages = linesOf(campus).filter((line) => line.is === "message");
      const grouped = (/** @type {number} */ count) => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
      const rest = messages.filter((line) => line.protocol !== "sscop").length;
      assert.ok(rest > 100 && rest < messages.length);
      const count = () => page.textContent("#ladder-count");
      assert.match(await count(), new RegExp(`^${grouped(rest)} of ${grouped(messages.length)} messages`));
      await page.selectOption("#f-protocol", "");
      assert.match(await count(), new RegExp(`^${grouped(messages.length)} messages`));
      assert.ok((await page.locator("#ladder [role=option]").count()) < 80, "only rows in sight are in the page");
      await page.selectOption("#f-protocol", "mpoa");
      await page.selectOption("#f-node", "urku");
      const wanted = messages.filter((line) => line.protocol === "mpoa" && [line.from, line.to].includes("urku"));
      assert.ok(wanted.length > 3);
      assert.match(await count(), new RegExp(`^${wanted.length} of `));
      // What happens at the machine is told between its messages, until it is filtered, too.
      assert.ok((await page.locator("#ladder .story").count()) > 0);
      await page.uncheck("#f-story");
      await page.locator("#ladder [role=option]").nth(1).click();
      assert.equal(await cursor(page), wanted[1].t);
      assert.match(await page.textContent("#inspector"), /mpoa message/);
    }));

  test("the way of a packet that was followed has no gap, and a stage leads to its instant", () =>
    on(campus, {}, async (page) => {
      const [packet] = linesOf(campus).filter((line) => line.is === "packet");
      assert.equal(packet.name, "voice:100");
      const stages = packet.stages.filter((/** @type {any} */ stage) => stage.takes > 0);
      assert.ok(stages.length > 10);
      await page.click("#tabs button:text('Packets')");
      assert.equal(await page.locator("#table tbody tr").count(), packet.stages.length + 1);
      // The first row is about the whole packet.
      const at = packet.stages.findIndex((/** @type {any} */ stage) => stage.link && stage.takes > 0);
      await page
        .locator("#table tbody tr")
        .nth(at + 1)
        .locator("button")
        .click();
      assert.equal(await cursor(page), packet.stages[at].t);
      assert.match(
        await page
          .locator("#table tbody tr")
          .nth(at + 1)
          .textContent(),
        /here/,
      );
      assert.ok((await page.textContent("#inspector")).includes(packet.stages[at].link));
    }));

  test("a click on a machine, a link and a call shows its state", () =>
    on(campus, { hash: "#t=6.2" }, async (page) => {
      await page.locator('.machine[data-id="urku"]').click();
      assert.match(await page.textContent("#inspector"), /urku host.*joined/s);
      const at = (/** @type {string} */ code) =>
        page.evaluate(`(() => {
      const { drawing } = aerostat.page, { scale, left, top } = drawing.view.scale(), box = drawing.sheet.getBoundingClientRect();
      const { x, y } = ${code};
      return [box.left + left + x * scale, box.top + top + y * scale];
    })()`);
      const [x, y] = await at("along(drawing.geometry.ways.get('lane-ls1010'), 0.5)");
      await page.mouse.click(x, y);
      assert.match(await page.textContent("#inspector"), /lane-ls1010 link.*Sample of 6\.2 s/s);
      const call = await page.evaluate("[...aerostat.page.drawing.threads.shortcuts.keys()][0]");
      await page.evaluate(`aerostat.page.select({ kind: "call", id: "${call}" })`);
      assert.match(await page.textContent("#inspector"), /a shortcut.*Labels, link by link \(2\)/s);
    }));
});

describe("without a mouse", () => {
  test("the tabulator reaches play, step, a machine, the ladder and its filter", () =>
    on(campus, {}, async (page) => {
      const reached = new Set();
      for (let press = 0; press < 60; press += 1) {
        await page.keyboard.press("Tab");
        reached.add(
          await page.evaluate(
            "document.activeElement.id || document.activeElement.dataset.id || document.activeElement.tagName",
          ),
        );
      }
      for (const id of ["play", "next", "previous", "speed", "slider", "f-text", "ladder", "story", "table-filter"])
        assert.ok(reached.has(id), `${id} in ${[...reached]}`);
      assert.ok(
        await page
          .evaluate("[...aerostat.page.drawing.shapes.keys()]")
          .then((/** @type {string[]} */ names) => names.some((name) => reached.has(name))),
        "a machine",
      );
    }));

  test("keys play, step, choose a machine and filter", () =>
    on(campus, {}, async (page) => {
      await page.keyboard.press("ArrowRight");
      const first = await cursor(page);
      assert.ok(first > 0);
      await page.keyboard.press("ArrowRight");
      assert.ok((await cursor(page)) > first);
      await page.keyboard.press("ArrowLeft");
      assert.equal(await cursor(page), first);
      await page.keyboard.press("Shift+ArrowRight");
      const story = linesOf(campus).filter((line) => line.is === "story" && line.milestone && line.t > first);
      assert.equal(await cursor(page), story[0].t);
      await page.keyboard.press(" ");
      assert.equal(await page.evaluate("aerostat.page.clock.playing"), true);
      await page.keyboard.press(" ");
      await page.keyboard.press("m");
      const begin = await page.evaluate("document.activeElement.dataset.id");
      await page.keyboard.press("ArrowRight");
      const there = await page.evaluate("document.activeElement.dataset.id");
      assert.notEqual(there, begin);
      await page.keyboard.press("Enter");
      assert.match(await page.textContent("#inspector h3"), new RegExp(`^${there} `));
      await page.keyboard.press("/");
      await page.keyboard.type("setup");
      assert.match(await page.textContent("#ladder-count"), / of /);
      await page.keyboard.press("Escape");
      await page.keyboard.press("l");
      await page.keyboard.press("ArrowDown");
      assert.match(await page.textContent("#inspector"), /message/);
      await page.keyboard.press("?");
      assert.ok(await page.evaluate("document.getElementById('help').open"));
      await page.keyboard.press("Escape");
      assert.ok(!(await page.evaluate("document.getElementById('help').open")));
    }));

  test("axe-core finds no barrier, light and dark", async () => {
    for (const colorScheme of ["light", "dark"]) {
      await on(campus, { hash: "#t=6.2", context: { colorScheme } }, async (page) => {
        await page.evaluate(
          "aerostat.page.select({ kind: 'node', id: 'urku' }); document.querySelector('details').open = true",
        );
        await page.selectOption("#f-node", "urku");
        assert.deepEqual(await barriers(page), [], colorScheme);
        await page.evaluate("aerostat.page.help()");
        assert.deepEqual(await barriers(page), [], `${colorScheme}, keys`);
      });
    }
  });

  test("the button turns the colours, and a screen reader hears the instant", () =>
    on(campus, { context: { colorScheme: "dark" } }, async (page) => {
      const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
      const dark = await ground();
      await page.click("#theme");
      assert.notEqual(await ground(), dark);
      await page.evaluate("aerostat.seek(6.1e9)");
      assert.match(await page.textContent("#live"), /^6\.1 seconds\. .*4 shortcuts/);
    }));

  test("nothing moves for users who ask for less motion", () =>
    on(campus, { context: { reducedMotion: "reduce" } }, async (page) => {
      const before = linesOf(campus).find((line) => line.is === "call" && line.what === "lane-data").t;
      await page.evaluate(`aerostat.seek(${before - 1}); aerostat.page.clock.step(1)`);
      assert.equal(await page.evaluate("aerostat.page.drawing.threads.strokes(performance.now()).moving"), false);
      assert.equal(await page.evaluate("document.getAnimations().length"), 0);
    }));
});

describe("small, printed, exported", () => {
  test("360 pixels need no horizontal scroll, with and without the script", async () => {
    const context = { viewport: { width: 360, height: 740 } };
    await on(campus, { hash: "#t=6.2", context }, async (page) => assert.equal(await overflow(page), 0));
    await on(campus, { context: { ...context, javaScriptEnabled: false } }, async (page) =>
      assert.equal(await overflow(page), 0),
    );
  });

  test("paper has the drawing at the cursor, the story and the tables", () =>
    on(campus, { hash: "#t=6.2", context: { colorScheme: "dark" } }, async (page) => {
      await page.emulateMedia({ media: "print" });
      await page.evaluate("dispatchEvent(new Event('beforeprint'))");
      const text = await page.textContent("#print");
      assert.match(text, /Network at 6\.200/);
      assert.match(text, /joined ELAN a as LECID/);
      assert.match(text, /Shortcuts.*10\.4\.0\.10/s);
      assert.ok(await page.locator("#print svg").isVisible());
      assert.ok(await page.locator("#ladder").isHidden());
      assert.ok((await page.pdf()).length > 20_000);
      await page.evaluate("dispatchEvent(new Event('afterprint'))");
      assert.equal(await page.evaluate("document.documentElement.dataset.theme ?? ''"), "");
    }));

  test("the drawing is an SVG file of its own", () =>
    on(campus, { hash: "#t=6.2" }, async (page) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
      assert.equal(download.suggestedFilename(), "campus-6.2s.svg");
      const text = fs.readFileSync(await download.path(), "utf8");
      assert.equal(text, await page.evaluate("aerostat.svg()"));
      assert.doesNotMatch(text, /class=|style=|data-|var\(|https?:(?!\/\/www\.w3\.org\/2000\/svg)/);
      for (const name of ["urku", "asn9000", "shortcut"]) assert.ok(text.includes(name), name);
      // The legend of the page is below the drawing, with the same signs.
      for (const name of ["LANE server", "ELAN core", "call, as wide as its rate", ">shortcut<"])
        assert.ok(text.includes(name), name);
      assert.ok((text.match(/url\(#copy-pattern-barred\)/g) ?? []).length >= 3);
      await on(write("campus-6.2s.svg", text), {}, async (drawing) => {
        assert.equal(await drawing.evaluate("document.documentElement.localName"), "svg");
        assert.ok((await drawing.evaluate("document.documentElement.getBBox().width")) > 300);
      });
    }));
});

describe("faults", () => {
  test("a broken trunk and a crashed machine are seen, and mended again", () =>
    on(faults, {}, async (page) => {
      const lines = linesOf(faults);
      const begun = lines.filter((line) => line.is === "fault" && !line.gone && line.t > 0);
      assert.deepEqual(
        begun.map((fault) => fault.name),
        ["trunk", "carl"],
      );
      for (const fault of begun) {
        await page.evaluate(`aerostat.seek(${fault.t})`);
        const down = await page.evaluate("[...document.querySelectorAll('.cable.cut, .machine.down')].length");
        assert.ok(down >= 1, fault.name);
        // What the sample before the cut counted is no rate of a link that is cut.
        if (fault.name === "trunk") assert.equal(await page.textContent('.cable-label[data-id="trunk"] .rate'), "cut");
      }
      await page.evaluate(`aerostat.seek(${lines.at(-1).t})`);
      const left = Object.keys(statesAt(lines, lines.at(-1).t).fault ?? []).length;
      assert.equal(await page.locator(".cable.cut, .machine.down").count(), left);
    }));
});

describe("a hostile or broken world", () => {
  const MARKUP = "<img src=x onerror=hacked=1></script><b>";

  test("names and texts are text, never markup", async () => {
    const hostile = (/** @type {any} */ value) => {
      if (typeof value === "string") return `${MARKUP}${value}\u001b[2J__proto__`;
      if (Array.isArray(value)) return value.map(hostile);
      if (value && typeof value === "object")
        return Object.fromEntries(
          Object.entries(value).map(([key, inner]) => [
            /^[a-z]+$/.test(key) ? key : hostile(key),
            key === "is" ? inner : hostile(inner),
          ]),
        );
      return value;
    };
    // Names of fields stay: those of counters are names of links and flows.
    const lines = linesOf(campus).map((line) => {
      const told = hostile(line);
      for (const group of ["links", "flows", "queues", "paths"]) {
        const named = line[group] ?? {};
        if (line[group])
          told[group] = Object.fromEntries(Object.entries(named).map(([key, value]) => [hostile(key), value]));
      }
      if (line.kind) told.kind = line.kind;
      if (line.state) told.state = line.state;
      if (line.what) told.what = hostile(line.what);
      return told;
    });
    await on(withStream("hostile.html", campus, lines), { hash: "#t=6.2" }, async (page) => {
      assert.equal(await alive(page), "alive");
      assert.equal(await page.locator("#sheet .machine").count(), 10);
      await page.evaluate("aerostat.page.select({ kind: 'node', id: [...aerostat.page.drawing.shapes.keys()][0] })");
      for (let tab = 0; tab < 7; tab += 1) await page.evaluate(`aerostat.page.tables.choose(${tab})`);
      await page.evaluate("aerostat.page.clock.step(-1); dispatchEvent(new Event('beforeprint'))");
      assert.equal(await page.locator("main img, main b b, dialog img").count(), 0);
      assert.equal(await page.evaluate("typeof hacked"), "undefined");
      assert.ok((await page.textContent("#story")).includes(MARKUP));
      const drawn = new Function("text", "return text")(await page.evaluate("aerostat.svg()"));
      assert.ok(!drawn.includes("<img"), "the exported drawing has text");
    });
  });

  test("a file that was cut says so, and shows what is in front of the cut", async () => {
    const { before, stream } = parts(campus);
    const inside = write("cut-stream.html", before + stream.slice(0, stream.length * 0.6));
    await on(inside, {}, async (page) => {
      assert.equal(await alive(page), "alive");
      assert.match(
        await page.textContent("#notice"),
        /^This file was cut in the middle: its record ends at \d+\.\d+ s\./,
      );
      assert.ok(await page.locator("#notice").isVisible());
      assert.equal(await page.locator("#sheet .machine").count(), 10);
    });
    for (const share of [0.3, 0.7]) {
      const script = write("cut-script.html", before.slice(0, before.length * share));
      const { page, close } = await open(browser, script);
      assert.match(await page.textContent("#notice"), /^This file was cut in the middle, so/);
      assert.notEqual(await alive(page), "alive");
      await close();
    }
  });

  test("an old browser gets a sentence and what needs no script", async () => {
    const text = fs.readFileSync(campus, "utf8");
    const { page, close } = await open(browser, write("old.html", text.replace("const SVG = ", "const %%% ")));
    assert.match(await page.textContent("#notice"), /^This browser is too old/);
    assert.ok(await page.locator("#static table").first().isVisible());
    await close();
    await on(
      campus,
      { before: (/** @type {any} */ page) => page.addInitScript("CSS.supports = () => false") },
      async (page) => {
        assert.match(await page.textContent("#notice"), /^This browser is too old/);
      },
    );
  });

  test("lines that nobody knows are ignored, broken ones are counted", async () => {
    const lines = [...linesOf(campus).slice(0, -1), { is: "comet", t: 1, tail: [{}] }, linesOf(campus).at(-1)];
    const file = withStream("unknown.html", campus, lines);
    const { before, stream, behind } = parts(file);
    await on(write("unknown.html", `${before}${stream}{"is":"mess\n${behind}`), {}, async (page) => {
      assert.equal(await alive(page), "alive");
      assert.match(await page.textContent("#bounds"), /^1 line of the record could not be read\.$/);
    });
  });

  test("without scripts the drawing, the story, the tables and the ladder are there", () =>
    on(campus, { context: { javaScriptEnabled: false } }, async (page) => {
      for (const part of ["#static svg", "#static .story", "#static table"])
        assert.ok(await page.locator(part).first().isVisible(), part);
      assert.ok(await page.locator("main.app").isHidden());
      const text = await page.locator("#static").innerText();
      for (const words of ["joined ELAN a as LECID", "urku-basso", "SETUP"]) assert.ok(text.includes(words), words);
    }));

  test("what was left out of a record is said", async () => {
    const lines = linesOf(campus);
    const end = { ...lines.at(-1), thinned: { message: 1234, story: 0, sample: 0 }, more: { nodes: 4400 } };
    await on(withStream("thinned.html", campus, [...lines.slice(0, -1), end]), {}, async (page) => {
      assert.match(
        await page.textContent("#bounds"),
        /1\u202f234 × message\..*4\u202f400 machines of this lab are not drawn/,
      );
    });
  });
});

// A server that serves the page of a running lab and tells hours of it in seconds.

import http from "node:http";
import { synthetic } from "./synthetic.mjs";

/** Tellings in a second of the watch. */
const RATE = 20;

/** Numbers of the calls that are there from the beginning. */
const CALLS = 200;
/** A second of the record takes so many seconds of the lab: a lab that is quiet most of the time. */
const SLOWER = 100;

/**
 * Serves the page and tells.
 * @param {{page: string, seconds: number, hours: number}} what the text of a live page; seconds of the watch, and hours
 * of the lab
 */
export async function serve({ page, seconds, hours }) {
  const whole = /** @type {any[]} */ (synthetic({ switches: 10, hosts: 60, calls: 200, changes: 40, seconds: 10 }));
  const fixed = whole.filter((line) => line.t === undefined || line.t === 0);
  const moving = whole.filter((line) => line.t > 0 && line.is !== "end");
  const end = hours * 3600e9;
  let [t, lines, begin] = [0, 0, 0];
  const server = http.createServer((request, response) => {
    if (request.url !== "/events") {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
      response.end(page);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const tell = (/** @type {object[]} */ all) => {
      lines += all.length;
      response.write(`${all.map((line) => `data: ${JSON.stringify(line)}`).join("\n")}\n\n`);
    };
    tell([...fixed, { is: "now", t: 1, left: { message: 0, story: 0, sample: 0 } }]);
    begin = Date.now();
    let [round, place, base] = [0, 0, 0];
    const timer = setInterval(() => {
      const now = Math.min(((Date.now() - begin) / 1000 / seconds) * end, end);
      /** @type {object[]} */
      const all = [];
      // The ten seconds of the record again and again: calls have other numbers each time.
      while (base + moving[place].t * SLOWER <= now) {
        const line = { ...moving[place], t: base + moving[place].t * SLOWER };
        if (line.is === "call") line.id = line.id > CALLS ? line.id + round * 1e6 : line.id;
        all.push(line);
        if (line.is === "call" && !line.gone) present.push(line.id);
        if (present.length > 400) all.push({ is: "call", t: line.t, id: present.shift(), gone: true });
        place += 1;
        if (place === moving.length) {
          [round, place, base] = [round + 1, 0, base + 10e9 * SLOWER];
          all.push({ is: "story", t: base, node: "s0", event: "round", text: `round ${round}`, milestone: true });
        }
      }
      t = now;
      tell([...all, { is: "now", t, left: { message: 0, story: 0, sample: 0 } }]);
      if (now >= end) clearInterval(timer);
    }, 1000 / RATE);
    request.on("close", () => clearInterval(timer));
  });
  /** @type {number[]} */
  const present = [];
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(0)));
  const { port } = /** @type {any} */ (server.address());
  return {
    address: `http://127.0.0.1:${port}/`,
    end,
    lines: () => lines,
    share: () => t / end,
    over: () => t >= end,
    close: () => server.close(),
  };
}

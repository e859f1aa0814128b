// A server that serves the page of a running lab and tells hours of it in seconds.

import http from "node:http";
import { synthetic } from "./synthetic.mjs";

/** Nanoseconds of the lab that one telling has. */
const STEP = 9e9;

/** Numbers of the calls that are there from the beginning. */
const CALLS = 200;
/** A second of the record takes so many seconds of the lab: a lab that is quiet most of the time. */
const SLOWER = 100;

/**
 * Serves the page, and tells it what happened when the test asks for that.
 * @param {{page: string, hours: number}} what the text of a live page; hours of the lab
 */
export async function serve({ page, hours }) {
  const whole = /** @type {any[]} */ (synthetic({ switches: 10, hosts: 60, calls: 200, changes: 40, seconds: 10 }));
  const fixed = whole.filter((line) => line.t === undefined || line.t === 0);
  const moving = whole.filter((line) => line.t > 0 && line.is !== "end");
  const end = hours * 3600e9;
  let [t, lines, round, place, base] = [0, 0, 0, 0, 0];
  /** @type {number[]} */
  const present = [];
  /** @type {http.ServerResponse | undefined} */
  let reader;
  const tell = (/** @type {object[]} */ all) => {
    lines += all.length;
    return new Promise((done) =>
      reader?.write(`${all.map((line) => `data: ${JSON.stringify(line)}`).join("\n")}\n\n`, done),
    );
  };
  // The ten seconds of the record again and again: calls have other numbers each time.
  const linesUntil = (/** @type {number} */ now) => {
    /** @type {object[]} */
    const all = [];
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
    return [...all, { is: "now", t: now, left: { message: 0, story: 0, sample: 0 } }];
  };
  const server = http.createServer((request, response) => {
    if (request.url !== "/events") {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
      response.end(page);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    reader = response;
    tell([...fixed, { is: "now", t: 1, left: { message: 0, story: 0, sample: 0 } }]);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(0)));
  const { port } = /** @type {any} */ (server.address());
  return {
    address: `http://127.0.0.1:${port}/`,
    end,
    lines: () => lines,
    tellUntil: async (/** @type {number} */ now) => {
      while (t < now) {
        t = Math.min(t + STEP, now);
        await tell(linesUntil(t));
      }
    },
    close: () => server.close(),
  };
}

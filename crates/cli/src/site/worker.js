"use strict";
// The worker of a page: one instance of the module, which checks labs or runs one. The page sends the text of this
// function to the worker, so it uses nothing of the page.

/** @typedef {{file: string, text: string, set: string[], seed?: string, until?: string, most_ms?: number, most_memory?: number}} Wish A lab and its options. */
/** @typedef {{severity: "error" | "warning", source: string, line: number, column: number, at: [number, number] | null, message: string, hint: string | null, see: string | null}} Finding */
/** @typedef {{name: string, description: string | null, seed: number, end_s: number, machines: number, flows: number}} About Facts about a lab. */
/** @typedef {{lab: About | null, findings: Finding[], text: string}} Answer An answer about a lab. */
/** @typedef {{title: string, columns: string[], importance: (string | Record<string, number>)[], rows: any[][]}} Shown A table. */
/** @typedef {{lab: string, interrupted: boolean, bound: "time" | "memory" | null, now_s: number, end_s: number, warnings: string[], hidden: number, tables: Shown[]}} Summary Results of a run. */
/** @typedef {{is: "checked", answer: Answer, number: number} | {is: "ready", answer: Answer} | {is: "progress", now: number, end: number, ms: number, memory: number, told: string} | {is: "done", summary: Summary, json: string, page: string, ms: number, memory: number} | {is: "broken", text: string, memory: number}} Said What a worker says. */

function work() {
  /** Milliseconds of work between two looks at the page's messages. */
  const TURN = 50;
  /** @type {any} */
  let calls;
  let stopped = false;
  const memory = () => (calls ? calls.memory.buffer.byteLength : 0);
  const say = (/** @type {Said} */ said) => postMessage(said);

  /**
   * The octets of the module at a place as text.
   * @param {number} at
   * @param {number} length
   */
  const text = (at, length) => new TextDecoder().decode(new Uint8Array(calls.memory.buffer, at, length));
  const output = () => text(calls.output(), calls.output_length());

  /**
   * Gives the module a request.
   * @param {Wish} wish
   */
  const give = (wish) => {
    const octets = new TextEncoder().encode(JSON.stringify(wish));
    const at = calls.input(octets.length);
    new Uint8Array(calls.memory.buffer, at, octets.length).set(octets);
  };

  /** Ends the run and says its results. */
  const finish = (/** @type {number} */ began) => {
    calls.finish();
    const summary = JSON.parse(output());
    const ms = performance.now() - began;
    calls.json();
    const json = output();
    calls.page();
    say({ is: "done", summary, json, page: output(), ms, memory: memory() });
  };

  /** Runs a lab, with turns in which the messages of the page come in. */
  const run = (/** @type {Wish} */ wish) => {
    const began = performance.now();
    give(wish);
    const valid = calls.begin() === 1;
    say({ is: "ready", answer: JSON.parse(output()) });
    if (!valid) return;
    const { port1, port2 } = new MessageChannel();
    const turn = () => {
      const end = performance.now() + TURN;
      let goesOn = true;
      do goesOn = calls.step() === 1;
      while (goesOn && performance.now() < end);
      if (!goesOn || stopped) return finish(began);
      calls.told();
      const ms = performance.now() - began;
      say({ is: "progress", now: calls.now_s(), end: calls.end_s(), ms, memory: memory(), told: output() });
      port2.postMessage(0);
    };
    port1.onmessage = () => guarded(turn);
    port2.postMessage(0);
  };

  /** Does something, and says it when the module breaks. */
  const guarded = (/** @type {() => void} */ act) => {
    try {
      act();
    } catch (error) {
      let why = error instanceof Error ? error.message : String(error);
      const length = calls ? calls.panic_length() : 0;
      if (length > 0) why = text(calls.panic_text(), length);
      say({ is: "broken", text: why, memory: memory() });
    }
  };

  onmessage = (event) =>
    guarded(() => {
      const { is, module, version, wish, number } = event.data;
      if (is === "module") {
        calls = new WebAssembly.Instance(module, { page: { now_ms: () => performance.now() } }).exports;
        calls.version();
        if (output() !== version) throw new Error(`the module is ${output()}, and this page needs ${version}`);
      } else if (is === "check") {
        give(wish);
        calls.check();
        say({ is: "checked", answer: JSON.parse(output()), number });
      } else if (is === "run") run(wish);
      else if (is === "stop") stopped = true;
    });
}

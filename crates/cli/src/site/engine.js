"use strict";
// The simulator of the page: its module, and the workers that use it.

/** The module as `module.js` has it: gzip in base64. @type {string | undefined} */
var AEROSTAT_MODULE;

/** The part of the page with this id. */
function part(/** @type {string} */ id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no part ${id}`);
  return found;
}

/** The field of the page with this id. */
function field(/** @type {string} */ id) {
  return /** @type {HTMLInputElement} */ (part(id));
}

/** Address of the worker's script, which is part of this one: a page of a file may load no other. */
const WORKER = URL.createObjectURL(new Blob([`(${work})()`], { type: "text/javascript" }));

/** Unpacks and compiles the module. */
async function compile() {
  if (AEROSTAT_MODULE === undefined) throw new Error("module.js is missing beside this page");
  const packed = Uint8Array.from(atob(AEROSTAT_MODULE), (sign) => sign.charCodeAt(0));
  AEROSTAT_MODULE = undefined;
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** A worker with the module. */
class Engine {
  /**
   * @param {WebAssembly.Module} module
   * @param {string} version of the module that the page needs
   * @param {(said: Said) => void} hear
   */
  constructor(module, version, hear) {
    this.worker = new Worker(WORKER);
    this.worker.onmessage = (event) => hear(event.data);
    this.worker.onerror = (event) => hear({ is: "broken", text: event.message, memory: 0 });
    this.worker.postMessage({ is: "module", module, version });
  }
  /**
   * Checks a lab.
   * @param {Wish} wish
   * @param {number} number of the question
   */
  check(wish, number) {
    this.worker.postMessage({ is: "check", wish, number });
  }
  /**
   * Runs a lab; a worker runs one.
   * @param {Wish} wish
   */
  run(wish) {
    this.worker.postMessage({ is: "run", wish });
  }
  /** Asks for the results so far. */
  stop() {
    this.worker.postMessage({ is: "stop" });
  }
  /** Ends it, with all of its memory. */
  end() {
    this.worker.onmessage = null;
    this.worker.terminate();
  }
}

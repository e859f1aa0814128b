"use strict";
// The page of a lab: checks the text while it is written, runs it, and tells its bounds before they are met.

/** Octets of memory that a run may have. */
const MOST_MEMORY = 1 << 30;
/** Machines of a lab that a tab runs; memory and time of larger ones are for the program. */
const MOST_MACHINES = 3000;
/** Octets of a lab's text; the program has the same limit. */
const MOST_TEXT = 4 << 20;
/** Milliseconds without a letter before the text is checked. */
const PAUSE = 250;
/** Milliseconds of a run in front of the first forecast. */
const FORECAST = 1500;
/** Milliseconds for a step after Stop, or after the time is up, before the worker is ended without results. */
const GRACE = 5000;

/** A size in words. */
function size(/** @type {number} */ octets) {
  return octets >= 1 << 30 ? `${(octets / (1 << 30)).toFixed(1)} GiB` : `${Math.ceil(octets / (1 << 20))} MiB`;
}

/** A time in words. */
function time(/** @type {number} */ ms) {
  const s = ms / 1000;
  if (s < 100) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  return s < 6000 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}

/** A number and its noun, which gets an s if the number is not 1. */
function counted(/** @type {number} */ count, /** @type {string} */ noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** The page. */
class LabPage {
  /**
   * @param {string} file name of the lab's file
   * @param {string} version of the module
   */
  constructor(file, version) {
    this.file = file;
    this.version = version;
    /** @type {WebAssembly.Module | null} */
    this.module = null;
    /** The engine that checks. @type {Engine | null} */
    this.checker = null;
    /** The engine that runs. @type {Engine | null} */
    this.runner = null;
    /** Number of the last question about the text. */
    this.asked = 0;
    /** Number of the last question that has an answer. */
    this.answered = 0;
    /** The last answer. @type {Answer | null} */
    this.answer = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.pause = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.patience = undefined;
    this.editor = new Editor(() => this.changed());
    this.results = new Results();
    part("most-memory").textContent = size(MOST_MEMORY);
    for (const id of ["seed", "until", "set"]) part(id).addEventListener("input", () => this.changed());
    part("run").addEventListener("click", () => this.run());
    part("stop").addEventListener("click", () => this.stop());
    part("share-button").addEventListener("click", () => this.share());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !field("run").disabled) this.run();
    });
    if (window !== window.parent) document.documentElement.classList.add("framed");
    /** True if the address asks for a run. */
    this.wanted = this.readAddress();
  }

  /** Takes text and options from the address; true if it asks for a run. */
  readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const text = asked.get("lab");
    if (text !== null) this.editor.text = text;
    for (const id of ["seed", "until"]) field(id).value = asked.get(id) ?? field(id).value;
    const set = asked.getAll("set");
    if (set.length) field("set").value = set.join("  ");
    return asked.has("run");
  }

  /** The address of this page with the present text and options. */
  address() {
    const wanted = [];
    const add = (/** @type {string} */ name, /** @type {string} */ value) =>
      value && wanted.push(`${name}=${encodeURIComponent(value)}`);
    if (this.editor.isChanged) add("lab", this.editor.text);
    add("seed", field("seed").value.trim());
    add("until", field("until").value.trim());
    for (const change of this.changes()) add("set", change);
    wanted.push("run");
    return `${location.href.split("#")[0]}#${wanted.join("&")}`;
  }

  /** The changes in the field. */
  changes() {
    return field("set")
      .value.split(/\s{2,}/)
      .map((change) => change.trim())
      .filter(Boolean);
  }

  /** The lab and its options. @returns {Wish} */
  wish() {
    const value = (/** @type {string} */ id) => field(id).value.trim() || undefined;
    return { file: this.file, text: this.editor.text, set: this.changes(), seed: value("seed"), until: value("until") };
  }

  /** Takes the module: the page comes to life. */
  async start() {
    if (this.module) return;
    try {
      this.module = await compile();
    } catch (error) {
      this.trouble(`The simulator cannot be loaded: ${error instanceof Error ? error.message : error}`);
      return;
    }
    this.check();
  }

  /** Says what failed. */
  trouble(/** @type {string} */ text) {
    part("trouble").textContent = text;
    part("trouble").hidden = text === "";
  }

  /** The text or an option has changed. */
  changed() {
    field("run").disabled = true;
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.check(), PAUSE);
  }

  /** True while an answer about the present text and options is to come. */
  isWaiting() {
    return this.pause !== undefined || this.answered !== this.asked;
  }

  /** Asks for the findings. */
  check() {
    clearTimeout(this.pause);
    this.pause = undefined;
    const wish = this.wish();
    if (wish.text.length > MOST_TEXT) {
      this.verdict(`more than ${MOST_TEXT} characters: too large for a lab file`, true);
      return;
    }
    if (!this.module) return;
    this.checker ??= new Engine(this.module, this.version, (said) => this.hearChecker(said));
    this.checker.check(wish, ++this.asked);
  }

  /** @param {Said} said */
  hearChecker(said) {
    if (said.is === "broken") {
      this.checker?.end();
      this.checker = null;
      this.verdict("", true);
      this.trouble(`The simulator failed while it checked this text: ${said.text}`);
    } else if (said.is === "checked" && said.number === this.asked) {
      this.answered = said.number;
      this.trouble("");
      this.take(said.answer);
    }
  }

  /** Shows an answer about the text. */
  take(/** @type {Answer} */ answer) {
    this.answer = answer;
    this.editor.tell(answer.findings);
    const errors = answer.findings.filter((one) => one.severity === "error").length;
    const warnings = answer.findings.length - errors;
    const counts = [errors && counted(errors, "error"), warnings && counted(warnings, "warning")].filter(Boolean);
    this.verdict(counts.join(", ") || "valid", errors > 0);
    const { lab } = answer;
    const large = (lab?.machines ?? 0) > MOST_MACHINES;
    part("size").textContent = lab
      ? `${counted(lab.machines, "machine")}, ${counted(lab.flows, "flow")}, ${lab.end_s} s of virtual time, seed ${lab.seed}.` +
        (large ? ` A tab runs at most ${MOST_MACHINES} machines; 'aerostat run' has no such bound.` : "")
      : "";
    part("size").classList.toggle("forecast", large);
    field("run").disabled = !lab || large || this.runner !== null;
    if (this.wanted && !field("run").disabled) this.run();
    this.wanted = false;
  }

  /** Says whether the text is valid. */
  verdict(/** @type {string} */ text, /** @type {boolean} */ wrong) {
    part("verdict").textContent = text;
    part("verdict").className = wrong ? "wrong" : "";
  }

  /** Milliseconds that a run may take. */
  mostTime() {
    const seconds = Number(field("most-seconds").value);
    const within = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 86_400) : 60;
    field("most-seconds").value = String(within);
    return within * 1000;
  }

  /** Runs the lab. */
  run() {
    if (!this.module || this.runner) return;
    this.results.clear();
    this.forecast("");
    this.trouble("");
    const most = this.mostTime();
    this.runner = new Engine(this.module, this.version, (said) => this.hearRunner(said, most));
    this.runner.run({ ...this.wish(), most_ms: most, most_memory: MOST_MEMORY });
    field("run").disabled = true;
    field("stop").disabled = false;
    part("bar").hidden = false;
    /** @type {any} */ (part("bar")).value = 0;
    part("progress").textContent = "starting";
    // Steps end by themselves when the time is up; this is for one that does not.
    this.wait(most + GRACE, "the time was up, and a step did not end");
  }

  /**
   * Ends the run without results after a time.
   * @param {number} ms
   * @param {string} why
   */
  wait(ms, why) {
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      this.over();
      part("progress").textContent = `ended without results: ${why}`;
    }, ms);
  }

  /** Asks for the results so far. */
  stop() {
    this.runner?.stop();
    field("stop").disabled = true;
    part("progress").textContent = "stopping";
    this.wait(GRACE, `stopped, and a step of a tenth of a virtual second took more than ${time(GRACE)}`);
  }

  /** No run is under way any more. */
  over() {
    clearTimeout(this.patience);
    this.runner?.end();
    this.runner = null;
    field("stop").disabled = true;
    part("bar").hidden = true;
    this.forecast("");
    this.check();
  }

  /**
   * @param {Said} said
   * @param {number} most milliseconds
   */
  hearRunner(said, most) {
    if (said.is === "ready") {
      if (said.answer.lab) return;
      this.over();
      this.take(said.answer);
      part("progress").textContent = "";
    } else if (said.is === "progress") this.progress(said, most);
    else if (said.is === "done") {
      this.over();
      this.outcome(said);
      this.results.show(said.summary, said.json, said.page);
    } else if (said.is === "broken") {
      this.over();
      const full = said.memory > MOST_MEMORY ? ` It had ${size(said.memory)} of memory.` : "";
      part("progress").textContent = "ended without results";
      this.trouble(`The simulator failed: ${said.text}.${full}`);
    }
  }

  /**
   * @param {Extract<Said, {is: "progress"}>} said
   * @param {number} most milliseconds
   */
  progress(said, most) {
    const done = said.end > 0 ? said.now / said.end : 0;
    /** @type {any} */ (part("bar")).value = done;
    if (field("stop").disabled) return;
    const all = said.ms / done;
    const left = done > 0 && said.ms > 500 ? `, about ${time(all - said.ms)} left` : "";
    const how = `${said.now.toFixed(1)} of ${said.end.toFixed(1)} s of virtual time${left}, ${size(said.memory)}`;
    part("progress").textContent = said.told ? `${how} · ${said.told}` : how;
    if (said.ms < FORECAST || done === 0) return;
    if (all > most) {
      const reached = (said.end * most) / all;
      this.forecast(
        `At this speed the run takes about ${time(all)}, and ${time(most)} are its bound: it will end at about ` +
          `${reached.toFixed(1)} s of virtual time. A shorter run: until; more time: the field above, in the next run.`,
      );
    } else if (said.memory / done > MOST_MEMORY && said.memory > MOST_MEMORY / 4) {
      this.forecast(
        `The run has ${size(said.memory)} of memory, and at this growth it will meet its bound of ` +
          `${size(MOST_MEMORY)} before its end.`,
      );
    } else this.forecast("");
  }

  /** Tells a bound that will be met. */
  forecast(/** @type {string} */ text) {
    const place = part("forecast");
    if (place.textContent !== text) place.textContent = text;
    place.hidden = text === "";
  }

  /** @param {Extract<Said, {is: "done"}>} said */
  outcome({ summary, ms, memory }) {
    const { now_s: now, end_s: end, bound } = summary;
    const took = `${now.toFixed(3)} s of virtual time in ${time(ms)}, ${size(memory)}`;
    const why =
      bound === "time"
        ? "ended early: the time was up"
        : bound === "memory"
          ? `ended early: more than ${size(MOST_MEMORY)} of memory`
          : summary.interrupted
            ? "stopped"
            : "";
    part("outcome").textContent = why ? `${why} at ${now.toFixed(3)} of ${end.toFixed(3)} s: the results so far` : took;
    part("progress").textContent = why ? `${why} (${took})` : `done: ${took}`;
  }

  /** Shows the address of this lab, and a frame with it. */
  share() {
    const address = this.address();
    field("link").value = address;
    const quoted = address.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");
    field("frame").value = `<iframe src="${quoted}" width="100%" height="900" title="${this.file}"></iframe>`;
    /** @type {HTMLDialogElement} */ (part("share")).showModal();
  }
}

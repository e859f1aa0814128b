// The page: brings its parts together around one cursor.

/** Milliseconds between updates of tables and texts while the record plays. */
const CALM = 200;
/** Milliseconds between updates of the address while the record plays; browsers limit their number. */
const RARE = 1000;

/** All parts of the page. */
class Page {
  /** @param {Recording} recording */
  constructor(recording) {
    const model = new Model(recording);
    this.signs = new Signs(recording.networks);
    const select = (/** @type {Chosen | null} */ what) => this.select(what);
    this.drawing = new Drawing(part("sheet"), model, this.signs, select);
    this.marks = new Marks(/** @type {HTMLCanvasElement} */ (part("marks")), this.drawing);
    this.clock = new Clock(model, (touched, moving) => this.show(touched, moving));
    const strips = ["overview", "detail"].map((id) => /** @type {HTMLCanvasElement} */ (part(id)));
    this.timeline = new Timeline(this.clock, strips[0], strips[1]);
    this.ladder = new Ladder(recording, (rung) => this.pick(rung));
    /** The lines of the story that are shown. @type {Story[]} */
    this.lines = [];
    this.story = new LongList(
      part("story"),
      21,
      (index) => this.storyRow(this.lines[index]),
      (index) => this.tell(index),
    );
    this.plots = new Plots(this.clock, part("plots"));
    this.tables = new Tables(model, select);
    this.inspector = new Inspector(model, select);
    /** What a user can do to a running lab. @type {Acts | null} */
    this.acts = recording.live ? new Acts(model) : null;
    /** @type {Chosen | null} */
    this.chosen = null;
    /** Instant of the watch of the last update of slow parts, milliseconds. */
    this.slow = 0;
    /** Instant of the watch of the last update of the address, milliseconds. */
    this.written = 0;
    this.clock.changed = () => this.showControls();
    this.chooseLines();
    this.fillHead(recording);
    this.fillLegend(recording);
    this.listen();
    listenToKeys(this);
    const wanted = location.hash;
    this.show(this.everything(), false);
    this.goToHash(wanted);
    this.showControls();
  }

  /**
   * The record of a running lab has grown: shows it, and forgets what is more than its bounds.
   * @param {Change[]} changes the new ones
   * @param {boolean} told true if there are new messages or lines of the story
   * @param {boolean} sampled true if there are new samples
   */
  grow(changes, told, sampled) {
    const { clock } = this;
    const { recording } = clock.model;
    for (const change of changes) this.drawing.threads.lanes.add(change);
    const forgets = recording.isLong();
    if (forgets) {
      const begin = recording.excess();
      // The cursor cannot stay where the record is forgotten.
      if (clock.following) clock.seek(Infinity);
      else if (clock.t < begin) clock.seek(begin);
      clock.model.forget(begin);
    }
    if (document.hidden) return;
    if (told || forgets) {
      this.ladder.grow();
      this.chooseLines();
    }
    if (sampled || forgets) this.plots.read();
    setText(part("until"), `of ${seconds(Math.floor(recording.until / 1e8) * 1e8)} s`);
    if (clock.following) clock.seek(Infinity, true);
    this.timeline.grow();
    this.acts?.show(this.chosen);
  }

  /** Keys of all present states. */
  everything() {
    const keys = new Set(["member/", "fault/", "shortcut/"]);
    for (const [kind, all] of this.clock.model.states) for (const id of all.keys()) keys.add(`${kind}/${id}`);
    return keys;
  }

  /** @param {Recording} recording */
  fillHead(recording) {
    const { head } = recording;
    setText(part("description"), head.description ?? "");
    const facts = [
      head.seed === undefined ? "" : `seed ${head.seed}`,
      head.time ? `${head.time} time` : "",
      head.version ? `aerostat ${head.version}` : "",
    ];
    setText(part("facts"), facts.filter(Boolean).join(" · "));
    setText(part("until"), `of ${seconds(recording.until)} s`);
    part("now").hidden = !recording.live;
    if (recording.live) return;
    const thinned = Object.entries(recording.end?.thinned ?? {}).filter(([, count]) => Number(count) > 0);
    const left = thinned.map(([kind, count]) => `${grouped(Number(count))} × ${kind}`);
    const hidden = Number(recording.end?.more?.nodes ?? 0);
    const said = [];
    const exact = recording.end?.states_until;
    if (left.length || exact !== undefined) said.push("The record was too long for all details.");
    if (left.length) said.push(`Left out: ${left.join(", ")}.`);
    said.push(
      exact === undefined ? "States are complete." : `From ${seconds(exact)} s on, states are those at samples.`,
    );
    if (said.length === 1) said.pop();
    const until = recording.end?.messages_until;
    if (until !== undefined) said.push(`All messages are there until ${seconds(until)} s.`);
    if (hidden > 0) {
      const are = hidden === 1 ? "is" : "are";
      said.push(`${counted(hidden, "machine")} of this lab ${are} not drawn: switches come first, hosts are counted.`);
      const more = [Number(recording.end?.more?.messages ?? 0), Number(recording.end?.more?.story ?? 0)];
      if (more[0] + more[1] > 0) {
        const lost = `${counted(more[0], "message")} and ${counted(more[1], "line")} of the story`;
        said.push(`What concerns them alone is left out: ${lost}.`);
      }
    }
    if (recording.broken > 0) said.push(`${counted(recording.broken, "line")} of the record could not be read.`);
    part("bounds").hidden = said.length === 0;
    setText(part("bounds"), said.join(" "));
  }

  /** @param {Recording} recording */
  fillLegend(recording) {
    const legend = part("legend");
    const kinds = new Set([...recording.machines.values()].map((machine) => machine.kind));
    for (const kind of [...KINDS.keys()].filter((kind) => kinds.has(kind))) {
      const picture = svg(
        "svg",
        { width: 20, height: 14, viewBox: "-10 -7 20 14", "aria-hidden": "true" },
        svg("g", { class: `machine ${kind}` }, outline(kind, 18, 12)),
      );
      legend.append(html("li", {}, picture, kindName(kind)));
    }
    for (const network of recording.networks) {
      const sign = svg(
        "svg",
        { width: 20, height: 14, "aria-hidden": "true" },
        this.signs.chip(network.name, 1, 1, 18, 12),
      );
      sign.querySelector(".sign")?.classList.add("joined");
      legend.append(
        html(
          "li",
          { title: `${network.subnet}, ${network.what}` },
          sign,
          `${network.clip ? "subnet" : network.line ? "line" : "ELAN"} ${network.name}`,
        ),
      );
    }
    const line = (/** @type {string} */ name, /** @type {number} */ width) =>
      svg(
        "svg",
        { width: 24, height: 14, "aria-hidden": "true" },
        svg("path", { class: name, d: "M1 7H23", "stroke-width": width }),
      );
    legend.append(html("li", {}, line("thread data", 2.2), "call, as wide as its rate"));
    const has = (/** @type {string} */ kind) =>
      recording.live || recording.changes.some((change) => change.kind === kind);
    if (has("shortcut")) legend.append(html("li", {}, line("thread shortcut", 4), "shortcut"));
    if (has("fault")) legend.append(html("li", {}, line("cut-line", 2), "cut or down"));
  }

  /** Shows the milestones of the story, or all of its lines. */
  chooseLines() {
    const all = this.clock.model.recording.story;
    this.lines = field("details").checked ? all : all.filter((line) => line.milestone);
    /** Instants of the lines that are shown. */
    this.lineTimes = Float64Array.from(this.lines, (line) => line.t);
    this.story.setCount(this.lines.length);
    this.story.setActive(after(this.lineTimes, this.clock.t) - 1, true);
  }

  /** @param {number} index of a line of the story */
  tell(index) {
    this.clock.pause();
    this.clock.seek(this.lines[index].t);
    this.select({ kind: "node", id: this.lines[index].node });
  }

  /** @param {Story} line */
  storyRow(line) {
    const row = html("div", { class: `line${line.milestone ? " milestone" : ""}`, title: line.text });
    row.append(
      html("span", { class: "t" }, stamp(line.t)),
      html("span", { class: "words" }, html("b", {}, line.node), ` ${line.text}`),
    );
    return row;
  }

  /** Connects the controls. */
  listen() {
    const clicks = /** @type {Record<string, () => void>} */ ({
      play: () => this.clock.toggle(),
      next: () => this.clock.step(1),
      previous: () => this.clock.step(-1),
      "told-next": () => this.clock.step(1, this.lineTimes),
      "told-before": () => this.clock.step(-1, this.lineTimes),
      theme: () => this.turnTheme(),
      save: () => this.save(),
      paper: () => print(),
      "help-button": () => this.help(),
      closer: () => this.drawing.view.zoom(1.4),
      farther: () => this.drawing.view.zoom(1 / 1.4),
      fit: () => this.drawing.view.fit(),
      now: () => this.clock.follow(),
    });
    for (const [id, act] of Object.entries(clicks)) part(id).addEventListener("click", act);
    const speed = field("speed");
    speed.append(
      ...SPEEDS.map((value) =>
        html(
          "option",
          { value },
          `${value >= 1e-3 ? value : `10${"⁻⁶⁻⁵⁻⁴".slice((Math.log10(value) + 6) * 2, (Math.log10(value) + 6) * 2 + 2)}`} ×`,
        ),
      ),
    );
    speed.addEventListener("change", () => this.clock.setSpeed(Number(speed.value)));
    field("details").addEventListener("change", () => this.chooseLines());
    field("skip").addEventListener("change", () => (this.clock.skips = field("skip").checked));
    field("shown").addEventListener("change", () =>
      this.drawing.threads.show(/** @type {Shown} */ (field("shown").value)),
    );
    const instant = field("instant");
    instant.addEventListener("change", () => this.goTo(instantOf(instant.value), instant.value));
    instant.addEventListener("blur", () => (instant.value = exactSeconds(this.clock.t)));
    instant.addEventListener("keydown", (event) => {
      if (event.key === "Enter") instant.blur();
    });
    const slider = part("slider");
    slider.addEventListener("keydown", (event) => this.sliderKey(event));
    addEventListener("hashchange", () => this.goToHash());
    listenToPrint(this);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  /**
   * Goes to an instant that the user has written; says why if it is none.
   * @param {number | null} t
   * @param {string} text
   */
  goTo(t, text) {
    this.clock.pause();
    if (t !== null) this.clock.seek(t);
    else this.say(`“${text}” is no instant: write seconds, such as 6.02, or 500ms`);
    const end = this.clock.model.recording.until;
    if (t !== null && t > end) this.say(`the run ends at ${seconds(end)} s`);
  }

  /**
   * Says something beside the instant, until the cursor moves.
   * @param {string} text
   */
  say(text) {
    setText(part("happens"), text);
    setText(part("live"), text);
  }

  /** @param {KeyboardEvent} event */
  sliderKey(event) {
    const { begin, until } = this.clock.model.recording;
    const moves = /** @type {Record<string, number>} */ ({
      ArrowRight: 0.01,
      ArrowUp: 0.01,
      ArrowLeft: -0.01,
      ArrowDown: -0.01,
      PageUp: 0.1,
      PageDown: -0.1,
    });
    const move = event.shiftKey ? undefined : moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.clock.pause();
    this.clock.seek(this.clock.t + move * (until - begin));
  }

  /**
   * Shows the present instant in all parts.
   * @param {Set<string>} touched
   * @param {boolean} moving
   */
  show(touched, moving) {
    const { clock } = this;
    const t = clock.t;
    this.drawing.update(touched, moving);
    if (clock.playing) this.marks.travel(t, clock.speed);
    else this.marks.stand(t);
    this.timeline.draw();
    const now = performance.now();
    if (clock.playing && now - this.slow < CALM) return;
    this.slow = now;
    this.showSlowly(t);
  }

  /**
   * Shows the parts that are for reading: some times a second while the record plays.
   * @param {number} t
   */
  showSlowly(t) {
    const { clock } = this;
    if (document.activeElement !== part("instant")) field("instant").value = exactSeconds(t);
    setAll(part("slider"), { "aria-valuenow": (t / 1e9).toFixed(6), "aria-valuetext": `${seconds(t)} seconds` });
    this.story.setActive(after(this.lineTimes ?? [], t) - 1, true);
    this.ladder.update(t);
    this.plots.update();
    this.tables.follow(clock.playing);
    this.inspector.show(this.chosen);
    const counts = /** @type {[string, string][]} */ ([
      ["call", "call"],
      ["member", "membership"],
      ["shortcut", "shortcut"],
      ["fault", "fault"],
    ]);
    const state = counts.map(([kind, noun]) => counted(clock.model.all(kind).size, noun)).join(" · ");
    setText(part("state"), [state, this.sampled()].filter(Boolean).join(" · "));
    if (clock.playing || clock.following) this.narrate(t);
    else this.announce(t, state);
    if (clock.following) return;
    if (!clock.playing || performance.now() - this.written > RARE) this.writeHash();
  }

  /** The interval whose rates the drawing shows: the sampled one in front of the cursor. */
  sampled() {
    const { samples } = this.clock.model.recording;
    const index = after(samples, this.clock.t) - 1;
    return index > 0 ? `rates of ${sampleTime(samples[index - 1])} to ${sampleTime(samples[index])} s` : "";
  }

  /**
   * Shows the last line of the story while the record plays.
   * @param {number} t
   */
  narrate(t) {
    const line = this.lines[after(this.lineTimes ?? [], t) - 1];
    setText(part("happens"), line ? `${line.node} ${line.text}` : "");
  }

  /**
   * Tells a screen reader where the cursor stands.
   * @param {number} t
   * @param {string} state
   */
  announce(t, state) {
    const { messages, messageTimes } = this.clock.model.recording;
    const at = (/** @type {ArrayLike<number>} */ times) =>
      times[after(times, t) - 1] === t ? after(times, t) - 1 : -1;
    const [message, line] = [messages[at(messageTimes)], this.lines[at(this.lineTimes ?? [])]];
    const happens = message
      ? `${message.from} to ${message.to}: ${message.text}`
      : line
        ? `${line.node} ${line.text}`
        : "";
    setText(part("live"), `${seconds(t)} seconds. ${happens ? `${happens}. ` : ""}${state}.`);
    setText(part("happens"), happens);
  }

  /** Shows whether it plays, and how fast. */
  showControls() {
    const { speed, following } = this.clock;
    const playing = this.clock.playing || following;
    setText(part("play"), playing ? "Pause" : "Play");
    part("play").setAttribute("aria-pressed", String(playing));
    part("now").setAttribute("aria-pressed", String(following));
    field("speed").value = String(speed);
    this.timeline.follow();
  }

  /**
   * Chooses a thing; null for nothing.
   * @param {Chosen | null} chosen
   */
  select(chosen) {
    if (chosen?.kind === "f-call" || chosen?.kind === "f-node") {
      this.ladder.only(chosen.kind, chosen.id);
      return;
    }
    if (chosen?.t !== undefined) {
      this.clock.pause();
      this.clock.seek(chosen.t);
    }
    this.chosen = chosen;
    this.drawing.mark(chosen);
    this.inspector.show(chosen);
    this.acts?.show(chosen);
  }

  /** @param {Rung} rung */
  pick(rung) {
    this.clock.pause();
    this.clock.seek((rung.message ?? rung.story).t, true);
    if (rung.message) this.select({ kind: "message", id: String(rung.message.order) });
    else this.select({ kind: "node", id: rung.story.node });
  }

  /** Puts the focus on the machines. */
  focusMachine() {
    const first = this.drawing.layers.machines.querySelector('[tabindex="0"]');
    if (first instanceof SVGElement) first.focus();
  }

  /**
   * A key on a machine: arrows lead to its neighbours, Enter and space choose it.
   * @param {Element} target
   * @param {KeyboardEvent} event
   */
  machineKey(target, event) {
    const name = /** @type {SVGElement} */ (target.closest(".machine")).dataset.id ?? "";
    if ((event.key === "Enter" || event.key === " ") && !event.shiftKey) {
      this.select({ kind: "node", id: name });
      return true;
    }
    const ways = /** @type {Record<string, [number, number]>} */ ({
      ArrowRight: [1, 0],
      ArrowLeft: [-1, 0],
      ArrowDown: [0, 1],
      ArrowUp: [0, -1],
    });
    const way = event.shiftKey ? undefined : ways[event.key];
    if (!way) return false;
    const next = this.drawing.neighbour(name, ...way);
    if (next) this.drawing.focus(next);
    return true;
  }

  /** Changes between dark and light. */
  turnTheme() {
    const dark =
      document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
    this.repaint();
  }

  /** Draws again what does not follow the style sheet by itself. */
  repaint() {
    COLOURS_NOW.clear();
    this.timeline.repaint();
    this.drawing.painter.invalidate();
  }

  /** Offers the drawing at the cursor as a file. */
  save() {
    const { lab } = this.clock.model.recording.head;
    const t = this.clock.t;
    offer(`${lab.replace(/[^\w.-]/g, "_")}-${seconds(t)}s.svg`, this.svg());
  }

  /** The drawing at the cursor as the text of an SVG file. */
  svg() {
    const title = `${this.clock.model.recording.head.lab} at ${seconds(this.clock.t)} s`;
    return new XMLSerializer().serializeToString(standalone(this.drawing, title)) + "\n";
  }

  /** Shows the keys. */
  help() {
    /** @type {HTMLDialogElement} */ (part("help")).showModal();
  }

  /**
   * Goes to the instant of the address, `#t=6.02`.
   * @param {string} [hash]
   */
  goToHash(hash = location.hash) {
    const [name, text] = hash.split("=", 2);
    if (name !== "#t" || text === undefined) return;
    const t = instantOf(decodeURIComponent(text));
    if (t === null || Math.round(t) !== this.clock.t) this.goTo(t, text);
  }

  /** Writes the instant into the address, so that a copy of it leads here. */
  writeHash() {
    this.written = performance.now();
    const hash = `#t=${seconds(this.clock.t)}`;
    if (location.hash === hash || (this.clock.t === 0 && location.hash === "")) return;
    // A browser that forbids this for local files has an address without the instant.
    try {
      history.replaceState(null, "", hash);
    } catch {
      return;
    }
  }
}

/**
 * Starts the page with a record.
 * @param {Recording} recording
 */
function start(recording) {
  if (recording.layout.boxes.length === 0) throw new Error("it holds no drawing");
  // The parts measure their room, so they must be seen before they are built.
  document.documentElement.className = "alive";
  part("results-here").append(part("results"));
  const page = new Page(recording);
  return {
    page,
    ends: () => seconds(recording.until),
    seek: (/** @type {number} */ t) => page.clock.seek(t),
    stateAt: (/** @type {number} */ t) => page.clock.model.stateAt(t),
    svg: () => page.svg(),
  };
}

document.addEventListener("DOMContentLoaded", () => {
  // Tests and other programs use the page by this name; boot.js says in a sentence what failed.
  const names = /** @type {{aerostat?: object}} */ (window);
  try {
    const text = document.getElementById("events")?.textContent ?? "";
    names.aerostat = text.trim().startsWith('{"is":"live"') ? new Live(names).known : start(Recording.read(text));
  } catch (error) {
    names.aerostat = { failure: error instanceof Error ? error.message : String(error) };
    throw error;
  }
});

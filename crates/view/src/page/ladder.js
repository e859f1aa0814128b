// The ladder: messages in order of time, with the story between them, behind a filter.

/** Most machines that have a line of their own in the ladder; with more of them messages are words only. */
const MOST_COLUMNS = 14;
/** Least width of the list with such lines, pixels. */
const WIDE = 560;
/** Most calls in the list of the filter; the others are reached by the tables. */
const MOST_CALLS_LISTED = 2000;
/** The filter that leaves out the polls and acknowledgements of SSCOP. */
const QUIET = "-sscop";
/** Height of a row, pixels. */
const ROW = 22;

/** A row of the ladder: a message or a line of the story. @typedef {{message: Message, story: null} | {message: null, story: Story}} Rung */

/** The ladder and its filter. */
class Ladder {
  /**
   * @param {Recording} recording
   * @param {(rung: Rung) => void} pick
   */
  constructor(recording, pick) {
    this.recording = recording;
    this.rungs = this.merged();
    /** Indexes of the rungs that pass the filter. @type {number[]} */
    this.passed = [];
    this.times = new Float64Array();
    this.box = part("ladder");
    this.columns = recording.columns().filter((name) => recording.machines.has(name));
    this.diagram = false;
    this.list = new LongList(
      this.box,
      ROW,
      (index) => this.row(this.rungs[this.passed[index]]),
      (index) => pick(this.rungs[this.passed[index]]),
    );
    /** What the selections of the filter offer: `f-protocol/lane`. @type {Set<string>} */
    this.offered = new Set();
    this.fill();
    for (const id of ["f-protocol", "f-node", "f-call", "f-story", "details"])
      field(id).addEventListener("change", () => this.filter());
    field("f-text").addEventListener("input", () => this.filter());
    new ResizeObserver(() => this.arrange()).observe(this.box);
    this.arrange();
    this.filter();
  }

  /** Messages and lines of the story in the order in which they happened. */
  merged() {
    /** @type {Rung[]} */
    const rungs = this.recording.messages.map((message) => ({ message, story: null }));
    for (const story of this.recording.story) rungs.push({ message: null, story });
    const one = (/** @type {Rung} */ rung) => rung.message ?? rung.story;
    return rungs.sort((a, b) => one(a).t - one(b).t || one(a).order - one(b).order);
  }

  /** The record of a running lab has grown. */
  grow() {
    this.rungs = this.merged();
    this.fill();
    this.filter();
  }

  /**
   * Offers a value in a selection, once.
   * @param {string} id of the selection
   * @param {string} value
   * @param {string} [text]
   */
  offer(id, value, text = value) {
    if (this.offered.has(`${id}/${value}`)) return;
    this.offered.add(`${id}/${value}`);
    part(id).append(html("option", { value }, text));
  }

  /** Fills the selections of the filter with what the record has. */
  fill() {
    const protocols = new Set(this.recording.messages.map((message) => message.protocol));
    const nodes = new Set(this.recording.messages.flatMap((message) => [message.from, message.to]));
    if (protocols.has("sscop") && protocols.size > 1 && !this.offered.has(`f-protocol/${QUIET}`)) {
      // Polls of the links under signalling fill quiet times, and tell a beginner nothing.
      this.offer("f-protocol", QUIET, "all but sscop");
      if (field("f-protocol").value === "") field("f-protocol").value = QUIET;
    }
    for (const name of [...protocols].sort()) this.offer("f-protocol", name);
    for (const name of this.columns.filter((name) => nodes.has(name))) this.offer("f-node", name);
    /** The colours of the families of protocols that the record has. */
    this.keys = [...new Set([...protocols].map(familyOf))]
      .sort()
      .map((family) => html("span", { class: `key p-${family}` }, FAMILY_NAMES.get(family) ?? family));
    this.fillCalls();
  }

  /** Fills the selection of calls. Those of a running lab come and go: tables and machines lead to them. */
  fillCalls() {
    if (this.recording.live) {
      field("f-call").disabled = field("f-call").value === "";
      return;
    }
    const calls = new Set(this.recording.messages.map((message) => message.call ?? null));
    calls.delete(null);
    /** Ends of all calls by id. @type {Map<string, string>} */
    const ends = new Map();
    for (const { kind, id, after: state } of this.recording.changes) {
      if (kind === "call" && state) ends.set(String(id), `${state.from} → ${state.to ?? "?"}`);
    }
    const ids = [...calls].sort((a, b) => Number(a) - Number(b)).map(String);
    for (const id of ids.slice(0, MOST_CALLS_LISTED)) this.offer("f-call", id, `${id}: ${ends.get(id) ?? "?"}`);
    field("f-call").disabled = calls.size === 0;
  }

  /**
   * Leaves the messages of one call or one machine only.
   * @param {"f-call" | "f-node"} filter
   * @param {string} value
   */
  only(filter, value) {
    for (const id of ["f-protocol", "f-node", "f-call", "f-text"]) field(id).value = "";
    const select = part(filter);
    const listed = [...select.querySelectorAll("option")].some((option) => option.value === value);
    if (!listed) select.append(html("option", { value }, value));
    field(filter).value = value;
    field(filter).disabled = false;
    this.filter();
    this.box.scrollIntoView({ block: "nearest" });
  }

  /** Chooses between lines and words by the room that there is. */
  arrange() {
    const column = Math.floor(within((this.box.clientWidth * 0.54) / this.columns.length, 30, 60));
    for (const one of [this.box, part("ladder-heads")]) {
      one.style.setProperty("--columns", String(this.columns.length));
      one.style.setProperty("--column", `${column}px`);
    }
    const diagram = this.columns.length > 1 && this.columns.length <= MOST_COLUMNS && this.box.clientWidth >= WIDE;
    if (diagram === this.diagram) return;
    this.diagram = diagram;
    this.box.classList.toggle("diagram", diagram);
    const heads = part("ladder-heads");
    heads.hidden = !diagram;
    heads.replaceChildren(
      html("span", {}, "s"),
      html("div", { class: "lanes" }, ...this.columns.map((name) => html("span", {}, name))),
      html("span", { title: "VPI and VCI on this link" }, "VPI.VCI"),
      html("span", {}, "message"),
    );
    this.list.redraw();
  }

  /** Applies the filter. */
  filter() {
    const [protocol, node, call] = ["f-protocol", "f-node", "f-call"].map((id) => field(id).value);
    const words = field("f-text").value.toLowerCase();
    const [story, details] = ["f-story", "details"].map((id) => field(id).checked);
    const passes = (/** @type {Rung} */ { message, story: line }) => {
      const about = message ? [message.from, message.to] : [line.node];
      if (node && !about.includes(node)) return false;
      if (line)
        return (
          story && (line.milestone || details) && (!words || `${line.node} ${line.text}`.toLowerCase().includes(words))
        );
      if (protocol && (protocol === QUIET ? message.protocol === "sscop" : message.protocol !== protocol)) return false;
      if (call && String(message.call) !== call) return false;
      return (
        !words ||
        `${message.from} ${message.to} ${message.vc} ${message.protocol} ${message.text}`.toLowerCase().includes(words)
      );
    };
    this.passed = [];
    this.rungs.forEach((rung, index) => {
      if (passes(rung)) this.passed.push(index);
    });
    this.times = Float64Array.from(this.passed, (index) => (this.rungs[index].message ?? this.rungs[index].story).t);
    const messages = this.passed.filter((index) => this.rungs[index].message).length;
    const all = this.recording.messages.length;
    const count = messages === all ? counted(all, "message") : `${grouped(messages)} of ${counted(all, "message")}`;
    const { left } = this.recording;
    const missing = [
      left.message ? counted(left.message, "message") : "",
      left.story ? `${counted(left.story, "line")} of the story` : "",
    ].filter(Boolean);
    const said = missing.length ? ` · left out: ${missing.join(", ")}` : "";
    part("ladder-count").replaceChildren(count + said, ...(this.keys ?? []));
    this.list.setCount(this.passed.length);
    this.update(this.t ?? 0);
  }

  /**
   * Brings the row of an instant into sight: the last one that has happened.
   * @param {number} t
   */
  update(t) {
    /** @type {number | undefined} */
    this.t = t;
    const last = after(this.times, t) - 1;
    // A row that the user chose stays the present one among those of its instant.
    const kept = this.list.active >= 0 && this.times[this.list.active] === t;
    this.list.setActive(kept ? this.list.active : last, !kept);
  }

  /**
   * A row of the list.
   * @param {Rung} rung
   */
  row({ message, story }) {
    if (story) {
      const words = html("span", { class: "words" }, html("b", {}, story.node), ` ${story.text}`);
      return html(
        "div",
        { class: `rung story${story.milestone ? " milestone" : ""}` },
        html("span", { class: "t" }, stamp(story.t)),
        words,
      );
    }
    const label = `${seconds(message.t, 6)} ${message.from} to ${message.to} on ${message.vc}: ${message.text}`;
    const row = html("div", {
      class: `rung p-${familyOf(message.protocol)}${message.dropped ? " dropped" : ""}`,
      title: label,
    });
    row.append(html("span", { class: "t" }, stamp(message.t)));
    const drawn = this.diagram ? this.arrow(message) : null;
    row.append(drawn ?? html("span", { class: "ends" }, `${message.from} → ${message.to}`));
    row.append(
      html("span", { class: "vc" }, message.vc),
      html("span", { class: "words" }, message.dropped ? `${message.text} — lost: ${message.dropped}` : message.text),
    );
    return row;
  }

  /**
   * An arrow between the lines of two machines; null if one of them has no line.
   * @param {Message} message
   */
  arrow(message) {
    const [from, to] = [this.columns.indexOf(message.from), this.columns.indexOf(message.to)];
    if (from < 0 || to < 0) return null;
    const middle = (/** @type {number} */ column) => ((column + 0.5) / this.columns.length) * 100;
    const shaft = html("span", { class: `shaft ${from < to ? "right" : "left"}` });
    shaft.style.left = `${middle(Math.min(from, to))}%`;
    shaft.style.width = `${Math.max(Math.abs(middle(to) - middle(from)), 1)}%`;
    return html(
      "span",
      { class: "lanes" },
      shaft,
      html("span", { class: "unseen" }, `${message.from} to ${message.to}`),
    );
  }
}

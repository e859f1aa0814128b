// Tables of the state at the cursor, and of the counters at the sample before it.

/** Most rows of a table in the page; the filter finds the others. */
const MOST_ROWS = 200;

/** What the user has chosen to see more of: a thing, perhaps at an instant, or the messages of a machine or call (`f-node`, `f-call`). @typedef {{kind: string, id: string, t?: number}} Chosen */
/** A cell: text, or a number for people, which stands at the right. @typedef {string | {n: string}} Field */
/** A row: its cells, and what it is about. @typedef {{fields: Field[], about: Chosen | null}} Row */
/** @typedef {{name: string, columns: string[], sampled: boolean, rows: (model: Model) => Row[]}} TableOf */

/**
 * A cell with a number.
 * @param {string | number | null | undefined} value
 * @returns {Field}
 */
function number(value) {
  return { n: value === null || value === undefined ? "–" : typeof value === "number" ? grouped(value) : value };
}

/**
 * A cell with text; a dash for nothing.
 * @param {any} value
 */
function words(value) {
  return value === null || value === undefined || value === ""
    ? "–"
    : Array.isArray(value)
      ? value.filter(Boolean).join(" – ")
      : String(value);
}

/**
 * The states of a kind in order of their ids.
 * @param {Model} model
 * @param {string} kind
 */
function sorted(model, kind) {
  return [...model.all(kind).values()].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/**
 * The rate of cells as the rate of their octets on the line, 53 each.
 * @param {number | null | undefined} cells per second
 */
function lineRate(cells) {
  return number(cells === null || cells === undefined ? null : bitRate(cells * CELL * 8));
}

/** @type {TableOf[]} */
const TABLES = [
  {
    name: "Calls",
    columns: ["call", "from", "to", "purpose", "state", "labels at the ends", "links", "since, s", "rate"],
    sampled: true,
    rows: (model) =>
      sorted(model, "call").map((call) => ({
        about: { kind: "call", id: String(call.id) },
        fields: [
          number(call.id),
          words(call.from),
          call.leaves?.length ? words(call.leaves.join(", ")) : words(call.to),
          words(call.what),
          words(call.state),
          words(call.vc),
          number(call.via?.length ?? 0),
          number(stamp(call.since)),
          lineRate(model.callRate(call.id)),
        ],
      })),
  },
  {
    name: "Members",
    columns: ["machine", "network", "by", "state", "LECID", "since, s"],
    sampled: false,
    rows: (model) =>
      sorted(model, "member").map((member) => ({
        about: { kind: "node", id: member.node },
        fields: [
          words(member.node),
          words(member.network),
          words(member.by),
          words(member.state),
          number(member.lecid),
          number(stamp(member.changed)),
        ],
      })),
  },
  {
    name: "Shortcuts",
    columns: ["from", "to", "destination", "by", "state", "label", "call", "since, s"],
    sampled: false,
    rows: (model) =>
      sorted(model, "shortcut").map((one) => ({
        about:
          one.call === undefined || one.call === null
            ? { kind: "node", id: one.from }
            : { kind: "call", id: String(one.call) },
        fields: [
          words(one.from),
          words(one.to),
          words(one.dest),
          words(one.by),
          words(one.state),
          words(one.vc),
          number(one.call),
          number(stamp(one.changed)),
        ],
      })),
  },
  {
    name: "Links",
    columns: ["link", "what", "state", "cells there", "cells back", "lost", "rate there", "rate back"],
    sampled: true,
    rows: (model) =>
      [...model.recording.links.values()].map((link) => {
        const counters = model.counters(`links/${link.name}`);
        const [there, back, lost] = counters?.values ?? [];
        return {
          about: { kind: "link", id: link.name },
          fields: [
            link.name,
            link.what,
            model.isDown("link", link.name) ? "cut" : "up",
            number(there),
            number(back),
            number(lost),
            lineRate(counters?.rates[0]),
            lineRate(counters?.rates[1]),
          ],
        };
      }),
  },
  {
    name: "Flows",
    columns: ["flow", "from", "to", "kind", "state", "sent", "received", "lost", "throughput", "mean delay"],
    sampled: true,
    rows: (model) =>
      [...model.recording.flows.values()].map((flow) => {
        const counters = model.counters(`flows/${flow.name}`);
        const [sent, received, lost] = counters?.values ?? [];
        const delay = counters && counters.rates[1] > 0 ? counters.rates[5] / counters.rates[1] : null;
        return {
          about: null,
          fields: [
            flow.name,
            flow.from,
            flow.to,
            flow.kind,
            words(model.get("traffic", flow.name)?.state),
            number(sent),
            number(received),
            number(lost),
            number(counters ? bitRate((counters.rates[4] ?? 0) * 8) : null),
            number(delay === null ? null : duration(delay)),
          ],
        };
      }),
  },
  {
    name: "Queues",
    columns: ["port", "cells"],
    sampled: true,
    rows: (model) =>
      [...model.recording.series.keys()]
        .filter((key) => key.startsWith("queues/"))
        .map((key) => {
          const name = key.slice("queues/".length);
          return {
            about: { kind: "node", id: name.replace(/:[^:]*$/, "") },
            fields: [name, number(model.queue(name))],
          };
        }),
  },
  {
    name: "Faults",
    columns: ["what", "name", "text", "since, s"],
    sampled: false,
    rows: (model) =>
      sorted(model, "fault").map((fault) => ({
        about: fault.what === "link" ? { kind: "link", id: fault.name } : { kind: "node", id: fault.name },
        fields: [words(fault.what), words(fault.name), words(fault.text), number(stamp(fault.since))],
      })),
  },
];

/**
 * The ways of packets that were followed. A stage leads to its instant; one that lasts at the cursor is marked.
 * @type {TableOf}
 */
const PACKETS = {
  name: "Packets",
  columns: ["packet", "begins, s", "takes", "machine", "what happens", "at the cursor"],
  sampled: false,
  rows: (model) =>
    model.recording.packets.flatMap(({ name, text, stages }) => [
      { about: null, fields: [name, number(""), number(""), "", text, ""] },
      ...stages.map((stage) => ({
        about: { kind: stage.link ? "link" : "node", id: stage.link ?? stage.node, t: stage.t },
        fields: [
          name,
          number(stamp(stage.t)),
          number(duration(stage.takes)),
          stage.link ? `${stage.node}, ${stage.link}` : stage.node,
          stage.text,
          stage.t <= model.t && model.t < stage.t + Math.max(stage.takes, 1) ? "◂ here" : "",
        ],
      })),
    ]),
};

/** The tables behind their tabs. */
class Tables {
  /**
   * @param {Model} model
   * @param {(what: Chosen) => void} select
   */
  constructor(model, select) {
    this.model = model;
    this.select = select;
    this.offered = model.recording.packets.length ? [PACKETS, ...TABLES] : TABLES;
    this.shown = this.offered[0];
    this.tabs = this.offered.map((table, index) => {
      const tab = html(
        "button",
        { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "table", tabindex: index ? -1 : 0 },
        table.name,
      );
      tab.addEventListener("click", () => this.choose(index));
      tab.addEventListener("keydown", (event) => {
        const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!move) return;
        event.stopPropagation();
        this.choose((index + move + this.offered.length) % this.offered.length).focus();
      });
      return tab;
    });
    part("tabs").append(...this.tabs);
    field("table-filter").addEventListener("input", () => this.draw());
    /** True while a part of the table is in sight. */
    this.seen = false;
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting;
      this.follow(true);
    }).observe(part("table"));
    this.choose(0);
  }

  /** @param {number} index */
  choose(index) {
    this.shown = this.offered[index];
    this.tabs.forEach((tab, other) =>
      setAll(tab, { "aria-selected": String(other === index), tabindex: other === index ? 0 : -1 }),
    );
    part("table").setAttribute("aria-labelledby", `tab-${index}`);
    this.draw();
    return this.tabs[index];
  }

  /**
   * Follows the cursor; out of sight only where it stands.
   * @param {boolean} moving
   */
  follow(moving) {
    if (this.seen || !moving) this.draw();
  }

  /** Draws the table that is shown. */
  draw() {
    const box = part("table");
    const wanted = field("table-filter").value.toLowerCase();
    const text = (/** @type {Field} */ one) => (typeof one === "string" ? one : one.n);
    const rows = this.shown
      .rows(this.model)
      .filter((row) => !wanted || row.fields.map(text).join(" ").toLowerCase().includes(wanted));
    const kept = rows.slice(0, MOST_ROWS);
    const sampled = this.model.sampled;
    const note = [
      counted(rows.length, "row"),
      rows.length > kept.length ? `the first ${MOST_ROWS} are shown; the filter finds the others` : "",
    ];
    if (this.shown.sampled)
      note.push(sampled === null ? "no sample yet" : `counters: sample of ${sampleTime(sampled)} s`);
    setText(part("table-note"), note.filter(Boolean).join(" · "));
    // The focus stays on a row's button while the record plays.
    const focused = box.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
    box.replaceChildren(this.table(this.shown.columns, kept));
    if (focused)
      for (const button of box.querySelectorAll("button")) if (button.dataset.key === focused) button.focus();
  }

  /**
   * @param {string[]} columns
   * @param {Row[]} rows
   */
  table(columns, rows) {
    const head = html(
      "tr",
      {},
      ...columns.map((name, at) =>
        html("th", { scope: "col", class: rows.length && typeof rows[0].fields[at] !== "string" ? "n" : null }, name),
      ),
    );
    const body = rows.map(({ fields, about }) => {
      const cells = fields.map((one) =>
        typeof one === "string" ? html("td", {}, one) : html("td", { class: "n" }, one.n),
      );
      if (about && cells.length) {
        const key = `${about.kind}/${about.id}/${about.t ?? ""}/${cells[0].textContent}`;
        const button = html("button", { type: "button", class: "plain", "data-key": key }, cells[0].textContent ?? "");
        button.addEventListener("click", () => this.select(about));
        cells[0].replaceChildren(button);
      }
      return html("tr", {}, ...cells);
    });
    return html("table", {}, html("thead", {}, head), html("tbody", {}, ...body));
  }

  /** All tables that have rows, for print. */
  all() {
    return this.offered.flatMap((table) => {
      const rows = table.rows(this.model).slice(0, MOST_ROWS);
      return rows.length ? [html("h3", {}, table.name), this.table(table.columns, rows)] : [];
    });
  }
}

// The state at the cursor of what the user chose: a machine, a link, a call or a message.

/** Most calls in a list of the inspector. */
const MOST_CALLS = 40;

/** What is shown of one thing: its title, facts and lists. @typedef {{title: string, sub: string, facts: [string, string][], sampled: [string, string][], lists: [string, [string, Chosen | null][]][]}} Sheet */

/** Shows one thing. */
class Inspector {
  /**
   * @param {Model} model
   * @param {(what: Chosen) => void} select
   */
  constructor(model, select) {
    this.model = model;
    this.select = select;
    this.box = part("inspector");
    this.told = "";
  }

  /**
   * Shows the chosen thing at the cursor.
   * @param {Chosen | null} chosen
   */
  show(chosen) {
    const sheet = chosen ? this.sheet(chosen) : null;
    const told = JSON.stringify([sheet, chosen, sheet?.sampled.length ? this.model.sampled : null]);
    if (told === this.told) return;
    this.told = told;
    part("nothing-chosen").hidden = sheet !== null;
    if (!sheet) {
      this.box.replaceChildren();
      return;
    }
    const focused = this.box.contains(document.activeElement) ? document.activeElement?.textContent : null;
    this.box.replaceChildren(...this.parts(sheet));
    if (focused)
      for (const button of this.box.querySelectorAll("button")) if (button.textContent === focused) button.focus();
  }

  /** @param {Sheet} sheet */
  parts(sheet) {
    const facts = (/** @type {[string, string][]} */ list) =>
      html("dl", {}, ...list.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
    const parts = [html("h3", {}, sheet.title, " ", html("small", {}, sheet.sub)), facts(sheet.facts)];
    if (sheet.sampled.length) {
      const sampled = this.model.sampled;
      parts.push(
        html("h4", {}, sampled === null ? "No sample yet" : `Sample of ${sampleTime(sampled)} s`),
        facts(sheet.sampled),
      );
    }
    for (const [title, items] of sheet.lists) {
      if (items.length === 0) continue;
      parts.push(html("h4", {}, items.length > 1 ? `${title} (${items.length})` : title));
      parts.push(
        html(
          "ul",
          {},
          ...items.slice(0, MOST_CALLS).map(([text, about]) => html("li", {}, about ? this.button(text, about) : text)),
        ),
      );
      if (items.length > MOST_CALLS)
        parts.push(html("p", { class: "note" }, `and ${items.length - MOST_CALLS} more, in the tables`));
    }
    return parts;
  }

  /**
   * @param {string} text
   * @param {Chosen} about
   */
  button(text, about) {
    const button = html("button", { type: "button", class: "plain" }, text);
    button.addEventListener("click", () => this.select(about));
    return button;
  }

  /**
   * @param {Chosen} chosen
   * @returns {Sheet | null}
   */
  sheet({ kind, id }) {
    if (kind === "node") return this.machine(id);
    if (kind === "link") return this.link(id);
    if (kind === "call") return this.call(id);
    if (kind === "message") return this.message(Number(id));
    return null;
  }

  /**
   * @param {string} name
   * @returns {Sheet | null}
   */
  machine(name) {
    const { model } = this;
    const machine = model.recording.machines.get(name);
    if (!machine) return null;
    const members = [...model.all("member").values()].filter((member) => member.node === name);
    const links = [...model.recording.links.values()].filter((link) => link.ends.includes(name));
    const near = new Set(links.map((link) => link.name));
    const calls = sorted(model, "call").filter((call) =>
      call.via?.some((/** @type {string} */ link) => near.has(link)),
    );
    const ends = calls.filter((call) => call.from === name || call.to === name || call.leaves?.includes(name));
    const shortcuts = sorted(model, "shortcut").filter((one) => one.from === name);
    const stateOf = (/** @type {string} */ network) => members.find((member) => member.network === network);
    const joined = (/** @type {State | undefined} */ member) =>
      member ? `${member.state}${member.lecid ? `, LECID ${member.lecid}` : ""}` : "not joined";
    const queues = [...model.recording.series.keys()]
      .filter((key) => key.startsWith(`queues/${name}:`))
      .map((key) => key.slice(7));
    return {
      title: name,
      sub: kindName(machine.kind),
      facts: [
        ["state", model.isDown("node", name) ? "down" : "up"],
        ...machine.addresses.map(
          ([address, network]) =>
            /** @type {[string, string]} */ ([address, `${network}: ${joined(stateOf(network))}`]),
        ),
        ...(machine.atm ? [/** @type {[string, string]} */ (["ATM address", machine.atm])] : []),
      ],
      sampled: queues.map((queue) => [
        `queue of port ${queue.slice(name.length + 1)}`,
        counted(model.queue(queue), "cell"),
      ]),
      lists: [
        [
          "Shortcuts",
          shortcuts.map((one) => [
            `${one.dest}: ${one.state}${one.vc ? ` on ${one.vc}` : ""}`,
            one.call === undefined || one.call === null ? null : { kind: "call", id: String(one.call) },
          ]),
        ],
        ["Messages", [["those that it sends or receives", { kind: "f-node", id: name }]]],
        ["Links", links.map((link) => [link.name, { kind: "link", id: link.name }])],
        ["Calls that end here", ends.map((call) => this.named(call))],
        ["Calls through it", calls.filter((call) => !ends.includes(call)).map((call) => this.named(call))],
      ],
    };
  }

  /**
   * A call as an item of a list.
   * @param {State} call
   * @param {string} [label]
   * @returns {[string, Chosen]}
   */
  named(call, label) {
    const to = call.to ?? (call.leaves?.length ? counted(call.leaves.length, "leaf").replace("leafs", "leaves") : "?");
    return [
      `${label ? `${label} ` : ""}${call.from} → ${to}, ${call.what ?? "call"} ${call.id}`,
      { kind: "call", id: String(call.id) },
    ];
  }

  /**
   * @param {string} name
   * @returns {Sheet | null}
   */
  link(name) {
    const { model } = this;
    const link = model.recording.links.get(name);
    if (!link) return null;
    const [a, b] = link.ends;
    const counters = model.counters(`links/${name}`);
    const cells = (/** @type {number} */ way) =>
      `${grouped(counters?.values[way] ?? 0)} cells, ${bitRate((counters?.rates[way] ?? 0) * CELL * 8)}`;
    /** @type {[string, Chosen][]} */
    const calls = [];
    for (const call of sorted(model, "call")) {
      const at = call.via?.indexOf(name) ?? -1;
      if (at >= 0) calls.push(this.named(call, call.labels?.[at]));
    }
    return {
      title: name,
      sub: "link",
      facts: [
        ["state", model.isDown("link", name) ? "cut" : "up"],
        ["line", `${link.what}; ${grouped(Math.round(link.rate))} cells a second`],
        ["ends", link.ports ? `${a} port ${link.ports[0]}, ${b} port ${link.ports[1]}` : `${a}, ${b}`],
      ],
      sampled: counters
        ? [
            [`${a} → ${b}`, cells(0)],
            [`${b} → ${a}`, cells(1)],
            ["lost", counted(counters.values[2] ?? 0, "cell")],
          ]
        : [],
      lists: [
        ["Machines", link.ends.map((end) => [end, { kind: "node", id: end }])],
        ["Calls over it", calls],
      ],
    };
  }

  /**
   * @param {string} id
   * @returns {Sheet}
   */
  call(id) {
    const { model } = this;
    const call = model.get("call", Number(id));
    if (!call) return { title: `call ${id}`, sub: "does not exist at this instant", facts: [], sampled: [], lists: [] };
    const counters = model.counters(`calls/${id}`);
    const shortcuts = sorted(model, "shortcut").filter((one) => String(one.call) === id);
    const hops = (call.via ?? []).map((/** @type {string} */ link, /** @type {number} */ at) => [
      `${call.labels?.[at] ?? "–"} on ${link}`,
      { kind: "link", id: link },
    ]);
    /** @type {[string, string][]} */
    const facts = [
      ["from, to", `${call.from} → ${call.to ?? "?"}`],
      ["state", `${call.state}, since ${stamp(call.changed)} s`],
      ["set up at", `${stamp(call.since)} s`],
      ["labels at the ends", words(call.vc)],
    ];
    if (call.qos) facts.push(["traffic", call.qos]);
    if (call.leaves?.length) facts.push(["leaves", call.leaves.join(", ")]);
    return {
      title: `call ${id}`,
      sub: `${call.what ?? ""}${shortcuts.length ? ", a shortcut" : ""}`,
      facts,
      sampled: counters
        ? counters.values.map((value, way) => [
            way ? `from ${call.to ?? "the called end"}` : `from ${call.from}`,
            `${grouped(value)} cells, ${bitRate(counters.rates[way] * CELL * 8)}`,
          ])
        : [],
      lists: [
        [
          "Shortcuts on it",
          shortcuts.map((one) => [`${one.from} to ${one.dest}: ${one.state}`, { kind: "node", id: one.from }]),
        ],
        ["Labels, link by link", hops],
        ["Messages", [["those that it carries", { kind: "f-call", id }]]],
      ],
    };
  }

  /**
   * @param {number} order of the message
   * @returns {Sheet | null}
   */
  message(order) {
    const message = this.model.recording.messages.find((one) => one.order === order);
    if (!message) return null;
    const link = this.model.recording.links.get(message.link);
    const arrival = link ? `${seconds(message.t + link.delay, 9)} s` : "–";
    /** @type {[string, string][]} */
    const facts = [
      ["message", message.text],
      ["sent", `${stamp(message.t)} s`],
      ["arrives", message.dropped ? `never: ${message.dropped}` : arrival],
      ["from, to", `${message.from} → ${message.to}`],
      ["label", message.vc],
    ];
    /** @type {[string, Chosen | null][]} */
    const more = [[`link ${message.link}`, { kind: "link", id: message.link }]];
    if (message.call !== undefined && message.call !== null)
      more.push([`call ${message.call}`, { kind: "call", id: String(message.call) }]);
    return { title: message.protocol, sub: "message", facts, sampled: [], lists: [["Belongs to", more]] };
  }
}

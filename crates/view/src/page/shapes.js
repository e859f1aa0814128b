// Machines as shapes: the outline and the glyph tell the kind, chips tell the networks.

/** Fault of a machine that has crashed. */
const DOWN = "down";
/** Height of a line of text in a box, pixels; the layout counts with it. */
const TEXT_LINE = 15;

/** Kinds of machines: the word for people, and the glyph. */
const KINDS = new Map(SIGNS.kinds.map(([kind, name, glyph]) => [kind, { name, glyph }]));

/**
 * The kind of a machine as a word for people.
 * @param {string} kind
 */
function kindName(kind) {
  return KINDS.get(kind)?.name ?? kind;
}

/**
 * The words under the name of a machine: its kind, unless it is a host, and the hosts that are not drawn.
 * @param {MachineLine} machine
 */
function under(machine) {
  const kind = machine.kind === "host" ? "" : kindName(machine.kind);
  return [kind, machine.hosts ? `+${counted(machine.hosts, "host")}` : ""].filter(Boolean).join(", ");
}

/**
 * The outline of a kind of machine in a rectangle around the origin.
 * @param {string} kind
 * @param {number} width
 * @param {number} height
 */
function outline(kind, width, height) {
  const [x, y] = [-width / 2, -height / 2];
  if (kind === "lane_server") {
    const cut = Math.min(10, height / 3);
    const [right, low] = [-x, -y];
    const corners = [
      [x + cut, y],
      [right - cut, y],
      [right, y + cut],
      [right, low - cut],
      [right - cut, low],
      [x + cut, low],
      [x, low - cut],
      [x, y + cut],
    ];
    return svg("path", { class: "outline", d: `${pathText(/** @type {Point[]} */ (corners))}Z` });
  }
  const round = kind === "router" ? Math.min(16, height / 2) : kind === "switch" ? 0 : 2;
  return svg("rect", { class: "outline", x, y, width, height, rx: round });
}

/**
 * The glyph of a kind of machine, with its upper left corner at x, y.
 * @param {string} kind
 * @param {number} x
 * @param {number} y
 */
function glyph(kind, x, y) {
  return svg("path", {
    class: "glyph",
    d: KINDS.get(kind)?.glyph ?? "M2 2H10V10H2Z",
    transform: `translate(${x} ${y})`,
  });
}

/** A machine in the drawing. */
class Shape {
  /**
   * @param {MachineLine} machine
   * @param {Box} box
   * @param {Signs} signs
   */
  constructor(machine, box, signs) {
    this.machine = machine;
    this.box = box;
    /** Chips by network. @type {Map<string, SVGElement[]>} */
    this.chips = new Map();
    const { width, height } = box;
    const [left, top] = [-width / 2, -height / 2];
    // The glyph stands in front of the kind. A host has no such line: its glyph is beside its name, a fault above it.
    const plain = machine.kind === "host";
    const beside = plain ? top + 5 : top + TEXT_LINE + 2.5;
    // Half of the kind's width at 10 pixels, and how far it makes room for the glyph.
    const half = Math.max(kindName(machine.kind).length, under(machine).length) * 2.8;
    const shift = plain ? 0 : Math.min(8, width / 2 - half - (machine.kind === "switch" ? 5 : 3));
    this.kind = svg("text", { class: "kind", x: shift, y: plain ? top - 4 : top + 2 * TEXT_LINE - 2 });
    this.element = svg(
      "g",
      { class: `machine ${machine.kind}`, transform: `translate(${box.x} ${box.y})`, role: "button", tabindex: -1 },
      outline(machine.kind, width, height),
    );
    if (machine.kind === "switch")
      this.element.append(
        svg("rect", { class: "inner", x: left + 3, y: top + 3, width: width - 6, height: height - 6 }),
      );
    const name = svg("text", { class: "name", x: 0, y: top + TEXT_LINE }, machine.name);
    const room = width / 2 - machine.name.length * 4.2;
    // Spaces divide the words for those who do not see their places.
    this.element.append(name, " ", this.kind);
    if (plain && room > 22) this.element.append(glyph(machine.kind, left + 7, beside));
    if (!plain) this.element.append(glyph(machine.kind, Math.max(left + 4, shift - half - 14), beside));
    const lines = machine.addresses.length;
    machine.addresses.forEach(([address, network], index) => {
      const y = -top - (lines - index) * TEXT_LINE - 2;
      const chip = signs.chip(network, left + 8, y, 10, 10);
      this.chips.set(network, [...(this.chips.get(network) ?? []), chip]);
      this.element.append(
        chip,
        " ",
        svg("text", { class: "address", x: left + 22, y: y + 9 }, `${address} (${network})`),
      );
    });
    this.tell("", new Map());
  }

  /**
   * Shows whether the machine is down, and its memberships.
   * @param {string} fault what does not work: `down`, a service that is off, or nothing
   * @param {Map<string, string>} members states by network
   */
  tell(fault, members) {
    this.element.classList.toggle("down", fault === DOWN);
    setText(this.kind, [under(this.machine), fault].filter(Boolean).join(", "));
    const told = [];
    for (const [network, chips] of this.chips) {
      const state = members.get(network) ?? "not joined";
      for (const chip of chips) {
        chip.classList.toggle("joined", state === "joined");
        chip.classList.toggle("joining", state !== "joined" && state !== "not joined");
      }
      told.push(`${network} ${state}`);
    }
    // A name for ears begins with what is seen, so that a user who speaks to the page is understood.
    const seen = [...this.element.querySelectorAll("text")].map((text) => text.textContent).filter(Boolean);
    this.element.setAttribute("aria-label", [seen.join(" "), kindName(this.machine.kind), ...told].join(", "));
  }
}

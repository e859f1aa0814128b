// The topology: machines and links as SVG from the layout of the stream. Only what changed is touched.

/** Most links that have their labels in the drawing; more of them would hide it. */
const MOST_LABELS = 48;
/** Width of what a full link carries, pixels; its conduit is a little wider. */
const CONDUIT = 9;
/** Cells of one direction, after which a link without traffic is one that is idle: a second of 50 kbit/s. */
const BUSY = 118;
/** Distance from a line at which the pointer still finds it, pixels of the screen. */
const REACH = 7;

/** A link in the drawing; its share of the rate is 0 to 1. @typedef {{line: LinkLine, group: SVGGElement, text: string, path: Path2D, share: number, rate: SVGTextElement | null}} Cable */

/**
 * The drawing of the network, from below: links as SVG, calls and what links carry on a canvas, machines and labels as
 * SVG, and marks of messages on a canvas. Layers of their own keep what stands still from being painted again.
 */
class Drawing {
  /**
   * @param {HTMLElement} sheet with all layers
   * @param {Model} model
   * @param {Signs} signs
   * @param {(what: Chosen) => void} select
   */
  constructor(sheet, model, signs, select) {
    const part = (/** @type {string} */ name) => /** @type {SVGSVGElement} */ (sheet.querySelector(`.${name}`));
    this.sheet = sheet;
    this.lines = part("lines");
    this.root = part("machines");
    this.model = model;
    this.signs = signs;
    const recording = model.recording;
    this.geometry = new Geometry(recording);
    this.labels = new Labels(this.geometry);
    /** @type {Map<string, Shape>} */
    this.shapes = new Map();
    /** @type {Map<string, Cable>} */
    this.cables = new Map();
    this.layers = Object.fromEntries(["machines", "labels", "plates", "callouts"].map((name) => [name, svg("g")]));
    this.threads = new Threads(this.layers.plates, model, this.labels, signs, () => this.painter.invalidate());
    this.root.append(signs.definitions(), ...Object.values(this.layers));
    setAll(this.root, {
      role: "group",
      "aria-label": `Network ${recording.head.lab}: machines; their links and calls are in the tables`,
    });
    this.addLinks(recording);
    this.addMachines(recording);
    this.view = new View(sheet, [this.lines, this.root], this.geometry, () => this.painter.invalidate());
    const canvas = /** @type {HTMLCanvasElement} */ (sheet.querySelector(".threads"));
    this.painter = new Painter(canvas, this.view, (now) => this.strokes(now));
    this.pen = canvas.getContext("2d");
    sheet.addEventListener("click", (event) => {
      const found = this.view.dragged ? null : this.under(event);
      if (found) select(found);
    });
    sheet.addEventListener("pointermove", (event) => {
      const found = event.buttons ? null : this.under(event);
      sheet.style.cursor = found ? "pointer" : "";
      sheet.title = found ? this.title(found) : "";
    });
    /** @type {number | null} */
    this.sampled = -1;
    /** Names of the links that are cut. @type {Set<string>} */
    this.cut = new Set();
  }

  /**
   * What is under the pointer: a machine, a label, a call or a link.
   * @param {MouseEvent} event
   * @returns {Chosen | null}
   */
  under(event) {
    const target = event.target instanceof Element ? event.target.closest("[data-kind]") : null;
    if (target instanceof SVGElement) return { kind: target.dataset.kind ?? "", id: target.dataset.id ?? "" };
    const [point, reach] = [this.view.point(event), REACH / this.view.scale().scale];
    const call = this.pen ? this.threads.at(this.pen, point, reach) : null;
    if (call !== null) return { kind: "call", id: String(call) };
    for (const [name, { path }] of this.cables) {
      if (this.pen) this.pen.lineWidth = CONDUIT + reach;
      if (this.pen?.isPointInStroke(path, point.x, point.y)) return { kind: "link", id: name };
    }
    return null;
  }

  /**
   * A few words about a thing, for the pointer.
   * @param {Chosen} what
   */
  title({ kind, id }) {
    if (kind === "link") return `${id}: ${this.cables.get(id)?.line.what ?? ""}`;
    const call = kind === "call" ? this.model.get("call", Number(id)) : null;
    return call ? `call ${id}: ${call.what ?? ""} from ${call.from} to ${call.to ?? "?"}` : "";
  }

  /**
   * What the canvas shows: the load of links below, and the threads of calls.
   * @param {number} now
   */
  strokes(now) {
    const { strokes, moving } = this.threads.strokes(now);
    /** @type {Stroke[]} */
    const loads = [];
    for (const { text, path, share } of this.cables.values()) {
      if (share > 0)
        loads.push({
          text,
          path,
          colour: styled("--carry"),
          width: 0.5 + Math.min(share, 1) * (CONDUIT - 0.5),
          dash: [],
          alpha: 1,
        });
    }
    return { strokes: [...loads, ...strokes], moving };
  }

  /** @param {Recording} recording */
  addLinks(recording) {
    const labelled = recording.links.size <= MOST_LABELS;
    for (const line of recording.links.values()) {
      const way = this.geometry.ways.get(line.name);
      if (!way) continue;
      const text = pathText(way);
      const { x, y } = along(way, 0.5);
      const cross = svg("path", { class: "cross", d: "M-7 -7L7 7M-7 7L7 -7", transform: `translate(${x} ${y})` });
      const group = svg(
        "g",
        { class: "cable" },
        svg("path", { class: "conduit", d: text }),
        svg("path", { class: "fibre", d: text }),
        cross,
      );
      this.lines.append(group);
      const rate = labelled ? svg("text", { class: "label rate" }) : null;
      if (rate) this.addLabel(line, way, rate);
      this.cables.set(line.name, { line, group, text, path: new Path2D(text), share: 0, rate });
    }
    for (const machine of recording.machines.values()) {
      const [a, b] = [this.geometry.boxes.get(machine.behind ?? ""), this.geometry.boxes.get(machine.name)];
      if (a && b) this.lines.append(svg("path", { class: "ethernet", d: pathText(straight(a, b)) }));
    }
  }

  /**
   * A label beside a link: its name, unless that is the names of its ends, and what it is or carries.
   * @param {LinkLine} line
   * @param {Point[]} way
   * @param {SVGTextElement} rate
   */
  addLabel(line, way, rate) {
    const [a, b] = line.ends;
    const named = line.name !== `${a}-${b}` && line.name !== `${b}-${a}`;
    const width = Math.max(named ? line.name.length : 0, line.what.length, 22) * 5.4;
    const box = this.labels.place(way, { width, height: named ? 24 : 12 }, 8);
    this.labels.taken.push(box);
    const { x, y } = box;
    setAll(rate, { x, y: named ? y + 9 : y + 3.5 });
    rate.textContent = line.what;
    const group = svg("g", { class: "cable-label", "data-kind": "link", "data-id": line.name }, rate);
    if (named) group.prepend(svg("text", { class: "label", x, y: y - 3 }, line.name));
    this.layers.labels.append(group);
  }

  /** @param {Recording} recording */
  addMachines(recording) {
    for (const [name, box] of this.geometry.boxes) {
      const machine = recording.machines.get(name);
      if (!machine) continue;
      const shape = new Shape(machine, box, this.signs);
      setAll(shape.element, { "data-kind": "node", "data-id": name });
      this.layers.machines.append(shape.element);
      this.shapes.set(name, shape);
    }
    // One stop of the tabulator; arrows lead on.
    this.layers.machines.firstElementChild?.setAttribute("tabindex", "0");
  }

  /**
   * Shows the state of the model.
   * @param {Set<string>} touched what differs from the state that was shown before
   * @param {boolean} moving true if the cursor moves on: then things come and fade
   */
  update(touched, moving) {
    let machines = false;
    for (const key of touched) {
      const kind = key.slice(0, key.indexOf("/"));
      if (kind === "member" || kind === "fault") machines = true;
    }
    if (machines) this.updateMachines();
    if (touched.size) this.threads.update(touched, moving);
    if (this.model.sampled === this.sampled) return;
    this.sampled = this.model.sampled;
    this.updateRates();
    this.threads.updateRates();
  }

  /** Shows memberships and faults. */
  updateMachines() {
    /** @type {Map<string, Map<string, string>>} */
    const members = new Map();
    for (const member of this.model.all("member").values()) {
      let of = members.get(member.node);
      if (!of) members.set(member.node, (of = new Map()));
      if (of.get(member.network) !== "joined") of.set(member.network, member.state);
    }
    /** Faults of machines by their names. @type {Map<string, string>} */
    const faults = new Map();
    /** @type {Set<string>} */
    const cut = new Set();
    for (const { what, name, service } of this.model.all("fault").values()) {
      if (what === "link") cut.add(name);
      else if (what === "node") faults.set(name, DOWN);
      else if (!faults.has(name)) faults.set(name, `${service ?? "service"} off`);
    }
    const nothing = new Map();
    for (const [name, shape] of this.shapes) {
      // A station on an Ethernet segment joins nothing itself: it is in its network from the beginning.
      const station =
        shape.machine.kind === "station"
          ? new Map(shape.machine.addresses.map(([, network]) => [network, "joined"]))
          : null;
      const states = station ?? members.get(name) ?? nothing;
      const told = JSON.stringify([faults.get(name), [...states]]);
      if (shape.element.dataset.told === told) continue;
      shape.element.dataset.told = told;
      shape.tell(faults.get(name) ?? "", states);
    }
    for (const [name, cable] of this.cables) cable.group.classList.toggle("cut", cut.has(name));
    this.cut = cut;
    this.updateRates();
  }

  /** Shows what links carried in the last sampled interval. */
  updateRates() {
    for (const cable of this.cables.values()) {
      // The sampled interval lies in front of the cut.
      const cut = this.cut.has(cable.line.name);
      const rates = (cut ? null : this.model.counters(`links/${cable.line.name}`)?.rates) ?? [0, 0];
      const most = cable.line.rates ?? [cable.line.rate, cable.line.rate];
      const share = Math.max((rates[0] ?? 0) / (most[0] || 1), (rates[1] ?? 0) / (most[1] || 1));
      cable.share = share;
      if (cable.rate) setText(cable.rate, cut ? "cut" : this.carried(cable.line, rates));
    }
  }

  /**
   * What a link carries, in words: both directions in Mbit/s of cells, that to the right or downwards first. A link that
   * has carried nothing yet shows what it is.
   * @param {LinkLine} line
   * @param {number[]} rates
   */
  carried(line, rates) {
    const [there, back] = rates.map((cells) => cells * CELL * 8);
    const used = this.model.counters(`links/${line.name}`)?.values ?? [];
    if (!(there >= 5e4) && !(back >= 5e4) && !(Math.max(...used.slice(0, 2), 0) >= BUSY)) return line.what;
    const [first, second] = this.arrows(line);
    const told = [`${first} ${mega(there ?? 0)}`, `${second} ${mega(back ?? 0)}`];
    if (first === "←" || first === "↑") told.reverse();
    return `${told.join("  ")} Mbit/s`;
  }

  /**
   * Arrows for both directions of a link, as it lies in the drawing.
   * @param {LinkLine} line
   */
  arrows(line) {
    const [a, b] = line.ends.map((end) => this.geometry.boxes.get(end));
    if (!a || !b) return ["→", "←"];
    if (Math.abs(b.x - a.x) >= Math.abs(b.y - a.y)) return b.x >= a.x ? ["→", "←"] : ["←", "→"];
    return b.y >= a.y ? ["↓", "↑"] : ["↑", "↓"];
  }

  /**
   * Marks what is selected.
   * @param {Chosen | null} chosen
   */
  mark(chosen) {
    for (const found of this.sheet.querySelectorAll(".selected")) found.classList.remove("selected");
    for (const found of this.root.querySelectorAll("[aria-pressed]")) found.removeAttribute("aria-pressed");
    this.threads.select(chosen?.kind === "call" ? Number(chosen.id) : null);
    if (!chosen) return;
    if (chosen.kind === "node") {
      this.shapes.get(chosen.id)?.element.classList.add("selected");
      this.shapes.get(chosen.id)?.element.setAttribute("aria-pressed", "true");
    }
    if (chosen.kind === "link") this.cables.get(chosen.id)?.group.classList.add("selected");
  }

  /**
   * The machine that lies nearest in a direction; null if there is none.
   * @param {string} from
   * @param {number} dx
   * @param {number} dy
   */
  neighbour(from, dx, dy) {
    const here = this.geometry.boxes.get(from);
    let [best, cost] = [/** @type {string | null} */ (null), Infinity];
    for (const [name, box] of this.geometry.boxes) {
      if (!here || name === from || !this.shapes.has(name)) continue;
      const ahead = (box.x - here.x) * dx + (box.y - here.y) * dy;
      const aside = Math.abs((box.x - here.x) * dy) + Math.abs((box.y - here.y) * dx);
      if (ahead > 0 && ahead + 2 * aside < cost) [best, cost] = [name, ahead + 2 * aside];
    }
    return best;
  }

  /**
   * Puts the focus on a machine.
   * @param {string} name
   */
  focus(name) {
    const shape = this.shapes.get(name);
    if (!shape) return;
    for (const other of this.layers.machines.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", "-1");
    shape.element.setAttribute("tabindex", "0");
    shape.element.focus();
  }
}

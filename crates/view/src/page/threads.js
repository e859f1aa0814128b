// Calls as threads beside the links that they take. A shortcut stands out.

/** Most threads that come or fade with a motion at a time. */
const MOST_ANIMATED = 60;
/** Milliseconds in which a thread comes or fades. */
const FADE = 700;
/** Pixels between threads. */
const SPACING = 2.6;
/** Numbers of lanes on one link; further calls share them. */
const LANES = 12;

/** Purposes of calls that carry no user's data. */
const CONTROL = new Set(["lane-control", "lane-multicast"]);
/** States of shortcuts that carry. */
const OPEN = new Set(["open", "refreshing"]);

/** Which calls are drawn. @typedef {"data" | "all" | "none"} Shown */

/**
 * True if a call carries users' data.
 * @param {State} call
 */
function carriesData(call) {
  return !CONTROL.has(call.what);
}

/**
 * Lanes of calls beside their links, the same at every instant: no two calls that exist at the same time have the same
 * lane on a link, as long as lanes are free.
 */
class Lanes {
  /** @param {Change[]} changes of the record */
  constructor(changes) {
    /** Links of calls, at most. @type {Map<number | string, string[]>} */
    this.ways = new Map();
    /** @type {Map<string, Set<number>>} */
    this.taken = new Map();
    /** @type {Map<number | string, number>} */
    this.lanes = new Map();
    // The record knows the whole way of a call before the call begins.
    for (const change of changes) this.note(change);
    for (const change of changes) this.give(change);
  }

  /** @param {number | string} id of a call */
  get(id) {
    return this.lanes.get(id);
  }

  /**
   * The record of a running lab has grown by a change.
   * @param {Change} change
   */
  add(change) {
    this.note(change);
    this.give(change);
    if (change.kind === "call" && !change.after) {
      this.ways.delete(change.id);
      this.lanes.delete(change.id);
    }
  }

  /** @param {Change} change */
  note({ kind, id, after: state }) {
    if (kind === "call" && state && (state.via?.length ?? 0) >= (this.ways.get(id)?.length ?? 0))
      this.ways.set(id, state.via ?? []);
  }

  /** @param {Change} change */
  give({ kind, id, before, after: state }) {
    if (kind !== "call" || (before && state && this.lanes.has(id))) return;
    const call = state ?? before;
    const group = call && carriesData(call) ? "data" : "control";
    const keys = (this.ways.get(id) ?? []).map((link) => `${group}/${link}`);
    if (!state) {
      const lane = this.lanes.get(id);
      if (lane !== undefined) for (const key of keys) this.taken.get(key)?.delete(lane);
      return;
    }
    let lane = 0;
    while (lane < LANES && keys.some((key) => this.taken.get(key)?.has(lane))) lane += 1;
    this.lanes.set(id, lane % LANES);
    for (const key of keys) this.taken.set(key, (this.taken.get(key) ?? new Set()).add(lane % LANES));
  }
}

/** A call in the drawing; the watch tells when it came, and since when it fades. @typedef {{call: State, text: string, path: Path2D, colour: string, share: number, came: number, gone: number}} Thread */

/** The threads of all calls that are drawn. */
class Threads {
  /**
   * @param {SVGGElement} layer for the labels of shortcuts
   * @param {Model} model
   * @param {Labels} places
   * @param {Signs} signs
   * @param {() => void} changed called when the threads have to be drawn again
   */
  constructor(layer, model, places, signs, changed) {
    this.layer = layer;
    this.model = model;
    this.places = places;
    this.geometry = places.geometry;
    this.signs = signs;
    this.changed = changed;
    this.lanes = new Lanes(model.recording.changes);
    /** @type {Map<number | string, Thread>} */
    this.threads = new Map();
    /** Threads that fade. @type {Set<Thread>} */
    this.fading = new Set();
    /** @type {Shown} */
    this.shown = "data";
    /** @type {number | null} */
    this.selected = null;
    /** Shortcuts by the calls that carry them. @type {Map<number | string, State[]>} */
    this.shortcuts = new Map();
    /** Rate of the fastest link, cells per second. */
    this.fastest = [...model.recording.links.values()].reduce((high, link) => Math.max(high, link.rate), 1);
  }

  /**
   * Shows other calls from now on.
   * @param {Shown} shown
   */
  show(shown) {
    this.shown = shown;
    for (const id of new Set([...this.threads.keys(), ...this.model.all("call").keys()])) this.touch(id, false);
    this.changed();
  }

  /**
   * Selects a call: it is drawn, whatever is shown.
   * @param {number | null} id
   */
  select(id) {
    const before = this.selected;
    this.selected = id;
    for (const one of [before, id]) if (one !== null) this.touch(one, false);
    this.changed();
  }

  /**
   * Shows the calls and shortcuts that changed.
   * @param {Set<string>} touched
   * @param {boolean} moving
   */
  update(touched, moving) {
    /** @type {Set<number | string>} */
    const calls = new Set();
    let shortcuts = false;
    for (const key of touched) {
      const at = key.indexOf("/");
      const kind = key.slice(0, at);
      if (kind === "call") calls.add(Number(key.slice(at + 1)));
      if (kind === "shortcut") shortcuts = true;
    }
    if (shortcuts) for (const id of this.collect()) calls.add(id);
    const motion = moving && !motionIsReduced();
    for (const id of calls) this.touch(id, motion);
    if (shortcuts || [...calls].some((id) => this.shortcuts.has(id))) this.label();
    if (calls.size) this.changed();
  }

  /** Collects shortcuts by their calls again. The answer names calls whose part may differ. */
  collect() {
    const before = this.shortcuts;
    this.shortcuts = new Map();
    for (const shortcut of this.model.all("shortcut").values()) {
      if (!OPEN.has(shortcut.state) || shortcut.call === undefined || shortcut.call === null) continue;
      this.shortcuts.set(shortcut.call, [...(this.shortcuts.get(shortcut.call) ?? []), shortcut]);
    }
    return [...before.keys(), ...this.shortcuts.keys()];
  }

  /**
   * Takes a call as it is now, or lets its thread fade.
   * @param {number | string} id
   * @param {boolean} motion
   */
  touch(id, motion) {
    const call = this.model.get("call", id);
    const kept =
      call &&
      (this.shown === "all" ||
        this.shortcuts.has(id) ||
        this.selected === id ||
        (this.shown === "data" && carriesData(call)));
    const there = this.threads.get(id);
    const now = performance.now();
    if (!call || !kept) {
      if (!there) return;
      this.threads.delete(id);
      if (motion && this.fading.size < MOST_ANIMATED) this.fading.add({ ...there, gone: now });
      return;
    }
    const text = this.wayOf(call);
    const came = there?.came ?? (motion ? now : -Infinity);
    const path = there?.text === text ? there.path : new Path2D(text);
    this.threads.set(id, {
      call,
      text,
      path,
      colour: this.colourOf(call),
      share: this.shareOf(id),
      came,
      gone: Infinity,
    });
  }

  /**
   * The way of a call as the text of a path.
   * @param {State} call
   */
  wayOf(call) {
    const lane = this.lanes.get(call.id) ?? 0;
    const data = carriesData(call);
    const away = (Math.floor(lane / 2) + 0.6) * (data ? SPACING : 1.4) + (data ? 0 : 8);
    return this.geometry.thread(call.from, call.via ?? [], lane % 2 ? -away : away);
  }

  /**
   * The name of a call's colour: that of the one network that both ends are members of.
   * @param {State} call
   */
  colourOf(call) {
    const machines = this.model.recording.machines;
    const network = carriesData(call) ? this.signs.common(machines.get(call.from), machines.get(call.to)) : null;
    return network ? this.signs.lineOf(network) : "--muted";
  }

  /**
   * Part of the fastest link's rate that a call carried in the last sampled interval, 0 to 1.
   * @param {number | string} id
   */
  shareOf(id) {
    return Math.min((this.model.callRate(id) ?? 0) / this.fastest, 1);
  }

  /** Takes what the calls carried in the last sampled interval. */
  updateRates() {
    for (const [id, thread] of this.threads) thread.share = this.shareOf(id);
    this.changed();
  }

  /**
   * All strokes in the order in which they are drawn: shortcuts above all others, with a casing that divides them.
   * @param {number} now milliseconds of the watch; infinite for a drawing without motion
   * @returns {{strokes: Stroke[], moving: boolean}}
   */
  strokes(now) {
    let moving = false;
    /** @type {Stroke[][]} */
    const [below, middle, above] = [[], [], []];
    for (const thread of this.fading) {
      const left = 1 - (now - thread.gone) / FADE;
      if (left <= 0) this.fading.delete(thread);
      else middle.push(this.stroke(thread, left, 0));
      moving ||= left > 0;
    }
    for (const [id, thread] of this.threads) {
      const young = Math.max(1 - (now - thread.came) / FADE, 0);
      moving ||= young > 0;
      const stroke = this.stroke(thread, 1, young);
      if (this.shortcuts.has(id))
        above.push({ ...stroke, colour: styled("--ground"), width: stroke.width + 4, dash: [], alpha: 1 }, stroke);
      else if (this.selected === id) above.push(stroke);
      else (carriesData(thread.call) ? middle : below).push(stroke);
    }
    return { strokes: [...below, ...middle, ...above], moving };
  }

  /**
   * The look of a thread: its width is its rate.
   * @param {Thread} thread
   * @param {number} left 1 for a call that exists, less for one that fades
   * @param {number} young 0, or up to 1 for a call that has just come
   * @returns {Stroke}
   */
  stroke({ call, text, path, colour, share }, left, young) {
    const [shortcut, selected] = [this.shortcuts.has(call.id), this.selected === call.id];
    const least = shortcut ? 3.5 : carriesData(call) ? 1.2 : 0.8;
    const width = least + (share > 0 ? 5 * Math.sqrt(share) : 0) + (selected ? 1.5 : 0) + young * 5;
    const quiet = call.state === "releasing" ? 0.35 : share > 0 || shortcut || selected ? 1 : 0.3;
    const name = shortcut ? "--shortcut" : selected ? "--accent" : colour;
    return {
      text,
      path,
      colour: styled(name),
      width,
      dash: call.state === "calling" ? [3, 4] : [],
      alpha: quiet * left,
    };
  }

  /**
   * The call whose thread passes a point of the drawing; null if there is none.
   * @param {CanvasRenderingContext2D} context
   * @param {{x: number, y: number}} point
   * @param {number} reach pixels of the drawing
   */
  at(context, { x, y }, reach) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.setLineDash([]);
    let found = null;
    for (const [id, thread] of this.threads) {
      context.lineWidth = Math.max(this.stroke(thread, 1, 0).width, reach);
      if (context.isPointInStroke(thread.path, x, y)) found = id;
    }
    return found;
  }

  /**
   * The words for the shortcuts of a call: its ends, and the destinations that are not at them.
   * @param {State[]} shortcuts
   */
  static words(shortcuts) {
    const [{ from, to }] = shortcuts;
    const both = shortcuts.some((one) => one.from === to && one.to === from);
    const ends = `shortcut ${from} ${both ? "⇄" : "→"} ${to ?? "?"}`;
    const places = new Set(shortcuts.map((one) => one.dest)).size;
    return places > (both ? 2 : 1) ? `${ends}, ${counted(places, "destination")}` : ends;
  }

  /** Writes the labels of shortcuts where they hide no machine and no other label. */
  label() {
    /** @type {Box[]} */
    const taken = [];
    const plates = [];
    for (const [id, shortcuts] of this.shortcuts) {
      const call = this.model.get("call", id);
      const ways = (call?.via ?? []).map((/** @type {string} */ name) => this.geometry.ways.get(name)).filter(Boolean);
      if (ways.length === 0) continue;
      const text = Threads.words(shortcuts);
      const size = { width: text.length * 6.2 + 14, height: 18 };
      const boxes = ways.map((/** @type {Point[]} */ way) => this.places.place(way, size, 12, taken));
      const free = boxes.find((/** @type {Box} */ box) => !this.places.hidden(box, [], taken)) ?? boxes[0];
      taken.push(free);
      const plate = svg("rect", { x: free.x - size.width / 2, y: free.y - 9, ...size, rx: 9 });
      plates.push(
        svg(
          "g",
          { class: "plate", "data-kind": "call", "data-id": id },
          plate,
          svg("text", { x: free.x, y: free.y + 4 }, text),
        ),
      );
    }
    this.layer.replaceChildren(...plates);
  }
}

// The record: reads the stream of events (aerostat.events.v1) that the page carries, or that comes from a running lab.

/** @typedef {{is: string, t?: number, id?: number | string, gone?: boolean, [key: string]: any}} Line A line of the stream. */
/** @typedef {{lab: string, description?: string, seed?: number, time?: string, version?: string, sample: number, until: number, text?: string}} Head */
/** @typedef {{name: string, kind: string, addresses: [string, string][], atm?: string | null, behind?: string | null, shown?: boolean, hosts?: number}} MachineLine */
/** @typedef {{name: string, ends: [string, string], ports?: [number, number], what: string, rate: number, rates?: [number, number], delay: number}} LinkLine */
/** @typedef {{name: string, clip: boolean, line?: boolean, subnet: string, what: string}} NetworkLine */
/** @typedef {{name: string, from: string, to: string, kind: string}} FlowLine */
/** @typedef {{name: string, text: string, stages: {t: number, takes: number, node: string, link?: string, text: string}[]}} PacketLine */
/** @typedef {{boxes: [string, number, number, number, number][], width: number, height: number, paths?: Record<string, string>, labels?: Record<string, [number, number]>}} Layout */
/** @typedef {{t: number, link: string, from: string, to: string, vc: string, protocol: string, text: string, dropped?: string, call?: number, order: number}} Message */
/** @typedef {{t: number, node: string, event: string, text: string, milestone?: boolean, order: number}} Story */
/** @typedef {{[key: string]: any, id: number | string, since: number, changed: number}} State The state of a call, member, shortcut, fault or traffic: its fields, since when it exists, and when it changed last. */
/** @typedef {{t: number, kind: string, id: number | string, before: State | null, after: State | null}} Change A change of state; null in front of the first and behind the last one. */

/** Kinds of lines that are states. */
const STATES = new Set(["call", "vc", "member", "shortcut", "fault"]);

/** Bounds of the record of a running lab: nanoseconds, and numbers of lines. What is older is forgotten. */
const WINDOW = { span: 600e9, changes: 8000, messages: 5000, story: 5000, instants: 20000 };
/** A list is cut when it is longer than its bound by this factor: so it is not cut for each line. */
const SLACK = 1.05;

/** Values of a counter or level at samples: only those samples at which it changed. */
class Series {
  constructor() {
    /** @type {number[]} */
    this.times = [];
    /** @type {number[][]} */
    this.values = [];
  }

  /**
   * Adds the values of a sample; samples come in order of time.
   * @param {number} t
   * @param {number[]} values
   */
  add(t, values) {
    this.times.push(t);
    this.values.push(values);
  }

  /**
   * Forgets values of samples in front of t, but the last one, which holds at t.
   * @param {number} t
   */
  forget(t) {
    const gone = after(this.times, t) - 1;
    if (gone <= 0) return;
    this.times.splice(0, gone);
    this.values.splice(0, gone);
  }

  /**
   * The values that hold at t; null in front of the first sample.
   * @param {number} t
   * @returns {number[] | null}
   */
  at(t) {
    return this.values[after(this.times, t) - 1] ?? null;
  }
}

/** All that the stream tells of a run. */
class Recording {
  constructor() {
    /** @type {Head} */
    this.head = { lab: "", sample: 100e6, until: 0 };
    /** @type {Map<string, MachineLine>} */
    this.machines = new Map();
    /** @type {Map<string, LinkLine>} */
    this.links = new Map();
    /** @type {NetworkLine[]} */
    this.networks = [];
    /** @type {Line[]} */
    this.pvcs = [];
    /** @type {Map<string, FlowLine>} */
    this.flows = new Map();
    /** Packets that were followed. @type {PacketLine[]} */
    this.packets = [];
    /** @type {Layout} */
    this.layout = { boxes: [], width: 100, height: 100 };
    /** @type {Change[]} */
    this.changes = [];
    /** Instants of the changes. @type {number[]} */
    this.changeTimes = [];
    /** @type {Message[]} */
    this.messages = [];
    /** Instants of messages. @type {number[]} */
    this.messageTimes = [];
    /** Instants at which state changes, a message is sent or the story has a line; each once, in order. @type {number[]} */
    this.instants = [];
    /** True for a running lab, whose record grows and is forgotten after a while. */
    this.live = false;
    /** Begin of the record, nanoseconds: states in front of it are unknown. */
    this.begin = 0;
    /** End of the record, nanoseconds. */
    this.until = 1;
    /** Messages and lines of the story that the lab has left out. */
    this.left = { message: 0, story: 0 };
    /** @type {Story[]} */
    this.story = [];
    /** Instants of all samples, nanoseconds, also of those at which nothing had changed. @type {number[]} */
    this.samples = [];
    /** Instant of the last line of a sample. */
    this.sampled = 0;
    /** Series by `links/NAME`, `flows/NAME`, `queues/NODE:PORT` and `calls/ID`. @type {Map<string, Series>} */
    this.series = new Map();
    /** The last line, if the stream is whole. @type {Line | null} */
    this.end = null;
    /** Number of messages and lines of the story so far: their order, also within an instant. */
    this.order = 0;
    /** Lines that could not be read. */
    this.broken = 0;
    /** @type {Map<string, State>} */
    this.last = new Map();
  }

  /**
   * Reads the text of the stream: an object on each line. A text that was cut gives what is in front of the cut.
   * @param {string} text
   */
  static read(text) {
    const recording = new Recording();
    for (const line of text.split("\n")) {
      if (line.trim() === "") continue;
      try {
        const value = JSON.parse(line);
        if (value && typeof value === "object") recording.take(value);
      } catch {
        recording.broken += 1;
      }
    }
    recording.finish();
    return recording;
  }

  /**
   * Takes a line. Kinds that this page does not know are ignored.
   * @param {Line} line
   */
  take(line) {
    const t = line.t ?? 0;
    if (STATES.has(line.is)) this.change(line.is, t, line);
    else if (line.is === "message") this.insert(this.messages, line, this.messageTimes);
    else if (line.is === "story") this.insert(this.story, line);
    else if (line.is === "now") this.now(t, line);
    else if (line.is === "sample") this.sample(t, line);
    else if (line.is === "traffic") this.change("traffic", t, { ...line, id: line.flow });
    else this.takeFixed(line);
  }

  /**
   * Takes a message or a line of the story. A running lab may tell them a little late, behind later ones.
   * @param {{t: number}[]} list
   * @param {Line} line
   * @param {number[]} [times] of the list
   */
  insert(list, line, times) {
    const one = /** @type {any} */ ({ ...line, order: this.order++ });
    let place = list.length;
    while (this.live && place > 0 && list[place - 1].t > one.t) place -= 1;
    if (place === list.length) {
      list.push(one);
      times?.push(one.t);
    } else {
      list.splice(place, 0, one);
      times?.splice(place, 0, one.t);
    }
    if (this.live) this.instant(one.t);
  }

  /**
   * Adds an instant at which something happens.
   * @param {number} t
   */
  instant(t) {
    const place = after(this.instants, t);
    if (this.instants[place - 1] === t) return;
    if (place === this.instants.length) this.instants.push(t);
    else this.instants.splice(place, 0, t);
  }

  /**
   * A running lab has told everything up to t.
   * @param {number} t
   * @param {Line} line
   */
  now(t, line) {
    this.until = Math.max(this.until, t, 1);
    this.left.message += Number(line.left?.message ?? 0);
    this.left.story += Number(line.left?.story ?? 0);
  }

  /** True if the record is longer than its bounds. */
  isLong() {
    const many = [
      [this.messages, WINDOW.messages],
      [this.story, WINDOW.story],
      [this.instants, WINDOW.instants],
    ];
    return (
      this.excess() > this.begin ||
      many.some(([list, most]) => /** @type {any[]} */ (list).length > Number(most) * SLACK)
    );
  }

  /** The instant in front of which the record is to be forgotten; the begin of the record if nothing is. */
  excess() {
    const { begin, until, changeTimes } = this;
    let cut = until - begin > WINDOW.span * SLACK ? until - WINDOW.span : begin;
    if (changeTimes.length > WINDOW.changes * SLACK)
      cut = Math.max(cut, changeTimes[changeTimes.length - WINDOW.changes]);
    return Math.min(cut, until);
  }

  /**
   * Forgets what lies in front of t, the new begin, and what is more than the bounds. The answer is the number of
   * changes that are gone.
   * @param {number} t
   */
  forget(t) {
    this.begin = Math.max(this.begin, t);
    const gone = after(this.changeTimes, this.begin);
    this.changes.splice(0, gone);
    this.changeTimes.splice(0, gone);
    const messages = this.surplus(this.messageTimes, WINDOW.messages);
    this.messages.splice(0, messages);
    this.messageTimes.splice(0, messages);
    this.story.splice(
      0,
      this.surplus(
        Array.from(this.story, (line) => line.t),
        WINDOW.story,
      ),
    );
    this.instants.splice(0, this.surplus(this.instants, WINDOW.instants));
    const samples = Math.max(after(this.samples, this.begin) - 1, 0);
    this.samples.splice(0, samples);
    for (const [key, series] of this.series) {
      series.forget(this.samples[0] ?? this.begin);
      const [group, id] = key.split("/", 2);
      // The series of a call ends with the call.
      if (group === "calls" && !this.last.has(`call/${id}`) && (series.times.at(-1) ?? 0) < this.begin)
        this.series.delete(key);
    }
    return gone;
  }

  /**
   * Number of the first items of a list that are too old, or too many.
   * @param {number[]} times
   * @param {number} most
   */
  surplus(times, most) {
    const old = after(times, this.begin - 1);
    return times.length > most * SLACK ? Math.max(old, times.length - most) : old;
  }

  /**
   * Takes a line of what does not change during a run.
   * @param {Line} line
   */
  takeFixed(line) {
    const value = /** @type {any} */ (line);
    if (line.is === "head") this.head = value;
    else if (line.is === "node") this.machines.set(value.name, value);
    else if (line.is === "link") this.links.set(value.name, value);
    else if (line.is === "network") this.networks.push(value);
    else if (line.is === "pvc") this.pvcs.push(line);
    else if (line.is === "flow") this.flows.set(value.name, value);
    else if (line.is === "layout") this.layout = value;
    else if (line.is === "packet") this.packets.push(value);
    else if (line.is === "end") this.end = line;
  }

  /**
   * Takes a change of state: the first line of an id has all fields, later ones those that changed.
   * @param {string} kind
   * @param {number} t
   * @param {Line} line
   */
  change(kind, t, line) {
    const id = line.id ?? "";
    const key = `${kind}/${id}`;
    const before = this.last.get(key) ?? null;
    const { is: _is, t: _t, gone, ...fields } = line;
    const after = gone ? null : { ...before, ...fields, id, since: before?.since ?? t, changed: t };
    if (after) this.last.set(key, after);
    else this.last.delete(key);
    if (!before && !after) return;
    this.changes.push({ t, kind, id, before, after });
    this.changeTimes.push(t);
    if (this.live) this.instant(t);
  }

  /**
   * Takes the counters and levels of a sample.
   * @param {number} t
   * @param {Line} line
   */
  sample(t, line) {
    this.sampled = t;
    if (this.live) this.samples.push(t);
    for (const group of ["links", "flows", "queues", "calls"]) {
      for (const [name, values] of Object.entries(line[group] ?? {})) {
        const key = `${group}/${name}`;
        let series = this.series.get(key);
        if (!series) this.series.set(key, (series = new Series()));
        series.add(t, Array.isArray(values) ? values : [values]);
      }
    }
  }

  /** Completes what depends on the whole stream: the end of the run, and the instants at which something happens. */
  finish() {
    const happenings = [this.changes, this.messages, this.story];
    const last = happenings.map((list) => list.at(-1)?.t ?? 0);
    const until = this.end?.t ?? Math.max(...last, this.sampled);
    this.until = Math.max(until, 1);
    if (this.series.size) for (let t = 0; t <= until; t += Math.max(this.head.sample, 1e3)) this.samples.push(t);
    const all = happenings.flatMap((list) => list.map((one) => one.t));
    this.instants = [...new Set(Float64Array.from(all).sort())];
  }

  /**
   * The order of a machine in ladders: from left to right in the drawing.
   * @returns {string[]}
   */
  columns() {
    const boxes = [...this.layout.boxes].sort((a, b) => a[1] - b[1] || a[2] - b[2]);
    return boxes.map(([name]) => name);
  }
}

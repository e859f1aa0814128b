// The state of the run at an instant, and its counters at the sample before it.

/** Octets of a cell on a line. */
const CELL = 53;

/** A state that moves along the record, in both directions, by its changes. */
class Model {
  /** @param {Recording} recording */
  constructor(recording) {
    this.recording = recording;
    this.times = recording.changeTimes;
    /** Instant, nanoseconds: changes at this instant have happened. */
    this.t = -1;
    /** Number of changes that have happened. */
    this.place = 0;
    /** States by kind and id. @type {Map<string, Map<number | string, State>>} */
    this.states = new Map();
    this.moveTo(recording.begin);
  }

  /**
   * Forgets the record in front of t. The cursor must not stand there.
   * @param {number} t
   */
  forget(t) {
    this.place -= this.recording.forget(t);
  }

  /**
   * Moves to an instant. The answer lists what differs from before: `call/17`.
   * @param {number} t
   * @returns {Set<string>}
   */
  moveTo(t) {
    const changes = this.recording.changes;
    const target = after(this.times, t);
    /** @type {Set<string>} */
    const touched = new Set();
    while (this.place < target) {
      const change = changes[this.place++];
      this.put(change.kind, change.id, change.after);
      touched.add(`${change.kind}/${change.id}`);
    }
    while (this.place > target) {
      const change = changes[--this.place];
      this.put(change.kind, change.id, change.before);
      touched.add(`${change.kind}/${change.id}`);
    }
    this.t = t;
    return touched;
  }

  /**
   * Sets or removes a state.
   * @param {string} kind
   * @param {number | string} id
   * @param {State | null} state
   */
  put(kind, id, state) {
    let all = this.states.get(kind);
    if (!all) this.states.set(kind, (all = new Map()));
    if (state) all.set(id, state);
    else all.delete(id);
  }

  /**
   * The present states of a kind by id.
   * @param {string} kind
   * @returns {Map<number | string, State>}
   */
  all(kind) {
    return this.states.get(kind) ?? new Map();
  }

  /**
   * The present state of a kind with this id.
   * @param {string} kind
   * @param {number | string} id
   */
  get(kind, id) {
    return this.states.get(kind)?.get(id) ?? null;
  }

  /**
   * True if a link is cut or a machine has crashed.
   * @param {"link" | "node"} what
   * @param {string} name
   */
  isDown(what, name) {
    for (const fault of this.all("fault").values()) if (fault.what === what && fault.name === name) return true;
    return false;
  }

  /** Instant of the last sample at or in front of the cursor; null in front of the first one. */
  get sampled() {
    const samples = this.recording.samples;
    return samples[after(samples, this.t) - 1] ?? null;
  }

  /**
   * Values at the last sample and their growth since the sample before it, per second. Null if nothing was sampled yet.
   * @param {string} key such as `links/urku-asx200`
   * @returns {{values: number[], rates: number[]} | null}
   */
  counters(key) {
    const series = this.recording.series.get(key);
    const samples = this.recording.samples;
    const index = after(samples, this.t) - 1;
    if (index < 0 || !series) return null;
    const values = series.at(samples[index]);
    if (!values) return null;
    const from = index > 0 ? samples[index - 1] : 0;
    const before = (index > 0 && series.at(from)) || [];
    const interval = (samples[index] - from) / 1e9;
    const rates = values.map((value, at) => (interval > 0 ? (value - (before[at] ?? 0)) / interval : 0));
    return { values, rates };
  }

  /**
   * The level of a queue at the last sample, cells.
   * @param {string} name
   */
  queue(name) {
    const sampled = this.sampled;
    return (sampled !== null && this.recording.series.get(`queues/${name}`)?.at(sampled)?.[0]) || 0;
  }

  /**
   * The rate of a call over the last sampled interval, cells per second in both directions together.
   * Null if the record has no counter of it.
   * @param {number | string} id
   */
  callRate(id) {
    const counters = this.counters(`calls/${id}`);
    return counters ? counters.rates.reduce((sum, rate) => sum + Math.max(rate, 0), 0) : null;
  }

  /**
   * The next instant behind the cursor at which something happens, or the one in front of it.
   * @param {1 | -1} direction
   * @param {ArrayLike<number>} [times]
   * @returns {number | null}
   */
  step(direction, times = this.recording.instants) {
    const behind = after(times, this.t);
    if (direction > 0) return times[behind] ?? null;
    let index = behind - 1;
    while (index >= 0 && times[index] >= this.t) index -= 1;
    return times[index] ?? null;
  }

  /**
   * The present state as plain data, for comparison with the stream: states by kind, in order of their ids.
   * @param {number} t
   */
  stateAt(t) {
    const here = this.t;
    this.moveTo(t);
    /** @type {Record<string, any[]>} */
    const plain = {};
    for (const [kind, all] of this.states) {
      const rows = [...all.values()].map(({ since: _since, changed: _changed, ...fields }) => fields);
      plain[kind] = rows.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
    }
    this.moveTo(here);
    return plain;
  }
}

// The cursor: one instant for all parts of the page. It stands, or moves with the watch at a speed.

/** Speeds, seconds of the record per second of the watch. */
const SPEEDS = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.25, 1, 2, 10];
/** Seconds of the watch without an event, after which idle time is skipped. */
const PATIENCE = 0.8;

/** The cursor and its motion. */
class Clock {
  /**
   * @param {Model} model
   * @param {(touched: Set<string>, moving: boolean) => void} show called after each change of the instant
   */
  constructor(model, show) {
    this.model = model;
    this.show = show;
    this.speed = 1;
    this.skips = true;
    this.playing = false;
    /** True while the cursor stays at the present of a running lab. */
    this.following = false;
    /** @type {number} */
    this.watch = 0;
    /** Called when playing begins or ends, or the speed changes. @type {() => void} */
    this.changed = () => {};
    this.frame = this.frame.bind(this);
  }

  get t() {
    return this.model.t;
  }

  /**
   * Moves the cursor to an instant, within the record.
   * @param {number} t nanoseconds
   * @param {boolean} [moving] true if what comes and goes may be animated
   */
  seek(t, moving = false) {
    const { begin, until } = this.model.recording;
    const touched = this.model.moveTo(within(Math.round(t), begin, until));
    this.show(touched, moving);
  }

  /** Stays at the present of a running lab from now on. */
  follow() {
    this.pause();
    this.following = true;
    this.seek(Infinity);
    this.changed();
  }

  /** Goes to the begin of the record. */
  toBegin() {
    if (this.following) this.pause();
    this.seek(0);
  }

  /** Goes to the end of the record; in that of a running lab the cursor stays there. */
  toEnd() {
    if (this.model.recording.live) this.follow();
    else this.seek(Infinity);
  }

  play() {
    if (this.playing) return;
    const { begin, until, live } = this.model.recording;
    if (live && this.t >= until) {
      this.follow();
      return;
    }
    if (this.t >= until) this.seek(begin);
    this.playing = true;
    this.watch = performance.now();
    requestAnimationFrame(this.frame);
    this.changed();
  }

  pause() {
    if (!this.playing && !this.following) return;
    this.playing = false;
    this.following = false;
    this.changed();
    this.show(new Set(), false);
  }

  toggle() {
    if (this.playing || this.following) this.pause();
    else this.play();
  }

  /**
   * Sets the speed.
   * @param {number} speed
   */
  setSpeed(speed) {
    this.speed = speed;
    this.changed();
  }

  /**
   * The next faster speed, or the next slower one.
   * @param {1 | -1} direction
   */
  shift(direction) {
    const index = SPEEDS.findIndex((speed) => speed >= this.speed);
    this.setSpeed(SPEEDS[within(index + direction, 0, SPEEDS.length - 1)]);
  }

  /**
   * Stops, and goes to the next instant at which something happens, or back to the one before.
   * @param {1 | -1} direction
   * @param {ArrayLike<number>} [times]
   */
  step(direction, times) {
    this.pause();
    const to = this.model.step(direction, times);
    if (to !== null) this.seek(to, true);
  }

  /** @param {number} now milliseconds of the watch */
  frame(now) {
    if (!this.playing) return;
    // A page that was in the background goes on where it was.
    const passed = Math.min(Math.max(now - this.watch, 0), 250) / 1e3;
    this.watch = now;
    let t = this.t + passed * this.speed * 1e9;
    if (this.skips) {
      const next = this.model.step(1) ?? this.model.recording.until;
      if (next - this.t > this.speed * PATIENCE * 1e9) t = Math.max(t, next - this.speed * 0.25e9);
    }
    const end = this.model.recording.until;
    this.seek(t, true);
    if (t >= end && this.model.recording.live) this.follow();
    else if (t >= end) this.pause();
    else requestAnimationFrame(this.frame);
  }
}

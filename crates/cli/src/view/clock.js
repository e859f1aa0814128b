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
    const touched = this.model.moveTo(within(Math.round(t), 0, this.model.recording.until ?? 0));
    this.show(touched, moving);
  }

  play() {
    if (this.playing) return;
    if (this.t >= (this.model.recording.until ?? 0)) this.seek(0);
    this.playing = true;
    this.watch = performance.now();
    requestAnimationFrame(this.frame);
    this.changed();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.changed();
    this.show(new Set(), false);
  }

  toggle() {
    if (this.playing) this.pause();
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
      const next = this.model.step(1) ?? this.model.recording.until ?? 0;
      if (next - this.t > this.speed * PATIENCE * 1e9) t = Math.max(t, next - this.speed * 0.25e9);
    }
    const end = this.model.recording.until ?? 0;
    this.seek(t, true);
    if (t >= end) this.pause();
    else requestAnimationFrame(this.frame);
  }
}

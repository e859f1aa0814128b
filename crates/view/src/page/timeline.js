// The time line: the whole run in one strip, and a part of it enlarged in another.

/** Seconds of the watch that the enlarged strip shows at the present speed. */
const SPAN = 20;
/** Shortest part that the enlarged strip shows, nanoseconds. */
const SHORTEST = 1000;
/** Distance of marks on the axis, pixels. */
const MARK_DISTANCE = 90;

/** Both strips. */
class Timeline {
  /**
   * @param {Clock} clock
   * @param {HTMLCanvasElement} overview
   * @param {HTMLCanvasElement} detail
   */
  constructor(clock, overview, detail) {
    this.clock = clock;
    this.recording = clock.model.recording;
    this.overview = overview;
    this.detail = detail;
    /** The part that the enlarged strip shows, nanoseconds. @type {[number, number]} */
    this.part = this.all();
    /** True if the user chose the part: then speed does not change its length. */
    this.chosen = false;
    this.faults = this.faultSpans();
    /** Drawings of the strips without the cursor, by canvas. @type {Map<HTMLCanvasElement, HTMLCanvasElement>} */
    this.backgrounds = new Map();
    for (const canvas of [overview, detail]) this.listen(canvas);
    new ResizeObserver(() => this.repaint()).observe(detail);
  }

  /** The whole record. @returns {[number, number]} */
  all() {
    return [this.recording.begin, Math.max(this.recording.until, this.recording.begin + 1)];
  }

  /** The record of a running lab has grown. */
  grow() {
    this.faults = this.faultSpans();
    const [begin, until] = this.all();
    if (!this.chosen) this.setLength(this.clock.speed * SPAN * 1e9);
    const length = Math.min(this.part[1] - this.part[0], until - begin);
    if (this.clock.following) this.part = [until - length, until];
    else if (this.part[0] < begin) this.part = [begin, begin + length];
    this.repaint();
  }

  /** Times from a fault to its end. */
  faultSpans() {
    /** @type {Map<number | string, [number, number]>} */
    const spans = new Map();
    for (const { t, kind, id, before, after: state } of this.recording.changes) {
      if (kind !== "fault") continue;
      if (!before) spans.set(id, [t, this.recording.until]);
      else if (!state) spans.set(id, [spans.get(id)?.[0] ?? this.recording.begin, t]);
    }
    return [...spans.values()];
  }

  /** @param {HTMLCanvasElement} canvas */
  partOf(canvas) {
    return canvas === this.overview ? this.all() : this.part;
  }

  /** @param {HTMLCanvasElement} canvas */
  listen(canvas) {
    const seek = (/** @type {PointerEvent} */ event) => {
      const box = canvas.getBoundingClientRect();
      const [from, to] = this.partOf(canvas);
      this.clock.seek(from + within((event.clientX - box.left) / box.width, 0, 1) * (to - from));
    };
    canvas.addEventListener("pointerdown", (event) => {
      this.clock.pause();
      canvas.setPointerCapture(event.pointerId);
      seek(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons) seek(event);
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.5 : 1 / 1.5);
      },
      { passive: false },
    );
  }

  /**
   * Enlarges the part around the cursor; less than 1 makes it longer.
   * @param {number} factor
   */
  zoom(factor) {
    this.chosen = true;
    this.setLength((this.part[1] - this.part[0]) / factor);
    this.draw();
  }

  /** Shows the whole run in both strips, until the speed changes. */
  whole() {
    this.chosen = false;
    this.part = this.all();
    this.repaint();
  }

  /** Fits the part to the speed: what the next seconds of the watch show. */
  follow() {
    if (this.chosen) return;
    this.setLength(this.clock.speed * SPAN * 1e9);
    this.draw();
  }

  /**
   * Sets the length of the part; the cursor keeps its place in it.
   * @param {number} length nanoseconds
   */
  setLength(length) {
    const [begin, until] = this.all();
    const wanted = within(length, Math.min(SHORTEST, until - begin), until - begin);
    const [from, to] = this.part;
    const share = within((this.clock.t - from) / (to - from || 1), 0.1, 0.9);
    const start = within(this.clock.t - share * wanted, begin, until - wanted);
    this.part = [start, start + wanted];
    this.backgrounds.delete(this.detail);
    this.backgrounds.delete(this.overview);
  }

  /** Draws all again: another size or theme. */
  repaint() {
    this.backgrounds.clear();
    this.draw();
  }

  /** Draws both strips with the cursor. */
  draw() {
    const [from, to] = this.part;
    const t = this.clock.t;
    if (t < from || t > to) {
      const [begin, until] = this.all();
      const length = to - from;
      const start = within(t - length * 0.1, begin, Math.max(until - length, begin));
      this.part = [start, start + length];
      this.backgrounds.delete(this.detail);
      this.backgrounds.delete(this.overview);
    }
    for (const canvas of [this.overview, this.detail]) this.drawStrip(canvas);
  }

  /** @param {HTMLCanvasElement} canvas */
  drawStrip(canvas) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const context = canvas.getContext("2d");
    if (!context || width === 0) return;
    let background = this.backgrounds.get(canvas);
    if (!background) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      background = document.createElement("canvas");
      [background.width, background.height] = [canvas.width, canvas.height];
      const drawn = background.getContext("2d");
      if (!drawn) return;
      drawn.scale(ratio, ratio);
      this.drawBackground(drawn, canvas, width, height);
      this.backgrounds.set(canvas, background);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(background, 0, 0);
    context.scale(ratio, ratio);
    const [from, to] = this.partOf(canvas);
    const x = ((this.clock.t - from) / (to - from)) * width;
    context.fillStyle = styled("--cursor");
    context.fillRect(within(x - 1, 0, width - 2), 0, 2, height);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {HTMLCanvasElement} canvas
   * @param {number} width
   * @param {number} height
   */
  drawBackground(context, canvas, width, height) {
    const [from, to] = this.partOf(canvas);
    const place = (/** @type {number} */ t) => ((t - from) / (to - from)) * width;
    const axis = canvas === this.detail ? 14 : 0;
    const low = height - axis;
    for (const [begin, end] of this.faults) {
      if (end < from || begin > to) continue;
      context.fillStyle = styled("--fault-soft");
      context.fillRect(place(begin), 0, Math.max(place(end) - place(begin), 2), low);
      context.fillStyle = styled("--fault");
      context.fillRect(place(begin), 0, 1.5, low);
    }
    this.drawDensity(context, from, to, width, low);
    this.drawStory(context, from, to, place);
    if (canvas === this.overview) this.drawBracket(context, width, height);
    else this.drawAxis(context, from, to, width, height);
  }

  /**
   * Bars for the number of messages, by the logarithm: single messages stay visible beside bursts.
   * @param {CanvasRenderingContext2D} context
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {number} low
   */
  drawDensity(context, from, to, width, low) {
    const times = this.recording.messageTimes;
    const bars = Math.max(Math.floor(width / 2), 1);
    const counts = new Uint32Array(bars);
    let index = Math.max(after(times, from - 1), 0);
    for (; index < times.length && times[index] <= to; index += 1) {
      counts[Math.min(Math.floor(((times[index] - from) / (to - from)) * bars), bars - 1)] += 1;
    }
    const most = Math.log2(counts.reduce((high, count) => Math.max(high, count), 1) + 1);
    context.fillStyle = styled("--density");
    const room = low - 8;
    counts.forEach((count, bar) => {
      const tall = count ? (Math.log2(count + 1) / most) * room : 0;
      context.fillRect((bar * width) / bars, low - tall, Math.max(width / bars - 0.5, 1), tall);
    });
  }

  /**
   * Marks of the milestones of the story along the upper edge.
   * @param {CanvasRenderingContext2D} context
   * @param {number} from
   * @param {number} to
   * @param {(t: number) => number} place
   */
  drawStory(context, from, to, place) {
    context.fillStyle = styled("--story");
    let last = -2;
    for (const line of this.recording.story) {
      if (line.t < from || line.t > to) continue;
      const x = Math.round(place(line.t));
      if (!line.milestone || x - last < 2) continue;
      context.fillRect(x, 0, 1.5, 6);
      last = x;
    }
  }

  /**
   * Shows in the strip of the whole run which part of it is enlarged.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  drawBracket(context, width, height) {
    const [begin, until] = this.all();
    const [left, right] = this.part.map((t) => ((t - begin) / (until - begin)) * width);
    if (right - left > width - 1) return;
    context.strokeStyle = styled("--ink");
    context.lineWidth = 1;
    context.strokeRect(within(left, 0, width - 3) + 0.5, 0.5, Math.max(right - left - 1, 2), height - 1);
  }

  /**
   * The axis below the enlarged strip.
   * @param {CanvasRenderingContext2D} context
   * @param {number} from
   * @param {number} to
   * @param {number} width
   * @param {number} height
   */
  drawAxis(context, from, to, width, height) {
    const wanted = ((to - from) * MARK_DISTANCE) / Math.max(width, 1);
    const size = 10 ** Math.floor(Math.log10(wanted));
    const step = Math.max([1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= wanted) ?? size, 1);
    const decimals = within(9 - Math.floor(Math.log10(step) + 1e-9), 0, 9);
    context.fillStyle = styled("--muted");
    context.font = `10px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = "bottom";
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const x = ((t - from) / (to - from)) * width;
      context.fillRect(x, height - 14, 1, 4);
      const text = (Math.round(t) / 1e9).toFixed(decimals);
      const long = context.measureText(text).width;
      context.fillText(text, within(x - long / 2, 0, width - long), height);
    }
  }
}

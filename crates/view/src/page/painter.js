// Strokes on a canvas between the links and the machines: very many of them, so they are drawn in slices of a frame.

/** Milliseconds that drawing takes of one frame. */
const SLICE = 7;
/** Strokes between two looks at the watch. */
const AT_ONCE = 48;

/** A line with its look: a path as text and as an object, width in units of the drawing, opacity 0 to 1. @typedef {{text: string, path: Path2D, colour: string, width: number, dash: number[], alpha: number}} Stroke */

/** Draws strokes whenever they change, a slice in each frame, and shows them when all are drawn. */
class Painter {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {View} view
   * @param {(now: number) => {strokes: Stroke[], moving: boolean}} strokes all strokes at an instant of the watch, and
   *   whether they will differ in the next frame
   */
  constructor(canvas, view, strokes) {
    this.canvas = canvas;
    this.view = view;
    this.strokes = strokes;
    this.back = document.createElement("canvas");
    // In memory of the processor, so that a slice can be made to be drawn at once.
    this.pen = this.back.getContext("2d", { willReadFrequently: true });
    /** Strokes that are being drawn. @type {Stroke[] | null} */
    this.job = null;
    this.done = 0;
    this.dirty = false;
    this.scheduled = false;
    this.frame = this.frame.bind(this);
    new ResizeObserver(() => this.invalidate()).observe(canvas);
  }

  /** Asks for a new drawing. */
  invalidate() {
    this.dirty = true;
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(this.frame);
  }

  frame() {
    this.scheduled = false;
    const begin = performance.now();
    if (!this.job) this.begin(begin);
    const pen = this.pen;
    if (!this.job || !pen) return;
    while (this.done < this.job.length && performance.now() - begin < SLICE) {
      const end = Math.min(this.done + AT_ONCE, this.job.length);
      for (; this.done < end; this.done += 1) Painter.draw(pen, this.job[this.done]);
      // Browsers note down strokes and draw them later, when the slice is over; a look at a pixel makes them draw now.
      if (this.job.length > AT_ONCE) pen.getImageData(0, 0, 1, 1);
    }
    if (this.done >= this.job.length) this.finish();
    if (this.job || this.dirty) {
      this.scheduled = true;
      requestAnimationFrame(this.frame);
    }
  }

  /** @param {number} now */
  begin(now) {
    const { strokes, moving } = this.strokes(now);
    this.job = strokes;
    this.done = 0;
    this.dirty = moving;
    const ratio = devicePixelRatio || 1;
    const { scale, left, top, width, height } = this.view.scale();
    this.back.width = Math.max(Math.round(width * ratio), 1);
    this.back.height = Math.max(Math.round(height * ratio), 1);
    this.pen?.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
    if (this.pen) this.pen.lineJoin = "round";
  }

  /** Shows what was drawn. */
  finish() {
    this.job = null;
    const { width, height } = this.back;
    if (this.canvas.width !== width || this.canvas.height !== height)
      [this.canvas.width, this.canvas.height] = [width, height];
    const context = this.canvas.getContext("2d");
    context?.clearRect(0, 0, width, height);
    context?.drawImage(this.back, 0, 0);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Stroke} stroke
   */
  static draw(context, stroke) {
    context.globalAlpha = stroke.alpha;
    context.strokeStyle = stroke.colour;
    context.lineWidth = stroke.width;
    context.setLineDash(stroke.dash);
    context.lineCap = stroke.dash.length ? "butt" : "round";
    context.stroke(stroke.path);
  }

  /** The strokes as elements of an SVG document. */
  elements() {
    const { strokes } = this.strokes(Infinity);
    return strokes.map(({ text, colour, width, dash, alpha }) =>
      svg("path", {
        d: text,
        fill: "none",
        stroke: colour,
        "stroke-width": width.toFixed(1),
        "stroke-linejoin": "round",
        "stroke-linecap": dash.length ? null : "round",
        "stroke-dasharray": dash.length ? dash.join(" ") : null,
        "stroke-opacity": alpha < 1 ? alpha.toFixed(2) : null,
      }),
    );
  }
}

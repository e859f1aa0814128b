// The part of the drawing that is seen: whole at first; it is moved by dragging and made larger by buttons and wheel.

/** Largest enlargement against the whole drawing. */
const CLOSEST = 16;

/** The view of a drawing. */
class View {
  /**
   * @param {HTMLElement} sheet
   * @param {SVGSVGElement[]} drawings
   * @param {Geometry} geometry
   * @param {() => void} changed called when another part is seen
   */
  constructor(sheet, drawings, geometry, changed) {
    this.sheet = sheet;
    this.drawings = drawings;
    this.changed = () => {};
    this.whole = geometry.whole;
    sheet.style.setProperty("--aspect", `${this.whole.width.toFixed(0)} / ${this.whole.height.toFixed(0)}`);
    this.now = { ...this.whole };
    /** True while and just after the pointer moved the drawing: a click then selects nothing. */
    this.dragged = false;
    this.show();
    this.changed = changed;
    this.listen();
  }

  show() {
    const { x, y, width, height } = this.now;
    const box = [x, y, width, height].map((value) => value.toFixed(2)).join(" ");
    for (const drawing of this.drawings) drawing.setAttribute("viewBox", box);
    this.changed();
  }

  /** Shows the whole drawing. */
  fit() {
    this.now = { ...this.whole };
    this.show();
  }

  /**
   * Enlarges around a point of the drawing; less than 1 makes it smaller.
   * @param {number} factor
   * @param {{x: number, y: number}} [around] the middle if it is left out
   */
  zoom(factor, around = { x: this.now.x + this.now.width / 2, y: this.now.y + this.now.height / 2 }) {
    const width = within(this.now.width / factor, this.whole.width / CLOSEST, this.whole.width);
    const scale = width / this.now.width;
    this.now = {
      x: around.x - (around.x - this.now.x) * scale,
      y: around.y - (around.y - this.now.y) * scale,
      width,
      height: this.now.height * scale,
    };
    this.hold();
  }

  /** Keeps the view within the drawing, and shows it. */
  hold() {
    const { now, whole } = this;
    now.x = within(now.x, whole.x, whole.x + whole.width - now.width);
    now.y = within(now.y, whole.y, whole.y + whole.height - now.height);
    this.show();
  }

  /** Pixels of the screen per unit of the drawing, and the place of its origin in the element. */
  scale() {
    const box = this.sheet.getBoundingClientRect();
    const scale = Math.min(box.width / this.now.width, box.height / this.now.height) || 1;
    const left = (box.width - this.now.width * scale) / 2 - this.now.x * scale;
    const top = (box.height - this.now.height * scale) / 2 - this.now.y * scale;
    return { scale, left, top, width: box.width, height: box.height };
  }

  /**
   * The point of the drawing under the pointer.
   * @param {MouseEvent} event
   */
  point(event) {
    const box = this.sheet.getBoundingClientRect();
    const { scale, left, top } = this.scale();
    return { x: (event.clientX - box.left - left) / scale, y: (event.clientY - box.top - top) / scale };
  }

  listen() {
    /** @type {{x: number, y: number} | null} */
    let from = null;
    this.sheet.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY };
      this.dragged = false;
    });
    this.sheet.addEventListener("pointermove", (event) => {
      if (!from || event.buttons === 0) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!this.dragged && Math.hypot(dx, dy) < 4) return;
      this.dragged = true;
      from = { x: event.clientX, y: event.clientY };
      const { scale } = this.scale();
      this.now.x -= dx / scale;
      this.now.y -= dy / scale;
      this.hold();
    });
    this.sheet.addEventListener("pointerup", () => (from = null));
    this.sheet.addEventListener(
      "wheel",
      (event) => {
        // The wheel alone scrolls the page.
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, this.point(event));
      },
      { passive: false },
    );
  }
}

// A list of very many rows, of which only those in sight are in the page.

/** Rows beyond both edges of the sight. */
const BEYOND = 6;
/** Part of the sight that the present row stays in while the cursor moves. */
const FOLLOWED = 0.6;

/** A list box whose rows all have the same height. */
class LongList {
  /**
   * @param {HTMLElement} box the element that scrolls
   * @param {number} height of a row, pixels
   * @param {(index: number) => HTMLElement} row makes the row with this index
   * @param {(index: number) => void} pick called when the user chooses a row
   */
  constructor(box, height, row, pick) {
    this.box = box;
    this.height = height;
    this.row = row;
    this.pick = pick;
    this.count = 0;
    this.active = -1;
    /** Rows in the page, by index. @type {Map<number, HTMLElement>} */
    this.rows = new Map();
    this.space = html("div", { class: "space", role: "presentation" });
    box.append(this.space);
    setAll(box, { role: "listbox", tabindex: 0 });
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
    box.addEventListener("click", (event) => {
      const found = event.target instanceof Element ? event.target.closest("[data-index]") : null;
      if (found instanceof HTMLElement) this.choose(Number(found.dataset.index));
    });
    box.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const page = Math.max(Math.floor(this.box.clientHeight / this.height) - 1, 1);
    const moves = /** @type {Record<string, number>} */ ({
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.count,
      End: this.count,
    });
    const pressed = event.key === "Enter" ? 0 : moves[event.key];
    if (pressed === undefined || event.ctrlKey || event.altKey || event.metaKey || this.count === 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(within(this.active + pressed, 0, this.count - 1));
  }

  /** @param {number} index */
  choose(index) {
    this.setActive(index, false);
    this.pick(index);
  }

  /**
   * Sets the number of rows, and draws them all again.
   * @param {number} count
   */
  setCount(count) {
    this.count = count;
    this.active = -1;
    this.box.removeAttribute("aria-activedescendant");
    this.space.style.height = `${count * this.height}px`;
    this.redraw();
  }

  /** Makes the rows in sight again. */
  redraw() {
    for (const row of this.rows.values()) row.remove();
    this.rows.clear();
    this.draw();
  }

  /**
   * Marks a row as the present one; -1 for none.
   * @param {number} index
   * @param {boolean} follows true to keep it in the upper part of the sight, with room for what comes next
   */
  setActive(index, follows) {
    if (index >= 0) this.reveal(index, follows ? FOLLOWED : 1);
    if (index === this.active) return;
    this.mark(this.active, false);
    this.active = index;
    this.mark(index, true);
  }

  /**
   * @param {number} index
   * @param {boolean} active
   */
  mark(index, active) {
    const row = this.rows.get(index);
    row?.setAttribute("aria-selected", String(active));
    if (row && active) this.box.setAttribute("aria-activedescendant", row.id);
  }

  /**
   * Brings a row into the upper part of the sight.
   * @param {number} index
   * @param {number} part of the sight, up to 1
   */
  reveal(index, part) {
    const [top, room, seen] = [index * this.height, this.box.clientHeight, this.box.scrollTop];
    if (top < seen || top + this.height > seen + room * part) this.box.scrollTop = top - room * part * 0.6;
    this.draw();
  }

  /** Brings the page's rows in agreement with the sight. */
  draw() {
    const first = Math.max(Math.floor(this.box.scrollTop / this.height) - BEYOND, 0);
    const last = Math.min(Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + BEYOND, this.count);
    for (const [index, row] of this.rows) {
      if (index >= first && index < last) continue;
      row.remove();
      this.rows.delete(index);
    }
    /** @type {HTMLElement[]} */
    const added = [];
    for (let index = first; index < last; index += 1) {
      if (this.rows.has(index)) continue;
      const row = this.row(index);
      row.style.top = `${index * this.height}px`;
      setAll(row, {
        role: "option",
        id: `${this.box.id}-${index}`,
        "data-index": index,
        "aria-selected": String(index === this.active),
        "aria-setsize": this.count,
        "aria-posinset": index + 1,
      });
      this.rows.set(index, row);
      added.push(row);
    }
    this.space.append(...added);
    if (this.rows.has(this.active)) this.mark(this.active, true);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

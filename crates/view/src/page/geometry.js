// Lines of the drawing: the ways of links as points, and threads of calls beside them.

/** @typedef {[number, number]} Point */
/** @typedef {{x: number, y: number, width: number, height: number}} Box A rectangle by its centre and its whole size, pixels. */

/** Pixels around the drawing, with room for labels. */
const FRAME = 22;
/** Points of a flattened curve. */
const CURVE_POINTS = 8;

/**
 * The points of an SVG path of absolute M, L, C and S commands, as the layout writes them.
 * @param {string} text
 * @returns {Point[]}
 */
function flattened(text) {
  const words = text.match(/[MLCS]|-?\d+(?:\.\d+)?/g) ?? [];
  /** @type {Point[]} */
  const points = [];
  /** @type {Point} */
  let control = [0, 0];
  let [at, command] = [0, "M"];
  const next = () => /** @type {Point} */ ([Number(words[at++]), Number(words[at++])]);
  while (at < words.length) {
    if (/[MLCS]/.test(words[at])) command = words[at++];
    const here = points.at(-1) ?? [0, 0];
    if (command === "M" || command === "L") {
      points.push((control = next()));
      continue;
    }
    const mirrored = /** @type {Point} */ ([2 * here[0] - control[0], 2 * here[1] - control[1]]);
    const first = command === "C" ? next() : mirrored;
    control = next();
    const end = next();
    for (let step = 1; step <= CURVE_POINTS; step += 1)
      points.push(bezier(here, first, control, end, step / CURVE_POINTS));
  }
  return points.every((point) => point.every(Number.isFinite)) ? smoothed(points) : [];
}

/**
 * A way without points at which it turns back: where curves of a layout meet, they may overlap a little.
 * @param {Point[]} points
 */
function smoothed(points) {
  /** @type {Point[]} */
  const kept = [];
  for (const point of points) {
    const [last, before] = [kept.at(-1), kept.at(-2)];
    const step = last ? [point[0] - last[0], point[1] - last[1]] : [0, 0];
    const back = last && before && step[0] * (last[0] - before[0]) + step[1] * (last[1] - before[1]) < 0;
    if (!last || (!back && Math.hypot(step[0], step[1]) > 0.5)) kept.push(point);
  }
  return kept;
}

/**
 * A point of a cubic curve.
 * @param {Point} a
 * @param {Point} b
 * @param {Point} c
 * @param {Point} d
 * @param {number} t 0 to 1
 * @returns {Point}
 */
function bezier(a, b, c, d, t) {
  const u = 1 - t;
  const mixed = (/** @type {0 | 1} */ axis) =>
    u * u * u * a[axis] + 3 * u * u * t * b[axis] + 3 * u * t * t * c[axis] + t * t * t * d[axis];
  return [mixed(0), mixed(1)];
}

/**
 * The straight way between the edges of two boxes.
 * @param {Box} a
 * @param {Box} b
 * @returns {Point[]}
 */
function straight(a, b) {
  return [edge(a, b), edge(b, a)];
}

/**
 * The point at which the line from the middle of a box towards that of another leaves it.
 * @param {Box} from
 * @param {Box} to
 * @returns {Point}
 */
function edge(from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const reach = Math.max(Math.abs(dx) / (from.width / 2), Math.abs(dy) / (from.height / 2), 1);
  return [from.x + dx / reach, from.y + dy / reach];
}

/**
 * A way in the direction that begins at a box: the layout draws from left to right.
 * @param {Point[]} points
 * @param {Box} start
 */
function directed(points, start) {
  const away = (/** @type {Point} */ [x, y]) => Math.hypot(x - start.x, y - start.y);
  return away(points[0]) <= away(points[points.length - 1]) ? points : [...points].reverse();
}

/**
 * A way that is moved to one side, at right angles to itself: to the right of its direction if `by` is positive.
 * @param {Point[]} points
 * @param {number} by pixels
 * @returns {Point[]}
 */
function beside(points, by) {
  return points.map((point, index) => {
    const [before, behind] = [points[Math.max(index - 1, 0)], points[Math.min(index + 1, points.length - 1)]];
    const [dx, dy] = [behind[0] - before[0], behind[1] - before[1]];
    const length = Math.hypot(dx, dy) || 1;
    return /** @type {Point} */ ([point[0] - (dy / length) * by, point[1] + (dx / length) * by]);
  });
}

/**
 * The point at a part of the length of a way, and the direction there.
 * @param {Point[]} points at least one
 * @param {number} part 0 to 1
 * @returns {{x: number, y: number, angle: number}} angle in radians
 */
function along(points, part) {
  const lengths = points
    .slice(1)
    .map((point, index) => Math.hypot(point[0] - points[index][0], point[1] - points[index][1]));
  let rest = within(part, 0, 1) * lengths.reduce((sum, length) => sum + length, 0);
  for (const [index, length] of lengths.entries()) {
    if (rest > length && index < lengths.length - 1) {
      rest -= length;
      continue;
    }
    const [[x, y], [toX, toY]] = [points[index], points[index + 1]];
    const share = length > 0 ? Math.min(rest / length, 1) : 0;
    return { x: x + (toX - x) * share, y: y + (toY - y) * share, angle: Math.atan2(toY - y, toX - x) };
  }
  return { x: points[0][0], y: points[0][1], angle: 0 };
}

/**
 * The text of an SVG path through points, with one decimal.
 * @param {Point[]} points
 */
function pathText(points) {
  return points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** Places and ways of all machines and links of a drawing. */
class Geometry {
  /** @param {Recording} recording */
  constructor(recording) {
    /** @type {Map<string, Box>} */
    this.boxes = new Map();
    for (const [name, x, y, width, height] of recording.layout.boxes) this.boxes.set(name, { x, y, width, height });
    /** Ways of links from their first to their second end. @type {Map<string, Point[]>} */
    this.ways = new Map();
    for (const link of recording.links.values()) {
      const [a, b] = link.ends.map((end) => this.boxes.get(end));
      if (!a || !b) continue;
      const drawn = flattened(recording.layout.paths?.[link.name] ?? "");
      this.ways.set(link.name, drawn.length > 1 ? directed(drawn, a) : straight(a, b));
    }
    this.links = recording.links;
    /** The whole drawing with a frame around it. */
    this.whole = this.extent();
  }

  /**
   * The rectangle around all boxes and ways.
   * @returns {{x: number, y: number, width: number, height: number}} its upper left corner and size
   */
  extent() {
    let [left, top, right, low] = [Infinity, Infinity, -Infinity, -Infinity];
    const reach = (/** @type {number} */ x, /** @type {number} */ y) => {
      [left, top, right, low] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(low, y)];
    };
    for (const { x, y, width, height } of this.boxes.values()) {
      reach(x - width / 2, y - height / 2);
      reach(x + width / 2, y + height / 2);
    }
    for (const way of this.ways.values()) for (const [x, y] of way) reach(x, y);
    if (left > right) return { x: 0, y: 0, width: 200, height: 100 };
    return { x: left - FRAME, y: top - FRAME, width: right - left + 2 * FRAME, height: low - top + 2 * FRAME };
  }

  /**
   * The way over links from a machine; `lane` moves it to a side of the links. A link that does not go on from the
   * machine that was reached last begins a new part: the branch of a tree.
   * @param {string} from
   * @param {string[]} via names of links
   * @param {number} lane pixels beside the middle of the links
   * @returns {string} the text of an SVG path
   */
  thread(from, via, lane) {
    let [here, text] = [from, ""];
    /** Points where the thread has reached machines. @type {Map<string, Point>} */
    const reached = new Map();
    for (const name of via) {
      const link = this.links.get(name);
      const way = this.ways.get(name);
      if (!link || !way) continue;
      const goesOn = link.ends.includes(here);
      const start = goesOn ? here : (link.ends.find((end) => reached.has(end)) ?? link.ends[0]);
      // The side belongs to the link's own direction: threads of both directions keep their places.
      const moved = beside(way, lane);
      if (link.ends[0] !== start) moved.reverse();
      const [box, before] = [this.boxes.get(start), reached.get(start)];
      if (box && before) {
        if (!goesOn) text += pathText([before]);
        text += `Q${box.x.toFixed(1)} ${box.y.toFixed(1)} ${moved[0][0].toFixed(1)} ${moved[0][1].toFixed(1)}`;
        text += pathText(moved).replace(/^M[^L]*/, "");
      } else {
        text += pathText(moved);
      }
      here = link.ends[0] === start ? link.ends[1] : link.ends[0];
      reached.set(here, moved[moved.length - 1]);
    }
    return text;
  }
}

/** Places for labels beside ways, where they hide as little as possible. */
class Labels {
  /** @param {Geometry} geometry */
  constructor(geometry) {
    this.geometry = geometry;
    /** What no label should hide: machines, and the labels that stay. @type {Box[]} */
    this.taken = [...geometry.boxes.values()];
  }

  /**
   * The box of a label beside a way, on that side and at that part of it where it hides least.
   * @param {Point[]} way
   * @param {{width: number, height: number}} size
   * @param {number} gap pixels between the middle of the way and the label
   * @param {Box[]} [more] further boxes that it should not hide
   * @returns {Box}
   */
  place(way, size, gap, more = []) {
    let [best, cost] = [{ x: 0, y: 0, ...size }, Infinity];
    for (const part of [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74]) {
      const { x, y, angle } = along(way, part);
      const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
      // The box just clears the way at this angle.
      const clear = (size.width / 2) * Math.abs(sine) + (size.height / 2) * Math.abs(cosine) + gap;
      for (const side of cosine >= 0 ? [1, -1] : [-1, 1]) {
        for (const farther of [0, 16, 32, 48]) {
          const away = (clear + farther) * side;
          const box = { x: x + sine * away, y: y - cosine * away, ...size };
          const hidden = this.hidden(box, way, more) + farther / 32;
          if (hidden < cost) [best, cost] = [box, hidden];
        }
      }
    }
    return best;
  }

  /**
   * How much a label would hide: boxes, and points of other ways.
   * @param {Box} box
   * @param {Point[]} own
   * @param {Box[]} more
   */
  hidden(box, own, more) {
    let hidden = 10 * [...this.taken, ...more].filter((other) => overlap(box, other)).length;
    const { whole } = this.geometry;
    const cut = box.x - box.width / 2 < whole.x || box.x + box.width / 2 > whole.x + whole.width;
    if (cut || box.y - box.height / 2 < whole.y || box.y + box.height / 2 > whole.y + whole.height) hidden += 20;
    for (const way of this.geometry.ways.values()) {
      if (way !== own) hidden += way.filter(([x, y]) => overlap(box, { x, y, width: 8, height: 8 })).length;
    }
    return hidden;
  }
}

/**
 * True if two boxes overlap.
 * @param {Box} a
 * @param {Box} b
 */
function overlap(a, b) {
  return Math.abs(a.x - b.x) * 2 < a.width + b.width && Math.abs(a.y - b.y) * 2 < a.height + b.height;
}

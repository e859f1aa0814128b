// Plots over the whole run: what was sampled, with the cursor of all other parts.

/** Most lines in a plot; the largest are drawn, and the others are counted. */
const MOST_LINES = 8;
/** Height of a plot's area, pixels. */
const PLOT_HEIGHT = 92;
/** Room for numbers in front of the area, pixels. */
const GUTTER = 44;

/** A line of a plot: its value for each sample, null where there is no value. @typedef {{name: string, values: (number | null)[]}} Curve */
/** @typedef {{title: string, unit: string, show: (value: number) => string, curves: Curve[], left: number}} Plot */

/**
 * The growth per second of a counter at each sample.
 * @param {Recording} recording
 * @param {string} key
 * @param {(values: number[]) => number} value
 */
function growth(recording, key, value) {
  const series = recording.series.get(key);
  // What the first sample counts was there before: there is no interval in front of it.
  let [last, time] = [0, recording.samples[0] ?? 0];
  return recording.samples.map((t) => {
    const now = series?.at(t);
    const total = now ? value(now) : 0;
    const rate = t > time ? ((total - last) * 1e9) / (t - time) : 0;
    [last, time] = [total, t];
    return rate;
  });
}

/**
 * The mean delay of the packets that a flow received in the interval in front of each sample, nanoseconds; null where
 * it received none.
 * @param {Recording} recording
 * @param {string} flow
 */
function meanDelays(recording, flow) {
  const series = recording.series.get(`flows/${flow}`);
  let [packets, sum] = [0, 0];
  return recording.samples.map((t) => {
    const values = series?.at(t) ?? [];
    const [received, delays] = [(values[1] ?? 0) - packets, (values[5] ?? 0) - sum];
    [packets, sum] = [values[1] ?? 0, values[5] ?? 0];
    return received > 0 ? delays / received : null;
  });
}

/**
 * The greatest value of a curve, or 0.
 * @param {Curve} curve
 */
function highest(curve) {
  return curve.values.reduce((/** @type {number} */ high, value) => Math.max(high, value ?? 0), 0);
}

/**
 * A plot of the largest curves; null if all of them are empty.
 * @param {string} title
 * @param {string} unit
 * @param {Curve[]} curves
 * @param {(value: number) => string} show
 * @returns {Plot | null}
 */
function plotOf(title, unit, curves, show) {
  const full = curves.filter((curve) => highest(curve) > 0);
  const kept =
    full.length > MOST_LINES
      ? new Set([...full].sort((a, b) => highest(b) - highest(a)).slice(0, MOST_LINES))
      : new Set(full);
  const drawn = full.filter((curve) => kept.has(curve));
  return drawn.length ? { title, unit, show, curves: drawn, left: full.length - drawn.length } : null;
}

/**
 * All plots of a run.
 * @param {Recording} recording
 */
function plotsOf(recording) {
  const named = (/** @type {string} */ group) =>
    [...recording.series.keys()].filter((key) => key.startsWith(`${group}/`)).map((key) => key.slice(group.length + 1));
  const flows = named("flows");
  const millions = (/** @type {number} */ value) => short(value / 1e6);
  const throughput = flows.map((name) => ({
    name,
    values: growth(recording, `flows/${name}`, (values) => (values[4] ?? 0) * 8),
  }));
  const lost = flows.map((name) => ({
    name,
    values: growth(recording, `flows/${name}`, (values) => values[2] ?? 0),
  }));
  const delay = flows.map((name) => ({ name, values: meanDelays(recording, name) }));
  const queues = named("queues").map((name) => ({
    name,
    values: recording.samples.map((t) => recording.series.get(`queues/${name}`)?.at(t)?.[0] ?? 0),
  }));
  const load = named("links").map((name) => {
    const [there, back] = [0, 1].map((way) => growth(recording, `links/${name}`, (values) => values[way] ?? 0));
    const rate = recording.links.get(name)?.rate || 1;
    return { name, values: there.map((cells, index) => (Math.max(cells, back[index]) / rate) * 100) };
  });
  const all = [
    plotOf("Throughput", "Mbit/s", throughput, millions),
    plotOf("Delay", "ms", delay, millions),
    plotOf("Losses", "packets/s", lost, short),
    plotOf("Queues", "cells", queues, short),
    plotOf("Load of links", "%", load, short),
  ];
  return all.filter((plot) => plot !== null);
}

/**
 * The least of 1, 2 and 5 times a power of ten that is not below a value.
 * @param {number} value
 */
function ceiling(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= value * 0.999) ?? value;
}

/** All plots on the page. */
class Plots {
  /**
   * @param {Clock} clock
   * @param {HTMLElement} box
   */
  constructor(clock, box) {
    this.clock = clock;
    this.recording = clock.model.recording;
    this.box = box;
    /** @type {Plot[]} */
    this.plots = [];
    /** Instants of the samples that the plots show. @type {number[]} */
    this.samples = [];
    /** @type {SVGLineElement[]} */
    this.cursors = [];
    /** Fields for the values at the cursor, with their curves. @type {[HTMLElement, Plot, Curve][]} */
    this.readings = [];
    this.width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.width - this.room()) > 1) this.build();
    }).observe(box);
    this.read();
  }

  /** Reads the record, which may have grown, and builds the plots. */
  read() {
    this.plots = plotsOf(this.recording);
    this.samples = this.recording.samples.slice();
    /** The part of the record that the plots show: all that there was. @type {[number, number]} */
    this.span = [this.recording.begin, Math.max(this.recording.until, this.recording.begin + 1)];
    part("no-plots").hidden = this.plots.length > 0;
    this.build();
  }

  /** Width of the plots, pixels: that of the box without its padding. */
  room() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.box);
    return this.box.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  }

  /** Builds all plots for the present width. */
  build() {
    this.width = this.room();
    this.cursors = [];
    this.readings = [];
    this.sampled = undefined;
    this.box.replaceChildren(...this.plots.map((plot) => this.figure(plot)));
    this.update();
  }

  /** @param {Plot} plot */
  figure(plot) {
    const top = ceiling(Math.max(...plot.curves.map(highest)));
    const width = Math.max(this.width, 120);
    const words = `${plot.title} in ${plot.unit} over the run, 0 to ${plot.show(top)}: ${plot.curves.map((curve) => curve.name).join(", ")}`;
    const drawing = svg("svg", {
      class: "plot",
      width,
      height: PLOT_HEIGHT + 8,
      viewBox: `0 0 ${width} ${PLOT_HEIGHT + 8}`,
      role: "img",
      "aria-label": words,
    });
    for (const share of [0, 0.5, 1]) {
      const y = (1 - share) * PLOT_HEIGHT + 4.5;
      drawing.append(svg("line", { class: "grid", x1: GUTTER, x2: width, y1: y, y2: y }));
      drawing.append(svg("text", { class: "number", x: GUTTER - 6, y: y + 3.5 }, plot.show(top * share)));
    }
    plot.curves.forEach((curve, index) => {
      drawing.append(svg("path", { class: `curve series-${index}`, d: this.path(curve, top, width) }));
    });
    const cursor = svg("line", { class: "at", y1: 0, y2: PLOT_HEIGHT + 8 });
    drawing.append(cursor);
    this.cursors.push(cursor);
    const seek = (/** @type {PointerEvent} */ event) => {
      const box = drawing.getBoundingClientRect();
      const [begin, until] = this.span ?? [0, 1];
      this.clock.pause();
      this.clock.seek(begin + within((event.clientX - box.left - GUTTER) / (width - GUTTER), 0, 1) * (until - begin));
    };
    drawing.addEventListener("pointerdown", seek);
    drawing.addEventListener("pointermove", (event) => event.buttons && seek(event));
    const caption = html("figcaption", {}, html("b", {}, plot.title), ` ${plot.unit}`);
    return html("figure", {}, caption, this.legend(plot), drawing);
  }

  /** @param {Plot} plot */
  legend(plot) {
    const list = html("ul", { class: "keys" });
    plot.curves.forEach((curve, index) => {
      const reading = html("output", { class: "n" });
      this.readings.push([reading, plot, curve]);
      const line = svg(
        "svg",
        { class: "swatch", width: 18, height: 8, "aria-hidden": "true" },
        svg("line", { class: `curve series-${index}`, x1: 0, x2: 18, y1: 4, y2: 4 }),
      );
      list.append(html("li", {}, line, ` ${curve.name} `, reading));
    });
    if (plot.left > 0) list.append(html("li", {}, `and ${plot.left} smaller, in the tables`));
    return list;
  }

  /**
   * The path of a curve: each value holds for the interval in front of its sample. With more samples than pixels, a
   * pixel shows the least and the greatest of its values.
   * @param {Curve} curve
   * @param {number} top value at the upper edge
   * @param {number} width
   */
  path(curve, top, width) {
    const [begin, until] = this.span ?? [0, 1];
    const x = (/** @type {number} */ t) =>
      (GUTTER + (Math.max(t - begin, 0) / (until - begin)) * (width - GUTTER)).toFixed(1);
    const y = (/** @type {number} */ value) => ((1 - Math.min(value / top, 1)) * PLOT_HEIGHT + 4.5).toFixed(1);
    const { samples } = this;
    const each = Math.max(Math.floor(samples.length / (width - GUTTER)), 1);
    let [text, from, open] = ["", begin, false];
    for (let index = 0; index < samples.length; index += each) {
      const group = curve.values.slice(index, index + each).filter((value) => value !== null);
      const end = samples[Math.min(index + each, samples.length) - 1];
      if (group.length === 0) open = false;
      else {
        const [low, high] = [Math.min(...group), Math.max(...group)];
        text += `${open ? "L" : "M"}${x(from)} ${y(high)}`;
        text += low < high ? `L${x(from)} ${y(low)}L${x(end)} ${y(low)}` : `H${x(end)}`;
        open = true;
      }
      from = end;
    }
    return text;
  }

  /** Shows the cursor and the values at it. */
  update() {
    const [begin, until] = this.span ?? [0, 1];
    const share = within((this.clock.t - begin) / (until - begin), 0, 1);
    const place = GUTTER + share * (Math.max(this.width, 120) - GUTTER);
    for (const cursor of this.cursors) setAll(cursor, { x1: place.toFixed(1), x2: place.toFixed(1) });
    const sampled = this.clock.model.sampled;
    if (sampled === this.sampled) return;
    /** @type {number | null | undefined} */
    this.sampled = sampled;
    const index = sampled === null ? -1 : after(this.samples, sampled) - 1;
    for (const [reading, plot, curve] of this.readings) {
      const value = curve.values[index] ?? null;
      setText(reading, value === null ? "–" : plot.show(value));
    }
    setText(part("plots-sample"), sampled === null ? "no sample yet" : `sample of ${sampleTime(sampled)} s`);
  }
}

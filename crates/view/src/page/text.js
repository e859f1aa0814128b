"use strict";
// Elements, numbers and words that all parts of the page use. Data reaches the page as text only, never as markup.

/** Namespace of SVG elements. */
const SVG = "http://www.w3.org/2000/svg";

/** @typedef {string | number | boolean | null | undefined} Attribute An attribute's value; it is left out if it is false, null or undefined. */

/**
 * Sets attributes of an element.
 * @param {Element} node
 * @param {Record<string, Attribute>} attributes
 */
function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * An HTML element with its children. A string becomes text.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, Attribute>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAll(node, attributes);
  node.append(...children);
  return node;
}

/**
 * An SVG element with its children. A string becomes text.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, Attribute>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {SVGElementTagNameMap[K]}
 */
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  setAll(node, attributes);
  node.append(...children);
  return node;
}

/**
 * The element of the page with this id; the page has it.
 * @param {string} id
 * @returns {HTMLElement}
 */
function part(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no part ${id}`);
  return found;
}

/**
 * The input or selection of the page with this id.
 * @param {string} id
 */
function field(id) {
  return /** @type {HTMLInputElement} */ (/** @type {unknown} */ (part(id)));
}

/**
 * Sets the text of a node, and leaves the node alone if it has this text.
 * @param {Node} node
 * @param {string} text
 */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Seconds with nine decimals, without zeros at the end; at least `least` decimals.
 * @param {number} t nanoseconds
 * @param {number} [least]
 */
function seconds(t, least = 0) {
  const whole = Math.floor(t / 1e9);
  let part = String(Math.round(t - whole * 1e9)).padStart(9, "0");
  while (part.length > least && part.endsWith("0")) part = part.slice(0, -1);
  return part ? `${whole}.${part}` : String(whole);
}

/**
 * Seconds with all nine decimals, grouped by thousands with thin spaces.
 * @param {number} t nanoseconds
 */
function exactSeconds(t) {
  const [whole, part] = seconds(t, 9).split(".");
  return `${whole}.${part.slice(0, 3)}\u2009${part.slice(3, 6)}\u2009${part.slice(6)}`;
}

/** Decimals of times in lists. The nanoseconds of a running lab mean nothing. */
const STAMP = { decimals: 9 };

/**
 * A time in a list, seconds.
 * @param {number} t nanoseconds
 */
function stamp(t) {
  return STAMP.decimals === 9 ? seconds(t, 9) : (t / 1e9).toFixed(STAMP.decimals);
}

/**
 * The time of a sample, seconds.
 * @param {number} t nanoseconds
 */
function sampleTime(t) {
  return STAMP.decimals === 9 ? seconds(t) : (t / 1e9).toFixed(1);
}

/** Units of time and their nanoseconds. */
const UNITS = new Map([
  ["", 1e9],
  ["s", 1e9],
  ["ms", 1e6],
  ["us", 1e3],
  ["µs", 1e3],
  ["ns", 1],
]);

/**
 * The instant that a person wrote, nanoseconds: `6.02`, `6,02 s`, `1e-3`, `500ms`; null if it is none.
 * @param {string} text
 */
function instantOf(text) {
  const found = /^(\d+(?:[.,]\d*)?(?:e[+-]?\d+)?)([mnuµ]?s)?$/i.exec(text.replace(/[\s\u2009\u202f]/g, ""));
  if (!found) return null;
  return Number(found[1].replace(",", ".")) * (UNITS.get((found[2] ?? "").toLowerCase()) ?? 1e9);
}

/**
 * A duration in its natural unit: `5 µs`.
 * @param {number} t nanoseconds
 */
function duration(t) {
  const units = /** @type {const} */ ([
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ]);
  const [size, unit] = units.find(([size]) => Math.abs(t) >= size) ?? [1, "ns"];
  return `${short(t / size)}\u202f${unit}`;
}

/**
 * A number with three significant digits.
 * @param {number} value
 */
function short(value) {
  const size = Math.abs(value);
  if (size >= 100) return grouped(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

/**
 * A rate in Mbit/s for a label: with one decimal below 10.
 * @param {number} bits per second
 */
function mega(bits) {
  const value = bits / 1e6;
  return value < 0.05 ? "0" : value < 10 ? value.toFixed(1) : String(Math.round(value));
}

/**
 * A whole number, grouped by thousands with thin spaces.
 * @param {number} value
 */
function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/**
 * A rate: `121 Mbit/s`.
 * @param {number} bits per second
 */
function bitRate(bits) {
  if (bits >= 1e6) return `${short(bits / 1e6)}\u202fMbit/s`;
  if (bits >= 1e3) return `${short(bits / 1e3)}\u202fkbit/s`;
  return `${short(bits)}\u202fbit/s`;
}

/**
 * A number and its noun, which gets an s if the number is not 1.
 * @param {number} count
 * @param {string} noun
 */
function counted(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * The first index whose time is greater than t, in a list in order of time.
 * @param {ArrayLike<number>} times
 * @param {number} t
 */
function after(times, t) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * A value between two bounds.
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
function within(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** Colours of the style sheet in the present theme. @type {Map<string, string>} */
const COLOURS_NOW = new Map();

/**
 * A colour of the style sheet in the present theme, for what is drawn on a canvas.
 * @param {string} name such as `--ink`
 */
function styled(name) {
  let colour = COLOURS_NOW.get(name);
  if (colour === undefined) {
    const probe = html("span", { style: `color: var(${name})`, hidden: true });
    document.body.append(probe);
    colour = getComputedStyle(probe).color;
    probe.remove();
    COLOURS_NOW.set(name, colour);
  }
  return colour;
}

/** True if the user asked the system for less motion. */
function motionIsReduced() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Families of protocols, each with a colour of the style sheet. */
const FAMILIES = new Map([
  ["sscop", "sscop"],
  ["q2931", "q2931"],
  ["ilmi", "ilmi"],
  ["lane", "lane"],
  ["nhrp", "mpoa"],
  ["mpoa", "mpoa"],
]);

/** Names of families with several protocols. */
const FAMILY_NAMES = new Map([
  ["mpoa", "mpoa, nhrp"],
  ["data", "others"],
]);

/**
 * The family of a protocol.
 * @param {string} protocol
 */
function familyOf(protocol) {
  return FAMILIES.get(protocol) ?? "data";
}

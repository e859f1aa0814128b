// The drawing at the cursor as an SVG file of its own, and the page on paper.

/** Properties that a drawing needs without a style sheet, and those that its texts need. */
const KEPT = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "stroke-opacity",
  "opacity",
];
const KEPT_OF_TEXT = [
  "fill",
  "stroke",
  "stroke-width",
  "paint-order",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
];

/**
 * The drawing with all styles in it, so that any program that reads SVG shows the same.
 * @param {Drawing} drawing
 * @param {string} title
 * @returns {SVGSVGElement}
 */
function standalone(drawing, title) {
  const { x, y, width, height: high } = drawing.view.whole;
  const legend = legendBelow({ x, y: y + high, width });
  const height = high + legend.height;
  const place = { x, y, width, height };
  return svg(
    "svg",
    {
      xmlns: SVG,
      width: Math.round(width),
      height: Math.round(height),
      viewBox: `${x.toFixed(1)} ${y.toFixed(1)} ${width.toFixed(1)} ${height.toFixed(1)}`,
      role: "img",
    },
    svg("title", {}, title),
    svg("rect", { ...place, fill: styled("--ground") }),
    ...styledCopies(drawing.lines),
    ...drawing.painter.elements(),
    ...styledCopies(drawing.root),
    ...legend.elements,
  );
}

/**
 * The legend of the page in rows, for the foot of a drawing.
 * @param {{x: number, y: number, width: number}} place its upper left corner, and the room for it
 * @returns {{height: number, elements: SVGElement[]}}
 */
function legendBelow(place) {
  const [line, sign, character] = [18, 28, 6.6];
  let [x, y] = [place.x + 8, place.y + line];
  /** @type {SVGElement[]} */
  const elements = [];
  const look = { fill: styled("--ink"), "font-family": "DejaVu Sans, Verdana, Arial, sans-serif", "font-size": "12px" };
  for (const entry of part("legend").children) {
    const [picture, words] = [entry.querySelector("svg"), entry.textContent ?? ""];
    const width = sign + words.length * character + 12;
    if (x > place.x + 8 && x + width > place.x + place.width) [x, y] = [place.x + 8, y + line];
    if (picture) {
      const box = picture.viewBox.baseVal;
      const group = svg("g", { transform: `translate(${x - (box?.x ?? 0)} ${y - 11 - (box?.y ?? 0)})` });
      group.append(...styledCopies(picture));
      elements.push(group);
    }
    elements.push(svg("text", { x: x + sign, y, ...look }, words));
    x += width;
  }
  return { height: y - place.y + 10, elements };
}

/**
 * Copies of all that is seen in a part of the drawing, with their styles as attributes.
 * @param {SVGSVGElement} root
 */
function styledCopies(root) {
  const copy = /** @type {SVGSVGElement} */ (root.cloneNode(true));
  // Both trees have the same elements in the same order.
  const [originals, copies] = [root.querySelectorAll("*"), copy.querySelectorAll("*")];
  /** @type {Element[]} */
  const unseen = [];
  originals.forEach((original, index) => {
    const style = getComputedStyle(original);
    const target = copies[index];
    if (style.display === "none" || style.visibility === "hidden") unseen.push(target);
    // The page may hold this copy and the original: names of patterns differ.
    if (target.id) target.id = `copy-${target.id}`;
    for (const attribute of [...target.attributes]) {
      if (/^(class|style|role|tabindex|aria-.*|data-.*)$/.test(attribute.name)) target.removeAttribute(attribute.name);
    }
    const kept = target instanceof SVGTextElement ? KEPT_OF_TEXT : target instanceof SVGGeometryElement ? KEPT : [];
    if (target instanceof SVGElement) for (const name of kept) keep(target, name, style.getPropertyValue(name));
  });
  for (const element of unseen) element.remove();
  return [...copy.childNodes];
}

/**
 * Keeps a property, unless it is the default.
 * @param {SVGElement} target
 * @param {string} name
 * @param {string} value
 */
function keep(target, name, value) {
  const usual = {
    "fill-opacity": "1",
    "stroke-opacity": "1",
    opacity: "1",
    "stroke-dasharray": "none",
    stroke: "none",
    "paint-order": "normal",
    "stroke-linecap": "butt",
    "stroke-linejoin": "miter",
  };
  if (value && value !== /** @type {Record<string, string>} */ (usual)[name])
    target.setAttribute(name, value.replace(/url\("#([^"]*)"\)/, "url(#copy-$1)"));
}

/**
 * Gives the user a file.
 * @param {string} name
 * @param {string} text
 */
function offer(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  html("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Puts what is only printed into the page: the drawing in light colours, the story, and all tables at the cursor.
 * @param {Page} page
 */
function listenToPrint(page) {
  const root = document.documentElement;
  /** The theme to return to; null while nothing is printed. @type {string | null} */
  let theme = null;
  addEventListener("beforeprint", () => {
    theme ??= root.dataset.theme ?? "";
    root.dataset.theme = "light";
    COLOURS_NOW.clear();
    const at = `${exactSeconds(page.clock.t)} s`;
    const lines = page.lines.map((line) =>
      html("li", {}, html("time", {}, seconds(line.t, 6)), " ", html("b", {}, line.node), ` ${line.text}`),
    );
    part("print").replaceChildren(
      html("h2", {}, `Network at ${at}`),
      standalone(page.drawing, `Network at ${at}`),
      html("h2", {}, `State at ${at}`),
      ...page.tables.all(),
      html("h2", {}, "Story"),
      html("ol", { class: "story" }, ...lines),
    );
  });
  addEventListener("afterprint", () => {
    if (theme === null) return;
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    theme = null;
    part("print").replaceChildren();
    page.repaint();
  });
}

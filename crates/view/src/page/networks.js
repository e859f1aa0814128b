// Signs of ELANs and subnets: a colour and a pattern for each, the same in the drawing, the legend and the tables.

/**
 * What the program's drawings have, too: the number of colours in the style sheet (`--net-0` and on); patterns by name, as
 * paths in a square of 6 pixels; kinds of machines with a word for people and a glyph, a path of 12 by 12 pixels.
 * @type {{colours: number, patterns: [string, string][], kinds: [string, string, string][]}}
 */
const SIGNS = JSON.parse(part("signs").textContent ?? "");

/** The colours and patterns of all networks of a run. */
class Signs {
  /** @param {NetworkLine[]} networks */
  constructor(networks) {
    this.networks = networks;
    this.numbers = new Map(networks.map((network, number) => [network.name, number]));
  }

  /**
   * The class of elements in a network's colour, or an empty text for an unknown network.
   * @param {string} network
   */
  classOf(network) {
    const number = this.numbers.get(network);
    return number === undefined ? "" : `net-${number % SIGNS.colours}`;
  }

  /**
   * The name of the colour of lines that belong to a network.
   * @param {string} network
   */
  lineOf(network) {
    return `--line-${(this.numbers.get(network) ?? 0) % SIGNS.colours}`;
  }

  /**
   * The name of a network's pattern.
   * @param {string} network
   */
  pattern(network) {
    return SIGNS.patterns[(this.numbers.get(network) ?? 0) % SIGNS.patterns.length][0];
  }

  /** The definitions of the patterns; each document needs them once. */
  definitions() {
    const patterns = SIGNS.patterns.map(([name, path]) =>
      svg(
        "pattern",
        { id: `pattern-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        svg("path", { d: path, class: "texture" }),
      ),
    );
    return svg("defs", {}, ...patterns);
  }

  /**
   * A square with a network's colour and pattern, at the upper left corner x, y.
   * @param {string} network
   * @param {number} x
   * @param {number} y
   * @param {number} width
   * @param {number} height
   */
  chip(network, x, y, width, height) {
    const place = { x, y, width, height };
    const colour = svg("rect", { ...place, class: `chip ${this.classOf(network)}` });
    const texture = svg("rect", { ...place, class: "weave", fill: `url(#pattern-${this.pattern(network)})` });
    return svg("g", { class: "sign" }, colour, texture);
  }

  /** The networks that both machines have addresses in. If it is exactly one, a call between them belongs to it.
   * @param {MachineLine | undefined} a
   * @param {MachineLine | undefined} b
   */
  common(a, b) {
    const theirs = new Set(b?.addresses.map(([, network]) => network));
    const both = new Set(a?.addresses.map(([, network]) => network).filter((network) => theirs.has(network)));
    return both.size === 1 ? [...both][0] : null;
  }
}

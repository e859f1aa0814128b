// A stream of events of a large network that exists only for measurements: 500 machines, 2 000 connections, and 50 changes
// of connections ten times a second. The same numbers give the same text.

/** @typedef {{switches?: number, hosts?: number, calls?: number, changes?: number, seconds?: number}} Size */

/**
 * A sequence of numbers from 0 to 1, the same each time. Source: mulberry32 (public domain).
 * @param {number} seed
 */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * The lines of the stream.
 * @param {Size} size
 * @returns {object[]}
 */
export function synthetic({ switches = 20, hosts = 480, calls = 2000, changes = 50, seconds = 10 } = {}) {
  const draw = random(1);
  const any = (/** @type {number} */ count) => Math.floor(draw() * count);
  const until = seconds * 1e9;
  const each = hosts / switches;
  const lines = [
    {
      is: "head",
      schema: "aerostat.events.v1",
      lab: "synthetic",
      description: `${switches + hosts} machines, ${calls} connections`,
      seed: 1,
      time: "virtual",
      version: "0",
      sample: 1e8,
      until,
    },
  ];
  const boxes = [];
  const home = (/** @type {number} */ host) => Math.floor(host / each);
  for (let index = 0; index < switches; index += 1) {
    lines.push({ is: "node", name: `s${index}`, kind: "switch", addresses: [], atm: null, behind: null, shown: true });
    boxes.push([`s${index}`, 180 + (index % 5) * 420, 150 + Math.floor(index / 5) * 330, 66, 42]);
  }
  for (let host = 0; host < hosts; host += 1) {
    const network = `n${home(host) % 8}`;
    lines.push({
      is: "node",
      name: `h${host}`,
      kind: "host",
      addresses: [[`10.${home(host)}.0.${host % each}`, network]],
      atm: null,
      behind: null,
      shown: true,
    });
    const [, x, y] = boxes[home(host)];
    const place = host % each;
    const side = place < each / 2 ? -1 : 1;
    const row = place % (each / 2);
    boxes.push([`h${host}`, x + side * (row % 2 ? 70 : 145), y - 130 + Math.floor(row / 2) * 52, 64, 40]);
  }
  /** @type {Map<string, string>} */
  const between = new Map();
  const link = (/** @type {string} */ a, /** @type {string} */ b) => {
    const name = `${a}-${b}`;
    lines.push({ is: "link", name, ends: [a, b], ports: [0, 1], what: "oc3, 5us", rate: 353207.5, delay: 5000 });
    between.set(`${a} ${b}`, name).set(`${b} ${a}`, name);
    return name;
  };
  const links = [];
  for (let index = 0; index < switches; index += 1) {
    if (index % 5 < 4) links.push(link(`s${index}`, `s${index + 1}`));
    if (index + 5 < switches) links.push(link(`s${index}`, `s${index + 5}`));
  }
  for (let host = 0; host < hosts; host += 1) links.push(link(`h${host}`, `s${home(host)}`));
  for (let index = 0; index < 8; index += 1)
    lines.push({ is: "network", name: `n${index}`, clip: false, subnet: `10.${index}.0.0/16`, what: "frames of 1516" });
  lines.push({ is: "layout", boxes, width: 2040, height: 1300 });
  // The way along the grid of switches: first along the row, then along the column.
  const way = (/** @type {number} */ a, /** @type {number} */ b) => {
    const nodes = [`h${a}`];
    let [at, end] = [home(a), home(b)];
    nodes.push(`s${at}`);
    while (at % 5 !== end % 5) nodes.push(`s${(at += at % 5 < end % 5 ? 1 : -1)}`);
    while (at !== end) nodes.push(`s${(at += at < end ? 5 : -5)}`);
    nodes.push(`h${b}`);
    return nodes.slice(1).map((node, index) => between.get(`${nodes[index]} ${node}`));
  };
  let id = 0;
  const call = (/** @type {number} */ t) => {
    const [a, b] = [any(hosts), any(hosts - 1)];
    const to = b >= a ? b + 1 : b;
    const via = way(a, to);
    id += 1;
    lines.push({
      t,
      is: "call",
      id,
      from: `h${a}`,
      to: `h${to}`,
      what: "lane-data",
      state: "connected",
      vc: ["0.40", "0.41"],
      via,
      labels: via.map(() => "0.40"),
    });
    return id;
  };
  for (let host = 0; host < hosts; host += 1)
    lines.push({
      t: 0,
      is: "member",
      id: host + 1,
      node: `h${host}`,
      network: `n${home(host) % 8}`,
      state: "joined",
      lecid: host + 1,
    });
  const present = Array.from({ length: calls }, () => call(0));
  const counts = { links: links.map(() => 0), calls: new Map() };
  for (let tick = 0; tick < seconds * 10; tick += 1) {
    const begin = tick * 1e8;
    for (let change = 0; change < changes; change += 2) {
      const t = begin + Math.round(((change + 1) / (changes + 1)) * 1e8);
      const at = any(present.length);
      lines.push({ t, is: "call", id: present[at], gone: true });
      present[at] = call(t);
      const host = any(hosts);
      lines.push({
        t,
        is: "message",
        link: `h${host}-s${home(host)}`,
        from: `h${host}`,
        to: `s${home(host)}`,
        vc: "0.5",
        protocol: "q2931",
        text: `SETUP cr ${change}`,
      });
    }
    const sample = { t: begin + 1e8, is: "sample", links: {}, flows: {}, queues: {}, calls: {} };
    links.forEach((name, index) => {
      counts.links[index] += any(30000);
      sample.links[name] = [counts.links[index], Math.floor(counts.links[index] / 2), 0];
    });
    for (const one of present) {
      counts.calls.set(one, (counts.calls.get(one) ?? 0) + any(3000));
      sample.calls[one] = [counts.calls.get(one), 0];
    }
    lines.push(sample);
  }
  lines.push({ t: until, is: "end", thinned: { message: 0, story: 0, sample: 0 }, more: { nodes: 0 } });
  return lines;
}

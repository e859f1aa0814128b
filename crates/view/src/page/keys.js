// The keyboard: each key is declared once, and the help is made of this list.

/** @typedef {{keys: string[], shown: string, does: string, act: (page: Page) => void}} Key */

/** @type {Key[]} */
const KEYS = [
  { keys: [" ", "k"], shown: "Space", does: "play or pause", act: (page) => page.clock.toggle() },
  { keys: ["ArrowRight", "."], shown: "→", does: "next event", act: (page) => page.clock.step(1) },
  { keys: ["ArrowLeft", ","], shown: "←", does: "event before", act: (page) => page.clock.step(-1) },
  {
    keys: ["Shift+ArrowRight", "n"],
    shown: "Shift →  or  n",
    does: "next line of the story",
    act: (page) => page.clock.step(1, page.lineTimes),
  },
  {
    keys: ["Shift+ArrowLeft", "p"],
    shown: "Shift ←  or  p",
    does: "line of the story before",
    act: (page) => page.clock.step(-1, page.lineTimes),
  },
  { keys: ["s"], shown: "s", does: "all details of the story, or its milestones", act: () => field("details").click() },
  { keys: ["]"], shown: "]", does: "faster", act: (page) => page.clock.shift(1) },
  { keys: ["["], shown: "[", does: "slower", act: (page) => page.clock.shift(-1) },
  { keys: ["i"], shown: "i", does: "skip idle times, or do not", act: () => field("skip").click() },
  { keys: ["Home"], shown: "Home", does: "begin of the run", act: (page) => page.clock.toBegin() },
  {
    keys: ["End"],
    shown: "End",
    does: "end of the run; the present of a running lab",
    act: (page) => page.clock.toEnd(),
  },
  { keys: ["g"], shown: "g", does: "go to an instant: type its seconds", act: () => field("instant").select() },
  {
    keys: ["+", "="],
    shown: "+",
    does: "enlarge the time line around the cursor",
    act: (page) => page.timeline.zoom(2),
  },
  { keys: ["-"], shown: "−", does: "show a longer part of it", act: (page) => page.timeline.zoom(0.5) },
  { keys: ["0"], shown: "0", does: "show the whole run", act: (page) => page.timeline.whole() },
  {
    keys: ["m"],
    shown: "m",
    does: "to the machines; arrows lead on, Enter chooses",
    act: (page) => page.focusMachine(),
  },
  { keys: ["l"], shown: "l", does: "to the ladder; arrows choose a message", act: () => part("ladder").focus() },
  { keys: ["/"], shown: "/", does: "to the filter of the ladder", act: () => field("f-text").focus() },
  { keys: ["Escape"], shown: "Esc", does: "choose nothing", act: (page) => page.select(null) },
  { keys: ["d"], shown: "d", does: "dark or light", act: (page) => page.turnTheme() },
  { keys: ["e"], shown: "e", does: "save the drawing as SVG", act: (page) => page.save() },
  { keys: ["?"], shown: "?", does: "these keys", act: (page) => page.help() },
];

/**
 * Listens to the keyboard for the whole page.
 * @param {Page} page
 */
function listenToKeys(page) {
  document.addEventListener("keydown", (event) => {
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    if (/** @type {HTMLDialogElement} */ (part("help")).open) return;
    const writes = target.matches("input:not([type=checkbox]), select, textarea");
    if (writes && event.key !== "Escape") return;
    if (writes) /** @type {HTMLElement} */ (target).blur();
    if (!field("single").checked && event.key.length === 1 && event.key !== " ") return;
    // Keys that a button or a group of machines needs for itself.
    if (target.matches("button, summary, input[type=checkbox]") && event.key === " ") return;
    const name = `${event.shiftKey && event.key.length > 1 ? "Shift+" : ""}${event.key}`;
    if (target.closest(".machine") && page.machineKey(target, event)) {
      event.preventDefault();
      return;
    }
    const key = KEYS.find((one) => one.keys.includes(name));
    if (!key) return;
    event.preventDefault();
    key.act(page);
  });
  part("keys").append(
    ...KEYS.map((key) => html("tr", {}, html("td", {}, html("kbd", {}, key.shown)), html("td", {}, key.does))),
  );
}

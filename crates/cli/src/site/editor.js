"use strict";
// The text of the lab: line numbers, marks below what is wrong, and the findings as a list.

/** Findings that are shown; the program shows as many. */
const MOST_SHOWN = 100;

/**
 * Numbers of lines, those with findings in the colour of the worst.
 * @param {number} count
 * @param {Map<number, string>} worst
 */
function numbersOf(count, worst) {
  /** @type {(string | Node)[]} */
  const all = [];
  let plain = "";
  for (let line = 1; line <= count; line += 1) {
    const severity = worst.get(line);
    if (!severity) {
      plain += `${line}\n`;
      continue;
    }
    const number = document.createElement("span");
    number.textContent = `${line}\n`;
    number.className = severity;
    all.push(plain, number);
    plain = "";
  }
  all.push(plain);
  return all;
}

/** The editor: a field of text above a copy of it that has the marks. */
class Editor {
  /** @param {() => void} changed */
  constructor(changed) {
    this.area = /** @type {HTMLTextAreaElement} */ (part("text"));
    /** The text of the page. */
    this.original = this.area.value;
    /** Findings about the present text. @type {Finding[]} */
    this.findings = [];
    this.area.addEventListener("input", () => {
      // Places of earlier findings mean nothing in another text.
      this.findings = [];
      this.show();
      changed();
    });
    this.area.addEventListener("scroll", () => this.scroll());
    document.addEventListener("selectionchange", () => this.follow());
    part("original").addEventListener("click", () => {
      this.text = this.original;
      changed();
      this.area.focus();
    });
    this.show();
  }

  get text() {
    return this.area.value;
  }
  set text(text) {
    this.area.value = text;
    this.findings = [];
    this.show();
  }
  /** True if the text is not that of the page. */
  get isChanged() {
    return this.text !== this.original;
  }

  /**
   * Shows findings.
   * @param {Finding[]} findings
   */
  tell(findings) {
    this.findings = findings;
    this.show();
  }

  /** Marks and numbers of the present text. */
  show() {
    const { text, findings } = this;
    part("original").hidden = !this.isChanged;
    const marks = part("marks");
    marks.replaceChildren();
    let at = 0;
    for (const [number, { at: place, severity }] of findings.slice(0, MOST_SHOWN).entries()) {
      if (!place || place[0] < at) continue;
      // What is missing has no letters: the mark is one letter wide.
      const [start, end] = [Math.min(place[0], text.length), Math.max(place[1], place[0] + 1)];
      const marked = text.slice(start, end).split("\n")[0] || " ";
      const mark = document.createElement("mark");
      mark.className = severity;
      mark.dataset.number = String(number);
      mark.textContent = marked;
      marks.append(text.slice(at, start), mark);
      at = Math.min(start + marked.length, text.length);
      if (text[start] === "\n") at = start;
    }
    marks.append(text.slice(at), "\n");
    const worst = new Map(findings.filter((one) => one.at).map((one) => [one.line, one.severity]));
    for (const one of findings) if (one.at && one.severity === "error") worst.set(one.line, "error");
    part("numbers").replaceChildren(...numbersOf(text.split("\n").length, worst));
    const shown = findings.slice(0, MOST_SHOWN).map((one) => this.entry(one));
    if (findings.length > MOST_SHOWN) {
      const more = document.createElement("li");
      more.textContent = `and ${findings.length - MOST_SHOWN} more`;
      shown.push(more);
    }
    part("findings").replaceChildren(...shown);
    this.scroll();
    this.follow();
  }

  /**
   * An entry of the list.
   * @param {Finding} one
   */
  entry(one) {
    const [entry, button, what] = [
      document.createElement("li"),
      document.createElement("button"),
      document.createElement("b"),
    ];
    entry.className = one.severity;
    button.type = "button";
    what.textContent = one.at ? `${one.line}:${one.column} ${one.severity}` : `${one.source} ${one.severity}`;
    button.append(what, ` ${one.message}`);
    for (const more of [one.see && `see ${one.see}`, one.hint]) {
      if (!more) continue;
      const small = document.createElement("small");
      small.textContent = more;
      button.append(small);
    }
    button.addEventListener("click", () => this.goTo(one));
    entry.append(button);
    return entry;
  }

  /**
   * Puts the cursor at a finding.
   * @param {Finding} one
   */
  goTo(one) {
    if (!one.at) return;
    const [start, end] = one.at;
    this.area.focus();
    this.area.setSelectionRange(start, Math.max(start, Math.min(end, this.text.length)));
    const height = this.area.scrollHeight / Math.max(this.text.split("\n").length, 1);
    this.area.scrollTop = Math.max(0, (one.line - 4) * height);
    this.follow();
  }

  /** Marks and numbers stay beside the text. */
  scroll() {
    part("marks").scrollTop = part("numbers").scrollTop = this.area.scrollTop;
    part("marks").scrollLeft = this.area.scrollLeft;
  }

  /** Highlights the findings of the line in which the cursor stands. */
  follow() {
    const line = this.text.slice(0, this.area.selectionStart).split("\n").length;
    const here = this.findings.map((one) => one.at !== null && one.line === line);
    for (const [number, entry] of [...part("findings").children].entries()) {
      entry.classList.toggle("here", here[number] === true && number < MOST_SHOWN);
      if (here[number] && document.activeElement === this.area) entry.scrollIntoView({ block: "nearest" });
    }
    for (const mark of part("marks").querySelectorAll("mark"))
      mark.classList.toggle("here", here[Number(mark.dataset.number)]);
  }
}

// What a user can do to a running lab: break and mend, change links, capture; and commands to copy.

/** Kinds of machines whose programs run in a namespace, if the lab has such machines. */
const ENTERED = new Set(["host", "router", "station"]);

/**
 * A word for a shell: in quotes unless it is plain.
 * @param {string} word
 */
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The controls for what is chosen. */
class Acts {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.box = part("acts");
    this.told = "";
    this.note = html("p", { class: "note", role: "status" });
  }

  /** The name of the lab, for commands. */
  get lab() {
    return quoted(this.model.recording.head.lab);
  }

  /**
   * Shows the controls for what is chosen. They stay as they are while its state does: somebody may be writing.
   * @param {Chosen | null} chosen
   */
  show(chosen) {
    const about = chosen && (chosen.kind === "link" || chosen.kind === "node") ? chosen : null;
    const down = about ? this.model.isDown(/** @type {"link" | "node"} */ (about.kind), about.id) : false;
    const told = about ? `${about.kind}/${about.id}/${down}` : "";
    if (told === this.told) return;
    const same = about && this.told.startsWith(`${about.kind}/${about.id}/`);
    this.told = told;
    if (!same) setText(this.note, "");
    this.box.hidden = about === null;
    if (!about) return;
    const parts = about.kind === "link" ? this.link(about.id, down) : this.machine(about.id, down);
    this.box.replaceChildren(html("h4", {}, "Do"), ...parts, this.note);
  }

  /**
   * @param {string} name
   * @param {boolean} down
   */
  link(name, down) {
    const action = down ? "link_up" : "link_down";
    const values = html("input", {
      type: "text",
      "aria-label": `New values of ${name}`,
      placeholder: "loss=1% delay=5ms",
    });
    const set = () => {
      const words = values.value.split(/\s+/).filter(Boolean);
      if (words.length) this.ask({ ask: "link", act: "set", link: name, values: words }, "changed");
      else setText(this.note, "Write values, such as loss=1% delay=5ms rate=10Mbps");
    };
    values.addEventListener("keydown", (event) => {
      if (event.key === "Enter") set();
    });
    const capture = html("a", { href: `capture?link=${encodeURIComponent(name)}`, download: "" }, "Capture to a file");
    return [
      html(
        "p",
        { class: "does" },
        this.button(down ? "Mend" : "Break", () =>
          this.ask({ ask: "fault", action, target: name }, down ? "mended" : "broken"),
        ),
        capture,
      ),
      html(
        "p",
        { class: "does" },
        values,
        this.button("Set", set),
        this.button("Reset", () => this.ask({ ask: "link", act: "reset", link: name }, "as in the lab file")),
      ),
      this.copy("Show its packets", `aerostat capture --lab ${this.lab} ${quoted(name)} -w - | wireshark -k -i -`),
    ];
  }

  /**
   * @param {string} name
   * @param {boolean} down
   */
  machine(name, down) {
    const machine = this.model.recording.machines.get(name);
    const parts = [];
    if (machine?.kind !== "outside" && machine?.kind !== "station") {
      const act = () =>
        this.ask({ ask: "fault", action: down ? "restart" : "crash", target: name }, down ? "started" : "stopped");
      parts.push(html("p", { class: "does" }, this.button(down ? "Mend" : "Break", act)));
    }
    const known = /** @type {any} */ (window).aerostat;
    const inside = new Set(known?.lab?.inside ?? []);
    if (inside.has(name) && ENTERED.has(machine?.kind ?? ""))
      parts.push(this.copy("Enter it", `aerostat shell --lab ${this.lab} ${quoted(name)}`));
    parts.push(this.copy("Its state", `aerostat inspect --lab ${this.lab} ${quoted(name)}`));
    return parts;
  }

  /**
   * @param {string} text
   * @param {() => void} act
   */
  button(text, act) {
    const button = html("button", { type: "button" }, text);
    button.addEventListener("click", act);
    return button;
  }

  /**
   * A command to copy.
   * @param {string} what
   * @param {string} command
   */
  copy(what, command) {
    const code = html("code", {}, command);
    const button = this.button("Copy", async () => {
      try {
        await navigator.clipboard.writeText(command);
        setText(this.note, "Copied.");
      } catch {
        // Without the right to write, the user copies what is selected.
        getSelection()?.selectAllChildren(code);
        setText(this.note, "Selected: copy it.");
      }
    });
    return html("p", { class: "does" }, html("span", { class: "note" }, what), code, button);
  }

  /**
   * Asks the lab.
   * @param {object} wish a request of the control socket
   * @param {string} done
   */
  async ask(wish, done) {
    setText(this.note, "…");
    try {
      const answer = await fetch("do", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(wish),
      });
      const said = (answer.headers.get("Content-Type") ?? "").startsWith("application/json")
        ? (await answer.json()).error
        : { message: await answer.text() };
      setText(this.note, said ? [said.message, said.hint].filter(Boolean).join("; ") : done);
    } catch {
      setText(this.note, "The lab was not reached.");
    }
  }
}

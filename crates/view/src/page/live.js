// The record of a running lab: comes from the server of the page, and grows.

/** Milliseconds without a word of the lab, after which the page says so. */
const SILENCE = 1500;
/** Milliseconds between attempts to reach the server again, and between looks at the watch. */
const AGAIN = 1000;
/** Milliseconds between two looks of the page at the record. */
const LOOK = 100;

/** The way from the lab to the page. */
class Live {
  /** @param {{aerostat?: object}} names by which tests and other programs find the page */
  constructor(names) {
    this.names = names;
    this.recording = new Recording();
    this.recording.live = true;
    /** @type {Page | null} */
    this.page = null;
    /** The parts of the page that are known by name. @type {Record<string, any>} */
    this.known = { ends: () => seconds(this.recording.until), live: this };
    /** Number of changes that the page has not seen. */
    this.unseen = 0;
    this.told = false;
    this.sampled = false;
    /** Instant of the watch of the last word of the lab, milliseconds. */
    this.heard = performance.now();
    /** Why there is no word of the lab; empty while it speaks. */
    this.lost = "";
    /** True if the page is about to load again. */
    this.leaves = false;
    /** @type {EventSource | null} */
    this.source = null;
    this.listen();
    setInterval(() => this.watch(), AGAIN / 2);
    setInterval(() => this.show(), LOOK);
    document.addEventListener("visibilitychange", () => {
      // What came meanwhile is shown at once.
      this.told = this.sampled = true;
      this.unseen = Math.max(this.unseen, 1);
    });
  }

  /** Connects to the server. */
  listen() {
    this.source?.close();
    const source = new EventSource("events");
    this.source = source;
    source.addEventListener("message", (event) => this.take(event.data));
    source.addEventListener("lost", (event) => this.lose(JSON.parse(/** @type {MessageEvent} */ (event).data).text));
    source.addEventListener("error", () => {
      this.lose("there is no way to the lab: ‘aerostat view’ has ended, or follows no further page");
      // A browser tries again by itself, but not after a refusal.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.listen(), AGAIN);
    });
  }

  /**
   * Takes lines of the stream.
   * @param {string} text
   */
  take(text) {
    if (this.leaves) return;
    this.heard = performance.now();
    for (const line of text.split("\n")) {
      /** @type {Line} */
      const value = JSON.parse(line);
      if (value.is === "head" && this.page) {
        // A lab that is up again, or another connection: what the page knows is of no use.
        this.leaves = true;
        location.reload();
        return;
      }
      if (value.is === "live") this.known.lab = value;
      const before = this.recording.changes.length;
      this.recording.take(value);
      this.unseen += this.recording.changes.length - before;
      this.told ||= value.is === "message" || value.is === "story";
      this.sampled ||= value.is === "sample";
      if (value.is === "now" && !this.page) this.begin();
    }
    this.find();
  }

  /** Builds the page when the lab has told all that it is. */
  begin() {
    STAMP.decimals = 6;
    this.recording.begin = this.recording.until;
    // What happened before is not left out, but over.
    this.recording.left = { message: 0, story: 0 };
    const started = start(this.recording);
    this.page = started.page;
    Object.assign(this.known, started, { live: this });
    this.unseen = 0;
    this.page.clock.follow();
  }

  /** Shows what is new. */
  show() {
    const { page, recording } = this;
    if (!page || (this.unseen === 0 && !this.told && !this.sampled && page.clock.t >= recording.until)) return;
    const changes = this.unseen ? recording.changes.slice(-this.unseen) : [];
    page.grow(changes, this.told, this.sampled);
    this.unseen = 0;
    if (!document.hidden) this.told = this.sampled = false;
  }

  /** Looks whether the lab still speaks. */
  watch() {
    const silent = performance.now() - this.heard;
    if (!this.lost && silent > SILENCE) this.lose("the lab does not say anything: it may be stopped, or stuck");
  }

  /**
   * Says that there is no word of the lab.
   * @param {string} why
   */
  lose(why) {
    this.lost = why;
    const at = new Date().toLocaleTimeString();
    setText(part("notice"), `Since ${at}: ${why}. The page shows the last state, and goes on by itself.`);
    part("notice").hidden = false;
    document.documentElement.classList.add("lost");
  }

  /** The lab speaks. */
  find() {
    if (!this.lost) return;
    this.lost = "";
    part("notice").hidden = true;
    document.documentElement.classList.remove("lost");
  }
}

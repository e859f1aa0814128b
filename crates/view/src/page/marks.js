// Messages on their links: marks that travel while the record plays, and arrows with words where it stands.

/** Most marks in one frame; the latest are drawn. */
const MOST_MARKS = 200;
/** Most arrows at one instant, and most of them with words. */
const MOST_CALLOUTS = 60;
const MOST_WORDS = 3;
/** Seconds of the watch that a mark takes at least, so that an eye can follow it. */
const SEEN = 0.45;
/** Longest text of an arrow, characters. */
const WORDS = 46;

/** Marks and arrows of messages. */
class Marks {
  /**
   * @param {HTMLCanvasElement} canvas above the drawing
   * @param {Drawing} drawing
   */
  constructor(canvas, drawing) {
    this.canvas = canvas;
    this.drawing = drawing;
    this.recording = drawing.model.recording;
    this.times = this.recording.messageTimes;
    this.context = canvas.getContext("2d");
    this.clean = true;
    this.told = "";
    /** Boxes of the words at the present instant. @type {Box[]} */
    this.said = [];
    /** The longest delay of a link, nanoseconds. */
    this.longest = Math.max(0, ...[...this.recording.links.values()].map((link) => link.delay));
  }

  /**
   * The way of a message in its direction, or null if the drawing has no such link.
   * @param {Message} message
   */
  way(message) {
    const way = this.drawing.geometry.ways.get(message.link);
    const link = this.recording.links.get(message.link);
    if (!way || !link) return null;
    return link.ends[0] === message.from ? way : [...way].reverse();
  }

  /**
   * Draws the messages that travel at t while the record plays at this speed.
   * @param {number} t nanoseconds
   * @param {number} speed seconds of the record per second of the watch
   */
  travel(t, speed) {
    this.say([]);
    const context = this.context;
    if (!context) return;
    const { scale, left, top, width, height } = this.drawing.view.scale();
    const ratio = devicePixelRatio || 1;
    const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
    const last = after(this.times, t);
    const least = speed * SEEN * 1e9;
    const first = Math.max(after(this.times, t - Math.max(least, this.longest)), last - MOST_MARKS);
    if (first >= last && this.clean) return;
    if (this.canvas.width !== columns || this.canvas.height !== rows)
      [this.canvas.width, this.canvas.height] = [columns, rows];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, columns, rows);
    context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * left, ratio * top);
    this.clean = true;
    for (let index = first; index < last; index += 1) {
      const message = this.recording.messages[index];
      const takes = Math.max(this.recording.links.get(message.link)?.delay ?? 0, least);
      const way = this.way(message);
      if (!way || t - message.t > takes) continue;
      this.dot(context, along(way, (t - message.t) / takes), message);
      this.clean = false;
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {{x: number, y: number, angle: number}} place
   * @param {Message} message
   */
  dot(context, { x, y, angle }, message) {
    context.save();
    context.translate(x, y);
    context.rotate(angle);
    context.beginPath();
    context.moveTo(7, 0);
    context.lineTo(-4, 4.5);
    context.lineTo(-4, -4.5);
    context.closePath();
    context.fillStyle = styled(`--p-${familyOf(message.protocol)}`);
    context.strokeStyle = styled("--ground");
    context.lineWidth = 1.2;
    context.fill();
    context.stroke();
    context.restore();
  }

  /**
   * Shows the messages of exactly this instant as arrows; few of them have words.
   * @param {number} t
   */
  stand(t) {
    if (!this.clean && this.context) {
      this.context.setTransform(1, 0, 0, 1, 0, 0);
      this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
      this.clean = true;
    }
    const end = after(this.times, t);
    let first = end;
    while (first > 0 && this.times[first - 1] === t && end - first < MOST_CALLOUTS) first -= 1;
    this.say(this.recording.messages.slice(first, end));
  }

  /** @param {Message[]} messages */
  say(messages) {
    const told = messages.length ? `${messages[0].t} ${messages.length}` : "";
    if (told === this.told) return;
    this.told = told;
    const words = messages.length <= MOST_WORDS;
    this.said = [];
    const arrows = messages.map((message) => this.arrow(message, words)).filter((arrow) => arrow !== null);
    this.drawing.layers.callouts.replaceChildren(...arrows);
  }

  /**
   * @param {Message} message
   * @param {boolean} words
   */
  arrow(message, words) {
    const way = this.way(message);
    if (!way) return null;
    const { x, y, angle } = along(way, 0.5);
    const family = familyOf(message.protocol);
    const turned = `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${((angle * 180) / Math.PI).toFixed(1)})`;
    const group = svg("g", { class: `callout p-${family}${message.dropped ? " dropped" : ""}` });
    group.append(
      svg("path", { class: "arrow", d: "M-16 0H6", transform: turned }),
      svg("path", { class: "head", d: "M16 0L4 6V-6Z", transform: turned }),
    );
    if (!words) return group;
    const text = `${message.text.length > WORDS ? `${message.text.slice(0, WORDS - 1)}…` : message.text} (${message.vc})`;
    const size = { width: text.length * 6.1 + 12, height: 18 };
    const box = this.drawing.labels.place(way, size, 14, this.said);
    this.said.push(box);
    const { whole } = this.drawing.view;
    const left = within(box.x - size.width / 2, whole.x, Math.max(whole.x, whole.x + whole.width - size.width));
    const middle = within(x, left + 8, left + size.width - 8);
    group.append(
      svg("path", {
        class: "leader",
        d: pathText([
          [x, y],
          [middle, box.y],
        ]),
      }),
    );
    group.append(
      svg("rect", { x: left, y: box.y - 9, ...size }),
      svg("text", { x: left + size.width / 2, y: box.y + 4 }, text),
    );
    return group;
  }
}

// Curves over time, with a cursor at the present; a click or drag on a plot jumps there.

const CURVES = ["#4c83d1", "#e08a3c", "#3fa37a", "#c9526b", "#8b6fd0", "#b59a2e", "#3a9fb0", "#8a8f99"];

function curveColour(i, count) {
  return count <= CURVES.length ? CURVES[i] : `hsl(${(i * 137.5) % 360} 55% 55%)`;
}

class Plot {
  constructor(data, motion, jump) {
    this.title = data.title;
    this.unit = data.unit;
    this.names = data.names;
    this.time = motion.time;
    this.jump = jump;
    const values = new Float32Array(bytesOf(data.values));
    const n = this.time.length;
    this.series = data.names.map((_, i) => values.subarray(i * n, (i + 1) * n));
    const largest = values.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-9);
    this.decimals = clamp(3 - Math.floor(Math.log10(largest)), 0, 9); // four figures of the largest
    this.chosen = -1; // all of them
    this.build();
  }

  build() {
    this.element = document.createElement("section");
    this.element.className = "plot";
    const head = document.createElement("header");
    const name = document.createElement("strong");
    name.textContent = this.title;
    const unitLabel = document.createElement("span");
    unitLabel.className = "unit";
    unitLabel.textContent = `[${this.unit}]`;
    head.append(name, unitLabel);
    this.reading = document.createElement("output");
    if (this.names.length > 4) {
      this.choice = document.createElement("select");
      this.choice.title = "Curve";
      for (const [value, text] of [[-1, "all"], ...this.names.map((text, i) => [i, text])]) {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = text;
        this.choice.append(option);
      }
      this.choice.addEventListener("change", () => {
        this.chosen = Number(this.choice.value);
        this.back = null;
        this.draw(this.present);
        this.choice.blur();
      });
      head.append(this.choice);
    }
    head.append(this.reading);
    this.canvas = document.createElement("canvas");
    this.element.append(head, this.canvas);
    const at = (event) => this.timeAt(event.offsetX);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.jump(at(event));
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.jump(at(event));
    });
  }

  get left() {
    return 52;
  }

  timeAt(x) {
    const share = (x - this.left) / Math.max(1, this.canvas.clientWidth - this.left - 8);
    const [a, b] = [this.time[0], this.time[this.time.length - 1]];
    return clamp(a + share * (b - a), a, b);
  }

  draw(t) {
    this.present = t;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width || !height) return;
    if (!this.back || this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.back = this.curves(width, height, ratio);
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.back, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [a, b] = [this.time[0], this.time[this.time.length - 1]];
    const x = this.left + ((t - a) / (b - a)) * (width - this.left - 8);
    pen.strokeStyle = this.colour("--ink");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x, 4);
    pen.lineTo(x, height - 16);
    pen.stroke();
    this.read(t);
  }

  read(t) {
    let i = 0;
    while (i + 1 < this.time.length && this.time[i + 1] <= t + 1e-9) i++;
    this.reading.replaceChildren();
    const shown = this.chosen >= 0 ? [this.chosen] : this.names.length <= 4 ? this.names.map((_, k) => k) : [];
    for (const k of shown) {
      const entry = document.createElement("span");
      const mark = document.createElement("i");
      mark.style.background = curveColour(k, this.names.length);
      entry.append(mark, `${this.chosen >= 0 ? "" : `${this.names[k]} `}${this.series[k][i].toFixed(this.decimals)}`);
      this.reading.append(entry);
    }
  }

  colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  curves(width, height, ratio) {
    const sheet = document.createElement("canvas");
    sheet.width = Math.round(width * ratio);
    sheet.height = Math.round(height * ratio);
    const pen = sheet.getContext("2d");
    pen.scale(ratio, ratio);
    const chosen = this.chosen >= 0 ? [this.chosen] : this.series.map((_, k) => k);
    let [low, high] = [Infinity, -Infinity];
    for (const k of chosen)
      for (const value of this.series[k]) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    if (low > 0 && low < 0.4 * high) low = 0;
    if (high - low < 1e-9 * Math.max(1, Math.abs(high))) [low, high] = [low - 1, high + 1];
    const pad = 0.06 * (high - low);
    [low, high] = [low - pad, high + pad];
    const [a, b] = [this.time[0], this.time[this.time.length - 1]];
    const [x0, x1, y0, y1] = [this.left, width - 8, height - 16, 4];
    const X = (t) => x0 + ((t - a) / (b - a)) * (x1 - x0);
    const Y = (value) => y0 + ((value - low) / (high - low)) * (y1 - y0);
    pen.font = "10px system-ui, sans-serif";
    pen.fillStyle = this.colour("--faint");
    pen.strokeStyle = this.colour("--rule");
    pen.lineWidth = 1;
    const dy = niceStep(high - low, Math.max(2, height / 32));
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (let value = Math.ceil(low / dy) * dy; value <= high; value += dy) {
      pen.beginPath();
      pen.moveTo(x0, Math.round(Y(value)) + 0.5);
      pen.lineTo(x1, Math.round(Y(value)) + 0.5);
      pen.stroke();
      pen.fillText(Number(value.toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 4 }), x0 - 5, Y(value));
    }
    const dx = niceStep(b - a, Math.max(2, width / 90));
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (let t = Math.ceil(a / dx) * dx; t <= b + 1e-9; t += dx) pen.fillText(`${Number(t.toPrecision(6))} s`, clamp(X(t), x0 + 8, x1 - 10), y0 + 4);
    pen.lineJoin = "round";
    for (const k of chosen) {
      pen.strokeStyle = curveColour(k, this.names.length);
      pen.lineWidth = chosen.length > 8 ? 0.9 : 1.6;
      pen.beginPath();
      const values = this.series[k];
      for (let i = 0; i < values.length; i++) pen.lineTo(X(this.time[i]), Y(values[i]));
      pen.stroke();
    }
    return sheet;
  }

  stale() {
    this.back = null;
  }
}

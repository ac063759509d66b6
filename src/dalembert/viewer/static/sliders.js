// Sliders of the joints, in the live viewer: Python answers with the poses of all bodies.

class Sliders {
  constructor(live, element, shown) {
    this.live = live;
    this.shown = shown;
    this.values = live.sliders.map((slider) => slider.value);
    this.inputs = [];
    this.waiting = false;
    this.again = false;
    this.recorded = live.values ? new Float32Array(bytesOf(live.values)) : null;
    this.message = document.createElement("p");
    this.message.className = "message";
    this.build(element);
  }

  build(element) {
    const head = document.createElement("header");
    const title = document.createElement("strong");
    title.textContent = "Joints";
    const reset = document.createElement("button");
    reset.textContent = "Reset";
    reset.id = "reset-joints";
    reset.addEventListener("click", () => {
      this.show(this.live.sliders.map((slider) => slider.value));
      this.ask(null);
    });
    head.append(title, reset);
    element.append(head, this.message);
    let joint = null;
    this.live.sliders.forEach((slider, i) => {
      if (slider.joint !== joint) {
        joint = slider.joint;
        const name = document.createElement("h3");
        name.textContent = joint;
        element.append(name);
      }
      element.append(this.row(slider, i));
    });
    this.show(this.values);
  }

  row(slider, i) {
    const row = document.createElement("label");
    row.className = "slider";
    const name = document.createElement("span");
    name.textContent = slider.name;
    const input = document.createElement("input");
    Object.assign(input, { type: "range", min: slider.low, max: slider.high, step: "any" });
    input.dataset.slider = i;
    const number = document.createElement("output");
    input.addEventListener("input", () => {
      this.values[i] = Number(input.value);
      this.label(i);
      this.ask(i);
    });
    input.addEventListener("dblclick", () => {
      this.values[i] = slider.value;
      this.show(this.values);
      this.ask(i);
    });
    row.append(name, input, number);
    this.inputs.push([input, number]);
    return row;
  }

  label(i) {
    const slider = this.live.sliders[i];
    const value = this.values[i];
    this.inputs[i][1].textContent =
      slider.unit === "rad" ? `${((value * 180) / Math.PI).toFixed(1)}°` : `${value.toFixed(3)} ${slider.unit}`;
  }

  show(values) {
    this.values = [...values];
    this.inputs.forEach(([input], i) => {
      input.value = this.values[i];
      this.label(i);
    });
  }

  follow(frame) {
    if (!this.recorded) return;
    const n = this.values.length;
    this.show(this.recorded.subarray(frame * n, (frame + 1) * n));
  }

  async ask(moved) {
    // One question at a time; the latest values are asked once the answer is there. Loops and couplings may
    // move other sliders than the one that was moved: the answer has them after the poses.
    this.moved = moved;
    if (this.waiting) {
      this.again = true;
      return;
    }
    this.waiting = true;
    try {
      do {
        this.again = false;
        const answer = await fetch("pose", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ values: this.values, moved: this.moved }),
        });
        if (!answer.ok) throw new Error(await answer.text());
        const numbers = new Float32Array(await answer.arrayBuffer());
        const count = numbers.length - this.values.length;
        this.shown(numbers.subarray(0, count));
        if (!this.again && this.live.loops) this.show(numbers.subarray(count));
        this.message.textContent = "";
      } while (this.again);
    } catch (error) {
      this.message.textContent =
        error instanceof TypeError ? "Python does not answer any more: the viewer was ended." : error.message;
    } finally {
      this.waiting = false;
    }
  }
}

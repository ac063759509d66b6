// Where the bodies are at a time: the recorded pictures, blended; or a pose that was asked for.

class Motion {
  constructor(scene) {
    this.bodies = scene.bodies;
    this.time = new Float64Array(bytesOf(scene.time));
    this.poses = new Float32Array(bytesOf(scene.poses));
    this.width = 7 * scene.bodies.length;
    this.now = new Float32Array(this.width); // positions and quaternions (w, x, y, z)
    this.ghosts = scene.ghosts.map((text) => ({
      poses: new Float32Array(bytesOf(text)), now: new Float32Array(this.width),
    }));
    this.mass = scene.bodies.reduce((sum, body) => sum + body.mass, 0);
    if (scene.contacts) {
      const counts = new Uint16Array(bytesOf(scene.contacts.counts));
      this.points = new Float32Array(bytesOf(scene.contacts.points));
      this.first = [0];
      for (const count of counts) this.first.push(this.first[this.first.length - 1] + count);
    }
  }

  get start() {
    return this.time[0];
  }

  get end() {
    return this.time[this.time.length - 1];
  }

  frameAt(t) {
    // The last picture that is not after t.
    let [low, high] = [0, this.time.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.time[middle] <= t + 1e-9) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  moveTo(t) {
    this.blend(t, this);
    for (const ghost of this.ghosts) this.blend(t, ghost);
  }

  blend(t, { poses, now }) {
    const i = this.frameAt(t);
    const { width } = this;
    if (i + 1 >= this.time.length) {
      now.set(poses.subarray(i * width, (i + 1) * width));
      return;
    }
    const share = clamp((t - this.time[i]) / (this.time[i + 1] - this.time[i]), 0, 1);
    for (let k = 0; k < width; k += 7) {
      const [a, b] = [i * width + k, (i + 1) * width + k];
      for (let j = 0; j < 3; j++) now[k + j] = poses[a + j] + share * (poses[b + j] - poses[a + j]);
      let same = 0;
      for (let j = 3; j < 7; j++) same += poses[a + j] * poses[b + j];
      const sign = same < 0 ? -1 : 1;
      let length = 0;
      for (let j = 3; j < 7; j++) {
        now[k + j] = (1 - share) * poses[a + j] + share * sign * poses[b + j];
        length += now[k + j] ** 2;
      }
      for (let j = 3; j < 7; j++) now[k + j] /= Math.sqrt(length);
    }
  }

  position(body, now = this.now) {
    const k = 7 * body;
    return [now[k], now[k + 1], now[k + 2]];
  }

  rotation(body, now = this.now) {
    const k = 7 * body + 3;
    return [now[k + 1], now[k + 2], now[k + 3], now[k]];
  }

  centreOfMass() {
    let sum = [0, 0, 0];
    this.bodies.forEach((body, i) => {
      sum = add(sum, scaled(add(this.position(i), turned(this.rotation(i), body.com)), body.mass));
    });
    return this.mass > 0 ? scaled(sum, 1 / this.mass) : sum;
  }

  contacts(t) {
    // [position, force] of every contact in the picture at t.
    if (!this.points) return [];
    const i = this.frameAt(t);
    const found = [];
    for (let k = this.first[i]; k < this.first[i + 1]; k++) {
      const p = this.points.subarray(6 * k, 6 * k + 6);
      found.push([[p[0], p[1], p[2]], [p[3], p[4], p[5]]]);
    }
    return found;
  }
}

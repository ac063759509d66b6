// A camera that orbits a point: drag turns, right drag or two fingers move, wheel or pinch zooms.

class Camera {
  constructor(up, canvas, changed) {
    this.up = up;
    this.x = Math.abs(up[2]) > 0.9 ? [1, 0, 0] : Math.abs(up[1]) > 0.9 ? [0, 0, 1] : across(up);
    this.x = unit(sub(this.x, scaled(up, dot(this.x, up))));
    this.y = cross(up, this.x);
    this.angle = (34 * Math.PI) / 180;
    this.canvas = canvas;
    this.changed = changed;
    this.fit([-1, -1, -1], [1, 1, 1]);
    this.listen();
  }

  fit(low, high) {
    // The whole of a box in world coordinates, seen from the front, the side and a little above.
    const centre = scaled(add(low, high), 0.5);
    Object.assign(this, { target: centre, azimuth: -0.95, elevation: 0.22, distance: 1 });
    this.home = { radius: Math.max(norm(sub(high, low)) / 2, 1e-3) };
    const z = unit(sub(this.eye, centre));
    const x = unit(cross(this.up, z));
    const y = cross(z, x);
    const slope = Math.tan(this.angle / 2);
    const aspect = this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight);
    let distance = 0;
    for (let k = 0; k < 8; k++) {
      const corner = sub([k & 1 ? low[0] : high[0], k & 2 ? low[1] : high[1], k & 4 ? low[2] : high[2]], centre);
      const wide = Math.max(Math.abs(dot(corner, x)) / aspect, Math.abs(dot(corner, y)));
      distance = Math.max(distance, (1.12 * wide) / slope + dot(corner, z));
    }
    this.distance = Math.max(distance, 0.5 * this.home.radius);
  }

  get eye() {
    const c = Math.cos(this.elevation);
    const out = add(
      add(scaled(this.x, c * Math.cos(this.azimuth)), scaled(this.y, c * Math.sin(this.azimuth))),
      scaled(this.up, Math.sin(this.elevation)),
    );
    return add(this.target, scaled(out, this.distance));
  }

  get near() {
    return 0.02 * this.distance;
  }

  get far() {
    return 60 * Math.max(this.distance, this.home.radius);
  }

  turn(dx, dy) {
    this.azimuth -= 0.006 * dx;
    this.elevation = clamp(this.elevation + 0.006 * dy, -1.55, 1.55);
  }

  move(dx, dy) {
    const size = (2 * this.distance * Math.tan(this.angle / 2)) / this.canvas.clientHeight;
    const z = unit(sub(this.eye, this.target));
    const x = unit(cross(this.up, z));
    this.target = add(this.target, add(scaled(x, -dx * size), scaled(cross(z, x), dy * size)));
  }

  zoom(factor) {
    this.distance = clamp(this.distance * factor, 0.02 * this.home.radius, 60 * this.home.radius);
  }

  listen() {
    const { canvas } = this;
    const fingers = new Map();
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
    });
    for (const kind of ["pointerup", "pointercancel"])
      canvas.addEventListener(kind, (event) => fingers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const now = [event.clientX, event.clientY];
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
        const distance = (a) => Math.hypot(a[0] - other[0], a[1] - other[1]) || 1;
        this.zoom(distance(before) / distance(now));
        this.move(dx / 2, dy / 2);
      } else if (event.buttons & 6 || event.shiftKey || event.ctrlKey) this.move(dx, dy);
      else this.turn(dx, dy);
      fingers.set(event.pointerId, now);
      this.changed();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(0.0012 * clamp(event.deltaY * (event.deltaMode ? 16 : 1), -200, 200)));
        this.changed();
      },
      { passive: false },
    );
  }
}

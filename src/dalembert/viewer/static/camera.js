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
    this.fit([0, 0, 0], 1);
    this.listen();
  }

  fit(centre, radius) {
    Object.assign(this, { target: centre, azimuth: -0.95, elevation: 0.24, home: { centre, radius } });
    const aspect = Math.min(1, this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight));
    this.distance = (1.12 * radius) / Math.sin(this.angle / 2) / Math.max(aspect, 0.3);
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

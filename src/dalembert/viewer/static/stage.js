// The stage: shapes on bodies, grounds, marks, and the camera.

const byId = (id) => document.getElementById(id);
const scene = JSON.parse(byId("scene").textContent);
const motion = new Motion(scene);
const many = motion.time.length > 1;
const state = {
  time: motion.start, playing: false, speed: 1, loop: true, follow: scene.follow || "", posed: false,
  show: { forces: true, ghosts: true, com: false, axes: false, collision: false, plots: scene.plots.length > 0 },
  theme: window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
};
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
let dirty = true;
let drawn = 0;

byId("title").textContent = scene.title;
let renderer;
try {
  renderer = new Renderer(byId("view"));
} catch (error) {
  byId("problem").textContent = error.message;
  throw error;
}
byId("view").addEventListener("webglcontextlost", () => {
  byId("problem").textContent = "The graphics context was lost; reload the page.";
});
Object.assign(renderer.solids, { ball: ball(), box: box(), cylinder: cylinder(), arrow: arrow() });
scene.meshes.forEach((mesh, i) => (renderer.solids[`mesh ${i}`] = meshSolid(mesh)));

// What does not change: shapes in body coordinates, and how far each reaches.

const planes = [];
const shapes = [];
for (const shape of scene.shapes) {
  const [w, x, y, z] = shape.rotation;
  shape.turn = [x, y, z, w];
  if (shape.kind === "plane" && shape.body < 0) {
    planes.push(shape);
    continue;
  }
  shape.stretch = shape.stretch || 0;
  shape.key = shape.kind === "mesh" ? `mesh ${shape.mesh}` : shape.kind;
  if (shape.kind === "plane") {
    shape.key = "box"; // a plane that moves is drawn as a tile
    shape.scale = [0.5, 0.5, 0.002];
  }
  shape.half = shape.scale; // of its box, in its own axes
  shape.middle = [0, 0, 0];
  if (shape.kind === "mesh") {
    const mesh = scene.meshes[shape.mesh];
    shape.middle = add(mesh.low, scaled(mesh.extent, 0.5));
    shape.half = scaled(mesh.extent, 0.5);
  }
  shapes.push(shape);
}

function placed(shape, now) {
  if (shape.body < 0) return [shape.position, shape.turn];
  const turn = motion.rotation(shape.body, now);
  return [add(motion.position(shape.body, now), turned(turn, shape.position)), turnedBy(turn, shape.turn)];
}

function bounds() {
  // The box around the figure now, in world coordinates; the world's own shapes where nothing moves.
  let [low, high] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
  const moving = shapes.filter((shape) => shape.body >= 0 && (!shape.collision || state.show.collision));
  for (const shape of moving.length ? moving : shapes) {
    const [p, q] = placed(shape);
    const c = add(p, turned(q, shape.middle));
    const [x, y, z] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((axis) => turned(q, axis));
    for (let j = 0; j < 3; j++) {
      const parts = [x[j] * shape.half[0], y[j] * shape.half[1], z[j] * shape.half[2]];
      const round = shape.kind === "ball";
      const reach = (round ? norm(parts) : Math.abs(parts[0]) + Math.abs(parts[1]) + Math.abs(parts[2])) + Math.abs(z[j]) * shape.stretch;
      low[j] = Math.min(low[j], c[j] - reach);
      high[j] = Math.max(high[j], c[j] + reach);
    }
  }
  if (!(low[0] <= high[0])) [low, high] = [[-1, -1, -1], [1, 1, 1]];
  return { low, high, centre: scaled(add(low, high), 0.5), radius: Math.max(norm(sub(high, low)) / 2, 1e-3) };
}

function wholeBounds() {
  // Around the whole motion, or as much of it as three sizes of the figure.
  motion.moveTo(motion.start);
  const first = bounds();
  let [low, high] = [first.low, first.high];
  const steps = Math.min(60, motion.time.length - 1);
  for (let k = 1; k <= steps; k++) {
    motion.moveTo(motion.start + ((motion.end - motion.start) * k) / steps);
    const b = bounds();
    low = low.map((x, j) => Math.min(x, b.low[j]));
    high = high.map((x, j) => Math.max(x, b.high[j]));
  }
  const lowest = dot(scene.up, scene.up.map((u, j) => (u > 0 ? low[j] : high[j])));
  if (state.follow || norm(sub(high, low)) > 6 * first.radius) {
    const room = scaled([1, 1, 1], 0.15 * first.radius);
    [low, high] = [sub(first.low, room), add(first.high, room)];
  }
  return { figure: first.radius, lowest, low, high };
}

const whole = wholeBounds();
const spacing = 10 ** Math.round(Math.log10(whole.figure));
function ground(position, turn, tint) {
  return {
    origin: position, normal: turned(turn, [0, 0, 1]), x: turned(turn, [1, 0, 0]), y: turned(turn, [0, 1, 0]), spacing, tint,
  };
}
const grounds = planes.map((plane) =>
  ground(plane.position, plane.turn, plane.plain ? null : plane.colour.slice(0, 3)),
);
if (!grounds.length && !scene.terrain) {
  const near = whole.lowest > -0.05 * whole.figure && whole.lowest < 2 * whole.figure;
  grounds.push(ground(scaled(scene.up, near ? 0 : whole.lowest), fromZ(scene.up), null));
}

for (const { origin, normal } of grounds) {
  const drop = dot(normal, sub(scaled(add(whole.low, whole.high), 0.5), origin));
  if (drop < 0 || drop > 2 * whole.figure) continue;
  const foot = sub(scaled(add(whole.low, whole.high), 0.5), scaled(normal, drop));
  whole.low = whole.low.map((x, j) => Math.min(x, foot[j]));
  whole.high = whole.high.map((x, j) => Math.max(x, foot[j]));
}

const camera = new Camera(scene.up, byId("view"), () => (dirty = true));

// One picture

const AXIS_COLOURS = [[0.86, 0.26, 0.24, 1], [0.3, 0.66, 0.3, 1], [0.24, 0.45, 0.86, 1]];
const FORCE_COLOUR = [0.95, 0.42, 0.12, 1];
const COM_COLOUR = [0.98, 0.78, 0.1, 1];

function addArrow(from, vector, thickness, colour) {
  const length = norm(vector);
  if (!(length > 0)) return;
  const s = Math.min(thickness, length / 3.2);
  renderer.batch("marks", "arrow").add(from, fromZ(unit(vector)), [s, s, s], length - 3 * s, colour);
}

function addMarks() {
  const size = whole.figure;
  if (state.show.forces && !state.posed) {
    const weight = scene.weight > 0 ? scene.weight : 1;
    for (const [point, force] of motion.contacts(state.time)) {
      const length = Math.min((0.8 * size * norm(force)) / weight, 3 * size);
      if (length > 0.004 * size) addArrow(point, scaled(unit(force), length), 0.018 * size, FORCE_COLOUR);
    }
  }
  if (state.show.com && motion.mass > 0) {
    const c = motion.centreOfMass();
    const s = 0.035 * size;
    renderer.batch("marks", "ball").add(c, [0, 0, 0, 1], [s, s, s], 0, COM_COLOUR);
    const floor = grounds[0];
    if (floor) {
      const drop = dot(floor.normal, sub(c, floor.origin));
      if (drop > s) {
        const foot = sub(c, scaled(floor.normal, drop));
        const turn = fromZ(floor.normal);
        const middle = sub(c, scaled(floor.normal, drop / 2));
        renderer.batch("marks", "cylinder").add(middle, turn, [0.004 * size, 0.004 * size, drop / 2], 0, COM_COLOUR);
        renderer.batch("marks", "cylinder").add(foot, turn, [s, s, 0.003 * size], 0, COM_COLOUR);
      }
    }
  }
  if (state.show.axes)
    for (const { body, axis, turns } of scene.axes) {
      const [p, q] = [motion.position(body), motion.rotation(body)];
      if (!axis)
        for (let k = 0; k < 3; k++) {
          const direction = [0, 0, 0];
          direction[k] = 0.13 * size;
          addArrow(p, turned(q, direction), 0.01 * size, AXIS_COLOURS[k]);
        }
      else if (turns) {
        const s = 0.01 * size;
        renderer.batch("marks", "cylinder").add(p, turnedBy(q, fromZ(axis)), [s, s, 0.11 * size], 0, [0.85, 0.3, 0.75, 1]);
      } else addArrow(p, turned(q, scaled(axis, 0.16 * size)), 0.013 * size, [0.2, 0.65, 0.75, 1]);
    }
}

function compose() {
  for (const group of Object.keys(renderer.groups)) renderer.each(group, (batch) => batch.clear());
  for (const shape of shapes) {
    if (shape.collision && !state.show.collision) continue;
    const [position, turn] = placed(shape);
    const colour = shape.collision ? [0.3, 0.75, 0.5, 0.35] : shape.colour;
    if (colour[3] <= 0.01) continue;
    renderer.batch(colour[3] < 0.99 ? "clear" : "opaque", shape.key).add(position, turn, shape.scale, shape.stretch, colour);
  }
  if (state.show.ghosts && !state.posed)
    for (const shape of shapes) {
      if (shape.body < 0 || shape.collision) continue;
      const colour = [...shape.colour.slice(0, 3), 0.35 * shape.colour[3]];
      for (const { now } of motion.ghosts) {
        const [position, turn] = placed(shape, now);
        renderer.batch("clear", shape.key).add(position, turn, shape.scale, shape.stretch, colour);
      }
    }
  addMarks();
}

let followed = null;
function follow() {
  const place = !state.follow ? null : state.follow === "com" ? motion.centreOfMass()
    : motion.position(scene.bodies.findIndex((body) => body.name === state.follow));
  if (place && followed) camera.target = add(camera.target, sub(place, followed));
  followed = place;
}

function draw() {
  if (!state.posed) motion.moveTo(state.time);
  follow();
  compose();
  const { centre, radius } = bounds();
  renderer.draw(camera, { centre, radius: Math.max(radius, 0.5 * whole.figure), figure: whole.figure }, grounds, state.theme);
  drawn++;
}

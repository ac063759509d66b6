// The page: time line, buttons, keys.

const plots = scene.plots.map((data) => new Plot(data, motion, (t) => jump(t)));
const scrub = byId("scrub");
const digits = motion.end - motion.start < 100 ? 2 : 1;

function showTime() {
  scrub.value = state.time;
  const share = many ? (state.time - motion.start) / (motion.end - motion.start) : 0;
  scrub.style.setProperty("--share", `${100 * share}%`);
  byId("clock").textContent = `${state.time.toFixed(digits)} / ${motion.end.toFixed(digits)} s`;
  if (state.show.plots) for (const plot of plots) plot.draw(state.time);
}

function jump(t) {
  state.time = clamp(t, motion.start, motion.end);
  state.posed = false;
  if (sliders) sliders.follow(motion.frameAt(state.time));
  dirty = true;
}

function play(on) {
  if (!many) return;
  if (on && state.time >= motion.end - 1e-9) jump(motion.start);
  if (on) state.posed = false;
  state.playing = on;
  last = null;
  document.body.classList.toggle("playing", on);
  byId("play").setAttribute("aria-label", on ? "Pause" : "Play");
  dirty = true;
}

function step(frames) {
  play(false);
  jump(motion.time[clamp(motion.frameAt(state.time) + frames, 0, motion.time.length - 1)]);
}

function setSpeed(speed) {
  state.speed = clamp(speed, SPEEDS[0], SPEEDS[SPEEDS.length - 1]);
  byId("speed").value = String(state.speed);
}

let last = null;
function tick(now) {
  if (state.playing) {
    if (last !== null) {
      let t = state.time + (state.speed * Math.min(now - last, 200)) / 1000;
      if (t >= motion.end) {
        t = state.loop ? motion.start + ((t - motion.start) % (motion.end - motion.start)) : motion.end;
        if (!state.loop) play(false);
      }
      jump(t);
    }
    last = now;
  }
  if (dirty) {
    dirty = false;
    draw();
    showTime();
  }
  requestAnimationFrame(tick);
}

// Buttons and keys

function toggle(name) {
  state.show[name] = !state.show[name];
  byId(`show-${name}`).setAttribute("aria-pressed", state.show[name]);
  if (name === "plots") byId("plots").hidden = !state.show.plots;
  dirty = true;
}

function setTheme(theme) {
  state.theme = theme;
  document.documentElement.dataset.theme = theme;
  for (const plot of plots) plot.stale();
  dirty = true;
}

function home() {
  camera.fit(whole.low, whole.high);
  followed = null;
  dirty = true;
}

function help() {
  byId("help").hidden = !byId("help").hidden;
}

const sliders = scene.live
  ? new Sliders(scene.live, byId("joints"), (poses) => {
      play(false);
      state.posed = true;
      motion.now.set(poses);
      dirty = true;
    })
  : null;

for (const name of ["forces", "ghosts", "com", "axes", "collision", "plots"]) {
  const button = byId(`show-${name}`);
  button.setAttribute("aria-pressed", state.show[name]);
  button.addEventListener("click", () => toggle(name));
}
byId("show-forces").hidden = !scene.contacts;
byId("show-ghosts").hidden = !motion.ghosts.length;
byId("show-com").hidden = !(motion.mass > 0);
byId("show-axes").hidden = !scene.axes.length;
byId("show-collision").hidden = !shapes.some((shape) => shape.collision);
byId("show-plots").hidden = !plots.length;
byId("plots").hidden = !plots.length;
byId("plots").append(...plots.map((plot) => plot.element));
byId("timeline").hidden = !many;
byId("joints").hidden = !sliders;
byId("theme").addEventListener("click", () => setTheme(state.theme === "dark" ? "light" : "dark"));
byId("home").addEventListener("click", home);
byId("help-button").addEventListener("click", help);
byId("help").addEventListener("click", help);
byId("play").addEventListener("click", () => play(!state.playing));
byId("back").addEventListener("click", () => step(-1));
byId("forward").addEventListener("click", () => step(1));
byId("loop").addEventListener("click", () => {
  state.loop = !state.loop;
  byId("loop").setAttribute("aria-pressed", state.loop);
});
Object.assign(scrub, { min: motion.start, max: motion.end, step: "any" });
scrub.addEventListener("input", () => {
  play(false);
  jump(Number(scrub.value));
});
for (const speed of SPEEDS) byId("speed").append(new Option(`${speed}×`, speed));
byId("speed").addEventListener("change", () => {
  setSpeed(Number(byId("speed").value));
  byId("speed").blur();
});
setSpeed(1);
const target = byId("follow");
target.append(new Option("fixed camera", ""), new Option("follow the centre of mass", "com"));
for (const body of scene.bodies) target.append(new Option(`follow ${body.name}`, body.name));
target.value = state.follow;
target.hidden = !many && !sliders;
target.addEventListener("change", () => {
  state.follow = target.value;
  followed = null;
  dirty = true;
  target.blur();
});
byId("notes").textContent = [scene.end, ...scene.notes].filter(Boolean).join(" · ");

const KEYS = {
  " ": () => play(!state.playing),
  ArrowLeft: (event) => step(event.shiftKey ? -10 : -1),
  ArrowRight: (event) => step(event.shiftKey ? 10 : 1),
  Home: () => jump(motion.start),
  End: () => jump(motion.end),
  "[": () => setSpeed(SPEEDS[Math.max(0, SPEEDS.indexOf(state.speed) - 1)]),
  "]": () => setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf(state.speed) + 1)]),
  l: () => byId("loop").click(), o: () => byId("show-ghosts").click(), f: () => byId("show-forces").click(), c: () => byId("show-com").click(),
  a: () => byId("show-axes").click(), g: () => byId("show-collision").click(), p: () => byId("show-plots").click(),
  d: () => byId("theme").click(), r: home, h: help, "?": help,
};
window.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  if (event.key === "Escape" && !byId("help").hidden) help();
  const slider = event.target.dataset && event.target.dataset.slider !== undefined;
  const task = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!task || (slider && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  task(event);
});
new ResizeObserver(() => (dirty = true)).observe(byId("view"));
window.addEventListener("resize", () => (dirty = true));

setTheme(state.theme);
home();
requestAnimationFrame(tick);

// For tests and for the curious, in the browser's console.
window.dalembert = {
  state, scene, camera, play, jump, step, setTheme, setSpeed,
  get drawn() {
    return drawn;
  },
  poses: () => Array.from(motion.now),
  contacts: () => motion.contacts(state.time),
  centre: () => motion.centreOfMass(),
  ghosts: () => motion.ghosts.map(({ now }) => Array.from(now)),
  pixels() {
    // The picture as it is now, red, green, blue, alpha, from the bottom row up.
    draw();
    const { gl, canvas } = renderer;
    const bytes = new Uint8Array(4 * canvas.width * canvas.height);
    gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    return bytes;
  },
};

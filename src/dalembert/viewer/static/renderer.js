// Draws instances of solids: one call of the graphics card for each kind of solid, whatever their number.

const FLOATS = 15; // of an instance: position, rotation, scale and stretch, colour

const THEMES = {
  light: {
    horizon: [0.91, 0.925, 0.945], zenith: [0.7, 0.78, 0.88], base: [0.66, 0.69, 0.74], line: [0.36, 0.41, 0.49],
    sky: [0.62, 0.68, 0.78], bounce: [0.28, 0.27, 0.26],
  },
  dark: {
    horizon: [0.095, 0.11, 0.135], zenith: [0.035, 0.045, 0.065], base: [0.05, 0.058, 0.07], line: [0.2, 0.25, 0.32],
    sky: [0.36, 0.42, 0.52], bounce: [0.14, 0.13, 0.13],
  },
};

class Batch {
  // Instances of one solid; `alpha` those that one can see through.
  constructor(gl, solidData) {
    this.gl = gl;
    this.count = 0;
    this.data = new Float32Array(FLOATS);
    this.vao = gl.createVertexArray();
    this.size = solidData.indices.length;
    gl.bindVertexArray(this.vao);
    const fill = (place, values, width) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(values), gl.STATIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, width, gl.FLOAT, false, 0, 0);
    };
    fill(0, solidData.positions, 3);
    fill(1, solidData.normals, 3);
    fill(2, solidData.sides, 1);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(solidData.indices), gl.STATIC_DRAW);
    this.buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    let offset = 0;
    for (const [place, width] of [[3, 3], [4, 4], [5, 4], [6, 4]]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, width, gl.FLOAT, false, 4 * FLOATS, offset);
      gl.vertexAttribDivisor(place, 1);
      offset += 4 * width;
    }
    gl.bindVertexArray(null);
  }

  clear() {
    this.count = 0;
  }

  add(position, rotation, scale, stretch, colour) {
    const start = this.count * FLOATS;
    if (start + FLOATS > this.data.length) {
      const larger = new Float32Array(2 * this.data.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data.set(position, start);
    this.data.set(rotation, start + 3);
    this.data.set(scale, start + 7);
    this.data[start + 10] = stretch;
    this.data.set(colour, start + 11);
    this.count++;
  }

  upload() {
    if (!this.count) return;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, this.data.subarray(0, this.count * FLOATS), this.gl.DYNAMIC_DRAW);
  }

  draw() {
    if (!this.count) return;
    this.gl.bindVertexArray(this.vao);
    this.gl.drawElementsInstanced(this.gl.TRIANGLES, this.size, this.gl.UNSIGNED_INT, 0, this.count);
  }
}

function compiled(gl, name) {
  const program = gl.createProgram();
  SHADERS[name].forEach((source, i) => {
    const shader = gl.createShader(i ? gl.FRAGMENT_SHADER : gl.VERTEX_SHADER);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`${name}: ${gl.getShaderInfoLog(shader)}`);
    gl.attachShader(program, shader);
  });
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`${name}: ${gl.getProgramInfoLog(program)}`);
  const places = {};
  const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS);
  for (let i = 0; i < count; i++) {
    const { name: uniform, type } = gl.getActiveUniform(program, i);
    places[uniform] = [gl.getUniformLocation(program, uniform), type];
  }
  return {
    use(values) {
      gl.useProgram(program);
      for (const [uniform, [place, type]] of Object.entries(places)) {
        const value = values[uniform.slice(2)];
        if (type === gl.FLOAT) gl.uniform1f(place, value);
        else if (type === gl.FLOAT_VEC3) gl.uniform3fv(place, value);
        else if (type === gl.FLOAT_MAT4) gl.uniformMatrix4fv(place, false, value);
        else gl.uniform1i(place, 0);
      }
    },
  };
}

function tinted(base, tint) {
  // The theme's ground in the hue of a colour: grounds of files are made for other lights.
  if (!tint) return base;
  const most = Math.max(...tint, 0.01);
  return base.map((c, j) => c * (0.3 + 0.7 * (tint[j] / most) ** 2.2));
}

class Renderer {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, preserveDrawingBuffer: false });
    if (!gl) throw new Error("This browser offers no WebGL 2, which the pictures need.");
    this.gl = gl;
    this.canvas = canvas;
    this.programs = {};
    for (const name of Object.keys(SHADERS)) this.programs[name] = compiled(gl, name);
    this.empty = gl.createVertexArray();
    this.shadowSize = 2048;
    this.shadowMap = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, this.shadowSize, this.shadowSize);
    for (const [key, value] of [
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE], [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL],
    ]) gl.texParameteri(gl.TEXTURE_2D, key, value);
    this.shadowFrame = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowFrame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadowMap, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    this.groups = { opaque: new Map(), clear: new Map(), marks: new Map() };
    this.solids = {};
  }

  batch(group, key) {
    if (!this.groups[group].has(key)) this.groups[group].set(key, new Batch(this.gl, this.solids[key]));
    return this.groups[group].get(key);
  }

  each(group, task) {
    for (const batch of this.groups[group].values()) task(batch);
  }

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((x) => Math.max(1, Math.round(x * ratio)));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
  }

  // `camera`: eye, target, up, near, far; `focus`: centre and radius of what casts a shadow; `planes`: grounds.
  draw(camera, focus, planes, theme) {
    const { gl, programs } = this;
    this.resize();
    for (const group of Object.keys(this.groups)) this.each(group, (batch) => batch.upload());
    const colours = THEMES[theme];
    const sun = unit(add(camera.up, add(scaled(camera.x, 0.1), scaled(camera.y, -0.65))));
    const r = focus.radius * 1.35;
    const light = product(
      orthographic(r, 0.1 * r, 8 * r),
      lookAt(add(focus.centre, scaled(sun, 4 * r)), focus.centre, across(sun)),
    );
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(true);
    gl.disable(gl.BLEND);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowFrame);
    gl.viewport(0, 0, this.shadowSize, this.shadowSize);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 4);
    programs.depth.use({ view: light });
    this.each("opaque", (batch) => batch.draw());
    gl.disable(gl.POLYGON_OFFSET_FILL);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);

    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    const view = product(
      perspective(camera.angle, this.canvas.width / this.canvas.height, camera.near, camera.far),
      lookAt(camera.eye, camera.target, camera.up),
    );
    this.view = view;
    const values = {
      view, light, sun, up: camera.up, eye: camera.eye, texel: (2 * r) / this.shadowSize, alpha: 1, glow: 0, ...colours,
    };
    gl.bindVertexArray(this.empty);
    gl.depthMask(false);
    programs.sky.use(values);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.depthMask(true);
    gl.enable(gl.BLEND);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE);
    for (const plane of planes) {
      if (dot(plane.normal, sub(camera.eye, plane.origin)) <= 0) continue; // seen from below: looked through
      const drop = dot(plane.normal, sub(camera.target, plane.origin));
      const reach = Math.max(14 * focus.figure, 4 * norm(sub(camera.eye, camera.target)));
      programs.ground.use({
        ...values, ...plane, extent: reach, reach, middle: sub(camera.target, scaled(plane.normal, drop)),
        base: tinted(colours.base, plane.tint),
      });
      gl.bindVertexArray(this.empty);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
    programs.solid.use(values);
    gl.disable(gl.BLEND);
    this.each("opaque", (batch) => batch.draw());
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    this.each("clear", (batch) => batch.draw());
    gl.depthMask(true);
    programs.solid.use({ ...values, glow: 0.55 });
    this.each("marks", (batch) => batch.draw());
    gl.depthFunc(gl.GREATER); // marks inside bodies shine through
    gl.depthMask(false);
    programs.solid.use({ ...values, glow: 0.8, alpha: 0.38 });
    this.each("marks", (batch) => batch.draw());
    gl.depthMask(true);
    gl.depthFunc(gl.LESS);
    gl.bindVertexArray(null);
  }
}

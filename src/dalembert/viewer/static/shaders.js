// Programs of the graphics card: solids in soft light with a shadow, ground with a grid, sky.

const INSTANCE = `#version 300 es
precision highp float;
layout(location=0) in vec3 a_position;
layout(location=1) in vec3 a_normal;
layout(location=2) in float a_side;
layout(location=3) in vec3 i_position;
layout(location=4) in vec4 i_rotation;
layout(location=5) in vec4 i_scale;
layout(location=6) in vec4 i_colour;
vec3 turned(vec4 q, vec3 v) { return v + 2.0 * cross(q.xyz, cross(q.xyz, v) + q.w * v); }
vec3 place() { return i_position + turned(i_rotation, a_position * i_scale.xyz + vec3(0, 0, a_side * i_scale.w)); }
`;

const LIGHT = `
uniform highp sampler2DShadow u_shadow;
uniform mat4 u_light;
uniform vec3 u_sun, u_up, u_eye, u_sky, u_bounce;
uniform float u_texel;
float sunlight(vec3 p, vec3 n) {
  vec4 c = u_light * vec4(p + n * u_texel * 2.0, 1);
  vec3 s = c.xyz * 0.5 + 0.5;
  if (any(lessThan(s, vec3(0))) || any(greaterThan(s, vec3(1)))) return 1.0;
  vec2 size = 1.0 / vec2(textureSize(u_shadow, 0));
  float sum = 0.0;
  for (int i = 0; i < 12; i++) {
    float a = float(i) * 2.39996, r = sqrt(float(i) + 0.5) * 0.95;
    sum += texture(u_shadow, vec3(s.xy + size * r * vec2(cos(a), sin(a)), s.z - 0.0008));
  }
  vec2 edge = smoothstep(0.8, 1.0, abs(c.xy));
  return mix(sum / 12.0, 1.0, max(edge.x, edge.y));
}
vec3 shown(vec3 c) { return pow(c * (1.0 + c * 0.08) / (1.0 + c * 0.12), vec3(1.0 / 2.2)); }
`;

const SHADERS = {
  solid: [
    `${INSTANCE}
uniform mat4 u_view;
out vec3 v_place, v_normal;
out vec4 v_colour;
void main() {
  v_place = place();
  v_normal = turned(i_rotation, a_normal / i_scale.xyz);
  v_colour = i_colour;
  gl_Position = u_view * vec4(v_place, 1);
}`,
    `#version 300 es
precision highp float;
in vec3 v_place, v_normal;
in vec4 v_colour;
out vec4 colour;
uniform float u_alpha, u_glow;
${LIGHT}
void main() {
  vec3 n = normalize(v_normal), e = normalize(u_eye - v_place);
  if (dot(n, e) < -0.2) n = -n; // inside out; at outlines a smooth normal may look away a little
  vec3 base = pow(v_colour.rgb, vec3(2.2));
  float facing = dot(n, u_sun);
  float sun = facing > 0.0 ? facing * sunlight(v_place, n) : 0.0;
  float h = dot(n, u_up) * 0.5 + 0.5;
  vec3 ambient = mix(u_bounce, u_sky, h) + 0.16 * max(dot(n, e), 0.0);
  vec3 half_way = normalize(u_sun + e);
  float shine = pow(max(dot(n, half_way), 0.0), 48.0) * 0.25 * (sun > 0.0 ? sun : 0.0);
  float rim = pow(1.0 - max(dot(n, e), 0.0), 4.0) * 0.13 * h;
  vec3 lit = base * (ambient + vec3(1.0, 0.96, 0.9) * sun * 1.15) + shine + rim * u_sky;
  colour = vec4(shown(mix(lit, base, u_glow)), v_colour.a * u_alpha);
}`,
  ],
  depth: [
    `${INSTANCE}
uniform mat4 u_view;
void main() { gl_Position = u_view * vec4(place(), 1); }`,
    `#version 300 es
precision highp float;
void main() {}`,
  ],
  ground: [
    `#version 300 es
precision highp float;
uniform mat4 u_view;
uniform vec3 u_origin, u_x, u_y, u_middle;
uniform float u_extent;
out vec3 v_place;
out vec2 v_cell;
void main() {
  vec2 c = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  v_place = u_middle + u_extent * (c.x * u_x + c.y * u_y);
  v_cell = vec2(dot(v_place - u_origin, u_x), dot(v_place - u_origin, u_y));
  gl_Position = u_view * vec4(v_place, 1);
}`,
    `#version 300 es
precision highp float;
in vec3 v_place;
in vec2 v_cell;
out vec4 colour;
uniform vec3 u_normal, u_middle, u_base, u_line, u_horizon;
uniform float u_spacing, u_reach;
${LIGHT}
float lines(vec2 cell, float width) {
  vec2 w = fwidth(cell);
  vec2 d = abs(fract(cell - 0.5) - 0.5);
  vec2 l = 1.0 - smoothstep(w * (width - 0.5), w * (width + 0.9), d);
  l *= 1.0 - smoothstep(0.15, 0.5, w);
  return max(l.x, l.y);
}
void main() {
  vec2 cell = v_cell / u_spacing;
  vec2 w = fwidth(cell);
  float far = smoothstep(0.25, 1.0, length(v_place - u_middle) / u_reach);
  float odd = mod(floor(cell.x) + floor(cell.y), 2.0);
  vec3 base = u_base * (1.0 + (odd - 0.5) * 0.055 * (1.0 - smoothstep(0.15, 0.6, max(w.x, w.y))));
  base = mix(base, u_line, 0.55 * lines(cell, 0.6));
  base = mix(base, u_line, 0.13 * lines(cell * 5.0, 0.3));
  float sun = sunlight(v_place, u_normal) * max(dot(u_normal, u_sun), 0.0);
  vec3 lit = base * (u_sky * 0.62 + vec3(1.0, 0.97, 0.92) * sun * 0.9);
  vec3 seen = mix(shown(lit), u_horizon, far);
  colour = vec4(seen, 1.0 - smoothstep(0.7, 1.0, far));
}`,
  ],
  sky: [
    `#version 300 es
precision highp float;
out float v_height;
void main() {
  vec2 c = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0;
  v_height = c.y;
  gl_Position = vec4(c, 0.9999, 1);
}`,
    `#version 300 es
precision highp float;
in float v_height;
out vec4 colour;
uniform vec3 u_horizon, u_zenith;
void main() { colour = vec4(mix(u_horizon, u_zenith, smoothstep(-0.1, 1.1, v_height)), 1); }`,
  ],
};

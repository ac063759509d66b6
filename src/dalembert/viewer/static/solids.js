// Triangles of unit solids. `side` says which end of a capsule or arrow a vertex belongs to: it moves along z
// with the instance's stretch, so that one solid serves for every length.

function solid() {
  return { positions: [], normals: [], sides: [], indices: [] };
}

function vertex(s, position, normal, side) {
  s.positions.push(...position);
  s.normals.push(...normal);
  s.sides.push(side);
  return s.sides.length - 1;
}

function lathe(profile, around) {
  // A surface of revolution about z: profile of [radius, z, normal outward, normal along z, side], upward.
  const s = solid();
  for (const [r, z, nr, nz, side] of profile)
    for (let k = 0; k <= around; k++) {
      const a = (2 * Math.PI * k) / around;
      vertex(s, [r * Math.cos(a), r * Math.sin(a), z], [nr * Math.cos(a), nr * Math.sin(a), nz], side);
    }
  const row = around + 1;
  for (let i = 0; i + 1 < profile.length; i++)
    for (let k = 0; k < around; k++) {
      const a = i * row + k;
      s.indices.push(a, a + 1, a + row + 1, a, a + row + 1, a + row);
    }
  return s;
}

function ball() {
  const profile = [];
  const rings = 10;
  for (const side of [-1, 1])
    for (let i = 0; i <= rings; i++) {
      const a = ((side < 0 ? i - rings : i) * Math.PI) / (2 * rings);
      profile.push([Math.cos(a), Math.sin(a), Math.cos(a), Math.sin(a), side]);
    }
  return lathe(profile, 36);
}

function cylinder() {
  return lathe(
    [[0, -1, 0, -1, 0], [1, -1, 0, -1, 0], [1, -1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [0, 1, 0, 1, 0]],
    48,
  );
}

function arrow() {
  // From the origin along z: a shaft of the stretch's length, then a head of length 3.
  return lathe(
    [
      [0, 0, 0, -1, 0], [0.4, 0, 0, -1, 0], [0.4, 0, 1, 0, 0], [0.4, 0, 1, 0, 1],
      [0.4, 0, 0, -1, 1], [1, 0, 0, -1, 1], [1, 0, 0.95, 0.32, 1], [0, 3, 0.95, 0.32, 1],
    ],
    20,
  );
}

function box() {
  const s = solid();
  for (let axis = 0; axis < 3; axis++)
    for (const sign of [-1, 1]) {
      const corner = (u, v) => {
        const p = [0, 0, 0];
        p[axis] = sign;
        p[(axis + 1) % 3] = u;
        p[(axis + 2) % 3] = v;
        return p;
      };
      const n = [0, 0, 0];
      n[axis] = sign;
      const [a, b, c, d] = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([u, v]) => vertex(s, corner(u, v), n, 0));
      s.indices.push(...(sign > 0 ? [a, b, c, a, c, d] : [a, c, b, a, d, c]));
    }
  return s;
}

const CREASE = Math.cos((38 * Math.PI) / 180);

function meshSolid(mesh) {
  // The triangles of a file: smooth where neighbours nearly align, with edges where they do not.
  const places = new Uint16Array(bytesOf(mesh.vertices));
  const faces = new (mesh.wide ? Uint32Array : Uint16Array)(bytesOf(mesh.faces));
  const points = new Float32Array(places.length);
  for (let i = 0; i < places.length; i++)
    points[i] = mesh.low[i % 3] + (mesh.extent[i % 3] * places[i]) / 65535;
  const at = (i) => [points[3 * i], points[3 * i + 1], points[3 * i + 2]];
  const sums = new Float32Array(points.length);
  const normals = [];
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [at(faces[f]), at(faces[f + 1]), at(faces[f + 2])];
    const area = cross(sub(b, a), sub(c, a));
    normals.push(unit(area));
    for (let k = 0; k < 3; k++) for (let j = 0; j < 3; j++) sums[3 * faces[f + k] + j] += area[j];
  }
  const count = faces.length;
  const s = {
    positions: new Float32Array(3 * count),
    normals: new Float32Array(3 * count),
    sides: new Float32Array(count),
    indices: new Uint32Array(count),
  };
  for (let i = 0; i < count; i++) {
    const w = faces[i];
    const flat = normals[Math.floor(i / 3)];
    const mean = unit([sums[3 * w], sums[3 * w + 1], sums[3 * w + 2]]);
    s.positions.set(at(faces[i]), 3 * i);
    s.normals.set(dot(mean, flat) > CREASE ? mean : flat, 3 * i);
    s.indices[i] = i;
  }
  return s;
}

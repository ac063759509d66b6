"""Figures of random bodies and joints, thrown on the ground."""

import numpy as np

import dalembert as da


def cuboid(mass, size):
    """The inertia of a homogeneous box about its centre."""
    x, y, z = size
    return da.RigidInertia(
        mass, (0.0, 0.0, 0.0), np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * (mass / 12.0)
    )


def at(position):
    """A frame at a position, not turned."""
    return da.Transform.from_rotation_translation(np.eye(3), tuple(position))


def figure(seed):
    """One to four bodies of 0.1 to 10 kg on hinges, ball joints and slides; half the hinges have limits."""
    rng = np.random.default_rng(seed)
    restitution, friction = float(rng.choice([0.0, 0.0, 0.3, 0.7, 0.95])), float(rng.uniform(0.0, 1.2))
    surface = {"friction": (friction, 0.0, 0.0), "restitution": restitution}
    builder = da.ModelBuilder()
    for k in range(int(rng.integers(1, 5))):
        size, mass = rng.uniform(0.05, 0.3, 3), float(10.0 ** rng.uniform(-1.0, 1.0))
        given = {"inertia": cuboid(mass, size), "shapes": [shape(rng, size, surface)]}
        if k == 0:
            builder.add_body("body 0", parent="world", joint=da.Free(), **given)
            continue
        axis = rng.normal(size=3)
        axis = tuple(axis / np.linalg.norm(axis))
        kinds = [da.Revolute(axis=axis), da.Spherical(), da.Prismatic(axis=axis)]
        joint = kinds[rng.choice(3, p=[0.7, 0.2, 0.1])]
        if isinstance(joint, da.Revolute) and rng.random() < 0.5:
            given["limits"] = (-1.0, 1.0)
        if not isinstance(joint, da.Spherical) and rng.random() < 0.4:
            given["damping"] = float(10.0 ** rng.uniform(-3.0, -1.0))
        place, parent = at(rng.uniform(-0.25, 0.25, 3)), f"body {int(rng.integers(k))}"
        builder.add_body(f"body {k}", parent=parent, joint=joint, placement=place, **given)
    return builder.build().with_ground()


def shape(rng, size, surface):
    """A box, a ball or a capsule that fits into a box."""
    kind, radius = rng.integers(3), float(size.min() / 2)
    if kind == 0:
        return da.shapes.Box(tuple(size), **surface)
    return (
        da.shapes.Sphere(radius, **surface)
        if kind == 1
        else da.shapes.Capsule(radius, float(size.max() / 2), **surface)
    )


def light_root(mass):
    """A light ball that carries ten kilograms on a hinge, which pass through the ground."""
    builder = da.ModelBuilder()
    inertia = cuboid(mass, (0.1, 0.1, 0.1))
    builder.add_body(
        "root", parent="world", joint=da.Free(), inertia=inertia, shapes=[da.shapes.Sphere(0.05)]
    )
    heavy = cuboid(10.0, (0.2, 0.1, 0.1))
    heavy = da.RigidInertia(heavy.mass, (0.0, 0.0, -0.15), heavy.inertia_at_com)
    joint = da.Revolute(axis=(0, 0, 1))
    builder.add_body("child", parent="root", joint=joint, placement=at((0.0, 0.0, -0.15)), inertia=heavy)
    return builder.build().with_ground()


def throws(model, seed, count=16, height=1.0, spin=5.0):
    """Random poses and velocities at a height [m]."""
    rng = np.random.default_rng(seed)
    q = np.stack([model.random_state(int(k))[0] for k in rng.integers(1e9, size=count)])
    q[:, :3] = [0.0, 0.0, height]
    turn = rng.normal(size=(count, 4))
    q[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    v = rng.normal(size=(count, model.nv)) * 3.0
    v[:, :6] = rng.normal(size=(count, 6)) * ([spin] * 3 + [1.0] * 3)
    return q, v

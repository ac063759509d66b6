"""Random trees of every joint type, and dense linear algebra as the oracle of the recursive algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import (
    Composite,
    Cylindrical,
    EllipsoidJoint,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    RackPinion,
    Revolute,
    SphereInCylinder,
    Spherical,
    SphericalEuler,
    SphericalExponential,
    Translation,
    Universal,
)
from dalembert.model.model import Model
from dalembert.spatial import Force, Mat3, RigidInertia, Transform, Vec3

AXIS_JOINTS = ("revolute", "prismatic", "helical", "cylindrical")

JOINTS = {
    "revolute": lambda rng: Revolute(axis(rng)),
    "prismatic": lambda rng: Prismatic(axis(rng)),
    "helical": lambda rng: Helical(axis(rng), pitch=float(rng.normal())),
    "cylindrical": lambda rng: Cylindrical(axis(rng)),
    "fixed": lambda rng: Fixed(),
    "planar": lambda rng: Planar(),
    "spherical": lambda rng: Spherical(),
    "spherical_euler": lambda rng: SphericalEuler("xyz"),
    "spherical_exponential": lambda rng: SphericalExponential(),
    "universal": lambda rng: Universal(axis(rng), rng.normal(size=3).tolist()),
    "translation": lambda rng: Translation(),
    "free": lambda rng: Free(),
    "rack_pinion": lambda rng: RackPinion(0.3),
    "sphere_in_cylinder": lambda rng: SphereInCylinder(axis(rng)),
    "ellipsoid": lambda rng: EllipsoidJoint(0.1, 0.2, 0.3),
    "composite": lambda rng: Composite([Revolute(axis(rng)), Prismatic(axis(rng))], [place(rng), place(rng)]),
    "reversed": lambda rng: Revolute(axis(rng)).reversed(),
    "reversed_spherical": lambda rng: Spherical().reversed(),
}


def axis(rng: np.random.Generator) -> list[float]:
    if rng.random() < 0.4:
        return (float(rng.choice([-1.0, 1.0])) * np.eye(3)[rng.integers(3)]).tolist()
    return rng.normal(size=3).tolist()


def rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else -Q


def place(rng: np.random.Generator) -> Transform:
    style = rng.random()
    R = np.eye(3) if style < 0.3 else rotation(rng)
    p = np.zeros(3) if style > 0.85 else 0.5 * rng.normal(size=3)
    return Transform.from_rotation_translation(R.tolist(), p.tolist())


def inertia(rng: np.random.Generator) -> RigidInertia:
    mass = float(rng.uniform(0.5, 2.0))
    points = rng.normal(size=(3, 6)) * 0.2
    J = mass * points @ points.T / 6
    I = np.trace(J) * np.eye(3) - J
    return RigidInertia(mass, (0.2 * rng.normal(size=3)).tolist(), I.tolist())


def random_tree(
    seed: int,
    n: int = 8,
    joints: tuple[str, ...] = tuple(JOINTS),
    *,
    armature: bool = True,
    branching: float = 0.5,
    root: str | None = None,
) -> Model:
    """A tree of n bodies; every second joint or so has armature; `branching`: chance to hang on any earlier
    body.
    """
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(gravity=(0.7, -0.4, -9.5))
    for i in range(n):
        kind = root if i == 0 and root else str(rng.choice(joints))
        joint: Joint = JOINTS[kind](rng)
        parent = i - 1 if rng.random() > branching else int(rng.integers(-1, i))
        builder.add_body(
            f"b{i}",
            parent="world" if parent < 0 else f"b{parent}",
            joint=joint,
            placement=place(rng),
            inertia=inertia(rng),
            armature=float(rng.uniform(0.1, 0.5)) if armature and rng.random() < 0.4 else 0.0,
            damping=float(rng.uniform(0.0, 1.0)),
            friction=float(rng.uniform(0.0, 1.0)),
            stiffness=float(rng.uniform(0.0, 5.0)),
        )
    return builder.build()


def geared_chain(seed: int, n: int = 4) -> Model:
    """A chain of n joints about general axes whose last one follows the one two before it."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder()
    for i in range(n):
        builder.add_body(
            f"b{i}",
            parent=f"b{i - 1}" if i else "world",
            joint=Revolute(rng.normal(size=3).tolist()),
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.2,
        )
    builder.add_coupling("mimic", {f"b{n - 3}": 1.0, f"b{n - 1}": -1.7}, offset=0.2)
    return builder.build()


def state(model: Model, seed: int) -> tuple[list[float], list[float], list[float], list[list[float]]]:
    """q, v, a (or tau), external forces: all moving."""
    rng = np.random.default_rng(seed + 1000)
    q, v = model.random_state(rng)
    return (
        q.tolist(),
        v.tolist(),
        rng.normal(size=model.nv).tolist(),
        rng.normal(size=(len(model.bodies), 6)).tolist(),
    )


def scale_of(*terms: Any) -> float:
    return max(1.0, *(float(np.max(np.abs(np.array(term, dtype=float)), initial=0.0)) for term in terms))


def close(a: Any, b: Any, tolerance: float = 1e-10, *, terms: tuple[Any, ...] = ()) -> None:
    """a = b to a tolerance relative to the largest number involved."""
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=0.0, atol=tolerance * scale_of(a, b, *terms))


def vec(v: Vec3) -> np.ndarray:
    return np.array(v.to_list(), dtype=float)


def mat(m: Mat3) -> np.ndarray:
    return np.array(m.to_list(), dtype=float)


def six(x: Any) -> np.ndarray:
    return np.array(x.to_list(), dtype=float)


def force(values: Any) -> Force:
    return Force.of([float(x) for x in values])

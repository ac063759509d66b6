"""Random trees of every joint type, and the book's general chains GU(n), for tests and measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ArgumentError, own_errors, require_choice, short_repr
from dalembert.model import DHRow, Limits, Model, ModelBuilder, dh_chain
from dalembert.model.joints import REGISTRY, Helical, Joint, Prismatic, Revolute
from dalembert.model.topology import WORLD_NAME
from dalembert.models.parts import MAX_COUNT, Count, check_arguments
from dalembert.spatial import Mat3, RigidInertia, SymMat3, Transform, Vec3

EULER_ORDERS = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx")

if TYPE_CHECKING:
    Generator = np.random.Generator  # naming it at run time would load numpy.random on import


def _axis(rng: Generator) -> tuple[float, float, float]:
    """Return a coordinate axis or its opposite with probability 1/2, otherwise any direction."""
    if rng.random() < 0.5:
        axis = [0.0, 0.0, 0.0]
        axis[int(rng.integers(3))] = float(rng.choice((-1.0, 1.0)))
    else:
        direction = rng.standard_normal(3)
        axis = (direction / np.linalg.norm(direction)).tolist()
    return axis[0], axis[1], axis[2]


MAKERS: dict[str, Callable[[Generator], Sequence[Any]]] = {
    "revolute": lambda rng: [_axis(rng)],
    "prismatic": lambda rng: [_axis(rng)],
    "helical": lambda rng: [_axis(rng), float(rng.uniform(-0.3, 0.3))],
    "cylindrical": lambda rng: [_axis(rng)],
    "planar": lambda rng: (),
    "spherical": lambda rng: (),
    "spherical_euler": lambda rng: [str(rng.choice(EULER_ORDERS))],
    "spherical_exponential": lambda rng: (),
    "universal": lambda rng: [(R := _rotation(rng)).column(0), R.column(1)],
    "translation": lambda rng: (),
    "free": lambda rng: (),
    "rack_pinion": lambda rng: [float(rng.uniform(0.05, 0.3))],
    "sphere_in_cylinder": lambda rng: [_axis(rng)],
    "ellipsoid": lambda rng: rng.uniform(0.1, 0.4, 3).tolist(),
    "composite": lambda rng: [
        (Revolute(_axis(rng)), Prismatic(_axis(rng)), Revolute(_axis(rng))),
        (random_placement(rng), random_placement(rng), random_placement(rng)),
    ],
    "reversed": lambda rng: [Helical(_axis(rng), float(rng.uniform(-0.3, 0.3)))],
    "fixed": lambda rng: (),
}
"""How the arguments of a joint are drawn, by kind; none that functions define or that depends on time."""


def random_joint(seed: int | Generator, kind: str | type[Joint]) -> Joint:
    """Return a joint of the kind, by name or class, with random axes, pitches and radii."""
    given = kind if isinstance(kind, str) else getattr(kind, "kind", kind)
    name = require_choice("kind of random joint", given, MAKERS)
    return REGISTRY[name](*MAKERS[name](np.random.default_rng(seed)))


def random_placement(seed: int | Generator, *, reach: float = 0.5) -> Transform:
    """Return a uniformly random rotation at a position within `reach` [m] along each axis."""
    rng = np.random.default_rng(seed)
    return Transform(_rotation(rng), Vec3(*rng.uniform(-reach, reach, 3).tolist()))


def random_inertia(seed: int | Generator) -> RigidInertia:
    """Return a physical inertia with no special values: mass 0.5 to 2 kg, radii of gyration 0.05 to 0.25 m.

    Drawn through the second moments of mass J > 0, with I = tr(J) - J, which makes the triangle inequality
    hold.
    """
    rng = np.random.default_rng(seed)
    mass = float(rng.uniform(0.5, 2.0))
    a, b, c = (mass * float(rng.uniform(0.05, 0.25)) ** 2 for _ in range(3))
    R = _rotation(rng)
    I = R @ Mat3(b + c, 0.0, 0.0, 0.0, a + c, 0.0, 0.0, 0.0, a + b) @ R.transpose()
    xx, xy, xz, _, yy, yz, _, _, zz = I.leaves()
    return RigidInertia(mass, rng.uniform(-0.2, 0.2, 3).tolist(), SymMat3(xx, yy, zz, xy, xz, yz))


@check_arguments
def random_tree(
    seed: int,
    *,
    bodies: Count = 10,
    joints: Sequence[str | type[Joint] | Joint] | None = None,
    branching: float = 0.5,
    armature: float = 0.0,
    limits: bool = False,
) -> Model:
    """Return a tree of random joints, placements and physical inertias, the same for equal arguments.

    `joints`: kinds, classes or joints to draw from (default: every kind but free and fixed); if there are
    no more bodies than kinds, each occurs at most once, and if there are more, each at least once.
    `branching` from 0 (a chain) to 1 (each parent drawn from all earlier bodies and the world). `armature`
    is the largest rotor inertia drawn. `limits` bounds angles and lengths to ±1.
    """
    if seed < 0:
        raise ArgumentError(f"random_tree: seed is {seed}; give zero or more")
    if isinstance(joints, str) or not (joints is None or isinstance(joints, Iterable)):
        raise ArgumentError(f"random_tree: joints is {joints!r}; give a sequence of kinds of joints")
    if bodies < 1:
        raise ArgumentError(f"random_tree needs one body or more, {bodies} asked for")
    if not 0.0 <= branching <= 1.0:
        raise ArgumentError(f"branching is {branching}; give a number from 0 (a chain) to 1")
    rng = np.random.default_rng(seed)
    choices: list[Any] = (
        [kind for kind in MAKERS if kind not in ("free", "fixed")] if joints is None else list(joints)
    )
    if not choices:
        raise ArgumentError("joints is empty; name at least one kind of joint")
    builder = ModelBuilder(gravity=rng.uniform(-10.0, 10.0, 3).tolist(), name=f"random_tree_{seed}")
    drawn = [choices[i % len(choices)] for i in rng.permutation(max(bodies, len(choices)))][:bodies]
    for i, kind in enumerate(drawn):
        parent = i - 1 if rng.random() >= branching else int(rng.integers(-1, i))
        joint = kind if isinstance(kind, Joint) else random_joint(rng, kind)
        bounds = [math.inf if c == "quaternion" else 1.0 for c in joint.coordinates] if limits else None
        builder.add_body(
            f"body{i}",
            WORLD_NAME if parent < 0 else f"body{parent}",
            joint,
            f"joint{i}",
            placement=random_placement(rng),
            inertia=random_inertia(rng),
            armature=rng.uniform(0.0, armature, joint.nv).tolist() if armature else 0.0,
            limits=None if bounds is None else Limits(tuple(-b for b in bounds), tuple(bounds)),
        )
    return builder.build()


def _rotation(rng: Generator) -> Mat3:
    """Return a uniformly random rotation, from a normalised quaternion of normal deviates."""
    w, x, y, z = (rng.standard_normal(4)).tolist()
    s = 2.0 / (w * w + x * x + y * y + z * z)
    return Mat3(
        1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
        s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x),
        s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


FIRST_SEED = 2008
"""Link i draws its numbers from seed FIRST_SEED + i, so that GU(n) begins with GU(n - 1)."""


@own_errors
def gu(n: int) -> Model:
    """Return GU(n), a chain of n revolute joints with general parameters (Featherstone 2008 section 10.3).

    Body frames are Denavit-Hartenberg frames with theta = 0 at q = 0.
    """
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MAX_COUNT:
        raise ArgumentError(
            f"gu(n) needs a whole number of joints from 1 to {MAX_COUNT:,}; got {short_repr(n)}"
        )
    rows, inertias = [], []
    for i in range(n):
        rng = np.random.default_rng(FIRST_SEED + i)
        rows.append(
            DHRow(
                a=float(rng.uniform(0.1, 0.4)),
                alpha=float(rng.choice((-1.0, 1.0)) * rng.uniform(0.2, math.pi / 2.0 - 0.2)),
                d=float(rng.choice((-1.0, 1.0)) * rng.uniform(0.1, 0.4)),
            )
        )
        inertias.append(random_inertia(rng))
    return dh_chain(rows, inertias, name=f"gu{n}")

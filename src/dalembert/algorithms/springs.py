"""Springs, tendons and actuators: lengths of paths, tensions, and what they give to joint forces.

With the length l(q) of a path and its row J = dl/dq of the rates, dl/dt = J v, a spring of tension T (Eq. 1
of `model.force_elements`) and an actuator of the force f (Eq. 3 there) have the joint forces

    tau = - J^T T,      tau = J^T f                                                                      (1)

Points are of the model's bodies; q, v and tau are the same for the aligned frames of a tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dalembert.algorithms.aligned import original_model
from dalembert.algorithms.declaration import NO_LOADS, public
from dalembert.algorithms.dense import dot
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.errors import ModelError
from dalembert.model.coupling import joint_sum
from dalembert.model.force_elements import Path, Spring, lines_along, placed_at
from dalembert.model.model import Model
from dalembert.model.topology import WORLD_NAME
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, is_zero, maximum, minimum, select
from dalembert.spatial import Force, Transform, Vec3


class Length(NamedTuple):
    """The length l of a path [m], or a sum of positions of joints, the row J of its rate, and the rate at
    v = 0 that joints have which depend on time."""

    length: Scalar
    row: list[Scalar]
    drift: Scalar = 0.0

    def rate(self, v: Scalars) -> Scalar:
        """Return dl/dt."""
        return dot(self.row, v) + self.drift


class Stretched(NamedTuple):
    """A spring, its stretch x [m] beyond the slack lengths, and its length."""

    spring: Spring
    stretch: Scalar
    path: Length

    @property
    def row(self) -> list[Scalar]:
        """The row J of the rate of its length."""
        return self.path.row

    @property
    def stiffness(self) -> Scalar:
        """The stiffness at this stretch [N/m]: zero where the spring is slack."""
        if self.spring.is_never_slack:
            return self.spring.stiffness
        return select(absolute(self.stretch) > 0.0, self.spring.stiffness, 0.0)

    def tension(self, v: Scalars) -> Scalar:
        """Return T [N]."""
        return self.spring.stiffness * self.stretch + self.spring.damping * self.path.rate(v)


def stretched_springs(tree: Tree, q: Scalars, *, time: Time = None) -> list[Stretched]:
    """Return the springs of a tree that have stiffness or damping, in a configuration."""
    springs = [item for item in tree.springs if not (is_zero(item.stiffness) and is_zero(item.damping))]
    if not springs:
        return []
    lengths = lengths_of(original_model(tree), springs, q, time=time)
    return [
        Stretched(spring, spring.stretch(path.length), path)
        for spring, path in zip(springs, lengths, strict=True)
    ]


def lengths_of(model: Model, springs: Iterable[Spring], q: Scalars, *, time: Time = None) -> list[Length]:
    """Return the lengths of the paths of some springs, and their rows."""
    found, poses = [], None
    for spring in springs:
        if spring.joints:
            found.append(_joint_length(model, spring.joints, q))
            continue
        if poses is None:
            poses = forward_kinematics(model, q, time=time)
        directions, lengths = lines_along(_in_world(model, spring.points, poses))
        weighted = [w * length for w, length in zip(spring.weights, lengths, strict=True)]
        pulls = [line * w for line, w in zip(directions, spring.weights, strict=True)]
        row, drift = _length_row(model, q, spring.points, pulls, poses, time)
        found.append(Length(sum(weighted[1:], weighted[0]), row, drift))
    return found


def _joint_length(model: Model, joints: Iterable[tuple[str, float]], q: Scalars) -> Length:
    """Return a sum of positions of joints, and its row."""
    total = joint_sum(model, joints)
    row: list[Scalar] = [0.0] * model.nv
    for _, place, ratio in total.terms:
        row[place] = ratio
    return Length(total.position(q), row)


def _length_row(
    model: Model, q: Scalars, path: Path, pulls: list[Vec3], poses: PerBody[Transform], time: Time
) -> tuple[list[Scalar], Scalar]:
    """Return J of the length of a path `(nv,)`, the joint forces of forces along its lines, which pull each
    point away from the one before and after it; and its rate at v = 0, the power of those forces there."""
    acting = [Force.zero()] * len(model.bodies)
    forces = [a - b for a, b in zip([Vec3.zero(), *pulls], [*pulls, Vec3.zero()], strict=True)]
    for (name, _), point, force in zip(path, _in_world(model, path, poses), forces, strict=True):
        if name != WORLD_NAME:
            body = model.bodies[name].index
            acting[body] = acting[body] + poses[body].apply(Force(point.cross(force), force))
    joints = [body.jcalc(q, None, time) for body in model.bodies]
    drift: Scalar = 0.0
    if model.time_dependent:
        carried = body_velocities(model, q, [0.0] * model.nv, time=time)
        drift = sum((force.dot(u) for force, u in zip(acting, carried, strict=True)), drift)
    return model.project_forces(PerBody(list(zip(joints, acting, strict=True)))), drift


def _in_world(model: Model, path: Path, poses: PerBody[Transform]) -> list[Vec3]:
    return [
        placed_at(None if name == WORLD_NAME else poses[model.bodies[name]], point) for name, point in path
    ]


def spring_forces(tree: Tree, q: Scalars, v: Scalars, *, time: Time = None) -> list[Scalar]:
    """Return tau `(nv,)` of Eq. (1), of all springs along paths [N m or N]."""
    total: list[Scalar] = [0.0] * tree.nv
    for item in stretched_springs(tree, q, time=time):
        tension = item.tension(v)
        total = [t - j * tension for t, j in zip(total, item.row, strict=True)]
    return total


def stretch_energy(tree: Tree, q: Scalars, *, time: Time = None) -> Scalar:
    """Return the energy stored in springs along paths, sum of k x^2 / 2 [J]."""
    energy: Scalar = 0.0
    for item in stretched_springs(tree, q, time=time):
        energy = energy + 0.5 * item.spring.stiffness * item.stretch * item.stretch
    return energy


@public("kinematics", "q", method="tree", differentiable=True, without=NO_LOADS)
def spring_lengths(tree: Tree, q: Scalars, *, time: Time = None) -> list[Scalar]:
    """Compute the lengths `(…, n_springs)` [m] of the paths of `model.springs`, those of a file's tendons.

    l = sum w |p' - p| over the lines from point to point, or l = sum k q of a path over joints.

    >>> builder = da.ModelBuilder()
    >>> builder.add_body("ball", "world", da.joints.Translation())
    >>> builder.add_spring("rope", [("world", (0, 0, 0)), ("ball", (0, 0, 0))])
    >>> print(da.kinematics.spring_lengths(builder.build(), [3.0, 0.0, 4.0]))
    [5.]
    """
    return [item.length for item in lengths_of(original_model(tree), tree.springs, q, time=time)]


# Actuators


def actuator_lengths(model: Model, q: Scalars, *, time: Time = None) -> list[Length]:
    """Return the length l of each actuator, gear ratios times positions and lengths of paths, and its row."""
    names = {name for actuator in model.actuators for name, _ in actuator.joints}
    springs = [spring for spring in model.springs if spring.name in names]
    paths = dict(zip((item.name for item in springs), lengths_of(model, springs, q, time=time), strict=True))
    found = []
    for actuator in model.actuators:
        joints = [(name, k) for name, k in actuator.joints if name not in paths]
        length, row, drift = _joint_length(model, joints, q)
        for name, k in actuator.joints:
            if name in paths:
                length = length + k * paths[name].length
                row = [x + k * j for x, j in zip(row, paths[name].row, strict=True)]
                drift = drift + k * paths[name].drift
        found.append(Length(length, row, drift))
    return found


def clip_to_range(value: Scalar, ends: tuple[float, float] | None) -> Scalar:
    """Return a value within a range, which may have no end."""
    low, high = ends or (-math.inf, math.inf)
    value = value if low == -math.inf else maximum(value, low)
    return value if high == math.inf else minimum(value, high)


@public(
    "control",
    "q v ctrl",
    method="tree",
    differentiable=True,
    without=NO_LOADS,
    shapes={"ctrl": lambda model: (len(model.actuators),)},
)
def actuator_forces(
    tree: Tree, q: Scalars, v: Scalars, ctrl: Sequence[Scalar], *, time: Time = None
) -> list[Scalar]:
    """Compute the joint forces tau `(…, nv)` [N m or N] of the actuators, for control signals `(…, nu)`.

    tau = J^T f, f = clip(gain u + b0 + b1 l + b2 dl/dt), with the length l of each actuator, gear ratios
    times positions of joints or lengths of tendons, and J = dl/dq. These are MuJoCo's `qfrc_actuator`, before
    it limits the force on a joint (`actuatorfrcrange`).

    >>> builder = da.ModelBuilder()
    >>> builder.add_body("rod", inertia=da.RigidInertia(1.0, (0.5, 0.0, 0.0), (0.0, 1 / 12, 1 / 12)),
    ...                  joint=da.Revolute((0, 1, 0)), joint_name="hinge")
    >>> builder.add_actuator("motor", {"hinge": 50.0}, control=(-1.0, 1.0))
    >>> print(da.control.actuator_forces(builder.build(), [0.0], [0.0], [[0.5], [2.0]]))
    [[25.]
     [50.]]
    """
    model = require_actuators(original_model(tree))
    tau: list[Scalar] = [0.0] * model.nv
    lengths = actuator_lengths(model, q, time=time)
    for actuator, u, path in zip(model.actuators, ctrl, lengths, strict=True):
        b0, b1, b2 = actuator.bias
        force = actuator.gain * clip_to_range(u, actuator.control) + b0 + b1 * path.length + b2 * path.rate(v)
        force = clip_to_range(force, actuator.force)
        tau = [t if is_zero(j) else t + j * force for t, j in zip(tau, path.row, strict=True)]
    return tau


def require_actuators(model: Model) -> Model:
    """Refuse a model without actuators."""
    if not model.actuators:
        raise ModelError(
            f'model "{model.name}" has no actuators; give joint forces or a Servo, or add actuators with '
            "ModelBuilder.add_actuator"
        )
    return model

"""Force elements: springs, dampers and limits along paths, the tendons of a model; actuators; a fluid.

A spring pulls along a path of the length l with the tension

    T = k x + d dl/dt,      x = l - b where l > b,  l - a where l < a,  0 between                          (1)

[a, b] are the lengths between which it is slack: a = b for a usual spring, a = 0 for an elastic rope. The
path leads through points p_i of bodies, or couples joints by their positions q_j:

    l = sum of w_i |p_i+1 - p_i|,     or     l = sum of k_j q_j                                            (2)

The weights w_i are 1, but behind a pulley that divides the tension among its branches.

An actuator has the length l = sum of k_j q_j over its joints and paths, k_j being gear ratios, and the force

    f = gain * u + b_0 + b_1 l + b_2 dl/dt,       u within `control`, f within `force`,                    (3)

which acts on joint j as k_j f. For the path of a spring q_j is its length. A motor has b = 0, a position
servo of stiffness kp and damping kv has gain = kp and b = (0, -kp, -kv), a velocity servo has gain = kv and
b = (0, 0, -kv). These are MuJoCo's.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from dalembert.errors import ModelError, items_of, short_repr
from dalembert.model import checks
from dalembert.model.coupling import joint_sum, require_single_freedoms
from dalembert.model.joints import Joint
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, maximum, sqrt
from dalembert.spatial import Placement, Transform, Vec3

if TYPE_CHECKING:
    from dalembert.model.model import Model

SPRING_VALUES: Final = ("stiffness", "damping", "rest_length")
"""The numbers of a spring that `with_values` and run-time parameters name."""

MIN_SQUARED_LENGTH: Final = 1e-24
"""The least squared distance [m^2] of two points that have a direction: that of 1e-12 m."""

Path = tuple[tuple[str, Vec3], ...]
"""Points [m] in the coordinates of bodies by name, or of the "world"."""


@dataclass(frozen=True, slots=True)
class Spring:
    """A spring and damper along a path by Eqs (1) and (2): stiffness k [N/m], damping d [N s/m], the lengths
    [m] between which it is slack, and the `limits` of its length [m]; of a path over joints in their units.

    A path has `points` and a weight for each line between them, or `joints` with their coefficients.
    """

    name: str
    points: Path
    weights: tuple[float, ...]
    joints: tuple[tuple[str, float], ...]
    stiffness: Scalar
    damping: Scalar
    rest_length: tuple[Scalar, Scalar] | None
    limits: tuple[float, float]

    @property
    def is_never_slack(self) -> bool:
        """True if there is one rest length only."""
        assert self.rest_length is not None
        a, b = self.rest_length
        return a is b or (isinstance(a, float) and isinstance(b, float) and a == b)

    @property
    def is_limited(self) -> bool:
        """True if its length has a limit."""
        return any(map(math.isfinite, self.limits))

    def stretch(self, length: Scalar) -> Scalar:
        """Return x of Eq. (1)."""
        assert self.rest_length is not None
        a, b = self.rest_length
        if self.is_never_slack:
            return length - a
        return maximum(length - b, 0.0) - maximum(a - length, 0.0)


def checked_spring(
    name: str,
    points: Any,
    weights: Any,
    joints: Mapping[str, float],
    stiffness: Any,
    damping: Any,
    rest_length: Any,
    limits: Any,
) -> Spring:
    """Return a spring of finite numbers along two points or more, or along joints."""
    what = f'spring "{checks.valid_name(name, "the name of a spring")}"'
    path = tuple(_checked_point(point, what) for point in items_of(points))
    if not isinstance(joints, Mapping) or not all(map(checks.is_finite, joints.values())):
        raise ModelError(f"{what}: joints is {short_repr(joints)}; give joints with numbers: {{'knee': 1.0}}")
    if bool(path) == bool(joints):
        raise ModelError(f"{what} has {len(path)} points and {len(joints)} joints; give one or the other")
    if len(path) == 1:
        raise ModelError(
            f"{what} has 1 point; give two or more, each the name of a body, of a frame or "
            '"world" and a point there, as in ("hand", (0.0, 0.0, 0.1))'
        )
    lines = max(0, len(path) - 1)
    given = [1.0] * lines if weights is None else items_of(weights)
    if len(given) != lines or not all(checks.is_finite(w) and w >= 0.0 for w in given):
        raise ModelError(
            f"{what}: weights is {short_repr(weights)}; give a number that is not negative for each of the "
            f"{lines} lines from point to point"
        )
    k, d = _not_negative(what, stiffness=stiffness, damping=damping)
    least = 0.0 if path else -math.inf
    slack = None if rest_length is None else _checked_lengths("rest_length", rest_length, least, what)
    ends = (-math.inf, math.inf) if limits is None else _checked_limits(limits, what)
    terms = tuple((joint, float(ratio)) for joint, ratio in joints.items())
    return Spring(name, path, tuple(float(w) for w in given), terms, k, d, slack, ends)


def _checked_point(given: Any, what: str) -> tuple[str, Vec3]:
    pair = items_of(given)
    if len(pair) != 2:
        raise ModelError(f"{what}: {short_repr(given)} is no point; give (name of a body, (x, y, z))")
    name = checks.valid_name(pair[0], f"{what}: the name of a body")
    return name, Vec3(*_numbers(f"{what}: a point [m]", pair[1], 3))


def _checked_lengths(part: str, given: Any, least: float, what: str) -> tuple[float, float]:
    ends = (given, given) if checks.is_finite(given) else tuple(items_of(given))
    if len(ends) != 2 or not all(checks.is_finite(x) for x in ends) or not least <= ends[0] <= ends[1]:
        sign = " that is not negative" if least == 0.0 else ""
        raise ModelError(
            f"{what}: {part} is {short_repr(given)}; give a length [m]{sign}, or the two "
            "lengths between which it is slack, the lesser one first"
        )
    return float(ends[0]), float(ends[1])


def _checked_limits(given: Any, what: str) -> tuple[float, float]:
    ends = tuple(items_of(given))
    numbers = all(isinstance(x, int | float) and not math.isnan(x) for x in ends)
    if len(ends) != 2 or not numbers or not ends[0] <= ends[1]:
        raise ModelError(
            f"{what}: limits is {short_repr(given)}; give the least and the greatest length, which may be "
            "infinite"
        )
    return float(ends[0]), float(ends[1])


def placed_spring(spring: Spring, homes: Mapping[str, tuple[str, Placement | None]], model: Model) -> Spring:
    """Return the spring with points on bodies and a rest length, by default the neutral configuration's.

    `homes`: for each name of a body or frame the body, and where the frame is placed on it.
    """
    what, path = f'spring "{spring.name}"', []
    for name, point in spring.points:
        body, placement = checks.require_known(homes, name, what, "body or frame")
        path.append((body, point if placement is None else placement.transform_point(point)))
    joints = {joint.name: joint.body.joint for joint in model.joints}
    require_single_freedoms([name for name, _ in spring.joints], joints, what)
    placed = replace(spring, points=tuple(path))
    if placed.rest_length is None:
        length = _neutral_length(placed, model)
        placed = replace(placed, rest_length=(length, length))
    return placed


def _neutral_length(spring: Spring, model: Model) -> float:
    q = [x for body in model.bodies if body.dependence is None for x in body.joint.neutral()]
    if spring.joints:
        return float(joint_sum(model, spring.joints).position(q))
    poses = _poses(model, q)
    _, lengths = lines_along([placed_at(poses.get(name), point) for name, point in spring.points])
    return float(sum(w * length for w, length in zip(spring.weights, lengths, strict=True)))


def placed_at(pose: Placement | None, point: Vec3) -> Vec3:
    """Return a point of a body in the world; `pose` of the body, None for the world."""
    return point if pose is None else pose.transform_point(point)


def lines_along(points: Sequence[Vec3]) -> tuple[list[Vec3], list[Scalar]]:
    """Return the unit vectors from each point of a path to the next, and their distances [m]."""
    lines = [b - a for a, b in pairwise(points)]
    lengths: list[Scalar] = [sqrt(maximum(line.dot(line), MIN_SQUARED_LENGTH)) for line in lines]
    return [line * (1.0 / length) for line, length in zip(lines, lengths, strict=True)], lengths


def _poses(tree: Tree, q: Scalars) -> dict[str, Transform]:
    """Return the poses of bodies by name at time zero."""

    def step(body: Any, X: Transform) -> tuple[Transform, Transform]:
        pose = X @ body.jcalc(q, None, 0.0 if body.joint.time_dependent else None).X
        return pose, pose

    poses = tree.outward(step, Transform.identity())
    return {body.name: poses[body] for body in tree.bodies}


def renamed_path(points: Iterable[tuple[str, Vec3]], home: Any) -> list[tuple[str, Vec3]]:
    """Return the points on other bodies; `home` gives the new carrier of a body's frame, and where it is."""
    found = []
    for name, point in points:
        carrier, X = home(name)
        found.append((carrier, point if X is None else X.transform_point(point)))
    return found


@dataclass(frozen=True, slots=True)
class Actuator:
    """One actuator by Eq. (3): its joints or springs with their gear ratios, gain and bias, and its ranges.

    `control`: the range to which the control signal is clipped, `force` [N m or N] that of the force; None:
    no limit.
    """

    name: str
    joints: tuple[tuple[str, float], ...]
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control: tuple[float, float] | None = None
    force: tuple[float, float] | None = None


def checked_actuator(
    name: str, joints: Mapping[str, float], gain: Any, bias: Any, control: Any, force: Any
) -> Actuator:
    """Return an actuator of finite numbers and ranges that are not empty."""
    what = f'actuator "{checks.valid_name(name, "the name of an actuator")}"'
    if not isinstance(joints, Mapping) or not joints:
        raise ModelError(
            f"{what} drives no joint; give joints or springs with their gear ratios, as in {{'knee': 1.0}}"
        )
    for number in (*joints.values(), gain):
        if not checks.is_finite(number):
            raise ModelError(f"{what} holds {number!r}; gear ratios and gain are finite numbers")
    terms = tuple((joint, float(ratio)) for joint, ratio in joints.items())
    b0, b1, b2 = _numbers(f"{what}: bias", bias, 3)
    return Actuator(name, terms, float(gain), (b0, b1, b2), _range(control, what), _range(force, what))


def _range(given: Any, what: str) -> tuple[float, float] | None:
    if given is None:
        return None
    low, high = _numbers(f"{what}: a range", given, 2)
    if low > high:
        raise ModelError(f"{what}: {given!r} is no range; give the lower end first")
    return low, high


def require_fitting(actuator: Actuator, joints: Mapping[str, Joint], springs: Container[str]) -> None:
    """Refuse an actuator of unknown joints, or of joints of several degrees of freedom."""
    driven = [name for name, _ in actuator.joints if name not in springs]
    require_single_freedoms(driven, joints, f'actuator "{actuator.name}"')


# A fluid around the bodies, such as water or air, and the shapes by which it resists their motion.
#
# The fluid has no motion of its own but a uniform wind, and no buoyancy. Each shape stands for a part of a
# body: a box of the given edges, or an ellipsoid of the given half axes, with the coefficients of MuJoCo's
# models of the same names.

COEFFICIENTS: Final = ("blunt drag", "slender drag", "angular drag", "Kutta lift", "Magnus lift")
"""The coefficients of an ellipsoid, in order."""


@dataclass(frozen=True, slots=True)
class DragShape:
    """A part of a body that moves in the fluid, in the frame `placement` on the body.

    `coefficients`: None for a box of the edges `size` [m]; five numbers for an ellipsoid of the half axes
    `size`, with `added_inertia` per density of the fluid: masses [m^3] and moments [m^5] along the axes.
    """

    name: str
    body: str
    placement: Placement
    size: tuple[float, float, float]
    coefficients: tuple[float, ...] | None = None
    added_inertia: tuple[float, ...] = (0.0,) * 6


@dataclass(frozen=True, slots=True)
class Fluid:
    """A fluid of uniform density [kg/m^3], viscosity [Pa s] and wind [m/s], and the shapes it resists."""

    density: float
    viscosity: float
    wind: Vec3
    shapes: tuple[DragShape, ...] = ()


def checked_fluid(density: Any, viscosity: Any, wind: Any) -> Fluid:
    """Return a fluid of finite numbers."""
    rho, beta = _not_negative("set_fluid", density=density, viscosity=viscosity)
    return Fluid(rho, beta, Vec3(*_numbers("set_fluid: wind", wind, 3)))


def checked_drag_shape(
    name: str, body: str, size: Any, placement: Placement, coefficients: Any, added_inertia: Any
) -> DragShape:
    """Return a shape of finite numbers and positive size."""
    what = f'drag shape "{checks.valid_name(name, "the name of a drag shape")}"'
    x, y, z = _numbers(f"{what}: size", size, 3)
    if min(x, y, z) <= 0.0:
        raise ModelError(f"{what} has the size {short_repr(size)}; give three lengths above zero [m]")
    given = (
        None if coefficients is None else _numbers(f"{what}: coefficients", coefficients, len(COEFFICIENTS))
    )
    added = _numbers(f"{what}: added_inertia", added_inertia, 6)
    return DragShape(name, body, placement, (x, y, z), given, added)


def _numbers(what: str, given: Any, count: int) -> tuple[float, ...]:
    found = items_of(given)
    if len(found) != count or not all(checks.is_finite(x) for x in found):
        raise ModelError(f"{what} is {short_repr(given)}; give {count} finite numbers")
    return tuple(float(x) for x in found)


def _not_negative(what: str, **given: Any) -> tuple[float, ...]:
    """Return finite numbers that are not negative."""
    for name, number in given.items():
        if not checks.is_finite(number) or number < 0.0:
            raise ModelError(
                f"{what}: {name} is {short_repr(number)}; give a finite number that is not negative"
            )
    return tuple(float(number) for number in given.values())

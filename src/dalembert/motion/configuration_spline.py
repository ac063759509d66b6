"""B-splines of configurations: weights, and every joint on its own manifold.

Splines are of the fifth degree with clamped ends. K knots divide [0, T] into K - 1 spans of the length h. On
each of them six of the K + 4 control values count:

    x(t) = sum_i B_i(t) c_i,                                                                        (1)

four times continuously differentiable. At the ends all knots fall together, so that end values and rates
follow from the nearest control values alone, and these from the end values: with the unit of time h

    x = c_0,    x' = 5 (c_1 - c_0),    x'' = 10 (c_2 - c_1) - 20 (c_1 - c_0),                       (2)

and the same from the other end with time reversed. Values and rates given at both ends leave K control
values.

Coordinates whose velocity is their rate are splines themselves, and so are the positions of planar and free
joints. Rotations are cumulative B-splines (Kim, Kim and Shin 1995): with d_j = log(R_{j-1}^T R_j) between
control rotations and the cumulative weights s_j = B_j + B_{j+1} + …

    R(t) = R_0 exp(s_1 d_1) exp(s_2 d_2) …                                                          (3)

and, factor by factor, with A = exp(s d), in body coordinates,

    omega <- A^T omega + s' d                                                                       (4)
    alpha <- A^T alpha + s' (A^T omega) x d + s'' d                                                 (5)

A control rotation is R_k = anchor_k exp(phi_k); the anchors stay and the phi_k vary. So the control values of
a configuration are nv numbers, in the order of v: phi for rotations, the position in parent coordinates where
v holds a velocity in body coordinates. At a clamped end (3) begins or ends with a whole control rotation, and
omega and alpha are those of a plain spline with the differences d: ends are met exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.dense import dot
from dalembert.errors import ArgumentError, ShapeError
from dalembert.model.joints import Composite, Free, Joint, Planar, Spherical
from dalembert.model.model import Model
from dalembert.motion.differentiation import Array, scipy_module
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Vec3
from dalembert.spatial.exponential import quaternion_difference, quaternion_exp, so3_right_jacobian_inverse
from dalembert.spatial.rotations import (
    quaternion_conjugate,
    quaternion_product,
    rotation_about_axis,
    rotation_of_quaternion,
)

SPLINE_DEGREE: Final = 5
ORDER: Final = SPLINE_DEGREE + 1
"""Number of control values that contribute at one time."""

MIN_KNOTS: Final = 4
"""With fewer knots there is no freedom left if accelerations are given at both ends."""


class SplinePoints(NamedTuple):
    """The times (m,) [s] on a spline, with the control values that contribute and their weights.

    `first (m,)`: the first of six contributing control values; `weights (m, 3, 6)` in x, x' [1/s], x''
    [1/s^2].
    """

    time: Array
    first: npt.NDArray[np.intp]
    weights: Array

    @property
    def window(self) -> npt.NDArray[np.intp]:
        """The indices (m, 6) of the contributing control values."""
        return self.first[:, None] + np.arange(ORDER)

    def matrix(self, order: int, count: int) -> Array:
        """Return the matrix (m, count) from all control values to the derivative of this order."""
        rows = np.zeros((len(self.time), count))
        np.put_along_axis(rows, self.window, self.weights[:, order], axis=1)
        return rows


@final
@dataclass(frozen=True)
class Knots:
    """`count` evenly spaced knots over a `duration` [s], both ends included."""

    count: int
    duration: float

    @property
    def span(self) -> float:
        """The time h between two knots [s]."""
        return self.duration / (self.count - 1)

    @property
    def controls(self) -> int:
        """The number of control values."""
        return self.count + SPLINE_DEGREE - 1

    def points(self, time: Array) -> SplinePoints:
        """Return the weights of (1) at times (m,) in [0, duration] [s]."""
        u = np.clip(np.asarray(time, float) / self.span, 0.0, self.count - 1.0)
        first = np.minimum(np.floor(u), self.count - 2).astype(np.intp)
        places = np.pad(np.arange(float(self.count)), SPLINE_DEGREE, "edge")
        interpolate = scipy_module("interpolate", "transitions are found")
        basis = interpolate.BSpline(places, np.eye(self.controls), SPLINE_DEGREE)
        window = first[:, None] + np.arange(ORDER)
        weights = [np.take_along_axis(basis(u, k), window, axis=1) / self.span**k for k in range(3)]
        return SplinePoints(np.asarray(time, float), first, np.stack(weights, axis=1))

    def gauss_points(self, each: int) -> tuple[SplinePoints, Array]:
        """Return `each` Gauss-Legendre points on each span, and their quadrature weights (m,) [s]."""
        nodes, weights = np.polynomial.legendre.leggauss(each)
        time = (np.arange(self.count - 1)[:, None] + 0.5 * (nodes + 1.0)) * self.span
        return self.points(time.ravel()), np.tile(0.5 * self.span * weights, self.count - 1)

    def smoothest_controls(self, start: Array, end: Array) -> Array:
        """Return control values (K + 4, n) of the spline with these ends that minimises the integral of
        x''^2.

        `start` and `end`: x, x' and optionally x'', (2 or 3, n). Without x'' the result is the cubic through
        both ends.
        """
        controls = np.zeros((self.controls, start.shape[1]))
        controls[: len(start)] = np.cumsum([start[0], *end_steps(self.span, start)], axis=0)
        controls[::-1][: len(end)] = np.cumsum([end[0], *end_steps(-self.span, end)], axis=0)
        points, weights = self.gauss_points(3)  # exact: x'' is of the third degree
        rows = points.matrix(2, len(controls)) * np.sqrt(weights)[:, None]
        free = slice(len(start), len(controls) - len(end))
        controls[free] = np.linalg.lstsq(rows[:, free], -rows @ controls, rcond=None)[0]
        return controls


def end_steps(h: float, given: Array) -> list[Array]:
    """Return c_1 - c_0 and, where x'' is given, c_2 - c_1 from x, x' and x'' by (2); -h for the last end."""
    first = h / SPLINE_DEGREE * given[1]
    return [first, *(2.0 * first + h * h / 10.0 * second for second in given[2:])]


Rows: TypeAlias = Sequence[Sequence[Scalar]]
"""Three rows, of x, x' and x'': weights of the control values, or the shift that is added to splines."""

Rates: TypeAlias = tuple[list[Scalar], list[Scalar], list[Scalar]]
"""q, v and a."""

_AXES = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))


class Controls(NamedTuple):
    """Control values (n, nv) of a motion, and the anchors (n, rotations, 4) of its control rotations."""

    values: Array
    anchors: Array

    def arguments(self, points: SplinePoints) -> list[Array]:
        """Return the arguments of `ConfigurationSpline.motion` at all points, for values (…, n, nv)."""
        window = points.window
        return [self.values[..., window, :], self.anchors[window], points.weights]


class _Part(NamedTuple):
    """A joint or a member of a composite joint, with its slices of q and v and its index among rotations."""

    joint: Joint
    q: slice
    v: slice
    turn: int


@final
class ConfigurationSpline:
    """Splines of a model's configurations."""

    def __init__(self, model: Model, knots: Knots) -> None:
        self.model, self.knots = model, knots
        self.parts: list[_Part] = []
        turns = 0
        for body in model.bodies:
            if body.v_slice.stop == body.v_slice.start:
                continue
            for joint, q, v in _members(body.joint, body.q_slice.start, body.v_slice.start):
                if not isinstance(joint, Spherical | Free | Planar) and not _is_plain(joint):
                    raise ArgumentError(
                        f'joint "{body.joint_name}" ({joint.kind}) has velocities that are not the rates of '
                        "its coordinates; splines know spherical, free, planar joints and plain coordinates"
                    )
                self.parts.append(_Part(joint, slice(q, q + joint.nq), slice(v, v + joint.nv), turns))
                turns += isinstance(joint, Spherical | Free)
        self.turns = max(turns, 1)
        """The rows of anchors, one for each rotation; without rotations, one that is not used."""
        plain = [part for part in self.parts if _is_plain(part.joint)]
        self.plain = np.array([k for part in plain for k in range(part.v.start, part.v.stop)], np.intp)
        """Indices in v of the coordinates that are splines themselves."""
        self.plain_q = np.array([k for part in plain for k in range(part.q.start, part.q.stop)], np.intp)
        """Indices of these coordinates in q."""

    def inputs(self, *, shift: bool) -> dict[str, int | tuple[int, ...]]:
        """Return the shapes of the arguments of `motion`, with or without a shift."""
        rows = ORDER + 3 * shift
        return {"values": (rows, self.model.nv), "anchors": (ORDER, self.turns, 4), "weights": (3, ORDER)}

    def motion(self, values: Rows, anchors: Sequence[Any], weights: Rows) -> Rates:
        """Return q, v, a at one time from control values (6, nv), anchors (6, rotations, 4), weights (3, 6).

        Three more rows of `values` are a shift: numbers delta, delta' and delta'' that are added to splines,
        in the order of v; rotations are turned further about their axes x, y and z, R exp(delta_x x)
        exp(delta_y y) exp(delta_z z).
        """
        nq, nv = self.model.nq, self.model.nv
        q, v, a = [0.0] * nq, [0.0] * nv, [0.0] * nv
        for part in self.parts:
            own = [row[part.v] for row in values]
            q[part.q], v[part.v], a[part.v] = _motion(part, own, anchors, weights)
        return q, v, a

    def by_shift(self, values: Rows, anchors: Sequence[Any], weights: Rows, K: Rows) -> list[list[Scalar]]:
        """Return K dv/d(delta') (n, nv) for rows K (n, nv) of velocity constraints; arguments of `motion`."""
        result: list[list[Scalar]] = [[0.0] * self.model.nv for _ in K]
        for part in self.parts:
            # With splines at rest v is dv/d(delta') delta'.
            still = [weights[0], *[[0.0] * ORDER] * 2]
            own = [row[part.v] for row in values[: ORDER + 1]]
            for j, rate in enumerate(np.eye(part.joint.nv).tolist()):
                _, column, _ = _motion(part, [*own, rate, [0.0] * part.joint.nv], anchors, still)
                for row, given in zip(result, K, strict=True):
                    row[part.v.start + j] = dot(given[part.v], column)
        return result

    def sample(self, controls: Controls, points: SplinePoints) -> tuple[Array, Array, Array]:
        """Return q (m, nq), v and a (m, nv) at the times of the points."""
        count = len(points.time)
        values, anchors, weights = (
            [list(row) for row in np.moveaxis(array, 0, -1)] for array in controls.arguments(points)
        )
        found = self.motion(values, anchors, weights)
        columns = (np.array([np.broadcast_to(x, count) for x in xs]).reshape(-1, count) for xs in found)
        q, v, a = (np.ascontiguousarray(rows.T) for rows in columns)
        return q, v, a

    def between(self, start: Sequence[Array], end: Sequence[Array]) -> Controls:
        """Return the smoothest splines between two states (q, v) or (q, v, a), rotations in log R_0^T R."""
        anchors = np.tile([1.0, 0.0, 0.0, 0.0], (self.knots.controls, self.turns, 1))
        controls = Controls(np.zeros((self.knots.controls, self.model.nv)), anchors)
        for part in self.parts:
            first, last = (_rates(part, *state) for state in (start, end))
            controls.values[:, part.v] = self.knots.smoothest_controls(first, last)
            if isinstance(part.joint, Spherical | Free):
                at = 3 if isinstance(part.joint, Free) else 0
                ends = [[float(x) for x in state[0][part.q][at : at + 4]] for state in (start, end)]
                controls.values[:, part.v][:, :3] = 0.0
                controls.anchors[:, part.turn] = _turns(self.knots, ends, first[:, :3], last[:, :3])
        return controls

    def bounds(self, start: Array, end: Array, limits: bool | tuple[Any, Any]) -> tuple[Array, Array]:
        """Return the bounds (nv,) of control values by limits of joints (True), none, or two arrays (nq,)."""
        model = self.model
        lower, upper = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
        low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
        if limits is True:
            for body in model.bodies:
                if body.q_slice.stop > body.q_slice.start:
                    low[body.q_slice], high[body.q_slice] = body.limits.lower, body.limits.upper
        elif limits is not False:
            given = [np.asarray(bound, float) for bound in limits]
            if [bound.shape for bound in given] != [(model.nq,)] * 2:
                raise ShapeError(
                    f"transition: limits are True, False or two arrays of the shape ({model.nq},)"
                )
            low, high = given
            if not (low <= high).all():
                raise ArgumentError("transition: a lower limit is not below its upper limit")
        lower[self.plain] = np.minimum(low, np.minimum(start, end))[self.plain_q]
        upper[self.plain] = np.maximum(high, np.maximum(start, end))[self.plain_q]
        return lower, upper


def _members(joint: Joint, q: int, v: int) -> Iterator[tuple[Joint, int, int]]:
    """Yield a joint with its first index in q and v, or the members of a composite joint."""
    if not isinstance(joint, Composite):
        yield joint, q, v
        return
    for member in joint.joints:
        yield from _members(member, q, v)
        q, v = q + member.nq, v + member.nv


def _is_plain(joint: Joint) -> bool:
    """Return whether dq/dt = v, tested at one generic position."""
    if joint.nq != joint.nv:
        return False
    q, v = [0.3 + 0.1 * k for k in range(joint.nq)], [0.7 - 0.2 * k for k in range(joint.nv)]
    return np.array_equal(joint.position_rate(q, v), v)


def _motion(part: _Part, own: list[Any], anchors: Sequence[Any], weights: Rows) -> Rates:
    """Return q, v and a of one joint from its own control values and shift."""
    joint, values, shift = part.joint, own[:ORDER], own[ORDER:]
    if isinstance(joint, Spherical | Free):
        turns = [row[part.turn] for row in anchors]
        turn, omega, alpha = _turning([row[:3] for row in values], turns, weights, shift)
    if isinstance(joint, Spherical):
        return turn, list(omega), list(alpha)
    x, rate, second = ([dot(row, column) for column in zip(*values)] for row in weights)
    if shift:
        x, rate, second = (
            [a + b for a, b in zip(plain, more, strict=True)]
            for plain, more in zip((x, rate, second), shift, strict=True)
        )
    if isinstance(joint, Free):
        R = rotation_of_quaternion(turn)
        velocity, acceleration = _in_body(R, omega, Vec3(*rate[3:]), Vec3(*second[3:]))
        return [*x[3:], *turn], [*omega, *velocity], [*alpha, *acceleration]
    if isinstance(joint, Planar):
        omega, R = Vec3(0.0, 0.0, rate[0]), rotation_about_axis(2, x[0])
        flat = [Vec3(along[1], along[2], 0.0) for along in (rate, second)]
        velocity, acceleration = _in_body(R, omega, *flat)
        linear = [velocity.x, velocity.y], [acceleration.x, acceleration.y]
        return [*x[1:], x[0]], [rate[0], *linear[0]], [second[0], *linear[1]]
    return x, rate, second


def _turning(
    values: list[Any], anchors: list[Any], weights: Rows, shift: Rows
) -> tuple[list[Scalar], Vec3, Vec3]:
    """Return the quaternion, omega and alpha by (3), (4) and (5)."""
    controls = [
        quaternion_product(anchor, quaternion_exp(Vec3(*phi))) for anchor, phi in zip(anchors, values)
    ]
    turn = controls[0]
    omega = alpha = Vec3.zero()
    for j in range(1, len(controls)):
        s, rate, second = (sum(row[j:], 0.0) for row in weights)
        d = quaternion_difference(controls[j - 1], controls[j])
        turn, omega, alpha = _multiply_exponential(turn, omega, alpha, d, s, rate, second)
    for axis, own in zip(_AXES, zip(*shift)):
        turn, omega, alpha = _multiply_exponential(turn, omega, alpha, axis, *own)
    return turn, omega, alpha


def _multiply_exponential(
    turn: list[Scalar], omega: Vec3, alpha: Vec3, d: Vec3, s: Scalar, rate: Scalar, second: Scalar
) -> tuple[list[Scalar], Vec3, Vec3]:
    """Multiply a rotation by one more factor exp(s d); return it with its rates, by (4) and (5)."""
    factor = quaternion_exp(d * s)
    A = rotation_of_quaternion(factor)
    omega, alpha = A.transposed_times(omega), A.transposed_times(alpha)
    alpha = alpha + omega.cross(d) * rate + d * second  # (5), with omega of (4) before the sum
    return quaternion_product(turn, factor), omega + d * rate, alpha


def _in_body(R: Mat3, omega: Vec3, rate: Vec3, second: Vec3) -> tuple[Vec3, Vec3]:
    """Return v = R^T p' and dv/dt = R^T p'' - omega x v."""
    velocity = R.transposed_times(rate)
    return velocity, R.transposed_times(second) - omega.cross(velocity)


def _rates(part: _Part, q: Array, v: Array, a: Array | None = None) -> Array:
    """Return x, x' and x'' (2 or 3, nv) of a joint's splines at an end; of rotations 0, omega, alpha."""
    joint, x, rates = part.joint, q[part.q], [row[part.v] for row in (v, a) if row is not None]
    if not isinstance(joint, Free | Planar):
        return np.array([np.zeros(3) if isinstance(joint, Spherical) else x, *rates])
    if isinstance(joint, Free):
        size, angle = 3, np.zeros(3)
        R = np.array(rotation_of_quaternion(list(x[3:])).to_list(), float)
        turned = np.cross(rates[0][:3], rates[0][3:])
    else:
        size, angle = 2, x[2:]
        R = np.array(rotation_about_axis(2, x[2]).to_list(), float)[:2, :2]
        turned = rates[0][0] * np.array([-rates[0][2], rates[0][1]])
    linear = [row[-size:] for row in rates]
    positions = [x[:size], R @ linear[0], *(R @ (row + turned) for row in linear[1:])]
    return np.hstack([[angle, *(row[:-size] for row in rates)], positions])


def _turns(knots: Knots, ends: Sequence[list[float]], start: Array, end: Array) -> Array:
    """Return control rotations (n, 4) between two quaternions with given omega, and alpha, at the ends."""
    start_q, end_q = ends
    phi = quaternion_difference(start_q, end_q)
    last = np.array([list(phi), list(so3_right_jacobian_inverse(phi) @ Vec3(*end[1]))], float)
    vectors = knots.smoothest_controls(np.array([np.zeros(3), start[1]]), last)
    turns = np.array([quaternion_product(start_q, quaternion_exp(Vec3(*row))) for row in vectors], float)
    h = knots.span
    for inward, length, first, rates in ((turns, h, start_q, start), (turns[::-1], -h, end_q, end)):
        inward[0] = first
        for k, step in enumerate(_steps(length, rates)):
            inward[k + 1] = quaternion_product(inward[k], quaternion_exp(step))
    return turns


def _steps(h: float, given: Array) -> list[Vec3]:
    """Return the first one or two turns from an end inward, each in the coordinates of the one before."""
    first, *others = (Vec3(*step) for step in end_steps(h, given))
    if h < 0.0:
        # Seen from the start the second turn is in the coordinates after the first already; from the end it
        # is d in the end's coordinates that (5) speaks of.
        R = rotation_of_quaternion(quaternion_conjugate(quaternion_exp(first)))
        others = [R @ step for step in others]
    return [first, *others]

"""B-splines of configurations: every joint on its own manifold.

Coordinates whose velocity is their rate are splines themselves, and so are the positions of planar and free
joints. Rotations are cumulative B-splines (Kim, Kim and Shin 1995): with d_j = log(R_{j-1}^T R_j) between
control rotations and the cumulative weights s_j = B_j + B_{j+1} + …

    R(t) = R_0 exp(s_1 d_1) exp(s_2 d_2) …                                                           (1)

and, factor by factor, with A = exp(s d), in body coordinates,

    omega <- A^T omega + s' d                                                                        (2)
    alpha <- A^T alpha + s' (A^T omega) x d + s'' d                                                  (3)

A control rotation is R_k = anchor_k exp(phi_k); the anchors stay and the phi_k vary. So the control values of
a configuration are nv numbers, in the order of v: phi for rotations, the position in parent coordinates where
v holds a velocity in body coordinates. At a clamped end (1) begins or ends with a whole control rotation, and
omega and alpha are those of a plain spline with the differences d: ends are met exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dalembert.errors import ArgumentError
from dalembert.model.joints import Composite, Free, Joint, Planar, Spherical
from dalembert.model.model import Model
from dalembert.motion.bspline import ORDER, SPLINE_DEGREE, SplinePoints, second_step, smoothest_controls
from dalembert.scalar import Scalar
from dalembert.spatial import Mat3, Vec3
from dalembert.spatial.exponential import quaternion_difference, quaternion_exp, so3_right_jacobian_inverse
from dalembert.spatial.rotations import (
    quaternion_conjugate,
    quaternion_product,
    rotation_about_axis,
    rotation_of_quaternion,
)

__all__ = ["ConfigurationSpline", "Controls"]

Array = npt.NDArray[np.float64]
Weights: TypeAlias = Sequence[Sequence[Scalar]]
"""Weights of the control values in x, x' and x''."""


Shift: TypeAlias = Sequence[Sequence[Scalar]]
"""Numbers delta, delta' and delta'' that are added to splines."""

_AXES = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))


class Controls(NamedTuple):
    """Control values (n, nv) of a motion, and the anchors (n, rotations, 4) of its control rotations."""

    values: Array
    anchors: Array


class _Part(NamedTuple):
    """A joint or a member of a composite joint, with its slices of q and v and its index among rotations."""

    joint: Joint
    q: slice
    v: slice
    turn: int


@final
class ConfigurationSpline:
    """Splines of a model's configurations."""

    def __init__(self, model: Model) -> None:
        self.model = model
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
        """Rows of anchors: one a rotation; where there is none, one that nothing uses."""
        plain = [range(part.v.start, part.v.stop) for part in self.parts if _is_plain(part.joint)]
        self.plain = np.array([k for places in plain for k in places], np.intp)
        """Indices in v of the coordinates that are splines themselves."""
        places_q = [range(p.q.start, p.q.stop) for p in self.parts if _is_plain(p.joint)]
        self.plain_q = np.array([k for places in places_q for k in places], np.intp)
        """Indices of these coordinates in q."""

    def motion(
        self,
        values: Sequence[Sequence[Scalar]],
        anchors: Sequence[Any],
        weights: Weights,
        shift: Shift | None = None,
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        """Return q, v, a at one time from control values (6, nv), anchors (6, rotations, 4), weights (3, 6).

        `shift` (3, nv): numbers delta, delta' and delta'' that are added to splines, in the order of v;
        rotations are turned further about their axes x, y and z, R exp(delta_x x) exp(delta_y y)
        exp(delta_z z).
        """
        q: list[Scalar] = [0.0] * self.model.nq
        v: list[Scalar] = [0.0] * self.model.nv
        a: list[Scalar] = [0.0] * self.model.nv
        for part in self.parts:
            own_shift = None if shift is None else [row[part.v] for row in shift]
            q[part.q], v[part.v], a[part.v] = _motion(
                part.joint, *_own(part, values, anchors), weights, own_shift
            )
        return q, v, a

    def by_shift(
        self,
        values: Sequence[Sequence[Scalar]],
        anchors: Sequence[Any],
        weights: Weights,
        shift: Sequence[Scalar],
        K: Sequence[Sequence[Scalar]],
    ) -> list[list[Scalar]]:
        """Return K dv/d(delta') (n, nv) for rows K (n, nv) of velocity constraints, at a shift delta (nv)."""
        result: list[list[Scalar]] = [[0.0] * self.model.nv for _ in K]
        for part in self.parts:
            own, turns = _own(part, values, anchors)
            size = part.joint.nv
            still = [[0.0] * ORDER] * 2
            for j in range(size):
                rate = [1.0 if i == j else 0.0 for i in range(size)]
                moved = [list(shift[part.v]), rate, [0.0] * size]
                # With splines at rest v is dv/d(delta') delta'.
                _, column, _ = _motion(part.joint, own, turns, [weights[0], *still], moved)
                for row, given in zip(result, K, strict=True):
                    row[part.v.start + j] = _sum(given[part.v], column)
        return result

    def sample(self, controls: Controls, points: SplinePoints) -> tuple[Array, Array, Array]:
        """Return q (m, nq), v and a (m, nv) at the times of the points."""
        count = len(points.time)
        window = points.first[:, None] + np.arange(ORDER)
        values = np.moveaxis(controls.values[window], 0, -1)
        anchors = np.moveaxis(controls.anchors[window], 0, -1)
        found = self.motion(
            [list(row) for row in values],
            [list(row) for row in anchors],
            list(np.moveaxis(points.weights, 0, -1)),
        )
        q, v, a = (np.array([np.broadcast_to(x, count) for x in xs]).reshape(-1, count).T for xs in found)
        return np.ascontiguousarray(q), np.ascontiguousarray(v), np.ascontiguousarray(a)

    def between(self, knots: int, duration: float, start: Sequence[Array], end: Sequence[Array]) -> Controls:
        """Return an initial motion between two states (q, v) or (q, v, a): the smoothest splines, for
        rotations in the rotation vector relative to the start.
        """
        h = duration / (knots - 1)
        count = knots + SPLINE_DEGREE - 1
        controls = Controls(
            np.zeros((count, self.model.nv)), np.tile([1.0, 0.0, 0.0, 0.0], (count, self.turns, 1))
        )
        for part in self.parts:
            first, last = (_rates(part, *state) for state in (start, end))
            controls.values[:, part.v] = smoothest_controls(knots, duration, first, last)
            if isinstance(part.joint, Spherical | Free):
                at = 3 if isinstance(part.joint, Free) else 0
                ends = [[float(x) for x in state[0][part.q][at : at + 4]] for state in (start, end)]
                controls.values[:, part.v][:, :3] = 0.0
                controls.anchors[:, part.turn] = _turns(knots, duration, h, ends, first[:, :3], last[:, :3])
        return controls


def _own(part: _Part, values: Sequence[Any], anchors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the control values of a part, and the anchors of its rotation."""
    turns = [row[part.turn] for row in anchors] if isinstance(part.joint, Spherical | Free) else []
    return [row[part.v] for row in values], turns


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


def _motion(
    joint: Joint, values: list[Any], anchors: list[Any], weights: Weights, shift: Shift | None = None
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    if isinstance(joint, Spherical):
        turn, omega, alpha = _turning(values, anchors, weights, shift)
        return turn, list(omega), list(alpha)
    x, rate, second = ([_sum(row, [own[k] for own in values]) for k in range(joint.nv)] for row in weights)
    if shift is not None:
        x, rate, second = (
            [a + b for a, b in zip(plain, more, strict=True)]
            for plain, more in zip((x, rate, second), shift, strict=True)
        )
    if isinstance(joint, Free):
        turn, omega, alpha = _turning([own[:3] for own in values], anchors, weights, shift)
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
    values: list[Any], anchors: list[Any], weights: Weights, shift: Shift | None
) -> tuple[list[Scalar], Vec3, Vec3]:
    """Return the quaternion, omega and alpha by (1), (2) and (3)."""
    controls = [
        quaternion_product(anchor, quaternion_exp(Vec3(*phi))) for anchor, phi in zip(anchors, values)
    ]
    turn = controls[0]
    omega = alpha = Vec3.zero()
    for j in range(1, len(controls)):
        s, rate, second = (_total(row[j:]) for row in weights)
        d = quaternion_difference(controls[j - 1], controls[j])
        turn, omega, alpha = _multiply_exponential(turn, omega, alpha, d, s, rate, second)
    for axis, own in zip(_AXES, zip(*shift) if shift is not None else ()):
        turn, omega, alpha = _multiply_exponential(turn, omega, alpha, axis, *own)
    return turn, omega, alpha


def _multiply_exponential(
    turn: list[Scalar], omega: Vec3, alpha: Vec3, d: Vec3, s: Scalar, rate: Scalar, second: Scalar
) -> tuple[list[Scalar], Vec3, Vec3]:
    """Multiply a rotation by one more factor exp(s d); return it with its rates, by (2) and (3)."""
    factor = quaternion_exp(d * s)
    A = rotation_of_quaternion(factor)
    omega, alpha = A.transposed_times(omega), A.transposed_times(alpha)
    alpha = alpha + omega.cross(d) * rate + d * second  # (3), with omega of (2) before the sum
    return quaternion_product(turn, factor), omega + d * rate, alpha


def _in_body(R: Mat3, omega: Vec3, rate: Vec3, second: Vec3) -> tuple[Vec3, Vec3]:
    """Return v = R^T p' and dv/dt = R^T p'' - omega x v."""
    velocity = R.transposed_times(rate)
    return velocity, R.transposed_times(second) - omega.cross(velocity)


def _rates(part: _Part, q: Array, v: Array, a: Array | None = None) -> Array:
    """Return x, x' and x'' (2 or 3, nv) of a joint's splines at an end; for rotations zeros, omega and
    alpha.
    """
    joint = part.joint
    own = [q[part.q], v[part.v]] + ([] if a is None else [a[part.v]])
    if isinstance(joint, Spherical):
        own[0] = np.zeros(3)
    if not isinstance(joint, Free | Planar):
        return np.array(own)
    if isinstance(joint, Free):
        position, R = own[0][:3], _matrix(rotation_of_quaternion(list(own[0][3:])))
        angular = [np.zeros(3)] + [row[:3] for row in own[1:]]
        linear = [row[3:] for row in own[1:]]
        turned = np.cross(own[1][:3], own[1][3:])
    else:
        position, R = own[0][:2], _matrix(rotation_about_axis(2, own[0][2]))[:2, :2]
        angular = [own[0][2:]] + [row[:1] for row in own[1:]]
        linear = [row[1:] for row in own[1:]]
        turned = own[1][0] * np.array([-own[1][2], own[1][1]])
    rows = [position, R @ linear[0]] + ([] if a is None else [R @ (linear[1] + turned)])
    return np.hstack([np.array(angular), np.array(rows)])


def _turns(
    knots: int, duration: float, h: float, ends: Sequence[list[float]], start: Array, end: Array
) -> Array:
    """Return control rotations (n, 4) from one quaternion to another with given omega, and optionally alpha,
    at the ends.
    """
    start_q, end_q = ends
    phi = quaternion_difference(start_q, end_q)
    last = np.array([list(phi), list(so3_right_jacobian_inverse(phi) @ Vec3(*end[1]))], float)
    vectors = smoothest_controls(knots, duration, np.array([np.zeros(3), start[1]]), last)
    turns = np.array([quaternion_product(start_q, quaternion_exp(Vec3(*row))) for row in vectors], float)
    forward, backward = _steps(h, start), _steps(-h, end)
    turns[0] = start_q
    for k, step in enumerate(forward):
        turns[k + 1] = quaternion_product(turns[k], quaternion_exp(step))
    turns[-1] = end_q
    for k, step in enumerate(backward):
        turns[-2 - k] = quaternion_product(turns[-1 - k], quaternion_exp(step))
    return turns


def _steps(h: float, given: Array) -> list[Vec3]:
    """Return the first one or two rotation steps from an end inward, each in the coordinates of the step
    before.
    """
    first = h / SPLINE_DEGREE * given[1]
    steps = [Vec3(*first)]
    if len(given) == 3:
        second = Vec3(*second_step(h, first, given[2]))
        # Seen from the start the second turn is in the coordinates after the first already; from the end it
        # is d in the end's coordinates that (3) speaks of.
        steps.append(second if h > 0.0 else _rotate_back(steps[0], second))
    return steps


def _rotate_back(first: Vec3, second: Vec3) -> Vec3:
    inverse = quaternion_conjugate(quaternion_exp(first))
    turned: Vec3 = rotation_of_quaternion(inverse) @ second
    return turned


def _matrix(R: Mat3) -> Array:
    return np.array(R.to_list(), np.float64)


def _sum(weights: Sequence[Scalar], values: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for weight, value in zip(weights, values, strict=True):
        total = total + weight * value
    return total


def _total(values: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for value in values:
        total = total + value
    return total

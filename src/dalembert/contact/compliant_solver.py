"""The velocities after a step with compliant contact; see `compliant_step` for the equations.

With eta of before, or of the first solve, known: a point presses or it does not (Eq. 1), and friction is a
share s = min(1, mu gamma_n / |gamma_t|) of what would stop the slip (Eq. 2). With both held, impulses are
linear in the unknown velocities,

    gamma = gamma_0 - G u,    G = k_n n n^T + s k_t (1 - n n^T)                                          (5)

and (A + J^T G J) eta = p + J^T gamma_0: bilateral springs and dampers, which are passive. Friction as a
share, not as a force of given size, cannot reverse the slip that it opposes.

Impulses by (5) at the second eta are then cut to what contact can do. Where cutting would let contact give
more energy than its springs release, all of them are shortened: with P = J^T gamma and B = A with the joints'
terms, the work of a share s is b s + a s^2 / 2, a = P . B^-1 P, b = P . v_free. Overlaps of joint limits and
open loops are mended by a displacement, as in `newton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.algorithms.dense import dot
from dalembert.contact.conjugate import solved
from dalembert.contact.costs import JointDrive, JointLimit, Point
from dalembert.contact.curvature import factor, total_curvature
from dalembert.contact.gauss import GaussProblem
from dalembert.scalar import Scalar, is_zero, maximum, minimum, select, sqrt
from dalembert.spatial import SymMat3, Vec3

__all__ = ["CompliantSolution", "Yielding", "solve_compliant"]

EXCEEDED = 1e-5
"""What a step mends [rad, m] of a limit that counts as exceeded."""

ACCURACY = 1e-7
"""What the linear solves may leave of p, where bodies of points are chosen as the program runs."""

SLOW = 1e-3
"""The speed [rad/s, m/s] up to which a joint rests at a limit that it exceeds."""


class CompliantSolution(NamedTuple):
    """v, the mending displacement of v's variables, impulses on the points' second bodies along world axes,
    and the work of contact."""

    v: list[Scalar]
    mend: list[Scalar]
    impulses: list[Vec3]
    work: Scalar


@final
@dataclass(frozen=True, slots=True)
class Yielding:
    """A point on surfaces that yield: its gap [m] as far as it counts, the patch x [m], K, K_t, D_t, the
    normal impulse [N s] that it bore in the step before, and the overlap [m] that will not count in the next
    one."""

    point: Point
    gap: Scalar
    x: Vec3
    stiffness: Scalar
    friction_stiffness: Scalar
    friction_damping: Scalar
    bore: Scalar
    excess: Scalar

    def spring(self) -> Scalar:
        """The normal impulse of the spring alone."""
        return self.point.normal.dot(self.point.expected)

    def patch_after(self, impulse: Vec3, dt: Scalar) -> Vec3:
        """x+ of Eq. (4)."""
        n = self.point.normal
        moved = self.x * self.friction_damping - (impulse - n * n.dot(impulse))
        after: Vec3 = moved * (1.0 / (self.friction_damping + dt * self.friction_stiffness))
        return after

    def released(self, u: Vec3, impulse: Vec3, dt: Scalar) -> Scalar:
        """The energy [J] that its springs lose in the step. A point that exerts nothing has lost nothing."""
        n = self.point.normal
        before, after = minimum(self.gap, 0.0), minimum(self.gap + dt * n.dot(u), 0.0)
        normal = select(n.dot(impulse) > 0.0, before * before - after * after, 0.0)
        moved = self.patch_after(impulse, dt)
        across = self.x.dot(self.x) - moved.dot(moved)
        return 0.5 * (self.stiffness * normal + self.friction_stiffness * across)


class _Held(NamedTuple):
    """Whether a point presses, 1 or 0, and the share of friction."""

    pressing: Scalar
    share: Scalar


def solve_compliant(
    problem: GaussProblem, v: Sequence[Scalar], surfaces: Sequence[Yielding], dt: Scalar
) -> CompliantSolution:
    """Two linear solves from v, cutting, and the velocities that the impulses left give."""
    held = [_held(s, u, first=True) for s, u in zip(surfaces, problem.point_velocities(v), strict=True)]
    eta = _linear(problem, v, surfaces, held)
    held = [_held(s, u, first=False) for s, u in zip(surfaces, problem.point_velocities(eta), strict=True)]
    eta = _linear(problem, eta, surfaces, held)
    impulses = [_cut(s, u, h) for s, u, h in zip(surfaces, problem.point_velocities(eta), held, strict=True)]
    rest, diagonal = _joint_terms(problem, eta)
    B = factor(total_curvature(problem.axes, problem.A, [], diagonal, problem.equalities))
    free = B.solve(rest)
    mend = B.solve(_mending(problem, eta))
    if not surfaces:
        return CompliantSolution(free, mend, [], 0.0)
    P = problem.generalized(impulses)
    change = B.solve(P)
    end = problem.point_velocities([x + y for x, y in zip(free, change, strict=True)])
    released: Scalar = 0.0
    for surface, u, impulse in zip(surfaces, end, impulses, strict=True):
        released = released + surface.released(u, impulse, dt)
    a, b = dot(P, change), dot(P, free)
    s = _share_of_work(a, b, maximum(released, 0.0))
    return CompliantSolution(
        [x + s * y for x, y in zip(free, change, strict=True)],
        mend,
        [impulse * s for impulse in impulses],
        s * (b + 0.5 * s * a),
    )


def _held(surface: Yielding, u: Vec3, *, first: bool) -> _Held:
    """Before the first solve the normal impulse that friction has is that of the step before: what a deep
    spring exerts at rest may be far from what it will exert, and such friction would jam the body."""
    point, spring = surface.point, surface.spring()
    closing = point.stiffness * (point.bound - point.normal.dot(u))
    pressing = select(spring + closing > 0.0, 1.0, 0.0)
    if is_zero(point.friction):
        return _Held(pressing, 0.0)
    normal = surface.bore if first else maximum(spring + closing, 0.0)
    return _Held(pressing, _share(surface.point.pull(u), point.friction * normal))


def _linear(
    problem: GaussProblem, v: Sequence[Scalar], surfaces: Sequence[Yielding], held: Sequence[_Held]
) -> list[Scalar]:
    """eta of (A + J^T G J) eta = p + J^T gamma_0."""
    known, curvatures = [], []
    for surface, (pressing, share) in zip(surfaces, held, strict=True):
        point, n, spring = surface.point, surface.point.normal, surface.spring()
        normal = n * (pressing * (spring + point.stiffness * point.bound))
        known.append(normal + (point.expected - n * spring) * share)
        k_t = share * point.friction_stiffness
        curvatures.append((point, _isotropic(n, pressing * point.stiffness, k_t)))
    p, diagonal = _joint_terms(problem, v)
    if known:
        p = [x + y for x, y in zip(p, problem.generalized(known), strict=True)]
    return solved(problem.axes, problem.A, curvatures, diagonal, problem.equalities, p, ACCURACY)


def _joint_terms(problem: GaussProblem, v: Sequence[Scalar]) -> tuple[list[Scalar], list[tuple[int, Scalar]]]:
    """p with what limits, motors, dry friction and loops add, linear about v, and their curvatures."""
    p, diagonal = list(problem.p), []
    for joint in problem.joints:
        i = joint.place
        curvature = _curvature(joint, v[i])
        diagonal.append((i, curvature))
        p[i] = p[i] + (joint.impulse(v[i]) + curvature * v[i])
    for equality in problem.equalities:
        equality.add(equality.target * equality.stiffness, p)
    return p, diagonal


def _curvature(joint: JointLimit | JointDrive, u: Scalar) -> Scalar:
    """That of the joint's term; a limit that is exceeded holds what hardly leaves it, too, until that is
    mended."""
    if not isinstance(joint, JointLimit):
        return joint.curvature(u)
    bound = select(joint.overlap > EXCEEDED, joint.bound + SLOW, joint.bound)
    return select(u * joint.sign < bound, joint.stiffness, 0.0)


def _mending(problem: GaussProblem, v: Sequence[Scalar]) -> list[Scalar]:
    """What drives joints back into their limits, and loops together."""
    total: list[Scalar] = [0.0] * len(v)
    for joint in problem.joints:
        if isinstance(joint, JointLimit):
            push = _curvature(joint, v[joint.place]) * joint.overlap * joint.sign
            total[joint.place] = total[joint.place] + push
    for equality in problem.equalities:
        equality.add(-(equality.gap * equality.stiffness), total)
    return total


def _cut(surface: Yielding, u: Vec3, held: _Held) -> Vec3:
    """The impulse by Eq. (5), if it presses and as far as it is in the cone."""
    point, n = surface.point, surface.point.normal
    spring = surface.spring()
    normal = maximum(held.pressing * (spring + point.stiffness * (point.bound - n.dot(u))), 0.0)
    impulse: Vec3 = n * normal
    if is_zero(point.friction):
        return impulse
    friction = surface.point.pull(u) * held.share
    cut: Vec3 = impulse + friction * _share(friction, point.friction * normal)
    return cut


def _share(pull: Vec3, limit: Scalar) -> Scalar:
    """min(1, limit / |pull|)."""
    square = pull.dot(pull)
    over = square > limit * limit
    return select(over, limit / sqrt(select(over, square, 1.0)), 1.0)


def _share_of_work(a: Scalar, b: Scalar, bound: Scalar) -> Scalar:
    """The greatest s <= 1 for which b s + a s^2 / 2 <= bound; a, bound >= 0."""
    root = 2.0 * bound / maximum(sqrt(maximum(b * b + 2.0 * a * bound, 0.0)) + b, 1e-30)
    falling = (sqrt(maximum(b * b + 2.0 * a * bound, 0.0)) - b) / maximum(a, 1e-30)
    s = select(b > 0.0, root, falling)
    return select(b + 0.5 * a > bound, minimum(s, 1.0), 1.0)


def _isotropic(n: Vec3, k_n: Scalar, k_t: Scalar) -> SymMat3:
    """k_n n n^T + k_t (1 - n n^T)."""
    k = k_n - k_t
    x, y, z = n.x * k, n.y * k, n.z * k
    return SymMat3(x * n.x + k_t, y * n.y + k_t, z * n.z + k_t, x * n.y, x * n.z, y * n.z)

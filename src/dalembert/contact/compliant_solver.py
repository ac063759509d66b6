"""The velocities after a step with compliant contact; see `compliant_step` for the equations.

With eta of before, or of an earlier solve, known: a point presses or it does not (Eq. 1), and friction is a
share s = min(1, mu gamma_n / |gamma_t|) of what would stop the slip (Eq. 2). With both held, impulses are
linear in the unknown velocities,

    gamma = gamma_0 - G u,    G = k_n n n^T + s k_t (1 - n n^T)                                          (6)

and (A + J^T G J) eta = p + J^T gamma_0: bilateral springs and dampers, which are passive. Friction as a
share, not as a force of given size, cannot reverse the slip that it opposes.

Impulses by (6) at the new eta are then cut to what contact can do. Where that is more than a twentieth of
them, eta is solved for anew. Two solves do, but where light limbs are hit hard or caught between heavy ones:
what is cut there would leave them with speeds out of all proportion. Where cutting would let contact give
more energy than its springs release, all of it is shortened: with P = J^T gamma and B = A with the joints'
terms, the work of a share s is b s + a s^2 / 2, a = P . B^-1 P, b = P . v_free, and springs hold after it, by
Eqs (4) and (5), 1/2 K z+(s)^2 + 1/2 K_t x+(s)^2: a square, too. Overlaps of joint limits and open loops are
mended by a displacement, as in `newton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from dalembert.algorithms.dense import dot
from dalembert.contact.conjugate import solved
from dalembert.contact.costs import Equality, JointDrive, JointLimit, Point, RangeEnd
from dalembert.contact.curvature import factor, total_curvature
from dalembert.contact.gauss import GaussProblem
from dalembert.scalar import Scalar, is_zero, loop, maximum, minimum, select, sqrt
from dalembert.spatial import SymMat3, Vec3

__all__ = ["CompliantSolution", "Yielding", "solve_compliant"]

EXCEEDED = 1e-5
"""What a step mends [rad, m] of a limit that counts as exceeded."""

ACCURACY = 1e-7
"""What the linear solves may leave of p, where bodies of points are chosen as the program runs."""

SOLVES = 10
"""Linear solves of a step at most; two at least."""

SETTLED = 0.0025
"""The share of the squares of impulses that may be cut without another solve."""

SLOW = 1e-3
"""The speed [rad/s, m/s] up to which a joint rests at a limit that it exceeds."""


class CompliantSolution(NamedTuple):
    """v, and `free` without contact, the mending displacement of v's variables, impulses on the points'
    second bodies along world axes, and the work of contact."""

    v: list[Scalar]
    free: list[Scalar]
    mend: list[Scalar]
    impulses: list[Vec3]
    work: Scalar


@final
@dataclass(frozen=True, slots=True)
class Yielding:
    """A point on surfaces that yield: the depth z [m] by which its spring is pressed in, the patch x [m]
    along the surface, K, D, K_t, D_t, the normal impulse [N s] that it bore in the step before, and h [s]."""

    point: Point
    z: Scalar
    x: Vec3
    stiffness: Scalar
    damping: Scalar
    friction_stiffness: Scalar
    friction_damping: Scalar
    bore: Scalar
    dt: Scalar

    def spring(self) -> Scalar:
        """The normal impulse of the spring alone, h K z."""
        return self.z * (self.dt * self.stiffness)

    def stretch(self) -> Vec3:
        """The impulse of the patch's spring alone, - h K_t x."""
        impulse: Vec3 = self.x * -(self.dt * self.friction_stiffness)
        return impulse

    def pull(self, u: Vec3) -> Vec3:
        """The friction that would stop the slip of u."""
        n = self.point.normal
        slip = u - n * n.dot(u)
        friction: Vec3 = self.stretch() - slip * self.point.friction_stiffness
        return friction

    def patch_after(self, impulse: Vec3) -> Vec3:
        """x+ of Eq. (4)."""
        n = self.point.normal
        moved = self.x * self.friction_damping - (impulse - n * n.dot(impulse))
        after: Vec3 = moved * self._yield(self.friction_stiffness, self.friction_damping)
        return after

    def pressed_after(self, impulse: Vec3) -> Scalar:
        """z+ of Eq. (5)."""
        gamma = self.point.normal.dot(impulse)
        return (self.damping * self.z + gamma) * self._yield(self.stiffness, self.damping)

    def held_after(self, impulse: Vec3) -> tuple[Scalar, Scalar, Scalar]:
        """c of the energy [J] that its springs gain, c_0 + c_1 s + c_2 s^2, where it exerts the share s of an
        impulse: that of 1/2 K z+^2 with z+ = y (D z + s gamma_n), and of the patch. A point that exerts
        nothing has lost nothing."""
        gamma = self.point.normal.dot(impulse)
        eased = select(gamma > 0.0, self.z, 0.0)
        k, k_t = 0.5 * self.stiffness, 0.5 * self.friction_stiffness
        y, y_t = (
            self._yield(self.stiffness, self.damping),
            self._yield(self.friction_stiffness, self.friction_damping),
        )
        left, left_t = self.damping * y, self.friction_damping * y_t
        across = maximum(impulse.dot(impulse) - gamma * gamma, 0.0)
        return (
            (k * (left * left - 1.0)) * (eased * eased)
            + (k_t * (left_t * left_t - 1.0)) * self.x.dot(self.x),
            (2.0 * k * left * y) * (self.z * gamma) - (2.0 * k_t * left_t * y_t) * self.x.dot(impulse),
            (k * y * y) * (gamma * gamma) + (k_t * y_t * y_t) * across,
        )

    def _yield(self, stiffness: Scalar, damping: Scalar) -> Scalar:
        """y = 1 / (D + h K): how far an impulse presses in [m/N s]."""
        return 1.0 / (damping + self.dt * stiffness)


class _Held(NamedTuple):
    """Whether a point presses, 1 or 0, and the share of friction."""

    pressing: Scalar
    share: Scalar


def solve_compliant(
    problem: GaussProblem, v: Sequence[Scalar], surfaces: Sequence[Yielding]
) -> CompliantSolution:
    """Linear solves from v, cutting, and the velocities that the impulses left give."""
    eta, impulses = _settled(problem, v, surfaces)
    rest, diagonal, equalities = _joint_terms(problem, eta, v)
    B = factor(total_curvature(problem.axes, problem.A, [], diagonal, equalities))
    free = B.solve(rest)
    mend = B.solve(_mending(problem, eta, v))
    if not surfaces:
        return CompliantSolution(free, free, mend, [], 0.0)
    P = problem.generalized(impulses)
    change = B.solve(P)
    c_0: Scalar = 0.0
    c_1: Scalar = 0.0
    c_2: Scalar = 0.0
    for surface, impulse in zip(surfaces, impulses, strict=True):
        gained = surface.held_after(impulse)
        c_0, c_1, c_2 = c_0 + gained[0], c_1 + gained[1], c_2 + gained[2]
    a, b = dot(P, change), dot(P, free)
    s = _share_of_work(a + 2.0 * c_2, b + c_1, maximum(-c_0, 0.0))
    return CompliantSolution(
        [x + s * y for x, y in zip(free, change, strict=True)],
        free,
        mend,
        [impulse * s for impulse in impulses],
        s * (b + 0.5 * s * a),
    )


def _settled(
    problem: GaussProblem, v: Sequence[Scalar], surfaces: Sequence[Yielding]
) -> tuple[list[Scalar], list[Vec3]]:
    """eta of linear solves until hardly anything of the impulses is to be cut, and what is left of these."""
    u = problem.point_velocities(v)
    first = [_held(s, x, first=True) for s, x in zip(surfaces, u, strict=True)]
    eta = _linear(problem, v, v, surfaces, first)
    if not surfaces:
        return _linear(problem, eta, v, surfaces, []), []

    def step(carry: Any) -> Any:
        eta, u, _, _ = carry
        held = [_held(s, Vec3(*x), first=False) for s, x in zip(surfaces, u, strict=True)]
        eta = _linear(problem, eta, v, surfaces, held)
        u = problem.point_velocities(eta)
        kept = []
        whole: Scalar = 1e-30
        lost: Scalar = 0.0
        for surface, x, h in zip(surfaces, u, held, strict=True):
            impulse, square = _cut(surface, x, h)
            kept.append(list(impulse))
            whole, lost = whole + impulse.dot(impulse), lost + square
        return [eta, [list(x) for x in u], kept, lost / whole]

    none = [[0.0, 0.0, 0.0] for _ in surfaces]
    carry: Any = [eta, [list(x) for x in problem.point_velocities(eta)], none, 1.0]
    eta, _, kept, _ = loop(SOLVES - 1, step, carry, until=lambda carry: carry[3] < SETTLED)
    return eta, [Vec3(*x) for x in kept]


def _held(surface: Yielding, u: Vec3, *, first: bool) -> _Held:
    """Before the first solve the normal impulse that friction has is that of the step before: what a deep
    spring exerts at rest may be far from what it will exert, and such friction would jam the body."""
    point, spring = surface.point, surface.spring()
    closing = point.stiffness * (point.bound - point.normal.dot(u))
    pressing = select(spring + closing > 0.0, 1.0, 0.0)
    if is_zero(point.friction):
        return _Held(pressing, 0.0)
    normal = surface.bore if first else maximum(spring + closing, 0.0)
    return _Held(pressing, _share(surface.pull(u), point.friction * normal))


def _linear(
    problem: GaussProblem,
    v: Sequence[Scalar],
    before: Sequence[Scalar],
    surfaces: Sequence[Yielding],
    held: Sequence[_Held],
) -> list[Scalar]:
    """eta of (A + J^T G J) eta = p + J^T gamma_0."""
    known, curvatures = [], []
    for surface, (pressing, share) in zip(surfaces, held, strict=True):
        point, n, spring = surface.point, surface.point.normal, surface.spring()
        normal = n * (pressing * (spring + point.stiffness * point.bound))
        known.append(normal + surface.stretch() * share)
        k_t = share * point.friction_stiffness
        curvatures.append((point, _isotropic(n, pressing * point.stiffness, k_t)))
    p, diagonal, equalities = _joint_terms(problem, v, before)
    if known:
        p = [x + y for x, y in zip(p, problem.generalized(known), strict=True)]
    return solved(problem.axes, problem.A, curvatures, diagonal, equalities, p, ACCURACY)


def _joint_terms(
    problem: GaussProblem, v: Sequence[Scalar], before: Sequence[Scalar]
) -> tuple[list[Scalar], list[tuple[int, Scalar]], list[Equality]]:
    """p with what limits, motors, dry friction and loops add, linear about v, and their curvatures: those of
    single variables, and rows."""
    p, diagonal = list(problem.p), []
    for joint in problem.joints:
        i = joint.place
        curvature = _curvature(joint, v[i])
        diagonal.append((i, curvature))
        if isinstance(joint, JointLimit):
            p[i] = p[i] + curvature * (joint.sign * _target(joint, before[i] * joint.sign))
        else:
            p[i] = p[i] + (joint.impulse(v[i]) + curvature * v[i])
    equalities = _held_rows(problem, v, before)
    for equality in equalities:
        equality.add(equality.target * equality.stiffness, p)
    return p, diagonal, equalities


def _held_rows(problem: GaussProblem, v: Sequence[Scalar], before: Sequence[Scalar]) -> list[Equality]:
    """Equalities, and the ends of ranges that are reached at v."""
    ends = [
        end.held(end.velocity(v) < _reach(end), _target(end, end.velocity(before))) for end in problem.ranges
    ]
    return [*problem.equalities, *ends]


def _target(end: JointLimit | RangeEnd, u: Scalar) -> Scalar:
    """The velocity at which a limit that is held lets a joint close what gap is left. It is held as an
    equality, though contact that drove the joint there may be cut: so no faster than it was before, u, lest
    the limit pull."""
    return maximum(end.bound, minimum(u, 0.0))


def _curvature(joint: JointLimit | JointDrive, u: Scalar) -> Scalar:
    """That of the joint's term; a limit that is exceeded holds what hardly leaves it, too, until that is
    mended."""
    if not isinstance(joint, JointLimit):
        return joint.curvature(u)
    return select(u * joint.sign < _reach(joint), joint.stiffness, 0.0)


def _reach(end: JointLimit | RangeEnd) -> Scalar:
    """The velocity below which a limit holds."""
    return select(end.overlap > EXCEEDED, end.bound + SLOW, end.bound)


def _mending(problem: GaussProblem, v: Sequence[Scalar], before: Sequence[Scalar]) -> list[Scalar]:
    """What drives joints back into their limits, and loops together."""
    total: list[Scalar] = [0.0] * len(v)
    for joint in problem.joints:
        if isinstance(joint, JointLimit):
            push = _curvature(joint, v[joint.place]) * joint.overlap * joint.sign
            total[joint.place] = total[joint.place] + push
    for equality in _held_rows(problem, v, before):
        equality.add(-(equality.gap * equality.stiffness), total)
    return total


def _cut(surface: Yielding, u: Vec3, held: _Held) -> tuple[Vec3, Scalar]:
    """The impulse by Eq. (6), if it presses and as far as it is in the cone; the square of what is cut."""
    point, n = surface.point, surface.point.normal
    linear = held.pressing * (surface.spring() + point.stiffness * (point.bound - n.dot(u)))
    normal = maximum(linear, 0.0)
    pulled = normal - linear
    if is_zero(point.friction):
        return n * normal, pulled * pulled
    friction = surface.pull(u) * held.share
    share = _share(friction, point.friction * normal)
    left = 1.0 - share
    return n * normal + friction * share, pulled * pulled + friction.dot(friction) * (left * left)


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

"""Coulomb friction of a contact point, in parts: sliding, spinning about the normal, and rolling across it.

Where a pair of shapes resists turning, the motion of a point is its velocity u and the relative angular
velocity omega of its bodies, and a torque acts beside its force. Each part has a slip s, a linear function of
u or of omega, and exerts, with its own bound on the same normal impulse gamma_n,

    sliding     s = (1 - n n^T) u           |f| <= mu gamma_n, mu a number                               (1)
    spinning    s = n n^T omega             |f| <= mu_t gamma_n, mu_t a length [m]
    rolling     s = (1 - n n^T) omega       |f| <= mu_r gamma_n, mu_r a length [m]

    f = the part of f_0 - k s within the bound                                                           (2)

with the warm-start impulse f_0. MuJoCo's elliptic cone bounds all parts together, by the square root of the
sum of the squares of |f| / mu; the two agree where one part slips alone.

Friction that differs along two directions t_1 and t_2 of the surface is (1) and (2) in scaled coordinates:

    S = mu_1 t_1 t_1^T + mu_2 t_2 t_2^T,    s = S u,    f = S g,    |g| <= gamma_n                       (3)

so that f is within the ellipse with the half-axes mu_1 gamma_n and mu_2 gamma_n, and is the f of all these
that takes the most power from the slip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

from dalembert.scalar import Scalar, absolute, maximum, minimum, select, sqrt
from dalembert.spatial import SymMat3, Vec3

MIN_SQUARED_PULL = 1e-30
"""The least squared pull [N^2 s^2], that of 1e-15 N s: single precision can represent it."""

MIN_FRICTION = 1e-6
"""The coefficient below which a direction of an ellipse has no friction."""


# What a point moves by, and what it exerts


@final
@dataclass(frozen=True, slots=True)
class PointVector:
    """A relative velocity of two bodies at a point, or an impulse there: `linear`, and `angular` where pairs
    resist turning. None stands for zero."""

    linear: Vec3
    angular: Vec3 | None = None

    def __add__(self, other: PointVector) -> PointVector:
        a, b = self.angular, other.angular
        return PointVector(self.linear + other.linear, b if a is None else a if b is None else a + b)

    def __sub__(self, other: PointVector) -> PointVector:
        if other.angular is None:
            return PointVector(self.linear - other.linear, self.angular)
        own = Vec3.zero() if self.angular is None else self.angular
        return PointVector(self.linear - other.linear, own - other.angular)

    def __mul__(self, factor: Scalar) -> PointVector:
        return PointVector(self.linear * factor, None if self.angular is None else self.angular * factor)

    def dot(self, other: PointVector) -> Scalar:
        """Return the scalar product of all components: a power, or the square of an impulse."""
        own = self.linear.dot(other.linear)
        if self.angular is None or other.angular is None:
            return own
        return own + self.angular.dot(other.angular)


@dataclass(frozen=True, slots=True)
class PointHessian:
    """G = k_n n n^T + k_t (1 - n n^T - t t^T): along the normal n, and across it but for the unit vector t of
    the slip, which is zero where the point sticks; `turning`: the same for angular velocities."""

    n: Vec3
    k_n: Scalar
    t: Vec3
    k_t: Scalar
    turning: PointHessian | None = None

    def times(self, u: PointVector) -> PointVector:
        """Return G u."""
        turning = None if self.turning is None or u.angular is None else self.turning.product(u.angular)
        return PointVector(self.product(u.linear), turning)

    def product(self, u: Vec3) -> Vec3:
        """Return the product of the linear block and u."""
        along, slip = self.n.dot(u), self.t.dot(u)
        product: Vec3 = u * self.k_t + self.n * ((self.k_n - self.k_t) * along) - self.t * (self.k_t * slip)
        return product

    def matrix(self) -> SymMat3:
        """Return the linear block."""
        return _plus(dyad(self.n, self.k_n - self.k_t) - dyad(self.t, self.k_t), self.k_t)


@final
@dataclass(frozen=True, slots=True)
class EllipticHessian:
    """G = k_n n n^T + a t_1 t_1^T + b (t_1 t_2^T + t_2 t_1^T) + c t_2 t_2^T: that of friction which differs
    along two directions of the surface."""

    n: Vec3
    k_n: Scalar
    t_1: Vec3
    t_2: Vec3
    a: Scalar
    b: Scalar
    c: Scalar
    turning: PointHessian | None = None

    def times(self, u: PointVector) -> PointVector:
        """Return G u."""
        turning = None if self.turning is None or u.angular is None else self.turning.product(u.angular)
        return PointVector(self.product(u.linear), turning)

    def product(self, u: Vec3) -> Vec3:
        """Return the product of the linear block and u."""
        x, y = self.t_1.dot(u), self.t_2.dot(u)
        across = self.t_1 * (self.a * x + self.b * y) + self.t_2 * (self.b * x + self.c * y)
        product: Vec3 = self.n * (self.k_n * self.n.dot(u)) + across
        return product

    def matrix(self) -> SymMat3:
        """Return the linear block."""
        t_1, t_2 = self.t_1, self.t_2
        both = dyad(t_1 + t_2, self.b) - dyad(t_1, self.b) - dyad(t_2, self.b)
        return dyad(self.n, self.k_n) + dyad(t_1, self.a) + dyad(t_2, self.c) + both


# Parts of friction


class Ellipse(NamedTuple):
    """The half-axes mu_1 and mu_2 of Eq. (3) along t_1 and t_2."""

    t_1: Vec3
    t_2: Vec3
    mu_1: Scalar
    mu_2: Scalar

    @staticmethod
    def across(n: Vec3, mu_1: Scalar, mu_2: Scalar) -> Ellipse:
        """Return the ellipse of a surface with the normal n: t_1 is the world's y axis projected to the
        surface, or the z axis where the normal is within 60 degrees of y, as in MuJoCo's contact frames."""
        steep = absolute(n.y) >= 0.5
        guide = Vec3(0.0, select(steep, 0.0, 1.0), select(steep, 1.0, 0.0))
        t_1 = guide - n * n.dot(guide)
        t_1 = t_1 * (1.0 / sqrt(t_1.dot(t_1)))
        return Ellipse(t_1, n.cross(t_1), mu_1, mu_2)

    def scale(self, u: Vec3) -> Vec3:
        """Return S u."""
        t_1, t_2 = self.t_1, self.t_2
        slip: Vec3 = t_1 * (self.mu_1 * t_1.dot(u)) + t_2 * (self.mu_2 * t_2.dot(u))
        return slip

    def unscale(self, f: Vec3) -> Vec3:
        """Return g of f = S g; zero along a direction without friction."""
        t_1, t_2 = self.t_1, self.t_2
        x, y = (
            select(mu > MIN_FRICTION, t.dot(f) / maximum(mu, MIN_FRICTION), 0.0)
            for t, mu in ((t_1, self.mu_1), (t_2, self.mu_2))
        )
        g: Vec3 = t_1 * x + t_2 * y
        return g

    @property
    def squared_size(self) -> Scalar:
        """The square of the greater half-axis, by which stiffnesses are divided in scaled coordinates."""
        mu = maximum(maximum(self.mu_1, self.mu_2), MIN_FRICTION)
        return mu * mu


class FrictionLine(NamedTuple):
    """A part of friction along a line u + alpha y of velocities: P . P, P . s, k s . s with the pull P at
    alpha = 0 and the slip s of y, k, and the bound of |f|."""

    square: Scalar
    work: Scalar
    bend: Scalar
    stiffness: Scalar
    limit: Scalar

    def power(self, alpha: Scalar) -> Scalar:
        """Return y . f, with |pull|^2 = P . P - alpha k (2 P . s - alpha k s . s)."""
        work = self.work - alpha * self.bend
        square = self.square - alpha * (self.stiffness * (self.work + work))
        ratio = minimum(self.limit / sqrt(maximum(square, MIN_SQUARED_PULL)), 1.0)
        return ratio * work


class Friction(NamedTuple):
    """A part of the friction of a point with the normal n: Eqs (1) and (2), or (3) if there is an `ellipse`.

    `spins`: the slip is along the normal, not across it. `warm_start`: f_0, of which the part of the slip
    counts.
    """

    n: Vec3
    coefficient: Scalar
    stiffness: Scalar
    warm_start: Vec3
    spins: bool = False
    ellipse: Ellipse | None = None

    @staticmethod
    def of(
        n: Vec3, coefficient: Scalar, across: Scalar | None, stiffness: Scalar, warm_start: Vec3
    ) -> Friction:
        """Return sliding or rolling friction, which may have another coefficient along t_2."""
        if across is None:
            return Friction(n, coefficient, stiffness, warm_start)
        own = Ellipse.across(n, coefficient, across)
        return Friction(n, 1.0, stiffness / own.squared_size, own.unscale(warm_start), ellipse=own)

    def slip(self, u: Vec3) -> Vec3:
        """Return s of a velocity u."""
        if self.ellipse is not None:
            return self.ellipse.scale(u)
        normal: Vec3 = self.n * self.n.dot(u)
        across: Vec3 = u - normal
        return normal if self.spins else across

    def pull(self, u: Vec3) -> Vec3:
        """Return the impulse that would stop the slip, of the ellipse the g of it."""
        if self.ellipse is not None:
            g: Vec3 = self.warm_start - self.slip(u) * self.stiffness
            return g
        return self.slip(self.warm_start - u * self.stiffness)

    def friction_force(self, pull: Vec3) -> Vec3:
        """Return f of a pull, or of a part of it."""
        return pull if self.ellipse is None else self.ellipse.scale(pull)

    def impulse(self, u: Vec3, normal_impulse: Scalar) -> Vec3:
        """Return f; `normal_impulse`: gamma_n that bounds it."""
        pull = self.pull(u)
        return self.friction_force(pull * minimum(self.ratio(pull, normal_impulse)[0], 1.0))

    def ratio(self, pull: Vec3, normal_impulse: Scalar) -> tuple[Scalar, Scalar]:
        """Return the ratio of the bound to the pull, 1 or more where the point sticks, and 1 / |pull|."""
        reciprocal = 1.0 / sqrt(maximum(pull.dot(pull), MIN_SQUARED_PULL))
        return self.coefficient * normal_impulse * reciprocal, reciprocal

    def hessian(self, u: Vec3, normal_impulse: Scalar, k_n: Scalar) -> PointHessian | EllipticHessian:
        """Return minus the derivative of f with respect to u, and k_n along the normal.

        It is k where the point sticks; where it slips, that is scaled by the ratio of the bound to the pull,
        and zero along the pull.
        """
        pull = self.pull(u)
        ratio, reciprocal = self.ratio(pull, normal_impulse)
        slip = pull * select(ratio < 1.0, reciprocal, 0.0)
        return self.stiff(k_n, minimum(ratio, 1.0) * self.stiffness, slip)

    def stiff(self, k_n: Scalar, k: Scalar, slip: Vec3) -> PointHessian | EllipticHessian:
        """Return the Hessian with k but for the direction `slip`, and k_n along the normal."""
        if self.ellipse is None:
            return PointHessian(self.n, k_n, slip, k)
        t_1, t_2, mu_1, mu_2 = self.ellipse
        x, y = t_1.dot(slip), t_2.dot(slip)
        a, b, c = mu_1 * mu_1 * (1.0 - x * x), -(mu_1 * mu_2 * (x * y)), mu_2 * mu_2 * (1.0 - y * y)
        return EllipticHessian(self.n, k_n, t_1, t_2, k * a, k * b, k * c)

    def line(self, u: Vec3, y: Vec3, normal_impulse: Scalar) -> FrictionLine:
        """Return this part along the line u + alpha y."""
        pull, slip = self.pull(u), self.slip(y)
        bend = self.stiffness * slip.dot(slip)
        limit = self.coefficient * normal_impulse
        return FrictionLine(pull.dot(pull), pull.dot(slip), bend, self.stiffness, limit)


@final
@dataclass(frozen=True, slots=True)
class Turning:
    """Friction against turning: mu_t [m] about the normal, mu_r [m] across it, k [kg m^2], and the warm-start
    impulse [N m s]."""

    spin: Scalar
    roll: Scalar
    stiffness: Scalar
    warm_start: Vec3

    def parts(self, n: Vec3) -> tuple[Friction, Friction]:
        """Return spinning and rolling friction."""
        return (
            Friction(n, self.spin, self.stiffness, self.warm_start, spins=True),
            Friction(n, self.roll, self.stiffness, self.warm_start),
        )

    def impulse(self, n: Vec3, omega: Vec3, normal_impulse: Scalar) -> Vec3:
        """Return the torque impulse [N m s]."""
        spin, roll = self.parts(n)
        total: Vec3 = spin.impulse(omega, normal_impulse) + roll.impulse(omega, normal_impulse)
        return total

    def hessian(self, n: Vec3, omega: Vec3, normal_impulse: Scalar) -> PointHessian:
        """Return minus the derivative of the torque with respect to omega."""
        spin, roll = self.parts(n)
        ratio = spin.ratio(spin.pull(omega), normal_impulse)[0]
        own = roll.hessian(omega, normal_impulse, select(ratio < 1.0, 0.0, self.stiffness))
        assert isinstance(own, PointHessian)
        return own


def dyad(a: Vec3, factor: Scalar) -> SymMat3:
    """Return factor a a^T."""
    x, y, z = a.x * factor, a.y * factor, a.z * factor
    return SymMat3(x * a.x, y * a.y, z * a.z, x * a.y, x * a.z, y * a.z)


def _plus(S: SymMat3, c: Scalar) -> SymMat3:
    """Return S + c 1."""
    return SymMat3(S.xx + c, S.yy + c, S.zz + c, S.xy, S.xz, S.yz)

"""The geometry of configuration space: the mass matrix as a metric, with and without constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, Stabilization
from dalembert.algorithms.constraints import constraint_equations, stabilized_k
from dalembert.algorithms.coriolis import (
    coriolis_product,
    geometric,
    mass_matrix_rate,
    moving_subspaces,
    require_scleronomic,
)
from dalembert.algorithms.declaration import LOADS, SCLERONOMIC, choice, kernel
from dalembert.algorithms.dense import (
    Matrix,
    Rows,
    Vector,
    dot,
    factor,
    factor_semidefinite,
    identity,
    times,
    total,
    transpose,
)
from dalembert.algorithms.energy_momentum import potential_energy
from dalembert.algorithms.integrators import CentroidalCoordinates, State, runge_kutta_step
from dalembert.algorithms.inverse_dynamics import bias_forces, coriolis_forces, differential_inverse_dynamics
from dalembert.algorithms.mass_matrix import inertia_solver
from dalembert.algorithms.open_tree import HAS_INVERSE, require_moving_mass, require_open_tree
from dalembert.errors import ArgumentError, require_choice
from dalembert.model.body import Body
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero
from dalembert.spatial import Force

# Hamilton's form of the equation of motion: positions q and momenta p = M(q) v.
#
#     H(q, p) = p^T M^-1 p / 2 + V(q)                       v = dH/dp = M^-1 p                             (1)
#     p'      = -dH/dq + tau                                where v = dq/dt                                (2)
#
# (Todorov, "Hamiltonian formulation"). Both say the same as M a + C v + g = tau, since p' = M a + M' v and M'
# = C + C^T for the Coriolis matrix of `coriolis_matrix`:
#
#     p'      = tau - g + C^T v                                                                            (3)
#
# which holds for any velocity variables; of quaternion joints, whose v are not rates of coordinates, it has
# the terms that (2) then lacks. C^T v takes one pass: B^T v_i = 0 there, so that with h_i^c the momentum of
# body i and all that it carries
#
#     p_i = S_i^T h_i^c + armature v        (C^T v)_i = S_i'^T h_i^c        S' = v x S + S-ring            (4)
#
# that is, momentum changes by force, and its component along S also because S turns.


class HamiltonianRates(NamedTuple):
    """v = dH/dp, with which q moves, and dp/dt."""

    v: list[Scalar]
    p_rate: list[Scalar]


@geometric("q p", method="ltdl", preconditions=HAS_INVERSE)
def hamiltonian(tree: Tree, q: Scalars, p: Scalars) -> Scalar:
    """Compute the Hamiltonian H(q, p) = p^T M(q)^-1 p / 2 + V(q) `(…)` [J] for momenta p `(…, nv)`.

    V is gravity's potential; springs are passive forces. H = v^T p - L for the Lagrangian L = K - V.

    Source: Todorov, "Hamiltonian formulation".

    >>> model = da.models.pendulum()
    >>> q, v = np.array([0.5]), np.array([2.0])
    >>> H = da.geometry.hamiltonian(model, q, da.geometry.momentum_coordinates(model, q, v))
    >>> np.allclose(H, da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q))
    True
    """
    require_scleronomic(tree, "hamiltonian")
    twice = total(p_k * v_k for p_k, v_k in zip(p, velocity_coordinates(tree, q, p), strict=True))
    return 0.5 * twice + potential_energy(tree, q)


@geometric("q v", method="passes", frame_free=True, loops=True)
def momentum_coordinates(tree: Tree, q: Scalars, v: Scalars) -> list[Scalar]:
    """Compute the momenta p = M(q) v `(…, nv)` [kg m^2/s or kg m/s] in linear time.

    This is the Legendre transformation p = dL/dv. In the metric M it lowers the index of any velocity: u* = M
    u.

    Source: Todorov, "Hamiltonian formulation", "Manifolds and metrics".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.geometry.momentum_coordinates(model, q, v), da.mass_matrix(model, q) @ v)
    True
    """
    require_scleronomic(tree, "momentum_coordinates")
    return differential_inverse_dynamics(tree, q, v)


@geometric("q p", method="ltdl", frame_free=True, preconditions=HAS_INVERSE)
def velocity_coordinates(tree: Tree, q: Scalars, p: Scalars) -> list[Scalar]:
    """Compute the velocities v = M(q)^-1 p `(…, nv)` [rad/s or m/s], the inverse of `momentum_coordinates`.

    v = dH/dp. In the metric M it raises the index of any force or momentum: u = M^-1 u*.

    Source: Todorov, "Hamiltonian formulation", "Manifolds and metrics".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> p = da.geometry.momentum_coordinates(model, q, v)
    >>> np.allclose(da.geometry.velocity_coordinates(model, q, p), v)
    True
    """
    require_scleronomic(tree, "velocity_coordinates")
    require_moving_mass(tree, "velocity_coordinates")
    return inertia_solver(tree, q)(p)


@geometric(
    "q p tau",
    method="passes",
    optional=LOADS,
    frame_free=True,
    preconditions=HAS_INVERSE,
    returns="tuple[Array, Array]",
)
def hamiltonian_rates(
    tree: Tree, q: Scalars, p: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> HamiltonianRates:
    """Compute (v, dp/dt), `(…, nv)` each, of Hamilton's equations: v = dH/dp = M^-1 p, dp/dt = -dH/dq + tau.

    Move q by `integrate(model, q, v * dt)`. Where v is dq/dt this is Hamilton's first equation. For
    quaternions -dH/dq alone is not enough, and dp/dt includes Hamel's terms: dp/dt = tau + J^T external - g +
    C^T v, with `external_forces` as in `inverse_dynamics`.

    Source: Todorov, "Hamiltonian formulation".

    >>> model = da.models.pendulum()
    >>> v, p_rate = da.geometry.hamiltonian_rates(model, [0.5], [2.0], [0.0])
    >>> np.allclose(p_rate, -da.gravity_forces(model, [0.5]))
    True
    """
    require_open_tree(tree, "hamiltonian_rates")
    require_scleronomic(tree, "hamiltonian_rates")
    v = velocity_coordinates(tree, q, p)
    return HamiltonianRates(v, _momentum_rate(tree, q, v, tau, **given))


def forward_dynamics_hamiltonian(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]
) -> list[Scalar]:
    """Return a = M^-1 (p' - M' v): the acceleration from the momenta, a check of ABA."""
    if given.get("time") is not None:
        raise ArgumentError(
            "forward_dynamics: the Hamiltonian method knows no time; leave time out or use another method"
        )
    require_open_tree(tree, "forward_dynamics")
    require_scleronomic(tree, "forward_dynamics")
    p_rate = _momentum_rate(tree, q, v, tau, **given)
    rest: list[Scalar] = []
    for rate, row in zip(p_rate, mass_matrix_rate(tree, q, v), strict=True):
        for x, v_k in zip(row, v, strict=True):
            rate = rate - x * v_k
        rest.append(rate)
    return velocity_coordinates(tree, q, rest)


def _momentum_rate(tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **given: Unpack[Loads]) -> list[Scalar]:
    """Return tau - g + C^T v, with external forces added to gravity; Eqs (3), (4)."""
    moved = moving_subspaces(tree, q, v)

    def gather(body: Body, h_children: Force) -> tuple[Force, Scalars]:
        X, _, S_rate, v_i = moved[body]
        h = h_children + body.inertia * v_i
        return X.inverse_apply(h), [s_rate.dot(h) for s_rate in S_rate]  # (4)

    turning = tree.collect(tree.inward(gather, Force.zero())[0])
    resting = bias_forces(tree, q, [0.0] * tree.nv, **given)
    return [t - g + c for t, g, c in zip(tau, resting, turning, strict=True)]


# The configuration space as a Riemannian manifold with the metric M(q): Todorov, "Manifolds and metrics".
#
# Tangent vectors u are velocities, cotangent vectors f are forces and momenta; M maps the former to the
# latter.
#
#     <u, w>   = u^T M w             <f, h>   = f^T M^-1 h             u . f = u^T f                       (1)
#     nabla_v u = v(u) + M^-1 C(q, v) u                                                                    (2)
#     nabla_v v = 0:   dv/dt = -M^-1 C(q, v) v                                                             (3)
#
# v(u) is the derivative of u's components along v and C the matrix of the Christoffel symbols, C_kj =
# Gamma_ij,k v_i, so that (2) is the covariant derivative of the mechanical connection and (3) its geodesics,
# the motions without forces and gravity. With forces, M nabla_v v = tau - g. <v, v> is twice the kinetic
# energy.

SPACES = ("tangent", "cotangent")

Field = Callable[[Tree, list[Scalar]], Scalars]
"""A vector field: `field(tree, q)` has nv components."""


@geometric("q u w", method="metric", options={"space": choice("tangent", "cotangent")}, frame_free=True)
def inner_product(tree: Tree, q: Scalars, u: Scalars, w: Scalars, *, space: str = "tangent") -> Scalar:
    """Compute the inner product <u, w> = u^T M(q) w `(…)` of two velocities `(…, nv)`.

    <v, v> is twice the kinetic energy. `space="cotangent"`: u^T M(q)^-1 w of two forces or momenta.

    Source: Todorov, "Manifolds and metrics" (where p^T v is called kinetic energy; it is twice that).

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> np.allclose(da.geometry.inner_product(model, q, v, v), 2.0 * da.dynamics.kinetic_energy(model, q, v))
    True
    """
    require_choice("space of inner_product", space, SPACES)
    mapped = momentum_coordinates if space == "tangent" else velocity_coordinates
    return total(x * y for x, y in zip(u, mapped(tree, q, w), strict=True))


@geometric("q v u", method="passes", frame_free=True)
def connection_term(tree: Tree, q: Scalars, v: Scalars, u: Scalars) -> list[Scalar]:
    """Compute Gamma_ij^k v_i u_j = M^-1 C(q, v) u `(…, nv)`, the connection's part of nabla_v u.

    A vector u(t) is transported in parallel along a motion if du/dt + connection_term = 0.

    Source: Todorov, "Covariant derivatives and geodesics".

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> a = da.geometry.geodesic_acceleration(model, q, v)
    >>> np.allclose(da.geometry.connection_term(model, q, v, v), -a)
    True
    """
    return velocity_coordinates(tree, q, coriolis_product(tree, q, v, u))


def covariant_derivative(tree: Tree, field: Field, q: Scalars, v: Scalars) -> list[Scalar]:
    """Return nabla_v u `(nv,)` of the vector field u = field(tree, q) along v; Eq. (2).

    The derivative of the components is exact, by dual numbers, along dq/dt = Q(q) v.
    """
    direction = position_rate(tree, q, v)

    def components(x: list[Scalar]) -> list[Scalar]:
        found = field(tree, x)
        if not isinstance(found, Sequence):
            raise ArgumentError(
                f"covariant_derivative: the field returned a {type(found).__name__}; return a list of scalars"
            )
        return list(found)

    u, u_rate = directional_derivative(components, list(q), direction)
    if len(u) != tree.nv:
        raise ArgumentError(
            f"covariant_derivative: the field has {len(u)} components; return {tree.nv}, one for each "
            "velocity variable"
        )
    return [rate + turn for rate, turn in zip(u_rate, connection_term(tree, q, v, u), strict=True)]


@geometric("q v", method="ltdl", frame_free=True, preconditions=HAS_INVERSE)
def geodesic_acceleration(tree: Tree, q: Scalars, v: Scalars) -> list[Scalar]:
    """Compute dv/dt = -M^-1 C(q, v) v `(…, nv)` [rad/s^2 or m/s^2], the motion without forces and gravity.

    It solves nabla_v v = 0, dv_k/dt + Gamma_ij^k v_i v_j = 0.

    Source: Todorov, "Unforced motions as geodesics".

    >>> model = da.models.cart_pole().with_values({"gravity": (0.0, 0.0, 0.0)})
    >>> q, v = [0.1, 0.7], [1.0, -2.0]
    >>> a = da.forward_dynamics(model, q, v, [0.0, 0.0])
    >>> np.allclose(da.geometry.geodesic_acceleration(model, q, v), a)
    True
    """
    require_open_tree(tree, "geodesic_acceleration")
    require_scleronomic(tree, "geodesic_acceleration")
    return [-x for x in velocity_coordinates(tree, q, coriolis_forces(tree, q, v))]


@kernel("q v dt", method="rk4", frame_free=True, preconditions=HAS_INVERSE, without=SCLERONOMIC)
def geodesic_step(tree: Tree, q: Scalars, v: Scalars, dt: Scalar) -> State:
    """Return (q, v) after the time dt along the geodesic, by the Runge–Kutta method of order four."""

    def acceleration(q: Scalars, v: Scalars, elapsed: Scalar) -> list[Scalar]:
        return geodesic_acceleration(tree, q, v)

    return runge_kutta_step(CentroidalCoordinates(tree, None), acceleration, State(list(q), list(v)), dt)


# Constrained dynamics in any coordinates x with a constant or given inertia D (Todorov's slides).
#
# Implicit constraints phi(x) = 0, J = dphi/dx, so that J x'' + J' x' = 0 ("implicit constraints"):
#
#     [ D  -J^T ] [ x''    ]   [ f     ]
#     [ -J   0  ] [ lambda ] = [ J' x' ]                                                                   (1)
#     D x'' = f - J^T (J D^-1 J^T)^-1 (J' x' + J D^-1 f)                                                   (2)
#
# At rest x'' = A f with the inverse of the constrained inertia ("Constrained inertia"):
#
#     A = D^-1 - D^-1 J^T (J D^-1 J^T)^-1 J D^-1 = limit of (D + epsilon J^T J)^-1,  epsilon -> infinity   (3)
#
# Gauss: of all accelerations with J a = b the system takes the one nearest to the free one, a_0,
#
#     x'' = argmin (a - a_0)^T D (a - a_0)                                                                 (4)
#
# Explicit constraints x = h(q), J = dh/dq, x'' = J q'' + J' q' ("Explicit constraints"), with the forces f_c
# of the constraint, J^T f_c = 0:
#
#     [ D  -1   0 ] [ x'' ]   [ f      ]
#     [ 1   0  -J ] [ f_c ] = [ J' q'  ]        M = J^T D J,  c = J^T D J' q',  tau = J^T f                (5)
#     [ 0  J^T  0 ] [ q'' ]   [ 0      ]


class ConstrainedMotion(NamedTuple):
    """x'' and the multipliers lambda; the constraint forces are J^T lambda."""

    acceleration: Vector
    multipliers: Vector


class ExplicitDynamics(NamedTuple):
    """M q'' + c = tau."""

    M: Matrix
    c: Vector
    tau: Vector


class ExplicitMotion(NamedTuple):
    """x'', the constraint forces f_c and q''."""

    x: Vector
    f_c: Vector
    q: Vector


def implicit_dynamics(D: Rows, f: Scalars, J: Rows, bias: Scalars) -> ConstrainedMotion:
    """Return x'' and lambda by the closed form (2); `bias` = J' x'."""
    inertia = factor(D)
    free = inertia.solve(f)
    Y = [inertia.solve(row) for row in J]
    wanted = [-(b + dot(row, free)) for b, row in zip(bias, J, strict=True)]
    multipliers = factor([[dot(row, y) for y in Y] for row in J]).solve(wanted)
    return ConstrainedMotion(_plus(free, Y, multipliers), multipliers)


def implicit_dynamics_kkt(D: Rows, f: Scalars, J: Rows, bias: Scalars) -> ConstrainedMotion:
    """Return x'' and lambda by (1), which is quasi-definite: L d L^T needs no pivoting."""
    n, m = len(D), len(J)
    K = [[*row, *([0.0] * m)] for row in D] + [[*(-x for x in row), *([0.0] * m)] for row in J]
    solution = factor(K).solve([*f, *bias])
    return ConstrainedMotion(solution[:n], solution[n:])


def constrained_inverse_inertia(D: Rows, J: Rows) -> Matrix:
    """Return a `(n, n)` of (3): x'' = A f at rest; J A = 0, and its rank is the number of freedoms left."""
    inertia = factor(D)
    Y = [inertia.solve(row) for row in J]
    effective = factor([[dot(row, y) for y in Y] for row in J])
    return [
        _plus(inertia.solve(e_k), Y, [-x for x in effective.solve([y[k] for y in Y])])
        for k, e_k in enumerate(identity(len(D)))
    ]


def penalized_inverse_inertia(D: Rows, J: Rows, epsilon: Scalar) -> Matrix:
    """Return (D + epsilon J^T J)^-1, which tends to A of (3) with an error of order 1/epsilon."""
    n = len(D)
    columns = transpose(J)
    heavy = factor([[D[i][k] + epsilon * dot(columns[i], columns[k]) for k in range(n)] for i in range(n)])
    return [heavy.solve(e_k) for e_k in identity(n)]


def gauss_acceleration(D: Rows, a_0: Scalars, J: Rows, b: Scalars) -> Vector:
    """Return argmin (a - a_0)^T D (a - a_0) with J a = b; Eq. (4). Rows of J may depend on each other."""
    return nearest_acceleration(factor(D).solve, a_0, J, b)


def nearest_acceleration(
    solve: Callable[[Scalars], Vector], a_0: Scalars, J: Rows, b: Scalars, *, regularization: Scalars = ()
) -> Vector:
    """Return the minimiser of (4) with D^-1 given as a function:
    a = a_0 + D^-1 J^T (J D^-1 J^T)^-1 (b - J a_0).

    A row that depends on rows before it is left out, so that those count where rows contradict each other.
    `regularization`, a number for each row, is added to the diagonal of J D^-1 J^T: these rows then hold
    nearly, and a stays bounded where rows are almost dependent.
    """
    Y = [solve(row) for row in J]
    Phi = [[dot(row, y) for y in Y] for row in J]
    for i, epsilon in enumerate(regularization):
        Phi[i][i] = Phi[i][i] + epsilon
    missing = [b_k - dot(row, a_0) for b_k, row in zip(b, J, strict=True)]
    return _plus(a_0, Y, factor_semidefinite(Phi).solve(missing))


def explicit_dynamics(D: Rows, f: Scalars, J: Rows, bias: Scalars) -> ExplicitDynamics:
    """Return M = J^T D J, c = J^T D J' q', tau = J^T f; `bias` = J' q'."""
    return ExplicitDynamics(
        transformed_inertia(D, J), transformed_force(times(D, bias), J), transformed_force(f, J)
    )


def explicit_dynamics_by_blocks(D: Rows, f: Scalars, J: Rows, bias: Scalars) -> ExplicitMotion:
    """Return x'', f_c and q'' at once from the block rows (5), the second negated for symmetry."""
    n, m = len(D), len(J[0])
    one = identity(n)
    top = [[*row, *([0.0] * (n + m))] for row in D]
    middle = [[*(-x for x in one[i]), *([0.0] * (n + m))] for i in range(n)]
    bottom = [[*([0.0] * n), *(row[k] for row in J), *([0.0] * m)] for k in range(m)]
    solution = factor(top + middle + bottom).solve([*f, *(-x for x in bias), *([0.0] * m)])
    return ExplicitMotion(solution[:n], solution[n : 2 * n], solution[2 * n :])


def transformed_force(f: Scalars, J: Rows) -> Vector:
    """Return tau = J^T f: the force in coordinates q with x' = J q', of the same power."""
    return times(transpose(J), f)


def transformed_inertia(D: Rows, J: Rows) -> Matrix:
    """Return M = J^T D J: the inertia in coordinates q with x' = J q', of the same kinetic energy."""
    columns = transpose(J)
    return [[dot(column, times(D, other)) for other in columns] for column in columns]


def _plus(a: Scalars, columns: Rows, weights: Scalars) -> Vector:
    total = list(a)
    for column, weight in zip(columns, weights, strict=True):
        total = [x + weight * y for x, y in zip(total, column, strict=True)]
    return total


# Gauss's principle for a model: of the motions that its constraints allow, the one nearest to free motion.
#
#     a = argmin (a - a_0)^T M (a - a_0)  with  K a = k,        a_0 = M^-1 (tau - b)                       (1)
#
# a_0 is the acceleration without loops and other constraints (Todorov, "Gauss principle"). Distance is
# measured by the metric M; it is that of the constraint forces, lambda^T K M^-1 K^T lambda.


def forward_dynamics_gauss(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> list[Scalar]:
    """Return a `(nv,)` by Eq. (1); a tree without constraints gets a_0. `stabilization`: T_stab [s]."""
    time = given.get("time")
    require_moving_mass(tree, "forward_dynamics")
    b = bias_forces(tree, q, v, **given)
    solve = inertia_solver(tree, q, time=time)
    a_0 = solve([t - b_k for t, b_k in zip(tau, b, strict=True)])
    K, k = allowed_accelerations(tree, q, v, time=time, stabilization=stabilization)
    return nearest_acceleration(solve, a_0, K, k)


def allowed_accelerations(
    tree: Tree, q: Scalars, v: Scalars, *, time: Time = None, stabilization: Stabilization = None
) -> tuple[list[list[Scalar]], list[Scalar]]:
    """Return K and k of K a = k, without the rows that are zero by structure; both empty for a tree."""
    equations = constraint_equations(tree, q, v, time=time)
    k = stabilized_k(equations, stabilization)
    rows = [i for i, row in enumerate(equations.K) if not all(is_zero(x) for x in row)]
    return [equations.K[i] for i in rows], [k[i] for i in rows]

"""Derivatives of forward dynamics under loops and other constraints, by implicit differentiation.

M a + b - K^T lambda = tau and K a = k hold along every change (Featherstone 2008 Eqs 8.34 to 8.36), so that

    [M  -K^T] [da     ]   [dtau - (dID/dx) + (dK^T/dx) lambda]
    [K    0 ] [dlambda] = [(dk/dx) - (dK/dx) a               ]       with ID of the spanning tree at a    (1)

has the matrix of the equations of motion themselves: one factorisation serves a and all columns. Rows of K
that the rank decision drops are dropped here too, so that the result is the derivative of what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

from dalembert.algorithms.applied_forces import Loads, Stabilization
from dalembert.algorithms.constraints import constraint_equations, stabilized_k
from dalembert.algorithms.declaration import CONSTRAINED_LOADS, LOADS, REQUIRED, later, public
from dalembert.algorithms.dense import Matrix, dot, identity, plus, product, times, transpose, unit, zeros
from dalembert.algorithms.derivatives import (
    Derivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
    solved_columns,
    spanning_tree_derivatives,
)
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.hybrid import PRESCRIBED, hybrid_dynamics, merged_parents, prescribed_places
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.loops.constrained_dynamics import constrained_motion, constrained_system
from dalembert.algorithms.open_tree import (
    CAN_BE_PRESCRIBED,
    HAS_INVERSE,
    KEEPS_CONSTRAINTS,
    WITHIN_REACH,
    is_constrained,
    variable_parents,
)
from dalembert.algorithms.sparse import factor_with_reciprocals
from dalembert.model.configuration import position_rate
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars
from dalembert.spatial.value import leaves

# Derivatives of any algorithm of the dynamics, direction by direction, with dual numbers.
#
# Exact, at about twice the cost of the algorithm for each column: for systems that the closed formulas do not
# cover, and the second witness of those that they do.


def jacobians_of(
    function: Callable[..., Any], tree: Tree, arguments: Sequence[Scalars], given: Scalars = ()
) -> list[Matrix]:
    """Return the Jacobians of a list of scalars f(*arguments), first with respect to q on its tangent space.

    `given`: what else f computes with, where that may hold dual numbers.
    """
    constants = [*given, *(x for argument in arguments for x in argument)]
    jacobians = []
    for place, argument in enumerate(arguments):
        size = tree.nv if place == 0 else len(argument)
        columns = []
        for k in range(size):
            direction = unit(size, k)
            step = position_rate(tree, argument, direction) if place == 0 else direction

            def function_of_argument(x: list[Scalar], place: int = place) -> list[Scalar]:
                values = [*arguments[:place], x, *arguments[place + 1 :]]
                return list(function(*values))

            columns.append(directional_derivative(function_of_argument, argument, step, constants)[1])
        jacobians.append(transpose(columns))
    return jacobians


def directional_inverse_dynamics_derivatives(
    tree: Tree, q: Scalars, v: Scalars, a: Scalars, **options: Any
) -> Derivatives:
    """Return (dtau/dq, dtau/dv, dtau/da) of `inverse_dynamics`, also for systems with constraints."""
    dynamics = lambda *x: inverse_dynamics(tree, *x, **options)
    return Derivatives(*jacobians_of(dynamics, tree, (q, v, a), leaves(options)))


def directional_forward_dynamics_derivatives(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, **options: Any
) -> Derivatives:
    """Return (da/dq, da/dv, da/dtau) of `forward_dynamics`, also for systems with constraints."""
    dynamics = lambda *x: forward_dynamics(tree, *x, **options)
    return Derivatives(*jacobians_of(dynamics, tree, (q, v, tau), leaves(options)))


def constrained_forward_dynamics_derivatives(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    *,
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> Derivatives:
    """Return (da/dq, da/dv, da/dtau) of a under K a = k, by (1).

    With an explicit constraint q = gamma(y) the dynamics are another function off the constraint, and are
    differentiated directly.
    """
    if tree.closure is not None:
        return directional_forward_dynamics_derivatives(tree, q, v, tau, stabilization=stabilization, **given)
    system = constrained_system(tree, q, v, tau, stabilization=stabilization, **given)
    a, multipliers = constrained_motion(system)
    time = given.get("time")
    kept = [multipliers[row] for row in system.rows]

    def equations(q: Scalars, v: Scalars) -> list[Scalar]:
        """Return K^T lambda, then k - K a."""
        found = constraint_equations(tree, q, v, time=time)
        k = stabilized_k(found, stabilization)
        K = [found.K[row] for row in system.rows]
        forces = times(transpose(K), kept) if K else [0.0] * tree.nv
        return [*forces, *(k[row] - dot(found.K[row], a) for row in system.rows)]

    def solve(force: Scalars, k: Scalars) -> list[Scalar]:
        return constrained_motion(system._replace(force=list(force), k=list(k))).a

    of_tree = spanning_tree_derivatives(tree, q, v, a, **given)
    constants = [*a, *kept, *(x for x in (time, stabilization) if x is not None)]
    by_state = []
    for forces, change in zip(of_tree[:2], jacobians_of(equations, tree, (q, v), constants), strict=True):
        columns = []
        for column, moved in zip(transpose(forces), transpose(change), strict=True):
            push = [x - y for x, y in zip(moved[: tree.nv], column, strict=True)]
            columns.append(solve(push, moved[tree.nv :]))
        by_state.append(transpose(columns))
    nothing = [0.0] * len(system.k)
    by_tau = transpose([solve(unit(tree.nv, j), nothing) for j in range(tree.nv)])
    return Derivatives(by_state[0], by_state[1], by_tau)


# Derivatives of hybrid dynamics: forces known at free joints (1), accelerations at prescribed ones (2).
#
# From tau = ID(q, v, a) with a_1 and tau_2 unknown, D = dID/dx at the motion that results:
#
#     da_1 = M_11^-1 (dtau_1 - D_1 dx - M_12 da_2),     dtau_2 = D_2 dx + M_21 da_1 + M_22 da_2            (1)
#
# M_11 is factored with the sparsity of the tree in which prescribed joints are merged (Featherstone 2008
# §9.1).


class HybridDerivatives(NamedTuple):
    """The derivatives of a and tau, both complete, with respect to q (tangent space), v, tau and a.

    Eight matrices `(nv, nv)`; columns of inputs that are not read (tau of prescribed joints, a of free ones)
    are zero.
    """

    a_by_q: Matrix
    a_by_v: Matrix
    a_by_tau: Matrix
    a_by_a: Matrix
    tau_by_q: Matrix
    tau_by_v: Matrix
    tau_by_tau: Matrix
    tau_by_a: Matrix


@public(
    "dynamics",
    "q v tau a",
    optional=CONSTRAINED_LOADS,
    method="spatial",
    options={"prescribed": replace(PRESCRIBED, default=REQUIRED)},
    frame_free=True,
    preconditions=(CAN_BE_PRESCRIBED, *HAS_INVERSE),
    empty=(0, 0),
    returns="HybridDynamicsDerivatives",
)
def hybrid_dynamics_derivatives(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    a: Scalars,
    *,
    prescribed: Collection[str] = (),
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> HybridDerivatives:
    """Return the derivatives of (a, tau) = `hybrid_dynamics`, eight matrices `(…, nv, nv)` from one kernel.

    With free joints 1, prescribed joints 2 and D = dID/dx at the resulting motion:

        da_1 = M_11^-1 (dtau_1 - D_1 dx - M_12 da_2),   dtau_2 = D_2 dx + M_21 da_1 + M_22 da_2

    (Featherstone 2008 section 9.1). Models with loops or other constraints use dual numbers. Arguments as in
    `hybrid_dynamics`; `out`: eight arrays for the results.

    >>> model = da.models.double_pendulum()
    >>> first = [model.joints[0].name]
    >>> found = da.dynamics.hybrid_dynamics_derivatives(
    ...     model, [0.0, 0.1], [0.0, 0.0], [0.0, 0.0], [2.0, 0.0], prescribed=first)
    >>> found.a_by_a.round(3).tolist()  # what the second joint does when the first accelerates
    [[1.0, 0.0], [-1.995, 0.0]]
    """
    known_places = prescribed_places(tree, prescribed)
    n = tree.nv

    def dynamics(*state: Scalars) -> tuple[list[Scalar], list[Scalar]]:
        return hybrid_dynamics(tree, *state, prescribed=prescribed, stabilization=stabilization, **given)

    if is_constrained(tree):
        held = leaves([stabilization, given])
        both = jacobians_of(lambda *x: leaves(dynamics(*x)), tree, (q, v, tau, a), held)
        return HybridDerivatives(*(rows[:n] for rows in both), *(rows[n:] for rows in both))
    motion, _ = dynamics(q, v, tau, a)
    by_q, by_v, M = spanning_tree_derivatives(tree, q, v, motion, **given)
    free = [k for k in range(n) if k not in known_places]
    lam, _ = merged_parents(variable_parents(tree), free)
    L, reciprocals = factor_with_reciprocals([[M[i][j] for j in free] for i in free], lam)
    known = [k in known_places for k in range(n)]
    by_tau = [[-x if not known[j] else 0.0 for j, x in enumerate(row)] for row in identity(n)]
    by_a = [[x if known[j] else 0.0 for j, x in enumerate(row)] for row in M]
    fixed = [[x if known[j] else 0.0 for j, x in enumerate(row)] for row in identity(n)]
    changes = (by_q, by_v, by_tau, by_a)
    parts = solved_columns(L, reciprocals, lam, *([change[i] for i in free] for change in changes))
    a_by, tau_by = [], []
    for change, part, own in zip(changes, parts, (None, None, None, fixed), strict=True):
        rows = zeros(n, n) if own is None else own
        for i, row in zip(free, part, strict=True):
            rows[i] = row
        a_by.append(rows)
        coupled = product([[M[i][j] for j in free] for i in range(n)], part) if part else zeros(n, n)
        needed = plus(change, coupled)
        tau_by.append([needed[i] if known[i] else [0.0] * n for i in range(n)])
    for i in free:
        tau_by[2][i] = unit(n, i)
    return HybridDerivatives(*a_by, *tau_by)


# The derivatives that are public, for trees and for systems with constraints.


@public(
    "dynamics",
    "q v a",
    name="inverse_dynamics_derivatives",
    optional=LOADS,
    others={
        "spatial": inverse_dynamics_derivatives,
        "directional": directional_inverse_dynamics_derivatives,
        "guenter_rose": later("textbook:inverse_dynamics_partials"),
    },
    frame_free=True,
    preconditions=(KEEPS_CONSTRAINTS, WITHIN_REACH),
    empty=(0, 0),
    returns="tuple[Array, Array, Array]",
)
def any_inverse_dynamics_derivatives(tree: Tree, *args: Any, **given: Any) -> tuple[Matrix, ...]:
    """Return (dtau/dq, dtau/dv, dtau/da) of tau = ID(q, v, a), `(…, nv, nv)` each, from one kernel.

    Column k of dtau/dq is the derivative along `integrate(q, e_k)` on the tangent space. For trees dtau/da =
    M. Entries of two joints of which neither supports the other are zero. `external_forces` as in
    `inverse_dynamics`, constant in the coordinates in which they are given. `out`: three arrays for the
    results.

    With composites I^c, B^c, f^c of subtrees and the changes psi, chi, phi of velocity and acceleration,
    dtau_i/dq_j = S_i . (I_i^c chi_j + 2 B_i^c psi_j), in O(n d) (Singh, Russell, Wensing 2022; Carpentier,
    Mansard 2018), extended to joints whose S depends on q. `method="directional"`: by dual numbers, the
    default for models with loops or other constraints; `"guenter_rose"`: the recursions of Guenter and Rose
    (2000).

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> by_q, by_v, by_a = da.inverse_dynamics_derivatives(model, [np.pi / 3], [0.0], [0.0])
    >>> print(by_q.round(4), by_v.round(4), by_a.round(4))  # m g l cos q, 0, m l^2
    [[29.43]] [[0.]] [[12.]]
    """
    if is_constrained(tree):
        return directional_inverse_dynamics_derivatives(tree, *args, **given)
    return inverse_dynamics_derivatives(tree, *args, **given)


@public(
    "dynamics",
    "q v tau",
    name="forward_dynamics_derivatives",
    optional=CONSTRAINED_LOADS,
    others={
        "spatial": forward_dynamics_derivatives,
        "implicit": constrained_forward_dynamics_derivatives,
        "directional": directional_forward_dynamics_derivatives,
    },
    frame_free=True,
    preconditions=HAS_INVERSE,
    empty=(0, 0),
    returns="tuple[Array, Array, Array]",
)
def any_forward_dynamics_derivatives(tree: Tree, *args: Any, **given: Any) -> tuple[Matrix, ...]:
    """Return (da/dq, da/dv, da/dtau) of a = FD(q, v, tau), `(…, nv, nv)` each, from one kernel.

    From tau = ID(q, v, a(q, v, tau)): da/dx = -M^-1 dID/dx at the resulting a, and da/dtau = M^-1, with one
    sparse factorisation of M. Derivatives with respect to q are on the tangent space. `external_forces` as in
    `inverse_dynamics`, constant in the coordinates in which they are given. `out`: three arrays for the
    results.

    If loops or other constraints bind the coordinates, M a + b - K^T lambda = tau and K a = k are
    differentiated together (`method="implicit"`); the rank of da/dtau is then that of the motions that K
    allows. `stabilization` as in `forward_dynamics`. `method="directional"`: by dual numbers.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> by_q, by_v, by_tau = da.forward_dynamics_derivatives(model, [np.pi / 3], [0.0], [0.0])
    >>> print(by_q.round(4), by_tau.round(4))  # -g / l cos q, 1 / (m l^2)
    [[-2.4525]] [[0.0833]]
    """
    if is_constrained(tree):
        return constrained_forward_dynamics_derivatives(tree, *args, **given)
    given.pop("stabilization", None)  # of constraints alone
    return forward_dynamics_derivatives(tree, *args, **given)

"""Hybrid dynamics: forces at some joints, accelerations at the others (Featherstone 2008 chapter 9)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Unpack

from dalembert.algorithms.applied_forces import Conditions, Loads, Stabilization, body_forces
from dalembert.algorithms.articulated import velocity_products
from dalembert.algorithms.clusters import articulated_accelerations
from dalembert.algorithms.declaration import CONSTRAINED_LOADS, Option, public
from dalembert.algorithms.dense import Matrix, dot
from dalembert.algorithms.inverse_dynamics import differential_inverse_dynamics, inverse_dynamics
from dalembert.algorithms.loops.constrained_dynamics import constrained_motion, constrained_system
from dalembert.algorithms.loops.loop_forces import constraint_violation
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import (
    CAN_BE_PRESCRIBED,
    HAS_INVERSE,
    is_constrained,
    require_regular_inertia,
    variable_parents,
)
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.errors import ModelError, require_choice, require_names
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, is_zero

# Prescribed joints, the bodies that the other joints support, and the reduced tree (§9.1).
#
# fd is the set of joints whose forces are known and whose accelerations are wanted; the others are
# prescribed.


Names = Collection[str]
"""The names of joints."""


def prescribed_places(tree: Tree, prescribed: Names) -> frozenset[int]:
    """Return the places in v of the named joints."""
    prescribed = require_names("hybrid_dynamics: prescribed", prescribed)
    bodies = {body.joint_name: body for body in tree.bodies}
    places: set[int] = set()
    for name in prescribed:
        require_choice("joint", name, bodies)
        body = bodies[name]
        if body.dependence is not None:
            followed = {place for _, place, _ in body.dependence.terms}
            leaders = [b.joint_name for b in tree.bodies if followed & {*range(tree.nv)[b.v_slice]}]
            raise ModelError(
                f'hybrid_dynamics: joint "{name}" follows others by a coupling and has no place in v; '
                f"prescribe {', '.join(leaders)} instead"
            )
        places |= {*range(tree.nv)[body.v_slice]}
    return frozenset(places)


def _read_prescribed(model: Tree, prescribed: object) -> tuple[str, ...]:
    names = require_names("hybrid_dynamics: prescribed", prescribed)
    prescribed_places(model, names)
    return names


def supported_bodies(parents: Sequence[int], free: Collection[int]) -> list[bool]:
    """Return which bodies are in nu(fd), those that joints of fd support (Eq. 9.5); -1 is the world."""
    supported: list[bool] = []
    for i, parent in enumerate(parents):
        supported.append(i in free or (parent >= 0 and supported[parent]))
    return supported


def merged_parents(parents: Sequence[int], free: Collection[int]) -> tuple[list[int], list[int]]:
    """Return (lambda', map): the graph with the nodes at both ends of every prescribed joint merged
    (Fig. 9.1).

    map[i] is the new number of node i, -1 for what merges with the world. The same for nodes that are bodies
    and for nodes that are velocity variables, in which joints of several freedoms are expanded.
    """
    merged: list[int] = []
    number: list[int] = []
    for i, parent in enumerate(parents):
        below = number[parent] if parent >= 0 else -1
        if i in free:
            merged.append(below)
            number.append(len(merged) - 1)
        else:
            number.append(below)
    return merged, number


# Hybrid dynamics by articulated bodies, in O(n) (Featherstone 2008 section 9.2, Tables 9.2 and 9.3).


def hybrid_dynamics_articulated(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, a: Scalars, prescribed: Names, **given: Unpack[Loads]
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of H a + C = tau with tau known at free joints and a at the prescribed ones.

    A prescribed joint leaves the equations without an elimination: I^a = I^A, c holds S a, and
    tau = S^T (I^A a + p^A) + armature a at the end (Eqs 9.9, 9.10). Coupled joints as in `gears`.
    """
    known = prescribed_places(tree, prescribed)
    moved = velocity_products(tree, q, v, body_forces(tree, q, **given), given.get("time"))
    motion = articulated_accelerations(tree, moved, tau, function="hybrid_dynamics", a=a, prescribed=known)
    return motion.a, [motion.tau[k] if k in known else tau[k] for k in range(tree.nv)]


# Hybrid dynamics of systems with loop joints and other constraints.
#
# With free variables (1) and prescribed ones (2), H a + C = tau + K^T lambda and K a = k become
#
#     H_11 a_1 = tau_1 - C_1 - H_12 a_2 + K_1^T lambda,     K_1 a_1 = k - K_2 a_2                        (1)
#     tau_2 = H_21 a_1 + H_22 a_2 + C_2 - K_2^T lambda                                                   (2)
#
# (1) has the form of forward dynamics with fewer unknowns and is solved as such (section 8.5). Prescribed
# motions that the constraints do not allow break them, by what `prescribed_violation` measures.


def hybrid_dynamics_constrained(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    a: Scalars,
    *,
    prescribed: Names = (),
    **given: Unpack[Conditions],
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of H a + C = tau + K^T lambda, K a = k, with tau known at free joints."""
    known = prescribed_places(tree, prescribed)
    free = [i for i in range(tree.nv) if i not in known]
    second = sorted(known)
    a_2 = [a[i] for i in second]
    whole = constrained_system(tree, q, v, [0.0] * tree.nv, **given)
    M, force = whole.M, whole.force
    kept = [n for n, row in enumerate(whole.K) if not all(is_zero(row[i]) for i in free)]
    K, rows = [whole.K[n] for n in kept], tuple(whole.rows[n] for n in kept)
    part = whole._replace(  # (1), with the rows of K that bind free variables
        M=[[M[i][j] for j in free] for i in free],
        force=[tau[i] + force[i] - dot([M[i][j] for j in second], a_2) for i in free],
        K=[[row[i] for i in free] for row in K],
        k=[whole.k[n] - dot([whole.K[n][j] for j in second], a_2) for n in kept],
        rows=rows,
        parents=merged_parents(whole.parents, free)[0],
    )
    motion = constrained_motion(part)
    found = dict(zip(free, motion.a, strict=True))
    a = [found[i] if i in found else a[i] for i in range(tree.nv)]
    multipliers = [motion.multipliers[row] for row in rows]
    need = [
        dot(M[i], a) - force[i] - dot([row[i] for row in K], multipliers)  # (2)
        if i in known
        else tau[i]
        for i in range(tree.nv)
    ]
    return a, need


def prescribed_violation(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    a: Scalars,
    *,
    prescribed: Names = (),
    **given: Unpack[Conditions],
) -> Scalar:
    """Return `constraint_violation` of the motion; zero if nothing is prescribed, or nothing constrained."""
    if not prescribed or not is_constrained(tree):
        return 0.0
    found, _ = hybrid_dynamics_constrained(tree, q, v, tau, a, prescribed=prescribed, **given)
    time, stabilization = given.get("time"), given.get("stabilization")
    return constraint_violation(tree, q, v, found, time=time, stabilization=stabilization)


# Hybrid dynamics by the joint-space inertia matrix of the free joints (Featherstone 2008 section 9.1).
#
# With the free variables first (1) and the prescribed ones second (2),
#
#     C'   = ID(q, v, (0, a_2))                    forces that the prescribed accelerations need      (9.3)
#     H_11 a_1 = tau_1 - C'_1                      solved with the sparsity of the merged tree        (9.2)
#     tau  = C' + ID_delta(a_1, 0)                 the rest of the forces
#
# H_11 alone is computed, by Table 9.1. (There the while loop stands inside "if i in fd", and C' is made with
# accelerations a_2; the printed text has lost an indentation and dots.)


def hybrid_dynamics_by_matrix(
    tree: Tree, q: Scalars, v: Scalars, tau: Scalars, a: Scalars, prescribed: Names, **given: Unpack[Loads]
) -> tuple[list[Scalar], list[Scalar]]:
    """Return (a, tau) of H a + C = tau with tau known at free joints and a at the prescribed ones."""
    time = given.get("time")
    known = prescribed_places(tree, prescribed)
    free = [k for k in range(tree.nv) if k not in known]
    C = inverse_dynamics(tree, q, v, [a[k] if k in known else 0.0 for k in range(tree.nv)], **given)
    if not free:
        return list(a), C
    lam, _ = merged_parents(variable_parents(tree), free)
    L, reciprocals = factor_with_reciprocals(free_mass_matrix(tree, q, prescribed=prescribed, time=time), lam)
    a_1 = solve_with_reciprocals(L, reciprocals, lam, [tau[k] - C[k] for k in free])
    place = {k: n for n, k in enumerate(free)}
    wanted = [a_1[place[k]] if k in place else 0.0 for k in range(tree.nv)]
    more = differential_inverse_dynamics(tree, q, wanted, time=time)
    return (
        [a_1[place[k]] if k in place else a[k] for k in range(tree.nv)],
        [tau[k] if k in place else C[k] + more[k] for k in range(tree.nv)],
    )


def free_mass_matrix(tree: Tree, q: Scalars, *, prescribed: Names = (), time: Time = None) -> Matrix:
    """Return H_11 of the joints that are not prescribed, in the order of v: Table 9.1.

    Compiled, it costs what the table does: what composite inertias would need outside nu(fd) is not used, and
    is left out.
    """
    known = prescribed_places(tree, prescribed)
    free = [k for k in range(tree.nv) if k not in known]
    H = mass_matrix(tree, q, time=time)
    return [[H[i][j] for j in free] for i in free]


# Hybrid dynamics: forces are given at some joints, accelerations at the others; both are completed.

METHODS = {"articulated": hybrid_dynamics_articulated, "matrix": hybrid_dynamics_by_matrix}


def _methods() -> dict[str, Callable[..., Any]]:
    return {name: functools.partial(hybrid_dynamics, method=name) for name in METHODS}


PRESCRIBED: Final = Option("Collection[str]", (), read=_read_prescribed)
"""The option that names the joints whose accelerations are given."""


@public(
    "dynamics",
    "q v tau a",
    optional=CONSTRAINED_LOADS,
    others=lambda: _methods(),
    options={"prescribed": PRESCRIBED},
    frame_free=True,
    preconditions=(CAN_BE_PRESCRIBED, *HAS_INVERSE),
    returns="tuple[Array, Array]",
)
def hybrid_dynamics(
    tree: Tree,
    q: Scalars,
    v: Scalars,
    tau: Scalars,
    a: Scalars,
    *,
    prescribed: Names = (),
    method: str = "articulated",
    stabilization: Stabilization = None,
    **given: Unpack[Loads],
) -> tuple[list[Scalar], list[Scalar]]:
    """Solve M(q) a + b(q, v) = tau + J^T external for a at the free joints and tau at the prescribed ones.

    Returns (a, tau), both complete `(…, nv)`. tau [N m or N] is read at the free joints, and a [rad/s^2 or
    m/s^2] at the joints named in `prescribed`; other entries are ignored. With no joint prescribed it is
    forward dynamics, with all prescribed inverse dynamics. `method`: "articulated", O(n), or "matrix".
    `external_forces` as in `inverse_dynamics`. Of coupled joints prescribe those that the others follow. Loop
    joints are satisfied, with time constant `stabilization` T_stab [s]; prescribed accelerations that violate
    them are rejected (`check`). Featherstone 2008 sections 9.1 and 9.2.

    >>> model = da.models.cart_pole()  # push the cart with given acceleration: how does the pole swing?
    >>> names = [joint.name for joint in model.joints]
    >>> a, tau = da.dynamics.hybrid_dynamics(
    ...     model, [0, 0.1], [0, 0], tau=[0, 0], a=[2.0, 0], prescribed=names[:1])
    >>> float(a[0]), bool(abs(da.inverse_dynamics(model, [0, 0.1], [0, 0], a) - tau).max() < 1e-12)
    (2.0, True)
    """
    require_choice("method of hybrid_dynamics", method, METHODS)
    if tree.loop_names:
        return hybrid_dynamics_constrained(
            tree, q, v, tau, a, prescribed=prescribed, stabilization=stabilization, **given
        )
    require_regular_inertia(tree, "hybrid_dynamics", prescribed)
    return METHODS[method](tree, q, v, tau, a, prescribed=prescribed, **given)

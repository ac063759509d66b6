"""Preconditions of algorithms for trees: no loops, mass on every moving body, independent coordinates."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from dalembert.algorithms.declaration import Precondition, later
from dalembert.algorithms.sparse import depths, expanded_parents
from dalembert.errors import ModelError
from dalembert.model import configuration
from dalembert.model.body import Body
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar, Scalars, is_one, is_zero, logical_and, maximum, select
from dalembert.spatial import Force


def is_constrained(tree: Tree) -> bool:
    """Return whether loop joints, users' constraints or an explicit constraint bind the coordinates."""
    return bool(tree.loop_names) or bool(tree.constraints) or tree.closure is not None


def require_open_tree(tree: Tree, function: str) -> None:
    """Refuse a model with constraints, whose forces a tree algorithm would leave out."""
    if tree.loop_names:
        names = ", ".join(f'"{name}"' for name in tree.loop_names)
        raise ModelError(
            f"{function}: the model has loops or other constraints ({names}), and this algorithm is for "
            "trees; use model.tree() for the spanning tree without them"
        )


def require_moving_mass(tree: Tree, function: str) -> None:
    """Refuse a joint that moves nothing with inertia at any q: forces on it have no finite acceleration."""
    empty = [
        all(is_zero(number) for number in body.inertia.leaves())
        and any(is_zero(armature) for armature in body.armature)
        for body in tree.bodies
    ]
    for body in reversed(tree.bodies):
        if not empty[body.index] and body.parent >= 0:
            empty[body.parent] = False
    for body in tree.bodies:
        if empty[body.index] and body.nv > 0 and body.dependence is None:
            raise ModelError(
                f'{function}: joint "{body.joint_name}" moves body "{body.name}", which has no mass and '
                "carries none, so that its acceleration is undefined; give the body an inertia or the joint "
                "an armature, or lock the joint with model.lock"
            )
    require_regular_inertia(tree, function)


def require_regular_inertia(tree: Tree, function: str, prescribed: Collection[str] = ()) -> None:
    """Refuse a tree whose mass matrix is singular at every q, without the rows of the prescribed joints."""
    from dalembert.algorithms.moving_inertia import joint_without_inertia  # which needs M, and this module

    lost = joint_without_inertia(tree, prescribed)
    if lost is not None:
        raise ModelError(
            f'{function}: joint "{lost.joint_name}" has a freedom along which nothing with inertia moves: '
            "the mass matrix is singular at every q; give what the joint carries mass and moments of inertia "
            "or the joint an armature, or lock the joint with model.lock"
        )


def has_couplings(tree: Tree) -> bool:
    """Return whether some joints follow others (mimic, gears), so that v holds independent variables."""
    return any(body.dependence is not None for body in tree.bodies)


# The places of joint variables in v, and the branch-induced zeros of a tree's joint-space inertia matrix.


def velocity_places(body: Body) -> list[list[tuple[int, float]]]:
    """Return for each velocity variable of a joint its places in v, each with a ratio (a row of G)."""
    if body.dependence is not None:
        return [[(place, ratio) for _, place, ratio in body.dependence.terms]]
    return [[(place, 1.0)] for place in range(body.v_slice.start, body.v_slice.stop)]


def add_block(M: list[list[Scalar]], i: Body, j: Body, block: Sequence[Scalars]) -> None:
    """Add a block of joint i's rows and joint j's columns to M as G^T block G."""
    for places_r, row in zip(velocity_places(i), block, strict=True):
        for places_c, x in zip(velocity_places(j), row, strict=True):
            for r, ratio_r in places_r:
                for c, ratio_c in places_c:
                    ratio = ratio_r * ratio_c
                    M[r][c] = M[r][c] + (x if is_one(ratio) else x * ratio)


def add_symmetric(M: list[list[Scalar]], i: Body, j: Body, block: Sequence[Scalars]) -> None:
    """Add a block of a symmetric matrix and, unless it is on the diagonal, its transpose."""
    add_block(M, i, j, block)
    if i is not j:
        add_block(M, j, i, [[row[c] for row in block] for c in range(j.nv)])


def variable_parents(tree: Tree) -> list[int]:
    """Return lambda' of the tree's velocity variables (Featherstone 2008 Table 6.4).

    Couplings connect variables of different branches. There lambda' is the elimination tree of G^T H G: the
    parent of a variable is the last one before it that it meets in the matrix or in the fill of its factors.
    """
    if not has_couplings(tree):
        return expanded_parents(tree.parents, [body.nv for body in tree.bodies])
    below: list[set[int]] = [set() for _ in range(tree.nv)]
    supporting: dict[int, set[int]] = {-1: set()}
    for body in tree.bodies:
        own = {place for row in velocity_places(body) for place, _ in row}
        supporting[body.index] = supporting[body.parent] | own
        for k in own:
            for j in supporting[body.index]:
                below[max(j, k)].add(min(j, k))
    lam = []
    for k in reversed(range(tree.nv)):
        parent = max(below[k] - {k}, default=-1)
        if parent >= 0:
            below[parent] |= below[k] - {k}
        lam.append(parent)
    return lam[::-1]


def carry_to_ancestors(
    tree: Tree, joints: PerBody[Any], body: Body, forces: list[Force]
) -> Iterator[tuple[Body, list[Force]]]:
    """Yield every ancestor of a body, nearest first, with the forces in its coordinates (Table 6.2)."""
    while body.parent >= 0:
        forces = [joints[body].X.inverse_apply(f) for f in forces]
        body = tree.bodies[body.parent]
        yield body, forces


def matrix_density(tree: Tree) -> float:
    """Return rho, the fraction of structurally nonzero elements of M (§6.4); 1 for an unbranched chain."""
    lam = variable_parents(tree)
    n = len(lam)
    below = sum(d_k - 1 for d_k in depths(lam))
    return (n + 2 * below) / (n * n) if n else 1.0


# Preconditions that depend on the state, sample by sample

KEEPS_CONSTRAINTS: Final = Precondition(
    later("algorithms.loops:constraint_violation"),
    {"float64": 1e-6, "float32": 1e-3},
    "a breaks the constraints, K a - k is {measure:.3g} of its terms; da.forward_dynamics gives "
    "accelerations that keep them, constraint_jacobian and constraint_bias of da.constraints are K and k",
)

WITHIN_REACH: Final = Precondition(
    later("algorithms.loops:unreachable_share"),
    {"float64": 1e-6, "float32": 1e-3},
    "the actuated joints cannot produce this motion, {measure:.3g} of the forces that it needs is out of "
    "their reach; see da.analysis.actuation(model, q) and builder.set_actuated",
)

CAN_BE_PRESCRIBED: Final = Precondition(
    later("algorithms.hybrid:prescribed_violation"),
    {"float64": 1e-4, "float32": 1e-2},
    "the prescribed accelerations break the constraints, K a - k is {measure:.3g} of its terms; prescribe as "
    "many joints as the system has freedoms (da.analysis.mobility), or accelerations that keep the "
    "constraints",
)

_MOVES_INERTIA: Final = Precondition(
    later("algorithms.moving_inertia:inertia_loss"),
    {"float64": 1e13, "float32": 1e6},  # the digits of the float type: the rest of the pivot is rounding
    'in this configuration joint "{place}" has a freedom along which nothing with inertia moves: the mass '
    "matrix is singular; give what the joint carries moments of inertia, or the joint an armature",
    later("algorithms.moving_inertia:lost_joint"),
)

_REGULAR_COORDINATES: Final = Precondition(
    later("algorithms.moving_inertia:coordinate_singularity"),
    {"float64": -3e-7, "float32": -1e-3},  # the square of it is left of a pivot of M, as above
    'in this configuration the coordinates of joint "{place}" are singular (gimbal lock), so that some '
    "motions of it have no velocity v; use da.Spherical, whose coordinates are a quaternion, or give the "
    "joint an armature",
    later("algorithms.moving_inertia:singular_joint"),
)

HAS_INVERSE: Final = (_MOVES_INERTIA, _REGULAR_COORDINATES)
"""Preconditions of functions that divide by the mass matrix."""


def _cannot_be_normalized(model: Any, q: Sequence[Scalar]) -> Scalar:
    """Return one where the square of a quaternion's norm is zero, infinite or NaN, else zero."""
    bad: Scalar = 0.0
    for place in configuration.unit_quaternions(model):
        square = sum((x * x for x in q[place]), 0.0)
        bad = maximum(bad, select(logical_and(square > 0.0, square < math.inf), 0.0, 1.0))
    return bad


def _quaternion_without_direction(model: Any, q: Sequence[float]) -> str:
    """Return the place in q of the first quaternion that has no direction."""
    for place in configuration.unit_quaternions(model):
        if not 0.0 < sum(x * x for x in q[place]) < math.inf:
            return f"q[{place.start}:{place.stop}] = ({', '.join(f'{x:.3g}' for x in q[place])})"
    return "q"


CAN_BE_NORMALIZED: Final = Precondition(
    _cannot_be_normalized,
    {"float64": 0.5, "float32": 0.5},
    "the quaternion {place} has no direction, so that it cannot be scaled to unit norm; no rotation is "
    "(1, 0, 0, 0)",
    _quaternion_without_direction,
)

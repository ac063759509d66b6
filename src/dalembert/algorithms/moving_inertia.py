"""Decide whether the joint-space inertia M(q) of a tree can be inverted.

Kinetic energy is a sum over the bodies, 2 T = sum v_i^T I_i v_i + sum armature v^2. If T = 0 and all I_i are
positive semidefinite, each term is zero. Going outward from the world, the parent of body i is at rest, so
v_i = S_i qdot_i, and

    S_i^T I_i S_i + diag(armature_i) positive definite for each moving body  =>  qdot = 0  =>  M > 0     (1)

for every q at which that holds: at all of them where S_i is constant, or I_i > 0 and S_i has full rank. Where
S_i loses rank the coordinates of the joint are singular (Euler angles in gimbal lock), which `Joint` knows
itself (`singularity_measure`). Most models fulfil (1) at every q, and need no test at run time. Of the others
(massless links between joints) some have an M that is singular at every q, which is found by factoring M at a
few of them; the rest are singular at some q only, and are tested sample by sample.

That test follows the articulated-body recursion, but not through the whole tree. Articulated inertias exceed
the body's own, I_i^A >= I_i, so that only joints without (1) need it. And beyond a body with I_i > 0 nothing
changes: I_i^A > 0 for any load of the body, so that the kernel of I_i^a = I_i^A - U D^-1 U^T is the span of
S_i (empty with armature) for every positive definite I_i^A, the unit inertia among them. Sums of positive
semidefinite matrices with the same kernels have the same kernels.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from numbers import Real
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.aligned import AlignedTree
from dalembert.algorithms.articulated import eliminate_joint
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.algorithms.open_tree import has_couplings, is_constrained
from dalembert.model import configuration
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, Scalars, Time, absolute, is_one, is_zero, maximum
from dalembert.spatial import ArticulatedInertia, RigidInertia, SymMat3, Vec3, leaves

Array = npt.NDArray[np.float64]
Doubt: TypeAlias = tuple[list[list[float]], tuple[int, ...]]

SAMPLED_STATES: Final = 3
"""Random configurations at which M is factored: singular at all of them means at every q (a set of measure
zero is hit by three independent draws in no run)."""

SAMPLED_TIME: Final = 0.37
"""The time [s] of time-dependent joints in these samples: any that is not special."""

MIN_PIVOT_RATIO: Final = 1e-12
"""Ratio of a pivot of M to the diagonal below which it is rounding; 1e-7 for a uniform 300-link chain."""

MIN_EIGENVALUE_RATIO: Final = 1e-9
"""Smallest over largest eigenvalue of the scaled matrix in (1), for it to count as positive definite."""

UNIT_INERTIA: Final = RigidInertia(1.0, Vec3.zero(), SymMat3(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
"""A mass of 1 kg with moments of 1 kg m^2 at the origin, of literals."""

MAX_SAMPLED_NV: Final = 300
"""Velocity variables above which M is not factored: that takes their cube in time."""


def _singularities(
    tree: Tree, q: Scalars, *_: Any, prescribed: Collection[str] = (), time: Time = None, **__: Any
) -> list[tuple[Body, Scalar]]:
    """Return `singularity_measure`, zero where S loses rank, of the joints that have singularities."""
    if is_constrained(tree):
        return []
    return [
        (body, body.joint.singularity_measure(body.own_q(q), time))
        for body in tree.bodies
        if body.joint_name not in prescribed
        and any(is_zero(m) for m in body.armature)
        and not is_one(body.joint.singularity_measure([0.5] * body.nq, time))
    ]


def joint_without_inertia(tree: Tree, prescribed: Collection[str] = ()) -> Body | None:
    """Return the outermost body whose joint moves no inertia at any q, joints farther out being free.

    None if every joint moves inertia, or if the inertias are run-time parameters. `prescribed`: names of
    joints whose accelerations are given, which need no inertia.
    """
    states, doubtful = _doubtful_bodies(tree) if tree.nv <= MAX_SAMPLED_NV else ([], ())
    if not doubtful:
        return None
    owners = {k: b for b in tree.bodies for k in range(b.v_slice.start, b.v_slice.stop)}
    free = [k for k in range(tree.nv) if owners[k].joint_name not in prescribed]
    found = None
    for q in states:
        place = _singular_place(_mass_matrix(tree, q)[np.ix_(free, free)])
        if place is None:
            return None
        found = owners[free[place]]
    return found


def _losses(
    tree: Tree, q: Scalars, *_: Any, prescribed: Collection[str] = (), time: Time = None, **__: Any
) -> list[tuple[Body, Scalar]]:
    """Return, for each velocity variable of a joint without (1), the ratio of a typical diagonal element of M
    to the pivot that is left of it at q, which is infinite where M is singular. Empty for trees that need no
    test: those with (1), with constraints, with couplings, and with run-time parameters."""
    if is_constrained(tree) or has_couplings(tree) or tree.nv > MAX_SAMPLED_NV:
        return []
    states, doubtful = _doubtful_bodies(tree)
    if not doubtful:
        return []
    solid = [_is_positive_definite(np.array(body.inertia.matrix(), float)) for body in tree.bodies]
    needed: list[bool] = []
    for body in tree.bodies:
        carried = body.parent >= 0 and needed[body.parent] and not solid[body.parent]
        needed.append(carried or body.index in doubtful)
    found: list[tuple[Body, Scalar]] = []
    scales: dict[int, list[float]] = {body: [] for body in doubtful}

    def handle(body: Body, carried: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia.zero() + UNIT_INERTIA if solid[body.index] else carried + body.inertia

    def compose(state: list[float], body: Body, carried: ArticulatedInertia) -> tuple[Any, None]:
        """Add composite inertias, and keep their largest contribution to a joint's variables."""
        if not needed[body.index]:
            return ArticulatedInertia.zero(), None
        motion, I_C = body.jcalc(state, None, SAMPLED_TIME), handle(body, carried)
        if body.index in doubtful:
            own = [float(s.dot(I_C * s) + m) for s, m in zip(motion.S, body.armature, strict=True)]
            scales[body.index] = [max(pair) for pair in zip(own, scales[body.index] or own, strict=True)]
        return motion.X.inverse_apply(I_C), None

    def eliminate(body: Body, carried: ArticulatedInertia) -> tuple[ArticulatedInertia, None]:
        if not needed[body.index]:
            return ArticulatedInertia.zero(), None
        motion, I_A = body.jcalc(q, None, time), handle(body, carried)
        if body.joint_name in prescribed:
            return motion.X.inverse_apply(I_A), None
        try:
            joint = eliminate_joint(I_A, motion.S, body.armature)
        except ZeroDivisionError:  # of plain floats, where compiled code has an infinite reciprocal
            found.append((body, math.inf))
            return ArticulatedInertia.zero(), None
        if body.index in doubtful:
            for scale, reciprocal in zip(scales[body.index], joint.D.reciprocals, strict=True):
                found.append((body, scale * absolute(reciprocal)))
        return motion.X.inverse_apply(joint.I_a), None

    for state in states:
        tree.inward(functools.partial(compose, state), ArticulatedInertia.zero())
    tree.inward(eliminate, ArticulatedInertia.zero())
    return found


Measures = Callable[..., list[tuple[Body, Scalar]]]
"""Numbers by which joints may fail a precondition, each with the body of the joint."""


def _largest(measures: Measures, sign: int, least: float) -> Callable[..., Scalar]:
    """Return the function that gives the largest number, or minus the least; `least` without any."""

    def largest(*args: Any, **given: Any) -> Scalar:
        found: Scalar = least
        for _, number in measures(*args, **given):
            # A NaN leaves the others: rows that are not numbers pass through.
            found = maximum(number if sign > 0 else -number, found)
        return found

    return largest


def _joint_of_largest(measures: Measures, sign: int) -> Callable[..., str]:
    """Return the function that gives the name of the joint with that number, for a message."""
    return lambda *args, **given: (
        max(measures(*args, **given), key=lambda x: sign * float(x[1]))[0].joint_name
    )


# How near the coordinates of a joint are to a singularity, and how much of a joint's inertia is lost.
coordinate_singularity = _largest(_singularities, -1, least=-1.0)
singular_joint = _joint_of_largest(_singularities, -1)
inertia_loss = _largest(_losses, 1, least=0.0)
lost_joint = _joint_of_largest(_losses, 1)


def _doubtful_bodies(tree: Tree) -> Doubt:
    """Return random configurations of a tree of plain numbers, and the numbers of the moving bodies for which
    (1) is not known at every q: all of them where some inertia is not positive semidefinite.

    Functions of plain numbers ask for this in each call, so that it is kept with the model, unless functions
    of the user's in the model may change it.
    """
    original = tree.original if isinstance(tree, AlignedTree) else tree
    if not isinstance(original, Model):
        return [], ()
    key = ("doubtful bodies", type(tree))
    kept: Doubt | None = None if original.has_functions else original.functions.get(key)
    if kept is not None:
        return kept
    rng = np.random.default_rng(2008)
    states = [configuration.random_state(original, rng)[0].tolist() for _ in range(SAMPLED_STATES)]
    doubtful: tuple[int, ...] = ()
    if all(_is_numeric(body, states[0]) for body in tree.bodies):
        inertias = np.array([body.inertia.matrix() for body in tree.bodies], float).reshape(-1, 6, 6)
        eigenvalues = np.linalg.eigvalsh(inertias)
        physical = not np.any(eigenvalues[:, 0] < -MIN_EIGENVALUE_RATIO * eigenvalues[:, -1])
        moving = (body for body in tree.bodies if body.nv and body.dependence is None)
        doubtful = tuple(
            body.index
            for body in moving
            if not (physical and _is_regular_alone(body, inertias[body.index], states))
        )
    if not original.has_functions:
        original.functions[key] = (states, doubtful)
    return states, doubtful


def _is_regular_alone(body: Body, inertia: Array, states: Sequence[list[float]]) -> bool:
    """Return whether a body and its armature fulfil (1) at every q."""
    subspaces = [np.array([s.to_list() for s in body.jcalc(q, None, SAMPLED_TIME).S], float) for q in states]
    S = subspaces[0]
    if not all(np.allclose(S, other, rtol=1e-12, atol=1e-12) for other in subspaces[1:]):
        return _is_positive_definite(inertia) and all(_is_positive_definite(X @ X.T) for X in subspaces)
    return _is_positive_definite(S @ inertia @ S.T + np.diag(np.array(body.armature, float)))


def _is_positive_definite(A: Array) -> bool:
    diagonal = np.diag(A)
    if not np.all(diagonal > 0.0):
        return False
    eigenvalues = np.linalg.eigvalsh(A / np.sqrt(np.outer(diagonal, diagonal)))
    return bool(eigenvalues[0] > MIN_EIGENVALUE_RATIO)


def _singular_place(M: Array) -> int | None:
    """Return the last velocity variable whose pivot in M = L^T D L is zero up to rounding."""
    A = M.copy()
    for k in reversed(range(len(A))):
        if not abs(A[k, k]) > MIN_PIVOT_RATIO * abs(M[k, k]):
            return k
        A[:k, :k] -= np.outer(A[k, :k], A[k, :k]) / A[k, k]
    return None


def _mass_matrix(tree: Tree, q: list[float]) -> Array:
    return np.array(mass_matrix(tree, q, time=SAMPLED_TIME), dtype=float).reshape(tree.nv, tree.nv)


def _is_numeric(body: Body, q: list[float]) -> bool:
    """Return whether inertia, armature, placement and axes of a body are numbers, not run-time parameters."""
    X, S, _, _ = body.jcalc(q, None, SAMPLED_TIME)
    return all(isinstance(x, Real) for x in leaves([body.inertia, *body.armature, X, *S]))

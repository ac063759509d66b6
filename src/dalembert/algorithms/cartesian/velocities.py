"""Generalized velocities from maximal ones: v = J^+ V, and the residual (Liu & Jain section 6.1).

V holds (omega_k, v_k) of every body, in world axes, v_k of its centre of mass. The bodies of a tree cannot
move as they like, so V = J v has more equations than unknowns:

    v = J^+ V = (J^T J)^-1 J^T V                                                                (61)
    residual = V - J v         zero if and only if V keeps the joints together

Angles and lengths count alike, a radian as much as a metre. Rheonomic joints: V less what moves at v = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.cartesian.least_squares import least_squares, unit_weights
from dalembert.algorithms.cartesian.maximal import from_maximal, maximal_jacobians, maximal_velocities
from dalembert.algorithms.dense import dot
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.algorithms.mass_centers import require_centers_of_mass
from dalembert.algorithms.pseudo_inverse import symmetric_pseudo_inverse
from dalembert.model.model import Model
from dalembert.model.tree import PerBody, Tree
from dalembert.scalar import Scalar
from dalembert.spatial import Motion

__all__ = [
    "GeneralizedVelocity",
    "generalized_velocity",
    "generalized_velocity_by_pseudo_inverse",
    "generalized_velocity_from_rows",
    "residual_of",
    "without_drift",
]


class GeneralizedVelocity(NamedTuple):
    """v `(nv,)` and the residual V - J v `(n_bodies, 6)`, the part of V that the joints do not allow."""

    v: list[Scalar]
    residual: PerBody[Motion]


def generalized_velocity(
    tree: Tree,
    q: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    *,
    time: Scalar | None = None,
) -> GeneralizedVelocity:
    """Return v = J^+ V (Eq. 61) without forming J:
    the normal equations in linear time, see `least_squares`."""
    require_centers_of_mass(tree, "generalized_velocity")
    poses = forward_kinematics(tree, q, time=time)
    weights = unit_weights(tree)
    wanted = without_drift(tree, q, body_velocities, time)
    momenta = [
        weights[body] * from_maximal(body.inertia.com, poses[body], V)
        for body, V in zip(tree.bodies, wanted, strict=True)
    ]
    v = least_squares(tree, q, weights, PerBody(momenta), None, time=time)
    return GeneralizedVelocity(v, residual_of(tree, q, v, body_velocities, time))


def generalized_velocity_by_pseudo_inverse(
    model: Model,
    q: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    *,
    time: Scalar | None = None,
) -> GeneralizedVelocity:
    """Compute Eq. 61 literally: J of all bodies, J^T J, its pseudo-inverse."""
    rows = [row for J in maximal_jacobians(model, q, time=time) for row in J]
    V = [x for motion in without_drift(model, q, body_velocities, time) for x in motion.to_list()]
    v = _least_squares_solution(rows, V)
    return GeneralizedVelocity(v, residual_of(model, q, v, body_velocities, time))


def generalized_velocity_from_rows(
    model: Model,
    q: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    rows: Sequence[int],
    *,
    time: Scalar | None = None,
) -> GeneralizedVelocity:
    """Return v from some rows of V = J v only, counted body by body, six each (the J' of section 6.1).

    Any rows of J that have the rank of J give the same v, if the joints allow V.
    """
    J = [row for matrix in maximal_jacobians(model, q, time=time) for row in matrix]
    V = [x for motion in without_drift(model, q, body_velocities, time) for x in motion.to_list()]
    v = _least_squares_solution([J[r] for r in rows], [V[r] for r in rows])
    return GeneralizedVelocity(v, residual_of(model, q, v, body_velocities, time))


def residual_of(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    body_velocities: Sequence[Sequence[Scalar]],
    time: Scalar | None,
) -> PerBody[Motion]:
    """Return V - J v."""
    found = maximal_velocities(tree, q, v, time=time)
    return PerBody([Motion.of(given) - V for given, V in zip(body_velocities, found, strict=True)])


def without_drift(
    tree: Tree, q: Sequence[Scalar], body_velocities: Sequence[Sequence[Scalar]], time: Scalar | None
) -> list[Motion]:
    """Return V less the velocities that rheonomic joints give the bodies at v = 0."""
    wanted = [Motion.of(given) for given in body_velocities]
    if time is None:
        return wanted
    drift = maximal_velocities(tree, q, [0.0] * tree.nv, time=time)
    return [V - own for V, own in zip(wanted, drift, strict=True)]


def _least_squares_solution(J: Sequence[Sequence[Scalar]], V: Sequence[Scalar]) -> list[Scalar]:
    """Return J^+ V = (J^T J)^+ J^T V."""
    columns = list(zip(*J, strict=True))
    gram = [[dot(a, b) for b in columns] for a in columns]
    return symmetric_pseudo_inverse(gram).solve([dot(column, V) for column in columns])

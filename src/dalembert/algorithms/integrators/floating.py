"""Free-floating systems, seen from their centre of mass.

The centre of mass c of the subtree of a free root moves as if all mass and all outer forces were in it, and
the motion about c does not depend on it: for an observer who falls with c, c is at rest and there is no
weight.

    u = dc/dt where the step begins        c' = c + h u + h^2/2 g + h P' / (2 m)        u' = u + h g      (1)

P' is the momentum that other forces give in the step, seen by the observer. An integrator that takes
the step for the observer needs to be exact for nothing but the motion about c; (1) does the rest, and
momentum about c is kept as it is about a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.integrators.carried import State
from dalembert.algorithms.integrators.circumstances import StepConditions
from dalembert.algorithms.kinematics import body_motions
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Mat3, Vec3

__all__ = ["add_center_motion", "free_roots", "relative_to_centers"]


class _Center(NamedTuple):
    """The mass, centre and momentum of the subtree of a root, in the world, and the root's orientation."""

    mass: Scalar
    position: Vec3
    momentum: Vec3
    R: Mat3


def free_roots(conditions: StepConditions) -> list[Body]:
    """Return the bodies with free joints on the world whose steps a co-moving observer may take.

    That excludes joint forces that depend on velocity, and external forces given in the world frame.
    """
    if conditions.external_forces is not None and conditions.external_frame != "body":
        return []
    return [
        body
        for body in conditions.tree.bodies
        if body.parent < 0
        and isinstance(body.joint, Free)
        and all(is_zero(x) for x in body.armature)
        and not (conditions.passive and _resists(body))
    ]


def relative_to_centers(conditions: StepConditions, roots: Sequence[Body], start: State) -> State:
    """Return the state relative to observers who move with the centres of mass."""
    v = list(start.v)
    for body, center in zip(roots, _centers(conditions, roots, start, 0.0), strict=True):
        own = slice(body.v_slice.start + 3, body.v_slice.stop)
        u = center.momentum * (1.0 / center.mass)
        v[own] = list(Vec3(*v[own]) - center.R.transposed_times(u))
    return State(list(start.q), v)


def add_center_motion(
    conditions: StepConditions, roots: Sequence[Body], start: State, seen: State, dt: Scalar
) -> State:
    """Return the state after a step from `start` that ended as `seen` for the observers; Eq. (1)."""
    q, v = list(seen.q), list(seen.v)
    before, after = (_centers(conditions, roots, start, 0.0), _centers(conditions, roots, seen, dt))
    g = conditions.tree.gravity
    for body, old, new in zip(roots, before, after, strict=True):
        u = old.momentum * (1.0 / old.mass)
        mean = u + g * (0.5 * dt) + new.momentum * (0.5 / new.mass)
        shift = body.placement.rotate_to_child(old.position + mean * dt - new.position)
        place = slice(body.q_slice.start, body.q_slice.start + 3)
        q[place] = list(Vec3(*q[place]) + shift)
        own = slice(body.v_slice.start + 3, body.v_slice.stop)
        v[own] = list(Vec3(*v[own]) + new.R.transposed_times(u + g * dt))
    return State(q, v)


def _centers(
    conditions: StepConditions, roots: Sequence[Body], state: State, elapsed: Scalar
) -> list[_Center]:
    tree = conditions.tree
    motions = body_motions(tree, state.q, state.v, time=conditions.at(elapsed))
    found = []
    for root in roots:
        mass: Scalar = 0.0
        moment, momentum = Vec3.zero(), Vec3.zero()
        for body in _subtree(tree, root):
            pose, velocity, _ = motions[body]
            mass = mass + body.inertia.mass
            moment = moment + (pose.R @ body.inertia.h + pose.p * body.inertia.mass)
            momentum = momentum + pose.R @ (body.inertia * velocity).linear
        found.append(_Center(mass, moment * (1.0 / mass), momentum, motions[root].pose.R))
    return found


def _subtree(tree: Tree, root: Body) -> list[Body]:
    """Return the root and all bodies that it carries."""
    found = {root.index}
    for body in tree.bodies:
        if body.parent in found:
            found.add(body.index)
    return [body for body in tree.bodies if body.index in found]


def _resists(body: Body) -> bool:
    return not all(is_zero(x) for x in (*body.damping, *body.friction, *body.stiffness))

"""Systems in free flight, seen from their centre of mass.

The centre c of what hangs on a free root moves as if all mass and all outer forces were in it, and the rest
of the motion does not notice: seen by an observer who falls with it, c is at rest and there is no weight.

    u = dc/dt where the step begins        c' = c + h u + h^2/2 g + h P' / (2 m)        u' = u + h g      (1)

P' is the momentum that other forces give in the step, seen by the observer. An integrator that takes
the step for the observer needs to be exact for nothing but the motion about c; (1) does the rest, and
momentum about c is kept as it is about a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dalembert.algorithms.integrators.carried import State
from dalembert.algorithms.integrators.circumstances import Circumstances
from dalembert.algorithms.kinematics import body_motions
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, is_zero
from dalembert.spatial import Mat3, Vec3

__all__ = ["carried_along", "flying_roots", "seen_from_centers"]


class _Center(NamedTuple):
    """Of what hangs on a root: its mass, centre and momentum in the world, and the root's orientation."""

    mass: Scalar
    position: Vec3
    momentum: Vec3
    R: Mat3


def flying_roots(around: Circumstances) -> list[Body]:
    """The free joints on the world that an observer who moves along may see without other forces.

    Joint forces that depend on velocity, and external forces at places in the world, are not for observers.
    """
    if around.external_forces is not None and around.external_frame != "body":
        return []
    return [
        body
        for body in around.tree.bodies
        if body.parent < 0
        and isinstance(body.joint, Free)
        and all(is_zero(x) for x in body.armature)
        and not (around.passive and _resists(body))
    ]


def seen_from_centers(around: Circumstances, roots: Sequence[Body], start: State) -> State:
    """The state as observers see it who move with the centres."""
    v = list(start.v)
    for body, center in zip(roots, _centers(around, roots, start, 0.0), strict=True):
        own = slice(body.v_slice.start + 3, body.v_slice.stop)
        u = center.momentum * (1.0 / center.mass)
        v[own] = list(Vec3(*v[own]) - center.R.transposed_times(u))
    return State(list(start.q), v)


def carried_along(
    around: Circumstances, roots: Sequence[Body], start: State, seen: State, dt: Scalar
) -> State:
    """The state after a step from `start` that ended as `seen` for the observers; Eq. (1)."""
    q, v = list(seen.q), list(seen.v)
    before, after = (_centers(around, roots, start, 0.0), _centers(around, roots, seen, dt))
    g = around.tree.gravity
    for body, old, new in zip(roots, before, after, strict=True):
        u = old.momentum * (1.0 / old.mass)
        mean = u + g * (0.5 * dt) + new.momentum * (0.5 / new.mass)
        shift = body.placement.rotate_to_child(old.position + mean * dt - new.position)
        place = slice(body.q_slice.start, body.q_slice.start + 3)
        q[place] = list(Vec3(*q[place]) + shift)
        own = slice(body.v_slice.start + 3, body.v_slice.stop)
        v[own] = list(Vec3(*v[own]) + new.R.transposed_times(u + g * dt))
    return State(q, v)


def _centers(around: Circumstances, roots: Sequence[Body], state: State, elapsed: Scalar) -> list[_Center]:
    tree = around.tree
    motions = body_motions(tree, state.q, state.v, time=around.at(elapsed))
    found = []
    for root in roots:
        mass: Scalar = 0.0
        moment, momentum = Vec3.zero(), Vec3.zero()
        for body in _carried(tree, root):
            pose, velocity, _ = motions[body]
            mass = mass + body.inertia.mass
            moment = moment + (pose.R @ body.inertia.h + pose.p * body.inertia.mass)
            momentum = momentum + pose.R @ (body.inertia * velocity).linear
        found.append(_Center(mass, moment * (1.0 / mass), momentum, motions[root].pose.R))
    return found


def _carried(tree: Tree, root: Body) -> list[Body]:
    """The root and everything on it."""
    found = {root.index}
    for body in tree.bodies:
        if body.parent in found:
            found.add(body.index)
    return [body for body in tree.bodies if body.index in found]


def _resists(body: Body) -> bool:
    return not all(is_zero(x) for x in (*body.damping, *body.friction, *body.stiffness))

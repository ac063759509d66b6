"""Steps that are implicit in stiff forces, with velocity-product forces in the middle of the step.

Damping and dry friction of joints are evaluated at the end of the step; "implicit" evaluates springs there
too, at positions q + h v', "midpoint" at the start:

    M (v' - v) / h + b = tau - K (x + h v') - D v'                 D = damping + friction / sqrt(v^2 + s^2)
    =>  (M + h D + h^2 K) a = tau - b - K x - (D + h K) v,          v' = v + h a                      (1)

and q' follows from v'. h D + h^2 K stands where armature does, so that (1) is forward dynamics of the same
system with larger armatures, loops and couplings included. Dry friction counts by its secant, which takes
no energy back: a joint stops, and does not chatter.

b holds centrifugal, Coriolis and gyroscopic forces, quadratic in velocities. At v they let a spinning body
gain (h omega)^2 of its energy in every step. So (1) is solved twice with the same inertias: with b(q, v),
and then with b(q, v_m) at the velocities v_m half a step on; the error falls to (h omega)^4. Systems with
loops or other constraints, whose accelerations are those that keep the loops at v, take the first solution.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dalembert.algorithms.aligned import AlignedBody, AlignedTree
from dalembert.algorithms.flight import from_centroidal
from dalembert.algorithms.integrators.carried import State, concatenate_states
from dalembert.algorithms.integrators.circumstances import StepConditions
from dalembert.algorithms.integrators.explicit import semi_implicit_update
from dalembert.algorithms.open_tree import is_constrained
from dalembert.algorithms.passive_forces import FRICTION_SPEED, displacement
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.model.values import rebuilt
from dalembert.scalar import Scalar, is_zero, sqrt

__all__ = ["implicit", "midpoint", "resistances", "with_armatures"]


def implicit(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of Eq. (1), implicit in springs, damping and dry friction of the joints."""
    return _step(conditions, start, dt, [body.stiffness for body in conditions.tree.bodies])


def midpoint(conditions: StepConditions, start: State, dt: Scalar) -> State:
    """Take a step of Eq. (1), implicit in damping and dry friction of the joints; springs keep their energy,
    as under the symplectic Euler method."""
    return _step(conditions, start, dt, [(0.0,) * body.nv for body in conditions.tree.bodies])


def _step(
    conditions: StepConditions, start: State, dt: Scalar, stiffnesses: Sequence[Sequence[Scalar]]
) -> State:
    """Take a step of Eq. (1), implicit in damping, dry friction, and springs of these stiffnesses."""
    tree, tau = conditions.tree, conditions.tau
    if conditions.passive:
        tree, tau = _stiff(conditions, start, dt, stiffnesses)

    def acceleration(v: Sequence[Scalar]) -> list[Scalar]:
        return conditions.acceleration_under(tree, start.q, v, tau, 0.0)

    a, coordinates = acceleration(start.v), conditions.coordinates
    if is_constrained(tree) or tree.closure is not None:
        return semi_implicit_update(coordinates, start, a, dt)
    centroidal, rate = coordinates.to_centroidal(start), coordinates.rates(start, a)
    half = State(centroidal.q, [w + 0.5 * dt * x for w, x in zip(centroidal.v, rate.v, strict=True)])
    v_m = concatenate_states(from_centroidal(b, y, w) for b, y, w in coordinates.parts(half)).v
    return semi_implicit_update(coordinates, start, acceleration(v_m), dt, v_m)


def _stiff(
    conditions: StepConditions, start: State, dt: Scalar, stiffnesses: Sequence[Sequence[Scalar]]
) -> tuple[Tree, list[Scalar]]:
    """Return the system with the armatures of Eq. (1), and tau - K x - (D + h K) v."""
    armatures: dict[int, tuple[Scalar, ...]] = {}
    forces: list[list[Scalar]] = []
    for body, soft in zip(conditions.tree.bodies, stiffnesses, strict=True):
        own_v = body.own_v(start.v)
        gains = [d + dt * k for d, k in zip(resistances(body, own_v), soft, strict=True)]
        armatures[body.index] = tuple(
            m + dt * gain if not is_zero(gain) else m for m, gain in zip(body.armature, gains, strict=True)
        )
        x = displacement(body, body.own_q(start.q))
        forces.append(
            [-(k * e) - gain * u for k, e, gain, u in zip(body.stiffness, x, gains, own_v, strict=True)]
        )
    total = [t + f for t, f in zip(conditions.tau, conditions.tree.collect(forces), strict=True)]
    return with_armatures(conditions.tree, armatures), total


def with_armatures(tree: Tree, armatures: dict[int, tuple[Scalar, ...]]) -> Tree:
    """Return the same system with other armatures, by the indices of bodies; they may be traced."""
    if isinstance(tree, AlignedTree):
        original = with_armatures(tree.original, armatures)
        assert isinstance(original, Model)
        bodies = [
            dataclasses.replace(body, armature=armatures[body.index])
            for body in tree.bodies
            if isinstance(body, AlignedBody)
        ]
        return AlignedTree(bodies, tree.gravity, original, tree.loops)
    if not isinstance(tree, Model):
        raise ModelError(
            f'integrators "implicit" and "midpoint" are for models; a {type(tree).__name__} has no armatures'
        )
    return rebuilt(
        tree,
        bodies=[dataclasses.replace(body, armature=armatures[body.index]) for body in tree.bodies],
    )


def resistances(body: Body, v: list[Scalar]) -> list[Scalar]:
    """Return D for each velocity variable."""
    found: list[Scalar] = []
    for d, f, u in zip(body.damping, body.friction, v, strict=True):
        found.append(d if is_zero(f) else d + f / sqrt(u * u + FRICTION_SPEED * FRICTION_SPEED))
    return found

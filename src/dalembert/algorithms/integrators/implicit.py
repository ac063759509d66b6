"""A step that is implicit in what is stiff: springs, damping and dry friction of the joints.

The forces of joints are taken where the step ends, positions at q + h v':

    M (v' - v) / h + b = tau - K (x + h v') - D v'                 D = damping + friction / sqrt(v^2 + s^2)
    =>  (M + h D + h^2 K) a = tau - b - K x - (D + h K) v,          v' = v + h a                      (1)

and q' follows from v'. h D + h^2 K stands where armature does, so that (1) is forward dynamics of the same
system with larger armatures, loops and couplings included. Dry friction counts by its secant, which takes
no energy back: a joint stops, and does not chatter. Gyroscopic forces stay explicit, as in the semi-implicit
method, which this is where there is nothing stiff. Order one.
"""

from __future__ import annotations

import dataclasses

from dalembert.algorithms.aligned import AlignedBody, AlignedTree
from dalembert.algorithms.integrators.carried import State
from dalembert.algorithms.integrators.circumstances import Circumstances
from dalembert.algorithms.integrators.explicit import leapt
from dalembert.algorithms.passive_forces import FRICTION_SPEED, displacement
from dalembert.errors import ModelError
from dalembert.model.body import Body
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.model.values import rebuilt
from dalembert.scalar import Scalar, is_zero, sqrt

__all__ = ["implicit", "resistances", "with_armatures"]


def implicit(around: Circumstances, start: State, dt: Scalar) -> State:
    """v' of Eq. (1), then q' from v'."""
    if not around.passive:
        return leapt(around.flight, start, around.acceleration(start.q, start.v, 0.0), dt)
    armatures: dict[int, tuple[Scalar, ...]] = {}
    forces: list[list[Scalar]] = []
    for body in around.tree.bodies:
        own_v = body.own_v(start.v)
        D = resistances(body, own_v)
        K = body.stiffness
        gains = [d + dt * k for d, k in zip(D, K, strict=True)]
        armatures[body.index] = tuple(
            m + dt * gain if not is_zero(gain) else m for m, gain in zip(body.armature, gains, strict=True)
        )
        x = displacement(body, body.own_q(start.q))
        forces.append([-(k * e) - gain * u for k, e, gain, u in zip(K, x, gains, own_v, strict=True)])
    total = [t + f for t, f in zip(around.tau, around.tree.collect(forces), strict=True)]
    stiff = with_armatures(around.tree, armatures)
    a = around.acceleration_under(stiff, start.q, start.v, total, 0.0)
    return leapt(around.flight, start, a, dt)


def with_armatures(tree: Tree, armatures: dict[int, tuple[Scalar, ...]]) -> Tree:
    """The same system with other armatures, by the indices of bodies; they may be traced."""
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
        raise ModelError(f'integrator "implicit" is for models; a {type(tree).__name__} has no armatures')
    return rebuilt(
        tree,
        bodies=[dataclasses.replace(body, armature=armatures[body.index]) for body in tree.bodies],
    )


def resistances(body: Body, v: list[Scalar]) -> list[Scalar]:
    """D of each velocity variable."""
    found: list[Scalar] = []
    for d, f, u in zip(body.damping, body.friction, v, strict=True):
        found.append(d if is_zero(f) else d + f / sqrt(u * u + FRICTION_SPEED * FRICTION_SPEED))
    return found

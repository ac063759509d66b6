"""PD control of the joints: motors act as a spring and a damper between a joint and its reference.

    tau = kp e + kd (v_ref - v)                        e = difference(q, q_ref)                           (1)

e is q_ref - q of angles and lengths, and the rotation vector of the error of a ball joint, in the axes of
its v. Held for a step of h seconds (1) is explicit, and unstable where h kd exceeds about 2 M. *Stable* PD
(Tan, Liu & Turk 2011) takes position and velocity where the step will end, v' = v + h a:

    tau = kp (e - h v') + kd (v_ref - v')                                                                (2)
    (M + h kd + h^2 kp) a = kp (e - h v) + kd (v_ref - v) - b + passive forces                            (3)

and is stable with any gains. (The paper has e - h v in (2), which asks for kd >= h kp.) The gains stand in
(3) where armature does, so that loops and couplings are those of `forward_dynamics`. Torques end at the
effort limits, and joints without motors have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dalembert.algorithms.aligned import AlignedTree
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.integrators.carried import independent
from dalembert.algorithms.integrators.implicit import with_armatures
from dalembert.algorithms.passive_forces import passive_forces
from dalembert.model.body import Body
from dalembert.model.joints import Free
from dalembert.model.model import Model
from dalembert.model.tree import Tree
from dalembert.scalar import Scalar, literal, maximum, minimum

__all__ = ["pd_forces", "stable_pd_forces"]


def pd_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    q_ref: Sequence[Scalar],
    v_ref: Sequence[Scalar] | None = None,
    *,
    kp: Sequence[Scalar],
    kd: Sequence[Scalar],
    effort: Sequence[Scalar] | None = None,
) -> list[Scalar]:
    """Return tau `(nv,)` [N m or N] of Eq. (1); gains for each velocity variable.

    `effort`: the greatest torques, of either sign; omitted: the model's.
    """
    e = _errors(tree, q, q_ref)
    return _clamp_torques(
        tree, [a * b + c * d for a, b, c, d in zip(kp, e, kd, _slips(v, v_ref), strict=True)], effort
    )


def stable_pd_forces(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    q_ref: Sequence[Scalar],
    dt: Scalar,
    v_ref: Sequence[Scalar] | None = None,
    *,
    kp: Sequence[Scalar],
    kd: Sequence[Scalar],
    effort: Sequence[Scalar] | None = None,
    time: Scalar | None = None,
) -> list[Scalar]:
    """Return tau `(nv,)` [N m or N] of Eq. (2), constant for a step of dt [s];
    other arguments as in `pd_forces`."""
    driven = _driven(tree)
    kp, kd = ([x if on else 0.0 for x, on in zip(gain, driven, strict=True)] for gain in (kp, kd))
    e, slip = _errors(tree, q, q_ref), _slips(v, v_ref)
    gain = [c + dt * a for a, c in zip(kp, kd, strict=True)]  # tau falls by so much for each unit of v'
    tau = [a * (b - dt * u) + c * d for a, b, u, c, d in zip(kp, e, v, kd, slip, strict=True)]
    armatures = {body.index: body.armature for body in tree.bodies}
    for body in independent(tree):
        own = zip(body.armature, gain[body.v_slice], strict=True)
        armatures[body.index] = tuple(m + dt * g for m, g in own)
    total = [t + f for t, f in zip(tau, passive_forces(tree, q, v), strict=True)]
    a = forward_dynamics(with_armatures(tree, armatures), q, v, total, time=time)  # (3)
    return _clamp_torques(tree, [t - g * (dt * x) for t, g, x in zip(tau, gain, a, strict=True)], effort)


def _errors(tree: Tree, q: Sequence[Scalar], q_ref: Sequence[Scalar]) -> list[Scalar]:
    """Return e of all joints."""
    found: list[Scalar] = [0.0] * tree.nv
    for body in independent(tree):
        found[body.v_slice] = body.joint.difference(body.own_q(q), body.own_q(q_ref))
    return found


def _slips(v: Sequence[Scalar], v_ref: Sequence[Scalar] | None) -> list[Scalar]:
    """Return v_ref - v."""
    return [-x for x in v] if v_ref is None else [b - a for a, b in zip(v, v_ref, strict=True)]


def _driven(tree: Tree) -> list[bool]:
    """Return which velocity variables have a motor:
    those of joints in `model.actuated`, none of a free body."""
    model = tree.original if isinstance(tree, AlignedTree) else tree
    names = {body.joint_name for body in tree.bodies if not isinstance(body.joint, Free)}
    if isinstance(model, Model):
        names &= set(model.actuated)
    found = [False] * tree.nv
    for body in independent(tree):
        found[body.v_slice] = [body.joint_name in names] * body.nv
    return found


def _clamp_torques(tree: Tree, tau: Sequence[Scalar], effort: Sequence[Scalar] | None) -> list[Scalar]:
    """Clamp each torque to its limits; joints without motors get zero."""
    if effort is None:
        effort = [math.inf] * tree.nv
        for body in independent(tree):
            effort[body.v_slice] = _own_effort(body)
    limited: list[Scalar] = []
    for t, bound, on in zip(tau, effort, _driven(tree), strict=True):
        if on and literal(bound) != math.inf:
            t = minimum(maximum(t, -bound), bound)
        limited.append(t if on else 0.0)
    return limited


def _own_effort(body: Body) -> list[Scalar]:
    limit = body.limits.effort
    return list(limit) if isinstance(limit, (tuple, list)) else [limit] * body.nv

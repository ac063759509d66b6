"""One moving body with the joint that connects it to its parent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dalembert.scalar import Scalar
from dalembert.spatial import Motion, Placement, RigidInertia, ScrewChain, Transform

if TYPE_CHECKING:
    from dalembert.model.joints import Joint
    from dalembert.model.shapes import Shape

__all__ = ["Body", "Dependence", "JointMotion", "Limits", "Placement", "link_transform"]


def link_transform(placement: Placement, X_J: Placement) -> Placement:
    """Return the child frame placed in its parent: i_X_lambda = X_J X_T, Featherstone 2008 section 4.2.

    Axial screws stay factored, since two of them cost less than one general transform (Table A.5).
    """
    if isinstance(placement, Transform) or isinstance(X_J, Transform):
        return placement.as_transform() @ X_J
    return ScrewChain((*_factors(placement), *_factors(X_J)))


def _factors(placement: Placement) -> tuple[Placement, ...]:
    return tuple(placement.factors) if isinstance(placement, ScrewChain) else (placement,)


class JointMotion(NamedTuple):
    """The quantities of a joint at one instant (the book's jcalc), in the child's coordinates.

    `X`: the child placed in the parent (placement, then joint); `S`: the motion subspace, nv columns; `v_J` =
    S v + sigma: the velocity across the joint; `c_J` = S-ring v + sigma-ring: its velocity-product
    acceleration.
    """

    X: Placement
    S: tuple[Motion, ...]
    v_J: Motion
    c_J: Motion


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one joint: position (nq numbers each), speed and effort (nv numbers each, not negative).

    Units are rad or m, rad/s or m/s, N m or N. A single number applies to every coordinate; the default is no
    limit.

    >>> da.Limits(-2.0, 2.0, velocity=4.0)
    Limits(lower=-2.0, upper=2.0, velocity=4.0, effort=inf)
    """

    lower: tuple[float, ...] | float = -math.inf
    upper: tuple[float, ...] | float = math.inf
    velocity: tuple[float, ...] | float = math.inf
    effort: tuple[float, ...] | float = math.inf


@dataclass(frozen=True, slots=True)
class Dependence:
    """A coordinate that follows independent ones: q = offset + sum of ratio * q[index in q], v likewise.

    Each term is (index in q, index in v, ratio).
    """

    terms: tuple[tuple[int, int, float], ...]
    offset: float

    def position(self, q: Sequence[Scalar]) -> Scalar:
        """Return the dependent position [rad or m] from the model's q."""
        total: Scalar = self.offset
        for place, _, ratio in self.terms:
            total = total + ratio * q[place]
        return total

    def rate(self, v: Sequence[Scalar]) -> Scalar:
        """Return the dependent rate from the model's v; accelerations and displacements map alike."""
        total: Scalar = 0.0
        for _, place, ratio in self.terms:
            total = total + ratio * v[place]
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One body of a model: its place in the tree, its joint, and its constant data in body coordinates.

    `index` in the regular numbering and `parent` (-1 is the world), Featherstone 2008 section 4.1.2;
    `placement` of the joint in the parent's frame (the book's X_T); `inertia` at the body's origin; `q_slice`
    and `v_slice`, the joint's slices of the model's q and v (both empty for a joint that a coupling makes
    dependent). For each velocity variable: `armature` [kg m^2 or kg], `damping` [N m s/rad or N s/m],
    `friction` [N m or N], `stiffness` [N m/rad or N/m]; `rest` (nq) is the position at which the spring is
    slack.
    """

    index: int
    name: str
    parent: int
    joint: Joint
    joint_name: str
    placement: Placement
    inertia: RigidInertia
    q_slice: slice
    v_slice: slice
    armature: tuple[Scalar, ...]
    damping: tuple[Scalar, ...]
    friction: tuple[Scalar, ...]
    stiffness: tuple[Scalar, ...]
    rest: tuple[Scalar, ...]
    limits: Limits
    shapes: tuple[Shape, ...] = ()
    dependence: Dependence | None = field(default=None)

    @property
    def nq(self) -> int:
        """Number of the joint's position variables."""
        return self.joint.nq

    @property
    def nv(self) -> int:
        """Number of the joint's velocity variables, its degree of freedom."""
        return self.joint.nv

    def own_q(self, q: Sequence[Scalar]) -> list[Scalar]:
        """Return this joint's position variables from the model's q; a dependent joint follows its
        coupling.
        """
        if self.dependence is not None:
            return [self.dependence.position(q)]
        return list(q[self.q_slice])

    def own_v(self, v: Sequence[Scalar]) -> list[Scalar]:
        """Return this joint's velocity variables from the model's v, or accelerations from a; forces map
        differently.
        """
        if self.dependence is not None:
            return [self.dependence.rate(v)]
        return list(v[self.v_slice])

    def jcalc(
        self, q: Sequence[Scalar], v: Sequence[Scalar] | None = None, time: Scalar | None = None
    ) -> JointMotion:
        """Return the joint's transform, subspace, velocity and bias from the model's q and v (omitted: v =
        0).
        """
        own_q = self.own_q(q)
        own_v = [0.0] * self.joint.nv if v is None else self.own_v(v)
        X_J, S, v_J, c_J = self.joint.jcalc(own_q, own_v, time)
        return JointMotion(link_transform(self.placement, X_J), S, v_J, c_J)

    def link_transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        """Return this body placed in its parent, from the model's q."""
        return link_transform(self.placement, self.joint.transform(self.own_q(q), time))

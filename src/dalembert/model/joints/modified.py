"""Joints made from another joint, with its coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dalembert.errors import ModelError
from dalembert.model.joints.dual import directional_derivative
from dalembert.model.joints.joint import Joint
from dalembert.model.joints.user_defined import relative_velocity
from dalembert.scalar import Scalar
from dalembert.spatial import Force, Motion, Placement, Transform


class DerivedJoint(Joint):
    """Abstract: a joint that places its frames otherwise than `joint` does, while q and v mean the same."""

    __slots__ = ()

    joint: Joint

    @property
    def nq(self) -> int:
        return self.joint.nq

    @property
    def nv(self) -> int:
        return self.joint.nv

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.joint.coordinates

    @property
    def unit_quaternions(self) -> tuple[slice, ...]:
        return self.joint.unit_quaternions

    @property
    def time_dependent(self) -> bool:
        return self.joint.time_dependent

    def position_rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.position_rate(q, v)

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.integrate(q, dv)

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.difference(q0, q1)

    def neutral(self) -> list[float]:
        return self.joint.neutral()

    def normalize(self, q: Sequence[Scalar]) -> list[Scalar]:
        return self.joint.normalize(q)

    def random(
        self,
        rng: np.random.Generator,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
    ) -> list[float]:
        return self.joint.random(rng, lower, upper)

    def singularity_measure(self, q: Sequence[Scalar], time: Scalar | None = None) -> Scalar:
        return self.joint.singularity_measure(q, time)


# A joint of opposite polarity.


@final
@dataclass(frozen=True, slots=True)
class Reversed(DerivedJoint):
    """A joint with predecessor and successor exchanged; q and v keep their meaning (Featherstone 2008 Table
    4.2).

    With X = ^pX_s of the joint as it was: X_J = X, S = -X S, v_J = -X v_J, c_J = -X c_J, T = -X* T. (The
    table prints the row of T without the star; only the force transform keeps T^T S = 0.)

    >>> da.Reversed(da.Prismatic((1, 0, 0))).transform([0.5]).p
    Vec3(x=-0.5, y=0.0, z=0.0)
    """

    joint: Joint

    kind = "reversed"
    parameter_names = ("joint",)

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, self.joint.structure())

    def reversed(self) -> Joint:
        return self.joint

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return self.joint.transform(q, time).inverse()

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.subspace(q, time))

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.velocity(q, v, time))

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        return -self.joint.transform(q, time).inverse_apply(self.joint.bias(q, v, time))

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.constraint_subspace(q, time))

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        X = self.joint.transform(q, time)
        return tuple(-X.inverse_apply(column) for column in self.joint.active_subspace(q, time))

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return self.joint.position_of(X.inverse(), time)

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        # d and T both change sign and frame, so that delta = T^T d is the same number.
        return self.joint.closure_error(X.inverse(), time)


# Rheonomic joints: a prescribed motion in series with an ordinary joint.


@final
@dataclass(frozen=True, slots=True)
class TimeDependent(DerivedJoint):
    """A joint whose predecessor frame is carried along a prescribed motion x(t).

    `driver` is the joint that the motion drives and `motion(time)` its nq position variables, written with
    the functions of `dalembert.scalar`; `joint` keeps its freedoms. The successor stands at P(t) X(q), P(t)
    = driver at x(t). With sigma_P the velocity of P in its own frame and X the joint's transform
    (Featherstone 2008 section 3.5):

        v_J = S v + X sigma_P                                          sigma = X sigma_P
        c_J = S° v + X sigma_P° + v_J x S v                            since dX/dt = -(S v) x X

    sigma_P and sigma_P° are exact derivatives of the placement with respect to time. A cylinder whose
    sliding is prescribed is `TimeDependent(Revolute(a), driver=Prismatic(a), motion=…)`; with `Fixed()`
    everything is prescribed.

    >>> swing = lambda t: [0.1 * da.scalar.sin(2.0 * t)]
    >>> joint = da.TimeDependent(da.Revolute((0, 1, 0)), driver=da.Prismatic((1, 0, 0)), motion=swing)
    >>> print(joint.velocity([0.0], [0.0], 0.0).to_list())  # carried along x at 0.2 m/s
    [0.0, 0.0, 0.0, 0.2, 0.0, 0.0]
    """

    joint: Joint
    driver: Joint
    motion: Callable[[Scalar], Sequence[Scalar]]

    kind = "time_dependent"
    parameter_names = ("joint", "driver")
    time_dependent = True

    def __post_init__(self) -> None:
        for name in ("joint", "driver"):
            if not isinstance(getattr(self, name), Joint):
                raise ModelError(
                    f"TimeDependent: {name} must be a Joint, got {type(getattr(self, name)).__name__}"
                )
        if not callable(self.motion):
            raise ModelError(f"TimeDependent: motion is a function of time, got {type(self.motion).__name__}")
        if self.driver.time_dependent:
            raise ModelError("TimeDependent: the driver depends on time itself; put its motion into `motion`")

    def structure(self) -> tuple[Any, ...]:
        return (self.kind, self.joint.structure(), self.driver.structure(), self.motion)

    def transform(self, q: Sequence[Scalar], time: Scalar | None = None) -> Placement:
        return self._placement(self._now(time)) @ self.joint.transform(q, time)

    def subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Motion, ...]:
        return self.joint.subspace(q, time)

    def velocity(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        sigma = self._driven_velocity(self._now(time))
        return self.joint.velocity(q, v, time) + self.joint.transform(q, time).apply(sigma)

    def bias(self, q: Sequence[Scalar], v: Sequence[Scalar], time: Scalar | None = None) -> Motion:
        now = self._now(time)
        sigma, sigma_rate = directional_derivative(lambda t: self._driven_velocity(t[0]), [now], [1.0])
        X = self.joint.transform(q, time)
        own = self.joint.velocity(q, v, time)
        # v_J x S v, in which S v x S v is zero for a joint that does not depend on time.
        total = own + X.apply(sigma)
        return self.joint.bias(q, v, time) + X.apply(sigma_rate) + total.cross(own)

    def constraint_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return self.joint.constraint_subspace(q, time)

    def constraint_subspace_at(self, X: Transform, time: Scalar | None = None) -> tuple[Force, ...]:
        return self.joint.constraint_subspace_at(self._seen_from_driver(X, time), time)

    def active_subspace(self, q: Sequence[Scalar], time: Scalar | None = None) -> tuple[Force, ...]:
        return self.joint.active_subspace(q, time)

    def position_of(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return self.joint.position_of(self._seen_from_driver(X, time), time)

    def closure_error(self, X: Transform, time: Scalar | None = None) -> list[Scalar]:
        return self.joint.closure_error(self._seen_from_driver(X, time), time)

    def _placement(self, time: Scalar) -> Transform:
        """Return P(t) after checking the number of its coordinates."""
        x = list(self.motion(time))
        if len(x) != self.driver.nq:
            raise ModelError(
                f"TimeDependent: motion returned {len(x)} numbers; "
                f"give the {self.driver.nq} positions of its {self.driver.kind} driver"
            )
        return self.driver.transform(x).as_transform()

    def _driven_velocity(self, time: Scalar) -> Motion:
        """Return the driven velocity sigma_P in the driven frame."""
        return relative_velocity(*directional_derivative(lambda t: self._placement(t[0]), [time], [1.0]))

    def _seen_from_driver(self, X: Transform, time: Scalar | None) -> Transform:
        return self._placement(self._now(time)).inverse() @ X

"""Contact by a law of surfaces, as an option of rollouts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from dalembert.contact.compliant import (
    Hertz,
    LinearSurface,
    SeriesSpring,
    States,
    Surface,
    TwoSurfaces,
)
from dalembert.contact.options import _PairOptions
from dalembert.contact.pairs import ContactPair
from dalembert.errors import ArgumentError, DtypeError, ModelError, short_repr
from dalembert.model.model import Model
from dalembert.scalar import Scalar

NormalForce: TypeAlias = Callable[[Scalar, Scalar], Scalar]
"""The normal force [N] of (gap [m], rate of the gap [m/s]), on generic scalars."""

KNOWN_SURFACES: Final = (Hertz, LinearSurface, SeriesSpring, TwoSurfaces)
"""Surfaces whose numbers say all about them."""


@final
@dataclass(frozen=True, slots=True)
class StatelessSurface(Surface):
    """A surface whose force is a function of the gap and its rate alone."""

    function: NormalForce

    @property
    def order(self) -> int:
        return 0

    def pushed(self, z: States, p: Scalar) -> list[Scalar]:
        return []

    def force(self, z: States, p: Scalar, p_rate: Scalar) -> Scalar:
        return self.function(p, p_rate)

    def rate(self, z: States, p: Scalar, p_rate: Scalar) -> list[Scalar]:
        return []

    def after(self, z: States, p: Scalar, p_rate: Scalar, dt: Scalar) -> list[Scalar]:
        return []


@final
@dataclass(frozen=True, kw_only=True)
class Law(_PairOptions):
    """Contact by a law of surfaces: one of Featherstone 2008 section 11.8, or your own.

        f_n = max(0, f(z, p, dp/dt)),     |f_t| <= mu f_n

    `normal`: a surface (`da.contact.LinearSurface`, `Hertz`, `SeriesSpring`, `TwoSurfaces`, a subclass of
    `da.contact.Surface` with states z of its own), or a function f(p, dp/dt) on generic scalars that returns
    the normal force [N] from the gap p [m], negative where bodies overlap, and its rate [m/s]. Friction: a
    patch on a spring `friction_stiffness` K_t [N/m] and a damper `friction_damping` D_t [N s/m], within
    mu f_n, the same in all directions; torsional and rolling friction of shapes are left out.

    `implicit`: linearise the law about the start of each step and take it at the end, so that stiff surfaces
    do not limit the step; False takes the force where the step begins. Either way steps must resolve the
    contact: a body presses from the first step that begins with it in the surface. `pairs`, `exclude`,
    `self_collision`, `limits` and `nearest` as in `Rigid`.

    >>> builder = da.ModelBuilder(gravity=(0.0, 0.0, -10.0))
    >>> ball = da.shapes.Sphere(0.1)
    >>> builder.add_body("ball", joint=da.Prismatic((0, 0, 1)), inertia=ball.inertia(mass=1.0), shapes=[ball])
    >>> model = builder.build().with_ground()
    >>> law = da.contact.Law(normal=lambda p, rate: da.scalar.maximum(-1e4 * p, 0.0) - 50.0 * rate,
    ...                      friction_stiffness=1e4, friction_damping=100.0)
    >>> rest = da.rollout(model, [0.1], [0.0], steps=1000, dt=0.001, contact=law)
    >>> print(rest.q[-1, 0].round(6))  # m g / K = 1 mm deep
    0.099
    """

    normal: Surface | NormalForce
    friction_stiffness: float
    friction_damping: float
    implicit: bool = True
    limits: bool = True
    nearest: int | None = None

    def __post_init__(self) -> None:
        self._check("nearest")
        if not isinstance(self.normal, Surface) and not callable(self.normal):
            raise DtypeError(
                f"Law: normal is {short_repr(self.normal)}; give a surface, such as da.contact.Hertz(…), or "
                "a function of (gap, rate)"
            )
        if not isinstance(self.implicit, bool):
            raise self._wrong_kind("implicit", "a truth value is expected")
        for name in ("friction_stiffness", "friction_damping"):
            if not 0.0 < self._number(name) < math.inf:
                raise ArgumentError(
                    f"Law: {name} is {getattr(self, name)!r}; give a finite number greater than zero"
                )

    def pairs_in(self, model: Model) -> tuple[ContactPair, ...]:
        """Return the pairs of a model that these options select, with sliding friction alone."""
        found = _PairOptions.pairs_in(self, model)
        return tuple(replace(pair, torsion=0.0, rolling=0.0, across=None) for pair in found)

    @property
    def surface(self) -> Surface:
        """The surface; a function is one without states."""
        return self.normal if isinstance(self.normal, Surface) else StatelessSurface(self.normal)

    @property
    def has_functions(self) -> bool:
        """True if the law is the caller's own code."""
        return not isinstance(self.normal, KNOWN_SURFACES)

    @property
    def order(self) -> int:
        """The number of states of the surface."""
        found = self.surface.order
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise ModelError(f"Law: the surface has order {found!r}; give the number of its states")
        return found

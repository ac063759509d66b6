"""Contact options of a rollout: the contact law, the pairs of shapes, and the settings of the solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np

from dalembert.call.arguments import short_repr, whole_number
from dalembert.contact.compliant_step import CompliantSettings
from dalembert.contact.pairs import ContactPair, Names, pairs_of, remaining
from dalembert.contact.rigid_step import StepSettings
from dalembert.errors import ArgumentError, DtypeError, items_of
from dalembert.model.model import Model, require_model

__all__ = ["Compliant", "PairChoice", "Rigid"]

PairChoice: TypeAlias = Sequence[ContactPair | str | tuple[str, str]] | Names | None
"""Pairs themselves, names as `pairs_of` takes them for `only`, or None for all pairs of a model."""

DEFAULT: Final = StepSettings()
MAX_COUNT: Final = 2**31 - 1
"""The greatest number of iterations or of nearest points: that of a 32-bit counter."""
SURFACES: Final = ("stiffness", "damping", "friction_stiffness", "friction_damping")


@final
@dataclass(frozen=True, kw_only=True)
class Rigid:
    """Rigid contact with Coulomb friction and restitution, joint limits, dry friction of joints and loops,
    all solved together in each step.

    `pairs`: which shapes may touch, by default all that the model lets touch; names of bodies or shapes,
    pairs of names, or what `da.contact.pairs_of` returns. `exclude` and `self_collision` choose among them.
    `iterations` and `tolerance` of the solver; `compliance` and `friction_compliance`: how much points give
    way to sudden loads, as fractions of 1 / mass and of the inverse effective mass; they do not give way to
    lasting loads; `mending`: the fraction of an overlap that the position correction of a step removes;
    `rebound_speed` [m/s]: slower points do not rebound; `limits`: whether joints end at the limits of their
    positions; `nearest`: if moving bodies could touch each other at more than a hundred points, the number of
    nearest points that a step considers, by default twelve a figure; if more points are in contact, the
    sample fails and reports it.

    >>> da.contact.Rigid(self_collision=False, iterations=30).iterations
    30
    """

    pairs: PairChoice = None
    exclude: Names = ()
    self_collision: bool = True
    iterations: int = DEFAULT.iterations
    tolerance: float = DEFAULT.tolerance
    compliance: float = DEFAULT.compliance
    friction_compliance: float = DEFAULT.friction_compliance
    mending: float = DEFAULT.mending
    rebound_speed: float = DEFAULT.rebound_speed
    limits: bool = True
    nearest: int | None = None

    def __post_init__(self) -> None:
        _take_names(self, "pairs", "exclude")
        _require(self, bool, "a truth value", "self_collision", "limits")
        _take_counts(self, "iterations", *(("nearest",) if self.nearest is not None else ()))
        numbers = ("tolerance", "compliance", "friction_compliance", "mending", "rebound_speed")
        _require_numbers(self, *numbers)
        settings = self.settings
        for name in ("tolerance", "compliance", "friction_compliance"):
            if not 0.0 < getattr(settings, name) < 1.0:
                raise ArgumentError(
                    f"Rigid: {name} is {getattr(settings, name)!r}; give a number between 0 and 1"
                )
        if not 0.0 <= self.mending <= 1.0:
            raise ArgumentError(f"Rigid: mending is {self.mending!r}; give a fraction from 0 to 1")
        if not self.rebound_speed >= 0.0:
            raise ArgumentError(
                f"Rigid: rebound_speed is {self.rebound_speed!r}; give a speed [m/s] from 0 on"
            )

    @property
    def settings(self) -> StepSettings:
        """The settings of the solver."""
        return StepSettings(
            iterations=self.iterations,
            tolerance=self.tolerance,
            compliance=self.compliance,
            friction_compliance=self.friction_compliance,
            mending=self.mending,
            rebound_speed=self.rebound_speed,
            limits=self.limits,
        )

    def pairs_in(self, model: Model) -> tuple[ContactPair, ...]:
        """Return the pairs of a model that these options select."""
        return select_pairs(model, self.pairs, self.exclude, self_collision=self.self_collision)


@final
@dataclass(frozen=True, kw_only=True)
class Compliant:
    """Compliant contact: springs and dampers in the surfaces, implicit in each step, with Coulomb friction;
    joint limits, dry friction of joints and loops as with `Rigid`. Bodies rebound by the springs.

    `pairs`, `exclude`, `self_collision`: which shapes may touch, as in `Rigid`. `stiffness` K [N/m] along
    normals, by default such that the whole weight of a figure presses it in by 1 mm; `damping` D [N s/m], by
    default critical for its mass, 2 sqrt(K m); `friction_stiffness` and `friction_damping` along surfaces, by
    default the same. No value limits the time step. `limits` and `nearest` as in `Rigid`.

    >>> da.contact.Compliant(stiffness=5e4, damping=800.0).stiffness
    50000.0
    """

    pairs: PairChoice = None
    exclude: Names = ()
    self_collision: bool = True
    stiffness: float | None = None
    damping: float | None = None
    friction_stiffness: float | None = None
    friction_damping: float | None = None
    limits: bool = True
    nearest: int | None = None

    def __post_init__(self) -> None:
        _take_names(self, "pairs", "exclude")
        _require(self, bool, "a truth value", "self_collision", "limits")
        _take_counts(self, *(("nearest",) if self.nearest is not None else ()))
        _require_numbers(self, *(name for name in SURFACES if getattr(self, name) is not None))
        for name in SURFACES:
            value = getattr(self, name)
            if value is not None and not 0.0 < value < float("inf"):
                raise ArgumentError(f"Compliant: {name} is {value!r}; give a finite number greater than zero")

    @property
    def settings(self) -> CompliantSettings:
        """The settings of the surfaces."""
        return CompliantSettings(
            stiffness=self.stiffness,
            damping=self.damping,
            friction_stiffness=self.friction_stiffness,
            friction_damping=self.friction_damping,
            limits=self.limits,
        )

    def pairs_in(self, model: Model) -> tuple[ContactPair, ...]:
        """Return the pairs of a model that these options select."""
        return select_pairs(model, self.pairs, self.exclude, self_collision=self.self_collision)


def select_pairs(
    model: Model, pairs: PairChoice, exclude: Names, *, self_collision: bool
) -> tuple[ContactPair, ...]:
    """Return the given pairs and the pairs of a model by names, without the excluded ones."""
    require_model(model)
    if pairs is None:
        return pairs_of(model, exclude=exclude, self_collision=self_collision)
    given = items_of(pairs)
    found = [pair for pair in given if isinstance(pair, ContactPair)]
    found = list(remaining(model, found, exclude=exclude, self_collision=self_collision))
    names = [name for name in given if not isinstance(name, ContactPair)]
    named = pairs_of(model, only=names, exclude=exclude, self_collision=self_collision) if names else ()
    return (*found, *(pair for pair in named if pair not in found))


def _take_names(law: Rigid | Compliant, *options: str) -> None:
    """Keep names as tuples, so that an iterator serves more than one rollout."""
    for option in options:
        given = getattr(law, option)
        if given is None or isinstance(given, str):
            continue
        try:
            listed = tuple(item if isinstance(item, str | ContactPair) else tuple(item) for item in given)
        except TypeError:
            raise DtypeError(
                f"{type(law).__name__}: {option} is {short_repr(given)}; give names of bodies or shapes, "
                "pairs of such names, or what da.contact.pairs_of returns"
            ) from None
        object.__setattr__(law, option, listed)


def _require(law: Rigid | Compliant, kind: Any, what: str, *options: str) -> None:
    for option in options:
        if not isinstance(getattr(law, option), kind):
            raise DtypeError(
                f"{type(law).__name__}: {option} is {short_repr(getattr(law, option))}; {what} is expected"
            )


def _require_numbers(law: Rigid | Compliant, *options: str) -> None:
    """Raise an error for options that are not numbers, and for ints beyond all floats."""
    _require(law, int | float | np.integer | np.floating, "a number", *options)
    for option in options:
        try:
            float(getattr(law, option))
        except OverflowError:
            raise ArgumentError(
                f"{type(law).__name__}: {option} is {short_repr(getattr(law, option))}; "
                "give a number that a float holds"
            ) from None


def _take_counts(law: Rigid | Compliant, *options: str) -> None:
    """Keep whole numbers as ints of Python."""
    for option in options:
        number = whole_number(f"{type(law).__name__}: {option}", getattr(law, option), 1, MAX_COUNT)
        object.__setattr__(law, option, number)

"""Contact options of a rollout: the contact law, the pairs of shapes, and the settings of the solver."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self, TypeAlias, TypeVar, final

import numpy as np

from dalembert.contact.pairs import ContactPair, Names, pairs_of, remaining
from dalembert.errors import ArgumentError, DtypeError, items_of, short_repr, whole_number
from dalembert.host import warn_renamed
from dalembert.model.model import Model, require_model
from dalembert.scalar import Scalar

PairChoice: TypeAlias = Sequence[ContactPair | str | tuple[str, str]] | Names | None
"""Pairs themselves, names as `pairs_of` takes them for `only`, or None for all pairs of a model."""

MAX_COUNT: Final = 2**31 - 1
"""The greatest number of iterations or of nearest points: that of a 32-bit counter."""

SOLVER_NUMBERS: Final = (
    "tolerance",
    "compliance",
    "friction_compliance",
    "position_correction",
    "rebound_speed",
)
SURFACE_NUMBERS: Final = ("stiffness", "damping", "friction_stiffness", "friction_damping")
"""The options of laws that may be given at run time; all others decide what the code of a step is."""


@dataclass(frozen=True, kw_only=True)
class _PairOptions:
    """The shapes that may touch, in both laws of contact."""

    pairs: PairChoice = None
    exclude: Names = ()
    self_collision: bool = True

    @property
    def settings(self) -> Self:
        """The law without its choice of pairs."""
        without: dict[str, Any] = {"pairs": None, "exclude": (), "self_collision": True, "nearest": None}
        return replace(self, **without)

    def pairs_in(self, model: Model) -> tuple[ContactPair, ...]:
        """Return the pairs of a model that these options select."""
        return select_pairs(model, self.pairs, self.exclude, self_collision=self.self_collision)

    def _check(self, *counts: str) -> None:
        """Check the choice of pairs, and keep names as tuples, so that an iterator serves more than one
        rollout; check flags and `counts`, which become ints of Python; `nearest` may be None."""
        for option in ("pairs", "exclude"):
            given = getattr(self, option)
            if given is None or isinstance(given, str):
                continue
            try:
                listed = tuple(item if isinstance(item, str | ContactPair) else tuple(item) for item in given)
            except TypeError:
                known = "names of bodies or shapes, pairs of such names, or what da.contact.pairs_of returns"
                raise self._wrong_kind(option, f"give {known}") from None
            object.__setattr__(self, option, listed)
        for option in ("self_collision", "limits"):
            if not isinstance(getattr(self, option), bool):
                raise self._wrong_kind(option, "a truth value is expected")
        for option in counts:
            if (count := getattr(self, option)) is not None or option != "nearest":
                number = whole_number(f"{type(self).__name__}: {option}", count, 1, MAX_COUNT)
                object.__setattr__(self, option, number)

    def _number(self, option: str) -> float:
        """Return the value of an option as a float."""
        value: Any = getattr(self, option)
        if not isinstance(value, int | float | np.integer | np.floating):
            raise self._wrong_kind(option, "a number is expected")
        try:
            return float(value)
        except OverflowError:
            told = f"{type(self).__name__}: {option} is {short_repr(value)}; give a number that a float holds"
            raise ArgumentError(told) from None

    def _wrong_kind(self, option: str, expected: str) -> DtypeError:
        return DtypeError(
            f"{type(self).__name__}: {option} is {short_repr(getattr(self, option))}; {expected}"
        )


@final
@dataclass(frozen=True, kw_only=True)
class Rigid(_PairOptions):
    """Rigid contact with Coulomb friction and restitution, joint limits, dry friction of joints and loops,
    all solved together in each step.

    `pairs`: which shapes may touch, by default all that the model lets touch; names of bodies or shapes,
    pairs of names, or what `da.contact.pairs_of` returns. `exclude` and `self_collision` choose among them.
    `iterations` and `tolerance` of the solver; `compliance` and `friction_compliance`: how much points give
    way to sudden loads, as fractions of 1 / mass and of the inverse effective mass; they do not give way to
    lasting loads; `position_correction`: the fraction of an overlap that one step removes;
    `rebound_speed` [m/s]: slower points do not rebound; `limits`: whether joints end at the limits of their
    positions; `nearest`: the number of touching points that a sample remembers from step to step, by default
    16, and 8 more for each figure and for each body 2, or as many as a pair of shapes may have if these are
    more; if more points touch, the sample fails and reports it.

    >>> da.contact.Rigid(self_collision=False, iterations=30).iterations
    30
    """

    iterations: int = 50
    tolerance: float = 1e-4
    compliance: float = 0.1
    friction_compliance: float = 0.1
    position_correction: float = 0.2
    rebound_speed: float = 0.02
    limits: bool = True
    nearest: int | None = None
    mending: float | None = None

    def __post_init__(self) -> None:
        if self.mending is not None:
            warn_renamed("Rigid", "mending", "position_correction", frames=4)
            object.__setattr__(self, "position_correction", self.mending)
            object.__setattr__(self, "mending", None)
        self._check("iterations", "nearest")
        expected = {
            name: (0.0 < self._number(name) < 1.0, "number between 0 and 1")
            for name in ("tolerance", "compliance", "friction_compliance")
        }
        ratio, speed = self._number("position_correction"), self._number("rebound_speed")
        expected["position_correction"] = 0.0 <= ratio <= 1.0, "fraction from 0 to 1"
        expected["rebound_speed"] = speed >= 0.0, "speed [m/s] from 0 on"
        for name, (holds, wanted) in expected.items():
            if not holds:
                raise ArgumentError(f"Rigid: {name} is {getattr(self, name)!r}; give a {wanted}")


@final
@dataclass(frozen=True, kw_only=True)
class Compliant(_PairOptions):
    """Compliant contact: springs and dampers in the surfaces, implicit in each step, with Coulomb friction;
    joint limits, dry friction of joints and loops as with `Rigid`. Bodies rebound by the springs.

    `pairs`, `exclude`, `self_collision`: which shapes may touch, as in `Rigid`. `stiffness` K [N/m] along
    normals, by default such that the whole weight of a figure presses it in by 1 mm, and at least 100 times
    that with which servos hold its bodies; `damping` D [N s/m], by default critical for its mass,
    2 sqrt(K m); `friction_stiffness` and `friction_damping` along surfaces, by default the same. No value
    limits the time step. `limits` and `nearest` as in `Rigid`.

    >>> da.contact.Compliant(stiffness=5e4, damping=800.0).stiffness
    50000.0
    """

    stiffness: float | None = None
    damping: float | None = None
    friction_stiffness: float | None = None
    friction_damping: float | None = None
    limits: bool = True
    nearest: int | None = None

    def __post_init__(self) -> None:
        self._check("nearest")
        for name in ("stiffness", "damping", "friction_stiffness", "friction_damping"):
            value = getattr(self, name)
            if value is not None and not 0.0 < self._number(name) < math.inf:
                raise ArgumentError(f"Compliant: {name} is {value!r}; give a finite number greater than zero")


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


AnyLaw = TypeVar("AnyLaw", bound=_PairOptions)


def run_time_options(law: _PairOptions | None) -> tuple[str, ...]:
    """Return the options of a law that may be given at run time."""
    names = [] if law is None else [item.name for item in fields(law)]
    return tuple(name for name in (*SOLVER_NUMBERS, *SURFACE_NUMBERS) if name in names)


def with_numbers(law: AnyLaw, numbers: Mapping[str, Scalar]) -> AnyLaw:
    """Return a law with other numbers under `run_time_options`, any scalars, unchecked."""
    found = copy.copy(law)
    for name, number in numbers.items():
        object.__setattr__(found, name, number)
    return found

"""Checks of arguments, and placements, that the bundled models share."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Final, ParamSpec, TypeAlias

import numpy as np

from dalembert.errors import ArgumentError, own_errors, short_repr
from dalembert.model.model import Model
from dalembert.spatial import Mat3, Transform, Vec3

Given = ParamSpec("Given")

Count: TypeAlias = int
"""A number of bodies or rungs, at most `MAX_COUNT`."""

MAX_COUNT: Final = 100_000
"""A chain of this many bodies takes 19 s and 0.4 GB to build; one of 2^31 would fill the memory."""

NO_COLLISION_MASK = 0
"""Collision mask of parts that overlap, such as bars at their pins; other shapes may touch them."""


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Transform:
    """Return an unrotated frame at a point [m]."""
    return Transform(Mat3.identity(), Vec3(x, y, z))


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, Real) and bool(np.isfinite(float(value)))
    except OverflowError:  # whole numbers have no bound
        return False


def _is_whole_number(value: object, most: float = math.inf) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) <= most


def _is_pair(value: object) -> bool:
    items = list(value) if isinstance(value, Sequence | np.ndarray) and np.ndim(value) == 1 else []
    return len(items) == 2 and all(_is_number(item) for item in items)


CHECKS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "float": (_is_number, "a finite number"),
    "int": (_is_whole_number, "a whole number"),
    "Count": (lambda value: _is_whole_number(value, MAX_COUNT), f"a whole number up to {MAX_COUNT:,}"),
    "tuple[float, float]": (_is_pair, "two finite numbers"),
}
"""How an argument is checked, and what it must be, by its annotation."""


def check_arguments(make: Callable[Given, Model]) -> Callable[Given, Model]:
    """Decorate a function that makes a model: check its arguments by their annotations, name a wrong one."""
    signature = inspect.signature(make)
    checks = {
        name: CHECKS[parameter.annotation]
        for name, parameter in signature.parameters.items()
        if parameter.annotation in CHECKS
    }

    @functools.wraps(make)
    def call(*args: Given.args, **options: Given.kwargs) -> Model:
        for name, value in signature.bind(*args, **options).arguments.items():
            if name in checks and not checks[name][0](value):
                wanted = checks[name][1]
                raise ArgumentError(f"{make.__name__}: {name} is {short_repr(value)}; give {wanted}")
        return make(*args, **options)

    return own_errors(call)

"""Entries of the catalogue: the methods, arguments and preconditions of a public function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dalembert.model.model import Model

__all__ = ["LibraryFunction", "Refusal", "square"]


def square(algorithm: Callable[..., Any], axes: int = 2) -> Callable[..., Any]:
    """Wrap an algorithm whose result has nv entries along each axis, so that it has this shape also for nv =
    0.
    """

    def call(*args: Any, **options: Any) -> Any:
        return algorithm(*args, **options) or np.zeros((0,) * axes)

    return call


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """A sample is refused where `measure(tree, *arrays)`, the arrays of the function, exceeds `tolerance`.

    `tolerance` is by float type. A measure that is a literal number (of models that it does not concern)
    costs nothing. `message` says the fact and the remedy, with {measure} and, where `place(tree, *arrays)`
    names the part of the model that is to blame, {place}; the function's name and the sample are put before
    it.
    """

    measure: Callable[..., Any]
    tolerance: Mapping[str, float]
    message: str
    place: Callable[..., str] | None = None


@final
@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """An algorithm under its public name: `methods` by name, the default first; `arguments` in call order.

    `frame_free`: its result does not depend on the frames of the bodies, so it runs on aligned ones. `loops`:
    the methods written with tree passes alone, so that a large tree can be compiled as loops. `shapes`: of
    the arguments and further arrays whose names `library.argument_shape` does not know. `automatic`: what
    chooses a method by the model, where none is asked for. `refusals`: what the arguments must fulfil.
    `one_of`: further arrays of which every call gives one at least. `unit_quaternions`: whether quaternions
    in its arguments must have unit norm.
    """

    methods: Mapping[str, Callable[..., Any]]
    arguments: tuple[str, ...]
    frame_free: bool = False
    loops: tuple[str, ...] = ()
    shapes: Mapping[str, Callable[[Model], tuple[int, ...]]] = field(default_factory=dict)
    automatic: Callable[..., Any] | None = None
    refusals: tuple[Refusal, ...] = ()
    one_of: tuple[str, ...] = ()
    unit_quaternions: bool = True

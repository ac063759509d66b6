"""Entries of the catalogue: the methods, arguments and preconditions of a public function."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from dalembert.model.model import Model

__all__ = ["LibraryFunction", "Precondition", "square", "textbook"]


def square(algorithm: Callable[..., Any], axes: int = 2) -> Callable[..., Any]:
    """Wrap an algorithm whose result has nv entries along each axis, so that it has this shape also for nv =
    0.
    """

    def call(*args: Any, **options: Any) -> Any:
        return algorithm(*args, **options) or np.zeros((0,) * axes)

    return call


def textbook(name: str) -> Callable[..., Any]:
    """Return the algorithm of `dalembert.textbook`, which is imported when it is first called."""

    def call(*args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module("dalembert.textbook"), name)(*args, **options)

    return call


@final
@dataclass(frozen=True, slots=True)
class Precondition:
    """A precondition: a sample is rejected if `measure(tree, *arrays)` of its arrays exceeds `tolerance`.

    `tolerance` is by float type. A measure that is a literal number (for models without the condition) costs
    nothing. `message` states the fact and the remedy, with {measure} and, if `place(tree, *arrays)` names the
    part of the model at fault, {place}; the function's name and the sample are prepended.
    """

    measure: Callable[..., Any]
    tolerance: Mapping[str, float]
    message: str
    place: Callable[..., str] | None = None


@final
@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """An algorithm under its public name: `methods` by name, the default first; `arguments` in call order.

    `frame_free`: the result does not depend on the body frames, so the function runs on aligned ones.
    `loops`: the methods written with tree passes alone, which can be compiled as loops over a large tree.
    `shapes`: of the arguments and optional arrays that `library.argument_shape` does not know. `automatic`:
    the function that selects a method by the model if the caller names none. `preconditions` of the
    arguments. `one_of`: optional arrays of which every call must give at least one. `unit_quaternions`:
    whether quaternions in the arguments must have unit norm.
    """

    methods: Mapping[str, Callable[..., Any]]
    arguments: tuple[str, ...]
    frame_free: bool = False
    loops: tuple[str, ...] = ()
    shapes: Mapping[str, Callable[[Model], tuple[int, ...]]] = field(default_factory=dict)
    automatic: Callable[..., Any] | None = None
    preconditions: tuple[Precondition, ...] = ()
    one_of: tuple[str, ...] = ()
    unit_quaternions: bool = True

"""Compiled functions of a model and of pairs of its shapes, kept with the model and on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import source_digest
from dalembert.compiler.lowering import Recipe
from dalembert.contact.pairs import ContactPair
from dalembert.model.model import Model

__all__ = ["compiled_for_pairs", "pairs_key"]


def compiled_for_pairs(
    model: Model,
    name: str,
    function: Callable[..., Any],
    shapes: Mapping[str, tuple[int, ...]],
    pairs: tuple[ContactPair, ...] = (),
    parameters: tuple[str, ...] = (),
) -> CompiledFunction:
    """Return `function(model, *arrays)`, compiled for arrays with these `shapes`; `name` and `pairs` identify
    it."""
    at_once = (name, id(pairs), parameters)
    known, found = model.functions.get(at_once, (None, None))
    if known is pairs and found is not None:
        same: CompiledFunction = found
        return same
    key = (name, pairs_key(pairs), parameters)
    found = model.functions.get(key)
    if found is None:
        text = f"{key} {model.digest} {source_digest()}"
        found = model.functions[key] = CompiledFunction(
            Recipe(
                name,
                function,
                model,
                tuple(ArrayArgument(*item) for item in shapes.items()),
                tuple(ArrayArgument(item, np.shape(model.value(item))) for item in parameters),
                identity=hashlib.sha256(text.encode()).hexdigest(),
            ),
            dtype="float64",
        )
    model.functions[at_once] = pairs, found
    made: CompiledFunction = found
    return made


def pairs_key(pairs: tuple[ContactPair, ...]) -> str:
    """Return a key that identifies a set of pairs of one model."""
    return hashlib.sha256(repr(pairs).encode()).hexdigest()

"""The library's own functions, compiled for a model, as `algorithms.declaration` declares them.

`function(model, name, …)` compiles on first use and keeps the result with the model. The disk cache knows
these functions by the source they are made from, the model's bytes and the options, so that a hit needs no
trace.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Callable, Hashable, Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final, final

import numpy as np

from dalembert import algorithms
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.declaration import DECLARED, SHAPES, LibraryFunction
from dalembert.algorithms.open_tree import is_constrained
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe
from dalembert.errors import ArgumentError, DalembertError, DtypeError, UnknownNameError, require_choice
from dalembert.model.model import Model
from dalembert.model.tree import Tree

__all__ = [
    "FUNCTIONS",
    "UNROLLED_BODIES",
    "LibraryFunction",
    "argument_shape",
    "function",
    "is_large",
    "library_recipe",
    "no_model",
]

UNROLLED_BODIES: Final = 150
"""Trees of more bodies are compiled as loops; measured, see design/large-trees.md."""


@final
class _Catalogue(Mapping[str, LibraryFunction]):
    """The declared functions by name; modules of algorithms are imported until one declares a name.

    `import dalembert` needs no algorithms, and a first call only those of its own subject.
    """

    def __getitem__(self, name: str) -> LibraryFunction:
        for module in sorted(_algorithm_modules(), key=lambda module: module not in str(name)):
            if name in DECLARED:
                break
            importlib.import_module(f"{algorithms.__name__}.{module}")
        return DECLARED[name]

    def __iter__(self) -> Iterator[str]:
        for module in _algorithm_modules():
            importlib.import_module(f"{algorithms.__name__}.{module}")
        return iter(DECLARED)

    def __len__(self) -> int:
        return len(list(iter(self)))


@functools.cache
def _algorithm_modules() -> tuple[str, ...]:
    return tuple(found.name for found in pkgutil.iter_modules(algorithms.__path__))


FUNCTIONS: Final[Mapping[str, LibraryFunction]] = _Catalogue()


def argument_shape(model: Model, name: str) -> tuple[int, ...] | None:
    """Return the shape of an array that is known by its name; None where the name says nothing."""
    return SHAPES[name](model) if name in SHAPES else None


def is_large(model: Model) -> bool:
    """Return whether matrices of a model are too large to be compiled as straight-line code."""
    return model.nv > UNROLLED_BODIES


def function(
    model: Model,
    name: str,
    method: str | None = None,
    *,
    arrays: tuple[str, ...] = (),
    options: tuple[tuple[str, Any], ...] = (),
    dtype: str = "float64",
    by: str | tuple[str, ...] | None = None,
) -> CompiledFunction:
    """Return a library function compiled for a model.

    `arrays`: further arrays; `options`: static arguments; `by`: its Jacobian by one argument or by several.
    """
    if by is not None:
        plain = function(model, name, method, arrays=arrays, options=options, dtype=dtype)
        return plain.jacobian(*((by,) if isinstance(by, str) else by))
    key = (name, method, arrays, options, dtype)
    try:
        found = model.functions.get(key)
    except AttributeError:
        raise no_model(name, model) from None
    except DalembertError:  # of functions in the model, which a look-up traces
        raise
    except TypeError:  # what cannot be looked up is not a name
        if method is not None and not isinstance(method, str):
            raise UnknownNameError.of(f"method of {name}", method, FUNCTIONS[name].methods) from None
        wrong = next(key for key, value in options if not isinstance(value, Hashable))
        raise ArgumentError(f"{name}: {wrong} must be a plain value, such as a name or a number") from None
    if found is None:
        # Two threads may both get here: they make equal functions, and share their kernels on disk.
        recipe = library_recipe(model, name, method, arrays=arrays, options=options)
        found = model.functions[key] = CompiledFunction(
            recipe,
            dtype=dtype,
            sibling=lambda other: function(model, name, method, arrays=arrays, options=options, dtype=other),
        )
        if key == (name, None, (), (), "float64"):
            model.functions[name] = found
    return found


def no_model(name: str, given: object) -> DtypeError:
    """Return the error for a value that should be a model."""
    return DtypeError(
        f"the first argument of {name} must be a Model, got {type(given).__name__}; "
        "da.load reads one from a file, da.models has some ready"
    )


def library_recipe(
    model: Model,
    name: str,
    method: str | None = None,
    *,
    arrays: tuple[str, ...] = (),
    options: tuple[tuple[str, Any], ...] = (),
    parameters: tuple[ArrayArgument, ...] = (),
) -> Recipe:
    """Return the recipe of a library function."""
    entry = FUNCTIONS[name]
    chosen = next(iter(entry.methods)) if method is None else method
    require_choice(f"method of {name}", chosen, entry.methods)
    algorithm = entry.algorithm if method is None else entry.methods[chosen]
    static = dict(options)
    positional = len(entry.arguments) - len(entry.keywords)

    def on_frames(algorithm: Callable[..., Any]) -> Callable[..., Any]:
        def call(tree: Tree, *values: Any) -> Any:
            frames = aligned(tree) if entry.frame_free else tree
            given = dict(zip((*entry.keywords, *arrays), values[positional:], strict=True))
            return algorithm(frames, *values[:positional], **given, **static)

        return call

    def compute(tree: Tree, *values: Any) -> Any:
        found = on_frames(algorithm)(tree, *values)
        if entry.empty is None:
            return found
        nothing = np.zeros(entry.empty(model) if callable(entry.empty) else entry.empty)
        return tuple(x or nothing for x in found) if isinstance(found, tuple) else found or nothing

    names = (*entry.arguments, *arrays)
    shapes = [(item, entry.shape(model, item)) for item in names]
    looped = (
        chosen in entry.loops
        and not parameters
        and len(model.bodies) > UNROLLED_BODIES
        and not (model.couplings and chosen in ("aba", "aba_spatial"))  # articulated bodies with clusters
        and not (model.time_dependent or is_constrained(model) or model.springs or model.fluid)
    )
    label = method or "automatic"
    identity = f"{name} {label} {names} {options} {parameters} {looped} {model.digest} {source_digest()}"
    return Recipe(
        name=name,
        function=compute,
        model=model,
        arguments=tuple(ArrayArgument(item, shape) for item, shape in shapes if shape is not None),
        parameters=parameters,
        looped=looped,
        identity=hashlib.sha256(identity.encode()).hexdigest(),
        refusals=tuple(
            dataclasses.replace(
                refusal,
                measure=on_frames(refusal.measure),
                place=None if refusal.place is None else on_frames(refusal.place),
            )
            for refusal in entry.preconditions
        ),
        unit_quaternions=entry.unit_quaternions,
    )


@functools.cache
def source_digest() -> str:
    """Return the SHA-256 of the package's own source: any change of it makes other cache keys."""
    digest = hashlib.sha256()
    for file in sorted(_sources(resources.files("dalembert")), key=str):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _sources(folder: Traversable) -> list[Traversable]:
    found: list[Traversable] = []
    pending = [folder]
    while pending:
        for item in pending.pop().iterdir():
            if item.is_dir():
                pending.append(item)
            elif item.name.endswith(".py"):
                found.append(item)
    return found

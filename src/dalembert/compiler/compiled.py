"""`da.compile`: a user's own function of a model becomes machine code like the library's."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from dalembert import algorithms
from dalembert.call.arguments import ArrayArgument
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import FUNCTIONS, argument_shape, library_recipe
from dalembert.compiler.lowering import Recipe
from dalembert.errors import ArgumentError, DtypeError, UnknownNameError, require_choice, require_names
from dalembert.model.model import Model

__all__ = ["compile", "jvp", "vjp"]

DEVICES = ("cpu", "cuda")
DTYPES = ("float64", "float32")

CATALOGUED = ("dalembert.api.", "dalembert.control")
"""Packages of array functions that are compiled as the catalogue says, not by a trace of their own."""

UNCOMPILED = ("dalembert.analysis.", "dalembert.motion.")
"""Packages of array functions that only call others."""


def compile(
    function: Callable[..., Any],
    model: Model,
    *,
    dtype: Literal["float64", "float32"] = "float64",
    device: Literal["cpu", "cuda"] = "cpu",
    parameters: Sequence[str] = (),
    inputs: Mapping[str, int | tuple[int, ...]] | None = None,
) -> CompiledFunction:
    """Compile `function(model, q, v, …)` for a model.

    The function is run once on symbols, now: what it reads beside its arguments, such as variables around it,
    is compiled in as it is, and later changes of that change neither the compiled function nor its
    derivatives; values that change belong to its arguments. It computes with `+ - * /`, `dalembert.scalar`
    and `dalembert.algorithms`, and returns scalars, nested lists or spatial values; a tuple is several
    results.
    Its arguments after the model are arrays: `q` has nq elements, `v`, `a`, `tau` have nv, `time` and `dt`
    are numbers; `inputs` gives the shapes of others. A public function such as `da.forward_dynamics` may be
    given itself.

    `parameters` names values of the model, such as "upper.mass", "elbow.placement" or "gravity", that are
    given at each call (`f(q, v, tau, parameters={"upper.mass": m})`, batched like any argument) instead of
    being compiled in.

    Arrays on a GPU are always computed there. `device="cuda"` compiles for GPU 0 at once and computes
    NumPy arrays there too, copied there and back; without a GPU it is an error.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> def power(model, q, v, tau):
    ...     return sum(a * b for a, b in zip(tau, v))
    >>> f = da.compile(power, model)
    >>> print(f([0.1], [2.0], [3.0]))
    6.0
    >>> g = da.compile(da.gravity_forces, model, parameters=("bob.mass",))
    >>> print(g([np.pi / 2], parameters={"bob.mass": [1.0, 2.0]}).round(3).tolist())  # one mass a sample
    [[19.62], [39.24]]
    """
    require_choice("dtype", dtype, DTYPES)
    require_choice("device", device, DEVICES)
    name = getattr(function, "__name__", "function")
    if not isinstance(model, Model):
        raise DtypeError(f"da.compile takes a function and a Model, got {type(model).__name__} for the model")
    if not callable(function) or isinstance(function, CompiledFunction):
        raise DtypeError(
            f"da.compile takes a function of a model and scalars, got {type(function).__name__}; "
            "what is compiled can be called as it is, and differentiated"
        )
    if isinstance(parameters, str):
        raise ArgumentError(f'parameters is a sequence of names; write parameters=("{parameters}",)')
    names = require_names("parameters", parameters)
    values = tuple(ArrayArgument(name, np.shape(model.value(name))) for name in names)
    place = str(getattr(function, "__module__", ""))
    listed = getattr(sys.modules.get(place), name, None) is function
    if listed and place.startswith((*CATALOGUED, *UNCOMPILED)):  # one of the library's functions of arrays
        _require_arrays_alone(function, name)
        recipe = library_recipe(model, name, parameters=values)
        recipe = recipe.record() if model.has_functions else recipe
    else:
        recipe = Recipe(name, function, model, _arguments(function, model, inputs or {}), values).record()
    compiled = CompiledFunction(recipe, dtype=dtype, device=device)
    if device == "cuda":  # compiled at once, so that a missing GPU is reported here
        from dalembert.call.cuda.device import device as gpu

        compiled._kernels.on_gpu(gpu(0))
    return compiled


def jvp(function: CompiledFunction, *arguments: str) -> CompiledFunction:
    """Return the directional derivative of a compiled function, compiled: dy = sum_x (df/dx) dx = J dx.

    Symbols: x the `arguments`, run-time parameters among them, y = f(x) the results (any unit), dx a change
    of x. The result takes what f takes and then one array `d<x>` for each x, of the shape of x; for a
    configuration q it has nv numbers, and q moves along integrate(q, t dq). It costs about three times what
    f does, for any number of arguments. `f.jacobian(*arguments)` is J itself.

    Source: forward accumulation of Featherstone 2008 §10.4's symbolic programs, by the chain rule.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> f = da.compile(da.gravity_forces, model)
    >>> change = da.jvp(f, "q")
    >>> print(change([np.pi / 3], [0.1]).round(4))  # m g l cos(q) dq
    [2.943]
    """
    return _require_compiled(function, "jvp").jvp(*arguments)


def vjp(function: CompiledFunction, *arguments: str) -> CompiledFunction:
    """Return the gradient of a weighted sum of a compiled function's results, compiled: g_x = (df/dx)^T w.

    Symbols: x the `arguments`, run-time parameters among them, y = f(x) the results (any unit), w the weights
    of y: the slopes of a scalar cost with respect to y. The result takes what f takes and then `cotangent` =
    w, of the shape of y (`cotangent_0`, `cotangent_1`, … where f has several results), and gives g_x for each
    x, of the shape of x; for a configuration q nv numbers, the slopes along integrate(q, t e_k). By reverse
    accumulation: it costs about three times what f does, for any number of arguments.

    Source: reverse accumulation of Featherstone 2008 §10.4's symbolic programs, by the chain rule.

    >>> model = da.models.double_pendulum()
    >>> f = da.compile(da.dynamics.potential_energy, model)
    >>> gradient = da.vjp(f, "q")
    >>> q = [0.3, -0.2]
    >>> print(np.allclose(gradient(q, 1.0), da.gravity_forces(model, q)))
    True
    """
    return _require_compiled(function, "vjp").vjp(*arguments)


def _require_compiled(function: object, name: str) -> CompiledFunction:
    if not isinstance(function, CompiledFunction):
        raise DtypeError(
            f"da.{name} takes a compiled function, got {type(function).__name__}; "
            f"compile it first: da.{name}(da.compile(function, model), …)"
        )
    return function


def _require_arrays_alone(function: Callable[..., Any], name: str) -> None:
    """Refuse public functions that take a name, or that several compiled functions make up."""
    if name not in FUNCTIONS or function.__module__.startswith(UNCOMPILED):
        raise ArgumentError(
            f"{name} is not one compiled function but calls those it needs; call it as it is, or compile a "
            "function of your own with those of da.algorithms"
        )
    needed = [
        item.name for item in inspect.signature(function).parameters.values() if item.default is item.empty
    ]
    more = [item for item in needed[1:] if item not in FUNCTIONS[name].arguments]
    if more:
        raise ArgumentError(
            f"{name} needs {', '.join(more)} beside arrays; compile a function of your own that calls "
            f"da.{_algorithm(name)} with it"
        )
    choice = FUNCTIONS[name].one_of
    if choice:
        raise ArgumentError(
            f"{name} needs {', '.join(choice[:-1])} or {choice[-1]}, and does not say which; compile a "
            f"function of your own, f(model, q, {choice[0]}), that calls da.{_algorithm(name)}(model, q, "
            f'{choice[0]}={choice[0]}), with inputs={{"{choice[0]}": (n_bodies, 3)}}'
        )


def _algorithm(name: str) -> str:
    """Return the path of the generic algorithm of a public function, beside `da`."""
    if name in algorithms.__all__:
        return f"algorithms.{name}"
    algorithm = FUNCTIONS[name].algorithm
    module = sys.modules[algorithm.__module__]
    own = name if hasattr(module, name) else algorithm.__name__
    return f"{module.__name__}.{own}".removeprefix("dalembert.")


def _arguments(
    function: Callable[..., Any], model: Model, inputs: Mapping[str, int | tuple[int, ...]]
) -> tuple[ArrayArgument, ...]:
    """Return the array arguments: those without a default, or with a shape in `inputs`."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        listed = list(inspect.signature(function).parameters.values())
    except ValueError:  # functions written in C may have none
        raise ArgumentError(
            f"{name} does not say what its arguments are; write a function of (model, q, …) around it"
        ) from None
    if not listed:
        raise ArgumentError(f"{name} takes no arguments; its first one must be the model")
    arguments = []
    for item in listed[1:]:
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) or (
            item.name not in inputs and item.default is not item.empty
        ):
            continue
        if item.kind is item.KEYWORD_ONLY:
            raise ArgumentError(f"{name}: {item.name} is keyword-only; arrays must be positional arguments")
        shape = inputs[item.name] if item.name in inputs else argument_shape(model, item.name)
        if shape is None:
            raise ArgumentError(
                f'{name}: the shape of "{item.name}" is not known by its name; give it, '
                f'for instance inputs={{"{item.name}": (3,)}}'
            )
        arguments.append(ArrayArgument(item.name, _checked_shape(item.name, shape)))
    unknown = set(inputs) - {item.name for item in listed[1:]}
    if unknown:
        raise UnknownNameError.of(f"argument of {name}", min(unknown), [item.name for item in listed[1:]])
    return tuple(arguments)


def _checked_shape(name: str, given: object) -> tuple[int, ...]:
    """Return a length or a tuple of lengths, as a tuple."""
    lengths = given if isinstance(given, tuple | list) else (given,)
    try:
        shape = tuple(operator.index(length) for length in lengths)
    except TypeError:
        shape = (-1,)
    if min(shape, default=0) < 0:
        raise ArgumentError(
            f'inputs: the shape of "{name}" is {given!r}; give a length or a tuple of lengths, such as (3,)'
        )
    return shape

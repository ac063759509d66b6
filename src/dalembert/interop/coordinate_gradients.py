"""Gradients in the coordinates of q, for libraries that know nothing of tangent spaces.

Our derivatives by a configuration have nv numbers: g_t = Q(q)^T g for a function whose ordinary gradient is
g, since dq/dt = Q(q) v. PyTorch and JAX expect nq numbers. The shortest g with that property is

    g = Q (Q^T Q)^-1 g_t                                                                        (1)

and changes dq of the coordinates go the other way, to the nearest velocity,

    dv = (Q^T Q)^-1 Q^T dq.                                                                     (2)

Where Q is square this is the ordinary gradient. For a quaternion it is the gradient of f(p / |p|): tangent
to the sphere, since along p that function does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.dense import factor
from dalembert.call import arguments as result_memory
from dalembert.call.arguments import ArrayArgument, broadcast_batches, require_shape
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe
from dalembert.model import Body, configuration
from dalembert.model.model import Model
from dalembert.scalar import Scalar, literal
from dalembert.tracing.graph import Graph

Foreign = TypeVar("Foreign")
Call: TypeAlias = Callable[[CompiledFunction, list[Foreign]], Sequence[Foreign]]
"""How a library calls a compiled function: on its own arrays, so that the call has derivatives too."""


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of a function and then its parameters, with shapes without batch axes.

    `split`: how many are arguments. `flat`: results come bare or as one tuple, not in a form of the user's.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    split: int
    flat: bool


_SIGNATURES: Final[WeakKeyDictionary[CompiledFunction, Signature]] = WeakKeyDictionary()


def signature_of(function: CompiledFunction) -> Signature:
    """Return the signature of a compiled function."""
    found = _SIGNATURES.get(function)
    if found is None:
        inputs, parameters, recipe = function.inputs, function.parameters, function._recipe
        plain = all(derivative.kind != "jacobian" for derivative in recipe.derivatives)
        found = _SIGNATURES[function] = Signature(
            (*inputs, *parameters),
            (*inputs.values(), *parameters.values()),
            len(inputs),
            flat=recipe.identity is not None and plain and not parameters,
        )
    return found


def on_arrays(
    convert: Callable[[Any], Any], f: Callable[..., Any], model: Model | None, options: dict[str, Any]
) -> Callable[..., Any]:
    """Return `f` with the model and the options fixed, and its other arguments converted."""
    fixed = () if model is None else (model,)

    def call(*args: Any, **more: Any) -> Any:
        named = {name: convert(value) for name, value in more.items()}
        return f(*fixed, *map(convert, args), **options, **named)

    return call


def batch_shape(function: CompiledFunction, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the batch shape of the results from the shapes of all arguments; refuse what does not fit."""
    signature = signature_of(function)
    return batch_of(signature.names, signature.shapes, shapes)


def batch_of(
    names: Sequence[str], expected: Sequence[tuple[int, ...]], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the batch shape of arguments with these shapes, `expected` without batch axes."""
    signature = [ArrayArgument(name, inner) for name, inner in zip(names, expected, strict=True)]
    given = [tuple(shape) for shape in shapes]
    for argument, shape in zip(signature, given, strict=True):
        require_shape(argument, shape)
    return broadcast_batches(signature, given)[1]


def align_batch_axes(
    arrays: Sequence[Any], axes: Sequence[Any], inner: Sequence[int], to_front: Callable[[Any, int], Any]
) -> list[Any]:
    """Move the axes of vmap before all batch axes, which stay aligned from the right.

    `axes`: None for an array that has no such axis. `inner`: how many axes one sample of each array has.
    """
    own = [np.ndim(x) - n - (axis is not None) for x, n, axis in zip(arrays, inner, axes, strict=True)]
    aligned = list(arrays)
    for k, axis in enumerate(axes):
        if axis is not None:
            front = to_front(arrays[k], axis)
            aligned[k] = front.reshape(front.shape[0], *(1,) * (max(own) - own[k]), *front.shape[1:])
    return aligned


def of_dtype(function: CompiledFunction, dtype: str) -> CompiledFunction:
    """Return the same function for arrays of a float type, if calls follow their arrays."""
    sibling = function._sibling
    return function if function.dtype == dtype or sibling is None else sibling(dtype)


def results_of(function: CompiledFunction) -> list[tuple[int, ...]]:
    """Return the shapes of the results, without batch axes."""
    return [item.shape for item in function._kernels.results()]


def evaluate(
    function: CompiledFunction, arrays: Sequence[npt.NDArray[Any]], check: str | None
) -> list[npt.NDArray[Any]]:
    """Return one array for each result, in any form that the function gives them."""
    signature = signature_of(function)
    if signature.flat and check in (None, "raise"):
        found = function(*arrays)
        return [np.asarray(result) for result in found] if type(found) is tuple else [np.asarray(found)]
    batch = batch_shape(function, [array.shape for array in arrays])
    results = [result_memory.empty(batch + shape, function.dtype) for shape in results_of(function)]
    parameters = dict(zip(signature.names[signature.split :], arrays[signature.split :], strict=True))
    function(*arrays[: signature.split], parameters=parameters, out=results, check=check)
    return results


def pull_back(
    call: Call[Foreign],
    function: CompiledFunction,
    arrays: Sequence[Foreign],
    cotangents: Sequence[Foreign],
    wanted: Sequence[int],
) -> list[Foreign]:
    """Return gradients by the arrays at the places `wanted`, over the whole batch; by coordinates, Eq. 1."""
    names, split = signature_of(function).names, signature_of(function).split
    vjp = function.vjp(*(names[k] for k in wanted))
    gradients = list(call(vjp, [*arrays[:split], *cotangents, *arrays[split:]]))
    for place, k in enumerate(wanted):
        if _is_curved(function, names[k]):
            lift = _compile_conversion(_coordinate_gradient, "gradient", function)
            (gradients[place],) = call(lift, [arrays[k], gradients[place]])
    return gradients


def push_forward(
    call: Call[Foreign],
    function: CompiledFunction,
    arrays: Sequence[Foreign],
    tangents: Sequence[Foreign],
    wanted: Sequence[int],
) -> list[Foreign]:
    """Return changes of the results along changes of the arrays `wanted`; of coordinates by Eq. 2."""
    names, split = signature_of(function).names, signature_of(function).split
    changes = list(tangents)
    for place, k in enumerate(wanted):
        if _is_curved(function, names[k]):
            lower = _compile_conversion(_nearest_velocity, "rates", function)
            (changes[place],) = call(lower, [arrays[k], changes[place]])
    jvp = function.jvp(*(names[k] for k in wanted))
    return list(call(jvp, [*arrays[:split], *changes, *arrays[split:]]))


def _coordinate_gradient(model: Model, q: Sequence[Scalar], gradient: Sequence[Scalar]) -> list[Scalar]:
    """Apply Equation 1, joint by joint."""
    found: list[Scalar] = []
    for body in _moving_bodies(model):
        Q = _rates_of(body.joint, body.own_q(q))
        x = _solve(Q, list(body.own_v(gradient)))
        found += [_sum(column[i] * weight for column, weight in zip(Q, x)) for i in range(len(Q[0]))]
    return found


def _nearest_velocity(model: Model, q: Sequence[Scalar], rates: Sequence[Scalar]) -> list[Scalar]:
    """Apply Equation 2, joint by joint."""
    found: list[Scalar] = []
    for body in _moving_bodies(model):
        Q, own = _rates_of(body.joint, body.own_q(q)), body.own_q(rates)
        found += _solve(Q, [_sum(a * b for a, b in zip(column, own)) for column in Q])
    return found


def _moving_bodies(model: Model) -> list[Body]:
    return [body for body in model.bodies if body.dependence is None and body.joint.nv]


def _rates_of(joint: Any, q: Sequence[Scalar]) -> list[list[Scalar]]:
    """Return the columns of Q: the rates of a joint's coordinates at each unit velocity."""
    return [list(joint.position_rate(q, unit)) for unit in np.eye(joint.nv).tolist()]


def _solve(Q: list[list[Scalar]], right: list[Scalar]) -> list[Scalar]:
    """Return (Q^T Q)^-1 right."""
    if _is_identity(Q):
        return right
    gram = [[_sum(a * b for a, b in zip(x, y)) for y in Q] for x in Q]
    return list(factor(gram).solve(right))


def _is_identity(columns: Iterable[Sequence[Scalar]]) -> bool:
    return all(literal(x) == float(i == j) for j, column in enumerate(columns) for i, x in enumerate(column))


def _sum(terms: Any) -> Scalar:
    return sum(terms, 0.0)


def _is_curved(function: CompiledFunction, name: str) -> bool:
    """Return whether derivatives by an argument are taken in other variables than its coordinates."""
    recipe, model = function._recipe, function._recipe.model
    if not any(item.name == name and recipe.is_configuration(item) for item in recipe.arguments):
        return False
    known = model.functions.get("curved")
    if known is None:
        graph = Graph()
        q = [graph.input("q", k) for k in range(model.nq)]
        columns = (configuration.position_rate(model, q, unit) for unit in np.eye(model.nv).tolist())
        known = model.functions["curved"] = not _is_identity(columns)
    return bool(known)


def _compile_conversion(
    conversion: Callable[..., Any], name: str, function: CompiledFunction
) -> CompiledFunction:
    """Compile one of the two conversions for the model and the float type of a function."""
    model, key = function._recipe.model, (name, function.dtype)
    size = model.nv if conversion is _coordinate_gradient else model.nq
    if key not in model.functions:
        arguments = (ArrayArgument("q", (model.nq,)), ArrayArgument(name, (size,)))
        # Whether q must have unit quaternions, the function itself has decided.
        recipe = Recipe(name, conversion, model, arguments, unit_quaternions=False).record()
        model.functions[key] = CompiledFunction(recipe, dtype=function.dtype)
    found: CompiledFunction = model.functions[key]
    return found

"""The kinds of arithmetic: each runs a recipe on a batch of states and returns `(samples, results)`.

States are `{argument: (samples, *shape)}`. Plain floats are the reference that the others are held against.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.conformance.enrolment import flat
from tests.tracing.interpreter import interpret

from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.lowering import Recipe
from dalembert.model import configuration
from dalembert.model.model import Model

States = dict[str, np.ndarray]


def draw_states(model: Model, samples: int, seed: int = 0, recipe: Recipe | None = None) -> States:
    """Moving states for every argument that an enrolled function may have; others of a recipe are normal."""
    rng = np.random.default_rng(seed)
    pairs = [model.random_state(rng) for _ in range(2 * samples)]
    q = np.array([q for q, _ in pairs])
    small = np.array(
        [configuration.integrate(model, x, 0.1 * rng.normal(size=model.nv)) for x in q[:samples]]
    )
    vectors = rng.normal(size=(3, samples, model.nv))
    states = {
        "q": q[:samples],
        "q0": q[:samples],
        "q1": small.astype(float),
        "q_ref": small.astype(float),
        "v": vectors[0],
        "dv": 0.3 * vectors[0],
        "a": vectors[1],
        "tau": vectors[2],
        "external_forces": rng.normal(size=(samples, len(model.bodies), 6)),
        "time": rng.uniform(0.0, 1.0, samples),
        "dt": rng.uniform(0.001, 0.01, samples),
    }
    for argument in recipe.arguments if recipe is not None else ():
        if argument.name not in states:
            states[argument.name] = rng.normal(size=(samples, *argument.shape))
    return states


def arrays_of(recipe: Recipe, states: States) -> list[np.ndarray]:
    return [states[argument.name] for argument in recipe.arguments]


def on_floats(recipe: Recipe, states: States) -> np.ndarray:
    """Sample by sample on Python floats: the reference."""
    rows = zip(*(array.tolist() for array in arrays_of(recipe, states)))
    return np.array([[float(x) for x in flat(recipe.function(recipe.model, *row))] for row in rows])


def on_numpy(recipe: Recipe, states: States) -> np.ndarray:
    """All samples at once, one element of each scalar a sample."""
    arrays = arrays_of(recipe, states)
    count = len(arrays[0])
    result = flat(recipe.function(recipe.model, *(_scalars(np.moveaxis(array, 0, -1)) for array in arrays)))
    return np.array([np.broadcast_to(x, (count,)) for x in result]).T


def on_symbols(recipe: Recipe, states: States) -> np.ndarray:
    """On SymPy symbols once; the expressions are evaluated for each sample afterwards."""
    import sympy

    arrays = arrays_of(recipe, states)
    symbols = [_symbols(argument.name, array.shape[1:]) for argument, array in zip(recipe.arguments, arrays)]
    result = [sympy.sympify(x) for x in flat(recipe.function(recipe.model, *symbols))]
    evaluate = sympy.lambdify([s for group in symbols for s in flat(group)], result, "math", cse=True)
    rows = zip(*(array.reshape(len(array), -1).tolist() for array in arrays))
    return np.array([evaluate(*(x for part in row for x in part)) for row in rows], dtype=float)


@functools.lru_cache(maxsize=1)
def compiled(recipe: Recipe, dtype: str) -> CompiledFunction:
    """One function for the interpreter, the scalar kernel and the lanes, so that it is traced once."""
    return CompiledFunction(recipe, dtype=dtype)


def on_interpreter(recipe: Recipe, states: States) -> np.ndarray:
    """The traced program, interpreted on NumPy scalars."""
    lowered = compiled(recipe, "float64")._kernels.lower()
    arrays = arrays_of(recipe, states)
    count = len(arrays[0])
    inputs = {
        argument.name: list(array.reshape(count, -1).T) for argument, array in zip(recipe.arguments, arrays)
    }
    results = interpret(lowered.program, inputs)
    columns = [np.broadcast_to(x, (count,)) for spec in lowered.program.outputs for x in results[spec.name]]
    return np.array(columns, dtype=float).reshape(len(columns), count).T


def on_scalar_kernel(recipe: Recipe, states: States, dtype: str = "float64") -> np.ndarray:
    """Machine code for one sample at a time: from the second call on, its generated entry point."""
    arrays = [array.astype(dtype) for array in arrays_of(recipe, states)]
    return np.array([_joined(compiled(recipe, dtype)(*row), 0) for row in _rows(arrays)])


def on_lanes(recipe: Recipe, states: States, dtype: str = "float64") -> np.ndarray:
    """Machine code for several samples at once."""
    arrays = [array.astype(dtype) for array in arrays_of(recipe, states)]
    return _joined(compiled(recipe, dtype)(*arrays), 1)


def _rows(arrays: list[np.ndarray]) -> Iterator[list[np.ndarray]]:
    for k in range(len(arrays[0])):
        yield [np.ascontiguousarray(array[k]) for array in arrays]


def _joined(results: Any, batch: int) -> np.ndarray:
    """All results of a call as one array, flat after the batch axis."""
    parts = results if isinstance(results, tuple) else (results,)
    return np.concatenate([np.reshape(x, (*np.shape(x)[:batch], -1)) for x in parts], axis=-1)


def _scalars(array: np.ndarray) -> Any:
    """Nested lists down to the last axis, which holds the samples."""
    return array if array.ndim == 1 else [_scalars(item) for item in array]


def _symbols(name: str, shape: tuple[int, ...]) -> Any:
    import sympy

    if not shape:
        return sympy.Symbol(name, real=True)
    return [_symbols(f"{name}_{k}", shape[1:]) for k in range(shape[0])]

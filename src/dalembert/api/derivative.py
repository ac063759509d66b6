"""Derivatives of the public functions that compile to straight-line arithmetic."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from dalembert.api.calls import Array, Check, read_options
from dalembert.call.arguments import pick_dtype
from dalembert.compiler.execution import CompiledFunction
from dalembert.compiler.library import FUNCTIONS, UNROLLED_BODIES, function, library_recipe, no_model
from dalembert.errors import ArgumentError, UnknownNameError, require_choice
from dalembert.model.model import Model


def derivative(
    of: Callable[..., Any],
    model: Model,
    *arguments: Any,
    by: str = "q",
    out: Array | tuple[Array, ...] | None = None,
    check: Check = None,
    **options: Any,
) -> Any:
    """Return the derivative df/dx of a public function `of` at the given arguments: `(…, *shape of f, n)`.

    `by`: the name of the argument x. With respect to a configuration q the derivative is taken on the tangent
    space, (df/dq)_k = d/dt f(integrate(q, t e_k)), n = nv. So that of `da.mass_matrix` is dM/dq `(…, nv, nv,
    nv)`, and that of `da.jacobian` the Hessian of a frame's motion `(…, 6, nv, nv)`. A function with several
    results gives a tuple; `forward_kinematics` gives the derivatives of rotations `(…, n_bodies, 3, 3, nv)`
    and translations `(…, n_bodies, 3, nv)`. The result comes from one compiled kernel, by the chain rule on
    the traced graph or by the recursions of `inverse_dynamics_derivatives` and
    `forward_dynamics_derivatives`. For your own functions use `da.compile(f, model).jacobian(x)`.

    >>> model = da.models.double_pendulum()
    >>> q, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> M_rate = da.dynamics.derivative(da.mass_matrix, model, q) @ v
    >>> print(np.abs(M_rate - da.geometry.mass_matrix_rate(model, q, v)).max() < 1e-12)
    True
    >>> print(da.dynamics.derivative(da.jacobian, model, q, "tip").shape)
    (6, 2, 2)
    """
    name = getattr(of, "__name__", repr(of))
    if name not in FUNCTIONS or not FUNCTIONS[name].differentiable:
        known = [item for item, declared in FUNCTIONS.items() if declared.differentiable]
        raise UnknownNameError(
            f"{UnknownNameError.of('function to differentiate', name, known)}; of others take "
            "da.compile(…).jacobian"
        )
    place = str(getattr(of, "__module__", ""))
    if not place.startswith("dalembert.api.") or getattr(sys.modules.get(place), name, None) is not of:
        raise ArgumentError(
            f"derivative takes the public da.{name}, got another function of this name, from {place}; "
            "of a function of your own take da.compile(…).jacobian"
        )
    if not isinstance(model, Model):
        raise no_model(name, model)
    declared = FUNCTIONS[name]
    short = ("derivative", of, by) if len(arguments) == len(declared.arguments) and not options else None
    plainly = out is None and check is None
    if plainly and short in model.functions:
        return model.functions[short](*arguments)
    try:
        bound = _signature(of).bind(model, *arguments, **options)
    except TypeError as error:
        raise ArgumentError(f"derivative of {name}: {error}") from None
    bound.apply_defaults()
    values = [bound.arguments[item] for item in declared.arguments]
    arrays, method, static = read_options(declared, model, bound.arguments)
    names, given = (*declared.arguments, *arrays), (*values, *arrays.values())
    require_choice(f"argument of {name}", by, names)
    chosen = (method, by, tuple(arrays), tuple(static.items()))
    key = ("derivative", name, *chosen, pick_dtype(list(zip(names, given, strict=True))))
    compiled = model.functions.get(key)
    if compiled is None:
        compiled = model.functions[key] = _compile_derivative(model, name, *chosen, key[-1])
        if short is not None:
            model.functions[short] = compiled
    return compiled(*given) if plainly else compiled(*given, out=out, check=check)


_signature = functools.cache(inspect.signature)


def _compile_derivative(
    model: Model,
    name: str,
    method: str | None,
    by: str,
    arrays: tuple[str, ...],
    options: tuple[tuple[str, Any], ...],
    dtype: str,
) -> CompiledFunction:
    """Compile one of the recursive derivatives if the function has them, else the derivative of its graph."""
    recursive = f"{name}_derivatives"
    known = recursive in FUNCTIONS and by in FUNCTIONS[name].arguments
    if method is not None or not known or len(model.bodies) > UNROLLED_BODIES:
        return function(model, name, method, arrays=arrays, options=options, dtype=dtype, by=by)
    whole = library_recipe(model, recursive, arrays=arrays, options=options)
    place = FUNCTIONS[recursive].arguments.index(by)
    recipe = dataclasses.replace(
        whole,
        name=f"{name} by {by}",
        function=lambda *values: whole.function(*values)[place],
        identity=f"{whole.identity} {by}",
    )
    return CompiledFunction(
        recipe,
        dtype=dtype,
        sibling=lambda other: _compile_derivative(model, name, method, by, arrays, options, other),
    )

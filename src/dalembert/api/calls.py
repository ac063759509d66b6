"""Public functions made from their declarations, and calls of compiled library functions.

All take one sample `(nq,)` or any leading batch shape `(…, nq)`, row-major. Integers and lists become
float64; float32 arrays give float32 results. `out=` takes preallocated results. `check="raise"` raises an
error for a quaternion that is not of unit norm, or NaN; `"flag"` returns NaN for such rows and for rows with
an argument that is not finite; `"off"` checks nothing. None means "raise", and "off" for arrays on a GPU,
where a check would have to wait for the device. Models with time-dependent joints need `time=`.
"""

from __future__ import annotations
import __future__

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.applied_forces import FORCE_FRAMES
from dalembert.algorithms.declaration import REQUIRED, LibraryFunction
from dalembert.api.records import RECORDS
from dalembert.call.arguments import DTYPES, ArrayArgument, as_array, check_result, pick_dtype
from dalembert.compiler.library import function, is_large, no_model
from dalembert.errors import ArgumentError, ShapeError, require_choice
from dalembert.host.foreign_arrays import bridge_of, is_foreign
from dalembert.model.model import Model

Array: TypeAlias = npt.NDArray[Any]
ArrayLike: TypeAlias = npt.ArrayLike
Check: TypeAlias = Literal["raise", "flag", "off"] | None
"""None: "raise" on the CPU; "off" on a GPU, where a check would have to wait for the device."""
ForceFrame: TypeAlias = Literal["body", "world", "center"]

Call: TypeAlias = Callable[..., Any]
FUTURE_ANNOTATIONS: Final = __future__.annotations.compiler_flag

# Public functions from declarations.

ALTERNATIVES: Final[dict[str, tuple[Callable[[Model], bool], Call]]] = {}
"""By the name of a declared function: for which models it is not one kernel, and how it is computed then."""


def alternative(name: str, applies: Callable[[Model], bool]) -> Callable[[Call], Call]:
    """Register how a declared function is computed for models for which it cannot be one kernel."""

    def register(compute: Call) -> Call:
        ALTERNATIVES[name] = applies, compute
        return compute

    return register


def parameters_of(declared: LibraryFunction) -> list[str]:
    """Return the parameters of the public function, as they stand in its definition and in stubs."""
    arrays = [f"{name}: ArrayLike | None = None" for name in declared.optional]
    places = {f"{name}: ArrayLike | None = None" for name in declared.by_place}
    options = {name: f"{name}: {option.annotation}" for name, option in declared.options.items()}
    required = [options.pop(name) for name, option in declared.options.items() if option.default is REQUIRED]
    out = "Array" if declared.returns == "Array" else "tuple[Array, ...]"
    return [
        "model: Model",
        *(f"{name}: ArrayLike" for name in declared.arguments if name not in declared.keywords),
        *required,
        *(item for item in arrays if item in places),
        "*",
        *(f"{name}: ArrayLike" for name in declared.keywords),
        *(['external_frame: ForceFrame = "body"'] if "external_forces" in declared.optional else []),
        *(f"{text} = {_literal(declared.options[name].default)}" for name, text in options.items()),
        *(["method: str | None = None"] if declared.others else []),
        *(item for item in arrays if item not in places),
        f"out: {out} | None = None",
        "check: Check = None",
    ]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


DEFINITION: Final = """
def {name}({parameters}) -> {returns}:{direct}
    return call_with_options(declared, model, ({arguments},), {{{options}}})
"""
"""A public function, written out so that Python itself binds the arguments, as fast as it can."""

DIRECT_CALL: Final = """
    if {condition}:
        try:  # arrays alone, by place, go straight to machine code
            compiled = model.functions[{key}]
        except (KeyError, AttributeError, TypeError):
            compiled = first_call(declared, model, {key}, {{{static}}})
        return {record}compiled({arguments}))"""
"""A call without optional arrays, or with external forces alone."""


def make_public(declared: LibraryFunction, module: str) -> Call:
    """Return the public function of a declaration."""
    parameters = parameters_of(declared)
    names = [item.partition(":")[0] for item in parameters if item != "*"]
    options = [name for name in names[1:] if name not in declared.arguments]
    absent = [name for name in options if name != "external_frame" and name not in declared.options]
    condition, static = " is ".join([*absent, "None"]), tuple(declared.options)
    cases = [(condition, static, declared.arguments)]
    if "external_frame" in options:
        loaded = condition.replace("external_forces is ", "") + " and external_forces is not None"
        cases = [(f"{condition} and external_frame is BODY", static, declared.arguments)]
        cases.append((loaded, ("external_frame", *static), (*declared.arguments, "external_forces")))
    source = DEFINITION.format(
        name=declared.name,
        parameters=", ".join(parameters),
        returns=declared.returns,
        direct="".join(
            DIRECT_CALL.format(
                condition=condition,
                key=f"({', '.join([repr(declared.name), *static])})",
                static=", ".join(f'"{name}": {name}' for name in static),
                record="record(model, *" if declared.returns in RECORDS else "(",
                arguments=", ".join(arguments),
            )
            for condition, static, arguments in cases
            if not declared.gains
        ),
        arguments=", ".join(declared.arguments),
        options=", ".join(f'"{name}": {name}' for name in options),
    )
    record = RECORDS.get(declared.returns)
    namespace: dict[str, Any] = {**_NAMESPACE, "__name__": module, "declared": declared, "record": record}
    exec(compile(source, f"<{declared.name}>", "exec", FUTURE_ANNOTATIONS, True), namespace)
    function: Call = namespace[declared.name]
    function.__doc__ = declared.algorithm.__doc__
    return function


def _first_call(declared: LibraryFunction, model: Model, key: object, given: dict[str, Any]) -> Call:
    """Return what computes a function without optional arrays, or of external forces alone where their frame
    is given; kept with the model by static options."""
    if not isinstance(model, Model):
        raise no_model(declared.name, model)
    options = _static_options(declared, model, given)
    arrays = ("external_forces",) if "external_frame" in given else ()
    if arrays:
        options |= force_options(True, given["external_frame"])
    compute = _alternative(declared, model)
    if compute is None:
        found: Call = function(model, declared.name, arrays=arrays, options=tuple(options.items()))
    elif not arrays:
        found = functools.partial(compute, model, **options)
    else:
        found = lambda *values: compute(model, *values[:-1], external_forces=values[-1], **options)
    with contextlib.suppress(
        TypeError
    ):  # options that cannot be looked up, such as lists, are read each time
        model.functions[key] = found
    return found


def _static_options(declared: LibraryFunction, model: Model, given: dict[str, Any]) -> dict[str, Any]:
    """Return the static options as the algorithm takes them, checked."""
    options = {}
    for name, option in declared.options.items():
        value = given[name]
        options[option.keyword or name] = value if option.read is None else option.read(model, value)
    return options


def _alternative(declared: LibraryFunction, model: Model) -> Call | None:
    """Return how a function is computed for a model for which it is not one kernel."""
    if not is_large(model) and declared.subject != "constraints":
        return None
    from dalembert.api import alternatives  # noqa: F401 (it registers itself, and is built on this module)

    applies, compute = ALTERNATIVES.get(declared.name, (None, None))
    return compute if applies is not None and applies(model) else None


def _call_with_options(
    declared: LibraryFunction, model: Model, values: tuple[Any, ...], given: dict[str, Any]
) -> Any:
    if not isinstance(model, Model):
        raise no_model(declared.name, model)
    if declared.gains:
        values, given = _expand_gains(declared, model, values, given)
    arrays, method, options = read_options(declared, model, given)
    compute = _alternative(declared, model) if method is None else None
    if compute is not None:
        found = compute(model, *values, **arrays, **options, out=given["out"], check=given["check"])
    else:
        found = results(model, declared.name, values, arrays, method, options, given["out"], given["check"])
    record = RECORDS.get(declared.returns)
    return found if record is None else record(model, *found)


def _expand_gains(
    declared: LibraryFunction, model: Model, values: tuple[Any, ...], given: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a control law with one gain for each velocity variable."""
    arrays = dict(zip(declared.arguments, values, strict=True)) | given
    if "dt" in arrays:
        checked_time_step(arrays["dt"])
    beside = [(name, arrays[name]) for name in ("q", "v", "q_ref")]
    for name in declared.gains:
        if arrays[name] is not None:
            arrays[name] = positive_gain(name, per_direction(name, arrays[name], model.nv, beside))
    return tuple(arrays[name] for name in declared.arguments), arrays


def read_options(
    declared: LibraryFunction, model: Model, given: dict[str, Any]
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return the optional arrays of a call that are not None, its method, and its static options, checked."""
    arrays = {name: given[name] for name in declared.optional if given[name] is not None}
    options = _static_options(declared, model, given)
    if "external_frame" in given:
        options |= force_options(given["external_forces"], given["external_frame"])
    if "stabilization" in arrays:
        checked_stabilization(arrays["stabilization"])
    return arrays, given.get("method"), options


_NAMESPACE: Final = {"BODY": "body", "first_call": _first_call, "call_with_options": _call_with_options}
"""What the definitions of public functions refer to."""


# Calls of compiled functions by ordinary functions.


def store_result(matrix: Array, out: Array | None) -> Array:
    """Return a matrix that NumPy assembled, copied into `out` if that is given."""
    if out is None:
        return np.ascontiguousarray(matrix)
    check_result(ArrayArgument("output", matrix.shape[-2:]), out, matrix.shape, matrix.dtype.name)
    out[...] = matrix
    return out


def known_frame(model: Model, name: str) -> str:
    """Return the name of a frame or body of the model; an unknown name is an error."""
    try:
        return model.frame(name).name
    except AttributeError:
        raise no_model("a function of a frame", model) from None


def checked_stabilization(T_stab: ArrayLike | None) -> ArrayLike | None:
    """Return the stabilisation time after checking that it is positive and finite; None passes."""
    if T_stab is None or is_foreign(T_stab):
        return T_stab
    if not (isinstance(T_stab, float) and 0.0 < T_stab < math.inf):
        times = as_array("stabilization", T_stab, (), follow=True)
        if not np.all(np.isfinite(times) & (times > 0.0)):
            raise ArgumentError(
                f"stabilization must be a positive time [s], got {T_stab}; None leaves it out"
            )
    return T_stab


def checked_time_step(dt: Any) -> Array:
    """Return the time step, or one for each sample, after checking that it is positive and finite; device
    arrays are not checked.
    """
    if is_foreign(dt):
        return dt  # type: ignore[no-any-return]
    if isinstance(dt, float) and 0.0 < dt < math.inf:
        return np.array(dt)
    span = as_array("dt", dt, (), follow=True)
    if not np.all(np.isfinite(span) & (span > 0.0)):
        raise ArgumentError(f"dt must be positive and finite, got {span}")
    return span


def force_options(external_forces: ArrayLike | None, frame: str) -> dict[str, Any]:
    """Return the options for external forces; a wrong frame name is an error even without forces."""
    require_choice("external_frame", frame, FORCE_FRAMES)
    return {} if external_forces is None else {"external_frame": frame}


def results(
    model: Model,
    name: str,
    values: tuple[Any, ...],
    arrays: dict[str, Any],
    method: str | None,
    options: dict[str, Any],
    out: Array | tuple[Array, ...] | None,
    check: Check,
) -> Any:
    """Return the results of a library function, compiled if it is not yet: a tuple, or one array."""
    arrays = {key: value for key, value in arrays.items() if value is not None}
    key = (name, method, tuple(arrays), tuple(options.items()), "float64")
    try:
        compiled = model.functions[key]
    except (KeyError, AttributeError, TypeError):  # `function` says what is wrong
        compiled = function(model, name, method, arrays=key[2], options=key[3])
    if out is None and check is None:
        # Arrays alone, by place, go straight to machine code.
        return compiled(*values, *arrays.values())
    return compiled(*values, *arrays.values(), out=out, check=check)


def per_direction(
    name: str,
    value: ArrayLike,
    size: int,
    beside: Sequence[tuple[str, object]],
    *,
    before: int = 0,
    after: int = 0,
) -> Array:
    """Return an array `(…, size)` from one number or `size` numbers, in the float type of the arrays `beside`
    it.

    `before` and `after`: zeros to add at either end.
    """
    dtype = DTYPES[pick_dtype([*beside, (name, value)])]
    bridge = bridge_of([value])
    if bridge is not None:
        foreign: Any = value
        if foreign.ndim == 0:
            foreign = foreign * bridge.alike(np.ones(size), foreign)
        return foreign @ bridge.alike(np.eye(size, before + size + after, before), foreign)  # type: ignore[no-any-return]
    array = as_array(name, value, (), follow=True).astype(dtype)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape[-1] != size:
        raise ShapeError(
            f"{name}: expected one number or {size}, got shape {array.shape}; a batch is (…, {size})"
        )
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(before, after)]) if before or after else array


def positive_gain(name: str, gain: Array) -> Array:
    """Return the gain after checking that it is not negative; a negative gain drives away from the target."""
    if not is_foreign(gain) and np.any(gain < 0.0):
        raise ArgumentError(f"{name} has negative numbers, which drive the system away; give gains >= 0")
    return gain

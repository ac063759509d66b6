"""A compiled function and its calls: arrays in, kernels, arrays out.

A single sample of plain float arrays takes the entry point generated with the kernels, without passing
through Python. Everything else (batches, lists, `out=`, parameters, errors) takes `_general`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import numpy as np

from dalembert import codegen
from dalembert.arguments import (
    Array,
    ArrayArgument,
    Result,
    Rows,
    as_rows,
    pick_dtype,
    plain_rows,
    result_rows,
)
from dalembert.catalogue.entry import Refusal
from dalembert.columns import Columns
from dalembert.errors import ArgumentError, StateError, UnknownNameError
from dalembert.foreign_arrays import bridge_of
from dalembert.lowering import QUATERNION_TOLERANCE, Lowered, Recipe, lower
from dalembert.tracing.count import OperationCount, count_program
from dalembert.tracing.derivative import Derivative, grouped
from dalembert.tracing.source import python_source
from dalembert.tracing.trace import ArrayInput

__all__ = ["CompiledFunction"]

CHECKS: Final = ("raise", "flag", "off")

STATE_NUMBERS: Final = 25
"""Numbers that a pass over a tree in loops keeps for each body and sample, measured on forward dynamics."""

STATE_GROWTH: Final = {"jacobian": 1, "jvp": 2, "vjp": 4, "hessian_vector": 8}
"""How many times as many a derivative keeps."""

CACHE_BYTES: Final = 12 << 20
"""Larger states of a tree in loops would go through main memory, which costs more than narrow vectors."""

PATIENCE: Final = 1.0
"""Seconds after which a compilation is announced."""


@final
class CompiledFunction:
    """A function of arrays, compiled for one model: call it with one sample or with any leading batch shape.

    `f(q, v, tau, out=…, parameters={…}, check="raise")`. Arguments may be given by name. `out`: preallocated
    result, or a tuple of them. `check`: "raise" refuses a batch with a quaternion off unit norm, or with what
    else the function refuses, "flag" makes such rows NaN, "off" does not look.

    Rows: RBDA-10.4-SYMBOLIC.

    >>> f = da.compile(da.forward_dynamics, da.models.pendulum())
    >>> print(f([np.pi / 2], [0.0], [0.0]).round(3))
    [-9.81]
    >>> print(f.operation_count.total)
    2
    """

    # An instance's own `__call__` lets a call reach the generated entry point without a Python frame.
    __slots__ = (
        "__call__",
        "__weakref__",
        "_columns",
        "_derivatives",
        "_kernels",
        "_lock",
        "_lowered",
        "_recipe",
        "_results",
        "_sibling",
        "_signature",
        "dtype",
    )

    def __init__(
        self,
        recipe: Recipe,
        *,
        dtype: str = "float64",
        sibling: Callable[[str], CompiledFunction] | None = None,
    ) -> None:
        """`sibling(dtype)`: the same function for another float type, if calls follow their arrays."""
        self.dtype = dtype
        self._sibling = sibling
        self._recipe = recipe
        self._signature = (*recipe.signature, *recipe.parameters)
        self._lowered: Lowered | None = None
        self._results: tuple[ArrayArgument, ...] | None = None
        self._columns: Columns | None = None
        self._kernels: dict[str, codegen.CpuKernel] = {}
        self._derivatives: dict[tuple[str, tuple[str, ...]], CompiledFunction] = {}
        self._lock = threading.RLock()
        self.__call__ = self._general

    @property
    def name(self) -> str:
        """The name of the function that was compiled."""
        return self._recipe.name

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arguments, without batch axes."""
        return {item.name: item.shape for item in self._recipe.signature}

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the model values that are given at run time."""
        return {item.name: item.shape for item in self._recipe.parameters}

    @property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the results, without batch axes."""
        return {item.name: item.shape for item in self._layout()}

    @property
    def operation_count(self) -> OperationCount:
        """Arithmetic operations a sample, after simplification; sines and cosines are counted apart."""
        if self._columns is not None:
            single: OperationCount = self._columns.product.operation_count
            return self._columns.count * single
        return count_program(self._lower().program)

    @property
    def source(self) -> str:
        """The straight-line program as Python source: what the kernels compute, for reading and checking."""
        return python_source(self._lower().program, name=self.name)

    @property
    def sparsity(self) -> Any:
        """Which elements of the results are not zero by structure: boolean arrays in the form of the results.

        Where it is False the result is zero for every argument; nothing is computed there.
        """
        if self._columns is not None:
            pairs = zip(self._columns.masks, self._layout(), strict=True)
            return self._hand_back([mask.reshape(item.shape) for mask, item in pairs])
        return self._hand_back(list(self._lower().nonzero))

    def jacobian(self, *arguments: str) -> CompiledFunction:
        """The derivative by an argument, as another compiled function: shape (…, *output, n).

        By a configuration q it is taken on the tangent space, n = nv: d f(integrate(q, t e_j)) / dt at t = 0.
        Several arguments give a tuple, from one kernel that shares what they have in common. A run-time
        parameter is an argument too: `f.jacobian("upper.mass")`. Of a tree that is compiled as loops, columns
        that share no row are computed together, each group in linear time.
        """
        return self._derived("jacobian", arguments)

    def jvp(self, *arguments: str) -> CompiledFunction:
        """The change of the results along a change of arguments, J dx, as another compiled function.

        It takes one more array for each argument x, after the function's own: `d<x>`, of the shape of x, of
        nv numbers for a configuration.
        """
        return self._derived("jvp", arguments)

    def vjp(self, *arguments: str) -> CompiledFunction:
        """The gradient of the sum of the results weighted with `cotangent`, J^T w, by reverse accumulation.

        It takes one more array, `cotangent`, of the shape of the result (`cotangent_0`, `cotangent_1`, …
        where there are several), and gives the gradient by each argument: of its shape, nv numbers for a
        configuration.
        """
        return self._derived("vjp", arguments)

    def hessian_vector(self, *arguments: str) -> CompiledFunction:
        """The change of the gradient along a change of arguments, H dx, forward over reverse.

        It takes `d<x>` for each argument x, and `cotangent` as `vjp` does unless the function is one scalar:
        then the second derivatives of the results are contracted with it. By configurations it is the
        derivative of the gradient, nv numbers, along integrate(q, t dq): its quadratic form dq H dq is the
        second derivative of f along that curve; H alone is symmetric up to the brackets of the directions.
        """
        return self._derived("hessian_vector", arguments)

    def _derived(self, kind: str, arguments: tuple[str, ...]) -> CompiledFunction:
        found = self._derivatives.get((kind, arguments))
        if self._columns is not None:
            raise ArgumentError(
                f"{self.name}: the Jacobian of {len(self._recipe.model.bodies)} bodies has no derivative; "
                "hessian_vector of the function gives second derivatives along a direction"
            )
        if found is None:
            recipe, sibling = self._recipe, self._sibling
            derivative = Derivative.of(
                kind,
                arguments,
                [ArrayInput(item.name, item.shape) for item in self._signature],
                lambda: [item.shape for item in self._layout()],
                recipe.charts(),
            )
            found = CompiledFunction(
                dataclasses.replace(
                    recipe,
                    derivatives=(*recipe.derivatives, derivative),
                    looped=recipe.looped and kind != "jacobian",
                    identity=recipe.identity and f"{recipe.identity} {derivative}",
                ),
                dtype=self.dtype,
                sibling=None if sibling is None else lambda other: sibling(other)._derived(kind, arguments),
            )
            if recipe.looped and kind == "jacobian":
                product = self.jvp(*arguments)
                tangents = [product._signature[k - len(arguments)] for k in range(len(arguments))]
                found._columns = Columns(
                    product,
                    lambda: self.vjp(*arguments),
                    product._lower().program,
                    tangents,
                    dtype=self.dtype,
                )
                found._results = tuple(
                    ArrayArgument(f"{self._layout()[0].name} by {name}", self._layout()[0].shape + item.shape)
                    for name, item in zip(arguments, tangents, strict=True)
                )
            self._derivatives[kind, arguments] = found
        return found

    def _run(self, rows: Rows, results: Sequence[Result]) -> int:
        """Compute all rows; the first one that is refused, or -1."""
        if self._columns is not None:
            self._columns.fill(rows, self._signature, results)
            bad = [np.broadcast_to(_off_unit(x, self.dtype), rows.count) for _, _, x in self._norms(rows)]
            return int(np.argmax(np.any(bad, axis=0))) if np.any(bad) else -1
        kernel = self._kernel("scalar" if rows.count == 1 else "lanes")
        return kernel.run(
            [(codegen.address_of(m), m.strides[0] if len(m) > 1 else 0) for m in rows.matrices],
            [(codegen.address_of(result.matrix), result.matrix.strides[0]) for result in results],
            rows.count,
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}{list(shape)}" for name, shape in self.inputs.items())
        return f"<CompiledFunction {self._title()}({arguments}) for {self._recipe.model!r}, {self.dtype}>"

    def _title(self) -> str:
        """The name with the derivatives: f.vjp[q, v]."""
        parts = (f".{item.kind}[{', '.join(item.arguments)}]" for item in self._recipe.derivatives)
        return self.name + "".join(parts)

    def _general(
        self,
        *args: object,
        out: object = None,
        parameters: Mapping[str, object] | None = None,
        check: str = "raise",
        **named: Any,
    ) -> Any:
        if check not in CHECKS:
            raise UnknownNameError.of("check", check, CHECKS)
        values = [*self._bind(args, named), *self._bind_parameters(parameters)]
        rows = plain_rows(self._signature, values, self.dtype)
        if rows is None:
            bridge = bridge_of(values)
            if bridge is not None:
                return bridge.call(self, values, out, check)
            if self._sibling is not None:
                dtype = pick_dtype(list(zip(self.inputs, values, strict=False)))
                if dtype != self.dtype:
                    return self._sibling(dtype)(*args, out=out, check=check, **named)
            rows = as_rows(self._signature, values, self.dtype)
        results = result_rows(self._layout(), rows, self.dtype, out)
        refused = self._run(rows, results)
        if refused >= 0 and check == "raise":
            raise self._refusal(rows, refused)
        if refused >= 0 and check == "flag":
            self._flag(rows, results, refused)
        if out is not None:
            for result in results:
                result.finish()
        if not rows.batch and self.__call__ == self._general:
            self._open_entry()
        arrays = [result.array for result in results]
        return self._hand_back(arrays if len(arrays) > 1 or arrays[0].ndim else [arrays[0][()]])

    def _bind(self, args: Sequence[object], named: Mapping[str, object]) -> list[object]:
        count = len(self._signature) - len(self._recipe.parameters)
        if len(args) == count and not named:
            return list(args)
        names = [item.name for item in self._signature[:count]]
        if len(args) > len(names):
            raise ArgumentError(
                f"{self.name} takes {len(names)} arrays ({', '.join(names)}), got {len(args)}"
            )
        given = dict(zip(names, args, strict=False))
        for name, value in named.items():
            if name not in names:
                raise UnknownNameError.of(f"argument of {self.name}", name, names)
            if name in given:
                raise ArgumentError(f"{self.name} got {name} twice, by place and by name")
            given[name] = value
        missing = [name for name in names if name not in given]
        if missing:
            raise ArgumentError(
                f"{self.name} needs {', '.join(missing)}; its arguments are {', '.join(names)}"
            )
        return [given[name] for name in names]

    def _bind_parameters(self, parameters: Mapping[str, object] | None) -> list[object]:
        """Given values, and the model's own for the rest."""
        if not self._recipe.parameters and not parameters:
            return []
        known = [item.name for item in self._recipe.parameters]
        given = dict(parameters or {})
        for name in given:
            if name not in known:
                raise UnknownNameError.of(f"run-time parameter of {self.name}", name, known)
        return [given[name] if name in given else self._recipe.model.value(name) for name in known]

    def _lower(self) -> Lowered:
        with self._lock:
            if self._lowered is None:
                self._lowered = lower(self._recipe, self.dtype)
                self._results = self._lowered.results
            return self._lowered

    def _layout(self) -> tuple[ArrayArgument, ...]:
        """The results; of a function of the library's own that is on disk, without a trace."""
        if self._results is None and self._lowered is None:
            for width in ("scalar", "lanes"):
                if (kernel := self._load(width)) is not None:
                    self._kernels.setdefault(width, kernel)
                    break
        return self._lower().results if self._results is None else self._results

    def _kernel(self, width: str) -> codegen.CpuKernel:
        kernel = self._kernels.get(width)
        if kernel is None:
            with self._lock, _announced(f"compiling {self._title()} for {self._recipe.model!r} ({width})"):
                kernel = self._kernels.get(width) or self._load(width) or self._compile(width)
                self._kernels[width] = kernel
        return kernel

    def _load(self, width: str) -> codegen.CpuKernel | None:
        """A function of the library's own from the disk cache, without a trace."""
        if self._recipe.identity is None:
            return None
        kernel = codegen.load_kernel(self._recipe.identity, dtype=self.dtype, lanes=self._lanes(width))
        if kernel is not None and self._results is None:
            self._results = tuple(
                ArrayArgument(name, tuple(shape)) for name, shape in kernel.extra["results"]
            )
        return kernel

    def _compile(self, width: str) -> codegen.CpuKernel:
        lowered = self._lower()
        return codegen.compile_program(
            lowered.program,
            dtype=self.dtype,
            lanes=self._lanes(width),
            key=self._recipe.identity,
            extra={"results": [[item.name, list(item.shape)] for item in lowered.results]},
        )

    def _lanes(self, width: str) -> int:
        """How many samples a kernel computes at once; fewer for a tree whose states would fill the cache."""
        if width == "scalar":
            return 1
        lanes = codegen.default_lanes(self.dtype)
        numbers = STATE_NUMBERS * len(self._recipe.model.bodies) if self._recipe.looped else 0
        for derivative in self._recipe.derivatives:
            numbers *= STATE_GROWTH[derivative.kind]
        while lanes > 2 and lanes * numbers * np.dtype(self.dtype).itemsize > CACHE_BYTES:
            lanes //= 2
        return lanes

    def _open_entry(self) -> None:
        """From now on single samples go straight to machine code."""
        count = len(self._layout())
        form = self._hand_back(list(range(count)))
        plain = type(form) is tuple if count > 1 else form == 0
        if self._recipe.parameters or self._columns is not None or not plain:
            return
        self.__call__ = codegen.make_entry(
            self._kernel("scalar"),
            self._general,
            input_shapes=[item.shape for item in self._signature],
            output_shapes=[item.shape for item in self._layout()],
            name=self.name,
        )

    def _hand_back(self, results: list[Any]) -> Any:
        """The results as the function returns them: one bare, several as a tuple, or a user's own form."""
        if self._recipe.identity is None:
            return self._lower().rebuild(results)
        return grouped(results, self._recipe.derivatives, lambda own: own[0] if len(own) == 1 else tuple(own))

    def _refusal(self, rows: Rows, row: int) -> StateError:
        """Which quaternion of which argument, in which row."""
        where = ""
        if rows.batch:
            where = f", sample {tuple(int(place) for place in np.unravel_index(row, rows.batch))}"
        for name, place, norms in self._norms(rows):
            norm = float(norms[min(row, len(norms) - 1)])
            if _off_unit(norm, self.dtype):
                return StateError(
                    f"{name}[{place.start}:{place.stop}]{where}: a quaternion must have unit norm, "
                    f"this one has {norm:.9g}; normalize it first, for instance with da.normalize(model, q)"
                )
        one = [matrix[min(row, len(matrix) - 1)].astype(np.float64).tolist() for matrix in rows.matrices]
        for refusal in self._recipe.refusals:
            measure = float(self._measured(refusal, one))
            if measure > refusal.tolerance[self.dtype]:
                return StateError(f"{self.name}{where}: {refusal.message.format(measure=measure)}")
        return StateError(f"{self.name}{where or ', this sample'}: refused")

    def _flag(self, rows: Rows, results: Sequence[Result], first: int) -> None:
        bad = np.zeros(rows.count, dtype=bool)
        bad[first] = True
        for _, _, norms in self._norms(rows):
            bad |= _off_unit(norms, self.dtype)
        columns = [list(matrix.T) for matrix in rows.matrices]
        for refusal in self._recipe.refusals:
            with np.errstate(all="ignore"):
                bad |= self._measured(refusal, columns) > refusal.tolerance[self.dtype]
        for result in results:
            result.matrix[bad] = np.nan

    def _measured(self, refusal: Refusal, rows: Sequence[Sequence[Any]]) -> Any:
        """A measure of one sample, or of all of them where the elements are arrays."""
        arrays = [_nested(flat, item.shape) for flat, item in zip(rows, self._signature, strict=True)]
        own, parameters = len(self._recipe.arguments), len(self._recipe.parameters)
        return self._recipe.on_model(refusal.measure, arrays[:own] + arrays[len(arrays) - parameters :])

    def _norms(self, rows: Rows) -> Iterator[tuple[str, slice, Array]]:
        for argument, matrix in zip(self._recipe.arguments, rows.matrices, strict=False):
            for place in self._recipe.quaternions(argument):
                yield argument.name, place, np.linalg.norm(matrix[:, place], axis=1)


def _nested(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The elements of an array, row-major, as nested lists."""
    if not shape:
        return flat[0]
    size = len(flat) // max(shape[0], 1)
    return [_nested(flat[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]


def _off_unit(norm: Any, dtype: str) -> Any:
    """Whether the kernels refuse a quaternion of this norm; `lowering` says it of the square."""
    return abs(norm * norm - 1.0) > 2.0 * QUATERNION_TOLERANCE[dtype]


@contextlib.contextmanager
def _announced(what: str) -> Iterator[None]:
    """Say what takes so long, once it does."""
    start = time.monotonic()
    said = threading.Event()

    def say() -> None:
        said.set()
        sys.stderr.write(f"dalembert: {what} …\n")

    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if said.is_set():
            sys.stderr.write(f"dalembert: done in {time.monotonic() - start:.1f} s\n")

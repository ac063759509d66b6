"""A compiled function and its calls: arrays in, kernels, arrays out.

A single sample of plain float arrays takes the entry point generated with the kernels, without passing
through Python. Everything else (batches, lists, `out=`, parameters, errors) takes `_general`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import numpy as np

from dalembert import codegen
from dalembert.call.arguments import (
    Array,
    ArrayArgument,
    Result,
    Rows,
    as_rows,
    pick_dtype,
    plain_rows,
    result_rows,
)
from dalembert.compiler.kernels import Kernels
from dalembert.compiler.lowering import QUATERNION_TOLERANCE, Recipe
from dalembert.errors import ArgumentError, DtypeError, StateError, UnknownNameError, require_choice
from dalembert.host.foreign_arrays import bridge_of
from dalembert.tracing.derivative_calls import Derivative, group_results
from dalembert.tracing.program import OperationCount, Program, count_program
from dalembert.tracing.program_derivatives import colour_columns, dependence
from dalembert.tracing.source import python_source

# The binding of the values of a call to the arrays of a function.


def bind(
    recipe: Recipe,
    args: Sequence[object],
    named: Mapping[str, object],
    parameters: Mapping[str, object] | None,
) -> list[object]:
    """Return the values of the arguments, given by place or by name, and then of the run-time parameters."""
    names = [item.name for item in recipe.signature]
    own = _parameters(recipe, parameters) if recipe.parameters or parameters else ()
    if len(args) == len(names) and not named:
        return [*args, *own]
    if len(args) > len(names):
        raise ArgumentError(f"{recipe.name} takes {len(names)} arrays ({', '.join(names)}), got {len(args)}")
    given = dict(zip(names, args, strict=False))
    for name, value in named.items():
        if name not in names:
            raise UnknownNameError.of(f"argument of {recipe.name}", name, names)
        if name in given:
            raise ArgumentError(f"{recipe.name} got {name} twice, by place and by name")
        given[name] = value
    missing = [name for name in names if name not in given]
    if missing:
        raise ArgumentError(f"{recipe.name} needs {', '.join(missing)}; its arguments are {', '.join(names)}")
    return [*(given[name] for name in names), *own]


def _parameters(recipe: Recipe, parameters: Mapping[str, object] | None) -> list[object]:
    """Return the given values, and the model's own for the rest."""
    known = [item.name for item in recipe.parameters]
    if parameters is not None and not isinstance(parameters, Mapping):
        raise DtypeError(
            f"{recipe.name}: parameters are values by name, {{name: value}}, got {type(parameters).__name__}"
        )
    given = dict(parameters or {})
    for name in given:
        if name not in known:
            raise UnknownNameError.of(f"run-time parameter of {recipe.name}", name, known)
    return [given[name] if name in given else recipe.model.value(name) for name in known]


# Jacobians too long for straight-line code: products with directions, as few as the sparsity allows.
#
# A tree of n bodies that is compiled as loops has its products with the Jacobian in O(n) operations a sample.
# Columns that share no row come from one product with the sum of their directions: joints of branches that do
# not meet share no torque. Rows that would keep many columns apart, those of joints near the root, are taken
# as gradients instead. The products of a sample are one batch.


@final
class Columns:
    """The directions of a Jacobian; `product(*arguments, *changes)` is J times a change of the arguments."""

    def __init__(
        self,
        product: Any,
        gradient: Callable[[], Any],
        program: Program,
        tangents: Sequence[ArrayArgument],
        *,
        dtype: str,
    ) -> None:
        """`program` computes the product, one output; `tangents`: its arrays that are changes.

        `gradient()` is the function of the same arguments and of weights that gives rows times weights.
        """
        (rows,) = dependence(program, [item.name for item in tangents]).values()
        ends = np.cumsum([item.size for item in tangents])
        total = int(ends[-1])
        # Rows to take as gradients: as many as halve the products at least, the fewest products in all. The
        # columns of a row all need products of their own, so the longest row that is left is what they cost.
        order = sorted(range(len(rows)), key=lambda k: -rows[k].bit_count())
        lengths = [rows[k].bit_count() for k in order] + [0]
        best = min(range(len(lengths)), key=lambda taken: taken + lengths[taken])
        self._rows = sorted(order[:best]) if 2 * (best + lengths[best]) <= lengths[0] else []
        self._weights = np.eye(len(rows), dtype=dtype)[self._rows]
        self._gradient = gradient() if self._rows else None
        dense = set(self._rows)
        groups = colour_columns([0 if k in dense else row for k, row in enumerate(rows)], total)
        seeds = np.zeros((len(groups), total), dtype)
        self._colours = np.zeros(total, np.int64)
        for colour, columns in enumerate(groups):
            seeds[colour, columns] = 1.0
            self._colours[columns] = colour
        self._ends = ends[:-1]
        self.count = len(groups) + len(self._rows)
        self.product = product
        self._changes = [
            part.reshape(-1, *item.shape)
            for part, item in zip(np.split(seeds, self._ends, axis=1), tangents, strict=True)
        ]
        depends = np.array([[row >> k & 1 for k in range(total)] for row in rows], bool).reshape(-1, total)
        self.masks: list[Array] = np.split(depends, self._ends, axis=1)

    def fill(self, rows: Rows, signature: Sequence[ArrayArgument], results: Sequence[Result]) -> None:
        """Compute the rows' Jacobians, one result an argument."""
        for row in range(rows.count):
            given = [
                matrix[min(row, len(matrix) - 1)].reshape(item.shape)
                for matrix, item in zip(rows.matrices, signature, strict=True)
            ]
            products = self.product(*given, *self._changes, check="off")
            matrix = products.T[:, self._colours]
            if self._gradient is not None:
                found = self._gradient(*given, self._weights, check="off")
                parts = found if isinstance(found, tuple) else (found,)
                matrix[self._rows] = np.concatenate([x.reshape(len(x), -1) for x in parts], axis=1)
            for result, part, mask in zip(
                results, np.split(matrix, self._ends, axis=1), self.masks, strict=True
            ):
                result.matrix[row] = np.where(mask, part, 0.0).ravel()


CHECKS: Final = ("raise", "flag", "off")


@final
class CompiledFunction:
    """A function of arrays, compiled for one model: call it with one sample or with any leading batch shape.

    `f(q, v, tau, out=…, parameters={…}, check=None)`. Arguments may be given by name. `out`: preallocated
    result, or a tuple of them; an interrupted call leaves them written in part. `check`: "raise" refuses a
    batch with a quaternion that is off unit norm or not a number, or with what else the function refuses;
    "flag" makes the results of such rows NaN, and of rows with any argument that is not finite; "off" checks
    nothing. None is "raise", on a GPU "off".

    Arrays on a GPU (PyTorch, CuPy, JAX and others) are computed there, on their library's stream, and results
    are of their kind. With device="cuda" NumPy arrays are copied to the GPU and back.

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
        "_gpu_calls",
        "_kernels",
        "_recipe",
        "_sibling",
        "_signature",
        "device",
        "dtype",
    )

    def __init__(
        self,
        recipe: Recipe,
        *,
        dtype: str = "float64",
        device: str = "cpu",
        sibling: Callable[[str], CompiledFunction] | None = None,
    ) -> None:
        """`sibling(dtype)`: the same function for another float type, if calls follow their arrays."""
        self.dtype = dtype
        self.device = device
        self._sibling = sibling
        self._recipe = recipe
        self._signature = (*recipe.signature, *recipe.parameters)
        self._kernels = Kernels(recipe, dtype)
        self._columns: Columns | None = None
        self._derivatives: dict[tuple[str, tuple[str, ...]], CompiledFunction] = {}
        self._gpu_calls: dict[Any, Any] = {}
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
        return {item.name: item.shape for item in self._kernels.results()}

    @property
    def operation_count(self) -> OperationCount:
        """The arithmetic operations per sample, after simplification; sines and cosines are counted apart."""
        if self._columns is not None:
            single: OperationCount = self._columns.product.operation_count
            return self._columns.count * single
        return count_program(self._kernels.lower().program)

    @property
    def source(self) -> str:
        """The straight-line program as Python source: what the kernels compute, for reading and checking."""
        return python_source(self._kernels.lower().program, name=self.name)

    @property
    def sparsity(self) -> Any:
        """The elements that are not zero by structure: boolean arrays in the form of the results.

        Where it is False the result is zero for every argument; nothing is computed there.
        """
        if self._columns is not None:
            pairs = zip(self._columns.masks, self._kernels.results(), strict=True)
            return self._hand_back([mask.reshape(item.shape) for mask, item in pairs])
        return self._hand_back(list(self._kernels.lower().nonzero))

    def jacobian(self, *arguments: str) -> CompiledFunction:
        """Return the derivative by an argument, as another compiled function: shape (…, *output, n).

        By a configuration q it is taken on the tangent space, n = nv: d f(integrate(q, t e_j)) / dt at t = 0.
        Several arguments give a tuple, from one kernel that shares what they have in common. A run-time
        parameter is an argument too: `f.jacobian("upper.mass")`. Of a tree that is compiled as loops, columns
        that share no row are computed together, each group in linear time.
        """
        return self._derivative("jacobian", arguments)

    def jvp(self, *arguments: str) -> CompiledFunction:
        """Return the change of the results along a change of arguments, J dx, as another compiled function.

        It takes one more array for each argument x, after the function's own: `d<x>`, of the shape of x, of
        nv numbers for a configuration.
        """
        return self._derivative("jvp", arguments)

    def vjp(self, *arguments: str) -> CompiledFunction:
        """Return the gradient of the results' sum weighted with `cotangent`, J^T w, by reverse accumulation.

        It takes one more array, `cotangent`, of the shape of the result (`cotangent_0`, `cotangent_1`, …
        where there are several), and gives the gradient by each argument: of its shape, nv numbers for a
        configuration.
        """
        return self._derivative("vjp", arguments)

    def hessian_vector(self, *arguments: str) -> CompiledFunction:
        """Return the change of the gradient along a change of arguments, H dx, forward over reverse.

        It takes `d<x>` for each argument x, and `cotangent` as `vjp` does unless the function is one scalar:
        then the second derivatives of the results are contracted with it. By configurations it is the
        derivative of the gradient, nv numbers, along integrate(q, t dq): its quadratic form dq H dq is the
        second derivative of f along that curve; H alone is symmetric up to the brackets of the directions.
        """
        return self._derivative("hessian_vector", arguments)

    def _derivative(self, kind: str, arguments: tuple[str, ...]) -> CompiledFunction:
        for item in arguments:
            if not isinstance(item, str):
                raise DtypeError(
                    f'{self.name}.{kind} takes names of arguments, such as {kind}("q", "v"), '
                    f"got {type(item).__name__}"
                )
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
                self._signature,
                lambda: [item.shape for item in self._kernels.results()],
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
                device=self.device,
                sibling=None
                if sibling is None
                else lambda other: sibling(other)._derivative(kind, arguments),
            )
            if recipe.looped and kind == "jacobian":
                product = self.jvp(*arguments)
                tangents = [product._signature[k - len(arguments)] for k in range(len(arguments))]
                found._columns = Columns(
                    product,
                    lambda: self.vjp(*arguments),
                    product._kernels.lower().program,
                    tangents,
                    dtype=self.dtype,
                )
                own = self._kernels.results()[0]
                results = tuple(
                    ArrayArgument(f"{own.name} by {name}", own.shape + item.shape)
                    for name, item in zip(arguments, tangents, strict=True)
                )
                found._kernels = Kernels(found._recipe, self.dtype, results=results)
            self._derivatives[kind, arguments] = found
        return found

    def _run(self, rows: Rows, results: Sequence[Result]) -> int:
        """Compute all rows; the first one that is refused, or -1."""
        if self._columns is not None:
            self._columns.fill(rows, self._signature, results)
            bad = off_unit_rows(self._recipe, rows, self.dtype)
            return int(np.argmax(bad)) if np.any(bad) else -1
        if self.device == "cuda":
            from dalembert.compiler.gpu_calls import run_on_host_arrays

            return run_on_host_arrays(self, rows, results)
        kernel = self._kernels.kernel("scalar" if rows.count == 1 else "lanes")
        return kernel.run(
            [(codegen.address_of(m), m.strides[0] if len(m) > 1 else 0) for m in rows.matrices],
            [(codegen.address_of(result.matrix), result.matrix.strides[0]) for result in results],
            rows.count,
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}{list(shape)}" for name, shape in self.inputs.items())
        return (
            f"<CompiledFunction {self._kernels.title}({arguments}) for {self._recipe.model!r}, {self.dtype}"
            f"{', cuda' if self.device == 'cuda' else ''}>"
        )

    def __copy__(self) -> CompiledFunction:
        return self

    def __deepcopy__(self, memo: object) -> CompiledFunction:
        return self

    def __reduce__(self) -> Any:
        raise DtypeError(
            f"{self.name}: a compiled function is machine code of this process and cannot be pickled; pickle "
            "the model and compile there, which finds the kernel in the disk cache"
        )

    def _general(
        self,
        *args: object,
        out: object = None,
        parameters: Mapping[str, object] | None = None,
        check: str | None = None,
        **named: Any,
    ) -> Any:
        if check is not None:
            require_choice("check", check, CHECKS)
        values = bind(self._recipe, args, named, parameters)
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
        results = result_rows(self._kernels.results(), rows, self.dtype, out)
        refused = self._run(rows, results)
        if refused >= 0 and check in (None, "raise"):
            raise refusal_of(self._recipe, rows, refused, self.dtype)
        if check == "flag":
            bad = flagged_rows(self._recipe, rows, refused, self.dtype)
            for result in results:
                result.matrix[bad] = np.nan
        if out is not None:
            for result in results:
                result.finish()
        if not rows.batch and self.__call__ == self._general:
            self._open_entry()
        arrays = [result.array for result in results]
        return self._hand_back(arrays if len(arrays) > 1 or arrays[0].ndim else [arrays[0][()]])

    def _open_entry(self) -> None:
        """Send single samples straight to machine code from now on."""
        count = len(self._kernels.results())
        form = self._hand_back(list(range(count)))
        plain = form == 0 if count == 1 else type(form) is tuple and form == tuple(range(count))
        if self._recipe.parameters or self._columns is not None or not plain or self.device != "cpu":
            return
        self.__call__ = codegen.make_entry(
            self._kernels.kernel("scalar"),
            self._general,
            input_shapes=[item.shape for item in self._signature],
            output_shapes=[item.shape for item in self._kernels.results()],
            name=self.name,
        )

    def _hand_back(self, results: list[Any]) -> Any:
        """Return the results in the form of the function: one bare, several as a tuple, or a user's own."""
        if self._recipe.identity is None:
            return self._kernels.lower().rebuild(results)
        return group_results(
            results, self._recipe.derivatives, lambda own: own[0] if len(own) == 1 else tuple(own)
        )


# Rows that a kernel refuses: what is wrong with them, in words, and which they are

MAY_BE_INFINITE: Final = ("effort",)
"""Arguments of the library's functions that may be infinite, which means no limit."""


def refusal_of(recipe: Recipe, rows: Rows, row: int, dtype: str, *, step: int | None = None) -> StateError:
    """Return the error of a refused row: which quaternion of which argument, or which other precondition.

    `step`: of a rollout, whose arguments at that step are in `rows`.
    """
    where = ""
    if rows.batch:
        where = f", sample {tuple(int(place) for place in np.unravel_index(row, rows.batch))}"
    if step is not None:
        where += f", step {step}"
    for name, place, norms in _norms(recipe, rows):
        norm = float(norms[min(row, len(norms) - 1)])
        if math.isnan(norm):
            bodies = (body for body in recipe.model.bodies if body.dependence is None)
            joint = next(x.joint_name for x in bodies if x.q_slice.start <= place.start < x.q_slice.stop)
            return StateError(
                f'{name}[{place.start}:{place.stop}]{where}: the quaternion of joint "{joint}" is not a '
                'number; check="flag" makes the results of such rows NaN, check="off" computes with it'
            )
        if _off_unit(norm, dtype):
            return StateError(
                f"{name}[{place.start}:{place.stop}]{where}: a quaternion must have unit norm, "
                f"this one has {norm:.9g}; normalize it first, for instance with "
                "da.dynamics.normalize(model, q)"
            )
    one = [matrix[min(row, len(matrix) - 1)].astype(np.float64).tolist() for matrix in rows.matrices]
    for refusal in recipe.refusals:
        measure = float(_evaluate_measure(recipe, refusal.measure, one))
        if measure > refusal.tolerance[dtype]:
            blamed = "" if refusal.place is None else _evaluate_measure(recipe, refusal.place, one)
            said = refusal.message.format(measure=measure, place=blamed)
            return StateError(f"{recipe.name}{where}: {said}")
    return StateError(f"{recipe.name}{where or ', this sample'}: refused")


def flagged_rows(recipe: Recipe, rows: Rows, first: int, dtype: str) -> Array:
    """Return a mask of the rows whose results `check="flag"` makes NaN: rows that the kernel refuses, of
    which `first` is the first (-1: none), and rows with an argument that is not finite.

    The kernel alone would not do: a result may come out finite where structural zeros drop a NaN.
    """
    bad = refused_rows(recipe, rows, first, dtype) if first >= 0 else np.zeros(rows.count, dtype=bool)
    for item, matrix in zip((*recipe.signature, *recipe.parameters), rows.matrices, strict=True):
        # A user's own function (no identity) may well give infinity a meaning.
        unbounded = item.name in MAY_BE_INFINITE or recipe.identity is None
        bad |= (np.isnan(matrix) if unbounded else ~np.isfinite(matrix)).any(axis=1)
    return bad


def refused_rows(recipe: Recipe, rows: Rows, first: int, dtype: str) -> Array:
    """Return a mask of the refused rows, of which the kernel named the first."""
    bad = off_unit_rows(recipe, rows, dtype)
    bad[first] = True
    columns = [list(matrix.T) for matrix in rows.matrices]
    for refusal in recipe.refusals:
        with np.errstate(all="ignore"):
            bad |= _evaluate_measure(recipe, refusal.measure, columns) > refusal.tolerance[dtype]
    return bad


def off_unit_rows(recipe: Recipe, rows: Rows, dtype: str) -> Array:
    """Return a mask of the rows with a quaternion off unit norm or not a number."""
    bad = np.zeros(rows.count, dtype=bool)
    for _, _, norms in _norms(recipe, rows):
        bad |= _off_unit(norms, dtype)
    return bad


def _evaluate_measure(recipe: Recipe, measure: Callable[..., Any], rows: Sequence[Sequence[Any]]) -> Any:
    """Evaluate a measure of one sample, or of all samples if the elements are arrays."""
    signature = (*recipe.signature, *recipe.parameters)
    arrays = [_nest(flat, item.shape) for flat, item in zip(rows, signature, strict=True)]
    own, parameters = len(recipe.arguments), len(recipe.parameters)
    return recipe.on_model(measure, arrays[:own] + arrays[len(arrays) - parameters :])


def _norms(recipe: Recipe, rows: Rows) -> Iterator[tuple[str, slice, Array]]:
    for argument, matrix in zip(recipe.arguments, rows.matrices, strict=False):
        for place in recipe.quaternions(argument):
            yield argument.name, place, np.linalg.norm(matrix[:, place], axis=1)


def _nest(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return the elements of an array, row-major, as nested lists."""
    if not shape:
        return flat[0]
    size = len(flat) // max(shape[0], 1)
    return [_nest(flat[k * size : (k + 1) * size], shape[1:]) for k in range(shape[0])]


def _off_unit(norm: Any, dtype: str) -> Any:
    """Return whether the kernels refuse a quaternion of this norm, or NaN; `lowering` checks the square."""
    return np.logical_not(abs(norm * norm - 1.0) <= 2.0 * QUATERNION_TOLERANCE[dtype])

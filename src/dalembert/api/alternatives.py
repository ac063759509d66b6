"""Functions that are not one kernel for some models, composed of other functions there.

Matrices of large trees are too long for straight-line code; they come column by column from functions that
are compiled as loops. Models without constraints have no rows to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.algorithms import regressor
from dalembert.api.calls import Array, ArrayLike, Check, alternative, store_result
from dalembert.api.declared import (
    coriolis_matrix,
    coriolis_product,
    forward_dynamics,
    gravity_forces,
    inertial_forces,
    inverse_dynamics,
)
from dalembert.api.loop_closing import count_constraint_rows
from dalembert.call.arguments import ArrayArgument, Rows, as_rows, pick_dtype, result_rows, with_column_axis
from dalembert.compiler.execution import CHECKS
from dalembert.compiler.library import FUNCTIONS, argument_shape, function, is_large, library_recipe
from dalembert.errors import require_choice
from dalembert.model.model import Model

# Matrices of large systems.


@alternative("mass_matrix", is_large)
def _mass_matrix(model: Model, q: ArrayLike, **options: Any) -> Array:
    """Return M, whose rows are the forces of unit accelerations."""
    (rows,) = with_column_axis(("q", q, model.nq))
    return inertial_forces(model, rows, np.eye(model.nv, dtype=rows.dtype), **options)


@alternative("inverse_mass_matrix", is_large)
def _inverse_mass_matrix(model: Model, q: ArrayLike, *, out: Array | None = None, **options: Any) -> Array:
    return store_result(np.linalg.inv(_mass_matrix(model, q, **options)), out)


@alternative("coriolis_matrix", is_large)
def _coriolis_matrix(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    rows, speeds = with_column_axis(("q", q, model.nq), ("v", v, model.nv))
    columns = coriolis_product(model, rows, speeds, np.eye(model.nv, dtype=rows.dtype), check=check)
    return store_result(np.swapaxes(columns, -1, -2), out)


@alternative("mass_matrix_rate", is_large)
def _mass_matrix_rate(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    C = coriolis_matrix(model, q, v, check=check)
    return store_result(C + np.swapaxes(C, -1, -2), out)


def _is_large_tree(model: Model) -> bool:
    return is_large(model) and not model.loop_names


@alternative("velocity_coordinates", _is_large_tree)
def _velocity_coordinates(
    model: Model, q: ArrayLike, p: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    push = np.asarray(p) + gravity_forces(model, q, check=check)
    return forward_dynamics(model, q, np.zeros_like(push), push, out=out, check=check)


@alternative("geodesic_acceleration", _is_large_tree)
def _geodesic_acceleration(
    model: Model, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, check: Check = None
) -> Array:
    return forward_dynamics(model, q, v, gravity_forces(model, q, check=check), out=out, check=check)


@alternative("inverse_dynamics_regressor", is_large)
def _regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    armature: bool = False,
    time: ArrayLike | None = None,
    out: Array | None = None,
    check: Check = None,
) -> Array:
    """Compute the regressor on NumPy scalars: it has at least n d entries, too many for straight-line
    code.
    """
    tau = inverse_dynamics(model, q, v, a, time=time, check=check)  # checks the arguments
    values = {"q": q, "v": v, "a": a, **({} if time is None else {"time": time})}
    rows, dtype = _rows(model, values)
    arrays: Any = [[np.broadcast_to(x, rows.count) for x in matrix.T] for matrix in rows.matrices]
    clock = None if time is None else arrays[3][0]
    Y = regressor.inverse_dynamics_regressor(model, *arrays[:3], armature=armature, time=clock)
    width = len(Y[0])
    found = result_rows([ArrayArgument("output", (model.nv, width))], rows, dtype, out)[0]
    for i, row in enumerate(Y):
        for j, entry in enumerate(row):
            found.matrix[:, i * width + j] = entry
    if check == "flag":
        found.matrix[np.isnan(tau.reshape(rows.count, model.nv)).all(axis=1)] = np.nan
    if out is not None:
        found.finish()
    return found.array


def _by_columns(name: str) -> None:
    """Take the derivatives of a function of large trees from code with loops."""

    def applies(model: Model) -> bool:
        return is_large(model) and library_recipe(model, name).looped

    @alternative(f"{name}_derivatives", applies)
    def derivatives(
        model: Model,
        *values: ArrayLike,
        out: tuple[Array, ...] | None = None,
        check: Check = None,
        stabilization: ArrayLike | None = None,  # of constraints alone
        external_frame: str | None = None,
        **arrays: ArrayLike,
    ) -> Any:
        options = () if external_frame is None else (("external_frame", external_frame),)
        compiled = function(model, name, arrays=tuple(arrays), options=options, by=FUNCTIONS[name].arguments)
        return compiled(*values, *arrays.values(), out=out, check=check)


_by_columns("inverse_dynamics")
_by_columns("forward_dynamics")


def _rows(model: Model, values: dict[str, ArrayLike]) -> tuple[Rows, str]:
    """Return the rows of arrays that are known by name, and their float type."""
    signature = [ArrayArgument(name, argument_shape(model, name) or ()) for name in values]
    dtype = pick_dtype(list(values.items()))
    return as_rows(signature, list(values.values()), dtype), dtype


# Constraints of models that have none.


def _without_rows(name: str, arguments: tuple[str, ...], *after: str) -> None:
    """Return the empty result for models without constraints, after checking the arguments."""

    @alternative(name, lambda model: count_constraint_rows(model) == 0)
    def compute(
        model: Model,
        *values: ArrayLike,
        time: ArrayLike | None = None,
        out: Array | None = None,
        check: Check = None,
    ) -> Array:
        if check is not None:
            require_choice("check", check, CHECKS)
        given = dict(zip(arguments, values)) | ({} if time is None else {"time": time})
        rows, dtype = _rows(model, given)
        shape = (0, *(getattr(model, item) for item in after))
        return result_rows([ArrayArgument("output", shape)], rows, dtype, out)[0].array


_without_rows("constraint_jacobian", ("q",), "nv")
_without_rows("constraint_bias", ("q", "v"))
_without_rows("constraint_error", ("q",))

"""Inertial parameters, the dynamics that are linear in them, and which of them can be identified."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np

from dalembert.api.base_parameters import BaseParameters, independent_columns
from dalembert.api.calls import Array, ArrayLike, Check, is_large, result
from dalembert.api.dynamics import inverse_dynamics
from dalembert.arguments import ArrayArgument, as_array, as_rows, pick_dtype, result_rows
from dalembert.errors import ArgumentError, ShapeError, require_choice, require_flag
from dalembert.library import argument_shape, no_model
from dalembert.model.model import Model
from dalembert.model.surgery import rechecked
from dalembert.model.values import rebuilt

__all__ = [
    "base_parameters",
    "inertial_parameters",
    "inverse_dynamics_regressor",
    "kinetic_energy_regressor",
    "potential_energy_regressor",
    "with_inertial_parameters",
]

PARAMETERS = 10
"""Of one body."""

ROWS_A_PARAMETER = 3
"""Equations for each parameter from which the independent ones are found."""


def inverse_dynamics_regressor(
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
    """Y(q, v, a) `(…, nv, 10 n_bodies)` with tau = Y pi: inverse dynamics as a function of the inertias.

    pi = `inertial_parameters(model)`: of each body mass, h = m c, and I_xx, I_yy, I_zz, I_xy, I_xz, I_yz
    about the origin of its frame. A body's columns are zero in the rows of joints that do not carry it. tau
    is that of `inverse_dynamics` without external forces; what armatures take is left out, or with
    `armature=True` has columns of its own at the end. Models with loops: the spanning tree's,
    `model.tree()`. Cost O(n d) for n bodies at depth d. Featherstone 2008 Eqs 2.63 and 5.8; Atkeson, An &
    Hollerbach (1986).

    >>> model = da.models.arm6()
    >>> q, v = model.random_state(0)
    >>> Y = da.inverse_dynamics_regressor(model, q, v, np.ones(6))
    >>> tau = da.inverse_dynamics(model, q, v, np.ones(6))
    >>> print(Y.shape, np.allclose(Y @ da.inertial_parameters(model), tau))
    (6, 60) True
    """
    if is_large(model, "inverse_dynamics_regressor"):
        return _large_regressor(model, q, v, a, armature, time, out, check)
    options = {"armature": True} if require_flag("armature", armature) else {}
    return result(model, "inverse_dynamics_regressor", (q, v, a), {"time": time}, None, options, out, check)


def _large_regressor(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    armature: bool,
    time: ArrayLike | None,
    out: Array | None,
    check: Check,
) -> Array:
    """Compute the regressor on NumPy scalars: it has at least n d entries, too many for straight-line
    code.
    """
    from dalembert.algorithms import regressor

    tau = inverse_dynamics(model, q, v, a, time=time, check=check)  # looks at the arguments
    values = {"q": q, "v": v, "a": a, **({} if time is None else {"time": time})}
    signature = [ArrayArgument(name, argument_shape(model, name) or ()) for name in values]
    dtype = pick_dtype(list(values.items()))
    rows = as_rows(signature, list(values.values()), dtype)
    arrays = [[np.broadcast_to(x, rows.count) for x in matrix.T] for matrix in rows.matrices]
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


def kinetic_energy_regressor(
    model: Model, q: ArrayLike, v: ArrayLike, *, armature: bool = False, time: ArrayLike | None = None
) -> Array:
    """y(q, v) `(…, 10 n_bodies)` with T = y . pi: kinetic energy as a function of the inertias [J].

    T_i = m u.u / 2 + h . (u x w) + w . I w / 2 of a body with velocity (w, u) at its origin. `armature`:
    with a column more for each armature. Featherstone 2008 Eq. 2.67.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> y = da.kinetic_energy_regressor(model, [0.4], [0.5])
    >>> print(round(float(y @ da.inertial_parameters(model)), 12))
    1.5
    """
    options = {"armature": True} if require_flag("armature", armature) else {}
    return result(model, "kinetic_energy_regressor", (q, v), {"time": time}, None, options, None, None)


def potential_energy_regressor(
    model: Model, q: ArrayLike, *, armature: bool = False, time: ArrayLike | None = None
) -> Array:
    """y(q) `(…, 10 n_bodies)` with V = y . pi: potential energy as a function of the inertias [J].

    V_i = -m g . p - h . R^T g of a body with pose (R, p). `armature`: with a column of zeros for each
    armature.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> y = da.potential_energy_regressor(model, [0.0])
    >>> print(round(float(y @ da.inertial_parameters(model)), 6))
    -58.86
    """
    options = {"armature": True} if require_flag("armature", armature) else {}
    return result(model, "potential_energy_regressor", (q,), {"time": time}, None, options, None, None)


def inertial_parameters(model: Model, *, armature: bool = False) -> Array:
    """pi = (m, h_x, h_y, h_z, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz) of every body in order `(10 n_bodies,)`.

    h = m c [kg m] and I [kg m^2] about the origin of the body's frame, in its axes. `armature`: then those of
    the joints, one for each velocity variable. Featherstone 2008 Eq. 2.63.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(da.inertial_parameters(model) + 0.0)
    [ 3.  0.  0. -6. 12. 12.  0.  0.  0.  0.]
    """
    from dalembert.algorithms import regressor

    if not isinstance(model, Model):
        raise no_model("inertial_parameters", model)
    return np.array(regressor.inertial_parameters(model, armature=armature), dtype=np.float64)


def with_inertial_parameters(
    model: Model, parameters: ArrayLike, *, inertia: Literal["strict", "as_given"] = "strict"
) -> Model:
    """The model with other inertias, c = h / m and I_C = I + m c x c x, as `inertial_parameters` orders them.

    `parameters (10 n_bodies,)`, or longer by the armatures. Numbers that no body can have are an error
    unless `inertia="as_given"`: those that come from data often are, since the forces hold only
    combinations of them.

    >>> model = da.models.two_link_arm()
    >>> heavier = da.with_inertial_parameters(model, 2.0 * da.inertial_parameters(model))
    >>> print(float(heavier.total_mass), heavier.body("lower").inertia.com == model.body("lower").inertia.com)
    4.0 True
    """
    from dalembert.algorithms import regressor

    if not isinstance(model, Model):
        raise no_model("with_inertial_parameters", model)
    require_choice("inertia option", inertia, ("strict", "as_given"))
    given = as_array("parameters", parameters, ())
    tens = PARAMETERS * len(model.bodies)
    freedoms = sum(body.nv for body in model.bodies)
    if given.shape not in ((tens,), (tens + freedoms,)):
        raise ShapeError(
            f"parameters has shape {given.shape}, expected ({tens},), ten for each body, or "
            f"({tens + freedoms},) with armatures"
        )
    pi = as_array("parameters", parameters, given.shape).tolist()
    if not all(math.isfinite(x) for x in pi):
        raise ArgumentError("parameters holds NaN or infinity; the inertias of a model are finite numbers")
    bodies = []
    armatures = iter(pi[tens:])
    for body in model.bodies:
        own = pi[PARAMETERS * body.index : PARAMETERS * (body.index + 1)]
        armature = tuple(next(armatures) for _ in range(body.nv)) if len(pi) > tens else body.armature
        bodies.append(dataclasses.replace(body, inertia=regressor.inertia_of(own), armature=armature))
    return rechecked(rebuilt(model, bodies=bodies), inertia=inertia)


def base_parameters(model: Model, *, armature: bool = False, tolerance: float = 1e-8) -> BaseParameters:
    """The fewest combinations beta = B pi of the inertial parameters on which tau depends: tau = Y_1 beta.

    Forces show only some combinations: of a robot's first link often a single one. `base.columns` are
    columns of the regressor that do not depend on those before them, Y_1 = Y[..., base.columns]; the other
    parameters are added to these by `base.matrix`, B. Found from the regressor at fixed random states
    within the limits (the same every time): a column counts as dependent where it lies within `tolerance`,
    relative, of the span of the others. Gautier (1991).

    >>> model = da.models.arm6()
    >>> base = da.base_parameters(model)
    >>> q, v = model.random_state(0)
    >>> Y = da.inverse_dynamics_regressor(model, q, v, np.ones(6))
    >>> beta = base.of(da.inertial_parameters(model))
    >>> print(len(base), np.allclose(base.reduced(Y) @ beta, da.inverse_dynamics(model, q, v, np.ones(6))))
    36 True
    """
    from dalembert.algorithms import regressor

    if not isinstance(model, Model):
        raise no_model("base_parameters", model)
    if not isinstance(tolerance, int | float | np.number) or not 0.0 < tolerance < 1.0:
        raise ArgumentError(f"base_parameters: tolerance is {tolerance!r}; give a number between 0 and 1")
    names = tuple(regressor.parameter_names(model, armature=armature))
    rng = np.random.default_rng(0)
    samples = 10 + ROWS_A_PARAMETER * len(names) // max(model.nv, 1)
    q = np.array([model.random_state(rng)[0] for _ in range(samples)])
    v, a = rng.standard_normal((2, samples, model.nv))
    time = rng.uniform(0.0, 1.0, samples) if model.time_dependent else None
    Y = inverse_dynamics_regressor(model, q, v, a, armature=armature, time=time)
    columns, matrix = independent_columns(Y.reshape(samples * model.nv, len(names)), float(tolerance))
    return BaseParameters(columns, matrix, names)

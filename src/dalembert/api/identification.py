"""Inertial parameters, the regressors of dynamics that are linear in them, and base parameters."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np

from dalembert.api.base_parameters import BaseParameters, independent_columns
from dalembert.api.calls import Array, ArrayLike, Check, is_large, result
from dalembert.api.dynamics import inverse_dynamics
from dalembert.call.arguments import ArrayArgument, as_array, as_rows, pick_dtype, result_rows
from dalembert.compiler.library import argument_shape, no_model
from dalembert.errors import ArgumentError, ShapeError, require_choice, require_flag
from dalembert.model.model import Model
from dalembert.model.surgery import rebuild_checked
from dalembert.model.values import rebuilt

__all__ = [
    "base_parameters",
    "inertial_parameters",
    "inverse_dynamics_regressor",
    "kinetic_energy_regressor",
    "potential_energy_regressor",
    "with_inertial_parameters",
]

PARAMETERS_PER_BODY = 10
"""The mass, three first and six second moments."""

ROWS_PER_PARAMETER = 3
"""Equations per parameter in the search for independent columns."""


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
    """Compute the regressor Y(q, v, a) `(…, nv, 10 n_bodies)` of inverse dynamics, tau = Y pi.

    pi = `inertial_parameters(model)`: for each body mass, h = m c, and I_xx, I_yy, I_zz, I_xy, I_xz, I_yz
    about the origin of its frame. A body's columns are zero in the rows of joints that do not carry it. tau
    is that of `inverse_dynamics` without external forces and armatures; `armature=True` appends a column for
    each armature. Of models with loops use the spanning tree, `model.tree()`. The cost is O(n d) for n bodies
    at depth d. Featherstone 2008 Eqs 2.63 and 5.8; Atkeson, An & Hollerbach (1986).

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

    tau = inverse_dynamics(model, q, v, a, time=time, check=check)  # checks the arguments
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
    """Compute the regressor y(q, v) `(…, 10 n_bodies)` of the kinetic energy T = y . pi [J].

    T_i = m u.u / 2 + h . (u x w) + w . I w / 2 for a body with velocity (w, u) at its origin. `armature`
    appends a column for each armature. Featherstone 2008 Eq. 2.67.

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
    """Compute the regressor y(q) `(…, 10 n_bodies)` of the potential energy V = y . pi [J].

    V_i = -m g . p - h . R^T g for a body with pose (R, p). `armature` appends a column of zeros for each
    armature.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> y = da.potential_energy_regressor(model, [0.0])
    >>> print(round(float(y @ da.inertial_parameters(model)), 6))
    -58.86
    """
    options = {"armature": True} if require_flag("armature", armature) else {}
    return result(model, "potential_energy_regressor", (q,), {"time": time}, None, options, None, None)


def inertial_parameters(model: Model, *, armature: bool = False) -> Array:
    """Return pi `(10 n_bodies,)` = (m, h_x, h_y, h_z, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz) of every body.

    h = m c [kg m] and I [kg m^2] about the origin of the body's frame, in its axes. `armature` appends the
    armatures of the joints, one for each velocity variable. Featherstone 2008 Eq. 2.63.

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
    """Return the model with other inertial parameters, in the order of `inertial_parameters`.

    `parameters (10 n_bodies,)`, or longer by the armatures; c = h / m and I_C = I + m c x c x. Parameters
    that no physical body has are an error unless `inertia="as_given"`. Identified parameters are often of
    this kind, since the forces determine only combinations of them.

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
    tens = PARAMETERS_PER_BODY * len(model.bodies)
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
        own = pi[PARAMETERS_PER_BODY * body.index : PARAMETERS_PER_BODY * (body.index + 1)]
        armature = tuple(next(armatures) for _ in range(body.nv)) if len(pi) > tens else body.armature
        bodies.append(dataclasses.replace(body, inertia=regressor.inertia_of(own), armature=armature))
    return rebuild_checked(rebuilt(model, bodies=bodies), inertia=inertia)


def base_parameters(model: Model, *, armature: bool = False, tolerance: float = 1e-8) -> BaseParameters:
    """Return the fewest combinations beta = B pi of the inertial parameters with tau = Y_1 beta.

    Forces determine only some combinations; for the first link of a robot often a single one. `base.columns`
    are columns of the regressor that do not depend on earlier ones, Y_1 = Y[..., base.columns];
    `base.matrix`, B, adds the other parameters to these. They are found from the regressor at fixed
    pseudo-random states within the limits: a column is dependent if it lies within the relative `tolerance`
    of the span of the others. Gautier (1991).

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
    samples = 10 + ROWS_PER_PARAMETER * len(names) // max(model.nv, 1)
    q = np.array([model.random_state(rng)[0] for _ in range(samples)])
    v, a = rng.standard_normal((2, samples, model.nv))
    time = rng.uniform(0.0, 1.0, samples) if model.time_dependent else None
    Y = inverse_dynamics_regressor(model, q, v, a, armature=armature, time=time)
    columns, matrix = independent_columns(Y.reshape(samples * model.nv, len(names)), float(tolerance))
    return BaseParameters(columns, matrix, names)

"""Inertial parameters of a model, and the combinations of them on which the joint forces depend.

Stack the columns of tau = Y pi over generic states. A column that depends on earlier ones belongs to a
parameter that acts only in combination with theirs. With [Y_1 Y_2] the independent and the dependent columns

    Y_2 = Y_1 K,     tau = Y_1 (pi_1 + K pi_2) = Y_1 beta                                               (1)

Gautier (1991), "Numerical calculation of the base inertial parameters of robots".
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from dalembert.algorithms import regressor
from dalembert.api.calls import Array, ArrayLike
from dalembert.api.declared import inverse_dynamics_regressor
from dalembert.call.arguments import as_array
from dalembert.compiler.library import no_model
from dalembert.errors import ArgumentError, ShapeError, require_choice
from dalembert.model.model import Model
from dalembert.model.surgery import rebuild_checked
from dalembert.model.values import rebuilt

PARAMETERS_PER_BODY = 10
"""The mass, three first and six second moments."""

ROWS_PER_PARAMETER = 3
"""Equations per parameter in the search for independent columns."""

SHOWN_DIGITS = 6
"""Significant digits of the coefficients in `BaseParameters.formulas`."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class BaseParameters:
    """The smallest set of parameters on which the forces of a model depend: beta = matrix @ pi.

    `columns (n,)`: the columns of the regressor that are kept, tau = Y[..., columns] @ beta. `matrix (n, p)`:
    the linear combinations, with a one at each kept parameter. `names (p,)`: the names of all parameters.
    `len(base)` is n.

    >>> base = da.identification.base_parameters(da.models.two_link_arm())
    >>> print(len(base), base.formulas[0])
    6 upper.h_x + lower.mass
    """

    columns: Array
    matrix: Array
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.columns.size)

    def of(self, parameters: ArrayLike) -> Array:
        """Return beta = matrix @ pi `(…, n)` for inertial parameters pi `(…, p)`."""
        pi = as_array("parameters", parameters, (len(self.names),))
        beta: Array = pi @ self.matrix.T
        return beta

    def reduced(self, regressor: ArrayLike) -> Array:
        """Return Y_1 `(…, n)`, the independent columns of a regressor Y `(…, p)`."""
        Y: Any = regressor if hasattr(regressor, "shape") else np.asarray(regressor)
        if tuple(Y.shape)[-1:] != (len(self.names),):
            raise ShapeError(
                f"regressor has shape {Y.shape}, expected (…, {len(self.names)}); "
                "use the same armature= as in base_parameters"
            )
        columns: Array = Y[..., self.columns]
        return columns

    @property
    def formulas(self) -> tuple[str, ...]:
        """Each combination as text, its own parameter first."""
        return tuple(
            _formula(row, int(column), self.names)
            for row, column in zip(self.matrix, self.columns, strict=True)
        )

    def __repr__(self) -> str:
        return f"<BaseParameters: {len(self)} of {len(self.names)}>"


def independent_columns(Y: Array, tolerance: float) -> tuple[Array, Array]:
    """Return the columns (n,) of Y (rows, p) that do not depend on earlier ones, and (1) as a matrix (n, p).

    Gram-Schmidt from the left, each column relative to its own length; coefficients of the unit columns below
    the tolerance are set to zero.
    """
    R = np.linalg.qr(Y, mode="r")  # the same inner products in fewer rows
    lengths = np.linalg.norm(R, axis=0)
    seen = lengths > tolerance * lengths.max(initial=0.0)
    scaled = R / np.where(seen, lengths, 1.0)
    basis = np.zeros((len(R), 0))
    columns = []
    for j in np.flatnonzero(seen):
        rest = scaled[:, j]
        for _ in range(2):  # twice is enough for any angle between the columns
            rest = rest - basis @ (basis.T @ rest)
        size = np.linalg.norm(rest)
        if size > tolerance:
            columns.append(j)
            basis = np.column_stack([basis, rest / size])
    along = basis.T @ scaled
    kept = np.array(columns, dtype=np.intp)
    K = np.linalg.solve(along[:, kept], along) if columns else np.zeros((0, Y.shape[1]))
    K[np.abs(K) < tolerance] = 0.0
    K[:, ~seen] = 0.0
    K[:, kept] = np.eye(kept.size)
    return kept, K * (lengths / lengths[kept, None])


def _formula(row: Array, own: int, names: tuple[str, ...]) -> str:
    text = names[own]
    for j in np.flatnonzero(row):
        if j != own:
            factor = f"{abs(row[j]):.{SHOWN_DIGITS}g}"
            text += " - " if row[j] < 0.0 else " + "
            text += names[j] if factor == "1" else f"{factor} {names[j]}"
    return text


def inertial_parameters(model: Model, *, armature: bool = False) -> Array:
    """Return pi `(10 n_bodies,)` = (m, h_x, h_y, h_z, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz) of every body.

    h = m c [kg m] and I [kg m^2] about the origin of the body's frame, in its axes. `armature` appends the
    armatures of the joints, one for each velocity variable. Featherstone 2008 Eq. 2.63.

    >>> model = da.models.pendulum(length=2.0, mass=3.0)
    >>> print(da.identification.inertial_parameters(model) + 0.0)
    [ 3.  0.  0. -6. 12. 12.  0.  0.  0.  0.]
    """
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
    >>> pi = da.identification.inertial_parameters(model)
    >>> heavier = da.identification.with_inertial_parameters(model, 2.0 * pi)
    >>> print(float(heavier.total_mass), heavier.body("lower").inertia.com == model.body("lower").inertia.com)
    4.0 True
    """
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
    >>> base = da.identification.base_parameters(model)
    >>> q, v = model.random_state(0)
    >>> Y = da.identification.inverse_dynamics_regressor(model, q, v, np.ones(6))
    >>> beta = base.of(da.identification.inertial_parameters(model))
    >>> print(len(base), np.allclose(base.reduced(Y) @ beta, da.inverse_dynamics(model, q, v, np.ones(6))))
    36 True
    """
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

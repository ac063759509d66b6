"""Base inertial parameters: the combinations of inertial parameters on which the joint forces depend.

Stack the columns of tau = Y pi over generic states. A column that depends on earlier ones belongs to a
parameter that acts only in combination with theirs. With [Y_1 Y_2] the independent and the dependent columns

    Y_2 = Y_1 K,     tau = Y_1 (pi_1 + K pi_2) = Y_1 beta                                               (1)

Gautier (1991), "Numerical calculation of the base inertial parameters of robots".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dalembert.api.calls import Array, ArrayLike
from dalembert.call.arguments import as_array
from dalembert.errors import ShapeError

__all__ = ["BaseParameters", "independent_columns"]

SHOWN_DIGITS = 6
"""Significant digits of the coefficients in `BaseParameters.formulas`."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class BaseParameters:
    """The smallest set of parameters on which the forces of a model depend: beta = matrix @ pi.

    `columns (n,)`: the columns of the regressor that are kept, tau = Y[..., columns] @ beta. `matrix (n, p)`:
    the linear combinations, with a one at each kept parameter. `names (p,)`: the names of all parameters.
    `len(base)` is n.

    >>> base = da.base_parameters(da.models.two_link_arm())
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

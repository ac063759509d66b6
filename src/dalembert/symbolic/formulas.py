"""The equations of motion as formulas: the result of `equations_of_motion`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, final

from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.symbolic.requirement import sympy
from dalembert.symbolic.typesetting import aligned_equations

__all__ = ["MAX_SOLVED_VARIABLES", "EquationsOfMotion"]

MAX_SOLVED_VARIABLES = 4
"""Velocity variables up to which formulas are solved for the accelerations."""


MAX_SIMPLIFIED_OPERATIONS = 300
"""Operations in M and the right-hand side up to which their determinants are simplified."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class EquationsOfMotion:
    """M(q) a + c(q, v) + g(q) = tau + K^T lambda, and K(q) a = k(q, v) where loops are closed.

    Symbols: `q` (nq), `v` and `a` = dv/dt (nv), `tau` (nv), `multipliers` lambda (one for each row of K);
    `time` in models that depend on it; `parameters` the symbols of the model's numbers with the values that
    they have there. Formulas: `mass_matrix` M, `coriolis` c, `gravity` g, `kinetic_energy` and
    `potential_energy` [J], `position_rates` dq/dt as functions of q and v, `constraint_jacobian` K,
    `constraint_bias` k.
    """

    name: str
    q: tuple[Any, ...]
    v: tuple[Any, ...]
    a: tuple[Any, ...]
    tau: tuple[Any, ...]
    multipliers: tuple[Any, ...]
    time: Any
    parameters: Mapping[Any, float]
    mass_matrix: Any
    coriolis: Any
    gravity: Any
    kinetic_energy: Any
    potential_energy: Any
    position_rates: Any
    constraint_jacobian: Any
    constraint_bias: Any
    typesetting: Mapping[Any, str] = field(default_factory=dict)
    tidy: Callable[[Any], Any] = field(default=lambda expression: expression)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def bias(self) -> Any:
        """b = c + g `(nv,)`, what `da.bias_forces` computes."""
        return self.coriolis + self.gravity

    @property
    def right_hand_side(self) -> Any:
        """tau - c - g `(nv,)`: M a = right_hand_side, without the forces of loops."""
        return _column(self.tau) - self.coriolis - self.gravity

    @property
    def lagrangian(self) -> Any:
        """L = T - V [J]."""
        return self.kinetic_energy - self.potential_energy

    @property
    def equations(self) -> tuple[Any, ...]:
        """One SymPy equation for each velocity variable, then one for each row of the constraints."""
        sp = sympy()
        left = self.mass_matrix * _column(self.a) + self.coriolis + self.gravity
        right = _column(self.tau) + self.constraint_jacobian.T * _column(self.multipliers)
        closed = self.constraint_jacobian * _column(self.a)
        return tuple(
            sp.Eq(*sides, evaluate=False) for sides in [*zip(left, right), *zip(closed, self.constraint_bias)]
        )

    def coriolis_matrix(self) -> Any:
        """Return C(q, v) `(nv, nv)` with C v = c and dM/dt - 2 C skew: Christoffel symbols of the first kind.

        C_ij = sum over k of (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) v_k / 2. For joints whose v is not dq/dt
        there is no such formula, and C = (dc/dv) / 2 is returned, for which C v = c alone holds.
        """
        sp = sympy()
        n = len(self.v)
        if tuple(self.position_rates) != self.v:
            return sp.ImmutableMatrix(n, n, lambda i, j: self.tidy(sp.diff(self.coriolis[i], self.v[j]) / 2))
        M, q = self.mass_matrix, self.q

        def entry(i: int, j: int) -> Any:
            terms = [
                (sp.diff(M[i, j], q[k]) + sp.diff(M[i, k], q[j]) - sp.diff(M[j, k], q[i])) * self.v[k] / 2
                for k in range(n)
            ]
            return self.tidy(sp.Add(*terms))

        return sp.ImmutableMatrix(n, n, entry)

    def kkt_matrix(self) -> Any:
        """Return [[M, K^T], [K, 0]], of the unknowns (a, -lambda) (Featherstone 2008 Eq. 8.8)."""
        sp = sympy()
        M, K = self.mass_matrix, self.constraint_jacobian
        return sp.ImmutableMatrix(sp.BlockMatrix([[M, K.T], [K, sp.zeros(K.rows, K.rows)]]).as_explicit())

    def accelerations(self) -> Any:
        """Return a `(nv,)` as formulas of q, v and tau: each a quotient whose denominator is det M.

        Where M and b are long, their determinants stay as they are. For systems of up to four velocity
        variables; with loops, of the matrix of `kkt_matrix`, which must be regular. Larger ones are better
        solved with numbers (`da.forward_dynamics`).
        """
        sp = sympy()
        matrix, right = self.mass_matrix, self.right_hand_side
        if self.multipliers:
            matrix, right = self.kkt_matrix(), right.col_join(self.constraint_bias)
        size = matrix.rows
        if size > MAX_SOLVED_VARIABLES:
            raise ArgumentError(
                f'accelerations of "{self.name}" would be quotients of determinants of {size} rows; formulas '
                f"are written up to {MAX_SOLVED_VARIABLES}. Use da.forward_dynamics, or solve mass_matrix "
                "and right_hand_side after putting numbers in"
            )
        brief = sp.count_ops(matrix) + sp.count_ops(right) <= MAX_SIMPLIFIED_OPERATIONS
        tidy = self.tidy if brief else lambda expression: expression
        rows = matrix.tolist()
        determinant = tidy(_determinant(rows))
        if determinant == 0:
            raise ArgumentError(f'"{self.name}": the equations of its loops depend on each other; drop some')
        solved = []
        for i in range(len(self.v)):
            replaced = [[*row[:i], right[r], *row[i + 1 :]] for r, row in enumerate(rows)]
            solved.append([tidy(_determinant(replaced)) / determinant])
        return sp.ImmutableMatrix(solved)

    def in_time(self, t: Any = None) -> tuple[Any, ...]:
        """Return the equations with q(t) as functions of time, and their derivatives for v and a.

        For models whose v is dq/dt (no spherical, planar or free joints).
        """
        sp = sympy()
        if tuple(self.position_rates) != self.v:
            raise ArgumentError(
                f'"{self.name}" has joints whose v is not dq/dt; use position_rates beside equations'
            )
        t = t or self.time or sp.Symbol("t", real=True)
        functions = [sp.Function(symbol.name)(t) for symbol in self.q]
        replaced = {
            **dict(zip(self.q, functions)),
            **dict(zip(self.v, [f.diff(t) for f in functions])),
            **dict(zip(self.a, [f.diff(t, 2) for f in functions])),
        }
        return tuple(equation.xreplace(replaced) for equation in self.equations)

    def lambdify(self, what: str = "accelerations", **options: Any) -> Callable[..., Any]:
        """Return a numeric function f(q, v, tau, parameters=None) of one of the formulas, by its name.

        `what`: "mass_matrix", "coriolis", "gravity", "bias", "right_hand_side", "kinetic_energy",
        "potential_energy", "lagrangian", "coriolis_matrix", "accelerations", "constraint_jacobian",
        "constraint_bias" or "kkt_matrix". v and tau may be left out where the formula has none. `parameters`:
        other values for symbols, by name; without them the model's. Options go to SymPy's lambdify.
        """
        sp = sympy()
        formula = self._formula(what)
        arguments = [*self.q, *self.v, *[s for s in self.tau if s.is_Symbol], *self.parameters]
        time = [] if self.time is None else [self.time]
        compute = sp.lambdify([*arguments, *time], formula, **{"modules": "numpy", "cse": True, **options})
        moved = [k for k, symbol in enumerate(self.tau) if symbol.is_Symbol]

        def evaluate(
            q: Sequence[Any],
            v: Sequence[Any] | None = None,
            tau: Sequence[Any] | None = None,
            *,
            parameters: Mapping[str, Any] | None = None,
            time: Any = None,
        ) -> Any:
            given = {str(symbol): value for symbol, value in self.parameters.items()}
            for name, value in (parameters or {}).items():
                if str(name) not in given:
                    raise UnknownNameError.of("parameter", name, given)
                given[str(name)] = value
            missing = [name for name, value in given.items() if value is math.nan or value != value]
            if missing:
                raise ArgumentError(f"parameters: the model has no value for {', '.join(missing)}; give one")
            speeds = [0.0] * len(self.v) if v is None else list(v)
            pushes = [0.0] * len(self.tau) if tau is None else list(tau)
            if (len(q), len(speeds), len(pushes)) != (len(self.q), len(self.v), len(self.tau)):
                raise ArgumentError(
                    f"q, v and tau have {len(self.q)}, {len(self.v)} and {len(self.tau)} entries, "
                    f"got {len(q)}, {len(speeds)} and {len(pushes)}"
                )
            clock = [] if self.time is None else [time]
            found = compute(*q, *speeds, *[pushes[k] for k in moved], *given.values(), *clock)
            return (
                found[:, 0] if getattr(formula, "cols", 0) == 1 and what != "constraint_jacobian" else found
            )

        return evaluate

    def _formula(self, what: str) -> Any:
        methods: dict[str, Callable[[], Any]] = {
            "accelerations": self.accelerations,
            "coriolis_matrix": self.coriolis_matrix,
            "kkt_matrix": self.kkt_matrix,
        }
        plain = (
            "mass_matrix", "coriolis", "gravity", "bias", "right_hand_side", "kinetic_energy",
            "potential_energy", "lagrangian", "position_rates", "constraint_jacobian", "constraint_bias",
        )  # fmt: skip
        if what in methods:
            return methods[what]()
        if what not in plain:
            raise UnknownNameError.of("formula", what, (*plain, *methods))
        return getattr(self, what)

    def latex(self) -> str:
        """Return the equations as an `aligned` block, for a LaTeX document or a page with MathJax."""
        return aligned_equations(self)

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def __str__(self) -> str:
        return "\n".join(f"{equation.lhs} = {equation.rhs}" for equation in self.equations)

    def __repr__(self) -> str:
        return f'<EquationsOfMotion of "{self.name}": {len(self.v)} velocity variables>'


def _determinant(rows: list[list[Any]]) -> Any:
    """Return the determinant, expanded by the first column without multiplying out."""
    sp = sympy()
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for i, row in enumerate(rows):
        if row[0] != 0:
            minor = [other[1:] for k, other in enumerate(rows) if k != i]
            terms.append((-1) ** i * row[0] * _determinant(minor))
    return sp.Add(*terms)


def _column(entries: Sequence[Any]) -> Any:
    sp = sympy()
    return sp.ImmutableMatrix(len(entries), 1, list(entries))

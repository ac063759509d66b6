"""The equations of motion of a model as SymPy formulas, and their LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np

from dalembert import algorithms
from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.dense import symmetric_from_lower
from dalembert.errors import ArgumentError, UnknownNameError
from dalembert.model import Loop, Model, configuration
from dalembert.model.values import rebuilt, replace_values
from dalembert.symbolic.simplification import compact, sp
from dalembert.symbolic.symbols import (
    ParameterNames,
    chosen_values,
    coordinate_symbols,
    exact_model,
    with_decimals,
    without_floats,
)

MAX_SOLVED_VARIABLES = 4
"""Velocity variables up to which formulas are solved for the accelerations."""


FORMULAS = (
    "mass_matrix", "coriolis", "gravity", "bias", "right_hand_side", "kinetic_energy", "potential_energy",
    "lagrangian", "position_rates", "constraint_jacobian", "constraint_bias", "accelerations",
    "coriolis_matrix", "kkt_matrix",
)  # fmt: skip
"""The formulas that `EquationsOfMotion.lambdify` turns into functions."""

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
        n = len(self.v)
        if tuple(self.position_rates) != self.v:
            return sp.ImmutableMatrix(n, n, lambda i, j: self.tidy(sp.diff(self.coriolis[i], self.v[j]) / 2))
        M, q, v, diff = self.mass_matrix, self.q, self.v, sp.diff

        def entry(i: int, j: int) -> Any:
            terms = (
                (diff(M[i, j], q[k]) + diff(M[i, k], q[j]) - diff(M[j, k], q[i])) * v[k] / 2 for k in range(n)
            )
            return self.tidy(sp.Add(*terms))

        return sp.ImmutableMatrix(n, n, entry)

    def kkt_matrix(self) -> Any:
        """Return [[M, K^T], [K, 0]], of the unknowns (a, -lambda) (Featherstone 2008 Eq. 8.8)."""
        M, K = self.mass_matrix, self.constraint_jacobian
        return sp.ImmutableMatrix(sp.BlockMatrix([[M, K.T], [K, sp.zeros(K.rows, K.rows)]]).as_explicit())

    def accelerations(self) -> Any:
        """Return a `(nv,)` as formulas of q, v and tau: each a quotient whose denominator is det M.

        Where M and b are long, their determinants stay as they are. For systems of up to four velocity
        variables; with loops, of the matrix of `kkt_matrix`, which must be regular. Larger ones are better
        solved with numbers (`da.forward_dynamics`).
        """
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
        if tuple(self.position_rates) != self.v:
            raise ArgumentError(
                f'"{self.name}" has joints whose v is not dq/dt; use position_rates beside equations'
            )
        t = t or self.time or sp.Symbol("t", real=True)
        replaced: dict[Any, Any] = {}
        for q, v, a in zip(self.q, self.v, self.a):
            function = sp.Function(q.name)(t)
            replaced |= {q: function, v: function.diff(t), a: function.diff(t, 2)}
        return tuple(equation.xreplace(replaced) for equation in self.equations)

    def lambdify(self, what: str = "accelerations", **options: Any) -> Callable[..., Any]:
        """Return a numeric function f(q, v, tau, parameters=None) of one of the formulas, by its name.

        `what`: "mass_matrix", "coriolis", "gravity", "bias", "right_hand_side", "kinetic_energy",
        "potential_energy", "lagrangian", "coriolis_matrix", "accelerations", "constraint_jacobian",
        "constraint_bias" or "kkt_matrix". v and tau may be left out where the formula has none. `parameters`:
        other values for symbols, by name; without them the model's. Options go to SymPy's lambdify.
        """
        if what not in FORMULAS:
            raise UnknownNameError.of("formula", what, FORMULAS)
        formula = getattr(self, what)
        formula = formula() if callable(formula) else formula
        moved = [k for k, symbol in enumerate(self.tau) if symbol.is_Symbol]
        arguments = [*self.q, *self.v, *[self.tau[k] for k in moved], *self.parameters]
        arguments += [] if self.time is None else [self.time]
        compute = sp.lambdify(arguments, formula, **{"modules": "numpy", "cse": True, **options})

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
            is_column = getattr(formula, "cols", 0) == 1 and what != "constraint_jacobian"
            return found[:, 0] if is_column else found

        return evaluate

    def latex(self) -> str:
        """Return the equations as an `aligned` block, for a LaTeX document or a page with MathJax.

        One line for each equation: inertial terms, velocity terms, gravity = forces; then the constraints.
        """
        names = dict(self.typesetting)
        lines = []
        M, K, a = self.mass_matrix, self.constraint_jacobian, self.a
        for i in range(len(self.v)):
            left = [_term(M[i, j], a[j], names) for j in range(len(a))]
            left += [typeset(x, names) for x in (self.coriolis[i], self.gravity[i]) if x != 0]
            right = [typeset(self.tau[i], names)] if self.tau[i] != 0 else []
            right += [_term(K[r, i], symbol, names) for r, symbol in enumerate(self.multipliers)]
            lines.append(f"{_sum(left)} &= {_sum(right)}")
        for r in range(len(self.multipliers)):
            left = [_term(K[r, j], a[j], names) for j in range(len(a))]
            lines.append(f"{_sum(left)} &= {typeset(self.constraint_bias[r], names)}")
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def __str__(self) -> str:
        return "\n".join(f"{equation.lhs} = {equation.rhs}" for equation in self.equations)

    def __repr__(self) -> str:
        return f'<EquationsOfMotion of "{self.name}": {len(self.v)} velocity variables>'


def _determinant(rows: list[list[Any]]) -> Any:
    """Return the determinant, expanded by the first column without multiplying out."""
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for i, row in enumerate(rows):
        if row[0] != 0:
            minor = [other[1:] for k, other in enumerate(rows) if k != i]
            terms.append((-1) ** i * row[0] * _determinant(minor))
    return sp.Add(*terms)


def _column(entries: Sequence[Any]) -> Any:
    return sp.ImmutableMatrix(len(entries), 1, list(entries))


LARGEST_DENOMINATOR = 360
"""Fractions with larger denominators are set as decimal numbers."""


def typeset(expression: Any, symbols: dict[Any, str]) -> str:
    """Return one expression in LaTeX, with names for its symbols, and uncommon fractions as decimals."""
    fractions = expression.atoms(sp.Rational)
    numbers = [x for x in fractions if x.q > LARGEST_DENOMINATOR or (x.q > 12 and 10**6 % x.q == 0)]
    decimals = {x: sp.Float(f"{float(x):.6g}", 6) for x in (*expression.atoms(sp.Float), *numbers)}
    return str(sp.latex(expression.xreplace(decimals), symbol_names=symbols))


def _term(coefficient: Any, factor: Any, names: dict[Any, str]) -> str:
    """Return coefficient times factor, the factor last."""
    if coefficient == 0:
        return ""
    last = typeset(factor, names)
    if coefficient in (1, -1):
        return last if coefficient == 1 else f"- {last}"
    text = typeset(coefficient, names)
    return rf"\left({text}\right) {last}" if coefficient.is_Add else f"{text} {last}"


def _sum(parts: list[str]) -> str:
    """Return the sum of terms in the given order, with signs between them."""
    texts = [text for text in parts if text]
    joined = texts[0] if texts else "0"
    for text in texts[1:]:
        joined += f" - {text[1:].lstrip()}" if text.startswith("-") else f" + {text}"
    return joined


MAX_VELOCITY_VARIABLES = 6
"""Default limit of velocity variables: larger models are written only if `largest` allows it."""

Parameters = Literal["all"] | Iterable[str] | Mapping[str, Any]


def equations_of_motion(
    model: Model,
    *,
    parameters: Parameters = (),
    coordinates: Sequence[str] | None = None,
    forces: Literal["all", "actuated"] = "all",
    simplify: bool = True,
    largest: int = MAX_VELOCITY_VARIABLES,
) -> EquationsOfMotion:
    """Return M(q) a + c(q, v) + g(q) = tau as formulas;
    with closed loops M a + c + g = tau + K^T lambda, K a = k.

    M `(nv, nv)` is the mass matrix, c the Coriolis and centrifugal forces, g the forces of gravity [N m or
    N], as `da.mass_matrix`, `da.coriolis_forces` and `da.gravity_forces` compute them: the same algorithms
    run on SymPy's symbols. Joint springs, damping and friction are not inside (`da.passive_forces`).

    `parameters`: which numbers of the model are symbols. Names of run-time parameters ("upper.mass",
    "elbow.placement") get names such as m_1 and l_1; "all" takes masses, lengths, inertias, armature and
    gravity; a mapping gives the symbols or formulas itself, as in {"bob.mass": "m", "bob.com": (0, 0, -l)}.
    Zeros, axes and rotations stay. All other numbers are exact: 0.1 is 1/10, and 1.5707963267948966 is pi/2.
    `coordinates`: nq names for q, by default made from the names of the joints. `forces`: "actuated" writes
    zero for tau at joints without a motor. `simplify`: trigonometric normal form, then the shortest grouping.
    Models of more than `largest` velocity variables are refused, since their formulas fill pages.

    Source: Featherstone 2008 sections 3.1, 8.1 and 10.4.

    >>> equations = da.symbolic.equations_of_motion(da.models.pendulum(), parameters="all")
    >>> equations.equations[0]
    Eq(g*l*m*sin(q) + l**2*m*qddot, tau)
    >>> print(equations.latex())
    \\begin{aligned}
    l^{2} m \\ddot{q} + g l m \\sin{\\left(q \\right)} &= \\tau
    \\end{aligned}
    """
    _check_size(model, largest, forces)
    named, exact = exact_model(model)
    names, values, loops = _replacements(model, parameters)
    named = rebuilt(replace_values(named, names), loops=loops or named.loops)
    symbols = coordinate_symbols(model, coordinates)
    q, v = list(symbols.q), list(symbols.v)
    tau = list(symbols.tau)
    for body in model.bodies if forces == "actuated" else ():
        if body.dependence is None and body.joint_name not in model.actuated:
            tau[body.v_slice] = [sp.Integer(0)] * body.nv
    time = sp.Symbol("t", real=True) if model.time_dependent else None
    order = {symbol: rank for rank, symbol in enumerate(values)}

    def tidy(expression: Any) -> Any:
        whole = without_floats(expression)
        return with_decimals(compact(whole, order, exact=exact) if simplify else whole)

    def column(entries: Iterable[Any]) -> Any:
        return sp.ImmutableMatrix([[tidy(entry)] for entry in entries] or sp.zeros(0, 1))

    M = algorithms.mass_matrix(named, q, time=time)
    lower = symmetric_from_lower([[tidy(x) for x in row[: i + 1]] for i, row in enumerate(M)])
    found = constraint_equations(named, q, v, time=time)
    kept = [(row, k) for row, k in zip(found.K, found.k) if any(without_floats(x) != 0 for x in [*row, k])]
    K, k = [row for row, _ in kept], [right for _, right in kept]  # without rows that are zero by structure
    jacobian = sp.ImmutableMatrix(len(K), model.nv, [tidy(x) for row in K for x in row])
    multipliers = tuple(sp.Symbol(f"lambda_{row + 1}", real=True) for row in range(len(k)))
    formulas = {
        "mass_matrix": sp.ImmutableMatrix(model.nv, model.nv, [x for row in lower for x in row]),
        "coriolis": column(algorithms.coriolis_forces(named, q, v, time=time)),
        "gravity": column(algorithms.gravity_forces(named, q, time=time)),
        "kinetic_energy": tidy(algorithms.kinetic_energy(named, q, v, time=time)),
        "potential_energy": tidy(algorithms.potential_energy(named, q, time=time)),
        "position_rates": column(configuration.position_rate(named, q, v)),
        "constraint_jacobian": jacobian,
        "constraint_bias": column(k),
    }
    used = {symbol for formula in formulas.values() for symbol in formula.free_symbols}
    return EquationsOfMotion(
        name=model.name,
        q=symbols.q,
        v=symbols.v,
        a=symbols.a,
        tau=tuple(tau),
        multipliers=multipliers,
        time=time,
        parameters={symbol: value for symbol, value in values.items() if symbol in used},
        **formulas,
        typesetting=symbols.latex,
        tidy=tidy,
    )


def _check_size(model: Model, largest: int, forces: str) -> None:
    if not isinstance(model, Model):
        raise ArgumentError(
            f"equations_of_motion takes a Model, got {type(model).__name__}; da.load reads one"
        )
    if forces not in ("all", "actuated"):
        raise ArgumentError(f'forces is "all" or "actuated", got {forces!r}')
    if model.nv > largest:
        raise ArgumentError(
            f'"{model.name}" has {model.nv} velocity variables; formulas of more than {largest} fill pages '
            f"and take minutes or longer. Lock joints (model.lock), or ask for it with largest={model.nv} "
            "(simplify=False is quicker). da.compile gives machine code for a model of any size"
        )


def _replacements(
    model: Model, parameters: Parameters
) -> tuple[dict[str, Any], dict[Any, float], Sequence[Loop]]:
    """Return the formulas that replace the model's numbers, the values of their symbols, and the loops."""
    if not isinstance(parameters, Iterable):
        raise ArgumentError(f'parameters: give names, a mapping or "all", got {type(parameters).__name__}')
    if not isinstance(parameters, Mapping):
        made = ParameterNames(model, chosen_values(model, parameters), loops=parameters == "all")
        return made.replacements, made.values, made.loops
    values: dict[Any, float] = {}
    given = {name: _formula(formula) for name, formula in parameters.items()}
    others: set[Any] = set()
    for name, formula in given.items():
        entries, numbers = sp.flatten([formula]), np.ravel(model.value(name)).tolist()
        others |= {symbol for entry in entries for symbol in getattr(entry, "free_symbols", ())}
        for entry, x in zip(entries, numbers) if len(entries) == len(numbers) else ():
            for symbol, number in ((entry, x), (-entry, -x)):  # a symbol in place of a number, up to its sign
                if getattr(symbol, "is_Symbol", False):
                    values.setdefault(symbol, float(number))
    for symbol in sorted(others - set(values), key=str):
        values[symbol] = float("nan")
    return given, dict(sorted(values.items(), key=lambda item: not str(item[0]).startswith("m"))), ()


def _formula(given: Any) -> Any:
    """Return a formula: strings become positive symbols, sequences are converted entry by entry."""
    if isinstance(given, str):
        return sp.Symbol(given, positive=True)
    if isinstance(given, (list, tuple)):
        return [_formula(x) for x in given]
    if isinstance(given, (int, float)):
        return without_floats(given)
    if isinstance(given, sp.MatrixBase):
        return [list(row) for row in given.tolist()] if min(given.shape) > 1 else list(given)
    return given

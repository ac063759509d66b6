"""The equations of motion of a model as SymPy formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from dalembert import algorithms
from dalembert.algorithms.constraints import constraint_equations
from dalembert.errors import ArgumentError
from dalembert.model import configuration
from dalembert.model.body import Loop
from dalembert.model.model import Model
from dalembert.model.values import rebuilt, replace_values
from dalembert.symbolic.compact import compact
from dalembert.symbolic.exact_numbers import exact_model, with_decimals, without_floats
from dalembert.symbolic.formulas import EquationsOfMotion
from dalembert.symbolic.naming import ParameterNames, chosen_values, coordinate_symbols
from dalembert.symbolic.requirement import sympy

__all__ = ["MAX_VELOCITY_VARIABLES", "equations_of_motion"]

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

    >>> import dalembert as da
    >>> equations = da.symbolic.equations_of_motion(da.models.pendulum(), parameters="all")
    >>> equations.equations[0]
    Eq(g*l*m*sin(q) + l**2*m*qddot, tau)
    >>> print(equations.latex())
    \\begin{aligned}
    l^{2} m \\ddot{q} + g l m \\sin{\\left(q \\right)} &= \\tau
    \\end{aligned}
    """
    sp = sympy()
    _check_size(model, largest, forces)
    named, exact = exact_model(model)
    names, values, loops = _replacements(model, parameters)
    named = rebuilt(replace_values(named, names), loops=loops or named.loops)
    symbols = coordinate_symbols(model, coordinates)
    q, v = list(symbols.q), list(symbols.v)
    tau = _forces(model, symbols.tau) if forces == "actuated" else symbols.tau
    time = sp.Symbol("t", real=True) if model.time_dependent else None
    order = {symbol: rank for rank, symbol in enumerate(values)}

    def tidy(expression: Any) -> Any:
        whole = without_floats(expression)
        return with_decimals(compact(whole, order, exact=exact) if simplify else whole)

    def column(entries: Iterable[Any]) -> Any:
        return sp.ImmutableMatrix([[tidy(entry)] for entry in entries] or sp.zeros(0, 1))

    M = algorithms.mass_matrix(named, q, time=time)
    mass_matrix = [[sp.Integer(0)] * model.nv for _ in range(model.nv)]
    for i in range(model.nv):
        for j in range(i + 1):
            mass_matrix[i][j] = mass_matrix[j][i] = tidy(M[i][j])
    K, k = _constraints(named, q, v, time)
    jacobian = sp.ImmutableMatrix(len(K), model.nv, [tidy(x) for row in K for x in row])
    multipliers = tuple(sp.Symbol(f"lambda_{row + 1}", real=True) for row in range(len(k)))
    formulas = {
        "mass_matrix": sp.ImmutableMatrix(model.nv, model.nv, [x for row in mass_matrix for x in row]),
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


def _constraints(model: Model, q: list[Any], v: list[Any], time: Any) -> tuple[list[list[Any]], list[Any]]:
    """Return K and k, without the rows that are zero by structure."""
    found = constraint_equations(model, q, v, time=time)
    rows = [(K, k) for K, k in zip(found.K, found.k) if any(without_floats(x) != 0 for x in [*K, k])]
    return [K for K, _ in rows], [k for _, k in rows]


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


def _forces(model: Model, tau: Sequence[Any]) -> list[Any]:
    """Return tau with zeros at the joints that have no motor."""
    kept = list(tau)
    for body in model.bodies:
        if body.dependence is None and body.joint_name not in model.actuated:
            kept[body.v_slice] = [sympy().Integer(0)] * body.nv
    return kept


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
    given = {}
    for name, formula in parameters.items():
        number = model.value(name)
        given[name] = _formula(formula)
        for symbol, x in _signed_symbols(given[name], number):
            values.setdefault(symbol, x)
    others = {s for formula in given.values() for s in _free_symbols(formula)} - set(values)
    for symbol in sorted(others, key=str):
        values[symbol] = float("nan")
    return given, dict(sorted(values.items(), key=lambda item: not str(item[0]).startswith("m"))), ()


def _formula(given: Any) -> Any:
    """Return a formula: strings become positive symbols, sequences are converted entry by entry."""
    sp = sympy()
    if isinstance(given, str):
        return sp.Symbol(given, positive=True)
    if isinstance(given, (list, tuple)):
        return [_formula(x) for x in given]
    if isinstance(given, (int, float)):
        return without_floats(given)
    if isinstance(given, sp.MatrixBase):
        return [list(row) for row in given.tolist()] if min(given.shape) > 1 else list(given)
    return given


def _free_symbols(formula: Any) -> set[Any]:
    if isinstance(formula, list):
        return {symbol for x in formula for symbol in _free_symbols(x)}
    return set(getattr(formula, "free_symbols", ()))


def _signed_symbols(formula: Any, number: Any) -> list[tuple[Any, float]]:
    """Return the symbols that replace a number of the model alone, up to their sign."""
    if isinstance(formula, list):
        entries = list(getattr(number, "tolist", lambda: number)())
        if len(entries) != len(formula):
            return []
        return [pair for f, x in zip(formula, entries) for pair in _signed_symbols(f, x)]
    if getattr(formula, "is_Symbol", False):
        return [(formula, float(number))]
    if getattr(-formula, "is_Symbol", False):
        return [(-formula, -float(number))]
    return []

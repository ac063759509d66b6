"""LaTeX of equations of motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalembert.symbolic.requirement import sympy

if TYPE_CHECKING:
    from dalembert.symbolic.formulas import EquationsOfMotion

__all__ = ["aligned_equations", "typeset"]

LARGEST_DENOMINATOR = 360
"""Fractions with larger denominators are set as decimal numbers."""


def typeset(expression: Any, symbols: dict[Any, str]) -> str:
    """Return one expression in LaTeX, with names for its symbols, and uncommon fractions as decimals."""
    sp = sympy()
    numbers = [*expression.atoms(sp.Float), *(x for x in expression.atoms(sp.Rational) if _is_decimal(x))]
    decimals = {x: sp.Float(f"{float(x):.6g}", 6) for x in numbers}
    return str(sp.latex(expression.xreplace(decimals), symbol_names=symbols))


def _is_decimal(x: Any) -> bool:
    return bool(x.q > LARGEST_DENOMINATOR or (x.q > 12 and 10**6 % x.q == 0))


def _term(coefficient: Any, factor: Any, names: dict[Any, str]) -> str:
    """Return coefficient times factor, the factor last."""
    if coefficient == 0:
        return ""
    last = typeset(factor, names)
    if coefficient in (1, -1):
        return last if coefficient == 1 else f"- {last}"
    text = typeset(coefficient, names)
    return rf"\left({text}\right) {last}" if coefficient.is_Add else f"{text} {last}"


def aligned_equations(equations: EquationsOfMotion) -> str:
    """Return one line for each equation: inertial terms, velocity terms, gravity = forces;
    then the constraints."""
    names = dict(equations.typesetting)
    lines = []
    M, K, a = equations.mass_matrix, equations.constraint_jacobian, equations.a
    for i in range(len(equations.v)):
        left = [_term(M[i, j], a[j], names) for j in range(len(a))]
        left += [typeset(x, names) for x in (equations.coriolis[i], equations.gravity[i]) if x != 0]
        right = [typeset(equations.tau[i], names)] if equations.tau[i] != 0 else []
        right += [_term(K[r, i], symbol, names) for r, symbol in enumerate(equations.multipliers)]
        lines.append(f"{_sum(left)} &= {_sum(right)}")
    for r in range(len(equations.multipliers)):
        left = [_term(K[r, j], a[j], names) for j in range(len(a))]
        lines.append(f"{_sum(left)} &= {typeset(equations.constraint_bias[r], names)}")
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def _sum(parts: list[str]) -> str:
    """Return the sum of terms in the given order, with signs between them."""
    texts = [text for text in parts if text]
    joined = texts[0] if texts else "0"
    for text in texts[1:]:
        joined += f" - {text[1:].lstrip()}" if text.startswith("-") else f" + {text}"
    return joined

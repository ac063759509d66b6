"""The shortest of several equal forms of an expression, as in a textbook.

From the Fourier sum, which is unique, a few forms are made: double angles as they are, as powers of sines, as
powers of cosines, and powers of single angles. In each, common factors are taken out, and the one with the
fewest operations is kept; double angles count as one operation more, so that sin q cos q stays.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from dalembert.symbolic.exact_numbers import MAX_SHOWN_DENOMINATOR
from dalembert.symbolic.fourier import Harmonic, TooManyTermsError, fourier, from_fourier
from dalembert.symbolic.requirement import sympy

__all__ = ["compact", "cost", "group_terms"]

MAX_GROUPED_TERMS = 100
"""Longer sums are left as sums: nobody reads them, and grouping takes the square of their number."""

MAX_FACTORED_TERMS = 8
"""Brackets of this length are tried as products, such as (v1 + v2)^2."""

MIN_SAVED_MULTIPLICATIONS = 2
"""Fewest multiplications that a bracket around terms of a sum saves; l1^2 + l2^2 + 2 l1 l2 cos q stays."""


def compact(expression: Any, order: Mapping[Any, int] | None = None, *, exact: bool = True) -> Any:
    """Return the expression in its shortest form, the same for all equal trigonometric polynomials.

    `order`: rank of the symbols that are taken out of sums first (masses before lengths); `exact` as in
    `fourier`. Too long an expression is returned as it is, with a warning; so is one that distinguishes cases
    (exponential coordinates near zero), without.
    """
    if expression.has(sympy().Piecewise):
        return expression
    try:
        harmonics = fourier(expression, exact=exact)
    except TooManyTermsError:
        warnings.warn(
            "an expression is too long to simplify and was left as the algorithm made it; "
            "give fewer symbols, or a smaller model",
            stacklevel=2,
        )
        return expression
    if sum(len(sympy().Add.make_args(part)) for _, A, B in harmonics for part in (A, B)) > MAX_GROUPED_TERMS:
        return from_fourier(harmonics)
    best, least = None, None
    for form in _forms(harmonics):
        candidate = group_terms(form, order or {})
        price = (cost(candidate), str(candidate))
        if least is None or price < least:
            best, least = candidate, price
    return best


def cost(expression: Any) -> int:
    """Return the number of operations, plus one for each sine or cosine of a multiple angle."""
    sp = sympy()
    multiples = sum(
        1
        for node in expression.atoms(sp.sin, sp.cos)
        if any(abs(n) > 1 for part, n in node.args[0].as_coefficients_dict().items() if part.is_Symbol)
    )
    return int(sp.count_ops(expression)) + multiples


def _forms(harmonics: list[Harmonic]) -> Iterator[Any]:
    """Return equal forms with different trigonometric functions."""
    sp = sympy()
    whole = from_fourier(harmonics)
    yield whole
    if any(_halves(angle) is not None for angle, _, _ in harmonics):
        yield _double_angles(harmonics, lambda u: 1 - 2 * sp.sin(u) ** 2)
        yield _double_angles(harmonics, lambda u: 2 * sp.cos(u) ** 2 - 1)
    if any(f for f in whole.atoms(sp.Function) if not isinstance(f, (sp.sin, sp.cos))):
        return
    if any(
        part.is_Symbol and abs(n) != 1
        for angle, _, _ in harmonics
        for part, n in angle.as_coefficients_dict().items()
    ):
        single = sp.expand(sp.expand_trig(whole))
        for known, other in ((sp.sin, sp.cos), (sp.cos, sp.sin)):
            yield sp.expand(
                single.replace(
                    lambda node, other=other: (
                        node.is_Pow and isinstance(node.base, other) and node.exp.is_Integer and node.exp > 1
                    ),
                    lambda node, known=known: (
                        (1 - known(node.base.args[0]) ** 2) ** (node.exp // 2) * node.base ** (node.exp % 2)
                    ),
                )
            )


def _halves(angle: Any) -> Any | None:
    """Return half of an angle whose parts are all even multiples."""
    parts = [n for part, n in angle.as_coefficients_dict().items() if part.is_Symbol]
    if not parts or any(not (n / 2).is_Integer for n in parts):
        return None
    return angle / 2


def _double_angles(harmonics: list[Harmonic], cosine: Any) -> Any:
    sp = sympy()
    terms = []
    for angle, A, B in harmonics:
        u = _halves(angle)
        if u is None:
            terms.append(from_fourier([(angle, A, B)]))
        else:
            terms += [a * c for a in sp.Add.make_args(A) for c in sp.Add.make_args(cosine(u))]
            terms += [2 * b * sp.sin(u) * sp.cos(u) for b in sp.Add.make_args(B)]
    return sp.Add(*terms)


def group_terms(expression: Any, order: Mapping[Any, int]) -> Any:
    """Factor a sum of products: take out common factors, those that save most first."""
    sp = sympy()
    terms = list(sp.Add.make_args(expression))
    if len(terms) == 1 or len(terms) > MAX_GROUPED_TERMS:
        return expression
    return _group([_factors(term) for term in terms], order)


Factors = tuple[Any, dict[Any, int]]
"""A number, and the powers of a product."""


def _factors(term: Any) -> Factors:
    sp = sympy()
    number, rest = term.as_coeff_Mul()
    powers: dict[Any, int] = {}
    for factor in sp.Mul.make_args(rest):
        base, exponent = factor.as_base_exp()
        if not exponent.is_Integer:
            base, exponent = factor, 1
        if base != 1:
            powers[base] = powers.get(base, 0) + int(exponent)
    return number, powers


def _product(powers: Mapping[Any, int]) -> Any:
    sp = sympy()
    return sp.Mul(*(base**exponent for base, exponent in powers.items()))


def _group(terms: list[Factors], order: Mapping[Any, int]) -> Any:
    sp = sympy()
    if len(terms) == 1:
        return terms[0][0] * _product(terms[0][1])
    chosen = _best_factor(terms, order)
    if chosen is None:
        return sp.Add(*(number * _product(powers) for number, powers in terms))
    inside = [term for term in terms if chosen in term[1]]
    outside = [term for term in terms if chosen not in term[1]]
    common = _common(inside)
    content = _content([number for number, _ in inside])
    bracket = _group(
        [
            (
                number / content,
                {base: e - common.get(base, 0) for base, e in powers.items() if e != common.get(base, 0)},
            )
            for number, powers in inside
        ],
        order,
    )
    if len(inside) <= MAX_FACTORED_TERMS and all(number.q <= MAX_SHOWN_DENOMINATOR for number, _ in inside):
        factored = sp.factor(bracket)
        if cost(factored) < cost(bracket):
            bracket = factored
    product = sp.Mul(content, _product(common), bracket)
    return product if not outside else sp.Add(product, _group(outside, order))


def _best_factor(terms: list[Factors], order: Mapping[Any, int]) -> Any | None:
    """Return the factor that most terms share; of equals the first in order, then by name."""
    sp = sympy()
    best, least = None, None
    for base in {base for _, powers in terms for base in powers}:
        inside = [term for term in terms if base in term[1]]
        if len(inside) < 2:
            continue
        saved = (len(inside) - 1) * sum(abs(e) for e in _common(inside).values())
        if len(inside) < len(terms) and saved < MIN_SAVED_MULTIPLICATIONS:
            continue
        rank = (-saved, order.get(base, len(order)), sp.default_sort_key(base))
        if least is None or rank < least:
            best, least = base, rank
    return best


def _common(terms: list[Factors]) -> dict[Any, int]:
    """Return the powers that all terms share."""
    shared = dict(terms[0][1])
    for _, powers in terms[1:]:
        shared = {base: min(e, powers[base]) for base, e in shared.items() if base in powers}
    return {base: e for base, e in shared.items() if e > 0}


def _content(numbers: list[Any]) -> Any:
    """Return the greatest common divisor of rational numbers, with the sign that leaves fewer minus signs."""
    sp = sympy()
    if not all(number.q <= MAX_SHOWN_DENOMINATOR for number in numbers):
        return sp.Integer(1)
    content = sp.gcd_list(numbers) if len(numbers) > 1 else numbers[0]
    negative = sum(1 for number in numbers if number < 0)
    return -content if 2 * negative > len(numbers) else content

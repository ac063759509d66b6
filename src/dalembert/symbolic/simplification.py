"""The normal form of trigonometric polynomials, and the shortest of its equal forms, as in a textbook.

The entries of M and of the bias forces are polynomials in sines and cosines of the joint angles and in other
symbols. As a recursion leaves them they are products of products; written as a Fourier sum

    sum over k of  A_k cos(k . q) + B_k sin(k . q)                                                  (1)

with polynomials A_k, B_k in the other symbols, each has exactly one form, so that equal expressions become
equal and zeros become zero. By Euler's formula sin^a u cos^b u = sum of c_j exp(i j u), and with the numbers
c_k of a real function: A_k = 2 Re c_k, B_k = -2 Im c_k for k and -k together.

From (1) a few forms are made: double angles as they are, as powers of sines, as powers of cosines, and powers
of single angles. In each, common factors are taken out, and the one with the fewest operations is kept;
double angles count as one operation more, so that sin q cos q stays.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

from dalembert.errors import MissingExtraError


class _SymPy:
    """The names of SymPy, imported with the first formula: `import dalembert` must not load it."""

    def __getattr__(self, name: str) -> Any:
        try:
            import sympy
        except ImportError as error:
            raise MissingExtraError(
                "da.symbolic writes equations with SymPy, which is not installed; "
                "pip install 'dalembert[symbolic]' or pip install sympy"
            ) from error
        return getattr(sympy, name)


sp: Any = _SymPy()

MAX_TERMS = 20_000
"""Terms of one polynomial beyond which it is left as it is."""

MAX_PRODUCTS = 200_000
"""Products of single terms in one multiplication, beyond which the expression is left as it is."""

NEGLIGIBLE_RATIO = 1e-14
"""Ratio to the largest coefficient below which one is rounding of the model's numbers."""

Harmonic = tuple[Any, Any, Any]
"""(k . q, A_k, B_k)."""

Waves = dict[tuple[Any, ...], Any]
"""The complex numbers c_k, by the multiples k of the parts of the angles."""


class TooManyTermsError(Exception):
    """A polynomial grew beyond MAX_TERMS."""


def fourier(expression: Any, *, exact: bool = True) -> list[Harmonic]:
    """Return the harmonics of an expression. Other functions, and roots, count as symbols of their own.

    `exact`: whether the numbers in it are; else coefficients that rounding left are dropped.
    """
    polynomial, symbols, angles = _polynomial(expression)
    parts, vectors = _parts(angles)
    # harmonic k -> monomial of the other symbols -> complex coefficient
    sums: dict[Any, dict[Any, Any]] = defaultdict(lambda: defaultdict(lambda: sp.QQ_I.zero))
    for exponents, coefficient in polynomial.terms():
        rest, powers = exponents[: len(symbols)], exponents[len(symbols) :]
        waves: Waves = {(0,) * len(parts): sp.QQ_I(coefficient)}
        for u, a, b in zip(vectors, powers[::2], powers[1::2]):
            if a or b:
                waves = _times(waves, u, _powers(a, b))
        for k, c in waves.items():
            sums[k][rest] += c
    return _real(sums, symbols, parts, exact)


def from_fourier(harmonics: Iterable[Harmonic]) -> Any:
    """Return the sum (1) as an expression, multiplied out."""
    terms = []
    for angle, A, B in harmonics:
        terms += [term * sp.cos(angle) for term in sp.Add.make_args(A)]
        terms += [term * sp.sin(angle) for term in sp.Add.make_args(B)]
    return sp.Add(*terms)


def _polynomial(expression: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the expression as a polynomial in its symbols, then sine and cosine of each angle."""
    from sympy.polys.rings import ring

    leaves, seen, pending = set[Any](), set[Any](), [expression]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.is_Add or node.is_Mul:
            pending.extend(node.args)
        elif node.is_Pow and node.exp.is_Integer and node.exp.is_positive:
            pending.append(node.base)
        elif not node.is_Rational:
            leaves.add(node)
    waves = {node for node in leaves if isinstance(node, (sp.sin, sp.cos))}
    symbols = sorted(leaves - waves, key=sp.default_sort_key)
    angles = sorted({wave.args[0] for wave in waves}, key=sp.default_sort_key)
    variables = [*symbols, *(function(u) for u in angles for function in (sp.sin, sp.cos))]
    domain, *generators = ring([sp.Dummy() for _ in variables] or [sp.Dummy()], sp.QQ)
    known = dict(zip(variables, generators))

    def convert(node: Any) -> Any:
        found = known.get(node)
        if found is not None:
            return found
        if node.is_Rational:
            found = domain(sp.QQ(int(node.p), int(node.q)))
        elif node.is_Pow:
            found = convert(node.base) ** int(node.exp)
        else:
            parts = [convert(part) for part in node.args]
            found = parts[0]
            for part in parts[1:]:
                if node.is_Mul and len(found) * len(part) > MAX_PRODUCTS:
                    raise TooManyTermsError
                found = _check(found + part if node.is_Add else found * part)
        known[node] = _check(found)
        return found

    return convert(expression), symbols, angles


def _check(polynomial: Any) -> Any:
    if len(polynomial) > MAX_TERMS:
        raise TooManyTermsError
    return polynomial


@cache
def _powers(a: int, b: int) -> tuple[tuple[int, Any], ...]:
    """Return sin^a u cos^b u as sum of c exp(i j u): the (j, c)."""
    found: dict[int, int] = defaultdict(int)
    for r in range(a + 1):
        for s in range(b + 1):
            found[a + b - 2 * r - 2 * s] += (-1) ** r * comb(a, r) * comb(b, s)
    unit = sp.QQ_I(0, -1) ** a / 2 ** (a + b)  # one over 2 i for each sine, one half for each cosine
    return tuple((j, unit * c) for j, c in found.items() if c)


def _parts(angles: list[Any]) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """Return the summands of the angles (symbols and constants), and their multiples in each angle."""
    sums = [u.as_coefficients_dict() for u in angles]
    parts = sorted({part for u in sums for part in u}, key=sp.default_sort_key)
    return parts, [tuple(_whole(u.get(part, 0)) for part in parts) for u in sums]


def _whole(x: Any) -> int | Fraction:
    fraction = Fraction(int(x.p), int(x.q)) if x else Fraction(0)
    return int(fraction) if fraction.denominator == 1 else fraction


def _times(waves: Waves, u: tuple[Any, ...], factors: Any) -> Waves:
    """Multiply waves, by their k, by those of a power of sin u and cos u."""
    result: Waves = defaultdict(lambda: sp.QQ_I.zero)
    for j, factor in factors:
        for k, c in waves.items():
            result[tuple(n + j * m for n, m in zip(k, u))] += c * factor
    return result


def _real(
    sums: Mapping[Any, Mapping[Any, Any]], symbols: list[Any], parts: list[Any], exact: bool
) -> list[Harmonic]:
    """Combine k and -k: cosines with 2 Re c, sines with -2 Im c."""
    numbers = (
        [] if exact else [x for monomials in sums.values() for c in monomials.values() for x in (c.x, c.y)]
    )
    least = NEGLIGIBLE_RATIO * max((abs(float(x)) for x in numbers), default=0.0)
    harmonics: dict[Any, list[list[Any]]] = {}
    for k, monomials in sums.items():
        sign = -1 if next((n for n in k if n), 1) < 0 else 1
        cosines, sines = harmonics.setdefault(tuple(sign * n for n in k), [[], []])
        for rest, c in monomials.items():
            monomial = sp.Mul(*(symbol**e for symbol, e in zip(symbols, rest) if e))
            re, im = (sp.QQ.to_sympy(x) if exact or abs(float(x)) >= least else 0 for x in (c.x, c.y))
            cosines.append(re * monomial)
            sines.append(-sign * im * monomial)
    found = []
    for k, (cosines, sines) in harmonics.items():
        angle = sp.Add(*(sp.Rational(n) * part for n, part in zip(k, parts) if n))
        found.append((angle, sp.Add(*cosines), sp.Add(*sines)))
    return sorted(
        ((u, A, B) for u, A, B in found if A != 0 or B != 0), key=lambda h: sp.default_sort_key(h[0])
    )


MAX_SHOWN_DENOMINATOR = 10**6
"""Fractions with larger denominators are shown as decimal numbers."""

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
    if expression.has(sp.Piecewise):
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
    if sum(len(sp.Add.make_args(part)) for _, A, B in harmonics for part in (A, B)) > MAX_GROUPED_TERMS:
        return from_fourier(harmonics)
    forms = [group_terms(form, order or {}) for form in _forms(harmonics)]
    return min(forms, key=lambda form: (cost(form), str(form)))


def cost(expression: Any) -> int:
    """Return the number of operations, plus one for each sine or cosine of a multiple angle."""
    multiples = sum(
        1
        for node in expression.atoms(sp.sin, sp.cos)
        if any(abs(n) > 1 for part, n in node.args[0].as_coefficients_dict().items() if part.is_Symbol)
    )
    return int(sp.count_ops(expression)) + multiples


def _forms(harmonics: list[Harmonic]) -> Iterator[Any]:
    """Return equal forms with different trigonometric functions."""
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
    terms = list(sp.Add.make_args(expression))
    if len(terms) == 1 or len(terms) > MAX_GROUPED_TERMS:
        return expression
    return _group([_factors(term) for term in terms], order)


Factors = tuple[Any, dict[Any, int]]
"""A number, and the powers of a product."""


def _factors(term: Any) -> Factors:
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
    return sp.Mul(*(base**exponent for base, exponent in powers.items()))


def _group(terms: list[Factors], order: Mapping[Any, int]) -> Any:
    if len(terms) == 1:
        return terms[0][0] * _product(terms[0][1])
    chosen = _best_factor(terms, order)
    if chosen is None:
        return sp.Add(*(number * _product(powers) for number, powers in terms))
    inside = [term for term in terms if chosen in term[1]]
    outside = [term for term in terms if chosen not in term[1]]
    common = _common(inside)
    content = _content([number for number, _ in inside])
    rest = []
    for number, powers in inside:
        left = {base: e - common.get(base, 0) for base, e in powers.items()}
        rest.append((number / content, {base: e for base, e in left.items() if e}))
    bracket = _group(rest, order)
    if len(inside) <= MAX_FACTORED_TERMS and all(number.q <= MAX_SHOWN_DENOMINATOR for number, _ in inside):
        factored = sp.factor(bracket)
        if cost(factored) < cost(bracket):
            bracket = factored
    product = sp.Mul(content, _product(common), bracket)
    return product if not outside else sp.Add(product, _group(outside, order))


def _best_factor(terms: list[Factors], order: Mapping[Any, int]) -> Any | None:
    """Return the factor that most terms share; of equals the first in order, then by name."""
    ranks = {}
    for base in {base for _, powers in terms for base in powers}:
        inside = [term for term in terms if base in term[1]]
        saved = (len(inside) - 1) * sum(abs(e) for e in _common(inside).values())
        if len(inside) > 1 and (len(inside) == len(terms) or saved >= MIN_SAVED_MULTIPLICATIONS):
            ranks[base] = (-saved, order.get(base, len(order)), sp.default_sort_key(base))
    return min(ranks, key=lambda base: ranks[base], default=None)


def _common(terms: list[Factors]) -> dict[Any, int]:
    """Return the powers that all terms share."""
    shared = dict(terms[0][1])
    for _, powers in terms[1:]:
        shared = {base: min(e, powers[base]) for base, e in shared.items() if base in powers}
    return {base: e for base, e in shared.items() if e > 0}


def _content(numbers: list[Any]) -> Any:
    """Return the greatest common divisor of rational numbers, with the sign that leaves fewer minus signs."""
    if not all(number.q <= MAX_SHOWN_DENOMINATOR for number in numbers):
        return sp.Integer(1)
    content = sp.gcd_list(numbers) if len(numbers) > 1 else numbers[0]
    negative = sum(1 for number in numbers if number < 0)
    return -content if 2 * negative > len(numbers) else content

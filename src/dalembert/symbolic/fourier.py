"""Trigonometric polynomials in their normal form, a Fourier sum.

The entries of M and of the bias forces are polynomials in sines and cosines of the joint angles and in other
symbols. As a recursion leaves them they are products of products; written as

    sum over k of  A_k cos(k . q) + B_k sin(k . q)                                                  (1)

with polynomials A_k, B_k in the other symbols, each has exactly one form, so that equal expressions become
equal and zeros become zero. By Euler's formula sin^a u cos^b u = sum of c_j exp(i j u), and with the numbers
c_k of a real function: A_k = 2 Re c_k, B_k = -2 Im c_k for k and -k together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

from dalembert.symbolic.requirement import sympy

__all__ = ["MAX_TERMS", "Harmonic", "TooManyTermsError", "fourier", "from_fourier"]

MAX_TERMS = 20_000
"""Terms of one polynomial beyond which it is left as it is."""

MAX_PRODUCTS = 200_000
"""Products of single terms in one multiplication, beyond which the expression is left as it is."""

NEGLIGIBLE_RATIO = 1e-14
"""Ratio to the largest coefficient below which one is rounding of the model's numbers."""

Harmonic = tuple[Any, Any, Any]
"""(k . q, A_k, B_k)."""

Waves = dict[tuple[Any, ...], tuple[Any, Any]]
"""Real and imaginary part of c_k, by the multiples k of the parts of the angles."""


class TooManyTermsError(Exception):
    """A polynomial grew beyond MAX_TERMS."""


def fourier(expression: Any, *, exact: bool = True) -> list[Harmonic]:
    """Return the harmonics of an expression. Other functions, and roots, count as symbols of their own.

    `exact`: whether the numbers in it are; else coefficients that rounding left are dropped.
    """
    polynomial, symbols, angles = _polynomial(expression)
    parts, vectors = _parts(angles)
    # harmonic k -> monomial of the other symbols -> complex coefficient, as two rationals
    sums: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for exponents, coefficient in polynomial.terms():
        rest = exponents[: len(symbols)]
        waves: Waves = {(0,) * len(parts): (coefficient, 0 * coefficient)}
        for position, u in enumerate(vectors):
            a, b = exponents[len(symbols) + 2 * position : len(symbols) + 2 * position + 2]
            if a or b:
                waves = _times(waves, u, _powers(a, b))
        for k, (re, im) in waves.items():
            entry = sums[k][rest]
            entry[0], entry[1] = entry[0] + re, entry[1] + im
    if not exact:
        _drop_rounding(sums)
    return _real(sums, symbols, parts)


def from_fourier(harmonics: Iterable[Harmonic]) -> Any:
    """Return the sum (1) as an expression, multiplied out."""
    sp = sympy()
    terms = []
    for angle, A, B in harmonics:
        terms += [term * sp.cos(angle) for term in sp.Add.make_args(A)]
        terms += [term * sp.sin(angle) for term in sp.Add.make_args(B)]
    return sp.Add(*terms)


def _polynomial(expression: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the expression as a polynomial in its symbols, then sine and cosine of each angle."""
    sp = sympy()
    from sympy.polys.rings import ring

    symbols: dict[Any, None] = {}
    angles: dict[Any, None] = {}
    seen: set[Any] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, (sp.sin, sp.cos)):
            angles[node.args[0]] = None
        elif node.is_Add or node.is_Mul or _is_power(node):
            pending.extend(node.args[:1] if node.is_Pow else node.args)
        elif not node.is_Rational:
            symbols[node] = None
    ordered = sorted(symbols, key=sp.default_sort_key)
    turned = sorted(angles, key=sp.default_sort_key)
    names = [sp.Dummy() for _ in range(len(ordered) + 2 * len(turned))]
    made = ring(names, sp.QQ) if names else (ring([sp.Dummy()], sp.QQ)[0],)
    domain, generators = made[0], made[1:]
    known = dict(zip(ordered, generators))
    for position, u in enumerate(turned):
        known[sp.sin(u)] = generators[len(ordered) + 2 * position]
        known[sp.cos(u)] = generators[len(ordered) + 2 * position + 1]

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

    return convert(expression), ordered, turned


def _is_power(node: Any) -> bool:
    return bool(node.is_Pow and node.exp.is_Integer and node.exp.is_positive)


def _check(polynomial: Any) -> Any:
    if len(polynomial) > MAX_TERMS:
        raise TooManyTermsError
    return polynomial


@cache
def _powers(a: int, b: int) -> tuple[tuple[int, Fraction, Fraction], ...]:
    """Return sin^a u cos^b u as sum of (re + i im) exp(i j u): the (j, re, im)."""
    found: dict[int, Fraction] = defaultdict(Fraction)
    for r in range(a + 1):
        for s in range(b + 1):
            found[a + b - 2 * r - 2 * s] += Fraction((-1) ** r * comb(a, r) * comb(b, s), 2 ** (a + b))
    # one over i to the power a
    re, im = ((1, 0), (0, -1), (-1, 0), (0, 1))[a % 4]
    return tuple((j, re * c, im * c) for j, c in found.items() if c)


def _parts(angles: list[Any]) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """Return the summands of the angles (symbols and constants), and their multiples in each angle."""
    sums = [u.as_coefficients_dict() for u in angles]
    parts = sorted({part for u in sums for part in u}, key=sympy().default_sort_key)
    return parts, [tuple(_whole(u.get(part, 0)) for part in parts) for u in sums]


def _whole(x: Any) -> int | Fraction:
    fraction = Fraction(int(x.p), int(x.q)) if x else Fraction(0)
    return int(fraction) if fraction.denominator == 1 else fraction


def _times(waves: Waves, u: tuple[Any, ...], factors: Any) -> Waves:
    """Multiply waves, by their k, by those of a power of sin u and cos u."""
    QQ = sympy().QQ
    result: dict[Any, list[Any]] = {}
    for j, re, im in factors:
        re, im = QQ(re.numerator, re.denominator), QQ(im.numerator, im.denominator)
        for k, (x, y) in waves.items():
            entry = result.setdefault(tuple(n + j * m for n, m in zip(k, u)), [QQ(0), QQ(0)])
            entry[0], entry[1] = entry[0] + x * re - y * im, entry[1] + x * im + y * re
    return {key: (x, y) for key, (x, y) in result.items()}


def _drop_rounding(sums: dict[Any, dict[Any, list[Any]]]) -> None:
    entries = [entry for monomials in sums.values() for entry in monomials.values()]
    least = NEGLIGIBLE_RATIO * max((abs(float(x)) for entry in entries for x in entry), default=0.0)
    for entry in entries:
        for place in (0, 1):
            if abs(float(entry[place])) < least:
                entry[place] = 0 * entry[place]


def _real(sums: dict[Any, dict[Any, list[Any]]], symbols: list[Any], parts: list[Any]) -> list[Harmonic]:
    """Combine k and -k: cosines with 2 Re c, sines with -2 Im c."""
    sp = sympy()
    harmonics: dict[Any, list[list[Any]]] = {}
    for k, monomials in sums.items():
        sign = -1 if next((n for n in k if n), 1) < 0 else 1
        cosines, sines = harmonics.setdefault(tuple(sign * n for n in k), [[], []])
        for rest, (re, im) in monomials.items():
            monomial = sp.Mul(*(symbol**e for symbol, e in zip(symbols, rest) if e))
            cosines.append(_rational(re) * monomial)
            sines.append(-sign * _rational(im) * monomial)
    found = []
    for k, (cosines, sines) in harmonics.items():
        angle = sp.Add(*(sp.Rational(n) * part for n, part in zip(k, parts) if n))
        found.append((angle, sp.Add(*cosines), sp.Add(*sines)))
    return sorted(
        ((u, A, B) for u, A, B in found if A != 0 or B != 0), key=lambda h: sp.default_sort_key(h[0])
    )


def _rational(x: Any) -> Any:
    sp = sympy()
    return sp.Rational(int(x.numerator), int(x.denominator)) if x else sp.Integer(0)

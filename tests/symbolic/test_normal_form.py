"""Equal trigonometric polynomials have one form; numbers are recognized."""

import math

import numpy as np
import pytest

from dalembert.symbolic import simplification
from dalembert.symbolic.simplification import compact, fourier, from_fourier, group_terms
from dalembert.symbolic.symbols import exact_number, is_recognized

sp = pytest.importorskip("sympy")

x, y, a, b, c = sp.symbols("x y a b c")


def random_polynomial(rng):
    atoms = [
        sp.sin(x),
        sp.cos(x),
        sp.sin(y),
        sp.cos(y),
        sp.cos(2 * x - y + 1),
        a,
        b,
        sp.sqrt(2),
        sp.Integer(1),
    ]
    total = sp.Integer(0)
    for _ in range(4):
        term = sp.Rational(int(rng.integers(-5, 6)), int(rng.integers(1, 4)))
        for _ in range(3):
            term *= (
                atoms[rng.integers(len(atoms))] + int(rng.integers(-1, 2)) * atoms[rng.integers(len(atoms))]
            )
        total += term
    return total


@pytest.mark.parametrize("seed", range(8))
def test_the_form_is_equal_and_unique(seed):
    rng = np.random.default_rng(seed)
    polynomial = random_polynomial(rng)
    values = {s: float(v) for s, v in zip((x, y, a, b), rng.normal(size=4))}
    short = compact(polynomial)
    for form in (from_fourier(fourier(polynomial)), short):
        assert float(form.subs(values)) == pytest.approx(float(polynomial.subs(values)), rel=1e-9, abs=1e-9)
    disguised = sp.expand_trig(sp.expand(polynomial)) + 3 * a * (sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1)
    assert compact(disguised) == short
    assert compact(polynomial - disguised) == 0


def test_forms_are_the_shortest():
    assert compact(sp.cos(x) * sp.cos(y) - sp.sin(x) * sp.sin(y)) == sp.cos(x + y)
    assert compact((1 - sp.cos(2 * x)) * a / 2) == a * sp.sin(x) ** 2
    assert compact(a * sp.sin(2 * x) / 2) == a * sp.sin(x) * sp.cos(x)
    assert compact(sp.sin(x) ** 4 + 2 * sp.sin(x) ** 2 * sp.cos(x) ** 2 + sp.cos(x) ** 4) == 1
    assert str(group_terms(sp.expand(a * b + a * c + a * b * c), {})) in (
        "a*(b*c + b + c)",
        "a*(b + c + b*c)",
    )


def test_a_long_polynomial_is_left_as_it_is_with_a_warning(monkeypatch):
    monkeypatch.setattr(simplification, "MAX_TERMS", 5)
    long = (a + b + sp.sin(x)) ** 3
    with pytest.warns(UserWarning, match="too long to simplify"):
        assert compact(long) == long


def test_numbers_are_recognized():
    known = {
        0.1: sp.Rational(1, 10),
        1.0 / 12.0: sp.Rational(1, 12),
        9.80665: sp.Rational("9.80665"),
        math.pi / 3.0: sp.pi / 3,
        -math.sqrt(0.5): -sp.sqrt(2) / 2,
        0.1 * 3.0: sp.Rational(3, 10),
        0.05 * 9.81: sp.Rational("0.4905"),
    }
    for number, exact in known.items():
        assert exact_number(number) == exact
        assert is_recognized(number)
    odd = 0.7351285461234567
    assert not is_recognized(odd)
    assert float(exact_number(odd)) == odd
    assert exact_number(a) is a

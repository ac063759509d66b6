"""Wide values: code on one value for every row gives what the same code gives row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.tracing.interpreter import interpret

from dalembert import scalar
from dalembert.errors import TracingError
from dalembert.scalar import Scalar, absolute, maximum, select
from dalembert.scalar.row_sets import at_first_row, greatest, sum_all
from dalembert.tracing import ArrayArgument, trace
from dalembert.tracing.program import count_program

N = 5
X = np.random.default_rng(4).normal(size=(6, 2 * N + 1))
WEIGHTS = [0.5, 2.0, 1.0, 0.25, 3.0]


def swung(x: list[Scalar], *, wide: bool) -> list[Scalar]:
    """Masses on springs: sums, a loop that carries them and ends by a sum, a branch, and one that stands
    alone beside."""
    *pairs, alone = x
    if wide:
        masses = scalar.rows(N, like=x)
        every = masses.every
        members = [[*masses.stack([pairs[2 * k : 2 * k + 2] for k in range(N)])[every]]]
        weights = [masses.numbers(WEIGHTS)[every]]
    else:
        members, weights = [pairs[2 * k : 2 * k + 2] for k in range(N)], WEIGHTS
    members, weights = [*members, [alone, 0.5 * alone]], [*weights, 1.5]
    stiffness = [w * w + 2.0 for w in weights]  # does not change in the loop

    def energy(state: Any) -> Scalar:
        return sum_all(w * v * v + k * s * s for w, k, (s, v) in zip(weights, stiffness, state, strict=True))

    def step(carry: Any) -> Any:
        state, _, none, _ = carry
        total = energy(state)
        faster = []
        for w, k, (s, v) in zip(weights, stiffness, state, strict=True):
            u = v - 0.1 * s * k / w
            s = s + 0.1 * u
            faster.append([s, select(absolute(u) > 1.0, u * 0.9, u) - 0.001 * total])
        far = [absolute(s) > 0.7 for s, _ in faster]
        return faster, energy(faster), [n + s for n, (s, _) in zip(none, faster, strict=True)], far

    begun = members, 1e9, [0.0] * len(members), [False] * len(members)
    state, left, paths, far = scalar.loop(40, step, begun, until=lambda carry: carry[1] < 2.0)
    most = greatest((absolute(s) for s, _ in state), 0.1)

    def shrink(carry: Any) -> Any:
        twice = [w * (s + v) for w, (s, v) in zip(weights, state, strict=True)]
        return [[a * 0.5 + b for a, b in zip(twice, carry[0], strict=True)], True]

    paths, _ = scalar.loop(1, shrink, [paths, left > 1.0], until=lambda carry: carry[1])
    ends = [select(f, 2.0, 1.0) * p for f, p in zip(far, paths, strict=True)]
    everywhere = [y for y in ends for _ in range(1)]
    first = at_first_row(state[0][0])
    if wide:
        own = masses.each(lambda row: [everywhere[0], state[0][0] + 0.0 * weights[0]])
        everywhere = [own.at(k)[0] for k in range(N)] + everywhere[1:]
        places = [own.at(k)[1] for k in range(N)]
    else:
        places = [s for s, _ in state[:-1]]
    return [*everywhere, *places, left, most, first, sum_all(ends, 0.5)]


def test_wide_code_computes_what_code_for_each_row_does() -> None:
    """For samples one by one, and in a batch whose samples end after different numbers of iterations."""
    program = trace(lambda x: swung(x, wide=True), [ArrayArgument("x", (2 * N + 1,))]).program()
    expected = np.array([swung(x, wide=False) for x in X.tolist()], float)
    alone = np.array([interpret(program, {"x": x})["output"] for x in X.tolist()], float)
    np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-12)
    batch = interpret(program, {"x": list(X.T)})["output"]
    batch = np.stack([np.broadcast_to(y, len(X)) for y in batch], axis=1)
    np.testing.assert_allclose(batch, expected, rtol=1e-12, atol=1e-12)


def test_a_value_is_computed_in_one_loop_and_before_those_in_which_it_does_not_change() -> None:
    """The sine of N rows is computed N times, for a loop of seven iterations and a sum after it."""

    def function(x: list[Scalar]) -> list[Scalar]:
        rows = scalar.rows(N, like=x)
        at = rows.stack([[y] for y in x])[rows.every][0]

        def step(total: Scalar) -> Scalar:
            return total * 0.5 + sum_all([total * scalar.sin(at)])

        total = scalar.loop(7, step, x[0])
        return [total, sum_all([scalar.sin(at) * at])]

    program = trace(function, [ArrayArgument("x", (N,))]).program()
    x = X[0, :N]
    total = x[0]
    for _ in range(7):
        total = total * 0.5 + sum(total * np.sin(x))
    np.testing.assert_allclose(
        interpret(program, {"x": x.tolist()})["output"], [total, np.sin(x) @ x], rtol=1e-13
    )
    assert str(count_program(program)).endswith(f" {N} trigonometric")


def test_values_of_different_sets_do_not_mix() -> None:
    def mixed(x: list[Scalar]) -> Scalar:
        one, two = scalar.rows(N, like=x), scalar.rows(N, like=x)
        a, b = (rows.stack([[y] for y in x])[rows.every][0] for rows in (one, two))
        return sum_all([a * b])

    with pytest.raises(TracingError, match="rows of different sets"):
        trace(mixed, [ArrayArgument("x", (N,))])


def test_a_wide_value_is_no_number() -> None:
    def bare(x: list[Scalar]) -> Scalar:
        rows = scalar.rows(N, like=x)
        return maximum(2.0 * rows.stack([[y] for y in x])[rows.every][0], 1.0)

    with pytest.raises(TracingError, match="used as one number"):
        trace(bare, [ArrayArgument("x", (N,))]).program()

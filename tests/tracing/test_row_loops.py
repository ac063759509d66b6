"""Loops over rows: what a trace records of them gives what plain Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.tracing.interpreter import interpret

from dalembert import scalar
from dalembert.scalar import Named, Scalar, Source, Write, absolute, select
from dalembert.tracing import ArrayArgument, trace

N = 7
RNG = np.random.default_rng(3)
X = RNG.normal(size=(5, N))
FIRST, SECOND = [0, 1, 2, 3, 4, 5, 0, 2], [1, 2, 3, 4, 5, 6, 6, 5]
REST = [0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7, 0.6]


def springs(x: list[Scalar]) -> list[Scalar]:
    """Forces of springs between places on a line that are nearer than one."""
    nodes = scalar.rows(N, like=x)
    pairs = scalar.rows(len(REST), like=x)
    at, rest = nodes.stack(x), pairs.numbers(REST)
    first, second = pairs.links(nodes, FIRST), pairs.links(nodes, SECOND)
    near = pairs.where(lambda i: absolute(at[second[i]] - at[first[i]]) < 1.0)

    def force(i: Any) -> Any:
        gap = at[second[i]] - at[first[i]]
        pull = select(absolute(gap) < 1.0, gap - rest[i], 0.0)
        yield first[i], [pull]
        yield second[i], [-pull]

    sums = near.scatter(force, nodes, [0.0])
    return [sums.at(k)[0] for k in range(N)]


def collected(x: list[Scalar]) -> list[Scalar]:
    """Sums over what two sources collect, with conditions and literals among their values."""
    nodes, points = scalar.rows(N, like=x), scalar.rows(2 * N, like=x)
    at = nodes.stack(x)
    one, two = (nodes.links(points, [2 * k + j for k in range(N)]) for j in range(2))
    weight = points.numbers([0.5 * k for k in range(2 * N)])

    def high(i: Any) -> Any:
        yield Named(one[i], at[i] > 0.0, [select(at[i] > 0.0, at[i], 0.0), 2.0, at[i] > 0.5])

    def both(i: Any) -> Any:
        yield Named(two[i], at[i] > -0.5, [select(at[i] > -0.5, at[i] * at[i], 0.0), 2.0, at[i] < 0.0])
        yield Named(one[i], at[i] > 1.0, [select(at[i] > 1.0, 1.0, 0.0), 2.0, at[i] > 9.0])

    named, values = points.collect([Source(nodes, high), Source(nodes, both)])

    def step(total: list[Scalar], k: Any) -> list[Scalar]:
        value, factor, flag = values[k]
        return [
            total[0] + value * factor * weight[k],
            select(flag, total[1] + value, total[1]),
            total[2] + (1.0 if value is None else 0.0),
        ]

    total = named.fold(step, [0.0, 0.0, 0.0])
    some = named.where(lambda k: values[k][0] > 0.3)
    return [
        *total,
        some.fold(lambda s, k: s + select(values[k][0] > 0.3, values[k][0] * weight[k], 0.0), 0.0),
    ]


def relaxed(x: list[Scalar]) -> list[Scalar]:
    """An iteration that carries a family and ends when hardly anything moves."""
    nodes = scalar.rows(N, like=x)
    left = nodes.links(nodes, [max(k - 1, 0) for k in range(N)])
    right = nodes.links(nodes, [min(k + 1, N - 1) for k in range(N)])
    ends = nodes.numbers([1.0, *[0.0] * (N - 2), 1.0])

    def step(carry: Any) -> Any:
        old, _ = carry
        new = nodes.each(
            lambda i: old[i] + (1.0 - ends[i]) * 0.4 * (old[left[i]] + old[right[i]] - 2.0 * old[i])
        )
        change = nodes.fold(lambda most, i: scalar.maximum(most, absolute(new[i] - old[i])), 0.0)
        return [new, change]

    found, change = scalar.loop(40, step, [nodes.stack(x), 1.0], until=lambda carry: carry[1] < 0.02)
    return [*(found.at(k) for k in range(N)), change]


def swung(x: list[Scalar]) -> list[Scalar]:
    """Springs that swing nodes until they have moved far: families that the step updates row by row, of which
    one exchanges its numbers, and sums and values from one pass."""
    nodes, pairs = scalar.rows(N, like=x), scalar.rows(len(REST), like=x)
    rest = pairs.numbers(REST)
    first, second = pairs.links(nodes, FIRST), pairs.links(nodes, SECOND)

    def step(carry: Any) -> Any:
        at, speed, strain, _ = carry

        def pull(i: Any) -> Any:
            force = at[second[i]][0] - at[first[i]][0] - rest[i]
            return [(first[i], force), (second[i], -force)], [strain[i][1], strain[i][0] + force]

        force, strain = pairs.scatter_each(pull, nodes, 0.0)
        speed = nodes.each(lambda i: speed[i] * 0.9 + 0.1 * force[i])
        at = nodes.each(lambda i: [at[i][1], at[i][0] + speed[i]])
        return [at, speed, strain, nodes.fold(lambda s, i: s + absolute(speed[i]), 0.0)]

    begun = [
        nodes.stack([[y, 0.5 * y] for y in x]),
        nodes.stack([0.0 * y for y in x]),
        pairs.stack([[x[0], x[1]] for _ in REST]),
        0.0,
    ]
    at, speed, strain, moved = scalar.loop(9, step, begun, until=lambda carry: carry[3] > 2.8)
    return [
        *(y for k in range(N) for y in [*at.at(k), speed.at(k)]),
        *(y for k in range(len(REST)) for y in strain.at(k)),
        moved,
    ]


def nested(x: list[Scalar]) -> list[Scalar]:
    """A loop and a branch in the step of rows, and rows in the step of rows."""
    nodes = scalar.rows(N, like=x)
    at = nodes.stack(x)

    def root(i: Any) -> Scalar:
        a = absolute(at[i]) + 0.1
        found = scalar.loop(30, lambda y: 0.5 * (y + a / y), a, until=lambda y: absolute(y * y - a) < 1e-12)
        more = nodes.fold(lambda s, k: s + at[k] * at[i], 0.0)
        twice = scalar.loop(1, lambda c: [c[0] * 2.0 + at[i], True], [found, a < 0.5], until=lambda c: c[1])[
            0
        ]
        return twice + more

    roots = nodes.each(root)
    return [roots.at(k) for k in range(N)]


def inputs(x: list[Scalar]) -> list[Scalar]:
    """Rows that are an input as it lies, and rows that are not."""
    nodes, pairs = scalar.rows(N, like=x), scalar.rows(3, like=x)
    at, turned = nodes.stack([[y] for y in x]), nodes.stack(x[::-1])
    two = pairs.stack([[x[2 * k], x[2 * k + 1]] for k in range(3)])
    total = nodes.fold(lambda s, i: s + at[i][0] * turned[i], 0.0)
    return [total, pairs.fold(lambda s, i: s + two[i][0] * two[i][1], 0.0)]


def packed(x: list[Scalar]) -> list[Scalar]:
    """The numbers above zero moved to the front, each sample its own, after a mark of the place they had."""
    nodes = scalar.rows(N, like=x)
    at, place = nodes.stack(x), nodes.numbers([float(k) for k in range(N)])

    def count(so_far: Scalar, i: Any) -> Any:
        return so_far + select(at[i] > 0.0, 1.0, 0.0), select(at[i] > 0.0, so_far, -1.0)

    total, target = nodes.scan(count, 0.0)
    empty = Write(nodes, lambda i: [(i, [-1.0, 0.0])])
    moved = nodes.write([empty, Write(nodes, lambda i: [(target[i], [place[i], at[i]])])])
    return [total, *(leaf for k in range(N) for leaf in moved.at(k))]


def ranged(x: list[Scalar]) -> list[Scalar]:
    """Runs of rows of another set, of different lengths, in a loop until they say so, and by a link."""
    nodes = scalar.rows(N, like=x)
    at = nodes.stack(x)
    groups = scalar.rows(4, like=x)
    runs, next_group = groups.ranges(nodes, [0, 2, 2, 6], [2, 4, 0, 1]), groups.links(groups, [1, 3, 0, 2])
    offset = groups.numbers([0.5, 1.5, 2.5, 3.5])

    def total(g: Any) -> Scalar:
        def step(carry: list[Scalar]) -> list[Scalar]:
            more = runs[g].fold(lambda s, k: s + at[k] * at[k] + offset[g], carry[0])
            return [runs[next_group[g]].fold(lambda s, k: s + at[k] * carry[1], more), carry[1] + 1.0]

        return scalar.loop(6, step, [0.0, 0.0], until=lambda carry: carry[0] > 4.0)[0]

    some = groups.where(lambda g: offset[g] < 3.0)
    return [groups.each(total).at(k) for k in range(4)] + [some.fold(lambda s, g: s + total(g), 0.0)]


def touched(x: list[Scalar], all_nodes: bool = False) -> list[Scalar]:
    """Forces of springs, summed twice to the nodes that near springs have, and sums of these to the same
    nodes and to some of them, named by their own rows; or all sums to all nodes."""
    nodes, pairs = scalar.rows(N, like=x), scalar.rows(len(REST), like=x)
    at, rest = nodes.stack(x), pairs.numbers(REST)
    first, second = pairs.links(nodes, FIRST), pairs.links(nodes, SECOND)
    is_near = lambda i: absolute(at[second[i]] - at[first[i]]) < 0.5
    near = pairs.where(is_near)

    def force(i: Any) -> Any:
        pull = select(is_near(i), at[second[i]] - at[first[i]] - rest[i], 0.0)
        yield first[i], [pull, 2.0]
        yield second[i], [-pull, 2.0]

    ends = near.scatter(lambda i: [(first[i], 1.0), (second[i], 1.0)], nodes, 0.0)
    some = nodes.where(lambda k: ends[k] > 0.5)
    high = some.where(lambda k: at[k] > 0.0)
    to_some, to_high = (nodes, nodes) if all_nodes else (some, high)

    def step(totals: list[Scalar]) -> list[Scalar]:
        sums = near.scatter(force, to_some, [0.0, 0.0])
        turned = some.scatter(lambda k: [(k, at[k] * sums[k][0])], to_some, 0.0)
        above = high.scatter(lambda k: [(k, select(at[k] > 0.0, sums[k][0], 0.0))], to_high, 0.0)
        absent = Write(nodes, lambda k: [(k, 0.0)])
        of_some = Write(some, lambda k: [(k, sums[k][0] + 0.5 * turned[k])])
        of_high = Write(high, lambda k: [(k, sums[k][0] + 0.5 * turned[k] + 0.25 * above[k])])
        found = nodes.write([absent, of_some, of_high])
        return [total + found.at(k) for k, total in enumerate(totals)]

    totals: list[Scalar] = scalar.loop(2, step, [0.0] * N)
    return totals


def searched(x: list[Scalar]) -> list[Scalar]:
    """Roots that a sample searches for its own near springs, by what differs between rows and samples."""
    nodes, pairs = scalar.rows(N, like=x), scalar.rows(len(REST), like=x)
    at, rest = nodes.stack(x), pairs.numbers(REST)
    first, second = pairs.links(nodes, FIRST), pairs.links(nodes, SECOND)
    gap = lambda i: absolute(at[second[i]] - at[first[i]])
    near = pairs.where(lambda i: gap(i) < 1.5)
    is_near = near.each(lambda i: gap(i) < 0.7)
    mean, table = sum(x, 0.0) / N, np.array([0.5, 1.5, 2.5])

    def search(i: Any) -> list[Scalar]:
        # Newton's method for y^2 = c from 1 + c, of which each row takes its own number of iterations.
        c = 1.0 + gap(i) * 40.0 * rest[i] + mean * mean
        step = lambda y: [0.5 * (y[0] + c / y[0]), y[1] + 1.0]
        root, count = scalar.loop(9, step, [1.0 + c, 0.0], until=lambda y: y[0] * y[0] < 1.01 * c)
        return [root, count, scalar.lookup(table, 2.9 * rest[i])]

    found = near.each_where(is_near.__getitem__, search)

    def add(i: Any) -> Any:
        root, count, entry = (select(is_near[i], y, 0.0) for y in found[i])
        yield first[i], [root + entry, count]

    sums = near.scatter(add, nodes, [0.0, 0.0])
    return [y for k in range(N) for y in sums.at(k)]


FUNCTIONS = [swung, springs, collected, relaxed, nested, inputs, packed, ranged, touched, searched]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_interpreted_rows_agree_with_plain_python(function: Callable[..., Any]) -> None:
    program = trace(function, [ArrayArgument("x", (N,))]).program()
    assert program.has_rows
    for x in X.tolist():
        expected = [float(y) for y in function(x)]
        assert interpret(program, {"x": x})["output"] == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("function", [swung, relaxed])
def test_samples_that_are_done_keep_the_families_that_a_loop_carries(function: Callable[..., Any]) -> None:
    """They end after different numbers of iterations, and the loop goes on until all have ended."""
    program = trace(function, [ArrayArgument("x", (N,))]).program()
    found = np.stack(interpret(program, {"x": list(X.T)})["output"], axis=1)
    expected = np.array([function(x) for x in X.tolist()], float)
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_batch_visits_the_rows_that_any_sample_names(function: Callable[..., Any]) -> None:
    batch = [np.asarray(function(x)) for x in X.tolist()]
    found = np.stack([np.broadcast_to(y, 5) for y in function(list(X.T))], axis=1)
    assert found == pytest.approx(np.stack(batch).astype(float), rel=1e-13, abs=1e-13)


def test_sums_to_collected_rows_are_those_to_all() -> None:
    """For numbers, arrays and traces; machine code gives what plain Python does."""
    forces = np.array([forces_of_near_springs(x) for x in X])
    assert 0 < (forces == 0.0).sum() < forces.size
    expected = 2.0 * (forces + 0.5 * X * forces + 0.25 * np.where(X > 0.0, forces, 0.0))
    for all_nodes in (False, True):
        function = lambda x, all_nodes=all_nodes: touched(x, all_nodes)
        program = trace(function, [ArrayArgument("x", (N,))]).program()
        for x, own in zip(X.tolist(), expected, strict=True):
            np.testing.assert_allclose(function(x), own, rtol=0.0, atol=1e-13)
            np.testing.assert_allclose(interpret(program, {"x": x})["output"], own, rtol=0.0, atol=1e-13)
        batch = np.stack([np.broadcast_to(y, 5) for y in function(list(X.T))], axis=1)
        np.testing.assert_allclose(batch, expected, rtol=0.0, atol=1e-13)


def forces_of_near_springs(x: np.ndarray) -> np.ndarray:
    forces = np.zeros(N)
    for i, k, rest in zip(FIRST, SECOND, REST, strict=True):
        pull = x[k] - x[i] - rest if abs(x[k] - x[i]) < 0.5 else 0.0
        forces[i] += pull
        forces[k] -= pull
    return forces

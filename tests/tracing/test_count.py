"""The operation counter."""

import pytest

from dalembert import scalar
from dalembert.tracing import (
    NO_RULES,
    ArrayArgument,
    Graph,
    OperationCount,
    count_operations,
    count_program,
    trace,
)


@pytest.fixture
def inputs():
    graph = Graph()
    return [graph.input("x", k) for k in range(4)]


def test_each_kind_is_counted_in_its_place(inputs):
    """RBDA-10.3-COUNTER: m includes divisions, a includes subtractions, sines and cosines are apart."""
    x, y, z, w = inputs
    roots = [
        x * y - z,
        (x + w) / y,
        scalar.sqrt(z),
        scalar.sin(x) * scalar.cos(x),
        scalar.minimum(x, scalar.exp(y)),
    ]
    assert count_operations(roots) == OperationCount(
        multiplications=3, additions=2, divisions=1, square_roots=1, trigonometric=2, other=2
    )


def test_negation_is_free(inputs):
    """RBDA-10.3-COUNTER"""
    x, y, *_ = inputs
    assert count_operations([-x, -(x * y), y - x, -(y - x)]).total == 2


def test_shared_operations_count_once_and_dead_ones_never(inputs):
    """RBDA-10.3-COUNTER, RBDA-10.4-SYMBOLIC"""
    x, y, z, w = inputs
    dead = x * y * z * w
    assert dead.index > 0
    assert count_operations([x * w + y, x * w - y]) == OperationCount(multiplications=1, additions=2)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_dense_products_have_their_textbook_counts(n):
    """RBDA-10.3-COUNTER: an n x n matrix times a vector is n² m + n (n - 1) a."""

    def product(A, x):
        return [sum((A[i][k] * x[k] for k in range(1, n)), A[i][0] * x[0]) for i in range(n)]

    count = count_program(trace(product, [ArrayArgument("A", (n, n)), ArrayArgument("x", (n,))]).program())
    assert (count.multiplications, count.additions) == (n * n, n * (n - 1))


def test_counts_add_multiply_and_print():
    one = OperationCount(multiplications=4, additions=3, divisions=1, square_roots=1)
    assert one + one == 2 * one
    assert (one + one).total == 14
    assert str(one) == "4 m (of which 1 divisions) + 3 a, 1 sqrt"
    assert str(OperationCount(93, 81)) == "93 m + 81 a"


def test_fused_operations_count_as_two():
    graph = Graph(NO_RULES)
    x = graph.input("x", 0)
    assert count_operations([graph.operation("fma", x, x, x)]) == OperationCount(1, 1)

"""Operation counts of the dynamics on GU(n), beside the best published lines (Featherstone 2008 Table 10.1).

m counts multiplications and divisions, a additions and subtractions; sines and cosines are not counted, a
change of sign is free. Every count is exact, and each of m and a is held to the book's figure by itself.
"""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import inertia, rotation

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Revolute
from dalembert.models import gu
from dalembert.spatial import Transform

LENGTHS = (2, 3, 4, 5, 6, 7, 8, 12, 20, 30)


def scattered(n):
    """GU(n) with arbitrary frames and axes, from which the aligned frames must first be found."""
    rng = np.random.default_rng(n)
    builder = ModelBuilder(gravity=(1.0, 2.0, -9.0))
    for i in range(n):
        builder.add_body(
            f"b{i}",
            parent=f"b{i - 1}" if i else "world",
            joint=Revolute(rng.normal(size=3).tolist()),
            placement=Transform.from_rotation_translation(
                rotation(rng).tolist(), rng.normal(size=3).tolist()
            ),
            inertia=inertia(rng),
        )
    return builder.build()


@pytest.mark.parametrize("make", [gu, scattered])
@pytest.mark.parametrize("n", LENGTHS)
def test_inverse_dynamics(n, make):
    """RBDA-10.3-RNEA, RBDA-10.3-COUNTER: at most (93n - 108) m + (81n - 100) a."""
    tree = aligned(make(n))
    found = count(lambda q, v, a: inverse_dynamics(tree, q, v, a), q=n, v=n, a=n)
    assert found.multiplications <= 93 * n - 108
    assert found.additions <= 81 * n - 100


@pytest.mark.parametrize("make", [gu, scattered])
@pytest.mark.parametrize("n", LENGTHS)
def test_mass_matrix(n, make):
    """RBDA-10.3-CRBA, RBDA-10.3-OPTIM: at most (n-1)(ra + rx) + n(n-1)/2 vx, ra = 10a, rx = 32m + 33a, vx =
    20m + 12a.
    """
    tree = aligned(make(n))
    found = count(lambda q: mass_matrix(tree, q), q=n)
    m, a = 32 * (n - 1) + 10 * n * (n - 1), 43 * (n - 1) + 6 * n * (n - 1)
    assert (m, a) == (10 * n**2 + 22 * n - 32, 6 * n**2 + 37 * n - 43)
    assert found.multiplications <= m
    assert found.additions <= a


@pytest.mark.parametrize("make", [gu, scattered])
@pytest.mark.parametrize("n", LENGTHS)
def test_forward_dynamics(n, make):
    """RBDA-10.3-ABA: at most (224n - 259) m + (205n - 248) a."""
    tree = aligned(make(n))
    found = count(lambda q, v, t: forward_dynamics(tree, q, v, t), q=n, v=n, t=n)
    assert found.multiplications <= 224 * n - 259
    assert found.additions <= 205 * n - 248


def test_fixed_and_free_parts_cost_what_they_move():
    """RBDA-10.3-OPTIM: a mass on the base costs nothing; bodies on the base have a constant diagonal H."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    for i in range(4):
        builder.add_body(
            f"b{i}", parent="world", joint=Revolute(rng.normal(size=3).tolist()), inertia=inertia(rng)
        )
    tree = aligned(builder.build())
    found = count(lambda q: mass_matrix(tree, q), q=4)
    assert found.multiplications == 0
    assert found.additions == 0

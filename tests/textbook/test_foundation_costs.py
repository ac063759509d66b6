"""What the algorithms of the book's first chapters cost, by count."""

import numpy as np
import pytest
from tests.algorithms.counting import count

from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.mass_matrix import mass_matrix_by_columns
from dalembert.algorithms.open_tree import matrix_density
from dalembert.algorithms.sparse import factor_ltdl, operation_sums, solve_ltdl
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import (
    Revolute,
)
from dalembert.models import gu
from dalembert.spatial import RigidInertia


def test_cost_of_building_and_of_solving_the_equation_of_motion():
    """ANIM-COMPLEX: N inverse dynamics are O(N^2), a dense solution is O(N^3), by counters."""

    def costs(n):
        tree = aligned(gu(n))
        chain = [k - 1 for k in range(n)]
        build = count(lambda q: mass_matrix_by_columns(tree, q), q=n).total
        solve = count(lambda H, b: solve_ltdl(*factor_ltdl(H, chain), chain, b), H=(n, n), b=n).total
        return np.array([build, solve])

    small, middle, large, huge = (costs(n) for n in (4, 8, 16, 32))
    build = (large - middle)[0] / (middle - small)[0], (huge - large)[0] / (large - middle)[0]
    assert build[1] == pytest.approx(4.0, rel=0.1)
    assert abs(build[1] - 4.0) <= abs(build[0] - 4.0)
    assert (huge - large)[1] / (large - middle)[1] == pytest.approx(8.0, rel=0.2)


@pytest.mark.parametrize("branches", [2, 3, 5])
def test_cost_follows_the_density_and_its_square(branches):
    """RBDA-6.4-SPARSITY: b equal chains on the base have density 1/b; products cost 1/b, factors 1/b^2."""
    links = 24
    builder = ModelBuilder()
    solid = RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    for branch in range(branches):
        for k in range(links):
            parent = f"{branch}.{k - 1}" if k else "world"
            builder.add_body(f"{branch}.{k}", parent, Revolute(), inertia=solid)
    model = builder.build()
    n = model.nv
    assert matrix_density(model) == pytest.approx(1.0 / branches)
    D1, D2 = operation_sums(list(model.parents))
    dense_D1, dense_D2 = operation_sums([k - 1 for k in range(n)])
    assert (n + 2 * D1) / (n + 2 * dense_D1) == pytest.approx(1.0 / branches)
    assert D2 / dense_D2 == pytest.approx(1.0 / branches**2, rel=0.01)


@pytest.mark.parametrize("n", [2, 6, 9])
def test_the_parts_of_the_composite_body_algorithm_cost_what_the_book_sums(n):
    """RBDA-10.3-CRBA, RBDA-10.3-OPTIM: ra = 10a, rx = 2(15m + 15a) + 2m + 3a and vx = 20m + 12a by
    counters; (n-1)(ra + rx) + n(n-1)/2 vx is Eq. 10.3, n = 6: 460m + 395a.
    """
    from tests.spatial.counting import Counted, Tally
    from tests.spatial.dense import Random

    from dalembert.spatial import AxialScrew, ScrewChain

    random, tally = Random(1), Tally()

    def counted(value):
        return value.rebuilt(Counted(float(x), tally) for x in value.leaves())

    def cost(use):
        tally.reset()
        use()
        return np.array([tally.m, tally.a])

    def screw(axis):
        return AxialScrew(axis, *[Counted(float(x), tally) for x in random.vector(3)])

    x, z = screw(0), screw(2)
    _ = x.turn  # constant: the x screw of a link holds its parameters, the z screw its variable
    I, f, other = counted(random.rigid()[0]), counted(random.force()[0]), counted(random.rigid()[0])
    ra = cost(lambda: I + other)
    rx = cost(lambda: ScrewChain((x, z)).inverse_apply(I))
    vx = cost(lambda: ScrewChain((x, z)).inverse_apply(f))
    assert ra.tolist() == [0, 10]
    assert vx.tolist() == [20, 12]
    # Each screw transforms the inertia for 16m + 15a; with the product m d of its mass and shift known,
    # which the rigid inertia of one body allows and the book assumes, for 15m + 15a.
    assert rx.tolist() == [2 * 16 + 2, 2 * 15 + 3]
    rx = rx - [2, 0]
    total = (n - 1) * (ra + rx) + n * (n - 1) // 2 * vx
    assert total.tolist() == [10 * n**2 + 22 * n - 32, 6 * n**2 + 37 * n - 43]
    assert n != 6 or total.tolist() == [460, 395]

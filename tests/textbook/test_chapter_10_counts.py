"""Operation counts of the dynamics on GU(n), beside the best published lines (Featherstone 2008 Table 10.1).

m counts multiplications and divisions, a additions and subtractions; sines and cosines are not counted, a
change of sign is free. Every count is exact, and each of m and a is held to the book's figure by itself.
"""

from itertools import pairwise

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import inertia, rotation

from dalembert import analysis, textbook
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.model import topology
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Revolute
from dalembert.models import four_bar, gu
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


def test_published_totals_cross_where_the_book_says():
    """RBDA-10.3-CROSSOVER: RNEA + CRBA + F&S against ABA: 2921 and 2925 at n = 8, 3539 and 3354 at n = 9,
    1.64 times as much at n = 18; F&S is the smallest part up to 18 and overtakes CRBA at 45; CRBA is the
    greatest from 6 on (the text says 8).
    """
    totals = {n: (textbook.chain_total(n).total, textbook.published("ABA", n).total) for n in (8, 9, 18)}
    assert totals[8] == (2921, 2925)
    assert totals[9] == (3539, 3354)
    assert totals[18][0] / totals[18][1] == pytest.approx(1.64, abs=0.005)
    assert textbook.crossovers() == (9, 6, 18, 45)
    six = {name: textbook.published(name, 6) for name in ("RNEA", "CRBA", "F&S", "ABA")}
    expected = {"RNEA": (450, 386), "CRBA": (460, 395), "F&S": (86, 65), "ABA": (1085, 982)}
    assert six == expected


def test_our_counts_are_below_every_line_of_table_10_1():
    """RBDA-10.3-CROSSOVER: thirteen lines, whole numbers of operations; the one of 1989 for CRBA is below Eq.
    10.3, which the book's figures use, up to n = 32.
    """
    assert len(textbook.TABLE_10_1) == 13
    functions = {"RNEA": "inverse_dynamics", "CRBA": "mass_matrix", "ABA": "forward_dynamics"}
    for n in (3, 6, 12):
        ours = {name: analysis.count_function(gu(n), function) for name, function in functions.items()}
        for line in textbook.TABLE_10_1:
            if line.algorithm in ours:
                assert ours[line.algorithm].total < line.cost(n).total
    odd = next(line for line in textbook.TABLE_10_1 if "65n/2" in line.formula)
    assert odd.cost(3) == (90, 93)
    cheaper = [n for n in range(2, 60) if odd.cost(n).total < textbook.published("CRBA", n).total]
    assert cheaper[-1] == 32


def test_our_counts_cross_near_the_book_s():
    """RBDA-10.3-CROSSOVER: ours, counted: the mass-matrix method is the cheaper one up to n = 8 as well."""
    found = {}
    for n in range(2, 13):
        model = gu(n)
        found[n] = {
            "RNEA": analysis.count_function(model, "inverse_dynamics").total,
            "CRBA": analysis.count_function(model, "mass_matrix").total,
            "F&S": analysis.factoring_count(model).total,
            "ABA": analysis.count_function(model, "forward_dynamics", "aba").total,
            "matrix": analysis.count_function(model, "forward_dynamics", "crba").total,
        }
        for name in ("RNEA", "CRBA", "ABA"):
            assert found[n][name] <= textbook.published(name, n).total
        assert found[n]["F&S"] == textbook.published("F&S", n).total
        assert found[n]["matrix"] <= textbook.chain_total(n).total
    crossing = textbook.crossovers(lambda name, n: found[n][name], numbers=tuple(found))
    assert crossing.aba_cheaper == 9
    assert crossing.factoring_smallest is None  # up to the end of the series


def test_costs_of_branches():
    """RBDA-10.3-BRANCH: Eqs 10.4 to 10.12; a chain gives Eq. 10.3, bodies on the base cost nothing."""
    for n in (2, 5, 13):
        chain = textbook.branch_sums([i - 1 for i in range(n)])
        assert (n - 1, n * (n - 1) // 2) == (chain.D0, chain.D1)
        assert (chain.D0_general, chain.D1_general) == (0, 0)
        assert textbook.branched_crba(chain) == textbook.published("CRBA", n)
        assert textbook.factor_and_solve(chain) == textbook.published("F&S", n)
        star = textbook.branch_sums([-1] * n)
        assert (star.D0, star.D1, star.D2) == (0, 0, 0)
        assert textbook.branched_crba(star) == (0, 0)
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 20))
        parents = [int(rng.integers(-1, i)) if i else -1 for i in range(n)]
        sums = textbook.branch_sums(parents)
        support = [len(topology.support(tuple(parents), i)) for i in range(n)]
        assert n - sum(parent < 0 for parent in parents) == sums.D0
        assert sums.D0_dh + sums.D0_general == sums.D0
        assert sums.D1 == sum(k - 1 for k in support) == sums.D1_dh + sums.D1_general
        tree = tuple(parents)
        sizes = [sorted(len(topology.subtree(tree, k)) for k in topology.children(tree, i)) for i in range(n)]
        # Of the children of a body the one that carries most has the cheap transform (Eq. 10.11).
        assert sums.D0_dh == sum(1 for own in sizes if own)
        assert sums.D1_dh == sum(own[-1] for own in sizes if own)
        assert sums.D1_general == sum(sum(own[:-1]) for own in sizes)
        assert sums.depth == max(support)
        assert 0 <= sums.D0 <= n - 1
        assert 0 <= sums.D1 <= n * (sums.depth - 1)


@pytest.mark.parametrize("seed", range(4))
def test_our_mass_matrix_costs_less_than_the_branch_formula(seed):
    """RBDA-10.3-BRANCH: m and a of CRBA on random trees of general revolute joints, at most Eq. 10.12;
    factors and solve cost exactly (n + 3 D1 + D2) m + (2 D1 + D2) a.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 13))
    model = analysis.general_tree([int(rng.integers(-1, i)) if i else -1 for i in range(n)])
    sums = textbook.tree_sums(model)
    book = textbook.branched_crba(sums)
    ours = analysis.count_function(model, "mass_matrix")
    assert ours.multiplications <= book.multiplications
    assert ours.additions <= book.additions
    factors = analysis.factoring_count(model)
    assert (factors.multiplications, factors.additions) == textbook.factor_and_solve(sums)


def test_a_binary_tree_makes_the_mass_matrix_method_almost_linear():
    """RBDA-10.3-BINARY: n = 31: 12,477 operations against 12,792 of ABA and 34,592 on a chain; n log^2 n."""
    binary = {n: textbook.branch_sums([(i - 1) // 2 for i in range(n)]) for n in (31, 63, 127, 255, 511)}
    assert textbook.branched_total(binary[31]).total == 12477
    assert textbook.published("ABA", 31).total == 12792
    assert textbook.chain_total(31).total == 34592
    per_body = [textbook.branched_total(sums).total / n for n, sums in binary.items()]
    growth = [b / a for a, b in pairwise(per_body)]
    assert all(1.0 < ratio < 1.15 for ratio in growth)  # log2^2 of n would give less than 1.44 and falling
    assert growth == sorted(growth, reverse=True)
    model = analysis.binary_tree(31)
    matrix = analysis.count_function(model, "forward_dynamics", "crba").total
    aba = analysis.count_function(model, "forward_dynamics", "aba").total
    assert matrix <= textbook.branched_total(binary[31]).total
    assert 0.8 < matrix / aba < 1.0


def test_loops_and_mimic_joints_are_counted():
    """RBDA-10.3-COUNTER: a closed four-bar by its methods; a geared pair costs less than two free joints."""
    found = {row.method: row for row in analysis.count_methods(four_bar(), ["forward_dynamics"])}
    assert found["range_space"].count.total > 0
    assert found["aba"].count is None
    assert "constraints" in found["aba"].reason
    builder = ModelBuilder()
    rng = np.random.default_rng(3)
    for i in range(2):
        builder.add_body(f"b{i}", f"b{i - 1}" if i else "world", Revolute((0.0, 0.0, 1.0)), f"j{i}",
                         placement=Transform.from_rotation_translation(rotation(rng).tolist(), [0.3, 0, 0.2]),
                         inertia=inertia(rng))  # fmt: skip
    free = builder.build()
    builder.add_coupling("gear", {"j0": 1.0, "j1": -2.0})
    geared = builder.build()
    assert analysis.factoring_count(geared).total < analysis.factoring_count(free).total
    assert analysis.count_function(geared, "forward_dynamics").total > 0

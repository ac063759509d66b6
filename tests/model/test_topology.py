"""Parent arrays, their sets, numberings and spanning trees. The book's numbers are one more than ours."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from dalembert.errors import ArgumentError, ModelError, UnknownNameError
from dalembert.model import topology
from dalembert.model.topology import ConnectivityGraph

# Figure 4.6. The text fixes all but the parents of bodies 6 and 7, which lie in the subtree of body 4.
FIGURE_4_6 = (-1, 0, 0, -1, 2, 3, 5, 3)

CRANK_SLIDER = ConnectivityGraph(
    {"J1": ("base", "B1"), "J2": ("B1", "B2"), "J3": ("B2", "B3"), "J4": ("base", "B3")}, base="base"
)


def book(numbers: frozenset[int]) -> set[int]:
    return {number + 1 for number in numbers}


def random_parents(rng: np.random.Generator, n: int) -> tuple[int, ...]:
    return tuple(int(rng.integers(-1, i)) for i in range(n))


def is_regular(parents: Sequence[int]) -> bool:
    """Return whether every body comes after its parent: -1 <= lambda(i) < i."""
    return all(-1 <= parent < i for i, parent in enumerate(parents))


def variable_support(parents: Sequence[int], dofs: Sequence[int], i: int) -> tuple[int, ...]:
    """Return the velocity variables that move body i, ascending: its nonzero Jacobian columns."""
    first = [0, *itertools.accumulate(dofs)]
    return tuple(k for j in sorted(topology.support(parents, i)) for k in range(first[j], first[j + 1]))


def test_sets_of_figure_4_6() -> None:
    """RBDA-4.1-ARRAYS"""
    assert [book(topology.support(FIGURE_4_6, i)) for i in (0, 1, 2, 7)] == [{1}, {1, 2}, {1, 3}, {4, 8}]
    assert book(topology.children(FIGURE_4_6, -1)) == {1, 4}
    assert book(topology.children(FIGURE_4_6, 0)) == {2, 3}
    assert book(topology.children(FIGURE_4_6, 1)) == book(topology.children(FIGURE_4_6, 7)) == set()
    assert book(topology.subtree(FIGURE_4_6, -1)) == set(range(9))
    assert [book(topology.subtree(FIGURE_4_6, i)) for i in (0, 1, 7)] == [{1, 2, 3, 5}, {2}, {8}]


@pytest.mark.parametrize(
    ("p", "s", "parents"),
    [((-1, 0, 1, -1), (0, 1, 2, 2), (-1, 0, 1)), ((-1, -1, 0, 2), (0, 1, 2, 1), (-1, -1, 0))],
)
def test_parent_arrays_of_figure_4_5(
    p: tuple[int, ...], s: tuple[int, ...], parents: tuple[int, ...]
) -> None:
    """RBDA-4.1-ARRAYS: lambda = [0, 1, 2] and [0, 0, 1]."""
    assert topology.parent_array(p, s, 3) == parents


def test_parent_is_the_lesser_of_predecessor_and_successor_whatever_the_polarity() -> None:
    """RBDA-4.1-ARRAYS, RBDA-4.1-POLARITY: joint 4 of Figure 4.6 is reversed."""
    p, s = list(FIGURE_4_6), list(range(8))
    p[3], s[3] = s[3], p[3]
    assert topology.parent_array(p, s, 8) == FIGURE_4_6


def test_parent_array_refuses_a_joint_that_does_not_end_at_its_body() -> None:
    """RBDA-4.1-NUMBER"""
    with pytest.raises(ModelError, match="tree joint i must connect body i to its parent"):
        topology.parent_array((-1, 0, 0), (0, 1, 1), 3)


def test_sum_over_supports_equals_sum_over_subtrees() -> None:
    """RBDA-4.1-ARRAYS: Eq. 4.3, with epsilon of Eq. 4.5."""
    rng = np.random.default_rng(1)
    for n in (1, 5, 40):
        parents = random_parents(rng, n)
        weight = rng.standard_normal((n, n))
        by_support = sum(weight[i, j] for i in range(n) for j in topology.support(parents, i))
        by_subtree = sum(weight[i, j] for j in range(n) for i in topology.subtree(parents, j))
        by_epsilon = sum(weight[i, j] * topology.supports(parents, i, j) for i in range(n) for j in range(n))
        assert by_support == pytest.approx(by_subtree, rel=1e-12)
        assert by_support == pytest.approx(by_epsilon, rel=1e-12)


def test_children_lie_in_the_subtree_and_support_is_its_inverse() -> None:
    """RBDA-4.1-ARRAYS"""
    parents = random_parents(np.random.default_rng(2), 30)
    for i in range(30):
        assert topology.children(parents, i) <= topology.subtree(parents, i)
        for j in range(30):
            assert (j in topology.support(parents, i)) == (i in topology.subtree(parents, j))
    assert topology.depths(parents) == tuple(len(topology.support(parents, i)) for i in range(30))


def test_crank_slider_has_one_loop_and_four_spanning_trees() -> None:
    """RBDA-4.1-GRAPH, RBDA-4.1-SPANTREE: N_L = N_J - N_B = 1."""
    assert (len(CRANK_SLIDER.bodies), len(CRANK_SLIDER.joints), CRANK_SLIDER.loop_count) == (3, 4, 1)
    trees = list(CRANK_SLIDER.spanning_trees())
    assert len(trees) == len(set(trees)) == 4
    for tree in trees:
        assert CRANK_SLIDER.loop(tree, *CRANK_SLIDER.chords(tree)) == set(CRANK_SLIDER.joints)


def test_a_loop_leaves_out_the_joints_that_both_its_ends_share() -> None:
    """RBDA-4.1-SPANTREE: a one-chord cycle that does not pass through the base."""
    graph = ConnectivityGraph(
        {
            "stem": ("world", "a"),
            "left": ("a", "b"),
            "right": ("a", "c"),
            "twig": ("b", "d"),
            "chord": ("c", "b"),
        }
    )
    tree = frozenset({"stem", "left", "right", "twig"})
    assert graph.loop(tree, "chord") == {"left", "right", "chord"}


def test_crank_slider_admits_exactly_eight_numberings() -> None:
    """RBDA-4.1-NUMBER: one for each unbranched tree, three for each tree that branches at the root."""
    by_tree = [list(CRANK_SLIDER.numberings(tree)) for tree in CRANK_SLIDER.spanning_trees()]
    assert sorted(map(len, by_tree)) == [1, 1, 3, 3]
    everything = {numbering for numberings in by_tree for numbering in numberings}
    assert len(everything) == 8
    for numbering in everything:
        assert is_regular(numbering.parents)
        assert topology.parent_array(numbering.predecessors, numbering.successors, 3) == numbering.parents
    assert (-1, 0, 1) in {n.parents for n in everything}
    assert (-1, -1, 0) in {n.parents for n in everything}


def test_number_of_spanning_trees_is_a_cofactor_of_the_laplacian() -> None:
    """RBDA-4.1-SPANTREE: Kirchhoff's theorem as the oracle."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        nodes = ["world", *"abcde"]
        pairs = [("world", "a"), *((nodes[int(rng.integers(i))], nodes[i]) for i in range(2, 6))]
        pairs += [tuple(rng.choice(nodes, 2, replace=False)) for _ in range(3)]
        graph = ConnectivityGraph({f"j{k}": (str(p), str(s)) for k, (p, s) in enumerate(pairs)})
        laplacian = np.zeros((6, 6))
        for p, s in graph.joints.values():
            i, j = nodes.index(p), nodes.index(s)
            laplacian[[i, j], [i, j]] += 1
            laplacian[[i, j], [j, i]] -= 1
        assert len(list(graph.spanning_trees())) == round(np.linalg.det(laplacian[1:, 1:]))


def test_minimum_depth_tree_reaches_every_body_by_a_shortest_path() -> None:
    """RBDA-4.1-SPANTREE"""
    ring = [f"b{i}" for i in range(7)]
    joints = {f"j{i}": (p, s) for i, (p, s) in enumerate(itertools.pairwise(["world", *ring]))}
    graph = ConnectivityGraph(joints | {"chord": ("b6", "world")})
    tree = graph.minimum_depth_tree()
    depth = max(topology.depths(next(graph.numberings(tree)).parents))
    assert depth == 4 < 7
    deepest = [max(topology.depths(next(graph.numberings(t)).parents)) for t in graph.spanning_trees()]
    assert depth == min(deepest)


def test_satellite_floats_by_a_joint_of_six_freedoms() -> None:
    """RBDA-4.1-GRAPH: the satellite of Figure 4.1 has 6 + n_s degrees of freedom."""
    from dalembert.model import ModelBuilder
    from dalembert.model.joints import Free, Revolute

    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("satellite", "world", Free())
    builder.add_body("dish", "satellite", Revolute())
    assert builder.build().nv == 6 + 1


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        ({"j": ("world", "world")}, 'joint "j" connects body "world" to itself'),
        ({"j": ("a", "b")}, 'no joint connects to the base "world"'),
        ({"j": ("world", "a"), "k": ("b", "c")}, "bodies b, c are not connected to the base"),
    ],
)
def test_graph_must_be_connected(joints: dict[str, tuple[str, str]], message: str) -> None:
    """RBDA-4.1-GRAPH"""
    with pytest.raises(ModelError, match=message):
        ConnectivityGraph(joints)


def test_graph_refuses_what_is_no_spanning_tree() -> None:
    """RBDA-4.1-SPANTREE"""
    with pytest.raises(ModelError, match="not a spanning tree"):
        next(CRANK_SLIDER.numberings(frozenset({"J1", "J2"})))
    with pytest.raises(UnknownNameError, match="nearest"):
        CRANK_SLIDER.loop(frozenset({"J1", "J2", "J3"}), "J44")


def test_regular_order_keeps_to_the_given_order_where_it_can() -> None:
    """RBDA-4.1-NUMBER"""
    rng = np.random.default_rng(4)
    for _ in range(20):
        parents = random_parents(rng, 25)
        shuffle = rng.permutation(25)
        place = {int(old): new for new, old in enumerate(shuffle)} | {-1: -1}
        scrambled = [place[parents[int(old)]] for old in shuffle]
        order = topology.regular_order(scrambled)
        renumbered = {old: new for new, old in enumerate(order)} | {-1: -1}
        assert is_regular([renumbered[scrambled[old]] for old in order])
        assert topology.regular_order(parents) == list(range(25))
        # Two neighbours that are out of the given order are so only because one is the other's parent.
        assert all(a < b or scrambled[b] == a for a, b in itertools.pairwise(order))


def test_cycles_are_found_and_named() -> None:
    """RBDA-4.1-NUMBER"""
    parents = (-1, 0, 4, 2, 3, 0)
    assert Counter(topology.find_cycle(parents)[:-1]) == Counter([2, 3, 4])
    assert topology.find_cycle((-1, 0, 1)) == []
    with pytest.raises(ModelError, match="form a cycle"):
        topology.regular_order(parents)
    with pytest.raises(ModelError, match="body 1 has parent 2"):
        topology.validate_numbering((-1, 2, 0))
    with pytest.raises(ArgumentError, match="body 0 has parent 7"):
        topology.regular_order((7,))


def test_long_chains_need_no_recursion() -> None:
    """RBDA-4.1-NUMBER"""
    n = 20_000
    scrambled = [*range(1, n), -1]
    assert topology.regular_order(scrambled) == list(range(n - 1, -1, -1))
    chain = range(-1, n - 1)
    assert len(topology.support(chain, n - 1)) == len(topology.subtree(chain, 0)) == n
    assert topology.find_cycle([*range(1, n), 0])[0] == 0


def test_expanded_parent_array_of_table_6_4() -> None:
    """RBDA-6.5-EXPAND: lambda' = (0, 1, 2, 3, 1, 4, 4, 5), map = (0, 1, 4, 5, 6, 7, 8)."""
    parents = [i - 1 for i in (0, 1, 1, 2, 2, 3)]
    expanded, last = topology.expand_parents(parents, (1, 3, 1, 1, 1, 1))
    assert [i + 1 for i in expanded] == [0, 1, 2, 3, 1, 4, 4, 5]
    assert [0, *(i + 1 for i in last)] == [0, 1, 4, 5, 6, 7, 8]


def test_expanded_parents_describe_which_variables_move_which() -> None:
    """RBDA-6.5-EXPAND: also with joints of no freedom, which the table leaves out."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        parents = random_parents(rng, 15)
        dofs = rng.integers(0, 4, 15).tolist()
        expanded, last = topology.expand_parents(parents, dofs)
        assert len(expanded) == sum(dofs)
        assert is_regular(expanded)
        for i in range(15):
            moving = variable_support(parents, dofs, i)
            assert set(moving) == (topology.support(expanded, last[i]) if last[i] >= 0 else set())
    with pytest.raises(ArgumentError, match="2 parents but 1 joint freedoms"):
        topology.expand_parents((-1, 0), (1,))


def test_joint_paths_meet_at_the_nearest_common_ancestor() -> None:
    """RBDA-4.1-SPANTREE: the joints of a one-chord loop."""
    parents = random_parents(np.random.default_rng(6), 30)
    for i, j in itertools.product(range(-1, 30), repeat=2):
        to_i, to_j = topology.joint_paths(parents, i, j)
        assert set(to_i) == topology.support(parents, i) - topology.support(parents, j)
        assert set(to_j) == topology.support(parents, j) - topology.support(parents, i)

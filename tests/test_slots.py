"""Slots: values of a pass that are needed at the same time never share one, and few are enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert.compiler.tables import carry_slots, sum_slots

WORLD = -1


@st.composite
def parent_arrays(draw):
    """Trees of up to 60 bodies, numbered in any order that has parents first."""
    count = draw(st.integers(1, 60))
    return [draw(st.integers(WORLD, body - 1)) for body in range(count)]


def chain(count):
    return list(range(-1, count - 1))


def star(count):
    return [WORLD] * count


def comb(count):
    """A chain whose every link bears a leaf before it goes on."""
    parents = []
    for link in range(count):
        parents += [2 * link - 2 if link else WORLD, 2 * link]
    return parents


def perfect_binary(depth):
    """In depth-first order, so that a branch is finished before the next one begins."""
    parents = []

    def grow(parent, levels):
        body = len(parents)
        parents.append(parent)
        if levels > 1:
            grow(body, levels - 1)
            grow(body, levels - 1)

    grow(WORLD, depth)
    return parents


@given(parent_arrays())
def test_every_body_reads_what_its_parent_sent(parents):
    """An outward pass over slots: read the parent's, then write the own, which may be the same."""
    own, above, count = carry_slots(parents)
    memory: list[object] = ["never written"] * count
    memory[0] = WORLD
    for body, parent in enumerate(parents):
        assert memory[above[body]] == parent
        memory[own[body]] = body


@given(parent_arrays())
def test_every_body_reads_the_sum_of_its_children(parents):
    """An inward pass over slots: read the own sum, clear it, then add to the parent's, as the loops do."""
    own, above, count = sum_slots(parents)
    memory: list[list[int]] = [[] for _ in range(count)]
    for body in reversed(range(len(parents))):
        children = [child for child, parent in enumerate(parents) if parent == body]
        assert sorted(memory[own[body]]) == children
        memory[own[body]] = []
        memory[above[body]].append(body)
    assert sorted(memory[0]) == [body for body, parent in enumerate(parents) if parent == WORLD]
    assert not any(memory[1:])


@pytest.mark.parametrize("slots", [carry_slots, sum_slots])
@given(parents=parent_arrays())
def test_tables_agree_and_no_slot_is_idle(slots, parents):
    own, above, count = slots(parents)
    assert own.dtype == above.dtype == np.int64
    assert [above[body] for body in range(len(parents))] == [0 if p == WORLD else own[p] for p in parents]
    assert {0, *own.tolist()} == set(range(count))


@given(parent_arrays())
def test_carries_take_no_more_slots_than_are_needed_at_once(parents):
    """A carry is needed from its body until the last child; one without children, while it is written."""
    last_reader = {parent: child for child, parent in enumerate(parents)}
    needed = [
        1 + sum(earlier < body < last_reader.get(earlier, earlier) for earlier in range(WORLD, body))
        for body in range(len(parents))
    ]
    assert carry_slots(parents)[2] == max(needed)


@given(parent_arrays())
def test_sums_take_no_more_slots_than_are_needed_at_once(parents):
    """A sum is needed from the body's last child until the body; the world's, from the beginning."""
    begun, most = {WORLD}, 1
    for body in reversed(range(len(parents))):
        begun.add(body)
        most = max(most, len(begun))
        begun.remove(body)
        begun.add(parents[body])
        most = max(most, len(begun))
    assert sum_slots(parents)[2] == most


@pytest.mark.parametrize(
    ("parents", "carries", "sums"),
    [
        pytest.param(chain(1000), 1, 2, id="chain"),
        pytest.param(star(50), 2, 2, id="star"),
        pytest.param(comb(50), 2, 3, id="comb"),
        pytest.param(perfect_binary(6), 6, 7, id="perfect binary tree of six levels"),
    ],
)
def test_slots_of_known_trees(parents, carries, sums):
    """The world's slot included: a chain hands on in one slot, and a tree needs one for each open branch."""
    assert carry_slots(parents)[2] == carries
    assert sum_slots(parents)[2] == sums

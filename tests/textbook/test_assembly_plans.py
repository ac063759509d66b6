"""The orders in which bodies are assembled."""

import math

import pytest
from tests.algorithms.trees import random_tree

import dalembert as da
from dalembert.textbook.recursive_assembly import plan_in_pairs, plan_one_by_one

SOLID = da.RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
CHAINS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32)


def bodies_of(plan, n):
    """The bodies in every part, and a check that each part and each joint is used once."""
    held = [{i} for i in range(n)]
    used, joints = [], []
    for step in plan.steps:
        held.append(set().union(*(held[k] for k in step.parts)))
        used += step.parts
        joints += step.joints
    assert len(used) == len(set(used))
    assert all(k < n + number for number, step in enumerate(plan.steps) for k in step.parts)
    return held, joints


@pytest.mark.parametrize("n", CHAINS)
def test_chain_takes_logarithmically_many_levels(n):
    """RBDA-7.5-DCA: ceil(log2 N) levels in pairs, N - 1 one by one, two handles at most."""
    chain = da.models.gu(n)
    pairs, serial = plan_in_pairs(chain), plan_one_by_one(chain)
    assert pairs.levels == math.ceil(math.log2(n))
    assert serial.levels == n - 1
    assert max((len(step.handles) for step in pairs.steps), default=0) <= 2
    assert max((len(step.handles) for step in serial.steps), default=0) <= 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("plan", [plan_in_pairs, plan_one_by_one])
def test_every_joint_of_a_tree_is_connected_once(plan, seed):
    """RBDA-7.5-DCA: every body reaches the world, and no part of a tree has more than three handles."""
    tree = random_tree(seed, 20, branching=0.6)
    made = plan(tree)
    _, joints = bodies_of(made, len(tree.bodies))
    assert sorted(joints) == list(range(len(tree.bodies)))
    assert max(len(step.handles) for step in made.steps) <= 3
    used = {k for step in made.steps for k in step.parts}
    final = [step for k, step in enumerate(made.steps) if len(tree.bodies) + k not in used]
    assert all(step.handles == () for step in final)


def test_balanced_trees_take_few_levels():
    """RBDA-7.5-DCA: levels grow with the logarithm of a branching tree too."""
    levels = [plan_in_pairs(random_tree(1, n, ("revolute",), branching=0.3)).levels for n in (8, 16, 32, 64)]
    assert levels == sorted(levels)
    assert levels[-1] <= 2 * math.ceil(math.log2(64))


def test_parts_keep_few_handles_in_the_worst_of_trees():
    """RBDA-7.5-DCA: a spine whose arms are halves of halves would leave a handle for each of them."""
    arms = (128, 64, 32, 16, 8)
    builder = da.ModelBuilder()
    for k, length in enumerate((*arms, 2)):
        builder.add_body(
            f"spine{k}", f"spine{k - 1}" if k else "world", da.Revolute((0, 0, 1)), inertia=SOLID
        )
        for i in range(length):
            parent = f"arm{k}_{i - 1}" if i else f"spine{k}"
            builder.add_body(f"arm{k}_{i}", parent, da.Revolute((0, 0, 1)), inertia=SOLID)
    plan = plan_in_pairs(builder.build())
    assert max(len(step.handles) for step in plan.steps) <= 3


@pytest.mark.parametrize("name", ["four_bar", "five_bar", "stewart", "ladder"])
def test_loops_are_closed_where_both_ends_meet(name):
    """RBDA-7.5-MULTIHANDLE: loop joints are joints N, N + 1 … of steps with several joints."""
    model = getattr(da.models, name)()
    n = len(model.bodies)
    for plan in (plan_in_pairs(model), plan_one_by_one(model)):
        held, joints = bodies_of(plan, n)
        assert sorted(joints) == list(range(n + len(model.loops)))
        for number, step in enumerate(plan.steps):
            for joint in step.joints:
                ends = {joint, model.parents[joint]} if joint < n else _ends(model.loops[joint - n])
                assert ends - {-1} <= held[n + number]


def test_chosen_handles_stay():
    """RBDA-7.5-MULTIHANDLE: bodies asked for are handles of the last part."""
    plan = plan_in_pairs(da.models.gu(9), handles=(2, 8))
    assert plan.steps[-1].handles == (2, 8)


def _ends(loop):
    return {loop.predecessor, loop.successor}

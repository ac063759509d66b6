"""Forces at some joints and accelerations at the others: the whole equation of motion is satisfied."""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import close, random_tree, state

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import hybrid
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.sparse import factor_with_reciprocals, solve_with_reciprocals
from dalembert.errors import ArgumentError, DtypeError, ModelError, UnknownNameError

SEEDS = range(6)


def moving_joints(model):
    return [body.joint_name for body in model.bodies if body.nv]


def case(seed, n=8):
    model = random_tree(seed, n)
    q, v, tau, f = state(model, seed)
    a = np.random.default_rng(seed).normal(size=model.nv).tolist()
    return model, q, v, tau, a, f


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", ["articulated", "matrix"])
def test_the_rest_completes_the_equation_of_motion(seed, method):
    """RBDA-9.1-HYBRID, RBDA-9.2-ABHYBRID: ID of the accelerations found gives the forces found, what was
    given is unchanged, what was not to be read may be anything.
    """
    model, q, v, tau, a, f = case(seed)
    chosen = moving_joints(model)[seed % 2 :: 2]
    given = hybrid.prescribed_places(model, chosen)
    noise = [tau[k] if k not in given else np.nan for k in range(model.nv)]
    other = [a[k] if k in given else np.nan for k in range(model.nv)]
    for tree in (model, aligned(model)):
        found, forces = hybrid.hybrid_dynamics(
            tree, q, v, noise, other, prescribed=chosen, external_forces=f, method=method
        )
        assert all(found[k] == a[k] if k in given else forces[k] == tau[k] for k in range(model.nv))
        close(al.inverse_dynamics(model, q, v, found, external_forces=f), forces, 1e-8, terms=(found,))


@pytest.mark.parametrize("seed", SEEDS[:3])
@pytest.mark.parametrize("method", ["articulated", "matrix"])
def test_none_prescribed_is_forward_and_all_prescribed_inverse_dynamics(seed, method):
    """RBDA-9.1-HYBRID: the two special cases."""
    model, q, v, tau, a, f = case(seed)
    found, forces = hybrid.hybrid_dynamics(model, q, v, tau, a, external_forces=f, method=method)
    close(found, al.forward_dynamics(model, q, v, tau, external_forces=f), 1e-8)
    assert forces == tau
    every = moving_joints(model)
    found, forces = hybrid.hybrid_dynamics(
        model, q, v, tau, a, prescribed=every, external_forces=f, method=method
    )
    assert found == a
    close(forces, al.inverse_dynamics(model, q, v, a, external_forces=f), 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_two_ways_agree(seed):
    """RBDA-9.2-ABHYBRID: Table 9.3 = Eq. 9.2."""
    model, q, v, tau, a, f = case(seed + 20)
    chosen = moving_joints(model)[:: 2 + seed % 2]
    one, other = (
        hybrid.hybrid_dynamics(
            model, q, v, tau, a, prescribed=chosen, external_forces=f, external_frame="world", method=method
        )
        for method in ("articulated", "matrix")
    )
    close(one[0], other[0], 1e-8)
    close(one[1], other[1], 1e-8, terms=one[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_matrix_of_the_free_joints_is_a_block_of_the_whole(seed):
    """RBDA-9.1-NUFD: H_11 of Table 9.1 = rows and columns of CRBA's H."""
    model, q, *_ = case(seed)
    chosen = moving_joints(model)[seed % 2 :: 2]
    given = hybrid.prescribed_places(model, chosen)
    free = [k for k in range(model.nv) if k not in given]
    H = np.array(al.mass_matrix(model, q))
    close(hybrid.free_mass_matrix(model, q, prescribed=chosen), H[np.ix_(free, free)], 1e-12)


def test_the_matrix_of_the_free_joints_costs_less_than_the_whole():
    """RBDA-9.1-NUFD: counted on GU(6) with the first three joints prescribed; H of the last three alone."""
    tree = aligned(da.models.gu(6))
    names = [body.joint_name for body in tree.bodies]

    def whole(q):
        return al.mass_matrix(tree, q)

    def part(q):
        return hybrid.free_mass_matrix(tree, q, prescribed=names[:3])

    def tip(q):
        return hybrid.free_mass_matrix(tree, q, prescribed=names[:5])

    costs = [count(f, q=6).total for f in (whole, part, tip)]
    assert costs[1] < 0.5 * costs[0]
    assert costs[2] == 0  # the moment of inertia of one body about its own axis


def test_supported_bodies_are_those_that_free_joints_carry():
    """RBDA-9.1-NUFD: nu(fd) of Eq. 9.5 = the union of the subtrees of fd."""
    for seed in SEEDS:
        model = random_tree(seed, 10)
        free = {i for i in range(10) if (i * 7 + seed) % 3 == 0}
        union = set().union(*(model.subtree(i) for i in free)) if free else set()
        found = hybrid.supported_bodies(model.parents, free)
        assert {i for i, inside in enumerate(found) if inside} == union


def test_the_merged_tree_of_figure_9_1():
    """RBDA-9.1-LAMBDA: joints 1 and 2 prescribed: nodes 1, 2 -> 0, nodes 3 to 7 -> 1 to 5. Here bodies are
    numbered from 0 and the world is -1.
    """
    parents = [-1, 0, 1, 1, 2, 2, 3]
    merged, number = hybrid.merged_parents(parents, {2, 3, 4, 5, 6})
    assert number == [-1, -1, 0, 1, 2, 3, 4]
    assert merged == [-1, -1, 0, 0, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_merged_tree_factors_the_free_matrix(seed):
    """RBDA-9.1-LAMBDA: the sparse solution with lambda' = the dense one, several freedoms expanded."""
    model, q, _, tau, _, _ = case(seed, 10)
    chosen = moving_joints(model)[seed % 3 :: 3]
    free = [k for k in range(model.nv) if k not in hybrid.prescribed_places(model, chosen)]
    H = hybrid.free_mass_matrix(model, q, prescribed=chosen)
    lam, _ = hybrid.merged_parents(al.variable_parents(model), free)
    path = [set(al.ancestors(lam, k)) for k in range(len(free))]
    assert all(H[i][j] == 0.0 for i in range(len(free)) for j in range(i) if j not in path[i])
    right = [tau[k] for k in free]
    L, reciprocals = factor_with_reciprocals(H, lam)
    close(solve_with_reciprocals(L, reciprocals, lam, right), np.linalg.solve(H, right), 1e-8)


def test_prescribed_joints_of_a_linkage():
    """RBDA-9.1-HYBRID: a four-bar whose crank is driven: the loop stays closed, and forward dynamics with the
    force found gives the accelerations back.
    """
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, model.neutral() + 0.1, np.array([0.7, 0.2, -0.3]))
    crank = model.joints[0].name
    tau = np.array([0.0, 0.2, -0.1])
    a, forces = da.dynamics.hybrid_dynamics(model, q, v, tau, np.array([1.3, 0.0, 0.0]), prescribed=[crank])
    assert a[0] == 1.3
    np.testing.assert_array_equal(forces[1:], tau[1:])
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    np.testing.assert_allclose(K @ a, k, atol=1e-9)
    np.testing.assert_allclose(da.forward_dynamics(model, q, v, forces), a, atol=1e-8)


def test_the_public_function_takes_batches_and_says_what_is_wrong():
    """One kernel for a batch of samples, equal to the algorithm; names are checked."""
    model = da.models.arm6()
    names = [joint.name for joint in model.joints]
    rng = np.random.default_rng(1)
    q, v, tau, a = rng.normal(size=(4, 5, model.nv))
    found, forces = da.dynamics.hybrid_dynamics(model, q, v, tau, a, prescribed=names[1::2])
    for k in range(5):
        one = hybrid.hybrid_dynamics(model, *(x[k].tolist() for x in (q, v, tau, a)), prescribed=names[1::2])
        np.testing.assert_allclose(found[k], one[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(forces[k], one[1], rtol=1e-9, atol=1e-9)
    with pytest.raises(UnknownNameError, match="elbo"):
        da.dynamics.hybrid_dynamics(model, q, v, tau, a, prescribed=["elbo"])
    with pytest.raises(ArgumentError, match="list of names"):
        da.dynamics.hybrid_dynamics(model, q, v, tau, a, prescribed=names[0])
    with pytest.raises(ArgumentError, match="list of names"):
        da.dynamics.hybrid_dynamics(model, q, v, tau, a, prescribed=None)
    with pytest.raises(UnknownNameError, match="method"):
        da.dynamics.hybrid_dynamics(model, q, v, tau, a, method="aba")
    with pytest.raises(DtypeError, match="must be a Model"):
        da.dynamics.hybrid_dynamics("arm6", q, v, tau, a)


def test_a_follower_cannot_be_prescribed():
    builder = da.ModelBuilder()
    for name in ("motor", "finger"):
        builder.add_body(
            name, "world", da.Revolute((0, 0, 1)), inertia=da.RigidInertia(1, (0, 0, 0), (1, 1, 1))
        )
    builder.add_coupling("mimic", {"motor": 1.0, "finger": -1.0})
    with pytest.raises(ModelError, match="prescribe motor instead"):
        da.dynamics.hybrid_dynamics(builder.build(), [0.0], [0.0], [0.0], [0.0], prescribed=["finger"])

"""Maximal coordinates: one system for any connectivity, dense and sparse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.loops.looped import random_looped, textbook_accelerations
from tests.looped_models import closed_velocity, moving

import dalembert as da
from dalembert.algorithms import loops
from dalembert.algorithms.constraints import constraint_equations
from dalembert.compiler.library import function


@pytest.mark.parametrize("seed", range(3))
def test_maximal_coordinates_equal_the_articulated_body_algorithm(seed: int) -> None:
    """RBDA-3.7-MAXCOORD, RBDA-6.6-HISTORY: one big system equals CRBA and ABA, in any order."""
    model = da.models.random_tree(seed, bodies=6, armature=0.2)
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    args = (model, q.tolist(), v.tolist(), tau.tolist())
    aba = da.algorithms.forward_dynamics(*args, method="aba")
    scale = np.abs(aba).max()
    for other in (
        da.algorithms.forward_dynamics(*args, method="crba"),
        loops.accelerations_by_maximal_coordinates(*args),
        loops.accelerations_by_sparse_elimination(*args),
    ):
        np.testing.assert_allclose(other, aba, rtol=0.0, atol=1e-9 * scale)


def test_connectivity_maps_body_to_joint_velocities() -> None:
    """RBDA-3.7-MAXCOORD: P has +1 at s(j), -1 at p(j); v_J = P^T v and f = P f_J in world coordinates."""
    model, q, v = random_looped(7, (da.Spherical(), da.Revolute()), bodies=5)
    P = np.array(loops.connectivity(model))
    ends = [(b.parent, b.index) for b in model.bodies] + [(l.predecessor, l.successor) for l in model.loops]
    motions = list(da.algorithms.body_motions(model, q.tolist(), v.tolist()))
    at_world = np.array([m.pose.inverse_apply(m.velocity).to_list() for m in motions], float)
    v_J = P.T @ at_world
    for column, (p, s) in zip(v_J, ends):
        before = at_world[p] if p >= 0 else np.zeros(6)
        after = at_world[s] if s >= 0 else np.zeros(6)
        np.testing.assert_allclose(column, after - before, atol=1e-12)
    f_J = np.random.default_rng(1).normal(size=(len(ends), 6))
    net = np.array(
        [
            sum(f for f, (_, s) in zip(f_J, ends) if s == i)
            - sum(f for f, (p, _) in zip(f_J, ends) if p == i)
            for i in range(len(model.bodies))
        ]
    )
    np.testing.assert_allclose(P @ f_J, net, atol=1e-12)
    assert np.sum(v_J * f_J) == pytest.approx(np.sum(at_world * (P @ f_J)))  # equal power


def test_size_and_blocks_of_the_system() -> None:
    """RBDA-8.13-SPARSE: 6 N_B + n_c unknowns, 2 N_J or fewer blocks in each half off the diagonal."""
    model, q, v = random_looped(8, (da.Spherical(), da.joints.Cylindrical()), bodies=5)
    bare = [0.0] * model.nv
    system = loops.maximal_system(model, q.tolist(), v.tolist(), bare)
    freedoms = [body.nv for body in model.bodies] + [loop.joint.nv for loop in model.loops]
    joints = len(freedoms)
    assert sum(len(c.rows) for c in system.constraints) == 6 * joints - sum(freedoms)
    assert sum(len({i for row in c.rows for i in row}) for c in system.constraints) <= 2 * joints
    order = loops.elimination_order(system)
    assert sorted(s.number for s in order if s.is_body) == list(range(len(model.bodies)))
    assert sorted(s.number for s in order if not s.is_body) == list(range(len(system.constraints)))


def test_a_ladder_costs_in_proportion_to_its_rungs() -> None:
    """RBDA-8.13-SPARSE: the same operations for each further rung; M of the tree has O(n^2) elements."""
    counts = {}
    nonzero = {}
    for rungs in (3, 6, 9, 12):
        model = da.models.ladder(rungs)
        count = function(model, "forward_dynamics", "sparse").operation_count
        counts[rungs] = count.multiplications + count.additions
        nonzero[rungs] = np.count_nonzero(np.abs(da.algorithms.mass_matrix(model, [0.1] * model.nq)) > 0)
    steps = np.diff([counts[r] for r in (3, 6, 9, 12)])
    assert steps.max() <= 1.02 * steps.min()
    growth = np.diff([nonzero[r] for r in (3, 6, 9, 12)])
    assert (np.diff(growth) > 0).all()
    around = {}
    for rungs in (6, 12):
        model = da.models.ladder(rungs)
        system = loops.maximal_system(model, [0.1] * model.nq, [0.2] * model.nv, [0.0] * model.nv)
        around[rungs] = max(step.around for step in loops.elimination_order(system))
    assert around[12] == around[6]  # a fixed bandwidth


def test_a_tree_costs_in_proportion_to_its_bodies() -> None:
    """RBDA-8.13-SPARSE: GU(n), n = 4, 8, 12."""
    counts = []
    for n in (4, 8, 12):
        count = function(da.models.gu(n), "forward_dynamics", "sparse").operation_count
        counts.append(count.multiplications + count.additions)
    assert counts[2] - counts[1] == counts[1] - counts[0]


@pytest.mark.parametrize("name", ["ladder", "stewart"])
def test_the_sparse_method_on_machines(name: str) -> None:
    """RBDA-8.13-SPARSE, RBDA-8.1-EOM, RBDA-3.7-MAXCOORD: equals the range-space method, stabilized too."""
    model = getattr(da.models, name)()
    q, v = moving(model, 2, shift=0.1)
    q = da.integrate(model, q, 1e-4 * np.random.default_rng(1).normal(size=model.nv))  # a little open
    tau = np.random.default_rng(2).normal(size=model.nv)
    expected = da.forward_dynamics(model, q, v, tau, stabilization=0.05)
    sparse = loops.accelerations_by_sparse_elimination(
        model, q.tolist(), v.tolist(), tau.tolist(), stabilization=0.05
    )
    np.testing.assert_allclose(sparse, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def test_users_constraints_and_couplings_in_maximal_coordinates() -> None:
    """RBDA-3.7-MAXCOORD: any equation between joint accelerations is one between bodies."""
    builder = da.ModelBuilder()
    rng = np.random.default_rng(3)
    from dalembert.models.random_trees import random_inertia, random_placement

    for k, joint in enumerate(
        (da.Revolute(), da.Prismatic((0, 1, 0)), da.Revolute((1, 0, 0)), da.Revolute())
    ):
        parent = "world" if k in (0, 3) else f"b{k - 1}"
        builder.add_body(f"b{k}", parent, joint, placement=random_placement(rng), inertia=random_inertia(rng))
    builder.add_coupling("gear", {"b3": 1.0, "b0": -2.0})
    builder.add_constraint(lambda model, q: [q[0] * q[1] - 0.3 * q[2]], "position", name="cam")
    model = builder.build()
    q = np.array([0.4, 0.3, 0.4])
    v = closed_velocity(model, q, rng.normal(size=3))
    tau = rng.normal(size=3)
    expected = da.forward_dynamics(model, q, v, tau)
    for method in ("sparse", "maximal", "null_space", "direct"):
        a = loops.METHODS[method](model, q.tolist(), v.tolist(), tau.tolist())
        np.testing.assert_allclose(a, expected, rtol=1e-9, err_msg=method)
    off, drift = q + [0.0, 0.01, -0.02], v + [0.03, -0.01, 0.02]  # neither position nor velocity fits
    found = constraint_equations(model, off.tolist(), drift.tolist())
    k = np.array(found.k) - 20.0 * np.array(found.velocity_error) - 100.0 * np.array(found.position_error)
    expected = textbook_accelerations(model, off, drift, tau, k=k)
    for method in ("sparse", "maximal"):
        a = loops.METHODS[method](model, off.tolist(), drift.tolist(), tau.tolist(), stabilization=0.1)
        np.testing.assert_allclose(a, expected, rtol=1e-9, err_msg=method)

"""Forces of a motion that keeps the constraints: actuators, refusals, forces of the loops themselves."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.algorithms.loops.looped import random_looped
from tests.looped_models import moving

import dalembert as da
from dalembert.algorithms import loops
from dalembert.errors import ModelError, StateError
from dalembert.spatial import Force


def actuated(model: da.Model, names: list[str] | None) -> da.Model:
    """The model with other actuators."""
    return da.Model(
        bodies=model.bodies,
        gravity=model.gravity,
        loops=model.loops,
        couplings=model.couplings,
        actuated=names,
    )


@pytest.mark.parametrize("method", ["projection", "null_space"])
def test_actuator_forces_return_the_motion(method: str) -> None:
    """RBDA-8.12-ID: G_u^T u = G^T tau_ID; zeros elsewhere; applied in forward dynamics u gives a back."""
    model = da.models.five_bar()
    assert da.analysis.actuation(model).proper
    q, v = moving(model, 1)
    a = da.forward_dynamics(model, q, v, np.random.default_rng(2).normal(size=model.nv))
    tau = da.inverse_dynamics(model, q, v, a, method=method)
    idle = [i for i in range(model.nv) if i not in loops.actuated_variables(model)]
    assert idle
    np.testing.assert_array_equal(tau[idle], 0.0)
    np.testing.assert_allclose(
        da.forward_dynamics(model, q, v, tau), a, rtol=0.0, atol=1e-9 * np.abs(a).max()
    )
    found = loops.explicit_solution(
        da.constraints.constraint_jacobian(model, q).tolist(),
        da.constraints.constraint_bias(model, q, v).tolist(),
    )
    G = np.array(found.G, float)
    tree = da.inverse_dynamics(model.tree(), q, v, a)
    np.testing.assert_allclose(G.T @ tau, G.T @ tree, atol=1e-9 * np.abs(tree).max())


def test_redundant_actuators_share_the_least_forces() -> None:
    """RBDA-8.12-ID: an actuator at every joint: the shortest tau, orthogonal to every K^T lambda."""
    model = actuated(da.models.five_bar(), None)
    q, v = moving(model, 41)
    assert da.analysis.actuation(model, q).redundant
    assert not da.analysis.actuation(model, q).underactuated
    a = da.forward_dynamics(model, q, v, np.random.default_rng(3).normal(size=model.nv))
    tau = da.inverse_dynamics(model, q, v, a)
    tree = da.inverse_dynamics(model.tree(), q, v, a)
    K = da.constraints.constraint_jacobian(model, q)
    np.testing.assert_allclose(K @ tau, 0.0, atol=1e-8 * np.abs(tree).max())
    shortest = tree - K.T @ np.linalg.lstsq(K.T, tree, rcond=1e-9)[0]
    np.testing.assert_allclose(tau, shortest, atol=1e-8 * np.abs(tree).max())
    np.testing.assert_allclose(da.forward_dynamics(model, q, v, tau), a, atol=1e-8 * np.abs(a).max())
    some = actuated(model, list(model.joints.names[1:]))
    assert da.analysis.actuation(some, q).redundant
    partly = da.inverse_dynamics(some, q, v, a)
    place = model.joint(model.joints.names[0]).v_slice
    np.testing.assert_array_equal(partly[place], 0.0)
    rest = [i for i in range(model.nv) if not place.start <= i < place.stop]
    P = np.eye(len(K.T)) - K.T @ np.linalg.pinv(K.T, rcond=1e-9)
    expected = np.linalg.pinv(P[:, rest], rcond=1e-9) @ (P @ tree)
    np.testing.assert_allclose(partly[rest], expected, atol=1e-7 * np.abs(tree).max())
    np.testing.assert_allclose(da.forward_dynamics(model, q, v, partly), a, atol=1e-8 * np.abs(a).max())


def test_actuation_is_classified() -> None:
    """RBDA-8.12-ID: under-, redundantly and properly actuated; the first two at once, too."""
    model = da.models.five_bar()
    names = model.joints.names
    proper = da.analysis.actuation(model)
    assert (proper.mobility, proper.actuators, proper.rank) == (2, 2, 2)
    assert proper.proper
    every = da.analysis.actuation(actuated(model, None))
    assert every.redundant
    assert not every.underactuated
    one = da.analysis.actuation(actuated(model, [names[0]]))
    assert one.underactuated
    assert not one.redundant
    assert "underactuated: 1 actuators of rank 1, mobility 2" in str(one)
    two_cranks = da.models.four_bar().attach(da.models.four_bar(), prefix="other ")
    both = da.analysis.actuation(actuated(two_cranks, ["crank_pivot", "crank_pin"]))
    assert both.underactuated
    assert both.redundant
    assert not both.proper


def test_an_acceleration_that_breaks_a_loop_is_refused() -> None:
    """RBDA-8.12-ID: q, v and a must comply with the constraints; the sample and the residual are named."""
    model = da.models.four_bar()
    q, v = moving(model, 4)
    a = da.forward_dynamics(model, q, v, [1.0, 0.0, 0.0])
    batch = np.tile(a, (2, 3, 1))
    batch[1, 2, 1] += 0.01
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    terms = np.abs(K).sum(axis=1).max() * np.abs(batch[1, 2]).max() + np.abs(k).max()
    share = np.abs(K @ batch[1, 2] - k).max() / terms
    with pytest.raises(StateError, match=r"sample \(1, 2\): a breaks the constraints") as refusal:
        da.inverse_dynamics(model, q, v, batch)
    named = re.search(r"K a - k is ([0-9.e-]+) of", str(refusal.value))
    assert named is not None
    assert float(named[1]) == pytest.approx(share, rel=0.01)
    with pytest.raises(StateError, match=r"^inverse_dynamics: a breaks the constraints"):
        da.inverse_dynamics(model, q, v, batch[1, 2])
    flagged = da.inverse_dynamics(model, q, v, batch, check="flag")
    assert np.isnan(flagged[1, 2]).all()
    np.testing.assert_allclose(np.delete(flagged.reshape(6, 3), 5, 0), [[1.0, 0.0, 0.0]] * 5, atol=1e-9)
    assert np.isfinite(da.inverse_dynamics(model, q, v, batch, check="off")).all()
    single = [x.astype(np.float32) for x in (q, v, a)]
    np.testing.assert_allclose(da.inverse_dynamics(model, *single), [1.0, 0.0, 0.0], atol=1e-3)
    missing = batch.copy()
    missing[0, 0, 0] = np.nan
    assert np.isnan(da.inverse_dynamics(model, q, v, missing[0])[0]).any()  # a NaN row is its own affair


def test_a_motion_beyond_the_actuators_is_refused() -> None:
    """RBDA-8.12-ID: rank(G_u) < n - r: what the actuators cannot do is refused, what they can is not."""
    model = actuated(da.models.five_bar(), [da.models.five_bar().actuated[0]])
    q, v = moving(model, 5)
    push = np.zeros(model.nv)
    push[loops.actuated_variables(model)] = 0.7
    a = da.forward_dynamics(model, q, v, push)
    np.testing.assert_allclose(da.inverse_dynamics(model, q, v, a), push, atol=1e-8)
    other = da.forward_dynamics(model, q, v, np.ones(model.nv))
    with pytest.raises(
        StateError, match=r"actuated joints cannot produce this motion, [0-9.e-]+ of the forces"
    ):
        da.inverse_dynamics(model, q, v, other)
    assert np.isfinite(da.inverse_dynamics(model, q, v, other, check="off")).all()


def test_a_run_time_parameter_is_part_of_the_refusal() -> None:
    model = da.models.four_bar()
    q, v = moving(model, 6)
    a = da.forward_dynamics(model, q, v, [1.0, 0.0, 0.0])
    compiled = da.compile(da.inverse_dynamics, model, parameters=("crank.mass",))
    np.testing.assert_allclose(compiled(q, v, a), [1.0, 0.0, 0.0], atol=1e-9)
    heavier = compiled(q, v, a, parameters={"crank.mass": 2.0})
    assert abs(heavier[0] - 1.0) > 1e-3
    with pytest.raises(StateError, match="breaks the constraints"):
        compiled(q, v, a + 0.1, parameters={"crank.mass": 2.0})


def test_methods_for_trees_are_refused_by_name() -> None:
    model = da.models.four_bar()
    with pytest.raises(ModelError, match=r'"rnea" is for trees.*"projection", "null_space".*model.tree'):
        da.inverse_dynamics(model, *[np.zeros(3)] * 3, method="rnea")


def test_forces_across_a_cut_balance_the_bodies() -> None:
    """RBDA-8.4-FORCES: with T lambda and -T lambda on the bodies of a cut loop, the tree moves the same."""
    for seed, closer in ((51, da.Revolute()), (52, da.Spherical())):
        model, q, v = random_looped(seed, (closer,), bodies=2)
        tau = np.random.default_rng(4).normal(size=model.nv)
        a = da.forward_dynamics(model, q, v, tau)
        (f,) = da.constraints.loop_forces(model, q, v, tau)
        loop = model.loops[0]
        poses = [*da.algorithms.forward_kinematics(model, q.tolist()), da.Transform.identity()]
        across = Force(da.spatial.Vec3(*f[:3].tolist()), da.spatial.Vec3(*f[3:].tolist()))
        on_world = poses[loop.successor].inverse_apply(loop.placement_successor.inverse_apply(across))
        push = np.zeros((len(model.bodies), 6))
        for body, sign in ((loop.successor, 1.0), (loop.predecessor, -1.0)):
            if body >= 0:
                push[body] = sign * np.array(poses[body].apply(on_world).to_list(), float)
        cut = da.forward_dynamics(model.tree(), q, v, tau, push)
        np.testing.assert_allclose(cut, a, rtol=0.0, atol=1e-8 * np.abs(a).max())
        lam = da.constraints.constraint_forces(model, q, v, tau)
        lack = da.mass_matrix(model, q) @ a + da.bias_forces(model, q, v) - tau
        np.testing.assert_allclose(
            da.constraints.constraint_jacobian(model, q).T @ lam, lack, atol=1e-8 * np.abs(lack).max()
        )


def test_forces_of_constraints_need_constraints() -> None:
    arm = da.models.two_link_arm()
    for function in (da.constraints.constraint_forces, da.constraints.loop_forces):
        with pytest.raises(ModelError, match="no loop"):
            function(arm, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])

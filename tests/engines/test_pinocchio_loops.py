"""Agreement with Pinocchio's constrained dynamics on random trees that balls and welds close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines.pinocchio_models import peer_model, states  # noqa: E402

import dalembert as da  # noqa: E402
from dalembert.algorithms import loops  # noqa: E402
from dalembert.interop import from_pinocchio  # noqa: E402
from dalembert.interop.pinocchio_bridge import transform_of  # noqa: E402
from dalembert.model.body import Loop  # noqa: E402

TREES = ("tree0", "tree1", "tree2", "humanoid")


def ends_of(model: da.Model, needed: int) -> tuple[int, int]:
    """Two bodies with more freedoms between them than a joint will take; the last pair of them."""
    pairs = []
    for i in range(len(model.bodies)):
        for j in (*range(i), -1):
            between = model.support(i) ^ (model.support(j) if j >= 0 else frozenset())
            if sum(model.bodies[k].nv for k in between) > needed:
                pairs.append((j, i))
    return pairs[-1]


@pytest.mark.parametrize("closer", ["ball", "weld"])
@pytest.mark.parametrize("name", TREES)
def test_constrained_dynamics_agree(name: str, closer: str) -> None:
    """RBDA-8.1-EOM, RBDA-8.5-M2, RBDA-8.5-M3, RBDA-8.13-SPARSE: ball and weld closures, in motion."""
    theirs = peer_model(name)
    bridge = from_pinocchio(theirs)
    rng = np.random.default_rng(sum(map(ord, name + closer)))
    q_pin, v_pin, tau_pin = (x[0] for x in states(theirs, rng, 1))
    joint: da.joints.Joint = da.Spherical() if closer == "ball" else da.Fixed()
    p, s = ends_of(bridge.model, 6 - joint.nv)
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, q_pin)
    pose_p, pose_s = (data.oMi[i + 1].copy() for i in (p, s))
    at_p = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
    turn = pin.SE3(pin.exp3(rng.normal(size=3)), np.zeros(3)) if closer == "ball" else pin.SE3.Identity()
    at_s = pose_s.inverse() * pose_p * at_p * turn
    model = closed(bridge.model, joint, p, s, at_p, at_s)
    q = bridge.q(q_pin)
    np.testing.assert_allclose(da.constraints.constraint_error(model, q), 0.0, atol=1e-12)
    K = da.constraints.constraint_jacobian(model, q)
    v = bridge.v(v_pin)
    v = v - np.linalg.pinv(K, rcond=1e-9) @ (K @ v)
    expected = bridge.a(
        their_accelerations(theirs, closer, p, s, at_p, at_s, q_pin, bridge.v_back(v), tau_pin)
    )
    tau = bridge.tau(tau_pin)
    args = (model, q.tolist(), v.tolist(), tau.tolist())
    methods = ("range_space", "sparse") if name == "humanoid" else ("range_space", "null_space", "sparse")
    for method in methods:
        a = loops.METHODS[method](*args)
        np.testing.assert_allclose(a, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max(), err_msg=method)


def closed(tree: da.Model, joint: da.joints.Joint, p: int, s: int, at_p: Any, at_s: Any) -> da.Model:
    loop = Loop("closer", p, s, joint, transform_of(at_p), transform_of(at_s))
    return da.Model(bodies=tree.bodies, gravity=tree.gravity, loops=[loop], couplings=tree.couplings)


def their_accelerations(
    model: Any, closer: str, p: int, s: int, at_p: Any, at_s: Any, q: Any, v: Any, tau: Any
) -> Any:
    kind = pin.ContactType.CONTACT_3D if closer == "ball" else pin.ContactType.CONTACT_6D
    constraints = pin.StdVec_RigidConstraintModel()
    constraints.append(
        pin.RigidConstraintModel(kind, model, p + 1, at_p, s + 1, at_s, pin.ReferenceFrame.LOCAL)
    )
    constraint_data = pin.StdVec_RigidConstraintData()
    constraint_data.append(constraints[0].createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, constraints, constraint_data)
    settings = pin.ProximalSettings(1e-13, 1e-13, 50)
    return pin.constraintDynamics(model, data, q, v, tau, constraints, constraint_data, settings).copy()

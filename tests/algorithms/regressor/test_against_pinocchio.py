"""The regressor against Pinocchio's, whose inertias stand in another order."""

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio")

from tests.engines import pinocchio_models  # noqa: E402

import dalembert as da  # noqa: E402
from dalembert.algorithms import regressor  # noqa: E402

THEIRS = (0, 1, 2, 3, 4, 6, 9, 5, 7, 8)
"""Where our m, h, I_xx, I_yy, I_zz, I_xy, I_xz, I_yz stand in `toDynamicParameters`."""


@pytest.mark.parametrize("name", ["manipulator", "humanoid", "humanoid_random"])
def test_columns_are_those_of_pinocchio(name):
    """RBDA-5.3-RNEA: computeJointTorqueRegressor, and the parameters themselves."""
    peer = pinocchio_models.peer_model(name)
    bridge = da.interop.from_pinocchio(peer)
    model = bridge.model
    parameters = np.concatenate([peer.inertias[j].toDynamicParameters() for j in range(1, peer.njoints)])
    order = (10 * np.arange(len(model.bodies))[:, None] + THEIRS).ravel()
    np.testing.assert_allclose(da.identification.inertial_parameters(model), parameters[order], atol=1e-12)
    for q, v, a in zip(*pinocchio_models.states(peer, np.random.default_rng(3), 3), strict=True):
        theirs = np.array(pin.computeJointTorqueRegressor(peer, peer.createData(), q, v, a))
        ours = regressor.inverse_dynamics_regressor(
            model, bridge.q(q).tolist(), bridge.v(v).tolist(), bridge.v(a).tolist()
        )
        expected = bridge.v(theirs.T).T[:, order]
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())

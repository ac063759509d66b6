"""The equations of motion of a tree from the Jacobians of its bodies."""

import pytest
from tests.algorithms.trees import JOINTS, close, geared_chain, random_tree, state

from dalembert.algorithms import aligned
from dalembert.algorithms.inverse_dynamics import coriolis_forces, inverse_dynamics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.errors import ModelError
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Fixed, Revolute, TimeDependent
from dalembert.spatial import RigidInertia
from dalembert.textbook import lagrange as lg


@pytest.mark.parametrize("seed", range(5))
def test_jacobian_route_on_random_trees(seed):
    """LJ-5.3-EOM: M is CRBA's, C is RNEA's at rest accelerations, and tau agrees under pushes."""
    model = random_tree(seed, 7)
    q, v, a, f = state(model, seed)
    M, C = lg.tree_equations(model, q, v)
    close(M, mass_matrix(model, q), 1e-12)
    close(C, coriolis_forces(model, q, v), 1e-11)
    for tree in (model, aligned(model)):
        for frame in ("body", "world", "center"):
            found = lg.inverse_dynamics_by_jacobians(tree, q, v, a, external_forces=f, external_frame=frame)
            expected = inverse_dynamics(model, q, v, a, external_forces=f, external_frame=frame)
            close(found, expected, 1e-11)


@pytest.mark.parametrize("kind", JOINTS)
def test_jacobian_route_for_every_joint_type(kind):
    """LJ-5.3-EOM: every parameterization of a joint, Euler angles, exponential map, quaternion and others."""
    model = random_tree(3, 4, (kind, "revolute"), root=kind)
    q, v, _, _ = state(model, 3)
    M, C = lg.tree_equations(model, q, v)
    close(M, mass_matrix(model, q), 1e-12)
    close(M, lg.mass_matrix_by_jacobians(model, q), 1e-14)
    close(C, coriolis_forces(model, q, v), 1e-11)


def test_coupled_joints():
    """LJ-5.3-EOM: Jacobians of the independent coordinates give the reduced equations."""
    model = geared_chain(3)
    q, v, a, f = state(model, 4)
    close(
        lg.inverse_dynamics_by_jacobians(model, q, v, a, external_forces=f),
        inverse_dynamics(model, q, v, a, external_forces=f),
        1e-12,
    )


def test_joints_that_depend_on_time_are_refused():
    builder = ModelBuilder()
    drive = TimeDependent(Fixed(), driver=Revolute((1, 2, 0)), motion=lambda t: [t * t])
    builder.add_body("driven", parent="world", joint=drive, inertia=RigidInertia(1.0, (0, 0, 0), (1, 1, 1)))
    with pytest.raises(ModelError, match='joint "driven" depends on time'):
        lg.tree_equations(builder.build(), [], [], time=0.1)

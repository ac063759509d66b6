"""The original recursive Newton-Euler equations, Table 5.2, beside the spatial ones of Table 5.1."""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import JOINTS, close, geared_chain, inertia, place, random_tree, six, state, vec

import dalembert as da
from dalembert.algorithms import aligned
from dalembert.algorithms.inverse_dynamics import inverse_dynamics, rnea_spatial
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import Fixed, Prismatic, Revolute, TimeDependent
from dalembert.spatial import RigidInertia
from dalembert.textbook.vector_recursion import luh_walker_paul


def chain(kind: str) -> da.Model:
    """Three joints of one kind, with armature, between revolute ones."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder(gravity=(0.7, -0.4, -9.5))
    for i in range(5):
        joint = JOINTS["revolute" if i % 4 == 0 else kind](rng)
        builder.add_body(
            f"b{i}",
            parent=f"b{i - 1}" if i else "world",
            joint=joint,
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.3 if joint.nv else 0.0,
        )
    return builder.build()


@pytest.mark.parametrize("kind", JOINTS)
def test_three_dimensional_vectors_give_the_same_forces_for_every_joint_type(kind):
    """RBDA-5.4-ORIGINAL: revolute and prismatic as published, and every other joint by its v_J and c_J."""
    model = chain(kind)
    q, v, a, f = state(model, 3)
    for frame in ("body", "world", "center"):
        expected = inverse_dynamics(model, q, v, a, external_forces=f, external_frame=frame)
        for tree in (model, aligned(model)):
            found = luh_walker_paul(tree, q, v, a, external_forces=f, external_frame=frame).tau
            close(found, expected, 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_every_vector_of_table_5_2_is_its_part_of_a_spatial_one(seed):
    """RBDA-5.4-ORIGINAL: v = (omega, v), a = (omega', v' - omega x v), f^B = (N + c x F, F), f = (n, f)."""
    model = random_tree(seed)
    q, v, a, f = state(model, seed)
    original = luh_walker_paul(model, q, v, a, external_forces=f)
    spatial = rnea_spatial(model, q, v, a, external_forces=f)
    for body in model.bodies:
        omega, velocity = vec(original.omega[body]), vec(spatial.v[body].linear)
        close(omega, vec(spatial.v[body].angular), 1e-12)
        v_dot = vec(original.v_dot[body]) - np.cross(omega, velocity)
        terms = (np.cross(omega, velocity),)
        close(np.hstack([vec(original.omega_dot[body]), v_dot]), six(spatial.a[body]), 1e-12, terms=terms)
        net = body.inertia * spatial.a[body] + spatial.v[body].cross(body.inertia * spatial.v[body])
        c, F, N = vec(body.inertia.com), vec(original.F[body]), vec(original.N[body])
        close(np.hstack([N + np.cross(c, F), F]), six(net), 1e-11)
        close(np.hstack([vec(original.n[body]), vec(original.f[body])]), six(spatial.f[body]), 1e-11)


def test_motion_prescribed_in_time():
    """RBDA-5.4-ORIGINAL: rheonomic joints, whose v_J and c_J are not zero at v = 0."""
    solid = RigidInertia(1.0, (0.1, 0.2, 0.0), (0.1, 0.2, 0.3))
    builder = ModelBuilder()
    drive = TimeDependent(Fixed(), driver=Revolute((1, 2, 0)), motion=lambda t: [t * t])
    builder.add_body("driven", parent="world", joint=drive, inertia=solid)
    builder.add_body("arm", parent="driven", joint=Prismatic((0, 1, 0)), inertia=solid)
    model = builder.build()
    close(
        luh_walker_paul(model, [0.2], [0.3], [0.4], time=0.7).tau,
        inverse_dynamics(model, [0.2], [0.3], [0.4], time=0.7),
        1e-13,
    )


def test_the_linear_velocity_need_not_be_computed():
    """RBDA-5.4-ORIGINAL: the original costs less than the spatial version, which computes it."""
    model = da.models.gu(6)
    counts = {}
    for name, algorithm in (("original", luh_walker_paul), ("spatial", rnea_spatial)):
        counted = count(lambda q, v, a, run=algorithm: run(model, q, v, a).tau, q=6, v=6, a=6)
        counts[name] = counted.multiplications + counted.additions
    assert counts["original"] < counts["spatial"]


def test_coupled_joints_share_their_forces():
    """RBDA-5.4-ORIGINAL: with a mimic joint, tau is that of the independent coordinates."""
    model = geared_chain(2, 3)
    q, v, a, f = state(model, 1)
    close(
        luh_walker_paul(model, q, v, a, external_forces=f).tau,
        inverse_dynamics(model, q, v, a, external_forces=f),
        1e-12,
    )

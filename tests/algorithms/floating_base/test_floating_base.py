"""Systems that hang on nothing equal systems on a fixed base with a joint of six freedoms."""

import numpy as np
import pytest
from tests.algorithms.trees import JOINTS, close, inertia, place, random_tree, state

import dalembert as da
from dalembert import algorithms as al
from dalembert.algorithms import floating_base as fb
from dalembert.algorithms import hybrid
from dalembert.algorithms.aligned import aligned
from dalembert.errors import ModelError, UnknownNameError

SEEDS = range(6)


def floating_tree(seed, n=7):
    """A free root on a tilted placement that carries joints of all kinds, some with armature."""
    rng = np.random.default_rng(seed)
    builder = da.ModelBuilder(gravity=(0.7, -0.4, -9.5))
    builder.add_body("b0", "world", da.Free(), placement=place(rng), inertia=inertia(rng))
    for i in range(1, n):
        builder.add_body(
            f"b{i}",
            f"b{rng.integers(0, i)}",
            JOINTS[str(rng.choice(list(JOINTS)))](rng),
            placement=place(rng),
            inertia=inertia(rng),
            armature=0.2 if rng.random() < 0.3 else 0.0,
        )
    return builder.build()


def columns(forces):
    return np.array([f.to_list() for f in forces]).T.reshape(6, -1)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_coefficients_equal_those_of_a_joint_with_six_freedoms(seed):
    """RBDA-9.3-FLOATEQ, RBDA-9.4-FBCRBA: I_0^c, F, H, p_0^c, C of Table 9.5 = the blocks of M and b with
    S_1 = 1 (Eqs 9.11, 9.13); F_i = I_i^c S_i in base coordinates.
    """
    model = floating_tree(seed)
    q, v, _, f = state(model, seed)
    M, b = np.array(al.mass_matrix(model, q)), np.array(al.bias_forces(model, q, v, external_forces=f))
    for tree in (model, aligned(model)):
        I_0, F, H = fb.floating_base_inertia(tree, q)
        close(I_0.matrix(), M[:6, :6], 1e-11)
        close(columns(F), M[:6, 6:], 1e-11)
        close(np.array(H), M[6:, 6:], 1e-11)
        p_0, C = fb.floating_base_bias(tree, q, v, external_forces=f)
        close(p_0.to_list() + C, b, 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_route_gives_one_acceleration(seed):
    """RBDA-9.4-FBABA, RBDA-9.4-FBCRBA: Table 9.4, Table 9.5 with sparse factors, ABA and CRBA with a 6-DoF
    joint; a force on the base may stand in tau or among the external forces.
    """
    model = floating_tree(seed)
    q, v, tau, f = state(model, seed)
    reference = al.forward_dynamics(model, q, v, tau, external_forces=f)
    for tree in (model, aligned(model)):
        close(fb.floating_base_forward_dynamics(tree, q, v, tau, external_forces=f), reference, 1e-8)
        close(
            fb.floating_base_forward_dynamics_by_matrix(tree, q, v, tau, external_forces=f), reference, 1e-8
        )
    pushed = [*f]
    pushed[0] = [x + t for x, t in zip(f[0], tau[:6], strict=True)]
    elsewhere = fb.floating_base_forward_dynamics(model, q, v, [0.0] * 6 + tau[6:], external_forces=pushed)
    close(elsewhere, reference, 1e-8)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_in_free_fall_the_base_falls_and_gravity_is_felt_by_no_joint(seed):
    """RBDA-9.4-FBABA: from rest a_0 = 0_a_g and q'' = 0; moving, gravity changes a_0 alone (Eq. 9.17)."""
    model = floating_tree(seed)
    q, v, tau, _ = state(model, seed)
    a_g = fb.base_gravity(model, q).to_list()
    rest = fb.floating_base_forward_dynamics(model, q, [0.0] * model.nv, [0.0] * model.nv)
    close(rest, a_g + [0.0] * (model.nv - 6), 1e-9)
    weightless = model.with_values({"gravity": (0.0, 0.0, 0.0)}, inertia="as_given")
    floating = al.forward_dynamics(weightless, q, v, tau)
    falling = fb.floating_base_forward_dynamics(model, q, v, tau)
    close(np.subtract(falling, floating), a_g + [0.0] * (model.nv - 6), 1e-8, terms=(floating,))


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_equals_hybrid_dynamics(seed):
    """RBDA-9.5-FBID: (a_0, tau) of Table 9.6 = hybrid dynamics with all joints prescribed; both treatments of
    gravity; forward dynamics of the result gives q'' back.
    """
    model = floating_tree(seed)
    q, v, a, f = state(model, seed)
    joints = [body.joint_name for body in model.bodies[1:]]
    want_a, want_tau = hybrid.hybrid_dynamics(
        model, q, v, [0.0] * model.nv, a, prescribed=joints, external_forces=f
    )
    for gravity in ("forces", "acceleration"):
        for tree in (model, aligned(model)):
            a_0, tau = fb.floating_base_inverse_dynamics(
                tree, q, v, a[6:], external_forces=f, gravity=gravity
            )
            close(a_0, want_a[:6], 1e-9)
            close(tau, want_tau[6:], 1e-9, terms=(want_a,))
    found = al.forward_dynamics(model, q, v, [0.0] * 6 + tau, external_forces=f)
    close(found, a_0 + a[6:], 1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reduced_equation_relates_joints_alone(seed):
    """RBDA-9.3-HFL: H^fl q'' + C^fl = tau with the q'' of forward dynamics; Eq. 9.14."""
    model = floating_tree(seed)
    q, v, tau, _ = state(model, seed)
    H, C = fb.reduced_floating_base_equations(
        fb.floating_base_inertia(model, q), fb.floating_base_bias(model, q, v)
    )
    a = al.forward_dynamics(model, q, v, [0.0] * 6 + tau[6:])
    close(np.array(H) @ a[6:] + C, tau[6:], 1e-8, terms=(a, C))


def test_the_reduced_matrix_loses_the_zeros_of_branches():
    """RBDA-9.3-HFL: the legs of the quadruped meet nowhere in H and everywhere in H^fl."""
    model = da.models.quadruped()
    q, v = (x.tolist() for x in model.random_state(3))
    inertia_ = fb.floating_base_inertia(model, q)
    H = np.array(inertia_.H)
    reduced = np.array(fb.reduced_floating_base_equations(inertia_, fb.floating_base_bias(model, q, v))[0])
    assert np.count_nonzero(H) < 0.5 * H.size
    assert np.count_nonzero(reduced) == H.size
    close(reduced, np.linalg.inv(np.linalg.inv(np.array(al.mass_matrix(model, q)))[6:, 6:]), 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_momentum_and_energy_from_the_blocks(seed):
    """RBDA-9.5-MOMENTUM: sum I_i v_i = I_0^c v_0 + F q'; T from the blocks; Example 9.3."""
    model = floating_tree(seed)
    q, v, _, _ = state(model, seed)
    found = model.bodies[0].link_transform(q).inverse_apply(fb.floating_base_momentum(model, q, v))
    close(found.to_list(), al.momentum(model, q, v).to_list(), 1e-11)
    close(fb.floating_base_kinetic_energy(model, q, v), al.kinetic_energy(model, q, v), 1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_impulse_inside_moves_every_body_by_the_floating_jacobian(seed):
    """RBDA-9.5-FBJAC: joint impulses P change (v_0, q') by M^-1 (0, P); delta v_i = J_i^f delta q'. A finite
    impulse, not an infinitesimal one: the relation is linear.
    """
    model = floating_tree(seed)
    q, _, impulse, _ = state(model, seed)
    jump = np.linalg.solve(al.mass_matrix(model, q), [0.0] * 6 + impulse[6:])
    for body in model.bodies:
        for frame in al.FRAMES:
            J = np.array(al.jacobian(model, q, body, frame=frame))
            J_f = np.array(fb.floating_base_jacobian(model, q, body, frame=frame))
            close(J_f @ jump[6:], J @ jump, 1e-8, terms=(jump,))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_floating_jacobian_says_how_accelerations_depend_on_the_joints(seed):
    """RBDA-9.5-FBJAC: a_i = J_i^f q'' + terms without q''."""
    model = floating_tree(seed)
    q, v, a, _ = state(model, seed)
    tip = model.bodies[-1]

    def acceleration(joints):
        a_0, _ = fb.floating_base_inverse_dynamics(model, q, v, joints)
        return np.array(al.body_motions(model, q, v, a_0 + joints)[tip].acceleration.to_list())

    J_f = np.array(fb.floating_base_jacobian(model, q, tip, frame="body"))
    n = model.nv - 6
    close(acceleration(a[6:]) - acceleration([0.0] * n), J_f @ a[6:], 1e-9, terms=(a,))


def test_compiled_functions_agree_and_take_batches():
    model = da.models.quadruped()
    rng = np.random.default_rng(0)
    states = [model.random_state(rng) for _ in range(5)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    a = rng.normal(size=(5, model.nv - 6))
    a_0, tau = da.floating_base.floating_base_inverse_dynamics(model, q, v, a)
    again = da.floating_base.floating_base_inverse_dynamics(model, q, v, a, gravity="acceleration")
    np.testing.assert_allclose(a_0, again[0], atol=1e-9)
    np.testing.assert_allclose(tau, again[1], atol=1e-9)
    whole = np.concatenate([np.zeros((5, 6)), tau], axis=1)
    found = da.forward_dynamics(model, q, v, whole, method="floating_base")
    np.testing.assert_allclose(found, np.concatenate([a_0, a], axis=1), atol=1e-6)
    np.testing.assert_allclose(found, da.forward_dynamics(model, q, v, whole), atol=1e-6)
    parts = da.floating_base.floating_base_equations(model, q, v)
    M = np.concatenate([np.concatenate([parts.I_0, parts.F], 2),
                        np.concatenate([parts.F.swapaxes(1, 2), parts.H], 2)], 1)  # fmt: skip
    np.testing.assert_allclose(M, da.mass_matrix(model, q), atol=1e-10)
    np.testing.assert_allclose(
        np.concatenate([parts.p_0, parts.C], 1), da.bias_forces(model, q, v), atol=1e-9
    )
    assert da.floating_base.floating_base_jacobian(model, q, model.bodies[-1].name).shape == (
        5,
        6,
        model.nv - 6,
    )


def test_what_does_not_float_is_refused():
    with pytest.raises(ModelError, match="hangs on the world by joint"):
        da.floating_base.floating_base_inverse_dynamics(
            da.models.arm6(), np.zeros(6), np.zeros(6), np.zeros(0)
        )
    two = da.models.quadruped().attach(da.models.pendulum(), prefix="other_")
    with pytest.raises(ModelError, match="other_"):
        fb.floating_base_inertia(two, two.neutral().tolist())
    with pytest.raises(ModelError, match="armature"):
        fb.floating_base(
            random_tree(0, 1, root="free", joints=("free",)).with_values({"b0.armature": [1.0] * 6}), "f"
        )
    with pytest.raises(UnknownNameError, match="gravity"):
        fb.floating_base_inverse_dynamics(floating_tree(0), [], [], [], gravity="none")

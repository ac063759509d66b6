"""Recursive Newton-Euler: every form agrees, and energy, weight and power come out right."""

import numpy as np
import pytest
from tests.algorithms.trees import close, place, random_tree, six, state, vec

from dalembert import scalar
from dalembert.algorithms.aligned import aligned
from dalembert.algorithms.applied_forces import force_at_point
from dalembert.algorithms.constraints import constraint_equations
from dalembert.algorithms.energy_momentum import kinetic_energy, potential_energy
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import (
    bias_forces,
    coriolis_forces,
    differential_inverse_dynamics,
    gravity_forces,
    inverse_dynamics,
    rnea_common_frame,
    rnea_spatial,
)
from dalembert.algorithms.kinematics import body_motions, forward_kinematics
from dalembert.algorithms.mass_matrix import mass_matrix
from dalembert.errors import DalembertError, ModelError
from dalembert.model.builder import ModelBuilder
from dalembert.model.configuration import integrate
from dalembert.model.joints import Revolute, Spherical, TimeDependent
from dalembert.spatial import Force, RigidInertia, Transform, Vec3

SEEDS = range(12)


@pytest.mark.parametrize("seed", SEEDS)
def test_co_moving_equals_spatial_body_coordinates(seed):
    """RBDA-5.3-RNEA, RBDA-5.3-EXT: Table 5.1 as printed, with external forces on every body."""
    model = random_tree(seed)
    q, v, a, f = state(model, seed)
    close(
        inverse_dynamics(model, q, v, a, external_forces=f),
        rnea_spatial(model, q, v, a, external_forces=f).tau,
        1e-12,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_body_coordinates_equal_common_frame(seed):
    """RBDA-5.3-BASIC, ANIM-ID, ANIM-ACTIVE, ANIM-SPATIAL, TOD-RNE: the same equations with every vector in
    the world's frame.
    """
    model = random_tree(seed)
    q, v, a, f = state(model, seed)
    world = inverse_dynamics(model, q, v, a, external_forces=f, external_frame="world")
    close(rnea_common_frame(model, q, v, a, external_forces=f), world, 1e-12)
    poses = forward_kinematics(model, q)
    in_body = [poses[body].apply(Force.of(f[body.index])) for body in model.bodies]
    close(inverse_dynamics(model, q, v, a, external_forces=in_body), world, 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_is_mass_matrix_times_acceleration_plus_bias(seed):
    """RBDA-1.1-API, RBDA-6.1-CBIAS, ANIM-EOM: tau = H a + C, C = ID(q, v, 0)."""
    model = random_tree(seed)
    q, v, a, f = state(model, seed)
    M, b = np.array(mass_matrix(model, q)), bias_forces(model, q, v, external_forces=f)
    close(M @ a + b, inverse_dynamics(model, q, v, a, external_forces=f), 1e-12)
    close(np.add(coriolis_forces(model, q, v), gravity_forces(model, q)), bias_forces(model, q, v), 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_coriolis_forces_are_quadratic_in_velocity(seed):
    """ANIM-EOM: C(q, 2 v) = 4 C(q, v)."""
    model = random_tree(seed)
    q, v, _, _ = state(model, seed)
    close(
        np.multiply(4.0, coriolis_forces(model, q, v)), coriolis_forces(model, q, [2.0 * x for x in v]), 1e-12
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_differential_inverse_dynamics_is_mass_matrix_product(seed):
    """RBDA-6.1-IDDELTA: ID_delta(a) = ID(a) - ID(0), a column of H for a unit acceleration."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    difference = np.subtract(inverse_dynamics(model, q, v, a), bias_forces(model, q, v))
    close(differential_inverse_dynamics(model, q, a), difference, 1e-11, terms=(bias_forces(model, q, v),))


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_rate_is_joint_power(seed):
    """RBDA-3.1-KE, ANIM-EOM: d(T + V)/dt = tau . v along a motion, by central differences."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    tau = inverse_dynamics(model, q, v, a)

    def energy(h):
        speed = [x + h * y for x, y in zip(v, a)]
        there = integrate(model, q, [h * x + 0.5 * h * h * y for x, y in zip(v, a)])
        return kinetic_energy(model, there, speed) + potential_energy(model, there)

    h = 1e-5
    rate = (energy(h) - energy(-h)) / (2 * h)
    close(rate, np.dot(tau, v), 1e-7, terms=(tau,))


@pytest.mark.parametrize("seed", SEEDS)
def test_gravity_forces_are_gradient_of_potential_energy(seed):
    """RBDA-5.3-GRAVCOMP: the stripped pass equals full RNEA at rest and +dV/dq."""
    model = random_tree(seed)
    q, _, _, _ = state(model, seed)
    zero = [0.0] * model.nv
    g = gravity_forces(model, q)
    close(g, inverse_dynamics(model, q, zero, zero), 1e-12)
    h = 1e-6
    for k in range(model.nv):
        d = [h if i == k else 0.0 for i in range(model.nv)]
        up = potential_energy(model, integrate(model, q, d))
        down = potential_energy(model, integrate(model, q, [-x for x in d]))
        close((up - down) / (2 * h), g[k], 1e-7, terms=(up,))


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_as_external_forces_equal_accelerating_base(seed):
    """RBDA-5.3-GRAVTRICK, RBDA-5.3-EXT: f_g = I a_g on each body instead of a_0 = -a_g; the accelerations
    differ by a_g.
    """
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    poses = forward_kinematics(model, q)
    builder_gravity = model.gravity
    weights = []
    for body in model.bodies:
        push = poses[body].R.transposed_times(builder_gravity) * body.inertia.mass
        weights.append(Force(body.inertia.com.cross(push), push))
    floating = _without_gravity(model)
    result = rnea_spatial(model, q, v, a)
    close(result.tau, inverse_dynamics(floating, q, v, a, external_forces=weights), 1e-11)
    true = body_motions(model, q, v, a)
    for body in model.bodies:
        fall = poses[body].R.transposed_times(builder_gravity)
        close(vec(result.a[body].linear) + vec(fall), vec(true[body].acceleration.linear), 1e-11)
        close(six(result.v[body]), six(true[body].velocity), 1e-12)


def _without_gravity(model):
    from dalembert.model.model import Model

    return Model(bodies=model.bodies, gravity=Vec3.zero(), frames=model.frames)


def test_bearing_loads_of_a_hanging_chain_are_the_weight_below():
    """RBDA-5.3-BYPROD: f_i of a chain at rest is the weight of what hangs below."""
    builder = ModelBuilder(gravity=(0.0, 0.0, -10.0))
    masses = [1.0, 2.0, 3.0, 4.0]
    for i, mass in enumerate(masses):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else "world",
            joint=Revolute((0.0, 1.0, 0.0)),
            placement=Transform.from_rotation_translation(np.eye(3).tolist(), [0.0, 0.0, -1.0 if i else 0.0]),
            inertia=RigidInertia(mass, (0.0, 0.0, -0.5), (0.1, 0.1, 0.1)),
        )
    model = builder.build()
    loads = rnea_spatial(model, [0.0] * 4, [0.0] * 4, [0.0] * 4).f
    for i in range(4):
        close(six(loads[i]), [0.0, 0.0, 0.0, 0.0, 0.0, 10.0 * sum(masses[i:])], 1e-14)


def test_time_dependent_joint_prescribes_its_share_of_motion():
    """RBDA-5.3-RNEA: a prescribed rotation in series with a joint adds its angle, rate and acceleration."""
    hinge = Revolute((0.0, 0.0, 1.0))
    driven = _two_links(TimeDependent(hinge, hinge, lambda t: [0.5 * scalar.sin(3.0 * t)]))
    plain = _two_links(hinge)
    t = 0.3
    angle, rate, acceleration = 0.5 * np.sin(3 * t), 1.5 * np.cos(3 * t), -4.5 * np.sin(3 * t)
    same = inverse_dynamics(plain, [0.2 + angle, 0.4], [0.3 + rate, -0.5], [0.7 + acceleration, 0.1])
    for function in (inverse_dynamics, rnea_common_frame):
        close(function(driven, [0.2, 0.4], [0.3, -0.5], [0.7, 0.1], time=t), same, 1e-12)
    a = forward_dynamics(aligned(driven), [0.2, 0.4], [0.3, -0.5], same, time=t)
    close(a, [0.7, 0.1], 1e-12)


def _two_links(first):
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    for i, joint in enumerate((first, Revolute((1.0, 2.0, 3.0)))):
        builder.add_body(
            f"b{i}", parent=f"b{i - 1}" if i else "world", joint=joint, placement=place(rng),
            inertia=RigidInertia(1.0 + i, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4)),
        )  # fmt: skip
    return builder.build()


def test_push_at_a_point_does_the_work_of_that_point():
    """RBDA-2.3-FORCE: the generalized force of a push f at r has the power f . r'."""
    model = random_tree(3)
    q, v, _, _ = state(model, 3)
    body = model.bodies[-1]
    motion = body_motions(model, q, v)[body]
    point, push = Vec3(0.3, -0.2, 0.5), Vec3(1.0, 2.0, -3.0)
    f = [Force.zero() for _ in model.bodies]
    f[body.index] = force_at_point(motion.pose, motion.pose.transform_point(point), push)
    zero = [0.0] * model.nv
    tau = np.subtract(
        inverse_dynamics(model, q, v, zero), inverse_dynamics(model, q, v, zero, external_forces=f)
    )
    velocity = motion.pose.R @ (motion.velocity.linear + motion.velocity.angular.cross(point))
    close(np.dot(tau, v), push.dot(velocity), 1e-11, terms=(tau,))


@pytest.mark.parametrize("seed", SEEDS)
def test_batch_of_samples_equals_samples_alone(seed):
    """RBDA-5.3-RNEA: NumPy scalars, one sample an element."""
    model = random_tree(seed, 5)
    states = [state(model, seed + 50 * k) for k in range(4)]
    q, v, a = (np.array([s[i] for s in states]).T for i in range(3))
    batch = np.array([np.broadcast_to(x, 4) for x in inverse_dynamics(model, list(q), list(v), list(a))])
    for k, (q1, v1, a1, _) in enumerate(states):
        close(batch[:, k], inverse_dynamics(model, q1, v1, a1), 1e-13)


def test_wrong_arguments_are_refused_by_name():
    """RBDA-5.3-EXT: external forces of the wrong length or frame."""
    model = random_tree(1, 3)
    q, v, a, f = state(model, 1)
    with pytest.raises(DalembertError, match="3 bodies"):
        inverse_dynamics(model, q, v, a, external_forces=f[:-1])
    with pytest.raises(DalembertError, match="external_frame"):
        inverse_dynamics(model, q, v, a, external_forces=f, external_frame="base")


def test_loops_are_refused_by_algorithms_for_trees():
    """They would leave out the loop's forces; `inverse_dynamics` itself turns to the constrained one."""
    builder = ModelBuilder()
    inertia = RigidInertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    for name in ("a", "b"):
        builder.add_body(name, parent="world", joint=Spherical(), inertia=inertia)
    there = Transform.from_rotation_translation(np.eye(3).tolist(), (0.3, 0.2, 0.1))
    builder.add_loop("closing", "a", "b", Spherical(), there, there)
    model = builder.build()
    q, v, a, _ = state(model, 0)
    with pytest.raises(ModelError, match="closing"):
        rnea_spatial(model, q, v, a)
    K = np.array(constraint_equations(model, q, v).K)
    tau = inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(K @ tau, 0.0, atol=1e-9)  # the shortest that gives the motion
    assert np.abs(K @ inverse_dynamics(model.tree(), q, v, a)).max() > 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_aligned_frames_change_no_joint_force(seed):
    """RBDA-10.3-OPTIM: Denavit-Hartenberg frames for trees give the same tau, with external forces in
    either frame.
    """
    model = random_tree(seed, 12)
    q, v, a, f = state(model, seed)
    tree = aligned(model)
    for frame in ("body", "world", "center"):
        close(
            inverse_dynamics(tree, q, v, a, external_forces=f, external_frame=frame),
            inverse_dynamics(model, q, v, a, external_forces=f, external_frame=frame),
            1e-12,
        )

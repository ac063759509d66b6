"""Liu and Jain, section 7: recursive inverse dynamics in local frames, each step against an oracle."""

import math

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import JOINTS, close, mat, random_tree, state, vec

import dalembert as da
from dalembert.algorithms import aligned
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics, rnea_spatial
from dalembert.algorithms.kinematics import body_motions, forward_kinematics, point_motion
from dalembert.model.builder import ModelBuilder
from dalembert.model.configuration import integrate
from dalembert.model.joints import Prismatic, Revolute, Spherical, Translation
from dalembert.spatial import RigidInertia, Transform, Vec3
from dalembert.textbook.local_recursion import liu_jain, local_motions, local_newton_euler


def one_body(joint, *, com=(0.1, -0.2, 0.3), gravity=(0.0, 0.0, -9.81)) -> da.Model:
    builder = ModelBuilder(gravity=gravity)
    builder.add_body("body", parent="world", joint=joint, inertia=RigidInertia(1.7, com, (0.2, 0.3, 0.4)))
    return builder.build()


@pytest.mark.parametrize("seed", range(8))
def test_two_passes_give_the_forces_of_newton_and_euler(seed):
    """LJ-7.3-PASS2, LJ-7.1-LOCALNE, LJ-7.2-PASS1: tau of RNEA, on trees of all joint types, with pushes."""
    model = random_tree(seed)
    q, v, a, f = state(model, seed)
    for frame in ("body", "world", "center"):
        expected = inverse_dynamics(model, q, v, a, external_forces=f, external_frame=frame)
        for tree in (model, aligned(model)):
            found = liu_jain(tree, q, v, a, external_forces=f, external_frame=frame).tau
            close(found, expected, 1e-12)


@pytest.mark.parametrize("kind", JOINTS)
def test_first_pass_moves_the_centres_of_mass_for_every_joint_type(kind):
    """LJ-7.2-PASS1, LJ-7.2-BASE: classical motion of points, and the world's angular velocity, turned."""
    model = random_tree(4, 5, (kind, "revolute"), root=kind)
    q, v, a, _ = state(model, 2)
    motions = body_motions(model, q, v, a)
    for body, found in zip(model.bodies, local_motions(model, q, v, a)):
        R = mat(motions[body].pose.R)
        point = point_motion(motions[body], body.inertia.com)
        close(R @ vec(found.v), vec(point.velocity), 1e-11)
        close(R @ vec(found.v_dot), vec(point.acceleration), 1e-11)
        close(vec(found.omega), vec(motions[body].velocity.angular), 1e-11)
        close(vec(found.omega_dot), vec(motions[body].acceleration.angular), 1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_balance_of_a_link_about_its_centre_of_mass(seed):
    """LJ-7.1-LOCALNE: m v' and I omega' + omega x I omega are the spatial force at the centre of mass."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    spatial = rnea_spatial(model, q, v, a)
    motions = liu_jain(model, q, v, a).motions
    for body in model.bodies:
        net = body.inertia * spatial.a[body] + spatial.v[body].cross(body.inertia * spatial.v[body])
        force, torque = local_newton_euler(body.inertia, motions[body])
        close(vec(force), vec(net.linear), 1e-11)
        close(vec(torque), vec(net.about(body.inertia.com)), 1e-11)


def test_transmitted_forces_leaf_and_free_root():
    """LJ-7.3-PASS2: what a link receives is what it and all beyond it need; a leaf takes only its own."""
    model = random_tree(3, 7, root="free")
    q, v, a, _ = state(model, 3)
    spatial, local = rnea_spatial(model, q, v, a), liu_jain(model, q, v, a)
    for body in model.bodies:
        close(local.transmitted[body].to_list(), spatial.f[body].to_list(), 1e-11)
    leaf = next(b for b in model.bodies if b.index not in model.parents)
    force, torque = local_newton_euler(leaf.inertia, local.motions[leaf])
    close(vec(local.transmitted[leaf].linear), vec(force), 1e-12)
    close(vec(local.transmitted[leaf].angular), vec(torque + leaf.inertia.com.cross(force)), 1e-12)


def test_a_free_root_receives_nothing():
    """LJ-7.3-PASS2: f_0 = tau_0 = 0 along a motion that forces between the links alone produce."""
    model = random_tree(5, 5, ("revolute", "spherical", "universal"), root="free", branching=0.0)
    q, v, tau, _ = state(model, 5)
    tau[:6] = [0.0] * 6
    a = forward_dynamics(model, q, v, tau)
    root = liu_jain(model, q, v, a).transmitted[0]
    close(root.to_list(), [0.0] * 6, 1e-10, terms=(a,))


def test_root_of_one_link():
    """LJ-7.2-BASE: v = omega x c, v' = omega x (omega x c) + omega' x c, and a translating root."""
    model = one_body(Spherical())
    q, v, a, _ = state(model, 1)
    (found,) = local_motions(model, q, v, a)
    omega, alpha, c = np.array(v), np.array(a), vec(model.bodies[0].inertia.com)
    close(vec(found.omega), omega, 1e-15)
    close(vec(found.omega_dot), alpha, 1e-15)
    close(vec(found.v), np.cross(omega, c), 1e-15)
    close(vec(found.v_dot), np.cross(omega, np.cross(omega, c)) + np.cross(alpha, c), 1e-15)
    (slid,) = local_motions(one_body(Translation()), [0.1, 0.2, 0.3], v, a)
    close([*vec(slid.v), *vec(slid.v_dot), *vec(slid.omega)], [*v, *a, 0.0, 0.0, 0.0], 1e-15)


def test_pendulum_of_one_link():
    """LJ-7.2-BASE: (I + m l^2) theta'' + m g l sin theta."""
    model = one_body(Revolute((0, 1, 0)), com=(0.0, 0.0, -0.6))
    theta, rate, acceleration = 0.7, 1.3, -0.4
    expected = (0.3 + 1.7 * 0.36) * acceleration + 1.7 * 9.81 * 0.6 * math.sin(theta)
    close(liu_jain(model, [theta], [rate], [acceleration]).tau, [expected], 1e-13)


def turntable(com=(0.0, 0.0, 0.0)) -> da.Model:
    """A mass that slides along x on a table that turns about z."""
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    table = RigidInertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.2))
    builder.add_body("table", parent="world", joint=Revolute((0, 0, 1)), inertia=table)
    mass = RigidInertia(0.5, com, (0.01, 0.01, 0.01))
    builder.add_body("mass", parent="table", joint=Prismatic((1, 0, 0)), inertia=mass)
    return builder.build()


def test_sliding_on_a_turntable_feels_coriolis():
    """LJ-7.2-TRANSDOF: the true acceleration of a sliding mass has 2 omega q' across and -omega^2 q along."""
    omega, alpha, x, rate, acceleration = 1.7, 0.6, 0.8, -0.9, 0.3
    motion = local_motions(turntable(), [0.4, x], [omega, rate], [alpha, acceleration])[1]
    close(vec(motion.v), [rate, omega * x, 0.0], 1e-14)
    true = [acceleration - omega**2 * x, 2 * omega * rate + alpha * x, 0.0]
    close(vec(motion.v_dot), true, 1e-14)
    tau = liu_jain(turntable(), [0.4, x], [omega, rate], [alpha, acceleration]).tau
    close(tau, [(0.2 + 0.01) * alpha + 0.5 * x * true[1], 0.5 * true[0]], 1e-14)


def test_sliding_joint_as_the_text_writes_it():
    """LJ-7.2-TRANSDOF: Eq. 83 and the corrected Eq. 84, with c_k and c_p off the axes."""
    model = turntable(com=(0.1, 0.3, -0.2))
    q, v, a = [0.4, 0.8], [1.7, -0.9], [0.6, 0.3]
    parent, child = local_motions(model, q, v, a)
    omega, alpha = vec(parent.omega), vec(parent.omega_dot)
    slide = np.array([1.0, 0.0, 0.0])
    arm = vec(model.bodies[1].inertia.com) + slide * q[1] - vec(model.bodies[0].inertia.com)
    close(vec(child.v), vec(parent.v) + np.cross(omega, arm) + slide * v[1], 1e-14)
    true = vec(parent.v_dot) + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
    true = true + 2 * np.cross(omega, slide * v[1]) + slide * a[1]
    close(vec(child.v_dot), true, 1e-14)


def test_rates_of_local_components():
    """LJ-7.2-LOCALDERIV: v' = d(v^l)/dt + omega x v^l in the link's axes, whereas omega' = d(omega^l)/dt.

    Along the motion of constant v, by differences of the local components themselves.
    """
    model = random_tree(6, 6)
    q, v, _, _ = state(model, 6)
    still = [0.0] * model.nv
    h = 1e-5
    later = local_motions(model, integrate(model, q, [h * x for x in v]), v, still)
    before = local_motions(model, integrate(model, q, [-h * x for x in v]), v, still)
    differs = 0.0
    for body, now in zip(model.bodies, local_motions(model, q, v, still)):
        rate = (vec(later[body].v) - vec(before[body].v)) / (2 * h)
        turned = np.cross(vec(now.omega), vec(now.v))
        close(rate + turned, vec(now.v_dot), 1e-6, terms=(turned, rate))
        spin = (vec(later[body].omega) - vec(before[body].omega)) / (2 * h)
        close(spin, vec(now.omega_dot), 1e-6, terms=(spin,))
        differs = max(differs, float(np.abs(turned).max()))
    assert differs > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_gravity_as_acceleration_of_the_root(seed):
    """LJ-7.3-GRAVITY: -R_0^T g added at the root equals the weight m_k g at each centre of mass."""
    model = random_tree(seed)
    q, v, a, _ = state(model, seed)
    weightless = model.with_values({"gravity": (0.0, 0.0, 0.0)})
    g = vec(model.gravity)
    weights = []
    for body, pose in zip(model.bodies, forward_kinematics(model, q)):
        force = mat(pose.R).T @ (float(body.inertia.mass) * g)
        weights.append([*np.cross(vec(body.inertia.com), force), *force])
    explicit = liu_jain(weightless, q, v, a, external_forces=weights).tau
    close(liu_jain(model, q, v, a).tau, explicit, 1e-12)


def test_each_link_is_visited_once():
    """LJ-7-LINEAR: the operations of a chain grow by the same number with every link."""

    def operations(n: int) -> int:
        builder = ModelBuilder()
        solid = RigidInertia(1.3, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
        shift = Transform.from_rotation_translation(np.eye(3).tolist(), (0.3, 0.4, 0.5))
        for i in range(n):
            parent = f"b{i - 1}" if i else "world"
            joint = Revolute((0.36, 0.48, 0.8))
            builder.add_body(f"b{i}", parent=parent, joint=joint, placement=shift, inertia=solid)
        model = builder.build()
        counted = count(lambda q, v, a: liu_jain(model, q, v, a).tau, q=n, v=n, a=n)
        return counted.multiplications + counted.additions

    counts = [operations(n) for n in (4, 5, 6, 12)]
    assert counts[2] - counts[1] == counts[1] - counts[0]
    assert counts[3] - counts[2] == 6 * (counts[1] - counts[0])


def test_zero_vector_is_a_base_acceleration():
    """LJ-7.2-BASE: without a base acceleration the motions are true ones; -g lifts each link."""
    model = random_tree(1, 4)
    q, v, a, _ = state(model, 1)
    true = local_motions(model, q, v, a)
    lifted = local_motions(model, q, v, a, base_acceleration=Vec3(0.0, 0.0, 9.81))
    for pose, one, other in zip(forward_kinematics(model, q), true, lifted):
        close(
            vec(other.v_dot) - vec(one.v_dot),
            mat(pose.R).T @ [0.0, 0.0, 9.81],
            1e-11,
            terms=(vec(one.v_dot),),
        )

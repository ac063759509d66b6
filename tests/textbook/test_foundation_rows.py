"""Statements of the documents about whole systems, where the tests of the parts alone would prove less."""

import numpy as np
import pytest
from tests.algorithms.counting import count
from tests.algorithms.trees import close, inertia, place, random_tree, six, state, vec
from tests.model.joints.catalogue import helix

from dalembert.algorithms.articulated import assemble
from dalembert.algorithms.forward_dynamics import forward_dynamics
from dalembert.algorithms.inverse_dynamics import inverse_dynamics, rnea_spatial
from dalembert.algorithms.jacobians import jacobian
from dalembert.algorithms.kinematics import body_motions, forward_kinematics
from dalembert.algorithms.mass_matrix import composite_inertias, mass_matrix
from dalembert.algorithms.stepping import state_rate, step
from dalembert.model.builder import ModelBuilder
from dalembert.model.joints import (
    Cylindrical,
    Free,
    Helical,
    Planar,
    Prismatic,
    Reversed,
    Revolute,
    Spherical,
    SphericalEuler,
    active_subspace_along,
)
from dalembert.model.model import Model
from dalembert.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform, Vec3
from dalembert.spatial.rotations import quaternion_of_rotation
from dalembert.spatial.screw import pitch
from dalembert.textbook.handles import handle_inverse_inertia


def test_explicit_euler_gains_energy_where_the_semi_implicit_step_does_not():
    """ANIM-INTEG: of an undamped oscillator over fifty periods; explicit Euler gains
    (1 + w^2 h^2) each step.
    """
    builder = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    solid = RigidInertia(1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.add_body("mass", "world", Prismatic((1.0, 0.0, 0.0)), stiffness=4.0, inertia=solid)
    model, h, steps = builder.build(), 0.02, 8000

    def energy(q, v):
        return 0.5 * v[0] ** 2 + 2.0 * q[0] ** 2

    q, v, x, w = [1.0], [0.0], [1.0], [0.0]
    highest = 0.0
    for _ in range(steps):
        q, v = step(model, q, v, [0.0], h, passive=True)
        highest = max(highest, energy(q, v))
        x_rate, w_rate = state_rate(model, x, w, [-4.0 * x[0]])
        x, w = [x[0] + h * x_rate[0]], [w[0] + h * w_rate[0]]
    assert highest < 1.05 * energy([1.0], [0.0])
    assert energy(x, w) == pytest.approx(2.0 * (1.0 + 4.0 * h * h) ** steps, rel=1e-9)


def test_every_freedom_is_counted_once_whatever_the_number_of_bodies():
    """RBDA-5.1-COMPLEXITY: N_B <= n <= 6 N_B, so that an order in N_B is the same order in n."""
    for kinds, freedoms in ((("revolute",), 1), (("free",), 6), (("spherical", "universal"), None)):
        costs = []
        for bodies in (4, 8, 16):
            model = random_tree(1, bodies, kinds, branching=0.0, armature=False)
            n = model.nv
            assert bodies <= n <= 6 * bodies
            assert freedoms is None or n == freedoms * bodies
            sizes = {"q": model.nq, "v": n, "a": n}
            total = count(lambda q, v, a, m=model: inverse_dynamics(m, q, v, a), **sizes).total
            costs.append((total / bodies, total / n))
        for one, other in zip(costs[0], costs[2]):
            assert 0.5 < other / one < 2.0


@pytest.mark.parametrize("seed", range(3))
def test_a_whole_model_in_other_units_moves_the_same(seed):
    """RBDA-1.3-UNITS: lengths, masses and times in other units, on trees with turning and sliding joints."""
    length, mass, time = 3.0, 0.5, 7.0
    model = random_tree(
        seed, 6, ("revolute", "prismatic", "cylindrical", "spherical", "free"), armature=False
    )
    bodies = []
    builder = ModelBuilder(gravity=(vec(model.gravity) * (length / time**2)).tolist())
    for body in model.bodies:
        X, I = body.placement.as_transform(), body.inertia
        builder.add_body(
            body.name,
            "world" if body.parent < 0 else model.bodies[body.parent].name,
            body.joint,
            placement=Transform.from_rotation_translation(X.R.to_list(), (vec(X.p) * length).tolist()),
            inertia=RigidInertia(I.mass * mass, I.com * length, I.inertia_at_com * (mass * length**2)),
        )
        bodies.append(body)
    scaled = builder.build()
    # A coordinate that is a length scales with the unit of length, an angle and a quaternion do not.
    q_unit = [length if kind == "length" else 1.0 for body in bodies for kind in body.joint.coordinates]
    v_unit = []
    for body in bodies:
        linear = {"prismatic": [length], "cylindrical": [1.0, length], "free": [1.0] * 3 + [length] * 3}
        v_unit += linear.get(body.joint.kind, [1.0] * body.nv)
    q, v, tau, f = state(model, seed)
    q_unit, v_unit = np.array(q_unit), np.array(v_unit)
    energy = mass * length**2 / time**2
    forces = np.array(f) * energy * np.array([1.0, 1.0, 1.0, 1 / length, 1 / length, 1 / length])
    a = forward_dynamics(model, q, v, tau, external_forces=f)
    there = forward_dynamics(
        scaled,
        (q * q_unit).tolist(),
        (v * v_unit / time).tolist(),
        (np.array(tau) * energy / v_unit).tolist(),
        external_forces=forces.tolist(),
    )
    close(np.array(there) * time**2 / v_unit, a, 1e-9)


@pytest.mark.parametrize("h", [0.3, -0.07])
def test_the_pitch_of_a_helical_joint_is_that_of_its_motion(h):
    """RBDA-2.5-SCREW: of the joint's own S, at any origin."""
    joint = Helical((0.3, -0.4, 1.2), h)
    (s,) = joint.subspace([0.7])
    assert pitch(s) == pytest.approx(h)
    assert pitch(place(np.random.default_rng(1)).apply(s)) == pytest.approx(h)


def free_state(X: Transform, v: Motion) -> tuple[list[float], list[float]]:
    """q and v of a free joint for a pose and a velocity in body coordinates."""
    return [*X.p.to_list(), *quaternion_of_rotation(X.R)], v.to_list()


@pytest.mark.parametrize(
    "joint",
    [Helical((1, 2, 3), 0.2), Planar(), Cylindrical((0, 1, 1)), Spherical(), SphericalEuler("zyx")],
    ids=lambda joint: joint.kind,
)
def test_a_mechanism_built_from_either_end_has_the_same_dynamics(joint):
    """RBDA-4.4-REVERSE, RBDA-4.1-POLARITY: two bodies in flight, connected by a joint or by its reverse."""
    rng = np.random.default_rng(3)
    I = [inertia(rng), inertia(rng)]
    P, S = place(rng), place(rng)  # the joint's frames on the predecessor and on the successor
    forward, backward = ModelBuilder(gravity=(0.0, 0.0, 0.0)), ModelBuilder(gravity=(0.0, 0.0, 0.0))
    forward.add_body("p", "world", Free(), inertia=I[0])
    forward.add_body("s", "p", joint, placement=P, inertia=S.apply(I[1]))
    backward.add_body("s", "world", Free(), inertia=I[1])
    backward.add_body("p", "s", Reversed(joint), placement=S, inertia=P.apply(I[0]))
    one, other = forward.build(), backward.build()
    q, v, tau, _ = state(one, 4)
    tau[:6] = [0.0] * 6
    motions = body_motions(one, q, v)
    pose, velocity = motions[1].pose @ S.inverse(), S.inverse_apply(motions[1].velocity)
    root_q, root_v = free_state(pose, velocity)
    x, w = [*root_q, *q[7:]], [*root_v, *v[6:]]
    a, b = forward_dynamics(one, q, v, tau), forward_dynamics(other, x, w, tau)
    close(b[6:], a[6:], 1e-9)
    # Both bodies accelerate alike: as spatial vectors of the world.
    here, there = body_motions(one, q, v, a), body_motions(other, x, w, b)
    for m, n in ((here[0], there[1]), (here[1], there[0])):
        close(six(m.pose.inverse_apply(m.acceleration)), six(n.pose.inverse_apply(n.acceleration)), 1e-9)
        close(six(m.pose.inverse_apply(m.velocity)), six(n.pose.inverse_apply(n.velocity)), 1e-10)


def test_a_users_helix_moves_like_the_library_s():
    """RBDA-4.4-USERJOINT: the same dynamics in a tree, forward and inverse."""
    models = []
    for screw in (Helical((0, 0, 1), 0.3), helix(0.3)):
        rng = np.random.default_rng(6)
        builder = ModelBuilder()
        for k, joint in enumerate((Revolute((1, 0, 2)), screw, Spherical())):
            builder.add_body(
                f"b{k}", f"b{k - 1}" if k else "world", joint, placement=place(rng), inertia=inertia(rng)
            )
        models.append(builder.build())
    q, v, a, f = state(models[0], 6)
    tau = inverse_dynamics(models[0], q, v, a, external_forces=f)
    close(inverse_dynamics(models[1], q, v, a, external_forces=f), tau, 1e-12)
    close(forward_dynamics(models[1], q, v, tau, external_forces=f), a, 1e-10)


def test_the_place_of_the_drive_changes_the_bearing_load_and_not_the_motion():
    """RBDA-3.5-TA: f_J = T_a tau + T lambda of a hinged body with either T_a; a pinion loads the bearing."""
    rng = np.random.default_rng(7)
    I, r, tau, q, v = np.array(inertia(rng).matrix()), 0.25, 1.7, [0.4], [2.3]
    hinge = Revolute((0, 0, 1))
    s = hinge.subspace(q)
    T = np.array([six(force) for force in hinge.constraint_subspace(q)]).T
    tooth = active_subspace_along(s, [Force.at_point(Vec3(0.0, 1.0, 0.0), Vec3(-r, 0.0, 0.0))])
    v_J = hinge.velocity(q, v)
    p = six(v_J.cross(Force.of(I @ six(v_J))))
    accelerations, loads = [], []
    for T_a in (hinge.active_subspace(q), tooth):
        # I a + p = T_a tau + T lambda and T^T a = 0: a hinge on the base has c_J = 0.
        A = np.block([[I, -T], [T.T, np.zeros((5, 5))]])
        solution = np.linalg.solve(A, np.concatenate([six(T_a[0]) * tau - p, np.zeros(5)]))
        accelerations.append(solution[:6])
        loads.append(T @ solution[6:])
    close(accelerations[0], accelerations[1], 1e-12)
    close(loads[1] - loads[0], [0.0, 0.0, 0.0, 0.0, tau / r, 0.0], 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_forces_under_the_gravity_trick_lack_the_weights(seed):
    """RBDA-5.3-GRAVTRICK: f_i^B of the recursion is I a_true + v x* I v - I a_g, a_true = a + a_g."""
    model = random_tree(seed, 7)
    q, v, a, _ = state(model, seed)
    result, motions = rnea_spatial(model, q, v, a), body_motions(model, q, v, a)
    net = [six(result.f[body]) for body in model.bodies]
    for body in reversed(model.bodies):
        if body.parent >= 0:
            passed = body.jcalc(q).X.inverse_apply(Force.of(six(result.f[body]).tolist()))
            net[body.parent] = net[body.parent] - six(passed)
    for body in model.bodies:
        motion, I = motions[body], body.inertia
        true = I * motion.acceleration + motion.velocity.cross(I * motion.velocity)
        a_g = Motion(Vec3.zero(), motion.pose.R.transposed_times(model.gravity))
        close(net[body.index], six(true - I * a_g), 1e-10, terms=(six(result.f[body]),))


@pytest.mark.parametrize("seed", range(4))
def test_a_unit_acceleration_is_felt_by_every_joint_below_it(seed):
    """RBDA-6.3-PHYS: f_j = I_i^c s_alpha for every j that supports i, as one vector of the world; otherwise
    zero.
    """
    model = random_tree(seed, 7, armature=False)
    still = Model(bodies=model.bodies, gravity=Vec3.zero())
    q, _, _, _ = state(model, seed)
    I_c, poses = composite_inertias(model, q), forward_kinematics(model, q)
    for body in model.bodies:
        for k, s in enumerate(body.jcalc(q).S):
            unit = np.eye(model.nv)[body.v_slice.start + k].tolist()
            f = rnea_spatial(still, q, [0.0] * model.nv, unit).f
            expected = six(poses[body].inverse_apply(I_c[body] * s))
            for j in model.support(body):
                close(six(poses[j].inverse_apply(f[j])), expected, 1e-11)
            for j in set(range(7)) - model.support(body) - model.subtree(body):
                close(six(f[j]), np.zeros(6), 1e-12)


def test_articulated_inertia_of_a_planar_mechanism_has_six_numbers():
    """RBDA-7.1-ABI: it is assembled from symmetric 3x3 blocks alone if the joint moves in the plane."""
    rng = np.random.default_rng(8)
    rows = np.ix_([2, 3, 4], [2, 3, 4])
    parts = [
        ArticulatedInertia.from_rigid(RigidInertia(m, (x, y, 0.0), (0.3, 0.4, 0.6)))
        for m, x, y in rng.uniform(0.5, 1.5, size=(2, 3))
    ]
    s = np.array([0.0, 0.0, 1.0, 0.4, -0.2, 0.0])
    zero = Force.zero()
    I_A, _ = assemble(parts[0], zero, parts[1], zero, (Motion.of(s),), Motion.zero(), [0.0])
    (one, other), s = (np.array(part.matrix())[rows] for part in parts), s[2:5]
    U = other @ s
    expected = one + other - np.outer(U, U) / (s @ U)
    found = np.array(I_A.matrix())
    close(found[rows], expected, 1e-14)
    close(expected, expected.T, 1e-15)
    assert np.linalg.matrix_rank([np.ravel(E + E.T) for E in np.eye(9).reshape(9, 3, 3)]) == 6
    assert not found[np.ix_([2, 3, 4], [0, 1, 5])].any()


@pytest.mark.parametrize("seed", range(4))
def test_a_handle_accelerates_where_its_joints_let_it(seed):
    """RBDA-7.2-PROJECT, Eq. 7.14: range Phi = range J and null Phi = null J^T."""
    model = random_tree(seed, 3, ("revolute", "prismatic", "helical"), armature=False, branching=0.0)
    q, _, _, _ = state(model, seed)
    handle = model.bodies[-1]
    Phi = np.array(handle_inverse_inertia(model, q, [handle]), dtype=float)
    J = np.array(jacobian(model, q, handle, frame="body"), dtype=float)
    projector = J @ np.linalg.pinv(J)
    close(projector @ Phi, Phi, 1e-10)
    assert np.linalg.matrix_rank(Phi, tol=1e-9 * np.linalg.norm(Phi)) == np.linalg.matrix_rank(J) == 3
    blocked = np.linalg.svd(J.T)[2][3:].T  # forces that J^T maps to zero
    close(Phi @ blocked, np.zeros((6, 3)), 1e-10)
    H = np.array(mass_matrix(model, q))
    close(Phi, J @ np.linalg.solve(H, J.T), 1e-10)

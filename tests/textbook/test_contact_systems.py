"""Contacts in systems of bodies: equations, gaps, states, impulses and impacts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ArgumentError, DtypeError, ModelError, ShapeError, StateError
from dalembert.textbook.contact_forces import PointContact
from dalembert.textbook.contact_gaps import ContactState, EdgeEdge, GapFunction, VertexFace

G = 9.81
SOLID = da.RigidInertia(1.3, (0.1, -0.05, 0.07), (0.3, 0.4, 0.5))
FACE = ((-1.0, -1.0, 0.4), (1.0, -1.0, 0.6), (1.0, 1.0, 0.8), (-1.0, 1.0, 0.6))


def placed(*p: float) -> Any:
    return da.Transform.from_rotation_translation(np.eye(3), p)


@pytest.fixture(scope="module")
def figure() -> da.Model:
    """A free body with an arm that ends in a ball joint."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("trunk", "world", da.Free(), inertia=SOLID)
    builder.add_body("arm", "trunk", da.Revolute(axis=(1, 0, 0)), placement=placed(0.5, 0, 0), inertia=SOLID)
    builder.add_body("hand", "arm", da.Spherical(), placement=placed(0.4, 0.3, 0), inertia=SOLID)
    return builder.build()


def world(model: Any, q: Any, body: str, x: Any) -> Any:
    pose = da.forward_kinematics(model, q)[body]
    return pose.rotation @ np.asarray(x) + pose.translation


def turned(model: Any, q: Any, body: str, u: Any) -> Any:
    return da.forward_kinematics(model, q)[body].rotation @ np.asarray(u)


def second_derivative(gaps: Any, model: Any, q: Any, v: Any) -> Any:
    """dT/dt^T v by differences along the motion of constant v."""
    h = 1e-5
    ahead, behind = da.integrate(model, q, h * v), da.integrate(model, q, -h * v)
    return (gaps.normals(ahead).T @ v - gaps.normals(behind).T @ v) / (2 * h)


def test_normals_of_points_are_derivatives_of_gaps(figure: da.Model) -> None:
    """RBDA-11.3-SYSTEM: t = (J_s - J_p)^T n and n . (a_s - a_p) + dn/dt . (v_s - v_p) of vertices on faces of
    the world and of a moving body are dphi/dq and d/dt(dphi/dq) v of their gaps (RBDA-11.4-STATES)."""
    vertex = (0.1, 0.2, 0.3)
    gaps = da.textbook.feature_gaps(
        figure, [VertexFace("hand", vertex, on=body, face=FACE) for body in ("trunk", "world")]
    )
    normal = np.cross(np.subtract(FACE[1], FACE[0]), np.subtract(FACE[2], FACE[1]))
    for seed in range(3):
        q, v = figure.random_state(seed)
        at = world(figure, q, "hand", vertex)
        contacts = [
            PointContact("hand", at, turned(figure, q, "trunk", normal), "trunk"),
            PointContact("hand", at, normal),
        ]
        tau = np.random.default_rng(seed).normal(size=figure.nv)
        by_points = da.textbook.contact_equations(figure, q, v, tau, contacts)
        by_gaps = da.textbook.contact_equations(figure, q, v, tau, gaps)
        np.testing.assert_allclose(by_gaps.bias, second_derivative(gaps, figure, q, v), atol=1e-6)
        np.testing.assert_allclose(by_points.T, by_gaps.T, atol=1e-10)
        np.testing.assert_allclose(by_points.M, by_gaps.M, atol=1e-10)
        np.testing.assert_allclose(by_points.d, by_gaps.d, atol=1e-8)


def test_crossing_edges_in_contact_agree_with_their_gap(figure: da.Model) -> None:
    """RBDA-11.3-SYSTEM: where two edges touch, the normal of the book is the derivative of their distance,
    and with the rates of point and normal their separation accelerations agree."""
    q, v = figure.random_state(5)
    # An edge of the hand through a point of the trunk's edge.
    other = [(-1.0, 0.1, 0.3), (1.0, 0.0, 0.2)]
    meet = world(figure, q, "trunk", 0.4 * np.array(other[0]) + 0.6 * np.array(other[1]))
    pose = da.forward_kinematics(figure, q)["hand"]
    local = pose.rotation.T @ (meet - pose.translation)
    along = np.array([0.2, 1.0, -0.3])
    edge = [tuple(local - 0.5 * along), tuple(local + 0.7 * along)]
    gaps = da.textbook.feature_gaps(figure, [EdgeEdge("hand", edge, on="trunk", other=other)])
    assert abs(gaps.value(q)[0]) < 1e-12
    assert gaps.extent(q)[0] > 0.1

    def crossing(q: Any) -> tuple[Any, Any]:
        c, d = (world(figure, q, "hand", x) for x in edge)
        a, b = (world(figure, q, "trunk", x) for x in other)
        n = np.cross(b - a, d - c)
        s, _, _ = np.linalg.solve(np.column_stack([b - a, c - d, n]), c - a)
        return a + s * (b - a), n / np.linalg.norm(n)

    h = 1e-5
    (p1, n1), (p0, n0) = (crossing(da.integrate(figure, q, k * v)) for k in (h, -h))
    point, n = crossing(q)
    position, normal = gaps.points(q)
    np.testing.assert_allclose(position[0], point, atol=1e-12)
    np.testing.assert_allclose(normal[0], n, atol=1e-12)
    contact = PointContact("hand", point, n, "trunk", (p1 - p0) / (2 * h), (n1 - n0) / (2 * h))
    tau = np.zeros(figure.nv)
    book = da.textbook.contact_equations(figure, q, v, tau, [contact])
    ours = da.textbook.contact_equations(figure, q, v, tau, gaps)
    np.testing.assert_allclose(book.T, ours.T, atol=1e-10)
    np.testing.assert_allclose(book.M, ours.M, atol=1e-10)
    # phi-ddot = d/dt (n . (v_s - v_p)) holds along motions that keep the contact, so compare on one.
    v -= ours.T[:, 0] * (ours.T[:, 0] @ v) / (ours.T[:, 0] @ ours.T[:, 0])
    (p1, n1), (p0, n0) = (crossing(da.integrate(figure, q, k * v)) for k in (h, -h))
    contact = PointContact("hand", point, n, "trunk", (p1 - p0) / (2 * h), (n1 - n0) / (2 * h))
    book = da.textbook.contact_equations(figure, q, v, tau, [contact])
    np.testing.assert_allclose(book.bias, gaps.bias(q, v), atol=1e-7)


def test_crossing_edges_end_at_all_four_ends() -> None:
    """RBDA-11.6-EVENTS: the extent is the distance of the crossing from the nearest end, negative past it."""
    builder = da.ModelBuilder()
    builder.add_body("bar", "world", da.joints.Translation(), inertia=SOLID)
    model = builder.build()
    edge, other = [(0.0, -1.0, 0.3), (0.0, 0.8, 0.3)], [(-1.0, 0.0, 0.0), (0.5, 0.0, 0.0)]
    gaps = da.textbook.feature_gaps(model, [EdgeEdge("bar", edge, on="world", other=other)])
    q = np.random.default_rng(9).uniform(-1.5, 1.5, size=(200, 3))
    x, y, z = q.T
    nearest = np.min([x + 1.0, 0.5 - x, 1.0 - y, 0.8 + y], axis=0)
    np.testing.assert_allclose(gaps.extent(q)[:, 0], nearest, atol=1e-12)
    np.testing.assert_allclose(gaps.value(q)[:, 0], z + 0.3, atol=1e-12)


def test_a_free_body_in_a_system_is_the_body_alone() -> None:
    """RBDA-11.3-SYSTEM: M and d of a free body are those of sections 11.1 and 11.2 in body coordinates."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("body", "world", da.Free(), inertia=SOLID)
    model = builder.build()
    q, v = model.random_state(1)
    rng = np.random.default_rng(1)
    pose = da.forward_kinematics(model, q)["body"]
    points, directions, force = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=6)
    N = da.textbook.contact_normal(points, directions).T
    v -= np.linalg.pinv(N.T) @ (N.T @ v)  # all separation velocities are zero
    omega_world = pose.rotation @ v[:3]
    contacts = [
        # The normal turns with the body here, as on a face of its own.
        PointContact(
            "body",
            pose.rotation @ p + pose.translation,
            pose.rotation @ u,
            normal_rate=np.cross(omega_world, pose.rotation @ u / np.linalg.norm(u)),
        )
        for p, u in zip(points, directions, strict=True)
    ]
    system = da.textbook.contact_equations(model, q, v, force, contacts)
    weight = da.force_at_point(
        model, q, "body", world(model, q, "body", SOLID.com), (0.0, 0.0, -SOLID.mass * G)
    )
    # In body coordinates n is constant; v x* n, which its rate in the world adds, has no power in zeta-dot.
    alone = da.textbook.body_contacts(SOLID, v, force + weight[0], N)
    np.testing.assert_allclose(system.M, alone.M, atol=1e-10)
    np.testing.assert_allclose(system.d, alone.d, atol=1e-9)
    solution = da.textbook.solve_lcp(system.M, system.d)
    np.testing.assert_allclose(system.acceleration(solution.force), alone.acceleration, atol=1e-8)


def test_the_rolling_sphere_keeps_its_contact() -> None:
    """RBDA-11.6-SHAPES: the contact point of a sphere moves like its centre, not like the point of the
    sphere that touches; with that, and with the gap of the shapes, zeta-dot of rolling is zero; without, it
    is not. It rolls for half a second without an impact."""
    radius, mass = 0.3, 2.0
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body(
        "ball", "world", da.Free(), inertia=da.RigidInertia(mass, (0, 0, 0), (0.4 * mass * radius**2,) * 3)
    )
    builder.add_shape("ball", da.shapes.Sphere(radius))
    model = builder.build().with_ground()
    q = model.neutral()
    q[2] = radius
    q[3:7] = np.array([0.5, 0.1, -0.7, 0.3]) / np.linalg.norm([0.5, 0.1, -0.7, 0.3])
    rotation = da.forward_kinematics(model, q)["ball"].rotation
    omega, velocity = np.array([0.0, 4.0, 0.0]), np.array([1.2, 0.0, 0.0])
    v = np.concatenate([rotation.T @ omega, rotation.T @ velocity])
    gaps = da.textbook.shape_gaps(model)
    point = np.array([0.0, 0.0, 0.0])
    hold = np.zeros(6)
    for contacts in (gaps, [PointContact("ball", point, (0.0, 0.0, 1.0), point_velocity=velocity)]):
        equations = da.textbook.contact_equations(model, q, v, hold, contacts)
        assert equations.d[0] == pytest.approx(-G, abs=1e-12)
        assert da.textbook.solve_lcp(equations.M, equations.d).force[0] == pytest.approx(mass * G)
    rolling = da.textbook.simulate_events(model, q, v, gaps, duration=0.5, step=0.002, method="heun3")
    assert rolling.events == ()
    np.testing.assert_allclose(rolling.trajectory.q[-1, :3], [0.6, 0.0, radius], atol=1e-6)
    np.testing.assert_allclose(rolling.trajectory.energy(), rolling.trajectory.energy()[0], rtol=1e-6)
    fixed_to_ball = [PointContact("ball", point, (0.0, 0.0, 1.0), point_velocity=np.zeros(3))]
    wrong = da.textbook.contact_equations(model, q, v, hold, fixed_to_ball)
    assert wrong.d[0] == pytest.approx(
        -G + 4.0**2 * radius, abs=1e-12
    )  # the ball's own point has left already


def test_contacts_of_a_linkage_respect_its_loops() -> None:
    """RBDA-11.3-SYSTEM: M and d of a four-bar linkage are those of its one independent variable y, M =
    t_y^2 / H_y."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, [0.4, 0.3, 1.2], [0.7, 0.0, 0.0])
    gaps = GapFunction(model, lambda model, q: [0.4 + da.scalar.sin(q[2] + 0.3), q[0] - 0.1 * q[1]])
    tau = np.array([0.3, 0.0, -0.2])
    equations = da.textbook.contact_equations(model, q, v, tau, gaps)
    K, k = da.constraints.constraint_jacobian(model, q), da.constraints.constraint_bias(model, q, v)
    _, singular, rows = np.linalg.svd(K)
    free = rows[np.sum(singular > 1e-9) :].T  # v = free y-dot, a = free y-ddot + particular
    assert free.shape[1] == 1
    particular = np.linalg.lstsq(K, k, rcond=1e-10)[0]
    H, C = da.mass_matrix(model, q), da.bias_forces(model, q, v)
    Hy = free.T @ H @ free
    T = gaps.normals(q)
    ydd = np.linalg.solve(Hy, free.T @ (tau - C - H @ particular))
    np.testing.assert_allclose(equations.M, T.T @ free @ np.linalg.solve(Hy, free.T @ T), atol=1e-9)
    expected = T.T @ (free @ ydd + particular) + second_derivative(gaps, model, q, v)
    np.testing.assert_allclose(equations.d, expected, atol=1e-6)


def test_states_of_a_bouncing_ball() -> None:
    """RBDA-11.4-STATES: 1 in flight, 2a as it lands, 2b after an elastic impact, 3 at rest."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("ball", "world", da.Prismatic(axis=(0, 0, 1)), inertia=SOLID)
    model = builder.build()
    floor = GapFunction(model, lambda model, q: [q[0]])
    motion = da.textbook.simulate_events(
        model, [0.5], [0.0], floor, duration=1.2, step=0.01, restitution=0.4, rest_velocity=0.05
    )

    def state(q: Any, v: Any) -> ContactState:
        return da.textbook.contact_states(floor.value(q), floor.rate(q, v))[0]

    flight, *_, rest = motion.events
    assert state(motion.trajectory.q[3], motion.trajectory.v[3]) is ContactState.APART
    assert state(flight.q, flight.v_before) is ContactState.COLLIDING
    assert state(flight.q, flight.v_after) is ContactState.PARTING
    assert state(rest.q, rest.v_after) is ContactState.TOUCHING
    assert state(motion.trajectory.q[-1], motion.trajectory.v[-1]) is ContactState.TOUCHING
    assert [s.value for s in ContactState] == ["1", "2a", "2b", "3"]


def test_three_forms_of_impulsive_dynamics_agree(figure: da.Model) -> None:
    """RBDA-11.7-IMPULSE: u = H dq-dot with u = J^T iota, dv = J dq-dot; iota = I^A dv of the body as a
    handle; and each body's momentum changes by the impulses on it."""
    rng = np.random.default_rng(7)
    q, _ = figure.random_state(7)
    iota = rng.normal(size=6)
    change, of_hand = da.textbook.apply_impulse(figure, q, "hand", iota)
    J = da.jacobian(figure, q, "hand", frame="body")
    np.testing.assert_allclose(da.mass_matrix(figure, q) @ change, J.T @ iota, atol=1e-11)
    IA = np.linalg.inv(da.textbook.body_mobility(figure, q, "hand"))
    np.testing.assert_allclose(da.textbook.body_impulse(IA, of_hand), iota, atol=1e-10)
    # A great force for a short time: the articulated-body algorithm without gravity and velocity.
    forces = np.zeros((3, 6))
    forces[2] = iota
    still = figure.with_values({"gravity": (0.0, 0.0, 0.0)})
    a = da.forward_dynamics(still, q, np.zeros(figure.nv), np.zeros(figure.nv), forces)
    np.testing.assert_allclose(change, a, atol=1e-11)
    # Total momentum about the centre of mass, in the world.
    arm = world(figure, q, "hand", (0.0, 0.0, 0.0)) - da.dynamics.center_of_mass(figure, q)
    push, moment = turned(figure, q, "hand", iota[3:]), turned(figure, q, "hand", iota[:3])
    gained = da.dynamics.centroidal_momentum(figure, q, change)
    np.testing.assert_allclose(gained, [*(moment + np.cross(arm, push)), *push], atol=1e-11)


def test_collisions_of_multibodies_use_the_mobility_of_their_handles(figure: da.Model) -> None:
    """RBDA-11.7-COLLIDE: hand against the world is a collision of two bodies with I^A of the hand; zeta+ =
    -e zeta; with e = 1 energy is kept."""
    q, v = figure.random_state(3)
    pose = da.forward_kinematics(figure, q)["hand"]
    local = np.array([0.1, -0.2, 0.3])
    direction = -pose.rotation @ (v[-3:] + 0.2)
    contact = PointContact("hand", pose.rotation @ local + pose.translation, direction)
    v = -v if da.textbook.contact_equations(figure, q, v, 0 * v, [contact]).velocity[0] > 0 else v
    J = da.jacobian(figure, q, "hand", frame="body")
    IA = np.linalg.inv(da.textbook.body_mobility(figure, q, "hand"))
    n = da.textbook.contact_normal(local, pose.rotation.T @ direction)
    for e in (0.0, 0.4, 1.0):
        after = da.textbook.collide(figure, q, v, [contact], restitution=e)
        bodies = da.textbook.collide_bodies(None, np.zeros(6), IA, J @ v, n, restitution=e)
        np.testing.assert_allclose(J @ after.velocity, bodies.velocities[1], atol=1e-9)
        np.testing.assert_allclose(after.impulse, bodies.multiplier, atol=1e-9)
        before = n @ (J @ v)
        assert after.separation[0] == pytest.approx(-e * before, abs=1e-10)
        lost = da.dynamics.kinetic_energy(figure, q, v) - da.dynamics.kinetic_energy(
            figure, q, after.velocity
        )
        assert lost >= -1e-10
        assert (abs(lost) < 1e-9) == (e == 1.0)
    N = da.textbook.contact_normal(
        local, (pose.rotation.T @ np.linalg.qr(direction[:, None], mode="complete")[0]).T
    ).T
    N = np.column_stack([N[:, 1:], n])
    stuck = da.textbook.collide_sticking(figure, q, v, contact, restitution=0.3)
    expected = da.textbook.collide_bodies_sticking(None, np.zeros(6), IA, J @ v, N, restitution=0.3)
    np.testing.assert_allclose(J @ stuck.velocity, expected.velocities[1], atol=1e-9)
    np.testing.assert_allclose(stuck.separation[:2], 0.0, atol=1e-10)


def test_two_bodies_of_one_system_collide_and_keep_its_momentum(figure: da.Model) -> None:
    """RBDA-11.7-COLLIDE: hand against trunk: internal impulses keep the momentum of the whole, e = 1 the
    energy; and energy never grows in impacts at several points at once."""
    rng = np.random.default_rng(8)
    for seed in range(6):
        q, v = figure.random_state(seed)
        contacts = [
            PointContact("hand", world(figure, q, "hand", rng.normal(size=3)), rng.normal(size=3), first)
            for first in ("trunk", "trunk", "trunk", "arm")
        ]
        before = da.dynamics.centroidal_momentum(figure, q, v), da.dynamics.kinetic_energy(figure, q, v)
        for e in (0.0, 0.5, 1.0, (0.1, 0.9, 0.3, 0.7)):
            try:
                after = da.textbook.collide(figure, q, v, contacts, restitution=e)
            except da.errors.ContactError:
                continue
            np.testing.assert_allclose(
                da.dynamics.centroidal_momentum(figure, q, after.velocity), before[0], atol=1e-9
            )
            assert da.dynamics.kinetic_energy(figure, q, after.velocity) <= before[1] + 1e-9
            assert after.separation.min() >= -1e-9
        single = [
            c for c in contacts if da.textbook.contact_equations(figure, q, v, 0 * v, [c]).velocity[0] < 0
        ][:1]
        if single:
            after = da.textbook.collide(figure, q, v, single, restitution=1.0)
            assert da.dynamics.kinetic_energy(figure, q, after.velocity) == pytest.approx(
                float(before[1]), rel=1e-10
            )


def test_an_impact_on_a_linkage_keeps_its_loops_closed() -> None:
    """RBDA-11.7-COLLIDE"""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, [0.4, 0.3, 1.2], [0.7, 0.0, 0.0])
    gaps = GapFunction(model, lambda model, q: [q[2] * (-1.0 if v[2] > 0 else 1.0)])
    after = da.textbook.collide(model, q, v, gaps, restitution=0.5)
    assert after.separation == pytest.approx(-0.5 * gaps.rate(q, v), abs=1e-10)
    np.testing.assert_allclose(da.constraints.constraint_jacobian(model, q) @ after.velocity, 0.0, atol=1e-8)


def test_wrong_contacts_are_named(figure: da.Model) -> None:
    """RBDA-11.3-SYSTEM"""
    q, v = figure.random_state(0)
    with pytest.raises(ArgumentError, match="itself"):
        da.textbook.contact_equations(figure, q, v, v, [PointContact("hand", (0, 0, 0), (0, 0, 1), "hand")])
    with pytest.raises(DtypeError, match="GapFunction"):
        da.textbook.contact_equations(figure, q, v, v, 3)
    with pytest.raises(ModelError, match="no shapes"):
        da.textbook.shape_gaps(figure)
    with pytest.raises(ShapeError, match="names"):
        GapFunction(figure, lambda model, q: [q[0]], names=("a", "b"))
    away = PointContact("hand", world(figure, q, "hand", (0, 0, 0)), (0, 0, 1))
    rate = da.textbook.contact_equations(figure, q, v, v, [away]).velocity[0]
    with pytest.raises(StateError, match="move apart"):
        da.textbook.collide_sticking(figure, q, v if rate > 0 else -v, away)
    with pytest.raises(da.errors.UnknownNameError, match="nearest"):
        da.textbook.contact_equations(figure, q, v, v, [PointContact("hnd", (0, 0, 0), (0, 0, 1))])

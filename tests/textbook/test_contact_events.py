"""Event-driven simulation of rigid contact, integration steps with dense output, shapes and geometric
events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.errors import ArgumentError, ShapeError, StateError
from dalembert.textbook.contact_gaps import EdgeEdge, GapFunction, VertexFace
from dalembert.textbook.event_driven import simulate_events

G = 9.81


def body(mass: float, *inertia: float) -> Any:
    return da.RigidInertia(mass, (0.0, 0.0, 0.0), inertia)


def bead(joints: int = 1, mass: float = 1.0) -> da.Model:
    """A point mass that moves along z, or along x and z."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    if joints == 1:
        builder.add_body("bead", "world", da.Prismatic(axis=(0, 0, 1)), inertia=body(mass, 1e-3, 1e-3, 1e-3))
    else:
        builder.add_body("slide", "world", da.Prismatic(axis=(1, 0, 0)), inertia=body(1e-9, 1e-9, 1e-9, 1e-9))
        builder.add_body("bead", "slide", da.Prismatic(axis=(0, 0, 1)), inertia=body(mass, 1e-3, 1e-3, 1e-3))
    return builder.build()


def planar(mass: float, inertia: float) -> da.Model:
    """A body in the plane x, y; gravity along -y."""
    builder = da.ModelBuilder(gravity=(0.0, -G, 0.0))
    builder.add_body("body", "world", da.joints.Planar(), inertia=body(mass, 1.0, 1.0, inertia))
    return builder.build()


def test_a_ball_bounces_at_the_times_of_the_closed_form() -> None:
    """RBDA-11.5-PROCEDURE: it lands after sqrt(2 h/g) (1 + 2 e + 2 e^2 + …), at e times the speed each
    time, and rests in the end; complementarity problems are solved at events where contact lasts alone."""
    model, h, e = bead(), 1.2, 0.6
    floor = GapFunction(model, lambda model, q: [q[0]])
    motion = simulate_events(model, [h], [0.0], floor, duration=2.5, step=0.02, restitution=e)
    first = np.sqrt(2 * h / G)
    times = first * (1.0 + 2.0 * np.cumsum(e ** np.arange(1, 11)))
    found = [event.time for event in motion.events]
    np.testing.assert_allclose(found[:11], [first, *times], atol=1e-7)
    for number, event in enumerate(motion.events[:11]):
        assert event.kind == "collision"
        assert event.v_before[0] == pytest.approx(-np.sqrt(2 * G * h) * e**number, rel=1e-6)
        assert event.v_after[0] == pytest.approx(-e * event.v_before[0], rel=1e-9)
        assert event.impulse[0] == pytest.approx((1 + e) * -event.v_before[0], rel=1e-9)
    assert [abs(event.v_before[0]) > 1e-3 for event in motion.events] == [True] * (len(found) - 1) + [False]
    assert motion.events[-1].active == (0,)
    assert motion.trajectory.observed["contact_force"][-1] == pytest.approx(G)
    assert motion.solved == 1
    assert motion.trajectory.observed["gap"].min() > -1e-7


def test_an_elastic_ball_keeps_its_energy() -> None:
    """RBDA-11.5-PROCEDURE"""
    model = bead()
    floor = GapFunction(model, lambda model, q: [q[0]])
    motion = simulate_events(model, [0.5], [0.3], floor, duration=2.0, step=0.01, restitution=1.0)
    assert len(motion.events) > 2
    np.testing.assert_allclose(motion.trajectory.energy(), motion.trajectory.energy()[0], rtol=1e-6)


@pytest.fixture(scope="module")
def table_and_rod() -> tuple[da.Model, GapFunction]:
    """A flat rod 1 m long on a table whose edge is at x = 0."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("rod", "world", da.Free(), inertia=body(2.0, 1e-3, 2.0 / 12, 2.0 / 12))
    model = builder.build()
    table = [(-2.0, -1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 1.0, 0.0), (-2.0, 1.0, 0.0)]
    sides = (-0.05, 0.05)
    features = [VertexFace("rod", (x, y, 0.0), on="world", face=table) for x in (-0.5, 0.5) for y in sides]
    features += [
        EdgeEdge("rod", [(-0.5, y, 0), (0.5, y, 0)], on="world", other=[(0, 1, 0), (0, -1, 0)]) for y in sides
    ]
    return model, da.textbook.feature_gaps(model, features)


def test_a_rod_falls_off_a_table(table_and_rod: tuple[da.Model, GapFunction]) -> None:
    """RBDA-11.5-PROCEDURE: released with its centre 0.1 m past the edge it turns about the edge, slides,
    and leaves where the contact force vanishes, as the two equations of Lagrange of that motion say; the
    complementarity problem is solved at the start and at that event alone."""
    model, gaps = table_and_rod
    m, I, s0 = 2.0, 2.0 / 12, 0.1
    q = model.neutral()
    q[0] = s0
    motion = simulate_events(model, q, np.zeros(6), gaps, duration=0.5, step=0.001, method="heun3")

    def accelerations(y: Any) -> tuple[float, float]:
        s, theta, ds, dtheta = y  # the centre is s beyond the edge along the rod, theta below the horizontal
        return (
            s * dtheta**2 + G * np.sin(theta),
            (m * G * s * np.cos(theta) - 2 * m * s * ds * dtheta) / (I + m * s * s),
        )

    def force(t: float, y: Any) -> float:
        s, theta, ds, dtheta = y
        across = s * accelerations(y)[1] + 2 * ds * dtheta  # of the centre, downward across the rod
        return float(m * (G * np.cos(theta) - across))

    force.terminal = True  # type: ignore[attr-defined]
    expected = solve_ivp(
        lambda t, y: [y[2], y[3], *accelerations(y)],
        (0, 1),
        [s0, 0, 0, 0],
        events=force,
        rtol=1e-10,
        atol=1e-12,
    )
    released = motion.trajectory.observed["contact_force"][0]
    assert released[:4] == pytest.approx(np.zeros(4))
    assert released.sum() == pytest.approx(m * G * I / (I + m * s0**2), rel=1e-9)
    (event,) = motion.events
    assert event.kind == "negative force"
    assert event.time == pytest.approx(expected.t_events[0][0], abs=2e-7)
    assert motion.solved == 2 < len(motion.trajectory) / 100
    s, theta, _, dtheta = expected.y_events[0][0]
    np.testing.assert_allclose(event.q[[0, 2]], [s * np.cos(theta), -s * np.sin(theta)], atol=1e-6)
    assert event.v_after[1] == pytest.approx(dtheta, abs=1e-6)
    np.testing.assert_allclose(motion.trajectory.energy(), 0.0, atol=1e-7)


def test_contacts_are_lost_where_features_end(table_and_rod: tuple[da.Model, GapFunction]) -> None:
    """RBDA-11.6-EVENTS: the rod slides off the table at 2 m/s: its front corners leave the face at 0.25 s,
    it tips as its centre passes the edge at 0.5 s, and its edges run off the table's edge at last."""
    model, gaps = table_and_rod
    q = model.neutral()
    q[0] = -1.0
    motion = simulate_events(model, q, [0, 0, 0, 2.0, 0, 0], gaps, duration=0.8, step=0.002)
    losses = [event for event in motion.events if event.kind == "contact loss"]
    assert losses[0].contacts == (2, 3)
    assert losses[0].time == pytest.approx(0.25, abs=1e-9)
    tipping = [event for event in motion.events if event.active == (4, 5)]
    assert tipping[0].time == pytest.approx(0.5, abs=1e-6)
    assert losses[1].contacts == (4, 5)
    assert gaps.extent(losses[1].q)[4] == pytest.approx(0.0, abs=1e-9)
    assert not any(event.kind in ("collision", "contact gain") for event in motion.events)
    # Until it tips the forces carry the weight with its moment about the edge.
    forces, times = motion.trajectory.observed["contact_force"], motion.trajectory.time
    record = motion.trajectory.contacts
    assert record is not None
    np.testing.assert_allclose(record.force[50].sum(axis=0), [0.0, 0.0, 2.0 * G], rtol=1e-7, atol=1e-9)
    early = times < 0.5
    np.testing.assert_allclose(forces[early].sum(axis=1), 2.0 * G, rtol=1e-7)
    x = -1.0 + 2.0 * times[early]
    feet = np.array([-0.5, -0.5, 0.5, 0.5])
    moments = (forces[early, :4] * (x[:, None] + feet)).sum(axis=1)
    np.testing.assert_allclose(moments, 2.0 * G * x, atol=1e-6)


def test_what_falls_beside_a_table_may_move_below_it() -> None:
    """RBDA-11.6-EVENTS: a gap that a bead passed where it did not face the table does not close when it
    comes to lie below the table's top; one that falls from above lands on it."""
    model = bead(2)
    table = [(-2.0, -1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 1.0, 0.0), (-2.0, 1.0, 0.0)]
    gaps = da.textbook.feature_gaps(model, [VertexFace("bead", (0.0, 0.0, 0.0), on="world", face=table)])
    for step in (0.01, 0.8):  # also where it passes top and edge in one step
        beside = simulate_events(model, [0.5, 0.3], [-1.0, 0.0], gaps, duration=0.8, step=step)
        assert beside.events == ()
        assert beside.trajectory.q[-1, 1] == pytest.approx(0.3 - 0.5 * G * 0.8**2)
        above = simulate_events(model, [0.1, 0.3], [-1.0, 0.0], gaps, duration=0.8, step=step)
        assert [event.kind for event in above.events] == ["collision"]
        assert above.trajectory.q[-1] == pytest.approx([-0.7, 0.0], abs=1e-8)


def test_a_tilted_box_lands_on_an_edge_and_then_on_its_face() -> None:
    """RBDA-11.6-EVENTS: a collision first, then a gain of contact between bodies that touch; without bounce
    it rests with all its weight on the ground (RBDA-11.5-PROCEDURE)."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("box", "world", da.Free(), inertia=body(3.0, 0.03, 0.02, 0.04))
    builder.add_shape("box", da.shapes.Box((0.3, 0.2, 0.2)))
    model = builder.build().with_ground()
    gaps = da.textbook.shape_gaps(model)
    q = model.neutral()
    q[2], q[3:7] = 0.4, [np.cos(0.1), 0.0, np.sin(0.1), 0.0]
    motion = simulate_events(model, q, np.zeros(6), gaps, duration=1.5, step=0.004)
    kinds = [event.kind for event in motion.events]
    assert kinds[0] == "collision"
    assert len(motion.events[0].contacts) == 2
    assert "contact gain" in kinds
    assert motion.trajectory.observed["contact_force"][-1].sum() == pytest.approx(3.0 * G, rel=1e-6)
    record = motion.trajectory.contacts
    assert record is not None
    assert record.names == (("ground", "box"),) * 8
    np.testing.assert_allclose(record.force[-1].sum(axis=0), [0.0, 0.0, 3.0 * G], atol=1e-5)
    moments = np.cross(record.position[-1] - motion.trajectory.q[-2, :3], record.force[-1]).sum(axis=0)
    np.testing.assert_allclose(moments, 0.0, atol=1e-6)
    assert np.sum(np.abs(record.position[-1, :, 2]) < 1e-6) == 4
    assert np.abs(motion.trajectory.v[-1][:2]).max() < 1e-6
    energies = motion.trajectory.energy()
    assert np.diff(energies).max() < 1e-5 * energies[0]
    assert motion.solved < len(motion.trajectory) / 5


@pytest.mark.parametrize(("seed", "e"), [(0, 0.0), (1, 0.3)])
def test_a_thrown_box_tumbles_and_comes_to_rest(seed: int, e: float) -> None:
    """RBDA-11.5-PROCEDURE: thrown with any spin it rolls over its corners, loses energy at impacts alone,
    never sinks in, and lies on a face in the end, which bears its weight."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("box", "world", da.Free(), inertia=body(1.0, 0.02, 0.03, 0.04))
    builder.add_shape("box", da.shapes.Box((0.2, 0.3, 0.4)))
    model = builder.build().with_ground()
    q, v = model.random_state(seed)
    q[:3] = 0.0, 0.0, 1.0
    gaps = da.textbook.shape_gaps(model)
    motion = simulate_events(model, q, v, gaps, duration=2.0, step=0.005, restitution=e, rest_velocity=0.01)
    assert motion.trajectory.observed["gap"].min() > -1e-5
    energies = motion.trajectory.energy()
    assert np.diff(energies).max() < 1e-4 * energies[0]
    assert motion.trajectory.observed["contact_force"][-1].sum() == pytest.approx(G, rel=1e-6)
    assert np.sum(motion.trajectory.observed["gap"][-1] < 1e-5) == 4
    for event in motion.events:
        before = da.dynamics.kinetic_energy(model, event.q, event.v_before)
        assert da.dynamics.kinetic_energy(model, event.q, event.v_after) <= before + 1e-6


def test_round_bodies_slide_and_spin_without_impacts_and_polygons_do_not() -> None:
    """RBDA-11.6-SHAPES: a spinning disc keeps its contact and its energy; a hexagon of the same size makes
    an impact with every corner, loses energy in each if they are plastic and bounces if they are
    elastic."""
    radius = 0.2
    model = planar(1.0, 0.02)
    disc = GapFunction(model, lambda model, q: [q[1] - radius])
    state = [0.0, radius, 0.0], [5.0, 1.0, 0.0]
    smooth = simulate_events(model, *state, disc, duration=1.0, step=0.002, method="heun3")
    assert smooth.events == ()
    np.testing.assert_allclose(smooth.trajectory.energy(), smooth.trajectory.energy()[0], rtol=1e-6)
    np.testing.assert_allclose(smooth.trajectory.observed["contact_force"], G, rtol=1e-6)

    corners = [np.pi * k / 3 for k in range(6)]
    hexagon = GapFunction(model, lambda model, q: [q[1] + radius * da.scalar.sin(q[2] + c) for c in corners])
    start = [0.0, radius * np.sin(np.pi / 3), 0.0], [5.0, 1.0, 0.0]
    plastic = simulate_events(model, *start, hexagon, duration=1.0, step=0.005)
    impacts = [event for event in plastic.events if event.impulse.any()]
    assert len(impacts) >= 2
    lost = [
        da.dynamics.kinetic_energy(model, event.q, event.v_before)
        - da.dynamics.kinetic_energy(model, event.q, event.v_after)
        for event in impacts
    ]
    assert min(lost) > 0.0
    assert sum(lost) > 0.1
    elastic = simulate_events(model, *start, hexagon, duration=0.5, step=0.005, restitution=1.0)
    assert elastic.trajectory.observed["gap"].min(axis=1).max() > 0.001  # it flies
    np.testing.assert_allclose(elastic.trajectory.energy(), elastic.trajectory.energy()[0], rtol=1e-4)


def test_a_concave_slope_of_flat_pieces_costs_energy_at_each_edge() -> None:
    """RBDA-11.6-SHAPES: a bead slides in a round bowl for ever, dn/dt included; in a bowl of eight flat
    pieces it makes an impact at every concave edge."""
    model, R = bead(2), 1.0
    bowl = GapFunction(model, lambda model, q: [R - da.scalar.sqrt(q[0] * q[0] + q[1] * q[1])])
    start = [R * np.sin(1.0), -R * np.cos(1.0)], [0.0, 0.0]
    smooth = simulate_events(model, *start, bowl, duration=1.5, step=0.002, method="heun3")
    assert smooth.events == ()
    np.testing.assert_allclose(smooth.trajectory.energy(), smooth.trajectory.energy()[0], atol=1e-5)
    # The contact force is m (g cos + v^2 / R).
    angle = np.arctan2(smooth.trajectory.q[:, 0], -smooth.trajectory.q[:, 1])
    speed2 = (smooth.trajectory.v**2).sum(axis=1)
    expected = G * np.cos(angle) + speed2 / R
    np.testing.assert_allclose(smooth.trajectory.observed["contact_force"][:, 0], expected, atol=1e-4)

    def pieces(model: Any, q: Any) -> list[Any]:
        tilts = [np.pi * (k + 0.5) / 8 - np.pi / 2 for k in range(8)]
        return [R - q[0] * np.sin(t) + q[1] * np.cos(t) for t in tilts]

    faces = GapFunction(model, pieces)
    tilt = np.pi * 6.5 / 8 - np.pi / 2
    on_face = [R * np.sin(tilt), -R * np.cos(tilt)], [0.0, 0.0]
    flat = simulate_events(model, *on_face, faces, duration=1.5, step=0.005)
    impacts = [event for event in flat.events if event.impulse.any()]
    assert len(impacts) >= 3
    assert flat.trajectory.energy()[-1] < flat.trajectory.energy()[0] - 0.1


def test_a_linkage_bounces_off_its_stops_with_its_loops_closed() -> None:
    """RBDA-11.5-PROCEDURE: the crank of a four-bar linkage swings between two stops; elastic impacts keep
    its energy, which plastic ones do not, and the loop stays closed through both."""
    model = da.models.four_bar()
    q, v = da.constraints.close_loops(model, [0.4, 0.3, 1.2], [8.0, 0.0, 0.0], hold=["crank_pivot"])
    low, high = float(q[0]) - 0.15, float(q[0]) + 0.15
    stops = GapFunction(model, lambda model, q: [q[0] - low, high - q[0]], names=("low", "high"))
    for e in (1.0, 0.0):
        motion = simulate_events(model, q, v, stops, duration=0.2, step=0.001, restitution=e, method="heun3")
        impacts = [event for event in motion.events if event.impulse.any()]
        assert impacts
        assert np.abs(da.constraints.constraint_error(model, motion.trajectory.q)).max() < 1e-6
        energy = motion.trajectory.energy()
        if e == 1.0:
            assert len(impacts) >= 3
            np.testing.assert_allclose(energy, energy[0], rtol=1e-5)
        else:
            assert energy[-1] < energy[0] - 0.1
        for event in impacts:
            K = da.constraints.constraint_jacobian(model, event.q)
            np.testing.assert_allclose(K @ event.v_after, 0.0, atol=1e-5)
            (stop,) = event.contacts
            assert stops.rate(event.q, event.v_after)[stop] == pytest.approx(
                -e * stops.rate(event.q, event.v_before)[stop], abs=1e-7
            )


@pytest.mark.parametrize(("x", "speed", "push"), [(-0.1, 0.5, 0.0), (1e-12, 0.5, 0.0), (0.0, 0.0, 2.0)])
def test_a_disc_in_a_narrowing_slot_stops_after_a_little_penetration(
    x: float, speed: float, push: float
) -> None:
    """RBDA-11.2-NOSOL: the walls of Example 11.1 curve inward past x = 0, where their normals cannot stop
    the disc; a simulation lets it penetrate a little, until they can."""
    model, rho = bead(2), 2.0

    def walls(model: Any, q: Any) -> list[Any]:
        x, z = q
        arcs = [rho - da.scalar.sqrt(x * x + (z + side * rho) * (z + side * rho)) for side in (1.0, -1.0)]
        return [
            da.scalar.select(x > 0.0, arc, -side * z) for arc, side in zip(arcs, (1.0, -1.0), strict=True)
        ]

    slot = GapFunction(model, walls)
    motion = simulate_events(model, [x, 0.0], [speed, 0.0], slot, duration=0.6, step=0.005, tau=[push, G])
    assert motion.trajectory.q[-1, 0] == pytest.approx(0.0, abs=2e-3)
    assert abs(motion.trajectory.v[-1, 0]) < 1e-3
    assert motion.trajectory.q[:, 0].max() < 2e-3
    assert motion.trajectory.observed["gap"].min() > -1e-6
    assert motion.events
    if speed:
        assert sum(event.impulse.any() for event in motion.events) == 1
    if x > 0.0:
        assert motion.events[0].kind == "no solution"
        equations = da.textbook.contact_equations(model, [x, 0.0], [speed, 0.0], [push, G], slot)
        assert equations.d.sum() == pytest.approx(-2 * speed**2 / rho, rel=1e-6)
        with pytest.raises(da.errors.ContactError):
            da.textbook.solve_lcp(equations.M, equations.d)


def test_wrong_simulations_are_named() -> None:
    """RBDA-11.5-PROCEDURE"""
    model = bead()
    floor = GapFunction(model, lambda model, q: [q[0]])
    with pytest.raises(StateError, match=r"overlap by 0\.1 m"):
        simulate_events(model, [-0.1], [0.0], floor, duration=1.0, step=0.1)
    with pytest.raises(ArgumentError, match="positive"):
        simulate_events(model, [0.1], [0.0], floor, duration=1.0, step=-0.1)
    with pytest.raises(ShapeError, match="tau"):
        simulate_events(model, [0.1], [0.0], floor, duration=1.0, step=0.1, tau=[1.0, 2.0])
    with pytest.raises(ShapeError, match="q: expected"):
        simulate_events(model, [0.1, 0.2], [0.0], floor, duration=1.0, step=0.1)

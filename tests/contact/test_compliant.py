"""Forces of compliant contact: Coulomb's law, what they do to bodies, and any forward dynamics after them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.algorithms.kinematics import body_velocities, forward_kinematics
from dalembert.contact import (
    CompliantLaw,
    LinearSurface,
    PatchState,
    compliant_forces,
    friction_force,
    pairs_of,
    patches_after,
    patches_at_rest,
)
from dalembert.contact.pairs import contact_points
from dalembert.errors import ShapeError
from dalembert.model.tree import PerBody
from dalembert.spatial import Mat3, Vec3

G = 9.81
SIDE, MASS = 0.2, 2.0
LAW = CompliantLaw(LinearSurface(2e4, 200.0), friction_stiffness=3e4, friction_damping=150.0)
UPRIGHT = [1.0, 0.0, 0.0, 0.0]


def box(slope: float, friction: float) -> da.Model:
    """On a horizontal ground under a gravity that leans towards x."""
    shape = da.shapes.Box((SIDE, SIDE, SIDE), friction=(0.0, 0.0, 0.0))
    builder = da.ModelBuilder(gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    builder.add_body("box", "world", da.Free(), inertia=shape.inertia(mass=MASS))
    builder.add_shape("box", shape)
    return builder.build().with_ground(friction=friction)


def contact_function(model: da.Model, dt: float | None = None) -> tuple[Any, int]:
    """(q, v, z, x) to forces at points, external forces, and rates of states; with dt the states after it."""
    pairs = pairs_of(model)

    def forces(model: da.Model, q: Any, v: Any, z: Any, x: Any) -> Any:
        poses, own = forward_kinematics(model, q), body_velocities(model, q, v)
        moving = PerBody([pose.inverse_apply(motion) for pose, motion in zip(poses, own, strict=True)])
        points = contact_points(poses, pairs)
        states = [PatchState([a], Vec3(*b)) for a, b in zip(z, x, strict=True)]
        found = compliant_forces(points, moving, states, LAW)
        rates = found.rates if dt is None else patches_after(points, moving, states, LAW, dt)
        return (
            [list(f) for f in found.points],
            [list(f.leaves()) for f in found.bodies],
            [rate.z[0] for rate in rates],
            [list(rate.x) for rate in rates],
            [list(point.point.position) for point in points],
            [list(point.point.normal) for point in points],
            [point.point.gap for point in points],
        )

    count = len(contact_points(forward_kinematics(model, model.random_state(0)[0].tolist()), pairs))
    return da.compile(forces, model, inputs={"z": (count,), "x": (count, 3)}), count


def slid(model: da.Model, v0: float, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """q and v of the box after some time on the ground, from rest on its springs or with a speed along x."""
    dt = 2e-4
    forces, n = contact_function(model, dt)
    sink = -MASS * model.gravity.z / (n * LAW.normal.stiffness)
    q, v = np.array([0.0, 0.0, 0.5 * SIDE - sink, *UPRIGHT]), np.array([0.0, 0.0, 0.0, v0, 0.0, 0.0])
    z, x = np.full(n, -sink), np.zeros((n, 3))
    for _ in range(round(duration / dt)):
        _, external, z, x, *_ = forces(q, v, z, x)
        v = v + dt * da.forward_dynamics(model, q, v, np.zeros(6), external, external_frame="world")
        q = da.integrate(model, q, dt * v)
    return q, v


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_a_block_on_an_incline_sticks_below_the_angle_of_friction_and_slides_above(mu):
    """RBDA-11.8-COULOMB"""
    for share in (0.95, 1.15):
        slope = np.arctan(mu * share)
        q, v = slid(box(slope, mu), 0.0, 0.5)
        if share < 1.0:
            assert abs(q[0]) < 1e-3
            assert abs(v[3]) < 1e-4
        else:
            pull = G * (np.sin(slope) - mu * np.cos(slope))
            _, earlier = slid(box(slope, mu), 0.0, 0.25)
            assert v[3] - earlier[3] == pytest.approx(pull * 0.25, rel=0.002)


def test_a_sliding_block_slows_by_mu_g_and_stays_where_it_stops():
    """RBDA-11.8-COULOMB"""
    mu, v0 = 0.4, 1.5
    model = box(0.0, mu)
    (_, early), (_, late) = slid(model, v0, 0.1), slid(model, v0, 0.3)
    assert early[3] - late[3] == pytest.approx(mu * G * 0.2, rel=0.002)
    q, v = slid(model, v0, 0.7)
    assert abs(v[3]) < 1e-3
    assert q[0] == pytest.approx(v0**2 / (2.0 * mu * G), rel=0.02)


def test_friction_is_in_its_cone_and_holds_what_it_can():
    """RBDA-11.8-COULOMB: Eqs 11.78 and 11.79 in a plane of any direction."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        x, v = Vec3(*rng.normal(scale=1e-3, size=3)), Vec3(*rng.normal(scale=0.1, size=3))
        limit = rng.uniform(0.0, 100.0)
        f, sticks = friction_force(x, v, limit, K=3e4, D=150.0)
        wanted = -(3e4 * np.array(x.to_list()) + 150.0 * np.array(v.to_list()))
        assert bool(sticks) == (np.linalg.norm(wanted) <= limit)
        size = min(np.linalg.norm(wanted), limit)
        np.testing.assert_allclose(f.to_list(), wanted * size / np.linalg.norm(wanted), rtol=1e-12)
        held += bool(sticks)
    assert 20 < held < 180


@pytest.fixture(scope="module")
def walker() -> da.Model:
    """An arm of three links on a moving base, whose ball and hand touch the ground and each other."""
    builder = da.ModelBuilder()
    inertia = da.shapes.Sphere(0.15).inertia(mass=1.5)
    builder.add_body("base", "world", da.Free(), inertia=inertia)
    builder.add_body(
        "upper",
        "base",
        da.Revolute((0.0, 1.0, 0.0)),
        inertia=inertia,
        placement=da.Transform(Mat3.identity(), Vec3(0.3, 0.0, 0.0)),
    )
    builder.add_body(
        "hand",
        "upper",
        da.Revolute((1.0, 0.0, 0.3)),
        inertia=inertia,
        placement=da.Transform(Mat3.identity(), Vec3(0.1, 0.2, 0.0)),
    )
    for name in ("base", "hand"):
        builder.add_shape(name, da.shapes.Sphere(0.2, friction=(0.2, 0.0, 0.0)))
    return builder.build().with_ground(friction=0.7)


def touching_states(model: da.Model, n: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    q, v = np.stack([model.random_state(k)[0] for k in range(n)]), rng.normal(size=(n, model.nv))
    q[:, 2] = 0.2 + rng.normal(scale=0.01, size=n)
    return [q, v, rng.uniform(-0.01, 0.0, size=(n, count)), rng.normal(scale=1e-3, size=(n, count, 3))]


def pushed(model: da.Model, q: np.ndarray, points: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """J^T f of all points on the bodies that they touch, by Jacobians at the world's origin."""
    total = np.zeros((len(q), model.nv))
    names = point_bodies(model)
    assert len(names) == points.shape[1]
    for k, bodies in enumerate(names):
        wrench = np.concatenate([np.cross(positions[:, k], points[:, k]), points[:, k]], axis=1)
        for body, sign in zip(bodies, (-1.0, 1.0), strict=True):
            if body >= 0:
                J = da.jacobian(model, q, model.bodies[body].name, frame="world")
                total += sign * np.einsum("bij,bi->bj", J, wrench)
    return total


def point_bodies(model: da.Model) -> list[tuple[int, int]]:
    points = contact_points(forward_kinematics(model, model.random_state(0)[0].tolist()), pairs_of(model))
    return [(point.first, point.second) for point in points]


def test_contact_forces_are_external_forces_of_any_forward_dynamics(walker):
    """RBDA-11.8-DECOUPLED: M a = tau - b + sum of J^T f, J by points; ABA, CRBA and others alike."""
    forces, n = contact_function(walker)
    q, v, z, x = touching_states(walker, 40, n)
    points, external, _, _, positions, *_ = forces(q, v, z, x)
    pressed = np.linalg.norm(points, axis=2) > 0.0
    assert pressed.any(axis=0).all()
    tau = np.random.default_rng(5).normal(size=v.shape)
    generalized = pushed(walker, q, points, positions)
    b = da.bias_forces(walker, q, v)
    exact = np.linalg.solve(da.mass_matrix(walker, q), (tau - b + generalized)[..., None])[..., 0]
    for method in ("aba", "crba", "floating_base"):
        found = da.forward_dynamics(
            walker, q, v, tau, external_forces=external, external_frame="world", method=method
        )
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-8)


def test_contact_forces_act_on_closed_loops():
    """RBDA-11.8-DECOUPLED: M a = tau - b + J^T f + K^T lambda and K a = k, by the dense equations."""
    model = da.models.four_bar().with_ground(height=0.15, friction=0.7)
    forces, n = contact_function(model)
    rng = np.random.default_rng(8)
    states = [model.random_state(k) for k in range(30)]
    q, v = np.stack([q for q, _ in states]), 2.0 * np.stack([v for _, v in states])
    z, x = rng.uniform(-0.3, 0.0, size=(30, n)), rng.normal(scale=1e-3, size=(30, n, 3))
    points, external, _, _, positions, *_ = forces(q, v, z, x)
    assert (np.linalg.norm(points, axis=2) > 0.0).any(axis=1).sum() > 10
    tau = rng.normal(size=v.shape)
    known = tau - da.bias_forces(model, q, v) + pushed(model, q, points, positions)
    M, K, k = (
        da.mass_matrix(model, q),
        da.constraints.constraint_jacobian(model, q),
        da.constraints.constraint_bias(model, q, v),
    )
    for i in range(len(q)):
        rows = K.shape[1]
        whole = np.block([[M[i], K[i].T], [K[i], np.zeros((rows, rows))]])
        exact = np.linalg.lstsq(whole, np.concatenate([known[i], k[i]]), rcond=1e-10)[0][: model.nv]
        for method in ("range_space", "direct"):
            found = da.forward_dynamics(
                model, q[i], v[i], tau[i], external[i], external_frame="world", method=method
            )
            np.testing.assert_allclose(found, exact, rtol=1e-7, atol=1e-6)


def test_two_moving_bodies_push_each_other_equally():
    """RBDA-11.8-EXTEND: p is their relative position; the forces on both add up to nothing."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    for name in ("a", "b"):
        builder.add_body(name, "world", da.Free(), inertia=da.shapes.Sphere(0.2).inertia(mass=1.0))
        builder.add_shape(name, da.shapes.Sphere(0.2, friction=(0.6, 0.0, 0.0)))
    model = builder.build()
    forces, n = contact_function(model)
    assert n == 1
    rng = np.random.default_rng(1)
    q, v = np.tile([0.0] * 3 + UPRIGHT, (50, 2)), rng.normal(size=(50, 12))
    way = rng.normal(size=(50, 3))
    q[:, 7:10] = way / np.linalg.norm(way, axis=1)[:, None] * rng.uniform(0.38, 0.41, size=(50, 1))
    points, external, *_ = forces(
        q, v, rng.uniform(-0.01, 0.0, size=(50, 1)), rng.normal(size=(50, 1, 3)) * 1e-3
    )
    assert (np.linalg.norm(points, axis=(1, 2)) > 0.0).sum() > 10
    np.testing.assert_allclose(external.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(external[:, 1, 3:], points[:, 0], atol=1e-12)


def test_contact_dissipates_and_never_pulls(walker):
    """RBDA-11.8-NORMAL, RBDA-11.8-COULOMB: power into bodies and springs together is never positive."""
    forces, n = contact_function(walker)
    q, v, z, x = touching_states(walker, 400, n)
    z = np.minimum(z, 1.0)
    probe = forces(q, v, z, x)
    z = np.minimum(z, probe[6])
    points, external, z_rate, x_rate, _, normals, _ = forces(q, v, z, x)
    normal = np.einsum("bki,bki->bk", points, normals)
    assert normal.min() >= 0.0
    across = np.linalg.norm(points - normals * normal[..., None], axis=2)
    mu = np.array([pair.friction for pair in pairs_of(walker)])
    assert (across <= mu * normal + 1e-9).all()
    with_contact = da.forward_dynamics(
        walker, q, v, np.zeros_like(v), external_forces=external, external_frame="world"
    )
    without = da.forward_dynamics(walker, q, v, np.zeros_like(v))
    M = da.mass_matrix(walker, q)
    power = np.einsum("bi,bij,bj->b", v, M, with_contact - without)
    x = x - normals * np.einsum("bki,bki->bk", x, normals)[..., None]
    springs = LAW.normal.stiffness * z * z_rate + LAW.friction_stiffness * np.einsum("bki,bki->bk", x, x_rate)
    friction = points - normals * normal[..., None]
    balance = LAW.friction_stiffness * x + LAW.friction_damping * x_rate + friction  # Eq. 11.77
    np.testing.assert_allclose(balance, 0.0, atol=1e-8)
    assert (normal > 0.0).sum() > 50
    assert (power + springs.sum(axis=1)).max() < 1e-9


def test_states_are_those_of_the_points():
    model = box(0.0, 0.5)
    points = contact_points(forward_kinematics(model, [0.0, 0.0, 0.1, *UPRIGHT]), pairs_of(model))
    rest = patches_at_rest(points, LAW)
    assert len(rest) == len(points)
    with pytest.raises(ShapeError, match="states of patches"):
        compliant_forces(points, PerBody([]), rest[1:], LAW)

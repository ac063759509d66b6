"""Motion without contact: momenta, the orders of all integrators, and energy over a million steps."""

from __future__ import annotations

import numpy as np
from physics_drops import links
from physics_findings import Array, Finding, Findings, G, below, greatest

import dalembert as da

ORDERS = {"euler": 1, "semi_implicit": 1, "implicit": 1, "heun": 2, "variational": 2, "rk4": 4}
FREE = (0.0, 0.0, 0.0)


def stone(gravity: tuple[float, float, float]) -> da.Model:
    """One body, its centre off its origin."""
    builder = da.ModelBuilder(gravity=gravity)
    solid = da.RigidInertia(2.0, (0.3, 0.1, -0.2), (0.1, 0.2, 0.25))
    builder.add_body("stone", "world", da.Free(), inertia=solid)
    return builder.build()


def top() -> da.Model:
    """A ball joint, a hinge and a slide, with springs and dampers, under gravity."""
    builder = da.ModelBuilder()
    solid = da.RigidInertia(1.3, (0.05, -0.02, 0.3), (0.02, 0.03, 0.015))
    builder.add_body("top", "world", da.Spherical(), inertia=solid, damping=0.2, stiffness=0.5)
    out = da.Transform.from_rotation_translation(np.eye(3), (0.1, 0.0, 0.4))
    builder.add_body("arm", "top", da.Revolute((1, 0, 0)), placement=out, inertia=solid, damping=0.1)
    builder.add_body("bead", "arm", da.Prismatic((0, 0, 1)), inertia=solid, stiffness=30.0)
    return builder.build()


def momentum(model: da.Model, q: Array, v: Array) -> Array:
    """Angular momentum about the world's origin, and linear momentum `(…, 6)`."""
    h = da.dynamics.centroidal_momentum(model, q, v)
    moment = h[..., :3] + np.cross(da.dynamics.center_of_mass(model, q), h[..., 3:])
    return np.concatenate([moment, h[..., 3:]], axis=-1)


def single_body() -> Findings:
    """10,000 steps, spinning at 6 rad/s: p is kept in free space, and grows by m g t under gravity. Steps of
    10 ms are for integrators of order two on: the others give such a spin energy, and it explodes.
    """
    v = np.array([3.0, -2.0, 5.0, 0.4, 0.1, -0.3])
    worst = 0.0
    for name, order in ORDERS.items():
        for dt in (0.001,) if order == 1 else (0.001, 0.01):
            for g in (FREE, (0.0, 0.0, -G)):
                model = stone(g)
                run = da.rollout(model, model.neutral(), v, steps=10_000, dt=dt, integrator=name, every=1000)
                p = da.dynamics.centroidal_momentum(model, run.q, run.v)[:, 3:]
                off = p - p[0] - model.total_mass * np.array(g) * run.time[:, np.newaxis]
                error = np.inf if run.failed else np.abs(off).max() / max(1.0, np.abs(p).max())
                worst = greatest(worst, error)
    yield below(
        f"linear momentum of one body in flight, {len(ORDERS)} integrators, 10,000 steps",
        "kept",
        worst,
        1e-10,
    )


def multibody() -> Findings:
    """The humanoid in free space, and thrown; dampers of its joints act inside it."""
    model = da.models.humanoid()
    rng = np.random.default_rng(0)
    v = rng.normal(size=model.nv)
    floating = model.with_values({"gravity": FREE})
    for who, figure, g in (("in free space", floating, 0.0), ("thrown", model, G)):
        run = da.rollout(
            figure, figure.neutral(), v, steps=1000, dt=0.002, integrator="variational", every=100
        )
        about = da.dynamics.centroidal_momentum(figure, run.q, run.v)
        about[:, 5] += figure.total_mass * g * run.time
        scale = np.abs(about[0]).max()
        error = np.abs(about - about[0]).max() / scale
        yield below(
            f"variational: momenta of a humanoid {who}, 2 s",
            "kept",
            float(error),
            1e-10,
        )
    floating = links().with_values({"gravity": FREE})
    v = rng.normal(size=floating.nv) * 2.0
    begun = momentum(floating, floating.neutral(), v)
    for name, order in ORDERS.items():
        if name == "variational":
            continue
        losses = []
        for n in (40, 80, 160):
            run = da.rollout(floating, floating.neutral(), v, steps=n, dt=0.2 / n, integrator=name, every=n)
            losses.append(np.linalg.norm(momentum(floating, run.q[-1], run.v[-1]) - begun))
        yield order_of(f"{name}: momenta of three bricks on joints converge", losses, order, least=True)


def order_of(law: str, errors: list[float], order: int, *, least: bool = False) -> Finding:
    """Whether errors at halved steps fall at an order, or faster."""
    found = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    holds = found[-1] > order - 0.15 and (least or found[-1] < order + 0.15)
    shown = ", ".join(f"{x:.2f}" for x in found)
    return Finding(law, f"order {order}", shown, f">= {order - 0.15:g}" if least else "+- 0.15", bool(holds))


def orders() -> Findings:
    """Refinement on a ball joint with a hinge and a slide, against Dormand and Prince at 1e-13."""
    model = top()
    q, v = np.array([1.0, 0.0, 0.0, 0.0, 0.3, 0.1]), np.array([0.8, -0.5, 4.0, 1.0, 0.2])
    exact = da.simulation.integrate_adaptive(model, q, v, duration=0.2, rtol=1e-13, atol=1e-14)

    def error(end_q: Array, end_v: Array) -> float:
        return float(np.linalg.norm([*da.difference(model, exact.q[-1], end_q), *(end_v - exact.v[-1])]))

    for name, order in ORDERS.items():
        errors = []
        for n in (20, 40, 80, 160):
            run = da.rollout(model, q, v, steps=n, dt=0.2 / n, integrator=name, every=n)
            errors.append(error(run.q[-1], run.v[-1]))
        yield order_of(f"{name}: refinement on a quaternion joint", errors, order)
    errors = []
    for n in (16, 32, 64):
        run = da.simulation.integrate_adaptive(
            model, q, v, duration=0.2, rtol=1e3, atol=1e3, max_step=0.2 / n * (1 + 1e-12)
        )
        errors.append(error(run.q[-1], run.v[-1]))
    yield order_of("Dormand-Prince with steps held: the same", errors, 5, least=True)


def pendulum() -> Findings:
    """A million variational steps of 10 ms from 115 degrees: energy errors as shares of 2 m g l."""
    model = da.models.pendulum(length=1.0)
    run = da.rollout(model, [2.0], [0.0], steps=1_000_000, dt=0.01, integrator="variational", every=10)
    swing = np.ptp(da.dynamics.potential_energy(model, np.array([[0.0], [np.pi]])))
    error = (run.energy() - run.energy()[0]) / swing
    first, last = np.abs(error[:10_000]).max(), np.abs(error[-10_000:]).max()
    yield below("pendulum, 10^6 variational steps: energy error in the first 10^5", "bounded", first, 1e-3)
    yield below("the same in the last 10^5", f"{first:.3g}", last, 1.01 * first)
    drift = abs(error[-10_000:].mean() - error[:10_000].mean())
    yield below("drift of its mean from the first to the last 10^5", "0", drift, 1e-6)


def experiments() -> list[tuple[str, Findings]]:
    return [
        ("one body in flight", single_body()),
        ("a figure in flight", multibody()),
        ("orders", orders()),
        ("pendulum", pendulum()),
    ]

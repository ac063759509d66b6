"""Rolling without slip: Euler's disc by its formula, a rattleback by equations of its own."""

from __future__ import annotations

import numpy as np
from physics_findings import Array, Findings, G, below
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.model.shapes import Ellipsoid

AXES = (0.2, 0.03, 0.02)
CENTER = np.array([0.0, 0.0, -0.01])
INERTIA = np.array([[0.0002, -0.0002, 0.0], [-0.0002, 0.0016, 0.0], [0.0, 0.0, 0.0017]])
SPIN, ROCK = 5.0, 0.1


def disc() -> Findings:
    """A coin that whirls, its centre at rest, goes around with sqrt(4 g / (a sin(alpha))). Steps are of order
    one: their error is about the angle that it turns by in a step."""
    radius, mass = 0.04, 0.4
    builder = da.ModelBuilder()
    moments = mass * radius**2 * np.array([0.25, 0.25, 0.5])
    builder.add_body("disc", "world", da.Free(), inertia=da.RigidInertia(mass, (0, 0, 0), moments))
    builder.add_shape("disc", Ellipsoid((radius, radius, radius / 200)))
    model = builder.build().with_ground()
    lean = np.radians([20.0, 30.0, 45.0, 60.0])
    formula = np.sqrt(4.0 * G / (radius * np.sin(lean)))
    q, v = np.tile(model.neutral(), (len(lean), 1)), np.zeros((len(lean), 6))
    q[:, 2], q[:, 3], q[:, 5] = radius * np.sin(lean), np.cos(lean / 2), np.sin(lean / 2)
    v[:, 0] = -formula * np.sin(lean)
    errors = []
    for dt in (1e-4, 5e-5):
        steps = round(0.2 / dt)
        found = da.rollout(model, q, v, steps=steps, dt=dt, contact="rigid", every=10, record_contacts=False)
        axis = found.poses().rotation[..., 0, :, 2]
        around = np.unwrap(np.arctan2(axis[..., 1], axis[..., 0]))
        errors.append(np.abs((around[:, -1] - around[:, 0]) / found.time[-1] / formula - 1.0).max())
    yield below(
        "rigid: Euler's disc goes around, 0.1 ms", "sqrt(4 g / (a sin))", errors[0] * 1e2, 1.0, " % off"
    )
    yield below(
        "rigid: the same, 0.05 ms: the error falls with the step", "a half", errors[1] / errors[0], 0.6
    )


def rolling_rates(_: float, x: Array) -> Array:
    """Rates of (gamma, omega) of an ellipsoid that rolls, in its own frame; gamma points upwards.

    With r from the centre of mass to the point of contact, v = - omega x r, and
    I omega' + omega x I omega = r x m (v' + omega x v + g gamma).
    """
    gamma, omega = x[:3], x[3:]
    square = np.array(AXES) ** 2
    size = np.sqrt(gamma @ (square * gamma))
    turned = np.cross(gamma, omega)
    r = -square * gamma / size - CENTER
    r_rate = -square * turned / size + square * gamma * (gamma @ (square * turned)) / size**3
    v = -np.cross(omega, r)
    known = np.cross(r, -np.cross(omega, r_rate) + np.cross(omega, v) + G * gamma)
    skew = np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])
    matrix = INERTIA - skew @ skew
    return np.concatenate([turned, np.linalg.solve(matrix, known - np.cross(omega, INERTIA @ omega))])


def rattleback() -> Findings:
    """Kane and Levinson's stone (1982, 1 kg), spun either way, turns back when rolling without slip does."""
    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Free(), inertia=da.RigidInertia(1.0, CENTER, INERTIA))
    builder.add_shape("stone", Ellipsoid(AXES))
    model = builder.build().with_ground(friction=5.0)
    q, v = np.tile(model.neutral(), (2, 1)), np.zeros((2, 6))
    q[:, 2], v[:, 1], v[:, 3] = AXES[2], ROCK, ROCK * AXES[2]
    v[:, 2] = SPIN, -SPIN
    turns = []
    for spin in (SPIN, -SPIN):
        start = [0.0, 0.0, 1.0, 0.0, ROCK, spin]
        stop = solve_ivp(rolling_rates, (0.0, 3.5), start, events=lambda t, x: x[5], rtol=1e-10, atol=1e-12)
        turns.append(float(stop.t_events[0][0]))
    for dt in (1e-4, 1e-3):
        found = da.rollout(model, q, v, steps=round(3.2 / dt), dt=dt, contact="rigid", record_contacts=False)
        for k, way in enumerate(("late", "soon")):
            spin = found.v[k, :, 2]
            last = int(np.argmax(spin * spin[0] < 0.0))
            when = found.time[last] - dt * spin[last] / (spin[last] - spin[last - 1])
            off = abs(when / turns[k] - 1.0) * 1e2
            law = f"rigid: a rattleback turns back {way}, {dt * 1e3:g} ms"
            yield below(law, f"{turns[k]:.3f} s (SciPy)", off, 1.0, " % off")


def experiments() -> list[tuple[str, Findings]]:
    return [("Euler's disc", disc()), ("rattleback", rattleback())]

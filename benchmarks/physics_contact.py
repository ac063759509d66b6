"""Closed forms of contact: inclines, spheres that come to roll, rebound, stacks; rigid and compliant."""

from __future__ import annotations

import numpy as np
from physics_findings import UPRIGHT, Array, Finding, Findings, G, ball, below, block, body, greatest

import dalembert as da

SAG = 1e-3
"""How far [m] compliant surfaces give way to a whole weight on one point, by default."""

SHARES = np.array([0.5, 0.9, 0.99, 1.01, 1.1, 1.5, 2.5])
"""tan(theta) / mu."""

SLOPES = [
    ("brick", 0.01, 0.1, 0.5),
    ("brick", 0.2, 2.0, 0.3),
    ("brick", 2.0, 1000.0, 1.0),
    ("sled", 0.05, 0.1, 0.1),
    ("sled", 0.5, 75.0, 0.8),
    ("tripod", 0.05, 0.1, 1.0),
    ("tripod", 1.0, 1000.0, 0.5),
]
"""Body, its length [m], mass [kg], friction."""

STEPS = (0.001, 0.002, 0.005, 0.01)
FALLS = (0.0, 0.25, 0.5, 0.8, 1.0)


def slider(kind: str, length: float, mass: float, mu: float) -> tuple[da.Model, float, int]:
    """A brick, a sled on two capsules, or a plate on three balls; the height of its centre above the ground,
    and the number of points that it stands on."""
    if kind == "brick":
        size = (length, length, length / 4)
        return body([da.shapes.Box(size)], mass, moments(size, mass), friction=mu), length / 8, 4
    plate = moments((length, length, length / 4), mass)
    placed = da.Transform.from_rotation_translation
    if kind == "sled":
        along = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
        runners = [
            da.shapes.Capsule(length / 10, length, placement=placed(along, (0.0, y * length / 2, 0.0)))
            for y in (-1, 1)
        ]
        return body(runners, mass, plate, friction=mu), length / 10, 4
    feet = [
        da.shapes.Sphere(length / 8, placement=placed(np.eye(3), (x * length / 2, y * length / 2, 0.0)))
        for x, y in ((1.0, 0.0), (-0.5, 0.8), (-0.5, -0.8))
    ]
    return body(feet, mass, plate, friction=mu), length / 8, 3


def moments(size: tuple[float, float, float], mass: float) -> Array:
    tensor = block(size, mass).inertia_at_com
    return np.array([tensor.xx, tensor.yy, tensor.zz])


def slopes(law: str) -> Findings:
    """At rest for 0.2 s, tilted within 0.3 s, then watched for 1 s, the latter half of it measured.

    The tilt is a weight m g cos(theta) and a force m g sin(theta) along x.
    """
    slips: dict[str, float] = {}
    errors: dict[str, float] = {}
    for kind, length, mass, mu in SLOPES:
        model, height, points = slider(kind, length, mass, mu)
        theta = np.arctan(mu * SHARES)
        q = np.array([0.0, 0.0, height - (SAG / points if law == "compliant" else 0.0), *UPRIGHT])
        weight = np.stack([0.0 * theta, 0.0 * theta, -G * np.cos(theta)], axis=-1)
        for dt in STEPS:
            count, half = round(1.5 / dt), round(0.5 / dt)
            push = np.zeros((len(theta), count, 1, 6))
            push[:, :, 0, 3] = np.clip((np.arange(count) * dt - 0.2) / 0.3, 0.0, 1.0)
            push[:, :, 0, 3] *= (mass * G * np.sin(theta))[:, np.newaxis]
            found = da.rollout(
                model,
                np.tile(q, (len(theta), 1)),
                np.zeros(6),
                steps=count,
                dt=dt,
                contact=law,
                external_forces=push,
                external_frame="center",
                parameters={"gravity": weight},
                record_contacts=False,
            )
            name = f"{kind} {length:g} m, mu {mu:g}, {dt * 1e3:g} ms"
            moved = np.abs(found.q[:, -1, 0] - found.q[:, -1 - half, 0])[SHARES < 1.0].max()
            expected = G * (np.sin(theta) - mu * np.cos(theta))
            rates = (found.v[:, -1, 3] - found.v[:, -1 - half, 3]) / 0.5
            wrong = np.abs(rates / expected - 1.0)[SHARES > 1.0].max()
            slips[name], errors[name] = float(moved), float(wrong)
    stuck = below(
        f"{law}: inclines stick at tan = 0.5, 0.9, 0.99 mu ({len(SLOPES)} bodies, 1 to 10 ms)",
        "0 mm",
        greatest(*slips.values()) * 1e3,
        0.1,
        " mm",
    )
    off = 1e2 * greatest(*errors.values())
    slid = below(f"{law}: slide at 1.01 to 2.5 mu", "g (sin - mu cos)", off, 1.0, " % off")
    for finding, where in ((stuck, slips), (slid, errors)):
        yield finding._replace(found=f"{finding.found} ({max(where, key=where.__getitem__)})")


def rolling(law: str) -> Findings:
    """A sphere that slips keeps 5/7 of its speed, one that spins gets 2/7 of that of its skin, whatever the
    friction: angular momentum about the ground is kept,

    v = v_0 / (1 + s),   v = omega_0 r' s / (1 + s),   s = 2/5 (r / r')^2

    with the lever r' = r, less half the sag of compliant surfaces, as forces act midway. Rigid points give
    way in the first step, by 0.1 g h^2: 0.1 mm at 10 ms, of which a lever of 1 cm feels half a percent.
    """
    errors = {"5/7": 0.0, "2/7": 0.0}
    for radius, mass, mu in ((0.01, 0.1, 0.5), (0.1, 1.0, 0.1), (1.0, 1000.0, 0.3)):
        model = ball(radius, mass, friction=mu)
        sag = SAG if law == "compliant" else 0.0
        lever = radius - sag / 2
        s = 0.4 * (radius / lever) ** 2
        v = np.zeros((2, 6))
        v[0, 3], v[1, 1] = 1.0, 1.0 / lever
        q = np.array([0.0, 0.0, radius - sag, *UPRIGHT])
        for dt in STEPS:
            steps = round(3.0 * 2.0 / (7.0 * mu * G) / dt)
            found = da.rollout(model, np.tile(q, (2, 1)), v, steps=steps, dt=dt, contact=law)
            speed = along_ground(found)
            errors["5/7"] = greatest(errors["5/7"], abs(speed[0] * (1.0 + s) - 1.0))
            errors["2/7"] = greatest(errors["2/7"], abs(speed[1] * (1.0 + s) / s - 1.0))
    for ratio, error in errors.items():
        start = "slipping" if ratio == "5/7" else "spinning"
        yield below(
            f"{law}: a {start} sphere comes to roll (1 cm to 1 m, 1 to 10 ms)",
            f"{ratio} of the speed",
            error * 1e2,
            0.5,
            " %",
        )


def along_ground(found: da.Trajectory) -> Array:
    """The speed along x in the world at the end."""
    turned = found.poses().rotation[:, -1, 0]
    return np.einsum("nj,nj->n", turned[:, 0], found.v[:, -1, 3:6])


def rebounds() -> Findings:
    """Balls, and bricks that land on four points, dropped from 1 m: speeds after and before the hit.

    With e = 0 points that have given way push back a little: what they bore a step before was not all impact.
    From 400 heights it is 0.0376 of the speed at most, by the gap at the start of the step of the impact.
    """
    worst = dict.fromkeys(FALLS, 0.0)
    for e in FALLS:
        for kind, mass in (("ball", 0.1), ("ball", 1000.0), ("brick", 1.0)):
            if kind == "ball":
                model, low = ball(0.1, mass, restitution=e), 0.1
            else:
                size = (0.2, 0.2, 0.1)
                model, low = body([da.shapes.Box(size)], mass, moments(size, mass), restitution=e), 0.05
            for dt in STEPS:
                count = round(0.6 / dt)
                start = [0.0, 0.0, low + 1.0, *UPRIGHT]
                found = da.rollout(model, start, np.zeros(6), steps=count, dt=dt, contact="rigid")
                speed = found.v[:, 5]
                hit = int(np.argmin(speed))
                upward = greatest(speed[hit:], 0.0)
                worst[e] = greatest(worst[e], abs(upward / -speed[hit] - e))
    for e, error in worst.items():
        yield below(
            f"rigid: restitution {e:g} (balls, bricks; 0.1 to 1000 kg)",
            f"{e:g}",
            error,
            1e-3 if e else 0.04,
        )


def spring_rebounds() -> Findings:
    """A ball without weight on a spring and damper that cannot pull comes back with

    e = exp(- beta/omega (pi - arctan(2 beta omega / (omega^2 - beta^2)))),   beta = D / 2m,
    omega^2 = K / m - beta^2 (Schwager and Poeschel 2007).
    """
    for ratio in (0.05, 0.2, 0.5):
        stiffness, mass = 4e4, 1.0
        natural = np.sqrt(stiffness / mass)
        beta, omega = ratio * natural, natural * np.sqrt(1.0 - ratio**2)
        e = np.exp(-beta / omega * (np.pi - np.arctan(2.0 * beta * omega / (omega**2 - beta**2))))
        law = da.contact.Compliant(stiffness=stiffness, damping=2.0 * beta * mass)
        model = ball(0.1, mass, gravity=0.0)
        found = da.rollout(
            model,
            [0.0, 0.0, 0.1 + 1e-6, *UPRIGHT],
            [0.0, 0.0, 0.0, 0.0, 0.0, -1.0],
            steps=4000,
            dt=1e-5,
            contact=law,
            every=10,
        )
        yield below(
            f"compliant: rebound with a damping ratio of {ratio:g}",
            f"{e:.4f}",
            abs(found.v[-1, 5] / e - 1.0) * 1e2,
            1.0,
            " % off",
        )


def stack(law: str) -> Findings:
    """Ten boxes of 20 cm and 1 kg for 60 s. Compliant ones sink in first: the time after 2 s counts."""
    builder = da.ModelBuilder()
    side, count = 0.2, 10
    for k in range(count):
        builder.add_body(f"box {k}", "world", da.Free(), inertia=block((side, side, side), 1.0))
        builder.add_shape(f"box {k}", da.shapes.Box((side, side, side)))
    model = builder.build().with_ground(friction=0.6)
    pairs = [("ground", "box 0"), *((f"box {k}", f"box {k + 1}") for k in range(count - 1))]
    q = np.concatenate([[0.0, 0.0, (k + 0.5) * side, *UPRIGHT] for k in range(count)])
    contact = (da.contact.Rigid if law == "rigid" else da.contact.Compliant)(pairs=pairs)
    for dt in (0.002, 0.005):
        found = da.rollout(
            model,
            q,
            np.zeros(model.nv),
            steps=round(60.0 / dt),
            dt=dt,
            every=round(1.0 / dt),
            contact=contact,
        )
        places = found.q.reshape(61, count, 7)[..., :3]
        begun = 0 if law == "rigid" else 2
        drift = np.linalg.norm(places[begun:] - places[begun], axis=-1).max()
        since = "" if law == "rigid" else ", after 2 s"
        yield below(
            f"{law}: stack of 10 boxes, 60 s at {dt * 1e3:g} ms{since}", "0 mm", drift * 1e3, 1.0, " mm"
        )
        assert found.contacts is not None
        bottom = found.contacts.force[-1, [name == pairs[0] for name in found.contacts.names], 2].sum()
        yield below(
            f"{law}: its weight on the ground, {dt * 1e3:g} ms",
            f"{count * G:.1f} N",
            abs(bottom / (count * G) - 1.0) * 1e2,
            0.1,
            " % off",
        )


def heavy_on_light(law: str) -> Findings:
    """1000 kg on 1 kg and on 1 g, after 2 s at 2 and 5 ms. Compliant surfaces of light bodies are as stiff as
    those of a tenth of the heaviest, so that they yield by ten weights over four corners, twice."""
    worst = 0.0
    for light in (1.0, 1e-3):
        builder = da.ModelBuilder()
        for name, mass, side in (("light", light, 0.2), ("heavy", 1000.0, 0.5)):
            builder.add_body(name, "world", da.Free(), inertia=block((side, side, side), mass))
            builder.add_shape(name, da.shapes.Box((side, side, side)))
        model = builder.build().with_ground(friction=0.6)
        q = np.array([0.0, 0.0, 0.1, *UPRIGHT, 0.0, 0.0, 0.45, *UPRIGHT])
        for dt in (0.002, 0.005):
            found = da.rollout(model, q, np.zeros(12), steps=round(2.0 / dt), dt=dt, contact=law)
            worst = greatest(worst, np.abs(found.q[-1, [2, 9]] - q[[2, 9]]))
    sag = 0.0 if law == "rigid" else 5.25
    yield below(f"{law}: 1000 kg on 1 kg and on 1 g sink in", f"{sag:g} mm", worst * 1e3, sag + 0.1, " mm")


def experiments() -> list[tuple[str, Findings]]:
    found: list[tuple[str, Findings]] = []
    for law in ("rigid", "compliant"):
        found += [(f"inclines, {law}", slopes(law)), (f"rolling, {law}", rolling(law))]
    found += [("rebound, rigid", rebounds()), ("rebound, compliant", spring_rebounds())]
    for law in ("rigid", "compliant"):
        found += [(f"stack, {law}", stack(law)), (f"heavy on light, {law}", heavy_on_light(law))]
    return found


__all__ = ["Finding", "experiments"]

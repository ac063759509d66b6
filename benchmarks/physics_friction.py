"""Closed forms of friction that holds, turns and drives: a pinch, spinning and rolling, a belt, a linkage."""

from __future__ import annotations

import numpy as np
from physics_contact import SAG
from physics_findings import UPRIGHT, Array, Findings, G, below, block, greatest

import dalembert as da

STEPS = (0.001, 0.002, 0.005)
"""[s]"""

SQUEEZE, SERVO = 11.9, 5950.0
"""The force [N] of each pad of the pinch: 2 mm of servos of so many N/m."""

TORSIONAL, ROLLING = 0.005, 0.004
"""Coefficients [m] of friction against turning."""


def pinch(law: str) -> Findings:
    """The capsule of MuJoCo's issue 3328, 45 g with mu = 0.7 between two pads, which creeps by 50 to 155 µm/s
    by the recipe of MuJoCo's documentation. Held for 5 s; the first second, in which pads close, is left out.
    """
    capsule, pad = da.shapes.Capsule(0.01, 0.06), da.shapes.Box((0.01, 0.04, 0.04), friction=(0.7, 0.0, 0.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("capsule", joint=da.Free(), inertia=capsule.inertia(mass=0.045), shapes=[capsule])
    for name, side in (("left", -1.0), ("right", 1.0)):
        place = da.Transform.from_rotation_translation(np.eye(3), (side * 0.015, 0.0, 0.0))
        slide = da.Prismatic((-side, 0.0, 0.0))
        builder.add_body(name, joint=slide, placement=place, inertia=pad.inertia(mass=0.2), shapes=[pad])
        builder.add_actuator(name, {name: 1.0}, gain=SERVO, bias=(0.0, -SERVO, -50.0))
    model = builder.build()
    controls = da.control.Actuators([SQUEEZE / SERVO] * 2)
    creep, off, speed = 0.0, 0.0, 0.0
    for dt in STEPS:
        found = da.rollout(
            model,
            model.neutral(),
            np.zeros(model.nv),
            controls,
            steps=round(5.0 / dt),
            dt=dt,
            contact=law,
            every=round(1.0 / dt),
        )
        creep = greatest(creep, np.abs(found.q[-1, 2] - found.q[1, 2]) / 4.0)
        speed = greatest(speed, np.abs(found.v[-1]).max())
        assert found.contacts is not None
        left = ["left" in names for names in found.contacts.names]
        squeeze = np.abs(found.contacts.force[-1, left, 0].sum())
        off = greatest(off, np.abs(squeeze / SQUEEZE - 1.0))
    yield below(f"{law}: a pinched capsule creeps (MuJoCo issue 3328)", "0", creep * 1e6, 0.1, " µm/s")
    yield below(f"{law}: velocities recorded of what does not move", "0", speed * 1e3, 0.01, " mm/s")
    yield below(f"{law}: the force that pinches it", f"{SQUEEZE:g} N", off * 1e2, 1.0, " % off")


def loose(shape: da.Shape, mass: float) -> da.Model:
    """A body that lies on ground with friction of all kinds."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    builder.add_body("body", joint=da.Free(), inertia=shape.inertia(mass=mass), shapes=[shape])
    return builder.build().with_ground(friction=(0.5, TORSIONAL, ROLLING), condim=6)


def spinning(law: str) -> Findings:
    """A ball that spins on the spot stops after I omega / (mu_t m g). A disc on its face also has sliding
    friction at its rim: it stops after I omega / ((mu R + mu_t) m g)."""
    no_friction, spin = (0.0, 0.0, 0.0), 20.0
    for name, shape, low, arm, points in (
        ("ball", da.shapes.Sphere(0.1, friction=no_friction), 0.1, 0.0, 1),
        ("disc", da.shapes.Cylinder(0.15, 0.02, friction=no_friction), 0.01, 0.5 * 0.15, 4),
    ):
        model = loose(shape, 2.0)
        moment = model.bodies["body"].inertia.inertia_at_com.zz
        stop = moment * spin / ((arm + TORSIONAL) * 2.0 * G)
        sag = SAG / points if law == "compliant" else 0.0
        worst = 0.0
        for dt in STEPS:
            q, v = [0.0, 0.0, low - sag, *UPRIGHT], [0.0, 0.0, spin, 0.0, 0.0, 0.0]
            found = da.rollout(model, q, v, steps=round(1.2 * stop / dt), dt=dt, contact=law)
            # The straight line on which the spin falls, from a tenth to nine tenths of the time.
            t = found.time
            part = (t > 0.1 * stop) & (t < 0.9 * stop)
            slope, start = np.polyfit(t[part], found.v[part, 2], 1)
            worst = greatest(worst, abs(-start / slope / stop - 1.0), np.abs(found.v[-1, 2]) / spin)
        closed = "I w / (mu_t m g)" if name == "ball" else "I w / ((mu R + mu_t) m g)"
        yield below(f"{law}: a spinning {name} stops", f"{closed}", worst * 1e2, 0.5, " % off")


def rolling_resistance(law: str) -> Findings:
    """A ball that rolls is slowed by mu_r g r / (7/5 r^2) and stops after v^2 / 2 of that."""
    radius, speed = 0.1, 0.6
    model = loose(da.shapes.Sphere(radius, friction=(0.0, 0.0, 0.0)), 2.0)
    sag = SAG if law == "compliant" else 0.0
    lever = radius - sag / 2
    slowing = ROLLING * G * lever / (0.4 * radius**2 + lever**2)
    way, worst = speed**2 / (2.0 * slowing), 0.0
    for dt in STEPS:
        q, v = [0.0, 0.0, radius - sag, *UPRIGHT], [0.0, speed / lever, 0.0, speed, 0.0, 0.0]
        found = da.rollout(model, q, v, steps=round(1.3 * speed / slowing / dt), dt=dt, contact=law)
        worst = greatest(worst, abs(found.q[-1, 0] / way - 1.0), np.abs(found.v[-1]).max() / speed)
    yield below(f"{law}: a rolling ball stops", "7 v² r / (10 mu_r g)", worst * 1e2, 1.0, " % off")


def belt(law: str) -> Findings:
    """A box put on a belt of speed u slides back by u^2 / (2 mu g) and then stands still on the belt, whose
    motor pulls with mu m g until then and with nothing afterwards."""
    mu, speed, mass, side = 0.3, 0.6, 2.0, 0.2
    strip = da.shapes.Box((6.0, 1.0, 0.1), friction=(mu, 0.0, 0.0))
    cube = da.shapes.Box((side, side, side), friction=(0.0, 0.0, 0.0))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    joint = da.Prismatic((1, 0, 0))
    builder.add_body("belt", joint=joint, joint_name="motor", inertia=strip.inertia(mass=5.0), shapes=[strip])
    builder.add_body("box", joint=da.Free(), inertia=block((side, side, side), mass), shapes=[cube])
    model = builder.build()
    q, v = model.neutral(), np.zeros(model.nv)
    q[3] = 0.15 - (0.25 * SAG if law == "compliant" else 0.0)
    v[0] = speed
    way, pull, slip = speed**2 / (2.0 * mu * G), 0.0, 0.0
    for dt in STEPS:
        given = {"motor": da.control.Belt(speed)}
        found = da.rollout(model, q, v, steps=round(1.0 / dt), dt=dt, contact=law, prescribed=given)
        t, stuck = found.time, speed / (mu * G)
        back = speed * t[-1] - (found.q[-1, 1] - q[1])
        slip = greatest(slip, abs(back - way))
        slides, rests = (t[1:] > 0.2 * stuck) & (t[1:] < 0.9 * stuck), t[1:] > 2.0 * stuck
        force = found.tau[:, 0] / (mu * mass * G)
        pull = greatest(pull, np.abs(force[slides] - 1.0), np.abs(force[rests]))
    yield below(f"{law}: a box slides back on a belt", f"{way * 1e3:.2f} mm", slip * 1e3, 2.0, " mm off")
    yield below(f"{law}: the motor of the belt pulls", "mu m g, then 0", pull * 1e2, 1.0, " % off")


def linkage(law: str) -> Findings:
    """A driven crank of radius r moves a slider at the end of a rod of length l,

        x = l cos(phi) - r cos(theta),   l sin(phi) = r sin(theta),   theta = a t^2 / 2,

    which pushes a box over rough ground: until the dead centre the motor needs
    (mu m g + (m + m_slider) x'') dx/dtheta, and the box stays where the slider turns back, 2 r farther.
    """
    r, rod, mass, mu, rate = 0.1, 0.3, 2.0, 0.4, 0.8
    model, q = slider_and_box(r, rod, mass, mu)
    if law == "compliant":
        q[5] -= 0.25 * SAG
    turn = lambda model, t: 0.5 * rate * t * t
    errors = {"slider": 0.0, "torque": 0.0, "box": 0.0}
    for dt in STEPS:
        found = da.rollout(
            model,
            q,
            np.zeros(model.nv),
            steps=round(3.2 / dt),
            dt=dt,
            contact=law,
            prescribed={"crank": turn},
        )
        theta, omega = 0.5 * rate * found.time**2, rate * found.time
        lean = np.arcsin(r * np.sin(theta) / rod)
        slope = r * np.sin(theta) - r * np.cos(theta) * np.tan(lean)
        x = rod * np.cos(lean) - r * np.cos(theta) - (rod - r)
        errors["slider"] = greatest(errors["slider"], np.abs(found.q[:, 2] - x))
        leaning = r * np.cos(theta) / (rod * np.cos(lean))
        curved = r * np.cos(theta) + r * np.sin(theta) * np.tan(lean)
        curved -= r * np.cos(theta) * leaning / np.cos(lean) ** 2
        acceleration = rate * slope + omega**2 * curved
        needed = (mu * mass * G + (mass + 0.5) * acceleration) * slope
        pushes = (theta > 0.3) & (theta < 0.95 * np.pi)
        middle = 0.5 * (needed[1:] + needed[:-1])
        off = np.abs(found.tau[:, 0] - middle)[pushes[1:]].max() / needed.max()
        errors["torque"] = greatest(errors["torque"], off)
        errors["box"] = greatest(errors["box"], abs(found.q[-1, 3] - q[3] - 2.0 * r))
    yield below(f"{law}: the slider of a driven crank", "closed form", errors["slider"] * 1e3, 0.1, " mm off")
    torque = "(mu m g + m x'') dx/dtheta"
    yield below(f"{law}: the motor that pushes a box by it", torque, errors["torque"] * 1e2, 2.0, " % off")
    yield below(f"{law}: the box ends beyond the dead centre", "2 r", errors["box"] * 1e3, 2.0, " mm off")


def slider_and_box(r: float, rod: float, mass: float, mu: float) -> tuple[da.Model, Array]:
    """A crank and a rod of 1 g in a level plane, a slider of 0.5 kg, and a box that it touches."""
    height, side, ram = 0.05, 0.1, da.shapes.Sphere(0.04, friction=(0.0, 0.0, 0.0))
    cube = da.shapes.Box((side, side, side), friction=(0.0, 0.0, 0.0))
    at = lambda x, z=0.0: da.Transform.from_rotation_translation(np.eye(3), (x, 0.0, z))
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -G))
    hinge = da.Revolute((0, 0, 1))
    light = lambda length: da.RigidInertia(
        1e-3, (0.5 * length, 0.0, 0.0), np.full(3, 1e-3 * length**2 / 12.0)
    )
    builder.add_body("crank", joint=hinge, placement=at(0.0, height), inertia=light(-r))
    builder.add_body("rod", "crank", hinge, placement=at(-r), inertia=light(rod))
    builder.add_body(
        "slider",
        joint=da.Prismatic((1, 0, 0)),
        placement=at(rod - r, height),
        inertia=ram.inertia(mass=0.5),
        shapes=[ram],
    )
    builder.add_loop("pin", "rod", "slider", hinge, at(rod), at(0.0))
    builder.add_body("box", joint=da.Free(), inertia=block((side, side, side), mass), shapes=[cube])
    model = builder.build().with_ground(friction=mu)
    q = model.neutral()
    q[3], q[5] = rod - r + 0.04 + 0.5 * side, 0.5 * side
    return model, q


def experiments() -> list[tuple[str, Findings]]:
    return [
        (f"{name}, {law}", found(law))
        for name, found in (
            ("pinch", pinch),
            ("spinning", spinning),
            ("rolling resistance", rolling_resistance),
            ("belt", belt),
            ("driven linkage", linkage),
        )
        for law in ("rigid", "compliant")
    ]

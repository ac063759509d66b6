"""Drops: how far a humanoid overlaps the ground, and whether contact ever does work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from physics_findings import UPRIGHT, Array, Findings, G, below, block, body, greatest

import dalembert as da
from dalembert.algorithms.energy_momentum import kinetic_energy
from dalembert.algorithms.kinematics import forward_kinematics
from dalembert.contact.compliant_step import FIRST_STEP_MARK
from dalembert.contact.pairs import contact_points, pairs_of
from dalembert.contact.step import contact_step
from dalembert.model.shapes import Ellipsoid

DROPS = 1000
EVEN = ("sphere", "cube", "cylinder", "ellipsoid", "mesh")
DT = 0.002
HALF = float(np.sqrt(0.5))
TURNS = {
    "upright": UPRIGHT,
    "on its back": (HALF, 0.0, -HALF, 0.0),
    "on its front": (HALF, 0.0, HALF, 0.0),
    "on its side": (HALF, HALF, 0.0, 0.0),
    "on its head": (0.0, 1.0, 0.0, 0.0),
}


def turns(rng: np.random.Generator, count: int) -> Array:
    """Unit quaternions, all turns alike."""
    q = rng.normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def deepest(motion: da.Trajectory) -> float:
    """The greatest overlap of any point in any step [mm]."""
    assert motion.contacts is not None
    return float(-min(motion.contacts.gap.min(), 0.0) * 1e3)


def humanoid() -> Findings:
    """75 kg, steps of 2 ms: standing for 10 s under PD control, let go 0.5 m above the ground in five turns,
    and 256 thrown limp at random."""
    model = da.models.humanoid().with_ground()
    law = da.contact.Rigid(self_collision=False)
    soft = da.contact.Compliant(self_collision=False)
    start = np.array(model.neutral())
    ground = pairs_of(model, self_collision=False)
    start[2] -= da.contact.distances(model, start, pairs=ground).gap.min()
    gains = np.r_[np.zeros(6), np.ones(model.nv - 6)]
    servo = da.control.Servo(kp=2000.0 * gains, kd=100.0 * gains)
    for name, contact in (("rigid", law), ("compliant", soft)):
        stood = da.rollout(model, start, np.zeros(model.nv), servo, 5000, DT, contact=contact)
        assert stood.contacts is not None
        weight = stood.contacts.force[-1, :, 2].sum() / (75.0 * G)
        yield below(f"{name}: humanoid of 75 kg stands for 10 s", "0 mm", deepest(stood), 1.0, " mm")
        yield below(f"{name}: ground forces at the end", "its weight", abs(weight - 1.0) * 1e2, 0.1, " % off")
        yield below(f"{name}: it stays", "0 m", float(abs(stood.q[-1, 2] - start[2])), 0.02, " m lower")
    q = np.tile(start, (len(TURNS), 1))
    q[:, 3:7] = list(TURNS.values())
    q[:, 2] += 0.5 - da.contact.distances(model, q, pairs=ground).gap.min(axis=-1)
    limp = da.rollout(model, q, np.zeros(model.nv), steps=1000, dt=DT, contact=law)
    yield below("rigid: it falls limp from 0.5 m, 5 turns, 2 s", "0 mm", deepest(limp), 1.0, " mm")
    rng = np.random.default_rng(3)
    q, v = np.tile(model.neutral(), (256, 1)), rng.normal(size=(256, model.nv))
    q[:, 2], q[:, 3:7] = 1.3, turns(np.random.default_rng(4), 256)
    thrown = da.rollout(model, q, v, steps=800, dt=DT, contact=law)
    over = int((thrown.contacts.gap.min(axis=(1, 2)) < -1e-3).sum())  # type: ignore[union-attr]
    yield below(f"rigid: 256 thrown at random ({over} overlap by more)", "0 mm", deepest(thrown), 1.0, " mm")
    yield below("rigid: samples that fail", "0", float(thrown.failed.sum()), 0.0)


def shapes() -> dict[str, da.Model]:
    """Bodies of every kind over the ground, and a figure of three links. What has equal moments of inertia
    flies without gyroscopic terms, and so keeps its energy exactly."""
    size = (0.3, 0.2, 0.1)
    tensor = block(size, 1.0).inertia_at_com
    uneven, even = (tensor.xx, tensor.yy, tensor.zz), (0.004,) * 3
    corners = np.random.default_rng(0).normal(size=(8, 3)) * 0.1
    kinds = {
        "box": (da.shapes.Box(size), uneven),
        "capsule": (da.shapes.Capsule(0.05, 0.2), uneven),
        "sphere": (da.shapes.Sphere(0.1), even),
        "cube": (da.shapes.Box((0.15, 0.15, 0.15)), even),
        "cylinder": (da.shapes.Cylinder(0.1, 0.1), even),
        "ellipsoid": (Ellipsoid((0.15, 0.1, 0.05)), even),
        "mesh": (da.shapes.ConvexMesh(corners - corners.mean(axis=0)), even),
    }
    found = {name: body([shape], 1.0, moments) for name, (shape, moments) in kinds.items()}
    return found | {"figure": links()}


def links() -> da.Model:
    """Three bricks, the outer ones on a hinge and a ball joint with dampers."""
    builder = da.ModelBuilder()
    size, middle = (0.3, 0.1, 0.05), (0.15, 0.0, 0.0)
    placed = da.Transform.from_rotation_translation
    solid = da.RigidInertia(0.5, middle, block(size, 0.5).inertia_at_com)
    joints: dict[str, tuple[str, da.joints.Joint]] = {
        "trunk": ("world", da.Free()),
        "arm": ("trunk", da.Revolute((0, 1, 0))),
        "hand": ("arm", da.Spherical()),
    }
    for name, (parent, joint) in joints.items():
        first = parent == "world"
        out = placed(np.eye(3), (0.0, 0.0, 0.0) if first else (0.3, 0.0, 0.0))
        builder.add_body(name, parent, joint, placement=out, inertia=solid, damping=0.0 if first else 0.02)
        builder.add_shape(
            name, da.shapes.Box(size, placement=placed(np.eye(3), middle), friction=(0.0, 0.0, 0.0))
        )
    return builder.build().with_ground()


def drop_step(model: da.Model, law: str) -> tuple[Any, Array]:
    """A step as a function of friction and restitution, too, with kinetic energies after it and after one
    without contact; and the first memory of the points."""
    pairs = pairs_of(model, self_collision=False)
    rest = contact_points(forward_kinematics(model, list(model.neutral())), pairs)
    rigid = law == "rigid"
    memory = (
        np.zeros((len(rest), 5)) if rigid else np.tile([0.0, 0.0, 0.0, 0.0, FIRST_STEP_MARK], (len(rest), 1))
    )

    def stepped(model: da.Model, q: Any, v: Any, e: Any, mu: Any, memory: Any, dt: Any) -> Any:
        own = tuple(replace(pair, friction=mu, restitution=e if rigid else 0.0) for pair in pairs)
        points = contact_points(forward_kinematics(model, q), own)
        tau = [0.0] * model.nv
        advance = partial(contact_step, settings=da.contact.Rigid() if rigid else da.contact.Compliant())
        after = advance(model, q, v, tau, dt, points, memory=memory)
        free = advance(model, q, v, tau, dt, [])
        energies = [kinetic_energy(model, x.q, x.v) for x in (after, free)]
        return after.q, after.v, after.memory, after.work, energies

    inputs = {"e": (), "mu": (), "memory": memory.shape, "dt": ()}
    return da.compile(stepped, model, inputs=inputs), memory


def work(law: str) -> Findings:
    """A thousand drops of every body, e and mu from 0 to 1, steps of 1 to 5 ms, from 0.9 to 1.3 m.

    The figure takes 2 ms at most: at 5 ms some that rebound with e near 1 move ever faster. The work of
    contact in a step is 0.5 (v+ + v*) . J^T gamma, v* the velocity without contact. Of a single body it must
    be the difference of the kinetic energies, computed apart. Springs of compliant surfaces give back what
    they took, so there the sum since the start counts. What contact adds to T + V is its work at the mean of
    the velocities before and after a step, which is all that flight does not keep; where a body moves by
    another way, as where overlaps are corrected, V changes without a push: the last line. All as fractions of
    the energy.
    """
    worst, told, added, gained = -np.inf, 0.0, -np.inf, -np.inf
    for name, model in shapes().items():
        advance, fresh = drop_step(model, law)
        rng = np.random.default_rng(5)
        q, v = np.tile(model.neutral(), (DROPS, 1)), rng.normal(size=(DROPS, model.nv))
        q[:, 2], q[:, 3:7] = rng.uniform(0.9, 1.3, DROPS), turns(rng, DROPS)
        v[:, :3] *= 3.0
        e, mu = rng.uniform(size=(2, DROPS))
        even = name in EVEN
        dt = rng.choice([0.001, 0.002, 0.005] if model.nv == 6 else [0.001, 0.002], DROPS)
        memory, total = np.tile(fresh, (DROPS, 1, 1)), np.zeros(DROPS)

        begun = energy(model, q, v)
        for _ in range(600):
            height, rising = q[:, 2], upward(model, q, v)
            before = energy(model, q, v) if even else begun
            q, v, memory, done, energies = advance(q, v, e, mu, memory, dt)
            total += done
            scale = np.maximum(energies[:, 1], 1.0)
            worst = greatest(worst, (done if law == "rigid" else total) / scale)
            if model.nv == 6:
                told = greatest(told, np.abs(energies[:, 0] - energies[:, 1] - done) / scale)
            if even:
                after = energy(model, q, v)
                way = 0.5 * dt * (rising + upward(model, q, v))
                lifted = (q[:, 2] - height - way) * model.total_mass * G
                added = greatest(added, (after - before - lifted) / begun)
                gained = greatest(gained, (after - begun) / begun)
    yield below(
        f"{law}: work of contact, {DROPS} drops of each of 8 bodies; e, mu in [0, 1]",
        "<= 0",
        worst,
        1e-12,
    )
    yield below(f"{law}: that work is the change of kinetic energy (single bodies)", "equal", told, 1e-12)
    if law == "rigid":
        yield below("rigid: what contact adds to the energy of flight (equal moments)", "<= 0", added, 1e-4)
    yield below(f"{law}: energy above that of the start (equal moments)", "<= 0 %", gained * 1e2, 1.0, " %")


def upward(model: da.Model, q: Array, v: Array) -> Array:
    """The velocity of the root upwards in the world."""
    return np.einsum("nj,nj->n", da.forward_kinematics(model, q).rotation[:, 0, 2], v[:, 3:6])


def energy(model: da.Model, q: Array, v: Array) -> Array:
    """T + V."""
    return np.asarray(da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q))


def experiments() -> Sequence[tuple[str, Findings]]:
    return [("work, rigid", work("rigid")), ("work, compliant", work("compliant")), ("humanoid", humanoid())]

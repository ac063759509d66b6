"""A model that two formats can hold has the same dynamics after going through both."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import dalembert as da

ENDINGS = (".json", ".urdf", ".xml")


def robot() -> da.Model:
    """A floating trunk with hinges, slides, a passive joint, limits and a mimic joint."""
    rng = np.random.default_rng(5)
    builder = da.ModelBuilder()

    def inertia() -> da.RigidInertia:
        root = rng.normal(size=(3, 3))
        spread = root @ root.T + 0.3 * np.eye(3)
        return da.RigidInertia(
            rng.uniform(0.5, 3.0), rng.normal(size=3) * 0.1, np.trace(spread) * np.eye(3) - spread
        )

    def place() -> da.Transform:
        R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        return da.Transform.from_rotation_translation(R * np.sign(np.linalg.det(R)), rng.normal(size=3))

    builder.add_body("trunk", parent="world", joint=da.Free(), joint_name="root", inertia=inertia())
    parents = ("trunk", "arm", "trunk", "leg", "arm")
    joints = (
        da.Revolute(axis=(0, 0, 1)),
        da.Prismatic(axis=(0.6, 0.0, 0.8)),
        da.Revolute(axis=(0.0, 0.6, 0.8)),
        da.Revolute(axis=(1, 0, 0)),
        da.Revolute(axis=(0, 1, 0)),
    )
    for name, parent, joint in zip(("arm", "hand", "leg", "foot", "finger"), parents, joints, strict=True):
        builder.add_body(
            name,
            parent=parent,
            joint=joint,
            joint_name=f"{name}_joint",
            placement=place(),
            inertia=inertia(),
            limits=da.Limits(lower=-1.0, upper=1.5, velocity=4.0, effort=50.0),
            damping=0.2,
        )
    builder.add_coupling("grip", {"leg_joint": 0.5, "finger_joint": -1.0}, offset=0.1)
    return builder.build()


@pytest.mark.parametrize(("first", "second"), list(itertools.product(ENDINGS, ENDINGS)))
def test_dynamics_survive_every_pair_of_formats(first: str, second: str, tmp_path: Path) -> None:
    """M, inverse and forward dynamics and passive forces to 1e-12 of their size, at moving states."""
    model = robot()
    da.save(model, tmp_path / f"a{first}")
    there = da.load(tmp_path / f"a{first}", root="floating" if first == ".urdf" else None)
    da.save(there, tmp_path / f"b{second}")
    back = da.load(tmp_path / f"b{second}", root="floating" if second == ".urdf" else None)
    assert (back.nq, back.nv) == (model.nq, model.nv)
    states = [model.random_state(seed) for seed in range(5)]
    ours = np.array([q for q, _ in states]), np.array([v for _, v in states])
    theirs = tuple(
        _placed(model, back, x, part) for x, part in zip(ours, ("q_slice", "v_slice"), strict=True)
    )
    (q, v), (q2, v2) = ours, theirs
    a = np.random.default_rng(0).normal(size=v.shape)
    a2 = _placed(model, back, a, "v_slice")
    for expected, found in (
        (da.inverse_dynamics(model, q, v, a), da.inverse_dynamics(back, q2, v2, a2)),
        (da.forward_dynamics(model, q, v, a), da.forward_dynamics(back, q2, v2, a2)),
        (da.dynamics.inertial_forces(model, q, a), da.dynamics.inertial_forces(back, q2, a2)),
        (da.passive_forces(model, q, v), da.passive_forces(back, q2, v2)),
    ):
        expected = _placed(model, back, expected, "v_slice")
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max() + 1e-13)


def _placed(model: da.Model, other: da.Model, x: np.ndarray, part: str) -> np.ndarray:
    """The coordinates of one model at the places of the joints of the same names in the other."""
    result = np.empty_like(x)
    theirs = {joint.name: joint for joint in other.joints}
    free = next(joint for joint in other.joints if joint.nq == 7)
    for joint in model.joints:
        place = getattr(joint, part)
        if place.stop > place.start:
            result[:, getattr(theirs.get(joint.name, free), part)] = x[:, place]
    return result

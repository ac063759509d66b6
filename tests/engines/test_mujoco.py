"""Agreement with MuJoCo 4 to 1e-9: the same random trees of hinges, slides, balls and free bodies in both.

The trees are written as MJCF text and built with our builder; states go over by `convert_state`. MuJoCo's
rates are v_mj with v = P(q) v_mj, so that M_mj = P^T M P, tau_mj = P^T tau and dv/dt = P a_mj + P' v_mj. P
differs from the identity for free joints only, whose linear velocity MuJoCo keeps in world axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from dalembert import algorithms  # noqa: E402
from dalembert.model import Model, ModelBuilder  # noqa: E402
from dalembert.model.conventions import convert_state  # noqa: E402
from dalembert.model.joints import Free, Prismatic, Revolute, Spherical  # noqa: E402
from dalembert.spatial import Mat3, RigidInertia, Transform, Vec3  # noqa: E402

Array = np.ndarray[Any, np.dtype[np.float64]]

RELATIVE_ERROR = 1e-9
GRAVITY = (1.0, -2.0, -9.0)
SEEDS = range(6)


@dataclass
class Part:
    """A body with its joint, as plain numbers that both engines are built from."""

    name: str
    kind: str
    axis: Array
    position: Array
    quaternion: Array
    mass: float
    com: Array
    moments: Array
    armature: float
    children: list[Part] = field(default_factory=list)


def random_part(rng: np.random.Generator, name: str, kind: str) -> Part:
    axis, quaternion = rng.standard_normal(3), rng.standard_normal(4)
    masses = rng.uniform(0.2, 1.0, 3)
    return Part(
        name=name,
        kind=kind,
        axis=axis / np.linalg.norm(axis),
        position=rng.standard_normal(3),
        quaternion=quaternion / np.linalg.norm(quaternion),
        mass=float(masses.sum()),
        com=0.3 * rng.standard_normal(3),
        moments=masses.sum() - masses,  # those of three point pairs, one on each axis
        armature=0.0 if kind == "free" else float(rng.uniform(0.0, 0.3)),
    )


def random_forest(seed: int) -> list[Part]:
    """A free-floating tree and one on a fixed joint, each body on a random one of those before it."""
    rng = np.random.default_rng(seed)
    roots = [random_part(rng, "free", "free"), random_part(rng, "fixed", "hinge")]
    for root in roots:
        parts = [root]
        for number in range(5):
            part = random_part(rng, f"{root.name}{number}", ("hinge", "slide", "ball")[(seed + number) % 3])
            parts[int(rng.integers(0, len(parts)))].children.append(part)
            parts.append(part)
    return roots


def text(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def mjcf_body(part: Part) -> str:
    axis = f'axis="{text(part.axis)}"' if part.kind in ("hinge", "slide") else ""
    return (
        f'<body name="{part.name}" pos="{text(part.position)}" quat="{text(part.quaternion)}">'
        f'<joint type="{part.kind}" {axis} armature="{part.armature!r}"/>'
        f'<inertial pos="{text(part.com)}" mass="{part.mass!r}" diaginertia="{text(part.moments)}"/>'
        f"{''.join(map(mjcf_body, part.children))}</body>"
    )


def mjcf(roots: list[Part]) -> str:
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{text(GRAVITY)}">'
        '<flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{''.join(map(mjcf_body, roots))}</worldbody></mujoco>"
    )


def rotation(quaternion: Array) -> Mat3:
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, quaternion)
    return Mat3(*R.tolist())


def add(builder: ModelBuilder, part: Part, parent: str) -> None:
    """The part and its children, depth first as MuJoCo numbers them."""
    axis = part.axis.tolist()
    joint = {
        "free": Free,
        "ball": Spherical,
        "hinge": lambda: Revolute(axis),
        "slide": lambda: Prismatic(axis),
    }[part.kind]()
    # MuJoCo's free body stands in the world: its place in the file is only where it starts.
    placement = Transform(rotation(part.quaternion), Vec3(*part.position.tolist()))
    builder.add_body(
        part.name,
        parent=parent,
        joint=joint,
        placement=None if part.kind == "free" else placement,
        inertia=RigidInertia(part.mass, part.com.tolist(), part.moments.tolist()),
        armature=part.armature,
    )
    for child in part.children:
        add(builder, child, part.name)


@dataclass(frozen=True)
class Case:
    """The same tree in the same moving state in both engines."""

    model: Model
    theirs: Any
    state_mj: tuple[Array, Array, Array]
    q: Array
    v: Array
    a: Array
    P: Array

    def data(self) -> Any:
        """MuJoCo's data in this state."""
        data = mujoco.MjData(self.theirs)
        data.qpos[:], data.qvel[:], data.qacc[:] = self.state_mj
        return data


@cache
def case(seed: int) -> Case:
    roots = random_forest(seed)
    builder = ModelBuilder(gravity=GRAVITY)
    for root in roots:
        add(builder, root, "world")
    model = builder.build()
    theirs = mujoco.MjModel.from_xml_string(mjcf(roots))
    rng = np.random.default_rng(100 + seed)
    v_mj, a_mj = rng.standard_normal((2, theirs.nv))
    q_mj = theirs.qpos0.copy()
    mujoco.mj_integratePos(theirs, q_mj, rng.uniform(-1.2, 1.2, theirs.nv), 1.0)
    q, v = to_ours(model, q_mj, v_mj)
    P = np.column_stack([to_ours(model, q_mj, unit)[1] for unit in np.eye(theirs.nv)])
    a = P @ a_mj
    free = model.joint("free")
    a[free.linear] -= np.cross(v[free.angular], v[free.linear])  # P' v_mj = d(R^T)/dt v_world
    return Case(model, theirs, (q_mj, v_mj, a_mj), q, v, a, P)


def to_ours(model: Model, q_mj: Array, v_mj: Array) -> tuple[Array, Array]:
    q, v = convert_state(model, q_mj, v_mj, source="mujoco", target="dalembert")
    assert v is not None
    return q, v


def assert_agrees(ours: Array, theirs: Array) -> None:
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= RELATIVE_ERROR * np.abs(theirs).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_poses(seed: int) -> None:
    one = case(seed)
    data = one.data()
    mujoco.mj_kinematics(one.theirs, data)
    poses = algorithms.forward_kinematics(one.model, one.q)
    for body, pose in zip(one.model.bodies, poses):
        there = data.body(body.name)
        assert_agrees(np.array(list(pose.p), float), there.xpos)
        assert_agrees(np.array(list(pose.R), float).reshape(9), there.xmat)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix(seed: int) -> None:
    """RBDA-6.2-CRBA"""
    one = case(seed)
    data = one.data()
    mujoco.mj_forward(one.theirs, data)
    M_mj = np.zeros((one.theirs.nv, one.theirs.nv))
    mujoco.mj_fullM(one.theirs, data, M_mj)
    M = np.array(algorithms.mass_matrix(one.model, one.q), dtype=float)
    assert_agrees(one.P.T @ M @ one.P, M_mj)


@pytest.mark.parametrize("seed", SEEDS)
def test_bias_forces(seed: int) -> None:
    """RBDA-6.1-CBIAS"""
    one = case(seed)
    data = one.data()
    mujoco.mj_forward(one.theirs, data)
    free = one.model.joint("free")
    resting = np.zeros(one.model.nv)  # the acceleration of ours while MuJoCo's is zero
    resting[free.linear] = -np.cross(one.v[free.angular], one.v[free.linear])
    tau = np.array(algorithms.inverse_dynamics(one.model, one.q, one.v, resting), dtype=float)
    assert_agrees(one.P.T @ tau, data.qfrc_bias)
    np.testing.assert_allclose(
        algorithms.bias_forces(one.model, one.q, one.v),
        tau - np.array(algorithms.mass_matrix(one.model, one.q), float) @ resting,
        rtol=0,
        atol=RELATIVE_ERROR * np.abs(tau).max(),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics(seed: int) -> None:
    """RBDA-5.3-RNEA"""
    one = case(seed)
    data = one.data()
    mujoco.mj_inverse(one.theirs, data)
    tau = np.array(algorithms.inverse_dynamics(one.model, one.q, one.v, one.a), dtype=float)
    assert_agrees(one.P.T @ tau, data.qfrc_inverse)


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_with_external_forces(seed: int) -> None:
    """RBDA-7.3-ABA, RBDA-5.3-EXT: MuJoCo applies (force, moment) in world axes at the centre of mass."""
    one = case(seed)
    rng = np.random.default_rng(200 + seed)
    tau_mj = rng.standard_normal(one.theirs.nv)
    data = one.data()
    data.qfrc_applied[:] = tau_mj
    data.xfrc_applied[1:] = rng.standard_normal((one.theirs.nbody - 1, 6)) * 5.0
    mujoco.mj_forward(one.theirs, data)
    forces: list[list[float]] = []
    for body in one.model.bodies:
        there = data.body(body.name)
        force, moment = there.xfrc_applied[:3], there.xfrc_applied[3:]
        forces.append([*(moment + np.cross(there.xipos, force)), *force])
    tau = np.linalg.solve(one.P.T, tau_mj)
    a = np.array(
        algorithms.forward_dynamics(
            one.model, one.q, one.v, tau, external_forces=forces, external_frame="world"
        ),
        dtype=float,
    )
    free = one.model.joint("free")
    a[free.linear] += np.cross(one.v[free.angular], one.v[free.linear])
    assert_agrees(np.linalg.solve(one.P, a), data.qacc)

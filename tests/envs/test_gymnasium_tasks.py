"""Gymnasium's tasks give what Gymnasium's own environments give, on the same states and actions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.envs.gymnasium_tasks import TASKS
from dalembert.envs.task import Moment
from dalembert.spatial import Force, Vec3

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

TOLERANCE = 1e-9
TENDONS = {"tendon_length", "tendon_velocity"}
"""Info of MuJoCo's humanoids about tendons that move nothing."""


@pytest.fixture(autouse=True)
def _imageio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Gymnasium import what it needs to save pictures only."""
    try:
        import imageio  # noqa: F401
    except ImportError:
        monkeypatch.setitem(sys.modules, "imageio", ModuleType("imageio"))


def mujoco_loads(env: Any) -> dict[str, Force]:
    """Return the contact forces of MuJoCo's state on its bodies, by name."""
    model, data = env.model, env.data
    loads: dict[str, Force] = {}
    for k in range(data.ncon):
        own, contact = np.zeros(6), data.contact[k]
        mujoco.mj_contactForce(model, data, k, own)
        force = contact.frame.reshape(3, 3).T @ own[:3]
        turn = contact.frame.reshape(3, 3).T @ own[3:]
        whole = Force(Vec3.of(np.cross(contact.pos, force) + turn), Vec3.of(force))
        for geom, sign in ((contact.geom[1], 1.0), (contact.geom[0], -1.0)):
            name = model.body(model.geom_bodyid[geom]).name or f"body_{model.geom_bodyid[geom]}"
            loads[name] = loads.get(name, Force.zero()) + whole * sign
    return loads


def moving_states(env: Any, count: int, seed: int) -> Iterator[tuple[Any, Any, np.ndarray]]:
    """Yield the states (qpos, qvel) of a control step's beginning and end, and its action."""
    rng, step = np.random.default_rng(seed), env.do_simulation
    env.reset(seed=seed)
    for k in range(count):
        action = rng.uniform(env.action_space.low, env.action_space.high).astype(float)
        for joint in range(env.model.njnt):
            if env.model.jnt_type[joint] == 0:
                start = env.model.jnt_qposadr[joint] + 3
                env.data.qpos[start : start + 4] /= np.linalg.norm(env.data.qpos[start : start + 4])
        before = env.data.qpos.copy(), env.data.qvel.copy()
        env.set_state(*before)
        step(action, env.frame_skip * (1 + k % 3))
        yield before, (env.data.qpos.copy(), env.data.qvel.copy()), action
        if not np.isfinite(env.data.qpos).all() or abs(env.data.qvel).max() > 50.0:
            env.reset(seed=seed + k)


def gymnasium_step(
    env: Any, before: Any, after: Any, action: np.ndarray
) -> tuple[Any, float, bool, dict[str, Any]]:
    """Return what the environment says of a step between two states."""

    def arrive(ctrl: np.ndarray, steps: int) -> None:
        env.data.ctrl[:] = ctrl
        env.set_state(*after)
        mujoco.mj_rnePostConstraint(env.model, env.data)

    env.set_state(*before)
    env.do_simulation = arrive
    observation, reward, terminated, _, info = env.step(action)
    del env.do_simulation
    return observation, reward, terminated, info


@pytest.mark.parametrize("name", TASKS)
def test_observation_reward_and_termination_are_gymnasiums_on_moving_states(name: str) -> None:
    """MuJoCo's contact forces are given to both, so that `cfrc_ext` is compared too."""
    env, task = gymnasium.make(f"{name}-v5").unwrapped, TASKS[name]
    model, start = task.load()
    assert env.dt == pytest.approx(task.dt, abs=1e-15)
    np.testing.assert_allclose(start, env.init_qpos, atol=1e-12)
    ended, pressed = set(), False
    for before, after, action in moving_states(env, 60, seed=1):
        observation, reward, terminated, info = gymnasium_step(env, before, after, action)
        states = [da.convert_state(model, *s, source="mujoco", target="dalembert") for s in (after, before)]
        (q, v), (q_before, v_before) = [[list(map(float, x)) for x in state] for state in states]
        loads = mujoco_loads(env)
        pressed = pressed or bool(loads)
        now = Moment(model, 0.0, q, v, list(action), list(action), q_before, v_before, task.dt, {}, loads)
        mine, terms = np.array(task.observation(now)), task.reward(now)
        if name == "InvertedDoublePendulum":
            observation[8] = 0.0  # the force of the rail's end, which the task leaves out
        size = max(1.0, abs(observation).max())
        np.testing.assert_allclose(mine, observation, rtol=0.0, atol=TOLERANCE * size)
        assert sum(terms.values()) == pytest.approx(reward, abs=TOLERANCE * max(1.0, abs(reward)))
        ends = False if task.termination is None else bool(task.termination(now))
        assert ends == terminated
        ended.add(ends)
        told = {**terms, **task.info(now)}
        assert set(info) - set(told) <= TENDONS
        for key in set(info) - TENDONS:
            assert told[key] == pytest.approx(info[key], abs=TOLERANCE * max(1.0, abs(info[key])))
    if task.termination is not None:
        assert ended == {True, False}
    assert pressed or name in ("InvertedPendulum", "InvertedDoublePendulum", "Swimmer", "Reacher", "Pusher")


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.termination is not None])
def test_episodes_end_where_gymnasiums_do(name: str) -> None:
    """Positions and velocities are spread over the limits of health, so that each is met from both sides."""
    env, task = gymnasium.make(f"{name}-v5").unwrapped, TASKS[name]
    assert task.termination is not None
    model, _ = task.load()
    rng, ends = np.random.default_rng(2), []
    env.reset(seed=0)
    for k in range(2000):
        spread = (0.25, 1.3)[k % 2]
        qpos = env.init_qpos + rng.uniform(-spread, spread, env.model.nq)
        if name in ("Ant", "Humanoid"):
            qpos[3:7] /= np.linalg.norm(qpos[3:7])
        qvel = rng.uniform(-1.0, 1.0, env.model.nv) * (105.0 if k % 5 == 0 else 5.0)
        terminated = gymnasium_step(env, (qpos, qvel), (qpos, qvel), np.zeros(env.model.nu))[2]
        q, v = da.convert_state(model, qpos, qvel, source="mujoco", target="dalembert")
        still = [0.0] * env.model.nu
        state = list(map(float, q)), list(map(float, v))
        now = Moment(model, 0.0, *state, still, still, *state, task.dt, {}, {})
        assert bool(task.termination(now)) == terminated, (qpos, qvel)
        ends.append(terminated)
    assert 0.05 < np.mean(ends) < 0.95

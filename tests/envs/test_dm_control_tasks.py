"""The cart and pole give what dm_control's own environment gives, on the same states and actions."""

from __future__ import annotations

import numpy as np
import pytest

from dalembert.envs.dm_control_tasks import TASKS
from dalembert.envs.task import Moment, Random

mujoco = pytest.importorskip("mujoco")
cartpole = pytest.importorskip("dm_control.suite.cartpole")


class Physics:
    """What dm_control's task asks of its physics, from MuJoCo; its own class knows older versions only."""

    def __init__(self) -> None:
        text, assets = cartpole.get_model_and_assets()
        self.model = mujoco.MjModel.from_xml_string(text, assets)
        self.data = mujoco.MjData(self.model)

    def cart_position(self) -> float:
        return self.data.qpos[0]

    def angular_vel(self) -> np.ndarray:
        return self.data.qvel[1:]

    def pole_angle_cosine(self) -> np.ndarray:
        return self.data.xmat[2:, 8]

    def bounded_position(self) -> np.ndarray:
        return np.hstack([self.cart_position(), self.data.xmat[2, [8, 2]]])

    def velocity(self) -> np.ndarray:
        return self.data.qvel

    def control(self) -> np.ndarray:
        return self.data.ctrl


@pytest.mark.parametrize("name", TASKS)
def test_observation_and_reward_are_those_of_dm_control(name: str) -> None:
    physics, task = Physics(), TASKS[name]
    known = cartpole.Balance(swing_up="Swingup" in name, sparse=False, random=1)
    model, start = task.load()
    assert physics.model.opt.timestep == task.dt == task.time_step
    assert task.episode_steps * task.dt == cartpole._DEFAULT_TIME_LIMIT
    rng = np.random.default_rng(0)
    for _ in range(50):
        q, v = rng.uniform([-1.8, -4.0], [1.8, 4.0]), rng.uniform(-8.0, 8.0, 2)
        action = rng.uniform(-1.0, 1.0, 1)
        physics.data.qpos[:], physics.data.qvel[:], physics.data.ctrl[:] = q, v, action
        mujoco.mj_forward(physics.model, physics.data)
        seen = known.get_observation(physics)
        now = Moment(model, 0.0, list(q), list(v), list(action), [0.0], list(q), list(v), task.dt, {}, {})
        expected = [*seen["position"], *seen["velocity"]]
        np.testing.assert_allclose(task.observation(now), expected, rtol=0.0, atol=1e-12)
        assert sum(task.reward(now).values()) == pytest.approx(known.get_reward(physics), abs=1e-12)
    np.testing.assert_allclose(start, [0.0, 0.0])


def test_starts_have_the_noise_of_dm_control() -> None:
    random = Random(np.arange(20_000), np.zeros(20_000, int))
    model, start = TASKS["CartpoleSwingup"].load()
    q, v = TASKS["CartpoleSwingup"].start(model, start, random)
    np.testing.assert_allclose(q.mean(axis=0), [0.0, np.pi], atol=5e-4)
    for values in (q, v):
        np.testing.assert_allclose(values.std(axis=0), 0.01, rtol=0.03)
    q, _ = TASKS["CartpoleBalance"].start(model, start, random)
    np.testing.assert_allclose(abs(q).max(axis=0), [0.1, 0.034], rtol=1e-2)

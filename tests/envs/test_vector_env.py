"""Vector environments keep Gymnasium's rules, and copies do what one alone does."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dalembert as da
from dalembert.envs.gymnasium_tasks import ANT_LINKS, TASKS
from dalembert.errors import ArgumentError, DeviceError, ShapeError, UnknownNameError
from dalembert.spatial import Force

pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

from dalembert.envs.vector_env import SingleEnv  # noqa: E402

COPIES = 5


def actions_of(env: Any, count: int, seed: int = 0) -> np.ndarray:
    space = env.single_action_space
    return np.random.default_rng(seed).uniform(
        space.low, space.high, (count, env.num_envs, *space.shape)
    ).astype(np.float32)  # fmt: skip


def assert_alike(mine: Any, theirs: Any) -> None:
    """Assert that infos agree where their masks say that they hold."""
    for key, value in theirs.items():
        if key.startswith("_") or isinstance(value, dict):
            continue
        mask = theirs[f"_{key}"]
        np.testing.assert_array_equal(mine[f"_{key}"], mask, err_msg=key)
        for a, b in zip(mine[key][mask], value[mask], strict=True):
            np.testing.assert_array_equal(a, b, err_msg=key)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize(("task", "limit"), [("Hopper", 20), ("InvertedDoublePendulum", 6)])
def test_episodes_go_on_as_in_gymnasiums_own_vector_environment(
    task: str, limit: int, mode: AutoresetMode
) -> None:
    """Some episodes end by falling, others by their time limit; all numbers have the same bits."""
    mine = da.envs.make(task, COPIES, autoreset_mode=mode, max_episode_steps=limit)
    theirs = SyncVectorEnv([lambda: SingleEnv(task, max_episode_steps=limit)] * COPIES, autoreset_mode=mode)
    found, expected = mine.reset(seed=3), theirs.reset(seed=3)
    np.testing.assert_array_equal(found[0], expected[0])
    assert_alike(found[1], expected[1])
    ends = np.zeros(2, int)
    for action in actions_of(mine, 120):
        found, expected = mine.step(action), theirs.step(action)
        for a, b in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        assert_alike(found[4], expected[4])
        if "final_info" in expected[4]:
            assert_alike(found[4]["final_info"], expected[4]["final_info"])
        ends += found[2].sum(), found[3].sum()
    assert (ends > 0).all()


def test_copies_wait_for_a_reset_where_autoreset_is_disabled() -> None:
    env = da.envs.make("Hopper", COPIES, seed=0, autoreset_mode="Disabled")
    env.reset()
    for action in actions_of(env, 1000):
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated | truncated
        if over.any():
            break
    assert not over.all()
    with pytest.raises(ArgumentError, match="reset_mask"):
        env.step(action)
    begun, infos = env.reset(options={"reset_mask": over})
    np.testing.assert_array_equal(begun[~over], observation[~over])
    assert (begun[over] != observation[over]).any(axis=1).all()
    np.testing.assert_array_equal(infos["_x_position"], over)
    env.step(action)


@pytest.mark.parametrize("task", [*TASKS, "CartpoleSwingup", "A1Velocity"])
def test_gymnasium_accepts_the_environment(task: str) -> None:
    check_env(gymnasium.make(f"dalembert/{task}-v0").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("task", ["HalfCheetah", "Ant"])
def test_results_lie_in_the_spaces_and_belong_to_the_caller(task: str) -> None:
    env = gymnasium.make_vec(f"dalembert/{task}-v0", num_envs=COPIES)
    assert isinstance(env.metadata["autoreset_mode"], AutoresetMode)
    assert env.spec.id == f"dalembert/{task}-v0"
    env.action_space.seed(0)
    seen, _ = env.reset(seed=1)
    kept = seen.copy()
    results = [env.step(env.action_space.sample()) for _ in range(3)]
    copies = [[np.copy(x) for x in result[:4]] for result in results]
    env.step(env.action_space.sample())
    np.testing.assert_array_equal(seen, kept)
    for result, before in zip(results, copies, strict=True):
        assert result[0] in env.observation_space
        for a, b in zip(result[:4], before, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in itertools.combinations([seen, *(result[0] for result in results)], 2):
        assert not np.shares_memory(a, b)
    env.close()
    assert env.closed


def test_a_copy_begins_alike_in_any_number_of_copies() -> None:
    many, few = da.envs.make("HalfCheetah", 7), da.envs.make("HalfCheetah", 2)
    a, b = many.reset(seed=5)[0], few.reset(seed=8)[0]
    np.testing.assert_array_equal(a[3:5], b)
    np.testing.assert_array_equal(many.reset()[0][3:5], few.reset()[0])
    assert (many.reset(seed=5)[0] == a).all()
    assert (many.reset(seed=6)[0] != a).all()


def test_starts_have_the_noise_of_the_task() -> None:
    env = da.envs.make("HalfCheetah", 20_000, seed=1)
    env.reset()
    for values, deviation in ((env.q, 0.2 / np.sqrt(12.0)), (env.v, 0.1)):
        assert abs(values.mean(axis=0)).max() < 5.0 * deviation / np.sqrt(20_000)
        np.testing.assert_allclose(values.std(axis=0), deviation, rtol=0.03)
    assert abs(env.q).max() <= 0.1
    assert abs(np.corrcoef(np.hstack([env.q, env.v]).T) - np.eye(18)).max() < 0.04


def test_a_step_is_that_of_a_rollout() -> None:
    """The same states as `da.rollout` with the same control signals, in contact with the ground."""
    env = da.envs.make("Ant", COPIES, seed=2)
    env.reset()
    q, v, signals = env.q.copy(), env.v.copy(), actions_of(env, 12)
    for action in signals:
        env.step(action)
    ctrl = np.repeat(signals.astype(float).swapaxes(0, 1), env.task.frame_skip, axis=1)
    contact = env.task.contact
    moved = da.rollout(env.model, q, v, da.control.Actuators(ctrl), dt=env.task.time_step, contact=contact)
    assert abs(moved.contacts.force).max() > 1.0
    np.testing.assert_array_equal(env.q, moved.q[:, -1])
    np.testing.assert_array_equal(env.v, moved.v[:, -1])


def test_loads_on_links_are_the_contact_forces_of_a_rollout() -> None:
    """Each contact point counts with the link that its shape belongs to, on its torso or on a merged leg."""
    known = TASKS["Ant"]
    links = [*ANT_LINKS]

    def observe(now: Any) -> list[Any]:
        return [x for name in links for x in now.loads.get(name, Force.zero()).to_list()]

    task = replace(known, observation=observe, reward=lambda now: {}, termination=None)
    env = da.envs.make(task, COPIES, seed=0)
    env.reset()
    q, v, steps = env.q.copy(), env.v.copy(), 60
    q[:, 2] += 0.3
    q[:, 3:7] = [0.0, 1.0, 0.0, 0.0]  # on its back
    env.set_state(q, v)
    for _ in range(steps):
        observation = env.step(np.zeros((COPIES, 8)))[0]
    found = observation.reshape(COPIES, len(links), 6)
    moved = da.rollout(env.model, q, v, steps=5 * steps, dt=task.time_step, contact=task.contact)
    record, expected = moved.contacts, np.zeros_like(found)
    link_of = {s.name: s.link or body.name for body in env.model.bodies for s in body.shapes}
    for point, pair in enumerate(record.names):
        force, position = record.force[:, -1, point], record.position[:, -1, point]
        whole = np.concatenate([np.cross(position, force), force], axis=1)
        for name, sign in zip(pair, (-1.0, 1.0), strict=True):
            if name in link_of:
                expected[:, links.index(link_of[name])] += sign * whole
    assert (abs(expected[..., 5]).max(axis=0) > 0.1).sum() >= 4
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9 * abs(expected).max())


def test_tensors_share_the_memory_of_arrays() -> None:
    torch = pytest.importorskip("torch")
    env = da.envs.make("HalfCheetah", COPIES, seed=0, arrays="torch")
    plain = da.envs.make("HalfCheetah", COPIES, seed=0)
    tensors, arrays = env.reset()[0], plain.reset()[0]
    np.testing.assert_array_equal(tensors.numpy(), arrays)
    for action in actions_of(env, 3):
        found, expected = env.step(torch.from_numpy(action)), plain.step(action)
        for a, b in zip(found[:4], expected[:4], strict=True):
            assert isinstance(a, torch.Tensor)
            np.testing.assert_array_equal(a.numpy(), b)


def pole_task(**options: Any) -> Any:
    """Return a task whose functions know a command, and whose model's masses are drawn."""
    known = da.envs.gymnasium_tasks.INVERTED_PENDULUM
    return da.envs.Task(
        "pole",
        known.load,
        observation=lambda now: [now.command["speed"], now.time, now.action[0], *now.q, *now.v],
        reward=lambda now: {"speed": now.command["speed"] - now.v[0]},
        time_step=0.01,
        frame_skip=3,
        commands={"speed": (-1.0, 2.0)},
        randomization={"pole.mass": (0.5, 2.0)},
        **options,
    )


def test_commands_and_values_of_the_model_are_drawn_for_each_episode() -> None:
    env = da.envs.make(pole_task(episode_steps=4), 500, seed=0, autoreset_mode="SameStep")
    begun, _ = env.reset()
    speed = begun[:, 0]
    assert -1.0 <= speed.min() < -0.9
    assert 1.9 < speed.max() <= 2.0
    q, v = env.q.copy(), env.v.copy()
    push = np.ones((500, 1))
    observation, reward, _, _, info = env.step(push)
    np.testing.assert_allclose(observation[:, 1], 0.03, rtol=1e-12)
    np.testing.assert_array_equal(observation[:, 2], 1.0)
    np.testing.assert_array_equal(reward, speed - env.v[:, 0])
    np.testing.assert_array_equal(info["speed"], reward)
    mass = env.parameters["pole.mass"].copy()
    assert 0.5 <= mass.min() / env.model.body("pole").inertia.mass < 0.6
    ctrl = np.ones((500, 3, 1))
    alike = da.rollout(
        env.model, q, v, da.control.Actuators(ctrl), dt=0.01, contact="compliant",
        parameters={"pole.mass": mass},
    )  # fmt: skip
    np.testing.assert_array_equal(alike.q[:, -1], env.q)
    for _ in range(3):
        observation, _, _, truncated, _ = env.step(push)
    assert truncated.all()
    assert (observation[:, 0] != speed).all()
    assert (env.parameters["pole.mass"] != mass).all()


def test_a_curriculum_widens_the_range_of_a_command() -> None:
    """By the number of a copy's own episodes, whatever the other copies do."""
    known = TASKS["InvertedPendulum"]
    task = replace(
        known,
        observation=lambda now: [now.command["speed"]],
        commands={"speed": da.envs.Widening((1.0, 1.1), (-3.0, 5.0), episodes=4)},
        termination=None,
    )
    env = da.envs.make(task, 2000, seed=0)
    for episode in range(7):
        speed = env.reset()[0][:, 0]
        part = min(episode / 4.0, 1.0)
        low, high = 1.0 - 4.0 * part, 1.1 + 3.9 * part
        assert low <= speed.min() < low + 0.02 * (high - low)
        assert high >= speed.max() > high - 0.02 * (high - low)
    some = np.arange(2000) < 5
    env.reset(seed=1)
    assert abs(env.reset(options={"reset_mask": some})[0][some, 0] - 1.0).max() > 0.1
    with pytest.raises(ArgumentError, match="exchange"):
        replace(task, commands={"speed": da.envs.Widening((1.0, 0.0), (0.0, 1.0), episodes=4)})


def test_pictures_show_the_model() -> None:
    env = da.envs.make("HalfCheetah", 2, seed=0, render_mode="rgb_array")
    env.reset()
    pictures = env.render()
    assert [picture.shape for picture in pictures] == [(480, 480, 3)] * 2
    assert pictures[0].std() > 10.0
    assert da.envs.make("HalfCheetah").render() is None


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="HalfCheetah"):
        da.envs.make("HalfCheeta")
    with pytest.raises(DeviceError, match="CPU"):
        da.envs.make("HalfCheetah", device="cuda")
    env = da.envs.make("HalfCheetah", 2)
    env.reset()
    with pytest.raises(ShapeError, match=r"\(2, 6\)"):
        env.step(np.zeros(6))
    with pytest.raises(ArgumentError, match="reset_mask"):
        env.reset(options={"reset_mask": np.zeros(2, bool)})
    pole = pole_task()
    with pytest.raises(ArgumentError, match="exchange"):
        da.envs.Task("pole", pole.load, pole.observation, pole.reward, commands={"speed": (1.0, 0.0)})


def test_servos_follow_targets_as_in_a_rollout() -> None:
    """Actions are targets of the joints of A1; the same states as `da.rollout` with a servo, on its feet."""
    env = da.envs.make("A1Velocity", COPIES, seed=4)
    env.reset()
    q, v, actions = env.q.copy(), env.v.copy(), actions_of(env, 25)
    for action in actions:
        observation = env.step(action)[0]
    np.testing.assert_array_equal(observation[:, -12:], actions[-1])
    _, stance = env.task.load()
    task, targets = env.task, np.repeat(stance[np.newaxis, np.newaxis], COPIES, axis=0)
    targets = np.repeat(targets, 25, axis=1)
    targets[..., 7:] += task.actions.scale * actions.swapaxes(0, 1)
    servo = da.control.Servo(kp=task.actions.kp, kd=task.actions.kd, q_ref=np.repeat(targets, 4, axis=1))
    moved = da.rollout(env.model, q, v, servo, steps=100, dt=task.time_step, contact=task.contact)
    assert moved.contacts.force[:, -1, :, 2].sum(axis=1).min() > 10.0
    np.testing.assert_array_equal(env.q, moved.q[:, -1])
    np.testing.assert_array_equal(env.v, moved.v[:, -1])


def test_the_action_before_is_zero_when_an_episode_begins() -> None:
    known = TASKS["InvertedPendulum"]
    task = replace(
        known, observation=lambda now: [*now.action, *now.action_before], termination=None, episode_steps=2
    )
    env = da.envs.make(task, 2, seed=0, autoreset_mode="SameStep")
    env.reset()
    found = [env.step(np.full((2, 1), x))[0][0].tolist() for x in (1.0, 2.0, 3.0, -1.0)]
    assert found == [[1.0, 0.0], [0.0, 0.0], [3.0, 0.0], [0.0, 0.0]]


def test_actions_that_are_not_finite_are_refused_before_anything_has_changed() -> None:
    env, other = (da.envs.make("HalfCheetah", 3, seed=0) for _ in range(2))
    env.reset()
    other.reset()
    bad = np.zeros((3, 6))
    bad[1, 2] = np.nan
    with pytest.raises(ArgumentError, match="copy 1"):
        env.step(bad)
    np.testing.assert_array_equal(env.step(np.zeros((3, 6)))[0], other.step(np.zeros((3, 6)))[0])


def test_a_simulation_that_fails_ends_its_episode_alone() -> None:
    env = da.envs.make("HalfCheetah", 3, seed=0, autoreset_mode="SameStep")
    env.reset()
    q, v = env.q.copy(), env.v.copy()
    v[1] = 1e7
    env.set_state(q, v)
    observation, _, terminated, truncated, info = env.step(np.zeros((3, 6)))
    np.testing.assert_array_equal(terminated, [False, True, False])
    assert not truncated.any()
    assert np.isfinite(observation).all()
    assert abs(observation).max() < 10.0
    assert np.isfinite(info["final_obs"][1]).all()

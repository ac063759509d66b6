"""Proximal policy optimization of a task of `da.envs`, in one file of PyTorch.

    python examples/rl/ppo.py HalfCheetah --minutes 15 --seed 1 --record cheetah.html

The agent of Schulman et al. 2017: clipped policy gradient, generalized advantage estimation, observations and
rewards in units of their running deviation. Episodes that are cut off by their time limit are continued with
the estimated value of what they would have had.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import dalembert as da

LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Recipe:
    """What is chosen for a task. `steps`: control steps of each copy between updates; `minibatches` of an
    update, in each of `epochs`; `target_kl`: divergence of the policy in an update to which the learning rate
    adapts; `discount` and `trace`: gamma and lambda of the advantages; `bonus`: weight of the policy's
    entropy."""

    copies: int = 512
    steps: int = 32
    minibatches: int = 8
    epochs: int = 4
    width: int = 64
    rate: float = 1e-3
    target_kl: float = 0.015
    clip: float = 0.2
    discount: float = 0.99
    trace: float = 0.95
    bonus: float = 0.0
    deviation: float = 0.6
    workers: int = 1


RECIPES = {"A1Velocity": Recipe(steps=24, width=128, bonus=0.002)}


class Scale(nn.Module):
    """The mean and the variance of all that was seen, which what is given is divided by."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("variance", torch.ones(size))
        self.register_buffer("count", torch.tensor(1e-4))

    def update(self, values: Tensor) -> None:
        """Add a batch by the formula of Chan et al."""
        mean, variance, n = values.mean(0), values.var(0, unbiased=False), len(values)
        total, shift = self.count + n, mean - self.mean
        spread = self.variance * self.count + variance * n + shift**2 * (self.count * n / total)
        self.mean += shift * (n / total)
        self.variance.copy_(spread / total)
        self.count.copy_(total)

    def forward(self, values: Tensor) -> Tensor:
        return ((values - self.mean) / (self.variance + 1e-8).sqrt()).clamp(-10.0, 10.0)


def network(inputs: int, width: int, outputs: int, last: float) -> nn.Sequential:
    """Return a network of two hidden layers, with orthogonal weights."""
    layers = [
        nn.Linear(inputs, width),
        nn.ELU(),
        nn.Linear(width, width),
        nn.ELU(),
        nn.Linear(width, outputs),
    ]
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, last if layer is layers[-1] else math.sqrt(2.0))
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class Agent(nn.Module):
    """A Gaussian policy and an estimate of the value, both of scaled observations."""

    def __init__(self, observations: int, actions: int, recipe: Recipe) -> None:
        super().__init__()
        self.scale = Scale(observations)
        self.policy = network(observations, recipe.width, actions, 0.01)
        self.value = network(observations, recipe.width, 1, 1.0)
        self.log_deviation = nn.Parameter(torch.full((actions,), math.log(recipe.deviation)))

    def log_probability(self, mean: Tensor, action: Tensor) -> Tensor:
        """Return the logarithm of the probability density of actions."""
        z = (action - mean) / self.log_deviation.exp()
        return (-0.5 * (z * z + LOG_TWO_PI) - self.log_deviation).sum(-1)


@dataclass
class Batch:
    """What was seen between two updates, one row a step, over all copies: `(steps, copies, …)`."""

    observation: Tensor
    action: Tensor
    log_probability: Tensor
    value: Tensor
    reward: Tensor
    ends: Tensor
    mean: Tensor


class Collector:
    """The copies of a task, and the returns of the episodes that they finish."""

    def __init__(self, task: str, recipe: Recipe, seed: int) -> None:
        self.env = da.envs.make(
            task, num_envs=recipe.copies, seed=seed, autoreset_mode="SameStep", arrays="torch"
        )
        space = self.env.single_action_space
        self.center = torch.from_numpy((space.high + space.low) / 2)
        self.half = torch.from_numpy((space.high - space.low) / 2)
        self.observation = self.env.reset()[0].float()
        self.returns = torch.zeros(recipe.copies, dtype=torch.float64)
        self.discounted = torch.zeros(recipe.copies)
        self.reward_scale = Scale(1)
        self.finished: list[float] = []

    @torch.no_grad()
    def collect(self, agent: Agent, recipe: Recipe) -> tuple[Batch, Tensor]:
        """Take the steps of an update; return what was seen, and the value of where they end."""
        rows: list[list[Tensor]] = []
        for _ in range(recipe.steps):
            seen = agent.scale(self.observation)
            mean, value = agent.policy(seen), agent.value(seen)[:, 0]
            action = mean + agent.log_deviation.exp() * torch.randn_like(mean)
            likelihood = agent.log_probability(mean, action)
            found = self.env.step(self.center + self.half * action.clamp(-1.0, 1.0))
            after, reward, terminated, truncated, infos = found
            self.discounted = self.discounted * recipe.discount + reward.float()
            self.reward_scale.update(self.discounted[:, None])
            scaled = reward.float() / (self.reward_scale.variance + 1e-8).sqrt()
            ends = terminated | truncated
            if ends.any():
                cut = torch.nonzero(truncated & ~terminated)[:, 0]
                if len(cut):
                    final = torch.stack([infos["final_obs"][k] for k in cut.tolist()]).float()
                    scaled[cut] += recipe.discount * agent.value(agent.scale(final))[:, 0]
            self.returns += reward
            self.finished += self.returns[ends].tolist()
            self.returns[ends], self.discounted[ends] = 0.0, 0.0
            rows.append([self.observation, action, likelihood, value, scaled, ends.float(), mean])
            self.observation = after.float()
        last = agent.value(agent.scale(self.observation))[:, 0]
        return Batch(*(torch.stack(column) for column in zip(*rows, strict=True))), last


def advantages(batch: Batch, last: Tensor, recipe: Recipe) -> Tensor:
    """Return generalized advantages (Schulman et al. 2016)."""
    found, running, following = torch.empty_like(batch.value), torch.zeros_like(last), last
    for k in reversed(range(len(found))):
        goes_on = 1.0 - batch.ends[k]
        error = batch.reward[k] + recipe.discount * following * goes_on - batch.value[k]
        running = error + recipe.discount * recipe.trace * goes_on * running
        found[k], following = running, batch.value[k]
    return found


def improve(
    agent: Agent, optimizer: torch.optim.Optimizer, batch: Batch, gain: Tensor, recipe: Recipe
) -> float:
    """Take the gradient steps of an update; return the mean divergence from the policy before."""
    target = (gain + batch.value).flatten()
    seen = agent.scale(batch.observation.flatten(0, 1))
    action, before = batch.action.flatten(0, 1), batch.log_probability.flatten()
    old_mean, old_deviation = batch.mean.flatten(0, 1), agent.log_deviation.detach().exp()
    gain = ((gain - gain.mean()) / (gain.std() + 1e-8)).flatten()
    divergences = []
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(seen)).chunk(recipe.minibatches):
            mean = agent.policy(seen[rows])
            ratio = (agent.log_probability(mean, action[rows]) - before[rows]).exp()
            own, clipped = gain[rows] * ratio, gain[rows] * ratio.clamp(1.0 - recipe.clip, 1.0 + recipe.clip)
            error = agent.value(seen[rows])[:, 0] - target[rows]
            entropy = agent.log_deviation.sum()
            loss = -torch.minimum(own, clipped).mean() + 0.5 * (error * error).mean() - recipe.bonus * entropy
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                deviation = agent.log_deviation.exp()
                change = (old_deviation**2 + (old_mean[rows] - mean) ** 2) / (2.0 * deviation**2)
                kl = ((deviation / old_deviation).log() + change - 0.5).sum(-1).mean().item()
            divergences.append(kl)
            for group in optimizer.param_groups:
                factor = (
                    1.0 / 1.2 if kl > 2.0 * recipe.target_kl else 1.2 if kl < 0.5 * recipe.target_kl else 1.0
                )
                group["lr"] = min(max(group["lr"] * factor, 1e-5), 1e-2)
    return float(np.mean(divergences))


def train(task: str, recipe: Recipe, minutes: float, seed: int, goal: float) -> Agent:
    """Train an agent for some minutes, or until the mean return of finished episodes reaches a goal."""
    torch.manual_seed(seed)
    torch.set_num_threads(recipe.workers)
    collector = Collector(task, recipe, seed)
    env = collector.env
    agent = Agent(env.single_observation_space.shape[0], env.single_action_space.shape[0], recipe)
    optimizer = torch.optim.Adam(agent.parameters(), lr=recipe.rate, eps=1e-5)
    begun, used, steps, told = time.monotonic(), time.process_time(), 0, 0
    print("minutes   of processor   env steps   return   deviation   rate", flush=True)
    while (passed := (time.monotonic() - begun) / 60.0) < minutes:
        batch, last = collector.collect(agent, recipe)
        improve(agent, optimizer, batch, advantages(batch, last, recipe), recipe)
        agent.scale.update(batch.observation.flatten(0, 1))
        steps += recipe.copies * recipe.steps
        if passed > 0.25 * told and collector.finished:
            told = math.ceil(4.0 * passed)
            mean, deviation = np.mean(collector.finished), agent.log_deviation.exp().mean().item()
            print(
                f"{passed:7.2f} {(time.process_time() - used) / 60.0:14.2f} {steps:11,} {mean:8.0f} "
                f"{deviation:11.2f} {optimizer.param_groups[0]['lr']:.1e}",
                flush=True,
            )
            collector.finished.clear()
            if mean >= goal:
                break
    return agent


@torch.no_grad()
def evaluate(task: str, agent: Agent, seed: int, copies: int = 16, record: Path | None = None) -> list[float]:
    """Return the returns of one episode in each of some copies, with the mean action; record the first."""
    env = da.envs.make(task, num_envs=copies, seed=seed, autoreset_mode="SameStep", arrays="torch")
    space = env.single_action_space
    center, half = (torch.from_numpy(x / 2) for x in (space.high + space.low, space.high - space.low))
    observation, _ = env.reset()
    total, over, frames = torch.zeros(copies, dtype=torch.float64), torch.zeros(copies, dtype=bool), []
    while not over.all():
        if not over[0]:
            frames.append(env.q[0].copy())
        action = agent.policy(agent.scale(observation.float())).clamp(-1.0, 1.0)
        observation, reward, terminated, truncated, _ = env.step(center + half * action)
        total += reward * ~over
        over |= terminated | truncated
    if record is not None:
        times = env.task.dt * np.arange(len(frames))
        da.viewer.record((env.model, times, np.array(frames)), record, title=task, follow="com")
    return total.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="?", default="HalfCheetah")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--goal", type=float, default=math.inf, help="stop at this mean return")
    parser.add_argument("--save", type=Path, help="file of the agent's weights")
    parser.add_argument("--record", type=Path, help="HTML file of an episode")
    for name, value in vars(Recipe()).items():
        parser.add_argument(f"--{name}", type=type(value))
    given: dict[str, Any] = vars(parser.parse_args())
    task, chosen = given["task"], {k: given[k] for k in vars(Recipe()) if given[k] is not None}
    recipe = Recipe(**{**vars(RECIPES.get(task, Recipe())), **chosen})
    agent = train(task, recipe, given["minutes"], given["seed"], given["goal"])
    if given["save"]:
        torch.save(agent.state_dict(), given["save"])
    returns = evaluate(task, agent, given["seed"] + 10_000, record=given["record"])
    print(f"return of {len(returns)} episodes: {np.mean(returns):.0f} ± {np.std(returns):.0f}")


if __name__ == "__main__":
    main()

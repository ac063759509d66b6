"""The example of reinforcement learning: an agent learns to balance a pole in a few seconds."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("gymnasium")

ppo = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "rl" / "ppo.py"), run_name="ppo")
RECIPE = ppo["Recipe"](copies=64, steps=32, minibatches=4)


def test_an_agent_learns_to_balance_a_pole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pole falls within 0.1 to 2 s by itself; after some seconds of learning it stands for ten."""
    torch.manual_seed(3)
    fresh = ppo["Agent"](4, 1, RECIPE)
    before = ppo["evaluate"]("InvertedPendulum", fresh, seed=1)
    agent = ppo["train"]("InvertedPendulum", RECIPE, minutes=1.0, seed=3, goal=250.0)
    after = ppo["evaluate"]("InvertedPendulum", agent, seed=1, record=tmp_path / "pole.html")
    assert sum(before) / len(before) < 50.0
    assert sum(after) / len(after) > 250.0
    assert (tmp_path / "pole.html").stat().st_size > 10_000
    assert "deviation" in capsys.readouterr().out


def test_advantages_are_those_of_their_definition() -> None:
    """Generalized advantages by the sum over later errors, which ends where an episode does."""
    torch.manual_seed(0)
    value, reward, ends = torch.rand(6, 3), torch.rand(6, 3), (torch.rand(6, 3) < 0.3).float()
    last, other = torch.rand(3), torch.zeros(6, 3)
    batch = ppo["Batch"](other, other, other, value, reward, ends, other)
    found = ppo["advantages"](batch, last, RECIPE)
    following = torch.cat([value[1:], last[None]])
    error = reward + RECIPE.discount * following * (1.0 - ends) - value
    for start in range(6):
        expected, weight = torch.zeros(3), torch.ones(3)
        for k in range(start, 6):
            expected += weight * error[k]
            weight = weight * RECIPE.discount * RECIPE.trace * (1.0 - ends[k])
        torch.testing.assert_close(found[start], expected)

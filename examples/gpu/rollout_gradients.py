"""Gradients of a rollout through our kernels, with PyTorch: gains that catch poles, by gradient descent.

Many poles lean and roll at random; one law u = -K x moves all their carts, x = (q, v). The cost of K is the
mean square of what is left of x, over all starts and all steps:

    J(K) = 1 / (N T) sum over n, t of |x_n(t)|^2_W,      x(t+1) = step(x(t), -K x(t))

There are two ways to it, both on tensors of the CPU or of a GPU, wherever they are:

- `stepwise_cost`: every step is one call of `da.step`, and PyTorch does what is between. A call is one kernel
  and a node of autograd's graph, its derivative another kernel.
- `traced_cost`: law, steps and cost are one function on generic scalars, which `da.compile` makes one kernel
  of, and its derivative one more.

Run: `python examples/gpu/rollout_gradients.py [--device cpu] [--samples 1024]`
"""

import argparse
import time
from collections.abc import Callable

import torch

import dalembert as da
from dalembert.algorithms import stepping

MODEL = da.models.cart_pole(cart_mass=1.0, pole_mass=0.3, pole_length=1.0)
STEPS, DT = 60, 0.02
WEIGHTS = (0.2, 1.0, 0.02, 0.1)
"""W, of the cart's place, the pole's angle, and their rates."""

Cost = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""J of gains K `(4,)` from states q, v `(N, 2)`."""


def stepwise_cost(K: torch.Tensor, q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    W = torch.tensor(WEIGHTS, dtype=q.dtype, device=q.device)
    J = torch.zeros((), dtype=q.dtype, device=q.device)
    for _ in range(STEPS):
        u = -(torch.cat([q, v], dim=-1) @ K)
        tau = torch.stack([u, torch.zeros_like(u)], dim=-1)  # only the slider has a motor
        q, v = da.step(MODEL, q, v, tau, DT)
        J = J + (W * torch.cat([q, v], dim=-1) ** 2).sum(-1).mean()
    return J / STEPS


def cost_of_start(model, q, v, K):
    """The same from one start, on generic scalars."""
    J = 0.0
    for _ in range(STEPS):
        u = -sum(k * x for k, x in zip(K, [*q, *v]))
        q, v = stepping.step(model, q, v, [u, 0.0], DT)
        J = J + sum(w * x * x for w, x in zip(WEIGHTS, [*q, *v]))
    return J / STEPS


compiled_cost = da.compile(cost_of_start, MODEL, inputs={"K": 4})


def traced_cost(K: torch.Tensor, q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return compiled_cost(q, v, K).mean()


def starts(samples: int, device: str, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random states near upright: q and v `(N, 2)`, the same numbers on every device."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, samples, 2, generator=generator, dtype=torch.float64)
    spread = torch.tensor([[[0.1, 0.15]], [[0.1, 0.2]]], dtype=torch.float64)
    q, v = (spread * x).to(device)
    return q, v


def gradient(cost: Cost, K: torch.Tensor, q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """dJ/dK, by reverse accumulation through all steps."""
    K = K.detach().requires_grad_()
    (slope,) = torch.autograd.grad(cost(K, q, v), K)
    return slope


def differences(
    cost: Cost, K: torch.Tensor, q: torch.Tensor, v: torch.Tensor, h: float = 1e-5
) -> torch.Tensor:
    """dJ/dK by central differences."""
    moved = h * torch.eye(4, dtype=K.dtype, device=K.device)
    with torch.no_grad():
        found = [cost(K + d, q, v) - cost(K - d, q, v) for d in moved]
    return torch.stack(found) / (2.0 * h)


def descend(cost: Cost, K: torch.Tensor, q: torch.Tensor, v: torch.Tensor, iterations: int) -> torch.Tensor:
    """(J, K) `(iterations + 1, 5)` on the way down, by Adam."""
    K = K.clone().requires_grad_()
    adam, path = torch.optim.Adam([K], lr=1.0), []
    for _ in range(iterations):
        adam.zero_grad()
        J = cost(K, q, v)
        path.append(torch.cat([J.detach()[None], K.detach()]))
        J.backward()
        adam.step()
    with torch.no_grad():
        path.append(torch.cat([cost(K, q, v)[None], K]))
    return torch.stack(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Gradients of a rollout cost.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, help="by default 65536 on a GPU, 1024 on the CPU")
    parser.add_argument("--iterations", type=int, default=30)
    given = parser.parse_args()
    samples = given.samples or (1024 if given.device == "cpu" else 65536)
    q, v = starts(samples, given.device)
    K = torch.tensor([0.0, -15.0, 0.0, -3.0], dtype=q.dtype, device=q.device)
    print(f"{samples} starts, {STEPS} steps of {DT} s, {q.dtype} on {q.device}")

    expected = differences(stepwise_cost, K, q, v)
    print("dJ/dK by central differences:", shown(expected))
    for name, cost in {"step by step": stepwise_cost, "one kernel": traced_cost}.items():
        slope = gradient(cost, K, q, v)
        error = ((slope - expected).norm() / expected.norm()).item()
        print(f"dJ/dK, {name}: {shown(slope)}, apart by {error:.1e}")
        if not error < 1e-6:
            raise SystemExit("the gradient is not that of finite differences")
        begun = time.perf_counter()
        path = descend(cost, K, q, v, given.iterations).tolist()  # waits for it
        each = (time.perf_counter() - begun) / given.iterations
        for k in range(0, len(path), 10):
            print(f"  {k:3d}: J = {path[k][0]:.5f}, K = {[round(x, 2) for x in path[k][1:]]}")
        rate = STEPS * samples / each / 1e6
        print(f"  {1e3 * each:.2f} ms an iteration: {rate:.2f} million steps a second, forward and back")


def shown(numbers: torch.Tensor) -> list[float]:
    return [round(x, 7) for x in numbers.tolist()]


if __name__ == "__main__":
    main()

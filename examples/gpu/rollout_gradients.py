"""Gradients of a rollout through our kernels, with PyTorch: gains that catch poles, by gradient descent.

Many poles lean and roll at random; one law u = -K x moves all their carts, x = (q, v). The cost of K is the
mean square of what is left of x, over all starts and all steps:

    J(K) = 1 / (N T) sum over n, t of |x_n(t)|^2_W,      x(t+1) = step(x(t), -K x(t))

Every step is one call of `da.step` on tensors, wherever they are: one kernel on the CPU, or one on the GPU,
and its derivative another one. Autograd chains them; nothing is unrolled into PyTorch's own operations.

Run: `python examples/gpu/rollout_gradients.py [--device cpu] [--samples 1024]`
"""

import argparse
import time

import torch

import dalembert as da

MODEL = da.models.cart_pole(cart_mass=1.0, pole_mass=0.3, pole_length=1.0)
STEPS, DT = 60, 0.02
WEIGHTS = (0.2, 1.0, 0.02, 0.1)
"""W, of the cart's place, the pole's angle, and their rates."""


def starts(samples: int, device: str, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random states near upright: q and v `(N, 2)`, the same numbers on every device."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, samples, 2, generator=generator, dtype=torch.float64)
    spread = torch.tensor([[[0.1, 0.15]], [[0.1, 0.2]]], dtype=torch.float64)
    return (spread * x).to(device).unbind(0)


def rollout_cost(K: torch.Tensor, q: torch.Tensor, v: torch.Tensor, steps: int = STEPS) -> torch.Tensor:
    """J of gains K `(4,)` from states q, v `(N, 2)`."""
    W = torch.tensor(WEIGHTS, dtype=q.dtype, device=q.device)
    J = torch.zeros((), dtype=q.dtype, device=q.device)
    for _ in range(steps):
        x = torch.cat([q, v], dim=-1)
        u = -(x @ K)
        tau = torch.stack([u, torch.zeros_like(u)], dim=-1)  # only the slider has a motor
        q, v = da.step(MODEL, q, v, tau, DT)
        J = J + (W * torch.cat([q, v], dim=-1) ** 2).sum(-1).mean()
    return J / steps


def gradient(K: torch.Tensor, q: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """J and dJ/dK, by reverse accumulation through all steps."""
    K = K.detach().requires_grad_()
    J = rollout_cost(K, q, v)
    (slope,) = torch.autograd.grad(J, K)
    return J.detach(), slope


def differences(K: torch.Tensor, q: torch.Tensor, v: torch.Tensor, h: float = 1e-5) -> torch.Tensor:
    """dJ/dK by central differences."""
    moved = h * torch.eye(4, dtype=K.dtype, device=K.device)
    with torch.no_grad():
        found = [rollout_cost(K + d, q, v) - rollout_cost(K - d, q, v) for d in moved]
    return torch.stack(found) / (2.0 * h)


def descend(K: torch.Tensor, q: torch.Tensor, v: torch.Tensor, iterations: int, rate: float = 1.0) -> list:
    """Gradient descent with Adam's steps; (J, K) before each of them and at the end."""
    K = K.clone().requires_grad_()
    adam, path = torch.optim.Adam([K], lr=rate), []
    for _ in range(iterations):
        J = rollout_cost(K, q, v)
        path.append((J.item(), K.tolist()))
        adam.zero_grad()
        J.backward()
        adam.step()
    with torch.no_grad():
        path.append((rollout_cost(K, q, v).item(), K.tolist()))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Gradients of a rollout cost.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, help="by default 65536 on a GPU, 1024 on the CPU")
    parser.add_argument("--iterations", type=int, default=30)
    given = parser.parse_args()
    samples = given.samples or (1024 if given.device == "cpu" else 65536)
    q, v = starts(samples, given.device)
    K = torch.tensor([0.0, -15.0, 0.0, -3.0], dtype=q.dtype, device=q.device)

    J, slope = gradient(K, q, v)
    by_differences = differences(K, q, v)
    error = ((slope - by_differences).norm() / slope.norm()).item()
    print(f"{samples} samples, {STEPS} steps of {DT} s, {slope.dtype} on {slope.device}")
    print(f"J = {J.item():.6f}, dJ/dK = {[round(x, 6) for x in slope.tolist()]}")
    print(f"central differences: {[round(x, 6) for x in by_differences.tolist()]}, apart by {error:.1e}")
    if not error < 1e-6:
        raise SystemExit("the gradient is not that of finite differences")

    begun = time.perf_counter()
    path = descend(K, q, v, given.iterations)
    took = time.perf_counter() - begun
    for k in range(0, len(path), max(1, len(path) // 6)):
        print(f"  {k:3d}: J = {path[k][0]:.6f}, K = {[round(x, 2) for x in path[k][1]]}")
    print(f"  end: J = {path[-1][0]:.6f}, K = {[round(x, 2) for x in path[-1][1]]}")
    rate = given.iterations * STEPS * samples / took / 1e6
    print(f"a gradient takes {1e3 * took / given.iterations:.1f} ms: {rate:.2f} M steps/s, forward and back")


if __name__ == "__main__":
    main()

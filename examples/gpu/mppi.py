"""Model predictive path integral control (MPPI): a cart-pole swings up, a quadruped stands against pushes.

In every period the controller tries thousands of perturbed plans in simulation, all of them in one call of
`da.rollout`, and takes their mean, weighted by how well they went:

    u_k = U + e_k,   e_k ~ N(0, Sigma)            samples k of the plan U
    S_k = sum over t of c(x_k(t), u_k(t))          their costs, by simulation
    w_k = exp(-(S_k - min S) / lambda) / sum       their weights
    U  <- sum over k of w_k u_k                    the better plan

The first action of U is carried out, the plan moves on by one period, and so on. Source: Williams, Drews,
Goldfain, Rehg and Theodorou, "Information-Theoretic Model Predictive Control", 2018, with alpha = 1.

Where PyTorch finds a GPU, plans, simulations, costs and weights stay there, as tensors; elsewhere they are
NumPy arrays on the CPU, and the code is the same. The world that is controlled is another simulation, on the
CPU, with finer steps and other laws than the plans; state and action are all that passes between the two.

Run: `python examples/gpu/mppi.py [cart_pole | quadruped] [--device cpu] [--samples 512] [--out build/mppi]`
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dalembert as da

Array = Any
"""A NumPy array, or a tensor of PyTorch."""


class Arrays(NamedTuple):
    """Where the controller computes: the functions of NumPy, or those of PyTorch, which have the same names.

    `put` brings numbers there, `get` brings them back; `normal(shape)`: standard normal numbers.
    """

    xp: Any
    put: Callable[[Any], Array]
    get: Callable[[Array], np.ndarray]
    normal: Callable[[tuple[int, ...]], Array]


def numpy_arrays(seed: int) -> Arrays:
    """On the CPU, in float64."""
    return Arrays(np, np.asarray, np.asarray, np.random.default_rng(seed).standard_normal)


def torch_arrays(device: str, seed: int) -> Arrays:
    """On a device of PyTorch, in float32."""
    import torch

    where: dict[str, Any] = {"device": device, "dtype": torch.float32}
    generator = torch.Generator(device).manual_seed(seed)
    return Arrays(
        torch,
        lambda numbers: torch.asarray(numbers, **where),
        lambda tensor: tensor.cpu().numpy(),
        lambda shape: torch.randn(shape, generator=generator, **where),
    )


def arrays_on(device: str, seed: int) -> Arrays:
    """NumPy on the "cpu", PyTorch on "cuda"."""
    return numpy_arrays(seed) if device == "cpu" else torch_arrays(device, seed)


@dataclass(frozen=True)
class Task:
    """What is to be done, and with which means.

    An action `(m,)` is held for a period of `steps` simulated steps of dt [s]; a plan has `horizon` of them.
    `controls(xp, u)` are those of `da.rollout` for actions u `(…, T, m)`; `cost(xp, q, v)` is that of states
    `(K, T)`, to which `effort` |u - rest|^2 is added. `sigma`, `lowest`, `highest` `(m,)`: the spread of
    samples, the bounds of actions. `temperature`: lambda, the cost by which a sample counts 1 / e as much.
    """

    model: da.Model
    dt: float
    steps: int
    horizon: int
    rest: np.ndarray
    sigma: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    effort: float
    temperature: float
    controls: Callable[[Any, Array], Any]
    cost: Callable[[Any, Array, Array], Array]
    contact: Any = None

    @property
    def period(self) -> float:
        """Time between two decisions [s]."""
        return self.steps * self.dt


class Controller:
    """MPPI for a task: `decide(q, v)` improves the plan for a state and returns its first action."""

    def __init__(self, task: Task, samples: int, arrays: Arrays) -> None:
        self.task, self.samples, self.arrays = task, samples, arrays
        self.plan = arrays.put(np.tile(task.rest, (task.horizon, 1)))
        self.rest = arrays.put(task.rest[np.newaxis])
        self.sigma, self.lowest, self.highest = map(arrays.put, (task.sigma, task.lowest, task.highest))

    def decide(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        xp = self.arrays.xp
        noise = self.sigma * self.arrays.normal((self.samples, *self.plan.shape))
        u = xp.clip(self.plan + noise, self.lowest, self.highest)
        S = self.costs(self.arrays.put(q), self.arrays.put(v), u)
        w = xp.exp((S.min() - S) / self.task.temperature)
        plan = xp.einsum("k,ktm->tm", w / w.sum(), u)
        self.plan = xp.concatenate([plan[1:], self.rest])
        action = self.arrays.get(plan[0])
        if not np.isfinite(action).all():
            raise ArithmeticError(f"no mean of {self.samples} plans from q = {q}, v = {v}: costs {S}")
        return action

    def costs(self, q: Array, v: Array, u: Array) -> Array:
        """S `(K,)` of plans u `(K, T, m)` from a state: one rollout of all of them."""
        task, xp = self.task, self.arrays.xp
        K, T, m = u.shape
        held = xp.broadcast_to(u[:, :, None], (K, T, task.steps, m)).reshape(K, T * task.steps, m)
        motion = da.rollout(
            task.model,
            q,
            v,
            task.controls(xp, held),
            steps=T * task.steps,
            dt=task.dt,
            every=task.steps,
            contact=task.contact,
            record_contacts=False,
        )
        states = task.cost(xp, motion.q[:, 1:], motion.v[:, 1:]).sum(-1)
        S = states + task.effort * ((u - self.rest) ** 2).sum((-2, -1))
        return xp.where(motion.failed, xp.inf, S)


def cart_pole() -> Task:
    """Swing a pole up, and keep it there, with a force on the cart that is too weak to do it in one go."""

    def cost(xp, q, v):
        x, theta = q[..., 0], q[..., 1]
        outside = xp.clip(xp.abs(x) - 1.8, 0.0, None)
        return (1.0 - xp.cos(theta)) + 0.1 * x**2 + 0.02 * v[..., 1] ** 2 + 100.0 * outside**2

    def controls(xp, u):
        return xp.concatenate([u, 0.0 * u], -1)  # only the slider has a motor

    return Task(
        model=da.models.cart_pole(cart_mass=1.0, pole_mass=0.3, pole_length=1.0),
        dt=0.02,
        steps=2,
        horizon=40,
        rest=np.zeros(1),
        sigma=np.array([4.0]),
        lowest=np.array([-6.0]),
        highest=np.array([6.0]),
        effort=0.0002,
        temperature=0.5,
        controls=controls,
        cost=cost,
    )


STANCE = np.tile([0.0, 0.7, -1.4], 4)
"""Abduction, flexion and knee of each leg [rad]."""
HEIGHT = 0.341
"""Of the trunk in that stance [m]."""


def quadruped() -> Task:
    """Keep the trunk upright, in its place and at its height. Actions are targets of the joints' servos."""
    model = da.models.quadruped().with_ground()
    # A plan touches the ground with its feet alone: who falls has lost anyhow.
    feet = [
        pair
        for pair in da.contact.pairs_of(model, self_collision=False)
        if isinstance(pair.second.shape, da.shapes.Sphere)
    ]

    def cost(xp, q, v):
        x, y, z = q[..., 0], q[..., 1], q[..., 2]
        tilt = 2.0 * (q[..., 4] ** 2 + q[..., 5] ** 2)  # 1 - cos of the angle from upright
        spin, speed = (v[..., :3] ** 2).sum(-1), (v[..., 3:6] ** 2).sum(-1)
        return 100.0 * (z - HEIGHT) ** 2 + 20.0 * tilt + 4.0 * (x**2 + y**2) + 0.05 * spin + 0.5 * speed

    def controls(xp, u):
        trunk = xp.zeros_like(u[..., :7])  # which has no motor
        trunk[..., 3] = 1.0
        return da.control.Servo(kp=60.0, kd=2.0, q_ref=xp.concatenate([trunk, u], -1))

    return Task(
        model=model,
        dt=0.01,
        steps=4,
        horizon=12,
        rest=STANCE,
        sigma=np.tile([0.1, 0.15, 0.2], 4),
        lowest=np.tile([-0.7, -1.0, -2.6], 4),
        highest=np.tile([0.7, 2.5, -0.2], 4),
        effort=0.05,
        temperature=1.0,
        controls=controls,
        cost=cost,
        contact=da.contact.Compliant(pairs=feet),
    )


class Run(NamedTuple):
    """A controlled motion: time `(n,)` [s] and q `(n, nq)`, and how long each period [s] took [s]: to decide,
    and altogether. The first is left out, in which kernels are compiled."""

    model: da.Model
    time: np.ndarray
    q: np.ndarray
    period: float
    deciding: np.ndarray
    lasting: np.ndarray

    @property
    def real_time_factor(self) -> float:
        """Simulated time over time that passed."""
        return self.period / float(self.lasting.mean())


Decide = Callable[[np.ndarray, np.ndarray], np.ndarray]
Push = Callable[[float], np.ndarray]


def control(
    task: Task,
    decide: Decide,
    q: np.ndarray,
    v: np.ndarray,
    seconds: float,
    *,
    push: Push | None = None,
    **laws: Any,
) -> Run:
    """Let the world go on under a controller, from a state at rest: one sample on the CPU, five steps for
    one of the plans', by `laws` of `da.rollout`. `push(t)`: forces `(n_bodies, 6)` at centres of mass."""
    fine = 5 * task.steps
    frames, clock = [q[np.newaxis]], []
    for k in range(round(seconds / task.period)):
        begun = time.perf_counter()
        u = decide(q, v)
        decided = time.perf_counter()
        motion = da.rollout(
            task.model,
            q,
            v,
            task.controls(np, np.asarray(u, float)[np.newaxis]),
            steps=fine,
            dt=task.period / fine,
            external_forces=None if push is None else push(k * task.period),
            external_frame="center",
            record_contacts=False,
            **laws,
        )
        q, v = motion.q[-1], motion.v[-1]
        frames.append(motion.q[1:])
        clock.append((decided - begun, time.perf_counter() - begun))
    moved = np.concatenate(frames)
    deciding, lasting = np.array(clock[1:]).T
    return Run(task.model, task.period / fine * np.arange(len(moved)), moved, task.period, deciding, lasting)


def swing_up(device: str, samples: int, *, seconds: float = 8.0, seed: int = 0) -> Run:
    """The cart-pole, from hanging at rest."""
    task = cart_pole()
    controller = Controller(task, samples, arrays_on(device, seed))
    return control(task, controller.decide, np.array([0.0, np.pi]), np.zeros(2), seconds, integrator="rk4")


def pushes(t: float) -> np.ndarray:
    """100 N at the trunk for 0.16 s, which moves 12 kg at 1.3 m/s: from the right, later from the front."""
    force = np.zeros((13, 6))
    force[0, 4] = 100.0 if 0.4 <= t % 3.0 < 0.56 else 0.0
    force[0, 3] = -100.0 if 1.2 <= t % 3.0 < 1.36 else 0.0
    return force


def stand(device: str, samples: int, *, seconds: float = 6.0, seed: int = 0, planning: bool = True) -> Run:
    """The quadruped under pushes; without planning its servos hold the stance."""
    task = quadruped()
    controller = Controller(task, samples, arrays_on(device, seed))
    decide: Decide = controller.decide if planning else lambda q, v: STANCE
    q = np.concatenate([[0.0, 0.0, HEIGHT, 1.0, 0.0, 0.0, 0.0], STANCE])
    law = da.contact.Rigid(self_collision=False)
    return control(task, decide, q, np.zeros(task.model.nv), seconds, push=pushes, contact=law)


def upright(run: Run) -> np.ndarray:
    """The angle of the pole, or of the trunk, from upright [rad], `(n,)`."""
    if run.model.nq == 2:
        return np.abs(np.arctan2(np.sin(run.q[:, 1]), np.cos(run.q[:, 1])))
    return np.arccos(np.clip(1.0 - 2.0 * (run.q[:, 4] ** 2 + run.q[:, 5] ** 2), -1.0, 1.0))


TASKS = {"cart_pole": (cart_pole, swing_up), "quadruped": (quadruped, stand)}
SAMPLES = {"cpu": 128, "cuda": 8192}


def main() -> None:
    parser = argparse.ArgumentParser(description="Sampling-based control: MPPI.")
    parser.add_argument("task", nargs="?", choices=[*TASKS, "both"], default="both")
    parser.add_argument("--device", choices=list(SAMPLES), default=default_device())
    parser.add_argument("--samples", type=int, help=f"by default {SAMPLES}")
    parser.add_argument("--out", type=Path, default=Path("build/mppi"), help="where recordings go")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "rollout: shapes")  # feet that stand are a little in the ground
    samples = given.samples or SAMPLES[given.device]
    given.out.mkdir(parents=True, exist_ok=True)
    for name in TASKS if given.task == "both" else [given.task]:
        task, run = TASKS[name][0](), TASKS[name][1](given.device, samples)
        slow = 1e3 * np.quantile(run.deciding, [0.5, 1.0])
        tilt = upright(run)
        print(
            f"{name} on {given.device}: {samples} samples, horizon {task.horizon * task.steps} steps of "
            f"{task.dt} s ({task.horizon * task.period:.2f} s), a decision every {1e3 * task.period:.0f} ms\n"
            f"  real-time factor {run.real_time_factor:.2f}; a decision takes {slow[0]:.1f} ms, at most "
            f"{slow[1]:.1f} ms\n"
            f"  from upright: {tilt[-1]:.3f} rad at the end, at most {tilt[len(tilt) // 2 :].max():.3f} rad "
            "in the second half"
        )
        path = da.viewer.record(
            (run.model, run.time, run.q), given.out / f"{name}.html", title=f"MPPI: {name}"
        )
        print(f"  recording: {path}")


def default_device() -> str:
    """A GPU where PyTorch finds one."""
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


if __name__ == "__main__":
    main()

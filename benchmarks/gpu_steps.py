"""Steps of simulated time on a GPU, with and without contact: the humanoid of MuJoCo Warp's package, nv 27.

One launch takes every sample through all steps; time by CUDA events, float32, all state carried in the kernel
and the last frame written. The model is stored (`benchmarks/robots/humanoid27.json`), so that MuJoCo is not
needed. Its body parts touch the ground, not each other. Contact laws differ: "compliant" solves convex
compliant contact of each step to its end, "rigid" Coulomb friction and restitution without compliance;
MuJoCo's is a convex law of its own with another softness. Its figures here are those of `gpu_peers.py`: from
the same states, with the same 19 pairs of shapes.

    python benchmarks/gpu_steps.py [none] [compliant] [rigid] [--pose lying] [--samples 32768] [--steps 100]
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from gpu_ceilings import Clock

import dalembert as da
from dalembert.call.cuda.device import device
from dalembert.call.cuda.device_arrays import DeviceArray
from dalembert.simulation.step_function import StepPlan

MODEL = Path(__file__).parent / "robots" / "humanoid27.json"
DT = 0.005
POSES = {"standing": (1.29, 0.0), "lying": (0.22, -np.pi / 2)}
"""Height of the torso [m], and its turn about the axis to the left [rad]."""

LAWS = {
    "none": None,
    "compliant": da.contact.Compliant(self_collision=False),
    "rigid": da.contact.Rigid(self_collision=False),
}
SMOOTH_PEERS = {"MuJoCo Warp 4.0": 15.9e6, "MJX 3.17": 12.5e6}
TOUCHING_PEERS = {"standing": {"MuJoCo Warp 4.0": 7.5e6}, "lying": {"MuJoCo Warp 4.0": 7.0e6}}
"""Steps a second measured on an H200, batch 32,768: without constraints, and with contact."""


def starts(model: da.Model, pose: str, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v about a pose: "standing" with the feet on the ground, or "lying" on the back."""
    rng = np.random.default_rng(0)
    q = np.tile(model.neutral(), (samples, 1))
    height, turn = POSES[pose]
    q[:, 2] = height
    q[:, 3], q[:, 5] = np.cos(turn / 2), np.sin(turn / 2)
    q[:, 7:] += 0.05 * rng.standard_normal((samples, model.nq - 7))
    return q, 0.1 * rng.standard_normal((samples, model.nv))


class Steps:
    """A rollout of the humanoid from about a pose."""

    def __init__(self, law: Any, samples: int, pose: str = "standing", dtype: str = "float32") -> None:
        self.model = da.Model.from_json(MODEL.read_text())
        self.law, self.samples = law, samples
        plan = StepPlan(
            watch=False, model=self.model, contact=law, pairs=() if law is None else law.pairs_in(self.model)
        )
        rollout = plan.kernel((), (), dtype)
        kernels = rollout._kernels
        begun = time.perf_counter()
        self.kernel = kernels.on_gpu(device(0))
        self.seconds = time.perf_counter() - begun
        size = np.dtype(dtype).itemsize
        self.q, self.v = starts(self.model, pose, samples)
        given = {"q": self.q, "v": self.v, "tau": np.zeros(self.model.nv), "dt": DT}
        given["memory"] = np.array(plan.memory)
        arrays = [np.asarray(given.get(item.name, 0.0), dtype) for item in kernels.recipe.signature]
        batched = [item.name in ("q", "v") for item in kernels.recipe.signature]
        self.arguments = [DeviceArray.of(array) for array in arrays]
        self.inputs = [(x.address, x.row_bytes if many else 0) for x, many in zip(self.arguments, batched)]
        widths = [item.size * size for item in kernels.results()]
        carried = [widths[number] for _, number in rollout._rollout.carried]
        self.names = [name for name, _ in rollout._rollout.carried]
        self.results = [DeviceArray.empty((samples, width // size), dtype) for width in (*widths, *carried)]
        self.results.append(DeviceArray.empty((samples,), "int64"))
        self.outputs = [(x.address, x.row_bytes) for x in self.results]
        self.apart = [*[0] * len(self.inputs), *widths]

    def launch(self, steps: int) -> None:
        more = (steps, steps, steps, *self.apart)
        with self.kernel.kept_scratch(0, self.samples) as scratch:
            self.kernel.launch(0, self.inputs, self.outputs, self.samples, scratch=scratch, more=more)

    def final(self, name: str) -> np.ndarray:
        place = len(self.results) - 1 - len(self.names) + self.names.index(name)
        return self.results[place].numpy()

    def difference(self, steps: int, rows: int = 32) -> float:
        """Positions after some steps beside float64 on the CPU: the largest difference [rad, m]."""
        self.launch(steps)
        wanted = da.rollout(self.model, self.q[:rows], self.v[:rows], steps=steps, dt=DT, contact=self.law)
        return float(np.abs(self.final("q")[:rows] - wanted.q[:, -1]).max())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("laws", nargs="*", default=["none", "compliant"], help="none, compliant, rigid")
    parser.add_argument("--pose", choices=list(POSES), default="standing")
    parser.add_argument("--samples", type=int, default=32_768)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    try:
        clock = Clock(device(0))
    except da.errors.DeviceError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{device(0)!r}, batch {options.samples}, {options.steps} steps of {DT} s from {options.pose}")
    for name in options.laws:
        steps = Steps(LAWS[name], options.samples, options.pose)
        apart = steps.difference(10)
        ms = clock.best(functools.partial(steps.launch, options.steps), 3)
        rate = 1e3 * options.samples * options.steps / ms
        good = steps.final("fault") <= 0
        if not (steps.final("lasted")[good] == options.steps).all():
            print(f"contact {name}: the kernel did not take all steps", file=sys.stderr)
            return 1
        failed = int(np.count_nonzero(~good))
        others = SMOOTH_PEERS if name == "none" else TOUCHING_PEERS[options.pose]
        peers = ", ".join(f"{peer} {x / 1e6:.1f} ({rate / x:.1f} times)" for peer, x in others.items())
        print(
            f"contact {name}: {rate / 1e6:.1f} M steps/s; measured before: {peers}; {failed} of "
            f"{options.samples} samples failed; after 10 steps {apart:.0e} from float64 on the CPU; "
            f"compiled in {steps.seconds:.0f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Steps of simulated time on a GPU, with and without contact: the humanoid of MuJoCo Warp's package, nv 27.

One call of `da.rollout` on PyTorch's tensors takes every sample through all steps and returns the last frame;
float32. The model is stored (`benchmarks/robots/humanoid27.json`), so that MuJoCo is not needed. Its body
parts touch the ground alone, or with `--all-pairs` each other, too. Contact laws differ: "compliant" solves
convex compliant contact of each step to its end, "rigid" Coulomb friction and restitution without compliance;
MuJoCo's is a convex law of its own with another softness. Its figures here are those of `gpu_peers.py`: from
the same states, with the same pairs of shapes.

With `--model` another robot stands on its ground, in its pose "standing" if it has one, with servos at its
joints: a model file, or one that `Model.to_json` wrote.

    python benchmarks/gpu_steps.py [none] [compliant] [rigid] [--pose lying] [--all-pairs]
        [--samples 4096 32768] [--steps 100] [--model FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dalembert as da
from dalembert.call.cuda.device import device

MODEL = Path(__file__).parent / "robots" / "humanoid27.json"
DT = 0.005
POSES = {"standing": (1.29, 0.0), "lying": (0.22, -np.pi / 2)}
"""Height of the torso [m], and its turn about the axis to the left [rad]."""

LAWS = {"none": None, "compliant": da.contact.Compliant, "rigid": da.contact.Rigid}
SMOOTH_PEERS = {"MuJoCo Warp 4.0": 15.9e6, "MJX 3.17": 12.5e6}
TOUCHING_PEERS = {"standing": {"MuJoCo Warp 4.0": 7.5e6}, "lying": {"MuJoCo Warp 4.0": 7.0e6}}
"""Steps a second measured on an H200, batch 32,768: without constraints, and with contact of the floor."""

GAINS = {"kp": 50.0, "kd": 2.0}
"""[N m/rad], [N m s/rad] of the servos of `--model`."""

COMPARED_SAMPLES, COMPARED_STEPS, ROUNDS = 32, 10, 3

Array = np.ndarray[Any, Any]


def starts(model: da.Model, pose: str, samples: int) -> tuple[Array, Array]:
    """q and v about a pose: "standing" with the feet on the ground, or "lying" on the back."""
    height, turn = POSES[pose]
    q = model.neutral()
    q[2], q[3], q[5] = height, np.cos(turn / 2), np.sin(turn / 2)
    return scattered(model, q, samples)


def scattered(model: da.Model, q: Array, samples: int) -> tuple[Array, Array]:
    """States about a configuration of a figure with a free root."""
    rng = np.random.default_rng(0)
    found = np.tile(q, (samples, 1))
    found[:, 7:] += 0.05 * rng.standard_normal((samples, model.nq - 7))
    return found, 0.1 * rng.standard_normal((samples, model.nv))


class Case(NamedTuple):
    """A model, the states where its steps begin, and the configuration that servos hold, if there are any."""

    model: da.Model
    q: Array
    v: Array
    held: Array | None = None

    @classmethod
    def of(cls, path: Path | None, pose: str, samples: int) -> Case:
        if path is None:
            model = da.Model.from_json(MODEL.read_text())
            return cls(model, *starts(model, pose, samples))
        model = (
            da.Model.from_json(path.read_text())
            if path.suffix == ".json"
            else da.load(path, root="floating").with_ground()
        )
        q = da.stand(model, model.pose(pose) if pose in model.poses else model.neutral())
        return cls(model, *scattered(model, q, samples), q)

    def run(self, law: Any, steps: int, *, samples: int | None = None, on_gpu: bool) -> Any:
        """Take steps from the start and return the trajectory, whose last frame is there."""
        convert = on_the_gpu if on_gpu else np.asarray
        q, v = convert(self.q[:samples]), convert(self.v[:samples])
        servo = None if self.held is None else da.control.Servo(**GAINS, q_ref=convert(self.held))
        options = {"steps": steps, "dt": DT, "every": steps, "record_contacts": False}
        return da.rollout(self.model, q, v, servo, contact=law, **options)


def on_the_gpu(values: Array) -> Any:
    import torch

    return torch.tensor(values, dtype=torch.float32, device="cuda")


def final(motion: Any) -> Array:
    """The last q of all samples, on the host."""
    return np.asarray(motion.q[:, -1].cpu() if hasattr(motion.q, "cpu") else motion.q[:, -1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("laws", nargs="*", default=["none", "compliant"], help="none, compliant, rigid")
    parser.add_argument("--pose", choices=list(POSES), default="standing")
    parser.add_argument(
        "--all-pairs", action="store_true", help="body parts of the humanoid touch each other"
    )
    parser.add_argument("--samples", type=int, nargs="+", default=[32_768])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    try:
        print(f"{device(0)!r}, {options.steps} steps of {DT} s from {options.pose}")
    except da.errors.DeviceError as error:
        print(error, file=sys.stderr)
        return 1
    self_collision = options.all_pairs or options.model is not None
    for name in options.laws:
        law = None if LAWS[name] is None else LAWS[name](self_collision=self_collision)
        for samples in options.samples:
            case = Case.of(options.model, options.pose, samples)
            begun = time.perf_counter()
            case.run(law, 1, on_gpu=True)
            first = time.perf_counter() - begun
            few = {"samples": COMPARED_SAMPLES}
            pair = [final(case.run(law, COMPARED_STEPS, **few, on_gpu=x)) for x in (True, False)]
            seconds = []
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                motion = case.run(law, options.steps, on_gpu=True)
                device(0).synchronize()
                seconds.append(time.perf_counter() - begun)
            rate = samples * options.steps / min(seconds)
            failed = int(np.count_nonzero(~np.isfinite(final(motion)).all(axis=1)))
            peers = {}
            if options.model is None and not options.all_pairs:
                peers = SMOOTH_PEERS if law is None else TOUCHING_PEERS[options.pose]
            told = "".join(f"; {peer} {x / 1e6:.1f} ({rate / x:.1f} times)" for peer, x in peers.items())
            print(
                f"contact {name}, {samples} samples: {rate / 1e6:.1f} M steps/s{told}; first result "
                f"{first:.0f} s; {failed} samples not finite; after {COMPARED_STEPS} steps "
                f"{np.abs(pair[0] - pair[1]).max():.0e} from float64 on the CPU",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

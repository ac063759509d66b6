"""MuJoCo Warp and MJX on the humanoid of their own packages, and dalembert on the same file: steps a second.

Constraints are switched off on all sides, so that a step is smooth dynamics and integration; joints keep
their damping and stiffness. MuJoCo Warp is measured with contact too, from the states of `gpu_steps.py`: with
body parts that meet the floor alone, the pairs of shapes that are computed there, and with all pairs of its
file. `gpu.py` calls this; a peer that is not installed is left out, and that is said.

    python benchmarks/gpu_peers.py            MuJoCo Warp with contact alone
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gpu_steps import POSES, starts

import dalembert as da
from dalembert.call.cuda.device import device
from dalembert.call.cuda.device_arrays import DeviceArray
from dalembert.compiler.library import function

BATCH = 32_768
STEPS = 100
PLENTY = 256
"""Contacts a sample that certainly have room."""

FILES = {
    "MuJoCo Warp": ("mujoco_warp", "test_data/humanoid/humanoid.xml"),
    "MJX": ("mujoco.mjx", "test_data/humanoid/humanoid.xml"),
}


def file_of(peer: str) -> Path | None:
    """The humanoid of a peer's package, if that is installed."""
    package, inside = FILES[peer]
    try:
        found = importlib.util.find_spec(package)
    except ImportError:
        return None
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / inside
    return path if path.exists() else None


def compare(clock: Any) -> dict[str, Any]:
    """Print and return steps a second of those peers that there are, and of ours."""
    figures: dict[str, Any] = {}
    for peer, measure in (("MuJoCo Warp", warp_rate), ("MJX", mjx_rate)):
        path = file_of(peer)
        if path is None:
            print(f"\n{peer} is not installed here: not compared")
            continue
        difference = acceleration_difference(path)
        ours, theirs = our_rate(path, clock), measure(path)
        figures[peer] = {"ours": ours, "theirs": theirs, "ratio": ours / theirs, "difference": difference}
        print(
            f"\nUnconstrained steps, batch {BATCH}: dalembert {ours / 1e6:.1f} M/s, {peer} "
            f"{theirs / 1e6:.1f} M/s, {ours / theirs:.1f} times; accelerations differ from MuJoCo's "
            f"by {difference:.0e}"
        )
        if peer == "MuJoCo Warp":
            figures[peer]["with contact"] = warp_contact_rates(path)
    return figures


def acceleration_difference(path: Path) -> float:
    """Ours beside MuJoCo's own on the CPU, in float64, of moving joints: max|difference| / max|value|."""
    import mujoco

    model, theirs = da.load(path), plain_model(path)
    data = mujoco.MjData(theirs)
    data.qvel[6:] = np.random.default_rng(0).standard_normal(theirs.nv - 6)
    mujoco.mj_forward(theirs, data)
    orders = {"source": "mujoco", "target": "dalembert"}
    q, v = da.convert_state(model, data.qpos, data.qvel, **orders)
    # The base is at rest and upright, so that its accelerations change their order alone.
    _, wanted = da.convert_state(model, data.qpos, data.qacc, **orders)
    found = da.forward_dynamics(model, q, v, da.passive_forces(model, q, v))
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def our_rate(path: Path, clock: Any) -> float:
    """Steps a second of `da.step`, float32, in place of nothing: new arrays each time."""
    model = da.load(path)
    f = function(model, "step", dtype="float32")
    home = device(0)
    kernel = f._kernels.on_gpu(home)
    q = np.tile(model.neutral(), (BATCH, 1)).astype(np.float32)
    v = np.random.default_rng(0).standard_normal((BATCH, model.nv)).astype(np.float32)
    given = [DeviceArray.of(x) for x in (q, v, 0.0 * v, np.array([0.005], np.float32))]
    made = [DeviceArray.of(x) for x in (q, v)]
    inputs = [(x.address, x.row_bytes) for x in given[:3]] + [(given[3].address, 0)]
    outputs = [(x.address, x.row_bytes) for x in made]
    ms = clock.best(lambda: kernel.launch(0, inputs, outputs, BATCH), inner=20)
    return float(1e3 * BATCH / ms)


def plain_model(path: Path) -> Any:
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def warp_rate(path: Path) -> float:
    import mujoco_warp

    model = plain_model(path)
    there, data = mujoco_warp.put_model(model), mujoco_warp.make_data(model, nworld=BATCH)
    return rate(_captured_steps(there, data))


def warp_contact_rates(path: Path) -> list[dict[str, Any]]:
    """Print and return rates with contact, for each pose and choice of pairs."""
    found = []
    for pose in POSES:
        for pairs in ("floor", "all"):
            figures = warp_contact_rate(path, pose, pairs)
            found.append({"pose": pose, "pairs": pairs, **figures})
            print(
                f"MuJoCo Warp with contact, {pose}, {figures['count']} pairs ({pairs}): "
                f"{figures['rate'] / 1e6:.1f} M/s; nconmax {figures['nconmax']}, njmax {figures['njmax']}, "
                f"contacts a world {figures['contacts']:.1f}; worlds with overflow {figures['overflow']}, at "
                f"the limit of iterations {figures['iterations']}, of line searches {figures['searches']}, "
                f"not finite {figures['failed']}",
                flush=True,
            )
    return found


def contact_model(path: Path, pairs: str) -> Any:
    """The model of a file with all its pairs of shapes, or with those of the floor alone."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    if pairs == "floor":
        ground = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
        model.geom_contype[:], model.geom_conaffinity[:] = ~ground, ground
    return model


def warp_contact_rate(path: Path, pose: str, pairs: str) -> dict[str, Any]:
    """100 steps from the states of `gpu_steps.py`, with as much room for contacts as these steps need.

    Room that is not used costs time too, so that a first run with plenty finds out how much that is.
    """
    import mujoco
    import mujoco_warp
    import warp

    model = contact_model(path, pairs)
    start = mujoco.MjData(model)
    there = mujoco_warp.put_model(model)
    there.opt.warn_overflow = 0  # flags remain; thousands of lines would be printed in the measured time
    ours = da.load(path)
    q, v = da.convert_state(ours, *starts(ours, pose, BATCH), source="dalembert", target="mujoco")
    q, v = (warp.array(x, dtype=warp.float32) for x in (q, v))

    def begin(data: Any) -> None:
        mujoco_warp.reset_data(there, data)
        warp.copy(data.qpos, q)
        warp.copy(data.qvel, v)
        data.overflow.zero_()
        warp.synchronize()

    data = mujoco_warp.put_data(model, start, nworld=BATCH, nconmax=PLENTY, njmax=4 * PLENTY)
    begin(data)
    contacts, rows = 0, 0
    for _ in range(STEPS):
        mujoco_warp.step(there, data)
        contacts = max(contacts, int(data.ncollision.numpy()[0]), int(data.nacon.numpy()[0]))
        rows = max(rows, int(data.nefc.numpy().max()))
    nconmax, njmax = -(-contacts // BATCH) + 1, -(-rows // 8) * 8
    data = mujoco_warp.put_data(model, start, nworld=BATCH, nconmax=nconmax, njmax=njmax)
    steps = _captured_steps(there, data)
    found = rate(steps, lambda: begin(data))
    flags, kinds = data.overflow.numpy(), mujoco_warp.OverflowType
    limits = int(kinds.ITERATIONS), int(kinds.LS_ITERATIONS)
    return {
        "rate": found,
        "count": len(there.nxn_geom_pair_filtered.numpy()),
        "nconmax": nconmax,
        "njmax": njmax,
        "contacts": float(data.nacon.numpy()[0]) / BATCH,
        "overflow": int(np.count_nonzero(flags & ~sum(limits))),
        "iterations": int(np.count_nonzero(flags & limits[0])),
        "searches": int(np.count_nonzero(flags & limits[1])),
        "failed": int(np.count_nonzero(~np.isfinite(data.qpos.numpy()).all(axis=1))),
    }


def _captured_steps(there: Any, data: Any) -> Callable[[], None]:
    """All steps, each a launch of a captured graph, and a wait for the last."""
    import mujoco_warp
    import warp

    mujoco_warp.step(there, data)
    with warp.ScopedCapture() as capture:
        mujoco_warp.step(there, data)

    def steps() -> None:
        for _ in range(STEPS):
            warp.capture_launch(capture.graph)
        warp.synchronize()

    return steps


def mjx_rate(path: Path) -> float:
    import jax
    from mujoco import mjx

    model = plain_model(path)
    there = mjx.put_model(model)
    data = jax.vmap(lambda _: mjx.make_data(there))(np.arange(BATCH))
    advance = jax.jit(
        lambda data: jax.lax.scan(
            lambda d, _: (jax.vmap(mjx.step, in_axes=(None, 0))(there, d), None), data, None, length=STEPS
        )[0]
    )
    return rate(lambda: jax.block_until_ready(advance(data)))


def rate(steps: Callable[[], object], begin: Callable[[], object] = lambda: None) -> float:
    """Samples times steps a second, the best of three; `begin` goes back to the start, outside the time."""
    times = []
    for _ in range(4):
        begin()
        start = time.perf_counter()
        steps()
        times.append(time.perf_counter() - start)
    return BATCH * STEPS / min(times[1:])


def main() -> int:
    path = file_of("MuJoCo Warp")
    if path is None:
        print("MuJoCo Warp is not installed here", file=sys.stderr)
        return 1
    warp_contact_rates(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

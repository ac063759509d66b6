"""MuJoCo Warp and MJX on the humanoid of their own packages, and dalembert on the same file: steps a second.

Constraints are switched off on all sides, so that a step is smooth dynamics and integration; joints keep
their damping and stiffness. MuJoCo Warp's rate with the contacts of its file, self-collision among them, is
printed for `gpu_steps.py`. `gpu.py` calls this; a peer that is not installed is left out, and that is said.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da
from dalembert.cuda.device import device
from dalembert.cuda.device_array import DeviceArray
from dalembert.library import function

BATCH = 32_768
STEPS = 100
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
            figures[peer]["theirs with contact"] = touching = warp_contact_rate(path)
            print(f"{peer} with contact: {touching / 1e6:.1f} M/s")
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
    return _warp_rate(model, mujoco_warp.make_data(model, nworld=BATCH))


def warp_contact_rate(path: Path) -> float:
    """Let go upright, with all that the file has."""
    import mujoco
    import mujoco_warp

    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return _warp_rate(model, mujoco_warp.put_data(model, data, nworld=BATCH, nconmax=24, njmax=96))


def _warp_rate(model: Any, data: Any) -> float:
    import mujoco_warp
    import warp

    there = mujoco_warp.put_model(model)
    mujoco_warp.step(there, data)
    with warp.ScopedCapture() as capture:
        mujoco_warp.step(there, data)

    def steps() -> None:
        for _ in range(STEPS):
            warp.capture_launch(capture.graph)
        warp.synchronize()

    return rate(steps)


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


def rate(steps: Callable[[], object]) -> float:
    """Samples times steps a second, the best of three."""
    steps()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        steps()
        times.append(time.perf_counter() - start)
    return BATCH * STEPS / min(times)

"""Released robots and figures on the ground with their own geometry, beside MuJoCo on the same files.

Each model has the pairs and options that its file gives, with a plane where the file has none; MuJoCo's is
made the same problem (`contact_peers.py`). Every measurement of ours is made in a process of its own: the
first result from an empty kernel cache and again from the cache (loading the file included), then the cost of
a step of one sample and of a batch, both after random poses have settled. MuJoCo has its default solver,
Euler's integrator, one thread and the same time step. Columns: seconds to the first result, cold and cached;
µs a step of one sample and, a sample, of the batch, and their ratios to MuJoCo; the deepest overlap [mm] and
the largest gain of energy of the batch; samples that failed.

    python benchmarks/contact_models.py [NAMES …] [--laws rigid compliant] [--samples 256] [--limit 300]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import machine, table

Array = np.ndarray[Any, np.dtype[np.float64]]

SETTLING_TIME = 2.0
"""[s]"""

TIMED_STEPS = 100
"""Steps of one measurement of a batch; one sample takes ten times as many."""

RECORDED_STEPS = 20
"""Steps from one recorded overlap to the next, while poses settle."""

ROUNDS = 3
"""Measurements, of which the least counts."""

BATCH_BARS = {"rigid": 4.0, "compliant": 6.0}
"""The least ratio of MuJoCo's cost of a step in a batch to ours."""

COLD_BAR, CACHED_BAR = 10.0, 1.0
"""[s] to the first result."""

COLD_BARS = {"dog": 25.0}
"""[s] Models with more time to their first result from an empty cache."""

DIFFERENCES = {"missing": "that only ours has", "more": "that only MuJoCo has"}
"""Pairs of shapes that may touch in one of the engines only."""

POSE_TOLERANCE = 1e-9
"""[m, 1] Rounding error of the poses of bodies in both engines, at most."""


class Entry(NamedTuple):
    """A model file in an installed package; `floating`: its root gets six freedoms."""

    package: str
    path: str
    floating: bool = False

    def file(self) -> Path:
        [found] = [f for f in metadata.files(self.package) or () if str(f).endswith(self.path)]
        return Path(str(found.locate()))


GYMNASIUM = "gymnasium/envs/mujoco/assets/"
SUITE = "dm_control/suite/"
ROBOTS = "share/example-robot-data/robots/"
MODELS = {
    "half_cheetah": Entry("gymnasium", GYMNASIUM + "half_cheetah.xml"),
    "walker2d": Entry("gymnasium", GYMNASIUM + "walker2d.xml"),
    "ant": Entry("gymnasium", GYMNASIUM + "ant.xml"),
    "humanoid": Entry("gymnasium", GYMNASIUM + "humanoid.xml"),
    "cheetah": Entry("dm_control", SUITE + "cheetah.xml"),
    "stacker": Entry("dm_control", SUITE + "stacker.xml"),
    "manipulator": Entry("dm_control", SUITE + "manipulator.xml"),
    "humanoid_CMU": Entry("dm_control", SUITE + "humanoid_CMU.xml"),
    "quadruped": Entry("dm_control", SUITE + "quadruped.xml"),
    "dog": Entry("dm_control", SUITE + "dog.xml"),
    "a1": Entry("example-robot-data", ROBOTS + "a1_description/urdf/a1.urdf", True),
    "anymal": Entry("example-robot-data", ROBOTS + "anymal_b_simple_description/robots/anymal.urdf", True),
    "go2": Entry("example-robot-data", ROBOTS + "go2_description/urdf/go2.urdf", True),
    "solo12": Entry("example-robot-data", ROBOTS + "solo_description/robots/solo12.urdf", True),
    "g1": Entry("example-robot-data", ROBOTS + "g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
    "talos": Entry("example-robot-data", ROBOTS + "talos_data/robots/talos_reduced.urdf", True),
    "panda": Entry("example-robot-data", ROBOTS + "panda_description/urdf/panda.urdf"),
}


def load(name: str) -> Any:
    """The model on its own ground, or on a plane below it."""
    import dalembert as da

    entry = MODELS[name]
    model = da.load(entry.file(), root="floating" if entry.floating else None)
    grounded = any(isinstance(shape, da.shapes.Plane | da.shapes.HeightField) for shape in model.world_shapes)
    return model if grounded else model.with_ground()


def random_states(model: Any, samples: int, seed: int = 0) -> tuple[Array, Array]:
    """Poses within the joint limits, roots turned at random and as high as their figure reaches."""
    rng = np.random.default_rng(seed)
    q = np.stack([model.random_state(seed * samples + k)[0] for k in range(samples)])
    for joint in model.joints:
        limits = joint.body.limits
        lower, upper = (np.broadcast_to(x, joint.nq) for x in (limits.lower, limits.upper))
        if joint.kind == "free":
            q[:, joint.q_slice][:, :3] = rng.uniform(-0.1, 0.1, (samples, 3))
        elif joint.nq == 1 and np.isfinite([lower, upper]).all():
            middle, half = 0.5 * (lower + upper), 0.3 * (upper - lower)
            q[:, joint.q_slice] = middle + half * rng.uniform(-1.0, 1.0, (samples, 1))
        elif joint.kind == "prismatic":
            q[:, joint.q_slice] = 0.0
    for number, (place, carried) in enumerate(lifts(model)):
        lowest = reach(model, q[0], carried)
        q[:, place] += 0.1 * number + lowest
    return q, np.zeros((samples, model.nv))


def lifts(model: Any) -> list[tuple[int, list[str]]]:
    """The coordinate that lifts each figure, and the bodies that it carries."""
    found: list[tuple[int, list[str]]] = []
    for joint in model.joints:
        body, axis = joint.body, getattr(joint.body.joint, "axis", None)
        first = all(model.bodies[i].inertia.mass == 0.0 for i in ancestors(model, body.index))
        if joint.kind == "free":
            place = joint.q_slice.start + 2
        elif joint.kind == "prismatic" and first and axis is not None and abs(axis[2]) > 0.9:
            place = joint.q_slice.start
        else:
            continue
        inside = [
            other for other in model.bodies if body.index in (*ancestors(model, other.index), other.index)
        ]
        found.append((place, [other.name for other in inside]))
    return found


def ancestors(model: Any, body: int) -> list[int]:
    found = []
    while (body := model.bodies[body].parent) >= 0:
        found.append(body)
    return found


def reach(model: Any, q: Array, bodies: list[str]) -> float:
    """The farthest that a shape of the figure is from its root [m]."""
    import dalembert as da

    poses = da.forward_kinematics(model, q)
    root, farthest = poses[bodies[0]].translation, 0.0
    for name in bodies:
        for shape in model.bodies[name].shapes:
            if shape.collision:
                centre = np.linalg.norm(poses[name].translation - root) + np.linalg.norm([*shape.placement.p])
                farthest = max(farthest, float(centre) + size(shape))
    return farthest


def size(shape: Any) -> float:
    """The radius of a ball about the frame of a shape that holds it [m]."""
    from dalembert.model.shapes.convex_hull import hull_of

    if hasattr(shape, "path"):
        shape = hull_of(shape)
    if hasattr(shape, "vertices"):
        return float(np.linalg.norm(shape.vertices, axis=1).max())
    if hasattr(shape, "size"):
        return 0.5 * float(np.linalg.norm(shape.size))
    if hasattr(shape, "radii"):
        return float(max(shape.radii))
    return float(shape.radius + 0.5 * getattr(shape, "length", 0.0))


def step_of(model: Any) -> float:
    return 0.002 if len(model.bodies) > 1 else 0.005


def measure_first(name: str, law: str) -> dict[str, float]:
    """Seconds from a running interpreter to the first result."""
    start = time.perf_counter()
    import dalembert as da

    model = load(name)
    q, v = model.neutral(), np.zeros(model.nv)
    da.rollout(model, q, v, steps=1, dt=step_of(model), contact=law)
    return {"first": time.perf_counter() - start}


def measure_steps(name: str, law: str, samples: int) -> dict[str, float]:
    """µs a step of one sample and of a batch, and how the batch moved."""
    import dalembert as da

    da.set_num_threads(1)
    model = load(name)
    q, v = random_states(model, samples)
    dt = step_of(model)

    def run(q: Array, v: Array, steps: int, **options: Any) -> Any:
        return da.rollout(model, q, v, steps=steps, dt=dt, contact=law, **options)

    motion = run(q, v, round(SETTLING_TIME / dt), every=RECORDED_STEPS, record_contacts=True)
    failed, fine = int(motion.failed.sum()), np.flatnonzero(~motion.failed)
    q, v = (x[fine[np.arange(samples) % len(fine)], -1] for x in (motion.q, motion.v))
    deepest = -float(np.nanmin(motion.contacts.gap)) if motion.contacts is not None else 0.0
    batch = least(lambda: run(q, v, TIMED_STEPS, every=TIMED_STEPS), TIMED_STEPS * samples)
    one = least(lambda: run(q[0], v[0], 10 * TIMED_STEPS, every=TIMED_STEPS), 10 * TIMED_STEPS)
    gain = float(np.nanmax(motion.energy_gain)) if motion.energy_gain is not None else 0.0
    return {"one": one, "batch": batch, "deepest": 1e3 * deepest, "gain": gain, "failed": failed}


def measure_peer(name: str, samples: int) -> dict[str, Any]:
    """µs a step of MuJoCo, of one sample and of a batch, from its own settled states, and how they lie."""
    import mujoco
    from contact_peers import mujoco_model, pose_error
    from mujoco import rollout

    model = load(name)
    file = MODELS[name].file()
    theirs, pairs = mujoco_model(file, model)
    theirs.opt.timestep, theirs.opt.integrator = step_of(model), mujoco.mjtIntegrator.mjINT_EULER
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    q, v = random_states(model, samples)
    states = np.zeros((samples, mujoco.mj_stateSize(theirs, kind)))
    q_mj, v_mj = state_of_mujoco(mujoco, theirs, model, q, v)
    states[:, 1 : 1 + theirs.nq], states[:, 1 + theirs.nq : 1 + theirs.nq + theirs.nv] = q_mj, v_mj
    data, steps = mujoco.MjData(theirs), round(SETTLING_TIME / theirs.opt.timestep)
    with rollout.Rollout(nthread=0) as pool:
        settled = pool.rollout(theirs, data, states, nstep=steps)[0][:, -1]
        call = lambda: pool.rollout(theirs, data, settled, nstep=TIMED_STEPS)
        batch = least(call, TIMED_STEPS * samples)
        one = least(lambda: pool.rollout(theirs, data, settled[:1], nstep=10 * TIMED_STEPS), 10 * TIMED_STEPS)
    # In MJCF files a body's joints may lie off its origin, where ours has the frame of the body.
    poses = pose_error(theirs, model, q_mj[0], q[0]) if file.suffix == ".urdf" else 0.0
    rest = rest_of_mujoco(mujoco, theirs, settled)
    return {"one": one, "batch": batch, "poses": poses, **pairs, **rest}


def rest_of_mujoco(mujoco: Any, theirs: Any, settled: Array) -> dict[str, float]:
    """The mean number of contacts and height of the first body [m] of settled states, and how many samples
    failed: MuJoCo resets them, and their time, to the initial state."""
    data, contacts, heights = mujoco.MjData(theirs), [], []
    for state in settled:
        mujoco.mj_setState(theirs, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_forward(theirs, data)
        contacts.append(data.ncon)
        heights.append(data.xpos[1, 2])
    failed = int((settled[:, 0] < SETTLING_TIME - theirs.opt.timestep).sum())
    return {"contacts": float(np.mean(contacts)), "height": float(np.mean(heights)), "failed": failed}


def state_of_mujoco(mujoco: Any, theirs: Any, model: Any, q: Array, v: Array) -> tuple[Array, Array]:
    """qpos and qvel of MuJoCo joint by joint, by names: joints that follow others by an equality, which ours
    has no coordinates for, are where that holds; joints that ours has not keep their initial positions."""
    import dalembert as da

    q_own, v_own = da.convert_state(model, q, v, source="dalembert", target="mujoco")
    qpos, qvel = np.tile(theirs.qpos0, (len(q), 1)), np.zeros((len(q), theirs.nv))
    for joint in model.joints:
        j = mujoco.mj_name2id(theirs, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
        if j >= 0:
            at, rate = theirs.jnt_qposadr[j], theirs.jnt_dofadr[j]
            qpos[:, at : at + joint.body.nq] = np.transpose(joint.body.own_q(q_own.T))
            qvel[:, rate : rate + joint.body.nv] = np.transpose(joint.body.own_v(v_own.T))
    return qpos, qvel


def least(call: Any, steps: int) -> float:
    """µs a step, the least of several rounds."""
    call()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / steps


def in_process(cache: Path, limit: float, *arguments: str) -> dict[str, Any]:
    """The result of a measurement in a process of its own, or its error."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # pip writes the bytecode of what it installs
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--measure", *arguments],
            capture_output=True,
            text=True,
            timeout=limit,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"over {limit:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"error": lines[-1][:90]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def row_of(
    name: str, law: str, samples: int, limit: float, peer: dict[str, Any], missed: list[str]
) -> list[str]:
    """One row of the table; the bars that it misses are added to `missed`."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        cold = in_process(cache, limit, "first", name, law)
        if "error" in cold:
            missed.append(f"{name}, {law}: {cold['error']}")
            return [name, law, cold["error"]]
        cached = in_process(cache, limit, "first", name, law)
        steps = in_process(cache, limit, "steps", name, law, str(samples))
    row = [name, law, f"{cold['first']:.1f}", f"{cached.get('first', np.nan):.2f}"]
    if cold["first"] > COLD_BARS.get(name, COLD_BAR) or cached.get("first", np.inf) > CACHED_BAR:
        missed.append(f"{name}, {law}: first result")
    if "error" in steps:
        missed.append(f"{name}, {law}: {steps['error']}")
        return [*row, steps["error"]]
    row += [f"{steps['one']:.1f}", f"{steps['batch']:.2f}"]
    if "error" in peer:
        row += ["–", "–"]
    else:
        one, batch = (peer[key] / steps[key] for key in ("one", "batch"))
        row += [f"{one:.2f}x", f"{batch:.2f}x"]
        if one < 1.0 or batch < BATCH_BARS[law]:
            missed.append(f"{name}, {law}: {one:.2f}x, {batch:.2f}x MuJoCo")
    return [*row, f"{steps['deepest']:.2f}", f"{steps['gain']:.3f}", f"{steps['failed']:.0f}"]


def peer_text(peer: dict[str, Any]) -> str:
    """MuJoCo's costs, what its states are like, and how its problem differs from ours."""
    if "error" in peer:
        return str(peer["error"])
    pairs = f"{peer['pairs']} pairs" + "".join(
        f", {peer[key]} pairs {text}" for key, text in DIFFERENCES.items() if peer[key]
    )
    if peer["poses"] > POSE_TOLERANCE:
        pairs += f", poses of bodies differ by {peer['poses']:.1e}"
    lies = f"{peer['contacts']:.1f} contacts, root at {peer['height']:.2f} m, {peer['failed']} failed"
    return f"{peer['one']:.1f}, {peer['batch']:.2f}; {pairs}; {lies}"


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--laws", nargs="+", default=["rigid", "compliant"], choices=list(BATCH_BARS))
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one measurement")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in MODELS]:
        parser.error(f"no {unknown[0]!r} here; choose from {', '.join(MODELS)}")
    print(f"Models with their own geometry on {machine()}\n")
    rows, missed = [], list[str]()
    for name in chosen.names:
        peer = in_process(Path(tempfile.gettempdir()), chosen.limit, "peer", name, str(chosen.samples))
        print(f"{name}: MuJoCo {peer_text(peer)}", flush=True)
        for law in chosen.laws:
            rows.append(row_of(name, law, chosen.samples, chosen.limit, peer, missed))
            print("  " + "  ".join(rows[-1]), flush=True)
    heads = [
        "model",
        "law",
        "first [s]",
        "cached",
        "one [µs]",
        "batch",
        "one",
        "batch",
        "deepest",
        "gain [J]",
        "failed",
    ]
    width = len(heads)
    print("\n" + table(heads, [row + [""] * (width - len(row)) for row in rows]), "\n")
    print("every bar is met" if not missed else "not met: " + "; ".join(missed))
    return bool(missed)


def measurement(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    kind, name, *rest = arguments
    if kind == "first":
        found = measure_first(name, *rest)
    elif kind == "steps":
        found = measure_steps(name, rest[0], int(rest[1]))
    else:
        found = measure_peer(name, int(rest[0]))
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measurement(sys.argv[2:])
    else:
        raise SystemExit(main())

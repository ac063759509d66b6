"""Scenes of many loose bodies, beside MuJoCo on the same files: stacks, a house of cards, piles.

Each scene is one MJCF file that both engines read, with all pairs of bodies. Every measurement of ours is
made in a process of its own: the first result from an empty kernel cache (loading the file included) and its
peak memory, the first result again from the cache, and a run of the scene's own time, of which the last steps
are timed, one sample on one thread. MuJoCo has its default solver, Euler's integrator and the same time step,
and is timed in the same way after its own run. Columns: seconds to the first result, cold and cached; peak
memory [MB]; µs a step, MuJoCo's, and their ratio; of the end of the run the deepest overlap and how far the
highest body sank or, in a pile, the speed of the fastest [mm, m/s]; energy at the end and its greatest rise
in the run, as fractions of the work of lifting all bodies from the ground to where they began, and what was
reported as gained.

    python benchmarks/many_bodies.py [SCENES …] [--law rigid] [--limit 600]
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
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import machine, table

Array = np.ndarray[Any, np.dtype[np.float64]]

COLD_BAR, CACHED_BAR = 10.0, 1.0
"""[s] to the first result."""

MEMORY_BAR = 1000.0
"""[MB]"""

OVERLAP_BAR = 1.0
"""[mm]"""

RISE_BAR = 1e-3
"""How far the energy may rise above its least value until then, as a fraction of that at the start: compliant
surfaces give back what they store."""

FRAMES = 40
"""Frames of a run in which the energy is looked at."""

STANDING_BAR = 2.0
"""[mm] that the highest body of a scene that stands may sink or rise."""

TIMED_STEPS = 100
"""Steps of one measurement."""

ROUNDS = 3
"""Measurements, of which the least counts."""

DENSITY = 1000.0
"""[kg/m^3]"""


class Body(NamedTuple):
    """A loose body: MuJoCo's name of its shape, half its extents [m], where it begins, and its quaternion."""

    kind: str
    size: tuple[float, ...]
    position: tuple[float, ...]
    quaternion: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)


class Scene(NamedTuple):
    """Bodies on a plane; the step [s] and how long they move [s]; whether they should stay where they are."""

    bodies: list[Body]
    dt: float
    seconds: float
    stands: bool = False
    friction: float = 0.5


def stack(count: int) -> Scene:
    """Boxes of 10 cm, one on another."""
    boxes = [Body("box", (0.05, 0.05, 0.05), (0.0, 0.0, 0.05 + 0.1 * k)) for k in range(count)]
    return Scene(boxes, 0.005, 2.0, stands=True)


def card_house(storeys: int) -> Scene:
    """A house of cards: pairs that lean on each other, and a level card on the pairs of each storey."""
    half, thickness, lean, pitch = 0.1, 0.005, np.radians(20.0), 0.18
    cards = []
    # The lower inner edge of a leaning card is on the floor; the upper inner edges of a pair touch.
    rise = half * np.cos(lean) + thickness * np.sin(lean)
    aside = half * np.sin(lean) + thickness * np.cos(lean)
    for k in range(storeys):
        pairs, floor = storeys - k, k * 2.0 * (rise + thickness)
        for j in range(pairs):
            middle = pitch * (j - 0.5 * (pairs - 1))
            for side in (-1.0, 1.0):
                turn = (np.cos(0.5 * lean), 0.0, -side * np.sin(0.5 * lean), 0.0)
                cards.append(
                    Body("box", (thickness, 0.06, half), (middle + side * aside, 0.0, floor + rise), turn)
                )
        if pairs > 1:
            level = (0.5 * pitch * (pairs - 1) + 2.0 * aside * np.tan(lean), 0.06, thickness)
            cards.append(Body("box", level, (0.0, 0.0, floor + 2.0 * rise + thickness)))
    return Scene(cards, 0.005, 2.0, stands=True, friction=0.8)


def grid(count: int, pitch: float, spread: float) -> Array:
    """Places of bodies in a block of a square base, each moved a little at random."""
    side = int(np.ceil(count ** (1.0 / 3.0)))
    k = np.arange(count)
    places = np.stack([k % side, k // side % side, k // side**2], axis=1) - [0.5 * side, 0.5 * side, 0.0]
    return pitch * (places + np.random.default_rng(0).uniform(-spread, spread, (count, 3)))


def balls(count: int) -> Scene:
    """Balls of 10 cm, dropped in a pile: SimBenchmark's scene with 666."""
    places = grid(count, 0.11, 0.04) + [0.0, 0.0, 0.1]
    return Scene([Body("sphere", (0.05,), tuple(x)) for x in places.tolist()], 0.005, 2.0)


def mixed(count: int) -> Scene:
    """Balls, boxes, capsules, cylinders and ellipsoids in turn, turned at random."""
    kinds = [
        ("sphere", (0.05,)),
        ("box", (0.06, 0.04, 0.03)),
        ("capsule", (0.03, 0.04)),
        ("cylinder", (0.04, 0.05)),
        ("ellipsoid", (0.06, 0.05, 0.03)),
    ]
    turns = np.random.default_rng(1).normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    places = (grid(count, 0.17, 0.04) + [0.0, 0.0, 0.15]).tolist()
    bodies = [Body(*kinds[k % len(kinds)], tuple(places[k]), tuple(turns[k])) for k in range(count)]
    return Scene(bodies, 0.005, 2.0)


SCENES: dict[str, Callable[[], Scene]] = {
    "stack of 5 boxes": lambda: stack(5),
    "stack of 20 boxes": lambda: stack(20),
    "card house": lambda: card_house(3),
    "64 balls": lambda: balls(64),
    "100 mixed shapes": lambda: mixed(100),
    "666 balls": lambda: balls(666),
}


def written(scene: Scene) -> str:
    """The scene as an MJCF file; explicit masses, so that both engines have the same."""

    def numbers(values: tuple[float, ...]) -> str:
        return " ".join(f"{x:.17g}" for x in values)

    bodies = "\n".join(
        f'<body pos="{numbers(body.position)}" quat="{numbers(body.quaternion)}"><freejoint/>'
        f'<geom type="{body.kind}" size="{numbers(body.size)}"/></body>'
        for body in scene.bodies
    )
    return f"""<mujoco>
<option timestep="{scene.dt}" integrator="Euler"/><size memory="2G"/>
<default><geom density="{DENSITY}" friction="{scene.friction} 0 0" condim="3"/></default>
<worldbody><geom type="plane" size="0 0 1"/>
{bodies}
</worldbody></mujoco>"""


def measure_first(file: str, law: str) -> dict[str, float]:
    """Seconds from a running interpreter to the first result, and peak memory."""
    start = time.perf_counter()
    import dalembert as da

    model = da.load(file)
    steps = json.loads(Path(file).with_suffix(".json").read_text())
    da.rollout(model, model.neutral(), np.zeros(model.nv), steps=1, dt=steps["dt"], contact=law)
    return {"first": time.perf_counter() - start, "memory": peak_memory()}


def peak_memory() -> float:
    """The most memory that this process has had [MB]; `ru_maxrss` would count its parent's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024.0


def start_of(model: Any, given: dict[str, Any]) -> Array:
    """The configuration in which every body is where the file has it."""
    q = np.array(model.neutral())
    for joint, position, quaternion in zip(model.joints, given["positions"], given["turns"], strict=True):
        own = q[joint.q_slice]
        own[:3] = position
        own[3:] = [*quaternion[1:], quaternion[0]]
    return q


def measure_steps(file: str, law: str) -> dict[str, Any]:
    """µs a step at the end of the scene's time, and how bodies moved until then."""
    import dalembert as da

    da.set_num_threads(1)
    model = da.load(file)
    given = json.loads(Path(file).with_suffix(".json").read_text())
    dt, q = given["dt"], start_of(model, given)
    v = np.zeros(model.nv)
    steps = round(given["seconds"] / dt)
    every = steps // FRAMES
    motion = da.rollout(model, q, v, steps=steps, dt=dt, contact=law, every=every, record_contacts=True)
    q_end, v_end = motion.q[-1], motion.v[-1]
    energy = motion.energy() / motion.energy()[0]
    speeds = [np.linalg.norm(v_end[joint.v_slice][3:]) for joint in model.joints]
    top = max(model.joints, key=lambda joint: q[joint.q_slice][2]).q_slice.start + 2
    run = lambda: da.rollout(model, q_end, v_end, steps=TIMED_STEPS, dt=dt, contact=law, every=TIMED_STEPS)
    gaps = motion.contacts.gap
    return {
        "one": least(run, TIMED_STEPS),
        "deepest": -1e3 * float(np.nanmin(gaps[-1])),
        "sank": 1e3 * float(abs(q[top] - q_end[top])),
        "fastest": float(max(speeds)),
        "energy": float(energy[-1]),
        "rise": float((energy - np.minimum.accumulate(energy)).max()),
        "gain": float(np.max(motion.energy_gain)) if motion.energy_gain is not None else 0.0,
        "finite": bool(np.isfinite(q_end).all()),
    }


def measure_peer(file: str) -> dict[str, float]:
    """µs a step of MuJoCo at the end of the scene's time."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(file)
    given = json.loads(Path(file).with_suffix(".json").read_text())
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, round(given["seconds"] / given["dt"]))
    deepest = min((contact.dist for contact in data.contact), default=0.0)
    run = lambda: mujoco.mj_step(model, data, TIMED_STEPS)
    return {"one": least(run, TIMED_STEPS), "deepest": -1e3 * float(deepest)}


def least(call: Callable[[], Any], steps: int) -> float:
    """µs a step, the least of several rounds."""
    call()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / steps


def in_process(folder: Path, limit: float, *arguments: str) -> dict[str, Any]:
    """The result of a measurement in a process of its own, or its error."""
    environment = {**os.environ, "DALEMBERT_CACHE_DIR": str(folder / "cache")}
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


def row_of(name: str, law: str, limit: float, missed: list[str]) -> list[str]:
    """One row of the table; the bars that it misses are added to `missed`."""
    scene = SCENES[name]()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scene.xml"
        file.write_text(written(scene))
        given = {"dt": scene.dt, "seconds": scene.seconds}
        given["positions"] = [body.position for body in scene.bodies]  # type: ignore[assignment]
        given["turns"] = [body.quaternion for body in scene.bodies]  # type: ignore[assignment]
        file.with_suffix(".json").write_text(json.dumps(given))
        measure = lambda *arguments: in_process(Path(folder), limit, *arguments)
        peer = measure("peer", str(file))
        cold = measure("first", str(file), law)
        if "error" in cold:
            missed.append(f"{name}: {cold['error']}")
            return [name, cold["error"]]
        cached, steps = measure("first", str(file), law), measure("steps", str(file), law)
    row = [name, f"{cold['first']:.1f}", f"{cached.get('first', np.nan):.2f}", f"{cold['memory']:.0f}"]
    if cold["first"] > COLD_BAR or cached.get("first", np.inf) > CACHED_BAR or cold["memory"] > MEMORY_BAR:
        missed.append(f"{name}: first result")
    if "error" in steps or not steps["finite"]:
        missed.append(f"{name}: {steps.get('error', 'not finite')}")
        return [*row, steps.get("error", "not finite")]
    row += [f"{steps['one']:.0f}", f"{peer['one']:.0f}", f"{peer['one'] / steps['one']:.2f}x"]
    row += [
        f"{steps['deepest']:.3f}",
        f"{steps['sank']:.3f} mm" if scene.stands else f"{steps['fastest']:.2f} m/s",
    ]
    if steps["deepest"] > OVERLAP_BAR or (scene.stands and steps["sank"] > STANDING_BAR):
        missed.append(f"{name}: rest")
    if steps["rise"] > RISE_BAR or steps["gain"] > 0.0:
        missed.append(f"{name}: energy rises")
    if steps["one"] > peer["one"]:
        missed.append(f"{name}: {peer['one'] / steps['one']:.2f}x MuJoCo")
    return [*row, f"{steps['energy']:.4f}", f"{steps['rise']:.1e}", f"{steps['gain']:.3g}"]


def main() -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(SCENES), metavar="SCENE", help=", ".join(SCENES))
    parser.add_argument("--law", default="rigid", choices=["rigid", "compliant"])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one measurement")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.names if name not in SCENES]:
        parser.error(f"no {unknown[0]!r} here; choose from {', '.join(SCENES)}")
    print(f"Many bodies, {chosen.law} contact, on {machine()}\n")
    rows, missed = [], list[str]()
    for name in chosen.names:
        rows.append(row_of(name, chosen.law, chosen.limit, missed))
        print("  ".join(rows[-1]), flush=True)
    heads = [
        "scene",
        "first [s]",
        "cached",
        "memory [MB]",
        "step [µs]",
        "MuJoCo",
        "",
        "deepest [mm]",
        "sank, fastest",
        "energy",
        "rise",
        "gain [J]",
    ]
    print("\n" + table(heads, [row + [""] * (len(heads) - len(row)) for row in rows]), "\n")
    print("every bar is met" if not missed else "not met: " + "; ".join(missed))
    return bool(missed)


def measurement(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    kind, *rest = arguments
    found = {"first": measure_first, "steps": measure_steps, "peer": measure_peer}[kind](*rest)
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measurement(sys.argv[2:])
    else:
        raise SystemExit(main())

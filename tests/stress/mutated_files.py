"""Mutated files of every format: each is loaded and used, or refused by an error of the library, and soon.

A trial takes a sample, mutates it, loads it and uses what it holds. Trials run in batches in processes of
their own, so that a crash, a hang or memory without bound is caught and its trial named; the same number is
the same trial.
"""

from __future__ import annotations

import io
import json
import math
import multiprocessing
import random
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.engines.file_table import MJCF_PACKAGES, URDF_PACKAGES, files_of
from tests.formats.collada_files import collada_text
from tests.formats.test_deepmimic import rows
from tests.motion.figures import MIXED_ORDERS, acclaim_rows, acclaim_texts, bvh_text, smooth_rows
from tests.stress.mutations import MUTATIONS, mutated

import dalembert as da
from dalembert.cli.scenario import _read_json_state, _read_stored_state
from dalembert.errors import DalembertError
from dalembert.formats.meshes import read_mesh
from dalembert.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Solid,
    Sphere,
)

BATCH = 100
MAX_SECONDS = 10.0
"""Time that one file may take."""
MAX_BYTES = 2**30
"""Memory that one file may take beyond what the process has before it."""
LARGEST_SAMPLE = 20_000
LARGEST_USED = 60
"""Bodies of models whose dynamics are computed: plain Python takes a millisecond for each."""
ENDINGS = {
    "urdf": ".urdf", "mjcf": ".xml", "json model": ".json", "npz trajectory": ".npz", "bvh": ".bvh",
    "asf": ".asf", "amc": ".amc", "deepmimic": ".json", "stl text": ".stl", "stl binary": ".stl",
    "obj": ".obj", "collada": ".dae", "pose json": ".json", "pose npz": ".npz",
}  # fmt: skip


class Late(BaseException):
    """A trial took too long; no `except Exception` on the way holds it up."""


@dataclass(frozen=True)
class Sample:
    """A valid file: its kind, name, content, and the folders that its resources may lie in."""

    kind: str
    name: str
    content: bytes
    roots: tuple[Path, ...] = ()


def corpus() -> list[Sample]:
    """Samples of every kind: made here, and small files of the packages that the tests compare."""
    found = [*_made()]
    for kind, packages, ending in (("urdf", URDF_PACKAGES, ".urdf"), ("mjcf", MJCF_PACKAGES, ".xml")):
        for file in files_of(packages, ending):
            content = file.path.read_bytes()
            if len(content) < LARGEST_SAMPLE and b"<include" not in content:
                found.append(Sample(kind, file.name, content, (file.path.parent, file.root)))
    found = [sample for sample in found if _is_valid(sample)]
    assert {sample.kind for sample in found} == set(MUTATIONS)
    return found


def _is_valid(sample: Sample) -> bool:
    """Return whether a sample loads as it is; mutations of a file that does not load teach little."""
    if sample.kind not in ("urdf", "mjcf"):
        return True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sample{ENDINGS[sample.kind]}"
        path.write_bytes(sample.content)
        try:
            da.load(path, roots=sample.roots)
        except DalembertError:
            return False
    return True


def _made() -> list[Sample]:
    asf, amc = acclaim_texts(acclaim_rows())
    tetrahedron = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    points = np.array(tetrahedron[0], float)[np.array(tetrahedron[1])]
    text = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in face)
        + "endloop\nendfacet\n"
        for face in points
    )
    record = np.zeros(4, [("normal", "<f4", 3), ("vertices", "<f4", (3, 3)), ("attribute", "<u2")])
    record["vertices"] = points
    obj = "".join(f"v {x} {y} {z}\n" for x, y, z in tetrahedron[0])
    obj += "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in tetrahedron[1])
    pose = io.BytesIO()
    np.savez(pose, q=np.zeros((3, 2)), v=np.zeros((3, 2)))
    return [
        *_models(),
        *_trajectories(),
        Sample("bvh", "figure.bvh", bvh_text(MIXED_ORDERS, smooth_rows(28)).encode()),
        Sample("asf", "own.asf", asf.encode()),
        Sample("amc", "own.amc", amc.encode()),
        Sample("deepmimic", "clip.json", json.dumps({"Loop": "wrap", "Frames": rows(4)}).encode()),
        Sample("stl text", "a.stl", f"solid a\n{text}endsolid a\n".encode()),
        Sample("stl binary", "a.stl", b"\0" * 80 + (4).to_bytes(4, "little") + record.tobytes()),
        Sample("obj", "a.obj", obj.encode()),
        Sample("collada", "a.dae", collada_text().encode()),
        Sample("pose json", "pose.json", b'{"q": [0.1, 0.2], "v": [0, 0]}'),
        Sample("pose json", "names.json", json.dumps(dict.fromkeys(_arm().joints.names, 0.1)).encode()),
        Sample("pose npz", "pose.npz", pose.getvalue()),
    ]


def _arm() -> da.Model:
    return da.models.two_link_arm()


def _shaped() -> da.Model:
    """Return a model with every shape, a frame, limits and contact pairs."""
    builder = da.ModelBuilder(gravity=(0.0, 0.0, -9.81), name="shaped")
    inertia = da.RigidInertia(1.0, (0.0, 0.0, 0.1), ((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)))
    builder.add_body("a", "world", da.Free(), inertia=inertia)
    builder.add_body("b", "a", da.Revolute((0, 0, 1)), inertia=inertia, damping=0.1, armature=0.01)
    builder.add_body("c", "b", da.Spherical(), inertia=inertia)
    builder.add_frame("tip", "c")
    shapes = (
        Box((1, 2, 3)), Sphere(0.1), Capsule(0.1, 1.0), Cylinder(0.1, 1.0), Ellipsoid((0.1, 0.2, 0.3)),
        ConvexMesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), Mesh("meshes/a.stl"),
    )  # fmt: skip
    for k, shape in enumerate(shapes):
        builder.add_shape("abc"[k % 3], shape)
    builder.add_shape("world", Plane())
    builder.add_shape("world", HeightField([[0.0, 0.1], [0.2, 0.0]], (1.0, 1.0)))
    builder.exclude_contact("a", "b")
    return builder.build()


def _models() -> list[Sample]:
    found = []
    many = [
        da.models.two_link_arm(),
        da.models.cart_pole(),
        da.models.four_bar(),
        da.models.arm6(),
        _shaped(),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for model in many:
            for kind in ("urdf", "mjcf", "json model"):
                file = Path(folder) / f"model{ENDINGS[kind]}"
                try:
                    da.save(model, file, accept_losses=True)
                except DalembertError:
                    continue
                found.append(Sample(kind, f"{model.name}{ENDINGS[kind]}", file.read_bytes()))
    return found


def _trajectories() -> list[Sample]:
    model = _arm()
    time, q = np.linspace(0.0, 0.3, 4), np.zeros((4, 2))
    single = da.Trajectory(model, time, q, q, q[1:], observed={"energy": time})
    from dalembert.simulation.trajectory import ContactRecord

    contacts = ContactRecord(
        (("a", "b"),), np.zeros((2, 3, 1, 3)), np.zeros((2, 3, 1, 3)), np.zeros((2, 3, 1))
    )
    many = da.Trajectory(
        model,
        time,
        np.zeros((2, 4, 2)),
        np.zeros((2, 4, 2)),
        np.zeros((2, 3, 2)),
        contacts=contacts,
        parameters={f"{model.bodies[0].name}.mass": np.ones(2)},
        failed_at=np.array([-1, 2]),
        cause=np.array(["", "late"]),
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, trajectory in (("single.npz", single), ("many.npz", many)):
            trajectory.save(Path(folder) / name)
            found.append(Sample("npz trajectory", name, (Path(folder) / name).read_bytes()))
    return found


def batch(samples: Sequence[Sample], first: int) -> dict[int, str]:
    """Return the outcomes of some trials in a process of their own; if it dies, that is its last trial's."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_trials, args=(samples, first, theirs))
    process.start()
    theirs.close()
    outcomes: dict[int, str] = {}
    last = first
    try:
        while ours.poll(3.0 * MAX_SECONDS):
            last, outcome = ours.recv()
            outcomes[last] = outcome
        process.kill()  # it hangs where no signal handler of Python runs
    except EOFError:
        pass
    process.join()
    if process.exitcode:
        kind = outcomes.get(last, ": ?").split(":")[1].strip()
        outcomes[last] = f"crash: {kind}: exit code {process.exitcode}"
    return outcomes


def _trials(samples: Sequence[Sample], first: int, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for trial in range(first, first + BATCH):
        pipe.send((trial, f"died: {_kind(trial)}"))
        pipe.send((trial, attempt(samples, trial)))
    pipe.close()


def chosen(samples: Sequence[Sample], trial: int) -> tuple[Sample, bytes, random.Random]:
    """Return the sample of a trial, its mutated content, and the generator for the rest of the trial."""
    rng = random.Random(trial)
    kind = _kind(trial)
    sample = rng.choice([sample for sample in samples if sample.kind == kind])
    return sample, mutated(kind, sample.content, rng), rng


def _kind(trial: int) -> str:
    return list(MUTATIONS)[trial % len(MUTATIONS)]


def attempt(samples: Sequence[Sample], trial: int, *, explain: bool = False) -> str:
    """Mutate a file, load it and use it; return "loaded: kind", "refused: kind", or what else happened."""
    sample, content, rng = chosen(samples, trial)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    outcome = "loaded"
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"mutated{ENDINGS[sample.kind]}"
            path.write_bytes(content)
            USES[sample.kind](path, sample, rng)
    except DalembertError as error:
        outcome = "refused"
        if explain:
            print(type(error).__name__, error)
        if "as a defect of dalembert" in str(error):
            outcome = f"unforeseen: {str(error)[:300]}"
    except Exception as error:
        if explain:
            traceback.print_exc()
        outcome = f"escaped: {type(error).__name__}: {str(error)[:200]}"
    except Late:
        outcome = f"late: more than {MAX_SECONDS:g} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    if grown > MAX_BYTES:
        outcome = f"large: {grown} bytes of memory"
    name, _, rest = outcome.partition(":")
    return f"{name}: {sample.kind}" + (f": {sample.name}:{rest}" if rest else "")


def _late(number: int, frame: Any) -> None:
    raise Late


def _use_model(path: Path, sample: Sample, rng: random.Random) -> None:
    options: dict[str, Any] = {"roots": sample.roots}
    if sample.kind != "json model":
        options |= {"root": rng.choice([None, "floating"]), "inertia": rng.choice(["as_given", "repair"])}
    use(da.load(path, **options), rng)


def use(model: da.Model, rng: random.Random) -> None:
    """Ask a model what every program asks of it; errors have to be the library's."""
    assert model.summary()
    assert isinstance(model.report, tuple)
    repr(model)
    assert len(model.digest) == 64
    q, v = model.neutral(), [0.1] * model.nv
    if len(model.bodies) <= LARGEST_USED:
        da.algorithms.forward_kinematics(model, list(map(float, q)))
        if not (model.loops or model.constraints):
            for function in (da.algorithms.inverse_dynamics, da.algorithms.forward_dynamics):
                _computed(function, model, q, v)
    if rng.random() < 0.2:
        model.random_state(0)
        assert da.Model.from_json(model.to_json()) == model
    if rng.random() < 0.1:
        _export(model, rng.choice((".urdf", ".xml")))


def _export(model: da.Model, ending: str) -> None:
    for body in model.bodies:
        for shape in body.shapes:
            if isinstance(shape, Solid):
                shape.inertia(density=1000.0)
    with tempfile.TemporaryDirectory() as folder:
        da.save(model, Path(folder) / f"copy{ending}", accept_losses=True)


def _computed(function: Callable[..., Any], model: da.Model, q: Any, v: list[float]) -> None:
    try:
        function(model, list(map(float, q)), v, v)
    except (ZeroDivisionError, OverflowError):
        # Plain Python divides by zero with an exception where compiled code gives an infinity.
        assert any(not math.isfinite(x) or not 1e-150 < abs(x) < 1e150 for x in _numbers(model))


def _numbers(model: da.Model) -> list[float]:
    found = [float(x) for body in model.bodies for x in body.inertia.leaves()]
    for body in model.bodies:
        transform = body.placement.as_transform()
        found += [float(x) for x in (*transform.R.leaves(), *transform.p.leaves())]
        found += [float(x) for x in (*body.joint.parameters(), *body.armature, *body.rest)]
    return found


def _use_motion(path: Path, sample: Sample, rng: random.Random) -> None:
    options: dict[str, Any] = {"rotations": rng.choice(["quaternion", "euler"]), "up": rng.choice("yz")}
    model, clip = da.load_motion(path, **({} if sample.kind == "deepmimic" else options))
    assert len(clip) == len(clip.time)
    use(model, rng)


def _use_acclaim(path: Path, sample: Sample, rng: random.Random) -> None:
    other = ".amc" if sample.kind == "asf" else ".asf"
    texts = dict(zip((".asf", ".amc"), acclaim_texts(acclaim_rows())))
    partner = path.with_suffix(other)
    partner.write_text(texts[other])
    pair = (path, partner) if sample.kind == "asf" else (partner, path)
    model, clip = da.load_motion(pair, rotations=rng.choice(["quaternion", "euler"]))
    assert len(clip) == len(clip.time)
    use(model, rng)


def _use_trajectory(path: Path, sample: Sample, rng: random.Random) -> None:
    trajectory = da.Trajectory.load(path)
    repr(trajectory)
    one = trajectory[(0,) * len(trajectory.batch)] if trajectory.batch else trajectory
    assert one.q.dtype.kind == "f"
    use(one.simulated_model(), rng)


def _use_mesh(path: Path, sample: Sample, rng: random.Random) -> None:
    mesh = read_mesh(path)
    assert all(np.isfinite(mesh.bounds[0]))
    float(mesh.volume)
    assert sum(len(piece.faces) for piece, _ in mesh.pieces()) == len(mesh.faces)
    if rng.random() < 0.5:
        mesh.inertia(density=1000.0)
    else:
        mesh.scale_by(0.5).hull()


def _use_pose(path: Path, sample: Sample, rng: random.Random) -> None:
    read = _read_json_state if sample.kind == "pose json" else _read_stored_state
    q, _ = read(_arm(), path)
    assert np.isfinite(q).all()


USES: dict[str, Callable[[Path, Sample, random.Random], None]] = {
    "urdf": _use_model, "mjcf": _use_model, "json model": _use_model, "npz trajectory": _use_trajectory,
    "bvh": _use_motion, "deepmimic": _use_motion, "asf": _use_acclaim, "amc": _use_acclaim,
    "stl text": _use_mesh, "stl binary": _use_mesh, "obj": _use_mesh,
    "collada": _use_mesh,
    "pose json": _use_pose, "pose npz": _use_pose,
}  # fmt: skip

"""`dalembert simulate`: simulate a model with ground, contact, servos and pushes, and save the motion."""

import argparse
import contextlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

import dalembert as da
from dalembert.cli.content import complain, finite, say, say_json, table, understanding
from dalembert.cli.scenario import Scenario, scenario
from dalembert.errors import ArgumentError, DalembertError
from dalembert.simulation import SimulationWarning

ENDINGS: Final = (".npz", ".parquet", ".html", ".htm")
DEFAULT_FRAME_TIME: Final = 0.01
"""Time between frames [s] unless `--every` says otherwise."""
PROGRESS_BAR_WIDTH: Final = 30
"""Characters of the progress bar."""


def run(options: argparse.Namespace) -> int:
    """Simulate, print what became of it and write the files; 1 where a sample failed or a file is not
    written, 2 where something was not understood, 130 after Ctrl-C."""
    outputs = [Path(name) for name in options.output or ()]
    with understanding([options.file]):
        _require_writable(outputs)
    there = [path for path in outputs if path.exists()]
    if there and not options.force:
        complain(f"{there[0]} exists; give another name, or --force to replace it")
        return 1
    with understanding([options.file]):
        chosen = scenario(options)
        trajectory, timing, said = _simulate(chosen, options)
    for line in said:
        print(f"dalembert: {line}", file=sys.stderr)
    written, failure = [], None
    for path in outputs:
        try:
            if path.suffix.lower() in (".html", ".htm"):
                one = trajectory[(0,) * len(trajectory.batch)] if trajectory.batch else trajectory
                da.viewer.record(one, path, title=Path(options.file).stem)
            else:
                trajectory.save(path)
            written.append(path)
        except DalembertError as error:
            failure = failure or error
            complain(str(error))
    facts = _facts(chosen, trajectory, options) | timing
    if options.json:
        say_json(facts | {"notes": list(chosen.notes), "written": [str(path) for path in written]})
    else:
        _tell(chosen, trajectory, facts)
        for path in written:
            how = ": open it in any browser" if path.suffix.lower() in (".html", ".htm") else ""
            say(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB){how}")
    if trajectory.interrupted:
        return 130
    return 1 if failure or trajectory.failed.any() else 0


def _require_writable(outputs: list[Path]) -> None:
    """Refuse before the work what could not be written after it."""
    for path in outputs:
        ending = path.suffix.lower()
        if ending not in ENDINGS:
            raise ArgumentError(f"{path}: a simulation is written as .npz, .parquet or .html")
        if not path.parent.is_dir():
            raise ArgumentError(f"{path}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise ArgumentError(f"{path} is a folder; name a file")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise ArgumentError(f"{path} cannot be written: permission denied")
        if ending == ".parquet" and importlib.util.find_spec("pyarrow") is None:
            raise ArgumentError(f"{path}: writing .parquet needs pyarrow: pip install 'dalembert[parquet]'")


def _simulate(
    chosen: Scenario, options: argparse.Namespace
) -> tuple[da.Trajectory, dict[str, Any], list[str]]:
    """Simulate; return the trajectory, its speed, and the warnings."""
    dt = options.dt
    if dt > options.duration:
        raise ArgumentError(f"--dt {dt:g} s is longer than --duration {options.duration:g} s")
    whole = round(options.duration / dt)
    every = options.every or min(whole, max(1, round(DEFAULT_FRAME_TIME / dt)))
    if every > whole:
        raise ArgumentError(
            f"--every {every} steps of {dt:g} s are longer than --duration {options.duration:g} s"
        )
    steps = every * max(1, round(whole / every))
    forces = chosen.forces(options.push or [], steps, dt)
    state = (chosen.model, chosen.q, chosen.v, chosen.servo)

    def rollout(count: int, **more: Any) -> da.Trajectory:
        more |= {"contact": chosen.contact, "integrator": options.integrator}
        if forces is not None:
            more |= {"external_forces": forces[:count], "external_frame": "center"}
        return da.rollout(*state, count, dt, **more)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", SimulationWarning)
        start = perf_counter()
        rollout(min(2, steps))  # compiles what the rollout needs
        compiled = perf_counter() - start
        warnings.simplefilter("always", SimulationWarning)
        with _progress_bar(dt, shown=options.progress) as bar:
            start = perf_counter()
            trajectory = rollout(steps, every=every, progress=bar)
            took = perf_counter() - start
    samples = max(1, trajectory.failed_at.size)
    timing = {
        "steps": steps,
        "every": every,
        "dt": dt,
        "compile_seconds": compiled,
        "seconds": took,
        "real_time_factor": samples * trajectory.duration / took,
    }
    said = [str(item.message).removeprefix("rollout: ") for item in caught]
    said = [text.replace('give contact="rigid" or "compliant"', "give --contact rigid") for text in said]
    return trajectory, timing, said


@contextlib.contextmanager
def _progress_bar(dt: float, *, shown: bool | None) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows a line that grows with the simulated time; None: on a terminal, else nothing does."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield None
        return
    start, last = perf_counter(), 0.0

    def show(done: int, steps: int) -> None:
        nonlocal last
        now = perf_counter()
        if now - last >= 0.1 or done == steps:
            last = now
            full = PROGRESS_BAR_WIDTH * done // steps
            factor = done * dt / max(now - start, 1e-9)
            bar = f"\r[{'#' * full}{'.' * (PROGRESS_BAR_WIDTH - full)}] "
            said = f"{done * dt:.2f} of {steps * dt:.2f} s, {factor:.3g} times real time "
            print(bar + said, end="", file=sys.stderr, flush=True)

    yield show
    print(file=sys.stderr)


def _facts(chosen: Scenario, trajectory: da.Trajectory, options: argparse.Namespace) -> dict[str, Any]:
    """Return the facts to print: energies, contacts and failures; means and extremes over samples."""
    model = chosen.model
    ends = [0, -1]
    q, v = trajectory.q[..., ends, :], trajectory.v[..., ends, :]
    time = trajectory.time[..., ends] if model.time_dependent else None
    kinetic = da.dynamics.kinetic_energy(model, q, v, time=time).reshape(-1, 2).mean(axis=0)
    potential = da.dynamics.potential_energy(model, q, time=time).reshape(-1, 2).mean(axis=0)
    facts: dict[str, Any] = {
        "model": model.name,
        "file": options.file,
        "samples": max(1, trajectory.failed_at.size),
        "duration": trajectory.duration,
        "frames": len(trajectory),
        "interrupted": trajectory.interrupted,
        "failed": int(np.count_nonzero(trajectory.failed)),
        "kinetic_energy": [finite(x) for x in kinetic],
        "potential_energy": [finite(x) for x in potential],
        "contact": None,
    }
    contacts = trajectory.contacts
    if chosen.pairs and contacts is not None and len(trajectory) > 1:
        pressed = np.linalg.norm(contacts.force, axis=-1) > 0.0
        up = -np.array([float(x) for x in model.gravity])
        size = float(np.linalg.norm(up))
        world = {"world", *(shape.name for shape in model.world_shapes)} - {""}
        carried = np.array([not world.isdisjoint(names) for names in contacts.names], dtype=bool)
        lifted = (
            (contacts.force[..., -1, :, :] @ (up / size if size else up))[..., carried].sum(axis=-1).mean()
        )
        facts["contact"] = {
            "law": type(chosen.contact).__name__.lower(),
            "pairs": len(chosen.pairs),
            "points": len(contacts),
            "touching_at_end": int(pressed[..., -1, :].sum(axis=-1).max()),
            "most_touching": int(pressed.sum(axis=-1).max()),
            "deepest_overlap": max(0.0, -float(contacts.gap.min(initial=0.0))),
            "upward_force_at_end": finite(lifted),
            "weight": size * float(model.total_mass),
        }
    return facts


def _tell(chosen: Scenario, trajectory: da.Trajectory, facts: dict[str, Any]) -> None:
    """Print the short table."""
    samples, contact = facts["samples"], facts["contact"]
    many = f", {samples} samples" if trajectory.batch else ""
    early = ", interrupted" if trajectory.interrupted else ""
    say(
        f"{facts['model']}: {facts['duration']:.6g} s in steps of {facts['dt'] * 1e3:g} ms{many}, "
        f"{facts['frames']} frames{early}"
    )
    for note in chosen.notes:
        say(f"  {note}")
    mean = ", mean" if trajectory.batch else ""
    kinetic, potential = facts["kinetic_energy"], facts["potential_energy"]
    rows = [
        [f"kinetic energy{mean} [J]", *map(_number, kinetic)],
        [f"potential energy{mean} [J]", *map(_number, potential)],
    ]
    if None not in (*kinetic, *potential):
        rows.append([f"their sum{mean} [J]", *(_number(a + b) for a, b in zip(kinetic, potential))])
    say()
    say(table(["", "start", "end"], rows))
    say()
    if contact is not None:
        size = f"{contact['pairs']} pairs, {contact['points']} points"
        now, most = contact["touching_at_end"], contact["most_touching"]
        up, weight = _number(contact["upward_force_at_end"]), _number(contact["weight"])
        touched = f"touching at the end {now}, at most {most}" if most else "nothing touched"
        say(f"contact         {contact['law']}, {size}; {touched}")
        if most:
            say(f"deepest overlap {contact['deepest_overlap'] * 1e3:.3f} mm, in the frames that were kept")
            say(f"upward force    {up} N at the end; weight {weight} N")
    if facts["failed"]:
        first = trajectory.cause.ravel()[np.argmax(trajectory.failed.ravel())]
        say(f"failed          {facts['failed']} of {samples}: {first}")
    spent = f"{facts['seconds']:.3g} s; before that {facts['compile_seconds']:.3g} s to compile or to load"
    say(f"speed           {facts['real_time_factor']:.3g} times real time ({spent})")


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"

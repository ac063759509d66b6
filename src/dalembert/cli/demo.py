"""`dalembert demo`: the bundled humanoid stands, is pushed, steps, falls, and is recorded."""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np

import dalembert as da
from dalembert.cli import choreography
from dalembert.cli.choreography import DEMO_DURATION, DT, PUSHES
from dalembert.cli.timing import machine, table
from dalembert.errors import FileError

__all__ = ["run"]

MIN_STANDING_HEIGHT = 0.7
"""The humanoid stands if its pelvis is higher than this [m]."""
MAX_LYING_HEIGHT = 0.35
"""The humanoid lies if its pelvis is lower than this [m]."""
MOMENTS = (1.0, 2.3, 4.1, 4.2, 4.3, 4.6, 5.9, 6.3, 6.6, 6.8, 7.2, 7.9, 8.2, 8.4, 8.7, 9.6)
"""Times of the pictures [s]."""


def run(options: argparse.Namespace) -> int:
    """Simulate, print and record; return 1 if it does not stand by itself or the simulation fails."""
    model = choreography.humanoid()
    target = Path(options.folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target} cannot be a folder to write to: {error.strerror or error}") from error
    print(f"dalembert {da.__version__} on {machine()}\n")
    print(f"humanoid: {len(model.bodies)} bodies, nv = {model.nv}, {float(model.total_mass):g} kg")
    start = perf_counter()
    pairs = choreography.pairs(model)
    q, v = choreography.start(model), np.zeros(model.nv)
    servo, forces = choreography.servo(model), choreography.pushes(model)

    def rollout(steps: int) -> da.Trajectory:
        held = da.control.Servo(kp=servo.kp, kd=servo.kd, q_ref=servo.q_ref[:steps])
        return da.rollout(
            model,
            q,
            v,
            held,
            steps,
            DT,
            contact=da.contact.Rigid(pairs=pairs),
            external_forces=forces[:steps],
            external_frame="center",
        )

    rollout(2)
    print(f"{len(pairs)} pairs of shapes may touch; one step compiled in {perf_counter() - start:.1f} s")
    start = perf_counter()
    motion = rollout(round(DEMO_DURATION / DT))
    took = perf_counter() - start
    print(f"{DEMO_DURATION:g} s simulated in {took:.2f} s: {DEMO_DURATION / took:.0f} times real time\n")
    print(_story(motion))
    assert motion.contacts is not None
    force = motion.contacts.force[round(1.9 / DT)].sum(axis=0)[2]
    weight = float(model.total_mass) * 9.81
    print(f"\nstanding, the ground bears {force:.1f} N; it weighs {weight:.1f} N")
    print(f"deepest overlap {-1e3 * motion.contacts.gap.min():.2f} mm")
    page = da.viewer.record(motion, target / "demo.html", title="dalembert: the humanoid", follow="pelvis")
    sheet = da.viewer.contact_sheet(motion, target / "demo.png", times=MOMENTS, size=(170, 240))
    print(f"\nrecording  {page.resolve().as_uri()}  (double click; no network, no Python)")
    print(f"pictures   {sheet.resolve().as_uri()}")
    stood = bool((motion.q[: round(PUSHES[0].at / DT), 2] > MIN_STANDING_HEIGHT).all())
    if not stood:
        print("WRONG: it does not stand by itself")
    return 0 if stood and not motion.failed.any() else 1


def _state(height: float, touching: int) -> str:
    """Return what the humanoid does, by the height of its pelvis [m] and its number of contact points."""
    if not touching:
        return "in the air"
    return "stands" if height > MIN_STANDING_HEIGHT else "lies" if height < MAX_LYING_HEIGHT else "falls"


def _story(motion: da.Trajectory) -> str:
    """Return energies and contacts at moments, and what happened then."""
    assert motion.contacts is not None
    energy = motion.energy()
    kinetic = da.kinetic_energy(motion.model, motion.q, motion.v)
    touching = (np.linalg.norm(motion.contacts.force, axis=-1) > 0.0).sum(axis=-1)
    moments = [(0.0, "it stands, by stable PD at its joints")]
    for push, following in zip(PUSHES, [*(p.at for p in PUSHES[1:]), DEMO_DURATION], strict=True):
        moments += [(push.at, push.words), (push.at + 0.3, ""), (following - 0.1, "")]
    rows = []
    for time, words in moments:
        k = min(round(time / DT), len(touching) - 1)
        state = _state(motion.q[k, 2], touching[k])
        rows.append(
            [f"{time:.1f}", f"{kinetic[k]:.1f}", f"{energy[k]:.1f}", f"{touching[k]}", words or state]
        )
    head = ["time [s]", "kinetic [J]", "energy [J]", "contacts", ""]
    widths = [len(name) for name in head]
    aligned = [[cell.rjust(width) for cell, width in zip(row, widths)] for row in rows]
    return table(head, aligned, names=5)

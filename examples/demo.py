"""The bundled humanoid stands, is pushed, steps, falls, and is recorded. Run: `make demo`.

The humanoid stands under stable PD control; is pushed, and sways back; is pushed harder, and takes a step; is
shoved, and falls; and is pushed once more where it lies. Its servos do not balance: they follow poses, which
were found by trial. The script prints energies, contacts and the real-time factor, and writes `demo.html`, a
recording for any browser, and `demo.png`, a strip of pictures, into the folder given (default: build/demo).
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

import dalembert as da
from dalembert.cli.content import table
from dalembert.cli.doctor import machine
from dalembert.contact.pairs import ContactPair

Array = npt.NDArray[np.float64]
Pose = Mapping[str, Sequence[float] | float]

DT: Final = 0.004
"""Time step [s]."""
DEMO_DURATION: Final = 9.6
"""Simulated time [s]."""


class Push(NamedTuple):
    """A force [N] at the centre of mass of a body, and what it is meant to do."""

    at: float
    lasting: float
    body: str
    force: tuple[float, float, float]
    words: str


PUSHES: Final = (
    Push(2.0, 0.2, "chest", (90.0, 0.0, 0.0), "a push from behind: it sways, and comes back"),
    Push(4.0, 0.2, "chest", (220.0, 0.0, 0.0), "a harder one: it takes a step"),
    Push(6.0, 0.25, "chest", (-120.0, 350.0, 0.0), "a shove from the side: it falls"),
    Push(8.0, 0.2, "pelvis", (0.0, 450.0, 1400.0), "and again, where it lies"),
)

STANDING: Final[Pose] = {
    "left_hip": (-0.12, 0.05, 0.0), "left_knee": 0.24, "left_ankle": (-0.12, -0.05),
    "right_hip": (-0.12, -0.05, 0.0), "right_knee": 0.24, "right_ankle": (-0.12, 0.05),
    "left_shoulder": (0.15, -0.05, 0.0), "left_elbow": 0.35,
    "right_shoulder": (-0.15, -0.05, 0.0), "right_elbow": 0.35,
}  # fmt: skip
"""Joint angles [rad]; rotation vectors of the shoulders. Flexion of hips and ankles is negative."""

STEPPING: Final[Pose] = {
    "left_hip": (-0.05, 0.136, 0.0),
    "left_knee": 0.2,
    "left_ankle": (-0.098, -0.136),
    "right_hip": (-1.391, -0.022, 0.0),
    "right_knee": 1.055,
    "right_ankle": (-0.33, 0.05),
    "left_shoulder": (0.15, -0.5, 0.0),
    "right_shoulder": (-0.15, 0.4, 0.0),
    "lumbar": (0.129, 0.0, 0.0),
}
LANDED: Final[Pose] = {
    "left_hip": (0.14, 0.05, 0.0),
    "left_knee": 0.02,
    "left_ankle": (-0.195, -0.05),
    "right_hip": (-0.642, -0.494, 0.0),
    "right_knee": 0.416,
    "right_ankle": (0.654, 0.05),
    "lumbar": (0.129, 0.0, 0.0),
}
SETTLED: Final[Pose] = {
    "left_hip": (0.327, -0.017, 0.0),
    "left_knee": 0.244,
    "left_ankle": (-0.266, 0.017),
    "right_hip": (-0.56, 0.017, 0.0),
    "right_knee": 0.325,
    "right_ankle": (0.058, -0.017),
}
FALLING: Final[Pose] = {
    "left_hip": (-1.0, 0.15, 0.0),
    "right_hip": (-0.8, -0.15, 0.0),
    "left_knee": 1.3,
    "right_knee": 1.1,
    "left_ankle": (-0.2, 0.0),
    "right_ankle": (-0.2, 0.0),
    "left_shoulder": (0.5, -0.7, 0.0),
    "right_shoulder": (-0.3, -0.9, 0.0),
    "left_elbow": 0.7,
    "right_elbow": 0.7,
    "lumbar": (0.3, 0.0, 0.0),
    "thoracic": (0.2, 0.0, 0.0),
    "neck": (0.3, -0.3, 0.0),
}
LYING: Final[Pose] = {
    "left_hip": (-0.3, 0.1, 0.0),
    "right_hip": (-0.5, -0.1, 0.0),
    "left_knee": 0.5,
    "right_knee": 0.9,
    "left_ankle": (0.3, 0.0),
    "right_ankle": (0.3, 0.0),
    "left_shoulder": (0.7, -0.2, 0.0),
    "right_shoulder": (-0.5, 0.1, 0.0),
    "left_elbow": 0.5,
    "right_elbow": 0.8,
}

KEYS: Final[Sequence[tuple[float, float, Pose]]] = (
    (4.02, 4.153, STEPPING),
    (4.153, 4.373, LANDED),
    (4.393, 4.625, SETTLED),
    (6.25, 6.7, FALLING),
    (7.2, 7.7, LYING),
)
"""From when until when the humanoid goes over to a pose; what a pose leaves out is as in `STANDING`."""

KP_PER_EFFORT: Final = 4.0
"""kp of a servo over its largest torque [1/rad], found by trial; kd is kp times 0.1 s."""
MIN_STANDING_HEIGHT = 0.7
"""The humanoid stands if its pelvis is higher than this [m]."""
MAX_LYING_HEIGHT = 0.35
"""The humanoid lies if its pelvis is lower than this [m]."""
MOMENTS = (1.0, 2.3, 4.1, 4.2, 4.3, 4.6, 5.9, 6.3, 6.6, 6.8, 7.2, 7.9, 8.2, 8.4, 8.7, 9.6)
"""Times of the pictures [s]."""


def run(folder: str) -> int:
    """Simulate, print and record; return 1 if it does not stand by itself or the simulation fails."""
    model = humanoid()
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(f"{target} cannot be a folder to write to: {error.strerror or error}") from error
    print(f"dalembert {da.__version__} on {machine()}\n")
    print(f"humanoid: {len(model.bodies)} bodies, nv = {model.nv}, {float(model.total_mass):g} kg")
    start = perf_counter()
    touching = pairs(model)
    q, v = standing_configuration(model), np.zeros(model.nv)
    servos, forces = servo(model), pushes(model)

    def rollout(steps: int) -> da.Trajectory:
        held = da.control.Servo(kp=servos.kp, kd=servos.kd, q_ref=servos.q_ref[:steps])
        return da.rollout(
            model,
            q,
            v,
            held,
            steps,
            DT,
            contact=da.contact.Rigid(pairs=touching),
            external_forces=forces[:steps],
            external_frame="center",
        )

    rollout(2)
    print(f"{len(touching)} pairs of shapes may touch; one step compiled in {perf_counter() - start:.1f} s")
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
    kinetic = da.dynamics.kinetic_energy(motion.model, motion.q, motion.v)
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


def humanoid() -> da.Model:
    """Return the bundled humanoid on a plane."""
    return da.models.humanoid().with_ground()


def pairs(model: da.Model) -> tuple[ContactPair, ...]:
    """Return the pairs that may touch: all shapes with the ground, and one leg with the other."""
    legs = [("left_thigh", "right_thigh"), ("left_shank", "right_shank")]
    return (*da.contact.pairs_of(model, self_collision=False), *da.contact.pairs_of(model, only=legs))


def standing_configuration(model: da.Model) -> Array:
    """Return the configuration in which the humanoid stands on the ground."""
    q = _configuration(model, STANDING)
    ground = da.contact.pairs_of(model, self_collision=False)
    q[2] -= da.contact.distances(model, q, pairs=ground).gap.min()
    return q


def servo(model: da.Model, keys: Sequence[tuple[float, float, Pose]] = KEYS) -> Any:
    """Return the servos and the poses that they follow."""
    steps = round(DEMO_DURATION / DT)
    time = np.arange(steps) * DT
    now = _configuration(model, STANDING)
    q_ref = np.tile(now, (steps, 1))
    for begin, end, pose in keys:
        target = _configuration(model, {**STANDING, **pose})
        later = time >= begin
        share = np.clip((time[later] - begin) / (end - begin), 0.0, 1.0)
        smooth = (share * share * (3.0 - 2.0 * share))[:, np.newaxis]
        there = np.broadcast_to(now, (len(share), model.nq))
        q_ref[later] = da.integrate(model, there, smooth * da.difference(model, now, target))
        now = target
    effort = np.zeros(model.nv)
    for body in model.bodies:
        if body.joint_name in model.actuated:
            effort[body.v_slice] = body.limits.effort
    return da.control.Servo(kp=KP_PER_EFFORT * effort, kd=0.1 * KP_PER_EFFORT * effort, q_ref=q_ref)


def pushes(model: da.Model, given: Sequence[Push] = PUSHES) -> Array:
    """Return the pushes as a stream of forces `(steps, n_bodies, 6)`."""
    steps = round(DEMO_DURATION / DT)
    time = (np.arange(steps) + 0.5) * DT
    found = np.zeros((steps, len(model.bodies), 6))
    for push in given:
        during = (time > push.at) & (time < push.at + push.lasting)
        found[during, model.bodies[push.body].index, 3:] += push.force
    return found


def _configuration(model: da.Model, pose: Pose) -> Array:
    q = np.array(model.neutral())
    for name, angles in pose.items():
        body = model.joints[name].body
        own = np.atleast_1d(np.array(angles, float))
        if body.nq == 4:
            own = np.asarray(body.joint.integrate(list(body.joint.neutral()), own.tolist()), float)
        q[body.q_slice] = own
    return q


if __name__ == "__main__":
    sys.exit(run(sys.argv[1] if len(sys.argv) > 1 else "build/demo"))

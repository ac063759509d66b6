"""Beside MuJoCo: the humanoid of dm_control's suite, from one file in both engines; and bad input."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from physics_findings import UPRIGHT, Array, Finding, Findings, G, ball, below, greatest

import dalembert as da
from dalembert.errors import DalembertError

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

HALF = float(np.sqrt(0.5))
TURNS = {"its back": (HALF, 0.0, -HALF, 0.0), "its left side": (HALF, HALF, 0.0, 0.0)}
RESTS = [*TURNS, "its feet"]
DT = 0.005
STEPS = 1600


def flight() -> Findings:
    """RK4 and equal steps on both sides, springs, dampers and armature included, until MuJoCo has a contact
    or a limit; twelve random starts."""
    import mujoco
    from tests.engines import mujoco_humanoid as humanoid

    model = humanoid.figure()
    for dt in (0.001, 0.002):
        peer = humanoid.peer(dt)
        peer.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        worst, spans = 0.0, []
        for seed in range(12):
            q = humanoid.random_poses(1, seed, height=2.0)
            v = np.random.default_rng(seed).normal(size=(1, model.nv))
            data = mujoco.MjData(peer)
            start = da.convert_state(model, q, v, source="dalembert", target="mujoco")
            data.qpos[:], data.qvel[:] = start[0][0], start[1][0]
            states = []
            while len(states) < 400:
                mujoco.mj_forward(peer, data)
                if data.nefc:
                    break
                mujoco.mj_step(peer, data)
                states.append((data.qpos.copy(), data.qvel.copy()))
            # A stage of the last step may have met a limit.
            theirs = [np.array(x) for x in zip(*states[:-1], strict=True)]
            q_peer, v_peer = da.convert_state(model, *theirs, source="mujoco", target="dalembert")
            ours = da.rollout(model, q[0], v[0], steps=len(q_peer), dt=dt, integrator="rk4")
            worst = greatest(worst, np.abs(ours.q[1:] - q_peer), np.abs(ours.v[1:] - v_peer))
            spans.append(len(q_peer) * dt)
        law = f"MuJoCo: 12 flights of {min(spans):.2f} to {max(spans):.2f} s, RK4, {dt * 1e3:g} ms: q and v"
        yield below(law, "equal", worst, 1e-6)


def rest(law: str) -> Findings:
    """Held by springs, let go 2 cm above the floor or standing on it, after 8 s at 5 ms.

    MuJoCo's surfaces and compliant ones here yield by up to 2 mm and 1 mm: heights may differ by as much.
    """
    import mujoco
    from tests.engines import mujoco_humanoid as humanoid

    weight = humanoid.figure().total_mass * G
    q = np.tile(humanoid.standing(), (len(RESTS), 1))
    q[: len(TURNS), 3:7] = list(TURNS.values())
    q[:, 2] += [0.02, 0.02, 0.0] - humanoid.lowest(q)
    v = np.zeros((len(RESTS), humanoid.figure().nv))
    kind = da.contact.Rigid if law == "rigid" else da.contact.Compliant
    ours = da.rollout(
        humanoid.held(), q, v, steps=STEPS, dt=DT, every=STEPS, contact=kind(pairs=humanoid.floor_pairs())
    )
    assert ours.contacts is not None
    peer = humanoid.hold(humanoid.peer(DT))
    last = humanoid.peer_rollouts(peer, humanoid.peer_states(peer, q, v), STEPS)[:, -1]
    for k, name in enumerate(RESTS):
        q_peer, _ = humanoid.own_states(peer, last[k])
        data = mujoco.MjData(peer)
        mujoco.mj_setState(peer, data, last[k], humanoid.STATE)
        mujoco.mj_forward(peer, data)
        wrench, theirs = np.zeros(6), 0.0
        for i in range(data.ncon):
            mujoco.mj_contactForce(peer, data, i, wrench)
            theirs += wrench[0]
        force = ours.contacts.force[k, -1, :, 2]
        touching = int((ours.contacts.gap[k, -1] < 1e-4).sum())
        height = float(ours.q[k, -1, 2] - q_peer[2])
        yield below(
            f"MuJoCo, {law}: height on {name}", f"{q_peer[2]:.4f} m", abs(height) * 1e3, 2.0, " mm off"
        )
        yield Finding(
            f"MuJoCo, {law}: contacts on {name}",
            str(data.ncon),
            str(touching),
            "equal",
            touching == data.ncon,
        )
        yield below(
            f"MuJoCo, {law}: floor forces on {name}",
            f"{weight:.1f} N; MuJoCo {theirs:.1f}",
            abs(float(force.sum()) / weight - 1.0) * 1e2,
            0.1,
            " % off",
        )


def refused(call: Callable[[], object]) -> str:
    """What a call says that must fail."""
    try:
        call()
    except DalembertError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def bad_input() -> Findings:
    """What must be refused or reported, in words; printed as they are."""
    pendulum, four_bar = da.models.pendulum(), da.models.four_bar()
    stone = ball(0.1, 1.0)
    builder = da.ModelBuilder()
    builder.add_body("stone", "world", da.Free(), inertia=da.RigidInertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1)))
    builder.add_shape("stone", da.shapes.Mesh(str(Path(tempfile.gettempdir()) / "no such.stl")))
    mesh = builder.build().with_ground()
    start = [0.0, 0.0, 1.0, *UPRIGHT]
    calls: dict[str, Callable[[], object]] = {
        "negative dt": lambda: da.rollout(pendulum, [0.1], [0.0], steps=10, dt=-0.001),
        "dt that is NaN": lambda: da.rollout(pendulum, [0.1], [0.0], steps=10, dt=float("nan")),
        "zero steps": lambda: da.rollout(pendulum, [0.1], [0.0], steps=0),
        "velocity that opens a loop": lambda: da.rollout(
            four_bar, da.constraints.close_loops(four_bar, four_bar.neutral()), [1.0, 1.0, 1.0], steps=10
        ),
        "missing mesh": lambda: da.rollout(mesh, start, np.zeros(6), steps=5, contact="rigid"),
    }
    for name, call in calls.items():
        said = refused(call)
        yield Finding(f"bad input: {name}", "an error", said or "nothing", "said", bool(said))
    controls: Array = np.zeros((2, 10, 1))
    controls[1, 4] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = da.rollout(pendulum, np.full((2, 1), 0.1), [0.0], controls, dt=0.01)
    kept = bool(np.isfinite(run.q).all() and run.failed_at[1] == 4 and run.failed_at[0] == -1)
    said = f"step {run.failed_at[1]}: {run.cause[1]}; warned: " + "; ".join(str(w.message) for w in caught)
    yield Finding("bad input: NaN controls from step 4 of one sample", "it stops alone", said, "said", kept)
    for law in ("rigid", "compliant"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = da.rollout(stone, [0.0, 0.0, 0.05, *UPRIGHT], np.zeros(6), steps=1500, contact=law)
        said = "; ".join(str(w.message) for w in caught)
        top, end = float(run.q[:, 2].max()) - 0.1, float(run.q[-1, 2]) - 0.1
        calm = top < 1e-3 and abs(end) < 1.1e-3
        yield Finding(
            f"bad input, {law}: a ball 5 cm in the ground (rises {max(top, 0.0) * 1e3:.1f} mm above it)",
            "reported, parted",
            said,
            "< 1 mm",
            calm and bool(said),
        )


def experiments() -> list[tuple[str, Findings]]:
    from tests.engines import mujoco_humanoid as humanoid

    found = [("bad input", bad_input())]
    if humanoid.path() is None:
        return found
    return [
        ("MuJoCo in flight", flight()),
        *((f"MuJoCo at rest, {law}", rest(law)) for law in ("rigid", "compliant")),
    ] + found

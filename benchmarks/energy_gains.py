"""Energy from nothing: random figures and light roots with contact, beside MuJoCo, at 2 ms.

A sample gains where T + V, above the ground, exceeds that of the start by more than 2 % at some frame. MuJoCo
gets the same figures as MJCF files, with its Euler integrator and its default solver; it has no restitution,
so that figures which rebound here do not there. Limits: the greatest angle of hinges beyond their ranges.

    python benchmarks/energy_gains.py [--figures 60]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as peer_rollout
from timing import machine, table

import dalembert as da

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.stress.random_scenes import figure, light_root, throws

Array = np.ndarray[Any, np.dtype[np.float64]]

STEPS = 752
DT = 0.002
EVERY = 8
NOTICED = 0.02


def gains(model: da.Model, q: Array, v: Array) -> Array:
    """The greatest rise of the energy of each sample, as a fraction of that at the start."""
    energy = da.dynamics.kinetic_energy(model, q, v) + da.dynamics.potential_energy(model, q)
    energy = np.where(np.isfinite(energy), energy, np.inf)
    rise: Array = (energy.max(axis=1) - energy[:, 0]) / np.abs(energy[:, 0])
    return rise


def overruns(model: da.Model, q: Array) -> float:
    """How far hinges go beyond their ranges [rad]."""
    beyond = [0.0]
    for body in model.bodies:
        if body.joint.kind == "revolute":
            angle = q[..., body.q_slice.start]
            lower, upper = (np.ravel(x)[0] for x in (body.limits.lower, body.limits.upper))
            beyond += [float(np.nanmax(angle - upper)), float(np.nanmax(lower - angle))]
    return max(beyond)


def ours(model: da.Model, q: Array, v: Array, contact: str | None) -> tuple[Array, Array, float]:
    """Gains, whether they are reported, and overruns of limits."""
    run = da.rollout(model, q, v, steps=STEPS, dt=DT, contact=contact, record_contacts=False, every=EVERY)
    told = getattr(run, "energy_gain", np.zeros(len(q))) > 0.0
    return gains(model, run.q, run.v), told | run.failed, overruns(model, run.q)


def theirs(model: da.Model, q: Array, v: Array, folder: Path) -> tuple[Array, float]:
    """Gains and overruns of MuJoCo's motion; states that it resets count as gains."""
    file = folder / "figure.xml"
    da.save(model, file)
    peer = mujoco.MjModel.from_xml_path(str(file))
    peer.opt.timestep, peer.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_EULER
    order = [peer.joint(k).name for k in range(peer.njnt)]
    q_there, v_there = da.convert_state(model, q, v, source="dalembert", target="mujoco", order=order)
    states = np.zeros((len(q), mujoco.mj_stateSize(peer, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    states[:, 1 : 1 + peer.nq], states[:, 1 + peer.nq : 1 + peer.nq + peer.nv] = q_there, v_there
    with peer_rollout.Rollout(nthread=0) as pool:
        found = pool.rollout(peer, mujoco.MjData(peer), states, nstep=STEPS)[0][:, EVERY - 1 :: EVERY]
    place = 1 + peer.nq
    there = found[..., 1:place], found[..., place : place + peer.nv]
    back = da.convert_state(model, *there, source="mujoco", target="dalembert", order=order)
    q_all, v_all = (np.concatenate([a[:, None], b], axis=1) for a, b in zip((q, v), back, strict=True))
    return gains(model, q_all, v_all), overruns(model, q_all)


def scenes(figures: int) -> dict[str, list[tuple[da.Model, Array, Array]]]:
    found = {f"{figures} random figures": [(m := figure(k), *throws(m, k)) for k in range(figures)]}
    for mass in (0.1, 0.01):
        model = light_root(mass)
        q, v = throws(model, 0, count=64, spin=0.0)
        found[f"10 kg on {mass} kg"] = [(model, q, 0.0 * v)]
    return found


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figures", type=int, default=60)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    mujoco.set_mju_user_warning(lambda text: None)  # of states that it resets
    print(f"Gains of energy above 2 % on {machine()}\n")
    rows, silent = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, figures in scenes(chosen.figures).items():
            peer = [theirs(*scene, Path(folder)) for scene in figures]
            for contact in ("rigid", "compliant"):
                mine = [ours(*scene, contact) for scene in figures]
                rise, told = (np.concatenate([item[k] for item in mine]) for k in (0, 1))
                unsaid = int(np.count_nonzero((rise > NOTICED) & ~told))
                silent += unsaid
                rows.append(_row(name, contact, rise, max(item[2] for item in mine), str(unsaid)))
            rise = np.concatenate([item[0] for item in peer])
            rows.append(_row(name, "MuJoCo", rise, max(item[1] for item in peer), "all"))
    print(table(["scene", "engine", "gain > 2 %", "greatest gain", "unreported", "limits exceeded"], rows))
    print("Every gain above 2 % is reported." if not silent else f"{silent} gains are not reported.")
    return int(silent > 0)


def _row(name: str, engine: str, rise: Array, beyond: float, unsaid: str) -> list[str]:
    count = int(np.count_nonzero(rise > NOTICED))
    return [
        name,
        engine,
        f"{count} of {len(rise)}",
        f"{max(float(rise.max()), 0.0):.3g}",
        unsaid,
        f"{beyond:.3g} rad",
    ]


if __name__ == "__main__":
    raise SystemExit(main())

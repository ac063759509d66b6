"""Inverse kinematics in a batch, beside a loop over SciPy's `least_squares` with the same residual.

The bundled humanoid, both palms and both soles to poses that it can take: of random postures, first with
the pelvis where the search starts, then with the pelvis anywhere and turned anyhow. SciPy minimises the same
errors from the same start, as a function of the displacement on the tangent space, with the residual and the
Jacobian compiled by dalembert; bounds keep the joints within their limits. It gets one start, a row of ours
up to 41. Prints milliseconds a row and the share that came within 1e-8 of every target.

    python benchmarks/inverse_kinematics.py [--rows 1000] [--peer-rows 50]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices only lose by threads

import numpy as np
from scipy.optimize import least_squares

import dalembert as da
from dalembert.algorithms import inverse_kinematics as ik

FRAMES = ("left_palm", "right_palm", "left_sole", "right_sole")
TOLERANCE = 1e-8


def errors(model: da.Model, q0: Any, dq: Any, R: Any, p: Any) -> list[Any]:
    """The errors that `da.kinematics.inverse_kinematics` makes small, from q0 displaced by dq."""
    q = da.model.configuration.integrate(model, q0, dq)
    targets = [ik.FrameTarget(name, True, True) for name in FRAMES]
    return [x for e in ik.frame_errors(model, q, targets, R, p).errors for x in e.to_list()]


def limits(model: da.Model) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the displacement from neutral."""
    low, high = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
    for bound in ik.position_bounds(model):
        at = model.neutral()[bound.position]
        # SciPy wants the start strictly inside.
        low[bound.velocity], high[bound.velocity] = bound.lower - at - 1e-6, bound.upper - at + 1e-6
    return low, high


def peer(
    model: da.Model, poses: dict[str, da.kinematics.Pose], rows: int, jacobian: bool
) -> tuple[float, float]:
    """Seconds a row and the share that arrived."""
    shapes = {"q0": (model.nq,), "dq": (model.nv,), "R": (len(FRAMES), 3, 3), "p": (len(FRAMES), 3)}
    residual = da.compile(errors, model, inputs=shapes)
    slope = residual.jacobian("dq")
    q0, low_high = model.neutral(), limits(model)
    R = np.stack([poses[name].rotation for name in FRAMES], axis=1)
    p = np.stack([poses[name].translation for name in FRAMES], axis=1)
    start = np.zeros(model.nv)
    residual(q0, start, R[0], p[0])
    if jacobian:
        slope(q0, start, R[0], p[0])
    arrived = 0
    begin = time.perf_counter()
    for k in range(rows):
        found = least_squares(
            lambda dq, k=k: residual(q0, dq, R[k], p[k]),
            start,
            jac=(lambda dq, k=k: slope(q0, dq, R[k], p[k])) if jacobian else "2-point",
            bounds=low_high,
            xtol=1e-12,
            ftol=None,
            gtol=1e-10,
            max_nfev=100,
        )
        arrived += bool(np.linalg.norm(found.fun.reshape(-1, 3), axis=1).max() <= TOLERANCE)
    return (time.perf_counter() - begin) / rows, arrived / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--peer-rows", type=int, default=50)
    options = parser.parse_args()
    da.set_num_threads(1)
    model = da.models.humanoid()
    rng = np.random.default_rng(0)
    anywhere = np.array([model.random_state(rng)[0] for _ in range(options.rows)])
    upright = anywhere.copy()
    upright[:, :7] = model.neutral()[:7]
    print(f"Inverse kinematics of {model.name}: {', '.join(FRAMES)}; one thread, milliseconds a row")
    print(f"{'pelvis':10} {'method':28} {'rows':>6} {'ms/row':>9} {'arrived':>9} {'ratio':>7}")
    for name, q in (("upright", upright), ("anywhere", anywhere)):
        at = da.forward_kinematics(model, q)
        poses = {frame: at[frame] for frame in FRAMES}
        da.kinematics.inverse_kinematics(
            model, {f: (x.rotation[:2], x.translation[:2]) for f, x in poses.items()}, model.neutral()
        )
        best = np.inf
        for _ in range(3):
            begin = time.perf_counter()
            found = da.kinematics.inverse_kinematics(model, poses, model.neutral(), tolerance=TOLERANCE)
            best = min(best, (time.perf_counter() - begin) / options.rows)
        share = found.converged.mean()
        print(f"{name:10} {'da.kinematics':28} {options.rows:6} {1e3 * best:9.4f} {share:9.1%} {1:7}")
        for label, jacobian in (("SciPy, differences", False), ("SciPy, our Jacobian", True)):
            rows = min(options.peer_rows, options.rows)
            seconds, share = peer(model, poses, rows, jacobian)
            print(f"{name:10} {label:28} {rows:6} {1e3 * seconds:9.4f} {share:9.1%} {seconds / best:7.0f}")


if __name__ == "__main__":
    main()

"""A motion transition of the humanoid: time, stationarity, ends, and the same with finite differences.

The humanoid gets from standing into a crouch with raised arms, on one thread. Energy and gradient are those
of `da.motion.transition`; gradients by forward differences are taken at a few points, once with a call for
each of the free control values and once with all of the changed motions in one batch, and their time is
scaled to the number of evaluations that the search took. Then it gets up, both feet held by loop joints.

    python benchmarks/transition.py [--knots 12] [--smoothness 0.05]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import dalembert as da
from dalembert.motion.closed_path import ClosedPath, contacts_of
from dalembert.motion.configuration_spline import ORDER, ConfigurationSpline, Controls, Knots
from dalembert.motion.torque_energy import ClosedTorqueEnergy, TorqueEnergy

DURATION = 1.0
STEP = 1e-7


def poses(model: da.Model) -> tuple[np.ndarray, np.ndarray]:
    """Standing, and crouched a step further with the arms raised."""
    standing, crouched = model.neutral(), model.neutral()
    standing[:3], crouched[:3] = (0.0, 0.0, 0.92), (0.3, 0.1, 0.6)
    for side in ("left", "right"):
        standing[model.joint(f"{side}_elbow").q_slice] = 0.1
        standing[model.joint(f"{side}_knee").q_slice] = 0.1
        crouched[model.joint(f"{side}_knee").q_slice] = 1.6
        crouched[model.joint(f"{side}_hip").q_slice] = (-1.4, 0.0, 0.0)
        crouched[model.joint(f"{side}_elbow").q_slice] = 0.8
        crouched[model.joint(f"{side}_shoulder").q_slice] = (np.cos(0.7), 0.0, -np.sin(0.7), 0.0)
    return standing, crouched


def seconds(run: Callable[[], object], repeats: int) -> float:
    run()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def one_by_one(energy: TorqueEnergy, controls: Controls) -> np.ndarray:
    """Forward differences by the free control values, a call each."""
    base = energy(controls)
    gradient = np.zeros_like(controls.values)
    for place in np.ndindex(gradient[2:-2].shape):
        moved = controls.values.copy()
        moved[place[0] + 2, place[1]] += STEP
        gradient[place[0] + 2, place[1]] = (energy(Controls(moved, controls.anchors)) - base) / STEP
    return gradient


def in_one_batch(energy: TorqueEnergy, controls: Controls) -> np.ndarray:
    """Forward differences, all changed motions in one batch."""
    shape = controls.values[2:-2].shape
    moved = np.tile(controls.values, (shape[0] * shape[1] + 1, 1, 1))
    for k, place in enumerate(np.ndindex(shape)):
        moved[k, place[0] + 2, place[1]] += STEP
    window = energy.points.first[:, None] + np.arange(ORDER)
    arguments = [moved[:, window], controls.anchors[window], energy.points.weights, energy._prices]
    found = energy._density(*arguments, energy._smoothness, check="off") @ energy._quadrature
    gradient = np.zeros_like(controls.values)
    gradient[2:-2] = ((found[:-1] - found[-1]) / STEP).reshape(shape)
    return gradient


def on_both_feet(model: da.Model, knots: int, smoothness: float) -> None:
    """Crouched to standing with the soles in contact, and the cost of differences there."""
    feet = ["left_sole", "right_sole"]
    ends = []
    for bend in (0.8, 0.1):
        q = model.neutral()
        for side in ("left", "right"):
            q[model.joint(f"{side}_hip").q_slice] = [-bend, 0.0, 0.0]
            q[model.joint(f"{side}_knee").q_slice] = 2.0 * bend
            q[model.joint(f"{side}_ankle").q_slice] = [-bend, 0.0]
        q[:3] -= da.forward_kinematics(model, q)["left_sole"].translation - [0.0, 0.09, 0.0]
        ends.append(q)
    settings = {"knots": knots, "smoothness": smoothness, "contacts": feet, "frame_time": 1e-3}
    begun = time.perf_counter()
    da.motion.transition(model, *ends, DURATION, iterations=0, **settings)
    compiling = time.perf_counter() - begun
    begun, cpu = time.perf_counter(), time.process_time()
    move = da.motion.transition(model, *ends, DURATION, **settings)
    search, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(
        f"\non both feet: compiled or loaded in {compiling:.1f} s, found in {search:.1f} s ({cpu:.1f} s CPU)"
    )
    print(f"{move}, gradient norm {move.gradient_norms[0]:.3g} -> {move.gradient_norm:.3g}")
    poses = da.forward_kinematics(model, move.clip.q)
    off = max(np.abs(poses[foot].translation - poses[foot].translation[0]).max() for foot in feet)
    print(
        f"soles off by {off:.1e} m at most in {len(move.clip)} frames, root {np.abs(move.residual).max()} N"
    )
    spline = ConfigurationSpline(model, Knots(knots, DURATION))
    rest = np.zeros(model.nv)
    controls = spline.between((ends[0], rest), (ends[1], rest))
    free = np.zeros(controls.values.shape, bool)
    free[2:-2] = True
    held = contacts_of(model, feet, ends[0])
    path = ClosedPath(spline, held, controls, free, np.zeros(model.nv, bool))
    prices = np.where(np.arange(model.nv) < 6, 0.01, 1.0)
    energy = ClosedTorqueEnergy(path, prices=prices, smoothness=smoothness, unpowered=np.arange(6))
    value = seconds(lambda: energy(path.controls), 50)
    both = seconds(lambda: energy.with_gradient(path.controls), 50)
    print(
        f"energy {value * 1e3:.2f} ms, with gradient {both * 1e3:.2f} ms; by differences "
        f"{value * (free.sum() + 1) * 1e3:.0f} ms, {value * (free.sum() + 1) / both:.0f} times as long"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--knots", type=int, default=12)
    parser.add_argument("--smoothness", type=float, default=0.05)
    options = parser.parse_args()
    da.set_num_threads(1)
    model = da.models.humanoid()
    start, end = poses(model)
    settings = {"knots": options.knots, "smoothness": options.smoothness}
    begun = time.perf_counter()
    da.motion.transition(model, start, end, DURATION, iterations=0, **settings)
    compiling = time.perf_counter() - begun
    begun = time.perf_counter()
    move = da.motion.transition(model, start, end, DURATION, **settings)
    search = time.perf_counter() - begun
    met = max(
        np.abs(da.difference(model, move.clip.q[k], q)).max() + np.abs(move.clip.v[k]).max()
        for k, q in ((0, start), (-1, end))
    )
    print(f"humanoid, {model.nv} freedoms, {options.knots} knots: {model.nv * options.knots} free numbers")
    print(f"compiled or loaded in {compiling:.1f} s, found in {search:.1f} s: {move}")
    print(f"gradient norm {move.gradient_norms[0]:.3g} -> {move.gradient_norm:.3g}, scaled by curvature")
    print(f"energy fell at every accepted iterate: {bool(np.all(np.diff(move.energies) <= 0.0))}")
    print(f"of it torque energy {move.torque_energy:.6g}; the ends are met to {met:.1e}")
    moment, force = np.abs(move.residual).max(axis=0).reshape(2, 3).max(axis=1)
    print(f"root: up to {moment:.0f} N m, {force:.0f} N")

    spline = ConfigurationSpline(model, Knots(options.knots, DURATION))
    prices = np.ones(model.nv)
    prices[:6] = 0.01
    energy = TorqueEnergy(spline, prices=prices, smoothness=options.smoothness)
    controls = spline.between((start, np.zeros(model.nv)), (end, np.zeros(model.nv)))
    exact = energy.with_gradient(controls)[1][2:-2]
    exact_time = seconds(lambda: energy.with_gradient(controls), 200)
    rest = max(search - move.evaluations * exact_time, 0.0)
    print(
        f"\nenergy and gradient {exact_time * 1e3:.3f} ms, {move.evaluations} times; other work {rest:.2f} s"
    )
    for name, gradient in (("one by one", one_by_one), ("in one batch", in_one_batch)):
        error = np.abs(gradient(energy, controls)[2:-2] - exact).max() / np.abs(exact).max()
        each = seconds(lambda gradient=gradient: gradient(energy, controls), 3)
        whole = rest + each * move.evaluations
        print(
            f"differences {name:12} {each * 1e3:6.1f} ms, error {error:.0e}: the search would take "
            f"{whole:.0f} s, {whole / search:.0f} times as long (an evaluation {each / exact_time:.0f} times)"
        )
    on_both_feet(model, options.knots, options.smoothness)


if __name__ == "__main__":
    main()

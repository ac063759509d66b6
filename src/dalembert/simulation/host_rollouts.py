"""`da.rollout` of arrays on the host: the arguments of all steps, the steps, and the trajectory they make."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.call.arguments import as_array
from dalembert.compiler.rollout_execution import CompiledRollout, RolloutRun
from dalembert.contact.options import Compliant
from dalembert.control.servo import Servo
from dalembert.errors import ArgumentError
from dalembert.host.foreign_arrays import require_numpy
from dalembert.simulation.contact_records import contact_record
from dalembert.simulation.controls import Asked, Callback, Series, series
from dalembert.simulation.drives import target_series
from dalembert.simulation.energy_watch import reported_gain
from dalembert.simulation.initial_state import overlaps, require_closed_loops, require_finite
from dalembert.simulation.observers import Observer, evaluate_observers
from dalembert.simulation.parameters import batch_of_value, checked_parameters
from dalembert.simulation.rollout_arguments import FEWER_FRAMES, batch_of, require_room
from dalembert.simulation.step_function import CAUSES, StepPlan
from dalembert.simulation.trajectory import SimulationWarning, Trajectory

__all__ = ["rollout_on_host"]

Array: TypeAlias = npt.NDArray[Any]


def rollout_on_host(
    plan: StepPlan,
    compiled: Callable[[StepPlan, tuple[str, ...], tuple[str, ...]], CompiledRollout],
    given: Mapping[str, Any],
    dt: Array,
    start: float,
    steps: int,
    every: int,
    parameters: Mapping[str, object] | None,
    observers: Mapping[str, Observer | None],
    callback: Callback | None,
    progress: Callable[[int, int], None] | None,
) -> Trajectory:
    """Take all steps; `given` are q0, v0, controls, external_forces and reset."""
    model = plan.model
    for name, value in given.items():
        require_numpy(name, value)
    q, v = as_array("q0", given["q0"], (model.nq,)), as_array("v0", given["v0"], (model.nv,))
    require_room(model, q.shape[:-1], 0)
    require_room(model, v.shape[:-1], 0)
    require_finite("q0", q)
    require_finite("v0", v)
    values = checked_parameters(model, parameters)
    acting = _acting(plan, given, q, steps)
    batches = {"q0": q.shape[:-1], "v0": v.shape[:-1], "dt": dt.shape}
    batches |= {name: batch_of_value(model, name, value) for name, value in values.items()}
    for name, item in acting.items():
        own = plan.argument_rank(name) + item.stepwise
        batches["controls" if name == "tau" else name] = item.values.shape[: item.values.ndim - own]
    batch, asked = batch_of(batches), None
    require_room(model, batch, steps if callback is not None else steps // every)
    try:
        if callback is not None:
            acting["tau"] = Series(np.zeros((*batch, steps, model.nv)), True)
            asked = Asked(callback, acting["tau"].values, start, dt)
        time = start + dt[..., np.newaxis] * np.arange(0, steps + 1, every)
        kernel = compiled(plan, tuple(name for name in acting if acting[name].stepwise), tuple(values))
        arrays = _initial_arguments(plan, q, v, given["controls"]) | {
            name: item.values for name, item in acting.items()
        }
        run = kernel.start(**arrays, dt=dt, start=start, steps=steps, every=every, parameters=values or None)
    except MemoryError as error:
        raise ArgumentError(
            f"rollout: {steps // every} frames of this model are more than memory holds; {FEWER_FRAMES}"
        ) from error
    begun = run.state["q"].copy(), run.state["v"].copy()
    require_closed_loops(model, *begun, time[..., 0], values)
    if (said := overlaps(model, plan.selection, plan.points, begun[0], values)) is not None:
        soft = isinstance(plan.contact, Compliant)
        how = "springs part them" if soft else "they are moved apart without a push"
        warnings.warn(f"rollout: {said}; {how}", SimulationWarning, stacklevel=3)
    interrupted = _advance(run, progress, asked)
    return _trajectory(plan, run, time, begun, acting.get("tau"), observers, values, interrupted)


def _acting(plan: StepPlan, given: Mapping[str, Any], q: Array, steps: int) -> dict[str, Series]:
    """Return the inputs of all steps that are known before, by the names of the step's arguments."""
    model, controls = plan.model, given["controls"]
    found = {}
    if plan.external_frame is not None:
        own = (len(model.bodies), 6)
        found["external_forces"] = series("external_forces", given["external_forces"], own, steps)
    if plan.resets:
        found["reset"] = series("reset", given["reset"], (), steps)
    if isinstance(controls, Servo):
        return found | target_series(controls, model, q, steps)
    if not callable(controls):
        tau = np.zeros(model.nv) if controls is None else controls
        found["tau"] = series("controls", tau, (model.nv,), steps)
    return found


def _initial_arguments(plan: StepPlan, q: Array, v: Array, controls: object) -> dict[str, Any]:
    """Return the state that steps begin with, and the arguments that are the same in all of them."""
    arrays: dict[str, Any] = {name: np.array(value) for name, value in plan.fresh.items()}
    arrays |= {"q": q, "v": v}
    if plan.resets:
        arrays |= {"q_start": q, "v_start": v}
    return arrays | (controls.gains(plan.model) if isinstance(controls, Servo) else {})


def _advance(run: RolloutRun, progress: Callable[[int, int], None] | None, asked: Asked | None) -> bool:
    """Take all steps; True if Ctrl-C came first."""
    try:
        while run.done < run.steps:
            if asked is not None:
                asked.before(run.done, run.state["q"], run.state["v"])
            first = run.done == 0
            run.advance(None if asked is None else 1)
            if first:
                run.require_accepted()
            if progress is not None:
                progress(run.done, run.steps)
    except KeyboardInterrupt:
        return True
    return False


def _trajectory(
    plan: StepPlan,
    run: RolloutRun,
    time: Array,
    begun: tuple[Array, Array],
    tau: Series | None,
    observers: Mapping[str, Observer | None],
    parameters: Mapping[str, Array],
    interrupted: bool,
) -> Trajectory:
    batch, frames = run.refused_at.shape, run.done // run.every
    samples = (slice(None),) * len(batch)
    found = {
        name: array[(*samples, slice(frames))] for name, array in zip(plan.results, run.outputs, strict=True)
    }

    def from_start(first: Array, later: Array) -> Array:
        return np.concatenate([first[(*samples, np.newaxis)], later], axis=len(batch))

    q, v = from_start(begun[0], found["q"]), from_start(begun[1], found["v"])
    observed = evaluate_observers(plan.model, observers, time[..., : frames + 1], q, v, parameters)
    if "contact_work" in observers:
        observed["contact_work"] = from_start(np.zeros(batch), found["work"])
    if "contact_forces" in observers:
        shape = (len(plan.model.bodies), 3)
        loads = found.get("loads", np.zeros((*batch, frames, *shape)))
        observed["contact_forces"] = from_start(np.zeros((*batch, *shape)), loads)
    record = None
    if plan.record and plan.contact is not None:
        none = np.zeros((*batch, frames, 0))
        record = contact_record(
            plan.points,
            found.get("force", np.zeros((*none.shape, 3))),
            found.get("position", np.zeros((*none.shape, 3))),
            found.get("gap", none),
            found["memory"][..., len(plan.points) :, -1] if plan.selection.active_count else none,
            lambda which: plan.selection.active_names(plan.model, which),
        )
    fault, lasted = run.state["fault"].astype(int), run.state["lasted"].astype(int)
    trajectory = Trajectory(
        model=plan.model,
        time=(time if time.ndim == 1 else np.broadcast_to(time, (*batch, time.shape[-1])))[..., : frames + 1],
        q=q,
        v=v,
        tau=found["tau"] if tau is None else tau.at_frames(batch, frames, run.every),
        contacts=record,
        observed=observed,
        failed_at=np.where(fault > 0, lasted, -1),
        cause=np.array(CAUSES)[fault],
        energy_gain=reported_gain(run.state["energy"]) if plan.is_watched else np.array(0.0),
        interrupted=interrupted,
        parameters=parameters,
    )
    _report(trajectory, run.done)
    return trajectory


def _report(trajectory: Trajectory, done: int) -> None:
    """Warn of samples that failed, and of an early end."""
    if trajectory.interrupted:
        warnings.warn(
            f"rollout: interrupted after {done} steps; the trajectory has the frames until then",
            SimulationWarning,
            stacklevel=5,
        )
    gained = trajectory.energy_gain > 0.0
    if gained.any():
        many = f"{np.count_nonzero(gained)} of {gained.size} samples" if trajectory.batch else "the motion"
        warnings.warn(
            f"rollout: {many} gained energy that no work explains, {trajectory.energy_gain.max():.3g} J at "
            "most (energy_gain); take smaller steps, or part shapes that overlap at the start",
            SimulationWarning,
            stacklevel=5,
        )
    failed = trajectory.failed
    if not failed.any():
        return
    step = int(trajectory.failed_at[failed].min())
    which = np.argwhere(trajectory.failed_at == step)[0]
    sample = f", sample {tuple(which.tolist())}" if trajectory.batch else ""
    many = f"{np.count_nonzero(failed)} of {failed.size} samples failed" if trajectory.batch else "failed"
    warnings.warn(
        f"rollout: {many}, the first at step {step}{sample}: {trajectory.cause[tuple(which)]}; "
        "failed samples stay in their last good state (failed_at, cause)",
        SimulationWarning,
        stacklevel=5,
    )

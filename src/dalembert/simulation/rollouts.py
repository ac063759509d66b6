"""`da.rollout`: many steps of simulated time in one call."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.api.calls import checked_time_step
from dalembert.arguments import ArrayArgument, as_array
from dalembert.contact.options import Compliant
from dalembert.control.servo import Servo
from dalembert.errors import ArgumentError
from dalembert.foreign_arrays import is_on_gpu, require_numpy
from dalembert.library import no_model, source_digest
from dalembert.lowering import Recipe
from dalembert.model.model import Model
from dalembert.rollout_execution import CompiledRollout, RolloutRun, compile_rollout
from dalembert.simulation.captured_values import kept
from dalembert.simulation.contact_records import contact_record
from dalembert.simulation.controls import Asked, Callback, Policy, Series, series
from dalembert.simulation.drives import drive_of, targets_of
from dalembert.simulation.initial_state import overlaps, pairs_key, require_closed_loops, require_finite
from dalembert.simulation.observers import Observe, Observer, observers_of, require_contact, watched
from dalembert.simulation.parameters import batch_of_value, checked_parameters
from dalembert.simulation.rollout_arguments import (
    Contact,
    batch_of,
    checked_contact,
    checked_frame,
    checked_integrator,
    checked_start,
    checked_steps,
    require_function,
    whole,
)
from dalembert.simulation.step_function import CAUSES, StepPlan
from dalembert.simulation.trajectory import Trajectory

__all__ = ["SimulationWarning", "rollout"]

Array: TypeAlias = npt.NDArray[Any]


class SimulationWarning(RuntimeWarning):
    """Something of a simulation is to be known: failed samples, shapes that overlap at the start."""


def rollout(
    model: Model,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    controls: npt.ArrayLike | Policy | Servo | None = None,
    steps: int | None = None,
    dt: npt.ArrayLike = 0.002,
    *,
    contact: Contact = None,
    integrator: str = "semi_implicit",
    callback: Callback | None = None,
    external_forces: npt.ArrayLike | None = None,
    external_frame: str = "body",
    observe: Observe = (),
    every: int = 1,
    record_contacts: bool = True,
    parameters: Mapping[str, object] | None = None,
    reset: npt.ArrayLike | None = None,
    start: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> Trajectory:
    """Simulate `steps` steps of dt [s] from (q0, v0).

    x_(k+1) = f(x_k, tau_k), f a step of the integrator, or of contact. Kinematics, contact, dynamics and
    integration are one kernel, which takes all steps of a sample in one call, many samples side by side.

    q0 `(…, nq)`, v0 `(…, nv)`; dt a number, or one for each sample `(…,)`. `controls`: the joint forces tau
    [N m, N]: None for zero, `(nv,)` held throughout, `(…, steps, nv)` step by step, `(…, 1, nv)` held but
    different from sample to sample; or a *policy*, a function `f(model, t, q, v)` of generic scalars that
    returns tau, and is compiled into the step; or a `da.control.Servo`, PD control of joints, implicit in
    the step. `callback(t, q, v)`, instead of controls, is called in Python before each step with the time and
    the arrays of all samples, and returns tau; that is slow. tau is held during a step.

    `contact`: None (joints alone: no limits), "rigid" or "compliant", or a `da.contact.Rigid` or
    `da.contact.Compliant` with its options.
    `integrator`: of `da.step`, where there is no contact; a step with contact is semi-implicit, springs and
    damping of joints are implicit in it. `external_forces` on the bodies, `(n_bodies, 6)` held throughout,
    `(…, steps, n_bodies, 6)` step by step, or `(…, 1, n_bodies, 6)` held, sample by sample; in the frame
    `external_frame`: "body", "world", or "center", along world axes at the centre of mass of each body.

    `observe`: "energy" [J], "momentum" (about the centre of mass), "constraint_error", "contact_forces"
    `(…, T+1, n_bodies, 3)` (their sums on bodies [N]), "contact_work" (all of it since the start [J]), and
    functions of one's own of (model, t, q, v), {"name": f}. `every`: only every so many steps a frame is
    kept; forces and contacts of a frame are those of its last step. `record_contacts=False` leaves the record
    of contact points away. `parameters`: values of the model, as in `da.compile`.
    `reset (…, steps)`: where it is not zero, a sample begins anew before that step: from its q0 and v0, at
    the time `start`, without memory of contacts and faults.
    `start` [s]: the time of the first frame. `progress(done, steps)` is called several times a second.

    A sample whose step is not finite, or whose velocities exceed 1e6, stays in its last good state, and
    `failed_at` and `cause` of the trajectory tell; the others go on. Ctrl-C ends a rollout early: the
    trajectory has the frames until then. Shapes that overlap at the start are reported, and parted without a
    push, by compliant contact at 0.25 m/s where they are very deep. Loops must be closed
    at the start, and their velocities must keep them so.

    Rows: ANIM-SIMLOOP.

    >>> model = da.models.pendulum(length=1.0)
    >>> swing = da.rollout(model, [0.1], [0.0], steps=2000, dt=0.001, every=500, integrator="rk4")
    >>> print(np.abs(swing.q[:, 0] - 0.1 * np.cos(np.sqrt(9.81) * swing.time)).max() < 1e-3)
    True
    >>> damped = da.rollout(model, [0.1], [0.0], lambda model, t, q, v: [-2.0 * v[0]], steps=5000, dt=0.001)
    >>> print(damped.energy()[-1] < damped.energy()[0])
    True
    """
    if not isinstance(model, Model):
        raise no_model("rollout", model)
    span = checked_time_step(dt)
    spacing = whole("every", every)
    count = checked_steps(steps, controls, spacing)
    observers = observers_of(observe)
    law = checked_contact(model, contact)
    require_contact(observers, contact)
    if callback is not None and controls is not None:
        raise ArgumentError("rollout: give controls or a callback, not both")
    require_function("callback", callback, "t, q, v")
    require_function("progress", progress, "done, steps")
    frame = checked_frame(external_frame)
    plan = StepPlan(
        model=model,
        integrator=checked_integrator(integrator, law),
        contact=law,
        pairs=() if law is None else law.pairs_in(model),
        policy=controls if callable(controls) else None,
        drive=drive_of(controls, model) if isinstance(controls, Servo) else None,
        external_frame=None if external_forces is None else frame,
        record=record_contacts,
        work="contact_work" in observers,
        loads="contact_forces" in observers,
        resets=reset is not None,
    )
    foreign = {"q0": q0, "v0": v0, "controls": controls, "external_forces": external_forces, "reset": reset}
    targets = (controls.q_ref, controls.v_ref) if isinstance(controls, Servo) else ()
    if any(is_on_gpu(value) for value in (*foreign.values(), dt, *targets, *(parameters or {}).values())):
        from dalembert.simulation.gpu_rollouts import rollout_on_gpu  # which needs a GPU

        return rollout_on_gpu(
            plan,
            _compiled,
            foreign,
            dt,
            checked_start(start),
            count,
            spacing,
            parameters,
            observers,
            callback,
        )
    for argument, given_array in foreign.items():
        require_numpy(argument, given_array)
    q, v = as_array("q0", q0, (model.nq,)), as_array("v0", v0, (model.nv,))
    require_finite("q0", q)
    require_finite("v0", v)
    values = checked_parameters(model, parameters)
    arrays: dict[str, Any] = {"q": q, "v": v, "dt": span, "start": checked_start(start)}
    batches = {"q0": q.shape[:-1], "v0": v.shape[:-1], "dt": span.shape}
    batches |= {name: batch_of_value(model, name, value) for name, value in values.items()}
    streams: list[str] = []

    def given(name: str, series: Series, told: str) -> None:
        arrays[name] = series.values
        streams.extend([name] * series.stepwise)
        own = plan.argument_rank(name) + series.stepwise
        batches[told] = series.values.shape[: series.values.ndim - own]

    if external_forces is not None:
        pushes = series("external_forces", external_forces, (len(model.bodies), 6), count)
        given("external_forces", pushes, "external_forces")
    if reset is not None:
        arrays |= {"q_start": q, "v_start": v}
        given("reset", series("reset", reset, (), count), "reset")
    tau: Series | None = None
    if isinstance(controls, Servo):
        arrays |= controls.gains(model)
        for name, targets in targets_of(controls, model, q, count).items():
            given(name, targets, name)
    elif callback is None and not callable(controls):
        tau = series("controls", np.zeros(model.nv) if controls is None else controls, (model.nv,), count)
        given("tau", tau, "controls")
    batch = batch_of(batches)
    asked: Asked | None = None
    for name in plan.carried:
        arrays.setdefault(name, np.array(plan.memory) if name == "memory" else 0.0)
    try:
        if callback is not None:
            tau = Series(np.zeros((*batch, count, model.nv)), True)
            asked = Asked(callback, tau.values, arrays["start"], span)
            given("tau", tau, "callback")
        time = arrays["start"] + span[..., np.newaxis] * np.arange(0, count + 1, spacing)
        kernel = _compiled(plan, tuple(streams), tuple(values))
        run = kernel.start(**arrays, steps=count, every=spacing, parameters=values or None)
    except MemoryError as error:
        raise ArgumentError(
            f"rollout: {count // spacing} frames of this model are more than memory holds; take fewer steps, "
            "or keep a frame every so many with every=100"
        ) from error
    q_begun, v_begun = run.state["q"].copy(), run.state["v"].copy()
    require_closed_loops(model, q_begun, v_begun, time[..., 0], values)
    if (said := overlaps(model, plan.selection, q_begun, values)) is not None:
        how = "springs part them" if isinstance(law, Compliant) else "they are moved apart without a push"
        warnings.warn(f"rollout: {said}; {how}", SimulationWarning, stacklevel=2)
    interrupted = _advance(run, progress, asked)
    return _trajectory(plan, run, time, (q_begun, v_begun), tau, observers, values, interrupted)


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
    batch, frames = run.refused.shape, run.done // run.every
    samples = (slice(None),) * len(batch)
    found = {
        name: array[(*samples, slice(frames))] for name, array in zip(plan.results, run.outputs, strict=True)
    }

    def from_start(first: Array, later: Array) -> Array:
        return np.concatenate([first[(*samples, np.newaxis)], later], axis=len(batch))

    q, v = from_start(begun[0], found["q"]), from_start(begun[1], found["v"])
    observed = watched(plan.model, observers, time[..., : frames + 1], q, v, parameters)
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
            found["memory"][..., len(plan.points) :, -1] if plan.selection.chosen else none,
            lambda which: plan.selection.chosen_names(plan.model, which),
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
            stacklevel=4,
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
        stacklevel=4,
    )


def _compiled(
    plan: StepPlan, streams: tuple[str, ...], parameters: tuple[str, ...], dtype: str = "float64"
) -> CompiledRollout:
    """The kernel of a plan, kept with the model; on disk too, unless a function of the caller's is in it."""
    model = plan.model
    settings = None if plan.contact is None else plan.contact.settings
    options = (
        plan.integrator,
        settings,
        pairs_key(plan.pairs),
        plan.selection.chosen,
        plan.external_frame,
        plan.record,
        plan.work,
        plan.loads,
        plan.resets,
        None if plan.drive is None else (plan.drive.driven, *plan.drive.arguments(model)),
        streams,
        parameters,
        dtype,
    )
    traced = (plan.policy, *(plan.drive.traced if plan.drive is not None else ()))

    def made() -> CompiledRollout:
        text = f"rollout {options} {model.digest} {source_digest()}"
        recipe = Recipe(
            name="rollout",
            function=plan,
            model=model,
            arguments=plan.arguments,
            parameters=tuple(ArrayArgument(name, np.shape(model.value(name))) for name in parameters),
            identity=hashlib.sha256(text.encode()).hexdigest() if not any(traced) else None,
        )
        return compile_rollout(recipe, carried=plan.carried, streams=streams, dtype=dtype)

    return kept(model.functions, ("rollout", options), traced, made)

"""`da.rollout`: many steps of simulated time in one call."""

from __future__ import annotations

import hashlib
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dalembert.algorithms.stepping import INTEGRATORS
from dalembert.api.calls import checked_time_step
from dalembert.arguments import ArrayArgument, as_array
from dalembert.contact.options import Compliant, Rigid
from dalembert.control.servo import Servo
from dalembert.errors import ArgumentError, DtypeError, UnknownNameError
from dalembert.foreign_arrays import require_numpy
from dalembert.library import no_model, source_digest
from dalembert.lowering import Recipe
from dalembert.model.model import Model
from dalembert.rollout_execution import CompiledRollout, RolloutRun, compile_rollout
from dalembert.simulation.controls import Asked, Callback, Series, series
from dalembert.simulation.drives import drive_of, targets_of
from dalembert.simulation.initial_state import overlaps, pairs_key, require_closed_loops, require_finite
from dalembert.simulation.observers import Observe, Observer, observers_of, watched
from dalembert.simulation.step_function import CAUSES, Policy, StepPlan
from dalembert.simulation.trajectory import ContactRecord, Trajectory

__all__ = ["SimulationWarning", "rollout"]

Array: TypeAlias = npt.NDArray[Any]
Contact: TypeAlias = str | Rigid | Compliant | None

CONTACTS: Final = ("rigid", "compliant")
FRAMES: Final = ("body", "world", "center")


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
    damping of joints are implicit in it. `external_forces` on the bodies, `(…, n_bodies, 6)` or
    `(…, steps, n_bodies, 6)`, in the frame `external_frame`: "body", "world", or "center", along world axes
    at the centre of mass of each body.

    `observe`: "energy" [J], "momentum" (about the centre of mass), "constraint_error", "contact_forces"
    `(…, T+1, n_bodies, 3)` (their sums on bodies [N]), "contact_work" (all of it since the start [J]), and
    functions of one's own of (model, t, q, v), {"name": f}. `every`: only every so many steps a frame is
    kept; forces and contacts of a frame are those of its last step. `record_contacts=False` leaves the record
    of contact points away. `parameters`: values of the model, as in `da.compile`.
    `start` [s]: the time of the first frame. `progress(done, steps)` is called several times a second.

    A sample whose step is not finite, or whose velocities exceed 1e6, stays in its last good state, and
    `failed_at` and `cause` of the trajectory tell; the others go on. Ctrl-C ends a rollout early: the
    trajectory has the frames until then. Shapes that overlap at the start are reported, and parted without a
    push. Loops must be closed at the start, and their velocities must keep them so.

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
    spacing = _whole("every", every)
    count = _steps(steps, controls, spacing)
    observers = observers_of(observe)
    law = _contact(model, contact)
    foreign = {"q0": q0, "v0": v0, "controls": controls, "external_forces": external_forces}
    for argument, given_array in foreign.items():
        require_numpy(argument, given_array)
    q, v = as_array("q0", q0, (model.nq,)), as_array("v0", v0, (model.nv,))
    require_finite("q0", q)
    require_finite("v0", v)
    if callback is not None and controls is not None:
        raise ArgumentError("rollout: give controls or a callback, not both")
    plan = StepPlan(
        model=model,
        integrator=_integrator(integrator, law),
        contact=law,
        pairs=() if law is None else law.pairs_in(model),
        policy=controls if callable(controls) else None,
        drive=drive_of(controls, model) if isinstance(controls, Servo) else None,
        external_frame=None if external_forces is None else _frame(external_frame),
        record=record_contacts,
        work="contact_work" in observers,
        loads="contact_forces" in observers,
    )
    arrays: dict[str, Any] = {"q": q, "v": v, "dt": span, "start": _start(start)}
    streams: list[str] = []

    def given(name: str, values: Series) -> None:
        arrays[name] = values.values
        streams.extend([name] * values.stepwise)

    if external_forces is not None:
        given("external_forces", series("external_forces", external_forces, (len(model.bodies), 6), count))
    tau: Series | None = None
    asked: Asked | None = None
    if callback is not None:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], span.shape)
        tau = Series(np.zeros((*batch, count, model.nv)), True)
        asked = Asked(callback, tau.values, arrays["start"], span)
    elif isinstance(controls, Servo):
        arrays |= controls.gains(model)
        for name, values in targets_of(controls, model, q, count).items():
            given(name, values)
    elif not callable(controls):
        tau = series("controls", np.zeros(model.nv) if controls is None else controls, (model.nv,), count)
    if tau is not None:
        given("tau", tau)
    for name in plan.carried:
        arrays.setdefault(name, np.zeros((len(plan.points), 4)) if name == "memory" else 0.0)
    kernel = _compiled(plan, tuple(streams), tuple(parameters or ()))
    run = kernel.start(**arrays, steps=count, every=spacing, parameters=parameters)
    q_begun, v_begun = run.state["q"].copy(), run.state["v"].copy()
    time = arrays["start"] + span[..., np.newaxis] * np.arange(0, count + 1, spacing)
    require_closed_loops(model, q_begun, v_begun, time[..., 0])
    if (said := overlaps(model, plan.pairs, q_begun)) is not None:
        warnings.warn(f"rollout: {said}", SimulationWarning, stacklevel=2)
    interrupted = _advance(run, progress, asked)
    return _trajectory(plan, run, time, (q_begun, v_begun), tau, observers, parameters, interrupted)


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
    parameters: Mapping[str, object] | None,
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
        record = ContactRecord(
            tuple(plan.points),
            found.get("force", np.zeros((*none.shape, 3))),
            found.get("position", np.zeros((*none.shape, 3))),
            found.get("gap", none),
        )
    fault, lasted = run.state["fault"].astype(int), run.state["lasted"].astype(int)
    trajectory = Trajectory(
        model=plan.model,
        time=time[..., : frames + 1],
        q=q,
        v=v,
        tau=found["tau"] if tau is None else tau.at_frames(batch, frames, run.every),
        contacts=record,
        observed=observed,
        failed_at=np.where(fault > 0, lasted, -1),
        cause=np.array(CAUSES)[fault],
        interrupted=interrupted,
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


def _compiled(plan: StepPlan, streams: tuple[str, ...], parameters: tuple[str, ...]) -> CompiledRollout:
    """The kernel of a plan, kept with the model; on disk too, unless a function of the caller's is in it."""
    model = plan.model
    settings = None if plan.contact is None else plan.contact.settings
    options = (
        plan.integrator,
        settings,
        pairs_key(plan.pairs),
        plan.external_frame,
        plan.record,
        plan.work,
        plan.loads,
        None if plan.drive is None else (plan.drive.driven, *plan.drive.arguments(model)),
        streams,
        parameters,
    )
    traced = (plan.policy, *(plan.drive.traced if plan.drive is not None else ()))
    key = ("rollout", options, traced)
    found: CompiledRollout | None = model.functions.get(key)
    if found is None:
        text = f"rollout {options} {model.digest} {source_digest()}"
        recipe = Recipe(
            name="rollout",
            function=plan,
            model=model,
            arguments=plan.arguments,
            parameters=tuple(ArrayArgument(name, np.shape(model.value(name))) for name in parameters),
            identity=hashlib.sha256(text.encode()).hexdigest() if not any(traced) else None,
        )
        found = model.functions[key] = compile_rollout(recipe, carried=plan.carried, streams=streams)
    return found


def _contact(model: Model, contact: Contact) -> Rigid | Compliant | None:
    if contact is None:
        return None
    if isinstance(contact, str):
        if contact not in CONTACTS:
            raise UnknownNameError.of("contact", contact, CONTACTS)
        contact = Rigid() if contact == "rigid" else Compliant()
    if not isinstance(contact, Rigid | Compliant):
        raise DtypeError(
            f'rollout: contact is {type(contact).__name__}; give None, "rigid", "compliant", '
            "da.contact.Rigid(…) or da.contact.Compliant(…)"
        )
    if model.time_dependent or model.closure is not None:
        what = "joints that depend on time" if model.time_dependent else "a loop closure q = gamma(y)"
        raise ArgumentError(f"rollout: steps with contact do not know {what}; leave contact away")
    return contact


def _integrator(name: str, contact: Rigid | Compliant | None) -> str:
    if name not in INTEGRATORS:
        raise UnknownNameError.of("integrator", name, INTEGRATORS)
    if contact is not None and name != "semi_implicit":
        raise ArgumentError(
            f'rollout: integrator="{name}" is for motion without contact; a step with contact is '
            "semi-implicit"
        )
    return name


def _frame(name: str) -> str:
    if name not in FRAMES:
        raise UnknownNameError.of("external_frame", name, FRAMES)
    return name


def _steps(steps: object, controls: object, every: int) -> int:
    """The number of steps: as given, or that of the controls."""
    if steps is None:
        shape: tuple[int, ...] = () if callable(controls) else np.shape(np.asarray(controls))
        if len(shape) < 2:
            raise ArgumentError("rollout: say how many steps to take: steps=1000")
        steps = shape[-2]
    count = _whole("steps", steps)
    if count % every:
        raise ArgumentError(
            f"rollout: {count} steps are no multiple of every={every}; the last frame would not be at the end"
        )
    return count


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ArgumentError(f"rollout: {name} is {value!r}; give a whole number from 1 on")
    return number


def _start(time: float) -> float:
    if not isinstance(time, int | float) or not math.isfinite(time):
        raise ArgumentError(f"rollout: start is {time!r}; give a finite time [s]")
    return float(time)
